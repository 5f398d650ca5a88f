"""Heartbeats, and the three clocks behind them: interval, session, poll."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, Bench


def beats(bench):
    return len(bench.requests(m.HeartbeatRequest))


def test_a_member_beats_every_interval_without_being_polled(bench):
    """PROTOCOL 9.9."""
    bench.stable(T0, generation=4)
    bench.serve(m.HeartbeatRequest)
    bench.sleep(2_999)
    assert beats(bench) == 0
    bench.sleep(1)
    assert beats(bench) == 1
    bench.sleep(9_000)
    assert beats(bench) == 4
    last = bench.requests(m.HeartbeatRequest)[-1]
    assert (last.group_id, last.generation_id, last.member_id) == ("g", 4, "m1")


def test_nobody_beats_before_the_join_is_answered(bench):
    """Given a consumer that joins for the first time, or rejoins, then the coordinator waits for it, and it
    does not beat. PROTOCOL 9.9."""
    bench.subscribe("t")
    bench.polls()
    bench.sleep(20_000)
    assert beats(bench) == 0
    bench.join_answered()
    bench.synced(T0)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    bench.sleep(20_000)
    assert beats(bench) == 1


def test_a_member_beats_while_it_waits_for_its_assignment(bench):
    """PROTOCOL 9.9."""
    bench.subscribe("t")
    bench.join_as_follower()
    bench.sleep(3_000)
    assert beats(bench) == 1


def test_one_heartbeat_is_under_way_at_a_time(bench):
    """PROTOCOL 9.9."""
    bench.stable(T0)
    bench.sleep(20_000)
    assert beats(bench) == 1
    bench.agree(m.HeartbeatRequest)
    bench.sleep(0)
    assert beats(bench) == 2


def test_a_rebalance_in_progress_makes_a_stable_member_join_again(bench):
    """PROTOCOL 9.9, 9.4, C-46, C-47."""
    bench.stable(T0)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.client.wants_poll
    bench.polls()
    assert bench.join().member_id == "m1"


def test_a_rebalance_in_progress_is_no_news_to_who_waits_for_its_assignment(bench):
    """Given a member that is syncing, when a heartbeat says so, then it counts as success: the sync stands.
    PROTOCOL 9.9, C-47."""
    bench.subscribe("t")
    bench.join_as_follower()
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.client._member._membership.rejoin_reason == "the first join"
    bench.synced(T0)
    assert (bench.state, bench.owned, bench.client.wants_poll) == (MemberState.STABLE, [T0], False)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS],
)
def test_an_answer_of_an_older_generation_is_ignored(calm, error):
    """Given a heartbeat under way, when a round went by before its answer, then the answer means nothing.
    PROTOCOL 9.9, C-46."""
    calm.stable(T0)
    calm.sleep(3_000)
    calm.topics["u"] = 2
    calm.subscribe("t", "u")
    calm.join_as_follower(generation=2)
    calm.synced(T0)
    calm.refuse(m.HeartbeatRequest, error)
    assert (calm.state, calm.client.generation.number) == (MemberState.STABLE, 2)
    assert not calm.client.wants_poll


def test_a_session_without_an_answer_makes_the_coordinator_unknown():
    """Given no answer for the session timeout, then the coordinator is looked for anew, and what was asked of
    it has failed. PROTOCOL 9.9."""
    bench = Bench(session_timeout_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.sleep(9_999)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1
    del bench.served[m.FindCoordinatorRequest]
    bench.sleep(1)
    bench.sleep(0)
    assert len(bench.asked(m.FindCoordinatorRequest)) == 1
    assert bench.client.generation.number == 1
    bench.answer(m.FindCoordinatorRequest, bench.coordinator(None))
    before = beats(bench)
    bench.sleep(0)
    assert beats(bench) == before + 1
    bench.sleep(9_999)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 2


def test_every_answer_starts_the_session_anew():
    """PROTOCOL 9.9."""
    bench = Bench(session_timeout_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.serve(m.HeartbeatRequest)
    bench.sleep(60_000)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1


def test_who_does_not_poll_leaves_and_comes_back_having_lost_everything():
    """Given no poll for max.poll.interval.ms, then the consumer leaves and says why, its heartbeats stop, and
    the next poll calls lost and joins with no id. PROTOCOL 9.9, 9.5, C-56."""
    bench = Bench(max_poll_interval_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.serve(m.HeartbeatRequest)
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


def test_a_poll_starts_the_poll_interval_anew():
    """PROTOCOL 9.3, 9.9."""
    bench = Bench(max_poll_interval_ms=10_000, enable_auto_commit=False).stable(T0)
    bench.serve(m.HeartbeatRequest)
    for _ in range(5):
        bench.sleep(9_999)
        bench.poll()
    assert bench.state is MemberState.STABLE


def test_who_does_not_poll_leaves_even_while_the_coordinator_is_unknown():
    """PROTOCOL 9.9, C-56."""
    bench = Bench(max_poll_interval_ms=10_000, enable_auto_commit=False).stable(T0)
    del bench.served[m.FindCoordinatorRequest]
    bench.disconnect()
    bench.sleep(10_000)
    assert bench.state is MemberState.UNJOINED
    assert bench.requests(m.LeaveGroupRequest) == []


def test_a_heartbeat_without_an_answer_is_sent_again(bench):
    """PROTOCOL 9.9, 9.10."""
    bench.stable(T0)
    bench.sleep(3_000)
    bench.disconnect()
    bench.sleep(3_000)
    assert (len(bench.asked(m.HeartbeatRequest)), bench.state) == (1, MemberState.STABLE)
