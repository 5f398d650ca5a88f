"""The servers of families whose members need no group coordinator, on the simulated network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.servers import Servers, Site
from coordinator_core.families.family import Family
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import Request, Response
from rebalance_lab.simulation.world.clock import Alarm, VirtualClock


def make_servers(family: Family, group: str, protocol: str, topics: Mapping[str, int], count: int) -> Servers:
    """Return the servers of a family that has them, in a cluster of ``count`` brokers."""
    assert family.spec.servers is not None
    servers: Servers = family.spec.servers(
        Site(family.settings(), group, protocol, dict(topics), range(count))
    )
    return servers


class ServerNodes:
    """Passes requests to the servers, and carries out their outcomes. ``rank``: that on the clock."""

    def __init__(
        self, servers: Servers, clock: VirtualClock, emit: Callable[[ev.Event], None], rank: int
    ) -> None:
        self._servers, self._clock, self._emit = servers, clock, emit
        self._alarm = Alarm(clock, self._on_deadline, rank)
        self._requests = 0
        self._parked: dict[int, Callable[[Response], None]] = {}

    @property
    def requests(self) -> frozenset[type[Any]]:
        """The types of requests that the servers answer."""
        return self._servers.requests

    @property
    def nodes(self) -> range:
        """The numbers of the servers."""
        return self._servers.nodes

    def arrived(self, request: Request, node: int, client: str, reply: Callable[[Response], None]) -> None:
        """Receive a request. The servers reply at once, later or never."""
        self._requests += 1
        self._parked[self._requests] = reply
        now_ms = self._clock.now_ms
        self._carry_out(
            self._servers.receive(self._requests, request, node=node, client=client, now_ms=now_ms)
        )

    def closed(self, node: int, client: str) -> None:
        """Learn that a consumer has closed its connections to a node."""
        self._carry_out(self._servers.closed(node, client, now_ms=self._clock.now_ms))

    def brokers_changed(self, alive: Sequence[int]) -> None:
        """Learn which brokers are alive."""
        self._carry_out(self._servers.brokers_changed(alive, now_ms=self._clock.now_ms))

    def topics_changed(self, topics: Mapping[str, int]) -> None:
        """Learn the topics with their partitions."""
        self._carry_out(self._servers.topics_changed(dict(topics), now_ms=self._clock.now_ms))

    def lag_view(self, client: str, by_ms: int) -> None:
        """Answer a consumer from now on with what was true ``by_ms`` before."""
        self._servers.lag_view(client, by_ms)
        self._alarm.set(self._servers.next_deadline_ms())

    def next_deadline_of_others_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the next deadline that no member moves in time, or None."""
        return self._servers.next_deadline_of_others_ms(alive_ms)

    def answer(self, request: Request, node: int, client: str) -> Response | None:
        """Return the response that a periodic request has as long as nothing happens, or None."""
        return self._servers.answer(request, node=node, client=client, now_ms=self._clock.now_ms)

    def keep_alive(self, request: Request, node: int, client: str, at_ms: int) -> None:
        """Take note of a periodic request that is left out."""
        self._servers.receive(0, request, node=node, client=client, now_ms=at_ms)

    def _on_deadline(self) -> None:
        self._carry_out(self._servers.on_deadline(now_ms=self._clock.now_ms))

    def _carry_out(self, outcome: Outcome) -> None:
        for event in outcome.events:
            self._emit(event)
        for response in outcome.replies:
            reply = self._parked.pop(response.request_id, None)
            if reply is not None:
                reply(response.response)
        for request_id in outcome.superseded:
            self._parked.pop(request_id, None)
        self._alarm.set(self._servers.next_deadline_ms())
