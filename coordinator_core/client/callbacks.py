"""Calls to the application's code, whose exceptions do not stop the client (PITFALLS C-50, C-52)."""

from collections.abc import Callable, Iterable
from typing import Any

from coordinator_core.client.outcome import Effects, Listener
from coordinator_core.model import TopicPartition


class Callbacks:
    """Calls the listener, if any. The first exception of a call to the client goes to the application."""

    def __init__(self, listener: Listener | None, effects: Effects) -> None:
        self._listener, self._effects = listener, effects

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Call the listener about revoked partitions."""
        if self._listener is not None:
            self.call(self._listener.on_partitions_revoked, tuple(partitions))

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Call the listener about added partitions, of which there may be none."""
        if self._listener is not None:
            self.call(self._listener.on_partitions_assigned, tuple(partitions))

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Call the listener about lost partitions."""
        if self._listener is not None:
            self.call(self._listener.on_partitions_lost, tuple(partitions))

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function of the application, and keep the exception that it raises."""
        try:
            function(*arguments)
        except Exception as error:
            self._effects.fail(error)
