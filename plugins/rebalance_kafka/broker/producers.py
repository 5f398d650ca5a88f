"""The producers of partitions: the sequences of their batches, and their transactions (KIP-98)."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.stored import NO_SEQUENCE, NewBatch, Transaction
from rebalance_kafka.wire.batches import Aborted, Batch

REMEMBERED = 5
"""Batches of an idempotent producer that are recognised when repeated: as many as may be in flight."""

MOST_PRODUCERS = 100_000
"""Pairs of a partition and an idempotent producer whose sequences are remembered.

With more, the pair with the oldest write is forgotten: its next batch is accepted with any sequence."""

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""

_LAST = attrgetter("last")


class _Sequence(NamedTuple):
    sequence: int
    records: int
    base_offset: int


@dataclass(slots=True)
class _Producer:
    """A producer on a partition: its epoch, and its last batches in that epoch."""

    epoch: int
    batches: deque[_Sequence] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class Producers:
    """What the partitions know about their producers. Only batches that are written change it."""

    def __init__(self, store: Store) -> None:
        self._producers: dict[tuple[str, int, int], _Producer] = {}
        self._open: dict[Place, dict[int, Transaction]] = {}
        """The open transactions by their producers, those with the lowest first offsets first."""
        self._aborted: dict[Place, list[Transaction]] = {}
        """The aborted transactions, in the order of their markers."""
        for topic, partition, producer, epoch, sequence, first, last in store.producers(REMEMBERED):
            key = topic, partition, producer
            if sequence == NO_SEQUENCE:
                self._end(key, epoch)
            else:
                self._remember(key, epoch, _Sequence(sequence, last - first + 1, first))
        for transaction in store.transactions():
            if transaction.last is None:
                self._begin(transaction)
            else:
                self._aborted.setdefault(transaction[:2], []).append(transaction)
        for aborted in self._aborted.values():
            aborted.sort(key=_LAST)

    # --- checks

    def repeated(self, place: Place, batch: Batch) -> int | None:
        """Return the offset at which the batch was written before, None if it is new."""
        seen = self._producers.get((*place, batch.producer_id))
        if seen is None or seen.epoch != batch.producer_epoch:
            return None
        for earlier in seen.batches:
            if (earlier.sequence, earlier.records) == (batch.base_sequence, batch.records):
                return earlier.base_offset
        return None

    def check(self, place: Place, batch: Batch) -> Wire:
        """Return why a batch that is new cannot be written, or none."""
        if self.has_open(place, batch.producer_id) and not batch.is_transactional:
            return Wire.invalid_txn_state
        seen = self._producers.get((*place, batch.producer_id))
        if seen is None or (seen.epoch, batch.base_sequence) == (batch.producer_epoch, _next(seen)):
            return Wire.none
        if batch.producer_epoch < seen.epoch:
            return Wire.invalid_producer_epoch
        begins = batch.producer_epoch > seen.epoch and batch.base_sequence == 0
        return Wire.none if begins else Wire.out_of_order_sequence_number

    def knows(self, place: Place, producer: int) -> bool:
        """Return whether a partition knows a producer."""
        return (*place, producer) in self._producers

    def has_open(self, place: Place, producer: int) -> bool:
        """Return whether a transaction of the producer is open on the partition."""
        return producer in self._open.get(place, ())

    # --- what was written

    def appended(self, batches: Iterable[NewBatch], begun: Iterable[Transaction]) -> None:
        """Take over batches that were written, and the transactions that begin with them."""
        for batch in batches:
            if batch.producer >= 0:
                seen = _Sequence(batch.sequence, batch.last - batch.first + 1, batch.first)
                self._remember((batch.topic, batch.partition, batch.producer), batch.epoch, seen)
        for transaction in begun:
            self._begin(transaction)

    def ended(self, markers: Iterable[NewBatch], *, committed: bool) -> None:
        """Take over the markers of a transaction that were written."""
        for marker in markers:
            place = marker.topic, marker.partition
            key = (*place, marker.producer)
            if key in self._producers:
                self._end(key, marker.epoch)
            else:
                self._know(key, _Producer(marker.epoch))
            transaction = self._open.get(place, {}).pop(marker.producer, None)
            if transaction is not None and not committed:
                self._aborted.setdefault(place, []).append(transaction._replace(last=marker.first))

    def forget(self, starts: dict[Place, int]) -> None:
        """Forget the aborted transactions of partitions that end before an offset."""
        for place, start in starts.items():
            aborted = self._aborted.get(place, [])
            del aborted[: bisect_left(aborted, start, key=_LAST)]

    def forget_topics(self, topics: set[str]) -> None:
        """Forget what is known about the partitions of topics."""
        self._producers = {key: seen for key, seen in self._producers.items() if key[0] not in topics}
        self._open = {place: begun for place, begun in self._open.items() if place[0] not in topics}
        self._aborted = {place: ended for place, ended in self._aborted.items() if place[0] not in topics}

    # --- transactions

    def first_open(self, place: Place) -> int | None:
        """Return the offset of the first record of the first open transaction, None without one."""
        return next((transaction.first for transaction in self._open.get(place, {}).values()), None)

    def aborted(self, place: Place, begin: int, end: int) -> list[Aborted]:
        """Return the aborted transactions that have records or markers from one offset to before another."""
        aborted = self._aborted.get(place, [])
        later = aborted[bisect_left(aborted, begin, key=_LAST) :]
        return [Aborted(each.producer, each.first) for each in later if each.first < end]

    # --- inside

    def _remember(self, key: tuple[str, int, int], epoch: int, seen: _Sequence) -> None:
        producer = self._producers.pop(key, None)
        if producer is None or producer.epoch != epoch:
            producer = _Producer(epoch)
        producer.batches.append(seen)
        self._know(key, producer)

    def _know(self, key: tuple[str, int, int], producer: _Producer) -> None:
        """Add a producer as the most recent one, which is the last."""
        self._producers[key] = producer
        if len(self._producers) > MOST_PRODUCERS:
            del self._producers[next(iter(self._producers))]

    def _begin(self, transaction: Transaction) -> None:
        self._open.setdefault(transaction[:2], {})[transaction.producer] = transaction

    def _end(self, key: tuple[str, int, int], epoch: int) -> None:
        """Note the epoch of a marker.

        A producer that is unknown after a restart may begin with any sequence: its records may be deleted.
        """
        producer = self._producers.get(key)
        if producer is not None and epoch > producer.epoch:
            self._producers[key] = _Producer(epoch)


def _next(producer: _Producer) -> int:
    """Return the sequence of the next batch of the epoch."""
    if not producer.batches:
        return 0
    last = producer.batches[-1]
    return (last.sequence + last.records) % 2**31
