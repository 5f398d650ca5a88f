"""Heartbeats, and the three timers behind them: interval, session, poll (PROTOCOL 9.9)."""

from functools import partial

from coordinator_core.client.classic.error_actions import HEARTBEAT, Action, action
from coordinator_core.client.classic.membership import Membership
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import Generation
from coordinator_core.client.periodic import Heartbeats
from coordinator_core.client.requests import NEVER, Failure, Reply
from coordinator_core.protocol.messages import HeartbeatRequest, HeartbeatResponse

_STABLE = MemberState.STABLE
_SENDING = (_STABLE, MemberState.COMPLETING_REBALANCE)


class Heartbeat:
    """Sends heartbeats between polls, as long as the application polls often enough."""

    def __init__(self, core: Core, coordinator: CoordinatorFinder, membership: Membership) -> None:
        self._core, self._coordinator, self._membership = core, coordinator, membership
        config = core.config
        self._interval_ms, self._session_ms = config.heartbeat_interval_ms, config.session_timeout_ms
        self._poll_interval_ms = config.max_poll_interval_ms
        self._due_ms, self._expires_ms, self._missed_ms = 0, self._session_ms, self._poll_interval_ms
        self._in_flight = False
        self._named: Generation | None = None
        self._kept: HeartbeatRequest | None = None
        """The request of the generation `_named`."""
        self._number = 0
        """How often a heartbeat was due after its interval."""

    def polled(self, *, now_ms: int) -> None:
        """Restart the poll timer."""
        self._missed_ms = now_ms + self._poll_interval_ms

    def joined(self, *, now_ms: int) -> None:
        """Restart all timers."""
        self.received(now_ms=now_ms)
        self.polled(now_ms=now_ms)
        self._due_after(now_ms)

    def received(self, *, now_ms: int) -> None:
        """Restart the session timer: the coordinator is present."""
        self._expires_ms = now_ms + self._session_ms

    def periodic(self) -> Heartbeats | None:
        """Return the heartbeats of a stable member, or None."""
        if self._membership.state is not _STABLE or self._coordinator.node is None:
            return None
        return Heartbeats(
            self._request(),
            self._due_ms,
            self._number,
            self._interval_ms,
            self._in_flight,
            until_ms=self._membership.rejoin_at_ms,
        )

    def continue_after(self, count: int, due_ms: int, received_ms: int) -> None:
        """Continue as if ``count`` heartbeats had been answered, the last one at ``received_ms``.

        The next is due at ``due_ms``.
        """
        self._number += count
        self._due_ms = due_ms
        self.received(now_ms=received_ms)

    def on_deadline(self, *, now_ms: int) -> None:
        """Lose the coordinator after the session, leave after a missed poll, or send a heartbeat.

        All three need a coordinator. A member whose coordinator is unknown leaves when it is found.
        """
        if self._membership.state not in _SENDING or self._coordinator.node is None:
            return
        if now_ms >= self._expires_ms:
            self._coordinator.lose(now_ms=now_ms)
        elif now_ms >= self._missed_ms:
            self._membership.leave("max.poll.interval.ms has passed without a poll", now_ms=now_ms)
        elif not self._in_flight and now_ms >= self._due_ms:
            self._send(self._coordinator.node, now_ms=now_ms)

    def next_deadline_ms(self) -> int:
        """Return the time at which the first timer expires, or `NEVER` without a group or a coordinator."""
        if self._membership.state not in _SENDING or self._coordinator.node is None:
            return NEVER
        first_ms = min(self._expires_ms, self._missed_ms)
        return first_ms if self._in_flight or first_ms < self._due_ms else self._due_ms

    def _send(self, node: int, *, now_ms: int) -> None:
        self._in_flight = True
        self._due_after(now_ms)
        self._core.send(node, self._request(), partial(self._on_reply, self._core.generation), now_ms=now_ms)

    def _request(self) -> HeartbeatRequest:
        generation, config = self._core.generation, self._core.config
        if self._kept is None or generation is not self._named:
            self._named = generation
            self._kept = HeartbeatRequest(
                group_id=config.group_id,
                generation_id=generation.number,
                member_id=generation.member_id,
                group_instance_id=config.group_instance_id,
            )
        return self._kept

    def _due_after(self, at_ms: int) -> None:
        """Let a heartbeat be due after the interval that begins at a time."""
        self._number += 1
        late_ms = 0 if self._core.lateness is None else self._core.lateness(self._number)
        self._due_ms = at_ms + self._interval_ms + late_ms

    def _on_reply(self, sent: Generation, reply: Reply, now_ms: int) -> None:
        """Restart the session, carry out the action of an error, or send again after retry.backoff.ms."""
        self._in_flight = False
        if isinstance(reply, Failure):
            self._due_ms = now_ms + self._core.config.retry_backoff_ms
            return
        assert isinstance(reply, HeartbeatResponse)
        if not reply.error:
            self._expires_ms = now_ms + self._session_ms
            return
        todo = action(HEARTBEAT, reply.error)
        if todo is Action.REDISCOVER:
            self._coordinator.lose(now_ms=now_ms)
        if todo in (Action.REDISCOVER, Action.BACK_OFF):
            self._due_ms = now_ms + self._core.config.retry_backoff_ms
            return
        if todo is Action.REJOIN or sent != self._core.generation:
            self.received(now_ms=now_ms)
        if todo is Action.REJOIN and self._membership.state is not MemberState.STABLE:
            return  # the consumer is rebalancing already (PITFALLS C-47)
        self._membership.act_on("Heartbeat", todo, reply.error, sent, now_ms=now_ms)
