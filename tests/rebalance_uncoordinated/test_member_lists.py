"""The lists of brokers as a state machine: heartbeats, silence, closed connections, notices, late views."""

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.simulation.world.servers import Site
from rebalance_uncoordinated.peers import messages as m
from rebalance_uncoordinated.peers.member_lists import MemberLists
from rebalance_uncoordinated.settings import PeersSettings

SILENCE_MS = 120_000


class Cluster:
    """The lists of two brokers. A consumer is its own member. ``outcome`` is the last one."""

    def __init__(self):
        self.servers = MemberLists(Site(PeersSettings(), "g", "average", {"t": 8}, range(2), lambda _: None))
        self.requests = 0
        self.outcome = None

    def send(self, request, node, client, now_ms):
        self.requests += 1
        self.outcome = self.servers.receive(self.requests, request, node=node, client=client, now_ms=now_ms)
        return self.answers().get(self.requests)

    def answers(self):
        return {reply.request_id: reply.response for reply in self.outcome.replies}

    def beat(self, client, node=0, now_ms=0):
        return self.send(m.MemberHeartbeatRequest(group_id="g", member_id=client), node, client, now_ms)

    def listed(self, node=0, now_ms=0, client="reader"):
        return self.send(m.MemberListRequest(group_id="g"), node, client, now_ms)

    def notice(self, client, revision, node=0, now_ms=0):
        """Return the id of a request for a notice, and its response if there is one already."""
        response = self.send(m.MemberNoticeRequest(group_id="g", revision=revision), node, client, now_ms)
        return self.requests, response

    def gone(self, client, node=0, now_ms=0):
        return self.send(m.MemberGoneRequest(group_id="g", member_id=client), node, client, now_ms)

    def closed(self, client, node=0, now_ms=0):
        self.outcome = self.servers.closed(node, client, now_ms=now_ms)

    def deadline(self, now_ms):
        self.outcome = self.servers.on_deadline(now_ms=now_ms)

    def removed(self):
        return [(e.member_id, e.reason) for e in self.outcome.events if isinstance(e, ev.MemberRemoved)]


@pytest.fixture
def cluster():
    return Cluster()


def test_brokers_have_the_lists(cluster):
    assert len(cluster.servers.nodes) == 0


# --- heartbeats


def test_the_first_heartbeat_puts_a_member_on_the_list_of_a_broker(cluster):
    assert cluster.beat("a") == m.MemberHeartbeatResponse(is_new=True, revision=1)
    assert cluster.beat("a", now_ms=30_000) == m.MemberHeartbeatResponse(is_new=False, revision=1)
    assert cluster.listed().members == ("a",)
    assert cluster.listed(node=1).members == ()


def test_a_member_is_new_to_the_group_once(cluster):
    cluster.beat("a")
    added, started = cluster.outcome.events
    assert added == ev.MemberAdded(group="g", member_id="a")
    assert (started.generation, started.protocol, started.members) == (1, "average", ["a"])
    cluster.beat("a", node=1)
    assert cluster.outcome.events == []
    cluster.beat("b")
    assert cluster.outcome.events[1].generation == 2


def test_a_list_has_the_version_of_the_group_if_it_has_all_members(cluster):
    cluster.beat("a")
    cluster.beat("b")
    cluster.beat("a", node=1)
    assert [cluster.listed(node=node).version for node in (0, 1)] == [2, 0]
    cluster.beat("b", node=1)
    assert [cluster.listed(node=node).version for node in (0, 1)] == [2, 2]
    assert [cluster.listed(node=node).revision for node in (0, 1)] == [2, 2]


# --- the end of a member


def test_a_silent_member_is_dropped_after_120_s(cluster):
    cluster.beat("a")
    cluster.beat("b", now_ms=30_000)
    assert cluster.servers.next_deadline_ms({}) == SILENCE_MS
    cluster.deadline(SILENCE_MS - 1)
    assert cluster.listed(now_ms=SILENCE_MS).members == ("a", "b")
    cluster.deadline(SILENCE_MS)
    assert cluster.removed() == [("a", "silent for 120 s")]
    assert cluster.listed(now_ms=SILENCE_MS).members == ("b",)
    assert cluster.servers.next_deadline_ms({}) == 30_000 + SILENCE_MS


def test_a_heartbeat_ends_the_silence(cluster):
    cluster.beat("a")
    cluster.beat("a", now_ms=119_999)
    cluster.deadline(SILENCE_MS)
    assert cluster.listed(now_ms=SILENCE_MS).members == ("a",)
    assert cluster.servers.next_deadline_ms({}) == 119_999 + SILENCE_MS


def test_a_closed_connection_drops_a_member_at_once(cluster):
    for node in (0, 1):
        cluster.beat("a", node=node)
        cluster.beat("b", node=node)
    cluster.closed("a", node=0, now_ms=10)
    assert cluster.removed() == []
    assert [cluster.listed(node, now_ms=10).members for node in (0, 1)] == [("b",), ("a", "b")]
    cluster.closed("a", node=1, now_ms=20)
    assert cluster.removed() == [("a", "its connection was closed")]
    assert cluster.outcome.events[-1].members == ["b"]


def test_a_member_that_leaves_is_dropped_by_each_broker(cluster):
    cluster.beat("a")
    cluster.beat("a", node=1)
    assert cluster.gone("a") == m.MemberGoneResponse()
    assert cluster.removed() == []
    cluster.gone("a", node=1)
    assert cluster.outcome.events == [ev.MemberRemoved(group="g", member_id="a", reason="left")]
    assert cluster.gone("a", node=1) == m.MemberGoneResponse()
    assert cluster.outcome.events == []


