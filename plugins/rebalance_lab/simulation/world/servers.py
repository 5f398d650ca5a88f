"""Nodes on the simulated clock: brokers, and the servers of families whose members need no coordinator."""

# ruff: noqa: ARG002 - by default servers learn nothing

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import Request, Response
from rebalance_lab.simulation.world.clock import Alarm, VirtualClock
from rebalance_lab.simulation.world.network import Reply


@dataclass(frozen=True, slots=True)
class Site:
    """What servers are made from.

    ``settings`` are the family's own, ``group`` is the name of the group and ``protocol`` that of its
    assignor. ``topics`` maps each topic to its partitions, ``brokers`` are the numbers of the brokers.
    ``emit`` adds an event to the trace.
    """

    settings: Any
    group: str
    protocol: str
    topics: Mapping[str, int]
    brokers: Sequence[int]
    emit: Callable[[ev.Event], None]


class Servers(ABC):
    """The servers of one run, which `ProtocolSpec.servers` makes. They have no clock: calls take the time.

    Each call returns its outcome: replies, also to requests that have waited for a change, and events, but no
    records. Servers report `MemberAdded` and `MemberRemoved`, and after each a `GenerationStarted` with a
    higher number.
    """

    requests: tuple[type[Request], ...]
    """The types of the requests that the servers answer. Brokers answer the others."""

    nodes: range = range(0)
    """The numbers of the servers, which follow those of the brokers; empty if they are the brokers."""

    @abstractmethod
    def receive(self, request_id: int, request: Request, *, node: int, client: str, now_ms: int) -> Outcome:
        """Receive a request of a consumer at a node."""

    @abstractmethod
    def answer(self, request: Request, *, node: int, client: str, now_ms: int) -> Response | None:
        """Return the response that a periodic request has until the next change or deadline, or None.

        The request is not received. None: the response changes before, or nothing is known of it.
        """

    @abstractmethod
    def on_deadline(self, *, now_ms: int) -> Outcome:
        """Do the work that is due."""

    @abstractmethod
    def next_deadline_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the time of the next call of `on_deadline`, or None.

        It is the next one that no member moves in time. Those of ``alive_ms`` move their deadlines by a
        periodic request, at these times at the latest.
        """

    @abstractmethod
    def observe(self, at_ms: int, event: ev.Event) -> None:
        """Take over an event of the run. Emit the changes of the group's state that follow from it."""

    def closed(self, node: int, client: str, *, now_ms: int) -> Outcome:
        """Learn that a consumer has closed its connections to a node."""
        return Outcome()

    def brokers_changed(self, alive: Sequence[int], *, now_ms: int) -> Outcome:
        """Learn which brokers are alive."""
        return Outcome()

    def topics_changed(self, topics: Mapping[str, int], *, now_ms: int) -> Outcome:
        """Learn the topics with their partitions."""
        return Outcome()


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
        self.look_at(self.machine.next_deadline_ms({}))

    def tell(self, told: Callable[[Servers], None]) -> None:
        """Let something be told to the servers, which may move their deadline."""
        told(self.machine)
        self.look_at(self.machine.next_deadline_ms({}))

    def _on_deadline(self) -> None:
        self.carry_out(self.machine.on_deadline(now_ms=self._clock.now_ms))
