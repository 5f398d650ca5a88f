"""The times at which the records/s of partitions rise above what a member handles."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from coordinator_core.client.requests import NEVER
from coordinator_core.model import TopicPartition
from rebalance_lab.simulation.process.workers import ROUNDING

Steps = Sequence[tuple[int, Sequence[float]]]
"""The times at which the rates of a topic change, and the records/s of each of its partitions."""


class Rises:
    """The rises of the rates of topics. ``partitions`` has the topics that exist, with their sizes."""

    def __init__(self, steps_of: Callable[[str], Steps], partitions: Mapping[str, int]) -> None:
        self._steps_of, self._partitions = steps_of, partitions
        self._steps: dict[tuple[str, int], tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        self._known: dict[tuple[tuple[TopicPartition, ...], float], list[int]] = {}

    def forget(self) -> None:
        """Look at the rates again, because topics have changed."""
        self._known.clear()

    def next_ms(self, partitions: Iterable[TopicPartition], capacity: float, *, now_ms: int) -> int:
        """Return when the records/s of partitions next rise above a capacity, `NEVER` if never."""
        key = tuple(partitions), capacity
        if key not in self._known:
            self._known[key] = self._rises(*key)
        place = bisect_right(self._known[key], now_ms)
        return self._known[key][place] if place < len(self._known[key]) else NEVER

    def _rises(self, partitions: Iterable[TopicPartition], capacity: float) -> list[int]:
        owned: dict[str, list[int]] = {}
        for topic, number in partitions:
            owned.setdefault(topic, []).append(number)
        steps = {topic: self._of(topic) for topic in owned if topic in self._partitions}
        if not any(len(at_ms) > 1 or at_ms[0] for at_ms, _ in steps.values()):
            return []
        times = np.sort(np.concatenate([at_ms for at_ms, _ in steps.values()]))
        total = np.zeros(len(times))
        for topic, (at_ms, rows) in steps.items():
            row = np.searchsorted(at_ms, times, side="right") - 1
            total += np.where(row >= 0, rows[:, owned[topic]].sum(axis=1)[row], 0.0)
        above = total > capacity * (1 + ROUNDING)
        rises: list[int] = times[1:][above[1:] & ~above[:-1]].tolist()
        return rises

    def _of(self, topic: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the times at which the rates of a topic change, and the rates: (steps, partitions)."""
        key = topic, self._partitions[topic]
        if key not in self._steps:
            at_ms, rates = zip(*self._steps_of(topic), strict=True)
            self._steps[key] = np.array(at_ms, dtype=np.int64), np.array(rates, dtype=np.float64)
        return self._steps[key]
