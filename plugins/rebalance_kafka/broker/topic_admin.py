"""Requests that create, change, describe and delete topics, and the description of the cluster."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator.reconcile.settings import OF_GROUP
from rebalance_kafka.broker.data import Data, for_each_partition
from rebalance_kafka.broker.operations import ON_CLUSTER
from rebalance_kafka.broker.topic_configs import CONFIGS, ConfigType, invalid
from rebalance_kafka.broker.topics import Appended
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.messages import Values

DEFAULT_PARTITIONS = DEFAULT_REPLICAS = -1
BROKERS, CONTROLLERS = 1, 2
"""Types of endpoints that DescribeCluster asks for."""
TO_THE_END = -1
"""The offset of DeleteRecords that stands for the end of the log."""

Handler: TypeAlias = Callable[[Data, Request], Values]


class Resource(IntEnum):
    """Resources with configurations."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Source(IntEnum):
    """Where the value of a configuration is from."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Change(IntEnum):
    """What IncrementalAlterConfigs does with a value. Lists are not changed by elements."""

    SET = 0
    DELETE = 1


_NO_ERROR = Appended(Wire.none)


# --- topics


def _create_topics(data: Data, request: Request) -> Values:
    topics, results = data.topics, list[dict[str, Any]]()
    new: dict[str, int] = {}
    configs: dict[str, dict[str, str]] = {}
    times = Counter(topic.name for topic in request.body.topics)
    wanted = {topic.name: topic for topic in request.body.topics}
    for topic in wanted.values():
        count = _partition_count(data, topic)
        own = {config.name: config.value for config in topic.configs}
        refusal = _cannot_create(data, topic, count, own, new)
        if times[topic.name] > 1:
            refusal = Appended(Wire.invalid_request, message="comes twice in one request")
        if refusal is None:
            new[topic.name], configs[topic.name] = count, own
        results.append(_result(topic.name, refusal))
    if not request.body.validate_only and new:
        _fail(results, data.unwritten(lambda: topics.create(new, configs)))
    for result in results:
        name = result["name"]
        if result["error_code"] is Wire.none:
            number = topics.ids.get(name) or uuid4()  # Kafka makes one up to validate only, too
            result |= {"topic_id": number, "num_partitions": new[name], "replication_factor": 1}
            result["configs"] = tuple(_described_configs(configs[name]))
    return {"topics": tuple(results)}


def _fail(results: Iterable[dict[str, Any]], failed: Appended | None) -> None:
    """Note that nothing was written, where there is no other error."""
    for result in results:
        if failed is not None and result["error_code"] is Wire.none:
            result |= {"error_code": failed.error, "error_message": failed.message}


def _result(name: str, refusal: Appended | None) -> dict[str, Any]:
    error = refusal or _NO_ERROR
    return {
        "name": name,
        "topic_id": None,
        "error_code": error.error,
        "error_message": error.message,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": (),
    }


def _partition_count(data: Data, topic: Any) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == DEFAULT_PARTITIONS:
        return data.partitions or 1
    return int(topic.num_partitions)


def _cannot_create(
    data: Data, topic: Any, count: int, configs: Mapping[str, str | None], beside: Mapping[str, int]
) -> Appended | None:
    """Return why a topic cannot be created, None if it can. ``beside``: topics that the request creates."""
    refusal = data.topics.cannot_create(topic.name, 1)
    if refusal is not None:
        return refusal
    metrics = _in_metrics(topic.name)
    alike = next((name for name in data.topics.partitions if _in_metrics(name) == metrics), None)
    if alike is not None:
        found = f"topic {topic.name} collides with topic {alike}: '.' and '_' are the same in metrics"
        return Appended(Wire.invalid_topic_exception, message=found)
    problem = invalid(configs)
    if problem is not None:
        return Appended(Wire.invalid_config, message=problem)
    if topic.assignments:
        if (topic.num_partitions, topic.replication_factor) != (DEFAULT_PARTITIONS, DEFAULT_REPLICAS):
            found = "both an assignment of replicas and a number of partitions or replicas"
            return Appended(Wire.invalid_request, message=found)
        assigned = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
        if assigned != dict.fromkeys(range(count), (data.node,)):
            expected = f"each of partitions 0 to {count - 1} once, on broker {data.node}"
            found = f"an assignment of replicas that does not have {expected}"
            return Appended(Wire.invalid_replica_assignment, message=found)
        return data.topics.cannot_create(topic.name, count, sum(beside.values()))
    replicas = topic.replication_factor
    found = f"replication factor {replicas}, and there is one broker"
    refusal = Appended(Wire.invalid_replication_factor, message=found)
    if replicas < 1 and replicas != DEFAULT_REPLICAS:
        return refusal
    too_many = data.topics.cannot_create(topic.name, count, sum(beside.values()))
    return too_many if too_many is not None or replicas in (DEFAULT_REPLICAS, 1) else refusal


def _in_metrics(topic: str) -> str:
    """Return the name that metrics of a topic have."""
    return topic.replace(".", "_")


def _create_partitions(data: Data, request: Request) -> Values:
    results: list[dict[str, Any]] = []
    new: dict[str, int] = {}
    more = 0
    for topic in request.body.topics:
        refusal = data.topics.cannot_grow(topic.name, topic.count, more)
        if topic.name in new:
            refusal = Appended(Wire.invalid_request, message=f"topic {topic.name} comes twice")
        if refusal is None:
            new[topic.name] = topic.count
            more += topic.count - data.topics.partitions[topic.name]
        error = refusal or _NO_ERROR
        results.append({"name": topic.name, "error_code": error.error, "error_message": error.message})
    if new and not request.body.validate_only:
        _fail(results, data.unwritten(lambda: data.topics.create(new)))
    return {"results": tuple(results)}


def _delete_topics(data: Data, request: Request) -> Values:
    topics = data.topics
    if request.version >= 6:
        wanted = [(topic.name, topic.topic_id) for topic in request.body.topics]
    else:
        wanted = [(name, None) for name in request.body.topic_names]
    times = Counter(wanted)
    names = Counter(topics.named(number) if name is None else name for name, number in times)
    results: list[dict[str, Any]] = []
    gone: list[str] = []
    for (name, number), count in times.items():
        found = topics.named(number) if name is None else name
        error = Wire.none
        if count > 1 or ((name is None) == (number is None) and request.version >= 6):
            error, found = Wire.invalid_request, name
        elif found is None:
            error = Wire.unknown_topic_id
        elif names[found] > 1:
            error = Wire.invalid_request
        elif found not in topics.partitions:
            error = Wire.unknown_topic_or_partition
        else:
            gone.append(found)
            number = topics.ids.get(found)
        results.append({"name": found, "topic_id": number, "error_code": error})
    if gone:
        _fail(results, data.unwritten(lambda: topics.delete(gone)))
    return {"responses": tuple(results)}


def _delete_records(data: Data, request: Request) -> Values:
    return for_each_partition(request, partial(_deleted_records, data))


def _deleted_records(data: Data, topic: str, row: Any) -> Values:
    topics, number = data.topics, row.partition_index
    values = {"partition_index": number, "low_watermark": -1}
    error = data.refusal(topic, number)
    if error is not None:
        return {**values, "error_code": error}
    end = topics.end(topic, number)
    before = end if row.offset == TO_THE_END else row.offset
    if not 0 <= before <= end:
        return {**values, "error_code": Wire.offset_out_of_range}
    failed = data.unwritten(lambda: topics.delete_records({(topic, number): before}))
    if failed is not None:
        return {**values, "error_code": failed.error}
    return {**values, "low_watermark": topics.start(topic, number), "error_code": Wire.none}


# --- configurations


def _described_configs(own: Mapping[str, str], wanted: Iterable[str] | None = None) -> Iterable[Values]:
    """Yield the configurations of a topic as DescribeConfigs and CreateTopics list them."""
    defaults = {name: (config.default, config.type) for name, config in CONFIGS.items()}
    return _listed(own, defaults, Source.TOPIC, wanted)


def _listed(
    own: Mapping[str, str],
    defaults: Mapping[str, tuple[str, ConfigType]],
    source: Source,
    wanted: Iterable[str] | None,
) -> Iterable[Values]:
    """Yield configurations with their defaults. ``source``: of those that a resource has for itself."""
    for name in defaults if wanted is None else sorted(defaults.keys() & set(wanted)):
        value, kind = defaults[name]
        default = {"name": name, "value": value, "source": Source.DEFAULT}
        if name in own:
            mine = {"name": name, "value": own[name], "source": source}
            yield _entry(name, own[name], source, kind, (mine, default))
        else:
            yield _entry(name, value, Source.DEFAULT, kind, (default,))


def _entry(
    name: str, value: str, source: Source, kind: ConfigType, synonyms: tuple[Values, ...]
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "read_only": source is Source.BROKER,
        "is_default": source is Source.DEFAULT,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": synonyms,
        "config_type": kind,
        "documentation": None,
    }


def _describe_configs(data: Data, request: Request) -> Values:
    body = request.body
    with_synonyms = getattr(body, "include_synonyms", False)
    results = []
    for resource in body.resources:
        error = _no_resource(data, resource)
        entries: Iterable[Values] = ()
        if error is None and resource.resource_type == Resource.TOPIC:
            own = data.topics.configs.get(resource.resource_name, {})
            entries = _described_configs(own, resource.configuration_keys or None)
        elif error is None and resource.resource_type == Resource.GROUP:
            groups = data.group_configs
            defaults = {name: (value, ConfigType.INT) for name, value in groups.defaults.items()}
            wanted = resource.configuration_keys or None
            entries = _listed(groups[resource.resource_name], defaults, Source.GROUP, wanted)
        elif error is None:
            entries = _broker_configs(data, resource.configuration_keys or None)
        results.append(
            {
                **_about(resource, error),
                "configs": tuple(e if with_synonyms else {**e, "synonyms": ()} for e in entries),
            }
        )
    return {"results": tuple(results)}


def _broker_configs(data: Data, wanted: Iterable[str] | None) -> Iterable[Values]:
    names = data.broker_configs if wanted is None else sorted(data.broker_configs.keys() & set(wanted))
    for name in names:
        yield _entry(name, data.broker_configs[name], Source.BROKER, ConfigType.STRING, ())


def _no_resource(data: Data, resource: Any) -> Appended | None:
    """Return the error of a resource that does not exist, None if there is none."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == Resource.TOPIC:
        known = name in data.topics.partitions
        return (
            None if known else Appended(Wire.unknown_topic_or_partition, message=f"no topic {name[:249]!r}")
        )
    if kind == Resource.BROKER:
        if name in ("", str(data.node)):
            return None
        return Appended(Wire.invalid_request, message=f"broker {name[:100]!r}, expected {data.node}")
    if kind == Resource.GROUP:
        return None if name else Appended(Wire.invalid_request, message="a group without a name")
    expected = ", ".join(f"{each:d} ({each.name.lower()})" for each in Resource)
    found = f"resource type {kind}, expected one of {expected}"
    return Appended(Wire.invalid_request, message=found)


