"""What coordinators and clients write, as tables: a wording is an entry, with an example that is its test.

The words of an entry are fixed, and the rest are fields of the fact, by the names of groups. Wordings have
changed over the years: each entry accepts all that are known. Sources are named in the README of this room.
"""

import re
from dataclasses import dataclass, field

from rebalance_logs.facts import Kind

END = r"\.?\s*(?:\(reason: |$)"
_NAME = r"[^\s,;\])]+"


@dataclass(frozen=True, slots=True)
class Wording:
    """One message: the fact that it states, words that it always contains, its form and an example.

    The groups of ``form`` are fields of `Fact`; ``text``, ``partitions``, ``assignments`` and ``others`` are
    read from the text of their group. ``example``: a message that has the form.
    """

    kind: Kind
    words: str
    form: re.Pattern[str]
    example: str


@dataclass(frozen=True, slots=True)
class LogFormat:
    """The messages of one program. ``name`` is how it is shown; ``library`` is that of a client, or empty.

    ``context``: where lines have the names of the group and its member, for all wordings.
    """

    name: str
    library: str
    wordings: tuple[Wording, ...]
    context: tuple[re.Pattern[str], ...] = field(default=())


def _w(kind: Kind, words: str, form: str, example: str) -> Wording:
    return Wording(kind, words, re.compile(form), example)


_IN_GROUP = rf"(?:(?: group)? (?P<group>{_NAME}))?"
_REASON = r"(?: \(__consumer_offsets-\d+\))?(?:[^()]*\(reason: (?P<text>.*))?"
_LEAVE_CAUSE = r"(?:;? client reason: (?P<cause>.*?))?\.?$"

