"""The messages of librdkafka, kafka-python, aiokafka, KafkaJS and franz-go."""

import re

from rebalance_logs.facts import Kind
from rebalance_logs.formats import NAME, LogFormat, wording

_PY_GENERATION = (
    r"<Generation (?P<generation>-?\d+) \(member_id: (?P<member>\S*?), protocol: (?P<protocol>\S*?)\)>"
)

KAFKA_PYTHON = LogFormat(
    "kafka-python or aiokafka",
    "kafka-python",
    (
        wording(
            Kind.JOINING,
            "(Re-)joining group",
            rf"\(Re-\)joining group (?P<group>{NAME})",
            "(Re-)joining group pay",
        ),
        wording(
            Kind.ASSIGNS,
            "erforming partition assignments using",
            r"erforming partition assignments using (?P<protocol>[\w-]+)",
            "Elected group leader -- performing partition assignments using range",
        ),
        wording(
            Kind.JOINED,
            "uccessfully joined group",
            rf"uccessfully joined group (?P<group>{NAME}) {_PY_GENERATION}",
            "Successfully joined group pay <Generation 3 (member_id: kafka-python-1, protocol: range)>",
        ),
        wording(
            Kind.JOINED,
            "oined group '",
            r"oined group '(?P<group>[^']*)' \(generation (?P<generation>\d+)\) with"
            r" member_id (?P<member>\S+)",
            "Joined group 'pay' (generation 3) with member_id aiokafka-0.13-a1",
        ),
        wording(
            Kind.SYNCED,
            "uccessfully synced group",
            rf"uccessfully synced group (?P<group>{NAME}) with generation (?P<generation>\d+)",
            "Successfully synced group pay with generation 3",
        ),
        wording(
            Kind.OWNS,
            "etting newly assigned partitions",
            rf"etting newly assigned partitions (?P<partitions>.*) for group (?P<group>{NAME})",
            "Setting newly assigned partitions {TopicPartition(topic='orders', partition=0)} for group pay",
        ),
        wording(
            Kind.REVOKED,
            "evoking previously assigned partitions",
            rf"evoking previously assigned partitions (?P<partitions>.*) for group (?P<group>{NAME})",
            "Revoking previously assigned partitions {TopicPartition(topic='orders', partition=0)} for group"
            " pay",
        ),
        wording(
            Kind.OWNS,
            "ooperative rebalance complete for group",
            rf"rebalance complete for group (?P<group>{NAME}): owned=.*?,"
            r" assigned=(?P<partitions>.*?), revoked=",
            "Cooperative rebalance complete for group pay: owned={}, assigned={TopicPartition(topic='orders',"
            " partition=0)}, revoked=set(), added={}",
        ),
        wording(
            Kind.LOST,
            "lost membership; forcibly revoking",
            rf"roup (?P<group>{NAME}) lost membership; forcibly revoking (?P<partitions>.*)",
            "Group pay lost membership; forcibly revoking {TopicPartition(topic='orders', partition=0)}",
        ),
        wording(
            Kind.LEARNED,
            "rebalancing",
            rf"(?:Group (?P<group>{NAME}) is rebalancing; rejoining"
            rf"|failed for group (?P<group2>{NAME}) because it is rebalancing)",
            "Heartbeat failed for group pay because it is rebalancing",
        ),
        wording(
            Kind.UNKNOWN_MEMBER,
            "local member_id was not recognized",
            "local member_id was not recognized",
            "Heartbeat failed: local member_id was not recognized; resetting and re-joining group",
        ),
        wording(
            Kind.LOST_COORDINATOR,
            "arking the coordinator dead",
            rf"arking the coordinator dead \(node [^)]*\) ?for group (?P<group>{NAME}?)"
            r"(?:: (?P<text>.*?))?\.?$",
            "Marking the coordinator dead (node coordinator-1) for group pay: NodeNotReadyError.",
        ),
        wording(
            Kind.FOUND_COORDINATOR,
            "iscovered coordinator",
            rf"iscovered coordinator (?P<text>\S+) for group (?P<group>{NAME})",
            "Discovered coordinator coordinator-1 for group pay",
        ),
        wording(
            Kind.POLL_EXCEEDED,
            "onsumer poll timeout has expired",
            r"onsumer poll timeout has expired",
            "Consumer poll timeout has expired. This means the time between subsequent calls to poll()",
        ),
        wording(
            Kind.LEAVES,
            "eaving consumer group",
            rf"eaving consumer group \(?(?P<group>{NAME})\)?(?: \(member (?P<member>[^)]*)\))?",
            "Leaving consumer group pay (member kafka-python-1).",
        ),
        wording(
            Kind.LEAVES,
            "LeaveGroup request succeeded",
            "LeaveGroup request succeeded",
            "LeaveGroup request succeeded",
        ),
        wording(
            Kind.CLIENT_FENCED,
            "fenced",
            r"(?:fenced group_instance_id (?P<text>\S+)|due to fenced id error)",
            "Heartbeat thread caught fenced group_instance_id pod-1 error",
        ),
    ),
)

