"""The connection of one client. One request is handled at a time, so that responses keep their order."""

import asyncio
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from struct import Struct
from typing import Any, Protocol

from coordinator_core.errors import ProtocolError
from rebalance_kafka.broker.login import MOST_FRAME_BYTES, Login, refused_versions
from rebalance_kafka.broker.turns import Turns
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import Head, Request, decode_request, encode_response, head_of, is_served
from rebalance_kafka.wire.values import Topics

SIZE = Struct(">i")
SIZE_BYTES = SIZE.size
INCOMING_BYTES = 64 * 1024
"""Bytes that are received from a connection at a time. Those of many may arrive at once."""

AHEAD_BYTES = 64 * 1024
"""Bytes that are received while a request is in progress. The kernel keeps the rest until its response."""

AT_ONCE_BYTES = 64 * 1024
"""Responses of one turn are written together, up to about this size."""

TLS_HANDSHAKE = b"\x16\x03"
"""The first bytes of a client that expects TLS."""

LINGER_SECONDS = 5.0
"""How long a connection waits, before it closes, for a client that does not read the last responses."""


class Phase(IntEnum):
    """The life of a connection. A connection only moves forward, and may skip phases."""

    NEW = auto()
    """The client is not admitted yet."""
    OPEN = auto()
    """Requests are received and handled."""
    HALF_CLOSED = auto()
    """The client sends nothing more. The requests that it has sent are handled."""
    DRAINING = auto()
    """The broker stops. The request in progress gets its response, and no other is handled."""
    CLOSED = auto()
    """Nothing is handled or sent any more."""


class Work(Enum):
    """What a connection does with its requests."""

    IDLE = auto()
    """It waits for bytes."""
    QUEUED = auto()
    """It has received bytes, and waits for its turn."""
    READING = auto()
    """It takes requests from the buffer."""
    HANDLING = auto()
    """The broker has been called with a request."""
    WAITING = auto()
    """The call has returned. The response comes later."""


class Server(Protocol):
    """The broker, as connections use it."""

    most_frame_bytes: int
    idle_seconds: float
    turns: Turns
    incoming: memoryview

    @property
    def ids(self) -> Topics:
        """The topics, which some messages name by id."""
        ...

    def login(self) -> Login | None:
        """Return the authentication of a new connection, None on a broker without SASL."""
        ...

    def admit(self, connection: "Connection") -> bool:
        """Take in a new connection. Return False if there are too many."""
        ...

    def closed(self, connection: "Connection", fault: str | None) -> None:
        """Forget a connection. ``fault``: the client's error that ended it."""
        ...

    def has_room(self, size: int) -> bool:
        """Return whether there is memory for this many more bytes."""
        ...

    def receive(self, request: Request, host: str, reply: Callable[[Any], None]) -> Callable[[], None] | None:
        """Handle a request. Return a function that gives up the wait for its response, if there is one."""
        ...


