"""The states of one transactional id, as functions from its newest record and a request to the next record.

Nothing here has effects: a caller writes the record that a function returns, if it is another one, and then
acts on it. The rules are those of Kafka's transaction coordinator (KIP-98, KIP-360). The state Dead, of ids
that expire, is not implemented.

One rule is stricter than in Kafka: an InitProducerId that names a replaced producer is fenced as soon as the
next producer has begun a transaction. It never aborts that transaction.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec
from kio.schema.errors import ErrorCode as Wire
from msgspec.structs import replace

from rebalance_kafka.broker.producers import Place

LAST_EPOCH = 2**15 - 2
"""The highest epoch of a producer. One more is left to fence this producer."""

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
    producer that the last InitProducerId named, which may repeat its request.
    """

    name: str
    producer: Producer
    timeout_ms: int
    state: State = State.EMPTY
    partitions: tuple[Place, ...] = ()
    groups: tuple[str, ...] = ()
    began_ms: int = -1
    previous: Producer | None = None

    @property
    def deadline_ms(self) -> int | None:
        """The time at which the transaction is aborted, None without a transaction that can be."""
        return self.began_ms + self.timeout_ms if self.state is State.ONGOING else None


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
    is_repeated = named is not None and named == found.previous and found.state is State.EMPTY
    if named is not None and named != found.producer and not is_repeated:
        return Wire.producer_fenced
    if found.state in PREPARED:
        return Wire.concurrent_transactions
    if found.state is State.ONGOING:
        return fenced(found)
    if is_repeated:
        return replace(found, timeout_ms=timeout_ms)
    producer_id, epoch = found.producer
    producer = Producer(new_id(), 0) if epoch >= LAST_EPOCH else Producer(producer_id, epoch + 1)
    return TransactionalId(name, producer, timeout_ms, previous=named)


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
    return replace(
        record,
        state=State.ONGOING,
        partitions=_united(record.partitions, partitions),
        groups=_united(record.groups, groups),
        began_ms=record.began_ms if record.state is State.ONGOING else now_ms,
    )


def ended(found: TransactionalId | None, producer: Producer, *, committed: bool) -> Next:
    """Return the record with the outcome of the transaction. A repeated request changes nothing."""
    record = _of(producer, found)
    if isinstance(record, Wire):
        return record
    if record.state is State.ONGOING:
        return replace(record, state=State.PREPARE_COMMIT if committed else State.PREPARE_ABORT)
    error = _END_AGAIN.get((record.state, committed), Wire.invalid_txn_state)
    return record if error is Wire.none else error


def fenced(found: TransactionalId) -> TransactionalId:
    """Return the record of an ongoing transaction that is aborted without its producer, which is fenced."""
    producer = found.producer._replace(epoch=found.producer.epoch + 1)
    return replace(found, state=State.PREPARE_ABORT, producer=producer)


def completed(found: TransactionalId) -> TransactionalId:
    """Return the record of a transaction whose markers are written."""
    return replace(found, state=PREPARED[found.state], partitions=(), groups=())


def _of(producer: Producer, found: TransactionalId | None) -> Next:
    """Return the record of a transactional id, or why a producer may not use the id."""
    if found is None or producer.producer_id != found.producer.producer_id:
        return Wire.invalid_producer_id_mapping
    return found if producer == found.producer else Wire.producer_fenced


def _united(first: Iterable[_Item], second: Iterable[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys((*first, *second)))
