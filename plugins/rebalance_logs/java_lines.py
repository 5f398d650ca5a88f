"""The messages of Kafka's Java consumer."""

import re

from rebalance_logs.facts import Kind
from rebalance_logs.formats import NAME, LogFormat, wording

_GENERATION = (
    r"generationId=(?P<generation>\d+), memberId='(?P<member>[^']*)', protocol='(?P<protocol>[^']*)'"
)

JAVA = LogFormat(
    "java consumer",
    "java",
    (
        wording(
            Kind.SUBSCRIBED,
            "ubscribed to",
            r"ubscribed to (?:topic\(s\)|pattern): (?P<text>.*)",
            "Subscribed to topic(s): orders, payments",
        ),
        wording(
            Kind.FOUND_COORDINATOR,
            "iscovered group coordinator",
            r"iscovered group coordinator (?P<text>\S+)",
            "Discovered group coordinator b-1:9092 (id: 2147483646 rack: null)",
        ),
        wording(Kind.JOINING, "(Re-)joining group", r"\(Re-\)joining group", "(Re-)joining group"),
        wording(
            Kind.ASKED_TO_REJOIN,
            "equest joining group due to",
            r"equest joining group due to: (?P<text>.*)",
            "Request joining group due to: group is already rebalancing",
        ),
        wording(
            Kind.JOINED,
            "uccessfully joined group with generation",
            rf"uccessfully joined group with generation (?:Generation\{{{_GENERATION}|(?P<old>\d+))",
            "Successfully joined group with generation Generation{generationId=2, memberId='c-0-4a',"
            " protocol='range'}",
        ),
        wording(
            Kind.COMPUTED,
            "inished assignment for group at generation",
            r"inished assignment for group at generation (?P<generation>\d+): (?P<assignments>.*)",
            "Finished assignment for group at generation 2: {c-2-32=Assignment(partitions=[orders-2]),"
            " c-0-4a=Assignment(partitions=[orders-0])}",
        ),
        wording(
            Kind.SYNCED,
            "uccessfully synced group in generation",
            rf"uccessfully synced group in generation Generation\{{{_GENERATION}",
            "Successfully synced group in generation Generation{generationId=2, memberId='c-0-4a',"
            " protocol='range'}",
        ),
        wording(
            Kind.ADDED,
            "dding newly assigned partitions",
            r"dding newly assigned partitions:? ?(?P<partitions>.*)",
            "Adding newly assigned partitions: orders-0, orders-1",
        ),
        wording(
            Kind.OWNS,
            "etting newly assigned partitions",
            r"etting newly assigned partitions:? ?(?P<partitions>.*)",
            "Setting newly assigned partitions [orders-0, orders-1]",
        ),
        wording(
            Kind.REVOKED,
            "previously assigned partitions",
            r"Revok(?:e|ing) previously assigned partitions:? ?(?P<partitions>.*)",
            "Revoke previously assigned partitions orders-0",
        ),
        wording(
            Kind.LOST,
            "previously assigned partitions",
            r"Lost previously assigned partitions:? ?(?P<partitions>.*)",
            "Lost previously assigned partitions orders-0",
        ),
        wording(
            Kind.LEARNED,
            "failed since group is rebalancing",
            "(?:Attempt to heartbeat|Heartbeat) .*?failed since group is rebalancing",
            "Attempt to heartbeat failed since group is rebalancing",
        ),
        wording(
            Kind.UNKNOWN_MEMBER,
            "UNKNOWN_MEMBER_ID",
            r"(?:Attempt to heartbeat|JoinGroup|SyncGroup|OffsetCommit|[Hh]eartbeat).*UNKNOWN_MEMBER_ID",
            "Attempt to heartbeat with Generation{generationId=2, memberId='c-0-4a', protocol='range'} and"
            " group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting generation",
        ),
        wording(
            Kind.UNKNOWN_MEMBER,
            "oordinator is not aware of this member",
            r"oordinator is not aware of this member",
            "Offset commit failed on partition orders-0 at offset 3: The coordinator is not aware of this"
            " member.",
        ),
        wording(
            Kind.LOST_COORDINATOR,
            "is unavailable or invalid due to cause",
            r"is unavailable or invalid due to cause: (?P<text>.*?)\.?\s?isDisconnected",
            "Group coordinator b-1:9092 (id: 2147483646 rack: null) is unavailable or invalid due to cause:"
            " error response NOT_COORDINATOR. isDisconnected: false. Rediscovery will be attempted.",
        ),
        wording(
            Kind.LEAVES,
            "sending LeaveGroup request",
            rf"ember (?P<member>{NAME}) sending LeaveGroup request to coordinator"
            r" .*?(?: due to (?P<text>.*))?$",
            "Member c-1-4f sending LeaveGroup request to coordinator b-1:9092 (id: 2147483646 rack: null) due"
            " to the consumer is being closed",
        ),
        wording(
            Kind.POLL_EXCEEDED,
            "poll timeout has expired. This means",
            r"poll timeout has expired",
            "consumer poll timeout has expired. This means the time between subsequent calls to poll() was"
            " longer than the configured max.poll.interval.ms, which typically implies",
        ),
        wording(
            Kind.CLIENT_FENCED,
            "fenced",
            r"nstance id (?P<text>.*?) has been fenced by another instance"
            r"|(?P<other>FENCED_INSTANCE_ID)",
            "The group instance id Optional[pod-1] has been fenced by another instance",
        ),
        wording(
            Kind.CLOSED,
            "App info kafka.consumer for",
            r"for (?P<client>\S+) unregistered",
            "App info kafka.consumer for c-1 unregistered",
        ),
        wording(
            Kind.MEMBER_STATE,
            "transitioned from",
            rf"ember (?P<member>{NAME}) with epoch (?P<generation>-?\d+) transitioned from \w+ to"
            r" (?P<text>\w+)",
            "Member m-1 with epoch 7 transitioned from JOINING to RECONCILING.",
        ),
    ),
    (
        re.compile(
            r"\[Consumer (?:instanceId=(?P<instance>[^,\]]+), )?clientId=(?P<client>[^,\]]*),"
            r" groupId=(?P<group>[^\]]*)\]"
        ),
    ),
    needs_context=True,
)