def _about(resource: Any, error: Appended | None) -> dict[str, Any]:
    return {
        "error_code": (error or _NO_ERROR).error,
        "error_message": (error or _NO_ERROR).message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def _alter_configs(data: Data, request: Request) -> Values:
    """Replace the configurations of topics. All that the request does not name get their defaults."""
    return _altered(
        data, request, lambda _, resource: {config.name: config.value for config in resource.configs}
    )


def _incremental_alter_configs(data: Data, request: Request) -> Values:
    return _altered(data, request, _with_changes)


def _altered(
    data: Data,
    request: Request,
    changed: Callable[[Mapping[str, str], Any], Mapping[str, str | None] | str],
) -> Values:
    """Change topics and groups. ``changed`` returns the new configurations of one, or why there are none."""
    results: list[dict[str, Any]] = []
    new: dict[int, dict[str, Mapping[str, Any]]] = {Resource.TOPIC: {}, Resource.GROUP: {}}
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.body.resources)
    for resource in request.body.resources:
        name, kind = resource.resource_name, resource.resource_type
        error = _no_resource(data, resource)
        if error is None and kind not in new:
            found = "a change of the broker's configuration, expected one of a topic's or a group's"
            error = Appended(Wire.invalid_request, message=found)
        if error is None and times[kind, name] > 1:
            found = f"{Resource(kind).name.lower()} {name} comes twice"
            error = Appended(Wire.invalid_request, message=found)
        if error is None:
            configs = changed(_own_configs(data, kind, name), resource)
            problem = configs if isinstance(configs, str) else _invalid(data, kind, configs)
            if problem is None and not isinstance(configs, str):
                new[kind][name] = configs
            else:
                error = Appended(Wire.invalid_config, message=problem)
        results.append(_about(resource, error))
    for kind, configs_of in new.items():
        if configs_of and not request.body.validate_only:
            configure = data.topics.configure if kind == Resource.TOPIC else data.group_configs.configure
            of_kind = [result for result in results if result["resource_type"] == kind]
            _fail(of_kind, data.unwritten(partial(configure, configs_of)))
    return {"responses": tuple(results)}


