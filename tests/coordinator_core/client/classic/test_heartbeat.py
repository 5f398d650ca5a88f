"""Heartbeats, and the three clocks behind them: interval, session, poll."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.core import OURS, Library
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, Bench, cooperative


def beats(bench):
    return len(bench.requests(m.HeartbeatRequest))


def test_heartbeats_are_sent_every_interval_without_polls(bench):
    """PROTOCOL 9.9."""
    bench.stable(T0, generation=4)
    bench.respond_to(m.HeartbeatRequest)
    bench.sleep(2_999)
    assert beats(bench) == 0
    bench.sleep(1)
    assert beats(bench) == 1
    bench.sleep(9_000)
    assert beats(bench) == 4
    last = bench.requests(m.HeartbeatRequest)[-1]
    assert (last.group_id, last.generation_id, last.member_id) == ("g", 4, "m1")


def test_heartbeats_of_the_next_generation_name_it(bench):
    """PROTOCOL 9.9."""
    bench.respond_to(m.HeartbeatRequest)
    bench.stable(T0, generation=4)
    bench.sleep(3_000)
    del bench.responders[m.HeartbeatRequest]
    bench.round(T0, generation=5)
    bench.sleep(3_000)
    assert bench.sent(m.HeartbeatRequest).request.generation_id == 5


def test_no_heartbeat_is_sent_before_the_join_has_a_response(bench):
    """Given a consumer that joins, for the first time or again, then the coordinator waits for it, and it
    sends no heartbeats. PROTOCOL 9.9."""
    bench.subscribe("t")
    bench.polls()
    bench.sleep(20_000)
    assert beats(bench) == 0
    bench.respond_to_join()
    bench.respond_to_sync(T0)
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    bench.sleep(20_000)
    assert beats(bench) == 1


def test_heartbeats_are_sent_while_the_member_waits_for_its_assignment(bench):
    """PROTOCOL 9.9."""
    bench.subscribe("t")
    bench.join_as_follower()
    bench.sleep(3_000)
    assert beats(bench) == 1


def test_one_heartbeat_is_in_flight_at_a_time(bench):
    """PROTOCOL 9.9."""
    bench.stable(T0)
    bench.sleep(20_000)
    assert beats(bench) == 1
    bench.accept(m.HeartbeatRequest)
    bench.sleep(0)
    assert beats(bench) == 2


def test_a_rebalance_in_progress_makes_a_stable_member_join_again(bench):
    """PROTOCOL 9.9, 9.4, C-46, C-47."""
    bench.stable(T0)
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.client.wants_poll
    bench.polls()
    assert bench.join().member_id == "m1"


def test_a_rebalance_in_progress_changes_nothing_while_the_member_waits_for_its_assignment(bench):
    """Given a member that syncs, when a heartbeat reports the rebalance, then it counts as success and the
    sync continues. PROTOCOL 9.9, C-47."""
    bench.subscribe("t")
    bench.join_as_follower()
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.client._member._membership.rejoin_reason == "the first join"
    bench.respond_to_sync(T0)
    assert (bench.state, bench.owned, bench.client.wants_poll) == (MemberState.STABLE, [T0], False)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS],
)
def test_a_response_of_an_older_generation_is_ignored(calm, error):
    """Given a heartbeat in flight, when a round completes before its response, then the response is ignored.
    PROTOCOL 9.9, C-46."""
    calm.stable(T0)
    calm.sleep(3_000)
    calm.topics["u"] = 2
    calm.subscribe("t", "u")
    calm.join_as_follower(generation=2)
    calm.respond_to_sync(T0)
    calm.refuse(m.HeartbeatRequest, error)
    assert (calm.state, calm.client.generation.number) == (MemberState.STABLE, 2)
    assert not calm.client.wants_poll


def test_a_session_without_a_response_makes_the_coordinator_unknown():
    """Given no response for the session timeout, then the coordinator is looked up again, and its pending
    requests have failed. PROTOCOL 9.9."""
    bench = Bench(session_timeout_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.sleep(9_999)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1
    del bench.responders[m.FindCoordinatorRequest]
    bench.sleep(1)
    bench.sleep(0)
    assert len(bench.pending(m.FindCoordinatorRequest)) == 1
    assert bench.client.generation.number == 1
    bench.respond(m.FindCoordinatorRequest, bench.coordinator(None))
    before = beats(bench)
    bench.sleep(100)
    assert beats(bench) == before + 1
    bench.sleep(9_899)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 2


def test_every_response_restarts_the_session():
    """PROTOCOL 9.9."""
    bench = Bench(session_timeout_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    bench.sleep(60_000)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1


def test_a_consumer_that_does_not_poll_leaves_and_loses_its_partitions():
    """Given no poll for max.poll.interval.ms, then the consumer leaves with that reason and its heartbeats
    stop. The next poll calls on_partitions_lost and joins without an id. PROTOCOL 9.9, 9.5, C-56."""
    bench = Bench(max_poll_interval_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    bench.sleep(9_999)
    assert (bench.state, beats(bench)) == (MemberState.STABLE, 3)
    bench.sleep(1)
    (identity,) = bench.sent(m.LeaveGroupRequest).request.members
    assert identity.member_id == "m1"
    assert "max.poll.interval.ms" in identity.reason
    assert bench.state is MemberState.UNJOINED
    bench.sleep(60_000)
    assert (beats(bench), bench.owned) == (3, [T0])
    bench.polls()
    assert (bench.calls[-1], bench.join().member_id) == (("lost", [T0]), "")


def test_a_poll_restarts_the_poll_interval():
    """PROTOCOL 9.3, 9.9."""
    bench = Bench(max_poll_interval_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    for _ in range(5):
        bench.sleep(9_999)
        bench.poll()
    assert bench.state is MemberState.STABLE


def test_a_consumer_that_does_not_poll_leaves_when_the_coordinator_is_known():
    """Given a consumer that does not poll while the coordinator is unknown, then it leaves when the
    coordinator is found. If it polls before, it stays. PROTOCOL 9.9, C-56."""
    for polls in (False, True):
        bench = Bench(max_poll_interval_ms=10_000, enable_auto_commit=False).stable(T0)
        del bench.responders[m.FindCoordinatorRequest]
        bench.disconnect()
        bench.sleep(15_000)
        assert (bench.state, bench.owned) == (MemberState.STABLE, [T0])
        if polls:
            bench.poll()
        bench.respond(m.FindCoordinatorRequest, bench.coordinator(None))
        bench.sleep(0)
        assert len(bench.requests(m.LeaveGroupRequest)) == (0 if polls else 1)
        assert bench.state is (MemberState.STABLE if polls else MemberState.UNJOINED)


def fail_heartbeat(bench, how):
    """Let the heartbeat in flight fail: by a lost connection, without a response, or by an error."""
    if how == "disconnected":
        bench.disconnect()
    elif how == "timed out":
        bench.sleep(30_000)
    else:
        bench.refuse(m.HeartbeatRequest, ErrorCode[how])


@pytest.mark.parametrize(
    ("how", "finds"),
    [
        ("disconnected", 1),
        ("timed out", 1),
        ("COORDINATOR_NOT_AVAILABLE", 1),
        ("NOT_COORDINATOR", 1),
        ("COORDINATOR_LOAD_IN_PROGRESS", 0),
        ("UNKNOWN_SERVER_ERROR", 0),
    ],
)
def test_a_failed_heartbeat_is_sent_again_after_the_backoff(bench, how, finds):
    """Given a heartbeat that fails, then the next one is sent after retry.backoff.ms, not after the interval;
    the coordinator is looked up at once, unless it has responded as coordinator. PROTOCOL 9.9, 9.10."""
    bench.stable(T0)
    bench.sleep(3_000)
    fail_heartbeat(bench, how)
    bench.sleep(0)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1 + finds
    bench.sleep(99)
    assert beats(bench) == 1
    bench.sleep(1)
    assert (beats(bench), bench.state) == (2, MemberState.STABLE)
    bench.accept(m.HeartbeatRequest)
    bench.sleep(2_999)
    assert beats(bench) == 2
    bench.sleep(1)
    assert beats(bench) == 3


@pytest.mark.parametrize(("library", "wait_ms"), [(OURS, 0), (Library(beats_from_found=True), 3_000)])
def test_a_failed_heartbeat_is_sent_again_when_the_coordinator_is_known(library, wait_ms):
    """Given a heartbeat that fails, when the search for the coordinator takes longer than the backoff, then
    the next heartbeat is sent as soon as the coordinator is found. PROTOCOL 9.9, 9.10. That of kafka-python
    is sent an interval later."""
    bench = Bench(enable_auto_commit=False, library=library).stable(T0)
    del bench.responders[m.FindCoordinatorRequest]
    bench.heartbeat(ErrorCode.NOT_COORDINATOR)
    bench.sleep(500)
    bench.respond(m.FindCoordinatorRequest, bench.coordinator(None))
    bench.sleep(max(0, wait_ms - 1))
    assert beats(bench) == 1 + (wait_ms == 0)
    bench.sleep(1)
    assert beats(bench) == 2


def test_a_failed_heartbeat_does_not_delay_a_join(bench):
    """Given a heartbeat that fails with a transient error, when the subscription changes, then the join is
    sent at once. PROTOCOL 9.9, 9.10."""
    bench.stable(T0)
    bench.heartbeat(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.subscribe("t", "u")
    bench.polls()
    assert bench.pending(m.JoinGroupRequest)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_an_error_for_an_older_generation_restarts_the_session(error):
    """Given a heartbeat in flight, when a round completes before its response, then an error in the response
    is ignored, but the coordinator is present. PROTOCOL 9.9, C-46."""
    bench = cooperative(session_timeout_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.sleep(3_000)
    bench.subscribe("t", "u")
    bench.join_as_follower(generation=2)
    bench.respond_to_sync(T0)
    bench.sleep(9_000)
    bench.refuse(m.HeartbeatRequest, error)
    bench.sleep(9_999)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1


def test_the_next_heartbeat_waits_for_the_answer_to_the_last_one(bench):
    bench.stable(T0)
    bench.sleep(3_000)
    bench.now_ms += 4_000
    bench.call("on_deadline")
    assert beats(bench) == 1
