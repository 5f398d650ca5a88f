"""OffsetCommit and OffsetFetch."""

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def test_a_simple_consumer_commits_to_a_group_without_members(bench):
    """Given no group or an Empty one, when a commit has no member and a negative generation, then it is
    taken. PROTOCOL 7.1, C-33."""
    assert bench.commit(offset=5) is ErrorCode.NONE
    assert bench.state() == "Empty"
    assert bench.commit(offset=6) is ErrorCode.NONE
    assert bench.committed() == 6


def test_a_commit_of_a_generation_to_an_unknown_group_is_illegal(bench):
    """Given no group, when a commit has a generation, then ILLEGAL_GENERATION, and GROUP_ID_NOT_FOUND from
    version 9 on, as in Kafka. PROTOCOL 7.1."""
    assert bench.commit("x", 1, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit("x", 1) is bench.commit("x", 0) is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.coordinator.group_ids() == []


def test_a_commit_is_checked_as_a_sync_is(bench):
    """Given a commit that is wrong in every way, when it is put right bit by bit, then fenced, unknown
    member, illegal generation, NONE. PROTOCOL 7.1, C-36."""
    _, dynamic = bench.stable_group(2, instances=("i1",))
    assert bench.commit("x", 9, instance="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.commit("x", 9, instance="i9") is UNKNOWN
    assert bench.commit("x", 9) is UNKNOWN
    assert bench.commit(dynamic, 0) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(dynamic, 2) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(dynamic, -1) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(dynamic, 1) is ErrorCode.NONE


def test_offsets_of_the_empty_group_id_are_those_of_simple_consumers(bench):
    """Given an empty group id, then a commit without a generation is taken and can be fetched; one with a
    generation is refused as in any other group. PROTOCOL 7.1, C-02, C-33."""
    assert bench.commit("m", 1, group="") is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.commit(group="", offset=8) is ErrorCode.NONE
    assert bench.committed(group="") == 8
    assert bench.commit("m", 1, group="") is UNKNOWN
    assert bench.ask(m.DescribeGroupsRequest(group_ids=("",))).groups[0].error is ErrorCode.NONE
    assert bench.ask(m.DeleteGroupsRequest(group_ids=("",))).groups[0].error is ErrorCode.NONE
    assert bench.committed(group="") == -1


@pytest.mark.parametrize("loading", [False, True])
def test_a_request_of_a_member_needs_a_group_id(bench, loading):
    """Given an empty group id, then joins, syncs, heartbeats, leaves and deletions of offsets get
    INVALID_GROUP_ID, also while the coordinator loads. PROTOCOL 3.1, C-02."""
    bench.commit(group="")
    if loading:
        bench.coordinator.on_elected(0)
    invalid = ErrorCode.INVALID_GROUP_ID
    assert bench.joined("m", group="").error is invalid
    assert bench.joined("m", group="", session_ms=1).error is invalid
    assert bench.synced("m", 1, group="").error is invalid
    assert bench.beat("m", 1, group="") is invalid
    members = (m.MemberIdentity("m"),)
    assert bench.ask(m.LeaveGroupRequest(group_id="", members=members)).error is invalid
    assert bench.ask(m.OffsetDeleteRequest(group_id="", partitions=())).error is invalid
    expected = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
    assert bench.commit(group="") is expected
    assert bench.ask(m.OffsetFetchRequest(group_id="")).error is expected


def test_a_commit_is_answered_when_it_is_written(bench):
    """Given the write under way, then no answer and the old offset; once written, both. PROTOCOL 8.1."""
    bench.commit(offset=5)
    bench.holding = True
    assert bench.commit(offset=6) is None
    assert bench.committed() == 5
    bench.release()
    assert bench.replies[bench.requests - 1].partitions[0].error is ErrorCode.NONE
    assert bench.committed() == 6


def test_a_commit_that_cannot_be_written_is_answered_with_the_error(bench):
    bench.append_error = ErrorCode.NOT_COORDINATOR
    assert bench.commit() is ErrorCode.NOT_COORDINATOR
    assert bench.committed() == -1


def test_long_metadata_is_refused_for_its_partition_alone(bench):
    """Given partitions, of which two have metadata of more than 4,096 characters in UTF-16, then these get
    OFFSET_METADATA_TOO_LARGE and the others are committed. PROTOCOL 7.2."""
    offsets = (
        m.OffsetToCommit("t", 0, 1, metadata="x" * 4_097),
        m.OffsetToCommit("t", 1, 2, metadata="x" * 4_096),
        m.OffsetToCommit("t", 2, 3, metadata="\U0001f600" * 2_049),
        m.OffsetToCommit("t", 3, 4, metadata="\U0001f600" * 2_048),
        m.OffsetToCommit("t", 4, 5, metadata="é" * 4_096),
    )
    answer = bench.ask(m.OffsetCommitRequest(group_id="g", offsets=offsets))
    large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    none = ErrorCode.NONE
    assert [partition.error for partition in answer.partitions] == [large, none, large, none, none]
    fetched = bench.ask(m.OffsetFetchRequest(group_id="g")).offsets
    assert [(partition.partition, partition.offset) for partition in fetched] == [(1, 2), (3, 4), (4, 5)]


def test_a_commit_of_nothing_that_fits_is_answered_at_once(bench):
    """PROTOCOL 7.2."""
    bench.holding = True
    offsets = (m.OffsetToCommit("t", 0, 1, metadata="x" * 4_097),)
    answer = bench.ask(m.OffsetCommitRequest(group_id="g", offsets=offsets))
    assert answer.partitions[0].error is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_an_offset_that_was_never_committed_is_minus_one_without_an_error(bench):
    """PROTOCOL 7.2."""
    wanted = m.OffsetFetchRequest(group_id="g", partitions=(TopicPartition("t", 0),))
    for _ in range(2):
        answer = bench.ask(wanted)
        assert answer.error is ErrorCode.NONE
        assert [(x.offset, x.metadata, x.error) for x in answer.offsets] == [(-1, "", ErrorCode.NONE)]
        bench.commit(topic="u")


def test_everything_committed_can_be_fetched_at_once(bench):
    """Given commits with epoch and metadata, when all are fetched, then they come in order. PROTOCOL
    7.2."""
    offsets = (m.OffsetToCommit("u", 3, 7, 4, "note"), m.OffsetToCommit("t", 1, 5))
    bench.send(m.OffsetCommitRequest(group_id="g", offsets=offsets))
    assert bench.ask(m.OffsetFetchRequest(group_id="g")).offsets == (
        m.FetchedOffset("t", 1, 5),
        m.FetchedOffset("u", 3, 7, 4, "note"),
    )


CHECK_MS, RETENTION_MS = 600_000, 3_600_000
"""How often offsets are looked at, and how long they are kept: an hour."""


def committed(bench, topic, retention_ms=m.DEFAULT_RETENTION):
    offsets = (m.OffsetToCommit(topic, 0, 5),)
    request = m.OffsetCommitRequest(group_id="g", offsets=offsets, retention_time_ms=retention_ms, version=4)
    assert bench.ask(request).partitions[0].error is ErrorCode.NONE


def test_a_commit_may_have_a_retention_time_of_its_own(make_bench):
    """Given commits with retention times of 0 and 70 minutes, when time passes, then each ends at its own
    time, and the others with the retention of the broker; after a restart, too. PROTOCOL 2.1."""
    bench = make_bench(offsets_retention_minutes=60)
    for topic, retention_ms in (("none", 0), ("long", RETENTION_MS + CHECK_MS), ("default", -1)):
        committed(bench, topic, retention_ms)
    bench.sleep(CHECK_MS)
    assert [bench.committed(topic=topic) for topic in ("none", "long", "default")] == [-1, 5, 5]
    bench = make_bench(log=bench.log, now_ms=bench.now_ms, offsets_retention_minutes=60)
    bench.sleep(RETENTION_MS - CHECK_MS)
    assert [bench.committed(topic=topic) for topic in ("long", "default")] == [5, -1]
    bench.sleep(CHECK_MS)
    assert bench.group() is None


def test_offsets_of_a_group_that_had_members_expire_by_the_time_since_the_last_left(make_bench):
    """Given a group that is Empty for most of an hour, when a simple consumer commits to it, then the new
    offset expires with the others. PROTOCOL 2.1."""
    bench = make_bench(offsets_retention_minutes=60)
    (member,) = bench.stable_group(1)
    bench.commit(member, 1, topic="old")
    bench.leave(member)
    bench.sleep(RETENTION_MS - CHECK_MS)
    committed(bench, "new")
    assert [bench.committed(topic=topic) for topic in ("old", "new")] == [5, 5]
    bench.sleep(CHECK_MS)
    assert [bench.committed(topic=topic) for topic in ("old", "new")] == [-1, -1]


def test_offsets_of_a_group_that_never_had_members_expire_by_their_own_age(make_bench):
    """Given a group whose only join has failed, when it has been loaded and a simple consumer commits, then
    the offset is kept for an hour. PROTOCOL 2.1."""
    bench = make_bench(offsets_retention_minutes=60)
    bench.sleep(1)
    bench.join(names=())
    bench = make_bench(log=bench.log, now_ms=bench.now_ms, offsets_retention_minutes=60)
    bench.sleep(CHECK_MS - 1)
    committed(bench, "t")
    bench.sleep(RETENTION_MS)
    assert bench.committed() == 5
    bench.sleep(1)
    assert bench.committed() == -1
