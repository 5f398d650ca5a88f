"""The leader of a classic group: it computes the assignments and watches the topics (PROTOCOL 9.6)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.client.core import Core
from coordinator_core.errors import AssignmentError
from coordinator_core.java import java_order
from coordinator_core.model import Cluster, GroupSubscription, Subscription, TopicInfo
from coordinator_core.protocol.events import AssignmentComputed
from coordinator_core.protocol.group_codec import GroupCodec
from coordinator_core.protocol.messages import JoinGroupMember, JoinGroupResponse, SyncGroupAssignment


class EncodedAssignments(NamedTuple):
    """A computed assignment as SyncGroup carries it."""

    assignments: tuple[SyncGroupAssignment, ...]
    payload_bytes: int
    report: dict[str, Any]


def decode_members(
    members: Iterable[JoinGroupMember], codec: GroupCodec | None = None
) -> dict[str, Subscription]:
    """Return the subscription of each member id. Of two with one id the last counts (PITFALLS C-68).

    A subscription that cannot be decoded has no topics, so that the member is assigned nothing.
    """
    codec = codec or GroupCodec()
    return codec.decode({m.member_id: (m.metadata, m.group_instance_id) for m in members})


def all_topics(members: dict[str, Subscription]) -> tuple[str, ...]:
    """Return every topic that a member subscribes to, sorted."""
    lists = {id(s.topics): s.topics for s in members.values()}
    return tuple(java_order(dict.fromkeys(t for topics in lists.values() for t in topics)))


def lead(
    assignor: Assignor,
    cluster: Cluster,
    members: dict[str, Subscription],
    codec: GroupCodec | None = None,
    *,
    echoes_user_data: bool = False,
) -> EncodedAssignments:
    """Run the assignor and encode the assignment of each member.

    ``echoes_user_data``: whether an assignment has the user data of the subscription, if the assignor gives
    it none.

    Raises:
        AssignmentError: if the assignor raises or returns an invalid assignment.
    """
    assignment = compute_assignment(assignor, cluster, GroupSubscription(members))
    if echoes_user_data:
        sent = {m: s.user_data for m, s in members.items() if s.user_data is not None}
        assignment.user_data = {**sent, **assignment.user_data}
    encoded = (codec or GroupCodec()).encode(assignment, members)
    assignments = tuple(map(SyncGroupAssignment, members, encoded))
    return EncodedAssignments(assignments, sum(map(len, encoded)), dict(assignment.report))


class Leader:
    """The work of the member that the coordinator has elected."""

    def __init__(self, core: Core, assignors: Mapping[str, Assignor]) -> None:
        self._core, self._assignors = core, assignors
        self._codec = GroupCodec()
        self.is_elected = False
        self._members: dict[str, Subscription] = {}
        self._skips_assignment = False
        self._based_on: tuple[tuple[str, TopicInfo], ...] | None = None
        self.based_on_version = 0
        """The version of the metadata that were compared last."""

    def elect(self, response: JoinGroupResponse) -> None:
        """Lead the generation of a response to JoinGroup."""
        self.is_elected = True
        self._members = decode_members(response.members, self._codec)
        self._skips_assignment = response.skip_assignment
        self._core.subscriptions.group_topics = all_topics(self._members)

    def resume(self, based_on: Cluster) -> None:
        """Lead a generation whose assignments are based on these topics."""
        compared = self._core.metadata.compared
        topics = tuple(java_order(based_on.topics))
        self.is_elected = True
        self._core.subscriptions.group_topics = topics
        self._based_on = tuple((topic, compared(based_on.topics[topic])) for topic in topics)
        self.based_on_version = self._core.metadata.version

    def resign(self) -> None:
        """Stop leading and watching the topics of other members."""
        self.is_elected, self._based_on = False, None
        self._core.subscriptions.group_topics = ()

    @property
    def knows_all_topics(self) -> bool:
        """Whether the metadata cover the topics of all members."""
        return self._core.metadata.knows(self._core.subscriptions.group_topics)

    def cluster_has_changed(self) -> bool:
        """Return whether the topics differ from those of the assignments (PITFALLS C-54).

        Only a leader watches them. Each version of the metadata is compared once.
        """
        if self._based_on is None:
            return False
        version = self._core.metadata.version
        if self.based_on_version == version:
            return False
        self.based_on_version = version
        return self._based_on != self._snapshot()

    def assign(self) -> tuple[SyncGroupAssignment, ...]:
        """Compute the assignments of all members, unless the coordinator keeps those that it has.

        Raises:
            RebalanceLabError: if the assignor raises or returns an invalid assignment.
        """
        core, members, unreadable = self._core, self._members, self._codec.unreadable
        self._based_on, self.based_on_version = self._snapshot(), core.metadata.version
        self._members = {}
        if self._skips_assignment:
            return ()
        assignor = self._assignors[core.generation.protocol or ""]
        cluster = core.metadata.cluster(core.subscriptions.group_topics)
        try:
            encoded = lead(
                assignor,
                cluster,
                members,
                self._codec,
                echoes_user_data=core.library.echoes_user_data,
            )
        except AssignmentError as error:
            raise error.of(self._group(cluster, len(members))) from error
        core.effects.events.append(
            AssignmentComputed(
                client=core.config.client_id,
                generation=core.generation.number,
                assignor=assignor.name,
                members={member: list(s.topics) for member, s in members.items()},
                payload_bytes=encoded.payload_bytes,
                report=encoded.report | ({"unreadable": unreadable} if unreadable else {}),
            )
        )
        return encoded.assignments

    def _snapshot(self) -> tuple[tuple[str, TopicInfo], ...]:
        return self._core.metadata.snapshot(self._core.subscriptions.group_topics)

    def _group(self, cluster: Cluster, members: int) -> str:
        """Return a description of the group for error messages."""
        partitions = sum(info.partitions for info in cluster.topics.values())
        return (
            f"group {self._core.config.group_id!r} in generation {self._core.generation.number}"
            f" ({members} members, {partitions:,} partitions)"
        )