def _own_configs(data: Data, kind: int, name: str) -> Mapping[str, str]:
    return data.topics.configs.get(name, {}) if kind == Resource.TOPIC else data.group_configs[name]


def _invalid(data: Data, kind: int, configs: Mapping[str, str | None]) -> str | None:
    return invalid(configs) if kind == Resource.TOPIC else data.group_configs.invalid(configs)


def _with_changes(own: Mapping[str, str], resource: Any) -> Mapping[str, str | None] | str:
    configs: dict[str, str | None] = dict(own)
    known = CONFIGS if resource.resource_type == Resource.TOPIC else OF_GROUP
    for change in resource.configs:
        name, operation, value = change.name, change.config_operation, change.value
        if operation == Change.DELETE:
            configs.pop(name, None)
        elif operation == Change.SET or name not in known:
            configs[name] = value
        else:
            return f"operation {operation} on {name}, expected 0 (set) or 1 (delete)"
    return configs


# --- the cluster


_NO_CLUSTER: Values = {"controller_id": -1, "endpoint_type": BROKERS, "brokers": ()}


def cluster_operations(request: Request) -> dict[str, Any]:
    """Return the operations on the cluster, if the request includes them."""
    if not getattr(request.body, "include_cluster_authorized_operations", False):
        return {}
    return {"cluster_authorized_operations": ON_CLUSTER}


