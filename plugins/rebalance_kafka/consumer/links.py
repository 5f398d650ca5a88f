"""Connections to brokers, which send the requests of a client and receive the responses."""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rebalance_kafka.addresses import Place
from rebalance_kafka.consumer.sasl import Login
from rebalance_kafka.consumer.security import OPEN, Security
from rebalance_kafka.wire.apis import UNLIMITED, Api, api_of, common_version
from rebalance_kafka.wire.frames import LENGTH, decode_received, decode_response, encode_request
from rebalance_kafka.wire.messages import Node, Received, Values, request_body
from rebalance_kafka.wire.values import KnownTopics

MOST_FRAME_BYTES = 256 * 1024 * 1024
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 2.0
"""The time in which a broker must answer the end of TLS, and take the data that was sent."""

RECONNECT_SECONDS, MOST_RECONNECT_SECONDS = 0.05, 1.0
"""The delay after a lost connection. It doubles with every failed attempt, up to the maximum (KIP-144)."""

GROUP_REQUESTS = (
    m.JoinGroupRequest,
    m.SyncGroupRequest,
    m.HeartbeatRequest,
    m.LeaveGroupRequest,
    m.OffsetCommitRequest,
    m.OffsetFetchRequest,
    ConsumerGroupHeartbeatRequest,
)
"""Requests with a connection of their own. A broker processes the requests of one connection in order, and a
JoinGroup can take minutes."""

FIRST_REQUESTS = (m.MetadataRequest, m.FindCoordinatorRequest)
"""Requests that a client begins with. A broker that does not refuse the client answers them at once."""

NAMES_BY_ID = 12
"""The version from which on a Metadata request can have the ids of topics (KIP-516)."""

_TORN = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
SOFTWARE = {"client_software_name": "rebalance-lab", "client_software_version": "0.1.0"}


class RefusedError(ProtocolError):
    """The broker refuses this client. Another attempt would fail too."""


class _Sent(NamedTuple):
    """A request in flight, and the version that it was sent in."""

    request_id: int
    request: m.Request
    version: int


