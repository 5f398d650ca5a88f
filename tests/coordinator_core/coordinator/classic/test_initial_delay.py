"""The first round of an Empty group collects members for a while (KIP-134), and pending ids hold it open."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.protocol.error_codes import ErrorCode

PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE


def states_at(bench, *moments):
    found = []
    for moment in moments:
        bench.sleep(moment - bench.now_ms)
        found.append(bench.state())
    return found


def test_the_first_round_waits_for_the_initial_delay(bench):
    """Given one member, when no other joins, then the round ends after 3 s. PROTOCOL 3.5, C-10."""
    bench.enter()
    assert states_at(bench, 2_999, 3_000) == [PREPARING, COMPLETING]


def test_a_member_that_arrives_in_the_window_restarts_it(bench):
    """Given a join at 0, when another comes at 2 s, then the round ends at 6 s. PROTOCOL 3.5, C-10."""
    bench.enter()
    bench.sleep(2_000)
    bench.enter()
    assert states_at(bench, 3_000, 5_999, 6_000) == [PREPARING, PREPARING, COMPLETING]


@pytest.mark.parametrize("last", [(), (9_500,)])
def test_the_initial_delay_ends_with_the_rebalance_timeout(bench, last):
    """Given a rebalance timeout of 10 s, when members come in every window, then the windows end at 3, 6, 9
    and 10 s and no later. PROTOCOL 3.5, C-10."""
    for at in (0, 1_000, 4_000, 7_000, *last):
        bench.sleep(at - bench.now_ms)
        bench.enter(rebalance_ms=10_000)
    assert states_at(bench, 9_999, 10_000) == [PREPARING, COMPLETING]
    assert len(bench.group().members) == 4 + len(last)


def test_a_later_members_longer_timeout_does_not_lengthen_the_windows(bench):
    """Given a first member's rebalance timeout of 5 s, when others with more come, then 5 s it is. C-10."""
    bench.enter(rebalance_ms=5_000)
    for at in (1_000, 4_000, 4_500):
        bench.sleep(at - bench.now_ms)
        bench.enter(rebalance_ms=60_000)
    assert states_at(bench, 4_999, 5_000) == [PREPARING, COMPLETING]


def test_the_initial_delay_is_not_cut_short(bench):
    """Given the window runs, when all known members have joined and one leaves, then it runs on. C-11."""
    bench.enter()
    leaver = bench.newcomer()
    bench.leave(leaver)
    assert bench.group().all_have_joined()
    assert states_at(bench, 2_999, 6_000) == [PREPARING, COMPLETING]


def test_an_expired_id_ends_the_initial_delay(make_bench):
    """Given the window runs and one id is pending, when the id expires, then the round ends at once. C-12."""
    bench = make_bench(initial_rebalance_delay_ms=20_000)
    bench.enter()
    bench.joined(session_ms=10_000)
    assert states_at(bench, 9_999, 10_000) == [PREPARING, COMPLETING]


def test_an_expired_newcomer_ends_the_initial_delay(make_bench):
    """The same for a new member that waits too long. C-12."""
    bench = make_bench(initial_rebalance_delay_ms=20_000, new_member_join_timeout_ms=15_000)
    gone = bench.enter()
    bench.sleep(10_000)
    bench.enter()
    assert states_at(bench, 14_999, 15_000) == [PREPARING, COMPLETING]
    assert bench.replies[gone].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_emptied_gets_the_initial_delay_again(bench):
    """Given the last member left, when another joins, then it waits for 3 s. PROTOCOL 3.5, C-13."""
    (member,) = bench.stable_group(1)
    bench.leave(member)
    began = bench.now_ms
    bench.enter()
    assert states_at(bench, began + 2_999, began + 3_000) == [PREPARING, COMPLETING]


def test_a_group_whose_members_all_left_in_the_window_becomes_empty(bench):
    """PROTOCOL 3.7."""
    bench.leave(bench.newcomer())
    bench.until(GroupState.EMPTY)
    assert (bench.now_ms, bench.group().generation) == (3_000, 1)


def test_a_pending_id_holds_the_round_open_until_it_joins(bench):
    """Given all members have rejoined, when an id is pending, then the round waits for it.
    PROTOCOL 3.4, 3.6, C-04."""
    leader, follower = bench.stable_group()
    pending = bench.joined().member_id
    bench.join(leader)
    bench.join(follower)
    assert bench.state() is PREPARING
    bench.join(pending)
    assert bench.state() is COMPLETING
    assert list(bench.group().members) == [leader, follower, pending]


def test_a_pending_id_holds_the_round_open_until_it_leaves(bench):
    """PROTOCOL 5.4, C-04."""
    leader, follower = bench.stable_group()
    pending = bench.joined().member_id
    bench.join(leader)
    bench.join(follower)
    assert bench.leave(pending) == [ErrorCode.NONE]
    assert bench.state() is COMPLETING


def test_a_pending_id_holds_the_round_open_until_it_expires(bench):
    """Given all members have rejoined, when the id's time is up, then the round ends at once.
    PROTOCOL 3.4, C-04."""
    leader, follower = bench.stable_group()
    bench.joined(session_ms=7_000)
    bench.join(leader)
    parked = bench.join(follower)
    bench.sleep(6_999)
    assert bench.state() is PREPARING
    assert bench.sleep(1)[parked].error is ErrorCode.NONE
