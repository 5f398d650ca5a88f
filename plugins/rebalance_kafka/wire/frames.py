"""Conversion between frames, which are bytes, and messages of the core or values.

Values have the names of the newest version. Names that the version of a frame lacks are left out.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import VERSIONS, Api, api_of
from rebalance_kafka.wire.codecs import codec
from rebalance_kafka.wire.messages import Reading, Received, reading_of, receiving_of
from rebalance_kafka.wire.schemas import request_schema, response_schema
from rebalance_kafka.wire.values import (
    INT16,
    MOST_ELEMENTS,
    NO_TOPICS,
    Input,
    Output,
    Topics,
    read_tags,
    sized,
)

LENGTH = Struct(">i")
"""The length of a frame comes first."""

_REPEATED = frozenset({Api.HEARTBEAT})
"""Requests that clients send again and again, with another correlation id only."""

_SHORT_BYTES = 256
_REMEMBERED = 4_096
"""Requests of `_REPEATED` up to `_SHORT_BYTES` that are remembered as decoded."""

_HEAD = Struct(">hhi")
_CORRELATION = Struct(">i")
_CLIENT_ID = sized(INT16, is_text=True, nullable=True)
_API_BY_KEY = {int(api): api for api in Api}


class Head(NamedTuple):
    """The first fields of a request, which are the same in every version."""

    key: int
    version: int
    correlation_id: int


class Request(NamedTuple):
    """A request that a client sent.

    ``body``: the core's message, a list of them for several groups, or a namespace of values if the broker
    handles the request without the coordinator.
    """

    api: Api
    version: int
    correlation_id: int
    client_id: str
    body: Any


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


# --- requests


def decode_request(frame: bytes, head: Head, topics: Topics = NO_TOPICS) -> Request:
    """Return the request of a frame whose head `is_served`.

    Raises:
        ProtocolError: if the rest of the frame is not a request of that API and version.
    """
    api = _API_BY_KEY[head.key]
    try:
        if api in _REPEATED and len(frame) <= _SHORT_BYTES:
            client_id, body = _repeated(api, head.version, frame[_HEAD.size :])
        else:
            client_id, body = _request(api, head.version, Input(frame, _HEAD.size, MOST_ELEMENTS, topics))
    except Exception as error:  # invalid bytes raise errors of many kinds
        raise ProtocolError(f"{api.name} v{head.version}", f"{type(error).__name__}: {error}") from None
    return Request(api, head.version, head.correlation_id, client_id, body)


class _Form(NamedTuple):
    """The schema of a body, and whether there are tagged fields in the header before it."""

    schema: Any
    has_tags: bool


@cache
def _form(load: Callable[[int, int], Any], api: Api, version: int) -> _Form:
    schema = load(api, version)
    return _Form(schema, schema.__header_schema__.__flexible__)


@lru_cache(_REMEMBERED)
def _repeated(api: Api, version: int, rest: bytes) -> tuple[str, Any]:
    """Return client id and body of a request without its head."""
    return _request(api, version, Input(rest, 0, MOST_ELEMENTS))


def _request(api: Api, version: int, source: Input) -> tuple[str, Any]:
    client_id = _CLIENT_ID.read(source) or ""
    return client_id, _read(_form(request_schema, api, version), reading_of(api, version), source)


def _read(form: _Form, reading: Reading, source: Input) -> Any:
    if form.has_tags:
        read_tags(source, {}, {})
    body = codec(form.schema, reading.message).read(source)
    return body if reading.finish is None else reading.finish(body)


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, body: Any, topics: Topics = NO_TOPICS
) -> bytes:
    """Return a request as a frame with its length. ``body``: a message of the core, or values."""
    out = Output(LENGTH.size)
    out += _HEAD.pack(api, version, correlation_id)
    _CLIENT_ID.write(out, client_id)
    return _written(out, _form(request_schema, api, version), body, topics)


# --- responses


def decode_response(api: Api, version: int, frame: bytes) -> tuple[int, Any]:
    """Return the correlation id and the values of a response.

    Raises:
        ProtocolError: if the frame is not a response of that API and version.
    """
    return _CORRELATION.unpack_from(frame)[0], _response(api, version, Reading(), Input(frame))


def decode_received(request: m.Request, version: int, frame: bytes, topics: Topics = NO_TOPICS) -> Received:
    """Return the core's message of a response that a broker sent. Unknown topics have their ids as names.

    Records that cannot be read are an error of their partition.

    Raises:
        ProtocolError: if the frame is not a response to the request in that version.
    """
    api, source = api_of(request), Input(frame, topics=topics)
    received: Received = _response(api, version, receiving_of(api, version), source)
    return received._replace(unknown=tuple(source.unknown)) if source.unknown else received


def _response(api: Api, version: int, reading: Reading, source: Input) -> Any:
    try:
        source.take(_CORRELATION.size)
        return _read(_form(response_schema, api, version), reading, source)
    except Exception as error:  # invalid bytes raise errors of many kinds
        peer, found = f"answer to {api.name} v{version}", f"{type(error).__name__}: {error}"
        raise ProtocolError(peer, found) from None


def encode_response(
    api: Api, version: int, correlation_id: int, body: Any, topics: Topics = NO_TOPICS
) -> bytes:
    """Return a response as a frame with its length. ``body``: a message of the core, or values."""
    out = Output(LENGTH.size)
    out += _CORRELATION.pack(correlation_id)
    return _written(out, _form(response_schema, api, version), body, topics)


def heartbeat_frame(request: Request, response: m.HeartbeatResponse) -> bytes:
    """Return the frame of a response to a heartbeat, of which only the correlation id differs."""
    template = _heartbeat_template(request.version, response.error)
    begin, end = LENGTH.size, LENGTH.size + _CORRELATION.size
    return template[:begin] + _CORRELATION.pack(request.correlation_id) + template[end:]


@cache
def _heartbeat_template(version: int, error: ErrorCode) -> bytes:
    return encode_response(Api.HEARTBEAT, version, 0, m.HeartbeatResponse(error=error))


def _written(out: Output, form: _Form, body: Any, topics: Topics) -> bytes:
    """Return a frame with its body and its length."""
    out.topics = topics
    if form.has_tags:
        out.append(0)
    message: Any = None if isinstance(body, dict) else type(body)
    codec(form.schema, message).write(out, body)
    LENGTH.pack_into(out, 0, len(out) - LENGTH.size)
    return bytes(out)
