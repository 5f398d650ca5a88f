"""Consumers that read one partition for many polls, though a simulated worker reads all of its own at once.

A fetch returns up to ``max.partition.fetch.bytes`` of a partition, and polls hand these out before those of
the next partition. So the records that a member with a backlog has handled since its last commit are of one
partition, or of a few: another member handles them again if it takes over one of these. Which one is read at
a time is drawn. In the mean the records are as many as if all partitions were read.
"""

from dataclasses import dataclass
from math import ceil

from rebalance_lab.simulation.world.dice import Dice

RECORD_BYTES = 1_000
"""The size of a record, of which documents say nothing."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The reading of one process: ``records`` of a partition, then those of the next one."""

    records: int
    dice: Dice

    def reading(self, place: int, owned: int, at_ms: int) -> "Reading":
        """Return what it was reading when it gave up the partition at a place among those that it owned."""
        first = int(self.dice.at(at_ms) * owned)
        return Reading(self.records, owned, (place - first) % owned)


@dataclass(frozen=True, slots=True)
class Reading:
    """The place of a partition in the turns: 0 for the one that was read last."""

    records: int
    owned: int
    place: int

    def handled(self, mean: float) -> float:
        """Return the records of the partition that were handled, of so many of each partition in the mean."""
        turns = min(self.owned, max(1, ceil(mean * self.owned / self.records)))
        return mean * self.owned / turns if self.place < turns else 0.0
