"""Partitions and the processes that work on them, between changes from outside.

A worker shares its capacity max-min fair: the partitions that keep up take their arrival rate, and the others
have the same speed. The service of a worker is the number of records that each of these others was served
since the last change. Their positions follow from it, so that a breakpoint costs a search for the next one
and no pass over positions.
"""

from math import inf
from operator import attrgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from coordinator_core.model import TopicPartition
from rebalance_lab.simulation.process.turns import Reading, Turns

SOON_MS = 1e-6
"""Breakpoints within this time are one. It is far above rounding, and far below a millisecond."""

ROUNDING = 1e-12
"""The part of a number that may be rounding."""

MANY = 40
"""The number of partitions from which arrays are faster than lists."""

_RATE = attrgetter("rate")

T = TypeVar("T")
Column = list[float] | NDArray[np.float64]


class Flow:
    """A partition.

    ``records`` were produced until ``rated_ms``, and ``rate`` records/s since then. At the last change of its
    worker, ``produced`` records were produced, the worker was at ``position``, and the highest position of
    all workers was ``high``. ``keeps_up``: the position stays at the end. ``units`` belong to the sums over
    the partitions without a worker. ``reading``: what its last worker was reading when it gave it up with a
    backlog, if it reads in turns.
    """

    __slots__ = (
        "high",
        "keeps_up",
        "position",
        "produced",
        "rate",
        "rated_ms",
        "reading",
        "records",
        "units",
        "worker",
    )

    def __init__(self, records: float, at_ms: float) -> None:
        self.records = self.produced = records
        self.rated_ms = at_ms
        self.rate = self.position = self.high = 0.0
        self.keeps_up = False
        self.units = (0, 0)
        self.worker: Worker | None = None
        self.reading: Reading | None = None

    def end_at(self, at_ms: float) -> float:
        """Return the records produced up to a time since the last change of the rate."""
        return self.records + self.rate * ((at_ms - self.rated_ms) / 1_000)

    def position_at(self, at_ms: float, served: float) -> float:
        """Return the position at a time between the last and the next breakpoint of the worker.

        ``served``: the service of the worker at that time.
        """
        end = self.end_at(at_ms)
        return end if self.keeps_up else min(self.position + served, end)

    def high_at(self, at_ms: float) -> float:
        """Return the highest position of all workers at such a time."""
        if self.worker is None:
            return max(self.high, self.position)
        return max(self.high, self.position_at(at_ms, self.worker.served_at(at_ms)))

    def settle(self, now_ms: float, served: float) -> None:
        """Note the position of a time, from which it can change. ``served``: the service of its worker."""
        position = self.produced = self.end_at(now_ms)
        if not self.keeps_up:
            position = min(self.position + served, position)
        self.position = position
        if position > self.high:
            self.high = position

    def set_rate(self, rate: float, now_ms: float) -> None:
        """Set the records/s from now on."""
        self.records, self.rated_ms, self.rate = self.end_at(now_ms), now_ms, rate


