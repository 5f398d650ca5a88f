"""The trace: everything that happened in a run, in order; JSON Lines when written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.protocol.events import RunEnded, RunStarted, TraceEvent
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL

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


def read_trace(path: Path) -> Trace:
    """Read a trace from a file.

    Raises:
        InputError: if the file cannot be read, or a line is not an event. It names the file and the line.
    """
    try:
        with path.open("rb") as file:
            return Trace(tuple(_decoded(file, str(path))))
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror})"
        raise InputError(str(path), found, "a trace in JSON Lines") from None


def _decoded(file: BinaryIO, where: str) -> Iterator[TraceEvent]:
    for line, data in enumerate(file, start=1):
        try:
            yield _DECODER.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{where}: line {line}", str(error), "an event of a trace") from None
