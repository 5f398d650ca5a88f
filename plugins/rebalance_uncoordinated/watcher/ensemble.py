"""A registry of nodes with sessions: servers that agree on writes, and whose views of them may be late.

It has the parts of Apache ZooKeeper that consumers without a coordinator use: sessions with ephemeral nodes,
the children of a node with their data, and watches, which tell of one change. Writes are decided at once.
Reads and watches follow the view of the consumer's server, which may be late by a time of its own.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.protocol.messages import Request, Response
from rebalance_lab.simulation.world.servers import Site
from rebalance_uncoordinated.servers import Views, Watch, WatchedServers
from rebalance_uncoordinated.watcher import messages as m
from rebalance_uncoordinated.watcher.member import WatcherState

SERVERS = 3
"""The number of servers."""

_Children: TypeAlias = dict[str, str]
"""The names of the children of a node with their data."""


@dataclass(slots=True)
class _Session:
    """A session: the consumer, the time that it lasts without a request, and its nodes.

    ``created`` is the number of its last request to create nodes. A session is one connection, on which no
    request arrives twice: carried out again, it could create what the consumer was refused before.
    ``member`` is the member of the group that has registered, or "".
    """

    client: str
    timeout_ms: int
    heard_ms: int
    paths: dict[str, None] = field(default_factory=dict)
    created: int = 0
    member: str = ""

    @property
    def expires_ms(self) -> int:
        """The time at which the session expires."""
        return self.heard_ms + self.timeout_ms


class Ensemble(WatchedServers):
    """The registry. It reports members as they come and go."""

    at_rest = (WatcherState.RESTING, WatcherState.WITHOUT_SHARE)
    requests = (m.SessionRequest, m.RequestInSession)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.nodes = range(len(site.brokers), len(site.brokers) + SERVERS)
        self._members = m.members_path(site.group)
        brokers, topics = _broker_nodes(site.brokers), _topic_nodes(site.topics)
        self._children: defaultdict[str, Views[_Children]] = defaultdict(partial(Views, {}))
        self._children |= {m.BROKERS: Views(brokers, 1), m.TOPICS: Views(topics, 1)}
        self._owner: dict[str, int] = {}
        self._sessions: dict[int, _Session] = {}
        self._begun = 0

    def receive(self, request_id: int, request: Request, *, node: int, client: str, now_ms: int) -> Outcome:  # noqa: ARG002
        """Receive a request of a consumer at a server."""
        outcome = Outcome()
        if isinstance(request, m.SessionRequest):
            self._begun += 1
            self._sessions[self._begun] = _Session(client, request.timeout_ms, now_ms)
            outcome.reply(request_id, m.SessionResponse(session=self._begun))
            return outcome
        assert isinstance(request, m.RequestInSession)
        session = self._sessions.get(request.session)
        if session is not None:
            session.heard_ms = now_ms
        match request:
            case m.PingRequest():
                outcome.reply(request_id, self._ping(request, client, now_ms))
            case m.CreateRequest():
                if (created := self._create(request, session, outcome, now_ms)) is not None:
                    outcome.reply(request_id, created)
            case m.DeleteRequest():
                if session is not None:
                    own = [path for path in request.nodes if path in session.paths]
                    self._delete(session, own, "deleted its node", outcome, now_ms)
                outcome.reply(request_id, m.DeleteResponse(expired=session is None))
            case m.ReadRequest():
                views = {p: self._seen(self._children[p], client, now_ms) for p in request.parents}
                response = m.ReadResponse(
                    expired=session is None,
                    children={parent: view.listing for parent, view in views.items()},
                    versions={parent: view.number for parent, view in views.items()},
                )
                outcome.reply(request_id, response)
            case m.WatchRequest():
                if session is None:
                    outcome.reply(request_id, m.WatchResponse(expired=True))
                    return outcome
                children = self._children[request.parent]
                watch = Watch(session.client, children, request.version, request.session)
                self._watches[request_id] = watch
                self._notify(outcome, now_ms)
            case m.CloseSessionRequest():
                self._end(request.session, "left", outcome, now_ms)
                outcome.reply(request_id, m.CloseSessionResponse())
        return outcome

    def answer(self, request: Request, *, node: int, client: str, now_ms: int) -> Response | None:  # noqa: ARG002
        """Return the response to a ping, unless the view of the consumer's server is late now."""
        if not isinstance(request, m.PingRequest):
            return None
        views = [self._children[parent] for parent in request.parents]
        is_late = any(self._seen(v, client, now_ms) is not v.last for v in views)
        return None if is_late else self._ping(request, client, now_ms)

    def notice(self, number: int) -> Response:
        """Return the only notice of a watch."""
        return m.WatchResponse(expired=False, version=number)

    def brokers_changed(self, alive: Sequence[int], *, now_ms: int) -> Outcome:
        """Change the nodes of the brokers."""
        return self._changed(m.BROKERS, _broker_nodes(alive), now_ms)

    def topics_changed(self, topics: Mapping[str, int], *, now_ms: int) -> Outcome:
        """Change the nodes of the topics."""
        return self._changed(m.TOPICS, _topic_nodes(topics), now_ms)

    def expiries(self) -> Iterator[tuple[str, int]]:
        """Yield each session's member with the time at which the session expires."""
        return ((session.member, session.expires_ms) for session in self._sessions.values())

    def expire(self, outcome: Outcome, now_ms: int) -> None:
        """End the sessions that have expired."""
        for number, session in list(self._sessions.items()):
            if session.expires_ms <= now_ms:
                self._end(number, "session expired", outcome, now_ms)

    # --- inside

    def _ping(self, request: m.PingRequest, client: str, now_ms: int) -> m.PingResponse:
        views = {parent: self._seen(self._children[parent], client, now_ms) for parent in request.parents}
        versions = {parent: view.number for parent, view in views.items()}
        return m.PingResponse(expired=request.session not in self._sessions, versions=versions)

    def _changed(self, parent: str, data: _Children, now_ms: int) -> Outcome:
        outcome = Outcome()
        if data != self._children[parent].last.listing:
            self._children[parent].change(data, now_ms)
            self._notify(outcome, now_ms)
        return outcome

    def _create(
        self, request: m.CreateRequest, session: _Session | None, outcome: Outcome, now_ms: int
    ) -> m.CreateResponse | None:
        """Create nodes, unless other sessions have created some of them. A request counts once."""
        if session is None:
            return m.CreateResponse(expired=True)
        if request.number <= session.created:
            return None
        session.created = request.number
        nodes, number = request.nodes, request.session
        existing = tuple(path for path in nodes if self._owner.get(path, number) != number)
        if existing:
            return m.CreateResponse(expired=False, existing=existing)
        self._write({path: data for path, data in nodes.items() if path not in self._owner}, outcome, now_ms)
        session.paths.update(dict.fromkeys(nodes))
        for path in nodes:
            parent, _, name = path.rpartition("/")
            if parent == self._members:
                session.member = name
        self._owner.update(dict.fromkeys(nodes, number))
        return m.CreateResponse(expired=False)

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
        self._give_up(lambda watch: watch.session == number, outcome)
        self._delete(session, list(session.paths), why, outcome, now_ms)
        del self._sessions[number]

    def _write(self, nodes: Mapping[str, str | None], outcome: Outcome, now_ms: int, why: str = "") -> None:
        """Write nodes, None for those that end, as one change of each parent.

        The members keep their past, as those that watch them may have late views.
        """
        parents: dict[str, dict[str, str | None]] = {}
        for path, data in nodes.items():
            parent, _, name = path.rpartition("/")
            parents.setdefault(parent, {})[name] = data
        for parent, changes in parents.items():
            views, before = self._children[parent], self._children[parent].last.listing
            after = {n: data for n, data in {**before, **changes}.items() if data is not None}
            views.change(after, now_ms, keeps_past=parent == self._members)
            if parent == self._members:
                self._report(outcome, views.last.number, before, after, why)
        self._notify(outcome, now_ms)


def _broker_nodes(brokers: Sequence[int]) -> _Children:
    return {str(node): "" for node in brokers}


def _topic_nodes(topics: Mapping[str, int]) -> _Children:
    return {topic: str(count) for topic, count in topics.items()}
