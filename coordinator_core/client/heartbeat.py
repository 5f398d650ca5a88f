"""Heartbeats to a group coordinator, as long as the application polls often enough (PROTOCOL 9.9)."""

from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Generic, TypeVar

from coordinator_core.client.beats import Beats, Heartbeats
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import Action, action
from coordinator_core.client.generation import Generation
from coordinator_core.client.membership import Membership
from coordinator_core.client.requests import NEVER, Failure, Reply
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import HeartbeatRequest, HeartbeatResponse

State = TypeVar("State", bound=Enum)


class Heartbeat(Generic[State]):
    """Sends heartbeats between polls, in some ``states`` of the member, the stable one first."""

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        membership: Membership[State],
        states: tuple[State, ...],
        actions: Mapping[ErrorCode, Action],
    ) -> None:
        self._core, self._coordinator, self._membership = core, coordinator, membership
        self._states, self._actions = states, actions
        self.beats = Beats(core, core.config.heartbeat_interval_ms)
        self._named: Generation | None = None
        self._kept: HeartbeatRequest | None = None
        """The request of the generation `_named`."""

    def periodic(self) -> Heartbeats | None:
        """Return the heartbeats of a stable member, or None."""
        if self._membership.state is not self._states[0]:
            return None
        return Heartbeats(self._request(), self.beats, until_ms=self._membership.rejoin_at_ms)

    def on_deadline(self, *, now_ms: int) -> None:
        """Lose the coordinator after the session, leave after a missed poll, or send a heartbeat.

        All three need a coordinator. A member whose coordinator is unknown leaves when it is found.
        """
        beats, node = self.beats, self._coordinator.node
        if self._membership.state not in self._states or node is None:
            return
        if now_ms >= beats.expires_ms:
            self._coordinator.lose(now_ms=now_ms)
        elif now_ms >= beats.missed_ms:
            self._membership.leave("max.poll.interval.ms has passed without a poll", now_ms=now_ms)
        elif now_ms >= beats.due_ms and not beats.is_waiting:
            beats.is_waiting = True
            beats.begin_interval(now_ms)
            answered = partial(self._on_reply, self._core.generation)
            self._core.send(node, self._request(), answered, now_ms=now_ms)

    def next_deadline_ms(self) -> int:
        """Return the time at which the first timer expires, or `NEVER` without a group or a coordinator."""
        if self._membership.state not in self._states or self._coordinator.node is None:
            return NEVER
        beats = self.beats
        first_ms = min(beats.missed_ms, beats.expires_ms)
        return first_ms if beats.is_waiting or first_ms < beats.due_ms else beats.due_ms

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

    def _on_reply(self, sent: Generation, reply: Reply, now_ms: int) -> None:
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
        if todo is Action.REJOIN and membership.state is not self._states[0]:
            return  # the consumer is rebalancing already (PITFALLS C-47)
        membership.act_on("Heartbeat", todo, reply.error, sent, now_ms=now_ms)
