"""Rounds: JoinGroup, the leader's work, SyncGroup, and taking the assignment over."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Assigned, AssignmentComputed, Joined, Revoked
from tests.coordinator_core.client.bench import T0, T1, T2, T3, U0, U1, Bench, cooperative
from tests.coordinator_core.client.doubles import EAGER, DealingAssignor

BOTH = {"m1": ["t"], "m2": ["t", "u"]}


# --- JoinGroup


def test_a_join_contains_the_identity_subscription_and_timeouts():
    """Given a first join, then it has the group's name, the timeouts, no member id, and the reason.
    PROTOCOL 9.4, 9.6."""
    bench = Bench(session_timeout_ms=40_000, max_poll_interval_ms=200_000)
    bench.subscribe("t")
    bench.polls()
    join = bench.join()
    assert (join.group_id, join.member_id, join.protocol_type) == ("g", "", "consumer")
    assert (join.session_timeout_ms, join.rebalance_timeout_ms) == (40_000, 200_000)
    assert (join.group_instance_id, join.reason) == (None, "the first join")


def test_a_join_lists_for_each_assignor_topics_user_data_owned_generation_and_rack():
    """Given two assignors, then both are listed in order, with their own user data. PROTOCOL 9.6."""
    assignors = [DealingAssignor("a", user_data=b"A"), DealingAssignor("b")]
    bench = Bench(assignors=assignors, client_rack="r1", enable_auto_commit=False)
    bench.subscribe("u", "t")
    bench.polls()
    assert [entry.name for entry in bench.join().protocols] == ["a", "b"]
    first, second = bench.subscription(0), bench.subscription(1)
    assert (first.topics, first.user_data, second.user_data) == (("t", "u"), b"A", None)
    assert (len(first.owned), first.generation, first.rack) == (0, -1, "r1")


def test_a_cooperative_member_sends_its_partitions_and_their_generation(calm):
    """PROTOCOL 9.6."""
    calm.stable(T1, T0, generation=4)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    joined = calm.subscription()
    assert (joined.owned, joined.generation, calm.join().member_id) == ({T0, T1}, 4, "m1")


def test_an_unchanged_member_sends_equal_bytes(calm):
    """Given a join whose response is lost, when it is sent again, then its metadata is equal. PROTOCOL 9.6,
    C-21."""
    calm.stable(T3, T0)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    first = calm.join().protocols
    calm.disconnect()
    calm.sleep(100, polling=True)
    assert calm.join().protocols == first


def test_a_member_id_of_a_response_is_used_at_once(bench):
    """Given MEMBER_ID_REQUIRED, then the next poll joins with that id, without waiting, once prepared.
    PROTOCOL 9.6, C-46."""
    bench.subscribe("t")
    bench.polls()
    bench.refuse(m.JoinGroupRequest, ErrorCode.MEMBER_ID_REQUIRED)
    assert bench.client.wants_poll
    bench.poll()
    assert (bench.join().member_id, bench.now_ms) == ("given", 0)
    assert bench.calls == []


def test_a_join_may_take_the_rebalance_timeout_and_five_seconds():
    """Given a join without a response, then it expires after that time, the coordinator is looked up again,
    and the consumer joins again. PROTOCOL 9.10, C-55."""
    bench = Bench(max_poll_interval_ms=60_000, request_timeout_ms=1_000)
    bench.subscribe("t")
    bench.polls()
    bench.sleep(64_999)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1
    bench.sleep(1)
    assert bench.pending(m.JoinGroupRequest)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 2
    bench.sleep(100, polling=True)
    assert len(bench.requests(m.JoinGroupRequest)) == 2


def test_a_failed_join_keeps_generation_and_partitions(calm):
    """Given a member that owns a partition, when its join or sync has no response, then it joins again after
    the backoff with the same id, generation and partition. PROTOCOL 9.9, C-48."""
    calm.stable(T0, T1)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    calm.disconnect()
    calm.sleep(99, polling=True)
    assert calm.pending(m.JoinGroupRequest) == []
    calm.sleep(1, polling=True)
    assert (calm.join().member_id, calm.subscription().generation) == ("m1", 1)
    calm.respond_to_join(generation=2)
    calm.disconnect()
    calm.sleep(100, polling=True)
    assert (calm.join().member_id, calm.subscription().generation) == ("m1", 2)
    assert (calm.owned, len(calm.calls)) == ([T0, T1], 1)


@pytest.mark.parametrize(("kind", "name"), [("connect", "dealing"), ("consumer", "other")])
def test_an_assignor_that_the_consumer_did_not_offer_ends_it(bench, kind, name):
    """PROTOCOL 9.6."""
    bench.subscribe("t")
    bench.polls()
    response = m.JoinGroupResponse(
        error=ErrorCode.NONE, generation_id=1, protocol_type=kind, protocol_name=name, member_id="m1"
    )
    bench.respond(m.JoinGroupRequest, response)
    assert bench.client.failure == f"JoinGroup: the group chose {kind}/{name}"


# --- the leader's work


def test_a_follower_syncs_without_assignments(bench):
    """PROTOCOL 9.6."""
    bench.subscribe("t")
    bench.join_as_follower(generation=3)
    sync = bench.sent(m.SyncGroupRequest).request
    assert (sync.generation_id, sync.member_id, sync.assignments) == (3, "m1", ())
    assert (sync.protocol_type, sync.protocol_name) == ("consumer", "dealing")
    assert not bench.client.is_leader
    assert bench.events_of(Joined)[0].leader is False


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


def test_an_invalid_subscription_of_a_member_ends_the_leader(bench):
    bench.subscribe("t")
    bench.polls()
    bench.respond_to_join(leader="m1", members=(m.JoinGroupMember("m2", None, b"\x00"),))
    assert bench.client.failure.startswith("subscription: 1 bytes")


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


# --- what the leader watches


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


def test_a_changed_subscription_makes_the_consumer_join_again(bench):
    """PROTOCOL 9.4."""
    bench.stable(T0)
    assert not bench.client.wants_poll
    bench.subscribe("t")
    assert not bench.client.wants_poll
    bench.subscribe("t", "u")
    bench.polls()
    assert (bench.join().reason, bench.subscription().topics) == ("the subscription changed", ("t", "u"))


# --- taking over


def test_an_eager_consumer_adds_its_whole_assignment(bench):
    """PROTOCOL 9.5, 9.7."""
    bench.stable(T0, T1)
    bench.round(T1, T2)
    assert bench.calls == [("assigned", [T0, T1]), ("revoked", [T0, T1]), ("assigned", [T1, T2])]
    assert bench.events_of(Assigned)[-1].added == {"t": [1, 2]}


def test_a_cooperative_consumer_revokes_then_assigns_then_rejoins(calm):
    """Given an assignment that removes and adds partitions, then in this order: on_partitions_revoked is
    called while all are owned, a rejoin is requested, the assignor is called, the assignment is set,
    on_partitions_assigned is called with the added ones. The consumer joins again at once. PROTOCOL 9.7,
    C-52."""
    order = calm.assignors[0].calls = calm.listener.calls
    calm.stable(T0, T1)
    del order[:], calm.listener.owned[:]
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.join_as_follower(generation=2)
    calm.respond_to_sync(T1, T2)
    assert order == [
        ("revoked", [T0]),
        ("on_assignment", [T1, T2], 2),
        ("assigned", [T2]),
    ]
    assert calm.listener.owned == [("revoked", [T0, T1]), ("assigned", [T1, T2])]
    assert "gave up" in calm.join().reason
    assert calm.subscription().owned == {T1, T2}
    assert calm.events_of(Revoked)[-1].partitions == {"t": [0]}
    last = calm.events_of(Assigned)[-1]
    assert (last.added, last.owned) == ({"t": [2]}, {"t": [1, 2]})


def test_a_cooperative_consumer_that_revokes_nothing_does_not_rejoin(calm):
    """Given an assignment that only adds partitions, or changes nothing, then on_partitions_revoked is not
    called, and on_partitions_assigned is, even with nothing. PROTOCOL 9.7, C-52."""
    calm.stable(T0)
    calm.round(T0, T1)
    calm.round(T0, T1, generation=3)
    assert calm.calls[1:] == [("assigned", [T1]), ("assigned", [])]
    assert (calm.state, calm.client.wants_poll) == (MemberState.STABLE, False)


def test_partitions_in_both_assignments_are_consumed_throughout(calm):
    """Given a partition with a position, when a round keeps it, then its state is the same object. PROTOCOL
    9.7."""
    calm.stable(T0, T1)
    calm.call("seek", "t", 1, 42)
    before = calm.client.partitions[T1]
    calm.round(T1, T2)
    assert calm.client.partitions[T1] is before
    assert before.position == 42


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x03\x00\x00\x00\x01"])
def test_the_error_of_an_invalid_assignment_names_the_leaders_assignor(bench, data):
    """C-53."""
    bench.subscribe("t")
    bench.join_as_follower()
    bench.respond(m.SyncGroupRequest, m.SyncGroupResponse(error=ErrorCode.NONE, assignment=data))
    bench.poll()
    assert "is the leader's assignor 'dealing' at fault?" in bench.client.failure
    assert "assignment" in str(bench.errors[0])


def test_an_assignment_outside_the_subscription_is_not_applied(calm):
    """Given a subscription that changed during the round, when the assignment does not match it, then the
    consumer keeps its partitions and joins again. PROTOCOL 9.7, C-53."""
    calm.stable(T0)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.join_as_follower(generation=2)
    calm.respond_to_sync(T0, U0)
    assert (calm.owned, len(calm.calls)) == ([T0], 1)
    assert calm.join().reason == "the assignment does not match the subscription"


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_an_assignment_of_a_generation_lost_before_the_poll_is_dropped(calm, error):
    """Given a response to a sync, when a heartbeat resets the generation before the next poll, then
    on_partitions_assigned is not called. The partitions are lost and the consumer joins. PROTOCOL 9.9,
    C-49."""
    calm.stable(T0)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.join_as_follower(generation=2)
    calm.sleep(3_000)
    calm.respond_to_sync(T0, T1, polls=False)
    calm.refuse(m.HeartbeatRequest, error)
    calm.polls()
    assert (calm.owned, calm.calls[1:]) == ([], [("lost", [T0])])
    assert calm.subscription().generation == -1


def test_a_response_to_the_sync_of_a_lost_generation_is_dropped(bench):
    """Given a sync in flight, when a heartbeat reports that the member is unknown, then the response to the
    sync is dropped, and only then the consumer joins: there are never two rounds at once. PROTOCOL 9.9,
    C-49."""
    bench.subscribe("t")
    bench.join_as_follower()
    bench.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    bench.polls()
    assert bench.pending(m.JoinGroupRequest) == []
    bench.respond_to_sync(T0)
    assert (bench.owned, bench.state) == ([], MemberState.PREPARING_REBALANCE)
    assert bench.join().member_id == ""


def test_a_sync_for_another_assignor_ends_the_consumer(bench):
    bench.subscribe("t")
    bench.join_as_follower()
    response = m.SyncGroupResponse(error=ErrorCode.NONE, protocol_name="other")
    bench.respond(m.SyncGroupRequest, response)
    assert bench.client.failure == "SyncGroup: an assignment of other"


def test_user_data_of_another_assignor_does_not_stop_the_leader(bench):
    """Given members with user data of another assignor, then the leader assigns. C-68."""
    bench.subscribe("t")
    bench.polls()
    joined = encode_subscription(bench.subscription())
    odd = encode_subscription(type(bench.subscription())(("t",), user_data=b"\xff\x00odd"))
    members = (m.JoinGroupMember("m1", None, joined), m.JoinGroupMember("m2", None, odd))
    bench.respond_to_join(leader="m1", members=members)
    assert sorted(bench.sent_assignments()) == ["m1", "m2"]


def test_only_the_chosen_assignor_is_called(bench):
    """PROTOCOL 9.6."""
    bench = Bench(assignors=[DealingAssignor("a", (EAGER,)), DealingAssignor("b", (EAGER,))])
    bench.stable(T0, protocol="b")
    assert (bench.assignors[0].calls, bench.assignors[1].calls) == ([], [("on_assignment", [T0], 1)])
