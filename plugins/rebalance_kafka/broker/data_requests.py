"""Requests about topics and records: Metadata, Produce, ListOffsets and similar."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.protocol.messages import READ_COMMITTED
from rebalance_kafka.access import Access, Operation
from rebalance_kafka.broker import topic_admin
from rebalance_kafka.broker.data import Data, for_each_partition
from rebalance_kafka.broker.topics import Appended, Topics
from rebalance_kafka.wire.apis import VERSIONS, Api
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.messages import Values

LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""Timestamps of ListOffsets that are not times. `NEWEST` is the record with the largest time (KIP-734)."""

MOST_EXACT = 20
"""Partitions of a request whose records are searched for a time."""

METADATA_BY_ID = 12
"""The first version of Metadata in which topics can be wanted by their ids."""

Handler: TypeAlias = Callable[[Data, Request], Values | None]
"""Returns the body of the response, None if the client wants none (Produce with acks 0)."""


def api_versions(error: Wire = Wire.none) -> Values:
    """Return the body that lists the APIs of this broker."""
    keys = tuple(
        {"api_key": int(api), "min_version": lowest, "max_version": highest}
        for api, (lowest, highest) in VERSIONS.items()
    )
    return {"error_code": error, "api_keys": keys}


def _api_versions(_: Data, __: Request) -> Values:
    return api_versions()


def _no_sasl(_: Data, request: Request) -> Values:
    """Refuse an authentication that is complete, or that this broker does not have."""
    values: Values = {"error_code": Wire.illegal_sasl_state}
    if request.api is Api.SASL_HANDSHAKE:
        return {**values, "mechanisms": ()}
    found = "a request for authentication after it, or to a broker without SASL"
    return {**values, "error_message": found, "auth_bytes": b""}


def _metadata(data: Data, request: Request) -> Values:
    broker = {"node_id": data.node, "host": data.address.host, "port": data.address.port}
    return {
        "brokers": (broker,),
        "cluster_id": data.cluster_id,
        "controller_id": data.node,
        "topics": tuple(_wanted_topics(data, request)),
        "error_code": Wire.none,
    }


def _wanted_topics(data: Data, request: Request) -> Iterable[Values]:
    """Return the topics of a Metadata request.

    If a topic has an id, all are looked up by their ids, and their names are not read (KIP-516).
    """
    body, topics, access = request.body, data.topics, request.access
    if body.topics is None or (request.version == 0 and not body.topics):
        visible = [name for name in topics.partitions if access.topic(Operation.DESCRIBE, name)]
        return [_described(data, name, access) for name in visible]
    wanted = [(topic.name, getattr(topic, "topic_id", None)) for topic in body.topics]
    ids = dict.fromkeys(number for name, number in wanted if number is not None or name is None)
    if ids and request.version < METADATA_BY_ID:
        return [_no_topic(Wire.invalid_request, name or "", None) for name, _ in wanted]
    if ids:
        return [_described_by_id(data, number, access) for number in ids]
    names = list(dict.fromkeys(name for name, _ in wanted))
    if data.partitions and (request.version < 4 or body.allow_auto_topic_creation):
        _create_missing(data, [name for name in names if access.topic(Operation.CREATE, name)])
    return [_described(data, name, access) for name in names]


def _create_missing(data: Data, names: Sequence[str]) -> None:
    new: dict[str, int] = {}
    for name in names:
        beside = len(new) * data.partitions
        known = name in data.topics.partitions
        if not known and not data.topics.cannot_create(name, data.partitions, beside):
            new[name] = data.partitions
    if new:
        data.unwritten(lambda: data.topics.create(new))


def _described(data: Data, name: str, access: Access) -> Values:
    count = data.topics.partitions.get(name)
    error = Wire.none
    if not access.topic(Operation.DESCRIBE, name):
        count, error = None, Wire.topic_authorization_failed
    elif count is None:
        refusal = data.topics.cannot_create(name, 1)
        error = refusal.error if refusal is not None else Wire.unknown_topic_or_partition
    nodes = (data.node,)
    partitions = tuple(
        {
            "error_code": Wire.none,
            "partition_index": number,
            "leader_id": data.node,
            "leader_epoch": 0,
            "replica_nodes": nodes,
            "isr_nodes": nodes,
        }
        for number in range(count or 0)
    )
    number = None if error is Wire.topic_authorization_failed else data.topics.ids.get(name)
    return {"error_code": error, "name": name, "topic_id": number, "partitions": partitions}


def _described_by_id(data: Data, number: UUID | None, access: Access) -> Values:
    """Describe the topic with an id. An error does not disclose its name."""
    name = data.topics.named(number)
    if name is None:
        return _no_topic(Wire.unknown_topic_id, None, number)
    if not access.topic(Operation.DESCRIBE, name):
        return _no_topic(Wire.topic_authorization_failed, None, number)
    return _described(data, name, access)


def _no_topic(error: Wire, name: str | None, number: UUID | None) -> Values:
    return {"error_code": error, "name": name, "topic_id": number, "partitions": ()}


