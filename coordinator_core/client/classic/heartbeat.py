"""Heartbeats, and the three clocks behind them: interval, session, poll (PROTOCOL 9.9)."""

from coordinator_core.client.classic.error_actions import HEARTBEAT, Action, action
from coordinator_core.client.classic.membership import Membership
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import Generation
from coordinator_core.client.requests import Answer
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import HeartbeatRequest, HeartbeatResponse

_BEATING = (MemberState.STABLE, MemberState.COMPLETING_REBALANCE)


class Heartbeat:
    """Runs in the background: between polls too, as long as the application polls often enough."""

    def __init__(self, core: Core, coordinator: CoordinatorFinder, membership: Membership) -> None:
        self._core, self._coordinator, self._membership = core, coordinator, membership
        self._last_sent_ms = self._last_heard_ms = self._last_poll_ms = 0
        self._in_flight = False

    def polled(self, *, now_ms: int) -> None:
        """The application has polled."""
        self._last_poll_ms = now_ms

    def joined(self, *, now_ms: int) -> None:
        """A join was answered: all clocks start anew."""
        self._last_sent_ms = self._last_heard_ms = self._last_poll_ms = now_ms

    def heard(self, now_ms: int) -> None:
        """The coordinator is there: the session's clock starts anew."""
        self._last_heard_ms = now_ms

    def on_deadline(self, *, now_ms: int) -> None:
        """Do whatever is due."""
        if self._membership.state not in _BEATING:
            return
        config = self._core.config
        if now_ms - self._last_poll_ms >= config.max_poll_interval_ms:
            self._membership.leave("max.poll.interval.ms has passed without a poll", now_ms=now_ms)
            return
        if self._coordinator.node is None:
            return
        if now_ms - self._last_heard_ms >= config.session_timeout_ms:
            self._coordinator.lose(now_ms=now_ms)
        elif not self._in_flight and now_ms - self._last_sent_ms >= config.heartbeat_interval_ms:
            self._send(self._coordinator.node, now_ms=now_ms)

    def next_deadline_ms(self) -> int | None:
        """When something is due next."""
        if self._membership.state not in _BEATING:
            return None
        config = self._core.config
        deadline = self._last_poll_ms + config.max_poll_interval_ms
        if self._coordinator.node is not None:
            deadline = min(deadline, self._last_heard_ms + config.session_timeout_ms)
            if not self._in_flight:
                deadline = min(deadline, self._last_sent_ms + config.heartbeat_interval_ms)
        return deadline

    def _send(self, node: int, *, now_ms: int) -> None:
        self._in_flight = True
        self._last_sent_ms = now_ms
        sent = self._core.generation
        request = HeartbeatRequest(
            group_id=self._core.config.group_id,
            generation_id=sent.number,
            member_id=sent.member_id,
            group_instance_id=self._core.config.group_instance_id,
        )
        self._core.send(
            node, request, lambda answer, at_ms: self._answered(answer, sent, at_ms), now_ms=now_ms
        )

    def _answered(self, answer: Answer, sent: Generation, now_ms: int) -> None:
        self._in_flight = False
        if not isinstance(answer, HeartbeatResponse):
            return
        if answer.error is ErrorCode.NONE:
            self.heard(now_ms)
            return
        todo = action(HEARTBEAT, answer.error)
        if todo is Action.REJOIN:
            self.heard(now_ms)
            if self._membership.state is not MemberState.STABLE or sent != self._core.generation:
                return  # it is rebalancing already (PITFALLS C-47)
        self._membership.act_on("Heartbeat", todo, answer.error, sent, now_ms=now_ms)
