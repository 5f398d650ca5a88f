"""The outcome of a call to the client, and the interfaces that the application implements."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import Event
from coordinator_core.protocol.messages import Request


class Send(msgspec.Struct, frozen=True):
    """A request to send. Pass its response to `Client.receive` with the same id."""

    request_id: int
    node: int
    request: Request


class ConsumedRecord(msgspec.Struct, frozen=True):
    """A record that `poll` returns."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ClientOutcome(msgspec.Struct, frozen=True):
    """The work that one call to the client requests.

    ``error``: an error to raise in the application.
    ``disconnects``: brokers that did not respond in time; close their connections.
    """

    sends: tuple[Send, ...] = ()
    events: tuple[Event, ...] = ()
    records: tuple[ConsumedRecord, ...] = ()
    error: Exception | None = None
    disconnects: tuple[int, ...] = ()


NOTHING = ClientOutcome()


class PositionSource(Protocol):
    """A consumer of partitions outside the client, which then fetches no records itself."""

    def positions(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> dict[TopicPartition, int]:
        """Return the offsets to commit, of those partitions that the source consumes."""
        ...

    def started(self, positions: Mapping[TopicPartition, int], *, now_ms: int) -> None:
        """Start to consume partitions from these offsets."""
        ...

    def stopped(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Stop consuming partitions that are about to be given up."""
        ...


class Listener(Protocol):
    """Callbacks for rebalances, as in Kafka's ConsumerRebalanceListener."""

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Partitions are about to be given up. Their offsets can still be committed."""
        ...

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Partitions were added. Called after every round, even if none was added."""
        ...

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Partitions belong to other consumers already. Their offsets cannot be committed."""
        ...


class Effects:
    """The outcome of a call while the call runs."""

    __slots__ = ("disconnects", "error", "events", "records", "sends")

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.sends: list[Send] = []
        self.events: list[Event] = []
        self.records: list[ConsumedRecord] = []
        self.error: Exception | None = None
        self.disconnects: list[int] = []

    def fail(self, error: Exception) -> None:
        """Keep the first error of a call (PITFALLS C-52)."""
        if self.error is None:
            self.error = error

    def drain(self) -> ClientOutcome:
        """Return the outcome and clear it."""
        sends, events = self.sends, self.events
        if self.records or self.error is not None or self.disconnects:
            records, disconnects = tuple(self.records), tuple(self.disconnects)
            outcome = ClientOutcome(tuple(sends), tuple(events), records, self.error, disconnects)
            self._reset()
        elif sends or events:
            outcome = ClientOutcome(tuple(sends), tuple(events))
            sends.clear()
            events.clear()
        else:
            outcome = NOTHING
        return outcome
