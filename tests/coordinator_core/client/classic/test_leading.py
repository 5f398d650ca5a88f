"""The leader: the assignments that it computes, and the topics that it watches."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.core import OURS, Library
from coordinator_core.model import Subscription
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import AssignmentComputed
from tests.coordinator_core.client.bench import T0, T1, T2, T3, U0, U1, Bench, DealingAssignor, cooperative

ECHOING = Library(echoes_user_data=True)
BOTH = {"m1": ["t"], "m2": ["t", "u"]}


def test_the_leader_runs_the_assignor_over_all_members_and_syncs_with_the_result(bench):
    """Given a leader that does not know every topic of the group, then it requests their metadata first, and
    then syncs with an assignment for each member. PROTOCOL 9.6."""
    bench.subscribe("t")
    bench.join_as_leader(BOTH | {"m3": ["u"]})
    assert bench.requests(m.MetadataRequest)[-1].topics == ("t", "u")
    assert bench.sent_assignments() == {"m1": [T0, T2], "m2": [T1, T3, U0], "m3": [U1]}
    assert bench.client.is_leader


def test_a_leader_that_knows_all_topics_assigns_at_once(bench):
    """PROTOCOL 9.6."""
    bench.subscribe("t")
    bench.join_as_leader({"m1": ["t"], "m2": ["t"]})
    assert bench.sent_assignments() == {"m1": [T0, T2], "m2": [T1, T3]}
    (computed,) = bench.events_of(AssignmentComputed)
    assert (computed.generation, computed.assignor) == (1, "dealing")
    assert computed.members == {"m1": ["t"], "m2": ["t"]}
    sync = bench.sent(m.SyncGroupRequest).request
    assert computed.payload_bytes == sum(len(entry.assignment) for entry in sync.assignments)


def test_the_leader_waits_for_metadata_and_sends_heartbeats(bench):
    """Given a leader whose metadata is late and fails once, then it syncs when it has it. PROTOCOL 9.6,
    9.9."""
    bench.subscribe("t")
    bench.polls()
    del bench.responders[m.MetadataRequest]
    bench.respond_to(m.HeartbeatRequest)
    bench.join_as_leader({"m1": ["t"], "m2": ["u"]})
    bench.disconnect(bench.sent(m.MetadataRequest).node)
    bench.sleep(9_000)
    assert bench.requests(m.SyncGroupRequest) == []
    assert bench.requests(m.HeartbeatRequest)
    bench.respond(m.MetadataRequest, bench.metadata(bench.sent(m.MetadataRequest).request))
    assert bench.sent_assignments() == {"m1": [T0, T1, T2, T3], "m2": [U0, U1]}


def test_a_leader_that_lost_its_generation_does_not_assign(bench):
    """Given a leader that waits for metadata, when a heartbeat reports that its member is unknown, then the
    metadata cause no sync but another join. PROTOCOL 9.9, C-49."""
    bench.subscribe("t")
    bench.polls()
    del bench.responders[m.MetadataRequest]
    bench.join_as_leader({"m1": ["t"], "m2": ["u"]})
    bench.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    bench.respond(m.MetadataRequest, bench.metadata(bench.sent(m.MetadataRequest).request))
    assert bench.requests(m.SyncGroupRequest) == []
    bench.polls()
    assert bench.join().member_id == ""


def test_a_member_listed_twice_counts_once(bench):
    """PROTOCOL 9.6, C-68."""
    bench.subscribe("t")
    bench.polls()
    data = encode_subscription(bench.subscription())
    twice = (m.JoinGroupMember("m1", None, data),) * 2
    bench.respond_to_join(leader="m1", members=twice)
    assert bench.sent_assignments() == {"m1": [T0, T1, T2, T3]}


def test_a_member_with_an_invalid_subscription_is_named_and_gets_nothing(bench):
    """C-53."""
    bench.subscribe("t")
    bench.polls()
    mine = m.JoinGroupMember("m1", None, encode_subscription(bench.subscription()))
    bench.respond_to_join(leader="m1", members=(mine, m.JoinGroupMember("m2", None, b"\x00")))
    assert bench.sent_assignments() == {"m1": [T0, T1, T2, T3], "m2": []}
    (computed,) = bench.events_of(AssignmentComputed)
    assert computed.report["unreadable"]["m2"].startswith("subscription: 1 bytes")


@pytest.mark.parametrize("failure", ["raises", "lies"])
def test_an_assignor_that_fails_ends_the_leader(bench, failure):
    """Given an assignor that raises, or assigns an unknown partition, then the error names it. PROTOCOL
    9.6."""

    def assign(cluster, group):
        if failure == "raises":
            raise ValueError("broken")
        return {"m1": [("t", 9)]}

    bench.assignors[0].assign = assign
    bench.subscribe("t")
    bench.join_as_leader()
    assert bench.client.failure.startswith("assignor 'dealing'")
    assert bench.requests(m.SyncGroupRequest) == []


def test_user_data_of_another_assignor_does_not_stop_the_leader(bench):
    """Given members with user data of another assignor, then the leader assigns. C-68."""
    bench.subscribe("t")
    bench.polls()
    joined = encode_subscription(bench.subscription())
    odd = encode_subscription(type(bench.subscription())(("t",), user_data=b"\xff\x00odd"))
    members = (m.JoinGroupMember("m1", None, joined), m.JoinGroupMember("m2", None, odd))
    bench.respond_to_join(leader="m1", members=members)
    assert sorted(bench.sent_assignments()) == ["m1", "m2"]


@pytest.mark.parametrize(("library", "sent"), [(OURS, {}), (ECHOING, {"m2": b"odd"})])
def test_a_leader_may_put_the_user_data_of_subscriptions_into_the_assignments(library, sent):
    """As librdkafka's leader does."""
    bench = Bench(library=library)
    bench.subscribe("t")
    bench.polls()
    datas = {"m1": None, "m2": b"odd"}
    members = (
        m.JoinGroupMember(name, None, encode_subscription(Subscription(("t",), user_data=data)))
        for name, data in datas.items()
    )
    bench.respond_to_join(leader="m1", members=tuple(members))
    assignments = bench.sent(m.SyncGroupRequest).request.assignments
    found = {entry.member_id: decode_assignment(entry.assignment)[1] for entry in assignments}
    assert {name: data for name, data in found.items() if data is not None} == sent


