"""Topics and their partitions: appending, reading and waiting for records."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import ProtocolError
from rebalance_kafka.broker.producers import Place, Producers
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.stored import NewBatch, StoredBatch, Transaction
from rebalance_kafka.broker.topic_configs import CONFIGS, LOG_APPEND_TIME, MAX_MESSAGE_BYTES, TIMESTAMP_TYPE
from rebalance_kafka.wire.batches import (
    Aborted,
    Batch,
    appended_at,
    at_offset,
    batches_of,
    marker,
    miscounted,
    record_since,
)

OFFSETS_TOPIC = "__consumer_offsets"
"""The log of groups and offsets. It is no topic of this broker, but offsets can be committed for it."""

INTERNAL_TOPICS = (OFFSETS_TOPIC, "__transaction_state")
"""Topics of Kafka's own, which clients do not create."""

LONGEST_NAME = 249
_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{LONGEST_NAME}}}")
LONGEST_SHOWN = 100
MOST_PARTITIONS = 100_000
MOST_PARTITIONS_IN_ALL = 200_000
MOST_LOOKED_AT = 10_000
"""Records of a batch that is searched for a time: about 20 ms, in which no other client is served."""

_NO_CONFIGS: Mapping[str, Mapping[str, str]] = {}


class Appended(NamedTuple):
    """The result of a write to one partition. ``base_offset`` is -1 after an error.

    ``at_ms``: the time that the records have from the broker, None if they have their own.
    """

    error: Wire
    base_offset: int = -1
    message: str | None = None
    at_ms: int | None = None


class Begin(NamedTuple):
    """How transactions begin on partitions.

    ``refusal`` is called with a producer id, an epoch and a partition, and returns why the producer may not
    begin one there. ``from_zero``: the first sequence of a producer that the partition does not know is 0.
    """

    refusal: Callable[[int, int, Place], Wire]
    from_zero: bool = False


