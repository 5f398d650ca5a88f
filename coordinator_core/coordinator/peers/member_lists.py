"""Brokers that list the members of a group, each on its own, and tell the members of changes.

A member is on a broker's list from its first heartbeat, until it leaves, its connection is closed, or it has
been silent for the expiry time. The version counts the changes of the group as a whole: of the members that
are on any list. A list has the version of the group if it has all of its members.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.servers import Site
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import peers as m
from coordinator_core.protocol.messages import Request, Response
from coordinator_core.protocol.peers import PeersSettings


class _View(NamedTuple):
    """A broker's list at a time."""

    at_ms: int
    members: tuple[str, ...]
    revision: int
    version: int


def _listed(view: _View) -> m.MemberListResponse:
    return m.MemberListResponse(members=view.members, revision=view.revision, version=view.version)


class _Notice(NamedTuple):
    """A request that waits for a list newer than a revision."""

    request_id: int
    revision: int


class _Broker:
    """The list of one broker. ``heard_ms`` has the time of the last heartbeat of each member."""

    def __init__(self) -> None:
        self.heard_ms: dict[str, int] = {}
        self.clients: dict[str, str] = {}
        self.views = [_View(0, (), 0, 0)]
        self.notices: dict[str, _Notice] = {}

    def view(self, at_ms: int) -> _View:
        """Return the list as it was at a time."""
        return next((view for view in reversed(self.views) if view.at_ms <= at_ms), self.views[0])


