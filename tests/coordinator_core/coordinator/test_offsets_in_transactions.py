"""TxnOffsetCommit, and the end of a transaction (KIP-98, KIP-447)."""

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.coordinator.reconcile_bench import reconcile_bench

DAY_MS = 86_400_000
NONE, UNSTABLE = ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT


def fetched(bench, *topics, require_stable=True):
    """Return offset and error of partition 0 of each topic, of all offsets without topics."""
    partitions = tuple(TopicPartition(topic, 0) for topic in topics) or None
    request = m.OffsetFetchRequest(group_id="g", partitions=partitions, require_stable=require_stable)
    return [(row.offset, row.error) for row in bench.ask(request).offsets]


def pending(bench, group="g"):
    """Return the partitions in transactions, by producer id."""
    found = bench.coordinator.pending_offsets(group)
    return {producer: sorted(held.offsets) for producer, held in found.items()}


# --- until the end, and after it


def test_an_offset_in_a_transaction_is_not_committed_before_its_end(bench):
    bench.commit(offset=1)
    assert bench.commit_in_transaction(offset=5) is NONE
    assert bench.committed() == 1
    bench.end_transaction(committed=True)
    assert (bench.committed(), pending(bench)) == (5, {})


def test_an_offset_of_an_aborted_transaction_is_dropped(bench):
    bench.commit(offset=1)
    bench.commit_in_transaction(offset=5)
    bench.end_transaction(committed=False)
    assert (bench.committed(), pending(bench)) == (1, {})


def test_the_last_commit_of_a_transaction_counts(bench):
    for offset in (5, 3):
        bench.commit_in_transaction(offset=offset)
    bench.end_transaction(committed=True)
    assert bench.committed() == 3


def test_the_end_of_a_transaction_concerns_one_producer_and_one_group(bench):
    bench.commit_in_transaction(offset=5)
    bench.commit_in_transaction(offset=6, producer=(8, 0), topic="u")
    bench.commit_in_transaction(offset=7, group="h")
    bench.end_transaction(committed=True)
    assert (bench.committed(), bench.committed(topic="u"), bench.committed(group="h")) == (5, -1, -1)
    assert (pending(bench), pending(bench, "h")) == ({8: [("u", 0)]}, {7: [("t", 0)]})


def test_a_repeated_end_changes_nothing(bench):
    bench.commit_in_transaction(offset=5)
    bench.end_transaction(committed=True)
    bench.sleep(1)
    bench.commit(offset=9)
    before = len(bench.outcomes)
    bench.end_transaction(committed=True)
    assert (bench.committed(), bench.outcomes[before].appends) == (9, [])


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_after_that_of_the_transaction_stays(bench, committed):
    bench.commit_in_transaction(offset=5)
    bench.sleep(1)
    bench.commit(offset=9)
    bench.end_transaction(committed=committed)
    assert (bench.committed(), pending(bench)) == (9, {})


def test_an_end_that_cannot_be_written_can_be_repeated(bench):
    bench.commit_in_transaction(offset=5)
    bench.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.end_transaction(committed=True)
    assert (bench.committed(), pending(bench)) == (-1, {7: [("t", 0)]})
    bench.append_error = NONE
    bench.end_transaction(committed=True)
    assert bench.committed() == 5


def test_a_commit_in_a_transaction_is_answered_when_it_is_written(bench):
    bench.holding = True
    assert bench.commit_in_transaction() is None
    bench.release(ErrorCode.NOT_COORDINATOR)
    assert bench.replies[bench.requests].partitions[0].error is ErrorCode.NOT_COORDINATOR
    assert pending(bench) == {}


# --- stable offsets


def test_stable_offsets_are_required_by_partition(bench):
    for topic in ("t", "u"):
        bench.commit(topic=topic, offset=1)
    bench.commit_in_transaction()
    bench.commit_in_transaction(topic="v")
    assert fetched(bench, "t", "u", "v") == [(-1, UNSTABLE), (1, NONE), (-1, UNSTABLE)]
    assert fetched(bench) == [(-1, UNSTABLE), (1, NONE)]
    assert fetched(bench, "t", "v", require_stable=False) == [(1, NONE), (-1, NONE)]
    bench.end_transaction(committed=True)
    assert fetched(bench, "t", "u", "v") == [(5, NONE), (1, NONE), (5, NONE)]


# --- who may commit


def test_a_commit_in_a_transaction_is_checked_as_one_outside(bench):
    """Given a commit that is wrong in every way, when it is put right bit by bit, then fenced, unknown
    member, illegal generation, NONE. It may also name no member."""
    _, dynamic = bench.stable_group(2, instances=("i1",))
    commit = bench.commit_in_transaction
    assert commit("x", 9, instance="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert commit("", -1, instance="i9") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("x") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(dynamic, 2) is ErrorCode.ILLEGAL_GENERATION
    assert commit(dynamic) is ErrorCode.ILLEGAL_GENERATION
    assert pending(bench) == {}
    assert [commit(dynamic, 1), commit()] == [NONE, NONE]


def test_a_commit_in_a_transaction_is_no_sign_of_life(bench):
    (member,) = bench.stable_group(1)
    bench.sleep(9_000)
    assert bench.commit_in_transaction(member, 1) is NONE
    bench.sleep(2_000)
    assert list(bench.group().members) == []


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        ("", -1, NONE),
        ("x", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m", 7, ErrorCode.ILLEGAL_GENERATION),
        ("m", 2, NONE),
    ],
)
def test_a_member_of_the_consumer_protocol_names_its_epoch(member_id, epoch, error, make_bench):
    """As in Kafka, another epoch is ILLEGAL_GENERATION."""
    bench = reconcile_bench(make_bench)()
    bench.join("m")
    assert bench.commit_in_transaction(member_id, epoch) is error