class Topics:
    """All topics of the broker.

    ``most_bytes`` of records are kept, and further writes are refused. ``most_partitions`` limits the sum
    over all topics.
    """

    def __init__(
        self, store: Store, *, most_bytes: int, most_partitions: int = MOST_PARTITIONS_IN_ALL
    ) -> None:
        self._store, self._most_bytes, self._most_partitions = store, most_bytes, most_partitions
        self.partitions: dict[str, int] = store.topics()
        self._count = sum(self.partitions.values())
        self.ids = store.topic_ids()
        self._names = {number: name for name, number in self.ids.items()}
        self.configs: dict[str, dict[str, str]] = store.configs()
        """The configurations of each topic that has some."""
        self._starts, self._ends = store.starts(), store.ends()
        self._bytes = store.size()
        self._producers = Producers(store)
        self._waiting: dict[Place, dict[int, Callable[[], None]]] = {}
        self._waits = 0
        self.grown: Callable[[Mapping[str, int]], None] | None = None
        """Called with every topic that is created or gets more partitions."""
        self.deleted: Callable[[Mapping[str, UUID]], None] | None = None
        """Called with the topics that are deleted, and their ids."""

    # --- topics

    def has(self, topic: str, partition: int) -> bool:
        """Return whether the partition exists."""
        return 0 <= partition < self.partitions.get(topic, 0)

    def end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record."""
        return self._ends.get((topic, partition), 0)

    def start(self, topic: str, partition: int) -> int:
        """Return the offset of the first record."""
        return self._starts.get((topic, partition), 0)

    def last_stable(self, topic: str, partition: int) -> int:
        """Return the offset before which every transaction has ended, as records before `start` have."""
        first_open = self._producers.first_open((topic, partition))
        return (
            self.end(topic, partition)
            if first_open is None
            else max(first_open, self.start(topic, partition))
        )

    def named(self, topic_id: UUID | None) -> str | None:
        """Return the name of the topic with this id, None if there is none."""
        return None if topic_id is None else self._names.get(topic_id)

    def create(
        self, topics: Mapping[str, int], configs: Mapping[str, Mapping[str, str]] = _NO_CONFIGS
    ) -> None:
        """Create topics, or add partitions to them, where `cannot_create` and `cannot_grow` return None.

        ``configs``: valid configurations of new topics.
        """
        self._store.save_topics(topics, configs)
        self._read_topics()
        if self.grown is not None:
            self.grown(topics)

    def delete(self, topics: Sequence[str]) -> None:
        """Delete topics that exist, with their records."""
        ids = {topic: self.ids[topic] for topic in topics}
        self._store.delete_topics(topics)
        self._read_topics()
        gone = set(topics)
        self._bytes = self._store.size()
        self._ends = {place: end for place, end in self._ends.items() if place[0] not in gone}
        self._starts = {place: start for place, start in self._starts.items() if place[0] not in gone}
        self._producers.forget_topics(gone)
        if self.deleted is not None:
            self.deleted(ids)
        for place in [place for place in self._waiting if place[0] in gone]:
            self._wake(place)

    def configure(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the configurations of topics by valid ones."""
        self._store.save_configs(configs)
        self.configs = self._store.configs()

    def config(self, topic: str, name: str) -> str:
        """Return the value of a configuration of a topic."""
        return self.configs.get(topic, {}).get(name, CONFIGS[name].default)

    def delete_records(self, befores: Mapping[Place, int]) -> None:
        """Delete the records of partitions before an offset, which is not after the end."""
        new = {place: before for place, before in befores.items() if before > self.start(*place)}
        if not new:
            return
        self._store.delete_records(new)
        self._starts |= new
        self._producers.forget(new)
        self._bytes = self._store.size()
        for place in new:
            self._wake(place)

    def _read_topics(self) -> None:
        self.partitions, self.ids = self._store.topics(), self._store.topic_ids()
        self._names = {number: name for name, number in self.ids.items()}
        self.configs = self._store.configs()
        self._count = sum(self.partitions.values())

    def cannot_create(self, topic: str, partitions: int, beside: int = 0) -> Appended | None:
        """Return why a topic cannot be created, None if it can.

        ``beside``: partitions that the same request creates.
        """
        if not _NAME.fullmatch(topic) or topic in (".", ".."):
            expected = f"1 to {LONGEST_NAME} of a-z, A-Z, 0-9, '.', '_' and '-'"
            return Appended(Wire.invalid_topic_exception, message=f"{_shown(topic)}, expected {expected}")
        if topic in self.partitions or topic in INTERNAL_TOPICS:
            return Appended(Wire.topic_already_exists, message=f"topic {topic} exists already")
        if not 1 <= partitions <= MOST_PARTITIONS:
            found = f"{partitions} partitions, expected 1 to {MOST_PARTITIONS:,}"
            return Appended(Wire.invalid_partitions, message=found)
        return self._too_many(beside + partitions)

    def cannot_grow(self, topic: str, partitions: int, beside: int = 0) -> Appended | None:
        """Return why a topic cannot get this many partitions, None if it can.

        ``beside``: partitions that the same request creates.
        """
        now = self.partitions.get(topic)
        if now is None:
            return Appended(Wire.unknown_topic_or_partition, message=f"there is no topic {_shown(topic)}")
        if not now < partitions <= MOST_PARTITIONS:
            found = f"{partitions} partitions, expected {now + 1} to {MOST_PARTITIONS:,}"
            return Appended(Wire.invalid_partitions, message=found)
        return self._too_many(beside + partitions - now)

    def _too_many(self, more: int) -> Appended | None:
        if self._count + more <= self._most_partitions:
            return None
        found = f"{self._count:,} partitions and {more:,} more, expected {self._most_partitions:,} in all"
        return Appended(Wire.policy_violation, message=f"{found} at most")

    # --- writing

    def append(
        self, written: Sequence[tuple[str, int, bytes | None]], *, begin: Begin | None = None, now_ms: int = 0
    ) -> list[Appended]:
        """Append to partitions in one transaction of the store. Refused records do not affect the others.

        A batch of a transaction begins it on the partition, unless it is open there. Without ``begin`` there
        are no transactions. ``now_ms``: the time of records of topics with LogAppendTime.
        """
        write = _Write(self._bytes, begin, now_ms)
        results = [self._place(write, *row) for row in written]
        if write.batches:
            self._store.append_batches(write.batches, write.begun.values())
        self._bytes = write.size
        self._producers.appended(write.batches, write.begun.values())
        self._ends |= write.ends
        for place in write.ends:
            self._wake(place)
        return results

    def end_transaction(
        self, places: Iterable[Place], producer_id: int, epoch: int, *, committed: bool, now_ms: int
    ) -> None:
        """Write the marker of a producer's transaction to partitions: to all or, if an error occurs, to none.

        The marker is written to every partition that exists, whether it has records of the transaction or
        not. From then on the partition refuses batches of an older epoch of a producer that it knows.

        Raises:
            sqlite3.Error: if the store cannot be written to.
        """
        data = marker(producer_id, epoch, committed=committed, at_ms=now_ms)
        ends = {place: self.end(*place) for place in places if self.has(*place)}
        (batch,) = batches_of(data)
        markers = [_new(batch, *place, end) for place, end in ends.items()]
        self._store.end_transaction(markers, committed=committed)
        self._bytes += len(data) * len(markers)
        self._producers.ended(markers, committed=committed)
        self._ends |= {place: end + 1 for place, end in ends.items()}
        for place in ends:
            self._wake(place)

    def _wake(self, place: Place) -> None:
        waiting = self._waiting.get(place, {})
        for number in list(waiting):
            if number in waiting:  # an earlier callback may have ended this wait
                waiting[number]()

    def _place(self, write: "_Write", topic: str, partition: int, records: bytes | None) -> Appended:
        """Add the records of a partition to a write, unless they are refused or written already."""
        if not self.has(topic, partition):
            return Appended(Wire.unknown_topic_or_partition)
        try:
            batches = list(batches_of(records or b""))
        except ProtocolError as error:
            return Appended(Wire.corrupt_message, message=str(error))
        invalid = _invalid(batches)
        if invalid is not None:
            return Appended(Wire.invalid_record, message=invalid)
        largest, most = max(len(batch.data) for batch in batches), int(self.config(topic, MAX_MESSAGE_BYTES))
        if largest > most:
            found = f"a batch of {largest:,} bytes, expected {most:,} at most ({MAX_MESSAGE_BYTES})"
            return Appended(Wire.message_too_large, message=found)
        place, first = (topic, partition), batches[0]
        if first.producer_id >= 0:
            repeated = self._producers.repeated(place, first)
            if repeated is not None:
                return Appended(Wire.none, repeated)
            refused = self._refused_by_producer(place, first, write)
            if refused is not Wire.none:
                return Appended(refused)
        if write.size + len(records or b"") > self._most_bytes:
            found = f"{write.size:,} bytes of records are kept, of {self._most_bytes:,} at most"
            return Appended(Wire.policy_violation, message=found)
        base = end = write.ends.get(place, self.end(*place))
        at_ms = write.now_ms if self.config(topic, TIMESTAMP_TYPE) == LOG_APPEND_TIME else None
        for batch in batches if at_ms is None else [appended_at(batch, at_ms) for batch in batches]:
            write.batches.append(_new(batch, topic, partition, end))
            end += batch.records
        if first.is_transactional and not self._producers.has_open(place, first.producer_id):
            begun = Transaction(topic, partition, base, first.producer_id)
            write.begun.setdefault((topic, partition, first.producer_id), begun)
        write.ends[place] = end
        write.size += len(records or b"")
        return Appended(Wire.none, base, at_ms=at_ms)

    def _refused_by_producer(self, place: Place, batch: Batch, write: "_Write") -> Wire:
        """Return why the state of the producer does not allow a new batch, or none."""
        if batch.is_transactional and not self._producers.has_open(place, batch.producer_id):
            if write.begin is None:
                return Wire.transactional_id_authorization_failed
            error = write.begin.refusal(batch.producer_id, batch.producer_epoch, place)
            if error is not Wire.none:
                return error
            is_new = not self._producers.knows(place, batch.producer_id)
            if write.begin.from_zero and is_new and batch.base_sequence:
                return Wire.out_of_order_sequence_number
        return self._producers.check(place, batch)

    # --- reading

    def read(self, topic: str, partition: int, offset: int, most_bytes: int, *, at_least_one: bool) -> bytes:
        """Return whole batches, from the batch that contains the offset.

        ``at_least_one``: return the first batch even if it is larger than ``most_bytes``.
        """
        batches = self._fitting(
            topic, partition, offset, self.end(topic, partition), most_bytes, at_least_one
        )
        return b"".join(batch.data for batch in batches)

    def read_committed(
        self, topic: str, partition: int, offset: int, most_bytes: int, *, at_least_one: bool
    ) -> tuple[bytes, list[Aborted]]:
        """Return the same as `read` up to the last stable offset, and the aborted transactions in it."""
        end = self.last_stable(topic, partition)
        batches = self._fitting(topic, partition, offset, end, most_bytes, at_least_one)
        if not batches:
            return b"", []
        aborted = self._producers.aborted((topic, partition), offset, batches[-1].last + 1)
        return b"".join(batch.data for batch in batches), aborted

    def _fitting(
        self, topic: str, partition: int, offset: int, end: int, most_bytes: int, at_least_one: bool
    ) -> list[StoredBatch]:
        if offset >= end:
            return []
        fitting: list[StoredBatch] = []
        size = 0
        for batch in self._store.batches_from(topic, partition, offset):
            if batch.last < offset:
                continue
            is_too_large = size + len(batch.data) > most_bytes and (fitting or not at_least_one)
            if batch.first >= end or is_too_large:
                break
            fitting.append(batch)
            size += len(batch.data)
        return fitting

    def offset_since(
        self, topic: str, partition: int, timestamp_ms: int, *, exact: bool = True
    ) -> tuple[int, int]:
        """Return offset and time of the first record of this time or later, or -1, -1.

        If the batch is large, or the result need not be ``exact``, return the offset of the first record of
        the batch and the largest time in it.
        """
        batch = self._store.batch_since(topic, partition, timestamp_ms)
        return (-1, -1) if batch is None else _searched(batch, timestamp_ms, batch.first, exact=exact)

    def newest(self, topic: str, partition: int, *, exact: bool = True) -> tuple[int, int]:
        """Return offset and time of the first record with the largest time, or -1, -1 without records.

        If the batch is large, or the result need not be ``exact``, return the offset of the last record of
        the batch.
        """
        batch = self._store.newest_batch(topic, partition)
        return (
            (-1, -1) if batch is None else _searched(batch, batch.max_timestamp_ms, batch.last, exact=exact)
        )

    def wait(self, places: Iterable[Place], wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` at every write to one of the partitions. Return a function that ends the wait."""
        self._waits += 1
        number, watched = self._waits, list(places)
        for place in watched:
            self._waiting.setdefault(place, {})[number] = wake

        def stop() -> None:
            for place in watched:
                waiting = self._waiting.get(place)
                if waiting is not None:
                    waiting.pop(number, None)
                    if not waiting:
                        del self._waiting[place]

        return stop


@dataclass(slots=True)
class _Write:
    """A write to several partitions, before it is carried out. ``size``: the bytes of all records with it."""

    size: int
    begin: Begin | None
    now_ms: int
    batches: list[NewBatch] = field(default_factory=list)
    begun: dict[tuple[str, int, int], Transaction] = field(default_factory=dict)
    ends: dict[Place, int] = field(default_factory=dict)


def _new(batch: Batch, topic: str, partition: int, first: int) -> NewBatch:
    """Return a batch as it is written at an offset."""
    return NewBatch(
        topic,
        partition,
        first,
        first + batch.last_delta,
        batch.max_timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        at_offset(batch, first),
    )


def _invalid(batches: Sequence[Batch]) -> str | None:
    """Return what is wrong with the batches of a write to one partition, None if nothing is."""
    if not batches:
        return "no records"
    wrong = next(filter(None, map(miscounted, batches)), None)
    if wrong is not None:
        return wrong
    if any(batch.is_control for batch in batches):
        return "the marker of a transaction, expected records"
    has_producer = [batch.producer_id >= 0 for batch in batches]
    if any(has_producer) and len(batches) > 1:
        return f"{len(batches)} batches with a producer id, expected one"
    first = batches[0]
    if has_producer[0] and (first.producer_epoch < 0 or first.base_sequence < 0):
        found = (
            f"epoch {first.producer_epoch} and sequence {first.base_sequence} of producer {first.producer_id}"
        )
        return f"{found}, expected 0 or more"
    if any(batch.is_transactional for batch in batches) and not has_producer[0]:
        return "a batch of a transaction without a producer id"
    return None


def _searched(batch: StoredBatch, timestamp_ms: int, otherwise: int, *, exact: bool) -> tuple[int, int]:
    """Return offset and time of the first record of this time or later, or ``otherwise`` as the offset."""
    found = None
    if exact and batch.last - batch.first < MOST_LOOKED_AT:
        found = record_since(batch.data, timestamp_ms)
    return found or (otherwise, batch.max_timestamp_ms)


def _shown(name: str) -> str:
    """Return a name for a message, shortened if it is long."""
    return repr(name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}...")
