"""What the processes of a simulated group share: the clock, the network, the brokers, the load."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Protocol

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import Request, Response
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.skipping.quiet import Quiet
from rebalance_lab.simulation.skipping.rest import Peers as RestingPeers
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.simulation.world.network import Network


class Peers(RestingPeers, Protocol):
    """The brokers, as a process sees them."""

    @property
    def places(self) -> int:
        """The number of nodes: brokers, and servers that are no brokers."""
        ...

    @property
    def has_servers(self) -> bool:
        """Whether there are servers, which learn that connections are closed."""
        ...

    @property
    def down(self) -> Container[int]:
        """The numbers of the nodes that accept no connections."""
        ...

    def closed(self, node: int, client: str) -> None:
        """Learn that a consumer has closed its connections to a node."""
        ...

    def arrived(self, request: Request, node: int, client: str, reply: Callable[[Response], None]) -> None:
        """Receive a request. The broker replies at once, later or never."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """The objects that all processes share."""

    clock: VirtualClock
    network: Network
    brokers: Peers
    load: Load
    emit: Callable[[ev.Event], None]
    ownership_changed: Callable[[], None]
    messages: dict[str, int]
    left_out: dict[str, int]
    quiet: Quiet | None = None
    exchanged: Callable[[Exchange], None] | None = None
