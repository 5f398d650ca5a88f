"""What the broker answers about topics and records: Metadata, Produce, Fetch, ListOffsets and their like."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.addresses import Place
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import Appended, Topics
from rebalance_kafka.wire.apis import VERSIONS, Api
from rebalance_kafka.wire.frames import Request, Values, in_ms

LATEST, EARLIEST = -1, -2
DEFAULT_PARTITIONS = -1
MOST_EXACT = 20
"""Partitions of a request whose records are looked into for a time."""

MOST_FETCHED_BYTES = 55 * 1024 * 1024
"""In one answer, whatever a client allows; Kafka's fetch.max.bytes is the same."""

Handler: TypeAlias = Callable[["Data", Request], Values | None]


class Data:
    """The broker's own part of the protocol.

    ``partitions``: those of a topic that is made when it is asked for; 0, and it is an error.
    """

    def __init__(self, topics: Topics, store: Store, *, node: int, cluster_id: str, partitions: int) -> None:
        self.topics, self.store = topics, store
        self.node, self.cluster_id, self.partitions = node, cluster_id, partitions
        self.address = Place("", 0)

    def answers(self, api: Api) -> bool:
        """Whether it is one of these at once; Fetch may have to wait, and is `fetch`."""
        return api in _HANDLERS

    def answer(self, request: Request) -> Values | None:
        """The answer, None where the client wants none (Produce with acks 0)."""
        return _HANDLERS[request.api](self, request)

    # --- Fetch

    def fetch(self, request: Request) -> tuple[Values, bool]:
        """What there is now, and whether that is enough to answer before the time to wait is over."""
        body = request.body
        left, found, errors = min(body.max_bytes, MOST_FETCHED_BYTES), 0, False
        responses = []
        for topic in body.topics:
            partitions = []
            for asked in topic.partitions:
                answer = self._fetched(topic.topic, asked, left, first=not found)
                left -= len(answer["records"])
                found += len(answer["records"])
                errors = errors or answer["error_code"] is not Wire.none
                partitions.append(answer)
            responses.append({"topic": topic.topic, "partitions": tuple(partitions)})
        # No fetch sessions: session id 0 tells the client to say everything every time (KIP-227).
        values = {"error_code": Wire.none, "session_id": 0, "responses": tuple(responses)}
        return values, errors or found >= min(body.min_bytes, left + found) or not responses

    def _fetched(self, topic: str, asked: Any, left: int, *, first: bool) -> Values:
        number, offset = asked.partition, asked.fetch_offset
        answer: dict[str, Any] = {
            "partition_index": number,
            "error_code": Wire.none,
            "high_watermark": -1,
            "aborted_transactions": None,
            "records": b"",
        }
        if not self.topics.has(topic, number):
            return {**answer, "error_code": Wire.unknown_topic_or_partition}
        end = self.topics.end(topic, number)
        answer |= {"high_watermark": end, "last_stable_offset": end, "log_start_offset": 0}
        if not 0 <= offset <= end:
            return {**answer, "error_code": Wire.offset_out_of_range}
        most = min(left, asked.partition_max_bytes)
        if most > 0 or first:
            answer["records"] = self.topics.read(topic, number, offset, most, at_least_one=first)
        return answer


def places_of(request: Request) -> list[tuple[str, int]]:
    """The partitions that a Fetch asks for."""
    return [(topic.topic, asked.partition) for topic in request.body.topics for asked in topic.partitions]


def wait_ms(request: Request) -> int:
    """How long a Fetch would wait for records."""
    return max(0, in_ms(request.body.max_wait))


def api_versions(error: Wire = Wire.none) -> Values:
    """What is served here."""
    keys = tuple(
        {"api_key": int(api), "min_version": lowest, "max_version": highest}
        for api, (lowest, highest) in VERSIONS.items()
    )
    return {"error_code": error, "api_keys": keys}


def _api_versions(_: Data, __: Request) -> Values:
    return api_versions()


def _metadata(data: Data, request: Request) -> Values:
    body, topics = request.body, data.topics
    asked = body.topics
    if asked is None or (request.version == 0 and not asked):
        names = list(topics.partitions)
    else:
        names = list(dict.fromkeys(topic.name for topic in asked))
        if data.partitions and (request.version < 4 or body.allow_auto_topic_creation):
            new: dict[str, int] = {}
            for name in names:
                beside = len(new) * data.partitions
                if name not in topics.partitions and not topics.cannot_create(name, data.partitions, beside):
                    new[name] = data.partitions
            if new:
                topics.create(new)
    broker = {"node_id": data.node, "host": data.address.host, "port": data.address.port}
    return {
        "brokers": (broker,),
        "cluster_id": data.cluster_id,
        "controller_id": data.node,
        "topics": tuple(_described(data, name) for name in names),
    }


def _described(data: Data, name: str) -> Values:
    count = data.topics.partitions.get(name)
    error = Wire.none
    if count is None:
        refused = data.topics.cannot_create(name, 1)
        error = refused.error if refused is not None else Wire.unknown_topic_or_partition
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
    return {"error_code": error, "name": name, "partitions": partitions}