class Link(asyncio.Protocol):
    """One connection to one broker. Requests wait until the versions of the broker's APIs are known.

    ``received`` is called with a request id and the response.
    ``ready`` is called once the connection is authenticated.
    ``refused`` is called with the error if the broker refuses the client, before ``lost``.
    ``lost`` is called once, with the reason, when the connection has ended.
    ``delay``: the seconds to wait before connecting.
    """

    def __init__(
        self,
        place: Place,
        client_id: str,
        *,
        received: Callable[[int, Received], None],
        lost: Callable[[str], None],
        refused: Callable[[RefusedError], None],
        ready: Callable[[], None],
        delay: float = 0.0,
        security: Security = OPEN,
        max_versions: Mapping[Api, int] = UNLIMITED,
        topics: KnownTopics | None = None,
    ) -> None:
        self._topics = topics or KnownTopics()
        self._looks_up: dict[int, tuple[int, _Sent, bytes]] = {}
        self._place, self._client_id, self._security, self._max_versions = (
            place,
            client_id,
            security,
            max_versions,
        )
        self._received, self._lost, self._refused, self._ready = received, lost, refused, ready
        self._delay = delay
        self._waiting: list[tuple[int, m.Request]] = []
        self._in_flight: dict[int, _Sent] = {}
        self._versions: dict[int, tuple[int, int]] | None = None
        self._is_answered = False
        self._correlation = 0
        self._buffer = bytearray()
        self._reply: asyncio.Future[bytes] | None = None
        """The response to the request of the connection itself, before those of the client."""
        self._transport: asyncio.Transport | None = None
        self._is_closing = False
        self._closed = asyncio.Event()
        self._closed.set()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._open())

    def send(self, request_id: int, request: m.Request) -> None:
        """Send a request, now or when the connection is ready."""
        if self._versions is None or self._transport is None:
            self._waiting.append((request_id, request))
            return
        api = api_of(request)
        try:
            version = common_version(api, self._versions, self._max_versions)
            self._correlation += 1
            body = request_body(request, version)
            frame = encode_request(api, version, self._correlation, self._client_id, body, self._topics)
        except ProtocolError as error:  # later: the callback may send again
            self._loop.call_soon(self._end, str(error))
            return
        self._in_flight[self._correlation] = _Sent(request_id, request, version)
        self._transport.write(frame)

    async def close(self) -> None:
        """Close, after the data that was sent is flushed."""
        self.drop()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._closed.wait()

    def drop(self) -> None:
        """Close without calling ``lost``."""
        self._lost = _ignore
        self._close()
        self._task.cancel()

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self._task.done() and self._closed.is_set()

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a connection, or close it if it is not wanted any more."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._closed.clear()
        if self._is_closing:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take the responses that are complete."""
        self._buffer += data
        try:
            while not self._is_closing and (frame := self._next_frame()) is not None:
                self._take(frame)
        except ProtocolError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end of the connection."""
        self._closed.set()
        error = exc or ConnectionResetError()
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)
        else:
            self._fail(error)

    # --- from its beginning to its end

    async def _open(self) -> None:
        """Connect, and be let in. The requests that wait are sent then."""
        try:
            await self._connect()
            versions = await self._their_versions()
            if self._security.login is not None:
                await self._log_in(self._security.login, versions)
            self._versions, self._reply = versions, None
            self._ready()
            waiting, self._waiting = self._waiting, []
            for request_id, request in waiting:
                self.send(request_id, request)
        except Exception as error:
            self._fail(error)
            if not isinstance(error, OSError | ProtocolError):
                raise

    def _fail(self, error: Exception) -> None:
        """End the connection after an error."""
        found = str(error) or type(error).__name__
        if isinstance(error, ConnectionResetError):
            found = self._closed_by(error)
        elif isinstance(error, ssl.SSLError):
            if error.reason == "WRONG_VERSION_NUMBER":
                found += ", expected a broker with TLS (else security.protocol=PLAINTEXT or SASL_PLAINTEXT)"
            if not isinstance(error, _TORN):
                self._refused(RefusedError("TLS", found))
        elif isinstance(error, RefusedError):
            self._refused(error)
        elif not isinstance(error, OSError | ProtocolError):
            found = f"{type(error).__name__}: {error}"
        self._end(found)

    async def _connect(self) -> None:
        await asyncio.sleep(self._delay)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):  # wait_for of Python 3.11 may drop a cancellation
                await self._loop.create_connection(lambda: self, *self._place, ssl=self._security.tls)
        except UnicodeError:  # metadata of a broker may contain any name
            raise ProtocolError("broker", f"{self._place.host!r} cannot be the name of a host") from None

    async def _their_versions(self) -> dict[int, tuple[int, int]]:
        """Return the versions of the broker's APIs, requested in version 3 or else in 0 (KIP-511)."""
        version = 3
        frame = await self._exchanged(Api.API_VERSIONS, version, SOFTWARE)
        if int.from_bytes(frame[4:6], "big") == Wire.unsupported_version:
            version = 0
            frame = await self._exchanged(Api.API_VERSIONS, version, SOFTWARE)
        _, body = decode_response(Api.API_VERSIONS, version, frame)
        return {entry.api_key: (entry.min_version, entry.max_version) for entry in body.api_keys}

    async def _log_in(self, login: Login, versions: Mapping[int, tuple[int, int]]) -> None:
        """Authenticate with SASL in frames of the protocol (KIP-152).

        Raises:
            RefusedError: if the broker does not support the mechanism or refuses the credentials.
        """
        api, version = Api.SASL_HANDSHAKE, common_version(Api.SASL_HANDSHAKE, versions)
        if not version:
            raise RefusedError("broker", "it offers SaslHandshake 0 only, expected version 1 (KIP-152)")
        frame = await self._exchanged(api, version, {"mechanism": login.mechanism})
        _, body = decode_response(api, version, frame)
        if body.error_code is not Wire.none:
            if not body.mechanisms:
                expected = "security.protocol=PLAINTEXT or SSL"
                raise RefusedError("broker", f"it has no authentication, expected {expected}")
            supported = ", ".join(body.mechanisms)
            raise RefusedError("broker", f"it does not support {login.mechanism}, but {supported}")
        api, version = Api.SASL_AUTHENTICATE, common_version(Api.SASL_AUTHENTICATE, versions)
        steps = login.steps()
        message = next(steps)
        while True:
            frame = await self._exchanged(api, version, {"auth_bytes": message})
            _, body = decode_response(api, version, frame)
            if body.error_code is not Wire.none:
                found = body.error_message or body.error_code.name
                hint = f"expected the sasl.username and sasl.password of a user with {login.mechanism}"
                raise RefusedError("broker", f"{found}, {hint}")
            try:
                message = steps.send(body.auth_bytes)
            except StopIteration:
                return
            except ProtocolError as error:
                raise RefusedError(error.peer, error.reason) from None

    async def _exchanged(self, api: Api, version: int, values: Values) -> bytes:
        """Send a request of the connection itself and return its response."""
        assert self._transport is not None
        self._reply = self._loop.create_future()
        self._transport.write(encode_request(api, version, 0, self._client_id, values))
        async with asyncio.timeout(CONNECT_SECONDS):
            return await self._reply

    def _closed_by(self, error: ConnectionResetError) -> str:
        """Return the reason of a connection that the broker has closed."""
        if self._buffer:
            return "it closed the connection in the middle of a response"
        found = str(error) or "it closed the connection"
        is_unanswered = not self._is_answered and any(
            isinstance(sent.request, FIRST_REQUESTS) for sent in self._in_flight.values()
        )
        return f"{found}{_UNLIKE}" if self._versions is None or is_unanswered else found

    def _next_frame(self) -> bytes | None:
        """Take the next complete frame from the buffer, None if there is none."""
        if len(self._buffer) < LENGTH.size:
            return None
        if self._buffer.startswith(_TLS_ALERT):
            raise ProtocolError("broker", "it speaks TLS, expected security.protocol=SSL or SASL_SSL")
        (size,) = LENGTH.unpack_from(self._buffer)
        if not 4 <= size <= MOST_FRAME_BYTES:
            found = f"a frame of {size:,} bytes, expected 4 to {MOST_FRAME_BYTES:,} (is it a Kafka broker?)"
            raise ProtocolError("broker", found)
        whole = LENGTH.size + size
        if len(self._buffer) < whole:
            return None
        frame = bytes(self._buffer[LENGTH.size : whole])
        del self._buffer[:whole]
        return frame

    def _take(self, frame: bytes) -> None:
        if self._reply is not None:
            self._reply.set_result(frame)
            return
        self._is_answered = True
        correlation = int.from_bytes(frame[:4], "big", signed=True)
        if correlation in self._looks_up:
            self._looked_up(correlation, frame)
            return
        sent = self._in_flight.pop(correlation, None)
        if sent is None:
            raise ProtocolError("broker", f"a response to request {correlation}, which is not in flight")
        received = decode_received(sent.request, sent.version, frame, self._topics)
        if received.unknown:
            self._look_up(received.unknown, sent, frame)
        else:
            self._deliver(sent, received)

    def _deliver(self, sent: _Sent, received: Received) -> None:
        if received.topic_ids:
            self._topics.learn(received.topic_ids)
        self._received(sent.request_id, received)

    def _look_up(self, topic_ids: Sequence[UUID], sent: _Sent, frame: bytes) -> None:
        """Request the names of topics. The response that names their ids is delivered after that."""
        assert self._transport is not None
        assert self._versions is not None
        version = common_version(Api.METADATA, self._versions, self._max_versions)
        if version < NAMES_BY_ID:
            raise ProtocolError("broker", f"it offers METADATA up to {version}, expected {NAMES_BY_ID}")
        self._correlation += 1
        self._looks_up[self._correlation] = version, sent, frame
        values = {"topics": tuple({"topic_id": topic_id, "name": None} for topic_id in topic_ids)}
        self._transport.write(
            encode_request(Api.METADATA, version, self._correlation, self._client_id, values)
        )

    def _looked_up(self, correlation: int, frame: bytes) -> None:
        version, sent, its_frame = self._looks_up.pop(correlation)
        self._topics.learn(decode_received(m.MetadataRequest(), version, frame).topic_ids)
        received = decode_received(sent.request, sent.version, its_frame, self._topics)
        if received.unknown:  # the topic is deleted, and the coordinator is about to assign anew
            received = Received(ConsumerGroupHeartbeatResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR))
        self._deliver(sent, received)

    def _close(self) -> None:
        """Close the connection. With TLS, that takes an answer of the broker."""
        if self._transport is not None and not self._is_closing:
            self._transport.close()
            self._loop.call_later(CLOSE_SECONDS, self._transport.abort)
        self._is_closing = True

    def _end(self, reason: str) -> None:
        self._close()
        lost, self._lost = self._lost, _ignore
        lost(reason)


