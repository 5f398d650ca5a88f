"""A registry of nodes with sessions: servers that agree on writes, and whose views of them may be late.

It has the parts of Apache ZooKeeper that consumers without a coordinator use: sessions with ephemeral nodes,
the children of a node with their data, and watches, which tell of one change. Writes are decided at once.
Reads and watches follow the view of the consumer's server, which may be late by a time of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.servers import Site
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import watcher as m
from coordinator_core.protocol.messages import Request, Response

SERVERS = 3
"""The number of servers."""


class _Children(NamedTuple):
    """The children of a node at a time."""

    at_ms: int
    version: int
    data: dict[str, str]


class _Session:
    """A session: the consumer, the time that it lasts without a request, and its nodes."""

    def __init__(self, client: str, timeout_ms: int, now_ms: int) -> None:
        self.client, self.timeout_ms, self.heard_ms = client, timeout_ms, now_ms
        self.paths: dict[str, None] = {}
        self.member = ""
        """The member of the group that has registered, or ""."""

    @property
    def expires_ms(self) -> int:
        """The time at which the session expires."""
        return self.heard_ms + self.timeout_ms


class _Watch(NamedTuple):
    """A request that waits for a change."""

    session: int
    parent: str
    version: int


_NOTHING = _Children(0, 0, {})


class Ensemble:
    """The registry (`coordinator.servers.Servers`). It reports members as they come and go."""

    requests: frozenset[type[Any]] = frozenset(
        (
            m.SessionRequest,
            m.PingRequest,
            m.CreateRequest,
            m.DeleteRequest,
            m.ReadRequest,
            m.WatchRequest,
            m.CloseSessionRequest,
        )
    )

    def __init__(self, site: Site) -> None:
        self.nodes = range(len(site.brokers), len(site.brokers) + SERVERS)
        self._group, self._protocol = site.group, site.protocol
        self._members = m.members_path(site.group)
        self._children: dict[str, list[_Children]] = {}
        self._owner: dict[str, int] = {}
        self._sessions: dict[int, _Session] = {}
        self._watches: dict[int, _Watch] = {}
        self._late_ms: dict[str, int] = {}
        self._begun = 0
        self._set(m.BROKERS, {str(node): "" for node in site.brokers}, 0)
        self._set(m.TOPICS, {topic: str(count) for topic, count in site.topics.items()}, 0)

    def receive(self, request_id: int, request: Request, *, node: int, client: str, now_ms: int) -> Outcome:  # noqa: ARG002
        """Receive a request of a consumer at a server."""
        outcome = Outcome()
        if isinstance(request, m.SessionRequest):
            self._begun += 1
            self._sessions[self._begun] = _Session(client, request.timeout_ms, now_ms)
            outcome.reply(request_id, m.SessionResponse(session=self._begun))
            return outcome
        session = self._sessions.get(request.session)  # type: ignore[union-attr]
        if session is not None:
            session.heard_ms = now_ms
        match request:
            case m.PingRequest():
                versions = {parent: self._view(client, parent, now_ms).version for parent in request.parents}
                outcome.reply(request_id, m.PingResponse(expired=session is None, versions=versions))
            case m.CreateRequest():
                existing: tuple[str, ...] = ()
                if session is not None:
                    existing = self._create(request.session, session, request.nodes, outcome, now_ms)
                outcome.reply(request_id, m.CreateResponse(expired=session is None, existing=existing))
            case m.DeleteRequest():
                if session is not None:
                    own = [path for path in request.paths if path in session.paths]
                    self._delete(session, own, "deleted its node", outcome, now_ms)
                outcome.reply(request_id, m.DeleteResponse(expired=session is None))
            case m.ReadRequest():
                views = {parent: self._view(client, parent, now_ms) for parent in request.parents}
                response = m.ReadResponse(
                    expired=session is None,
                    children={parent: view.data for parent, view in views.items()},
                    versions={parent: view.version for parent, view in views.items()},
                )
                outcome.reply(request_id, response)
            case m.WatchRequest() if session is None:
                outcome.reply(request_id, m.WatchResponse(expired=True))
            case m.WatchRequest():
                self._watches[request_id] = _Watch(request.session, request.parent, request.version)
                self._notify(outcome, now_ms)
            case m.CloseSessionRequest():
                self._end(request.session, "left", outcome, now_ms)
                outcome.reply(request_id, m.CloseSessionResponse())
        return outcome

    def closed(self, node: int, client: str, *, now_ms: int) -> Outcome:  # noqa: ARG002
        """Do nothing: a session outlives a connection."""
        return Outcome()

    def brokers_changed(self, alive: Sequence[int], *, now_ms: int) -> Outcome:
        """Change the nodes of the brokers."""
        return self._changed(m.BROKERS, {str(node): "" for node in alive}, now_ms)

    def topics_changed(self, topics: Mapping[str, int], *, now_ms: int) -> Outcome:
        """Change the nodes of the topics."""
        return self._changed(m.TOPICS, {topic: str(count) for topic, count in topics.items()}, now_ms)

    def lag_view(self, client: str, by_ms: int) -> None:
        """Let the server of a consumer have a view that is late by a time from now on."""
        self._late_ms[client] = by_ms

    def on_deadline(self, *, now_ms: int) -> Outcome:
        """End the sessions that have expired, and send the notices of late views."""
        outcome = Outcome()
        for number, session in list(self._sessions.items()):
            if session.expires_ms <= now_ms:
                self._end(number, "session expired", outcome, now_ms)
        self._notify(outcome, now_ms)
        return outcome

    def next_deadline_ms(self) -> int | None:
        """Return the time at which a session expires or a late notice is due, or None."""
        return self.next_deadline_of_others_ms({})

    def next_deadline_of_others_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the next such time, without the sessions that members continue in time."""
        times = [
            expires_ms
            for session in self._sessions.values()
            if (expires_ms := session.expires_ms) <= alive_ms.get(session.member, expires_ms)
        ]
        for watch in self._watches.values():
            history = self._children.get(watch.parent, ())
            if history and history[-1].version > watch.version:
                newer = history[max(0, watch.version + 1 - history[0].version)]
                times.append(newer.at_ms + self._late_ms.get(self._sessions[watch.session].client, 0))
        return min(times, default=None)

    def answer(self, request: Request, *, node: int, client: str, now_ms: int) -> Response | None:  # noqa: ARG002
        """Return the response to a ping, unless the view of the consumer's server is late now."""
        if not isinstance(request, m.PingRequest):
            return None
        views = {parent: self._view(client, parent, now_ms) for parent in request.parents}
        if any(view is not self._now(parent) for parent, view in views.items()):
            return None
        versions = {parent: view.version for parent, view in views.items()}
        return m.PingResponse(expired=request.session not in self._sessions, versions=versions)

    # --- inside

    def _now(self, parent: str) -> _Children:
        history = self._children.get(parent)
        return history[-1] if history else _NOTHING

    def _view(self, client: str, parent: str, now_ms: int) -> _Children:
        """Return the children of a node as the server of a consumer has them."""
        at_ms = max(0, now_ms - self._late_ms.get(client, 0))
        history = self._children.get(parent, ())
        return next((children for children in reversed(history) if children.at_ms <= at_ms), _NOTHING)

    def _set(self, parent: str, data: dict[str, str], now_ms: int) -> None:
        """Change the children of a node. Those that members watch keep their past: a view may become late."""
        history = self._children.setdefault(parent, [])
        history.append(_Children(now_ms, self._now(parent).version + 1, data))
        if parent not in (self._members, m.BROKERS, m.TOPICS):
            del history[:-1]

    def _changed(self, parent: str, data: dict[str, str], now_ms: int) -> Outcome:
        outcome = Outcome()
        if data != self._now(parent).data:
            self._set(parent, data, now_ms)
            self._notify(outcome, now_ms)
        return outcome

    def _create(
        self, number: int, session: _Session, nodes: Mapping[str, str], outcome: Outcome, now_ms: int
    ) -> tuple[str, ...]:
        """Create nodes, unless other sessions have created some of them. Return those."""
        existing = tuple(path for path in nodes if self._owner.get(path, number) != number)
        if existing:
            return existing
        self._write({path: data for path, data in nodes.items() if path not in self._owner}, outcome, now_ms)
        session.paths.update(dict.fromkeys(nodes))
        for path in nodes:
            parent, _, name = path.rpartition("/")
            if parent == self._members:
                session.member = name
        self._owner.update(dict.fromkeys(nodes, number))
        return ()

    def _delete(
        self, session: _Session, paths: Sequence[str], why: str, outcome: Outcome, now_ms: int
    ) -> None:
        for path in paths:
            del session.paths[path]
            del self._owner[path]
        self._write(dict.fromkeys(paths), outcome, now_ms, why)

    def _end(self, number: int, why: str, outcome: Outcome, now_ms: int) -> None:
        """End a session with its nodes and watches."""
        session = self._sessions.get(number)
        if session is None:
            return
        for request_id, watch in list(self._watches.items()):
            if watch.session == number:
                del self._watches[request_id]
                outcome.supersede(request_id)
        self._delete(session, list(session.paths), why, outcome, now_ms)
        del self._sessions[number]

    def _write(self, nodes: Mapping[str, str | None], outcome: Outcome, now_ms: int, why: str = "") -> None:
        """Write nodes, None for those that end, as one change of each parent."""
        parents: dict[str, dict[str, str | None]] = {}
        for path, data in nodes.items():
            parent, _, name = path.rpartition("/")
            parents.setdefault(parent, {})[name] = data
        for parent, changes in parents.items():
            after = {**self._now(parent).data, **changes}
            self._set(parent, {name: data for name, data in after.items() if data is not None}, now_ms)
            if parent == self._members:
                self._report(changes, why, outcome)
        self._notify(outcome, now_ms)

    def _report(self, changes: Mapping[str, str | None], why: str, outcome: Outcome) -> None:
        """Report the members that have come and gone."""
        for name, data in changes.items():
            if data is None:
                outcome.events.append(ev.MemberRemoved(group=self._group, member_id=name, reason=why))
            else:
                outcome.events.append(ev.MemberAdded(group=self._group, member_id=name))
        now = self._now(self._members)
        if now.data:
            outcome.events.append(
                ev.GenerationStarted(
                    group=self._group,
                    generation=now.version,
                    protocol=self._protocol,
                    leader="",
                    members=list(now.data),
                )
            )

    def _notify(self, outcome: Outcome, now_ms: int) -> None:
        """Answer the watches whose consumers may see a newer version."""
        newest = {parent: self._now(parent).version for parent in self._children}
        for request_id, watch in list(self._watches.items()):
            if newest.get(watch.parent, 0) <= watch.version:
                continue
            client = self._sessions[watch.session].client
            version = self._view(client, watch.parent, now_ms).version
            if version > watch.version:
                del self._watches[request_id]
                outcome.reply(request_id, m.WatchResponse(expired=False, version=version))