class _Behind:
    """The partitions of a worker that do not keep up, since the last change of the worker.

    Partition i has a backlog of ``backlogs[i] + rates[i] * seconds - served``. ``repeats`` are the values of
    ``served`` at which repeated work is done, in descending order. ``arrival`` are the records/s produced.
    """

    __slots__ = ("_backlogs", "_due", "_due_repeats", "_flows", "_rates", "arrival", "repeats")

    def __init__(self, flows: list[Flow]) -> None:
        self._flows = flows
        backlogs, rates = [flow.produced - flow.position for flow in flows], [flow.rate for flow in flows]
        many = len(flows) >= MANY
        self._backlogs: Column = np.array(backlogs) if many else backlogs
        self._rates: Column = np.array(rates) if many else rates
        self.arrival = sum(rates)
        self.repeats = sorted([f.high - f.position for f in flows if f.position < f.high], reverse=True)
        self._due: list[int] = []
        self._due_repeats = 0

    def __len__(self) -> int:
        return len(self._flows)

    def next_seconds(self, seconds: float, served: float, speed: float) -> float:
        """Find the next breakpoints after a time since the change. Return the time until then, or inf."""
        times = self._seconds_to_end(seconds, served, speed)
        first = float(times.min()) if isinstance(times, np.ndarray) else min(times)
        if self.repeats:
            first = min(first, (self.repeats[-1] - served) / speed)
        first = max(first, 0.0)
        soon = first + SOON_MS / 1_000
        if first == inf:
            self._due = []
        elif isinstance(times, np.ndarray):
            self._due = np.flatnonzero(times <= soon).tolist()
        else:
            self._due = [i for i, time in enumerate(times) if time <= soon]
        self._due_repeats = 0
        for end in reversed(self.repeats):
            if (end - served) / speed > soon:
                break
            self._due_repeats += 1
        return first

    def _seconds_to_end(self, seconds: float, served: float, speed: float) -> Column:
        """Return the time until each backlog is empty; inf if it grows."""
        backlogs, rates = self._backlogs, self._rates
        if isinstance(backlogs, np.ndarray):
            rates = np.asarray(rates)
            times = np.full(len(rates), inf)
            np.divide(backlogs + rates * seconds - served, speed - rates, out=times, where=rates < speed)
            return times
        return [
            (backlog + rate * seconds - served) / (speed - rate) if rate < speed else inf
            for backlog, rate in zip(backlogs, rates, strict=True)
        ]

    def pass_breakpoints(self) -> list[Flow]:
        """End what is due at the next breakpoint. Return the partitions whose backlog became empty."""
        emptied = [self._flows[i] for i in self._due]
        self._flows = _without(self._flows, self._due)
        if isinstance(self._backlogs, np.ndarray):
            self._backlogs = np.delete(self._backlogs, self._due)
            self._rates = np.delete(self._rates, self._due)
        else:
            self._backlogs = _without(self._backlogs, self._due)
            self._rates = _without(list(self._rates), self._due)
        for flow in emptied:
            self.arrival -= flow.rate
        if self._due_repeats:
            del self.repeats[-self._due_repeats :]
        return emptied


def _without(column: list[T], places: list[int]) -> list[T]:
    for place in reversed(places):
        del column[place]
    return column


class Work(NamedTuple):
    """The records that wait for a worker, since when some wait, and the records/s that arrive."""

    waiting: float
    since_ms: float
    rate: float


