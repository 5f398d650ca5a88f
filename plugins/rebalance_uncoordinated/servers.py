"""The servers of both families: requests that wait for a change, expiries, and late views."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import Response
from rebalance_lab.simulation.world.servers import Servers, Site
from rebalance_uncoordinated.gathering import Gathering

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


class WatchedServers(Servers):
    """Servers whose requests may wait for a change, and which may show a consumer what was true before.

    A request that waits is answered by the outcome of another call. ``at_rest`` has the states of members in
    which no rebalance of their own is in progress.
    """

    at_rest: Container[str]

    def __init__(self, site: Site) -> None:
        self._group, self._protocol = site.group, site.protocol
        self._late_ms: dict[str, int] = {}
        self._watches: dict[int, Watch] = {}
        self._gathering = Gathering(site.group, self.at_rest, site.emit)

    def observe(self, at_ms: int, event: ev.Event) -> None:
        """Take over an event of the run, which may change the state of the group."""
        self._gathering.observe(at_ms, event)

    # --- the rules of the families

    @abstractmethod
    def notice(self, number: int) -> Response:
        """Return the response to a request that has waited for a change."""

    @abstractmethod
    def expiries(self) -> Iterator[tuple[str, int]]:
        """Yield for each member the time at which it ends without a sign of life."""

    @abstractmethod
    def expire(self, outcome: Outcome, now_ms: int) -> None:
        """End what has expired."""

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

    def next_deadline_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the time of the next expiry or notice, or None; ``alive_ms`` as in `Servers`."""
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
