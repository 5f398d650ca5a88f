"""The transactions of all transactional ids: records in the store, markers and deadlines."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias
from zlib import crc32

import msgspec
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator.timers import Timers
from coordinator_core.errors import InputError
from rebalance_kafka.broker.producers import Place
from rebalance_kafka.broker.schema import RESTORE
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.broker.transaction_states import (
    PREPARED,
    Next,
    Producer,
    State,
    TransactionalId,
    added,
    completed,
    ended,
    ended_with_next_epoch,
    fenced,
    initialized,
    verified,
)

LOG = logging.getLogger(__name__)

MAX_TIMEOUT = "transaction.max.timeout.ms"
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of records. With more, no transactional id, partition or group is added."""

RETRY_MS = 1_000
"""The time after which markers that could not be written are tried again."""

_TIMER = 0
_CHECKED = b"\xc1"
"""The first byte of a record with a checksum. No record in msgpack begins with it."""
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TransactionalId)


def _encode(record: TransactionalId) -> bytes:
    body = _encoder.encode(record)
    return _CHECKED + crc32(body).to_bytes(4, "big") + body


def _decode(data: bytes, where: str) -> TransactionalId:
    """Decode a record, with its checksum if it has one.

    Raises:
        InputError: if it is damaged.
    """
    body = data[5:] if data[:1] == _CHECKED else data
    found = crc32(body).to_bytes(4, "big").hex()
    if body is not data and found != data[1:5].hex():
        raise InputError(where, f"a damaged record (checksum {found})", f"{data[1:5].hex()}; {RESTORE}")
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise InputError(where, f"a damaged record ({error})", f"a transactional id; {RESTORE}") from None


class TransactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of the time that a producer may give its transactions.

    Raises:
        InputError: if it is less than a millisecond.
    """

    max_timeout_ms: int = msgspec.field(default=900_000, name=MAX_TIMEOUT)

    def __post_init__(self) -> None:
        if self.max_timeout_ms < 1:
            raise InputError(MAX_TIMEOUT, f"{self.max_timeout_ms}", "1 or more")


EndOnGroup: TypeAlias = Callable[[str, int, bool, int], bool]
"""Called with a group, a producer id, whether its transaction is committed, and the time of day.

