"""The membership of a consumer: its state, and the effect of errors on it (PROTOCOL 9.4, 9.9)."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Generic, TypeVar

from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import Action, action
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.offsets import CommitResult
from coordinator_core.client.requests import NEVER
from coordinator_core.client.states import check_move
from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import LeaveGroupRequest, MemberIdentity

State = TypeVar("State", bound=Enum)


class Membership(Generic[State]):
    """State, generation, and whether to join again. Every change of the state is made here.

    ``moves``: the legal moves between states. The first state is that outside the group.
    """

    def __init__(
        self, core: Core, coordinator: CoordinatorFinder, moves: Mapping[State, frozenset[State]]
    ) -> None:
        self._core, self._coordinator, self._moves = core, coordinator, moves
        self._unjoined = self.state = next(iter(moves))
        self.joined_topics: tuple[str, ...] = ()
        """The topics of the last join, sorted."""
        self.rejoin_reason = "the first join"
        self.rejoin_requested = True
        self.must_prepare = True
        self.retry_ms = 0
        self.rejoin_at_ms = NEVER
        """The time at which the member joins again, though nothing has changed."""

    def move_to(self, state: State) -> None:
        """Change the state and report the change.

        Raises:
            AssertionError: if the move is illegal.
        """
        if state is self.state:
            return
        check_move(self._moves, self.state, state)
        self._core.report_state(self.state, state)
        self.state = state

    def must_rejoin(self) -> bool:
        """Return whether to join again: it was requested, or the subscription is another one than joined."""
        if not self.rejoin_requested and self.joined_topics != self._core.subscriptions.topics:
            self.request_rejoin("the subscription changed")
        return self.rejoin_requested

    def request_rejoin(self, reason: str) -> None:
        """Join again in the next poll."""
        self.rejoin_requested = True
        self.rejoin_reason = reason

    def reset(self, reason: str, *, keep_member_id: bool) -> None:
        """Forget the generation, and the member id unless it is kept; then join again.

        The preparation of that join loses the partitions.
        """
        self.must_prepare = True
        member_id = self._core.generation.member_id if keep_member_id else NO_MEMBERSHIP.member_id
        self._core.generation = NO_MEMBERSHIP._replace(member_id=member_id)
        self.rejoin_at_ms = NEVER
        self.move_to(self._unjoined)
        self.request_rejoin(reason)

    def back_off(self, *, now_ms: int) -> None:
        """Delay the next join by retry.backoff.ms."""
        self.retry_ms = now_ms + self._core.config.retry_backoff_ms

    def act_on(self, api: str, todo: Action, error: ErrorCode, sent: Generation, *, now_ms: int) -> None:
        """Carry out the action for the error of a request that named the generation ``sent``.

        An earlier generation neither ends, resets nor rejoins the member.
        """
        reason = f"{api}: {error.name}"
        if todo is Action.REDISCOVER:
            self._coordinator.lose(now_ms=now_ms)
        elif todo is Action.BACK_OFF:
            self.back_off(now_ms=now_ms)
        elif sent != self._core.generation:
            return
        elif todo is Action.FATAL:
            self.end(api, error)
        elif todo is Action.REJOIN:
            self.request_rejoin(reason)
        else:
            self.reset(reason, keep_member_id=todo is Action.RESET_GENERATION)

    def commit_refused(
        self, actions: Mapping[ErrorCode, Action], error: ErrorCode, sent: Generation, *, now_ms: int
    ) -> CommitResult:
        """Carry out the action for the error of a commit, and return its result."""
        todo = action(actions, error)
        if todo is not Action.BACK_OFF:
            self.act_on("OffsetCommit", todo, error, sent, now_ms=now_ms)
        return CommitResult(error.name, retriable=todo in (Action.BACK_OFF, Action.REDISCOVER))

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
        has_joined = self.state is not self._unjoined and member_id != ""
        if node is None or not has_joined or config.group_instance_id is not None:
            return False
        request = LeaveGroupRequest(config.group_id, members=(MemberIdentity(member_id, None, reason),))
        self._core.requests.tell(node, request, left, now_ms=now_ms)
        return True
