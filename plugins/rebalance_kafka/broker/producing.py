"""Produce: records that are appended to partitions, in a transaction or not."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.data import Data
from rebalance_kafka.broker.producers import Place
from rebalance_kafka.broker.topics import Appended, Begin, Topics
from rebalance_kafka.broker.transaction_states import Producer
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.messages import Values

KNOWS_ABORTABLE, ADDS_PARTITIONS = 11, 12
"""The first versions of Produce that know TRANSACTION_ABORTABLE, and that add partitions (KIP-890)."""

_OF_PRODUCE = {
    Wire.producer_fenced: Wire.invalid_producer_epoch,
    Wire.concurrent_transactions: Wire.not_enough_replicas,
}
"""Errors of a transactional id -> those of Produce, which clients repeat or not."""


def produce(data: Data, request: Request, now_ms: int) -> Values | None:
    """Return the body of the response at a time of day in milliseconds, None if the client wants none."""
    named = [(*data.name_and_id(topic), topic.partition_data) for topic in request.body.topic_data]
    results = iter(_appended(data, request, now_ms, [(name, row) for name, _, rows in named for row in rows]))
    responses = tuple(
        {
            "name": name,
            "topic_id": topic_id,
            "partition_responses": tuple(
                _written(data.topics, name, row.index, next(results)) for row in rows
            ),
        }
        for name, topic_id, rows in named
    )
    return None if request.body.acks == 0 else {"responses": responses}


def _appended(
    data: Data, request: Request, now_ms: int, rows: Sequence[tuple[str | None, Any]]
) -> list[Appended]:
    """Append the records of a request to partitions. Return a result for each."""
    body = request.body
    begin = None
    if body.transactional_id is not None:
        refusal = partial(_refused_to_begin, data, request, now_ms)
        begin = Begin(refusal, from_zero=request.version >= ADDS_PARTITIONS)
    refusals = [_cannot_write(data, request, name, row.index) for name, row in rows]
    written = [
        (name or "", row.index, row.records)
        for (name, row), refusal in zip(rows, refusals, strict=True)
        if refusal is None
    ]
    results = list[Appended]()
    failed = data.unwritten(lambda: results.extend(data.topics.append(written, begin=begin, now_ms=now_ms)))
    each = iter([failed] * len(written) if failed else results)
    return [refusal or next(each) for refusal in refusals]


def _refused_to_begin(
    data: Data, request: Request, now_ms: int, producer_id: int, epoch: int, partition: Place
) -> Wire:
    """Return why a partition is not in the transaction, or from version 12 on cannot be added to it."""
    transactions, name = data.transactions, request.body.transactional_id
    producer = Producer(producer_id, epoch)
    if request.version >= ADDS_PARTITIONS:
        error = transactions.add(name, producer, now_ms, partitions=(partition,))
    else:
        error = transactions.verify(name, producer, partition=partition)
    if error is Wire.transaction_abortable and request.version < KNOWS_ABORTABLE:
        return Wire.invalid_txn_state
    return _OF_PRODUCE.get(error, error)


def _cannot_write(data: Data, request: Request, topic: str | None, partition: int) -> Appended | None:
    """Return why nothing can be written to a partition, None if records can."""
    if topic is None:
        return Appended(Wire.unknown_topic_id)
    refusal = data.refusal(topic, partition)
    if refusal is None and request.body.acks not in (-1, 0, 1):
        refusal = Wire.invalid_required_acks
    return None if refusal is None else Appended(refusal)


def _written(topics: Topics, topic: str | None, index: int, result: Appended) -> Values:
    of_log = result.error in (Wire.none, Wire.out_of_order_sequence_number)
    start = topics.start(topic, index) if topic is not None and of_log else -1
    return {
        "index": index,
        "error_code": result.error,
        "base_offset": result.base_offset,
        "log_append_time": result.at_ms,
        "log_start_offset": start,
        "record_errors": (),
        "error_message": result.message,
    }
