"""Brokers that list the members of a group, each on its own, and tell the members of changes.

A member is on a broker's list from its first heartbeat, until it leaves, its connection is closed, or it has
been silent for the expiry time. The version counts the changes of the group as a whole: of the members that
are on any list. A list has the version of the group if it has all of its members.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.protocol.messages import Request, Response
from rebalance_lab.simulation.world.servers import Site
from rebalance_uncoordinated.peers import messages as m
from rebalance_uncoordinated.peers.member import PeerState
from rebalance_uncoordinated.servers import View, Views, Watch, WatchedServers
from rebalance_uncoordinated.settings import PeersSettings


class _List(NamedTuple):
    """The members that a broker lists. ``version``: that of the group when the list had all its members."""

    members: tuple[str, ...] = ()
    version: int = 0


def _response(view: View[_List]) -> m.MemberListResponse:
    listing = view.listing
    return m.MemberListResponse(members=listing.members, revision=view.number, version=listing.version)


class _Broker:
    """The list of one broker. ``heard_ms`` has the time of the last heartbeat of each member."""

    def __init__(self) -> None:
        self.heard_ms: dict[str, int] = {}
        self.clients: dict[str, str] = {}
        self.views = Views(_List())


class MemberLists(WatchedServers):
    """The lists of all brokers."""

    at_rest = (PeerState.RESTING,)
    requests = (m.MemberHeartbeatRequest, m.MemberListRequest, m.MemberNoticeRequest, m.MemberGoneRequest)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        assert isinstance(site.settings, PeersSettings)
        self._expired_ms = site.settings.expired_ms
        self._brokers = {node: _Broker() for node in site.brokers}
        self._members: dict[str, None] = {}
        self._version = 0

    def receive(self, request_id: int, request: Request, *, node: int, client: str, now_ms: int) -> Outcome:
        """Receive a request of a consumer at a broker."""
        outcome, broker = Outcome(), self._brokers[node]
        match request:
            case m.MemberHeartbeatRequest():
                is_new = request.member_id not in broker.heard_ms
                broker.heard_ms[request.member_id] = now_ms
                if is_new:
                    broker.clients[request.member_id] = client
                    self._changed(broker, outcome, now_ms)
                revision = self._seen(broker.views, client, now_ms).number
                outcome.reply(request_id, m.MemberHeartbeatResponse(is_new=is_new, revision=revision))
            case m.MemberListRequest():
                outcome.reply(request_id, _response(self._seen(broker.views, client, now_ms)))
            case m.MemberNoticeRequest():
                self._stop_notice(broker, client, outcome)
                self._watches[request_id] = Watch(client, broker.views, request.revision)
                self._notify(outcome, now_ms)
            case m.MemberGoneRequest():
                self._drop(broker, request.member_id, "left", outcome, now_ms)
                outcome.reply(request_id, m.MemberGoneResponse())
        return outcome

    def answer(self, request: Request, *, node: int, client: str, now_ms: int) -> Response | None:
        """Return the response to a heartbeat or a look, unless the consumer's view is late now."""
        broker = self._brokers[node]
        view = self._seen(broker.views, client, now_ms)
        if view is not broker.views.last:
            return None
        match request:
            case m.MemberHeartbeatRequest():
                is_new = request.member_id not in broker.heard_ms
                return m.MemberHeartbeatResponse(is_new=is_new, revision=view.number)
            case m.MemberListRequest():
                return _response(view)
        return None

    def notice(self, number: int) -> Response:
        """Return the notice that a list has changed."""
        return m.MemberNoticeResponse(revision=number)

    def closed(self, node: int, client: str, *, now_ms: int) -> Outcome:
        """Drop the members of a consumer at once."""
        outcome, broker = Outcome(), self._brokers[node]
        for member_id in [member for member, name in broker.clients.items() if name == client]:
            self._drop(broker, member_id, "its connection was closed", outcome, now_ms)
        return outcome

    def brokers_changed(self, alive: Sequence[int], *, now_ms: int) -> Outcome:
        """Forget the lists of brokers that are gone, and the requests that wait there."""
        outcome = Outcome()
        for node, broker in self._brokers.items():
            waits = any(watch.views is broker.views for watch in self._watches.values())
            if node not in alive and (broker.heard_ms or waits):
                self._stop_notice(broker, None, outcome)
                self._brokers[node] = _Broker()
                self._changed(self._brokers[node], outcome, now_ms)
        return outcome

    def expiries(self) -> Iterator[tuple[str, int]]:
        """Yield each entry of a list with the time at which it expires."""
        for broker in self._brokers.values():
            for member_id, heard_ms in broker.heard_ms.items():
                yield member_id, heard_ms + self._expired_ms

    def expire(self, outcome: Outcome, now_ms: int) -> None:
        """Drop the members that are silent."""
        why = f"silent for {self._expired_ms // 1_000} s"
        for broker in self._brokers.values():
            for member_id, heard_ms in list(broker.heard_ms.items()):
                if now_ms - heard_ms >= self._expired_ms:
                    self._drop(broker, member_id, why, outcome, now_ms)

    # --- inside

    def _stop_notice(self, broker: _Broker, client: str | None, outcome: Outcome) -> None:
        """Give up the request for a notice that waits at a broker, of one consumer or of all."""
        self._give_up(lambda w: w.views is broker.views and client in (None, w.client), outcome)

    def _drop(self, broker: _Broker, member_id: str, why: str, outcome: Outcome, now_ms: int) -> None:
        if broker.heard_ms.pop(member_id, None) is not None:
            self._stop_notice(broker, broker.clients.pop(member_id), outcome)
            self._changed(broker, outcome, now_ms, why)

    def _changed(
        self, broker: _Broker, outcome: Outcome, now_ms: int, why: str = "no broker lists it"
    ) -> None:
        """Take over the change of one list: the group's members, the list's version, notices."""
        before, version = self._members, broker.views.last.listing.version
        self._members = {member: None for b in self._brokers.values() for member in b.heard_ms}
        broker.views.change(_List(tuple(broker.heard_ms), version), now_ms)
        if before.keys() != self._members.keys():
            self._version += 1
            self._report(outcome, self._version, before, self._members, why)
        for other in self._brokers.values():
            if other.heard_ms.keys() == self._members.keys():
                other.views.correct(other.views.last.listing._replace(version=self._version))
        self._notify(outcome, now_ms)
