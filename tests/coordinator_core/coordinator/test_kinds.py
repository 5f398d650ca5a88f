"""Groups of the classic and of the consumer protocol on one coordinator, as Kafka answers them (KIP-848)."""

import msgspec
import pytest

from coordinator_core.coordinator import classic
from coordinator_core.coordinator.reconcile import reconcile_part
from coordinator_core.coordinator.reconcile.group import Computing
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.coordinator.records import GroupRecord, StoredGroup, decode_record, encode_record
from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest

NOT_FOUND, UNKNOWN, NONE = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def bench(make_bench):
    computing = Computing(
        ("first",),
        lambda names: dict.fromkeys(names, 2),
        lambda pattern: (),
        lambda _, members, _alike: {member: (T0, T1) if n == 0 else () for n, member in enumerate(members)},
    )
    settings = ReconcileSettings(assignment_interval_ms=0)
    return make_bench(parts=(classic.PART, reconcile_part(computing, settings)))


def beat(bench, member="a", epoch=0, group="g"):
    """Send a heartbeat of the consumer protocol."""
    joining = {} if epoch else {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",)}
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        topic_partitions=None if epoch else (),
        **joining,
    )
    return bench.ask(request, member)


def described(bench, group="g"):
    return bench.ask(ConsumerGroupDescribeRequest(group_id=group))


def listed(bench, **filters):
    groups = bench.ask(m.ListGroupsRequest(**filters)).groups
    return {row.group_id: (row.group_type, row.protocol_type, row.state) for row in groups}


def test_groups_of_both_kinds_are_listed_with_their_types(bench):
    bench.stable_group(1, group="c")
    beat(bench)
    bench.commit(group="offsets")
    everything = {
        "c": ("classic", "consumer", "Stable"),
        "g": ("consumer", "consumer", "Stable"),
        "offsets": ("classic", "", "Empty"),
    }
    assert listed(bench) == everything
    assert listed(bench, types=("Consumer",)).keys() == {"g"}
    assert listed(bench, types=("classic",), states=("stable",)).keys() == {"c"}
    beat(bench, "b")
    assert listed(bench, states=("Reconciling", "Assigning")).keys() == {"g"}


def test_a_group_belongs_to_the_protocol_of_its_first_member(bench):
    """Requests of the other protocol get what Kafka answers."""
    bench.stable_group(1, group="c")
    beat(bench)
    refused = beat(bench, group="c")
    assert (refused.error, refused.message) == (NOT_FOUND, "Group c is not a consumer group.")
    assert beat(bench, epoch=1, group="c").error is NOT_FOUND
    assert bench.joined().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.synced("a", 1).error is bench.beat("a", 1) is UNKNOWN
    (left,) = bench.ask(m.LeaveGroupRequest(group_id="g", members=(m.MemberIdentity("a"),))).members
    assert left.error is UNKNOWN
    assert (bench.state("c").value, bench.state()) == ("Stable", "Stable")


def test_a_classic_group_becomes_a_consumer_group_when_it_is_empty_and_keeps_its_offsets(bench):
    (member,) = bench.stable_group(1)
    assert bench.commit(member, 1, 7) is NONE
    assert beat(bench).error is NOT_FOUND
    bench.leave(member)
    assert beat(bench, epoch=1).message == "Group g is not a consumer group."
    answer = beat(bench)
    assert (answer.error, answer.assignment) == (NONE, (T0, T1))
    assert (bench.group().family, bench.committed()) == ("reconcile", 7)
    assert bench.commit("a", answer.member_epoch, 9) is NONE


def test_the_numbers_of_a_group_begin_again_when_its_kind_changes(bench):
    """As those of a new group: the one of the other kind is deleted."""
    first = beat(bench, group="new").member_epoch
    (member,) = bench.stable_group(1)
    for _ in range(3):
        bench.join(member, metadata=bytes(9))
    bench.leave(member)
    assert beat(bench).member_epoch == first
    beat(bench, epoch=-1)
    bench.stable_group(1)
    assert bench.group().generation == 1


def test_a_consumer_group_becomes_a_classic_group_when_it_is_empty(bench):
    beat(bench)
    beat(bench, epoch=-1)
    bench.stable_group(1)
    assert bench.group().family == "classic"
    assert beat(bench, epoch=1).error is NOT_FOUND


def test_the_join_of_an_unknown_member_deletes_an_empty_consumer_group_but_for_its_offsets(bench):
    """Kafka makes room for a classic group before it finds that it has none with such a member."""
    beat(bench)
    epoch = beat(bench, "b").member_epoch
    assert bench.commit("b", epoch) is NONE
    for member in ("a", "b"):
        beat(bench, member, epoch=-1)
    assert bench.joined("nobody", session_ms=1).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert bench.state() == "Empty"
    assert bench.joined("nobody").error is UNKNOWN
    assert (bench.group(), bench.committed()) == (None, -1)
    assert beat(bench).member_epoch == beat(bench, group="new").member_epoch
    assert bench.committed() == 5


def test_a_group_of_offsets_alone_looks_at_the_assignors_of_a_join_before_its_member(bench):
    assert bench.joined("nobody", names=()).error is UNKNOWN
    bench.commit()
    assert bench.joined("nobody", names=()).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.joined("nobody").error is UNKNOWN
    assert bench.committed() == 5


