"""The rounds of a member: when it joins, JoinGroup and SyncGroup."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Joined
from tests.coordinator_core.client.bench import T0, T1, T3, Bench
from tests.coordinator_core.client.doubles import DealingAssignor


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


def test_responses_wait_for_a_poll_while_a_join_is_in_flight(bench):
    """Given the rounds of a member, then responses of the group wait for a poll only between a JoinGroup and
    its response, also if that response is an error or a disconnection."""
    assert not bench.client.reads_in_poll
    bench.subscribe("t")
    assert not bench.client.reads_in_poll
    bench.polls()
    assert bench.client.reads_in_poll
    bench.refuse(m.JoinGroupRequest, ErrorCode.MEMBER_ID_REQUIRED)
    assert not bench.client.reads_in_poll
    bench.polls()
    assert bench.client.reads_in_poll
    bench.disconnect()
    assert not bench.client.reads_in_poll
    bench.sleep(100, polling=True)
    assert bench.client.reads_in_poll
    bench.respond_to_join()
    assert (bench.state, bench.client.reads_in_poll) == (MemberState.COMPLETING_REBALANCE, False)
    bench.respond_to_sync(T0)
    assert (bench.state, bench.client.reads_in_poll) == (MemberState.STABLE, False)


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


def test_a_sync_may_take_the_request_timeout():
    """Given a sync without a response, then it expires after request.timeout.ms, the coordinator is looked up
    again, and the consumer joins again with its generation. PROTOCOL 9.10, C-48."""
    bench = Bench(max_poll_interval_ms=60_000, request_timeout_ms=20_000, enable_auto_commit=False)
    bench.respond_to(m.HeartbeatRequest)
    bench.subscribe("t")
    bench.join_as_follower(generation=3)
    bench.sleep(19_999, polling=True)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1
    bench.sleep(101, polling=True)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 2
    assert (bench.join().member_id, bench.subscription().generation) == ("m1", 3)


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


def test_a_follower_syncs_without_assignments(bench):
    """PROTOCOL 9.6."""
    bench.subscribe("t")
    bench.join_as_follower(generation=3)
    sync = bench.sent(m.SyncGroupRequest).request
    assert (sync.generation_id, sync.member_id, sync.assignments) == (3, "m1", ())
    assert (sync.protocol_type, sync.protocol_name) == ("consumer", "dealing")
    assert not bench.client.is_leader
    assert bench.events_of(Joined)[0].leader is False


def test_a_changed_subscription_makes_the_consumer_join_again(bench):
    """PROTOCOL 9.4."""
    bench.stable(T0)
    assert not bench.client.wants_poll
    bench.subscribe("t")
    assert not bench.client.wants_poll
    bench.subscribe("t", "u")
    bench.polls()
    assert (bench.join().reason, bench.subscription().topics) == ("the subscription changed", ("t", "u"))


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
