"""What the processes of a simulated group share: the clock, the network, the brokers, the load."""

from collections.abc import Callable
from dataclasses import dataclass

from coordinator_core.protocol import events as ev
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.skipping.quiet import Quiet
from rebalance_lab.simulation.world.brokers import Brokers
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.simulation.world.network import Network


@dataclass(frozen=True, slots=True)
class World:
    """The objects that all processes share.

    ``messages`` has the number of requests of all processes by kind, ``left_out`` that of those that were not
    sent.
    """

    clock: VirtualClock
    network: Network
    brokers: Brokers
    load: Load
    emit: Callable[[ev.Event], None]
    ownership_changed: Callable[[], None]
    messages: dict[str, int]
    left_out: dict[str, int]
    quiet: Quiet | None = None
    exchanged: Callable[[Exchange], None] | None = None
