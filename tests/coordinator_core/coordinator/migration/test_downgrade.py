"""The last member of the consumer protocol goes (PROTOCOL 11.9)."""

from itertools import pairwise

import pytest

from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged, MemberRemoved

NONE = ErrorCode.NONE


@pytest.fixture
def mixed(bench):
    return mix(bench)


def mix(bench):
    """A group of two classic members, and of "new"; all have reached their shares."""
    bench.olds = bench.classic_group((0, 1), (2, 3))
    bench.arrive("new")
    for member_id in bench.olds:
        bench.owns(member_id, bench.rejoin(member_id))
    bench.tell("new", bench.current("new").epoch)
    return bench


def test_the_group_becomes_classic_and_begins_a_round(mixed):
    """PROTOCOL 11.9."""
    epoch = mixed.group().generation
    assert mixed.tell("new", -1).error is NONE
    group = mixed.group()
    assert (group.family, str(group.state), group.generation) == ("classic", "PreparingRebalance", epoch)
    assert group.members.keys() == set(mixed.olds)
    causes = [e.cause for e in mixed.events_of(GroupStateChanged)]
    assert causes[-2:] == ["Downgrade group g from consumer to classic"] * 2
    for member_id in mixed.olds:
        assert mixed.is_told_to_join(member_id, epoch)
    joins = [mixed.rejoin_later(member_id) for member_id in mixed.olds]
    assert {mixed.replies[r].generation_id for r in joins} == {epoch + 1}


def test_a_session_that_expires_downgrades_as_well(mixed):
    epoch = mixed.group().generation
    for _ in range(23):
        for member_id in mixed.olds:
            mixed.beat(member_id, epoch)
        mixed.sleep(2_000)
    assert [e.reason for e in mixed.events_of(MemberRemoved)] == ["session expired"]
    assert mixed.group().family == "classic"


def test_others_that_speak_the_consumer_protocol_keep_the_group(mixed):
    mixed.arrive("newer")
    mixed.tell("new", -1)
    assert mixed.group().family == "reconcile"


@pytest.mark.parametrize("policy", ["upgrade"])
def test_a_policy_without_downgrades_keeps_the_group(make_migrating_bench, policy):
    bench = make_migrating_bench(policy)
    bench = mix(bench)
    epoch = bench.group().generation
    bench.tell("new", -1)
    assert (bench.group().family, bench.group().generation) == ("reconcile", epoch + 1)


def test_a_group_that_is_left_empty_keeps_its_kind(mixed):
    mixed.leave(*mixed.olds)
    mixed.tell("new", -1)
    assert (mixed.group().family, mixed.state()) == ("reconcile", "Empty")


def test_a_classic_process_in_the_place_of_the_last_member_downgrades_without_a_round(bench, make_told):
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.arrive("new", instance_id="i")
    bench.owns(old, bench.rejoin(old))
    bench.tell("new", bench.current("new").epoch)
    epoch = bench.group().generation
    answer = bench.joined(metadata=make_told(), instance="i")
    assert (answer.error, answer.generation_id) == (NONE, epoch)
    assert (bench.group().family, bench.state().value) == ("classic", "Stable")
    assert bench.owns(answer.member_id, epoch) == [2, 3]
    assert bench.owns(old, epoch) == [0, 1]
    assert bench.beat(old, epoch) is NONE


def test_the_process_that_downgrades_learns_its_own_first_assignor(bench, make_told):
    """As in every join to a group of the consumer protocol. Its sync has to name that of the group."""
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.arrive("new", instance_id="i")
    bench.owns(old, bench.rejoin(old))
    answer = bench.joined(metadata=make_told(), instance="i", names=("sticky", "range"))
    assert (answer.protocol_name, bench.group().protocol_name) == ("sticky", "range")
    synced = bench.synced(answer.member_id, protocol_type="consumer", protocol_name="sticky")
    assert synced.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_process_that_downgrades_a_group_without_a_target_has_to_join_its_round(bench, make_told):
    """It is in no generation yet: it is told that of its epoch, 0."""
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.arrive("new", instance_id="i")
    generation = bench.group().generation
    answer = bench.joined(metadata=make_told(topics=("t", "u")), instance="i")
    assert (answer.error, answer.generation_id) == (NONE, 0)
    group = bench.group()
    assert (group.family, str(group.state), group.generation) == ("classic", "PreparingRebalance", generation)
    assert bench.owns(answer.member_id, 0) is ErrorCode.ILLEGAL_GENERATION
    assert bench.is_told_to_join(old, generation)


def test_a_static_member_downgrades_with_its_own_id(bench, make_told):
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.arrive("new", instance_id="i")
    bench.owns(old, bench.rejoin(old))
    bench.tell("new", bench.current("new").epoch)
    epoch = bench.group().generation
    answer = bench.joined("new", metadata=make_told(), instance="i")
    assert (answer.generation_id, bench.group().family) == (epoch, "classic")
    assert bench.owns("new", epoch) == [2, 3]


def test_the_member_whose_join_downgrades_leads_no_other(bench, make_told):
    """Although it was the first."""
    bench.arrive("new", instance_id="i")
    old = bench.joined(metadata=make_told(), version=3).member_id
    bench.tell("new", bench.current("new").epoch)
    bench.joined("new", metadata=make_told(), instance="i")
    group = bench.group()
    assert (group.family, group.leader, list(group.members)) == ("classic", old, [old, "new"])


