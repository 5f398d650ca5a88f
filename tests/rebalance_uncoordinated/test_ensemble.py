"""The registry as a state machine: sessions, ephemeral nodes, watches, and views that are late."""

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.simulation.world.servers import Site
from rebalance_uncoordinated.watcher import messages as m
from rebalance_uncoordinated.watcher.ensemble import SERVERS, Ensemble
from rebalance_uncoordinated.watcher.messages import BROKERS, TOPICS, members_path

IDS, OWNERS = members_path("g"), "/consumers/g/owners/t"


class Registry:
    """An `Ensemble` of two brokers and a topic, whose requests are numbered. ``outcome`` is the last one."""

    def __init__(self):
        self.servers = Ensemble(Site(None, "g", "range", {"t": 4}, range(2), lambda _: None))
        self.requests = 0
        self.outcome = None
        self.creates = 0

    def send(self, request, now_ms, client="a"):
        """Return the response to a request, or None if it waits."""
        self.requests += 1
        self.outcome = self.servers.receive(self.requests, request, node=2, client=client, now_ms=now_ms)
        return self.answers().get(self.requests)

    def answers(self):
        return {reply.request_id: reply.response for reply in self.outcome.replies}

    def session(self, client="a", timeout_ms=6_000, now_ms=0):
        return self.send(m.SessionRequest(timeout_ms=timeout_ms), now_ms, client).session

    def create(self, session, *paths, now_ms=0):
        self.creates += 1
        request = m.CreateRequest(session=session, nodes=dict.fromkeys(paths, "t"), number=self.creates)
        return self.send(request, now_ms)

    def names(self, parent, now_ms, client="a"):
        """The names of the children of a node, as a new session of a consumer reads them."""
        request = m.ReadRequest(session=self.session(client, now_ms=now_ms), parents=(parent,))
        return list(self.send(request, now_ms, client).children[parent])

    def watch(self, session, now_ms, version=0, parent=IDS):
        """Return the id of a watch, and its response if there is one already."""
        response = self.send(m.WatchRequest(session=session, parent=parent, version=version), now_ms)
        return self.requests, response

    def deadline(self, now_ms):
        self.outcome = self.servers.on_deadline(now_ms=now_ms)


@pytest.fixture
def registry():
    return Registry()


def test_the_servers_follow_the_brokers(registry):
    assert registry.servers.nodes == range(2, 2 + SERVERS)


# --- sessions


def test_a_session_lasts_from_request_to_request(registry):
    one = registry.session()
    registry.create(one, f"{IDS}/m1")
    for now_ms in (5_999, 11_998):
        registry.deadline(now_ms)
        assert not registry.send(m.PingRequest(session=one), now_ms).expired
    assert registry.servers.next_deadline_ms({}) == 11_998 + 6_000


def test_a_session_expires_with_its_nodes(registry):
    one, two = registry.session(), registry.session("b", timeout_ms=60_000)
    registry.create(one, f"{IDS}/m1", f"{OWNERS}/0")
    registry.create(two, f"{IDS}/m2", f"{OWNERS}/1")
    registry.deadline(6_000)
    assert registry.names(IDS, 6_000) == ["m2"]
    assert registry.names(OWNERS, 6_000) == ["1"]


@pytest.mark.parametrize(
    "request_of",
    [
        lambda session: m.PingRequest(session=session),
        lambda session: m.CreateRequest(session=session, nodes={f"{OWNERS}/0": "a"}, number=1),
        lambda session: m.DeleteRequest(session=session, nodes=(f"{OWNERS}/1",)),
        lambda session: m.ReadRequest(session=session, parents=(IDS,)),
        lambda session: m.WatchRequest(session=session, parent=IDS, version=9),
    ],
)
def test_a_request_of_an_expired_session_changes_nothing_and_says_so(registry, request_of):
    one, two = registry.session(), registry.session("b", timeout_ms=60_000)
    registry.create(two, f"{OWNERS}/1")
    registry.deadline(6_000)
    assert registry.send(request_of(one), 7_000).expired
    assert registry.names(OWNERS, 7_000) == ["1"]