BROKER = LogFormat(
    "kafka broker",
    "",
    (
        _w(
            Kind.ROUND_BEGAN,
            "reparing to rebalance group",
            rf"reparing to rebalance group (?P<group>{_NAME}) in state \w+ with old generation"
            rf" (?P<generation>-?\d+){_REASON}",
            "Preparing to rebalance group pay in state PreparingRebalance with old generation 3"
            " (__consumer_offsets-12) (reason: removing member c-1-x on heartbeat expiration)",
        ),
        _w(
            Kind.GENERATION,
            "tabilized group",
            rf"tabilized group (?P<group>{_NAME}) generation (?P<generation>\d+)",
            "Stabilized group pay generation 4 (__consumer_offsets-12) with 3 members",
        ),
        _w(
            Kind.ASSIGNED_BY_LEADER,
            "ssignment received from leader",
            rf"ssignment received from leader(?: (?!for)(?P<member>{_NAME}))? for group (?P<group>{_NAME})"
            r" for generation (?P<generation>\d+)",
            "Assignment received from leader c-0-y for group pay for generation 4. The group has 3 members,"
            " 0 of which are static.",
        ),
        _w(
            Kind.EMPTY,
            "is now empty",
            rf"roup (?P<group>{_NAME}) with generation (?P<generation>\d+) is now empty",
            "Group pay with generation 5 is now empty (__consumer_offsets-12)",
        ),
        _w(
            Kind.FAILED,
            "has failed, removing it from the group",
            rf"ember (?P<member>{_NAME}) in group (?P<group>{_NAME}) has failed, removing",
            "Member c-1-x in group pay has failed, removing it from the group",
        ),
        _w(
            Kind.LEFT_BEHIND,
            "members who haven't joined",
            rf"roup (?P<group>{_NAME}) removed dynamic members who haven't joined:? (?P<others>.*)",
            "Group pay removed dynamic members who haven't joined: Set(c-1-x, c-2-z)",
        ),
        _w(
            Kind.LEFT,
            "LeaveGroup",
            rf"ember (?:MemberMetadata\(memberId=)?(?P<member>{_NAME})(?:, .*?\))?"
            rf"(?: with instance id (?P<instance>{_NAME}))? has left group(?: (?!through)(?P<group>{_NAME}))?"
            rf" through explicit `*LeaveGroup`*(?: request)?{_LEAVE_CAUSE}",
            "Member c-1-x has left group pay through explicit LeaveGroup; client reason: the consumer is"
            " being closed",
        ),
        _w(
            Kind.LEFT,
            "has left, removing it from the group",
            rf"ember\[group.instance.id (?P<instance>{_NAME}), member.id (?P<member>{_NAME})\] in group"
            rf" (?P<group>{_NAME}) has left, removing it from the group",
            "Member[group.instance.id None, member.id c-1-x] in group pay has left, removing it from the group",
        ),
        _w(
            Kind.REPLACED,
            "Replacing previously mapped member",
            rf"groupInstanceId=(?P<instance>{_NAME}).*? joins group{_IN_GROUP} in .*?"
            rf"Replacing previously mapped member (?P<others>{_NAME}) with",
            "Static member with groupInstanceId=pod-1 and unknown member id joins group pay in Stable state."
            " Replacing previously mapped member pod-1-x with this groupInstanceId.",
        ),
        _w(
            Kind.STATIC_WITHOUT_ROUND,
            "will not trigger rebalance",
            r"tatic member which joins during \w+ stage and doesn't affect .* will not trigger rebalance",
            "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger"
            " rebalance.",
        ),
        _w(
            Kind.JOINS_NEW,
            "Created a new member id",
            rf"(?:groupInstanceId=(?P<instance>{_NAME}) and )?unknown member id joins group{_IN_GROUP} in .*?"
            rf"Created a new member id (?P<member>{_NAME})",
            "Dynamic member with unknown member id joins group pay in Stable state. Created a new member id"
            " c-3-w and request the member to rejoin with this id.",
        ),
        _w(
            Kind.JOINS_KNOWN,
            "ending dynamic member with id",
            rf"ending dynamic member with id (?P<member>{_NAME}) joins group{_IN_GROUP} in",
            "Pending dynamic member with id c-3-w joins group pay in Stable state. Adding to the group now.",
        ),
        _w(
            Kind.PENDING_EXPIRED,
            "after session timeout expiration",
            rf"ending member (?P<member>{_NAME}) in group (?P<group>{_NAME}) has been removed after session"
            " timeout expiration",
            "Pending member c-3-w in group pay has been removed after session timeout expiration.",
        ),
        _w(
            Kind.FENCED,
            "is fenced by current memberId",
            rf"memberId=(?P<member>{_NAME}) for static member with groupInstanceId=(?P<instance>{_NAME}) is"
            rf" fenced by current memberId=(?P<others>{_NAME})",
            "Request memberId=pod-1-x for static member with groupInstanceId=pod-1 is fenced by current"
            " memberId=pod-1-z during operation heartbeat",
        ),
        _w(
            Kind.FORGOTTEN,
            "etting empty assignments for members",
            rf"etting empty assignments for members (?P<others>.*?) of (?P<group>{_NAME}) for generation"
            r" (?P<generation>\d+)",
            "Setting empty assignments for members Set(c-2-z) of pay for generation 4",
        ),
        _w(
            Kind.NOBODY_REJOINED,
            "could not complete rebalance because no members rejoined",
            rf"roup (?P<group>{_NAME}) could not complete rebalance because no members rejoined",
            "Group pay could not complete rebalance because no members rejoined",
        ),
        _w(
            Kind.UNLOADED,
            "nloading group metadata for",
            rf"nloading group metadata for (?P<group>{_NAME})(?: with generation (?P<generation>\d+))?",
            "Unloading group metadata for pay with generation 4",
        ),
        _w(
            Kind.LOADED,
            "oad",
            rf"(?:Loading|Loaded) group metadata for (?P<group>{_NAME})(?: with generation (?P<generation>\d+))?",
            "Loading group metadata for pay with generation 4",
        ),
        _w(
            Kind.JOINS_KNOWN,
            "joins the consumer group",
            rf"ember (?P<member>{_NAME}) (?:re-)?joins the consumer group",
            "[GroupId pay] Member m-1 joins the consumer group using the consumer protocol.",
        ),
        _w(
            Kind.REPLACED,
            "to replace the existing member",
            rf"nstance id (?P<instance>{_NAME}) re-joins the consumer group.*?replace the existing member"
            rf" (?P<others>{_NAME})",
            "[GroupId pay] Static member with instance id pod-1 re-joins the consumer group using the consumer"
            " protocol to replace the existing member m-1",
        ),
        _w(
            Kind.EPOCH,
            "group epoch to",
            r"umped group epoch to (?P<generation>\d+)",
            "[GroupId pay] Bumped group epoch to 7.",
        ),
        _w(
            Kind.TARGET,
            "omputed a new target assignment for epoch",
            r"target assignment for epoch (?P<generation>\d+) with '(?P<protocol>[^']*)'",
            "[GroupId pay] Computed a new target assignment for epoch 7 with 'uniform' assignor in 1ms.",
        ),
        _w(
            Kind.MEMBER_STATE,
            "new assignment state",
            rf"ember (?P<member>{_NAME})(?:'s)? new assignment state: epoch=(?P<generation>-?\d+),"
            r".*?state=(?P<text>\w+)(?:.*?assignedPartitions=\[(?P<partitions>[^\]]*))?",
            "[GroupId pay] Member m-1 new assignment state: epoch=7, previousEpoch=6, state=STABLE,"
            " assignedPartitions=[orders-0, orders-1].",
        ),
        _w(
            Kind.AWAY,
            "temporarily left the consumer group",
            rf"tatic Member (?P<member>{_NAME}) with instance id (?P<instance>{_NAME}) temporarily left",
            "[GroupId pay] Static Member m-1 with instance id pod-1 temporarily left the consumer group.",
        ),
        _w(
            Kind.LEFT,
            "left the consumer group",
            rf"ember (?P<member>{_NAME})(?: with instance id (?P<instance>{_NAME}))? left the consumer group",
            "[GroupId pay] Member m-1 left the consumer group.",
        ),
        _w(
            Kind.FAILED,
            "because the member session expired",
            rf"ember (?P<member>{_NAME}) fenced from the group because the member session expired",
            "[GroupId pay] Member m-1 fenced from the group because the member session expired.",
        ),
        _w(
            Kind.TOO_SLOW,
            "because it failed to transition from epoch",
            rf"ember (?P<member>{_NAME}) fenced from the group because it failed to transition from epoch"
            r" (?P<generation>\d+)",
            "[GroupId pay] Member m-1 fenced from the group because it failed to transition from epoch 6"
            " within 45000ms.",
        ),
        _w(
            Kind.TOPICS_CHANGED,
            "omputed new subscription metadata",
            r"omputed new subscription metadata: (?P<text>.*)",
            "[GroupId pay] Computed new subscription metadata: [orders: 24 partitions].",
        ),
        _w(
            Kind.RESUBSCRIBED,
            "updated its subscribed topics to",
            rf"ember (?P<member>{_NAME}) updated its subscribed topics to: (?P<text>.*)",
            "[GroupId pay] Member m-1 updated its subscribed topics to: [orders].",
        ),
    ),
    (
        re.compile(r"\[Group(?:Id)? (?P<group>[^\]]+)\]"),
        re.compile(r"\[MemberId (?P<member>[^\]]+)\]"),
    ),
)

