"""The servers of a family whose members need no group coordinator, and their late views."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

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


Listing = TypeVar("Listing")


class View(NamedTuple, Generic[Listing]):
    """A listing as it was from a time on. ``number`` counts the changes."""

    at_ms: int
    number: int
    listing: Listing


class Views(Generic[Listing]):
    """A listing and its past: a consumer whose view is late still gets what was true before."""

    def __init__(self, listing: Listing, number: int = 0) -> None:
        self._views = [View(0, number, listing)]

    @property
    def last(self) -> View[Listing]:
        """The listing as it is now."""
        return self._views[-1]

    def at(self, at_ms: int) -> View[Listing]:
        """Return the listing as it was at a time."""
        return next((view for view in reversed(self._views) if view.at_ms <= at_ms), self._views[0])

    def after(self, number: int) -> View[Listing]:
        """Return the first listing that is newer than a number."""
        return next(view for view in self._views if view.number > number)

    def change(self, listing: Listing, at_ms: int, *, keeps_past: bool = True) -> None:
        """Change the listing. Without ``keeps_past`` only the first one and the new one are kept."""
        self._views.append(View(at_ms, self.last.number + 1, listing))
        if not keeps_past:
            del self._views[1:-1]

    def correct(self, listing: Listing) -> None:
        """Put another listing in the place of the last one, which is not a change that is noticed."""
        self._views[-1] = self.last._replace(listing=listing)


class Watch(NamedTuple):
    """A request of a consumer that waits until a listing is newer than a number."""

    client: str
    views: Views[Any]
    number: int
    session: int = 0


class Servers(ABC):
    """The servers of one run. They have no clock: every call takes the time, and returns its outcome.

    A request that waits for a change is answered later, by the outcome of another call. The outcomes append
    nothing to a log. The servers report `MemberAdded` and `MemberRemoved`, and after each a
    `GenerationStarted` with a higher number.
    """

    requests: frozenset[type[Any]] = frozenset()
    """The types of the requests that the servers answer. Brokers answer the others."""

    nodes: range = range(0)
    """The numbers of the servers, which follow those of the brokers; empty if they are the brokers."""

    def __init__(self, site: Site) -> None:
        self._group, self._protocol = site.group, site.protocol
        self._late_ms: dict[str, int] = {}
        self._watches: dict[int, Watch] = {}

    # --- the rules of the families

    @abstractmethod
    def receive(self, request_id: int, request: Request, *, node: int, client: str, now_ms: int) -> Outcome:
        """Receive a request of a consumer at a node."""

    @abstractmethod
    def answer(self, request: Request, *, node: int, client: str, now_ms: int) -> Response | None:
        """Return the response that a periodic request has until the next change or deadline, or None.

        The request is not received. None: the response changes before, or nothing is known of it.
        """

    @abstractmethod
    def notice(self, number: int) -> Response:
        """Return the response to a request that has waited for a change."""

    @abstractmethod
    def expiries(self) -> Iterator[tuple[str, int]]:
        """Yield for each member the time at which it ends without a sign of life."""

    @abstractmethod
    def expire(self, outcome: Outcome, now_ms: int) -> None:
        """End what has expired."""

    def closed(self, node: int, client: str, *, now_ms: int) -> Outcome:  # noqa: ARG002 - for some families
        """Learn that a consumer has closed its connections to a node."""
        return Outcome()

    def brokers_changed(self, alive: Sequence[int], *, now_ms: int) -> Outcome:  # noqa: ARG002
        """Learn which brokers are alive."""
        return Outcome()

    def topics_changed(self, topics: Mapping[str, int], *, now_ms: int) -> Outcome:  # noqa: ARG002
        """Learn the topics with their partitions."""
        return Outcome()

    # --- late views and deadlines

    def lag_view(self, client: str, by_ms: int) -> None:
        """Answer a consumer from now on with what was true ``by_ms`` before; 0 ends that."""
        self._late_ms[client] = by_ms

    def on_deadline(self, *, now_ms: int) -> Outcome:
        """Do the work that is due: end what has expired, and send the notices of late views."""
        outcome = Outcome()
        self.expire(outcome, now_ms)
        self._notify(outcome, now_ms)
        return outcome

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next call of `on_deadline`, or None."""
        return self.next_deadline_of_others_ms({})

    def next_deadline_of_others_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the next deadline that no member moves in time, or None.

        A member moves its deadlines by a periodic request, at a time of ``alive_ms`` at the latest.
        """
        times = [at_ms for member, at_ms in self.expiries() if at_ms <= alive_ms.get(member, at_ms)]
        times += [
            watch.views.after(watch.number).at_ms + self._late_ms.get(watch.client, 0)
            for watch in self._watches.values()
            if watch.views.last.number > watch.number
        ]
        return min(times, default=None)

    def _seen(self, views: Views[Listing], client: str, now_ms: int) -> View[Listing]:
        """Return a listing as a consumer sees it."""
        return views.at(now_ms - self._late_ms.get(client, 0))

    def _notify(self, outcome: Outcome, now_ms: int) -> None:
        """Answer the requests whose consumers may see a newer listing."""
        for request_id, watch in list(self._watches.items()):
            if watch.views.last.number > watch.number:
                number = self._seen(watch.views, watch.client, now_ms).number
                if number > watch.number:
                    del self._watches[request_id]
                    outcome.reply(request_id, self.notice(number))

    def _give_up(self, is_meant: Callable[[Watch], bool], outcome: Outcome) -> None:
        """Give up the requests of some watches, which will never be answered."""
        for request_id in [number for number, watch in self._watches.items() if is_meant(watch)]:
            del self._watches[request_id]
            outcome.supersede(request_id)

    def _report(
        self, outcome: Outcome, number: int, before: Collection[str], members: Collection[str], why: str
    ) -> None:
        """Report the members that have come and gone, and the generation of those that remain."""
        for member in members:
            if member not in before:
                outcome.report_added(self._group, member)
        for member in before:
            if member not in members:
                outcome.report_removed(self._group, member, why)
        if members:
            outcome.report_generation(self._group, number, self._protocol, members)
