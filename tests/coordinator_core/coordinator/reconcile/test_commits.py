"""Commits of members: in their epoch, or in one since they got the partitions (KIP-1251)."""

import msgspec
import pytest

from coordinator_core.coordinator.reconcile.state import Current
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import OffsetCommitRequest, OffsetToCommit

STALE = ErrorCode.STALE_MEMBER_EPOCH


def commit(bench, epoch, *numbers, member_id="a"):
    """Commit offsets of partitions of t. Return the error, which is that of every partition."""
    offsets = tuple(OffsetToCommit("t", number, 5) for number in numbers)
    request = OffsetCommitRequest(
        group_id="g", generation_id=epoch, member_id=member_id, offsets=offsets, version=9
    )
    (error,) = {row.error for row in bench.ask(request).partitions}
    return error


def test_a_commit_names_the_epoch_of_its_member(bench):
    epoch = bench.pair()
    assert commit(bench, epoch, 0) is NONE
    assert commit(bench, epoch + 1, 0) is STALE
    assert commit(bench, epoch, 0, member_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_without_a_member_is_accepted_from_nobody_but_an_empty_group(bench):
    bench.join("a")
    bench.tell("a", -1)
    assert bench.commit() is NONE


def test_a_commit_is_valid_in_every_epoch_since_the_member_got_the_partition(bench):
    bench.join("a")
    bench.join("b")
    bench.settle("a", "b")
    assert (bench.current("a").epoch, bench.current("b").since) == (3, (3, 3))
    assert commit(bench, 2, 0, 1) is NONE
    assert commit(bench, 1, 0) is STALE
    assert commit(bench, 2, 2, member_id="b") is STALE
    assert commit(bench, 3, 2, member_id="b") is NONE


def test_one_partition_that_the_member_got_later_makes_the_whole_commit_stale(bench):
    bench.join("a")
    bench.join("b")
    bench.settle("a", "b")
    bench.tell("b", -1)
    bench.tell("a", 3)
    assert bench.current("a").since == (2, 2, 4, 4)
    assert commit(bench, 3, 0, 1) is NONE
    assert commit(bench, 3, 0, 2) is STALE


def test_what_a_member_has_yet_to_give_up_counts_as_its_own(bench):
    """While it is asked a second time its epoch is the one in which it was asked."""
    bench.join("a")
    bench.join("b")
    bench.settle("a", "b")
    bench.join("c")
    bench.tell("a", 3)
    bench.join("d")
    bench.tell("a", 3, (0, 1))
    assert bench.current("a").revoking != ()
    assert commit(bench, 2, 0, 1) is NONE


def test_a_partition_that_the_member_does_not_own_is_none_of_an_earlier_epoch(bench):
    bench.join("a")
    bench.join("b")
    bench.settle("a", "b")
    assert commit(bench, 2, 3) is STALE
    assert commit(bench, 3, 3) is NONE


def test_epochs_of_records_of_an_older_version_are_those_of_the_member(bench):
    bench.join("a")
    epoch, previous, state, assigned, revoking, _ = msgspec.structs.astuple(bench.current("a"))
    assert Current(epoch, previous, state, assigned, revoking).epochs() == dict.fromkeys(assigned, 2)


@pytest.mark.parametrize("kafka", ["4.0", "4.2"])
def test_before_kafka_4_3_only_the_epoch_of_the_member_is_valid(make_reconcile_bench, kafka):
    bench = make_reconcile_bench(kafka=kafka)
    bench.join("a")
    bench.join("b")
    bench.settle("a", "b")
    assert (commit(bench, 1, 0), commit(bench, 2, 0)) == (STALE, NONE)
