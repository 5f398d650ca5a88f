"""Nodes on the simulated clock: brokers, and the servers of families whose members need no coordinator."""

from collections.abc import Callable, Mapping

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.servers import Servers, Site
from coordinator_core.families.family import Family
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import Request
from rebalance_lab.simulation.world.clock import Alarm, VirtualClock
from rebalance_lab.simulation.world.network import Reply


def make_servers(family: Family, group: str, protocol: str, topics: Mapping[str, int], count: int) -> Servers:
    """Return the servers of a family that has them, in a cluster of ``count`` brokers."""
    assert family.spec.servers is not None
    servers: Servers = family.spec.servers(
        Site(family.settings(), group, protocol, dict(topics), range(count))
    )
    return servers


class Node:
    """A coordinator or servers on the clock: their requests without a response, and their deadline.

    ``ring`` is called at the deadline. ``rank`` is that on the clock.
    """

    def __init__(
        self, clock: VirtualClock, emit: Callable[[ev.Event], None], ring: Callable[[], None], rank: int
    ) -> None:
        self._emit, self._alarm = emit, Alarm(clock, ring, rank)
        self._requests = 0
        self.look_ms: int | None = None
        self.parked: dict[int, tuple[Reply, str]] = {}
        """The requests without a response, each with its client."""

    def park(self, reply: Reply, client: str) -> int:
        """Keep a request until it is answered, and return its number."""
        self._requests += 1
        self.parked[self._requests] = reply, client
        return self._requests

    def report(self, outcome: Outcome) -> None:
        """Emit the events of an outcome."""
        for event in outcome.events:
            self._emit(event)

    def answer(self, outcome: Outcome) -> None:
        """Send the responses of an outcome."""
        for response in outcome.replies:
            if response.request_id in self.parked:
                reply, _ = self.parked.pop(response.request_id)
                reply(response.response)
        for request_id in outcome.superseded:
            self.parked.pop(request_id, None)

    def look_at(self, at_ms: int | None) -> None:
        """Set the time of the deadline."""
        if at_ms != self.look_ms:
            self.look_ms = at_ms
            self._alarm.set(at_ms)


class ServerNodes(Node):
    """The servers of a run. ``rank``: that on the clock."""

    def __init__(
        self, servers: Servers, clock: VirtualClock, emit: Callable[[ev.Event], None], rank: int
    ) -> None:
        super().__init__(clock, emit, self._on_deadline, rank)
        self.machine, self._clock = servers, clock

    def arrived(self, request: Request, node: int, client: str, reply: Reply) -> None:
        """Receive a request. The servers reply at once, later or never."""
        request_id, now_ms = self.park(reply, client), self._clock.now_ms
        self.carry_out(self.machine.receive(request_id, request, node=node, client=client, now_ms=now_ms))

    def carry_out(self, outcome: Outcome) -> None:
        """Carry out the outcome of a call of the servers."""
        self.report(outcome)
        self.answer(outcome)
        self.look_at(self.machine.next_deadline_ms())

    def lag_view(self, client: str, by_ms: int) -> None:
        """Answer a consumer from now on with what was true ``by_ms`` before."""
        self.machine.lag_view(client, by_ms)
        self.look_at(self.machine.next_deadline_ms())

    def _on_deadline(self) -> None:
        self.carry_out(self.machine.on_deadline(now_ms=self._clock.now_ms))