class MemberLists:
    """The lists of all brokers (`coordinator.servers.Servers`)."""

    requests: frozenset[type[Any]] = frozenset(
        (m.MemberHeartbeatRequest, m.MemberListRequest, m.MemberNoticeRequest, m.MemberGoneRequest)
    )
    nodes = range(0)

    def __init__(self, site: Site) -> None:
        assert isinstance(site.settings, PeersSettings)
        self._expired_ms = site.settings.expired_ms
        self._group, self._protocol = site.group, site.protocol
        self._brokers = {node: _Broker() for node in site.brokers}
        self._members: dict[str, None] = {}
        self._version = 0
        self._late_ms: dict[str, int] = {}

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
                revision = self._view(broker, client, now_ms).revision
                outcome.reply(request_id, m.MemberHeartbeatResponse(is_new=is_new, revision=revision))
            case m.MemberListRequest():
                outcome.reply(request_id, _listed(self._view(broker, client, now_ms)))
            case m.MemberNoticeRequest():
                before = broker.notices.get(client)
                outcome.supersede(None if before is None else before.request_id)
                broker.notices[client] = _Notice(request_id, request.revision)
                self._tell(broker, outcome, now_ms)
            case m.MemberGoneRequest():
                self._drop(broker, request.member_id, "left", outcome, now_ms)
                outcome.reply(request_id, m.MemberGoneResponse())
        return outcome

    def closed(self, node: int, client: str, *, now_ms: int) -> Outcome:
        """Drop the members of a consumer at once."""
        outcome, broker = Outcome(), self._brokers[node]
        for member_id in [member for member, name in broker.clients.items() if name == client]:
            self._drop(broker, member_id, "its connection was closed", outcome, now_ms)
        return outcome

    def brokers_changed(self, alive: Sequence[int], *, now_ms: int) -> Outcome:
        """Forget the lists of brokers that are gone."""
        outcome = Outcome()
        for node, broker in self._brokers.items():
            if node not in alive and (broker.heard_ms or broker.notices):
                self._brokers[node] = _Broker()
                self._changed(self._brokers[node], outcome, now_ms)
        return outcome

    def topics_changed(self, topics: Mapping[str, int], *, now_ms: int) -> Outcome:  # noqa: ARG002
        """Do nothing: members see topics in their metadata."""
        return Outcome()

    def lag_view(self, client: str, by_ms: int) -> None:
        """Show a consumer lists, and tell it of changes, ``by_ms`` late from now on."""
        self._late_ms[client] = by_ms

    def on_deadline(self, *, now_ms: int) -> Outcome:
        """Drop the members that are silent, and send the notices that are late."""
        outcome = Outcome()
        for broker in self._brokers.values():
            for member_id, heard_ms in list(broker.heard_ms.items()):
                if now_ms - heard_ms >= self._expired_ms:
                    self._drop(
                        broker, member_id, f"silent for {self._expired_ms // 1_000} s", outcome, now_ms
                    )
            self._tell(broker, outcome, now_ms)
        return outcome

    def next_deadline_ms(self) -> int | None:
        """Return the time at which a member expires or a late notice is due, or None."""
        return self.next_deadline_of_others_ms({})

    def next_deadline_of_others_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the next such time, without the expiry of members that send heartbeats in time."""
        times = []
        for broker in self._brokers.values():
            times += [
                expires_ms
                for member_id, heard_ms in broker.heard_ms.items()
                if (expires_ms := heard_ms + self._expired_ms) <= alive_ms.get(member_id, expires_ms)
            ]
            for client, notice in broker.notices.items():
                if broker.views[-1].revision > notice.revision:  # revisions count the views
                    newer = broker.views[notice.revision + 1]
                    times.append(newer.at_ms + self._late_ms.get(client, 0))
        return min(times, default=None)

    def answer(self, request: Request, *, node: int, client: str, now_ms: int) -> Response | None:
        """Return the response to a heartbeat or a look, unless the consumer's view is late now."""
        broker = self._brokers[node]
        view = self._view(broker, client, now_ms)
        if view is not broker.views[-1]:
            return None
        match request:
            case m.MemberHeartbeatRequest():
                is_new = request.member_id not in broker.heard_ms
                return m.MemberHeartbeatResponse(is_new=is_new, revision=view.revision)
            case m.MemberListRequest():
                return _listed(view)
        return None

    # --- inside

    def _view(self, broker: _Broker, client: str, now_ms: int) -> _View:
        return broker.view(now_ms - self._late_ms.get(client, 0))

    def _drop(self, broker: _Broker, member_id: str, why: str, outcome: Outcome, now_ms: int) -> None:
        if broker.heard_ms.pop(member_id, None) is None:
            return
        notice = broker.notices.pop(broker.clients.pop(member_id), None)
        outcome.supersede(None if notice is None else notice.request_id)
        self._changed(broker, outcome, now_ms, why)

    def _changed(self, broker: _Broker, outcome: Outcome, now_ms: int, why: str = "") -> None:
        """Take over the change of one list: the group's members, the list's version, notices."""
        before, last = self._members, broker.views[-1]
        self._members = {member: None for b in self._brokers.values() for member in b.heard_ms}
        broker.views.append(_View(now_ms, tuple(broker.heard_ms), last.revision + 1, last.version))
        if before.keys() != self._members.keys():
            self._version += 1
            outcome.events += [
                ev.MemberAdded(group=self._group, member_id=member)
                for member in self._members
                if member not in before
            ]
            outcome.events += [
                ev.MemberRemoved(group=self._group, member_id=member, reason=why or "no broker lists it")
                for member in before
                if member not in self._members
            ]
            members = list(self._members)
            if members:
                outcome.events.append(
                    ev.GenerationStarted(
                        group=self._group,
                        generation=self._version,
                        protocol=self._protocol,
                        leader="",
                        members=members,
                    )
                )
        for listing in self._brokers.values():
            if listing.heard_ms.keys() == self._members.keys():
                listing.views[-1] = listing.views[-1]._replace(version=self._version)
        self._tell(broker, outcome, now_ms)

    def _tell(self, broker: _Broker, outcome: Outcome, now_ms: int) -> None:
        """Answer the notices of the members that may see the broker's last list."""
        for client, notice in list(broker.notices.items()):
            view = self._view(broker, client, now_ms)
            if view.revision > notice.revision:
                del broker.notices[client]
                outcome.reply(notice.request_id, m.MemberNoticeResponse(revision=view.revision))