class Remembering(DealingAssignor):
    """It has user data."""

    def subscription_user_data(self, topics):
        return b"data"


@pytest.mark.parametrize(("library", "sent"), [(OURS, [b"data", b"data"]), (ECHOING, [None, b"data"])])
def test_a_member_may_have_no_user_data_before_its_first_generation(library, sent):
    """As librdkafka's members do."""
    bench = Bench(library=library, assignors=[Remembering()], enable_auto_commit=False)
    bench.subscribe("t")
    bench.polls()
    joins = [bench.join()]
    bench.join_as_leader()
    bench.respond_to_sync(T0)
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    joins.append(bench.join())
    assert [decode_subscription(join.protocols[0].metadata).user_data for join in joins] == sent


# --- changes of topics


def refreshed(bench):
    """Let the metadata be refreshed."""
    bench.disconnect(3)
    bench.sleep(0, polling=True)


def led(**given):
    bench = cooperative(enable_auto_commit=False, **given)
    bench.subscribe("t")
    bench.join_as_leader(BOTH)
    bench.respond_to_sync(T0)
    return bench


@pytest.mark.parametrize(
    "change",
    [{"topics": {"t": 5, "u": 2}}, {"topics": {"t": 4}}, {"topics": {"t": 4, "u": 3}}, {"racks": ("q", "r")}],
)
def test_the_leader_joins_again_when_partitions_or_racks_of_the_group_change(change):
    """Given a leader, when a topic of any member gets partitions, is created, is deleted or moves, then it
    joins again. PROTOCOL 9.4, C-54."""
    bench = led(client_rack="r")
    refreshed(bench)
    assert bench.state is MemberState.STABLE
    for name, value in change.items():
        setattr(bench, name, value)
    refreshed(bench)
    assert bench.join().reason == "partitions of a subscribed topic changed"
    assert not bench.client.is_leader


def test_a_leader_without_a_rack_ignores_the_racks_of_replicas():
    """Given a broker that is away for a while, then no round begins for it. C-54."""
    bench = led()
    refreshed(bench)
    bench.racks = ("r",)
    refreshed(bench)
    assert bench.state is MemberState.STABLE


def test_another_order_of_replicas_causes_no_round():
    bench = led(client_rack="r")
    bench.racks = ("q", "r")
    refreshed(bench)
    bench.polls()
    bench.join_as_leader(BOTH)
    bench.respond_to_sync(T0)
    bench.racks = ("r", "q", "r")
    refreshed(bench)
    assert bench.state is MemberState.STABLE


def test_a_follower_does_not_watch_the_cluster(bench):
    """PROTOCOL 9.4, C-54."""
    bench.stable(T0)
    bench.topics["t"] = 9
    refreshed(bench)
    assert bench.client._metadata.topics["t"].partitions[8:]
    assert bench.pending(m.JoinGroupRequest) == []


def test_a_former_leader_does_not_watch_the_cluster(calm):
    """Given a leader, when another leads the next round, then it does not watch any more. PROTOCOL 9.4,
    C-54."""
    bench = led()
    bench.round(T0)
    bench.topics["t"] = 9
    refreshed(bench)
    assert (bench.state, bench.client.is_leader) == (MemberState.STABLE, False)


def test_a_leader_whose_sync_fails_may_become_a_follower():
    """Given a leader whose sync is refused, when another leads the next round, then it is a follower at once:
    it neither watches the cluster nor requests the topics of others. PROTOCOL 9.4, C-54, C-48."""
    bench = cooperative(enable_auto_commit=False)
    bench.subscribe("t")
    bench.join_as_leader(BOTH)
    bench.refuse(m.SyncGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.join_as_follower(generation=2)
    assert not bench.client.is_leader
    bench.respond_to_sync(T0)
    bench.topics |= {"t": 9, "u": 9}
    refreshed(bench)
    assert (bench.state, bench.client.is_leader) == (MemberState.STABLE, False)
    assert bench.requests(m.MetadataRequest)[-1].topics == ("t",)


def test_a_leader_that_skips_the_assignment_still_watches_the_cluster():
    """Given a static leader that has returned, when the response says to skip the assignment, then it gets
    the metadata of every topic, syncs without assignments, and joins again only after a later change.
    PROTOCOL 9.4, 6.5, C-54."""
    bench = cooperative(enable_auto_commit=False, group_instance_id="i1")
    bench.subscribe("t")
    bench.join_as_leader(BOTH, skip_assignment=True)
    assert bench.sent(m.SyncGroupRequest).request.assignments == ()
    assert bench.assignors[0].seen == []
    bench.respond_to_sync(T0)
    refreshed(bench)
    assert (bench.client.is_leader, bench.state) == (True, MemberState.STABLE)
    bench.topics["u"] = 9
    refreshed(bench)
    assert bench.state is MemberState.PREPARING_REBALANCE
