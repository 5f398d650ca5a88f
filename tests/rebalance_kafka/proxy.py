"""A proxy between clients and a broker, with the faults of networks."""

import asyncio
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from struct import pack
from types import TracebackType
from typing import Self

UP, DOWN = "up", "down"
"""The ways of bytes: from a client to the broker, and back."""

LONGEST_DELAY = 0.3
"""Seconds."""

MOST_STRUCK = 4
"""Connections that have a fault at the same moment."""


FAULT_SECONDS = 2.0
BETWEEN_SECONDS = (0.05, 0.25)
"""The least and the most time between two faults."""


class Fault(StrEnum):
    """What the network does to a connection, until it ends."""

    DELAY = "delay"
    """Bytes arrive later, on both ways."""
    REORDER = "reorder"
    """What the client has sent arrives after what it sends later on other connections."""
    HALF_OPEN = "half-open"
    """Nothing arrives any more, and nobody notices: not even that the other side ends the connection."""
    UP_ONLY = "up only"
    """The requests arrive, and no response."""
    DOWN_ONLY = "down only"
    """No request arrives, and the responses to earlier ones do."""
    RESET = "reset"
    """The connection ends at once, for both sides."""
    REFUSE = "refuse"
    """The connection ends at once, and no new one is possible until the next fault."""


_SILENT = {Fault.HALF_OPEN: (UP, DOWN), Fault.UP_ONLY: (DOWN,), Fault.DOWN_ONLY: (UP,)}
"""Fault -> the ways on which bytes vanish."""


@dataclass(eq=False)
class _Line:
    """A client's connection, and that to the broker."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    delays: dict[str, float] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def reset(self) -> None:
        for task in self.tasks:
            task.cancel()
        for end in (self.client, self.broker):
            reset(end)


class Proxy:
    """Carries bytes between its clients and the broker at ``broker``, which may be set later.

    What a client has sent is lost if the client closes the connection before it has arrived, as with a reset.
    """

    def __init__(self) -> None:
        self.broker, self.address, self.came = "", "", 0
        self._lines: dict[_Line, None] = {}
        self._refuses = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._come, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for line in list(self._lines):
            line.reset()
            await asyncio.gather(*line.tasks, return_exceptions=True)

    def silence(self) -> None:
        """Let nothing pass on the present connections any more."""
        for line in self._lines:
            line.silent |= {UP, DOWN}

    def strike(self, fault: Fault, random: Random) -> None:
        """Let a fault happen to some of the present connections, drawn at random."""
        self._refuses = fault is Fault.REFUSE
        lines = [line for line in self._lines if not line.silent]
        for line in random.sample(lines, min(len(lines), random.randint(1, MOST_STRUCK))):
            if fault in (Fault.RESET, Fault.REFUSE):
                self._end(line)
            elif fault in _SILENT:
                line.silent |= set(_SILENT[fault])
            else:
                ways = (UP, DOWN) if fault is Fault.DELAY else (UP,)
                line.delays = {way: random.uniform(0, LONGEST_DELAY) for way in ways}

    def heal(self) -> None:
        """End all faults. Connections on which bytes were lost are reset: they cannot go on."""
        self._refuses = False
        for line in list(self._lines):
            line.delays = {}
            if line.silent:
                self._end(line)

    def _end(self, line: _Line) -> None:
        line.reset()
        self._lines.pop(line, None)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        if self._refuses:
            reset(writer)
            return
        host, port = self.broker.split(":")
        try:
            answers, requests = await asyncio.open_connection(host, int(port))
        except OSError:
            reset(writer)
            return
        line = _Line(writer, requests)
        self._lines[line] = None
        line.tasks += [
            asyncio.create_task(self._carry(line, UP, reader, requests)),
            asyncio.create_task(self._carry(line, DOWN, answers, writer)),
        ]

    async def _carry(
        self, line: _Line, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry the bytes of one way. A side that ends the connection ends it for the other one, too."""
        on_their_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def arrive() -> None:
            while True:
                at, data = await on_their_way.get()
                await asyncio.sleep(max(0.0, at - loop.time()))
                if way not in line.silent:
                    writer.write(data)

        arriving = asyncio.create_task(arrive())
        try:
            with suppress(ConnectionError):
                while data := await reader.read(65_536):
                    on_their_way.put_nowait((loop.time() + line.delays.get(way, 0.0), data))
            if not line.silent:
                writer.close()
                self._lines.pop(line, None)
        finally:
            arriving.cancel()


async def strike(proxy: Proxy, random: Random) -> Counter[str]:
    """Let faults happen, and end them all."""
    loop, faults = asyncio.get_running_loop(), Counter[str]()
    until = loop.time() + FAULT_SECONDS
    while loop.time() < until:
        fault = random.choice([*Fault])
        faults[fault] += 1
        proxy.strike(fault, random)
        await asyncio.sleep(random.uniform(*BETWEEN_SECONDS))
    proxy.heal()
    return faults


def reset(end: asyncio.StreamWriter) -> None:
    """End a connection without what is on its way."""
    own = end.get_extra_info("socket")
    if own is not None:
        with suppress(OSError):
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
    end.transport.abort()
