"""The load of members that do not know of each other: several may work on one partition."""

from collections.abc import Iterable, Mapping
from math import floor

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import LagMeasured
from rebalance_lab.simulation.process.load import WHOLE, Load
from rebalance_lab.simulation.process.workers import Worker


class SharedLoad(Load):
    """A load in which a worker goes on beside those that start to work on its partitions after it.

    The partition is that of the last one. What the earlier ones handle are duplicates.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shared: dict[Worker, dict[TopicPartition, float]] = {}
        """The partitions of which a worker is an earlier one of several, with the records counted so far."""

    def remove_topic(self, topic: str, *, now_ms: int) -> None:
        """Remove the partitions of a topic."""
        partitions = [TopicPartition(topic, number) for number in range(len(self._topics.get(topic, ())))]
        for worker in list(self._shared):
            self._end_shared(worker, partitions, now_ms)
        super().remove_topic(topic, now_ms=now_ms)

    def remove_worker(self, worker: Worker, *, now_ms: int) -> None:
        """Remove a worker. The last of the earlier workers of a partition goes on alone."""
        self.release(worker, [*worker.flows, *self._shared.get(worker, ())], now_ms=now_ms)

    def has_partitions(self, worker: Worker) -> bool:
        """Return whether a worker works on a partition, alone or beside another one."""
        return super().has_partitions(worker) or worker in self._shared

    def set_working(self, worker: Worker, working: bool, *, now_ms: int) -> None:
        """Stop or continue a worker. It keeps its partitions and positions."""
        if worker.working != working:
            self._advance(now_ms)
            self._count_shared(worker, now_ms)
        super().set_working(worker, working, now_ms=now_ms)

    def start(self, worker: Worker, offsets: Mapping[TopicPartition, int], *, now_ms: int) -> None:
        """Let a worker work on partitions from these offsets on, beside their other workers."""
        self._end_shared(worker, offsets, now_ms)
        for partition in filter(self._flows.__contains__, offsets):
            flow = self._flows[partition]
            if flow.worker is not None and flow.worker is not worker:
                self._shared.setdefault(flow.worker, {})[partition] = flow.end_at(now_ms)
        super().start(worker, offsets, now_ms=now_ms)

    def release(self, worker: Worker, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Let a worker stop its work on partitions. The last of the earlier workers goes on alone."""
        partitions = list(partitions)
        held = [partition for partition in partitions if partition in worker.flows]
        self._end_shared(worker, partitions, now_ms)
        super().release(worker, partitions, now_ms=now_ms)
        for partition in held:
            self._hand_back(partition, now_ms)

    def measure(self, *, now_ms: int) -> LagMeasured:
        """Return the load now and since the last measure, and begin the next one."""
        self._advance(now_ms)
        for worker in self._shared:
            self._count_shared(worker, now_ms)
        return super().measure(now_ms=now_ms)

    def _count_shared(self, worker: Worker, now_ms: int) -> None:
        """Count what a worker has handled beside others since it was last counted, unless it stood still."""
        held = self._shared.get(worker, {})
        for partition, counted in held.items():
            if partition in self._flows:
                held[partition] = produced = self._flows[partition].end_at(now_ms)
                self._duplicates += (produced - counted) if worker.working else 0.0

    def _end_shared(self, worker: Worker, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Count what a worker has handled beside others, and end its work on partitions."""
        self._count_shared(worker, now_ms)
        for partition in partitions:
            self._shared.get(worker, {}).pop(partition, None)
        if not self._shared.get(worker, True):
            del self._shared[worker]

    def _hand_back(self, partition: TopicPartition, now_ms: int) -> None:
        """Let the last of the earlier workers of a partition, if there is one, go on alone."""
        earlier = [worker for worker, held in self._shared.items() if partition in held]
        if earlier:
            self._end_shared(earlier[-1], (partition,), now_ms)
            offset = floor(self._flows[partition].high + WHOLE)
            super().start(earlier[-1], {partition: offset}, now_ms=now_ms)