_GENERATION = rf"generationId=(?P<generation>\d+), memberId='(?P<member>[^']*)', protocol='(?P<protocol>[^']*)'"

JAVA = LogFormat(
    "java consumer",
    "java",
    (
        _w(Kind.SUBSCRIBED, "ubscribed to", r"ubscribed to (?:topic\(s\)|pattern): (?P<text>.*)",
           "Subscribed to topic(s): orders, payments"),
        _w(Kind.FOUND_COORDINATOR, "iscovered group coordinator",
           r"iscovered group coordinator (?P<text>\S+)",
           "Discovered group coordinator b-1:9092 (id: 2147483646 rack: null)"),
        _w(Kind.JOINING, "(Re-)joining group", r"\(Re-\)joining group", "(Re-)joining group"),
        _w(Kind.ASKED_TO_REJOIN, "equest joining group due to", r"equest joining group due to: (?P<text>.*)",
           "Request joining group due to: group is already rebalancing"),
        _w(Kind.JOINED, "uccessfully joined group with generation",
           rf"uccessfully joined group with generation (?:Generation\{{{_GENERATION}|(?P<old>\d+))",
           "Successfully joined group with generation Generation{generationId=2, memberId='c-0-4a',"
           " protocol='range'}"),
        _w(Kind.COMPUTED, "inished assignment for group at generation",
           r"inished assignment for group at generation (?P<generation>\d+): (?P<assignments>.*)",
           "Finished assignment for group at generation 2: {c-2-32=Assignment(partitions=[orders-2]),"
           " c-0-4a=Assignment(partitions=[orders-0])}"),
        _w(Kind.SYNCED, "uccessfully synced group in generation",
           rf"uccessfully synced group in generation Generation\{{{_GENERATION}",
           "Successfully synced group in generation Generation{generationId=2, memberId='c-0-4a',"
           " protocol='range'}"),
        _w(Kind.ADDED, "dding newly assigned partitions",
           r"dding newly assigned partitions:? ?(?P<partitions>.*)",
           "Adding newly assigned partitions: orders-0, orders-1"),
        _w(Kind.OWNS, "etting newly assigned partitions",
           r"etting newly assigned partitions:? ?(?P<partitions>.*)",
           "Setting newly assigned partitions [orders-0, orders-1]"),
        _w(Kind.REVOKED, "previously assigned partitions",
           r"Revok(?:e|ing) previously assigned partitions:? ?(?P<partitions>.*)",
           "Revoke previously assigned partitions orders-0"),
        _w(Kind.LOST, "previously assigned partitions",
           r"Lost previously assigned partitions:? ?(?P<partitions>.*)",
           "Lost previously assigned partitions orders-0"),
        _w(Kind.LEARNED, "failed since group is rebalancing",
           "(?:Attempt to heartbeat|Heartbeat) .*?failed since group is rebalancing",
           "Attempt to heartbeat failed since group is rebalancing"),
        _w(Kind.UNKNOWN_MEMBER, "UNKNOWN_MEMBER_ID",
           r"(?:Attempt to heartbeat|JoinGroup|SyncGroup|OffsetCommit|[Hh]eartbeat).*UNKNOWN_MEMBER_ID",
           "Attempt to heartbeat with Generation{generationId=2, memberId='c-0-4a', protocol='range'} and"
           " group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting generation"),
        _w(Kind.UNKNOWN_MEMBER, "oordinator is not aware of this member",
           r"oordinator is not aware of this member",
           "Offset commit failed on partition orders-0 at offset 3: The coordinator is not aware of this"
           " member."),
        _w(Kind.LOST_COORDINATOR, "is unavailable or invalid due to cause",
           r"is unavailable or invalid due to cause: (?P<text>.*?)\.?\s?isDisconnected",
           "Group coordinator b-1:9092 (id: 2147483646 rack: null) is unavailable or invalid due to cause:"
           " error response NOT_COORDINATOR. isDisconnected: false. Rediscovery will be attempted."),
        _w(Kind.LEAVES, "sending LeaveGroup request",
           rf"ember (?P<member>{_NAME}) sending LeaveGroup request to coordinator .*?(?: due to (?P<text>.*))?$",
           "Member c-1-4f sending LeaveGroup request to coordinator b-1:9092 (id: 2147483646 rack: null) due"
           " to the consumer is being closed"),
        _w(Kind.POLL_EXCEEDED, "poll timeout has expired. This means", r"poll timeout has expired",
           "consumer poll timeout has expired. This means the time between subsequent calls to poll() was"
           " longer than the configured max.poll.interval.ms, which typically implies"),
        _w(Kind.CLIENT_FENCED, "fenced", r"nstance id (?P<text>.*?) has been fenced by another instance"
           r"|(?P<other>FENCED_INSTANCE_ID)",
           "The group instance id Optional[pod-1] has been fenced by another instance"),
        _w(Kind.CLOSED, "App info kafka.consumer for", r"for (?P<client>\S+) unregistered",
           "App info kafka.consumer for c-1 unregistered"),
        _w(Kind.MEMBER_STATE, "transitioned from",
           rf"ember (?P<member>{_NAME}) with epoch (?P<generation>-?\d+) transitioned from \w+ to (?P<text>\w+)",
           "Member m-1 with epoch 7 transitioned from JOINING to RECONCILING."),
    ),
    (
        re.compile(
            r"\[Consumer (?:instanceId=(?P<instance>[^,\]]+), )?clientId=(?P<client>[^,\]]*), groupId=(?P<group>[^\]]*)\]"
        ),
    ),
)

