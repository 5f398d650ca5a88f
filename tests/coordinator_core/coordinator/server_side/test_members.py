"""Sessions, heartbeats, leaves and commits of groups whose coordinator computes the assignments."""

import pytest

from coordinator_core.coordinator.server_side.group import State
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged, MemberRemoved

PREPARING, ASSIGNING, STABLE, EMPTY = State.PREPARING, State.ASSIGNING, State.STABLE, State.EMPTY
DAY_MS = 86_400_000


def last_cause(bench):
    return bench.events_of(GroupStateChanged)[-1].cause


# --- heartbeats and sessions


@pytest.mark.parametrize("make_group", ["preparing_group", "assigning_group"])
def test_heartbeats_announce_a_round_with_illegal_generation(bench, make_group):
    """PROTOCOL 11.2."""
    members = getattr(bench, make_group)()
    first = members[0] if make_group == "preparing_group" else members[0][0]
    for generation in (1, 2):
        assert bench.beat(first, generation) is ErrorCode.ILLEGAL_GENERATION


def test_a_heartbeat_with_another_generation_is_refused(bench):
    (member_id,) = bench.stable_group(1)
    assert bench.beat(member_id, 0) is bench.beat(member_id, 2) is ErrorCode.ILLEGAL_GENERATION


def test_a_heartbeat_of_an_unknown_member_is_refused(bench):
    assert bench.beat("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    bench.stable_group(1)
    assert bench.beat("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat(bench.joined().member_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_session_expires_without_heartbeats_and_starts_a_round(bench):
    """PROTOCOL 5.2."""
    first, second = bench.stable_group()
    bench.sleep_and_beat(8_000, first)
    bench.sleep(1_999)
    assert bench.state() is STABLE
    bench.sleep(1)
    assert (bench.state(), list(bench.group().members)) == (PREPARING, [first])
    assert last_cause(bench) == f"session of {second} expired"
    (removed,) = bench.events_of(MemberRemoved)
    assert (removed.member_id, removed.reason) == (second, "session expired")
    request = bench.join(first)
    assert bench.share_in(request) == "t0 t1 t2 t3"


def test_heartbeats_and_commits_keep_a_session(bench):
    """PROTOCOL 5.1."""
    (member_id,) = bench.stable_group(1)
    for _ in range(3):
        bench.sleep(9_999)
        assert bench.beat(member_id) is ErrorCode.NONE
        bench.sleep(9_999)
        assert bench.commit(member_id, 1) is ErrorCode.NONE
    assert bench.state() is STABLE


def test_a_heartbeat_that_announces_a_round_keeps_the_session(bench):
    first, second = bench.preparing_group()
    bench.sleep_and_beat(30_000, first)
    assert first in bench.group().members
    assert second not in bench.group().members


def test_the_session_of_a_parked_join_does_not_expire(bench):
    """PROTOCOL 5.2."""
    first, second = bench.stable_group()
    bench.join(first, topics=("u",))
    bench.sleep_and_beat(40_000, second)
    assert list(bench.group().members) == [first, second]
    bench.join(second)
    assert bench.state() is STABLE
    bench.sleep(9_999)
    assert bench.state() is STABLE
    bench.sleep(1)
    assert bench.state() is EMPTY


def test_the_last_session_that_expires_empties_the_group(bench):
    bench.stable_group(1)
    bench.sleep(10_000)
    assert (bench.state(), bench.group().generation) == (EMPTY, 2)
    bench.sleep(8 * DAY_MS)
    assert bench.coordinator.group_ids() == []
    assert bench.table() == ({}, {})


# --- leaving


def test_a_member_that_leaves_starts_a_round(bench):
    """PROTOCOL 5.4."""
    first, second = bench.stable_group()
    assert bench.leave(second) == [ErrorCode.NONE]
    assert (bench.state(), list(bench.group().members)) == (PREPARING, [first])
    assert last_cause(bench) == f"{second} left"


def test_several_members_that_leave_start_one_round(bench):
    """Given a batch with a stranger in it, then each has its own error code. PROTOCOL 5.4."""
    first, second, third = bench.stable_group(3)
    assert bench.leave(second, "stranger", third) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert last_cause(bench) == f"{second}, {third} left"
    bench.join(first)
    assert bench.group().generation == 2


def test_a_member_that_leaves_while_its_join_is_parked_gets_both_answers(bench):
    first, _ = bench.stable_group()
    parked = bench.join(first, topics=("u",))
    assert bench.leave(first) == [ErrorCode.NONE]
    assert bench.replies[parked].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.state() is PREPARING


# --- commits


def test_a_member_commits_with_its_generation(bench):
    """PROTOCOL 7.1."""
    (member_id,) = bench.stable_group(1)
    assert bench.commit(member_id, 1, 7) is ErrorCode.NONE
    assert bench.commit(member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit() is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.committed() == 7


def test_a_member_commits_while_others_join(bench):
    """Given a round is being prepared, when a member commits before it gives up its partitions, then it is
    accepted."""
    first, _ = bench.preparing_group()
    assert bench.commit(first, 1, 9) is ErrorCode.NONE
    assert bench.committed() == 9


def test_a_commit_of_the_last_generation_is_refused_while_the_next_is_stored(bench):
    (first, *_), _ = bench.assigning_group()
    assert bench.commit(first, 1) is ErrorCode.ILLEGAL_GENERATION


def test_a_group_with_offsets_only_keeps_them_when_members_join(bench):
    bench.commit(offset=3)
    bench.stable_group(1)
    assert bench.committed() == 3
    assert bench.group().family == "server-side"


@pytest.mark.parametrize("topic", ["t", "u"])
def test_offsets_of_topics_without_subscribers_expire(make, topic):
    """PROTOCOL 2.1."""
    bench = make(offsets_retention_minutes=1)
    (member_id,) = bench.stable_group(1)
    bench.commit(member_id, 1, topic=topic)
    bench.sleep_and_beat(3_600_000, member_id)
    assert bench.committed(topic=topic) == (5 if topic == "t" else -1)


def test_offsets_do_not_expire_during_a_round(bench):
    bench.preparing_group()
    assert bench.group().topics_in_use() is None
    assert bench.group().subscribed_topics() == {"t": None}


# --- requests of the classic family


def test_there_is_no_sync_group(bench):
    """PROTOCOL 11.2."""
    (member_id,) = bench.stable_group(1)
    with pytest.raises(TypeError, match="SyncGroupRequest"):
        bench.send(m.SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id))
