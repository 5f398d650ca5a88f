"""Members that speak the classic protocol in a group of the consumer protocol (PROTOCOL 11.9)."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import MemberRemoved, MemberReplaced
from coordinator_core.protocol.reconcile import (
    SPEAKS_CLASSIC,
    SPEAKS_CONSUMER,
    ConsumerGroupDescribeRequest,
)

NONE, BUSY, UNKNOWN = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def mixed(bench):
    """A group of one classic member, which owns 0 to 3, and of "new", which waits for 2 and 3."""
    (member,) = bench.classic_group((0, 1, 2, 3))
    bench.old, bench.generation = member, bench.group().generation
    bench.arrive("new")
    return bench


# --- joins, and the way to the share


def test_a_cooperative_member_gives_up_in_one_join_and_the_other_gets_it(mixed):
    assert mixed.is_told_to_join(mixed.old, mixed.generation)
    assert mixed.rejoin(mixed.old, (0, 1, 2, 3)) == mixed.generation
    assert mixed.owns(mixed.old, mixed.generation) == [0, 1]
    assert mixed.is_told_to_join(mixed.old, mixed.generation)
    assert mixed.rejoin(mixed.old, (0, 1)) == mixed.generation + 1
    assert mixed.owns(mixed.old, mixed.generation + 1) == [0, 1]
    assert mixed.beat(mixed.old, mixed.generation + 1) is NONE
    answer = mixed.tell("new", mixed.generation + 1)
    assert [tp.partition for tp in answer.assignment] == [2, 3]
    assert mixed.state() == "Stable"


def test_an_eager_member_owns_nothing_when_it_joins_and_goes_on_at_once(mixed):
    assert mixed.rejoin(mixed.old) == mixed.generation + 1
    assert mixed.owns(mixed.old, mixed.generation + 1) == [0, 1]


def test_a_join_is_answered_at_once_by_no_leader_with_the_first_protocol(mixed, make_told):
    answer = mixed.joined(mixed.old, metadata=make_told(), names=("range", "sticky"))
    assert (answer.error, answer.leader, answer.members) == (NONE, "", ())
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_a_new_classic_member_joins_with_the_id_that_it_is_given(mixed, make_told):
    asked = mixed.joined(metadata=make_told())
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
    epoch = mixed.rejoin(asked.member_id)
    assert epoch == mixed.group().generation == mixed.generation + 2
    assert mixed.owns(asked.member_id, epoch) == []


def test_a_dynamic_member_that_was_removed_joins_as_a_new_one(mixed):
    """Kafka asks a classic member of such a group neither for a known id, nor to own nothing."""
    mixed.leave(mixed.old)
    assert mixed.rejoin(mixed.old, (0, 1)) == mixed.group().generation
    assert list(mixed.group().members) == ["new", mixed.old]


def test_an_old_version_gets_its_id_with_the_answer(mixed, make_told):
    answer = mixed.joined(metadata=make_told(), version=3)
    assert (answer.error, answer.member_id in mixed.group().members) == (NONE, True)


def test_it_is_told_to_join_when_all_that_it_waits_for_is_free(mixed):
    mixed.rejoin(mixed.old)
    mixed.owns(mixed.old, mixed.generation + 1)
    mixed.tell("new", mixed.generation + 1)
    mixed.tell("new", mixed.generation + 1, (2, 3))
    late = mixed.rejoin("late")
    assert mixed.owns("late", late) == []
    assert mixed.beat("late", late) is NONE
    assert mixed.rejoin(mixed.old, (0, 1)) == late
    assert mixed.owns(mixed.old, late) == [0, 1]
    assert mixed.beat("late", late) is NONE
    mixed.tell("new", mixed.generation + 1)
    mixed.tell("new", mixed.generation + 1, (2,))
    assert mixed.is_told_to_join("late", late)
    assert mixed.rejoin("late") == late
    assert mixed.owns("late", late) == [3]
    assert mixed.beat("late", late) is NONE


def test_other_topics_raise_the_epoch(mixed, make_told):
    mixed.rejoin(mixed.old)
    epoch = mixed.group().generation
    answer = mixed.joined(mixed.old, metadata=make_told(topics=("t", "u")))
    assert answer.generation_id == mixed.group().generation == epoch + 1
    assert mixed.group().members[mixed.old].topics == ("t", "u")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"names": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"names": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"kind": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"metadata": b"?"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_a_wrong_join_changes_nothing(mixed, make_told, wrong, error):
    epoch = mixed.group().generation
    answer = mixed.joined("late", **{"metadata": make_told(), **wrong})
    assert (answer.error, mixed.group().generation) == (error, epoch)


def test_a_full_group_refuses_new_classic_members(make_migrating_bench):
    bench = make_migrating_bench(max_size=2)
    (old,) = bench.classic_group((0, 1, 2, 3))
    bench.arrive("new")
    assert bench.rejoin("late") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.rejoin(old) == bench.group().generation


# --- syncs and heartbeats


def test_requests_of_another_generation_are_refused(mixed):
    assert mixed.beat(mixed.old, mixed.generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert mixed.owns(mixed.old, mixed.generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert mixed.commit(mixed.old, mixed.generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert mixed.commit(mixed.old, mixed.generation) is NONE
    assert mixed.commit(mixed.old, mixed.generation, version=2) is NONE


def test_a_sync_is_refused_when_there_is_a_newer_target(mixed):
    mixed.rejoin(mixed.old)
    epoch = mixed.group().generation
    mixed.leave("new")
    mixed.arrive("newer")
    assert mixed.owns(mixed.old, epoch) is BUSY


def test_a_change_of_the_group_calls_nobody_before_its_target_is_computed(mixed, make_told):
    """A classic member that leaves raises the epoch alone: whoever joins then would get nothing new."""
    epoch = mixed.rejoin(mixed.old)
    mixed.owns(mixed.old, epoch)
    late = mixed.joined(metadata=make_told(), version=3).member_id
    epoch = mixed.rejoin(mixed.old, (0, 1))
    assert mixed.owns(mixed.old, epoch) == [0, 1]
    mixed.leave(late)
    assert mixed.group().generation == epoch + 1
    assert (mixed.state(), mixed.beat(mixed.old, epoch)) == ("Assigning", NONE)
    assert mixed.owns(mixed.old, epoch) == [0, 1]
    assert mixed.tell("new", mixed.current("new").epoch).error is NONE
    assert mixed.is_told_to_join(mixed.old, epoch)


@pytest.mark.parametrize(("kafka", "called"), [("4.2", True), ("4.3", False)])
def test_before_4_3_a_change_of_the_group_calls_its_classic_members(make_migrating_bench, kafka, called):
    bench = make_migrating_bench(kafka=kafka)
    old, _ = bench.classic_group((0, 1), (2, 3))
    bench.arrive("new")
    epoch = bench.rejoin(old)
    bench.owns(old, epoch)
    bench.leave(bench.group().members.keys() - {old, "new"})
    assert bench.is_told_to_join(old, epoch) is called


def test_a_sync_of_the_round_before_the_upgrade_names_the_assignor_of_that_round(bench, make_told):
    """The group has none any more: the right one is the first of the member."""
    first = bench.newcomer(names=("sticky", "range"), metadata=make_told(), client="a")
    bench.enter(names=("range",), metadata=make_told(), client="b")
    bench.until(GroupState.COMPLETING_REBALANCE)
    generation = bench.group().generation
    bench.arrive("new")
    errors = [
        bench.synced(first, generation, protocol_type="consumer", protocol_name=name).error
        for name in ("range", "sticky")
    ]
    assert errors == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL, BUSY]


def test_a_sync_names_the_protocol_of_the_join(mixed):
    epoch = mixed.rejoin(mixed.old)
    wrong = mixed.synced(mixed.old, epoch, protocol_type="consumer", protocol_name="sticky")
    assert wrong.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = mixed.synced(mixed.old, epoch, protocol_type="consumer", protocol_name="range")
    assert right.error is NONE


def test_the_assignment_has_the_version_of_the_subscription(mixed, make_told):
    answer = mixed.joined(mixed.old, metadata=make_told(version=1))
    assert mixed.synced(mixed.old, answer.generation_id).assignment[:2] == b"\0\1"


def test_a_member_of_the_consumer_protocol_neither_syncs_nor_sends_classic_heartbeats(mixed):
    epoch = mixed.current("new").epoch
    assert mixed.beat("new", epoch) is UNKNOWN
    assert mixed.owns("new", epoch) is UNKNOWN


def test_a_member_goes_over_to_the_other_protocol_with_its_id(mixed):
    """A heartbeat of the consumer protocol makes a classic member one of it, and a JoinGroup the reverse."""
    assert mixed.tell(mixed.old, mixed.generation).error is NONE
    assert mixed.group().members[mixed.old].classic is None
    assert mixed.beat(mixed.old, mixed.generation) is UNKNOWN
    assert mixed.rejoin("new") == mixed.current("new").epoch
    assert mixed.group().members["new"].classic is not None
    assert mixed.group().family == "reconcile"


# --- leaving, and deadlines


def test_a_member_that_leaves_raises_the_epoch(mixed):
    epoch = mixed.group().generation
    assert mixed.leave(mixed.old, "nobody") == [NONE, UNKNOWN]
    assert (mixed.group().generation, list(mixed.group().members)) == (epoch + 1, ["new"])


def reasons(bench):
    return [event.reason for event in bench.events_of(MemberRemoved)]


def test_a_member_that_does_not_join_when_it_is_told_is_removed(make_migrating_bench):
    bench = make_migrating_bench()
    (old,) = bench.classic_group((0, 1, 2, 3), rebalance_ms=6_000)
    generation = bench.group().generation
    bench.arrive("new")
    assert bench.is_told_to_join(old, generation)
    bench.sleep(5_000)
    assert bench.is_told_to_join(old, generation)
    assert reasons(bench) == []
    bench.sleep(1_000)
    assert reasons(bench) == ["failed to join within the rebalance timeout"]


def test_a_member_that_does_not_sync_after_its_join_is_removed(mixed, make_told):
    epoch = mixed.joined(mixed.old, metadata=make_told(), rebalance_ms=6_000).generation_id
    mixed.sleep(5_000)
    assert mixed.beat(mixed.old, epoch) is NONE
    mixed.sleep(1_000)
    assert reasons(mixed) == ["failed to sync within the rebalance timeout"]


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_member_that_goes_over_takes_the_end_of_its_time_to_sync_with_it(make_migrating_bench, instance):
    bench = make_migrating_bench()
    (old,) = bench.classic_group((0, 1, 2, 3), instances=(instance,))
    bench.arrive("new")
    bench.rejoin(old, instance=instance, rebalance_ms=6_000)
    assert bench.arrive(old, instance_id=instance).error is NONE
    bench.sleep(5_000)
    assert reasons(bench) == []
    bench.sleep(1_000)
    assert reasons(bench) == ["failed to sync within the rebalance timeout"]


def test_a_member_that_joins_and_syncs_in_time_stays(make_migrating_bench):
    bench = make_migrating_bench()
    (old,) = bench.classic_group((0, 1, 2, 3), rebalance_ms=6_000)
    bench.arrive("new")
    assert bench.is_told_to_join(old, bench.group().generation - 1)
    epoch = bench.rejoin(old, rebalance_ms=6_000)
    bench.owns(old, epoch)
    for _ in range(4):
        bench.sleep(5_000)
        assert bench.beat(old, epoch) is NONE
        bench.tell("new", bench.current("new").epoch)
    assert reasons(bench) == []


def test_heartbeats_and_syncs_keep_the_session(mixed):
    epoch = mixed.rejoin(mixed.old)
    mixed.sleep(9_000)
    mixed.owns(mixed.old, epoch)
    mixed.sleep(9_000)
    assert mixed.beat(mixed.old, epoch) is NONE
    mixed.sleep(9_999)
    assert reasons(mixed) == []
    mixed.sleep(1)
    assert reasons(mixed) == ["session expired"]


# --- static members


def test_a_process_of_the_classic_protocol_takes_the_place_of_its_old_id(bench, make_told):
    (old,) = bench.classic_group((0, 1, 2, 3), instances=("i",))
    generation = bench.group().generation
    bench.arrive("new")
    answer = bench.joined(metadata=make_told(), instance="i")
    assert (answer.error, answer.generation_id) == (NONE, generation + 1)
    assert [e.old_member_id for e in bench.events_of(MemberReplaced)] == [old]
    assert bench.owns(answer.member_id, generation + 1) == [0, 1]
    assert bench.group().generation == generation + 1
    assert bench.beat(old, generation, instance="i") is ErrorCode.FENCED_INSTANCE_ID


def test_a_process_of_the_consumer_protocol_takes_the_place_of_a_classic_one(bench):
    bench.classic_group((0, 1), (2, 3), instances=("i",))
    generation = bench.group().generation
    answer = bench.arrive("new", instance_id="i")
    assert (answer.error, answer.member_epoch) == (NONE, generation)
    assert [tp.partition for tp in answer.assignment] == [0, 1]
    assert bench.group().members["new"].classic is None


def test_a_failed_write_is_answered_in_the_protocol_of_each_request(mixed, make_told):
    mixed.holding = True
    joining = mixed.join("late", metadata=make_told())
    mixed.release(ErrorCode.NOT_COORDINATOR)
    assert mixed.replies[joining].error is ErrorCode.NOT_COORDINATOR
    assert type(mixed.replies[joining]).__name__ == "JoinGroupResponse"
    assert mixed.open_requests() == set()


def test_administrators_see_which_protocol_each_member_speaks(mixed):
    members = mixed.ask(ConsumerGroupDescribeRequest(group_id="g")).members
    assert [member.member_type for member in members] == [SPEAKS_CLASSIC, SPEAKS_CONSUMER]


def test_a_classic_member_that_gives_up_partitions_has_the_time_to_join_alone_after_a_failover(mixed):
    """It begins when a heartbeat tells the member to join."""
    assert mixed.rejoin(mixed.old, (0, 1, 2, 3)) == mixed.generation
    assert mixed.current(mixed.old).state == "unrevoked partitions"
    mixed.fail_over()
    for _ in range(12):
        mixed.sleep(5_000)
        assert mixed.is_told_to_join(mixed.old, mixed.generation)
        mixed.tell("new", mixed.current("new").epoch)
    mixed.sleep(5_000)
    assert mixed.old not in mixed.group().members
