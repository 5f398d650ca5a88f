"""The waits of rounds for members to join them, divided by why the last member was late.

A round waits until all members of the group have joined it or were removed, so that the one that is last
decides how long it takes. The trace has when a member stood still, ran a callback, and sent its request to
join. It does not have when the member learned of the round, which is in its next heartbeat, nor when a batch
began. A client joins in the first poll after that heartbeat: it is late by the rest of the heartbeat
interval, and then by the rest of a batch. Time that one of the two cannot explain belongs to the other one.
The rest is unknown.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.causes import BATCH, CALLBACK, DELAY, HEARTBEAT, SESSION, START, UNKNOWN, WAITS
from rebalance_lab.traces.consumer import Consumer
from rebalance_lab.traces.timeline import ABSENCES, Change, Timeline

_LATE, _JOINING = "late", "joining"
"""The further states of a member: it has yet to send its request to join, or has sent it."""

_NOTED = (*ABSENCES, ev.MemberStarted, ev.Joined, ev.WorkStopped, ev.WorkStarted)
"""The events after which the state of a member may be another one, besides those of its client."""

_HEARTBEATS = "Heartbeat"

_TRIP_MS = 100
"""A request that takes no longer was under way. One that takes longer waited for a callback."""


class _Span(NamedTuple):
    """A time in which partitions stood still. ``partitions`` is their number."""

    from_ms: int
    until_ms: int
    partitions: int


class _Piece(NamedTuple):
    """A part of a wait: a cause or `_LATE`, of a member with batches of ``batch_ms``."""

    from_ms: int
    until_ms: int
    state: str
    batch_ms: float


@dataclass
class _Wait:
    """A wait of a round.

    ``rates`` and ``lags`` are those of consumers when it began. ``last`` is the id of the member that joined
    or was removed last. ``revokes``: whether a member gave up partitions to join.
    """

    began_ms: int
    was_empty: bool
    rates: dict[str, float]
    lags: Mapping[str, float]
    spans: list[_Span] = field(default_factory=list)
    pieces: list[_Piece] = field(default_factory=list)
    last: str = ""
    revokes: bool = False


class Waits:
    """The time for which partitions stood still while rounds waited, as an observer of a timeline.

    The states of a member, with the times since which it is in them, are kept from the beginning of a wait.
    """

    def __init__(self, timeline: Timeline, family: ProtocolSpec) -> None:
        self._now, self._family, self._joining = timeline, family, family.members_join
        self._waits: list[_Wait] = []
        self._wait: _Wait | None = None
        self._before = ""
        self._states: dict[str, list[tuple[int, str]]] = {}
        self._alive_ms = self._heartbeats = 0
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            ev.ClientStateChanged: self._client_state_changed,
            ev.Revoked: self._revoked,
            ev.MemberRemoved: self._member_removed,
            ev.RunEnded: self._run_ended,
            **dict.fromkeys(_NOTED, self._note),
        }
        timeline.after.append(self._see)

    def count(self, from_ms: int, until_ms: int, partitions: int) -> None:
        """Count partitions that stand still while the present round waits."""
        if self._wait is None:
            self._begin_wait(from_ms)
        assert self._wait is not None
        self._wait.spans.append(_Span(from_ms, until_ms, partitions))

    def begin(self) -> None:
        """Count from now on."""
        self._waits.clear()
        if self._wait is not None:
            self._wait.spans.clear()

    def finish(self) -> dict[str, int]:
        """Return the time by causes, summed over partitions, after the last event."""
        found = dict.fromkeys(WAITS, 0)
        for wait, pieces in self._divided():
            for span in wait.spans:
                for piece in pieces:
                    shared_ms = min(span.until_ms, piece.until_ms) - max(span.from_ms, piece.from_ms)
                    found[piece.state] += span.partitions * max(0, shared_ms)
        return found

    def of_rounds(self) -> dict[int, dict[str, int]]:
        """Return the time of each wait by causes, by the time at which it began, after the last event."""
        found: dict[int, dict[str, int]] = {}
        for wait, pieces in self._divided():
            own = found.setdefault(wait.began_ms, {})
            for piece in pieces:
                own[piece.state] = own.get(piece.state, 0) + piece.until_ms - piece.from_ms
        return found

    def _divided(self) -> Iterator[tuple[_Wait, list[_Piece]]]:
        if self._wait is not None:
            self._end_wait(self._wait)
        alive_ms = self._alive_ms + sum(map(self._alive_since, self._states))
        interval_ms = alive_ms / self._heartbeats if self._heartbeats else inf
        for wait in self._waits:
            yield wait, [part for piece in wait.pieces for part in _divided(piece, interval_ms)]

    # --- the events

    def _see(self, change: Change) -> None:
        event = change.event
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        if self._now.state != self._before:
            self._follow_group()

    def _client_state_changed(self, event: ev.ClientStateChanged) -> None:
        consumer = self._now.consumers.get(event.client)
        member_id = consumer.member_id if consumer is not None and event.after in self._joining else ""
        if self._wait is not None and member_id in self._now.members:
            self._wait.last = member_id
        self._note(event)

    def _revoked(self, _event: ev.Revoked) -> None:
        if self._wait is not None:
            self._wait.revokes = True

    def _member_removed(self, event: ev.MemberRemoved) -> None:
        if self._wait is not None:
            self._wait.last = event.member_id

    def _run_ended(self, event: ev.RunEnded) -> None:
        self._heartbeats = event.messages.get(_HEARTBEATS, 0)

    def _follow_group(self) -> None:
        state = self._now.state
        waits = state in self._family.round_begins
        if self._wait is not None and not waits:
            self._end_wait(self._wait)
        elif waits and self._wait is None:
            self._begin_wait(self._now.at_ms)
        self._before = state

    # --- the states of members

    def _state(self, client: str) -> str:
        consumer = self._now.consumers.get(client)
        if consumer is None or not consumer.works:
            return SESSION
        if consumer.state in self._joining:
            return _JOINING
        if not consumer.member_id:
            return START
        return CALLBACK if consumer.in_callback else _LATE

    def _note(self, event: Any) -> None:
        """Note the state of the consumer of an event. Outside of waits only the last state is kept."""
        client: str = event.client
        state, known = self._state(client), self._states.get(client)
        if known and known[-1][1] == state:
            return
        self._alive_ms += self._alive_since(client)
        kept = known if known is not None and self._wait is not None else []
        self._states[client] = [*kept, (self._now.at_ms, state)]

    def _alive_since(self, client: str) -> int:
        """Return the time for which a consumer has sent heartbeats in its present state."""
        since_ms, state = self._states.get(client, [(0, START)])[-1]
        return self._now.at_ms - since_ms if state in (_LATE, CALLBACK) else 0

    # --- waits

    def _begin_wait(self, at_ms: int) -> None:
        now = self._now
        rates = {c: sum(map(now.rate, p.owned)) for c, p in now.consumers.items() if p.batches is not None}
        self._wait = _Wait(at_ms, self._before in ("", *self._family.vacant), rates, now.lags)

    def _end_wait(self, wait: _Wait) -> None:
        self._wait = None
        wait.pieces = list(self._pieces(wait))
        self._waits.append(wait)

    def _pieces(self, wait: _Wait) -> Iterator[_Piece]:
        """Yield what the member that was last did in the wait, without gaps."""
        until_ms = self._now.at_ms
        whole = _Piece(wait.began_ms, until_ms, UNKNOWN, 0.0)
        member_id = self._pending() or wait.last
        client = self._now.client_of.get(member_id, "")
        if wait.was_empty:
            yield whole._replace(state=DELAY if self._family.initial_delay else START)
        elif not (member_id and self._joining):
            yield whole
        elif not client:
            yield whole._replace(state=START)
        elif self._has_other_id(client, member_id) and not self._now.is_static(client):
            yield whole._replace(state=SESSION)  # it has started again as another member
        else:
            yield from self._pieces_of(client, wait, until_ms)

    def _pieces_of(self, client: str, wait: _Wait, until_ms: int) -> Iterator[_Piece]:
        batch_ms = _mean_batch_ms(
            self._now.processes.get(client), wait.rates.get(client, 0.0), wait.lags.get(client, 0.0)
        )
        (_, first), *states = [(max(at_ms, wait.began_ms), state) for at_ms, state in self._states[client]]
        ends_ms = [*(at_ms for at_ms, _ in states), until_ms]
        cause = UNKNOWN
        for (from_ms, state), to_ms in zip([(wait.began_ms, first), *states], ends_ms, strict=True):
            if state != _JOINING:
                cause = state
            elif to_ms - from_ms > _TRIP_MS:
                cause = CALLBACK if wait.revokes else UNKNOWN
            yield _Piece(from_ms, to_ms, cause, batch_ms)

    def _pending(self) -> str:
        """Return the id of a member that the group still waits for, one that is absent first."""
        known = {member_id: self._now.client_of.get(member_id) for member_id in self._now.members}
        states = {
            member_id: SESSION if self._has_other_id(client, member_id) else self._state(client)
            for member_id, client in known.items()
            if client is not None
        }
        late = [member_id for member_id, state in states.items() if state != _JOINING]
        return min(late, key=lambda member_id: states[member_id] != SESSION, default="")

    def _has_other_id(self, client: str, member_id: str) -> bool:
        consumer = self._now.consumers.get(client)
        return consumer is not None and consumer.member_id != member_id


def _mean_batch_ms(process: Consumer | None, rate: float, lag: float) -> float:
    """Return the mean time of a batch at a load of ``rate`` records/s and ``lag`` records."""
    if process is None or process.batches is None or not (rate or lag >= 1):
        return 0.0
    batches, process_rate = process.batches, process.started.process_rate
    record_ms = 1_000 / process_rate if process_rate else 0.0
    overhead_ms = max(0.0, batches.batch_ms - record_ms * batches.max_poll_records)
    busy = rate * record_ms / 1_000
    steady = rate * overhead_ms / (1 - busy) / 1_000 if busy < 1 else batches.max_poll_records
    return overhead_ms + min(max(steady, lag, 1.0), batches.max_poll_records) * record_ms


def _divided(piece: _Piece, interval_ms: float) -> Iterator[_Piece]:
    """Divide the time in which a member was late. It had yet to learn of the round, then to end a batch."""
    from_ms, until_ms, state, batch_ms = piece
    if state != _LATE:
        yield piece
        return
    late_ms = until_ms - from_ms
    if not batch_ms:
        yield piece._replace(state=HEARTBEAT)
        return
    learned_ms = int(min(max(0.0, late_ms - batch_ms), interval_ms))
    in_batch_ms = int(min(max(0.0, late_ms - interval_ms), batch_ms))
    yield _Piece(from_ms, from_ms + learned_ms, HEARTBEAT, batch_ms)
    yield _Piece(from_ms + learned_ms, until_ms - in_batch_ms, UNKNOWN, batch_ms)
    yield _Piece(until_ms - in_batch_ms, until_ms, BATCH, batch_ms)