Commits or drops the offsets that the group has of the transaction. Returns False if the store does not accept
the outcome; it is called again then, and also with transactions that have ended before."""


class Transactions:
    """The transaction coordinator of the broker.

    A record is in the store before anything else follows from it, so that a broker that is killed knows the
    outcome of every transaction: `resume` writes the markers that are missing. Markers are written in the
    step in which the outcome is decided, and later if the store does not accept them.
    """

    def __init__(
        self,
        store: Store,
        topics: Topics,
        settings: TransactionSettings = TransactionSettings(),  # noqa: B008 (it is frozen)
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._store, self._topics = store, topics
        self._max_timeout_ms, self._most_bytes = settings.max_timeout_ms, most_bytes
        self.end_on_group: EndOnGroup | None = None
        self._records: dict[str, TransactionalId] = {}
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._timers = Timers()
        for number, data in enumerate(store.transactional_ids(), 1):
            where = f"{store.path}, record {number} of the table transactional_ids by name"
            self._apply(_decode(data, where), len(data))

    # --- requests

    def initialize(
        self, transactional_id: str, timeout_ms: int, named: Producer | None, now_ms: int
    ) -> Producer | Wire:
        """Give a transactional id its next producer. The producer before it is fenced.

        ``named``: the producer that requests it to continue after an error, None for one that starts.
        CONCURRENT_TRANSACTIONS: the request is to be repeated, since a transaction had to be aborted first.
        """
        if not transactional_id:
            return Wire.invalid_request
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return Wire.invalid_transaction_timeout
        found = self._records.get(transactional_id)
        new = self._with_new_id(
            lambda new_id: initialized(found, transactional_id, timeout_ms, named, new_id)
        )
        error = self._write(new, found, now_ms)
        if error is not Wire.none or not isinstance(new, TransactionalId):
            return error
        return Wire.concurrent_transactions if new.state in PREPARED else new.producer

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        now_ms: int,
        *,
        partitions: Iterable[Place] = (),
        groups: Iterable[str] = (),
    ) -> Wire:
        """Add partitions and groups to the transaction of a producer, which begins with the first of them."""
        if not transactional_id:
            return Wire.invalid_request
        found = self._records.get(transactional_id)
        return self._write(added(found, producer, partitions, groups, now_ms), found, now_ms)

    def verify(
        self,
        transactional_id: str,
        producer: Producer,
        *,
        partition: Place | None = None,
        group: str | None = None,
    ) -> Wire:
        """Return whether the transaction of a producer has a partition or a group, or why it does not."""
        if not transactional_id:
            return Wire.invalid_request
        return verified(self._records.get(transactional_id), producer, partition=partition, group=group)

    def end(self, transactional_id: str, producer: Producer, now_ms: int, *, committed: bool) -> Wire:
        """Commit or abort the transaction of a producer."""
        if not transactional_id:
            return Wire.invalid_request
        found = self._records.get(transactional_id)
        return self._write(ended(found, producer, committed=committed), found, now_ms)

    def end_with_next_epoch(
        self, transactional_id: str, producer: Producer, now_ms: int, *, committed: bool
    ) -> Producer | Wire:
        """Commit or abort the transaction of a producer. Return the producer with its next epoch."""
        if not transactional_id:
            return Wire.invalid_request
        found = self._records.get(transactional_id)
        new = self._with_new_id(
            lambda new_id: ended_with_next_epoch(found, producer, now_ms, new_id, committed=committed)
        )
        error = self._write(new, found, now_ms)
        return new.following if error is Wire.none and isinstance(new, TransactionalId) else error

    # --- what a transaction contains

    def find(self, transactional_id: str) -> TransactionalId | None:
        """Return the record of a transactional id, None if it is unknown."""
        return self._records.get(transactional_id)

    def ongoing(self, producer: Producer) -> list[TransactionalId]:
        """Return the records of the ongoing transactions of a producer, of which there is one at most."""
        return [r for r in self._records.values() if r.producer == producer and r.state is State.ONGOING]

    def __iter__(self) -> Iterator[TransactionalId]:
        """Return the records of all transactional ids, sorted by them."""
        return iter(sorted(self._records.values(), key=lambda record: record.name))

    # --- time

    def resume(self, now_ms: int) -> None:
        """Write the markers that were missing when the broker ended. To be called once, before requests."""
        for record in self:
            if record.state in PREPARED:
                self._complete(record, now_ms)

    def not_before_ms(self) -> int | None:
        """Return a time before which `on_deadline` has nothing to do, None if there is no such time."""
        return self._timers.not_before_ms()

    def on_deadline(self, now_ms: int) -> None:
        """Abort the transactions whose time is over, and write the markers that could not be written."""
        while (key := self._timers.pop_due(now_ms)) is not None:
            record = self._records[key.group_id]
            if record.state is State.ONGOING:
                LOG.info("transaction %s is aborted: its time is over", record.name)
                new = self._with_new_id(partial(fenced, record))
                if self._write(new, record, now_ms) is not Wire.none:
                    self._schedule(record.name, now_ms + RETRY_MS)
            else:
                self._complete(record, now_ms)

    # --- internals

    def _with_new_id(self, change: Callable[[Callable[[], int]], Next]) -> Next:
        """Return what a change of a record returns, which is called with a function for new producer ids."""
        try:
            return change(self._store.next_producer_id)
        except sqlite3.Error as failure:
            self._store.failed(failure)
            return Wire.not_coordinator

    def _write(self, new: Next, found: TransactionalId | None, now_ms: int) -> Wire:
        """Write a record that differs from the one found, and let happen what follows from it."""
        if not isinstance(new, TransactionalId):
            return new
        if new == found:
            return Wire.none
        data = _encode(new)
        more = len(data) - self._sizes.get(new.name, 0)
        if new.state not in PREPARED and self._bytes + more > self._most_bytes:
            return Wire.policy_violation
        try:
            self._store.save_transactional_id(new.name, data)
        except sqlite3.Error as error:
            self._store.failed(error)
            return Wire.not_coordinator  # as Kafka's coordinator, if its log has a KAFKA_STORAGE_ERROR
        self._apply(new, len(data))
        if new.state in PREPARED:
            self._complete(new, now_ms)
        return Wire.none

    def _complete(self, record: TransactionalId, now_ms: int) -> None:
        """Write the markers of a transaction, and then that they are written. Try again later if it fails."""
        try:
            if self._write_markers(record, now_ms):
                new = completed(record)
                data = _encode(new)
                self._store.save_transactional_id(new.name, data)
                self._apply(new, len(data))
                return
        except sqlite3.Error as error:
            LOG.warning("transaction %s: %s", record.name, error)
        self._schedule(record.name, now_ms + RETRY_MS)

    def _write_markers(self, record: TransactionalId, now_ms: int) -> bool:
        """Write the outcome of a transaction to its groups and partitions. Return whether all accept it."""
        committed = record.state is State.PREPARE_COMMIT
        for group_id in record.groups:
            if self.end_on_group and not self.end_on_group(
                group_id, record.producer.producer_id, committed, now_ms
            ):
                return False
        self._topics.end_transaction(record.partitions, *record.producer, committed=committed, now_ms=now_ms)
        return True

    def _apply(self, record: TransactionalId, size: int) -> None:
        """Replace the record of a transactional id, when it is stored."""
        name = record.name
        self._records[name] = record
        self._bytes += size - self._sizes.get(name, 0)
        self._sizes[name] = size
        if record.deadline_ms is None:
            self._timers.cancel(_TIMER, name, "")
        else:
            self._schedule(name, record.deadline_ms)

    def _schedule(self, transactional_id: str, at_ms: int) -> None:
        self._timers.schedule(_TIMER, transactional_id, "", at_ms)
