"""The member of a group whose coordinator computes the assignments: joins, heartbeats, and nothing else."""

from collections.abc import Callable, Sequence
from enum import StrEnum

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.member import Outlook, cannot_resume
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.client.periodic import Heartbeats
from coordinator_core.client.preparation import Preparation
from coordinator_core.client.requests import NEVER, Reply
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import RebalanceProtocol, TopicPartition
from coordinator_core.protocol.consumer_protocol import decode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    MemberIdentity,
)
from coordinator_core.protocol.server_side import JoinRequest, JoinResponse

JOIN_SLACK_MS = 5_000
"""The timeout of a join is the rebalance timeout and this time."""

_OF_COORDINATOR = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)
_LATER = (*_OF_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_SERVER_ERROR)


class ServerSideState(StrEnum):
    """The state of a member."""

    UNJOINED = "unjoined"
    """Outside the group."""

    JOINING = "joining"
    """A join is in flight or about to be sent again. There are no heartbeats."""

    STABLE = "stable"
    """The member has its share, or takes it over in the next poll."""


class ServerSideMember:
    """A `MemberPart` that gets its share in the response to its join."""

    is_leader = False
    resume = staticmethod(cannot_resume)

    def __init__(
        self, core: Core, coordinator: CoordinatorFinder, offsets: Offsets, assignors: Sequence[Assignor]
    ) -> None:
        if len(assignors) != 1:
            raise InputError("assignors", f"{len(assignors)} of them", "one: that of the coordinator")
        self._core, self._coordinator = core, coordinator
        self._preparation = Preparation(core, offsets, RebalanceProtocol.EAGER)
        self.state = ServerSideState.UNJOINED
        self._must_rejoin = self._must_prepare = True
        self._in_flight = self._beats = False
        self._retry_ms = self._beat_ms = self._response_ms = self._poll_ms = 0
        self._number = 0
        """How often a heartbeat was due after its interval."""
        self._topics: tuple[str, ...] = ()
        self._share: list[TopicPartition] | None = None
        """The share that the next poll takes over."""

    # --- the interface of a client

    @property
    def is_at_rest(self) -> bool:
        """Whether no round is in progress or requested."""
        return self._share is None and not self._in_flight and not self._wants_to_join()

    @property
    def calls_listener(self) -> bool:
        """Whether a share waits to be taken over, or partitions must be given up before the join."""
        gives_up = self._must_rejoin and self._must_prepare and self._preparation.gives_up
        return self._share is not None or gives_up

    @property
    def may_revoke(self) -> bool:
        """Whether the member is in the group, and no round is in progress."""
        return self.state is ServerSideState.STABLE

    @property
    def may_commit(self) -> bool:
        """Whether no round is in progress."""
        return self.state is ServerSideState.STABLE

    def poll(self, *, now_ms: int) -> None:
        """Take over a share, prepare and join, as far as possible without a response."""
        self._poll_ms = now_ms
        if self._share is not None:
            self._take_over(self._share)
        if not self._can_join(now_ms=now_ms):
            return
        if self._must_prepare:
            if not self._preparation.run(now_ms=now_ms):
                return
            self._must_prepare = False
        self._join(now_ms=now_ms)

    def outlook(self, *, now_ms: int) -> Outlook:
        """Return when a heartbeat, a timeout or a join is due.

        Only polls read responses while a join is in flight, as no heartbeat is due then.
        """
        at_rest = self.is_at_rest
        if self._share is not None or self._can_join(now_ms=now_ms):
            poll_ms = now_ms
        elif self._in_flight or not self._must_rejoin or not self._is_informed:
            poll_ms = NEVER
        else:
            prepared_ms = self._preparation.retry_ms() if self._must_prepare else 0
            poll_ms = max(self._retry_ms, prepared_ms)
        return Outlook(at_rest, self._next_deadline_ms(), poll_ms, self._in_flight)

    def _next_deadline_ms(self) -> int:
        if self.state is not ServerSideState.STABLE or self._coordinator.node is None:
            return NEVER
        config = self._core.config
        missed_ms = self._poll_ms + config.max_poll_interval_ms
        expires_ms = self._response_ms + config.session_timeout_ms
        return min(missed_ms, expires_ms, NEVER if self._beats else self._beat_ms)

    def on_deadline(self, *, now_ms: int) -> None:
        """Lose the coordinator after the session, leave after a missed poll, or send a heartbeat."""
        if self.state is not ServerSideState.STABLE or self._coordinator.node is None:
            return
        config = self._core.config
        if now_ms - self._response_ms >= config.session_timeout_ms:
            self._coordinator.lose(now_ms=now_ms)
        elif now_ms - self._poll_ms >= config.max_poll_interval_ms:
            self.leave("max.poll.interval.ms has passed without a poll", now_ms=now_ms)
        elif not self._beats and now_ms >= self._beat_ms:
            self._send_heartbeat(self._coordinator.node, now_ms=now_ms)

    def heartbeats(self) -> Heartbeats | None:
        """Return the heartbeats of a stable member, or None."""
        if self.state is not ServerSideState.STABLE or self._coordinator.node is None:
            return None
        interval_ms = self._core.config.heartbeat_interval_ms
        return Heartbeats(self._heartbeat(), self._beat_ms, self._number, interval_ms, self._beats)

    def continue_heartbeats(self, count: int, due_ms: int, received_ms: int) -> None:
        """Continue as if ``count`` heartbeats had been answered, the last one at ``received_ms``."""
        self._number += count
        self._beat_ms, self._response_ms = due_ms, received_ms

    def continue_polls(self, last_poll_ms: int) -> None:
        """Continue as if polls had happened, the last one at ``last_poll_ms``."""
        self._poll_ms = last_poll_ms

    def on_coordinator(self, *, now_ms: int) -> None:
        """Restart the timer of the session."""
        self._response_ms = now_ms

    def on_metadata(self, *, now_ms: int) -> None:
        """Do nothing: the coordinator knows the topics."""

    def on_commit_error(self, error: ErrorCode, sent: Generation, *, now_ms: int) -> CommitResult:
        """React to the error of a commit as to that of a heartbeat."""
        if error in _LATER:
            self._lose(error, now_ms=now_ms)
            return CommitResult(error.name, retriable=True)
        if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return CommitResult(error.name, retriable=True)
        if sent == self._core.generation:
            self._refused("OffsetCommit", error)
        return CommitResult(error.name)

    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:
        """Leave the group and forget the membership."""
        node, member_id = self._coordinator.node, self._core.generation.member_id
        sends = node is not None and member_id != "" and self.state is not ServerSideState.UNJOINED

        def answered(reply: Reply, at_ms: int) -> None:  # noqa: ARG001 - the interface's
            if left is not None:
                left()

        if sends and node is not None:
            identity = MemberIdentity(member_id, None, reason)
            request = LeaveGroupRequest(self._core.config.group_id, members=(identity,))
            self._core.send(node, request, answered, now_ms=now_ms)
        self._reset(keep_member_id=False)
        return sends

    # --- joins

    def _wants_to_join(self) -> bool:
        """Return whether the member has to join: it was told so, or it subscribes to other topics."""
        if self._topics != self._core.subscriptions.topics:
            self._must_rejoin = True
        return self._must_rejoin

    def _can_join(self, *, now_ms: int) -> bool:
        if self._in_flight or self._share is not None or not self._wants_to_join():
            return False
        if not self._is_informed or now_ms < self._retry_ms:
            return False
        return not (self._must_prepare and self._preparation.is_waiting(now_ms=now_ms))

    @property
    def _is_informed(self) -> bool:
        """Whether the coordinator is known, and the topics are, unless nobody describes them."""
        metadata = self._core.metadata
        is_described = metadata.knows(self._core.subscriptions.topics) or not metadata.is_pending
        return self._coordinator.node is not None and is_described

    def _join(self, *, now_ms: int) -> None:
        config, core, node = self._core.config, self._core, self._coordinator.node
        assert node is not None
        self._topics = core.subscriptions.topics
        self._in_flight, self._must_rejoin = True, False
        self._move_to(ServerSideState.JOINING)
        request = JoinRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            topics=self._topics,
            member_id=core.generation.member_id,
        )
        timeout_ms = config.max_poll_interval_ms + JOIN_SLACK_MS
        core.send(node, request, self._on_join, now_ms=now_ms, timeout_ms=timeout_ms)

    def _on_join(self, reply: Reply, now_ms: int) -> None:
        self._in_flight = False
        if self.state is not ServerSideState.JOINING:
            return  # it has left since
        self._must_rejoin = True
        if not isinstance(reply, JoinResponse):
            self._retry_ms = now_ms + self._core.config.retry_backoff_ms
        elif reply.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._core.generation = NO_MEMBERSHIP._replace(member_id=reply.member_id)
            if self._can_join(now_ms=now_ms):
                self._join(now_ms=now_ms)
        elif reply.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._reset(keep_member_id=False)
        elif reply.error in _LATER:
            self._lose(reply.error, now_ms=now_ms)
        elif reply.error:
            self._core.fail(ProtocolError("Join", reply.error.name))
        else:
            self._joined(reply, now_ms=now_ms)

    def _joined(self, reply: JoinResponse, *, now_ms: int) -> None:
        core = self._core
        try:
            partitions, _ = decode_assignment(reply.assignment)
        except ProtocolError as error:
            core.fail(error)
            return
        core.generation = Generation(reply.generation_id, reply.member_id, reply.protocol_name)
        self._must_rejoin, self._share = False, sorted(partitions)
        self._move_to(ServerSideState.STABLE)
        self._response_ms = self._poll_ms = now_ms
        self._beat_after(now_ms)
        core.report_joined()

    def _take_over(self, share: list[TopicPartition]) -> None:
        """Own the share. One that arrived before the membership was lost is dropped."""
        core, self._share, self._must_prepare = self._core, None, True
        if core.generation.is_lost:
            return
        share = [tp for tp in share if core.subscriptions.allows((tp.topic,))]
        added = [tp for tp in share if tp not in core.subscriptions.partitions]
        core.subscriptions.assign_by_group(share)
        core.report_assigned(added, share)
        core.callbacks.assigned(added)

    # --- heartbeats

    def _heartbeat(self) -> HeartbeatRequest:
        number, member_id, _ = self._core.generation
        group_id = self._core.config.group_id
        return HeartbeatRequest(group_id=group_id, generation_id=number, member_id=member_id)

    def _beat_after(self, at_ms: int) -> None:
        self._number += 1
        late_ms = 0 if self._core.lateness is None else self._core.lateness(self._number)
        self._beat_ms = at_ms + self._core.config.heartbeat_interval_ms + late_ms

    def _send_heartbeat(self, node: int, *, now_ms: int) -> None:
        self._beats = True
        self._beat_after(now_ms)
        sent = self._core.generation

        def answered(reply: Reply, at_ms: int) -> None:
            self._beats = False
            if not isinstance(reply, HeartbeatResponse):
                self._beat_ms = at_ms + self._core.config.retry_backoff_ms
            elif reply.error in _LATER:
                self._beat_ms = at_ms + self._core.config.retry_backoff_ms
                self._lose(reply.error, now_ms=at_ms)
            else:
                self._response_ms = at_ms
                if reply.error and sent == self._core.generation:
                    self._refused("Heartbeat", reply.error)

        self._core.send(node, self._heartbeat(), answered, now_ms=now_ms)

    def _refused(self, api: str, error: ErrorCode) -> None:
        """React to an error that names the present generation. ILLEGAL_GENERATION announces a round."""
        if error in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND):
            self._must_rejoin = True
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._reset(keep_member_id=False)
        else:
            self._core.fail(ProtocolError(api, error.name))

    def _lose(self, error: ErrorCode, *, now_ms: int) -> None:
        """Send the request again a little later, to another coordinator if this one is none."""
        self._retry_ms = now_ms + self._core.config.retry_backoff_ms
        if error in _OF_COORDINATOR:
            self._coordinator.lose(now_ms=now_ms)

    def _reset(self, *, keep_member_id: bool) -> None:
        """Forget the generation, and join again. The preparation of that join loses the partitions."""
        member_id = self._core.generation.member_id if keep_member_id else NO_MEMBERSHIP.member_id
        self._core.generation = NO_MEMBERSHIP._replace(member_id=member_id)
        self._must_rejoin = self._must_prepare = True
        self._move_to(ServerSideState.UNJOINED)

    def _move_to(self, state: ServerSideState) -> None:
        self._core.report_state(self.state, state)
        self.state = state
