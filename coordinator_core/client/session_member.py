"""The member of a group coordinator that has a session and sends heartbeats (PROTOCOL 9.9)."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Generic, TypeVar

from coordinator_core.client.beats import Beats, Heartbeats
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import Action, action
from coordinator_core.client.generation import Generation
from coordinator_core.client.member import MemberPart
from coordinator_core.client.membership import Membership
from coordinator_core.client.requests import NEVER, Failure, Reply
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import HeartbeatRequest, HeartbeatResponse

State = TypeVar("State", bound=Enum)


class SessionMember(MemberPart, Generic[State]):
    """What the members of the classic and the server-side families do alike.

    They send heartbeats between polls in some states, as long as the application polls often enough.
    ``moves``: the legal moves between states, the first from the state outside the group. ``beating``: the
    states with heartbeats, the stable one first. ``actions``: those after the errors of heartbeats.
    """

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        moves: Mapping[State, frozenset[State]],
        beating: tuple[State, ...],
        actions: Mapping[ErrorCode, Action],
    ) -> None:
        self._membership = Membership(core, coordinator, moves)
        super().__init__(core, coordinator, self._membership.state)
        self._beating, self._actions = beating, actions
        self.beats = Beats(core, core.config.heartbeat_interval_ms)
        self._named: Generation | None = None
        self._kept: HeartbeatRequest | None = None
        """The request of the generation `_named`."""

    @property
    def state(self) -> State:
        """The state of the member."""
        return self._membership.state

    @property
    def may_commit(self) -> bool:
        """Whether no round is in progress: only stable members commit (PITFALLS C-35)."""
        return self._membership.state is self._beating[0]

    def on_deadline(self, *, now_ms: int) -> None:
        """Lose the coordinator after the session, leave after a missed poll, or send a heartbeat.

        All three need a coordinator. A member whose coordinator is unknown leaves when it is found.
        """
        beats, node, membership = self.beats, self._coordinator.node, self._membership
        if membership.state in self._beating and node is not None:
            if now_ms >= beats.expires_ms:
                self._coordinator.lose(now_ms=now_ms)
            elif now_ms >= beats.missed_ms:
                self.leave("max.poll.interval.ms has passed without a poll", now_ms=now_ms)
            elif now_ms >= beats.due_ms and not beats.is_waiting:
                beats.is_waiting = True
                beats.begin_interval(now_ms)
                sent = self._core.generation
                request = self._kept if sent is self._named and self._kept is not None else self._request()
                self._core.requests.send(node, request, partial(self._on_heartbeat, sent), now_ms=now_ms)
        if now_ms >= membership.rejoin_at_ms:
            membership.rejoin_at_ms = NEVER
            membership.request_rejoin("the delay of lost partitions is over")

    def _next_deadline_ms(self) -> int:
        """Return the time at which `on_deadline` has work, or `NEVER`."""
        beats, membership = self.beats, self._membership
        first_ms = membership.rejoin_at_ms
        if membership.state in self._beating and self._coordinator.node is not None:
            first_ms = min(first_ms, beats.expires_ms, beats.missed_ms)
            if beats.due_ms < first_ms and not beats.is_waiting:
                return beats.due_ms
        return first_ms

    def heartbeats(self) -> Heartbeats | None:
        """Return the heartbeats of a stable member, or None."""
        if not self.may_commit:
            return None
        return Heartbeats(self._request(), self.beats, until_ms=self._membership.rejoin_at_ms)

    def on_coordinator(self, *, now_ms: int) -> None:
        """Restart the timer of the session, and the interval of heartbeats in libraries that do."""
        self.beats.received(now_ms=now_ms)
        if self._core.library.beats_from_found:
            self.beats.begin_interval(now_ms)

    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:
        """Leave the group; a static member sends no request (PROTOCOL 6.1)."""
        return self._membership.leave(reason, left, now_ms=now_ms)

    def _request(self) -> HeartbeatRequest:
        self._named, config = self._core.generation, self._core.config
        self._kept = HeartbeatRequest(
            group_id=config.group_id,
            generation_id=self._named.number,
            member_id=self._named.member_id,
            group_instance_id=config.group_instance_id,
        )
        return self._kept

    def _on_heartbeat(self, sent: Generation, reply: Reply, now_ms: int) -> None:
        """Restart the session, carry out the action of an error, or send again after retry.backoff.ms."""
        beats, membership = self.beats, self._membership
        beats.is_waiting = False
        if isinstance(reply, Failure):
            beats.back_off(now_ms=now_ms)
            return
        assert isinstance(reply, HeartbeatResponse)
        if not reply.error:
            beats.received(now_ms=now_ms)
            return
        todo = action(self._actions, reply.error)
        if todo is Action.REDISCOVER:
            self._coordinator.lose(now_ms=now_ms)
        if todo in (Action.REDISCOVER, Action.BACK_OFF):
            beats.back_off(now_ms=now_ms)
            return
        if todo is Action.REJOIN or sent != self._core.generation:
            beats.received(now_ms=now_ms)
        if todo is Action.REJOIN and membership.state is not self._beating[0]:
            return  # the consumer is rebalancing already (PITFALLS C-47)
        membership.act_on("Heartbeat", todo, reply.error, sent, now_ms=now_ms)
