"""The request of a step: the fields of Kafka's messages, with the names that a broker gave.

The values have the fields of all versions of an API. A version writes those that it has.
"""

from collections.abc import Iterable
from functools import singledispatch

from tests.beside_kafka import steps as s
from tests.beside_kafka.names import Names
from tests.beside_kafka.subscribed import assignment, subscription
from tests.real_kafka.wire import Key, Values

Request = tuple[Key, Values]


@singledispatch
def request_of(step: s.Step, names: Names) -> Request:
    """Return the API and the fields of a step's request to a broker."""
    raise TypeError(type(step).__name__)


@request_of.register
def _(step: s.JoinGroup, names: Names) -> Request:
    owned = names.shares.get(step.member, {}) if step.owned else {}
    metadata = subscription(map(names.topic, step.topics), owned)
    return Key.JOIN_GROUP, {
        "group_id": names.group,
        "session_timeout": step.session_ms,
        "rebalance_timeout": step.rebalance_ms,
        "member_id": names.member_id(step),
        "group_instance_id": step.instance,
        "protocol_type": step.protocol_type,
        "protocols": [{"name": name, "metadata": metadata} for name in step.protocols],
        "reason": None,
    }


@request_of.register
def _(step: s.SyncGroup, names: Names) -> Request:
    shares = [
        {"member_id": names.ids.get(member, "nobody"), "assignment": assignment(names.own_topics(share))}
        for member, share in step.shares.items()
    ]
    return Key.SYNC_GROUP, {
        "group_id": names.group,
        "generation_id": names.generations.get(step.member, -1) + step.shift,
        "member_id": names.member_id(step),
        "group_instance_id": step.instance,
        "protocol_type": step.protocol_type,
        "protocol_name": step.protocol,
        "assignments": shares,
    }


@request_of.register
def _(step: s.Heartbeat, names: Names) -> Request:
    return Key.HEARTBEAT, {
        "group_id": names.group,
        "generation_id": names.generations.get(step.member, -1) + step.shift,
        "member_id": names.member_id(step),
        "group_instance_id": step.instance,
    }


@request_of.register
def _(step: s.LeaveGroup, names: Names) -> Request:
    members = [
        {"member_id": names.named(which, step.member), "group_instance_id": instance, "reason": "done"}
        for which, instance in step.leaving
    ]
    one = members[0]["member_id"] if members else ""
    return Key.LEAVE_GROUP, {"group_id": names.group, "member_id": one, "members": members}


@request_of.register
def _(step: s.ConsumerHeartbeat, names: Names) -> Request:
    epochs = {"join": 0, "leave": -1, "pause": -2}
    regex = None if step.regex is None else step.regex.replace("{own}", names.prefix)
    return Key.CONSUMER_GROUP_HEARTBEAT, {
        "group_id": names.group,
        "member_id": names.made_id(step),
        "member_epoch": names.epochs.get(step.member, 0) + step.epoch
        if isinstance(step.epoch, int)
        else epochs[step.epoch],
        "instance_id": step.instance,
        "rack_id": step.rack,
        "rebalance_timeout": step.rebalance_ms,
        "subscribed_topic_names": None if step.topics is None else tuple(map(names.topic, step.topics)),
        "subscribed_topic_regex": regex,
        "server_assignor": step.assignor,
        "topic_partitions": None if step.owned is None else names.owned(step.member, step.owned),
    }


@request_of.register
def _(step: s.CommitOffsets, names: Names) -> Request:
    is_member = step.by == "member"
    return Key.OFFSET_COMMIT, {
        "group_id": names.group,
        "generation_id_or_member_epoch": names.epoch(step.member) + step.shift if is_member else -1,
        "member_id": names.member_id(step) if is_member else "",
        "group_instance_id": step.instance,
        "retention_time": step.retention_ms,
        "topics": _offsets(step.offsets, names),
    }


@request_of.register
def _(step: s.FetchOffsets, names: Names) -> Request:
    is_member = step.by == "member"
    topics = None if step.topics is None else [_partitions(names, *named) for named in step.topics.items()]
    group = {
        "group_id": names.group,
        "member_id": names.member_id(step) if is_member else None,
        "member_epoch": names.epoch(step.member) + step.shift if is_member else -1,
        "topics": topics,
    }
    return Key.OFFSET_FETCH, {**group, "groups": [group], "require_stable": step.stable}