def test_a_request_to_create_nodes_that_arrives_again_is_not_carried_out(registry):
    one, two = registry.session(), registry.session("b")
    registry.create(two, f"{OWNERS}/0")
    refused = m.CreateRequest(session=one, nodes={f"{OWNERS}/0": "a"}, number=7)
    assert registry.send(refused, 0).existing == (f"{OWNERS}/0",)
    registry.send(m.DeleteRequest(session=two, nodes=(f"{OWNERS}/0",)), 0)
    assert registry.send(refused, 0) is None
    assert registry.names(OWNERS, 0) == []


def test_a_closed_session_ends_at_once_and_its_member_has_left(registry):
    one = registry.session()
    registry.create(one, f"{IDS}/m1")
    assert registry.send(m.CloseSessionRequest(session=one), 10) == m.CloseSessionResponse()
    assert registry.outcome.events == [ev.MemberRemoved(group="g", member_id="m1", reason="left")]
    assert registry.send(m.CloseSessionRequest(session=one), 11) == m.CloseSessionResponse()
    assert registry.send(m.PingRequest(session=one), 12).expired
    assert registry.servers.next_deadline_ms({}) is None


def test_a_closed_connection_ends_no_session(registry):
    one = registry.session()
    registry.create(one, f"{IDS}/m1")
    outcome = registry.servers.closed(2, "a", now_ms=10)
    assert (outcome.events, outcome.replies) == ([], [])
    assert registry.names(IDS, 5_999) == ["m1"]


# --- nodes


def test_nodes_are_created_all_or_none(registry):
    one, two = registry.session(), registry.session("b")
    registry.create(one, f"{OWNERS}/1")
    response = registry.create(two, f"{OWNERS}/0", f"{OWNERS}/1", f"{OWNERS}/2")
    assert response == m.CreateResponse(expired=False, existing=(f"{OWNERS}/1",))
    assert registry.names(OWNERS, 0) == ["1"]
    assert registry.create(two, f"{OWNERS}/0", f"{OWNERS}/2").existing == ()
    assert sorted(registry.names(OWNERS, 0)) == ["0", "1", "2"]


def test_a_session_creates_its_own_nodes_again_without_a_change(registry):
    one = registry.session()
    registry.create(one, f"{IDS}/m1")
    registry.create(one, f"{IDS}/m1")
    assert registry.outcome.events == []
    assert registry.send(m.PingRequest(session=one, parents=(IDS,)), 0).versions == {IDS: 1}


def test_a_session_deletes_its_own_nodes_only(registry):
    one, two = registry.session(), registry.session("b")
    registry.create(one, f"{OWNERS}/0")
    registry.create(two, f"{OWNERS}/1")
    paths = (f"{OWNERS}/0", f"{OWNERS}/1", f"{OWNERS}/9")
    assert not registry.send(m.DeleteRequest(session=two, nodes=paths), 1).expired
    assert registry.names(OWNERS, 1) == ["0"]
    assert registry.create(two, f"{OWNERS}/1").existing == ()


def test_members_are_reported_with_a_growing_version(registry):
    one, two = registry.session(), registry.session("b", timeout_ms=60_000)
    registry.create(one, f"{IDS}/m1")
    assert registry.outcome.events[0] == ev.MemberAdded(group="g", member_id="m1")
    registry.create(two, f"{IDS}/m2")
    added, started = registry.outcome.events
    assert added == ev.MemberAdded(group="g", member_id="m2")
    assert (started.generation, started.protocol, started.members) == (2, "range", ["m1", "m2"])
    registry.deadline(6_000)
    removed, started = registry.outcome.events
    assert removed == ev.MemberRemoved(group="g", member_id="m1", reason="session expired")
    assert (started.generation, started.members) == (3, ["m2"])


def test_claims_are_no_members(registry):
    registry.create(registry.session(), f"{OWNERS}/0")
    assert registry.outcome.events == []


# --- watches


