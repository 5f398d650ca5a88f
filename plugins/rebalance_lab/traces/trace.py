"""The trace: everything that happened in a run, in order; JSON Lines when written."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.protocol.events import Event, RunEnded, RunStarted, TraceEvent
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, ProtocolSpec
from coordinator_core.registry.registry import Registry, default_registry

_DECODER = msgspec.json.Decoder(TraceEvent)


@dataclass(frozen=True, slots=True)
class Trace:
    """Events with their times. The first is a RunStarted, the last a RunEnded; both are checked."""

    events: tuple[TraceEvent, ...]

    def __post_init__(self) -> None:
        if not self.events or not isinstance(self.events[0].event, RunStarted):
            raise InputError("trace", "no RunStarted at the beginning", "a whole trace")
        if not isinstance(self.events[-1].event, RunEnded):
            raise InputError("trace", "no RunEnded at the end", "a whole trace")

    @property
    def started(self) -> RunStarted:
        """The first event: scenario, strategy, seed, duration and topics."""
        first = self.events[0].event
        assert isinstance(first, RunStarted)
        return first

    @property
    def ended(self) -> RunEnded:
        """The last event: the state and generation of the group, and the requests by API."""
        last = self.events[-1].event
        assert isinstance(last, RunEnded)
        return last

    @property
    def scenario(self) -> str:
        """The name of the scenario."""
        return self.started.scenario

    @property
    def strategy(self) -> str:
        """The name of the strategy as written."""
        return self.started.strategy

    @property
    def protocol(self) -> str:
        """The name of the protocol family."""
        return self.started.protocol or DEFAULT_PROTOCOL

    def encode(self) -> bytes:
        """Write JSON Lines, one event a line. Equal traces have equal bytes."""
        return msgspec.json.Encoder().encode_lines(self.events)


def read_trace(path: Path, registry: Registry | None = None) -> Trace:
    """Read a trace from a file. ``registry`` has its protocol family, with the events that only it has.

    Raises:
        InputError: if the file cannot be read, or a line is not an event. It names the file and the line.
    """
    try:
        with path.open("rb") as file:
            return Trace(tuple(_decoded(file, str(path), registry)))
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror})"
        raise InputError(str(path), found, "a trace in JSON Lines") from None


def _decoded(file: BinaryIO, where: str, registry: Registry | None) -> Iterator[TraceEvent]:
    decoder: msgspec.json.Decoder[Any] = _DECODER
    for line, data in enumerate(file, start=1):
        try:
            decoded = decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{where}: line {line}", str(error), "an event of a trace") from None
        event = TraceEvent(decoded.at_ms, decoded.event)
        yield event
        if isinstance(event.event, RunStarted) and event.event.protocol:
            family = (registry or default_registry()).protocols().get(event.event.protocol)
            decoder = decoder if family is None else _decoder_of(family)


def _decoder_of(family: ProtocolSpec) -> "msgspec.json.Decoder[Any]":
    """Return the decoder of the lines of a family's traces."""
    kinds: Any = reduce(or_, family.events, Event)
    line = msgspec.defstruct("Line", [("at_ms", int), ("event", kinds)], frozen=True)
    return msgspec.json.Decoder(line)