LIBRDKAFKA = LogFormat(
    "librdkafka",
    "librdkafka",
    (
        wording(
            Kind.STARTED,
            "changed state init ",
            r'roup "(?P<group>[^"]*)" changed state init -> ',
            '%7|1700000000.5|CGRPSTATE|c-1#consumer-1| [thrd:main]: Group "pay" changed state init ->'
            " query-coord (join-state init)",
        ),
        wording(
            Kind.POLL_EXCEEDED,
            "maximum poll interval",
            r"maximum poll interval \((?P<text>\d+)ms\) exceeded by",
            "%4|1700000000.5|MAXPOLL|c-1#consumer-1| [thrd:main]: Application maximum poll interval"
            " (300000ms) exceeded by 12ms (adjust max.poll.interval.ms for long-running message"
            " processing): leaving group",
        ),
        wording(
            Kind.LOST_COORDINATOR,
            "group session timed out",
            r"group session timed out .*?after (?P<text>\d+ ms)",
            "%4|1700000000.5|SESSTMOUT|c-1#consumer-1| [thrd:main]: Consumer group session timed out (in"
            " join-state steady) after 6001 ms without a successful response from the group coordinator",
        ),
        wording(
            Kind.JOINING,
            "oining group ",
            r'oining group "(?P<group>[^"]*)" with \d+ subscribed topic',
            '%7|1700000000.5|JOIN|c-1#consumer-1| [thrd:main]: b-1:9092/1: Joining group "pay" with 1'
            ' subscribed topic(s) and member id "c-1-a"',
        ),
        wording(
            Kind.ADDED,
            "received op PARTITION_JOIN",
            r'roup "(?P<group>[^"]*)" received op PARTITION_JOIN .*? for (?P<partitions>.*)',
            '%7|1700000000.5|CGRPOP|c-1#consumer-1| [thrd:main]: Group "pay" received op PARTITION_JOIN in'
            " state up (join-state steady) for orders [2]",
        ),
        wording(
            Kind.REVOKED,
            "received op PARTITION_LEAVE",
            r'roup "(?P<group>[^"]*)" received op PARTITION_LEAVE .*? for (?P<partitions>.*)',
            '%7|1700000000.5|CGRPOP|c-1#consumer-1| [thrd:main]: Group "pay" received op PARTITION_LEAVE in'
            " state up (join-state wait-unassign-to-complete) for orders [2]",
        ),
        wording(
            Kind.JOINED,
            "JoinGroup response: GenerationId",
            r"JoinGroup response: GenerationId (?P<generation>\d+), Protocol (?P<protocol>[^,]*),.*?"
            r"my MemberId (?P<member>[^,\s]+)",
            "%7|1700000000.5|JOINGROUP|c-1#consumer-1| [thrd:main]: JoinGroup response: GenerationId 3,"
            " Protocol range, LeaderId c-1-a, my MemberId c-1-b, member metadata count 0: (no error)",
        ),
        wording(
            Kind.LEARNED,
            "is rebalancing (",
            r'roup "(?P<group>[^"]*)" is rebalancing \(',
            '%7|1700000000.5|REBALANCE|c-1#consumer-1| [thrd:main]: Group "pay" is rebalancing (EAGER) in'
            " state up (join-state steady) with 3 assigned partition(s): rebalance in progress",
        ),
        wording(
            Kind.UNKNOWN_MEMBER,
            "Broker: Unknown member",
            r'roup "(?P<group>[^"]*)" heartbeat error response .*Broker: Unknown member',
            '%7|1700000000.5|HEARTBEAT|c-1#consumer-1| [thrd:main]: Group "pay" heartbeat error response in'
            " state up (join-state steady, 3 partition(s) assigned): Broker: Unknown member",
        ),
        wording(
            Kind.LEAVES,
            "leave group=true, has joined=true",
            r'roup "(?P<group>[^"]*)": unsubscribe from .*leave group=true, has joined=true,'
            rf" (?P<member>{NAME})",
            '%7|1700000000.5|UNSUBSCRIBE|c-1#consumer-1| [thrd:main]: Group "pay": unsubscribe from current'
            " subscription of size 1 (leave group=true, has joined=true, c-1-a, join-state steady)",
        ),
        wording(
            Kind.CLIENT_FENCED,
            "tatic consumer fenced",
            r"tatic consumer fenced by other consumer",
            "%1|1700000000.5|FATAL|c-1#consumer-1| [thrd:main]: Fatal error: Broker: Static consumer fenced"
            " by other consumer with same group.instance.id",
        ),
    ),
    (re.compile(r"%\d\|[\d.]+\|\w+\|(?P<client>[^#|]+)#"),),
)