_PY_GENERATION = r"<Generation (?P<generation>-?\d+) \(member_id: (?P<member>\S*?), protocol: (?P<protocol>\S*?)\)>"

KAFKA_PYTHON = LogFormat(
    "kafka-python or aiokafka",
    "kafka-python",
    (
        _w(Kind.JOINING, "(Re-)joining group", rf"\(Re-\)joining group (?P<group>{_NAME})",
           "(Re-)joining group pay"),
        _w(Kind.JOINED, "uccessfully joined group", rf"uccessfully joined group (?P<group>{_NAME}) {_PY_GENERATION}",
           "Successfully joined group pay <Generation 3 (member_id: kafka-python-1, protocol: range)>"),
        _w(Kind.JOINED, "oined group '", r"oined group '(?P<group>[^']*)' \(generation (?P<generation>\d+)\) with"
           r" member_id (?P<member>\S+)",
           "Joined group 'pay' (generation 3) with member_id aiokafka-0.13-a1"),
        _w(Kind.SYNCED, "uccessfully synced group",
           rf"uccessfully synced group (?P<group>{_NAME}) with generation (?P<generation>\d+)",
           "Successfully synced group pay with generation 3"),
        _w(Kind.OWNS, "etting newly assigned partitions",
           rf"etting newly assigned partitions (?P<partitions>.*) for group (?P<group>{_NAME})",
           "Setting newly assigned partitions {TopicPartition(topic='orders', partition=0)} for group pay"),
        _w(Kind.REVOKED, "evoking previously assigned partitions",
           rf"evoking previously assigned partitions (?P<partitions>.*) for group (?P<group>{_NAME})",
           "Revoking previously assigned partitions {TopicPartition(topic='orders', partition=0)} for group"
           " pay"),
        _w(Kind.OWNS, "ooperative rebalance complete for group",
           rf"rebalance complete for group (?P<group>{_NAME}): owned=.*?, assigned=(?P<partitions>.*?), revoked=",
           "Cooperative rebalance complete for group pay: owned={}, assigned={TopicPartition(topic='orders',"
           " partition=0)}, revoked=set(), added={}"),
        _w(Kind.LOST, "lost membership; forcibly revoking",
           rf"roup (?P<group>{_NAME}) lost membership; forcibly revoking (?P<partitions>.*)",
           "Group pay lost membership; forcibly revoking {TopicPartition(topic='orders', partition=0)}"),
        _w(Kind.LEARNED, "rebalancing",
           rf"(?:Group (?P<group>{_NAME}) is rebalancing; rejoining"
           rf"|failed for group (?P<group2>{_NAME}) because it is rebalancing)",
           "Heartbeat failed for group pay because it is rebalancing"),
        _w(Kind.UNKNOWN_MEMBER, "local member_id was not recognized", "local member_id was not recognized",
           "Heartbeat failed: local member_id was not recognized; resetting and re-joining group"),
        _w(Kind.LOST_COORDINATOR, "arking the coordinator dead",
           rf"arking the coordinator dead \(node (?P<node>[^)]*)\) ?for group (?P<group>{_NAME}?)(?:: (?P<text>.*?))?\.?$",
           "Marking the coordinator dead (node coordinator-1) for group pay: NodeNotReadyError."),
        _w(Kind.FOUND_COORDINATOR, "iscovered coordinator",
           rf"iscovered coordinator (?P<text>\S+) for group (?P<group>{_NAME})",
           "Discovered coordinator coordinator-1 for group pay"),
        _w(Kind.POLL_EXCEEDED, "onsumer poll timeout has expired", r"onsumer poll timeout has expired",
           "Consumer poll timeout has expired. This means the time between subsequent calls to poll()"),
        _w(Kind.LEAVES, "eaving consumer group",
           rf"eaving consumer group \(?(?P<group>{_NAME})\)?(?: \(member (?P<member>[^)]*)\))?",
           "Leaving consumer group pay (member kafka-python-1)."),
        _w(Kind.LEAVES, "LeaveGroup request succeeded", "LeaveGroup request succeeded",
           "LeaveGroup request succeeded"),
        _w(Kind.CLIENT_FENCED, "fenced", r"(?:fenced group_instance_id (?P<text>\S+)|due to fenced id error)",
           "Heartbeat thread caught fenced group_instance_id pod-1 error"),
    ),
)