@request_of.register
def _(step: s.DescribeGroup, names: Names) -> Request:
    return Key.DESCRIBE_GROUPS, {
        "groups": [names.group],
        "include_authorized_operations": step.operations,
    }


@request_of.register
def _(step: s.DescribeConsumerGroup, names: Names) -> Request:
    return Key.CONSUMER_GROUP_DESCRIBE, {
        "group_ids": [names.group],
        "include_authorized_operations": step.operations,
    }


@request_of.register
def _(step: s.ListGroups, names: Names) -> Request:
    return Key.LIST_GROUPS, {"states_filter": step.states, "types_filter": step.types}


@request_of.register
def _(step: s.DeleteGroup, names: Names) -> Request:
    return Key.DELETE_GROUPS, {"groups_names": [names.group]}


@request_of.register
def _(step: s.DeleteOffsets, names: Names) -> Request:
    topics = [
        {"name": names.topic(topic), "partitions": [{"partition_index": number} for number in numbers]}
        for topic, numbers in step.topics.items()
    ]
    return Key.OFFSET_DELETE, {"group_id": names.group, "topics": topics}


@request_of.register
def _(step: s.InitProducer, names: Names) -> Request:
    number, epoch = names.producers.get(step.producer, (-1, -1)) if step.again else (-1, -1)
    return Key.INIT_PRODUCER_ID, {
        "transactional_id": names.transactional_id(step.producer),
        "transaction_timeout": step.timeout_ms,
        "producer_id": number,
        "producer_epoch": epoch,
    }


@request_of.register
def _(step: s.AddOffsets, names: Names) -> Request:
    return Key.ADD_OFFSETS_TO_TXN, {**_producer(step, names), "group_id": names.group}


@request_of.register
def _(step: s.CommitInTransaction, names: Names) -> Request:
    is_member = step.by == "member"
    return Key.TXN_OFFSET_COMMIT, {
        **_producer(step, names),
        "group_id": names.group,
        "generation_id": names.epoch(step.of) if is_member else -1,
        "member_id": names.named(step.id, step.of) if is_member else "",
        "group_instance_id": step.instance,
        "topics": _offsets(step.offsets, names),
    }


@request_of.register
def _(step: s.EndTransaction, names: Names) -> Request:
    return Key.END_TXN, {**_producer(step, names), "committed": step.commits}


@request_of.register
def _(step: s.CreateTopic, names: Names) -> Request:
    topic = {
        "name": names.topic(step.topic),
        "num_partitions": step.partitions,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    }
    return Key.CREATE_TOPICS, {"topics": [topic], "timeout": 30_000, "validate_only": False}


@request_of.register
def _(step: s.GrowTopic, names: Names) -> Request:
    topic = {"name": names.topic(step.topic), "count": step.partitions, "assignments": None}
    return Key.CREATE_PARTITIONS, {"topics": [topic], "timeout": 30_000, "validate_only": False}


@request_of.register
def _(step: s.DeleteTopic, names: Names) -> Request:
    name = names.topic(step.topic)
    topics = [{"name": name, "topic_id": None}]
    return Key.DELETE_TOPICS, {"topics": topics, "topic_names": [name], "timeout": 30_000}


def _producer(step: s.AddOffsets | s.CommitInTransaction | s.EndTransaction, names: Names) -> Values:
    number, epoch = names.producers.get(step.producer, (1_000_000, 0))
    return {
        "transactional_id": names.transactional_id(step.producer),
        "producer_id": number,
        "producer_epoch": epoch + step.shift,
    }


def _partitions(names: Names, topic: str, numbers: Iterable[int]) -> Values:
    return {
        "name": names.topic(topic),
        "topic_id": names.topic_id(topic),
        "partition_indexes": tuple(numbers),
    }


def _offsets(offsets: Iterable[s.Offset], names: Names) -> list[Values]:
    """Return the rows of a request, one for each offset: a topic may be in several."""
    return [
        {
            "name": names.topic(topic),
            "topic_id": names.topic_id(topic),
            "partitions": [
                {
                    "partition_index": partition,
                    "committed_offset": offset,
                    "committed_leader_epoch": -1,
                    "committed_metadata": metadata,
                }
            ],
        }
        for topic, partition, offset, metadata in offsets
    ]
