"""Valid requests of every API in every version, and damaged ones."""

from random import Random
from typing import Any

from coordinator_core.errors import ProtocolError
from coordinator_core.model import Subscription
from coordinator_core.protocol.consumer_protocol import encode_subscription
from rebalance_kafka.wire.apis import VERSIONS, Api
from rebalance_kafka.wire.frames import decode_request, encode_request, head_of, is_served
from tests.places import DATA
from tests.rebalance_kafka.records import batch

CORPUS = DATA / "frames" / "damaged.txt"
TOPIC = "orders"
MINUTE = 60_000
SUBSCRIPTION = encode_subscription(Subscription((TOPIC,)))

REQUESTS: dict[Api, dict[str, Any]] = {
    Api.PRODUCE: {
        "transactional_id": None,
        "acks": -1,
        "timeout": MINUTE,
        "topic_data": (
            {
                "name": TOPIC,
                "topic_id": None,
                "partition_data": ({"index": 0, "records": batch(b"one", b"two")},),
            },
        ),
    },
    Api.FETCH: {
        "replica_id": -1,
        "max_wait": 10,
        "min_bytes": 1,
        "max_bytes": 1_000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": (
            {
                "topic": TOPIC,
                "topic_id": None,
                "partitions": ({"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000},),
            },
        ),
        "forgotten_topics_data": (),
        "rack_id": "",
    },
    Api.LIST_OFFSETS: {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": ({"name": TOPIC, "partitions": ({"partition_index": 0, "timestamp": 5},)},),
        "timeout": MINUTE,
    },
    Api.METADATA: {
        "topics": ({"name": TOPIC, "topic_id": None}, {"name": "unknown", "topic_id": None}),
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    },
    Api.OFFSET_COMMIT: {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "retention_time": MINUTE,
        "topics": (
            {
                "name": TOPIC,
                "partitions": (
                    {
                        "partition_index": 0,
                        "committed_offset": 7,
                        "committed_leader_epoch": 0,
                        "committed_metadata": "mine",
                    },
                ),
            },
        ),
    },
    Api.OFFSET_FETCH: {
        "group_id": "g",
        "topics": ({"name": TOPIC, "partition_indexes": (0, 1, 2)},),
        "groups": ({"group_id": "g", "topics": ({"name": TOPIC, "partition_indexes": (0, 1, 2)},)},),
        "require_stable": False,
    },
    Api.FIND_COORDINATOR: {"key": "g", "key_type": 0, "coordinator_keys": ("g", "h")},
    Api.JOIN_GROUP: {
        "group_id": "g",
        "session_timeout": 6_000,
        "rebalance_timeout": 1_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": ({"name": "range", "metadata": SUBSCRIPTION},),
        "reason": "why not",
    },
    Api.HEARTBEAT: {"group_id": "g", "generation_id": 1, "member_id": "me", "group_instance_id": None},
    Api.LEAVE_GROUP: {
        "group_id": "g",
        "member_id": "me",
        "members": ({"member_id": "me", "group_instance_id": None, "reason": "so"},),
    },
    Api.SYNC_GROUP: {
        "group_id": "g",
        "generation_id": 1,
        "member_id": "me",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": ({"member_id": "me", "assignment": b"\0\1\0\0\0\0\xff\xff\xff\xff"},),
    },
    Api.DESCRIBE_GROUPS: {"groups": ("g", "h"), "include_authorized_operations": False},
    Api.LIST_GROUPS: {"states_filter": ("Stable",), "types_filter": ("classic",)},
    Api.SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    Api.SASL_AUTHENTICATE: {"auth_bytes": b"\0ada\0secret"},
    Api.API_VERSIONS: {"client_software_name": "name", "client_software_version": "1"},
    Api.CREATE_TOPICS: {
        "topics": (
            {
                "name": "made",
                "num_partitions": 2,
                "replication_factor": 1,
                "assignments": (),
                "configs": ({"name": "cleanup.policy", "value": "compact"},),
            },
        ),
        "timeout": MINUTE,
        "validate_only": False,
    },
    Api.INIT_PRODUCER_ID: {
        "transactional_id": None,
        "transaction_timeout": MINUTE,
        "producer_id": -1,
        "producer_epoch": -1,
    },
    Api.ADD_PARTITIONS_TO_TXN: {
        "v3_and_below_transactional_id": "tx",
        "v3_and_below_producer_id": 0,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": ({"name": TOPIC, "partitions": (0, 1)},),
    },
    Api.ADD_OFFSETS_TO_TXN: {
        "transactional_id": "tx",
        "producer_id": 0,
        "producer_epoch": 0,
        "group_id": "g",
    },
    Api.END_TXN: {"transactional_id": "tx", "producer_id": 0, "producer_epoch": 0, "committed": True},
    Api.TXN_OFFSET_COMMIT: {
        "transactional_id": "tx",
        "group_id": "g",
        "producer_id": 0,
        "producer_epoch": 0,
        "generation_id": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": (
            {
                "name": TOPIC,
                "partitions": (
                    {
                        "partition_index": 0,
                        "committed_offset": 7,
                        "committed_leader_epoch": -1,
                        "committed_metadata": "note",
                    },
                ),
            },
        ),
    },
    Api.DESCRIBE_TRANSACTIONS: {"transactional_ids": ("tx", "unknown")},
    Api.LIST_TRANSACTIONS: {"state_filters": ("Empty",), "producer_id_filters": (0,), "duration_filter": -1},
    Api.OFFSET_FOR_LEADER_EPOCH: {
        "replica_id": -1,
        "topics": (
            {"topic": TOPIC, "partitions": ({"partition": 0, "current_leader_epoch": 0, "leader_epoch": 0},)},
        ),
    },
    Api.CREATE_PARTITIONS: {
        "topics": ({"name": TOPIC, "count": 5, "assignments": None},),
        "timeout": MINUTE,
        "validate_only": False,
    },
    Api.DELETE_TOPICS: {
        "topic_names": ("made",),
        "topics": ({"name": "made", "topic_id": None},),
        "timeout": MINUTE,
    },
    Api.DELETE_RECORDS: {
        "topics": ({"name": TOPIC, "partitions": ({"partition_index": 0, "offset": 0},)},),
        "timeout": MINUTE,
    },
    Api.DESCRIBE_CONFIGS: {
        "resources": ({"resource_type": 2, "resource_name": TOPIC, "configuration_keys": None},),
        "include_synonyms": True,
        "include_documentation": True,
    },
    Api.ALTER_CONFIGS: {
        "resources": (
            {
                "resource_type": 2,
                "resource_name": TOPIC,
                "configs": ({"name": "retention.ms", "value": "5"},),
            },
        ),
        "validate_only": False,
    },
    Api.INCREMENTAL_ALTER_CONFIGS: {
        "resources": (
            {
                "resource_type": 2,
                "resource_name": TOPIC,
                "configs": ({"name": "retention.ms", "config_operation": 0, "value": "5"},),
            },
        ),
        "validate_only": False,
    },
    Api.DESCRIBE_CLUSTER: {
        "include_cluster_authorized_operations": False,
        "endpoint_type": 1,
        "include_fenced_brokers": False,
    },
    Api.DELETE_GROUPS: {"groups_names": ("h",)},
    Api.CONSUMER_GROUP_HEARTBEAT: {
        "group_id": "consumers",
        "member_id": "me",
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": MINUTE,
        "subscribed_topic_names": (TOPIC,),
        "subscribed_topic_regex": "o.*",
        "server_assignor": "range",
        "topic_partitions": (),
    },
    Api.CONSUMER_GROUP_DESCRIBE: {"group_ids": ("consumers", "g"), "include_authorized_operations": False},
    Api.OFFSET_DELETE: {
        "group_id": "g",
        "topics": ({"name": TOPIC, "partitions": ({"partition_index": 0},)},),
    },
}

