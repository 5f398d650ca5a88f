"""Requests about producer ids and transactions.

Both protocols of transactions are served: that of KIP-98, and that of KIP-890 (``transaction.version`` 2), in
which Produce 12 and TxnOffsetCommit 5 add partitions and groups, and EndTxn 5 gives its producer the next
epoch.
"""

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, TypeAlias

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.reading.patterns import topic_pattern
from rebalance_kafka.broker.data import Data
from rebalance_kafka.broker.producers import Place
from rebalance_kafka.broker.topics import OFFSETS_TOPIC
from rebalance_kafka.broker.transaction_states import NO_ID, Producer, State, TransactionalId
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.messages import Values

WITH_NEXT_EPOCH = 5
"""The version from which on EndTxn gives its producer the next epoch."""

_FENCED_SINCE = {
    Api.INIT_PRODUCER_ID: 4,
    Api.ADD_PARTITIONS_TO_TXN: 2,
    Api.ADD_OFFSETS_TO_TXN: 2,
    Api.END_TXN: 2,
}
"""API -> the version from which on clients know PRODUCER_FENCED (KIP-588)."""

Handler: TypeAlias = Callable[[Data, Request, int], Values]
"""Returns the response to a request at a time of day in milliseconds."""


def _init_producer_id(data: Data, request: Request, now_ms: int) -> Values:
    body = request.body
    found = _next_producer(data, request, body.transactional_id, now_ms)
    if isinstance(found, Producer):
        return {"error_code": Wire.none, "producer_id": found.producer_id, "producer_epoch": found.epoch}
    return {"error_code": _known(found, request), "producer_id": NO_ID, "producer_epoch": NO_ID}


def _next_producer(
    data: Data, request: Request, transactional_id: str | None, now_ms: int
) -> Producer | Wire:
    body = request.body
    if transactional_id is None:
        return _new_producer(data)
    named = Producer(getattr(body, "producer_id", NO_ID), getattr(body, "producer_epoch", NO_ID))
    if (named.producer_id == NO_ID) != (named.epoch == NO_ID):
        return Wire.invalid_request
    return data.transactions.initialize(
        transactional_id, body.transaction_timeout, None if named.producer_id == NO_ID else named, now_ms
    )


def _new_producer(data: Data) -> Producer | Wire:
    """Return a producer without transactions: an error that clients repeat if its id cannot be written."""
    ids = list[int]()
    failed = data.unwritten(lambda: ids.append(data.store.next_producer_id()))
    return Wire.coordinator_not_available if failed else Producer(ids[0], 0)


