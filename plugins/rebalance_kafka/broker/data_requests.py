"""Requests about topics and records: Metadata, ListOffsets and similar."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.protocol.messages import READ_COMMITTED
from rebalance_kafka.broker import topic_admin
from rebalance_kafka.broker.data import LEADER_EPOCH, NO_EPOCH, Data, for_each_partition
from rebalance_kafka.broker.operations import ON_TOPIC
from rebalance_kafka.broker.producers import Place
from rebalance_kafka.wire.apis import LISTED_FROM, MOST_VERSION, VERSIONS, Api
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.messages import Values

LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
"""Timestamps of ListOffsets that are not times. `NEWEST` is the record with the largest time (KIP-734)."""

_SINCE = {LATEST: 0, EARLIEST: 0, NEWEST: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
"""Timestamp -> the first version of ListOffsets that has it."""

MOST_EXACT = 20
"""Partitions of a request whose records are searched for a time."""

FEATURES = {"group.version": 1, "transaction.version": 2}
"""The finalized features: the consumer protocol (KIP-848), and the second part of KIP-890."""

MIN_FEATURE_0 = 4
"""The first version of ApiVersions in which a feature may have the lowest version 0 (KAFKA-17011)."""

NO_NODE = -1
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""The name and the version of a client (KIP-511)."""

METADATA_BY_ID = 12
"""The first version of Metadata in which topics can be wanted by their ids."""

Handler: TypeAlias = Callable[[Data, Request], Values]


def api_versions(error: Wire = Wire.none, version: int = 0) -> Values:
    """Return the body that lists the APIs and features of this broker."""
    keys = tuple(
        {"api_key": int(api), "min_version": LISTED_FROM.get(api, lowest), "max_version": highest}
        for api, (lowest, highest) in VERSIONS.items()
    )
    finalized = tuple(
        {"name": name, "max_version_level": level, "min_version_level": level}
        for name, level in FEATURES.items()
    )
    supported = tuple(
        {"name": name, "min_version": 0, "max_version": level} for name, level in FEATURES.items()
    )
    return {
        "error_code": error,
        "api_keys": keys,
        "supported_features": supported if version >= MIN_FEATURE_0 else (),
        "finalized_features_epoch": 0,
        "finalized_features": finalized,
    }


def versions_of(request: Request, cluster_id: str, node: int) -> Values:
    """Return the response to ApiVersions, an error for another broker or without the client's software."""
    body = request.body
    software = getattr(body, "client_software_name", "x"), getattr(body, "client_software_version", "x")
    expected = getattr(body, "cluster_id", None), getattr(body, "node_id", NO_NODE)
    error = Wire.none
    if not all(map(_SOFTWARE.fullmatch, software)) or (expected[0] is None) != (expected[1] == NO_NODE):
        error = Wire.invalid_request
    elif expected not in ((None, NO_NODE), (cluster_id, node)):
        error = Wire.rebootstrap_required
    return {"error_code": error, "api_keys": ()} if error else api_versions(version=request.version)


def _api_versions(data: Data, request: Request) -> Values:
    return versions_of(request, data.cluster_id, data.node)


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
        "topics": tuple(_with_operations(request, topic) for topic in _wanted_topics(data, request)),
        "error_code": Wire.none,
        **topic_admin.cluster_operations(request),
    }


def _with_operations(request: Request, topic: Values) -> Values:
    """Return a topic with the operations on it, all of which are allowed, if the request includes them."""
    if topic["name"] is None or not getattr(request.body, "include_topic_authorized_operations", False):
        return topic
    return {**topic, "topic_authorized_operations": ON_TOPIC}


def _wanted_topics(data: Data, request: Request) -> Iterable[Values]:
    """Return the topics of a Metadata request.

    If a topic has an id, all are looked up by their ids, and their names are not read (KIP-516).
    """
    body, topics = request.body, data.topics
    if body.topics is None or (request.version == 0 and not body.topics):
        return [_described(data, name) for name in topics.partitions]
    wanted = [(topic.name, getattr(topic, "topic_id", None)) for topic in body.topics]
    ids = dict.fromkeys(number for name, number in wanted if number is not None or name is None)
    if ids and request.version < METADATA_BY_ID:
        return [_no_topic(Wire.invalid_request, name or "", None) for name, _ in wanted]
    if ids:
        return [_described_by_id(data, number) for number in ids]
    names = list(dict.fromkeys(name for name, _ in wanted))
    if data.partitions and (request.version < 4 or body.allow_auto_topic_creation):
        _create_missing(data, names)
    return [_described(data, name) for name in names]


def _create_missing(data: Data, names: Sequence[str]) -> None:
    new: dict[str, int] = {}
    for name in names:
        beside = len(new) * data.partitions
        known = name in data.topics.partitions
        if not known and not data.topics.cannot_create(name, data.partitions, beside):
            new[name] = data.partitions
    if new:
        data.unwritten(lambda: data.topics.create(new))


