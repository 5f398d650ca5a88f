"""One client's connection: frames in, one request at a time, answers in the order of the requests."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import ProtocolError
from rebalance_kafka.broker.data import api_versions
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import (
    Head,
    Request,
    Values,
    decode_request,
    encode_response,
    head_of,
    is_served,
)

SIZE_BYTES = 4
AHEAD_BYTES = 256 * 1024
"""Received while a request is under way; more stays with the kernel until it is answered."""

TURN_SECONDS = 0.01
"""How long a client that asks without a pause keeps the others waiting."""

LINGER_SECONDS = 5.0
"""How long a connection that is to be closed waits for a client that does not read its last answers."""


class Server(Protocol):
    """What a connection needs of the broker."""

    most_frame_bytes: int
    idle_seconds: float

    def admitted(self, connection: "Connection") -> bool:
        """Whether there is room for one more."""
        ...

    def gone(self, connection: "Connection", problem: str | None) -> None:
        """It is closed, because of a problem of the client's or without one."""
        ...

    def has_room(self, size: int) -> bool:
        """Whether there is memory for this many bytes more."""
        ...

    def receive(
        self, request: Request, host: str, reply: Callable[[Values | None], None]
    ) -> Callable[[], None] | None:
        """Take in a request; what comes back, if anything, gives up waiting for its answer."""
        ...


class Connection(asyncio.Protocol):
    """Reads frames, hands on one request at a time, writes the answers. Closes at whatever is no request."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._busy = self._draining = self._full = self._paused = self._again = False
        self._open = self._ended = self._more = False
        self._problem: str | None = None
        self._give_up: Callable[[], None] | None = None
        self._transport: asyncio.Transport | None = None
        self._host = ""
        self._idle: asyncio.TimerHandle | None = None
        self._heard = 0.0

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._host = f"/{peer[0]}" if peer else "/"
        self._heard = self._loop.time()
        if not self._server.admitted(self):
            transport.abort()
            return
        self._open = True
        self._watch_idle()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self._heard = self._loop.time()
        self._buffer += data
        self._go_on()

    def eof_received(self) -> bool:
        """The client will say no more; what it asked is still answered."""
        self._ended = True
        self._go_on()
        return True

    def pause_writing(self) -> None:
        """The client does not read: nothing more is answered until it does."""
        self._full = True

    def resume_writing(self) -> None:
        """It reads again."""
        self._full = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """It is closed."""
        self._end()
        self._transport = None
        self._server.gone(self, self._problem)

    # --- what the broker asks

    @property
    def size(self) -> int:
        """Bytes received and not yet handled, and bytes of answers that are not sent yet."""
        unsent = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return len(self._buffer) + unsent

    def drain(self) -> None:
        """Answer what is under way, then close."""
        self._draining = True
        if not self._busy:
            self.close()

    def close(self) -> None:
        """Close when everything is written, or when the client does not read it."""
        if self._transport is None or not self._open:
            return
        self._end()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- frames

    def _go_on(self) -> None:
        """Handle the requests that are there, one after the other, as long as one's turn lasts."""
        if self._again or self._more:
            return
        self._again = True
        until = self._loop.time() + TURN_SECONDS
        try:
            while self._open and not (self._busy or self._full or self._draining):
                frame = self._next_frame()
                if frame is None:
                    break
                self._handle(frame)
                if self._loop.time() >= until:
                    self._more = True
                    self._loop.call_soon(self._next_turn)
                    break
        finally:
            self._again = False
        self._pace()

    def _next_turn(self) -> None:
        self._more = False
        self._go_on()

    def _next_frame(self) -> bytes | None:
        if len(self._buffer) < SIZE_BYTES:
            return None
        size = int.from_bytes(self._buffer[:SIZE_BYTES], "big", signed=True)
        if not 0 <= size <= self._server.most_frame_bytes:
            self._fail(f"a frame of {size:,} bytes, expected {self._server.most_frame_bytes:,} at most")
            return None
        whole = SIZE_BYTES + size
        if not self._server.has_room(whole - len(self._buffer)):
            self._fail(f"no memory for a frame of {size:,} bytes")
            return None
        if len(self._buffer) < whole:
            return None
        frame = bytes(self._buffer[SIZE_BYTES:whole])
        del self._buffer[:whole]
        return frame

    def _handle(self, frame: bytes) -> None:
        try:
            head = head_of(frame)
            if not is_served(head):
                self._refuse(head)
                return
            request = decode_request(frame, head)
        except ProtocolError as wrong:
            self._fail(str(wrong))
            return
        self._busy = True
        try:
            waiting = self._server.receive(request, self._host, lambda values: self._answer(request, values))
        except Exception:
            self._fail(f"{request.api.name} v{request.version}: cannot be answered")
            raise
        self._give_up = waiting if self._busy else None

    def _refuse(self, head: Head) -> None:
        """An API or a version that is not served. A client asks ApiVersions to learn of it (KIP-511)."""
        if head.key == Api.API_VERSIONS:
            values = api_versions(Wire.unsupported_version)
            self._write(encode_response(Api.API_VERSIONS, 0, head.correlation_id, values))
        else:
            self._fail(f"API {head.key} in version {head.version}, which is not served")

    def _answer(self, request: Request, values: Values | None) -> None:
        self._busy, self._give_up = False, None
        if not self._open:
            return
        if values is not None:
            try:
                answer = encode_response(request.api, request.version, request.correlation_id, values)
            except Exception as wrong:  # what others said may have no place in this version
                self._fail(f"{request.api.name} v{request.version}: no answer: {wrong}")
                return
            self._write(answer)
        if self._draining:
            self.close()
        elif not self._again:
            self._loop.call_soon(self._go_on)

    def _write(self, data: bytes) -> None:
        if self._transport is None or not self._open:
            return
        if self._server.has_room(len(data)):
            self._transport.write(data)
        else:
            self._fail(f"no memory for an answer of {len(data):,} bytes")

    def _pace(self) -> None:
        """Read on, unless much is waiting already; close where nothing can come any more."""
        transport = self._transport
        if transport is None or not self._open:
            return
        waits = self._busy or self._full or self._more
        if self._ended:
            if not waits:
                self.close()
            return
        ahead = waits and len(self._buffer) > AHEAD_BYTES
        if ahead and not self._paused:
            transport.pause_reading()
        elif self._paused and not ahead:
            transport.resume_reading()
        self._paused = ahead

    def _fail(self, problem: str) -> None:
        """What the client sends is no request: nothing after it can be understood."""
        if self._open:
            self._problem = problem
            self.close()

    def _end(self) -> None:
        """Nothing is handled or answered any more."""
        self._open = False
        self._buffer.clear()
        if self._idle is not None:
            self._idle.cancel()
        if self._give_up is not None:
            self._give_up()
            self._give_up = None

    # --- clients that say nothing

    def _watch_idle(self) -> None:
        wait = self._heard + self._server.idle_seconds - self._loop.time()
        if wait > 0:
            self._idle = self._loop.call_later(wait, self._watch_idle)
        elif self._busy:
            self._idle = self._loop.call_later(self._server.idle_seconds, self._watch_idle)
        else:
            self.close()