class Worker:
    """A process that handles records.

    ``process_rate`` is in records/s; inf means unlimited. ``behind_ms`` is the time since which it has a
    backlog, or None. ``at_ms`` is the time of its last change or breakpoint, ``next_ms`` that of the next
    breakpoint. ``rate`` are the records/s that arrive. ``lag_slope`` is the growth of the lag in records/s,
    and ``repeats`` the records/s that are handled again. ``turns``: how it reads, if one partition at a time.
    """

    __slots__ = (
        "_behind",
        "_changed_ms",
        "_lag",
        "_left",
        "_served",
        "_speed",
        "_waiting",
        "_waiting_slope",
        "at_ms",
        "behind_ms",
        "flows",
        "lag_slope",
        "name",
        "next_ms",
        "process_rate",
        "rate",
        "repeats",
        "turns",
        "working",
    )

    def __init__(self, name: str, process_rate: float, turns: Turns | None = None) -> None:
        self.name, self.process_rate, self.turns = name, process_rate, turns
        self.flows: dict[TopicPartition, Flow] = {}
        self.working = True
        self.behind_ms: float | None = None
        self.at_ms = self._changed_ms = self.rate = 0.0
        self._served = self._speed = self._left = 0.0
        self._behind: _Behind | None = None
        self._rest()

    def _rest(self) -> None:
        """Note that all partitions keep up."""
        self._behind = None
        self._lag = self.lag_slope = self._waiting = self._waiting_slope = self.repeats = 0.0
        self.next_ms = inf

    @property
    def has_backlog(self) -> bool:
        """Whether a partition does not keep up."""
        return self._behind is not None

    @property
    def keeps_up(self) -> bool:
        """Whether it works, and all its partitions keep up."""
        return self._behind is None and self.working

    @property
    def is_late(self) -> bool:
        """Whether it has or gets a lag, or repeats work."""
        return bool(self._lag or self.lag_slope or self.repeats)

    def served_at(self, at_ms: float) -> float:
        """Return the service of each partition that does not keep up, at a time up to the next breakpoint."""
        return self._served + self._speed * ((at_ms - self.at_ms) / 1_000)

    def lag_at(self, at_ms: float) -> float:
        """Return the lag at such a time."""
        return max(0.0, self._lag + self.lag_slope * ((at_ms - self.at_ms) / 1_000))

    def _waiting_at(self, at_ms: float) -> float:
        """Return the records that wait at such a time."""
        return max(0.0, self._waiting + self._waiting_slope * ((at_ms - self.at_ms) / 1_000))

    def work_at(self, at_ms: float) -> Work:
        """Return the work at such a time."""
        since_ms = at_ms if self.behind_ms is None else self.behind_ms
        return Work(self._waiting_at(at_ms), since_ms, self.rate)

    def can_keep_up(self) -> bool:
        """Return whether it keeps up with other rates. If so, note their sum."""
        if not self.keeps_up:
            return False
        rate = sum(flow.rate for flow in self.flows.values())
        if rate > self.process_rate * (1 + ROUNDING):
            return False
        self.rate = rate
        return True

    def settle(self, now_ms: float) -> None:
        """Note the positions of a time, from which they can change."""
        served = self.served_at(now_ms)
        for flow in self.flows.values():
            flow.settle(now_ms, served)
        self.at_ms = now_ms

    def share_out(self) -> None:
        """Divide the capacity, max-min fair, after a change."""
        flows = list(self.flows.values())
        self.rate = sum([flow.rate for flow in flows])
        self._changed_ms, self._served = self.at_ms, 0.0
        has_backlog = bool([flow for flow in flows if flow.position < flow.produced])
        self._rest()
        behind: list[Flow] = []
        if has_backlog or not self.working or self.rate > self.process_rate * (1 + ROUNDING):
            self._let_keep_up(flows)
            behind = [flow for flow in flows if not flow.keeps_up]
        else:
            for flow in flows:
                flow.keeps_up = True
        if behind:
            self._behind = _Behind(behind)
            self._lag = sum([flow.produced - flow.high for flow in behind])
            self._waiting = sum([flow.produced - flow.position for flow in behind])
            self._set_speed()
        self._note_backlog(has_backlog)

    def _let_keep_up(self, flows: list[Flow]) -> None:
        """Give each partition without a backlog its rate, if an even share allows."""
        for flow in flows:
            flow.keeps_up = False
        self._left = self.process_rate if self.working else 0.0
        if not self.working:
            return
        sharing = len(flows)
        for flow in sorted([f for f in flows if f.position >= f.produced], key=_RATE):
            if flow.rate * sharing > self._left * (1 + ROUNDING):
                break
            flow.keeps_up = True
            self._left -= flow.rate
            sharing -= 1

    def pass_breakpoint(self) -> None:
        """Advance to the next breakpoint and pass it."""
        now_ms, behind = self.next_ms, self._behind
        if behind is None:
            return
        self._lag, self._waiting = self.lag_at(now_ms), self._waiting_at(now_ms)
        self._served, self.at_ms = self.served_at(now_ms), now_ms
        for flow in behind.pass_breakpoints():
            flow.keeps_up = True
            self._left -= flow.rate
        has_backlog = bool(behind)
        if has_backlog:
            self._set_speed()
        else:
            self._rest()
        self._note_backlog(has_backlog)

    def _set_speed(self) -> None:
        """Divide what is left of the capacity evenly, and find the next breakpoint."""
        behind = self._behind
        if behind is None:
            return
        count, repeating = len(behind), len(behind.repeats)
        speed = self._speed = max(self._left, 0.0) / count
        self.lag_slope = behind.arrival - (count - repeating) * speed
        self._waiting_slope = behind.arrival - count * speed
        self.repeats = repeating * speed
        seconds = (self.at_ms - self._changed_ms) / 1_000
        next_seconds = behind.next_seconds(seconds, self._served, speed) if speed else inf
        self.next_ms = self.at_ms + next_seconds * 1_000

    def _note_backlog(self, has_backlog: bool) -> None:
        """Note whether records wait, and since when."""
        if not has_backlog:
            self.behind_ms = None
        elif self.behind_ms is None:
            self.behind_ms = self.at_ms

    def catch_up(self) -> tuple[float, float]:
        """Handle the whole backlog at once. Return the records handled again, and the lag that is gone."""
        again = lag = 0.0
        for flow in self.flows.values():
            again += flow.high - flow.position
            lag += flow.produced - flow.high
            flow.position = flow.high = flow.produced
        return again, lag
