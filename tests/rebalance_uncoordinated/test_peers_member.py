"""The member of a group without a coordinator: heartbeats, looks and shares (PROTOCOL 11.7)."""

from functools import partial

import pytest

from assignors.average import AverageAssignor
from coordinator_core.protocol import messages as m
from rebalance_uncoordinated.events import Notified, Rebalanced
from rebalance_uncoordinated.peers import messages as p
from rebalance_uncoordinated.peers.member import PeersMember
from rebalance_uncoordinated.settings import PeersSettings
from tests.coordinator_core.client.bench import Bench
from tests.coordinator_core.client.doubles import DealingAssignor, Source

BROKERS = [0, 1, 2, 3]


class Consumer(Bench):
    """The member ``c`` on the bench. Brokers answer at once, and list ``listed`` for every topic."""

    def __init__(self, **given):
        member = partial(PeersMember, PeersSettings())
        super().__init__(**{"member": member, "assignors": [AverageAssignor()], "source": Source(), **given})
        self.listed, self.revision = ("a", "b", "c"), 3
        self.responders |= {
            p.MemberHeartbeatRequest: lambda _: p.MemberHeartbeatResponse(False, self.revision),
            p.MemberListRequest: lambda _: p.MemberListResponse(self.listed, self.revision, self.revision),
        }

    def sent_since(self, count, kind):
        """The nodes to which requests of a kind were sent, without the first ones."""
        return [send.node for send in self.log[count:] if type(send.request) is kind]

    def change(self, *listed):
        """Let brokers list other members from now on."""
        self.listed, self.revision = listed, self.revision + 1

    def notify(self):
        """Let a broker tell of its list."""
        self.respond(p.MemberNoticeRequest, p.MemberNoticeResponse(self.revision))

    def owns(self):
        return [f"{topic}{number}" for topic, number in self.owned]


@pytest.fixture
def bench():
    bench = Consumer(topics={"t": 8, "u": 4})
    bench.subscribe("t")
    bench.polls()
    assert bench.owns() == ["t6", "t7"]
    return bench


def test_heartbeats_go_to_all_brokers_every_30_s(bench):
    assert sorted(bench.sent_since(0, p.MemberHeartbeatRequest)) == BROKERS
    for _ in range(2):
        count = len(bench.log)
        bench.sleep(29_999)
        assert bench.sent_since(count, p.MemberHeartbeatRequest) == []
        bench.sleep(1)
        assert sorted(bench.sent_since(count, p.MemberHeartbeatRequest)) == BROKERS


def test_a_member_looks_every_20_s(bench):
    bench.change("b", "c")
    bench.sleep(19_999)
    assert bench.owns() == ["t6", "t7"]
    bench.sleep(1)
    assert bench.owns() == ["t4", "t5", "t6", "t7"]


def test_a_member_rests_after_metadata_that_are_the_same_and_looks_first_after_others():
    """The periodic messages of a member that does not rest are not left out."""
    bench = Consumer(topics={"t": 8, "u": 4}, metadata_max_age_ms=1_000)
    bench.subscribe("t")
    bench.polls()
    for count, rests in ((8, True), (9, False)):
        bench.topics, sent = {"t": count, "u": 4}, len(bench.log)
        bench.sleep(1_000)
        assert bench.sent_since(sent, m.MetadataRequest)
        assert (bench.client._member.heartbeats() is not None) is rests


def test_a_member_looks_when_a_broker_tells_of_a_change(bench):
    bench.change("a", "b", "c", "d")
    bench.notify()
    assert bench.owns() == ["t4", "t5"]
    assert [event.changed for event in bench.events_of(Rebalanced)] == [True, True]
    assert len(bench.events_of(Notified)) == 1


def test_a_rebalance_after_which_the_share_is_the_same_says_so(bench):
    bench.change("0", "c", "d")
    bench.notify()
    bench.change("c", "d", "a")
    bench.notify()
    assert bench.owns() == ["t3", "t4", "t5"]
    assert [event.changed for event in bench.events_of(Rebalanced)] == [True, True, False]


def test_each_topic_is_divided_by_a_list_of_its_own_from_a_broker_chosen_at_random(bench):
    bench.subscribe("t", "u")
    bench.polls()
    asked = []
    for _ in range(40):
        count = len(bench.log)
        bench.sleep(20_000)
        asked.append(bench.sent_since(count, p.MemberListRequest))
    assert {len(nodes) for nodes in asked} == {2}
    assert {node for nodes in asked for node in nodes} == set(BROKERS)
    assert len({tuple(nodes) for nodes in asked}) > len(BROKERS)


