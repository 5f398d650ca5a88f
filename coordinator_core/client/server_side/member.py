"""The member of a group whose coordinator computes the assignments: joins, heartbeats, and nothing else."""

from collections.abc import Sequence
from enum import StrEnum

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import LATER, Action, action
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.member import Outlook
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.client.preparation import Preparation
from coordinator_core.client.requests import NEVER, Reply
from coordinator_core.client.session_member import SessionMember
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import RebalanceProtocol, TopicPartition
from coordinator_core.protocol.consumer_protocol import decode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.server_side import JoinRequest, JoinResponse

JOIN_SLACK_MS = 5_000
"""The timeout of a join is the rebalance timeout and this time."""

JOIN = LATER | {
    ErrorCode.MEMBER_ID_REQUIRED: Action.ADOPT_ID,
    ErrorCode.UNKNOWN_MEMBER_ID: Action.RESET_MEMBER,
}
HEARTBEAT = LATER | {
    ErrorCode.ILLEGAL_GENERATION: Action.REJOIN,
    ErrorCode.GROUP_ID_NOT_FOUND: Action.REJOIN,
    ErrorCode.UNKNOWN_MEMBER_ID: Action.RESET_MEMBER,
}
"""ILLEGAL_GENERATION announces a round."""

COMMIT = HEARTBEAT | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Action.BACK_OFF}


class ServerSideState(StrEnum):
    """The state of a member."""

    UNJOINED = "unjoined"
    """Outside the group."""

    JOINING = "joining"
    """A join is in flight or about to be sent again. There are no heartbeats."""

    STABLE = "stable"
    """The member has its share, or takes it over in the next poll."""


_UNJOINED, _JOINING, _STABLE = ServerSideState

MOVES = {
    _UNJOINED: frozenset({_JOINING}),
    _JOINING: frozenset({_STABLE, _UNJOINED}),
    _STABLE: frozenset({_JOINING, _UNJOINED}),
}


