"""Connections to brokers: requests of the core's go out, its answers come back."""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol import messages as m
from rebalance_kafka.addresses import Place
from rebalance_kafka.consumer.sasl import Login
from rebalance_kafka.consumer.security import OPEN, Security
from rebalance_kafka.wire.apis import UNLIMITED, AnyApi, Api, LoginApi, api_of, common_version
from rebalance_kafka.wire.frames import Values, decode_response, encode_request
from rebalance_kafka.wire.requests import request_entity
from rebalance_kafka.wire.responses import Node, Received, response_message

MOST_FRAME_BYTES = 256 * 1024 * 1024
CONNECT_SECONDS = 10.0
RECONNECT_SECONDS, MOST_RECONNECT_SECONDS = 0.05, 1.0
"""How long to wait after a lost connection; twice as long each time that none was made (KIP-144)."""

GROUP_REQUESTS = (
    m.JoinGroupRequest,
    m.SyncGroupRequest,
    m.HeartbeatRequest,
    m.LeaveGroupRequest,
    m.OffsetCommitRequest,
    m.OffsetFetchRequest,
)
"""They have a connection of their own: a broker handles one request of a connection after the other, and a
JoinGroup may wait for minutes."""

_TORN = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
SOFTWARE = {"client_software_name": "rebalance-lab", "client_software_version": "0.1.0"}


class RefusedError(ProtocolError):
    """The broker does not let this client in, and will not another time."""


class Link:
    """One connection to one broker. Requests wait until the broker has said what it speaks.

    ``answered`` takes request id and answer, ``lost`` the reason why the connection is gone, once;
    ``refused``, before that, why the broker did not let it in; ``ready`` hears when it did. The connection is
    made after ``delay`` seconds.
    """

    def __init__(
        self,
        place: Place,
        client_id: str,
        *,
        answered: Callable[[int, Received], None],
        lost: Callable[[str], None],
        refused: Callable[[RefusedError], None],
        ready: Callable[[], None],
        delay: float = 0.0,
        security: Security = OPEN,
        most: Mapping[Api, int] = UNLIMITED,
    ) -> None:
        self._place, self._client_id, self._security, self._most = place, client_id, security, most
        self._answered, self._lost, self._refused, self._ready = answered, lost, refused, ready
        self._delay = delay
        self._waiting: list[tuple[int, m.Request]] = []
        self._asked: dict[int, tuple[int, m.Request, int]] = {}
        self._versions: dict[int, tuple[int, int]] | None = None
        self._correlation = 0
        self._writer: asyncio.StreamWriter | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def send(self, request_id: int, request: m.Request) -> None:
        """Send a request, now or once the connection is there."""
        if self._versions is None or self._writer is None:
            self._waiting.append((request_id, request))
            return
        api = api_of(request)
        try:
            version = common_version(api, self._versions, self._most)
            self._correlation += 1
            entity = request_entity(request, version)
            frame = encode_request(api, version, self._correlation, self._client_id, entity)
        except ProtocolError as problem:  # not from within: who hears of it may send again
            asyncio.get_running_loop().call_soon(self._end, str(problem))
            return
        self._asked[self._correlation] = (request_id, request, version)
        self._writer.write(frame)

    async def close(self) -> None:
        """Close, once what was sent is on its way."""
        self.drop()
        await asyncio.gather(self._task, return_exceptions=True)

    def drop(self) -> None:
        """Close, without a word to who is told of lost connections."""
        self._lost = _ignore
        if self._writer is not None and not self._writer.is_closing():
            self._writer.close()
        self._task.cancel()

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left."""
        return self._task.done()

    async def _run(self) -> None:
        try:
            reader = await self._connected()
            versions = await self._their_versions(reader)
            if self._security.login is not None:
                await self._log_in(reader, self._security.login, versions)
            self._versions = versions
            self._ready()
            waiting, self._waiting = self._waiting, []
            for request_id, request in waiting:
                self.send(request_id, request)
            while True:
                self._take(await _frame(reader))
        except asyncio.IncompleteReadError as problem:
            self._end(f"it closed the connection{' in the middle of an answer' if problem.partial else ''}")
        except ssl.SSLError as problem:
            if not isinstance(problem, _TORN):
                self._refused(RefusedError("TLS", str(problem)))
            self._end(str(problem))
        except (OSError, TimeoutError) as problem:
            self._end(str(problem) or type(problem).__name__)
        except RefusedError as problem:
            self._refused(problem)
            self._end(str(problem))
        except ProtocolError as problem:
            self._end(str(problem))
        except Exception as wrong:
            self._end(f"{type(wrong).__name__}: {wrong}")
            raise

    async def _connected(self) -> asyncio.StreamReader:
        await asyncio.sleep(self._delay)
        opening = asyncio.open_connection(*self._place, ssl=self._security.tls)
        try:
            reader, self._writer = await asyncio.wait_for(opening, CONNECT_SECONDS)
        except UnicodeError:  # a broker may tell of any
            raise ProtocolError("broker", f"{self._place.host!r} cannot be the name of a host") from None
        return reader

    async def _their_versions(self, reader: asyncio.StreamReader) -> dict[int, tuple[int, int]]:
        """ApiVersions in our newest version; a broker that does not know it answers in 0 (KIP-511)."""
        version = 3
        frame = await self._exchanged(reader, Api.API_VERSIONS, version, SOFTWARE)
        if int.from_bytes(frame[4:6], "big") == Wire.unsupported_version:
            version = 0
            frame = await self._exchanged(reader, Api.API_VERSIONS, version, SOFTWARE)
        _, body = decode_response(Api.API_VERSIONS, version, frame)
        return {each.api_key: (each.min_version, each.max_version) for each in body.api_keys}

    async def _log_in(
        self, reader: asyncio.StreamReader, login: Login, versions: Mapping[int, tuple[int, int]]
    ) -> None:
        """SASL in frames of the protocol (KIP-152). Raises RefusedError."""
        api, version = LoginApi.SASL_HANDSHAKE, common_version(LoginApi.SASL_HANDSHAKE, versions)
        frame = await self._exchanged(reader, api, version, {"mechanism": login.mechanism})
        _, body = decode_response(api, version, frame)
        if body.error_code is not Wire.none:
            takes = ", ".join(body.mechanisms) or "none"
            raise RefusedError("broker", f"it does not take {login.mechanism}, but {takes}")
        api, version = LoginApi.SASL_AUTHENTICATE, common_version(LoginApi.SASL_AUTHENTICATE, versions)
        steps = login.steps()
        said = next(steps)
        while True:
            frame = await self._exchanged(reader, api, version, {"auth_bytes": said})
            _, body = decode_response(api, version, frame)
            if body.error_code is not Wire.none:
                raise RefusedError("broker", body.error_message or body.error_code.name)
            try:
                said = steps.send(body.auth_bytes)
            except StopIteration:
                return
            except ProtocolError as wrong:
                raise RefusedError(wrong.peer, wrong.problem) from None

    async def _exchanged(
        self, reader: asyncio.StreamReader, api: AnyApi, version: int, values: Values
    ) -> bytes:
        """An answer, before there are requests of the core's."""
        assert self._writer is not None
        self._writer.write(encode_request(api, version, 0, self._client_id, values))
        return await asyncio.wait_for(_frame(reader), CONNECT_SECONDS)

    def _take(self, frame: bytes) -> None:
        correlation = int.from_bytes(frame[:4], "big", signed=True)
        asked = self._asked.pop(correlation, None)
        if asked is None:
            raise ProtocolError("broker", f"an answer to request {correlation}, which was not asked")
        request_id, request, version = asked
        _, body = decode_response(api_of(request), version, frame)
        self._answered(request_id, response_message(request, body, version))

    def _end(self, problem: str) -> None:
        if self._writer is not None:
            self._writer.close()
        lost, self._lost = self._lost, _ignore
        lost(problem)


