"""The APIs spoken here and their versions, and messages between bytes and kio's entities.

Which field a version has is kio's knowledge: we say what we would in the newest version, and what the version
at hand has no place for is left out.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import timedelta
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple, TypeAlias, get_args, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from coordinator_core.errors import ProtocolError
from rebalance_kafka.wire.lengths import MOST_ELEMENTS, length_check

Values: TypeAlias = Mapping[str, Any]
"""Fields of a message by the names of kio's newest version; nested messages are mappings too."""

_NO_TIME = timedelta(0)


class Api(IntEnum):
    """The APIs served, by their keys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
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
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    OFFSET_DELETE = 47


class LoginApi(IntEnum):
    """APIs that we ask of brokers and do not serve: those of SASL (KIP-152)."""

    SASL_HANDSHAKE = 17
    SASL_AUTHENTICATE = 36


VERSIONS: Mapping[Api, tuple[int, int]] = {
    Api.PRODUCE: (3, 9),
    Api.FETCH: (4, 12),  # from 13 on topics have ids
    Api.LIST_OFFSETS: (1, 6),
    Api.METADATA: (0, 9),
    Api.OFFSET_COMMIT: (2, 8),
    Api.OFFSET_FETCH: (1, 7),
    Api.FIND_COORDINATOR: (0, 4),
    Api.JOIN_GROUP: (0, 9),
    Api.HEARTBEAT: (0, 4),
    Api.LEAVE_GROUP: (0, 5),
    Api.SYNC_GROUP: (0, 5),
    Api.DESCRIBE_GROUPS: (0, 5),
    Api.LIST_GROUPS: (0, 4),
    Api.API_VERSIONS: (0, 3),
    Api.CREATE_TOPICS: (2, 5),
    Api.INIT_PRODUCER_ID: (0, 4),
    Api.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    Api.CREATE_PARTITIONS: (0, 3),
    Api.DELETE_GROUPS: (0, 2),
    Api.OFFSET_DELETE: (0, 0),
}
"""Lowest and highest version of each API."""

LOGIN_VERSIONS: Mapping[LoginApi, tuple[int, int]] = {
    LoginApi.SASL_HANDSHAKE: (1, 1),
    LoginApi.SASL_AUTHENTICATE: (0, 2),
}

AnyApi: TypeAlias = Api | LoginApi

ALL: Mapping[Api, int] = {}
"""No version is left out."""


class Head(NamedTuple):
    """What every request begins with, whatever its version."""

    key: int
    version: int
    correlation_id: int


class Request(NamedTuple):
    """A request as it came; ``body`` is kio's entity of that version."""

    api: Api
    version: int
    correlation_id: int
    client_id: str
    body: Any


def head_of(frame: bytes) -> Head:
    """The first eight bytes of a request. Raises ProtocolError."""
    if len(frame) < 8:
        raise ProtocolError("request", f"{len(frame)} bytes, expected 8 or more")
    number = int.from_bytes
    return Head(
        number(frame[:2], "big", signed=True),
        number(frame[2:4], "big", signed=True),
        number(frame[4:8], "big", signed=True),
    )


def is_served(head: Head) -> bool:
    """Whether this API is spoken in this version."""
    if head.key not in _KEYS:
        return False
    lowest, highest = VERSIONS[Api(head.key)]
    return lowest <= head.version <= highest


_KEYS = frozenset(int(api) for api in Api)


def decode_request(frame: bytes, head: Head) -> Request:
    """A request that `is_served`. Raises ProtocolError for bytes that are none."""
    api = Api(head.key)
    read_header, read_body = _request_readers(api, head.version)
    try:
        header, size = read_header(frame, 0)
        body, _ = read_body(frame, size)
    except Exception as wrong:  # kio raises errors of many kinds
        raise ProtocolError(_named(api, head.version), f"{type(wrong).__name__}: {wrong}") from None
    return Request(api, head.version, head.correlation_id, header.client_id or "", body)