class ServerSideMember(SessionMember[ServerSideState]):
    """A member that gets its share in the response to its join."""

    def __init__(
        self, core: Core, coordinator: CoordinatorFinder, offsets: Offsets, assignors: Sequence[Assignor]
    ) -> None:
        if len(assignors) != 1:
            raise InputError("assignors", f"{len(assignors)} of them", "one: that of the coordinator")
        super().__init__(core, coordinator, MOVES, (_STABLE,), HEARTBEAT)
        self._preparation = Preparation(core, offsets, RebalanceProtocol.EAGER)
        self._in_flight = False
        self._share: list[TopicPartition] | None = None
        """The share that the next poll takes over."""

    # --- the interface of a client

    @property
    def is_at_rest(self) -> bool:
        """Whether no round is in progress or requested."""
        return self._share is None and not self._in_flight and not self._membership.must_rejoin()

    @property
    def calls_listener(self) -> bool:
        """Whether a share waits to be taken over, or partitions must be given up before the join."""
        membership = self._membership
        gives_up = membership.rejoin_requested and membership.must_prepare and self._preparation.gives_up
        return self._share is not None or gives_up

    @property
    def may_revoke(self) -> bool:
        """Whether the member is in the group, and no round is in progress."""
        return self.state is _STABLE

    def poll(self, *, now_ms: int) -> None:
        """Take over a share, prepare and join, as far as possible without a response."""
        self.beats.polled(now_ms=now_ms)
        if self._share is not None:
            self._take_over(self._share)
        if not self._can_join(now_ms=now_ms):
            return
        if self._membership.must_prepare:
            calls = self._preparation.gives_up
            if not self._preparation.run(now_ms=now_ms):
                return
            self._membership.must_prepare = False
            if calls and not self._core.library.joins_with_calls:
                return
        self._join(now_ms=now_ms)

    def outlook(self, *, now_ms: int) -> Outlook:
        """Return when a heartbeat, a timeout or a join is due.

        Only polls read responses while a join is in flight, as no heartbeat is due then.
        """
        at_rest, membership = self.is_at_rest, self._membership
        if self._share is not None or self._can_join(now_ms=now_ms):
            poll_ms = now_ms
        elif self._in_flight or not membership.rejoin_requested or not self._is_informed:
            poll_ms = NEVER
        else:
            prepared_ms = self._preparation.retry_ms() if membership.must_prepare else 0
            poll_ms = max(membership.retry_ms, prepared_ms)
        return Outlook(at_rest, self._next_deadline_ms(), poll_ms, self._in_flight)

    def on_commit_error(self, error: ErrorCode, sent: Generation, *, now_ms: int) -> CommitResult:
        """React to the error of a commit as to that of a heartbeat."""
        return self._membership.commit_refused(COMMIT, error, sent, now_ms=now_ms)

    # --- joins

    def _can_join(self, *, now_ms: int) -> bool:
        membership = self._membership
        if self._in_flight or self._share is not None or not membership.must_rejoin():
            return False
        if not self._is_informed or now_ms < membership.retry_ms:
            return False
        return not (membership.must_prepare and self._preparation.is_waiting(now_ms=now_ms))

    @property
    def _is_informed(self) -> bool:
        """Whether the coordinator is known, and the topics are, unless nobody describes them."""
        metadata = self._core.metadata
        is_described = metadata.knows(self._core.subscriptions.topics) or not metadata.is_pending
        return self._coordinator.node is not None and is_described

    def _join(self, *, now_ms: int) -> None:
        config, core, node = self._core.config, self._core, self._coordinator.node
        assert node is not None
        self._membership.joined_topics = core.subscriptions.topics
        self._in_flight, self._membership.rejoin_requested = True, False
        self._membership.move_to(_JOINING)
        request = JoinRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=core.rebalance_timeout_ms,
            topics=self._membership.joined_topics,
            member_id=core.generation.member_id,
        )
        timeout_ms = core.rebalance_timeout_ms + JOIN_SLACK_MS
        core.requests.send(node, request, self._on_join, now_ms=now_ms, timeout_ms=timeout_ms)

    def _on_join(self, reply: Reply, now_ms: int) -> None:
        self._in_flight = False
        if self.state is not _JOINING:
            return  # it has left since
        membership = self._membership
        membership.rejoin_requested = True
        if not isinstance(reply, JoinResponse):
            membership.back_off(now_ms=now_ms)
            return
        if not reply.error:
            self._joined(reply, now_ms=now_ms)
            return
        todo = action(JOIN, reply.error)
        if todo is Action.ADOPT_ID:
            self._core.generation = NO_MEMBERSHIP._replace(member_id=reply.member_id)
            if self._can_join(now_ms=now_ms):
                self._join(now_ms=now_ms)
            return
        if todo is Action.REDISCOVER:
            membership.back_off(now_ms=now_ms)
        membership.act_on("Join", todo, reply.error, self._core.generation, now_ms=now_ms)

    def _joined(self, reply: JoinResponse, *, now_ms: int) -> None:
        core = self._core
        try:
            partitions, _ = decode_assignment(reply.assignment)
        except ProtocolError as error:
            core.fail(error)
            return
        core.generation = Generation(reply.generation_id, reply.member_id, reply.protocol_name)
        self._membership.rejoin_requested, self._share = False, sorted(partitions)
        self._membership.move_to(_STABLE)
        self.beats.joined(now_ms=now_ms)
        core.report_joined()

    def _take_over(self, share: list[TopicPartition]) -> None:
        """Own the share. One that arrived before the membership was lost is dropped."""
        core, self._share, self._membership.must_prepare = self._core, None, True
        if core.generation.is_lost:
            return
        share = [tp for tp in share if core.subscriptions.allows((tp.topic,))]
        added = [tp for tp in share if tp not in core.subscriptions.partitions]
        core.subscriptions.assign_by_group(share)
        core.report_assigned(added, share)
        core.callbacks.assigned(added)
