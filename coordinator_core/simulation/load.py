"""The fluid load: records as rates, integrated exactly between changes.

Records are produced to a partition at a rate. A worker shares its capacity over the partitions that it works
on, max-min fair (processor sharing): a partition without a backlog takes its arrival rate if an even share
allows, and the others split the rest evenly. Everything is linear between *breakpoints*: a backlog becomes
empty, or repeated work reaches the highest position. The cost grows with changes and breakpoints, not with
rates or time: at a change of a worker, each of its partitions has at most two breakpoints ahead.

A record is handled when the highest position of any worker has passed it. The lag counts the records that
are not handled. A record that is handled again is a duplicate. A record is handled as a whole: a worker that
stops drops the part that it has done. The worker that started last works on a partition; the work of a fenced
process does not count.

Positions are functions of the time since the last change or breakpoint of their worker. A question changes no
position, so that positions do not depend on how often and when somebody asks. A worker has sums over its
partitions, and `_Unowned` those of the partitions without a worker: a measure makes no pass over partitions.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import floor, inf
from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import LagMeasured

SOON_MS = 1e-6
"""Breakpoints within this time are now. It is far above rounding, and far below a millisecond."""

WHOLE = 1e-6
"""A position that is below a whole record by no more than this has handled the record: it is rounding."""

ROUNDING = 1e-12
"""The part of a number that may be rounding."""


class _Flow:
    """A partition.

    ``records`` were produced until ``rated_ms``, and ``rate`` records/s since then. At the time ``at_ms`` of
    its worker, ``produced`` records were produced, the worker was at ``position``, and the highest position
    of all workers was ``high``. ``keeps_up``: the position stays at the end. ``units``: see `_Unowned`.
    """

    __slots__ = (
        "high",
        "keeps_up",
        "position",
        "produced",
        "rate",
        "rated_ms",
        "records",
        "speed",
        "units",
        "worker",
    )

    def __init__(self, records: float, at_ms: float) -> None:
        self.records = self.produced = records
        self.rated_ms = at_ms
        self.rate = self.speed = self.position = self.high = 0.0
        self.keeps_up = False
        self.units = (0, 0)
        self.worker: Worker | None = None

    def end_at(self, at_ms: float) -> float:
        """Return the records produced up to a time since the last change of the rate."""
        return self.records + self.rate * ((at_ms - self.rated_ms) / 1_000)

    def position_at(self, at_ms: float) -> float:
        """Return the position at a time between the last and the next breakpoint of the worker."""
        if self.keeps_up:
            return self.end_at(at_ms)
        if not self.speed or self.worker is None:
            return self.position
        reached = self.position + self.speed * ((at_ms - self.worker.at_ms) / 1_000)
        return min(reached, self.end_at(at_ms))

    def stand_still(self) -> None:
        """Set the speed to 0."""
        self.speed, self.keeps_up = 0.0, False

    def set_rate(self, rate: float, now_ms: float) -> None:
        """Set the records/s from now on."""
        self.records, self.rated_ms, self.rate = self.end_at(now_ms), now_ms, rate


class Work(NamedTuple):
    """The records that wait for a worker, since when some wait, and the records/s that arrive."""

    waiting: float
    since_ms: float
    rate: float


class Worker:
    """A process that handles records.

    ``process_rate`` is in records/s; inf means unlimited. ``behind_ms`` is the time since which it has a
    backlog, or None. ``at_ms`` is the time of its last change or breakpoint, ``next_ms`` that of the next
    breakpoint. The records that wait and the lag at ``at_ms``, and their growth in records/s, are sums over
    its partitions, as are the ``rate`` of arrival and the ``repeats``, records/s that are handled again.
    """

    __slots__ = (
        "at_ms",
        "behind_ms",
        "flows",
        "lag",
        "lag_slope",
        "name",
        "next_ms",
        "process_rate",
        "rate",
        "repeats",
        "waiting",
        "waiting_slope",
        "working",
    )

    def __init__(self, name: str, process_rate: float) -> None:
        self.name, self.process_rate = name, process_rate
        self.flows: dict[TopicPartition, _Flow] = {}
        self.working = True
        self.at_ms = 0.0
        self.next_ms = inf
        self.behind_ms: float | None = None
        self._forget()

    def _forget(self) -> None:
        self.lag = self.lag_slope = self.waiting = self.waiting_slope = self.rate = self.repeats = 0.0

    @property
    def is_late(self) -> bool:
        """Whether it has or gets a lag, or repeats work."""
        return bool(self.lag or self.lag_slope or self.repeats)

    def lag_at(self, at_ms: float) -> float:
        """Return the lag at a time up to the next breakpoint."""
        return max(0.0, self.lag + self.lag_slope * ((at_ms - self.at_ms) / 1_000))

    def waiting_at(self, at_ms: float) -> float:
        """Return the records that wait at a time up to the next breakpoint."""
        return max(0.0, self.waiting + self.waiting_slope * ((at_ms - self.at_ms) / 1_000))

    def settle(self, now_ms: float) -> None:
        """Note the positions of a time, from which they can change."""
        for flow in self.flows.values():
            flow.produced = flow.end_at(now_ms)
            position = flow.position = flow.position_at(now_ms)
            if position > flow.high:
                flow.high = position
        self.at_ms = now_ms

    def share_out(self) -> None:
        """Set the speed of each flow, max-min fair, with the sums and the next breakpoint."""
        self._snap()
        flows = self.flows.values()
        rate = sum(flow.rate for flow in flows)
        behind = any(flow.position < flow.produced for flow in flows)
        self._forget()
        self.rate, self.next_ms = rate, inf
        if self.working and not behind and rate <= self.process_rate * (1 + ROUNDING):
            for flow in flows:
                flow.speed, flow.keeps_up = flow.rate, True
        else:
            self._set_speeds()
            while self._snap():
                self._set_speeds()
            self._add_up()
            behind = any(flow.position < flow.produced for flow in flows)
        if not behind:
            self.behind_ms = None
        elif self.behind_ms is None:
            self.behind_ms = self.at_ms

    def _set_speeds(self) -> None:
        flows = self.flows.values()
        for flow in flows:
            flow.stand_still()
        if not self.working:
            return
        left, sharing = self.process_rate, len(flows)
        for flow in sorted((f for f in flows if f.position >= f.produced), key=lambda f: f.rate):
            if flow.rate * sharing > left * (1 + ROUNDING):
                break
            flow.speed, flow.keeps_up = flow.rate, True
            left -= flow.rate
            sharing -= 1
        for flow in flows:
            if not flow.keeps_up:
                flow.speed = max(left, 0.0) / sharing

    def _snap(self) -> bool:
        """Join positions that are about to meet. Return whether a backlog became empty."""
        emptied = False
        for flow in self.flows.values():
            if not flow.speed or flow.position >= flow.produced:
                continue
            rounding = flow.produced * ROUNDING
            soon = flow.speed * SOON_MS / 1_000
            if flow.position < flow.high <= flow.position + soon + rounding:
                flow.position = flow.high
            closing = (flow.speed - flow.rate) * SOON_MS / 1_000
            if flow.produced <= flow.position + closing + rounding:
                flow.position = flow.high = flow.produced
                emptied = True
        return emptied

    def _add_up(self) -> None:
        """Add up what the flows do, and find the next breakpoint."""
        seconds = inf
        for flow in self.flows.values():
            rate, speed, position = flow.rate, flow.speed, flow.position
            self.lag += flow.produced - flow.high
            self.waiting += flow.produced - position
            self.waiting_slope += rate - speed
            if position < flow.high:
                self.lag_slope += rate
                self.repeats += speed
                if speed:
                    seconds = min(seconds, (flow.high - position) / speed)
            else:
                self.lag_slope += rate - speed
            if position < flow.produced and speed > rate:
                seconds = min(seconds, (flow.produced - position) / (speed - rate))
        self.next_ms = self.at_ms + seconds * 1_000

    def catch_up(self) -> tuple[float, float]:
        """Handle the whole backlog at once. Return the records handled again, and the lag that is gone."""
        again = lag = 0.0
        for flow in self.flows.values():
            again += flow.high - flow.position
            lag += flow.produced - flow.high
            flow.position = flow.high = flow.produced
        return again, lag


_UNIT = 60
"""Sums of `_Unowned` count in records / 2^60."""


class _Unowned:
    """The lag of the partitions without a worker.

    Each is a line over time, in whole units. Sums of them are exact: they do not depend on the order of
    changes, and nothing is left when the last one has found a worker.
    """

    def __init__(self) -> None:
        self._lag = self._per_ms = 0

    def add(self, flow: _Flow, now_ms: int) -> None:
        """Add a partition as it is now."""
        per_ms = _units(flow.rate / 1_000)
        flow.units = _units(flow.end_at(now_ms) - flow.high) - per_ms * now_ms, per_ms
        self._lag += flow.units[0]
        self._per_ms += per_ms

    def remove(self, flow: _Flow) -> None:
        """Remove a partition."""
        self._lag -= flow.units[0]
        self._per_ms -= flow.units[1]

    def lag_at(self, now_ms: int) -> float:
        """Return the sum of the lags."""
        return (self._lag + self._per_ms * now_ms) / (1 << _UNIT)

    @property
    def slope(self) -> float:
        """The growth of the lag in records/s."""
        return self._per_ms * 1_000 / (1 << _UNIT)


def _units(records: float) -> int:
    above, below = records.as_integer_ratio()
    return (above << _UNIT) // below


class Load:
    """All partitions and workers. Times are virtual milliseconds and never go back."""

    def __init__(self) -> None:
        self._flows: dict[TopicPartition, _Flow] = {}
        self._workers: dict[Worker, None] = {}
        self._late: dict[Worker, None] = {}
        self._unowned = _Unowned()
        self._heap: list[tuple[float, int, Worker]] = []
        self._order = 0
        self._at_ms = 0.0
        self._lag = self._slope = self._repeats = 0.0
        self._lag_max = self._lag_seconds = self._duplicates = 0.0

    def add_topic(self, topic: str, waiting: Sequence[int], *, now_ms: int) -> None:
        """Add partitions with a backlog. No further records are produced to them yet."""
        self._advance(now_ms)
        for number, records in enumerate(waiting):
            self._add(TopicPartition(topic, number), float(records), now_ms)
        self._lag_max = max(self._lag_max, self._lag)

    def _add(self, partition: TopicPartition, records: float, now_ms: int) -> _Flow:
        flow = self._flows[partition] = _Flow(records, now_ms)
        self._lag += records
        self._unowned.add(flow, now_ms)
        return flow

    def set_rates(self, topic: str, rates: Sequence[float], *, now_ms: int) -> None:
        """Set the records/s of each partition of a topic from now on. New partitions are added."""
        self._advance(now_ms)
        flows: list[_Flow] = []
        for number in range(len(rates)):
            partition = TopicPartition(topic, number)
            flows.append(self._flows.get(partition) or self._add(partition, 0.0, now_ms))
        touched = dict.fromkeys(flow.worker for flow in flows if flow.worker is not None)
        for worker in touched:
            self._take_off(worker)
        for flow, rate in zip(flows, rates, strict=True):
            if flow.worker is None:
                self._unowned.remove(flow)
                self._slope += rate - flow.rate
                flow.set_rate(rate, now_ms)
                self._unowned.add(flow, now_ms)
            else:
                flow.set_rate(rate, now_ms)
        for worker in touched:
            self._put_on(worker)

    def remove_topic(self, topic: str, *, now_ms: int) -> None:
        """Remove the partitions of a topic. The records that wait in them are no lag any longer."""
        partitions = [p for p in self._flows if p.topic == topic]
        self._release_all(partitions, now_ms=now_ms)
        self._advance(now_ms)
        for partition in partitions:
            flow = self._flows.pop(partition)
            self._unowned.remove(flow)
            self._slope -= flow.rate
            self._lag -= flow.end_at(now_ms) - flow.high

    def add_worker(self, name: str, process_rate: float) -> Worker:
        """Return a new worker."""
        worker = Worker(name, process_rate)
        self._workers[worker] = None
        return worker

    def remove_worker(self, worker: Worker, *, now_ms: int) -> None:
        """Remove a worker. Its partitions stand still."""
        self.release(worker, list(worker.flows), now_ms=now_ms)
        self._workers.pop(worker, None)

    def set_working(self, worker: Worker, working: bool, *, now_ms: int) -> None:
        """Stop or continue a worker. It keeps its partitions and positions."""
        if worker.working != working:
            self._advance(now_ms)
            self._take_off(worker)
            worker.working = working
            self._put_on(worker)

    def start(self, worker: Worker, offsets: Mapping[TopicPartition, int], *, now_ms: int) -> None:
        """Let a worker work on partitions from these offsets on, in place of their last worker.

        Partitions that do not exist are left out.
        """
        offsets = {partition: offset for partition, offset in offsets.items() if partition in self._flows}
        self._release_all(offsets, now_ms=now_ms)
        self._advance(now_ms)
        self._take_off(worker)
        for partition, offset in offsets.items():
            flow = self._flows[partition]
            self._unowned.remove(flow)
            self._slope -= flow.rate
            flow.produced = flow.end_at(now_ms)
            flow.position = min(float(offset), flow.produced)
            if flow.position > flow.high:  # skipped records do not count as lag
                self._lag -= flow.position - flow.high
                flow.high = flow.position
            flow.worker = worker
            worker.flows[partition] = flow
        self._put_on(worker)

    def release(self, worker: Worker, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Let a worker stop its work on partitions. Partitions of other workers are not affected."""
        held = [p for p in partitions if p in worker.flows]
        if not held:
            return
        self._advance(now_ms)
        self._take_off(worker)
        for partition in held:
            flow = worker.flows.pop(partition)
            whole = float(floor(flow.position + WHOLE))
            if flow.high == flow.position and whole < flow.high:
                self._lag += flow.high - whole
                flow.high = whole
            flow.position, flow.worker = min(whole, flow.produced), None
            flow.stand_still()
            self._slope += flow.rate
            self._unowned.add(flow, now_ms)
        self._lag_max = max(self._lag_max, self._lag)
        self._put_on(worker)

    def _release_all(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Let the workers of partitions stop their work on them."""
        held: dict[Worker, list[TopicPartition]] = {}
        for partition in partitions:
            worker = self._flows[partition].worker
            if worker is not None:
                held.setdefault(worker, []).append(partition)
        for worker, listed in held.items():
            self.release(worker, listed, now_ms=now_ms)

    def handle_again(self, records: int) -> None:
        """Count records that a worker handles after another one has taken over their partitions."""
        self._duplicates += records

    def position(
        self, worker: Worker, partition: TopicPartition, *, now_ms: int, ahead_ms: int = 0
    ) -> int | None:
        """Return the offset to commit, or None if the worker does not work on the partition.

        With ``ahead_ms`` it is the offset that the worker reaches after that time, at its present speed.
        """
        flow = worker.flows.get(partition)
        if flow is None:
            return None
        self._pass_breakpoints(now_ms)
        position = flow.position_at(now_ms)
        if ahead_ms:
            position = min(position + flow.speed * ahead_ms / 1_000, flow.end_at(now_ms))
        return floor(position + WHOLE)

    def position_at(self, partition: TopicPartition, *, at_ms: float) -> int | None:
        """Return the offset to commit at a time in the present stretch of the partition's worker.

        The load does not advance. The stretch lasts from the last change or breakpoint of the worker to
        `next_breakpoint_ms`. The result is None if no worker works on the partition.
        """
        flow = self._flows.get(partition)
        if flow is None or flow.worker is None:
            return None
        return floor(flow.position_at(at_ms) + WHOLE)

    def next_breakpoint_ms(self, worker: Worker, *, now_ms: int) -> float:
        """Return the next time at which a backlog is empty or repeated work is done; inf if none is."""
        self._pass_breakpoints(now_ms)
        return worker.next_ms

    def work(self, worker: Worker, *, now_ms: int) -> Work:
        """Return the work of a worker at a time."""
        self._pass_breakpoints(now_ms)
        since_ms = now_ms if worker.behind_ms is None else worker.behind_ms
        return Work(worker.waiting_at(now_ms), since_ms, worker.rate)

    def end_offset(self, partition: TopicPartition, *, now_ms: int) -> int | None:
        """Return the offset of the next record to be produced, or None if the partition is unknown."""
        flow = self._flows.get(partition)
        return None if flow is None else floor(flow.end_at(now_ms) + WHOLE)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions."""
        return list(self._flows)

    def seen(
        self, partitions: Iterable[TopicPartition], *, now_ms: int
    ) -> dict[TopicPartition, tuple[float, float, float]]:
        """Return the records produced so far, the lag and the records/s of each known partition."""
        self._pass_breakpoints(now_ms)
        found: dict[TopicPartition, tuple[float, float, float]] = {}
        for partition in partitions:
            flow = self._flows.get(partition)
            if flow is not None:
                end = flow.end_at(now_ms)
                found[partition] = end, end - max(flow.high, flow.position_at(now_ms)), flow.rate
        return found

    def measure(self, *, now_ms: int) -> LagMeasured:
        """Return the load now and since the last measure, and begin the next one."""
        self._advance(now_ms)
        by_client = dict.fromkeys((worker.name for worker in self._workers), 0.0)
        lag, slope, repeats = self._unowned.lag_at(now_ms), self._unowned.slope, 0.0
        for worker in self._late:
            own = worker.lag_at(now_ms)
            by_client[worker.name] += own
            lag += own
            slope += worker.lag_slope
            repeats += worker.repeats
        measured = LagMeasured(
            lag=_rounded(lag),
            max_lag=_rounded(max(self._lag_max, lag)),
            lag_record_seconds=_rounded(self._lag_seconds),
            duplicates=_rounded(self._duplicates),
            by_client={name: _rounded(own) for name, own in by_client.items()},
        )
        self._lag, self._slope, self._repeats = lag, slope, repeats
        self._lag_max, self._lag_seconds, self._duplicates = lag, 0.0, 0.0
        return measured

    def _advance(self, now_ms: float) -> None:
        """Pass all breakpoints up to a time, and integrate the lag up to it, before a change or a measure."""
        self._pass_breakpoints(now_ms)
        self._integrate(now_ms)

    def _pass_breakpoints(self, now_ms: float) -> None:
        while self._heap and self._heap[0][0] <= now_ms:
            at_ms, _, worker = heappop(self._heap)
            if at_ms == worker.next_ms:
                self._integrate(at_ms)
                self._take_off(worker)
                self._put_on(worker)

    def _integrate(self, now_ms: float) -> None:
        seconds = (now_ms - self._at_ms) / 1_000
        if seconds <= 0:
            return
        self._lag_seconds += self._lag * seconds + self._slope * seconds * seconds / 2
        self._duplicates += self._repeats * seconds
        self._lag += self._slope * seconds
        self._lag_max = max(self._lag_max, self._lag)
        self._at_ms = now_ms

    def _take_off(self, worker: Worker) -> None:
        """Settle the flows of a worker now and take them out of the slope, so that they can change."""
        self._slope -= worker.lag_slope
        self._repeats -= worker.repeats
        worker.settle(self._at_ms)

    def _put_on(self, worker: Worker) -> None:
        """Divide a worker's rate again, put its flows back into the slope and schedule its breakpoint."""
        if worker.process_rate == inf and worker.working:
            again, lag = worker.catch_up()
            self._duplicates += again
            self._lag -= lag
        worker.share_out()
        if worker.is_late:
            self._late[worker] = None
        else:
            self._late.pop(worker, None)
        self._slope += worker.lag_slope
        self._repeats += worker.repeats
        if worker.next_ms < inf:
            self._order += 1
            heappush(self._heap, (worker.next_ms, self._order, worker))


def _rounded(value: float) -> float:
    """Return a value with six decimals, as the rest is rounding."""
    return round(value, 6) + 0.0