def _ignore(_: str) -> None:
    """Ignore the reason of a loss that is handled already."""


_TLS_ALERT = b"\x15\x03"
_UNLIKE = " before its first response: does it expect another security.protocol (TLS, SASL)?"


class Links:
    """The connections to the brokers of a cluster. A connection is made when a request needs it.

    Brokers without a known id have the numbers -1, -2 and so on, in the order of their addresses.
    """

    def __init__(
        self,
        bootstrap: Sequence[Place],
        client_id: str,
        *,
        received: Callable[[int, m.Response], None],
        lost: Callable[[int, str], None],
        security: Security = OPEN,
        max_versions: Mapping[Api, int] = UNLIMITED,
    ) -> None:
        self._places = {-1 - i: place for i, place in enumerate(bootstrap)}
        self._client_id, self._security, self._max_versions = client_id, security, max_versions
        self._topics = KnownTopics()
        self._received, self._lost = received, lost
        self._links: dict[tuple[int, bool], Link] = {}
        self._dropped: list[Link] = []
        self._failures: dict[int, int] = {}
        self.refused: RefusedError | None = None
        """The error of a broker that refused this client, or None."""

    @property
    def bootstrap(self) -> list[int]:
        """The numbers of the brokers without a known id."""
        return [number for number in self._places if number < 0]

    def name_of(self, node: int) -> str:
        """Return the address of a broker for messages."""
        place = self._places.get(node)
        return f"broker {node}" if place is None else str(place)

    def send(self, node: int, request_id: int, request: m.Request) -> None:
        """Send a request to a broker. An unknown broker counts as disconnected.

        Nothing is sent after a broker has refused this client, so that a password is not tried twice.
        """
        if self.refused is not None:
            asyncio.get_running_loop().call_soon(self._lost, node, str(self.refused))
            return
        place = self._places.get(node)
        if place is None:
            asyncio.get_running_loop().call_soon(self._lost, node, "an unknown broker")
            return
        key = node, isinstance(request, GROUP_REQUESTS)
        link = self._links.get(key)
        if link is None:
            link = self._links[key] = Link(
                place,
                self._client_id,
                received=self._take,
                lost=lambda reason: self._on_lost(node, reason),
                refused=self._on_refused,
                ready=lambda: self._on_ready(node),
                delay=self._delay(node),
                security=self._security,
                max_versions=self._max_versions,
                topics=self._topics,
            )
        link.send(request_id, request)

    async def close(self) -> None:
        """Close all connections."""
        links, self._links = [*self._links.values(), *self._dropped], {}
        for link in links:
            link.drop()
        for link in links:
            await link.close()

    def drop(self, node: int) -> None:
        """Close the connections to a broker that does not respond, without calling ``lost``."""
        for group in (False, True):
            link = self._links.pop((node, group), None)
            if link is not None:
                link.drop()
                self._dropped = [other for other in self._dropped if not other.is_over] + [link]

    def _delay(self, node: int) -> float:
        failures = self._failures.get(node, 0)
        return min(MOST_RECONNECT_SECONDS, RECONNECT_SECONDS * 2 ** (failures - 1)) if failures else 0.0

    def _take(self, request_id: int, received: Received) -> None:
        for node in received.nodes:
            self._learn(node)
        self._received(request_id, received.response)

    def _learn(self, node: Node) -> None:
        if node.node >= 0 and node.host:
            self._places[node.node] = Place(node.host, node.port)

    def _on_ready(self, node: int) -> None:
        self._failures.pop(node, None)

    def _on_refused(self, error: RefusedError) -> None:
        self.refused = error

    def _on_lost(self, node: int, reason: str) -> None:
        """Close the other connection to the broker too: its requests fail together."""
        self._failures[node] = min(self._failures.get(node, 0) + 1, 10)
        self.drop(node)
        self._lost(node, reason)