def test_the_classic_group_knows_the_topics_of_its_members(mixed):
    mixed.tell("new", -1)
    assert list(mixed.group().subscribed_topics()) == ["t"]


def test_the_assignments_have_the_version_of_the_subscriptions(mixed, make_told):
    mixed.joined(mixed.olds[0], metadata=make_told(version=1))
    mixed.tell("new", -1)
    versions = [mixed.group().members[member_id].assignment[:2] for member_id in mixed.olds]
    assert versions == [b"\0\1", b"\0\3"]


def test_generations_of_an_earlier_classic_group_do_not_count(bench):
    """The classic group became empty, and one of the consumer protocol took its place with new numbers."""
    (member,) = bench.classic_group((0, 1, 2, 3))
    for _ in range(5):
        bench.rejoin_later(member)
    bench.leave(member)
    bench.arrive("new")
    old = bench.joined(metadata=b"\0\1" + bytes(4), version=3).member_id
    bench.tell("new", -1)
    epoch = bench.group().generation
    assert bench.rejoin(old) == epoch + 1 < 6


def test_members_that_an_administrator_removes_together_downgrade_at_once(mixed):
    epoch = mixed.group().generation
    assert mixed.leave("new", mixed.olds[0]) == [NONE, NONE]
    group = mixed.group()
    assert (group.family, group.generation, list(group.members)) == ("classic", epoch, mixed.olds[1:])


def test_a_classic_member_that_leaves_a_group_of_such_members_downgrades_it(mixed):
    """The last member of the consumer protocol went over with its id, which alone is no reason."""
    mixed.rejoin("new")
    assert mixed.group().family == "reconcile"
    mixed.leave("new")
    assert mixed.group().family == "classic"


def test_the_states_that_are_reported_follow_one_another(bench, make_told):
    """The process that takes the place of the last member has other topics: the epoch that its join begins is
    no generation of the classic group.
    """
    bench.classic_group((0, 1, 2, 3))
    bench.arrive("new", instance_id="i")
    bench.joined(metadata=make_told(topics=("t", "u")), instance="i")
    assert bench.group().family == "classic"
    moves = bench.events_of(GroupStateChanged)
    assert all(one.after == other.before for one, other in pairwise(moves))
    assert all(one.generation <= other.generation for one, other in pairwise(moves))
    assert (moves[-1].before, moves[-1].after) == ("Stable", "PreparingRebalance")


def test_the_sessions_of_members_go_on_after_a_downgrade(bench, make_told):
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.arrive("new", instance_id="i")
    bench.owns(old, bench.rejoin(old))
    bench.joined(metadata=make_told(), instance="i")
    bench.sleep(10_000)
    assert not bench.group().members


def test_a_downgrade_that_cannot_be_written_leaves_the_group(mixed):
    epoch = mixed.group().generation
    mixed.holding = True
    leaving = mixed.send_tell("new", -1)
    mixed.release(ErrorCode.NOT_COORDINATOR)
    assert mixed.replies[leaving].error is ErrorCode.NOT_COORDINATOR
    assert (mixed.group().family, mixed.group().generation) == ("reconcile", epoch)
    assert mixed.open_requests() == set()


def test_requests_that_wait_for_the_write_are_to_be_sent_again(mixed):
    mixed.holding = True
    mixed.send_tell("new", -1)
    waiting = mixed.rejoin_later(mixed.olds[0])
    mixed.release()
    assert mixed.replies[waiting].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert mixed.group().family == "classic"
    assert mixed.open_requests() == set()


def test_the_log_has_the_classic_group_and_nothing_of_the_other(mixed):
    mixed.tell("new", -1)
    epoch = mixed.group().generation
    mixed.fail_over()
    group = mixed.group()
    assert (group.family, str(group.state), group.generation) == ("classic", "Stable", epoch)
    assert group.members.keys() == set(mixed.olds)
    shard = mixed.coordinator._shard_of("g")
    assert not shard.table.parts["g"]
    mixed.arrive("new")
    assert mixed.group().members.keys() == {*mixed.olds, "new"}


@pytest.mark.parametrize(("wait_ms", "stays"), [(1_000, False), (6_000, True)])
def test_the_time_to_sync_goes_on_if_the_group_is_upgraded_again_before_its_end(
    make_migrating_bench, wait_ms, stays
):
    """Kafka cancels no deadline with the kind of the group."""
    bench = make_migrating_bench()
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.arrive("new")
    bench.rejoin(old, rebalance_ms=6_000)
    bench.tell("new", -1)
    bench.rejoin_later(old)
    bench.sync(old)
    bench.sleep(wait_ms)
    assert bench.beat(old) is NONE
    bench.arrive("newer")
    bench.sleep(5_000)
    assert (old in bench.group().members) is stays


@pytest.mark.parametrize(("joins", "stays"), [(True, False), (False, True)])
def test_the_time_to_sync_of_the_member_with_which_the_group_goes_back_goes_on(
    make_migrating_bench, joins, stays
):
    """Kafka does not cancel it: a member that comes back with the same id is removed when it ends."""
    bench = make_migrating_bench()
    bench.classic_group((0, 1, 2, 3))
    bench.arrive("new")
    if joins:
        bench.rejoin("new", rebalance_ms=6_000)
    bench.tell("new", -1)
    assert bench.group().family == "classic"
    bench.arrive("new")
    bench.sleep(6_000)
    assert ("new" in bench.group().members) is stays
