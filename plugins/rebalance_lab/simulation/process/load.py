"""The fluid load: records as rates, integrated exactly between changes.

Records are produced to a partition at a rate. A worker shares its capacity over the partitions that it works
on, max-min fair (processor sharing): a partition without a backlog takes its arrival rate if an even share
allows, and the others split the rest evenly. Everything is linear between *breakpoints*: a backlog becomes
empty, or repeated work reaches the highest position. The cost grows with changes and breakpoints, not with
rates or time: at a change of a worker, each of its partitions has at most two breakpoints ahead.

A record is handled when the highest position of any worker has passed it. The lag counts the records that
are not handled. A record that is handled again is a duplicate. A record is handled as a whole: a worker that
stops drops the part that it has done. The worker that started last works on a partition; the work of a fenced
process does not count. Where ownership is shared, an earlier worker goes on until it gives the partition up:
what is produced while it works it handles as well, as duplicates. This takes nothing from its capacity. If
the later worker gives the partition up first, the earlier one goes on alone, from the highest position.

Positions are functions of the time since the last change or breakpoint of their worker. A question changes no
position, so that positions do not depend on how often and when somebody asks. A worker has sums over its
partitions, and `_Unowned` those of the partitions without a worker: a measure makes no pass over partitions.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import floor, inf, ldexp

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import LagMeasured
from rebalance_lab.simulation.process.turns import Reading, Turns
from rebalance_lab.simulation.process.workers import Flow, Work, Worker

WHOLE = 1e-6
"""A position that is below a whole record by no more than this has handled the record: it is rounding."""

_UNIT = 60
_UNITS = 1 << _UNIT
"""Sums of `_Unowned` count in records / 2^60."""


class _Unowned:
    """The lag of the partitions without a worker.

    Each is a line over time, in whole units. Sums of them are exact: they do not depend on the order of
    changes, and nothing is left when the last one has found a worker.
    """

    def __init__(self) -> None:
        self._lag = self._per_ms = 0

    def add(self, flow: Flow, end: float, now_ms: int) -> None:
        """Add a partition as it is now. ``end``: the records produced to it."""
        per_ms = floor(ldexp(flow.rate / 1_000, _UNIT))
        lag = floor(ldexp(end - flow.high, _UNIT)) - per_ms * now_ms
        flow.units = lag, per_ms
        self._lag += lag
        self._per_ms += per_ms

    def remove(self, flow: Flow) -> None:
        """Remove a partition."""
        self._lag -= flow.units[0]
        self._per_ms -= flow.units[1]

    def at(self, now_ms: int) -> tuple[float, float]:
        """Return the sum of the lags, and its growth in records/s."""
        lag, per_ms = self._lag, self._per_ms
        if not (lag or per_ms):
            return 0.0, 0.0
        return (lag + per_ms * now_ms) / _UNITS, per_ms * 1_000 / _UNITS


class Load:
    """All partitions and workers. Times are virtual milliseconds and never go back.

    One worker at most works on a partition. A family may have another load (`ProtocolSpec.load`).
    """

    def __init__(self) -> None:
        self.steady_until_ms: float = 0
        """The time until which the records/s of all partitions stay as they are, unless there is a cause."""
        self._flows: dict[TopicPartition, Flow] = {}
        self._topics: dict[str, list[Flow]] = {}
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
        for records in waiting:
            self._add_partition(topic, float(records), now_ms)
        self._lag_max = max(self._lag_max, self._lag)

    def _add_partition(self, topic: str, records: float, now_ms: int) -> None:
        flows = self._topics.setdefault(topic, [])
        flow = self._flows[TopicPartition(topic, len(flows))] = Flow(records, now_ms)
        flows.append(flow)
        self._lag += records
        self._unowned.add(flow, records, now_ms)

    def set_rates(self, topic: str, rates: Sequence[float], *, now_ms: int) -> None:
        """Set the records/s of each partition of a topic from now on. New partitions are added."""
        self._advance(now_ms)
        for _ in range(len(self._topics.get(topic, ())), len(rates)):
            self._add_partition(topic, 0.0, now_ms)
        flows = self._topics.get(topic, [])
        touched = dict.fromkeys(flow.worker for flow in flows if flow.worker is not None)
        for worker in touched:
            if not worker.keeps_up:
                self._take_off(worker)
        for flow, rate in zip(flows, rates, strict=True):
            if flow.worker is None:
                self._unowned.remove(flow)
                self._slope += rate - flow.rate
                flow.set_rate(rate, now_ms)
                self._unowned.add(flow, flow.records, now_ms)
            else:
                flow.set_rate(rate, now_ms)
        for worker in touched:
            if worker.can_keep_up():
                continue
            if worker.keeps_up:
                self._take_off(worker)
            self._put_on(worker)

    def remove_topic(self, topic: str, *, now_ms: int) -> None:
        """Remove the partitions of a topic. The records that wait in them are no lag any longer."""
        partitions = [TopicPartition(topic, number) for number in range(len(self._topics.pop(topic, ())))]
        self._release_all(partitions, now_ms=now_ms)
        self._advance(now_ms)
        for partition in partitions:
            flow = self._flows.pop(partition)
            self._unowned.remove(flow)
            self._slope -= flow.rate
            self._lag -= flow.end_at(now_ms) - flow.high

    def add_worker(self, name: str, process_rate: float, turns: Turns | None = None) -> Worker:
        """Return a new worker."""
        return Worker(name, process_rate, turns)

    def remove_worker(self, worker: Worker, *, now_ms: int) -> None:
        """Remove a worker. Its partitions stand still."""
        self.release(worker, list(worker.flows), now_ms=now_ms)

    def has_partitions(self, worker: Worker) -> bool:
        """Return whether a worker works on a partition."""
        return bool(worker.flows)

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
            if flow.reading is not None:
                self._read_again(flow, flow.reading)
            if flow.position > flow.high:  # skipped records do not count as lag
                self._lag -= flow.position - flow.high
                flow.high = flow.position
            flow.worker = worker
            worker.flows[partition] = flow
        self._put_on(worker)

    def _read_again(self, flow: Flow, reading: Reading) -> None:
        """Count what a worker reads again of a partition whose last worker read one after the other."""
        mean = max(0.0, flow.high - flow.position)
        again = reading.handled(mean)
        if again:
            self._duplicates += again - mean
        else:
            flow.position += mean
        flow.reading = None

    def release(self, worker: Worker, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Let a worker stop its work on partitions. Partitions of other workers are not affected."""
        self._release(worker, partitions, now_ms=now_ms)

    def _release(self, worker: Worker, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        held = [p for p in partitions if p in worker.flows]
        if not held:
            return
        self._advance(now_ms)
        self._take_off(worker)
        if worker.turns is not None:
            for place, (partition, flow) in enumerate(worker.flows.items()):
                if partition in held and not flow.keeps_up:
                    flow.reading = worker.turns.reading(place, len(worker.flows), now_ms)
        for partition in held:
            flow = worker.flows.pop(partition)
            whole = float(floor(flow.position + WHOLE))
            if flow.high == flow.position and whole < flow.high:
                self._lag += flow.high - whole
                flow.high = whole
            flow.position, flow.worker, flow.keeps_up = min(whole, flow.produced), None, False
            self._slope += flow.rate
            self._unowned.add(flow, flow.produced, now_ms)
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
            self._release(worker, listed, now_ms=now_ms)

    def handle_again(self, records: int) -> None:
        """Count records that a worker handles after another one has taken over their partitions."""
        self._duplicates += records

    def keeps_up(self, worker: Worker, *, now_ms: int) -> bool:
        """Return whether a worker has no backlog, and none builds up at the present rates."""
        self._pass_breakpoints(now_ms)
        return not worker.has_backlog

    def positions(
        self, worker: Worker, partitions: Iterable[TopicPartition], *, now_ms: int, ahead_ms: int = 0
    ) -> dict[TopicPartition, int]:
        """Return the offsets to commit of those partitions on which a worker works.

        With ``ahead_ms`` they are the offsets that the worker reaches after that time, at its present speed.
        """
        self._pass_breakpoints(now_ms)
        flows, at_ms = worker.flows, now_ms + ahead_ms
        served = worker.served_at(at_ms)
        offsets: dict[TopicPartition, int] = {}
        for partition in partitions:
            flow = flows.get(partition)
            if flow is None:
                continue
            position = flow.position_at(at_ms, served)
            if ahead_ms:
                position = min(position, flow.end_at(now_ms))
            offsets[partition] = floor(position + WHOLE)
        return offsets

    def work(self, worker: Worker, *, now_ms: int) -> Work:
        """Return the work of a worker at a time."""
        self._pass_breakpoints(now_ms)
        return worker.work_at(now_ms)

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
                found[partition] = end, end - flow.high_at(now_ms), flow.rate
        return found

    def measure(self, *, now_ms: int) -> LagMeasured:
        """Return the load now and since the last measure, and begin the next one."""
        self._advance(now_ms)
        by_client: dict[str, float] = {}
        lag, slope = self._unowned.at(now_ms)
        repeats = 0.0
        for worker in self._late:
            own = worker.lag_at(now_ms)
            by_client[worker.name] = by_client.get(worker.name, 0.0) + own
            lag += own
            slope += worker.lag_slope
            repeats += worker.repeats
        measured = LagMeasured(
            lag=round(lag, 6) + 0.0,  # the rest is rounding; adding 0.0 makes 0.0 of -0.0
            max_lag=round(max(self._lag_max, lag), 6) + 0.0,
            lag_record_seconds=round(self._lag_seconds, 6) + 0.0,
            duplicates=round(self._duplicates, 6) + 0.0,
            by_client={name: own for name, exact in by_client.items() if (own := round(exact, 6))},
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
                self._forget_slope(worker)
                worker.pass_breakpoint()
                self._note_slope(worker)

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
        self._forget_slope(worker)
        worker.settle(self._at_ms)

    def _put_on(self, worker: Worker) -> None:
        """Divide a worker's rate again, put its flows back into the slope and schedule its breakpoint."""
        if worker.process_rate == inf and worker.working:
            again, lag = worker.catch_up()
            self._duplicates += again
            self._lag -= lag
        worker.share_out()
        self._note_slope(worker)

    def _forget_slope(self, worker: Worker) -> None:
        self._slope -= worker.lag_slope
        self._repeats -= worker.repeats

    def _note_slope(self, worker: Worker) -> None:
        self._slope += worker.lag_slope
        self._repeats += worker.repeats
        if worker.is_late:
            self._late[worker] = None
        else:
            self._late.pop(worker, None)
        if worker.next_ms < inf:
            self._order += 1
            heappush(self._heap, (worker.next_ms, self._order, worker))
