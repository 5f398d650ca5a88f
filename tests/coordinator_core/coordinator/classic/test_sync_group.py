"""SyncGroup: the checks, the leader's assignment on its way through the log, and those that never sync."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import MemberRemoved

PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
LONG_MS = 1_000_000


def test_a_sync_is_checked_in_order(bench):
    """Given a request that is wrong in every way, when it is put right bit by bit, then the errors come in
    the order fenced, unknown member, generation, protocol type, name. PROTOCOL 4.1, C-24."""
    static, dynamic = bench.stable_group(2, instances=("i1",))
    wrong = {"protocol_type": "connect", "protocol_name": "rr"}
    assert bench.synced("x", 9, group_instance_id="i1", **wrong).error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.synced("x", 9, **wrong).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.synced(dynamic, 9, **wrong).error is ErrorCode.ILLEGAL_GENERATION
    assert bench.synced(dynamic, 1, **wrong).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right_type = {"protocol_type": "consumer", "protocol_name": "rr"}
    assert bench.synced(dynamic, 1, **right_type).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = {"protocol_type": "consumer", "protocol_name": "range"}
    assert bench.synced(dynamic, 1, **right).error is ErrorCode.NONE
    assert bench.synced(static, 1, group_instance_id="i1").error is ErrorCode.NONE


def test_a_sync_in_the_first_round_may_name_any_assignor(bench):
    """Given a group that has no assignor yet, when a member syncs, then REBALANCE_IN_PROGRESS. C-24."""
    bench.enter()
    (member,) = bench.group().members
    assert bench.synced(member, protocol_name="x").error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.synced(member, protocol_type="x").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_leaders_assignment_answers_all_members(bench):
    """Given a follower that synced first, when the leader brings the assignment, then both get theirs and
    the group is Stable. PROTOCOL 4.1, 4.2, C-25."""
    leader, follower = bench.completing_group()
    early = bench.sync(follower)
    assert early not in bench.replies
    late = bench.sync(leader, shares={leader: b"L", follower: b"F"})
    assert [bench.replies[request].assignment for request in (early, late)] == [b"F", b"L"]
    answer = bench.replies[early]
    assert (answer.error, answer.protocol_type, answer.protocol_name) == (0, "consumer", "range")
    assert bench.state() is GroupState.STABLE


def test_a_followers_assignment_is_not_looked_at(bench):
    """Given CompletingRebalance, when a follower carries assignments, then it is parked all the same.
    PROTOCOL 4.2."""
    leader, follower = bench.completing_group()
    parked = bench.sync(follower, shares={leader: b"mine", follower: b"mine"})
    bench.sync(leader, shares={follower: b"F"})
    assert bench.replies[parked].assignment == b"F"


def test_members_left_out_get_nothing_and_strangers_are_ignored(bench):
    """Given an assignment that forgets a member and names a stranger, then the member gets an empty one and
    the stranger is not taken in. PROTOCOL 4.2, C-25."""
    leader, follower = bench.completing_group()
    parked = bench.sync(follower)
    bench.sync(leader, shares={leader: b"L", "stranger": b"S"})
    answer = bench.replies[parked]
    assert (answer.error, answer.assignment) == (ErrorCode.NONE, b"")
    assert set(bench.group().members) == {leader, follower}
    assert [m.member_id for m in bench.table()[0]["g"].members] == [leader, follower]


def test_the_assignment_is_in_the_log_before_any_sync_is_answered(bench):
    """Given the leader's sync, when the write is under way, then no sync is answered; once written, all are.
    PROTOCOL 4.2."""
    leader, follower = bench.completing_group()
    parked = bench.sync(follower)
    bench.holding = True
    leads = bench.sync(leader, shares={follower: b"F"})
    assert not {parked, leads} & set(bench.replies)
    assert bench.state() is COMPLETING
    bench.release()
    assert {parked, leads} <= set(bench.replies)
    assert bench.state() is GroupState.STABLE


def test_a_failed_write_starts_a_new_round(bench):
    """Given parked syncs, when the write fails, then they get the error, no assignment stays, and a round
    starts. PROTOCOL 4.2, C-27."""
    leader, follower = bench.completing_group()
    parked = [bench.sync(follower)]
    bench.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    parked.append(bench.sync(leader, shares={leader: b"L", follower: b"F"}))
    assert [bench.replies[request].error for request in parked] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert [bench.replies[request].assignment for request in parked] == [b"", b""]
    assert bench.state() is PREPARING
    assert [member.assignment for member in bench.group().members.values()] == [b"", b""]


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_write_that_a_new_round_overtook_is_ignored(bench, error):
    """Given the write under way, when another member joins, then its outcome changes nothing.
    PROTOCOL 4.2, C-26."""
    leader, _ = bench.completing_group()
    bench.holding = True
    parked = bench.sync(leader, shares={leader: b"L"})
    bench.enter()
    assert bench.replies[parked].error is ErrorCode.REBALANCE_IN_PROGRESS
    bench.release(error)
    assert (bench.state(), bench.group().generation) == (PREPARING, 2)
    assert bench.group().members[leader].assignment == b""


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_write_that_a_new_generation_overtook_is_ignored(bench, error):
    """Given the write under way, when the generation moves on to CompletingRebalance, then its outcome is
    ignored. PROTOCOL 4.2, C-26."""
    leader, follower = bench.completing_group()
    bench.holding = True
    bench.sync(leader, shares={leader: b"L", follower: b"F"})
    (under_way,) = bench.held
    bench.held, bench.holding = [], False
    bench.join(leader, metadata=b"new")
    bench.join(follower)
    parked = bench.sync(follower)
    bench.write(under_way, error)
    assert (bench.state(), bench.group().generation) == (COMPLETING, 3)
    assert parked not in bench.replies


def test_a_sync_with_a_stable_group_gets_the_assignment_again(bench):
    """Given Stable, when any member syncs, the leader with another assignment or none, then all get
    their old shares. PROTOCOL 4.1, C-28."""
    leader, follower = bench.stable_group()
    written = bench.table()
    for shares in ({}, {leader: b"other", follower: b"other"}):
        assert bench.synced(leader, shares=shares).assignment == bench.share(leader)
        assert bench.synced(follower).assignment == bench.share(follower)
    assert bench.table() == written
    assert bench.state() is GroupState.STABLE


def test_members_that_do_not_sync_in_time_are_removed(bench):
    """Given two followers of which one syncs, when the rebalance timeout passes, then the other is removed
    and a round starts. PROTOCOL 4.3, C-29."""
    leader, one, two = bench.completing_group(3, session_ms=LONG_MS)
    bench.sync(leader, shares={leader: b"L"})
    bench.sync(one)
    bench.sleep(59_999)
    assert bench.state() is GroupState.STABLE
    bench.sleep(1)
    assert list(bench.group().members) == [leader, one]
    assert bench.state() is PREPARING
    assert [e.member_id for e in bench.events_of(MemberRemoved)] == [two]


def test_followers_wait_for_a_silent_leader_until_it_is_removed(bench):
    """Given a leader that never syncs, when the rebalance timeout passes, then it is removed, the parked
    syncs get REBALANCE_IN_PROGRESS, and another member leads. PROTOCOL 4.3, C-29."""
    leader, follower = bench.completing_group(session_ms=LONG_MS)
    parked = bench.sync(follower)
    assert bench.sleep(60_000)[parked].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.state() is PREPARING
    assert list(bench.group().members) == [bench.group().leader] == [follower]
    assert leader not in bench.group().members


def test_a_group_in_which_no_member_syncs_becomes_empty(bench):
    """PROTOCOL 4.3, C-29."""
    bench.completing_group(session_ms=LONG_MS)
    bench.sleep(60_000)
    assert bench.state() is GroupState.EMPTY


def test_no_member_is_removed_when_all_have_synced(bench):
    """C-29."""
    members = bench.stable_group(3, session_ms=LONG_MS)
    bench.sleep(120_000)
    assert bench.group().members.keys() == set(members)
    assert bench.state() is GroupState.STABLE


def test_the_sync_timer_of_an_old_generation_is_void(bench):
    """Given a new generation, when the old one's time is up, then those that still have theirs stay. C-29."""
    leader, follower = bench.completing_group(session_ms=LONG_MS)
    bench.sleep(50_000)
    bench.join(leader, metadata=b"new", session_ms=LONG_MS)
    bench.join(follower, session_ms=LONG_MS)
    bench.sleep(59_999)
    assert len(bench.group().members) == 2
    bench.sleep(1)
    assert not bench.group().members


def test_sessions_start_anew_with_the_assignment(bench):
    """Given a follower parked for longer than its session, when the assignment comes, then it has a whole
    session from there, and no more. C-31."""
    leader, follower = bench.completing_group()
    bench.sync(follower)
    bench.sleep_and_beat(14_000, leader)
    bench.sync(leader)
    bench.sleep(9_999)
    assert follower in bench.group().members
    bench.sleep(1)
    assert follower not in bench.group().members


def test_sessions_start_anew_when_a_parked_sync_is_sent_away(bench):
    """Given a follower parked for longer than its session, when a new round answers it, then it has a whole
    session to come back. C-31, C-30."""
    leader, follower = bench.completing_group()
    bench.sync(follower)
    bench.sleep_and_beat(14_000, leader)
    bench.enter()
    bench.sleep(9_999)
    assert follower in bench.group().members
    bench.sleep(1)
    assert follower not in bench.group().members