EVERY_REQUEST: list[tuple[Api, int]] = [
    (api, version) for api, (lowest, highest) in VERSIONS.items() for version in range(lowest, highest + 1)
]

SIZES = (-1, 0, 1, 7, -(2**31), 2**31 - 1, 100 * 2**20, 100 * 2**20 + 1)
NUMBERS = (
    *(n.to_bytes(1, "big", signed=True) for n in (0, 1, -1, 127, -128)),
    *(n.to_bytes(2, "big", signed=True) for n in (-1, 2**15 - 1, -(2**15))),
    *(n.to_bytes(4, "big", signed=True) for n in (0, -1, 2**31 - 1, -(2**31), 1_000_000)),
    *(n.to_bytes(8, "big", signed=True) for n in (-1, 2**63 - 1, -(2**63))),
    *map(bytes.fromhex, ("ffffffff0f", "ffffffff07", "8080808010", "8080808000", "ffffffffff7f", "c0843d")),
)
"""Unlikely lengths, counts, offsets and epochs, in two's complement and as varints."""


def request(api: Api, version: int, **other: Any) -> bytes:
    """Return a frame with its length. ``other`` fields replace the usual ones."""
    return encode_request(api, version, 7, "them", {**REQUESTS[api], **other})


def framed(body: bytes, size: int | None = None) -> bytes:
    return (len(body) if size is None else size).to_bytes(4, "big", signed=True) + body