def _ignore(_: str) -> None:
    """Nobody wants to hear of it any more."""


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
    if not 4 <= size <= MOST_FRAME_BYTES:
        said = f"a frame of {size:,} bytes, expected 4 to {MOST_FRAME_BYTES:,} (is it a Kafka broker?)"
        raise ProtocolError("broker", said)
    return await reader.readexactly(size)


class Links:
    """The connections to all brokers of a cluster, made when they are needed.

    Brokers one knows by address only have the numbers -1, -2 and so on.
    """

    def __init__(
        self,
        bootstrap: Sequence[Place],
        client_id: str,
        *,
        answered: Callable[[int, m.Response], None],
        lost: Callable[[int, str], None],
        security: Security = OPEN,
        most: Mapping[Api, int] = UNLIMITED,
    ) -> None:
        self._places = {-1 - i: place for i, place in enumerate(bootstrap)}
        self._client_id, self._security, self._most = client_id, security, most
        self._answered, self._lost = answered, lost
        self._links: dict[tuple[int, bool], Link] = {}
        self._dropped: list[Link] = []
        self._failures: dict[int, int] = {}
        self.refused: RefusedError | None = None
        """Why a broker did not let this client in."""

    @property
    def bootstrap(self) -> list[int]:
        """The numbers of the brokers known by address."""
        return [number for number in self._places if number < 0]

    def name_of(self, node: int) -> str:
        """A broker's address, for messages."""
        place = self._places.get(node)
        return f"broker {node}" if place is None else str(place)

    def send(self, node: int, request_id: int, request: m.Request) -> None:
        """Send a request to a broker; one that nobody has told of is as one that is gone.

        Once a broker has refused this client nothing is sent any more: a password is not tried twice.
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
                answered=self._take,
                lost=lambda problem: self._gone(node, problem),
                refused=self._refuse,
                ready=lambda: self._well(node),
                delay=self._delay(node),
                security=self._security,
                most=self._most,
            )
        link.send(request_id, request)

    async def close(self) -> None:
        """Close all."""
        links, self._links = [*self._links.values(), *self._dropped], {}
        for link in links:
            await link.close()

    def drop(self, node: int) -> None:
        """Close the connections to a broker that does not answer; nobody is told."""
        for group in (False, True):
            link = self._links.pop((node, group), None)
            if link is not None:
                link.drop()
                self._dropped = [each for each in self._dropped if not each.is_over] + [link]

    def _delay(self, node: int) -> float:
        failures = self._failures.get(node, 0)
        return min(MOST_RECONNECT_SECONDS, RECONNECT_SECONDS * 2 ** (failures - 1)) if failures else 0.0

    def _take(self, request_id: int, answer: Received) -> None:
        for node in answer.nodes:
            self._learn(node)
        self._answered(request_id, answer.response)

    def _learn(self, node: Node) -> None:
        if node.node >= 0 and node.host:
            self._places[node.node] = Place(node.host, node.port)

    def _well(self, node: int) -> None:
        self._failures.pop(node, None)

    def _refuse(self, problem: RefusedError) -> None:
        self.refused = problem

    def _gone(self, node: int, problem: str) -> None:
        """What was asked of a broker on one connection and on the other fails together."""
        self._failures[node] = min(self._failures.get(node, 0) + 1, 10)
        self.drop(node)
        self._lost(node, problem)