LIBRDKAFKA = LogFormat(
    "librdkafka",
    "librdkafka",
    (
        _w(Kind.POLL_EXCEEDED, "maximum poll interval", r"maximum poll interval \((?P<text>\d+)ms\) exceeded by",
           "%4|1700000000.5|MAXPOLL|c-1#consumer-1| [thrd:main]: Application maximum poll interval (300000ms)"
           " exceeded by 12ms (adjust max.poll.interval.ms for long-running message processing): leaving group"),
        _w(Kind.LOST_COORDINATOR, "group session timed out", r"group session timed out .*?after (?P<text>\d+ ms)",
           "%4|1700000000.5|SESSTMOUT|c-1#consumer-1| [thrd:main]: Consumer group session timed out (in"
           " join-state steady) after 6001 ms without a successful response from the group coordinator"),
        _w(Kind.JOINING, "joining group with", rf'roup "(?P<group>[^"]*)".*joining group with',
           '%7|1700000000.5|JOIN|c-1#consumer-1| [thrd:main]: Group "pay": joining group with 1 subscribed'
           " topic(s)"),
        _w(Kind.JOINED, "JoinGroup response: GenerationId",
           r"JoinGroup response: GenerationId (?P<generation>\d+), Protocol (?P<protocol>[^,]*),.*?"
           r"my MemberId (?P<member>[^,\s]+)",
           "%7|1700000000.5|JOINGROUP|c-1#consumer-1| [thrd:main]: JoinGroup response: GenerationId 3, Protocol"
           " range, LeaderId c-1-a, my MemberId c-1-b, member metadata count 0: (no error)"),
        _w(Kind.LEARNED, "group is rebalancing", r'roup "(?P<group>[^"]*)".*group is rebalancing',
           '%7|1700000000.5|REBALANCE|c-1#consumer-1| [thrd:main]: Group "pay" is rebalancing (EAGER) in state'
           " up (join-state steady) with 4 assigned partition(s): group is rebalancing"),
        _w(Kind.CLIENT_FENCED, "tatic consumer fenced", r"tatic consumer fenced by other consumer",
           "%1|1700000000.5|FATAL|c-1#consumer-1| [thrd:main]: Fatal error: Broker: Static consumer fenced by"
           " other consumer with same group.instance.id"),
    ),
    (re.compile(r"%\d\|[\d.]+\|\w+\|(?P<client>[^#|]+)#"),),
)

