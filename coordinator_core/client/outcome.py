"""What one step of the client gives back, and what it needs from its application."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import Event
from coordinator_core.protocol.messages import Request


class Send(msgspec.Struct, frozen=True):
    """A request to put on the wire; hand its answer to `Client.receive` under the same id."""

    request_id: int
    node: int
    request: Request


class ConsumedRecord(msgspec.Struct, frozen=True):
    """A record that `poll` hands to the application."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ClientOutcome(msgspec.Struct, frozen=True):
    """Everything one step wants done. ``error`` is for the application: raise it there.

    ``disconnects``: brokers that did not answer in time; a connection to one is of no use any more.
    """

    sends: tuple[Send, ...] = ()
    events: tuple[Event, ...] = ()
    records: tuple[ConsumedRecord, ...] = ()
    error: Exception | None = None
    disconnects: tuple[int, ...] = ()


NOTHING = ClientOutcome()


class PositionSource(Protocol):
    """Who works on the partitions, where the client does not fetch records itself."""

    def position(self, partition: TopicPartition, *, now_ms: int) -> int | None:
        """The offset to commit: all records below it are handled. None: not worked on."""
        ...

    def started(self, positions: Mapping[TopicPartition, int], *, now_ms: int) -> None:
        """Work on these partitions can begin, from these offsets on."""
        ...

    def stopped(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Work on these partitions must stop now: they are about to be given up."""
        ...


class Listener(Protocol):
    """What an application wants to hear of rebalances (Kafka's ConsumerRebalanceListener)."""

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        """They are given up in good order; offsets can still be committed."""
        ...

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        """They are new; called after every round, also with nothing new."""
        ...

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        """They belong to somebody else already; nothing can be committed."""
        ...


class Effects:
    """Gathers an outcome while a step runs."""

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
        """Keep the first error of a step (PITFALLS C-52)."""
        if self.error is None:
            self.error = error

    def drain(self) -> ClientOutcome:
        """What has been gathered; begins anew."""
        if not (self.sends or self.events or self.records or self.error or self.disconnects):
            return NOTHING
        outcome = ClientOutcome(
            tuple(self.sends),
            tuple(self.events),
            tuple(self.records),
            self.error,
            tuple(self.disconnects),
        )
        self._reset()
        return outcome