def test_a_commit_in_a_transaction_needs_a_group_id(bench):
    assert bench.commit_in_transaction(group="") is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("epoch", [2, -1])
def test_an_older_epoch_of_a_producer_is_refused(bench, epoch):
    bench.commit_in_transaction(offset=5, producer=(7, 3))
    assert bench.commit_in_transaction(offset=4, producer=(7, epoch)) is ErrorCode.INVALID_PRODUCER_EPOCH
    bench.end_transaction(committed=True)
    assert bench.committed() == 5


def test_the_next_epoch_of_a_producer_drops_the_offsets_of_the_one_before(bench):
    bench.commit_in_transaction(offset=5)
    bench.commit_in_transaction(offset=6, producer=(7, 1), topic="u")
    bench.end_transaction(committed=True)
    assert (bench.committed(), bench.committed(topic="u")) == (-1, 6)


def test_long_metadata_is_refused_for_its_partition_alone(bench):
    offsets = (m.OffsetToCommit("t", 0, 1, metadata="x" * 4_097), m.OffsetToCommit("u", 0, 2))
    request = m.TxnOffsetCommitRequest(
        transactional_id="tx", group_id="g", producer_id=7, producer_epoch=0, offsets=offsets
    )
    errors = [row.error for row in bench.ask(request).partitions]
    assert errors == [ErrorCode.OFFSET_METADATA_TOO_LARGE, NONE]
    assert pending(bench) == {7: [("u", 0)]}


# --- the log


def test_offsets_in_transactions_are_in_the_log(make_bench, bench):
    bench.commit(offset=1)
    bench.commit_in_transaction(offset=5, producer=(7, 3))
    bench.commit_in_transaction(offset=6, group="h")
    for partition in range(50):
        bench.log.compact(partition)
    again = make_bench(log=bench.log)
    assert again.coordinator.group_ids() == ["g", "h"]
    assert again.commit_in_transaction(producer=(7, 2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert (fetched(again, "t"), again.committed()) == ([(-1, UNSTABLE)], 1)
    again.end_transaction(committed=True)
    third = make_bench(log=bench.log)
    assert (fetched(third, "t"), pending(third), pending(third, "h")) == ([(5, NONE)], {}, {7: [("t", 0)]})


# --- deletion and expiry


def test_offsets_in_transactions_do_not_expire_and_keep_their_group(bench):
    bench.commit(offset=1)
    bench.commit(topic="u")
    bench.commit_in_transaction(offset=5)
    bench.sleep(8 * DAY_MS)
    assert (bench.committed(), bench.committed(topic="u")) == (1, -1)
    bench.end_transaction(committed=True)
    bench.sleep(1_200_000)
    assert bench.coordinator.group_ids() == []


def test_a_group_that_has_offsets_in_a_transaction_alone_is_kept(bench):
    bench.commit_in_transaction()
    bench.sleep(8 * DAY_MS)
    assert bench.state() == "Empty"
    bench.end_transaction(committed=False)
    bench.sleep(1_200_000)
    assert bench.coordinator.group_ids() == []


def delete_offset(bench):
    partitions = (TopicPartition("t", 0),)
    assert bench.ask(m.OffsetDeleteRequest(group_id="g", partitions=partitions)).partitions[0].error is NONE


def delete_group(bench):
    assert bench.ask(m.DeleteGroupsRequest(group_ids=("g",))).groups[0].error is NONE
    assert bench.coordinator.group_ids() == []


def delete_topic(bench):
    bench.take(bench.coordinator.on_topics_deleted({"t": "an id"}, now_ms=bench.now_ms))


@pytest.mark.parametrize("delete", [delete_offset, delete_group, delete_topic])
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_deleted_offset_does_not_come_back_at_the_end_of_a_transaction(
    make_bench, bench, delete, is_committed
):
    if is_committed:
        bench.commit(offset=1)
    bench.commit_in_transaction(offset=5)
    delete(bench)
    assert fetched(bench, "t") == [(-1, NONE)]
    for partition in range(50):
        bench.log.compact(partition)
    again = make_bench(log=bench.log)
    again.end_transaction(committed=True)
    assert (again.committed(), pending(again)) == (-1, {})


def test_a_deletion_takes_the_commits_in_transactions_before_it_along(bench):
    bench.commit()
    bench.holding = True
    bench.commit_in_transaction()
    bench.ask(m.DeleteGroupsRequest(group_ids=("g",)))
    bench.release()
    assert (pending(bench), bench.coordinator.group_ids()) == ({}, [])