_JS = rf"(?:.*?groupId=(?P<group>{_NAME}))?(?:.*?memberId=(?P<member>{_NAME}))?"

KAFKAJS = LogFormat(
    "kafkajs",
    "kafkajs",
    (
        _w(Kind.JOINED, "Consumer has joined the group", "Consumer has joined the group" + _JS
           + r"(?:.*?memberAssignment=(?P<partitions>\{.*?\}))?(?:.*?groupProtocol=(?P<protocol>\S+))?",
           '[ConsumerGroup] Consumer has joined the group groupId=pay memberId=c-1-a leaderId=c-1-a'
           ' isLeader=true memberAssignment={"orders":[0,1]} groupProtocol=RoundRobinAssigner duration=41'),
        _w(Kind.LEARNED, "group is rebalancing, re-joining", "group is rebalancing, re-joining" + _JS,
           "[Runner] The group is rebalancing, re-joining groupId=pay memberId=c-1-a error=x"),
        _w(Kind.UNKNOWN_MEMBER, "coordinator is not aware of this member", "not aware of this member" + _JS,
           "[Runner] The coordinator is not aware of this member, re-joining the group groupId=pay"
           " memberId=c-1-a"),
        _w(Kind.CLOSED, "[Consumer] Stopped", r"\[Consumer\] Stopped" + _JS, "[Consumer] Stopped groupId=pay"),
        _w(Kind.SUBSCRIBED, "[Consumer] Starting", r"\[Consumer\] Starting" + _JS,
           "[Consumer] Starting groupId=pay"),
    ),
)