def damaged(random: Random) -> bytes:
    """Return one to three requests, most of which are damaged in one to four ways."""
    return b"".join(_one(random) for _ in range(random.choice((1, 1, 1, 2, 3))))


def _one(random: Random) -> bytes:
    api, version = random.choice(EVERY_REQUEST)
    fresh = _fresh(api, random) if random.randrange(2) else {}
    body = bytearray(request(api, version, **fresh)[4:])
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        random.choice(_WAYS)(random, body)
    return framed(bytes(body), random.choice(SIZES) if random.randrange(20) == 0 else None)


def _fresh(api: Api, random: Random) -> dict[str, Any]:
    """Return fields with a new group, topic or producer."""
    number = random.randrange(10**9)
    if api is Api.PRODUCE:
        records = batch(b"three", producer=(number, 0, 0))
        data = {"name": TOPIC, "topic_id": None, "partition_data": ({"index": 0, "records": records},)}
        return {"topic_data": (data,)}
    if api is Api.METADATA:
        return {"topics": ({"name": f"t{number}", "topic_id": None},)}
    if api is Api.CREATE_TOPICS:
        (topic,) = REQUESTS[api]["topics"]
        return {"topics": ({**topic, "name": f"t{number}"},)}
    if api is Api.INIT_PRODUCER_ID:
        return {"transactional_id": f"t{number}"}
    return {"group_id": f"g{number}"}


def _flip(random: Random, body: bytearray) -> None:
    if body:
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)


def _number(random: Random, body: bytearray) -> None:
    number = random.choice(NUMBERS)
    at = random.randrange(len(body) + 1)
    body[at : at + len(number)] = number


def _insert(random: Random, body: bytearray) -> None:
    at = random.randrange(len(body) + 1)
    body[at:at] = random.choice(NUMBERS)


def _cut(random: Random, body: bytearray) -> None:
    del body[random.randrange(len(body) + 1) :]


def _repeat(random: Random, body: bytearray) -> None:
    at = random.randrange(len(body) + 1)
    body[at:at] = body[at : at + random.randrange(1, 60)] * random.choice((1, 2, 50))


_WAYS = (_flip, _number, _number, _insert, _cut, _repeat)


def may_wait(data: bytes) -> bool:
    """Return whether the bytes contain a request whose response may take time."""
    while len(data) >= 4:
        size = int.from_bytes(data[:4], "big", signed=True)
        frame = data[4 : 4 + size]
        if size < 8 or len(frame) < size or not is_served(head_of(frame)):
            return False
        try:
            api = decode_request(frame, head_of(frame)).api
        except ProtocolError:
            return False
        if api in (Api.JOIN_GROUP, Api.SYNC_GROUP, Api.FETCH):
            return True
        data = data[4 + size :]
    return False


def corpus() -> dict[str, bytes]:
    """Return the saved frames by their descriptions."""
    frames: dict[str, bytes] = {}
    name = ""
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") or not line:
            continue
        if line.startswith("    "):
            frames[name] += bytes.fromhex(line)
        else:
            name = line
            frames[name] = b""
    return frames
