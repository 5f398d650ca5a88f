"""Retention and compaction: records that a topic's configuration no longer keeps are deleted."""

import logging
import sqlite3
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.stored import BatchHeader, Transaction
from rebalance_kafka.broker.topic_configs import (
    CLEANUP_POLICY,
    DELETE,
    DELETE_RETENTION_MS,
    MIN_COMPACTION_LAG_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    elements_of,
)
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.wire.batches import KeyedRecord, keyed_records, with_records

LOG = logging.getLogger(__name__)

SLICE_SECONDS = 0.005
"""How long records are cleaned before other work of the event loop."""


class Cleaner:
    """Deletes old records of topics with cleanup.policy=delete, and compacts those with compact.

    Whole batches are deleted, the oldest first, and the start of the partition moves. Compaction keeps the
    newest record of each key, and offsets stay as they are; it never deletes a record before the newest one
    of its key is in the store, so that a process may end at any time. It ends at the last stable offset,
    deletes the records of aborted transactions, and keeps all markers.
    """

    def __init__(self, topics: Topics, store: Store) -> None:
        self._topics, self._store = topics, store
        self._cleaned: dict[tuple[UUID, int], int] = {}
        """The ends of partitions that need no compaction until there are more records."""

    def steps(self, now_ms: int) -> Iterator[None]:
        """Clean all partitions with records. Other work may be done between two steps."""
        for topic, count in list(self._topics.partitions.items()):
            number = self._topics.ids.get(topic)
            for partition in range(count):
                if self._topics.start(topic, partition) == self._topics.end(topic, partition):
                    continue
                try:
                    for _ in self._clean(topic, partition, now_ms):
                        yield
                        if self._topics.ids.get(topic) != number:  # deleted, and perhaps created again
                            break
                except sqlite3.Error as error:
                    self._store.failed(error)  # what cannot be read stays: every step leaves whole records
        self._topics.count_bytes()

    def _clean(self, topic: str, partition: int, now_ms: int) -> Iterator[None]:
        yield
        if DELETE in elements_of(self._topics.config(topic, CLEANUP_POLICY)):
            self._topics.delete_records({(topic, partition): self._kept_from(topic, partition, now_ms)})
        if self._topics.is_compacted(topic):
            yield from self._compact(topic, partition, now_ms)

    # --- retention

    def _kept_from(self, topic: str, partition: int, now_ms: int) -> int:
        """Return the offset of the first record to keep.

        A batch is deleted when its newest record is too old, or when the later ones have retention.bytes.
        """
        retention_ms = int(self._topics.config(topic, RETENTION_MS))
        most_bytes = int(self._topics.config(topic, RETENTION_BYTES))
        left = self._store.partition_size(topic, partition) if most_bytes >= 0 else 0
        start = self._topics.start(topic, partition)
        for batch in self._store.headers(topic, partition):
            left -= batch.size
            is_old = retention_ms >= 0 and 0 <= batch.max_timestamp_ms < now_ms - retention_ms
            if not is_old and (most_bytes < 0 or left < most_bytes):
                break
            start = batch.last + 1
        return start

    # --- compaction

    def _compact(self, topic: str, partition: int, now_ms: int) -> Iterator[None]:
        place = self._topics.ids[topic], partition
        end = self._topics.end(topic, partition)
        if self._cleaned.get(place) == end:
            return
        lag_ms = int(self._topics.config(topic, MIN_COMPACTION_LAG_MS))
        batches = list[BatchHeader]()
        stable = self._topics.last_stable(topic, partition)
        for batch in self._store.headers(topic, partition):
            if batch.first >= stable or (lag_ms and batch.max_timestamp_ms > now_ms - lag_ms):
                break
            batches.append(batch)
        newest: dict[bytes, int] = {}
        aborted = _aborted(batches, self._topics.aborted(topic, partition))
        for batch in batches:
            records = [] if batch.first in aborted else self._records(topic, partition, batch.first)
            for record in records:
                if record.key is not None:
                    newest[record.key] = record.offset
            yield
        needed = {
            batch.producer: batch.first for batch in batches if batch.producer >= 0 and not batch.is_marker
        }
        needed[-1] = batches[-1].first if batches else -1
        oldest_ms = now_ms - int(self._topics.config(topic, DELETE_RETENTION_MS))
        has_tombstones = False
        for batch in batches:
            records = self._records(topic, partition, batch.first)
            kept = [
                record
                for record in records
                if record.key is not None
                and newest.get(record.key) == record.offset
                and not (record.is_tombstone and record.time_ms < oldest_ms)
            ]
            has_tombstones = has_tombstones or any(record.is_tombstone for record in kept)
            if len(kept) < len(records):
                self._keep(topic, partition, batch.first, kept, is_needed=batch.first in needed.values())
            yield
        if batches and batches[-1].last + 1 == end and not has_tombstones:
            self._cleaned[place] = end

    def _records(self, topic: str, partition: int, first: int) -> list[KeyedRecord]:
        """Return the records of a batch, none if it was deleted or cannot be read."""
        data = self._store.batch(topic, partition, first)
        return [] if data is None else keyed_records(data) or []

    def _keep(
        self, topic: str, partition: int, first: int, records: list[KeyedRecord], *, is_needed: bool
    ) -> None:
        """Keep some records of a batch.

        ``is_needed``: keep the batch even without records. The end of the partition, or the sequence of an
        idempotent producer, is known from it.
        """
        data = self._store.batch(topic, partition, first)
        if data is None:
            return
        if records or is_needed:
            new, newest_ms = with_records(data, records)
            self._store.replace_batch(topic, partition, first, new, newest_ms)
        else:
            self._store.replace_batch(topic, partition, first, None, -1)


def _aborted(batches: Iterable[BatchHeader], transactions: Iterable[Transaction]) -> set[int]:
    """Return the first offsets of the batches of aborted transactions. Both are in the order of offsets."""
    aborted = set[int]()
    to_come, ends = deque(transactions), dict[int, int]()
    for batch in batches:
        while to_come and to_come[0].first <= batch.first:
            begun = to_come.popleft()
            ends[begun.producer] = begun.last or 0
        if batch.first < ends.get(batch.producer, 0):
            aborted.add(batch.first)
    return aborted


class Cleaning:
    """Runs a cleaner on an event loop, from time to time, in short slices. `stop` it at the end."""

    def __init__(
        self, loop: AbstractEventLoop, cleaner: Cleaner, now_ms: Callable[[], int], every_seconds: float
    ) -> None:
        self._loop, self.cleaner, self._now_ms, self._every_seconds = loop, cleaner, now_ms, every_seconds
        self._steps: Iterator[None] = iter(())
        self._timer: TimerHandle = loop.call_later(every_seconds, self._begin)

    def stop(self) -> None:
        """Cancel the timer."""
        self._timer.cancel()

    def _begin(self) -> None:
        self._steps = self.cleaner.steps(self._now_ms())
        self._continue()

    def _continue(self) -> None:
        until = self._loop.time() + SLICE_SECONDS
        try:
            for _ in self._steps:
                if self._loop.time() >= until:
                    self._timer = self._loop.call_later(SLICE_SECONDS, self._continue)
                    return
        except sqlite3.Error as error:
            LOG.warning("records are not cleaned: %s", error)
        self._timer = self._loop.call_later(self._every_seconds, self._begin)
