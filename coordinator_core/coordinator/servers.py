"""What answers the requests of a family whose members need no group coordinator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.protocol.messages import Request, Response

EMPTY, REBALANCING, SETTLED = "Empty", "Rebalancing", "Settled"
GROUP_STATES = {
    EMPTY: frozenset({REBALANCING}),
    REBALANCING: frozenset({SETTLED, EMPTY}),
    SETTLED: frozenset({REBALANCING, EMPTY}),
}
"""The states of a group without a coordinator, and those that may follow each."""


@dataclass(frozen=True, slots=True)
class Site:
    """What servers are made from.

    ``settings`` are the family's own, ``group`` is the name of the group and ``protocol`` that of its
    assignor. ``topics`` maps each topic to its partitions, ``brokers`` are the numbers of the brokers.
    """

    settings: Any
    group: str
    protocol: str
    topics: Mapping[str, int]
    brokers: Sequence[int]


class Servers(Protocol):
    """The servers of one run. They have no clock: every call takes the time, and returns its outcome.

    A request that waits for a change is answered later, by the outcome of another call. The outcomes append
    nothing to a log. The servers report `MemberAdded` and `MemberRemoved`, and after each a
    `GenerationStarted` with a higher number.
    """

    @property
    def requests(self) -> frozenset[type[Any]]:
        """The types of the requests that the servers answer. Brokers answer the others."""
        ...

    @property
    def nodes(self) -> range:
        """The numbers of the servers, which follow those of the brokers; empty if they are the brokers."""
        ...

    def receive(self, request_id: int, request: Request, *, node: int, client: str, now_ms: int) -> Outcome:
        """Receive a request of a consumer at a node."""
        ...

    def closed(self, node: int, client: str, *, now_ms: int) -> Outcome:
        """Learn that a consumer has closed its connections to a node."""
        ...

    def brokers_changed(self, alive: Sequence[int], *, now_ms: int) -> Outcome:
        """Learn which brokers are alive."""
        ...

    def topics_changed(self, topics: Mapping[str, int], *, now_ms: int) -> Outcome:
        """Learn the topics with their partitions."""
        ...

    def lag_view(self, client: str, by_ms: int) -> None:
        """Answer a consumer from now on with what was true ``by_ms`` before; 0 ends that."""
        ...

    def on_deadline(self, *, now_ms: int) -> Outcome:
        """Do the work that is due."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next call of `on_deadline`, or None."""
        ...

    def next_deadline_of_others_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the next deadline that no member moves in time, or None.

        A member moves its deadlines by a periodic request, at a time of ``alive_ms`` at the latest.
        """
        ...

    def answer(self, request: Request, *, node: int, client: str, now_ms: int) -> Response | None:
        """Return the response that a periodic request has until the next change or deadline, or None.

        The request is not received. None: the response changes before, or nothing is known of it.
        """
        ...