def test_the_kind_of_a_group_survives_the_broker(bench):
    (member,) = bench.stable_group(1)
    bench.leave(member)
    beat(bench)
    bench.start()
    bench.take_over()
    assert (bench.group().family, list(bench.group().members)) == ("reconcile", ["a"])
    beat(bench, epoch=-1)
    bench.stable_group(1)
    bench.start()
    bench.take_over()
    assert (bench.group().family, len(bench.group().members)) == ("classic", 1)


@pytest.mark.parametrize("family", ["classic", "reconcile"])
def test_a_group_of_offsets_alone_is_of_the_kind_of_its_first_member_and_keeps_them(bench, family):
    bench.commit(offset=7)
    assert bench.group().family == ""
    if family == "classic":
        bench.stable_group(1)
    else:
        beat(bench)
    assert (bench.group().family, bench.committed()) == (family, 7)


def test_a_stored_group_of_a_kind_that_is_not_served_is_an_error(bench, make_bench):
    beat(bench)
    with pytest.raises(InputError, match="'g': found the family 'reconcile', expected one of: classic"):
        make_bench(log=bench.log)


def test_a_record_without_a_family_is_classic():
    """Given a group written before records had a family, then it is read as classic."""
    value = StoredGroup("consumer", "range", 3, None, (), 9)
    old = msgspec.msgpack.encode(["g", "x", list(msgspec.to_builtins(value))[:-1]])
    assert msgspec.msgpack.decode(old, type=GroupRecord).value == value
    assert decode_record(encode_record(GroupRecord("x", value)), "").value.family == "classic"


def test_a_type_of_request_belongs_to_one_family(make_bench):
    with pytest.raises(
        InputError, match=r"'classic': found HeartbeatRequest, .*, expected no request of another"
    ):
        make_bench(parts=(classic.PART, classic.PART))


def test_a_coordinator_of_no_family_keeps_offsets(make_bench):
    bench = make_bench(parts=())
    assert bench.commit() is NONE
    assert bench.commit("m", 1) is UNKNOWN
    assert bench.committed() == 5
    with pytest.raises(TypeError, match="JoinGroupRequest"):
        bench.join()


def test_the_deadlines_of_a_group_end_with_its_kind(bench):
    """A client that has announced that it will join the classic group is forgotten; the next deadline is the
    end of the session."""
    assert bench.joined().error is ErrorCode.MEMBER_ID_REQUIRED
    assert bench.coordinator.next_deadline_ms() < 45_000
    beat(bench)
    assert bench.coordinator.next_deadline_ms() == bench.now_ms + 45_000


def test_a_refused_heartbeat_does_not_change_the_kind_of_an_empty_group(bench):
    bench.leave(*bench.stable_group(1))
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=0)
    assert bench.ask(request).error is ErrorCode.INVALID_REQUEST
    assert (bench.group().family, bench.group().protocol_type) == ("classic", "consumer")


def test_a_group_with_a_write_on_its_way_keeps_its_kind(bench):
    bench.leave(*bench.stable_group(1))
    bench.holding = True
    bench.commit()
    assert beat(bench).error is NOT_FOUND
    bench.release()
    assert beat(bench).error is NONE


# --- administration


def test_a_consumer_group_is_described_with_epochs_assignments_and_targets(bench):
    beat(bench)
    beat(bench, "b")
    group = described(bench)
    assert (group.error, group.state, group.assignor) == (NONE, "Reconciling", "first")
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)
    first, second = group.members
    assert (first.member_id, first.client_id, first.client_host, first.member_epoch) == ("a", "a", "host", 2)
    assert (first.subscribed_topic_names, first.assignment, first.target_assignment) == (
        ("t",),
        (T0, T1),
        (T0, T1),
    )
    assert (second.member_epoch, second.assignment) == (3, ())


def test_each_kind_of_group_is_described_by_its_own_request_alone(bench):
    """DescribeGroups of a consumer group is that of a Dead one, as in Kafka."""
    bench.stable_group(1, group="c")
    beat(bench)
    found = bench.ask(m.DescribeGroupsRequest(group_ids=("c", "g", "?"))).groups
    assert [(row.error, row.state) for row in found] == [
        (NONE, "Stable"),
        (NOT_FOUND, "Dead"),
        (NOT_FOUND, "Dead"),
    ]
    messages = [described(bench, group).message for group in "c?"]
    assert messages == ["Group c is not a consumer group.", "Group ? not found."]
    assert {described(bench, group).error for group in "c?"} == {NOT_FOUND}


# --- offsets


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (None, -1, NONE),
        ("a", 2, NONE),
        ("a", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("b", 2, UNKNOWN),
        (None, 2, UNKNOWN),
    ],
)
def test_a_request_for_offsets_may_name_a_member_and_its_epoch(bench, member, epoch, error):
    beat(bench)
    bench.commit("a", 2, 7)
    request = m.OffsetFetchRequest(group_id="g", partitions=(T0,), member_id=member, member_epoch=epoch)
    response = bench.ask(request)
    assert response.error is error
    assert [row.offset for row in response.offsets] == ([] if error else [7])


def test_a_member_of_a_classic_group_may_name_anything(bench):
    bench.stable_group(1)
    request = m.OffsetFetchRequest(group_id="g", member_id="nobody", member_epoch=9)
    assert bench.ask(request).error is NONE


def test_a_member_commits_in_a_version_that_has_epochs(bench):
    beat(bench)
    assert bench.commit("a", 1, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert bench.commit("b", 1, version=8) is UNKNOWN