def _produce(data: Data, request: Request) -> Values | None:
    named = [(*data.name_and_id(topic), topic.partition_data) for topic in request.body.topic_data]
    results = iter(_appended(data, request, [(name, row) for name, _, rows in named for row in rows]))
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


def _appended(data: Data, request: Request, rows: Sequence[tuple[str | None, Any]]) -> list[Appended]:
    """Append the records of a request to partitions. Return a result for each."""
    body = request.body
    if body.acks not in (-1, 0, 1):
        return [Appended(Wire.invalid_required_acks)] * len(rows)
    producer_id = None
    if body.transactional_id is not None:
        if not request.access.transactional_id(Operation.WRITE, body.transactional_id):
            return [Appended(Wire.transactional_id_authorization_failed)] * len(rows)
        found = data.transactions.find(body.transactional_id)
        producer_id = -1 if found is None else found.producer.producer_id
    refusals = {name: _cannot_write(request, name) for name, _ in rows}
    written = [
        (name, row.index, row.records) for name, row in rows if name is not None and not refusals[name]
    ]
    results = list[Appended]()
    failed = data.unwritten(lambda: results.extend(data.topics.append(written, transactions_of=producer_id)))
    each = iter([failed] * len(written) if failed else results)
    return [refusals[name] or next(each) for name, _ in rows]


def _cannot_write(request: Request, topic: str | None) -> Appended | None:
    if topic is None:
        return Appended(Wire.unknown_topic_id)
    may = request.access.topic(Operation.WRITE, topic)
    return None if may else Appended(Wire.topic_authorization_failed)


def _written(topics: Topics, topic: str | None, index: int, result: Appended) -> Values:
    start = -1 if topic is None or result.error is not Wire.none else topics.start(topic, index)
    return {
        "index": index,
        "error_code": result.error,
        "base_offset": result.base_offset,
        "log_append_time": None,
        "log_start_offset": start,
        "record_errors": (),
        "error_message": result.message,
    }


def _list_offsets(data: Data, request: Request) -> Values:
    searched = count()
    committed = getattr(request.body, "isolation_level", 0) == READ_COMMITTED

    def listed(topic: str, partition: Any) -> Values:
        exact = next(searched) < MOST_EXACT
        return _listed(data, request.access, topic, partition, exact=exact, committed=committed)

    return for_each_partition(request, listed)


def _listed(
    data: Data, access: Access, topic: str, partition: Any, *, exact: bool, committed: bool
) -> Values:
    """Return an offset by a time. ``committed``: there are no offsets after the last stable one."""
    number, timestamp = partition.partition_index, partition.timestamp
    values = {"partition_index": number, "error_code": Wire.none, "timestamp": -1, "leader_epoch": 0}
    error = data.refusal(access, Operation.DESCRIBE, topic, number)
    if error is not None:
        return {**values, "error_code": error, "offset": -1, "leader_epoch": -1}
    end = data.topics.last_stable(topic, number) if committed else data.topics.end(topic, number)
    if timestamp == LATEST:
        return {**values, "offset": end}
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return {**values, "offset": data.topics.start(topic, number)}
    if timestamp == LATEST_TIERED:
        return {**values, "offset": -1, "leader_epoch": -1}
    if timestamp < 0 and timestamp != NEWEST:
        return {**values, "error_code": Wire.invalid_request, "offset": -1, "leader_epoch": -1}
    try:
        if timestamp == NEWEST:
            offset, at_ms = data.topics.newest(topic, number, exact=exact)
        else:
            offset, at_ms = data.topics.offset_since(topic, number, timestamp, exact=exact)
    except sqlite3.Error as failure:
        data.store.failed(failure)
        return {**values, "error_code": Wire.kafka_storage_error, "offset": -1, "leader_epoch": -1}
    if timestamp != NEWEST and 0 <= offset < data.topics.start(topic, number):
        offset = data.topics.start(topic, number)
    return {**values, "offset": offset, "timestamp": at_ms} if offset < end else {**values, "offset": -1}


def _epoch_ends(data: Data, request: Request) -> Values:
    """Return the ends of epochs (KIP-320). There is one epoch, 0, which goes on."""
    end = partial(_epoch_end, data, request.access)
    return for_each_partition(request, end, "topic")


def _epoch_end(data: Data, access: Access, topic: str, row: Any) -> Values:
    values = {"partition": row.partition, "error_code": Wire.none, "leader_epoch": -1, "end_offset": -1}
    error = data.refusal(access, Operation.DESCRIBE, topic, row.partition)
    if error is not None:
        return {**values, "error_code": error}
    if row.leader_epoch != 0:
        return values
    return {**values, "leader_epoch": 0, "end_offset": data.topics.end(topic, row.partition)}


HANDLERS: Mapping[Api, Handler] = {
    Api.API_VERSIONS: _api_versions,
    Api.METADATA: _metadata,
    Api.PRODUCE: _produce,
    Api.LIST_OFFSETS: _list_offsets,
    Api.OFFSET_FOR_LEADER_EPOCH: _epoch_ends,
    Api.SASL_HANDSHAKE: _no_sasl,
    Api.SASL_AUTHENTICATE: _no_sasl,
    **topic_admin.HANDLERS,
}
