"""Calls into the application's code, so that one that raises stops nothing (PITFALLS C-50, C-52)."""

from collections.abc import Callable, Iterable
from typing import Any

from coordinator_core.client.outcome import Effects, Listener
from coordinator_core.model import TopicPartition


class Callbacks:
    """Calls the listener, if there is one; the first exception of a step is kept for the application."""

    def __init__(self, listener: Listener | None, effects: Effects) -> None:
        self._listener, self._effects = listener, effects

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions are given up in good order."""
        if self._listener is not None:
            self.call(self._listener.on_partitions_revoked, tuple(partitions))

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions are new, or a round has ended with nothing new."""
        if self._listener is not None:
            self.call(self._listener.on_partitions_assigned, tuple(partitions))

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions belong to somebody else already."""
        if self._listener is not None:
            self.call(self._listener.on_partitions_lost, tuple(partitions))

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call what somebody else wrote; what it raises goes to the application, once all is done."""
        try:
            function(*arguments)
        except Exception as error:
            self._effects.fail(error)
