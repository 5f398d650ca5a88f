"""Committing offsets: on request, in the background, and what the answers mean."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.requests import Failure
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, Bench
from tests.coordinator_core.client.doubles import Workshop


def commits(bench):
    """Every commit there was, as {partition: offset}."""
    return [
        {(o.topic, o.partition): o.offset for o in request.offsets}
        for request in bench.requests(m.OffsetCommitRequest)
    ]


def commit(bench, offsets=None, **given):
    heard = []
    bench.call("commit", offsets, callback=heard.append, **given)
    return heard


def test_a_commit_says_offsets_generation_member_epoch_and_metadata(bench):
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
    heard = commit(bench, {T0: 5})
    bench.agree(m.OffsetCommitRequest)
    assert heard == []
    assert bench.client.wants_poll
    bench.poll()
    assert heard == [""]


def test_callbacks_come_before_anything_else_in_a_poll(bench):
    """Given a commit that is done and a rejoin that is due, then the callback comes before revoked.
    PROTOCOL 9.3."""
    bench.stable(T0)
    bench.call("commit", {T0: 5}, callback=lambda error: bench.calls.append(("committed", error)))
    bench.agree(m.OffsetCommitRequest)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
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
    """Given nothing with a position, then no request goes out and the callback hears of success.
    PROTOCOL 9.11."""
    del bench.served[m.OffsetFetchRequest]
    bench.stable(T0)
    heard = commit(bench)
    bench.poll()
    assert (heard, commits(bench)) == ([""], [])


def test_whoever_works_on_the_partitions_says_what_is_committed():
    """PROTOCOL 9.11."""
    source = Workshop()
    bench = Bench(source=source, enable_auto_commit=False).stable(T0, T1)
    source.positions[T0] = 150
    del source.positions[T1]
    commit(bench)
    assert commits(bench) == [{T0: 150}]


def test_without_a_coordinator_a_commit_fails_and_one_is_looked_for(bench):
    bench.stable(T0)
    del bench.served[m.FindCoordinatorRequest]
    bench.disconnect()
    heard = commit(bench, {T0: 5})
    bench.poll()
    assert heard == ["the coordinator is unknown"]
    assert bench.asked(m.FindCoordinatorRequest)


def test_a_member_without_a_generation_commits_nothing(bench):
    """Given a member whose generation is lost, then no commit goes out as if from nobody. PROTOCOL 9.5."""
    bench.stable(T0)
    bench.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    heard = commit(bench, {T0: 5})
    bench.poll()
    assert commits(bench) == []
    assert "no member" in heard[0]


# --- auto-commit


def test_auto_commit_comes_every_interval_in_poll():
    """PROTOCOL 9.3, 9.11."""
    bench = Bench().stable(T0)
    bench.serve(m.HeartbeatRequest, m.OffsetCommitRequest)
    bench.sleep(4_999, polling=True)
    assert commits(bench) == []
    bench.sleep(1)
    assert commits(bench) == []
    bench.polls()
    assert commits(bench) == [{T0: 100}]
    bench.sleep(10_000, polling=True)
    assert len(commits(bench)) == 3


def test_one_auto_commit_is_under_way_at_a_time():
    """PROTOCOL 9.11."""
    bench = Bench().stable(T0)
    bench.serve(m.HeartbeatRequest)
    bench.sleep(20_000, polling=True)
    assert len(commits(bench)) == 1


def test_an_auto_commit_that_may_succeed_later_is_sent_again_after_the_backoff():
    """PROTOCOL 9.10, 9.11."""
    bench = Bench().stable(T0)
    bench.serve(m.HeartbeatRequest)
    bench.sleep(5_000, polling=True)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(99, polling=True)
    assert len(commits(bench)) == 1
    bench.sleep(1, polling=True)
    assert len(commits(bench)) == 2


def test_without_auto_commit_nothing_is_committed(bench):
    """PROTOCOL 9.11."""
    bench.stable(T0)
    bench.serve(m.HeartbeatRequest)
    bench.live(20_000)
    assert commits(bench) == []


# --- what the answers mean


def test_a_rebalance_in_progress_makes_the_member_rejoin_as_it_is(calm):
    """Given REBALANCE_IN_PROGRESS for a commit, then the application hears so, and the consumer rejoins with
    its generation and partitions. C-35."""
    calm.stable(T0)
    heard = commit(calm, {T0: 5})
    calm.refuse(m.OffsetCommitRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    assert heard == ["REBALANCE_IN_PROGRESS"]
    assert (calm.subscription().generation, calm.join().member_id, calm.owned) == (1, "m1", [T0])


def test_an_old_generation_is_reset_and_the_id_kept(calm):
    """Given ILLEGAL_GENERATION for a commit of the current generation, then it is reset. C-36."""
    calm.stable(T0)
    heard = commit(calm, {T0: 5})
    calm.refuse(m.OffsetCommitRequest, ErrorCode.ILLEGAL_GENERATION)
    calm.polls()
    assert heard == ["ILLEGAL_GENERATION"]
    assert (calm.subscription().generation, calm.join().member_id) == (-1, "m1")


def moved_on(bench, generation=2):
    """A member that has a commit of its first generation under way, and joins for the third."""
    bench.stable(T0)
    heard = commit(bench, {T0: 5})
    late = bench.sent(m.OffsetCommitRequest)
    bench.round(T0, generation=generation)
    return heard, late


@pytest.mark.parametrize(
    "error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID]
)
def test_an_old_generations_commit_of_who_prepares_again_says_rebalance_in_progress(calm, error):
    """Given a commit of an older generation, when its refusal comes while the consumer is joining again, then
    the application hears of the rebalance, and nothing is reset. PROTOCOL 9.9, C-36."""
    heard, late = moved_on(calm)
    calm.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    assert calm.state is MemberState.PREPARING_REBALANCE
    calm.refuse(late, error)
    calm.poll()
    assert (heard, calm.client.generation.number) == (["REBALANCE_IN_PROGRESS"], 2)
    assert calm.client.failure is None


@pytest.mark.parametrize("name", ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"])
def test_an_old_generations_commit_of_who_is_stable_has_failed_and_changes_nothing(calm, name):
    """PROTOCOL 9.9, C-36, C-46."""
    heard, late = moved_on(calm)
    calm.refuse(late, ErrorCode[name])
    calm.poll()
    assert (heard, calm.client.generation.number, calm.state) == ([name], 2, MemberState.STABLE)
    assert calm.asked(m.JoinGroupRequest) == []


def test_metadata_that_is_too_large_is_the_applications_problem(bench):
    """Given OFFSET_METADATA_TOO_LARGE, then the application hears, and the consumer goes on. C-46."""
    bench.stable(T0)
    heard = commit(bench, {T0: 5}, metadata="x" * 10_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.OFFSET_METADATA_TOO_LARGE)
    bench.poll()
    assert heard == ["OFFSET_METADATA_TOO_LARGE"]
    assert (len(bench.errors), bench.client.failure) == (1, None)


def test_one_partition_in_error_makes_the_commit_fail(bench):
    """PROTOCOL 9.11."""
    bench.stable(T0)
    heard = commit(bench, {T0: 5, T1: 6})
    each = (
        m.PartitionError("t", 0, ErrorCode.NONE),
        m.PartitionError("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    )
    bench.answer(m.OffsetCommitRequest, m.OffsetCommitResponse(partitions=each))
    bench.poll()
    assert heard == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_a_commit_without_an_answer_makes_the_coordinator_unknown(bench):
    """PROTOCOL 9.9, 9.10."""
    bench.stable(T0)
    bench.serve(m.HeartbeatRequest)
    heard = commit(bench, {T0: 5})
    bench.sleep(30_000, polling=True)
    assert heard == [Failure.TIMED_OUT.value]
    assert len(bench.requests(m.FindCoordinatorRequest)) == 2


# --- commits that are sent again

BACKOFF_MS = ClientConfig(group_id="g", client_id="c").retry_backoff_ms


def test_a_commit_is_sent_again_until_it_is_done(bench):
    """Given a coordinator that goes away and another that is found, then that one is asked."""
    bench.stable(T0)
    heard = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + 60_000)
    bench.disconnect()
    bench.sleep(BACKOFF_MS)
    bench.poll()
    assert heard == []
    bench.agree(m.OffsetCommitRequest)
    bench.poll()
    assert heard == [""]
    assert commits(bench) == [{T0: 5}, {T0: 5}]


def test_a_commit_that_is_refused_for_good_is_not_sent_again(bench):
    bench.stable(T0)
    heard = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + 60_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.poll()
    assert heard == ["REBALANCE_IN_PROGRESS"]


def test_a_commit_is_not_sent_again_after_its_time(bench):
    bench.stable(T0)
    heard = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + BACKOFF_MS + 1)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(BACKOFF_MS)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.poll()
    assert heard == ["COORDINATOR_LOAD_IN_PROGRESS"]
    assert len(commits(bench)) == 2


def test_a_commit_that_is_sent_again_leaves_out_what_was_committed_since(bench):
    """Given a commit that waits, when another one of the same partition is done, then no offset goes back."""
    bench.stable(T0, T1)
    heard = commit(bench, {T0: 5, T1: 7}, retry_until_ms=bench.now_ms + 60_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    commit(bench, {T0: 9})
    bench.agree(m.OffsetCommitRequest)
    bench.sleep(BACKOFF_MS)
    bench.agree(m.OffsetCommitRequest)
    bench.poll()
    assert commits(bench) == [{T0: 5, T1: 7}, {T0: 9}, {T1: 7}]
    assert heard == [""]


def test_a_commit_is_not_sent_again_in_another_generation(bench):
    """What it would have written may be another member's now."""
    bench.stable(T0, T1)
    heard = commit(bench, {T0: 5}, retry_until_ms=bench.now_ms + 60_000)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.polls()
    while bench.asked(m.OffsetCommitRequest):
        bench.agree(m.OffsetCommitRequest)
        bench.polls()
    bench.join_as_follower(generation=2)
    bench.synced(T1)
    before = len(commits(bench))
    bench.sleep(BACKOFF_MS, polling=True)
    assert len(commits(bench)) == before
    assert heard == ["REBALANCE_IN_PROGRESS"]


def test_a_commit_that_nobody_waits_for_is_not_sent_again(bench):
    bench.stable(T0)
    heard = []
    told = heard.append
    bench.call("commit", {T0: 5}, callback=told, retry_until_ms=bench.now_ms + 60_000)
    bench.client.withdraw_commit(told)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(BACKOFF_MS, polling=True)
    assert (len(commits(bench)), heard) == (1, [])


def test_without_a_time_a_commit_is_sent_once(bench):
    bench.stable(T0)
    heard = commit(bench, {T0: 5})
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.poll()
    assert heard == ["COORDINATOR_LOAD_IN_PROGRESS"]