def test_a_watch_is_answered_once(registry):
    one, two = registry.session(), registry.session("b")
    number, response = registry.watch(one, 0)
    assert response is None
    registry.create(two, f"{IDS}/m2", now_ms=10)
    assert registry.answers()[number] == m.WatchResponse(expired=False, version=1)
    registry.create(two, f"{IDS}/m3", now_ms=20)
    assert number not in registry.answers()


def test_a_watch_of_an_old_version_is_answered_at_once(registry):
    one = registry.session()
    registry.create(one, f"{IDS}/m1")
    assert registry.watch(one, 5, version=0)[1] == m.WatchResponse(expired=False, version=1)
    assert registry.watch(one, 5, version=1)[1] is None


def test_a_watch_is_on_one_node(registry):
    one = registry.session()
    on_members, _ = registry.watch(one, 0)
    on_brokers, _ = registry.watch(one, 0, version=1, parent=BROKERS)
    on_topics, _ = registry.watch(one, 0, version=1, parent=TOPICS)
    registry.outcome = registry.servers.brokers_changed([1], now_ms=10)
    assert list(registry.answers()) == [on_brokers]
    registry.outcome = registry.servers.topics_changed({"t": 6}, now_ms=20)
    assert list(registry.answers()) == [on_topics]
    registry.create(one, f"{IDS}/m1", now_ms=30)
    assert on_members in registry.answers()


def test_brokers_and_topics_that_are_the_same_are_no_change(registry):
    registry.watch(registry.session(), 0, version=1, parent=BROKERS)
    assert registry.servers.brokers_changed([0, 1], now_ms=10).replies == []
    assert registry.servers.topics_changed({"t": 4}, now_ms=10).replies == []


def test_the_watches_of_a_session_end_with_it(registry):
    one, two = registry.session(), registry.session("b", timeout_ms=60_000)
    number, _ = registry.watch(one, 0)
    registry.deadline(6_000)
    assert registry.outcome.superseded == [number]
    registry.create(two, f"{IDS}/m2", now_ms=7_000)
    assert number not in registry.answers()


def test_the_expiry_of_a_session_is_noticed(registry):
    one, two = registry.session(), registry.session("b", timeout_ms=60_000)
    registry.create(one, f"{IDS}/m1")
    number, _ = registry.watch(two, 0, version=1)
    registry.deadline(6_000)
    assert registry.answers()[number] == m.WatchResponse(expired=False, version=2)


# --- late views


def test_a_late_view_shows_what_was_true_before(registry):
    one = registry.session(timeout_ms=60_000)
    registry.servers.lag_view("late", 10_000)
    registry.create(one, f"{IDS}/m1", now_ms=30_000)
    assert registry.names(IDS, 39_999, "late") == []
    assert registry.names(IDS, 30_000, "a") == ["m1"]
    assert registry.names(IDS, 40_000, "late") == ["m1"]


def test_a_late_notice_comes_when_its_view_has_the_change(registry):
    other, late = registry.session(timeout_ms=60_000), registry.session("late", timeout_ms=60_000)
    registry.servers.lag_view("late", 10_000)
    number, _ = registry.watch(late, 29_000)
    registry.create(other, f"{IDS}/m1", now_ms=30_000)
    assert number not in registry.answers()
    assert registry.servers.next_deadline_ms({}) == 40_000
    registry.deadline(39_999)
    assert registry.answers() == {}
    registry.deadline(40_000)
    assert registry.answers() == {number: m.WatchResponse(expired=False, version=1)}


def test_a_view_that_is_not_late_any_longer_is_the_present_one(registry):
    one = registry.session(timeout_ms=60_000)
    registry.servers.lag_view("late", 10_000)
    registry.create(one, f"{IDS}/m1", now_ms=30_000)
    registry.servers.lag_view("late", 0)
    assert registry.names(IDS, 30_001, "late") == ["m1"]


