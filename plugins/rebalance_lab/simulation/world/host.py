"""The simulator as the host of providers: it knows the load of all partitions."""

from collections.abc import Iterable, Mapping

from coordinator_core.model import TopicPartition
from coordinator_core.registry import host
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.world.clock import VirtualClock


class SimulatedHost:
    """The host of one simulated consumer. Without ``lags``, every lag is 0."""

    def __init__(
        self, clock: VirtualClock, load: Load | None, process_rate: float | None, *, lags: bool = True
    ) -> None:
        self._clock, self._load, self._process_rate, self._lags = clock, load, process_rate, lags

    def now_ms(self) -> int:
        """Return the virtual time."""
        return self._clock.now_ms

    def seen(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, host.Seen]:
        """Return the end offsets and lags of some partitions now."""
        return {tp: host.Seen(produced, lag) for tp, (produced, lag, _) in self._found(partitions)}

    def loads(self) -> Mapping[TopicPartition, host.Load]:
        """Return the rates and lags of all partitions now."""
        partitions = [] if self._load is None else self._load.partitions()
        return {tp: host.Load(rate, lag) for tp, (_, lag, rate) in self._found(partitions)}

    def capacity(self) -> float | None:
        """Return the process_rate of the member."""
        return self._process_rate

    def _found(
        self, partitions: Iterable[TopicPartition]
    ) -> Iterable[tuple[TopicPartition, tuple[float, float, float]]]:
        if self._load is None:
            return
        for partition, (produced, lag, rate) in self._load.seen(
            partitions, now_ms=self._clock.now_ms
        ).items():
            yield partition, (produced, lag if self._lags else 0.0, rate)
