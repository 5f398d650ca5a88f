"""The messages of groups that the coordinator reconciles (``group.protocol=consumer``, KIP-848)."""

import msgspec

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import OPERATIONS_NOT_INCLUDED, FamilyRequest, FamilyResponse

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""The member epochs of a request that joins, one that leaves, and one by which a static member leaves and
keeps its partitions until its session expires."""


UNCHANGED = -1
"""The rebalance timeout of a request that does not tell it again."""


class ConsumerGroupHeartbeatRequest(FamilyRequest, frozen=True):
    """Join, report, or leave. A field that has not changed since the last request is None, or -1.

    ``topic_partitions``: the partitions that the member owns. The member makes its id itself; in version 0
    the coordinator makes one if the request has none. ``principal`` is the user of the client, whose rights
    limit the topics of a regular expression; a broker without access control has no users.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartition, ...] | None = None
    version: int = 1
    principal: str = ""

    @property
    def is_full(self) -> bool:
        """Whether the request tells what a member tells that joins."""
        has_topics = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return has_topics and self.rebalance_timeout_ms != UNCHANGED and self.topic_partitions is not None

    @property
    def repeats(self) -> bool:
        """Whether the request is that of a member at rest."""
        told = (self.subscribed_topic_names, self.subscribed_topic_regex, self.topic_partitions)
        return self.member_epoch > JOINS and all(field is None for field in told)


class ConsumerGroupHeartbeatResponse(FamilyResponse, frozen=True):
    """The epoch of the member, and the partitions that it may own, or an error.

    ``assignment``: None if the member may own what an earlier response has told. ``message`` describes the
    error of the request, if the code does not. ``member_id``: None with an error.
    """

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[TopicPartition, ...] | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether a member at rest stays as it is."""
        return not self.error and self.assignment is None


class ConsumerGroupDescribeRequest(FamilyRequest, frozen=True):
    """A request for the state and the members of a group. On the wire it is for several groups."""

    group_id: str
    include_authorized_operations: bool = False


SPEAKS_CLASSIC, SPEAKS_CONSUMER = 0, 1
"""The types of members, by the protocol that they speak."""


class ConsumerGroupMember(msgspec.Struct, frozen=True):
    """A member as administrators see it.

    ``assignment``: what it may own or has yet to give up. ``target_assignment``: what it will own, its share.
    ``subscribed_topic_regex``: "" without one.
    """

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...]
    member_type: int = SPEAKS_CONSUMER


class ConsumerGroupDescribeResponse(FamilyResponse, frozen=True):
    """A group as administrators see it, or an error."""

    error: ErrorCode
    group_id: str
    message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[ConsumerGroupMember, ...] = ()
    authorized_operations: int = OPERATIONS_NOT_INCLUDED
