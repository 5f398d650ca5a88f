"""Faults of parts of the network: one direction, one broker, slow nodes.

They begin and end by scenario events. Nothing is left out of a run while there is one.
"""

from typing import NamedTuple

from rebalance_lab.scenarios.stage import Passage


class Blocked(NamedTuple):
    """Messages between a consumer and a broker, None for all brokers, that are lost."""

    client: str
    node: int | None
    way: Passage


class Troubles:
    """The faults that there are now, each with the time of its end.

    Of equal faults the one that ends last counts. A message is late by the sum of what its nodes are.
    """

    __slots__ = ("_blocked", "_late", "_settled_ms")

    def __init__(self) -> None:
        self._blocked: dict[Blocked, int] = {}
        self._late: dict[str | int, tuple[int, int]] = {}
        self._settled_ms = 0

    def block(self, blocked: Blocked, until_ms: int) -> None:
        """Lose messages before a time."""
        self._blocked[blocked] = max(until_ms, self._blocked.get(blocked, 0))

    def heals(self, blocked: Blocked, now_ms: int) -> bool:
        """Return whether messages pass again from now on that were lost before."""
        if self._blocked.get(blocked, now_ms + 1) > now_ms:
            return False
        del self._blocked[blocked]
        return True

    def slow(self, node: str | int, by_ms: int, until_ms: int) -> None:
        """Let messages from and to a consumer (its name) or a broker (its number) be late before a time."""
        self._late[node] = by_ms, until_ms
        self._settled_ms = max(self._settled_ms, until_ms + 2 * by_ms)

    def end(self, now_ms: int) -> None:
        """End all of them."""
        latest_ms = max((by_ms for by_ms, _ in self._late.values()), default=0)
        self._settled_ms = min(self._settled_ms, now_ms + 2 * latest_ms)
        self._blocked.clear()
        self._late.clear()

    def are_over(self, now_ms: int) -> bool:
        """Return whether there are none, and every message that was late has arrived."""
        return not self._blocked and now_ms >= self._settled_ms

    def lose(self, client: str, node: int, *, there: bool, now_ms: int) -> bool:
        """Return whether a message is lost. ``there``: it is a request."""
        way: Passage = "requests" if there else "responses"
        return any(
            self._blocked.get(Blocked(client, place, which), 0) > now_ms
            for place in (None, node)
            for which in ("both", way)
        )

    def late_ms(self, client: str, node: int, now_ms: int) -> int:
        """Return by how much a message is late."""
        found = (self._late.get(name, (0, 0)) for name in (client, node))
        return sum(by_ms for by_ms, until_ms in found if until_ms > now_ms)
