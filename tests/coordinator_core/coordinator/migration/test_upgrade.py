"""A member of the consumer protocol joins a classic group (PROTOCOL 11.9)."""

import pytest

from coordinator_core.coordinator.reconcile.settings import POLICIES
from coordinator_core.model import Partitions
from coordinator_core.protocol.consumer_protocol import encode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged

BUSY, NONE, NOT_FOUND = ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND


def test_the_group_goes_on_with_its_members_generation_and_assignment(bench, make_told):
    """PROTOCOL 11.9."""
    first, second = bench.classic_group((0, 1), (2, 3))
    generation = bench.group().generation
    answer = bench.arrive("new")
    assert (answer.error, answer.member_epoch, answer.assignment) == (NONE, generation + 1, ())
    group = bench.group()
    assert (group.family, group.generation) == ("reconcile", generation + 1)
    assert group.members.keys() == {first, second, "new"}
    assert [(tp.partition) for tp in bench.current(second).assigned] == [2, 3]
    assert bench.current(first).epoch == bench.current(second).epoch == generation
    member = group.members[first]
    assert (member.topics, member.rebalance_timeout_ms) == (("t",), 60_000)
    assert (member.classic.session_timeout_ms, member.classic.protocols) == (
        10_000,
        (("range", make_told()),),
    )
    moves = [(e.before, e.after, e.cause) for e in bench.events_of(GroupStateChanged)]
    assert ("Stable", "Stable", "Upgrade group g from classic to consumer") in moves


@pytest.mark.parametrize("policy", ["downgrade", "DISABLED"])
def test_a_policy_without_upgrades_keeps_the_group(make_migrating_bench, policy):
    bench = make_migrating_bench(policy)
    bench.classic_group((0, 1, 2, 3))
    assert bench.arrive("new").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.group().family == "classic"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_group_without_members_changes_its_kind_under_every_policy(make_migrating_bench, policy):
    bench = make_migrating_bench(policy)
    bench.leave(*bench.classic_group((0, 1, 2, 3)))
    assert bench.arrive("new").error is NONE
    assert bench.group().family == "reconcile"
    bench.tell("new", -1)
    bench.classic_group((0, 1, 2, 3))
    assert bench.group().family == "classic"


def test_an_empty_group_with_a_write_on_its_way_makes_room_for_a_new_one(bench):
    bench.leave(*bench.classic_group((0, 1, 2, 3)))
    bench.holding = True
    bench.commit()
    joining = bench.send_tell("new", 0, (), rebalance_timeout_ms=9, subscribed_topic_names=("t",))
    bench.release()
    assert (bench.replies[joining].error, bench.committed()) == (NONE, 5)
    assert (bench.group().family, list(bench.group().members)) == ("reconcile", ["new"])


def consumers(bench):
    bench.classic_group((0,), (1,), (2, 3))