_GO = rf"(?:.*?\bgroup[=:] ?(?P<group>{_NAME}))"

FRANZ_GO = LogFormat(
    "franz-go",
    "franz-go",
    (
        _w(Kind.SUBSCRIBED, "beginning to manage the group lifecycle",
           "beginning to manage the group lifecycle" + _GO,
           "beginning to manage the group lifecycle group=pay"),
        _w(Kind.JOINING, "joining group", rf"\bjoining group\W" + _GO, 'msg="joining group" group=pay'),
        _w(Kind.JOINED, "joined", r"\bjoined(?:, balancing group| as leader .*?limitations)?\W" + _GO
           + rf".*?member_id[=:] ?(?P<member>{_NAME})(?:.*?instance_id[=:] ?(?P<instance>{_NAME}))?"
           r".*?generation[=:] ?(?P<generation>\d+)(?:.*?balance_protocol[=:] ?(?P<protocol>[^\s;]+))?",
           "joined, balancing group group=pay member_id=kgo-a instance_id=<nil> generation=3"
           " balance_protocol=cooperative-sticky leader=true"),
        _w(Kind.OWNS, "synced", r"\bsynced\W" + _GO + r".*?assigned[=:] ?(?P<partitions>.*)",
           "synced group=pay assigned=orders[0 1]"),
        _w(Kind.LEARNED, "heartbeat errored", "heartbeat errored" + _GO + ".*REBALANCE_IN_PROGRESS",
           'heartbeat errored group=pay err="REBALANCE_IN_PROGRESS: The group is rebalancing, so a rejoin is'
           ' needed."'),
        _w(Kind.UNKNOWN_MEMBER, "UNKNOWN_MEMBER_ID", "(?:heartbeat|join).*?" + _GO + ".*UNKNOWN_MEMBER_ID",
           'heartbeat errored group=pay err="UNKNOWN_MEMBER_ID: The coordinator is not aware of this member."'),
        _w(Kind.LEAVES, "leaving group", r"\bleaving group\W" + _GO + rf"(?:.*?member_id[=:] ?(?P<member>{_NAME}))?",
           "leaving group group=pay member_id=kgo-a"),
    ),
)

FORMATS = (BROKER, JAVA, KAFKA_PYTHON, LIBRDKAFKA, KAFKAJS, FRANZ_GO)
