"""The simulator as a provider's host: what a consumer sees of its partitions, and what the scenario knows."""

from collections.abc import Iterable, Mapping

from coordinator_core.model import TopicPartition
from coordinator_core.registry import host
from coordinator_core.simulation.clock import VirtualClock
from coordinator_core.simulation.load import Load


class SimulatedHost:
    """One for each simulated consumer."""

    def __init__(self, clock: VirtualClock, load: Load, process_rate: float | None) -> None:
        self._clock, self._load, self._process_rate = clock, load, process_rate

    def now_ms(self) -> int:
        """The virtual time."""
        return self._clock.now_ms

    def seen(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, host.Seen]:
        """Ends and lags of these partitions now."""
        found = self._load.seen(partitions, now_ms=self._clock.now_ms)
        return {tp: host.Seen(produced, lag) for tp, (produced, lag, _) in found.items()}

    def loads(self) -> Mapping[TopicPartition, host.Load]:
        """Rates and lags of all partitions now."""
        found = self._load.seen(self._load.partitions(), now_ms=self._clock.now_ms)
        return {tp: host.Load(rate, lag) for tp, (_, lag, rate) in found.items()}

    def capacity(self) -> float | None:
        """The member's process_rate."""
        return self._process_rate
