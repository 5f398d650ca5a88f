"""The verbs that scenario events use, with every message and without."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from rebalance_lab.scenarios.scenario import Member, Topic

Passage: TypeAlias = Literal["both", "requests", "responses"]
"""The messages between a consumer and brokers that a cut stops."""


class Stage:
    """A simulated group, as a scenario event sees it. Members are named by their id in the document.

    A verb that a simulation does not have does nothing: one without messages has no servers.
    """

    def changed(self, kind: str, target: str, cause: str = "") -> None:
        """Record a change from outside in the trace."""

    def start(self, member: Member) -> None:
        """Start a consumer process."""

    def leave(self, name: str) -> None:
        """Close a consumer process properly."""

    def crash(self, name: str) -> None:
        """End a consumer process without a LeaveGroup."""

    def restart(self, name: str) -> None:
        """Start a consumer process again. A running process is closed first."""

    def pause(self, name: str, for_ms: int, *, in_batch: bool = False) -> None:
        """Let the application of a consumer not poll for a while. Its heartbeats continue.

        It stands still, or handles one long batch (``in_batch``).
        """

    def freeze(self, name: str, for_ms: int) -> None:
        """Stop a consumer process for a while, with its heartbeats. Responses wait in its sockets."""

    def cut(self, name: str, for_ms: int) -> None:
        """Disconnect a consumer from all brokers for a while."""

    def block(self, name: str, for_ms: int, way: Passage, broker: int | None) -> None:
        """Lose a consumer's requests, its responses, or both, to one broker or to all, for a while."""

    def slow(self, node: str | int, by_ms: int, for_ms: int) -> None:
        """Let the messages of a consumer (its name) or a broker (its number) be late for a while."""

    def log_fault(self, by_ms: int, for_ms: int) -> None:
        """Let appends to the group's log be late by a time, or fail if it is 0, for a while."""

    def calm(self) -> None:
        """End all faults of the network and of the log, pauses and freezes."""

    def coordinator_failover(self, down_ms: int, *, after_append: bool = False) -> None:
        """Stop the group's coordinator. Another broker takes over after ``down_ms``.

        ``after_append``: it fails when its next records are in the log, before it answers.
        """

    def subscribe(self, name: str, topics: tuple[str, ...], pattern: str | None) -> None:
        """Change the subscription of a consumer."""

    def remove_member(self, name: str) -> None:
        """Remove the members of a consumer from the group, as an administrator. The process continues."""

    def tell_servers(self, told: Callable[[Any], None]) -> None:
        """Let something be told to the servers of a protocol that has any (`ProtocolSpec.servers`)."""

    def add_partitions(self, topic: str, count: int) -> None:
        """Raise the number of partitions of a topic to ``count``."""

    def create_topic(self, name: str, topic: Topic) -> None:
        """Create a topic that has never existed."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic, with its partitions and records."""

    def rolling_restart(
        self,
        every_ms: int,
        down_ms: int,
        *,
        kill: bool = False,
        batch: int = 1,
        surge: int = 0,
        assignors: tuple[str, ...] = (),
        protocol: str = "",
    ) -> None:
        """Stop and start every running consumer, ``batch`` of them every ``every_ms``.

        Each is away for ``down_ms``. ``kill``: the processes end without a LeaveGroup. With a ``surge``,
        consumers under new names take their place: of each batch, so many start ``down_ms`` before it is
        stopped. With ``assignors`` they come back with these, the preferred one first, with
        ``protocol`` as members of the classic or the consumer protocol.
        """
