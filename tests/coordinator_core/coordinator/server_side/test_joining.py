"""Joins of groups whose coordinator computes the assignments, and the initial delay."""

import pytest

from coordinator_core.coordinator.server_side.group import State
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GenerationStarted, GroupStateChanged

PREPARING, ASSIGNING, STABLE, EMPTY = State.PREPARING, State.ASSIGNING, State.STABLE, State.EMPTY


def states_at(bench, *moments):
    found = []
    for moment in moments:
        bench.sleep(moment - bench.now_ms)
        found.append(bench.state())
    return found


# --- a join


def test_every_member_gets_its_share_in_the_response_to_its_join(bench):
    """PROTOCOL 11.2: no SyncGroup."""
    first, second = bench.enter(client="c0"), bench.enter(client="c1")
    bench.until(STABLE)
    assert (bench.share_in(first), bench.share_in(second)) == ("t0 t2", "t1 t3")
    for request, member_id in zip((first, second), bench.group().members, strict=True):
        answer = bench.replies[request]
        assert (answer.member_id, answer.generation_id, answer.protocol_name) == (member_id, 1, "dealing")


def test_the_assignor_gets_the_topics_of_each_member(bench):
    bench.enter(topics=("t",))
    bench.enter(topics=("t", "u"))
    bench.until(STABLE)
    assert [list(members.values()) for members in bench.computed] == [[("t",), ("t", "u")]]
    assert bench.group().topics == {"t": 4, "u": 2}


def test_a_generation_starts_when_its_assignment_is_stored(bench):
    """Given the write takes a while, then the group is Assigning, and no member has an answer. 11.2."""
    members, joins = bench.assigning_group()
    assert [event.generation for event in bench.events_of(GenerationStarted)] == [1]
    assert not [request for request in joins if request in bench.replies]
    bench.release()
    assert bench.state() is STABLE
    started = bench.events_of(GenerationStarted)[-1]
    assert (started.generation, started.leader, started.members) == (2, "", members)
    assert [bench.share_in(request) for request in joins] == ["t0 t3", "t1", "t2"]


def test_the_group_is_stored_before_its_members_are_answered(bench):
    """Given a write under way, when another broker takes over before it ends, then the old assignment is the
    group's; and the new one if it was written. PROTOCOL 11.2."""
    bench.assigning_group()
    bench.start()
    bench.take_over()
    assert (bench.state(), bench.group().generation, len(bench.group().members)) == (STABLE, 1, 2)


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_range_is_refused(bench, session_ms):
    answer = bench.joined(session_ms=session_ms)
    assert answer.error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert bench.group() is None


