"""The messages of Kafka's group coordinators, old and new, about groups of both protocols."""

import re

from rebalance_logs.facts import Kind
from rebalance_logs.formats import NAME, LogFormat, wording

_IN_GROUP = rf"(?:(?: group)? (?P<group>{NAME}))?"
_REASON = r"(?: \(__consumer_offsets-\d+\))?(?:[^()]*\(reason: (?P<text>.*))?"
_LEAVE_CAUSE = r"(?:;? client reason: (?P<cause>.*?))?\.?$"

BROKER = LogFormat(
    "kafka broker",
    "",
    (
        wording(
            Kind.ROUND_BEGAN,
            "reparing to rebalance group",
            rf"reparing to rebalance group (?P<group>{NAME}) in state \w+ with old generation"
            rf" (?P<generation>-?\d+){_REASON}",
            "Preparing to rebalance group pay in state PreparingRebalance with old generation 3"
            " (__consumer_offsets-12) (reason: removing member c-1-x on heartbeat expiration)",
        ),
        wording(
            Kind.GENERATION,
            "tabilized group",
            rf"tabilized group (?P<group>{NAME}) generation (?P<generation>\d+)",
            "Stabilized group pay generation 4 (__consumer_offsets-12) with 3 members",
        ),
        wording(
            Kind.ASSIGNED_BY_LEADER,
            "ssignment received from leader",
            rf"ssignment received from leader(?: (?!for)(?P<member>{NAME}))? for group (?P<group>{NAME})"
            r" for generation (?P<generation>\d+)",
            "Assignment received from leader c-0-y for group pay for generation 4. The group has 3 members,"
            " 0 of which are static.",
        ),
        wording(
            Kind.EMPTY,
            "is now empty",
            rf"roup (?P<group>{NAME}) with generation (?P<generation>\d+) is now empty",
            "Group pay with generation 5 is now empty (__consumer_offsets-12)",
        ),
        wording(
            Kind.FAILED,
            "has failed, removing it from the group",
            rf"ember (?P<member>{NAME}) in group (?P<group>{NAME}) has failed, removing",
            "Member c-1-x in group pay has failed, removing it from the group",
        ),
        wording(
            Kind.LEFT_BEHIND,
            "members who haven't joined",
            rf"roup (?P<group>{NAME}) removed dynamic members who haven't joined:? (?P<others>.*)",
            "Group pay removed dynamic members who haven't joined: Set(c-1-x, c-2-z)",
        ),
        wording(
            Kind.LEFT,
            "LeaveGroup",
            rf"ember (?:MemberMetadata\(memberId=)?(?P<member>{NAME})(?:, .*?\))?"
            rf"(?: with instance id (?P<instance>{NAME}))? has left group(?: (?!through)(?P<group>{NAME}))?"
            rf" through explicit `*LeaveGroup`*(?: request)?{_LEAVE_CAUSE}",
            "Member c-1-x has left group pay through explicit LeaveGroup; client reason: the consumer is"
            " being closed",
        ),
        wording(
            Kind.LEFT,
            "has left, removing it from the group",
            rf"ember\[group.instance.id (?P<instance>{NAME}), member.id (?P<member>{NAME})\] in group"
            rf" (?P<group>{NAME}) has left, removing it from the group",
            "Member[group.instance.id None, member.id c-1-x] in group pay has left, removing it from the"
            " group",
        ),
        wording(
            Kind.REPLACED,
            "Replacing previously mapped member",
            rf"groupInstanceId=(?P<instance>{NAME}).*? joins group{_IN_GROUP} in .*?"
            rf"Replacing previously mapped member (?P<others>{NAME}) with",
            "Static member with groupInstanceId=pod-1 and unknown member id joins group pay in Stable state."
            " Replacing previously mapped member pod-1-x with this groupInstanceId.",
        ),
        wording(
            Kind.STATIC_WITHOUT_ROUND,
            "will not trigger rebalance",
            r"tatic member which joins during \w+ stage and doesn't affect .* will not trigger rebalance",
            "[GroupCoordinator 3]: Static member which joins during Stable stage and doesn't affect"
            " selectProtocol will not trigger rebalance.",
        ),
        wording(
            Kind.JOINS_NEW,
            "Created a new member id",
            rf"(?:groupInstanceId=(?P<instance>{NAME}) and )?unknown member id joins group{_IN_GROUP} in .*?"
            rf"Created a new member id (?P<member>{NAME})",
            "Dynamic member with unknown member id joins group pay in Stable state. Created a new member id"
            " c-3-w and request the member to rejoin with this id.",
        ),
        wording(
            Kind.JOINS_KNOWN,
            "ending dynamic member with id",
            rf"ending dynamic member with id (?P<member>{NAME}) joins group{_IN_GROUP} in",
            "Pending dynamic member with id c-3-w joins group pay in Stable state. Adding to the group now.",
        ),
        wording(
            Kind.PENDING_EXPIRED,
            "after session timeout expiration",
            rf"ending member (?P<member>{NAME}) in group (?P<group>{NAME}) has been removed after session"
            " timeout expiration",
            "Pending member c-3-w in group pay has been removed after session timeout expiration.",
        ),
        wording(
            Kind.FENCED,
            "is fenced by current memberId",
            rf"memberId=(?P<member>{NAME}) for static member with groupInstanceId=(?P<instance>{NAME}) is"
            rf" fenced by current memberId=(?P<others>{NAME})",
            "Request memberId=pod-1-x for static member with groupInstanceId=pod-1 is fenced by current"
            " memberId=pod-1-z during operation heartbeat",
        ),
        wording(
            Kind.FORGOTTEN,
            "etting empty assignments for members",
            rf"etting empty assignments for members (?P<others>.*?) of (?P<group>{NAME}) for generation"
            r" (?P<generation>\d+)",
            "[GroupCoordinator 3]: Setting empty assignments for members Set(c-2-z) of pay for generation 4",
        ),
        wording(
            Kind.NOBODY_REJOINED,
            "could not complete rebalance because no members rejoined",
            rf"roup (?P<group>{NAME}) could not complete rebalance because no members rejoined",
            "Group pay could not complete rebalance because no members rejoined",
        ),
        wording(
            Kind.UNLOADED,
            "nloading group metadata for",
            rf"nloading group metadata for (?P<group>{NAME})(?: with generation (?P<generation>\d+))?",
            "Unloading group metadata for pay with generation 4",
        ),
        wording(
            Kind.LOADED,
            "oad",
            rf"(?:Loading|Loaded) group metadata for (?P<group>{NAME})"
            r"(?: with generation (?P<generation>\d+))?",
            "Loading group metadata for pay with generation 4",
        ),
        wording(
            Kind.JOINS_KNOWN,
            "joins the consumer group",
            rf"ember (?P<member>{NAME}) (?:re-)?joins the consumer group",
            "[GroupId pay] Member m-1 joins the consumer group using the consumer protocol.",
        ),
        wording(
            Kind.REPLACED,
            "to replace the existing member",
            rf"nstance id (?P<instance>{NAME}) re-joins the consumer group.*?replace the existing member"
            rf" (?P<others>{NAME})",
            "[GroupId pay] Static member with instance id pod-1 re-joins the consumer group using the"
            " consumer protocol to replace the existing member m-1",
        ),
        wording(
            Kind.EPOCH,
            "group epoch to",
            r"umped group epoch to (?P<generation>\d+)",
            "[GroupId pay] Bumped group epoch to 7.",
        ),
        wording(
            Kind.TARGET,
            "omputed a new target assignment for epoch",
            r"target assignment for epoch (?P<generation>\d+) with '(?P<protocol>[^']*)'",
            "[GroupId pay] Computed a new target assignment for epoch 7 with 'uniform' assignor in 1ms.",
        ),
        wording(
            Kind.MEMBER_STATE,
            "new assignment state",
            rf"ember (?P<member>{NAME})(?:'s)? new assignment state: epoch=(?P<generation>-?\d+),"
            r".*?state=(?P<text>\w+)(?:.*?assignedPartitions=\[(?P<partitions>[^\]]*))?",
            "[GroupId pay] Member m-1 new assignment state: epoch=7, previousEpoch=6, state=STABLE,"
            " assignedPartitions=[orders-0, orders-1].",
        ),
        wording(
            Kind.AWAY,
            "temporarily left the consumer group",
            rf"tatic Member (?P<member>{NAME}) with instance id (?P<instance>{NAME}) temporarily left",
            "[GroupId pay] Static Member m-1 with instance id pod-1 temporarily left the consumer group.",
        ),
        wording(
            Kind.LEFT,
            "left the consumer group",
            rf"ember (?P<member>{NAME})(?: with instance id (?P<instance>{NAME}))? left the consumer group",
            "[GroupId pay] Member m-1 left the consumer group.",
        ),
        wording(
            Kind.FAILED,
            "because the member session expired",
            rf"ember (?P<member>{NAME}) fenced from the group because the member session expired",
            "[GroupId pay] Member m-1 fenced from the group because the member session expired.",
        ),
        wording(
            Kind.TOO_SLOW,
            "because it failed to transition from epoch",
            rf"ember (?P<member>{NAME}) fenced from the group because it failed to transition from epoch"
            r" (?P<generation>\d+)",
            "[GroupId pay] Member m-1 fenced from the group because it failed to transition from epoch 6"
            " within 45000ms.",
        ),
        wording(
            Kind.TOPICS_CHANGED,
            "omputed new subscription metadata",
            r"omputed new subscription metadata: (?P<text>.*)",
            "[GroupId pay] Computed new subscription metadata: [orders: 24 partitions].",
        ),
        wording(
            Kind.RESUBSCRIBED,
            "updated its subscribed topics to",
            rf"ember (?P<member>{NAME}) updated its subscribed topics to: (?P<text>.*)",
            "[GroupId pay] Member m-1 updated its subscribed topics to: [orders].",
        ),
    ),
    (
        re.compile(r"\[Group(?:Id)? (?P<group>[^\]]+)\]"),
        re.compile(r"\[MemberId (?P<member>[^\]]+)\]"),
    ),
)
