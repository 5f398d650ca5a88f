"""The member of a classic group: its parts behind the interface that a client drives."""

from collections.abc import Iterable, Sequence

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.classic.error_actions import COMMIT, HEARTBEAT
from coordinator_core.client.classic.joining import Joining, Phase
from coordinator_core.client.classic.leading import Leader
from coordinator_core.client.classic.rebalance_protocol import rebalance_protocol
from coordinator_core.client.classic.states import MEMBER_MOVES, MemberState
from coordinator_core.client.classic.takeover import Takeover
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import Action, action
from coordinator_core.client.generation import Generation
from coordinator_core.client.member import Outlook
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.client.preparation import Preparation
from coordinator_core.client.requests import NEVER
from coordinator_core.client.session_member import SessionMember
from coordinator_core.errors import InputError
from coordinator_core.model import Cluster, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode

_NOTHING, _JOIN, _METADATA = Phase.NOTHING, Phase.JOIN, Phase.METADATA
_STABLE = MemberState.STABLE
_BEATING = (_STABLE, MemberState.COMPLETING_REBALANCE)
_REBALANCING = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)


class ClassicMember(SessionMember[MemberState]):
    """A member that joins, syncs and sends heartbeats (PROTOCOL 9.4-9.9)."""

    def __init__(
        self, core: Core, coordinator: CoordinatorFinder, offsets: Offsets, assignors: Sequence[Assignor]
    ) -> None:
        protocol = rebalance_protocol(assignors)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        super().__init__(core, coordinator, MEMBER_MOVES, _BEATING, HEARTBEAT)
        membership, beats = self._membership, self.beats
        preparation = Preparation(core, offsets, protocol)
        leader = self._leader = Leader(core, self._assignors)
        takeover = self._takeover = Takeover(core, membership, beats, self._assignors, protocol)
        self._joining = Joining(
            core, coordinator, membership, beats, preparation, leader, takeover, self._assignors
        )

    @property
    def is_leader(self) -> bool:
        """Whether this member computes the assignments of the group."""
        return self._leader.is_elected

    @property
    def is_at_rest(self) -> bool:
        """Whether no round is in progress or requested."""
        joining = self._joining
        return joining.phase is _NOTHING and not self._takeover.is_due and not joining.must_rejoin()

    @property
    def calls_listener(self) -> bool:
        """Whether an assignment waits to be taken over, or partitions must be given up before the join."""
        return self._joining.calls_listener

    @property
    def may_revoke(self) -> bool:
        """Whether the member has a generation and no round is in progress (PITFALLS C-57)."""
        return not self._core.generation.is_lost and self.state not in _REBALANCING

    def poll(self, *, now_ms: int) -> None:
        """Take over an assignment, prepare and join, as far as possible without a response."""
        self.beats.polled(now_ms=now_ms)
        self._joining.step(now_ms=now_ms)

    def outlook(self, *, now_ms: int) -> Outlook:
        """Return whether no round is in progress, and when the next heartbeat, timeout or join is due.

        Only polls read responses while a JoinGroup is in flight, as no heartbeat is due then.
        """
        deadline_ms, joining = self._next_deadline_ms(), self._joining
        if joining.phase is not _NOTHING:
            return Outlook(False, deadline_ms, NEVER, joining.phase is _JOIN)
        membership, leader, core = self._membership, self._leader, self._core
        may_rejoin = (
            membership.rejoin_requested
            or membership.joined_topics != core.subscriptions.topics
            or (leader.is_elected and leader.based_on_version != core.metadata.version)
        )
        if not self._takeover.is_due and not (may_rejoin and joining.must_rejoin()):
            return Outlook(True, deadline_ms, NEVER)
        if joining.wants_poll(now_ms=now_ms):
            return Outlook(False, deadline_ms, now_ms)
        retry_ms = joining.retry_ms()
        if now_ms < retry_ms < deadline_ms:
            deadline_ms = retry_ms
        return Outlook(False, deadline_ms, NEVER)

    def on_metadata(self, *, now_ms: int) -> None:
        """Compute the assignments, if the leader waits for metadata."""
        if self._joining.phase is _METADATA:
            self._joining.on_metadata(now_ms=now_ms)

    def on_commit_error(self, error: ErrorCode, sent: Generation, *, now_ms: int) -> CommitResult:
        """Carry out the action for an error of OffsetCommit (PITFALLS C-35, C-36)."""
        result = self._membership.commit_refused(COMMIT, error, sent, now_ms=now_ms)
        if sent != self._core.generation and self.state is MemberState.PREPARING_REBALANCE:
            todo = action(COMMIT, error)
            if todo in (Action.RESET_GENERATION, Action.RESET_MEMBER, Action.FATAL):  # it has moved on
                return CommitResult(ErrorCode.REBALANCE_IN_PROGRESS.name)
        return result

    def resume(
        self,
        generation: Generation,
        owned: Iterable[TopicPartition],
        *,
        topics: Iterable[str],
        based_on: Cluster | None,
        last_response_ms: int,
    ) -> None:
        """Be a stable member of a generation without joining it.

        Raises:
            InputError: if the member is joining or has joined, if the generation is invalid, or if its
                assignor is not configured.
        """
        self._check_resumable(generation)
        self.beats.joined(now_ms=last_response_ms)
        self._joining.resume(topics)
        self._core.generation, self._membership.rejoin_requested = generation, False
        self._membership.move_to(_STABLE)
        if based_on is not None:
            self._leader.resume(based_on)
        self._core.report_joined(leader=based_on is not None)
        self._takeover.resume(generation, owned)

    def _check_resumable(self, generation: Generation) -> None:
        call = "resume_membership"
        if self.state is not MemberState.UNJOINED:
            raise InputError(call, f"a consumer that is {self.state.value}", "one that has not joined")
        if generation.is_lost:
            raise InputError(call, "no generation", "the generation and member id of a member")
        if generation.protocol not in self._assignors:
            raise InputError(call, f"the assignor {generation.protocol!r}", "one that the consumer has")
