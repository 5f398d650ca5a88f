"""The network between consumers and brokers: latency, loss, duplication and cuts, from one seed.

A connection delivers in order in each direction, as TCP does. Latency only moves messages apart. A lost
message stays lost until a timeout: no lower layer sends it again.
"""

from random import Random

from coordinator_core.documents.scenario import Network as Conditions
from coordinator_core.simulation.clock import Action, VirtualClock


class Network:
    """The connections between consumers and brokers, and their faults."""

    __slots__ = ("_clock", "_conditions", "_random", "_span", "cut_off")

    def __init__(self, clock: VirtualClock, conditions: Conditions, random: Random) -> None:
        self._clock, self._conditions, self._random = clock, conditions, random
        self._span = conditions.latency_ms_max - conditions.latency_ms_min + 1
        self.cut_off: set[str] = set()
        """The names of consumers that are cut from all brokers."""

    def delay_ms(self) -> int:
        """Return the latency of the next message."""
        if self._span == 1:
            return self._conditions.latency_ms_min
        return self._conditions.latency_ms_min + int(self._random.random() * self._span)

    def calm(self) -> None:
        """End loss and duplicates."""
        low, high = self._conditions.latency_ms_min, self._conditions.latency_ms_max
        self._conditions = Conditions(low, high)

    def connect(self, client: str) -> "Connection":
        """Return a new connection of a consumer to a broker."""
        return Connection(self, client)

    def carry(self, way: "Way", arrived: Action) -> None:
        """Deliver a message once, twice or never."""
        conditions = self._conditions
        if conditions.loss and self._random.random() < conditions.loss:
            return
        twice = conditions.duplicate > 0 and self._random.random() < conditions.duplicate
        for _ in range(1 + twice):
            way.last_ms = max(way.last_ms, self._clock.now_ms + self.delay_ms())
            self._clock.at(way.last_ms, arrived)


class Way:
    """One direction of a connection. Messages arrive in the order in which they were sent."""

    __slots__ = ("last_ms",)

    def __init__(self) -> None:
        self.last_ms = 0


class Connection:
    """A connection of one consumer to one broker. When it is closed, its messages under way are lost."""

    __slots__ = ("_back", "_client", "_network", "_there", "is_open")

    def __init__(self, network: Network, client: str) -> None:
        self._network, self._client = network, client
        self._there, self._back = Way(), Way()
        self.is_open = True

    def to_broker(self, arrived: Action) -> None:
        """Send a message to the broker."""
        self._carry(self._there, arrived)

    def to_client(self, arrived: Action) -> None:
        """Send a message to the consumer."""
        self._carry(self._back, arrived)

    def close(self) -> None:
        """Close the connection."""
        self.is_open = False

    def _carry(self, way: Way, arrived: Action) -> None:
        if self.is_open and self._client not in self._network.cut_off:
            self._network.carry(way, lambda: self._deliver(arrived))

    def _deliver(self, arrived: Action) -> None:
        if self.is_open and self._client not in self._network.cut_off:
            arrived()