def test_a_view_that_becomes_late_shows_the_past_that_was_not_late(registry):
    one = registry.session(timeout_ms=60_000)
    for number, now_ms in enumerate((1_000, 20_000, 25_000, 28_000)):
        registry.create(one, f"{IDS}/m{number}", now_ms=now_ms)
    registry.servers.lag_view("late", 10_000)
    assert registry.names(IDS, 29_000, "late") == ["m0"]


def test_a_late_notice_is_of_the_first_change_after_the_version(registry):
    other, late = registry.session(timeout_ms=60_000), registry.session("late", timeout_ms=60_000)
    registry.servers.lag_view("late", 10_000)
    for number in range(4):
        registry.create(other, f"{IDS}/m{number}", now_ms=1_000 * (number + 1))
    number, response = registry.watch(late, 12_500, version=2)
    assert response is None
    assert registry.servers.next_deadline_ms({}) == 13_000
    registry.deadline(13_000)
    assert registry.answers() == {number: m.WatchResponse(expired=False, version=3)}


def test_claims_are_decided_at_once_whatever_the_view(registry):
    """A server with a late view passes writes on: no two views own one partition."""
    one, late = registry.session(), registry.session("late")
    registry.servers.lag_view("late", 10_000)
    registry.create(one, f"{OWNERS}/0", now_ms=3_000)
    assert registry.names(OWNERS, 3_000, "late") == []
    assert registry.create(late, f"{OWNERS}/0", now_ms=3_000).existing == (f"{OWNERS}/0",)


def test_views_of_different_consumers_are_late_by_different_times(registry):
    one = registry.session(timeout_ms=60_000)
    registry.servers.lag_view("late", 10_000)
    registry.servers.lag_view("later", 20_000)
    for number in range(3):
        registry.create(one, f"{IDS}/m{number}", now_ms=10_000 * (number + 1))
    assert registry.names(IDS, 30_000, "a") == ["m0", "m1", "m2"]
    assert registry.names(IDS, 30_000, "late") == ["m0", "m1"]
    assert registry.names(IDS, 30_000, "later") == ["m0"]


# --- deadlines


def test_the_next_deadline_is_that_of_the_first_session(registry):
    assert registry.servers.next_deadline_ms({}) is None
    one, two = registry.session("a", timeout_ms=9_000), registry.session("b", timeout_ms=6_000)
    assert registry.servers.next_deadline_ms({}) == 6_000
    registry.create(one, f"{IDS}/m1")
    registry.create(two, f"{IDS}/m2")
    others = registry.servers.next_deadline_ms
    assert others({"m2": 5_999}) == 9_000
    assert others({"m1": 8_999, "m2": 5_999}) is None
    assert others({"m1": 8_999, "m2": 6_000}) == 6_000  # the ping comes too late


def test_a_session_without_a_member_is_continued_by_nobody(registry):
    registry.session("a")
    assert registry.servers.next_deadline_ms({"a": 0, "m1": 0}) == 6_000


def test_the_answer_to_a_ping_is_known_without_one(registry):
    one = registry.session()
    ping = m.PingRequest(session=one, parents=(IDS, BROKERS))
    known = registry.servers.answer(ping, node=2, client="a", now_ms=5_000)
    assert known == m.PingResponse(expired=False, versions={IDS: 0, BROKERS: 1})
    assert registry.servers.next_deadline_ms({}) == 6_000
    assert registry.send(ping, 5_000) == known
    assert registry.servers.answer(m.PingRequest(session=9), node=2, client="a", now_ms=0).expired
    assert registry.servers.answer(m.SessionRequest(timeout_ms=1), node=2, client="a", now_ms=0) is None


def test_the_answer_to_a_ping_is_unknown_while_a_view_is_late(registry):
    registry.servers.lag_view("a", 10_000)
    one = registry.session("b", timeout_ms=60_000)
    registry.create(one, f"{IDS}/m1", now_ms=20_000)
    ping = m.PingRequest(session=one, parents=(IDS,))
    for now_ms, is_known in ((29_999, False), (30_000, True)):
        answer = registry.servers.answer(ping, node=2, client="a", now_ms=now_ms)
        assert (answer is not None) is is_known
