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


class _Flow:
    """A partition as of ``at_ms``: records produced, position of its worker, and highest position of all."""

    __slots__ = ("at_ms", "high", "position", "produced", "rate", "speed", "worker")

    def __init__(self, at_ms: float) -> None:
        self.at_ms = at_ms
        self.rate = self.speed = 0.0
        self.produced = self.position = self.high = 0.0
        self.worker: Worker | None = None

    def advance(self, now_ms: float) -> float:
        """Advance to a time at or before the next breakpoint. Return the records handled again meanwhile."""
        if now_ms <= self.at_ms:
            return 0.0
        seconds = (now_ms - self.at_ms) / 1_000
        self.at_ms = now_ms
        kept_up = self.position >= self.produced and self.speed == self.rate
        self.produced += self.rate * seconds
        if not self.speed:
            return 0.0
        before = self.position
        self.position = self.produced if kept_up else min(before + self.speed * seconds, self.produced)
        again = self.position - before if before < self.high else 0.0
        self.high = max(self.high, self.position)
        return again

    def lag_slope(self) -> float:
        """Return the growth of the lag in records/s."""
        return self.rate if self.position < self.high else self.rate - self.speed


class Work(NamedTuple):
    """The records that wait for a worker, since when some wait, and the records/s that arrive."""

    waiting: float
    since_ms: float
    rate: float


class Worker:
    """A process that handles records.

    ``process_rate`` is in records/s; inf means unlimited. ``behind_ms`` is the time since which it has a
    backlog, or None.
    """

    __slots__ = ("behind_ms", "flows", "lag_slope", "name", "next_ms", "process_rate", "working")

    def __init__(self, name: str, process_rate: float) -> None:
        self.name, self.process_rate = name, process_rate
        self.flows: dict[TopicPartition, _Flow] = {}
        self.working = True
        self.next_ms = inf
        self.lag_slope = 0.0
        self.behind_ms: float | None = None

    def share_out(self) -> None:
        """Set the speed of each flow, max-min fair."""
        flows = self.flows.values()
        if not self.working:
            for flow in flows:
                flow.speed = 0.0
            return
        left, sharing = self.process_rate, len(flows)
        keeping_up = sorted((f for f in flows if f.position >= f.produced), key=lambda f: f.rate)
        content: set[int] = set()
        for flow in keeping_up:
            if flow.rate * sharing > left * (1 + 1e-12):
                break
            flow.speed = flow.rate
            content.add(id(flow))
            left -= flow.rate
            sharing -= 1
        for flow in flows:
            if id(flow) not in content:
                flow.speed = max(left, 0.0) / sharing

    def note_backlog(self, now_ms: float) -> None:
        """Note whether records wait, and since when."""
        behind = any(flow.position < flow.produced for flow in self.flows.values())
        if not behind:
            self.behind_ms = None
        elif self.behind_ms is None:
            self.behind_ms = now_ms

    def next_breakpoint_ms(self, now_ms: float) -> float:
        """Return the first time at which a backlog is empty or repeated work is done."""
        first = inf
        for flow in self.flows.values():
            if not flow.speed:
                continue
            if flow.position < flow.high:
                first = min(first, (flow.high - flow.position) / flow.speed)
            if flow.position < flow.produced and flow.speed > flow.rate:
                first = min(first, (flow.produced - flow.position) / (flow.speed - flow.rate))
        return now_ms + first * 1_000

    def snap(self) -> bool:
        """Join positions that are about to meet. Return whether a backlog became empty."""
        emptied = False
        for flow in self.flows.values():
            if not flow.speed:
                continue
            rounding = flow.produced * 1e-12
            soon = flow.speed * SOON_MS / 1_000
            if flow.position < flow.high <= flow.position + soon + rounding:
                flow.position = flow.high
            closing = (flow.speed - flow.rate) * SOON_MS / 1_000
            if flow.position < flow.produced and flow.produced <= flow.position + closing + rounding:
                flow.position = flow.produced
                flow.high = max(flow.high, flow.position)
                emptied = True
        return emptied


