"""Conversion between frames, which are bytes, and kio's entities.

Values have the names of the newest version. Names that the version of a frame lacks are left out.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import timedelta
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from coordinator_core.errors import ProtocolError
from rebalance_kafka.access import EVERYTHING, Access
from rebalance_kafka.wire.apis import VERSIONS, Api
from rebalance_kafka.wire.scan import MOST_ELEMENTS, length_check, without_unknown_tags
from rebalance_kafka.wire.schemas import nested

Values: TypeAlias = Mapping[str, Any]
"""Fields of an entity by the names of kio's newest version. Nested entities are mappings too."""

LENGTH_BYTES = 4
"""The length of a frame comes first."""

_REPEATED = frozenset({Api.HEARTBEAT})
"""Requests that clients send again and again, with another correlation id only."""

_SHORT_BYTES = 256
_REMEMBERED = 4_096
"""Requests of `_REPEATED` up to `_SHORT_BYTES` that are remembered as decoded."""

_HEAD = Struct(">hhi")
_NO_TIME = timedelta(0)
_API_BY_KEY = {int(api): api for api in Api}


class Head(NamedTuple):
    """The first fields of a request, which are the same in every version."""

    key: int
    version: int
    correlation_id: int


class Request(NamedTuple):
    """A request that a client sent. ``body`` is kio's entity of the version.

    ``access``: what the user of the client may do.
    """

    api: Api
    version: int
    correlation_id: int
    client_id: str
    body: Any
    access: Access = EVERYTHING


def head_of(frame: bytes) -> Head:
    """Return the head of a request.

    Raises:
        ProtocolError: if the frame is too short for one.
    """
    if len(frame) < _HEAD.size:
        raise ProtocolError("request", f"{len(frame)} bytes, expected {_HEAD.size} or more")
    return Head._make(_HEAD.unpack_from(frame))


def is_served(head: Head) -> bool:
    """Return whether the embedded broker serves this API in this version."""
    api = _API_BY_KEY.get(head.key)
    if api is None:
        return False
    lowest, highest = VERSIONS[api]
    return lowest <= head.version <= highest


def decode_request(frame: bytes, head: Head, access: Access = EVERYTHING) -> Request:
    """Return the request of a frame whose head `is_served`. ``access``: what the user of the client may do.

    Raises:
        ProtocolError: if the rest of the frame is not a request of that API and version.
    """
    api = _API_BY_KEY[head.key]
    try:
        if api in _REPEATED and len(frame) <= _SHORT_BYTES:
            header, body = _repeated(api, head.version, frame[_HEAD.size :])
        else:
            header, body = _request_reader(api, head.version)(frame)
    except Exception as error:  # kio raises errors of many kinds
        raise ProtocolError(_named(api, head.version), f"{type(error).__name__}: {error}") from None
    return Request(api, head.version, head.correlation_id, header.client_id or "", body, access)


