"""Heartbeats, and members whose session expires."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import MemberRemoved

PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE


@pytest.mark.parametrize(
    ("arrange", "answer"),
    [
        ("stable_group", ErrorCode.NONE),
        ("completing_group", ErrorCode.NONE),
        ("preparing_group", ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_a_heartbeat_reports_a_round_and_restarts_the_session(bench, arrange, answer):
    """Given a state, when a member sends heartbeats, then NONE, or REBALANCE_IN_PROGRESS while preparing, and
    a whole session from the last one. PROTOCOL 5.1, C-32."""
    leader, follower = getattr(bench, arrange)()
    bench.sleep(9_000)
    assert bench.beat(follower) is answer
    bench.beat(leader)
    bench.sleep(9_999)
    assert follower in bench.group().members
    bench.sleep(1)
    assert follower not in bench.group().members


@pytest.mark.parametrize("arrange", ["stable_group", "completing_group", "preparing_group"])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_heartbeat_of_another_generation_is_illegal(bench, arrange, step):
    """Given any state with members, when the generation is another, then ILLEGAL_GENERATION and the session
    runs on. PROTOCOL 5.1, C-32."""
    leader, follower = getattr(bench, arrange)()
    bench.sleep(9_000)
    assert bench.beat(follower, bench.group().generation + step) is ErrorCode.ILLEGAL_GENERATION
    bench.beat(leader)
    bench.sleep(1_000)
    assert follower not in bench.group().members


def test_a_silent_member_is_removed_after_its_session(bench):
    """Given Stable, when a member is silent for its session timeout, then it is removed and a round
    starts. PROTOCOL 5.3."""
    leader, follower = bench.stable_group()
    bench.sleep(5_000)
    bench.beat(leader)
    bench.sleep(4_999)
    assert bench.state() is GroupState.STABLE
    bench.sleep(1)
    assert list(bench.group().members) == [leader]
    assert bench.state() is PREPARING
    assert [(e.member_id, e.reason) for e in bench.events_of(MemberRemoved)] == [
        (follower, "session expired")
    ]


def test_an_assignment_that_arrives_does_not_lengthen_the_session_of_the_silent(bench):
    """Given a follower that has not synced, when the leader's assignment comes, then the follower's session
    runs on from its last sign of life. PROTOCOL 5.3, C-31."""
    leader, follower = bench.completing_group()
    bench.sleep(9_000)
    bench.sync(leader)
    bench.sleep(1_000)
    assert list(bench.group().members) == [leader]
    assert follower not in bench.group().members


def test_a_member_parked_in_a_join_does_not_expire(bench):
    """Given a member whose join waits, when its session passes over and over, then it stays.
    PROTOCOL 5.2, C-09."""
    leader, follower = bench.stable_group()
    parked = bench.join(leader)
    bench.sleep_and_beat(50_000, follower)
    assert leader in bench.group().members
    bench.join(follower)
    assert bench.replies[parked].error is ErrorCode.NONE


def test_a_member_parked_in_a_sync_does_not_expire(bench):
    """PROTOCOL 5.2, C-09."""
    leader, follower = bench.completing_group()
    parked = bench.sync(follower)
    bench.sleep_and_beat(50_000, leader)
    bench.sync(leader, shares={follower: b"F"})
    assert bench.replies[parked].assignment == b"F"


def test_a_commit_counts_as_a_sign_of_life(bench):
    """Given a member that sends no heartbeat, when it commits, then its session starts anew. PROTOCOL 5.2."""
    (member,) = bench.stable_group(1)
    bench.sleep(9_000)
    assert bench.commit(member, 1) is ErrorCode.NONE
    bench.sleep(9_999)
    assert member in bench.group().members
    bench.sleep(1)
    assert not bench.group().members


def test_a_sync_in_a_stable_group_is_no_sign_of_life(bench):
    """Given a member without heartbeats, when it syncs again in Stable, then its session runs on. C-31."""
    (member,) = bench.stable_group(1)
    bench.sleep(9_000)
    bench.sync(member)
    bench.sleep(999)
    assert member in bench.group().members
    bench.sleep(1)
    assert not bench.group().members


def test_a_join_that_is_answered_at_once_is_no_sign_of_life(bench):
    """Given a follower of a Stable group, when it joins again unchanged, then its session runs on. C-20."""
    leader, follower = bench.stable_group()
    bench.sleep(9_000)
    bench.beat(leader)
    assert bench.joined(follower).error is ErrorCode.NONE
    bench.sleep(1_000)
    assert list(bench.group().members) == [leader]


def test_the_first_heartbeat_of_a_new_member_begins_its_session(bench):
    """Given a member parked in its first join, when it sends a heartbeat of the generation before and then
    nothing, then it is removed after its session timeout, although its join is parked. PROTOCOL 5.1."""
    (leader,) = bench.stable_group(1, session_ms=1_000_000)
    parked = bench.enter(rebalance_ms=400_000)
    new = list(bench.group().members)[-1]
    assert bench.beat(new) is ErrorCode.REBALANCE_IN_PROGRESS
    bench.sleep(9_999)
    assert new in bench.group().members
    bench.sleep(1)
    assert bench.replies[parked].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(bench.group().members) == [leader]


def test_equal_deadlines_fire_in_the_order_of_names(make_bench):
    """Given many groups whose sessions end at once, when they do, then they end in the order of the names.
    C-18."""
    names = ["g3", "g1", "g2"]
    bench = make_bench(initial_rebalance_delay_ms=0)
    for name in names:
        bench.stable_group(1, group=name)
    bench.sleep(10_000)
    assert [event.group for event in bench.events_of(MemberRemoved)] == sorted(names)