_JS = rf"(?:.*?groupId=(?P<group>{NAME}))?(?:.*?memberId=(?P<member>{NAME}))?"

KAFKAJS = LogFormat(
    "kafkajs",
    "kafkajs",
    (
        wording(
            Kind.JOINED,
            "Consumer has joined the group",
            "Consumer has joined the group"
            + _JS
            + r"(?:.*?memberAssignment=(?P<partitions>\{.*?\}))?(?:.*?groupProtocol=(?P<protocol>\S+))?",
            "[ConsumerGroup] Consumer has joined the group groupId=pay memberId=c-1-a leaderId=c-1-a"
            ' isLeader=true memberAssignment={"orders":[0,1]} groupProtocol=RoundRobinAssigner duration=41',
        ),
        wording(
            Kind.LEARNED,
            "group is rebalancing, re-joining",
            "group is rebalancing, re-joining" + _JS,
            "[Runner] The group is rebalancing, re-joining groupId=pay memberId=c-1-a error=x",
        ),
        wording(
            Kind.UNKNOWN_MEMBER,
            "not aware of this member, re-joining",
            "not aware of this member, re-joining" + _JS,
            "[Runner] The coordinator is not aware of this member, re-joining the group groupId=pay"
            " memberId=c-1-a",
        ),
        wording(
            Kind.CLOSED, "[Consumer] Stopped", r"\[Consumer\] Stopped" + _JS, "[Consumer] Stopped groupId=pay"
        ),
        wording(
            Kind.SUBSCRIBED,
            "[Consumer] Starting",
            r"\[Consumer\] Starting" + _JS,
            "[Consumer] Starting groupId=pay",
        ),
    ),
)

_GO = rf"(?:.*?\bgroup[=:] ?(?P<group>{NAME}))"

FRANZ_GO = LogFormat(
    "franz-go",
    "franz-go",
    (
        wording(
            Kind.SUBSCRIBED,
            "beginning to manage the group lifecycle",
            "beginning to manage the group lifecycle" + _GO,
            "beginning to manage the group lifecycle group=pay",
        ),
        wording(Kind.JOINING, "joining group", r"\bjoining group\W" + _GO, 'msg="joining group" group=pay'),
        wording(
            Kind.JOINED,
            "joined",
            r"\bjoined(?:, balancing group| as leader .*?limitations)?\W"
            + _GO
            + rf".*?member_id[=:] ?(?P<member>{NAME})(?:.*?instance_id[=:] ?(?P<instance>{NAME}))?"
            r".*?generation[=:] ?(?P<generation>\d+)(?:.*?balance_protocol[=:] ?(?P<protocol>[^\s;]+))?",
            "joined, balancing group group=pay member_id=kgo-a instance_id=<nil> generation=3"
            " balance_protocol=cooperative-sticky leader=true",
        ),
        wording(
            Kind.OWNS,
            "synced",
            r"\bsynced\W" + _GO + r".*?assigned[=:] ?(?P<partitions>.*)",
            "synced group=pay assigned=orders[0 1]",
        ),
        wording(
            Kind.LEARNED,
            "heartbeat errored",
            "heartbeat errored" + _GO + ".*REBALANCE_IN_PROGRESS",
            'heartbeat errored group=pay err="REBALANCE_IN_PROGRESS: The group is rebalancing, so a rejoin is'
            ' needed."',
        ),
        wording(
            Kind.UNKNOWN_MEMBER,
            "UNKNOWN_MEMBER_ID",
            "(?:heartbeat|join).*?" + _GO + ".*UNKNOWN_MEMBER_ID",
            'heartbeat errored group=pay err="UNKNOWN_MEMBER_ID: The coordinator is not aware of this'
            ' member."',
        ),
        wording(
            Kind.LEAVES,
            "leaving group",
            r"\bleaving group\W" + _GO + rf"(?:.*?member_id[=:] ?(?P<member>{NAME}))?",
            "leaving group group=pay member_id=kgo-a",
        ),
    ),
)