def test_the_last_to_rejoin_a_group_above_its_limit_is_removed(make):
    """Given a Stable group of three and a limit of two from now on, when all rejoin for other topics, then
    the last gets GROUP_MAX_SIZE_REACHED and the round ends without it. PROTOCOL 3.1, C-08."""
    roomy = make()
    members = roomy.stable_group(3)
    bench = make(max_size=2, log=roomy.log)
    answers = [bench.joined(member, topics=("u",)) for member in members]
    assert answers[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert (list(bench.group().members), bench.state()) == (members[:2], STABLE)


@pytest.mark.parametrize("exists", [False, True])
def test_an_unknown_member_id_is_refused(bench, exists):
    if exists:
        bench.stable_group(1)
    answer = bench.joined("stranger")
    assert (answer.error, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "stranger")
    assert (bench.group() is not None) == exists


def test_a_second_join_takes_the_place_of_a_parked_one(bench):
    """Given a join that was sent twice, then only the second one is answered."""
    first = bench.enter()
    (member_id,) = bench.group().members
    second = bench.join(member_id)
    bench.until(STABLE)
    assert bench.superseded == {first}
    assert bench.share_in(second) == "t0 t1 t2 t3"


# --- the initial delay


def test_the_initial_delay_is_not_cut_short(bench):
    """Given the window runs, when a member leaves and the others have joined, then it runs on. C-11."""
    bench.enter()
    leaver = bench.newcomer()
    assert bench.leave(leaver) == [ErrorCode.NONE]
    assert states_at(bench, 2_999, 6_000) == [PREPARING, STABLE]
    assert len(bench.group().members) == 1


# --- joining again


def test_a_join_that_changes_nothing_gets_the_stored_share_without_a_round(bench):
    members = bench.stable_group()
    again = bench.join(members[1])
    assert (bench.share_in(again), bench.replies[again].generation_id) == ("t1 t3", 1)
    assert (bench.state(), len(bench.computed)) == (STABLE, 1)


def test_other_topics_of_a_member_start_a_round(bench):
    first, second = bench.stable_group()
    assert bench.joined(first, topics=("t", "u")) is None
    assert bench.state() is PREPARING
    assert bench.events_of(GroupStateChanged)[-1].cause == f"{first} changed its topics"
    bench.join(second)
    assert (bench.state(), bench.group().generation) == (STABLE, 2)
    assert bench.computed[-1] == {first: ("t", "u"), second: ("t",)}


def test_other_partitions_of_a_topic_start_a_round(bench):
    """PROTOCOL 11.2: the coordinator computes the assignment, so that it notices. Heartbeats announce it."""
    first, second = bench.stable_group()
    bench.change_topics(t=6, u=2)
    assert bench.state() is PREPARING
    assert bench.events_of(GroupStateChanged)[-1].cause == "partitions of a subscribed topic changed"
    assert bench.beat(first) is bench.beat(second) is ErrorCode.ILLEGAL_GENERATION
    assert bench.joined(first) is None
    other = bench.join(second)
    assert bench.share_in(other) == "t1 t3 t5"


@pytest.mark.parametrize("topics", [{"t": 4, "u": 2, "other": 3}, {"t": 4, "u": 3}, {"t": 4}])
def test_topics_that_nobody_subscribes_to_start_no_round(bench, topics):
    bench.stable_group()
    bench.change_topics(**topics)
    assert bench.state() is STABLE


def test_partitions_that_are_added_during_a_round_are_in_its_assignment(bench):
    first, second = bench.preparing_group()
    bench.change_topics(t=6, u=2)
    bench.join(first)
    bench.join(second)
    assert (bench.state(), bench.group().topics) == (STABLE, {"t": 6})


def test_topics_of_a_group_without_members_start_no_round(bench):
    (member_id,) = bench.stable_group(1)
    bench.leave(member_id)
    bench.change_topics(t=6, u=2)
    assert bench.state() is EMPTY


def test_a_round_waits_for_all_members_to_join_again(bench):
    first, second = bench.stable_group()
    newcomer = bench.enter()
    bench.join(first)
    assert bench.state() is PREPARING
    bench.join(second)
    assert bench.state() is STABLE
    assert bench.share_in(newcomer) == "t2"


def test_a_pending_id_holds_the_round_open_until_it_expires(bench):
    """PROTOCOL 3.4, C-04."""
    first, second = bench.stable_group()
    bench.joined(session_ms=7_000)
    parked = bench.join(first, topics=("u",))
    bench.join(second)
    bench.sleep(6_999)
    assert bench.state() is PREPARING
    assert bench.sleep(1)[parked].error is ErrorCode.NONE


def test_a_pending_id_holds_the_round_open_until_it_leaves(bench):
    """PROTOCOL 5.4, C-04."""
    first, second = bench.stable_group()
    pending = bench.joined().member_id
    bench.join(first, topics=("u",))
    bench.join(second)
    assert bench.leave(pending) == [ErrorCode.NONE]
    assert bench.state() is STABLE


def test_the_round_goes_on_without_members_that_do_not_join_in_time(bench):
    """Given one of two members only sends heartbeats, when the largest rebalance timeout is over, then it is
    removed."""
    first, second = bench.stable_group(rebalance_ms=20_000)
    parked = bench.join(first, topics=("t", "u"), rebalance_ms=15_000)
    bench.sleep_and_beat(18_000, second)
    bench.sleep(1_999)
    assert (bench.state(), parked in bench.replies) == (PREPARING, False)
    bench.sleep(1)
    assert (bench.state(), list(bench.group().members)) == (STABLE, [first])
    assert bench.share_in(parked) == "t0 t1 t2 t3 u0 u1"
    assert bench.beat(second) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_description_of_the_group(bench):
    members = bench.stable_group()
    (group,) = bench.ask(m.DescribeGroupsRequest(group_ids=("g",))).groups
    assert (group.state, group.protocol_name) == ("Stable", "dealing")
    assert [member.member_id for member in group.members] == members
    assert all(member.assignment for member in group.members)
