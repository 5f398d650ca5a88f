"""The first requests of a connection to a broker with SASL (KIP-43, KIP-152)."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.data import CLUSTER_ID, NODE
from rebalance_kafka.broker.data_requests import api_versions, versions_of
from rebalance_kafka.broker.sasl import Exchange, LoginError, Step, Users
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import (
    Head,
    Request,
    decode_request,
    encode_response,
    head_of,
    is_served,
)
from rebalance_kafka.wire.messages import Values

MOST_FRAME_BYTES = 512 * 1024
"""Bytes of a request before authentication: Kafka's sasl.server.max.receive.size."""

FAILED = "there is no user of that name and password"
_WITH_HEADERS = 1
"""The version of SaslHandshake from which on SaslAuthenticate carries the messages of the exchange."""


class State(Enum):
    """The states of Kafka's SaslServerAuthenticator. Every request that is not listed ends the connection."""

    NEW = auto()
    """ApiVersions and SaslHandshake are allowed. ApiVersions leads to `HANDSHAKE`."""
    HANDSHAKE = auto()
    """SaslHandshake is allowed, which leads to `EXCHANGE` or `EXCHANGE_BARE`."""
    EXCHANGE = auto()
    """SaslAuthenticate is allowed, and leads to `COMPLETE` at the end of the exchange."""
    EXCHANGE_BARE = auto()
    """Frames are messages of the exchange, without a header, after version 0 of SaslHandshake."""
    COMPLETE = auto()
    """The client is authenticated."""


class Answer(NamedTuple):
    """A frame to send, or None, and the fault after which the connection ends, or None."""

    frame: bytes | None
    fault: str | None = None


class Login:
    """The authentication of one connection. ``user`` is set at the end."""

    def __init__(self, users: Users, mechanisms: Sequence[str]) -> None:
        self._users, self._mechanisms = users, tuple(mechanisms)
        self._state = State.NEW
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self.user: str | None = None

    def receive(self, frame: bytes) -> Answer:
        """Answer a frame.

        Raises:
            ProtocolError: if the frame is not a request.
        """
        if self._state is State.EXCHANGE_BARE:
            try:
                step = self._step(frame)
            except LoginError as error:
                return Answer(None, self._fault(error))
            return Answer(len(step.reply).to_bytes(4, "big") + step.reply)
        head = head_of(frame)
        if head.key == Api.API_VERSIONS and self._state is State.NEW and not is_served(head):
            return Answer(refused_versions(head))
        handle = _HANDLERS.get((self._state, head.key))
        if handle is None or not is_served(head):
            found = f"API {head.key} in version {head.version} before authentication"
            expected = "ApiVersions, SaslHandshake and SaslAuthenticate, in this order"
            hint = "security.protocol=SASL_PLAINTEXT or SASL_SSL"
            return self._out_of_order(frame, head, f"{found}, expected {expected} ({hint})")
        return handle(self, decode_request(frame, head))

    def _out_of_order(self, frame: bytes, head: Head, fault: str) -> Answer:
        """Report the error to a client in the middle of an exchange, if it can read the response."""
        if self._state is not State.EXCHANGE or head.key != Api.SASL_HANDSHAKE or not is_served(head):
            return Answer(None, fault)
        values = {"error_code": Wire.illegal_sasl_state, "mechanisms": self._mechanisms}
        return _answer(decode_request(frame, head), values, fault)

    def _versions(self, request: Request) -> Answer:
        self._state = State.HANDSHAKE
        return _answer(request, versions_of(request, CLUSTER_ID, NODE))

    def _handshake(self, request: Request) -> Answer:
        mechanism = request.body.mechanism
        values: dict[str, Any] = {"mechanisms": self._mechanisms}
        if mechanism not in self._mechanisms:
            values |= {"error_code": Wire.unsupported_sasl_mechanism}
            enabled = ", ".join(self._mechanisms)
            return _answer(request, values, f"SASL {mechanism[:100]!r}, expected one of {enabled}")
        self._mechanism, self._exchange = mechanism, self._users.exchange(mechanism)
        self._state = State.EXCHANGE if request.version >= _WITH_HEADERS else State.EXCHANGE_BARE
        return _answer(request, {**values, "error_code": Wire.none})

    def _authenticate(self, request: Request) -> Answer:
        try:
            step = self._step(request.body.auth_bytes)
        except LoginError as error:
            failed = Wire.sasl_authentication_failed
            values = {"error_code": failed, "error_message": FAILED, "auth_bytes": b""}
            return _answer(request, values, self._fault(error))
        values = {"error_code": Wire.none, "error_message": None, "auth_bytes": step.reply}
        return _answer(request, values)

    def _step(self, message: bytes) -> Step:
        assert self._exchange is not None
        step = self._exchange.send(message)
        if step.user is not None:
            self.user, self._state = step.user, State.COMPLETE
        return step

    def _fault(self, error: LoginError) -> str:
        return f"SASL {self._mechanism}: {error}"


def refused_versions(head: Head) -> bytes:
    """Return the response to a version of ApiVersions that is not served: those that are (KIP-511)."""
    return encode_response(Api.API_VERSIONS, 0, head.correlation_id, api_versions(Wire.unsupported_version))


def _answer(request: Request, values: Values, fault: str | None = None) -> Answer:
    frame = encode_response(request.api, request.version, request.correlation_id, values)
    return Answer(frame, fault)


_HANDLERS: Mapping[tuple[State, int], Callable[[Login, Request], Answer]] = {
    (State.NEW, Api.API_VERSIONS): Login._versions,
    (State.NEW, Api.SASL_HANDSHAKE): Login._handshake,
    (State.HANDSHAKE, Api.SASL_HANDSHAKE): Login._handshake,
    (State.EXCHANGE, Api.SASL_AUTHENTICATE): Login._authenticate,
}
