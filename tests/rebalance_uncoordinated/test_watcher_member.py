"""The member of a group in a registry: sessions, notices, rebalances and claims (PROTOCOL 11.1)."""

from functools import partial

import pytest

from assignors.range import RangeAssignor
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.events import Assigned, Lost
from rebalance_uncoordinated.events import ClaimFailed, Notified, Rebalanced
from rebalance_uncoordinated.settings import WatcherSettings
from rebalance_uncoordinated.watcher import messages as r
from rebalance_uncoordinated.watcher.member import WatcherMember, WatcherState
from tests.coordinator_core.client.bench import Bench
from tests.coordinator_core.client.doubles import DealingAssignor, Source

SERVERS = (10, 11, 12)
IDS, OWNERS = "/consumers/g/ids", "/consumers/g/owners"
RESTING, BACKING_OFF = WatcherState.RESTING, WatcherState.BACKING_OFF


class Consumer(Bench):
    """A member on the bench. The registry lists it after ``others``, and ``held`` are claims of others."""

    def __init__(self, *, owner_nodes=True, **given):
        member = partial(WatcherMember, WatcherSettings(owner_nodes=owner_nodes), SERVERS)
        made = {"assignors": [RangeAssignor()], "source": Source(), "topics": {"t": 6, "u": 3}}
        super().__init__(member=member, **{**made, **given})
        self.others, self.versions, self.held, self.registered = (
            {},
            {IDS: 1, r.BROKERS: 1, r.TOPICS: 1},
            (),
            {},
        )
        self.counts = {"t": "6", "u": "3"}
        self.responders |= {
            r.SessionRequest: lambda _: r.SessionResponse(1),
            r.CreateRequest: self.create,
            r.DeleteRequest: lambda _: r.DeleteResponse(expired=False),
            r.ReadRequest: self.read,
            r.PingRequest: lambda request: r.PingResponse(expired=False, versions=self.seen(request)),
            m.OffsetCommitRequest: self.success,
        }

    def create(self, request):
        for path, data in request.nodes.items():
            if path.startswith(IDS):
                self.registered = {path.removeprefix(f"{IDS}/"): data}
        return r.CreateResponse(expired=False, existing=tuple(p for p in request.nodes if p in self.held))

    def read(self, request):
        children = {
            IDS: {**self.others, **self.registered},
            r.BROKERS: dict.fromkeys("0123", ""),
            r.TOPICS: self.counts,
        }
        listed = {parent: children[parent] for parent in request.parents}
        return r.ReadResponse(expired=False, children=listed, versions=self.seen(request))

    def begin_session(self, number):
        """Answer with a session in which the registry is read again."""
        self.responders[r.ReadRequest] = self.read
        return r.SessionResponse(number)

    def seen(self, request):
        return {parent: self.versions[parent] for parent in request.parents}

    def hold(self, *partitions):
        """Let others hold claims from now on."""
        self.held = tuple(f"{OWNERS}/{partition}" for partition in partitions)

    def notify(self, parent=IDS):
        """Let a watch be answered."""
        self.versions[parent] += 1
        (send,) = (one for one in self.pending(r.WatchRequest) if one.request.parent == parent)
        self.respond(send, r.WatchResponse(expired=False, version=self.versions[parent]))

    def begin(self, *topics):
        self.subscribe(*topics)
        self.polls()
        assert self.state is RESTING
        return self

    def kinds_since(self, count):
        """The kinds of the requests after the first ones."""
        return [type(send.request).__name__.removesuffix("Request") for send in self.log[count:]]

    def owns(self):
        return [f"{topic}{number}" for topic, number in self.owned]

    def claims(self):
        """The owner nodes in the last claim."""
        return [path.removeprefix(f"{OWNERS}/") for path in self.requests(r.CreateRequest)[-1].nodes]

    @property
    def state(self):
        return self.client._member.state


@pytest.fixture
def bench():
    """A member that owns t3 t4 t5."""
    bench = Consumer()
    bench.others = {"a": "t"}
    bench.begin("t")
    assert bench.owns() == ["t3", "t4", "t5"]
    return bench


# --- the session


def test_a_session_of_six_seconds_is_continued_every_two(bench):
    assert [request.timeout_ms for request in bench.requests(r.SessionRequest)] == [6_000]
    bench.sleep(10_000)
    assert len(bench.requests(r.PingRequest)) == 5


def test_members_are_at_different_servers_and_stay_there():
    nodes = set()
    for seed in range(12):
        bench = Consumer(seed=seed).begin("t")
        bench.notify()
        used = {send.node for send in bench.log if type(send.request).__module__ == r.__name__}
        assert len(used) == 1
        nodes |= used
    assert nodes == set(SERVERS)