def encode_request(api: Api, version: int, correlation_id: int, client_id: str | None, body: Any) -> bytes:
    """Return a request as a frame with its length. ``body`` is kio's entity or its values."""
    make_header, write_header, write_body = _request_writers(api, version)
    buffer = io.BytesIO(bytes(LENGTH_BYTES))
    buffer.seek(LENGTH_BYTES)
    header = make_header(
        request_api_key=int(api),
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    write_header(buffer, header)
    write_body(buffer, body)
    return _measured(buffer)


def decode_response(api: Api, version: int, frame: bytes) -> tuple[int, Any]:
    """Return the correlation id and kio's entity of a response.

    Raises:
        ProtocolError: if the frame is not a response of that API and version.
    """
    try:
        header, body = _response_reader(api, version)(frame)
    except Exception as error:  # kio raises errors of many kinds
        peer, found = f"answer to {_named(api, version)}", f"{type(error).__name__}: {error}"
        raise ProtocolError(peer, found) from None
    return header.correlation_id, body


def encode_response(api: Api, version: int, correlation_id: int, body: Any) -> bytes:
    """Return a response as a frame with its length. ``body`` is kio's entity or its values."""
    tags, write_body = _response_writers(api, version)
    start = bytes(LENGTH_BYTES) + correlation_id.to_bytes(4, "big", signed=True) + tags
    buffer = io.BytesIO(start)
    buffer.seek(len(start))
    write_body(buffer, body)
    return _measured(buffer)


def in_ms(time: timedelta) -> int:
    """Return the milliseconds of a time as kio reads it."""
    return round(time.total_seconds() * 1_000)


def from_ms(time_ms: int) -> timedelta:
    """Return the time as kio writes it."""
    return timedelta(milliseconds=time_ms)


_Write: TypeAlias = Callable[[io.BytesIO, Any], None]
_Read: TypeAlias = Callable[[bytes], tuple[Any, Any]]
"""Returns the header and the body of a frame."""


def _measured(buffer: io.BytesIO) -> bytes:
    """Return the content, with its length in the bytes that were left for it."""
    size = buffer.tell() - LENGTH_BYTES
    buffer.seek(0)
    buffer.write(size.to_bytes(LENGTH_BYTES, "big"))
    return buffer.getvalue()


@cache
def _builder(schema: Any) -> Callable[[Values], Any]:
    """Return the function that makes an entity from values. Names that the version lacks are left out."""
    plan = [(field.name, nested(field), field.default is MISSING) for field in fields(schema)]

    def build(values: Values) -> Any:
        arguments: dict[str, Any] = {}
        for name, inner, is_required in plan:
            if name in values:
                value = values[name]
                if inner is not None and value is not None:
                    make = _builder(inner)
                    value = make(value) if isinstance(value, dict) else tuple(map(make, value))
                arguments[name] = value
            elif name == "throttle_time":
                arguments[name] = _NO_TIME
            elif is_required:
                raise TypeError(f"{schema.__name__} v{schema.__version__} without {name}")
        return schema(**arguments)

    return build


@cache
def _request_reader(api: Api, version: int) -> _Read:
    return _reader(load_request_schema(api, version), MOST_ELEMENTS)


@lru_cache(_REMEMBERED)
def _repeated(api: Api, version: int, rest: bytes) -> tuple[Any, Any]:
    """Return header and body of a request without its head, the fields of which are 0 in this header."""
    return _request_reader(api, version)(bytes(_HEAD.size) + rest)


@cache
def _response_reader(api: Api, version: int) -> _Read:
    return _reader(load_response_schema(api, version), None)


@cache
def _request_writers(api: Api, version: int) -> tuple[Any, Any, _Write]:
    schema = load_request_schema(api, version)
    header = schema.__header_schema__
    return header, entity_writer(header), _body_writer(schema)


@cache
def _response_writers(api: Api, version: int) -> tuple[bytes, _Write]:
    """Return the tags of the header, of which there are none, and the writer of the body."""
    schema = load_response_schema(api, version)
    return b"\0" if schema.__header_schema__.__flexible__ else b"", _body_writer(schema)


def _reader(schema: Any, most_elements: int | None) -> _Read:
    header_schema = schema.__header_schema__
    read_header, read_body = entity_reader(header_schema), entity_reader(schema)
    check = length_check(schema, most_elements)

    def read(frame: bytes) -> tuple[Any, Any]:
        header, at = read_header(frame, 0)
        if check is not None:
            check(frame, at)
        body, _ = read_body(frame, at)
        return header, body

    def read_known(frame: bytes) -> tuple[Any, Any]:
        try:
            return read(frame)
        except KeyError:  # a tagged field that kio does not know
            return read(without_unknown_tags(frame, (header_schema, schema), most_elements))

    return read_known


def _body_writer(schema: Any) -> _Write:
    build, write_entity = _builder(schema), entity_writer(schema)

    def write(buffer: io.BytesIO, body: Any) -> None:
        write_entity(buffer, build(body) if isinstance(body, dict) else body)

    return write


def _named(api: Api, version: int) -> str:
    return f"{api.name} v{version}"