def _described(data: Data, name: str) -> Values:
    count = data.topics.partitions.get(name)
    error = Wire.none
    if count is None:
        refusal = data.topics.cannot_create(name, 1)
        error = refusal.error if refusal is not None else Wire.unknown_topic_or_partition
    nodes = (data.node,)
    partitions = tuple(
        {
            "error_code": Wire.none,
            "partition_index": number,
            "leader_id": data.node,
            "leader_epoch": LEADER_EPOCH,
            "replica_nodes": nodes,
            "isr_nodes": nodes,
        }
        for number in range(count or 0)
    )
    return {
        "error_code": error,
        "name": name,
        "topic_id": data.topics.ids.get(name),
        "partitions": partitions,
    }


def _described_by_id(data: Data, number: UUID | None) -> Values:
    name = data.topics.named(number)
    if name is None:
        return _no_topic(Wire.unknown_topic_id, None, number)
    return _described(data, name)


def _no_topic(error: Wire, name: str | None, number: UUID | None) -> Values:
    return {"error_code": error, "name": name, "topic_id": number, "partitions": ()}


def _list_offsets(data: Data, request: Request) -> Values:
    searched = count()
    committed = getattr(request.body, "isolation_level", 0) == READ_COMMITTED

    repeated = _repeated(request)

    def listed(topic: str, row: Any) -> Values:
        exact = next(searched) < MOST_EXACT
        if (topic, row.partition_index) in repeated:
            return {**_no_offset(row), "error_code": Wire.invalid_request}
        if row.timestamp < 0 and request.version < _SINCE.get(row.timestamp, MOST_VERSION):
            return {**_no_offset(row), "error_code": Wire.unsupported_version}
        return _listed(data, topic, row, exact=exact, committed=committed)

    body = for_each_partition(request, listed)
    rows: dict[str, dict[int, Values]] = {}
    for topic in body["topics"]:
        for row in topic["partitions"]:
            rows.setdefault(topic["name"], {})[row["partition_index"]] = row
    return {"topics": tuple({"name": name, "partitions": tuple(own.values())} for name, own in rows.items())}


def _repeated(request: Request) -> set[Place]:
    """Return the partitions that a request lists more than once."""
    times = Counter(
        (topic.name, row.partition_index) for topic in request.body.topics for row in topic.partitions
    )
    return {place for place, count in times.items() if count > 1}


def _no_offset(row: Any) -> dict[str, Any]:
    """Return the row of a response without an offset."""
    return {
        "partition_index": row.partition_index,
        "error_code": Wire.none,
        "timestamp": -1,
        "offset": -1,
        "leader_epoch": NO_EPOCH,
    }


def _listed(data: Data, topic: str, row: Any, *, exact: bool, committed: bool) -> Values:
    """Return an offset by a time. ``committed``: there are no offsets after the last stable one."""
    number, timestamp, nothing = row.partition_index, row.timestamp, _no_offset(row)
    error = data.refusal(topic, number, getattr(row, "current_leader_epoch", NO_EPOCH))
    if error is not None:
        return {**nothing, "error_code": error}
    values = {**nothing, "leader_epoch": LEADER_EPOCH}
    end = data.topics.last_stable(topic, number) if committed else data.topics.end(topic, number)
    if timestamp == LATEST:
        return {**values, "offset": end}
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return {**values, "offset": data.topics.start(topic, number)}
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return nothing
    try:
        if timestamp == NEWEST:
            offset, at_ms = data.topics.newest(topic, number, exact=exact)
        else:
            offset, at_ms = data.topics.offset_since(topic, number, timestamp, exact=exact)
    except sqlite3.Error as failure:
        data.store.failed(failure)
        return {**nothing, "error_code": Wire.kafka_storage_error}
    if timestamp != NEWEST and 0 <= offset < data.topics.start(topic, number):
        offset = data.topics.start(topic, number)
    return {**values, "offset": offset, "timestamp": at_ms} if 0 <= offset < end else nothing


def _epoch_ends(data: Data, request: Request) -> Values:
    """Return the ends of epochs (KIP-320). There is one epoch, 0, which goes on."""
    return for_each_partition(request, partial(_epoch_end, data), "topic")


def _epoch_end(data: Data, topic: str, row: Any) -> Values:
    values = {"partition": row.partition, "error_code": Wire.none, "leader_epoch": -1, "end_offset": -1}
    error = data.refusal(topic, row.partition, row.current_leader_epoch)
    if error is not None:
        return {**values, "error_code": error}
    if row.leader_epoch != LEADER_EPOCH:
        return values
    return {**values, "leader_epoch": LEADER_EPOCH, "end_offset": data.topics.end(topic, row.partition)}


HANDLERS: Mapping[Api, Handler] = {
    Api.API_VERSIONS: _api_versions,
    Api.METADATA: _metadata,
    Api.LIST_OFFSETS: _list_offsets,
    Api.OFFSET_FOR_LEADER_EPOCH: _epoch_ends,
    Api.SASL_HANDSHAKE: _no_sasl,
    Api.SASL_AUTHENTICATE: _no_sasl,
    **topic_admin.HANDLERS,
}
