"""The close of a consumer: commit, give up partitions, leave, within thirty seconds."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import OffsetsCommitted
from tests.coordinator_core.client.bench import T0, T1, Bench, cooperative


@pytest.fixture
def member():
    """A member with auto-commit that owns something."""
    return Bench(auto_commit_interval_ms=1_000_000).stable(T0, T1)


def test_close_commits_then_gives_up_then_leaves(member):
    """PROTOCOL 9.11, C-57, C-59."""
    member.close()
    commit = member.sent(m.OffsetCommitRequest).request
    assert [(o.partition, o.offset) for o in commit.offsets] == [(0, 100), (1, 100)]
    assert (member.owned, member.requests(m.LeaveGroupRequest)) == ([T0, T1], [])
    member.accept(m.OffsetCommitRequest)
    assert (member.owned, member.calls[-1]) == ([], ("revoked", [T0, T1]))
    assert not member.client.closed
    assert member.sent(m.LeaveGroupRequest).request.members[0].reason == "the consumer is being closed"
    member.accept(m.LeaveGroupRequest)
    assert (member.client.closed, member.client.next_deadline_ms()) == (True, None)


@pytest.mark.parametrize(
    "error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_any_response_to_the_leave_closes_the_consumer(bench, error):
    """C-59."""
    bench.stable(T0)
    bench.close()
    bench.refuse(m.LeaveGroupRequest, error)
    assert (bench.client.closed, bench.errors) == (True, [])


def test_a_lost_connection_completes_the_leave(bench):
    """C-59."""
    bench.stable(T0)
    bench.close()
    bench.disconnect()
    assert bench.client.closed


def test_a_commit_on_close_is_retried_until_it_succeeds(member):
    """Given a commit that fails because the coordinator moved, then it is sent to the next one. PROTOCOL
    9.10, 9.11."""
    member.close()
    member.refuse(m.OffsetCommitRequest, ErrorCode.NOT_COORDINATOR)
    member.sleep(100)
    member.accept(m.OffsetCommitRequest)
    member.accept(m.LeaveGroupRequest)
    assert member.client.closed


@pytest.mark.parametrize("request_timeout_ms", [1_000, 30_000, 60_000])
def test_a_coordinator_without_responses_delays_close_by_thirty_seconds(request_timeout_ms):
    """PROTOCOL 9.11, C-59."""
    member = Bench(auto_commit_interval_ms=1_000_000, request_timeout_ms=request_timeout_ms).stable(T0)
    member.close()
    member.sleep(29_999)
    assert not member.client.closed
    member.sleep(1)
    assert member.client.closed
    assert member.owned == []


def test_an_unknown_coordinator_delays_close_by_thirty_seconds(member):
    """PROTOCOL 9.11."""
    del member.responders[m.FindCoordinatorRequest]
    member.disconnect()
    member.close()
    member.sleep(29_999)
    assert not member.client.closed
    member.sleep(1)
    assert member.client.closed


def test_without_auto_commit_close_commits_nothing(bench):
    """PROTOCOL 9.11."""
    bench.stable(T0)
    bench.close()
    assert bench.requests(m.OffsetCommitRequest) == []
    assert bench.pending(m.LeaveGroupRequest)


@pytest.mark.parametrize("stage", ["preparing", "completing", "lost"])
def test_in_a_round_or_without_a_generation_partitions_are_lost_on_close(stage):
    """Given a cooperative member in a round, or without a generation, when it closes, then its partitions are
    lost and nothing is committed. PROTOCOL 9.5, C-57, C-35."""
    bench = cooperative(auto_commit_interval_ms=1_000_000).stable(T0)
    if stage == "lost":
        bench.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        bench.respond_to(m.OffsetCommitRequest)
        bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
        bench.polls()
        if stage == "completing":
            bench.respond_to_join(generation=2)
    commits = len(bench.requests(m.OffsetCommitRequest))
    bench.close()
    assert (bench.calls[-1], bench.owned) == (("lost", [T0]), [])
    assert len(bench.requests(m.OffsetCommitRequest)) == commits
    reported = [event.error for event in bench.events_of(OffsetsCommitted)[commits:]]
    assert reported == ([] if stage == "lost" else ["REBALANCE_IN_PROGRESS"])
    assert bool(bench.pending(m.LeaveGroupRequest)) is (stage != "lost")


def test_a_generation_lost_while_closing_makes_partitions_lost(member):
    """PROTOCOL 9.5, C-57."""
    member.close()
    member.refuse(m.OffsetCommitRequest, ErrorCode.UNKNOWN_MEMBER_ID)
    assert (member.calls[-1], member.client.closed) == (("lost", [T0, T1]), True)


def test_a_consumer_that_never_joined_is_closed_at_once(bench):
    bench.close()
    assert bench.client.closed
    assert bench.log == []


def test_a_closing_consumer_neither_polls_nor_joins_nor_sends_heartbeats(member):
    """PROTOCOL 9.3, 9.9."""
    member.close()
    before = len(member.log)
    member.poll()
    member.close()
    member.sleep(9_000)
    assert len(member.log) == before
    assert not member.client.wants_poll


def test_a_closed_consumer_sends_nothing_more():
    """Given requests in flight at the end, when they expire, then none is sent again. PROTOCOL 9.10."""
    bench = Bench()
    del bench.responders[m.FindCoordinatorRequest]
    bench.subscribe("t")
    bench.poll()
    bench.disconnect(3)
    bench.close()
    bench.sleep(400_000)
    assert [type(send.request) for send in bench.log] == [m.MetadataRequest, m.FindCoordinatorRequest]
    assert bench.client.next_deadline_ms() is None


def test_a_response_to_a_join_after_close_is_dropped(bench):
    """PROTOCOL 9.9."""
    bench.subscribe("t")
    bench.polls()
    bench.close()
    bench.respond_to_join()
    assert (bench.client.closed, bench.state) == (True, MemberState.UNJOINED)
    assert bench.requests(m.SyncGroupRequest) == []


def test_a_failed_consumer_commits_nothing_on_close(member):
    """PROTOCOL 9.9, C-46."""
    member.heartbeat(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    member.close()
    assert (member.requests(m.OffsetCommitRequest), member.owned) == ([], [])
