"""Requests as kio's schemas write them, and responses as plain values.

Nothing here is shared with `rebalance_kafka.wire`, which is under test.
"""

import asyncio
import dataclasses
import datetime as dt
import enum
import io
import typing
import uuid
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from struct import Struct
from types import NoneType
from typing import Any, Self

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

LENGTH = Struct(">i")
Values = Mapping[str, Any]
"""Fields by kio's names. Nested entities are mappings, too. Those that a version lacks are left out."""


class Key(IntEnum):
    """The keys of the APIs that are compared, by the names of Kafka's documentation."""

    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    OFFSET_DELETE = 47
    DESCRIBE_TRANSACTIONS = 65
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69


def encode(key: Key, version: int, correlation_id: int, client_id: str, values: Values) -> bytes:
    """Return a request as a frame with its length."""
    schema = load_request_schema(key, version)
    head = {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    with io.BytesIO() as out:
        for kind, fields in ((schema.__header_schema__, head), (schema, values)):
            entity_writer(kind)(out, _entity(kind, fields))
        frame = out.getvalue()
    return LENGTH.pack(len(frame)) + frame


def decode(key: Key, version: int, frame: bytes) -> dict[str, Any]:
    """Return the fields of a response without its head."""
    schema = load_response_schema(key, version)
    _, size = entity_reader(schema.__header_schema__)(frame, 0)
    body, _ = entity_reader(schema)(frame, size)
    fields: dict[str, Any] = _plain(body)
    return fields


@cache
def _fields_of(kind: Any) -> Mapping[str, Callable[[Any], Any]]:
    """Return a function for each field of an entity that makes its value of a plain one."""
    hints = typing.get_type_hints(kind)
    return {field.name: _maker(hints[field.name]) for field in dataclasses.fields(kind)}


def _entity(kind: Any, values: Values) -> Any:
    made = {name: make(values[name]) for name, make in _fields_of(kind).items() if name in values}
    return kind(**made)


def _maker(hint: Any) -> Callable[[Any], Any]:
    arguments = typing.get_args(hint)
    if NoneType in arguments:
        (inner,) = (_maker(kind) for kind in arguments if kind is not NoneType)
        return lambda value: None if value is None else inner(value)
    if typing.get_origin(hint) is tuple:
        each = _maker(arguments[0])
        return lambda values: tuple(map(each, values or ()))  # null is not in every version
    if dataclasses.is_dataclass(hint):
        return lambda values: _entity(hint, values)
    if isinstance(hint, type) and issubclass(hint, dt.timedelta):
        return lambda ms: dt.timedelta(milliseconds=ms)
    if hint is uuid.UUID:
        return lambda text: uuid.UUID(str(text))
    return lambda value: value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, dt.timedelta):
        return round(value / dt.timedelta(milliseconds=1))
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    return value.name if isinstance(value, enum.Enum) else value


class ClosedError(Exception):
    """The broker closed the connection before it sent the response."""


class Line:
    """A connection that sends requests and gives a future for each response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader, self._writer, self._client_id = reader, writer, client_id
        self._sent = 0
        self._waiting: dict[int, tuple[Key, int, asyncio.Future[dict[str, Any]]]] = {}
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def to(cls, address: str, client_id: str) -> Self:
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)), client_id)

    def send(self, key: Key, version: int, values: Values) -> asyncio.Future[dict[str, Any]]:
        """Send a request. Its future raises `ClosedError`, or an error of any kind if the bytes are wrong."""
        self._sent += 1
        response: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if self._task.done():
            response.set_exception(ClosedError())
        else:
            self._waiting[self._sent] = key, version, response
            self._writer.write(encode(key, version, self._sent, self._client_id, values))
        return response

    async def close(self) -> None:
        """Close the connection. Responses that did not come raise `ClosedError`."""
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._task, self._writer.wait_closed(), return_exceptions=True)

    async def _read(self) -> None:
        try:
            while True:
                (size,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                frame = await self._reader.readexactly(size)
                (number,) = LENGTH.unpack_from(frame)
                key, version, response = self._waiting.pop(number)
                try:
                    body = decode(key, version, frame)
                except Exception as error:  # of many kinds: the bytes may be wrong
                    response.set_exception(error)
                else:
                    response.set_result(body)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for _, _, response in self._waiting.values():
                if not response.done():
                    response.set_exception(ClosedError())
                    response.exception()  # nobody may wait for it
            self._waiting.clear()


async def ask(address: str, key: Key, version: int, values: Values) -> dict[str, Any]:
    """Send one request on a connection of its own and return the response.

    Raises:
        OSError, ClosedError: if there is no response.
    """
    line = await Line.to(address, "tests")
    try:
        return await line.send(key, version, values)
    finally:
        await line.close()


async def answers(address: str) -> bool:
    """Return whether the coordinators of groups and of transactions are ready. Kafka makes their topics when
    it is first asked for them."""
    try:
        for kind in (0, 1):
            found = await ask(
                address, Key.FIND_COORDINATOR, 4, {"key_type": kind, "coordinator_keys": ["ready"]}
            )
            if found["coordinators"][0]["error_code"] != "none":
                return False
        fetched = {"groups": [{"group_id": "ready", "topics": None}], "require_stable": False}
        (group,) = (await ask(address, Key.OFFSET_FETCH, 8, fetched))["groups"]
        begun = {"transactional_id": "ready", "transaction_timeout": 60_000, "producer_id": -1}
        producer = await ask(address, Key.INIT_PRODUCER_ID, 4, {**begun, "producer_epoch": -1})
    except (OSError, ClosedError):
        return False
    return group["error_code"] == "none" and producer["error_code"] == "none"