def test_a_member_whose_session_has_expired_owns_nothing(bench):
    del bench.responders[r.SessionRequest]
    bench.responders[r.PingRequest] = lambda _: r.PingResponse(expired=True, versions={})
    bench.sleep(2_000)
    assert (bench.state, bench.owns()) == (WatcherState.CONNECTING, [])
    assert [event.partitions for event in bench.events_of(Lost)] == [{"t": [3, 4, 5]}]


def test_the_answer_to_a_ping_of_an_earlier_session_is_ignored(bench):
    del bench.responders[r.PingRequest]
    bench.sleep(2_000)
    (ping,) = bench.pending(r.PingRequest)
    bench.responders[r.ReadRequest] = lambda _: r.ReadResponse(expired=True, children={}, versions={})
    bench.responders[r.SessionRequest] = lambda _: bench.begin_session(2)
    bench.notify()
    assert bench.owns() == ["t3", "t4", "t5"]
    bench.respond(ping, r.PingResponse(expired=True, versions={}))
    assert bench.events_of(Lost) == []


def test_the_answer_to_a_request_of_an_earlier_session_is_ignored(bench):
    del bench.responders[r.ReadRequest]
    bench.notify()
    (before,) = bench.pending(r.ReadRequest)
    bench.responders[r.PingRequest] = lambda _: r.PingResponse(expired=True, versions={})
    bench.sleep(2_000)
    count = len(bench.log)
    bench.respond(before, bench.read(before.request))
    assert bench.kinds_since(count) == []
    bench.respond(r.ReadRequest, bench.read(before.request))
    assert bench.owns() == ["t3", "t4", "t5"]


# --- notices


@pytest.mark.parametrize("parent", [IDS, r.BROKERS, r.TOPICS])
def test_a_change_of_members_brokers_or_topics_makes_the_member_rebalance(bench, parent):
    count = len(bench.log)
    bench.notify(parent)
    assert [event.cause for event in bench.events_of(Notified)] == [parent]
    assert bench.kinds_since(count)[-4:] == ["Delete", "Read", "Watch", "Create"]
    assert sorted(send.request.parent for send in bench.pending(r.WatchRequest)) == sorted(bench.versions)


def test_a_rebalance_stops_the_work_commits_releases_reads_and_claims_in_that_order(bench):
    del bench.responders[m.OffsetCommitRequest]
    bench.source.offsets |= dict.fromkeys(bench.owned, 42)
    bench.others = {}
    count = len(bench.log)
    bench.notify()
    assert bench.source.calls[-1][0] == "stopped"
    assert bench.kinds_since(count) == ["OffsetCommit"]
    assert bench.owns() == ["t3", "t4", "t5"]
    bench.accept(m.OffsetCommitRequest)
    assert bench.kinds_since(count) == ["OffsetCommit", "Delete", "Read", "Watch", "Create"]
    assert bench.requests(r.DeleteRequest)[-1].nodes == tuple(f"{OWNERS}/t/{n}" for n in (3, 4, 5))
    assert bench.owns() == ["t0", "t1", "t2", "t3", "t4", "t5"]


def test_a_rebalance_after_which_the_share_is_the_same_says_so(bench):
    bench.notify(r.BROKERS)
    bench.others = {}
    bench.notify()
    assert [event.changed for event in bench.events_of(Rebalanced)] == [True, False, True]


def test_the_assignor_gets_the_members_in_order_whatever_the_order_of_the_nodes():
    assignor = DealingAssignor()
    bench = Consumer(assignors=[assignor])
    bench.others = {"z": "t", "a": "t"}
    bench.begin("t")
    (group,) = (list(group) for _, group in assignor.seen)
    assert group == sorted(group)
    assert len(group) == 3


def test_the_partitions_are_those_that_the_registry_has(bench):
    bench.counts = {"t": "10", "u": "3"}
    bench.notify(r.TOPICS)
    assert bench.owns() == ["t5", "t6", "t7", "t8", "t9"]


def test_a_notice_during_a_rebalance_begins_another_one_after_it(bench):
    del bench.responders[r.CreateRequest]
    bench.notify()
    bench.others = {}
    bench.notify()
    bench.respond(r.CreateRequest, r.CreateResponse(expired=False))
    bench.respond(r.CreateRequest, r.CreateResponse(expired=False))
    assert bench.owns() == ["t0", "t1", "t2", "t3", "t4", "t5"]