def _describe_cluster(data: Data, request: Request) -> Values:
    endpoints = getattr(request.body, "endpoint_type", BROKERS)
    values = {"cluster_id": data.cluster_id, "controller_id": data.node, "endpoint_type": endpoints}
    values |= cluster_operations(request)
    if endpoints != BROKERS:
        known = endpoints == CONTROLLERS
        error = Wire.mismatched_endpoint_type if known else Wire.unsupported_endpoint_type
        found = f"endpoint type {endpoints}, expected {BROKERS} (brokers)"
        return {"cluster_id": data.cluster_id, "error_code": error, "error_message": found, **_NO_CLUSTER}
    host, port = data.address
    broker = {"broker_id": data.node, "host": host, "port": port, "is_fenced": False}
    return {**values, "error_code": Wire.none, "brokers": (broker,)}


HANDLERS: Mapping[Api, Handler] = {
    Api.CREATE_TOPICS: _create_topics,
    Api.CREATE_PARTITIONS: _create_partitions,
    Api.DELETE_TOPICS: _delete_topics,
    Api.DELETE_RECORDS: _delete_records,
    Api.DESCRIBE_CONFIGS: _describe_configs,
    Api.ALTER_CONFIGS: _alter_configs,
    Api.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    Api.DESCRIBE_CLUSTER: _describe_cluster,
}
