"""The membership of a consumer: its state, and the effect of errors on it (PROTOCOL 9.4, 9.9)."""

from collections.abc import Callable

from coordinator_core.client.classic.error_actions import Action
from coordinator_core.client.classic.states import MEMBER_MOVES, MemberState
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.requests import NEVER, Reply
from coordinator_core.client.states import check_move
from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import LeaveGroupRequest, MemberIdentity


class Membership:
    """State, generation, and whether to join again. Every change of the state is made here."""

    def __init__(self, core: Core, coordinator: CoordinatorFinder) -> None:
        self._core, self._coordinator = core, coordinator
        self.state = MemberState.UNJOINED
        self.joined_topics: tuple[str, ...] = ()
        """The topics of the last JoinGroup, sorted."""
        self.rejoin_reason = "the first join"
        self.rejoin_requested = True
        self.must_prepare = True
        self.retry_ms = 0
        self.rejoin_at_ms = NEVER
        """The time at which the member joins again, though nothing has changed."""

    def move_to(self, state: MemberState) -> None:
        """Change the state and report the change.

        Raises:
            AssertionError: if the move is illegal.
        """
        if state is self.state:
            return
        check_move(MEMBER_MOVES, self.state, state)
        self._core.report_state(self.state, state)
        self.state = state

    def request_rejoin(self, reason: str) -> None:
        """Join again in the next poll."""
        self.rejoin_requested = True
        self.rejoin_reason = reason

    def rejoin_if_due(self, *, now_ms: int) -> None:
        """Join again, if the time has come that the last assignment set."""
        if now_ms >= self.rejoin_at_ms:
            self.rejoin_at_ms = NEVER
            self.request_rejoin("the delay of lost partitions is over")

    def reset(self, reason: str, *, keep_member_id: bool) -> None:
        """Forget the generation, and the member id unless it is kept; then join again.

        The preparation of that join loses the partitions.
        """
        self.must_prepare = True
        member_id = self._core.generation.member_id if keep_member_id else NO_MEMBERSHIP.member_id
        self._core.generation = NO_MEMBERSHIP._replace(member_id=member_id)
        self.rejoin_at_ms = NEVER
        self.move_to(MemberState.UNJOINED)
        self.request_rejoin(reason)

    def resume(self, generation: Generation) -> None:
        """Be a stable member of a generation without joining it."""
        self._core.generation = generation
        self.rejoin_requested = False
        self.move_to(MemberState.STABLE)

    def back_off(self, *, now_ms: int) -> None:
        """Delay the next join by retry.backoff.ms."""
        self.retry_ms = now_ms + self._core.config.retry_backoff_ms

    def act_on(self, api: str, action: Action, error: ErrorCode, sent: Generation, *, now_ms: int) -> None:
        """Carry out the action for the error of a request that named the generation ``sent``.

        An earlier generation neither ends, resets nor rejoins the member.
        """
        reason = f"{api}: {error.name}"
        if action is Action.REDISCOVER:
            self._coordinator.lose(now_ms=now_ms)
        elif action is Action.BACK_OFF:
            self.back_off(now_ms=now_ms)
        elif sent != self._core.generation:
            return
        elif action is Action.FATAL:
            self.end(api, error)
        elif action is Action.REJOIN:
            self.request_rejoin(reason)
        else:
            self.reset(reason, keep_member_id=action is Action.RESET_GENERATION)

    def end(self, api: str, error: ErrorCode) -> None:
        """End the consumer with the error of a request."""
        if error is ErrorCode.FENCED_INSTANCE_ID:  # another process owns the partitions now
            self.reset(f"{api}: {error.name}", keep_member_id=False)
        self._core.fail(ProtocolError(api, error.name))

    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:
        """Leave the group and forget the membership.

        Return whether a LeaveGroup was sent. ``left`` is called after its response or failure, which are
        alike: the coordinator has removed the member or will (PITFALLS C-59).
        """
        sent = self._send_leave(reason, left, now_ms=now_ms)
        self.reset(reason, keep_member_id=False)
        return sent

    def _send_leave(self, reason: str, left: Callable[[], None] | None, *, now_ms: int) -> bool:
        """Send a LeaveGroup, unless the member is static or has not joined (PROTOCOL 6.1).

        Return whether a request was sent.
        """
        config, node, member_id = self._core.config, self._coordinator.node, self._core.generation.member_id
        has_joined = self.state is not MemberState.UNJOINED and member_id != ""
        if node is None or not has_joined or config.group_instance_id is not None:
            return False
        request = LeaveGroupRequest(config.group_id, members=(MemberIdentity(member_id, None, reason),))

        def completed(reply: Reply, at_ms: int) -> None:  # noqa: ARG001 - the interface's
            if left is not None:
                left()

        self._core.send(node, request, completed, now_ms=now_ms)
        return True
