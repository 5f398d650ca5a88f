"""The ledger of a run: who owned what from when to when, and the assignments in which the group rested.

The fold of a trace writes it (`traces.history`), and so does a plan of many groups, which has no trace
(`simulation.planning.planned_rests`). Everything that speaks about owners is a query of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.model import NO_OWNER, Int32Array, TopicIndex, TopicPartition
from rebalance_lab.traces.rests import IntArray, Members, Rest, Traffic


class Span(NamedTuple):
    """A consumer owns a partition from ``from_ms`` to ``to_ms``."""

    client: str
    from_ms: int
    to_ms: int


class Settled(NamedTuple):
    """An assignment in which the group rested: every member took its part over, and no partition that had
    an owner is without one. Members without a coordinator rest whether it is or not, and even if nobody owns
    anything: their rebalances have ended.

    It lasts until a partition is given up, a round begins, or the run ends. ``members`` maps each consumer
    in the group to its topics.
    """

    from_ms: int
    until_ms: int
    owners: dict[TopicPartition, str]
    members: dict[str, tuple[str, ...]]


class Resting(NamedTuple):
    """A time in which the group rested. ``taken``: the number of spans that had begun until then.

    ``topics`` are those that consumers subscribed to: owners of others do not count.
    """

    from_ms: int
    until_ms: int
    taken: int
    members: Members
    topics: frozenset[str]


@dataclass(frozen=True, eq=False)
class Ledger:
    """Everybody over time. Times are virtual milliseconds.

    - ``index``: the numbering of all partitions that there ever were; ``clients``: the names of consumers by
      number, in the order in which they first started.
    - ``from_ms``, ``until_ms``: the window of the run that is measured; ``before`` int32[P]: the last owner
      of each partition when it began, or -1.
    - ``rounds``, ``moved``: how often the group came to rest in the window, and the number of partitions
      that were taken over from another consumer.
    - ``settled``: the assignments in which the group rested, in order; one that lasted no time is left out.
    - ``traffic``: the records/s of the partitions; ``racks`` are those of clients that have one, ``replicas``
      those of the partitions of topics.
    - ``process_rates``: the records/s that each consumer can handle, polls included, if it has a limit.
    - ``new_assignor`` makes the assignor of the run once more, as after a start.
    - ``written`` returns `spans`. Plans of many groups are hardly ever asked for them.
    """

    index: TopicIndex
    clients: tuple[str, ...]
    from_ms: int
    until_ms: int
    before: Int32Array
    rounds: int
    moved: int
    settled: tuple[Rest, ...]
    traffic: Traffic
    racks: Mapping[str, str]
    replicas: Mapping[str, Sequence[Sequence[str]]]
    process_rates: Mapping[str, float]
    new_assignor: Callable[[], Assignor]
    written: Callable[[], IntArray]

    @cached_property
    def spans(self) -> IntArray:
        """int64[n, 4]: partition, client, from_ms, to_ms, in the order in which partitions were taken over.

        A partition has several owners while one of them does not know yet that another has it.
        """
        return self.written()

    @cached_property
    def by_partition(self) -> IntArray:
        """int64[n, 4]: the spans in the order of partitions, and of each in that of `spans`."""
        return self.spans[np.argsort(self.spans[:, 0], kind="stable")]

    @property
    def rests(self) -> "Ledger":
        """The ledger itself, in which metrics find what they find in `History.rests`."""
        return self

    @property
    def last(self) -> Rest | None:
        """The assignment in force at the end, if the group rests in it."""
        last = self.settled[-1] if self.settled else None
        return last if last is not None and last.until_ms == self.until_ms else None

    def of(self, partition: TopicPartition) -> list[Span]:
        """Return the owners of a partition, in the order in which they took it over."""
        number = self.index.number(*partition)
        if number is None:
            return []
        rows = self.by_partition
        first, end = np.searchsorted(rows[:, 0], [number, number + 1])
        return [Span(self.clients[client], *times) for _, client, *times in rows[first:end].tolist()]

    def names(self, owner: Int32Array) -> dict[TopicPartition, str]:
        """Return the owner of each partition that has one, in the order of the index."""
        owned = np.flatnonzero(owner != NO_OWNER).astype(np.int32)
        clients = map(self.clients.__getitem__, owner[owned].tolist())
        return dict(zip(self.index.partitions(owned), clients, strict=True))

    def named(self, rest: Rest) -> Settled:
        """Return a rest with names in place of numbers."""
        members = map(self.clients.__getitem__, rest.members.clients.tolist())
        topics = dict(zip(members, rest.members.topics, strict=True))
        return Settled(rest.from_ms, rest.until_ms, self.names(rest.owner), topics)


def last_owners(spans: IntArray, index: TopicIndex) -> Int32Array:
    """int32[P]: the owner of each partition that took it over last, or -1 without any."""
    owner = index.nobody.copy()
    owner[spans[:, 0]] = spans[:, 1]  # of several for a partition, numpy takes the last one
    return owner


def moves(spans: IntArray) -> IntArray:
    """int64[m]: the numbers of the spans whose owner took a partition over from another consumer."""
    order = np.argsort(spans[:, 0], kind="stable")
    partition, client = spans[order, 0], spans[order, 1]
    moved = (partition[1:] == partition[:-1]) & (client[1:] != client[:-1])
    found: IntArray = order[1:][moved]
    return found


def numbered(
    index: TopicIndex, partitions: Iterable[TopicPartition], rows: Sequence[Sequence[int]], *, columns: int
) -> IntArray:
    """int64[n, 1 + columns]: rows of integers, with the number of the partition of each in front."""
    starts = dict(zip(index.topics, index.offsets.tolist(), strict=False))
    numbers = [starts[topic] + number for topic, number in partitions]
    return np.column_stack(
        [np.array(numbers, dtype=np.int64), np.array(rows, dtype=np.int64).reshape(-1, columns)]
    )


def joined(stops: IntArray) -> IntArray:
    """int64[m, 3]: stops (partition, from_ms, until_ms), as one where one begins when another ends."""
    rows = stops[np.lexsort((stops[:, 1], stops[:, 0]))]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (rows[1:, 0] != rows[:-1, 0]) | (rows[1:, 1] != rows[:-1, 2])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(rows))[: len(first)] - 1
    return np.column_stack([rows[first, :2], rows[last, 2]])


def spans_of(owners: Sequence[tuple[int, Int32Array]]) -> IntArray:
    """int64[n, 4]: the spans of partitions that have one owner at a time.

    ``owners`` int32[P] are those since a time, in order. Nobody owns anything at first and in the end.
    """
    begun: list[IntArray] = []
    ended: list[IntArray] = []
    for (_, before), (at_ms, after) in pairwise(owners):
        changed = before != after
        for found, owner in ((ended, before), (begun, after)):
            at = np.flatnonzero(changed & (owner != NO_OWNER))
            found.append(np.stack([at, owner[at], np.full(len(at), at_ms)], axis=1, dtype=np.int64))
    rows, ends = np.concatenate(begun), np.concatenate(ended)
    order = np.argsort(rows[:, 0], kind="stable")
    of_rows = np.empty(len(rows), dtype=np.int64)
    of_rows[order] = ends[np.argsort(ends[:, 0], kind="stable"), 2]
    return np.column_stack([rows, of_rows])
