"""Topics and their partitions: appending, reading and waiting for records."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import ProtocolError
from rebalance_kafka.broker.store import NewBatch, Store, StoredBatch
from rebalance_kafka.broker.topic_configs import (
    CLEANUP_POLICY,
    COMPACT,
    CONFIGS,
    MAX_MESSAGE_BYTES,
    elements_of,
)
from rebalance_kafka.wire.batches import Batch, at_offset, batches_of, keyed_records, record_since

REMEMBERED = 5
"""Batches of an idempotent producer that are recognised when repeated: as many as may be in flight."""

LONGEST_NAME = 249
_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{LONGEST_NAME}}}")
LONGEST_SHOWN = 100
MOST_PARTITIONS = 100_000
MOST_PARTITIONS_IN_ALL = 200_000
MOST_PRODUCERS = 100_000
"""Pairs of a partition and an idempotent producer whose sequences are remembered.

With more, the pair with the oldest write is forgotten: its next batch is accepted with any sequence."""

MOST_LOOKED_AT = 10_000
"""Records of a batch that is searched for a time: about 20 ms, in which no other client is served."""

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""

_NO_CONFIGS: Mapping[str, Mapping[str, str]] = {}


class Appended(NamedTuple):
    """The result of a write to one partition. ``base_offset`` is -1 after an error."""

    error: Wire
    base_offset: int = -1
    message: str | None = None


class _Sequence(NamedTuple):
    epoch: int
    sequence: int
    records: int
    base_offset: int


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
        self._sequences: dict[tuple[str, int, int], deque[_Sequence]] = {}
        for topic, partition, producer, epoch, sequence, first, last in store.producers(REMEMBERED):
            self._remember(topic, partition, producer, _Sequence(epoch, sequence, last - first + 1, first))
        self._waiting: dict[Place, dict[int, Callable[[], None]]] = {}
        self._waits = 0
        self.grown: Callable[[Mapping[str, int]], None] | None = None
        """Called with every topic that is created or gets more partitions."""
        self.deleted: Callable[[Sequence[str]], None] | None = None
        """Called with every topic that is deleted."""

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
        self._store.delete_topics(topics)
        self._read_topics()
        gone = set(topics)
        self._bytes = self._store.size()
        self._ends = {place: end for place, end in self._ends.items() if place[0] not in gone}
        self._starts = {place: start for place, start in self._starts.items() if place[0] not in gone}
        self._sequences = {key: seen for key, seen in self._sequences.items() if key[0] not in gone}
        if self.deleted is not None:
            self.deleted(topics)
        for place in [place for place in self._waiting if place[0] in gone]:
            self._wake(place)

    def configure(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the configurations of topics by valid ones."""
        self._store.save_configs(configs)
        self.configs = self._store.configs()

    def config(self, topic: str, name: str) -> str:
        """Return the value of a configuration of a topic."""
        return self.configs.get(topic, {}).get(name, CONFIGS[name].default)

    def is_compacted(self, topic: str) -> bool:
        """Return whether the topic keeps the newest record of each key."""
        return COMPACT in elements_of(self.config(topic, CLEANUP_POLICY))

    def delete_records(self, befores: Mapping[Place, int]) -> None:
        """Delete the records of partitions before an offset, which is not after the end."""
        new = {place: before for place, before in befores.items() if before > self.start(*place)}
        if not new:
            return
        self._store.delete_records(new)
        self._starts |= new
        self.count_bytes()
        for place in new:
            self._wake(place)

    def count_bytes(self) -> None:
        """Count the bytes of all records again, after the store has changed."""
        self._bytes = self._store.size()

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
        if topic in self.partitions:
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

    def append(self, written: Sequence[tuple[str, int, bytes | None]]) -> list[Appended]:
        """Append to partitions in one transaction. Refused records do not affect the other partitions."""
        results: list[Appended] = []
        batches: list[NewBatch] = []
        ends = dict[Place, int]()
        size = self._bytes
        for topic, partition, records in written:
            placed = self._placed(topic, partition, records, ends, size)
            if isinstance(placed, Appended):
                results.append(placed)
                continue
            results.append(Appended(Wire.none, placed[0].first))
            batches += placed
            size += sum(len(batch.data) for batch in placed)
        if batches:
            self._store.append_batches(batches)
        self._bytes = size
        for batch in batches:
            if batch.producer >= 0:
                seen = _Sequence(batch.epoch, batch.sequence, batch.last - batch.first + 1, batch.first)
                self._remember(batch.topic, batch.partition, batch.producer, seen)
        self._ends.update(ends)
        for place in ends:
            self._wake(place)
        return results

    def _wake(self, place: Place) -> None:
        waiting = self._waiting.get(place, {})
        for number in list(waiting):
            if number in waiting:  # an earlier callback may have ended this wait
                waiting[number]()

    def _placed(
        self, topic: str, partition: int, records: bytes | None, ends: dict[Place, int], size: int
    ) -> Appended | list[NewBatch]:
        if not self.has(topic, partition):
            return Appended(Wire.unknown_topic_or_partition)
        try:
            batches = list(batches_of(records or b""))
        except ProtocolError as error:
            return Appended(Wire.corrupt_message, message=str(error))
        if not batches:
            return Appended(Wire.invalid_record, message="no records")
        largest = max(len(batch.data) for batch in batches)
        most = int(self.config(topic, MAX_MESSAGE_BYTES))
        if largest > most:
            found = f"a batch of {largest:,} bytes, expected {most:,} at most ({MAX_MESSAGE_BYTES})"
            return Appended(Wire.message_too_large, message=found)
        if self.is_compacted(topic) and any(map(_has_keyless_records, batches)):
            found = f"a record without a key, and the topic is compacted ({CLEANUP_POLICY})"
            return Appended(Wire.invalid_record, message=found)
        first = batches[0]
        if first.producer_id >= 0:
            known = self._known(topic, partition, first)
            if known is not None:
                return known
        if size + len(records or b"") > self._most_bytes:
            found = f"{size:,} bytes of records are kept, of {self._most_bytes:,} at most"
            return Appended(Wire.policy_violation, message=found)
        placed: list[NewBatch] = []
        end = ends.get((topic, partition), self.end(topic, partition))
        for batch in batches:
            data = at_offset(batch, end)
            placed.append(
                NewBatch(
                    topic,
                    partition,
                    end,
                    end + batch.last_delta,
                    batch.max_timestamp_ms,
                    batch.producer_id,
                    batch.producer_epoch,
                    batch.base_sequence,
                    data,
                )
            )
            end += batch.records
        ends[topic, partition] = end
        return placed

    def _known(self, topic: str, partition: int, batch: Batch) -> Appended | None:
        """Return the result for a repeated or premature batch, None for the next batch in order."""
        seen = self._sequences.get((topic, partition, batch.producer_id))
        if not seen:
            return None
        last = seen[-1]
        if batch.producer_epoch < last.epoch:
            return Appended(Wire.invalid_producer_epoch)
        if batch.producer_epoch > last.epoch:
            begins = batch.base_sequence == 0
            return None if begins else Appended(Wire.out_of_order_sequence_number)
        for earlier in seen:
            if (earlier.epoch, earlier.sequence, earlier.records) == (
                batch.producer_epoch,
                batch.base_sequence,
                batch.records,
            ):
                return Appended(Wire.none, earlier.base_offset)
        if batch.base_sequence != (last.sequence + last.records) % 2**31:
            return Appended(Wire.out_of_order_sequence_number)
        return None

    def _remember(self, topic: str, partition: int, producer: int, seen: _Sequence) -> None:
        key = (topic, partition, producer)
        batches = self._sequences.pop(key, None) or deque(maxlen=REMEMBERED)
        batches.append(seen)
        self._sequences[key] = batches  # the most recent last
        if len(self._sequences) > MOST_PRODUCERS:
            del self._sequences[next(iter(self._sequences))]

    # --- reading

    def read(self, topic: str, partition: int, offset: int, most_bytes: int, *, at_least_one: bool) -> bytes:
        """Return whole batches, from the batch that contains the offset.

        ``at_least_one``: return the first batch even if it is larger than ``most_bytes``.
        """
        if offset >= self.end(topic, partition):
            return b""
        pieces: list[bytes] = []
        size = 0
        for batch in self._store.batches_from(topic, partition, offset):
            if batch.last < offset:
                continue
            if size + len(batch.data) > most_bytes and (pieces or not at_least_one):
                break
            pieces.append(batch.data)
            size += len(batch.data)
        return b"".join(pieces)

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


def _has_keyless_records(batch: Batch) -> bool:
    """Return whether a record has no key. Batches that are too large to be looked at count as having keys."""
    return any(record.key is None for record in keyed_records(batch.data) or ())


def _searched(batch: StoredBatch, timestamp_ms: int, otherwise: int, *, exact: bool) -> tuple[int, int]:
    """Return offset and time of the first record of this time or later, or ``otherwise`` as the offset."""
    found = None
    if exact and batch.last - batch.first < MOST_LOOKED_AT:
        found = record_since(batch.data, timestamp_ms)
    return found or (otherwise, batch.max_timestamp_ms)


def _shown(name: str) -> str:
    """Return a name for a message, shortened if it is long."""
    return repr(name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}...")
