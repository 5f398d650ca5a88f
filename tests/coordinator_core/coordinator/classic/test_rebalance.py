"""The round: the members that it waits for, its end, its leader, its assignor."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged

PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
LONG_MS = 1_000_000


def test_a_round_ends_when_every_known_member_has_rejoined(bench):
    """Given three members, when the last rejoins, then all are answered. PROTOCOL 3.6."""
    members = bench.stable_group(3)
    parked = [bench.join(member) for member in members[:2]]
    assert bench.state() is PREPARING
    parked.append(bench.join(members[2]))
    assert [bench.replies[request].error for request in parked] == [ErrorCode.NONE] * 3
    assert bench.state() is COMPLETING


def test_a_round_waits_for_the_longest_rebalance_timeout(bench):
    """Given timeouts of 20 s and 60 s, when one does not rejoin, then the round ends after 60 s.
    PROTOCOL 3.6, C-14."""
    bench.enter(session_ms=LONG_MS, rebalance_ms=20_000)
    bench.enter(session_ms=LONG_MS, rebalance_ms=60_000)
    leader, _ = bench.settle()
    parked = bench.join(leader, session_ms=LONG_MS, rebalance_ms=20_000)
    assert parked not in bench.sleep(59_999)
    assert parked in bench.sleep(1)


def test_a_rebalance_timeout_of_zero_does_not_hold_up_time(bench):
    """Given static members that ask for no rebalance timeout and do not rejoin, when the round cannot end,
    then time goes on and their sessions end it. PROTOCOL 3.7."""
    members = bench.stable_group(3, instances=("a", "b", "c"), rebalance_ms=60_000)
    for member, instance in zip(members, "abc", strict=True):
        bench.join(member, instance=instance, rebalance_ms=0)
    leader, *_ = bench.settle()
    bench.leave(leader)
    bench.sleep(5_000)
    assert (bench.state(), bench.group().generation) == (PREPARING, 2)
    bench.sleep(20_000)
    assert bench.state() is GroupState.EMPTY


def test_dynamic_members_that_do_not_rejoin_are_removed_and_static_ones_stay(bench):
    """Given a leader, a static and a dynamic member, when only the leader rejoins in time, then the dynamic
    one is gone and its session with it, the static one stays. PROTOCOL 3.7, 6.4, C-15."""
    bench.enter(session_ms=LONG_MS)
    bench.enter(session_ms=LONG_MS, instance="i1")
    bench.enter(session_ms=LONG_MS)
    leader, static, dynamic = bench.settle()
    parked = bench.join(leader, session_ms=LONG_MS)
    bench.sleep(59_999)
    assert len(bench.group().members) == 3
    answer = bench.sleep(1)[parked]
    assert [member.member_id for member in answer.members] == [leader, static]
    assert bench.beat(dynamic) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat(static) is ErrorCode.NONE


@pytest.mark.parametrize("instances", [(), ("i1", "i2", "i3")])
def test_a_leader_that_rejoined_stays_leader_though_others_have_been_there_longer(bench, instances):
    """PROTOCOL 3.7."""
    first, *others = bench.stable_group(3, instances=instances or ("i1",), session_ms=LONG_MS)
    for member in others:
        bench.join(member, metadata=b"new", session_ms=LONG_MS)
    bench.sleep(60_000)
    for member in (first, *reversed(others)):
        bench.join(member, metadata=b"newer", session_ms=LONG_MS)
    assert (bench.state(), next(iter(bench.group().members))) == (COMPLETING, first)
    assert bench.group().leader == others[0]


def test_the_first_member_that_rejoined_leads_when_the_leader_did_not(bench):
    """Given a static leader that does not rejoin, when the timeout ends the round, then the rejoined member
    that has been in the group longest leads. PROTOCOL 3.7, C-16."""
    leader, second, third = bench.stable_group(3, instances=("i1",), session_ms=LONG_MS)
    parked = bench.join(third, metadata=b"new", session_ms=LONG_MS)
    bench.join(second, session_ms=LONG_MS)
    answer = bench.sleep(60_000)[parked]
    assert answer.leader == second
    assert list(bench.group().members) == [leader, second, third]


def test_a_round_in_which_no_member_rejoined_goes_on(bench):
    """Given only static members remain and none rejoins, when the timeout passes, then a full timeout is
    given again and the generation stays. PROTOCOL 3.7, C-16."""
    leader, first, second = bench.stable_group(3, instances=("a", "b", "c"), session_ms=LONG_MS)
    bench.leave(leader)
    bench.sleep(60_000)
    assert (bench.state(), bench.group().generation) == (PREPARING, 1)
    bench.sleep(59_000)
    parked = bench.join(second, instance="c", session_ms=LONG_MS)
    assert parked not in bench.sleep(999)
    answer = bench.sleep(1)[parked]
    assert (answer.generation_id, answer.leader) == (2, second)
    assert [member.member_id for member in answer.members] == [first, second]


def test_the_end_of_a_round_starts_a_generation(bench):
    """Given a round, when it ends, then generation + 1, CompletingRebalance, all joins are answered, and
    only the leader gets the members. PROTOCOL 3.7, C-17."""
    parked = [bench.enter(metadata=text) for text in (b"one", b"two")]
    bench.until(COMPLETING)
    leads, follows = (bench.replies[request] for request in parked)
    assert (leads.generation_id, follows.generation_id) == (1, 1)
    assert (leads.leader, follows.leader) == (leads.member_id, leads.member_id)
    assert {member.member_id: member.metadata for member in leads.members} == {
        leads.member_id: b"one",
        follows.member_id: b"two",
    }
    assert follows.members == ()
    assert (follows.protocol_type, follows.protocol_name) == ("consumer", "range")
    assert list(bench.group().pending_sync) == list(bench.group().members)


def test_the_end_of_a_round_starts_sessions_anew(bench):
    """Given a member that waited longer than its session, when the round ends, then it has a whole session
    again. C-17."""
    leader, follower = bench.stable_group()
    bench.join(leader)
    bench.sleep_and_beat(14_000, follower)
    bench.join(follower)
    bench.sleep(9_999)
    assert set(bench.group().members) == {leader, follower}
    bench.sleep(1)
    assert not bench.group().members


def test_a_member_that_completed_a_join_is_no_longer_new(bench):
    """Given members that were answered once, when they wait in a later round, then for as long as it takes:
    the five minutes are over. C-17, C-09."""
    leader, follower = bench.stable_group(rebalance_ms=900_000)
    parked = bench.join(leader, rebalance_ms=900_000)
    bench.sleep_and_beat(700_000, follower)
    assert parked not in bench.replies
    bench.join(follower, rebalance_ms=900_000)
    assert bench.replies[parked].error is ErrorCode.NONE


def test_a_group_without_members_becomes_empty_one_generation_later(bench):
    """Given one member, when it leaves, then generation + 1, no leader, no assignor, Empty.
    PROTOCOL 3.7, C-13."""
    (member,) = bench.stable_group(1)
    bench.leave(member)
    group = bench.group()
    assert (group.state, group.generation, group.protocol_name, group.leader) == (
        GroupState.EMPTY,
        2,
        None,
        None,
    )


def test_a_new_round_answers_the_syncs_that_wait(bench):
    """Given a parked sync, when a member joins, then REBALANCE_IN_PROGRESS with an empty assignment.
    PROTOCOL 3.10, C-30."""
    _, follower = bench.completing_group()
    parked = bench.sync(follower)
    bench.enter()
    answer = bench.replies[parked]
    assert (answer.error, answer.assignment) == (ErrorCode.REBALANCE_IN_PROGRESS, b"")


def test_a_new_round_forgets_the_assignments_and_the_sync_timer(bench):
    """Given a generation without any sync, when a new round starts and lasts, then the old sync timer does
    not remove any member. C-30."""
    leader, follower = bench.completing_group(session_ms=LONG_MS)
    bench.sleep(30_000)
    bench.join(leader, metadata=b"new", session_ms=LONG_MS)
    assert [member.assignment for member in bench.group().members.values()] == [b"", b""]
    bench.sleep(59_999)
    assert list(bench.group().members) == [leader, follower]


def test_a_new_member_has_five_minutes_to_get_through_a_join(bench):
    """Given a newcomer whose round does not end, when five minutes pass, then it is removed and its join
    answered UNKNOWN_MEMBER_ID. PROTOCOL 3.11, C-09."""
    given = {"session_ms": LONG_MS, "rebalance_ms": 600_000}
    bench.stable_group(2, **given)
    parked = bench.enter(**given)
    assert parked not in bench.sleep(299_999)
    assert bench.sleep(1)[parked].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(bench.group().members) == 2


@pytest.mark.parametrize("arrange", ["completing_group", "stable_group", "preparing_group"])
def test_a_new_member_with_a_short_session_has_the_five_minutes_too(bench, arrange):
    """Given any state, when a newcomer with a session of 10 s waits longer than that, then it stays.
    PROTOCOL 3.11, 5.2, C-09."""
    given = {"session_ms": LONG_MS, "rebalance_ms": 600_000}
    getattr(bench, arrange)(2, **given)
    parked = bench.enter(session_ms=10_000)
    assert parked not in bench.sleep(299_999)
    assert parked in bench.sleep(1)


def test_a_new_member_that_repeats_its_join_keeps_the_five_minutes(bench):
    """PROTOCOL 3.11, 5.2."""
    bench.stable_group(2, session_ms=LONG_MS, rebalance_ms=600_000)
    newcomer = bench.newcomer()
    repeated = bench.join(newcomer)
    assert repeated not in bench.sleep(299_999)
    assert repeated in bench.sleep(1)


def test_a_removed_newcomer_may_end_the_round(bench):
    """Given a round that waits for one member, when that member expires, then it ends.
    PROTOCOL 5.3."""
    leader, follower = bench.stable_group()
    parked = bench.join(leader)
    answer = bench.sleep(10_000)[parked]
    assert [member.member_id for member in answer.members] == [leader]
    assert bench.beat(follower) is ErrorCode.UNKNOWN_MEMBER_ID


def test_every_round_has_a_cause(bench):
    """Given rounds of many kinds, when they start, then the event has the cause. PROTOCOL 2.1."""
    leader, follower = bench.stable_group()
    bench.join(leader)
    bench.join(follower, metadata=b"new")
    bench.settle()
    bench.leave(follower)
    bench.join(leader)
    bench.settle()
    bench.sleep(10_000)
    rounds = [e for e in bench.events_of(GroupStateChanged) if e.after == PREPARING.value]
    assert [event.cause.replace(leader, "L").replace(follower, "F") for event in rounds] == [
        "L joined",
        "the leader L rejoined",
        "F left",
        "session of L expired",
    ]


@pytest.mark.parametrize(
    ("lists", "chosen"),
    [
        ([("range", "rr"), ("rr", "range"), ("rr",)], "rr"),
        ([("a", "b"), ("b", "a"), ("b", "a")], "b"),
        ([("x", "a", "b"), ("b", "a"), ("y", "a", "b")], "a"),
        ([("b", "a"), ("a", "b")], "a"),
        ([("a", "b"), ("b", "a")], "a"),
        ([("c", "a", "b"), ("a", "b", "c"), ("b", "a", "c")], "a"),
        ([("c", "b", "a"), ("a", "b", "c"), ("b", "a", "c"), ("a", "c", "b"), ("b", "c", "a")], "a"),
        ([("roundrobin", "range"), ("range", "roundrobin")], "range"),
        ([("range", "sticky"), ("sticky", "range")], "sticky"),
        ([("cooperative-sticky", "range"), ("range", "cooperative-sticky")], "range"),
    ],
)
def test_most_votes_choose_the_assignor(bench, lists, chosen):
    """Given lists of assignors, when the round ends, then members vote for their first among those
    that all have; a tie goes to the first in a hash map of Java. PROTOCOL 3.8, C-07."""
    for names in lists:
        bench.enter(names=names)
    bench.until(COMPLETING)
    assert bench.group().protocol_name == chosen


def test_the_next_leader_is_the_first_that_remains(bench):
    """Given a leader and two more, when the leader leaves, then the one longest in the group leads.
    PROTOCOL 5.3, C-18."""
    leader, second, third = bench.stable_group(3)
    bench.leave(leader)
    assert bench.group().leader == second
    bench.join(third)
    bench.join(second)
    assert bench.group().leader == second
    assert bench.state() is COMPLETING