def _add_partitions(data: Data, request: Request, now_ms: int) -> Values:
    """Add all partitions or none. If one is unknown, the others are OPERATION_NOT_ATTEMPTED."""
    body = request.body
    places = [(topic.name, number) for topic in body.v3_and_below_topics for number in topic.partitions]
    refusals = {place: data.refusal(*place) for place in places}
    if any(refusals.values()):
        errors = {place: error or Wire.operation_not_attempted for place, error in refusals.items()}
        return {"results_by_topic_v3_and_below": _by_topic_and_number(errors)}
    producer = Producer(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
    name = body.v3_and_below_transactional_id
    error = _known(data.transactions.add(name, producer, now_ms, partitions=places), request)
    return {"results_by_topic_v3_and_below": _results(body.v3_and_below_topics, lambda _: error)}


def _results(topics: Iterable[Any], error_of: Callable[[Place], Wire]) -> tuple[Values, ...]:
    """Return the rows of a response as the topics of the request."""
    return tuple(
        {
            "name": topic.name,
            "results_by_partition": tuple(
                {"partition_index": number, "partition_error_code": error_of((topic.name, number))}
                for number in topic.partitions
            ),
        }
        for topic in topics
    )


def _by_topic_and_number(errors: Mapping[Place, Wire]) -> tuple[Values, ...]:
    """Return the rows of a response with each topic and each partition once."""
    topics = [SimpleNamespace(name=name, partitions=numbers) for name, numbers in _by_topic(errors).items()]
    return _results(topics, errors.__getitem__)


def _add_offsets(data: Data, request: Request, now_ms: int) -> Values:
    body = request.body
    groups = (body.group_id,)
    error = data.transactions.add(body.transactional_id, _producer(body), now_ms, groups=groups)
    return {"error_code": _known(error, request)}


def _end(data: Data, request: Request, now_ms: int) -> Values:
    body, transactions = request.body, data.transactions
    if request.version < WITH_NEXT_EPOCH:
        error = transactions.end(body.transactional_id, _producer(body), now_ms, committed=body.committed)
        return {"error_code": _known(error, request)}
    found = transactions.end_with_next_epoch(
        body.transactional_id, _producer(body), now_ms, committed=body.committed
    )
    if isinstance(found, Producer):
        return {"error_code": Wire.none, "producer_id": found.producer_id, "producer_epoch": found.epoch}
    return {"error_code": found, "producer_id": NO_ID, "producer_epoch": NO_ID}


def _describe(data: Data, request: Request, _: int) -> Values:
    rows = [_described(data, name) for name in request.body.transactional_ids]
    return {"transaction_states": tuple(rows)}


def _described(data: Data, name: str) -> Values:
    error = Wire.none
    found = data.transactions.find(name)
    if found is None:
        error = Wire.transactional_id_not_found if name else Wire.invalid_request
    record = found or TransactionalId(name, Producer(0, 0), 0, began_ms=0)
    groups = [(OFFSETS_TOPIC, data.home(group_id)) for group_id in record.groups]
    return {
        "error_code": error,
        "transactional_id": name,
        "transaction_state": "" if found is None else record.state.value,
        "transaction_timeout": record.timeout_ms,
        "transaction_start_time": record.began_ms,
        "producer_id": record.producer.producer_id,
        "producer_epoch": record.producer.epoch,
        "topics": tuple(
            {"topic": topic, "partitions": tuple(numbers)}
            for topic, numbers in _by_topic(dict.fromkeys((*record.partitions, *groups))).items()
        ),
    }


def _list(data: Data, request: Request, now_ms: int) -> Values:
    body = request.body
    states = {name for name in body.state_filters if name in [*State]}
    producers = set(body.producer_id_filters)
    lasts_ms = getattr(body, "duration_filter", -1)
    try:
        pattern = topic_pattern(getattr(body, "transactional_id_pattern", None) or ".*")
    except ValueError:
        return {
            "error_code": Wire.invalid_regular_expression,
            "unknown_state_filters": (),
            "transaction_states": (),
        }
    rows = tuple(
        {
            "transactional_id": record.name,
            "producer_id": record.producer.producer_id,
            "transaction_state": record.state.value,
        }
        for record in data.transactions
        if (not body.state_filters or record.state in states)
        and (not producers or record.producer.producer_id in producers)
        and (lasts_ms < 0 or now_ms - record.began_ms > lasts_ms)
        and pattern.fullmatch(record.name)
    )
    unknown = tuple(name for name in body.state_filters if name not in states)
    return {"error_code": Wire.none, "unknown_state_filters": unknown, "transaction_states": rows}


def _producer(body: Any) -> Producer:
    return Producer(body.producer_id, body.producer_epoch)


def _known(error: Wire, request: Request) -> Wire:
    """Return an error as the version of the request knows it."""
    if error is Wire.producer_fenced and request.version < _FENCED_SINCE[request.api]:
        return Wire.invalid_producer_epoch
    return error


def _by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(number)
    return topics


HANDLERS: Mapping[Api, Handler] = {
    Api.INIT_PRODUCER_ID: _init_producer_id,
    Api.ADD_PARTITIONS_TO_TXN: _add_partitions,
    Api.ADD_OFFSETS_TO_TXN: _add_offsets,
    Api.END_TXN: _end,
    Api.DESCRIBE_TRANSACTIONS: _describe,
    Api.LIST_TRANSACTIONS: _list,
}