class Load:
    """All partitions and workers. Times are virtual milliseconds and never go back."""

    def __init__(self) -> None:
        self._flows: dict[TopicPartition, _Flow] = {}
        self._workers: list[Worker] = []
        self._heap: list[tuple[float, int, Worker]] = []
        self._order = 0
        self._at_ms = 0.0
        self._lag = self._slope = 0.0
        self._lag_max = self._lag_seconds = self._duplicates = 0.0

    def add_topic(self, topic: str, waiting: Sequence[int], *, now_ms: int) -> None:
        """Add partitions with a backlog. No further records are produced to them yet."""
        self._advance(now_ms)
        for number, records in enumerate(waiting):
            flow = self._flows[TopicPartition(topic, number)] = _Flow(now_ms)
            flow.produced = float(records)
            self._lag += records
        self._lag_max = max(self._lag_max, self._lag)

    def set_rates(self, topic: str, rates: Sequence[float], *, now_ms: int) -> None:
        """Set the records/s of each partition of a topic from now on. New partitions are added."""
        self._advance(now_ms)
        touched: dict[int, Worker] = {}
        for number in range(len(rates)):
            flow = self._flows.setdefault(TopicPartition(topic, number), _Flow(now_ms))
            if flow.worker is not None:
                touched[id(flow.worker)] = flow.worker
        for worker in touched.values():
            self._take_off(worker)
        for number, rate in enumerate(rates):
            flow = self._flows[TopicPartition(topic, number)]
            if flow.worker is None:
                self._duplicates += flow.advance(now_ms)
                self._slope += rate - flow.rate
            flow.rate = rate
        for worker in touched.values():
            self._put_on(worker)

    def remove_topic(self, topic: str, *, now_ms: int) -> None:
        """Remove the partitions of a topic. The records that wait in them are no lag any longer."""
        for partition in [p for p in self._flows if p.topic == topic]:
            worker = self._flows[partition].worker
            if worker is not None:
                self.release(worker, [partition], now_ms=now_ms)
            self._advance(now_ms)
            flow = self._flows.pop(partition)
            self._duplicates += flow.advance(now_ms)
            self._slope -= flow.rate
            self._lag -= flow.produced - flow.high

    def add_worker(self, name: str, process_rate: float) -> Worker:
        """Return a new worker."""
        worker = Worker(name, process_rate)
        self._workers.append(worker)
        return worker

    def remove_worker(self, worker: Worker, *, now_ms: int) -> None:
        """Remove a worker. Its partitions stand still."""
        self.release(worker, list(worker.flows), now_ms=now_ms)
        self._workers = [w for w in self._workers if w is not worker]

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
        others: dict[int, list[TopicPartition]] = {}
        owners: dict[int, Worker] = {}
        for partition in offsets:
            owner = self._flows[partition].worker
            if owner is not None:
                owners[id(owner)] = owner
                others.setdefault(id(owner), []).append(partition)
        for key, taken in others.items():
            self.release(owners[key], taken, now_ms=now_ms)
        self._advance(now_ms)
        self._take_off(worker)
        for partition, offset in offsets.items():
            flow = self._flows[partition]
            self._duplicates += flow.advance(now_ms)
            self._slope -= flow.rate
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
            flow.position, flow.speed, flow.worker = min(whole, flow.produced), 0.0, None
            self._slope += flow.rate
        self._lag_max = max(self._lag_max, self._lag)
        self._put_on(worker)

    def position(
        self, worker: Worker, partition: TopicPartition, *, now_ms: int, ahead_ms: int = 0
    ) -> int | None:
        """Return the offset to commit, or None if the worker does not work on the partition.

        With ``ahead_ms`` it is the offset that the worker reaches after that time, at its present speed.
        """
        flow = worker.flows.get(partition)
        if flow is None:
            return None
        self._advance(now_ms)
        self._duplicates += flow.advance(now_ms)
        reached = min(flow.position + flow.speed * ahead_ms / 1_000, flow.produced)
        return floor(reached + WHOLE)

    def work(self, worker: Worker, *, now_ms: int) -> Work:
        """Return the work of a worker at a time."""
        self._advance(now_ms)
        waiting = rate = 0.0
        for flow in worker.flows.values():
            self._duplicates += flow.advance(now_ms)
            waiting += flow.produced - flow.position
            rate += flow.rate
        return Work(waiting, self._at_ms if worker.behind_ms is None else worker.behind_ms, rate)

    def end_offset(self, partition: TopicPartition, *, now_ms: int) -> int | None:
        """Return the offset of the next record to be produced, or None if the partition is unknown."""
        flow = self._flows.get(partition)
        if flow is None:
            return None
        return floor(flow.produced + flow.rate * (now_ms - flow.at_ms) / 1_000 + WHOLE)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions."""
        return list(self._flows)

    def seen(
        self, partitions: Iterable[TopicPartition], *, now_ms: int
    ) -> dict[TopicPartition, tuple[float, float, float]]:
        """Return the records produced so far, the lag and the records/s of each known partition."""
        self._advance(now_ms)
        found: dict[TopicPartition, tuple[float, float, float]] = {}
        for partition in partitions:
            flow = self._flows.get(partition)
            if flow is not None:
                self._duplicates += flow.advance(now_ms)
                found[partition] = flow.produced, flow.produced - flow.high, flow.rate
        return found

    def measure(self, *, now_ms: int) -> LagMeasured:
        """Return the load now and since the last measure, and begin the next one."""
        self._advance(now_ms)
        for flow in self._flows.values():
            self._duplicates += flow.advance(now_ms)
        lag = sum(flow.produced - flow.high for flow in self._flows.values())
        by_client: dict[str, float] = {}
        for worker in self._workers:
            own = sum(flow.produced - flow.high for flow in worker.flows.values())
            by_client[worker.name] = by_client.get(worker.name, 0.0) + own
        self._lag = lag
        self._slope = sum(worker.lag_slope for worker in self._workers)
        self._slope += sum(flow.rate for flow in self._flows.values() if flow.worker is None)
        measured = LagMeasured(
            lag=_rounded(lag),
            max_lag=_rounded(max(self._lag_max, lag)),
            lag_record_seconds=_rounded(self._lag_seconds),
            duplicates=_rounded(self._duplicates),
            by_client={name: _rounded(own) for name, own in by_client.items()},
        )
        self._lag_max, self._lag_seconds, self._duplicates = lag, 0.0, 0.0
        return measured

    def _advance(self, now_ms: float) -> None:
        """Pass all breakpoints up to a time, in order, and integrate the lag."""
        while self._heap and self._heap[0][0] <= now_ms:
            at_ms, _, worker = heappop(self._heap)
            if at_ms != worker.next_ms:
                continue
            self._integrate(at_ms)
            self._take_off(worker)
            self._put_on(worker)
        self._integrate(now_ms)

    def _integrate(self, now_ms: float) -> None:
        seconds = (now_ms - self._at_ms) / 1_000
        if seconds <= 0:
            return
        self._lag_seconds += self._lag * seconds + self._slope * seconds * seconds / 2
        self._lag += self._slope * seconds
        self._lag_max = max(self._lag_max, self._lag)
        self._at_ms = now_ms

    def _take_off(self, worker: Worker) -> None:
        """Advance the flows of a worker to now and take them out of the slope, so that they can change."""
        self._slope -= worker.lag_slope
        for flow in worker.flows.values():
            self._duplicates += flow.advance(self._at_ms)

    def _put_on(self, worker: Worker) -> None:
        """Divide a worker's rate again, put its flows back into the slope and schedule its breakpoint."""
        if worker.process_rate == inf:
            self._catch_up(worker)
        worker.snap()
        worker.share_out()
        while worker.snap():
            worker.share_out()
        worker.note_backlog(self._at_ms)
        worker.lag_slope = sum(flow.lag_slope() for flow in worker.flows.values())
        self._slope += worker.lag_slope
        worker.next_ms = worker.next_breakpoint_ms(self._at_ms)
        if worker.next_ms < inf:
            self._order += 1
            heappush(self._heap, (worker.next_ms, self._order, worker))

    def _catch_up(self, worker: Worker) -> None:
        """Let an unlimited worker handle its backlog at once."""
        if not worker.working:
            return
        for flow in worker.flows.values():
            self._duplicates += max(0.0, flow.high - flow.position)
            self._lag -= flow.produced - flow.high
            flow.position = flow.high = flow.produced


def _rounded(value: float) -> float:
    """Return a value with six decimals, as the rest is rounding."""
    return round(value, 6) + 0.0
