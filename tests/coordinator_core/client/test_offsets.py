"""Commits of offsets, on request and periodic, and their errors."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.requests import Failure
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, Bench
from tests.coordinator_core.client.doubles import Source


def commits(bench):
    """Return every commit, as {partition: offset}."""
    return [
        {(o.topic, o.partition): o.offset for o in request.offsets}
        for request in bench.requests(m.OffsetCommitRequest)
    ]


def commit(bench, offsets=None, **given):
    results = []
    bench.call("commit", offsets, callback=results.append, **given)
    return results


def test_a_commit_contains_offsets_generation_member_epoch_and_metadata(bench):
    """PROTOCOL 9.11."""
    bench.committed[T0] = (3, 8)
    bench.stable(T0, generation=4)
    commit(bench, {T1: 7, T0: 5}, metadata="note")
    request = bench.sent(m.OffsetCommitRequest).request
    assert (request.group_id, request.generation_id, request.member_id) == ("g", 4, "m1")
    assert request.offsets == (
        m.OffsetToCommit("t", 0, 5, 8, "note"),
        m.OffsetToCommit("t", 1, 7, -1, "note"),
    )


def test_the_callback_is_called_in_a_later_poll(bench):
    """PROTOCOL 9.3."""
    bench.stable(T0)
    results = commit(bench, {T0: 5})
    bench.accept(m.OffsetCommitRequest)
    assert results == []
    assert bench.client.wants_poll
    bench.poll()
    assert results == [""]


def test_a_poll_runs_callbacks_first(bench):
    """Given a completed commit and a rejoin that is due, then the callback runs before on_partitions_revoked.
    PROTOCOL 9.3."""
    bench.stable(T0)
    bench.call("commit", {T0: 5}, callback=lambda error: bench.calls.append(("committed", error)))
    bench.accept(m.OffsetCommitRequest)
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.poll()
    assert [name for name, _ in bench.calls] == ["assigned", "committed", "revoked"]


def test_without_offsets_the_position_is_committed_not_the_end(bench):
    """Given a position that is neither the committed offset, the high watermark nor the log's end, then the
    position is committed. PROTOCOL 9.11."""
    bench.committed[T0] = (30, -1)
    bench.stable(T0, T1)
    bench.call("seek", "t", 0, 42)
    bench.client.partitions[T0].high_watermark = 77
    commit(bench)
    assert commits(bench) == [{T0: 42, T1: 100}]


def test_partitions_without_a_position_are_not_committed(bench):
    """Given no partition with a position, then no request is sent and the callback gets success. PROTOCOL
    9.11."""
    del bench.responders[m.OffsetFetchRequest]
    bench.stable(T0)
    results = commit(bench)
    bench.poll()
    assert (results, commits(bench)) == ([""], [])


def test_the_position_source_determines_the_committed_offsets():
    """PROTOCOL 9.11."""
    source = Source()
    bench = Bench(source=source, enable_auto_commit=False).stable(T0, T1)
    source.offsets[T0] = 150
    del source.offsets[T1]
    commit(bench)
    assert commits(bench) == [{T0: 150}]


def test_a_commit_without_a_coordinator_fails_and_finds_one(bench):
    bench.stable(T0)
    del bench.responders[m.FindCoordinatorRequest]
    bench.disconnect()
    results = commit(bench, {T0: 5})
    bench.poll()
    assert results == ["the coordinator is unknown"]
    assert bench.pending(m.FindCoordinatorRequest)


def test_a_member_without_a_generation_commits_nothing(bench):
    """Given a member whose generation is lost, then no commit is sent without a member id. PROTOCOL 9.5."""
    bench.stable(T0)
    bench.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    results = commit(bench, {T0: 5})
    bench.poll()
    assert commits(bench) == []
    assert "no member" in results[0]


# --- auto-commit


@pytest.mark.parametrize("stage", ["preparing", "completing"])
def test_a_member_in_a_round_commits_nothing(calm, stage):
    """Given a cooperative member that waits for the response to a join or sync, when the application commits,
    then the commit fails at once and without a request. It succeeds after the round. C-35."""
    results = []
    calm.stable(T0)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    if stage == "completing":
        calm.respond_to_join(generation=2)
    calm.call("commit", {T0: 5}, callback=results.append, retry_until_ms=60_000)
    calm.poll()
    assert results == ["REBALANCE_IN_PROGRESS"]
    assert calm.requests(m.OffsetCommitRequest) == []
    if stage == "preparing":
        calm.respond_to_join(generation=2)
    calm.respond_to_sync(T0)
    calm.call("commit", {T0: 5}, callback=results.append)
    assert calm.sent(m.OffsetCommitRequest).request.generation_id == 2


def test_a_poll_auto_commits_once_per_interval():
    """PROTOCOL 9.3, 9.11."""
    bench = Bench().stable(T0)
    bench.respond_to(m.HeartbeatRequest, m.OffsetCommitRequest)
    bench.sleep(4_999, polling=True)
    assert commits(bench) == []
    bench.sleep(1)
    assert commits(bench) == []
    bench.polls()
    assert commits(bench) == [{T0: 100}]
    bench.sleep(10_000, polling=True)
    assert len(commits(bench)) == 3


def test_one_auto_commit_is_in_flight_at_a_time():
    """PROTOCOL 9.11."""
    bench = Bench().stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    bench.sleep(20_000, polling=True)
    assert len(commits(bench)) == 1


def test_a_retriable_auto_commit_is_sent_again_after_the_backoff():
    """PROTOCOL 9.10, 9.11."""
    bench = Bench().stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    bench.sleep(5_000, polling=True)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(99, polling=True)
    assert len(commits(bench)) == 1
    bench.sleep(1, polling=True)
    assert len(commits(bench)) == 2


def test_without_auto_commit_nothing_is_committed(bench):
    """PROTOCOL 9.11."""
    bench.stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    bench.live(20_000)
    assert commits(bench) == []


# --- errors


def moved_on(bench, generation=2):
    """Return a member with a commit of its first generation in flight that joins for the third."""
    bench.stable(T0)
    results = commit(bench, {T0: 5})
    late = bench.sent(m.OffsetCommitRequest)
    bench.round(T0, generation=generation)
    return results, late


@pytest.mark.parametrize(
    "error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID]
)
def test_a_commit_of_an_old_generation_during_a_rebalance_fails_with_rebalance_in_progress(calm, error):
    """Given a commit of an older generation, when it is refused while the consumer joins again, then the
    application gets REBALANCE_IN_PROGRESS, and nothing is reset. PROTOCOL 9.9, C-36."""
    results, late = moved_on(calm)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    assert calm.state is MemberState.PREPARING_REBALANCE
    calm.refuse(late, error)
    calm.poll()
    assert (results, calm.client.generation.number) == (["REBALANCE_IN_PROGRESS"], 2)
    assert calm.client.failure is None


@pytest.mark.parametrize("name", ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"])
def test_a_commit_of_an_old_generation_in_a_stable_one_fails_and_changes_nothing(calm, name):
    """PROTOCOL 9.9, C-36, C-46."""
    results, late = moved_on(calm)
    calm.refuse(late, ErrorCode[name])
    calm.poll()
    assert (results, calm.client.generation.number, calm.state) == ([name], 2, MemberState.STABLE)
    assert calm.pending(m.JoinGroupRequest) == []


def test_too_large_commit_metadata_is_an_error_of_the_application(bench):
    """Given OFFSET_METADATA_TOO_LARGE, then the application gets the error, and the consumer continues.
    C-46."""
    bench.stable(T0)
    results = commit(bench, {T0: 5}, metadata="x" * 10_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.OFFSET_METADATA_TOO_LARGE)
    bench.poll()
    assert results == ["OFFSET_METADATA_TOO_LARGE"]
    assert (len(bench.errors), bench.client.failure) == (1, None)


def test_one_partition_in_error_makes_the_commit_fail(bench):
    """PROTOCOL 9.11."""
    bench.stable(T0)
    results = commit(bench, {T0: 5, T1: 6})
    errors = (
        m.PartitionError("t", 0, ErrorCode.NONE),
        m.PartitionError("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    )
    bench.respond(m.OffsetCommitRequest, m.OffsetCommitResponse(partitions=errors))
    bench.poll()
    assert results == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_a_commit_without_a_response_makes_the_coordinator_unknown(bench):
    """PROTOCOL 9.9, 9.10."""
    bench.stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    results = commit(bench, {T0: 5})
    bench.sleep(30_000, polling=True)
    assert results == [Failure.TIMED_OUT.value]
    assert len(bench.requests(m.FindCoordinatorRequest)) == 2


# --- commits that are sent again

BACKOFF_MS = ClientConfig(group_id="g", client_id="c").retry_backoff_ms


def test_a_commit_is_sent_again_until_it_is_done(bench):
    """Given a coordinator that disconnects and another that is found, then the commit is sent to the
    other."""
    bench.stable(T0)
    results = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + 60_000)
    bench.disconnect()
    bench.sleep(BACKOFF_MS)
    bench.poll()
    assert results == []
    bench.accept(m.OffsetCommitRequest)
    bench.poll()
    assert results == [""]
    assert commits(bench) == [{T0: 5}, {T0: 5}]


def test_a_commit_with_a_fatal_error_is_not_sent_again(bench):
    bench.stable(T0)
    results = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + 60_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.poll()
    assert results == ["REBALANCE_IN_PROGRESS"]


def test_a_commit_is_not_sent_again_after_its_time(bench):
    bench.stable(T0)
    results = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + BACKOFF_MS + 1)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(BACKOFF_MS)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.poll()
    assert results == ["COORDINATOR_LOAD_IN_PROGRESS"]
    assert len(commits(bench)) == 2


def test_a_retried_commit_omits_partitions_committed_since(bench):
    """Given a commit that waits, when another one of the same partition succeeds, then no offset goes
    back."""
    bench.stable(T0, T1)
    results = commit(bench, {T0: 5, T1: 7}, retry_until_ms=bench.now_ms + 60_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    commit(bench, {T0: 9})
    bench.accept(m.OffsetCommitRequest)
    bench.sleep(BACKOFF_MS)
    bench.accept(m.OffsetCommitRequest)
    bench.poll()
    assert commits(bench) == [{T0: 5, T1: 7}, {T0: 9}, {T1: 7}]
    assert results == [""]


def test_a_commit_is_not_sent_again_in_another_generation(bench):
    """What it would have written may be another member's now."""
    bench.stable(T0, T1)
    results = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + 60_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.polls()
    while bench.pending(m.OffsetCommitRequest):
        bench.accept(m.OffsetCommitRequest)
        bench.polls()
    bench.join_as_follower(generation=2)
    bench.respond_to_sync(T1)
    before = len(commits(bench))
    bench.sleep(BACKOFF_MS, polling=True)
    assert len(commits(bench)) == before
    assert results == ["REBALANCE_IN_PROGRESS"]


def test_a_withdrawn_commit_is_not_sent_again(bench):
    bench.stable(T0)
    results = []
    callback = results.append
    bench.call("commit", {T0: 5}, callback=callback, retry_until_ms=bench.now_ms + 60_000)
    bench.client.withdraw_commit(callback)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(BACKOFF_MS, polling=True)
    assert (len(commits(bench)), results) == (1, [])


def test_without_a_time_a_commit_is_sent_once(bench):
    bench.stable(T0)
    results = commit(bench, {T0: 5})
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.poll()
    assert results == ["COORDINATOR_LOAD_IN_PROGRESS"]