@pytest.mark.parametrize(
    ("arrange", "given", "join", "error"),
    [
        (lambda bench: bench.classic_group((0, 1, 2, 3), kind="connect"), {}, {}, NOT_FOUND),
        (lambda bench: bench.stable_group(1, metadata=b"?"), {}, {}, NOT_FOUND),
        (consumers, {"max_size": 2}, {}, NOT_FOUND),
        (consumers, {}, {"epoch": 3}, NOT_FOUND),
        (consumers, {}, {"epoch": 0, "owned": ()}, ErrorCode.INVALID_REQUEST),
    ],
    ids=["other members", "unreadable subscriptions", "too many members", "no join", "a wrong join"],
)
def test_a_group_stays_classic_that_cannot_be_upgraded(make_migrating_bench, arrange, given, join, error):
    bench = make_migrating_bench(**given)
    arrange(bench)
    answer = bench.tell("new", **join) if join else bench.arrive("new")
    assert (answer.error, bench.group().family) == (error, "classic")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({}, ErrorCode.GROUP_MAX_SIZE_REACHED),
        ({"instance_id": "i", "subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_a_member_that_is_refused_upgrades_nothing_but_its_parked_joins_are_refused(
    make_migrating_bench, make_told, wrong, error
):
    bench = make_migrating_bench(max_size=2)
    first, _ = bench.classic_group((0, 1), (2, 3), instances=("i",))
    generation = bench.group().generation
    parked = bench.join(first, metadata=make_told(topics=("t", "u")), instance="i")
    events = len(bench.events)
    assert bench.arrive("new", **wrong).error is error
    assert (bench.group().family, bench.group().generation) == ("classic", generation)
    assert (bench.replies[parked].error, bench.events[events:]) == (BUSY, [])
    bench.sleep_and_beat(50_000, first)
    assert bench.group().family == "classic"


def test_parked_joins_are_told_to_join_again(bench, make_told):
    first, second = bench.classic_group((0, 1), (2, 3))
    request = bench.join(first, metadata=make_told((0, 1), topics=("t", "u")))
    assert request not in bench.replies
    bench.arrive("new")
    assert bench.replies[request].error is BUSY
    assert second in bench.group().members


def test_parked_syncs_are_told_that_a_round_is_on(bench, make_told):
    bench.classic_group((0, 1), (2, 3))
    members = list(bench.group().members)
    for member_id in members:
        bench.join(member_id, metadata=make_told(topics=("t", "u")))
    follower = next(m for m in members if m != bench.group().leader)
    parked = bench.sync(follower)
    assert parked not in bench.replies
    bench.arrive("new")
    assert bench.replies[parked].error is BUSY


def test_the_sessions_of_the_classic_members_are_their_own(bench):
    first, second = bench.classic_group((0, 1), (2, 3))
    bench.arrive("new")
    for _ in range(6):
        bench.sleep(2_000)
        bench.beat(first, bench.group().generation - 1)
        bench.tell("new", bench.current("new").epoch)
    assert list(bench.group().members) == [first, "new"]
    assert second not in bench.group().members


def test_an_upgrade_that_cannot_be_written_leaves_the_classic_group(bench, make_told):
    first, second = bench.classic_group((0, 1), (2, 3))
    generation = bench.group().generation
    bench.holding = True
    bench.arrive("new")
    waiting = bench.join(first, metadata=make_told())
    bench.release(ErrorCode.NOT_COORDINATOR)
    assert bench.group().family == "classic"
    assert bench.group().generation == generation
    assert bench.replies[waiting].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.beat(second, generation) is NONE
    assert bench.open_requests() == set()


def test_the_log_has_the_upgraded_group(bench):
    first, second = bench.classic_group((0, 1), (2, 3))
    bench.arrive("new")
    live = bench.group().durable
    bench.fail_over()
    again = bench.group().durable
    assert (again.members, again.currents, again.shares) == (live.members, live.currents, live.shares)
    assert list(again.members) == list(live.members)
    assert again.members.keys() == {first, second, "new"}


def test_what_the_assignment_gives_to_nobody_is_free_at_once(bench, make_told):
    """Although the member has joined the last round with it, and may have lost the answer to its sync."""
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.join(old, metadata=make_told((0, 1, 2, 3)))
    bench.sync(old, shares=assigning(old, (0, 1)))
    assert [tp.partition for tp in bench.arrive("new").assignment] == [2, 3]
    assert bench.current(old).assigned == (("t", 0), ("t", 1))


def assigning(*given, user_data=None):
    """Return the assignments of a leader: members, each before its partition numbers of t."""
    members, shares = given[::2], given[1::2]
    pairs = [Partitions.of(("t", number) for number in share) for share in shares]
    return {member: encode_assignment(share, user_data) for member, share in zip(members, pairs, strict=True)}


def regrouped(bench, make_told, shares, topics=("t",)):
    """Let the members join again with other subscriptions, and give them these assignments."""
    members = list(bench.group().members)
    for member_id in members:
        bench.join(member_id, metadata=make_told(topics=topics))
    for member_id in members:
        bench.sync(member_id, shares=shares if member_id == bench.group().leader else {})


def test_an_assignment_with_data_of_a_custom_assignor_keeps_the_group_classic(bench, make_told):
    (old,) = bench.classic_group((0, 1, 2, 3))
    regrouped(bench, make_told, assigning(old, (0, 1), user_data=b"mine"), topics=("t", "u"))
    assert bench.arrive("new").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.group().family == "classic"


def test_a_partition_of_two_members_keeps_the_group_classic(bench, make_told):
    """Kafka fails as it takes over the assignments: the response is UNKNOWN_SERVER_ERROR."""
    first, second = bench.classic_group((0, 1), (2, 3))
    regrouped(bench, make_told, assigning(first, (0, 1), second, (1, 2)), topics=("t", "u"))
    assert bench.arrive("new").error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (bench.group().family, bench.state().value) == ("classic", "Stable")


@pytest.mark.parametrize(("assignor", "error"), [(None, ErrorCode.UNKNOWN_SERVER_ERROR), ("range", NONE)])
def test_partitions_that_a_topic_does_not_have_keep_the_group_classic_unless_the_assignor_is_range(
    make_migrating_bench, make_told, assignor, error
):
    """The leader of the last round has assigned them. Kafka's uniform has no room for them then."""
    bench = make_migrating_bench(assignors=("runs", "range"))
    (old,) = bench.classic_group((0, 1, 2, 3))
    regrouped(bench, make_told, assigning(old, (3, 4)), topics=("t", "u"))
    assert bench.arrive("new", server_assignor=assignor).error is error
    assert bench.group().family == ("classic" if error else "reconcile")


def test_a_member_that_goes_over_alone_keeps_even_partitions_that_its_topic_does_not_have(bench, make_told):
    """Nothing is computed then."""
    (old,) = bench.classic_group((0, 1, 2, 3))
    regrouped(bench, make_told, assigning(old, (3, 4)), topics=("t", "u"))
    assert bench.arrive(old, topics=("t",)).error is ErrorCode.UNKNOWN_SERVER_ERROR
    answer = bench.arrive(old, topics=("t", "u"))
    assert [tp.partition for tp in answer.assignment] == [3, 4]


def test_a_member_that_goes_over_to_other_topics_may_have_had_partitions_that_its_topic_does_not_have(
    bench, make_told
):
    (old,) = bench.classic_group((0, 1, 2, 3))
    regrouped(bench, make_told, assigning(old, (3, 4)), topics=("t", "u"))
    assert bench.arrive(old, topics=("u",)).error is NONE


def test_a_regular_expression_is_checked_before_an_assignor_fails(bench, make_told):
    (old,) = bench.classic_group((0, 1, 2, 3))
    regrouped(bench, make_told, assigning(old, (3, 4)), topics=("t", "u"))
    answer = bench.arrive("new", subscribed_topic_regex="(")
    assert answer.error is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_first_round_that_is_not_complete_keeps_the_group_classic_but_its_joins_are_refused(
    make_migrating_bench, make_told
):
    bench = make_migrating_bench(initial_rebalance_delay_ms=3_000)
    joining = bench.join(bench.joined(metadata=make_told()).member_id, metadata=make_told())
    assert bench.arrive("new").error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.replies[joining].error is BUSY
    assert (bench.group().family, bench.state().value) == ("classic", "PreparingRebalance")


def test_topics_that_do_not_exist_are_left_out_of_the_assignments(bench, make_told):
    (old,) = bench.classic_group((0, 1, 2, 3))
    share = Partitions.of([("t", 0), ("gone", 0)])
    regrouped(bench, make_told, {old: encode_assignment(share)}, topics=("t", "u"))
    bench.arrive("new")
    assert bench.current(old).assigned == (("t", 0),)


def test_a_group_in_a_round_goes_on_with_it_if_the_upgrade_cannot_be_written(bench, make_told):
    members = bench.classic_group((0, 1), (2, 3))
    for member_id in members:
        bench.join(member_id, metadata=make_told(topics=("t", "u")))
    assert bench.state().value == "CompletingRebalance"
    bench.holding = True
    bench.arrive("new")
    bench.release(ErrorCode.NOT_COORDINATOR)
    assert (bench.group().family, bench.state().value) == ("classic", "PreparingRebalance")
    joins = [bench.rejoin_later(member_id) for member_id in members]
    assert {bench.replies[r].error for r in joins} == {NONE}


def test_a_first_round_goes_on_if_the_upgrade_cannot_be_written(make_migrating_bench, make_told):
    bench = make_migrating_bench(initial_rebalance_delay_ms=3_000)
    bench.join(bench.joined(metadata=make_told()).member_id, metadata=make_told())
    (member,) = bench.group().members
    bench.holding = True
    bench.arrive("new")
    bench.release(ErrorCode.NOT_COORDINATOR)
    again = bench.rejoin_later(member)
    assert again not in bench.replies
    bench.sleep(6_000)
    assert bench.replies[again].error is NONE


def test_a_newcomer_keeps_its_time_to_join_if_the_upgrade_cannot_be_written(bench, make_told):
    """PROTOCOL 3.11."""
    (old,) = bench.classic_group((0, 1, 2, 3))
    newcomer = bench.newcomer(metadata=make_told())
    bench.holding = True
    bench.arrive("new")
    bench.release(ErrorCode.NOT_COORDINATOR)
    bench.sleep_and_beat(20_000, old)
    assert list(bench.group().members) == [old, newcomer]


def test_no_deadline_of_an_upgrade_that_could_not_be_written_is_left(bench, make_told):
    """One of the group that was to be would be taken for the time to sync: it has the same number."""
    leader, follower = bench.classic_group((0, 1), (2, 3))
    for member_id in (leader, follower):
        bench.join(member_id, metadata=make_told(topics=("t", "u")))
    bench.sync(leader)
    assert list(bench.group().pending_sync) == [follower]
    bench.holding = True
    bench.arrive("new")
    bench.release(ErrorCode.NOT_COORDINATOR)
    bench.sleep(1_000)
    assert list(bench.group().members) == [leader, follower]