def test_topics_may_be_divided_by_lists_that_differ(bench):
    bench.subscribe("t", "u")
    del bench.responders[p.MemberListRequest]
    bench.sleep(20_000)
    first, second = bench.pending(p.MemberListRequest)
    bench.respond(first, p.MemberListResponse(("b", "c"), 4, 4))
    assert bench.owns() == ["t6", "t7"]
    bench.respond(second, p.MemberListResponse(("b", "c", "d", "e"), 5, 5))
    assert bench.owns() == ["t4", "t5", "t6", "t7", "u1"]


def test_a_topic_without_a_list_keeps_its_share(bench):
    bench.subscribe("t", "u")
    bench.polls()
    assert bench.owns() == ["t6", "t7", "u3"]
    bench.change("b", "c")
    del bench.responders[p.MemberListRequest]
    bench.sleep(20_000)
    first, second = bench.pending(p.MemberListRequest)
    bench.respond(first, p.MemberListResponse(bench.listed, 4, 4))
    bench.sleep(30_000)
    assert second.request_id in bench.open
    assert bench.owns() == ["t4", "t5", "t6", "t7", "u3"]


def test_a_notice_during_a_look_makes_the_member_look_again(bench):
    del bench.responders[p.MemberListRequest]
    bench.notify()
    (look,) = bench.pending(p.MemberListRequest)
    before = p.MemberListResponse(bench.listed, bench.revision, bench.revision)
    bench.change("b", "c")
    bench.notify()
    assert bench.pending(p.MemberListRequest) == [look]
    bench.respond(look, before)
    assert bench.owns() == ["t6", "t7"]
    bench.respond(p.MemberListRequest, p.MemberListResponse(bench.listed, bench.revision, bench.revision))
    assert bench.owns() == ["t4", "t5", "t6", "t7"]


def test_a_broker_that_came_back_is_asked_when_all_members_have_had_time_to_report():
    """At first it does not list the others."""
    topics = {f"t{number}": 4 for number in range(20)}
    bench = Consumer(topics=topics)
    bench.subscribe(*topics)
    bench.polls()
    bench.disconnect(2)
    count = len(bench.log)
    bench.sleep(29_000)
    assert 2 in bench.sent_since(count, p.MemberHeartbeatRequest)
    assert set(bench.sent_since(count, p.MemberListRequest)) == {0, 1, 3}
    count = len(bench.log)
    bench.sleep(40_000)
    assert set(bench.sent_since(count, p.MemberListRequest)) == set(BROKERS)


def test_the_assignor_gets_the_members_in_order_whatever_the_order_of_the_list():
    assignor = DealingAssignor()
    bench = Consumer(topics={"t": 8}, assignors=[assignor])
    bench.listed = ("b", "c", "a")
    bench.subscribe("t")
    bench.polls()
    assert [list(group) for _, group in assignor.seen] == [["a", "b", "c"]]


def test_members_are_sorted_whatever_the_order_of_the_list(bench):
    bench.change("c", "b", "a")
    bench.notify()
    assert bench.owns() == ["t6", "t7"]


def test_what_is_not_its_own_any_longer_is_committed_and_dropped_without_waiting(bench):
    bench.change("a", "c")
    bench.notify()
    bench.polls()
    assert bench.owns() == ["t4", "t5", "t6", "t7"]
    assert bench.requests(m.OffsetCommitRequest) == []
    bench.source.offsets |= dict.fromkeys(bench.owned, 43)
    bench.change("a", "b", "c")
    bench.notify()
    (commit,) = bench.requests(m.OffsetCommitRequest)
    assert [(o.partition, o.offset) for o in commit.offsets] == [(4, 43), (5, 43)]
    assert (commit.generation_id, commit.member_id) == (-1, "")
    assert bench.sent(m.OffsetCommitRequest)
    assert bench.owns() == ["t6", "t7"]


def test_a_newer_list_than_that_of_the_notice_replaces_a_notice_that_was_lost(bench):
    (before,) = {send.request.revision for send in bench.pending(p.MemberNoticeRequest)}
    count = len(bench.log)
    bench.change("b", "c")
    bench.sleep(20_000)
    assert [
        send.request.revision for send in bench.log[count:] if type(send.request) is p.MemberNoticeRequest
    ] == [before + 1]


def test_a_member_without_topics_asks_once_to_know_who_is_there():
    bench = Consumer(topics={"t": 8})
    bench.call("subscribe_pattern", "x.*")
    bench.polls()
    assert len(bench.requests(p.MemberListRequest)) == 1
    assert (bench.owns(), bench.client.generation.number) == ([], bench.revision)
    bench.sleep(20_000)
    assert len(bench.requests(p.MemberListRequest)) == 2
