"""The trace of a run of real clients, in the events of a simulated run.

The broker reports the states of the group. The members' lines have when the listener was called, and when the
application handled records. A member that owns partitions works on them while it handles
a batch, whatever partition the records are of.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from math import inf
from typing import TypeAlias

from coordinator_core.families.migration import MIGRATION
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.trace import Trace
from tests.calibration.actions import Action
from tests.calibration.lines import Line, Observed

Timed: TypeAlias = tuple[float, ev.Event]


def trace_of(observed: Observed, name: str, strategy: str) -> Trace:
    """Return the trace of a run."""
    group = [
        (at, ev.GroupStateChanged(group="", before="", after=state, generation=0))
        for at, state in observed.states
    ]
    (topic,) = observed.topics
    members = [
        _events(topic, member, _lives(lines, observed.actions, member, observed.duration))
        for member, lines in sorted(observed.lines.items())
    ]
    changes = [
        (action.at, ev.Changed(kind=action.kind, target=action.member))
        for action in observed.actions
        if action.kind != "start"
    ]
    duration_ms = round(observed.duration * 1_000)
    inside = [
        ev.TraceEvent(max(0, round(at * 1_000)), event)
        for at, event in merge(changes, group, *members, key=lambda timed: timed[0])
        if at <= observed.duration
    ]
    started = ev.RunStarted(
        scenario=name,
        strategy=strategy,
        seed=0,
        duration_ms=duration_ms,
        topics=observed.topics,
        protocol=MIGRATION.name if any(action.protocol for action in observed.actions) else "",
    )
    again = ev.LagMeasured(
        lag=0.0,
        max_lag=0.0,
        lag_record_seconds=0.0,
        duplicates=float(handled_again(observed)),
        by_client={},
    )
    ended = ev.RunEnded(group_state="", generation=0, messages={})
    return Trace(
        (
            ev.TraceEvent(0, started),
            *inside,
            ev.TraceEvent(duration_ms, again),
            ev.TraceEvent(duration_ms, ended),
        )
    )


# --- a member's lines


@dataclass
class _Life:
    """The lines of one process of a member, with the times of what was done to it."""

    lines: list[Line]
    end: float
    how: str
    frozen: list[tuple[float, str]] = field(default_factory=list)


def _lives(lines: Sequence[Line], actions: Sequence[Action], member: str, duration: float) -> list[_Life]:
    """Divide the lines of a member by its processes."""
    mine = [action for action in actions if action.member == member]
    starts = [(i, action) for i, action in enumerate(mine) if action.do == "go"]
    lives = []
    for n, (i, start) in enumerate(starts):
        until = starts[n + 1][0] if n + 1 < len(starts) else len(mine)
        rest = mine[i + 1 : until]
        bound = mine[until].at if until < len(mine) else duration
        begin = -inf if start.kind == "start" else start.at
        own = [line for line in lines if begin <= line[0] <= bound]
        killed = [action.at for action in rest if action.do == "kill"]
        closing = [at for at, event, _ in own if event == "closing"]
        end, how = min(
            [(at, "crashed") for at in killed] + [(at, "closed") for at in closing],
            default=(duration, ""),
        )
        frozen = [(action.at, action.do) for action in rest if action.do in ("freeze", "thaw")]
        own = [line for line in own if line[0] <= end]
        lives.append(_Life(own, end, how, frozen))
    return lives


def _events(topic: str, member: str, lives: Sequence[_Life]) -> list[Timed]:
    """Return the events of a member in order of time."""
    events = []
    for life in lives:
        frozen = [
            (at, (ev.MemberPaused if do == "freeze" else ev.MemberResumed)(client=member))
            for at, do in life.frozen
            if at <= life.end
        ]
        events += merge(frozen, _Fold(topic, member, life).events(), key=lambda timed: timed[0])
    return events


class _Fold:
    """The partitions and the work of one process."""

    def __init__(self, topic: str, member: str, life: _Life) -> None:
        self._topic, self._member, self._life = topic, member, life
        self._owned: set[int] = set()
        self._handling = False
        self._stopped: set[int] = set()

    def events(self) -> Iterator[Timed]:
        for at, event, values in self._life.lines:
            match event:
                case "started":
                    yield (
                        at,
                        ev.MemberStarted(
                            client=self._member, instance_id=None, topics=[self._topic], process_rate=None
                        ),
                    )
                case "revoked" | "lost":
                    yield from self._gave_up(at, event, values[0])
                case "assigned":
                    yield from self._took(at, values[0])
                case "polled":
                    yield from self._works(at)
                case "handled":
                    yield from self._rests(at)
        if self._life.how:
            yield self._life.end, ev.MemberStopped(client=self._member, how=self._life.how)

    def _gave_up(self, at: float, event: str, partitions: Sequence[int]) -> Iterator[Timed]:
        given_up = self._owned & set(partitions)
        if given_up:
            self._owned -= given_up
            self._stopped -= given_up
            listed = self._map(given_up)
            gone = ev.Lost if event == "lost" else ev.Revoked
            yield at, gone(client=self._member, generation=0, partitions=listed)

    def _took(self, at: float, partitions: Sequence[int]) -> Iterator[Timed]:
        added = set(partitions) - self._owned
        self._owned |= added
        yield (
            at,
            ev.Assigned(
                client=self._member, generation=0, added=self._map(added), owned=self._map(self._owned)
            ),
        )
        if not self._handling:
            yield from self._rests(at)

    def _rests(self, at: float) -> Iterator[Timed]:
        self._handling = False
        new = self._owned - self._stopped
        if new:
            self._stopped |= new
            yield at, ev.WorkStopped(client=self._member, partitions=self._map(new), why="round")

    def _works(self, at: float) -> Iterator[Timed]:
        self._handling = True
        if self._stopped:
            stopped, self._stopped = self._stopped, set()
            yield at, ev.WorkStarted(client=self._member, partitions=self._map(stopped))

    def _map(self, partitions: set[int]) -> dict[str, list[int]]:
        return {self._topic: sorted(partitions)} if partitions else {}


# --- records


def handled_again(observed: Observed) -> int:
    """Count the records that were handled more than once."""
    handled: Counter[tuple[int, int]] = Counter()
    for member, lines in observed.lines.items():
        for life in _lives(lines, observed.actions, member, observed.duration):
            for records in _handled(life, observed.duration):
                handled.update(records)
    return sum(times - 1 for times in handled.values())


def _handled(life: _Life, duration: float) -> Iterator[list[tuple[int, int]]]:
    """Yield the records of each batch that were handled, of the last one those until the process ended."""
    for i, (at, event, values) in enumerate(life.lines):
        if event != "polled":
            continue
        runs, seconds = values
        records = [(partition, offset + n) for partition, offset, count in runs for n in range(count)]
        done = any(name == "handled" for _, name, _ in life.lines[i + 1 :])
        if not done:
            worked = life.end - at - _frozen_seconds(life.frozen, at, life.end)
            records = records[: int(len(records) * min(1.0, worked / seconds))] if seconds else records
        yield records


def _frozen_seconds(frozen: Sequence[tuple[float, str]], since: float, until: float) -> float:
    total, began = 0.0, None
    for at, do in [*frozen, (until, "thaw")]:
        if do == "freeze":
            began = at
        elif began is not None:
            total += max(0.0, min(at, until) - max(began, since))
            began = None
    return total