def _produce(data: Data, request: Request) -> Values | None:
    body = request.body
    written = [
        (topic.name, each.index, each.records) for topic in body.topic_data for each in topic.partition_data
    ]
    if body.acks not in (-1, 0, 1):
        results: Sequence[Appended] = [Appended(Wire.invalid_required_acks)] * len(written)
    elif body.transactional_id is not None:
        results = [Appended(Wire.transactional_id_authorization_failed)] * len(written)
    else:
        results = data.topics.append(written)
    if body.acks == 0:
        return None
    waiting = iter(results)
    responses = tuple(
        {
            "name": topic.name,
            "partition_responses": tuple(
                _written(each.index, next(waiting)) for each in topic.partition_data
            ),
        }
        for topic in body.topic_data
    )
    return {"responses": responses}


def _written(index: int, result: Appended) -> Values:
    return {
        "index": index,
        "error_code": result.error,
        "base_offset": result.base_offset,
        "log_append_time": None,
        "log_start_offset": 0 if result.error is Wire.none else -1,
        "record_errors": (),
        "error_message": result.message,
    }


def _list_offsets(data: Data, request: Request) -> Values:
    asked = count()
    topics = tuple(
        {
            "name": topic.name,
            "partitions": tuple(
                _listed(data, topic.name, each, exact=next(asked) < MOST_EXACT) for each in topic.partitions
            ),
        }
        for topic in request.body.topics
    )
    return {"topics": topics}


def _listed(data: Data, topic: str, asked: Any, *, exact: bool) -> Values:
    number, timestamp = asked.partition_index, asked.timestamp
    answer = {"partition_index": number, "error_code": Wire.none, "timestamp": -1, "leader_epoch": 0}
    if not data.topics.has(topic, number):
        return {**answer, "error_code": Wire.unknown_topic_or_partition, "offset": -1, "leader_epoch": -1}
    if timestamp == LATEST:
        return {**answer, "offset": data.topics.end(topic, number)}
    if timestamp == EARLIEST:
        return {**answer, "offset": 0}
    offset, at_ms = data.topics.offset_since(topic, number, timestamp, exact=exact)
    return {**answer, "offset": offset, "timestamp": at_ms}


def _create_topics(data: Data, request: Request) -> Values:
    results: list[Values] = []
    new: dict[str, int] = {}
    more = 0
    for asked in request.body.topics:
        count = asked.num_partitions
        if asked.assignments:
            count = len(asked.assignments)
        elif count == DEFAULT_PARTITIONS:
            count = data.partitions or 1
        refused = data.topics.cannot_create(asked.name, count, more)
        if asked.name in new:
            refused = Appended(Wire.invalid_request, message="comes twice in one request")
        elif refused is None and asked.replication_factor not in (-1, 1):
            found = f"replication factor {asked.replication_factor}, and there is one broker"
            refused = Appended(Wire.invalid_replication_factor, message=found)
        if refused is None:
            new[asked.name] = count
            more += count
        results.append(
            {
                "name": asked.name,
                "error_code": Wire.none if refused is None else refused.error,
                "error_message": None if refused is None else refused.message,
                "num_partitions": count if refused is None else -1,
                "replication_factor": 1 if refused is None else -1,
                "configs": (),
            }
        )
    if new and not request.body.validate_only:
        data.topics.create(new)
    return {"topics": tuple(results)}


def _create_partitions(data: Data, request: Request) -> Values:
    results: list[Values] = []
    new: dict[str, int] = {}
    more = 0
    for asked in request.body.topics:
        refused = data.topics.cannot_grow(asked.name, asked.count, more)
        if asked.name in new:
            refused = Appended(Wire.invalid_request, message=f"topic {asked.name} comes twice")
        if refused is None:
            new[asked.name] = asked.count
            more += asked.count - data.topics.partitions[asked.name]
        results.append(
            {
                "name": asked.name,
                "error_code": Wire.none if refused is None else refused.error,
                "error_message": None if refused is None else refused.message,
            }
        )
    if new and not request.body.validate_only:
        data.topics.create(new)
    return {"results": tuple(results)}


def _init_producer_id(data: Data, request: Request) -> Values:
    if request.body.transactional_id is not None:
        refused = Wire.transactional_id_authorization_failed
        return {"error_code": refused, "producer_id": -1, "producer_epoch": -1}
    return {"error_code": Wire.none, "producer_id": data.store.next_producer_id(), "producer_epoch": 0}


def _epoch_ends(data: Data, request: Request) -> Values:
    """There is one epoch, 0, and it has not ended (KIP-320)."""
    topics = tuple(
        {
            "topic": topic.topic,
            "partitions": tuple(_epoch_end(data, topic.topic, each) for each in topic.partitions),
        }
        for topic in request.body.topics
    )
    return {"topics": topics}


def _epoch_end(data: Data, topic: str, asked: Any) -> Values:
    answer = {"partition": asked.partition, "error_code": Wire.none, "leader_epoch": -1, "end_offset": -1}
    if not data.topics.has(topic, asked.partition):
        return {**answer, "error_code": Wire.unknown_topic_or_partition}
    if asked.leader_epoch != 0:
        return answer
    return {**answer, "leader_epoch": 0, "end_offset": data.topics.end(topic, asked.partition)}


_HANDLERS: Mapping[Api, Handler] = {
    Api.API_VERSIONS: _api_versions,
    Api.METADATA: _metadata,
    Api.PRODUCE: _produce,
    Api.LIST_OFFSETS: _list_offsets,
    Api.CREATE_TOPICS: _create_topics,
    Api.CREATE_PARTITIONS: _create_partitions,
    Api.INIT_PRODUCER_ID: _init_producer_id,
    Api.OFFSET_FOR_LEADER_EPOCH: _epoch_ends,
}