def test_a_member_that_closes_keeps_its_share_until_it_has_left(bench):
    """Its last commit is under way when the registry tells of a change."""
    del bench.responders[m.OffsetCommitRequest]
    bench.source.offsets |= dict.fromkeys(bench.owned, 42)
    count = len(bench.log)
    bench.close()
    bench.others = {}
    bench.notify()
    assert bench.kinds_since(count) == ["OffsetCommit"]
    bench.accept(m.OffsetCommitRequest)
    assert (bench.owns(), bench.kinds_since(count)[1:]) == ([], ["CloseSession"])


def test_a_ping_finds_a_notice_that_was_lost(bench):
    bench.versions[IDS] += 1
    bench.others = {}
    bench.sleep(2_000)
    assert bench.owns() == ["t0", "t1", "t2", "t3", "t4", "t5"]
    assert len(bench.events_of(Notified)) == 1


# --- claims


def test_a_share_is_claimed_whole(bench):
    assert bench.claims() == ["t/3", "t/4", "t/5"]


def test_a_node_that_exists_fails_the_attempt_and_the_next_is_2_s_later(bench):
    bench.hold("t/4")
    bench.notify()
    assert (bench.state, bench.owns()) == (BACKING_OFF, [])
    bench.hold()
    bench.sleep(1_999)
    assert bench.owns() == []
    bench.sleep(1)
    assert bench.owns() == ["t3", "t4", "t5"]
    assert [event.held for event in bench.events_of(ClaimFailed)] == [{"t": [4]}]


def test_after_four_retries_a_member_owns_nothing_until_the_next_notice(bench):
    bench.hold("t/3")
    bench.notify()
    bench.sleep(60_000)
    assert [event.retry for event in bench.events_of(ClaimFailed)] == [1, 2, 3, 4, 0]
    assert (bench.state, bench.owns()) == (WatcherState.WITHOUT_SHARE, [])
    bench.notify()
    bench.sleep(60_000)
    assert [event.retry for event in bench.events_of(ClaimFailed)] == [1, 2, 3, 4, 0] * 2
    bench.hold()
    bench.sleep(60_000)
    assert bench.owns() == []
    bench.notify()
    assert bench.owns() == ["t3", "t4", "t5"]


def test_without_owner_nodes_nothing_is_claimed():
    bench = Consumer(owner_nodes=False)
    bench.hold("t/0")
    bench.begin("t")
    assert bench.owns() == ["t0", "t1", "t2", "t3", "t4", "t5"]
    assert [list(request.nodes) for request in bench.requests(r.CreateRequest)] == [
        [f"{IDS}/{name}" for name in bench.registered]
    ]


# --- subscriptions


def test_a_member_of_several_topics_claims_its_share_of_each():
    bench = Consumer()
    bench.others = {"a": "t", "b": "t,u"}
    bench.begin("t", "u")
    assert bench.claims() == ["t/4", "t/5", "u/2"]


def test_a_member_without_topics_registers_once_and_rests():
    bench = Consumer()
    bench.others = {"a": "t"}
    bench.call("subscribe_pattern", "x.*")
    bench.polls()
    assert (bench.state, bench.owns()) == (RESTING, [])
    assert list(bench.registered.values()) == [""]
    assert len(bench.requests(r.CreateRequest)) == 1


@pytest.mark.parametrize("owner_nodes", [True, False])
def test_a_member_knows_its_own_subscription_where_the_registry_shows_an_earlier_one(owner_nodes):
    bench = Consumer(owner_nodes=owner_nodes)
    bench.others = {"a": "t,u"}
    bench.begin("t")
    bench.responders[r.CreateRequest] = lambda _: r.CreateResponse(expired=False, existing=())
    bench.subscribe("u")
    bench.polls()
    assert set(bench.registered.values()) == {"t"}
    assert bench.owns() == ["u2"]


def test_a_member_does_not_take_topics_that_it_has_left_since_its_claim():
    bench = Consumer()
    del bench.responders[r.CreateRequest]
    bench.subscribe("t", "u")
    bench.polls()
    bench.respond(bench.pending(r.CreateRequest)[0], bench.create(bench.requests(r.CreateRequest)[-1]))
    assert bench.claims() == ["t/0", "t/1", "t/2", "t/3", "t/4", "t/5", "u/0", "u/1", "u/2"]
    bench.subscribe("u")
    bench.responders[r.CreateRequest] = bench.create
    bench.respond(bench.pending(r.CreateRequest)[0], bench.create(bench.requests(r.CreateRequest)[-1]))
    assert bench.owns() == ["u0", "u1", "u2"]
    assert all(set(event.owned) <= {"u"} for event in bench.events_of(Assigned))
