"""The tables of the README: the settings, what is served, what is not read, and what refused requests get.

    python -m tests.rebalance_kafka.served_table

writes them. They are computed: the broker has its settings, `VERSIONS` has what is served, a broker is given
a request of every API whose fields note that they are read, and it answers the requests that it refuses.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, NamedTuple, get_type_hints

from kio.index import api_key_map, schema_name_map
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.wire.apis import VERSIONS, Api
from rebalance_kafka.wire.codecs import nested, own_name
from rebalance_kafka.wire.frames import (
    decode_request,
    decode_response,
    encode_request,
    head_of,
)
from rebalance_kafka.wire.messages import reading_of
from rebalance_kafka.wire.schemas import request_schema
from tests.places import ROOT
from tests.rebalance_kafka.damage import REQUESTS, TOPIC
from tests.rebalance_kafka.live import BY_NAME
from tests.rebalance_kafka.records import batch

README = ROOT / "plugins" / "rebalance_kafka" / "README.md"
TOPICS = {TOPIC: 4}
SMALL = {"name": "max.message.bytes", "value": "100"}
CLOSED = "the connection is closed"
SECONDS = 30.0
HOST = "127.0.0.1"

(NEW_TOPIC,) = REQUESTS[Api.CREATE_TOPICS]["topics"]
(CONFIGURED,) = REQUESTS[Api.INCREMENTAL_ALTER_CONFIGS]["resources"]
(SET,) = CONFIGURED["configs"]

NOT_ADDED = {"index": 0, "records": batch(b"1", producer=(0, 0, 0), transactional=True)}

REQUESTED_OF_GROUPS = ("group_ids",)
"""The fields of a request of several groups that is read as values."""

LOGIN = (Api.SASL_HANDSHAKE, Api.SASL_AUTHENTICATE)
"""Requests that are read before authentication only, by another part of the broker."""


ALL_READ: Mapping[Api, Mapping[str, Any]] = {
    Api.INIT_PRODUCER_ID: {"transactional_id": "t"},
}
"""Fields of requests that make the broker read their other fields, too."""


class Refused(NamedTuple):
    """A request that the broker refuses. ``fields`` replace those of the usual request."""

    name: str
    api: Api
    fields: Mapping[str, Any]


def _created(**other: Any) -> dict[str, Any]:
    return {"topics": ({**NEW_TOPIC, **other},)}


def _configured(name: str, value: str) -> dict[str, Any]:
    return {"resources": ({**CONFIGURED, "configs": ({**SET, "name": name, "value": value},)},)}


REFUSED = (
    Refused("SaslHandshake to a broker without users", Api.SASL_HANDSHAKE, {}),
    Refused("FindCoordinator of a share group", Api.FIND_COORDINATOR, {"key_type": 2}),
    Refused(
        "InitProducerId with a longer time for transactions than `transaction.max.timeout.ms`",
        Api.INIT_PRODUCER_ID,
        {"transactional_id": "t", "transaction_timeout": 900_001},
    ),
    Refused(
        "Produce in a transaction with an epoch that another producer has replaced",
        Api.PRODUCE,
        {"transactional_id": "t", "topic_data": ({"name": TOPIC, "partition_data": (NOT_ADDED,)},)},
    ),
    Refused("Produce with other acks than -1, 0 and 1", Api.PRODUCE, {"acks": 2}),
    Refused(
        "a record batch larger than `max.message.bytes` of its topic",
        Api.PRODUCE,
        {"topic_data": ({"name": "small", "partition_data": ({"index": 0, "records": batch(bytes(99))},)},)},
    ),
    Refused("Fetch in an unknown session", Api.FETCH, {"session_id": 7, "session_epoch": 1}),
    Refused("CreateTopics with more than one replica", Api.CREATE_TOPICS, _created(replication_factor=2)),
    Refused(
        "CreateTopics with replicas on other brokers",
        Api.CREATE_TOPICS,
        _created(
            num_partitions=-1,
            replication_factor=-1,
            assignments=({"partition_index": 0, "broker_ids": (1, 2)},),
        ),
    ),
    Refused(
        "an unknown configuration of a topic",
        Api.INCREMENTAL_ALTER_CONFIGS,
        _configured("min.replicas", "1"),
    ),
    Refused(
        "an invalid value of a configuration",
        Api.INCREMENTAL_ALTER_CONFIGS,
        _configured("retention.ms", "minus"),
    ),
    Refused(
        "a change of the configuration of the broker",
        Api.INCREMENTAL_ALTER_CONFIGS,
        {"resources": ({**CONFIGURED, "resource_type": 4, "resource_name": "1"},)},
    ),
    Refused(
        "the configuration of another resource than a topic or the broker",
        Api.DESCRIBE_CONFIGS,
        {"resources": ({"resource_type": 8, "resource_name": "1", "configuration_keys": None},)},
    ),
    Refused("DescribeCluster of the controllers", Api.DESCRIBE_CLUSTER, {"endpoint_type": 2}),
)


def main() -> None:
    """Write the tables into the README."""
    text = README.read_text(encoding="utf-8")
    for head, rows in asyncio.run(tables()).items():
        before, found, after = text.partition(head)
        assert found, f"{README} has no table {head!r}"
        text = before + found + "\n".join(rows) + "\n\n" + after.partition("\n\n")[2]
    README.write_text(text, encoding="utf-8")


async def tables() -> dict[str, list[str]]:
    """Return the rows of the tables by their heads."""
    async with EmbeddedBroker(TOPICS, auto_create=1) as broker:
        await _exchanged(broker, Api.CREATE_TOPICS, _created(name="small", configs=(SMALL,)))
        return {
            "| request | key | versions | fields that are not read |\n| --- | --- | --- | --- |\n": [
                _served(broker, api) for api in VERSIONS
            ],
            "| refused | response |\n| --- | --- |\n": [row async for row in _refusals(broker)],
            "| setting | default |\n| --- | --- |\n": [
                f"| `{name}` | {value} |" for name, value in broker.configs.items()
            ],
        }


# --- what is served


def _served(broker: EmbeddedBroker, api: Api) -> str:
    lowest, highest = VERSIONS[api]
    versions = f"{lowest}-{highest}" if lowest < highest else f"{lowest}"
    names: dict[str, None] = {}
    read: set[str] = set()
    for version in range(highest, lowest - 1, -1):
        schema, message = request_schema(api, version), reading_of(api, version).message
        frame = encode_request(api, version, 7, "us", {**REQUESTS[api], **ALL_READ.get(api, {})})[4:]
        request = decode_request(frame, head_of(frame))
        if isinstance(request.body, SimpleNamespace):
            names |= dict.fromkeys(_names_of_values(request.body))
            broker.receive(request._replace(body=_Noted(request.body, read)), HOST, lambda _: None)
        else:
            names |= dict.fromkeys(_names(schema))
            read |= set(_mapped(schema, message))
    unread = ", ".join(f"`{name}`" for name in names if name not in read and api not in LOGIN)
    return f"| {_title(api.name)} | {int(api)} | {versions} | {unread} |"


class _Noted:
    """Values that note which of their fields, and of the values in them, are read."""

    def __init__(self, values: SimpleNamespace, read: set[str]) -> None:
        self._values, self._read = values, read

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._values, name)
        self._read.add(name)
        if isinstance(value, tuple):
            return tuple(
                _Noted(each, self._read) if isinstance(each, SimpleNamespace) else each for each in value
            )
        return value


def _names_of_values(values: SimpleNamespace) -> Iterable[str]:
    for name, value in vars(values).items():
        yield name
        for each in value[:1] if isinstance(value, tuple) else ():
            if isinstance(each, SimpleNamespace):
                yield from _names_of_values(each)


def _names(schema: Any) -> Iterable[str]:
    for field in fields(schema):
        yield field.name
        if nested(field) is not None:
            yield from _names(nested(field))


def _mapped(schema: Any, message: Any) -> Iterable[str]:
    """Yield the names of the fields that become a message of the core, and all in its rows."""
    hints = get_type_hints(message) if message is not None else dict.fromkeys(REQUESTED_OF_GROUPS)
    for field in fields(schema):
        if own_name(message, hints, field.name):
            yield field.name
            if nested(field) is not None:
                yield from _names(nested(field))


# --- what is refused


async def _refusals(broker: EmbeddedBroker) -> AsyncIterator[str]:
    await _is_closed(broker, [(key, version) for key in _others() for version in _versions_of(key)])
    beyond = [(int(api), version) for api in VERSIONS for version in _not_served(api)]
    await _is_closed(broker, [pair for pair in beyond if pair[0] != Api.API_VERSIONS])
    yield f"| {', '.join(_title(api_key_map[key]) for key in _others())} | {CLOSED} |"
    yield f"| a request above in another version | {CLOSED} |"
    yield f"| ApiVersions in another version | {await _answer_to_new_api_versions(broker)} |"
    for refused in REFUSED:
        yield f"| {refused.name} | {await _error(broker, refused)} |"


async def _error(broker: EmbeddedBroker, refused: Refused) -> str:
    body = await _exchanged(broker, refused.api, refused.fields)
    (error,) = {error for error in _errors(body) if error is not Wire.none}
    return str(error.name.upper())


def _errors(values: SimpleNamespace) -> Iterable[Wire]:
    """Yield the error codes of a response and of the values in it."""
    for value in vars(values).values():
        if isinstance(value, Wire):
            yield value
        for each in value if isinstance(value, tuple) else ():
            if isinstance(each, SimpleNamespace):
                yield from _errors(each)


async def _answer_to_new_api_versions(broker: EmbeddedBroker) -> str:
    highest = VERSIONS[Api.API_VERSIONS][1]
    frame = encode_request(Api.API_VERSIONS, highest, 7, "us", REQUESTS[Api.API_VERSIONS])
    newer = frame[:6] + (highest + 1).to_bytes(2, "big") + frame[8:]
    _, body = decode_response(Api.API_VERSIONS, 0, await _sent(broker, newer))
    assert {row.api_key for row in body.api_keys} == set(VERSIONS)
    return f"{Wire(body.error_code).name.upper()}, with the table above in version 0"


async def _is_closed(broker: EmbeddedBroker, requests: list[tuple[int, int]]) -> None:
    """Check that the broker closes the connection at each of these requests, by key and version."""
    for key, version in requests:
        head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + (7).to_bytes(4, "big")
        frame = head + b"\0\2us" + bytes(40)
        assert not await _sent(broker, len(frame).to_bytes(4, "big") + frame), (key, version)


def _others() -> list[int]:
    return sorted(set(api_key_map) - set(map(int, VERSIONS)))


def _versions_of(key: int) -> list[int]:
    return sorted(schema_name_map[api_key_map[key]])


def _not_served(api: Api) -> list[int]:
    lowest, highest = VERSIONS[api]
    return [*range(lowest), highest + 1]


# --- the network


async def _exchanged(broker: EmbeddedBroker, api: Api, other: Mapping[str, Any]) -> Any:
    """Return the response to the usual request of an API with some other fields."""
    version = BY_NAME if api in (Api.PRODUCE, Api.FETCH) else VERSIONS[api][1]
    frame = encode_request(api, version, 7, "us", {**REQUESTS[api], **other})
    return decode_response(api, version, await _sent(broker, frame))[1]


async def _sent(broker: EmbeddedBroker, frame: bytes) -> bytes:
    """Return the response to a frame, without its length: empty if the connection is closed."""
    host, _, port = broker.address.rpartition(":")
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(frame)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer[4:]


def _title(name: str) -> str:
    return name.title().replace("_", "")


if __name__ == "__main__":
    main()
