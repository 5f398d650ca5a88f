"""The network between consumers and brokers: latency, loss, duplication and cuts, from one seed.

A connection delivers in order in each direction, as TCP does. Latency only moves messages apart. A lost
message stays lost until a timeout: no lower layer sends it again.

The fate of a message (latency, loss, duplication) is a function of the seed, the connection, the direction,
the kind of the message and its number among those of its kind. Thus it does not depend on other messages.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator_core.protocol.messages import Response
from rebalance_lab.scenarios.scenario import Network as Conditions
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.dice import Dice, Spread
from rebalance_lab.simulation.world.troubles import Troubles

Reply: TypeAlias = Callable[[Response], None]
Receive: TypeAlias = Callable[[Reply], None]

CLOSED = "closed"
"""The kind of the message that closes a connection."""

LATENCIES = 4
"""A message is under way for less than this many times the largest latency."""

FEW = 4
"""So many latencies of a kind are drawn one by one: most kinds of a connection have no more messages."""

_LOSS, _TWICE, _LATENCY, _LATENCY_OF_COPY = range(4)
_NUMBERS = 4
"""The random numbers of each message."""


class Network:
    """The connections between consumers and brokers, and their faults. ``seed`` names its random numbers."""

    __slots__ = ("_conditions", "clock", "cut_off", "has_faults", "has_lost", "margin_ms", "seed", "troubles")

    def __init__(self, clock: VirtualClock, conditions: Conditions, seed: str) -> None:
        self.clock, self.seed = clock, seed
        self._conditions = conditions
        self.has_faults = bool(conditions.loss or conditions.duplicate)
        """Whether messages are lost or delivered twice."""
        self.has_lost = bool(conditions.loss)
        """Whether a message may have been lost so far, though its sender is not cut off."""
        self.margin_ms = LATENCIES * conditions.latency_ms_max
        """The time in which every message under way has arrived."""
        self.cut_off: set[str] = set()
        """The names of consumers that are cut from all brokers."""
        self.troubles: Troubles | None = None
        """Faults of parts of the network, None as long as there has been none."""

    def calm(self) -> None:
        """End loss, duplicates and troubles."""
        low, high = self._conditions.latency_ms_min, self._conditions.latency_ms_max
        self._conditions, self.has_faults = Conditions(low, high), False
        if self.troubles is not None:
            self.troubles.end(self.clock.now_ms)

    def trouble(self) -> Troubles:
        """Return the faults of parts of the network, to add another one."""
        self.has_lost = True
        if self.troubles is None:
            self.troubles = Troubles()
        return self.troubles

    def connect(self, client: str, name: str = "", *, node: int = 0, rank: int = 0) -> "Connection":
        """Return a new connection of a consumer to a broker.

        ``name``: the name of the connection, from which its random numbers follow; ``client`` by default.
        ``node``: the number of the broker.
        ``rank``: the rank on the clock of arrivals at the broker; arrivals at the consumer have the next one.
        """
        return Connection(self, client, name or client, node, rank)

    def latencies(self, dice: Dice, which: int = _LATENCY) -> Spread:
        """Return the latencies of messages by their number."""
        conditions = self._conditions
        return Spread(
            conditions.latency_ms_min, conditions.latency_ms_max + 1, dice, start=which, step=_NUMBERS
        )

    def delays(self, latency_ms: int, dice: Dice, number: int) -> tuple[int, ...]:
        """Return the latencies with which a message is delivered: none or two if it is lost or doubled."""
        conditions = self._conditions
        if conditions.loss and dice.at(number * _NUMBERS + _LOSS) < conditions.loss:
            return ()
        if conditions.duplicate and dice.at(number * _NUMBERS + _TWICE) < conditions.duplicate:
            return latency_ms, self.latencies(dice, _LATENCY_OF_COPY).at(number)
        return (latency_ms,)

    def faulty(self, dice: Dice, first: int, end: int) -> NDArray[np.bool_]:
        """Return for the messages from ``first`` to before ``end`` whether they are not delivered once."""
        numbers = dice.between(first * _NUMBERS, end * _NUMBERS).reshape(-1, _NUMBERS)
        lost: NDArray[np.bool_] = numbers[:, _LOSS] < self._conditions.loss
        return lost | (numbers[:, _TWICE] < self._conditions.duplicate)


class Way:
    """One direction, maybe of a ``connection``. Messages arrive in the order in which they were sent.

    ``there``: the direction to the broker. ``late_ms``: by how much all messages are late, besides latency.
    """

    __slots__ = (
        "_clock",
        "_connection",
        "_latencies",
        "_name",
        "_network",
        "_rank",
        "_there",
        "last_ms",
        "late_ms",
        "sent",
    )

    def __init__(
        self,
        network: Network,
        name: str,
        rank: int,
        connection: "Connection | None" = None,
        *,
        there: bool = True,
    ) -> None:
        self._network, self._name, self._rank = network, name, rank
        self._clock, self._connection, self._there = network.clock, connection, there
        self._latencies: dict[str, Spread] = {}
        self.last_ms = self.late_ms = 0
        self.sent: dict[str, int] = {}
        """The number of messages that were sent, by kind."""

    def beside(self) -> "Way":
        """Return a way to the same place, whose messages do not wait for those of this one."""
        return Way(self._network, self._name, self._rank)

    def dice(self, kind: str) -> Dice:
        """Return the random numbers of the messages of a kind."""
        return Dice(f"{self._network.seed}:{self._name}:{kind}")

    def latency_ms(self, kind: str, number: int) -> int:
        """Return the latency of a message of a kind."""
        latencies = self._latencies.get(kind)
        if latencies is None:
            latencies = self._network.latencies(self.dice(kind))
            if number >= FEW:
                self._latencies[kind] = latencies
        return latencies.at(number)

    def send(
        self,
        arrived: Callable[..., None],
        arguments: tuple[Any, ...] = (),
        kind: str = "",
        is_cause: bool = True,
        *,
        is_safe: bool = False,
    ) -> None:
        """Deliver a message of a kind once, twice or never; a safe one once, though the connection is closed.

        To deliver is to call ``arrived`` with the arguments.
        """
        network, clock, connection = self._network, self._clock, self._connection
        if connection is not None and not (connection.is_open and connection.client not in network.cut_off):
            return
        number = self.sent.get(kind, 0)
        self.sent[kind] = number + 1
        latency_ms = self.late_ms + self.latency_ms(kind, number)
        if network.troubles is not None and connection is not None and not is_safe:
            client, node, now_ms = connection.client, connection.node, clock.now_ms
            if network.troubles.lose(client, node, there=self._there, now_ms=now_ms):
                return
            latency_ms += network.troubles.late_ms(client, node, now_ms)
        delays: tuple[int, ...] = (latency_ms,)
        if network.has_faults and not is_safe:
            delays = network.delays(latency_ms, self.dice(kind), number)
        if connection is not None and not is_safe:
            connection.under_way += len(delays)
            arrived, arguments = connection.deliver, (arrived, arguments)
        for delay_ms in delays:
            at_ms = clock.now_ms + delay_ms
            if at_ms > self.last_ms:
                self.last_ms = at_ms
            clock.put(self.last_ms, arrived, arguments, self._rank, is_cause)

    def leave_out(self, kind: str, count: int = 1) -> int:
        """Count messages that are not sent, and return the latency of the last one."""
        self.count(kind, count)
        return self.last_latency_ms(kind)

    def count(self, kind: str, count: int) -> None:
        """Count messages that are not sent."""
        self.sent[kind] = self.sent.get(kind, 0) + count

    def last_latency_ms(self, kind: str) -> int:
        """Return the latency of the last message of a kind."""
        return self.latency_ms(kind, self.sent[kind] - 1)


class Connection:
    """A connection of one consumer to one broker. When it is closed, its messages under way are lost."""

    __slots__ = (
        "_clock",
        "_cut_off",
        "_is_taken",
        "_rank",
        "_waiting",
        "back",
        "client",
        "is_open",
        "node",
        "there",
        "to_broker",
        "to_client",
        "under_way",
    )

    def __init__(self, network: Network, client: str, name: str, node: int, rank: int) -> None:
        self.client, self.node = client, node
        self.there = Way(network, f"{name}:there", rank, self)
        self.back = Way(network, f"{name}:back", rank + 1, self, there=False)
        self.to_broker, self.to_client = self.there.send, self.back.send
        self._cut_off, self._clock, self._rank = network.cut_off, network.clock, rank
        self._is_taken = False
        self._waiting: deque[tuple[Receive, Reply]] = deque()
        self.is_open = True
        self.under_way = 0
        """The number of messages that are sent and not delivered."""

    def close(self, learned: Callable[..., None] | None = None, *arguments: Any) -> None:
        """Close the connection. The broker learns it after its last message, unless the client is cut off.

        Then it calls ``learned`` with the arguments.
        """
        if learned is not None:
            self.there.send(learned, arguments, CLOSED, is_safe=True)
        self.is_open = False

    def take_in_turn(self, receive: Receive, reply: Reply) -> None:
        """Let the broker receive a request when the ones before it are answered (PROTOCOL 11.10).

        ``receive`` is called with ``reply``, or with a function that also ends the turn. The requests that
        wait when the connection is closed are lost.
        """
        if self._is_taken:
            self._waiting.append((receive, reply))
        else:
            self._is_taken = True
            receive(partial(self._answer, reply))

    def _answer(self, reply: Reply, response: Response) -> None:
        reply(response)
        if self._waiting:
            self._clock.put(self._clock.now_ms, self._take_next, (), self._rank, True)
        else:
            self._is_taken = False

    def _take_next(self) -> None:
        if self.is_open:
            receive, reply = self._waiting.popleft()
            receive(partial(self._answer, reply))

    def deliver(self, arrived: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Receive a message at its time, unless the connection is closed or the client is cut off by then."""
        self.under_way -= 1
        if self.is_open and self.client not in self._cut_off:
            arrived(*arguments)
