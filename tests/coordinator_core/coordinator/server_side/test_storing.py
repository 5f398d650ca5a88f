"""The assignment that is stored before it is answered, whatever happens meanwhile (PROTOCOL 11.2)."""

import pytest

from coordinator_core.coordinator.server_side.group import State
from coordinator_core.protocol.consumer_protocol import decode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GenerationStarted, GroupStateChanged

PREPARING, ASSIGNING, STABLE, EMPTY = State.PREPARING, State.ASSIGNING, State.STABLE, State.EMPTY


def states(bench):
    """Return the states that the group has entered."""
    return [event.after for event in bench.events_of(GroupStateChanged)]


def errors(bench, requests):
    return [bench.replies[request].error for request in requests]


def test_an_assignment_that_cannot_be_stored_starts_another_round(bench):
    """Given the write fails, then every join gets the error, and the members join again in the next
    generation."""
    members, joins = bench.assigning_group()
    bench.release(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert errors(bench, joins) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert bench.state() is PREPARING
    cause = bench.events_of(GroupStateChanged)[-1].cause
    assert cause == "the assignment could not be stored (COORDINATOR_NOT_AVAILABLE)"
    assert [bench.beat(member_id, 1) for member_id in members] == [ErrorCode.ILLEGAL_GENERATION] * 3
    again = [bench.join(member_id) for member_id in members]
    assert (bench.state(), bench.group().generation) == (STABLE, 3)
    assert [bench.share_in(request) for request in again] == ["t0 t3", "t1", "t2"]
    assert [event.generation for event in bench.events_of(GenerationStarted)] == [1, 3]


def test_members_that_do_not_join_after_a_failed_write_are_removed(bench):
    bench.assigning_group()
    bench.release(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.sleep(60_000)
    assert (bench.state(), bench.group().members) == (EMPTY, {})


def test_a_member_that_joins_meanwhile_gets_its_share_in_the_next_round(bench):
    members, joins = bench.assigning_group()
    late = bench.enter(client="late")
    assert bench.state() is ASSIGNING
    bench.release()
    assert [bench.share_in(request) for request in joins] == ["t0 t3", "t1", "t2"]
    assert late not in bench.replies
    assert bench.state() is PREPARING
    assert bench.events_of(GenerationStarted)[-1].members == members
    again = [bench.join(member_id) for member_id in members]
    assert bench.state() is STABLE
    assert [bench.share_in(request) for request in (*again, late)] == ["t0", "t1", "t2", "t3"]


def test_a_member_that_leaves_meanwhile_has_no_share(bench):
    """Given a member leaves during the write, then the others get their shares, and a round follows."""
    (first, second, third), (one, two, three) = bench.assigning_group()
    assert bench.leave(second) == [ErrorCode.NONE]
    assert bench.state() is ASSIGNING
    bench.release()
    assert bench.replies[two].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert (bench.share_in(one), bench.share_in(three)) == ("t0 t3", "t2")
    assert bench.events_of(GenerationStarted)[-1].members == [first, third]
    assert (bench.state(), bench.events_of(GroupStateChanged)[-1].cause) == (PREPARING, f"{second} left")
    again = [bench.join(member_id) for member_id in (first, third)]
    assert [bench.share_in(request) for request in again] == ["t0 t2", "t1 t3"]


def test_a_group_whose_members_all_leave_meanwhile_becomes_empty(bench):
    members, _ = bench.assigning_group()
    bench.leave(*members)
    bench.release()
    assert (bench.state(), bench.group().members) == (EMPTY, {})
    assert states(bench)[-3:] == [STABLE, PREPARING, EMPTY]


def test_a_join_that_is_sent_again_meanwhile_is_answered_once(bench):
    (first, *_), (one, two, three) = bench.assigning_group()
    again = bench.join(first)
    assert bench.superseded == {one}
    bench.release()
    assert bench.state() is STABLE
    assert [bench.share_in(request) for request in (again, two, three)] == ["t0 t3", "t1", "t2"]


def test_other_topics_of_a_member_meanwhile_start_another_round(bench):
    """Given a member joins again with another topic, then it gets the share of the old ones, and a round
    follows."""
    (first, *_), _ = bench.assigning_group()
    again = bench.join(first, topics=("t", "u"))
    assert bench.state() is ASSIGNING
    bench.release()
    assert bench.share_in(again) == "t0 t3"
    assert (bench.state(), bench.events_of(GroupStateChanged)[-1].cause) == (
        PREPARING,
        f"{first} changed its topics",
    )


def test_a_pending_id_expires_meanwhile(bench):
    bench.assigning_group()
    bench.joined(session_ms=7_000)
    bench.sleep(7_000)
    assert (bench.state(), bench.group().pending) == (ASSIGNING, {})
    bench.release()
    assert bench.state() is STABLE


def test_a_write_that_ends_after_its_broker_changes_nothing(bench):
    """Given a write that an earlier broker began, when it ends, then the group is what the log has."""
    bench.assigning_group()
    held = bench.held[:]
    bench.start()
    bench.take_over()
    bench.holding = False
    for append in held:
        bench.take(bench.coordinator.on_appended(append.append_id, ErrorCode.NONE, now_ms=bench.now_ms))
    assert (bench.state(), bench.group().generation) == (STABLE, 1)


# --- a broker that takes over


def test_a_stored_assignment_counts_though_nobody_was_answered(bench):
    """Given the broker dies after storing and before answering, then the members get the stored shares from
    the next one, in the same generation, without a round."""
    members, joins = bench.assigning_group()
    for append in bench.held:
        bench.log.append(append.partition, append.records)
    bench.start()
    bench.take_over()
    bench.holding = False
    assert bench.lost >= set(joins)
    assert (bench.state(), bench.group().generation) == (STABLE, 2)
    again = [bench.join(member_id) for member_id in members]
    assert [bench.share_in(request) for request in again] == ["t0 t3", "t1", "t2"]
    assert {bench.replies[request].generation_id for request in again} == {2}
    assert len(bench.computed) == 2


def test_an_assignment_that_was_not_stored_does_not_count(bench):
    """Given the broker dies before storing, then the old members get their old shares, and the newcomer,
    which is unknown, joins anew; the generation starts only once."""
    (first, second, newcomer), _ = bench.assigning_group()
    bench.start()
    bench.take_over()
    bench.holding = False
    again = [bench.join(member_id) for member_id in (first, second)]
    assert [bench.share_in(request) for request in again] == ["t0 t2", "t1 t3"]
    assert bench.joined(newcomer).error is ErrorCode.UNKNOWN_MEMBER_ID
    bench.enter(client="new")
    for member_id in (first, second):
        bench.join(member_id)
    assert (bench.state(), bench.group().generation) == (STABLE, 2)
    assert [event.generation for event in bench.events_of(GenerationStarted)] == [1, 2]


def test_a_group_is_restored_with_its_members_shares_and_topics(bench):
    """PROTOCOL 8.2."""
    first, second = bench.stable_group(topics=("t", "u"), session_ms=12_000, rebalance_ms=40_000)
    before = bench.group()
    bench.start()
    bench.take_over()
    after = bench.group()
    assert (after.state, after.generation, after.protocol_name) == (STABLE, 1, "dealing")
    assert after.members == before.members
    assert after.topics == before.topics == {"t": 4, "u": 2}
    assert decode_assignment(after.members[first].assignment)[0]
    assert bench.beat(second) is ErrorCode.NONE


def test_sessions_begin_anew_with_the_broker(bench):
    """PROTOCOL 8.2."""
    bench.stable_group(1)
    bench.sleep(9_000)
    bench.start()
    bench.take_over()
    bench.sleep(9_999)
    assert bench.state() is STABLE
    bench.sleep(1)
    assert bench.state() is EMPTY


def test_a_member_without_topics_is_restored_without_topics(bench):
    """Given a member whose pattern matches nothing, then it has no topic, rather than one without a name."""
    (member_id,) = bench.stable_group(1, topics=())
    bench.start()
    bench.take_over()
    assert bench.group().members[member_id].topics == ()
    assert bench.share_in(bench.join(member_id, topics=())) == ""
    assert bench.state() is STABLE


def test_an_empty_group_is_restored(bench):
    (member_id,) = bench.stable_group(1)
    bench.leave(member_id)
    bench.start()
    bench.take_over()
    assert (bench.state(), bench.group().generation, bench.group().members) == (EMPTY, 2, {})
    bench.stable_group(1)
    assert bench.group().generation == 3


def test_partitions_that_were_added_during_a_failover_start_a_round(bench):
    """Given the topic has grown when a broker takes over, then what was stored no longer counts."""
    first, second = bench.stable_group()
    bench.start()
    bench.topics["t"] = 6
    bench.take_over()
    one, two = bench.join(first), bench.join(second)
    assert (bench.share_in(one), bench.share_in(two)) == ("t0 t2 t4", "t1 t3 t5")


def test_partitions_that_are_added_while_an_assignment_is_stored_start_another_round(bench):
    members, _ = bench.assigning_group()
    bench.change_topics(t=6, u=2)
    bench.release()
    assert (bench.state(), bench.group().generation) == (PREPARING, 2)
    for member_id in members:
        bench.join(member_id)
    assert (bench.state(), bench.group().topics) == (STABLE, {"t": 6})


@pytest.mark.parametrize("shrinks", [False, True])
def test_a_topic_that_is_deleted_starts_a_round(bench, shrinks):
    (member_id,) = bench.stable_group(1, topics=("t", "u"))
    if shrinks:
        bench.change_topics(t=4)
    request = bench.join(member_id, topics=("t", "u"))
    assert bench.share_in(request) == ("t0 t1 t2 t3" if shrinks else "t0 t1 t2 t3 u0 u1")
    assert bench.group().generation == (2 if shrinks else 1)
