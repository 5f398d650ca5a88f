"""LeaveGroup: one or many at once, by member id or instance id."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged, MemberRemoved

PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE


@pytest.mark.parametrize("arrange", ["stable_group", "completing_group"])
def test_leaving_starts_a_round(bench, arrange):
    """Given Stable or CompletingRebalance, when a member leaves, then it is gone and a round starts.
    PROTOCOL 5.3, C-37."""
    leader, follower = getattr(bench, arrange)()
    assert bench.leave(follower) == [ErrorCode.NONE]
    assert list(bench.group().members) == [leader]
    assert bench.state() is PREPARING


def test_leaving_may_end_a_round(bench):
    """Given PreparingRebalance, when the one that is waited for leaves, then the round ends.
    PROTOCOL 5.3, C-37."""
    leader, follower = bench.stable_group()
    parked = bench.join(leader)
    bench.leave(follower)
    assert bench.replies[parked].generation_id == 2


def test_a_parked_join_of_one_that_leaves_is_answered(bench):
    """Given a member parked in a join, when it leaves, then its join gets UNKNOWN_MEMBER_ID. C-37."""
    leader, _ = bench.stable_group()
    parked = bench.join(leader)
    bench.leave(leader)
    assert bench.replies[parked].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_sync_of_one_that_leaves_is_never_answered(bench):
    """Given a member parked in a sync, when it leaves, then its sync gets no response, as in Kafka. C-37."""
    _, follower = bench.completing_group()
    parked = bench.sync(follower)
    bench.leave(follower)
    assert bench.superseded == {parked}


def test_many_leave_at_once_each_with_its_own_answer(bench):
    """Given a batch of a member, an instance, a stranger and an unknown instance, then every one has its own
    error code, and one round starts. PROTOCOL 5.4, C-37."""
    static, leaver, stays = bench.stable_group(3, instances=("i1",))
    before = len(bench.events_of(GroupStateChanged))
    errors = bench.leave(leaver, ("", "i1"), "x", ("", "i9"), "")
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert errors == [ErrorCode.NONE, ErrorCode.NONE, unknown, unknown, unknown]
    assert list(bench.group().members) == [stays]
    (round_,) = bench.events_of(GroupStateChanged)[before:]
    assert (round_.after, round_.cause) == (PREPARING.value, f"{leaver}, instance i1 left")
    assert static not in bench.group().members


def test_the_answer_names_those_who_left(bench):
    """PROTOCOL 5.4."""
    bench.stable_group(1, instances=("i1",))
    who = (m.MemberIdentity("x"), m.MemberIdentity("", "i1"))
    answer = bench.ask(m.LeaveGroupRequest(group_id="g", members=who))
    assert answer.error is ErrorCode.NONE
    assert [(x.member_id, x.group_instance_id) for x in answer.members] == [("x", None), ("", "i1")]


def test_a_static_member_leaves_by_both_its_ids_but_not_under_a_fenced_one(bench):
    """Given a replaced static member, when its old id leaves, then FENCED_INSTANCE_ID; the new one may.
    PROTOCOL 5.4, 6.2."""
    old, _ = bench.stable_group(2, instances=("i1",))
    bench.join(instance="i1")
    new = bench.group().static_members["i1"]
    assert bench.leave((old, "i1")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert bench.leave((new, "i1")) == [ErrorCode.NONE]
    assert not bench.group().static_members


def test_a_pending_id_may_leave(bench):
    """Given a pending id, when it leaves, then it is unknown. PROTOCOL 5.4, C-37."""
    pending = bench.joined().member_id
    assert bench.leave(pending) == [ErrorCode.NONE]
    assert not bench.group().pending
    assert bench.leave(pending) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert bench.joined(pending).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_id_that_leaves_starts_a_round_as_in_kafka(bench):
    """Given Stable, when a pending id leaves, then a round, though no member went. PROTOCOL 5.4, C-37."""
    bench.stable_group()
    bench.leave(bench.joined().member_id)
    assert bench.state() is PREPARING


def test_a_batch_that_removes_no_member_starts_no_round(bench):
    """C-37."""
    bench.stable_group()
    bench.leave("x", ("", "i9"))
    assert bench.state() is GroupState.STABLE


def test_the_reason_is_kept(bench):
    """Given a reason (KIP-800), when a member leaves, then the event carries it."""
    leader, _ = bench.stable_group()
    who = (m.MemberIdentity(leader, reason="the consumer is being closed"),)
    bench.send(m.LeaveGroupRequest(group_id="g", members=who))
    assert [e.reason for e in bench.events_of(MemberRemoved)] == ["the consumer is being closed"]


def test_a_session_that_ended_by_leaving_does_not_expire_again(bench):
    """Given a static member that left and came back under the same instance id, when its old session would
    have ended, then nothing happens. PROTOCOL 5.3."""
    (member,) = bench.stable_group(1, instances=("i1",))
    bench.sleep(5_000)
    bench.leave(member)
    bench.enter(instance="i1")
    (back,) = bench.settle()
    bench.sleep_and_beat(6_000, back)
    assert [e.member_id for e in bench.events_of(MemberRemoved)] == [member]
