"""Consumers that read one partition for many polls, though a simulated worker reads all of its own at once.

A fetch returns up to ``max.partition.fetch.bytes`` of a partition, and polls hand these out before those of
the next partition. So the records that a member with a backlog has handled since its last commit are of one
partition, or of a few: another member handles them again if it takes over one of these. Which one is read at
a time is drawn. In the mean the records are as many as if all partitions were read.
"""

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

from rebalance_lab.simulation.world.dice import Dice

RECORD_BYTES = 1_000
"""The size of a record, of which documents say nothing."""

_NORMAL, _LEAST = NormalDist(), 1e-9


@dataclass(frozen=True, slots=True)
class Turns:
    """The reading of one process: ``records`` of a partition, then those of the next one.

    ``record_cv`` is the coefficient of variation of the time of a record: n records are handled in the time
    of n records, with a deviation of record_cv * sqrt(n).
    """

    records: int
    record_cv: float
    dice: Dice

    def in_hand(self, owned: int, at_ms: int) -> int:
        """Return the place of the partition that it reads at a time, among those that it owns."""
        return int(self.dice.at(at_ms) * owned)

    def reading(self, place: int, owned: int, at_ms: int) -> "Reading":
        """Return what it was reading when it gave up the partition at a place among those that it owned."""
        deviation = _NORMAL.inv_cdf(max(self.dice.at(-1 - at_ms), _LEAST)) * self.record_cv
        return Reading(self.records, owned, (place - self.in_hand(owned, at_ms)) % owned, deviation)


@dataclass(frozen=True, slots=True)
class Reading:
    """The place of a partition in the turns: 0 for the one that was read last.

    ``deviation``: of the number of records, in square roots of it.
    """

    records: int
    owned: int
    place: int
    deviation: float

    def handled(self, mean: float) -> float:
        """Return the records of the partition that were handled, of so many of each partition in the mean."""
        handled = mean * self.owned
        handled = max(0.0, handled + self.deviation * sqrt(handled))
        turns = min(self.owned, max(1, ceil(handled / self.records)))
        return handled / turns if self.place < turns else 0.0
