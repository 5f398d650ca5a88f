"""The connections of a process to the brokers, and when its library reads what arrives on them."""

from collections.abc import Callable
from typing import Any

from coordinator_core.protocol.messages import FindCoordinatorResponse, HeartbeatResponse, Response
from rebalance_lab.simulation.world.brokers import Brokers
from rebalance_lab.simulation.world.network import Connection, Network

RESET = "reset"
"""The kind of the message that resets a connection."""


def ranks(nodes: int) -> int:
    """Return the number of ranks of a process on the clock: two connections to each node, two alarms."""
    return 4 * nodes + 2


class Connections:
    """The connections of one process: to each broker one for requests of the group, and one for others.

    ``client`` is the name of the member, ``name`` one that no other process has, ``rank`` the first of the
    `ranks` of the process. ``open`` has the connections by broker and whether they are of the group.
    """

    def __init__(self, network: Network, brokers: Brokers, client: str, name: str, rank: int) -> None:
        self._network, self._brokers, self._client = network, brokers, client
        self._name, self._rank = name, rank
        self.open: dict[tuple[int, bool], Connection] = {}
        self._opened: dict[tuple[int, bool], int] = {}

    def to(self, node: int, of_group: bool) -> Connection:
        """Return the connection to a broker; a new one if there is none."""
        place = node, of_group
        if place not in self.open:
            self.open[place] = self.expected(node, of_group)
            self._opened[place] = self._opened.get(place, 0) + 1
        return self.open[place]

    def expected(self, node: int, of_group: bool) -> Connection:
        """Return the connection to a broker; if there is none, the one that would be opened."""
        place = node, of_group
        return self.open.get(place) or self._network.connect(
            self._client,
            f"{self._name}:{node}:{of_group}:{self._opened.get(place, 0) + 1}",
            node=node,
            rank=self._rank + 4 * node + 2 * of_group,
        )

    def reset(self, node: int, learned: Callable[..., None], *arguments: Any) -> None:
        """Let a broker reset its connections. The process learns of each with a call of ``learned``."""
        for of_group in (True, False):
            connection = self.open.get((node, of_group))
            if connection is not None:
                connection.to_client(learned, (*arguments, connection), RESET)

    def forget(self, node: int) -> None:
        """Close the connections to a broker. The broker does not learn it."""
        for of_group in (True, False):
            connection = self.open.pop((node, of_group), None)
            if connection is not None:
                connection.close()

    def close(self) -> None:
        """Close all connections. Servers learn it."""
        brokers = self._brokers
        for (node, of_group), connection in self.open.items():
            learned = brokers.closed if of_group and brokers.has_servers else None
            connection.close(learned, node, self._client)


def is_read_between_waits(response: Response) -> bool:
    """Return whether Kafka's thread of heartbeats reads a response between its waits, and acts on it."""
    return isinstance(response, FindCoordinatorResponse) or (
        isinstance(response, HeartbeatResponse) and bool(response.error)
    )


def next_read_ms(sent_ms: int, now_ms: int, wait_ms: int) -> int:
    """Return the end of the wait in which a response arrived. The first one begins with the request."""
    return sent_ms + max(1, -(-(now_ms - sent_ms) // wait_ms)) * wait_ms
