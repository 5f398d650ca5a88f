"""The states of one transactional id, as functions from its newest record and a request to the next record.

Nothing here has effects: a caller writes the record that a function returns, if it is another one, and then
acts on it. The rules are those of Kafka's transaction coordinator (KIP-98, KIP-360, KIP-890). The state Dead,
of ids that expire, is not implemented.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from kio.schema.errors import ErrorCode as Wire
from msgspec.structs import replace

from rebalance_kafka.broker.producers import Place

LAST_EPOCH = 2**15 - 2
"""The highest epoch of a producer. One more is left to fence this producer."""

NO_ID = NO_EPOCH = -1

_Item = TypeVar("_Item")


class State(StrEnum):
    """The states, by the names that administrators see."""

    EMPTY = "Empty"
    """There was no transaction since the producer got its epoch."""
    ONGOING = "Ongoing"
    """The transaction has partitions or groups, and is aborted when its time is over."""
    PREPARE_COMMIT = "PrepareCommit"
    """The transaction will be committed. Its markers may be missing."""
    PREPARE_ABORT = "PrepareAbort"
    """The transaction will be aborted. Its markers may be missing."""
    COMPLETE_COMMIT = "CompleteCommit"
    """All markers of the last transaction are written: it is committed."""
    COMPLETE_ABORT = "CompleteAbort"
    """All markers of the last transaction are written: it is aborted."""


PREPARED = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}
"""State with an outcome that is decided -> the state when all markers are written."""

_END_AGAIN = {
    (State.PREPARE_COMMIT, True): Wire.concurrent_transactions,
    (State.PREPARE_ABORT, False): Wire.concurrent_transactions,
    (State.COMPLETE_COMMIT, True): Wire.none,
    (State.COMPLETE_ABORT, False): Wire.none,
}
"""State and outcome of an EndTxn -> the response, if the transaction has that outcome already."""


class Producer(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class TransactionalId(msgspec.Struct, frozen=True, array_like=True):
    """A transactional id, with its producer, and the partitions and groups of its transaction.

    ``began_ms`` is when the transaction began, -1 before the first one of the producer. ``previous`` is the
    id before the last change, and the epoch that a producer may name although it is replaced, -1 if there is
    none. ``next_id``: the producer id when the transaction is complete, as the epochs of the present one are
    used up, -1 if it stays.
    """

    name: str
    producer: Producer
    timeout_ms: int
    state: State = State.EMPTY
    partitions: tuple[Place, ...] = ()
    groups: tuple[str, ...] = ()
    began_ms: int = -1
    previous: Producer | None = None
    next_id: int = NO_ID

    @property
    def deadline_ms(self) -> int | None:
        """The time at which the transaction is aborted, None without a transaction that can be."""
        return self.began_ms + self.timeout_ms if self.state is State.ONGOING else None

    @property
    def replaced(self) -> Producer:
        """The producer before the last change, with the last epoch that it may name."""
        return self.previous or Producer(self.producer.producer_id, NO_EPOCH)

    @property
    def following(self) -> Producer:
        """The producer that goes on when the transaction is complete."""
        return self.producer if self.next_id == NO_ID else Producer(self.next_id, 0)


Next: TypeAlias = TransactionalId | Wire
"""The next record of a transactional id, or the error of a request that changes nothing."""


def initialized(
    found: TransactionalId | None,
    name: str,
    timeout_ms: int,
    named: Producer | None,
    new_id: Callable[[], int],
) -> Next:
    """Return the record with the next producer of a transactional id.

    A transaction that is ongoing is aborted first: the record is in the state PREPARE_ABORT, and the request
    is to be repeated. ``found``: the record of the id, None for a new one. ``named``: the producer that
    requests it to continue after an error (KIP-360). ``new_id`` returns an unused producer id.
    """
    if found is None:
        return TransactionalId(name, Producer(new_id(), 0), timeout_ms)
    producer_id, epoch = found.producer
    if named is not None and not _is_own(named, found):
        return Wire.producer_fenced
    if found.state in PREPARED:
        return Wire.concurrent_transactions
    if found.state is State.ONGOING:
        return fenced(found, new_id)
    if named is None or named.epoch == epoch:
        last = NO_EPOCH if named is None else epoch
        producer = Producer(new_id(), 0) if epoch >= LAST_EPOCH else Producer(producer_id, epoch + 1)
    elif named.epoch == found.replaced.epoch:
        last, producer = named.epoch, found.producer
    else:
        return Wire.producer_fenced
    return TransactionalId(name, producer, timeout_ms, previous=Producer(producer_id, last))


def _is_own(named: Producer, found: TransactionalId) -> bool:
    """Return whether a producer has the id, or had it until its epochs were used up."""
    if named.producer_id == found.producer.producer_id:
        return True
    return named.producer_id == found.replaced.producer_id and named.epoch >= LAST_EPOCH


def added(
    found: TransactionalId | None,
    producer: Producer,
    partitions: Iterable[Place],
    groups: Iterable[str],
    now_ms: int,
) -> Next:
    """Return the record with more partitions and groups in the transaction, which begins with the first."""
    record = _of(producer, found)
    if isinstance(record, Wire):
        return record
    if record.state in PREPARED:
        return Wire.concurrent_transactions
    begins = record.state is not State.ONGOING
    all_partitions, all_groups = _united(record.partitions, partitions), _united(record.groups, groups)
    if not begins and (all_partitions, all_groups) == (record.partitions, record.groups):
        return record
    return _changed(
        record,
        state=State.ONGOING,
        partitions=all_partitions,
        groups=all_groups,
        began_ms=now_ms if begins else record.began_ms,
    )


def verified(
    found: TransactionalId | None,
    producer: Producer,
    *,
    partition: Place | None = None,
    group: str | None = None,
) -> Wire:
    """Return whether a partition or a group is in the transaction of a producer, or why it is not."""
    record = _of(producer, found)
    if isinstance(record, Wire):
        return record
    if record.state in PREPARED:
        return Wire.concurrent_transactions
    is_in = partition in record.partitions or group in record.groups
    return Wire.none if is_in else Wire.transaction_abortable


def ended(found: TransactionalId | None, producer: Producer, *, committed: bool) -> Next:
    """Return the record with the outcome of the transaction. A repeated request changes nothing."""
    record = _of(producer, found)
    if isinstance(record, Wire):
        return record
    if record.state is State.ONGOING:
        return _changed(record, state=State.PREPARE_COMMIT if committed else State.PREPARE_ABORT)
    error = _END_AGAIN.get((record.state, committed), Wire.invalid_txn_state)
    return record if error is Wire.none else error


def ended_with_next_epoch(
    found: TransactionalId | None,
    producer: Producer,
    now_ms: int,
    new_id: Callable[[], int],
    *,
    committed: bool,
) -> Next:
    """Return the record with the outcome of the transaction, and the next epoch (EndTxn 5, KIP-890).

    A repeated request changes nothing. A producer may abort without a transaction.
    """
    if found is None:
        return Wire.invalid_producer_id_mapping
    producer_id, epoch = found.producer
    is_overflow = producer == (found.replaced.producer_id, LAST_EPOCH) and epoch == 0
    is_repeated = is_overflow or epoch == producer.epoch + 1
    if producer.producer_id != producer_id and not is_overflow:
        return Wire.invalid_producer_id_mapping
    if found.state in PREPARED:
        is_valid = epoch == producer.epoch + 1
    else:
        is_valid = producer.epoch == epoch or (is_repeated and found.state in PREPARED.values())
    if not is_valid:
        return Wire.producer_fenced
    if found.state is State.ONGOING:
        return _prepared(found, new_id, committed=committed)
    if is_repeated:
        error = _END_AGAIN.get((found.state, committed), Wire.invalid_txn_state)
        return found if error is Wire.none else error
    if committed:
        return Wire.invalid_txn_state
    return _prepared(replace(found, began_ms=now_ms), new_id, committed=False)


def fenced(found: TransactionalId, new_id: Callable[[], int]) -> TransactionalId:
    """Return the record of an ongoing transaction that is aborted without its producer, which is fenced.

    It may name its epoch in InitProducerId, and gets the next one then (KIP-360).
    """
    return _prepared(found, new_id, committed=False)


def _prepared(found: TransactionalId, new_id: Callable[[], int], *, committed: bool) -> TransactionalId:
    """Return the record with an outcome, and the next epoch."""
    producer_id, epoch = found.producer
    return _changed(
        found,
        state=State.PREPARE_COMMIT if committed else State.PREPARE_ABORT,
        producer=Producer(producer_id, epoch + 1),
        previous=found.producer,
        next_id=new_id() if epoch >= LAST_EPOCH else NO_ID,
    )


def completed(found: TransactionalId) -> TransactionalId:
    """Return the record of a transaction whose markers are written."""
    state, producer = PREPARED[found.state], found.following
    return _changed(found, state=state, producer=producer, partitions=(), groups=(), next_id=NO_ID)


def _changed(found: TransactionalId, **fields: Any) -> TransactionalId:
    """Return the record with other fields. Its producer id is the one before this change."""
    previous = Producer(found.producer.producer_id, found.replaced.epoch)
    return replace(found, **{"previous": previous, **fields})


def _of(producer: Producer, found: TransactionalId | None) -> Next:
    """Return the record of a transactional id, or why a producer may not use the id."""
    if found is None or producer.producer_id != found.producer.producer_id:
        return Wire.invalid_producer_id_mapping
    return found if producer == found.producer else Wire.producer_fenced


def _united(first: Iterable[_Item], second: Iterable[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys((*first, *second)))