def test_a_broker_that_goes_away_forgets_its_list(cluster):
    cluster.beat("a")
    cluster.beat("a", node=1)
    cluster.beat("b", node=1)
    outcome = cluster.servers.brokers_changed([0], now_ms=10)
    assert [type(event) for event in outcome.events] == [ev.MemberRemoved, ev.GenerationStarted]
    assert outcome.events[0].member_id == "b"
    assert cluster.listed(node=1, now_ms=10).members == ()
    assert cluster.listed(node=0, now_ms=10).members == ("a",)
    assert cluster.beat("a", node=1, now_ms=20).is_new


# --- notices


def test_a_notice_is_answered_once_when_the_list_changes(cluster):
    revision = cluster.beat("a").revision
    number, response = cluster.notice("a", revision)
    assert response is None
    cluster.beat("b", now_ms=10)
    assert cluster.answers()[number] == m.MemberNoticeResponse(revision=2)
    cluster.beat("c", now_ms=20)
    assert number not in cluster.answers()


def test_a_notice_for_an_old_revision_is_answered_at_once(cluster):
    cluster.beat("a")
    cluster.beat("b")
    assert cluster.notice("a", 1)[1] == m.MemberNoticeResponse(revision=2)


def test_a_change_of_another_list_is_no_notice(cluster):
    number, _ = cluster.notice("a", cluster.beat("a").revision)
    cluster.beat("b", node=1)
    assert number not in cluster.answers()


def test_a_newer_request_for_a_notice_takes_the_place_of_the_last_one(cluster):
    revision = cluster.beat("a").revision
    first, _ = cluster.notice("a", revision)
    second, _ = cluster.notice("a", revision)
    assert cluster.outcome.superseded == [first]
    cluster.beat("b")
    assert {first, second} & set(cluster.answers()) == {second}


def test_the_notice_of_a_member_ends_with_it(cluster):
    number, _ = cluster.notice("a", cluster.beat("a").revision)
    cluster.closed("a", now_ms=10)
    assert cluster.outcome.superseded == [number]
    assert cluster.outcome.replies == []


# --- late views


def test_a_late_view_shows_the_list_as_it_was(cluster):
    cluster.servers.lag_view("late", 10_000)
    cluster.beat("a", now_ms=1_000)
    cluster.beat("b", now_ms=30_000)
    assert cluster.listed(now_ms=39_999, client="late").members == ("a",)
    assert cluster.listed(now_ms=39_999).members == ("a", "b")
    late = cluster.listed(now_ms=40_000, client="late")
    assert (late.members, late.revision, late.version) == (("a", "b"), 2, 2)


def test_a_late_notice_comes_when_its_view_has_the_change(cluster):
    cluster.beat("late")
    cluster.servers.lag_view("late", 10_000)
    number, _ = cluster.notice("late", 1, now_ms=29_000)
    for second in (30, 35):
        cluster.beat(f"b{second}", now_ms=second * 1_000)
        assert number not in cluster.answers()
    assert cluster.servers.next_deadline_ms({}) == 40_000
    cluster.deadline(40_000)
    assert cluster.answers() == {number: m.MemberNoticeResponse(revision=2)}


def test_a_view_that_is_not_late_any_longer_is_the_present_one(cluster):
    cluster.servers.lag_view("late", 10_000)
    cluster.beat("a", now_ms=30_000)
    cluster.servers.lag_view("late", 0)
    assert cluster.listed(now_ms=30_000, client="late").members == ("a",)


def test_the_version_of_a_late_view_is_that_of_its_members(cluster):
    cluster.servers.lag_view("late", 10_000)
    cluster.beat("a", now_ms=1_000)
    cluster.beat("a", node=1, now_ms=1_000)
    cluster.beat("b", now_ms=30_000)
    assert [cluster.listed(node, 39_000, "late").version for node in (0, 1)] == [1, 1]
    assert [cluster.listed(node, 40_000, "late").version for node in (0, 1)] == [2, 1]


# --- deadlines


def test_deadlines_without_some_consumers(cluster):
    assert cluster.servers.next_deadline_ms({}) is None
    cluster.beat("a", now_ms=1_000)
    cluster.beat("b", now_ms=2_000)
    others = cluster.servers.next_deadline_ms
    assert others({"a": SILENCE_MS}) == 2_000 + SILENCE_MS
    assert others({"a": SILENCE_MS, "b": SILENCE_MS}) is None
    assert others({"a": 1_000 + SILENCE_MS, "b": SILENCE_MS}) == 1_000 + SILENCE_MS  # it comes too late


def test_answers_are_known_without_a_request(cluster):
    cluster.beat("a", now_ms=1_000)
    beat, look = m.MemberHeartbeatRequest(group_id="g", member_id="a"), m.MemberListRequest(group_id="g")
    answer = cluster.servers.answer
    known = answer(beat, node=0, client="a", now_ms=9_000)
    assert known == m.MemberHeartbeatResponse(is_new=False, revision=1)
    assert answer(beat, node=1, client="a", now_ms=9_000).is_new
    assert answer(look, node=0, client="a", now_ms=9_000) == cluster.listed(now_ms=9_000)
    assert cluster.servers.next_deadline_ms({}) == 1_000 + SILENCE_MS
    assert answer(m.MemberGoneRequest(group_id="g", member_id="a"), node=0, client="a", now_ms=0) is None


def test_answers_are_unknown_while_a_view_is_late(cluster):
    cluster.servers.lag_view("late", 10_000)
    cluster.beat("a", now_ms=20_000)
    look = m.MemberListRequest(group_id="g")
    for now_ms, is_known in ((29_999, False), (30_000, True)):
        answer = cluster.servers.answer(look, node=0, client="late", now_ms=now_ms)
        assert (answer is not None) is is_known