def encode_request(
    api: AnyApi, version: int, correlation_id: int, client_id: str | None, values: Values
) -> bytes:
    """A request as a frame, its length first."""
    header = {
        "request_api_key": int(api),
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    return _framed(_request_writers(api, version), header, values)


def decode_response(api: AnyApi, version: int, frame: bytes) -> tuple[int, Any]:
    """Correlation id and kio's entity. Raises ProtocolError."""
    read_header, read_body = _response_readers(api, version)
    try:
        header, size = read_header(frame, 0)
        body, _ = read_body(frame, size)
    except Exception as wrong:  # kio raises errors of many kinds
        raise ProtocolError(f"answer to {_named(api, version)}", f"{type(wrong).__name__}: {wrong}") from None
    return header.correlation_id, body


def encode_response(api: AnyApi, version: int, correlation_id: int, values: Values) -> bytes:
    """A response as a frame, its length first."""
    return _framed(_response_writers(api, version), {"correlation_id": correlation_id}, values)


def common_version(api: AnyApi, theirs: Mapping[int, tuple[int, int]], most: Mapping[Api, int] = ALL) -> int:
    """The newest version that both sides speak, and that ``most`` allows. Raises ProtocolError."""
    if isinstance(api, LoginApi):
        lowest, highest = LOGIN_VERSIONS[api]
    else:
        lowest, highest = VERSIONS[api]
        highest = min(highest, most.get(api, highest))
    if int(api) not in theirs:
        raise ProtocolError("broker", f"does not offer {api.name}")
    their_lowest, their_highest = theirs[int(api)]
    version = min(highest, their_highest)
    if version < max(lowest, their_lowest):
        found = f"offers {api.name} in versions {their_lowest} to {their_highest}"
        found += f", expected one of {lowest} to {highest}"
        raise ProtocolError("broker", found)
    return version


def in_ms(time: timedelta) -> int:
    """Milliseconds of a time as kio reads it."""
    return round(time.total_seconds() * 1_000)


def from_ms(time_ms: int) -> timedelta:
    """The inverse."""
    return timedelta(milliseconds=time_ms)


_Write: TypeAlias = Callable[[io.BytesIO, Values], None]


def _framed(writers: tuple[_Write, _Write], header: Values, values: Values) -> bytes:
    buffer = io.BytesIO()
    for write, said in zip(writers, (header, values), strict=True):
        write(buffer, said)
    frame = buffer.getvalue()
    return len(frame).to_bytes(4, "big") + frame


@cache
def _builder(schema: Any) -> Callable[[Values], Any]:
    """Makes an entity from what is said of it; names that this version lacks are left out."""
    plan = [(field.name, _nested(schema, field.name), field.default is MISSING) for field in fields(schema)]

    def built(values: Values) -> Any:
        arguments: dict[str, Any] = {}
        for name, nested, required in plan:
            if name in values:
                value = values[name]
                if nested is not None and value is not None:
                    make = _builder(nested)
                    value = tuple(make(each) for each in value)
                arguments[name] = value
            elif name == "throttle_time":
                arguments[name] = _NO_TIME
            elif required:
                raise TypeError(f"{schema.__name__} v{schema.__version__} without {name}")
        return schema(**arguments)

    return built


@cache
def _nested(schema: Any, name: str) -> Any:
    """The entity that an array's elements are, None for plain values."""
    hint = get_type_hints(schema)[name]
    for candidate in (hint, *get_args(hint)):
        for each in get_args(candidate):
            if hasattr(each, "__api_key__"):
                return each
    return None


@cache
def _request_readers(api: AnyApi, version: int) -> tuple[Any, Any]:
    return _readers(load_request_schema(api, version), MOST_ELEMENTS)


@cache
def _response_readers(api: AnyApi, version: int) -> tuple[Any, Any]:
    return _readers(load_response_schema(api, version), None)


@cache
def _request_writers(api: AnyApi, version: int) -> tuple[_Write, _Write]:
    return _writers(load_request_schema(api, version))


@cache
def _response_writers(api: AnyApi, version: int) -> tuple[_Write, _Write]:
    return _writers(load_response_schema(api, version))


def _readers(schema: Any, most_elements: int | None) -> tuple[Any, Any]:
    read_header, read_body = entity_reader(schema.__header_schema__), entity_reader(schema)
    check = length_check(schema, most_elements)
    if check is None:
        return read_header, read_body

    def checked(frame: bytes, at: int) -> Any:
        check(frame, at)
        return read_body(frame, at)

    return read_header, checked


def _writers(schema: Any) -> tuple[_Write, _Write]:
    return _writer(schema.__header_schema__), _writer(schema)


def _writer(schema: Any) -> _Write:
    make, write = _builder(schema), entity_writer(schema)
    return lambda buffer, values: write(buffer, make(values))


def _named(api: AnyApi, version: int) -> str:
    return f"{api.name} v{version}"