class Connection(asyncio.BufferedProtocol):
    """Reads frames, passes on one request at a time and writes the responses.

    A client that sends anything but requests is disconnected.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._phase = Phase.NEW
        self._work = Work.IDLE
        self._is_backed_up = False
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._fault: str | None = None
        self._give_up: Callable[[], None] | None = None
        self._transport: asyncio.Transport | None = None
        self._host = ""
        self._idle: asyncio.TimerHandle | None = None
        self._received_at = 0.0
        self._login = server.login()

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a client, or refuse it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._host = f"/{peer[0]}" if peer else "/"
        self._received_at = self._loop.time()
        if not self._server.admit(self):
            self._move(Phase.CLOSED)
            transport.abort()
            return
        self._move(Phase.OPEN)
        self._watch_idle()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the memory for the next bytes. They are copied before another connection receives some."""
        return self._server.incoming

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the requests that are complete."""
        self._received_at = self._loop.time()
        self._buffer += self._server.incoming[:nbytes]
        self._continue()

    def eof_received(self) -> bool:
        """Handle the rest of the requests, and keep the connection open for their responses.

        TLS does not keep it open.
        """
        self._move(Phase.HALF_CLOSED)
        self._continue()
        return self._transport is not None and self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """Stop: the client does not read its responses."""
        self._is_backed_up = True

    def resume_writing(self) -> None:
        """Continue: the client reads again."""
        self._is_backed_up = False
        self._continue()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forget everything."""
        self._end()
        self._transport = None
        self._server.closed(self, self._fault)

    # --- called by the broker

    @property
    def size(self) -> int:
        """The bytes of requests that are not handled yet and of responses that are not sent yet."""
        unsent = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return len(self._buffer) + self._unsent_bytes + unsent

    def drain(self) -> None:
        """Close the connection after the response to the request in progress."""
        self._move(Phase.DRAINING)
        if self._work is not Work.WAITING:
            self.close()

    def close(self) -> None:
        """Close the connection when everything is written, or when the client does not read it."""
        if self._transport is None or not self._is_open:
            return
        self._send()
        self._end()
        if self._transport.is_closing():  # a transport of TLS must not be closed twice
            return
        unsent = self._transport.get_write_buffer_size()
        self._transport.close()
        if unsent:
            self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- phases

    @property
    def _is_open(self) -> bool:
        return Phase.OPEN <= self._phase < Phase.CLOSED

    def _move(self, phase: Phase) -> None:
        self._phase = max(self._phase, phase)

    def _fail(self, fault: str) -> None:
        """Close the connection: the bytes after something that is not a request have no meaning."""
        if self._is_open:
            self._fault = fault
            self.close()

    def _end(self) -> None:
        """Stop handling requests and sending responses."""
        self._move(Phase.CLOSED)
        self._buffer.clear()
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._idle is not None:
            self._idle.cancel()
        if self._give_up is not None:
            self._give_up()
            self._give_up = None

    # --- requests

    def _continue(self) -> None:
        """Wait for a turn to handle requests, unless one is in progress, and adapt the flow of bytes."""
        if self._work is Work.IDLE and self._may_read:
            self._work = Work.QUEUED
            self._server.turns.add(self)
        self._adapt_flow()

    def take_turn(self, until: float) -> bool:
        """Handle the requests in the buffer, one after the other. Return whether the time was too short."""
        self._work = Work.READING
        is_over = False
        while self._work is Work.READING and self._may_read and not is_over:
            frame = self._next_frame()
            if frame is None:
                break
            self._handle(frame)
            is_over = self._loop.time() >= until
        self._send()
        if self._work is Work.READING:
            self._work = Work.QUEUED if is_over and self._buffer and self._may_read else Work.IDLE
        self._adapt_flow()
        return self._work is Work.QUEUED

    @property
    def _may_read(self) -> bool:
        return self._phase in (Phase.OPEN, Phase.HALF_CLOSED) and not self._is_backed_up

    def _next_frame(self) -> bytes | None:
        """Take the next complete frame from the buffer, None if there is none."""
        if len(self._buffer) < SIZE_BYTES:
            return None
        (size,) = SIZE.unpack_from(self._buffer)
        most = self._server.most_frame_bytes if self._login is None else MOST_FRAME_BYTES
        if not 0 <= size <= most:
            found = f"a frame of {size:,} bytes, expected {most:,} at most"
            if self._buffer.startswith(TLS_HANDSHAKE):
                found = "a TLS handshake, expected security.protocol=PLAINTEXT: this broker has no TLS"
            self._fail(found)
            return None
        whole = SIZE_BYTES + size
        if len(self._buffer) < whole:
            if not self._server.has_room(whole - len(self._buffer)):
                self._fail(f"no memory for a frame of {size:,} bytes")
            return None
        frame = bytes(self._buffer[SIZE_BYTES:whole])
        del self._buffer[:whole]
        return frame

    def _handle(self, frame: bytes) -> None:
        try:
            if self._login is not None:
                self._log_in(self._login, frame)
                return
            head = head_of(frame)
            if not is_served(head):
                self._refuse(head)
                return
            request = decode_request(frame, head, self._server.ids)
        except ProtocolError as error:
            self._fail(str(error))
            return
        self._work = Work.HANDLING
        try:
            give_up = self._server.receive(request, self._host, lambda body: self._respond(request, body))
        except Exception:
            self._fail(f"{request.api.name} v{request.version}: cannot be answered")
            raise
        if self._work is Work.HANDLING:
            self._work, self._give_up = Work.WAITING, give_up

    def _log_in(self, login: Login, frame: bytes) -> None:
        """Authenticate the client. After a fault, the response is sent before the connection closes."""
        answer = login.receive(frame)
        if answer.frame is not None:
            self._write(answer.frame)
        if answer.fault is not None:
            self._fail(answer.fault)
        elif login.user is not None:
            self._login = None

    def _refuse(self, head: Head) -> None:
        """Refuse an API or version that is not served."""
        if head.key == Api.API_VERSIONS:
            self._write(refused_versions(head))
        else:
            self._fail(f"API {head.key} in version {head.version}, which is not served")

    def _respond(self, request: Request, body: Any) -> None:
        """Send a response, if there is one, and continue with the next request."""
        is_late = self._work is Work.WAITING
        self._work, self._give_up = Work.IDLE if is_late else Work.READING, None
        if not self._is_open:
            return
        if body is not None:
            try:
                frame = _frame(request, body, self._server.ids)
            except Exception as error:  # values of other members may not fit into this version
                self._fail(f"{request.api.name} v{request.version}: no answer: {error}")
                return
            self._write(frame)
        if self._phase is Phase.DRAINING:
            self.close()
        elif is_late:
            self._send()
            self._continue()

    def _write(self, frame: bytes) -> None:
        """Send a frame at the end of the turn."""
        if not self._is_open:
            return
        if not self._server.has_room(len(frame)):
            self._fail(f"no memory for an answer of {len(frame):,} bytes")
            return
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if self._unsent_bytes >= AT_ONCE_BYTES:
            self._send()

    def _send(self) -> None:
        """Send the frames of this turn."""
        if not self._unsent:
            return
        frames, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if self._transport is not None:
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
            if self._transport.is_closing():  # the client is gone
                self._end()

    # --- flow

    def _adapt_flow(self) -> None:
        """Pause reading while many bytes wait. Close a half-closed connection that has nothing left to do."""
        if self._transport is None or not self._is_open:
            return
        is_occupied = self._work is not Work.IDLE or self._is_backed_up
        if self._phase is Phase.HALF_CLOSED:
            if not is_occupied:
                self.close()
        elif is_occupied and len(self._buffer) >= AHEAD_BYTES:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _watch_idle(self) -> None:
        """Close the connection of a client that sends nothing for long and waits for nothing."""
        wait = self._received_at + self._server.idle_seconds - self._loop.time()
        if wait > 0:
            self._idle = self._loop.call_later(wait, self._watch_idle)
        elif self._work is Work.WAITING:
            self._idle = self._loop.call_later(self._server.idle_seconds, self._watch_idle)
        else:
            self.close()


def _frame(request: Request, response: Any, topics: Topics) -> bytes:
    """Return the frame of a response, which is that frame or its body."""
    if isinstance(response, bytes):
        return response
    return encode_response(request.api, request.version, request.correlation_id, response, topics)
