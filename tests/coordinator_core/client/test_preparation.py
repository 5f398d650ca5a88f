"""The work before a join: commit, then give up partitions."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Lost, OffsetsCommitted, Revoked
from tests.coordinator_core.client.bench import T0, T1, U0, Bench, cooperative
from tests.coordinator_core.client.doubles import Source


def working(make=Bench, *owned, **config):
    """A member with auto-commit whose partitions have positions."""
    bench = make(auto_commit_interval_ms=1_000_000, **config)
    bench.stable(*(owned or (T0, T1)), topics=sorted({tp[0] for tp in owned or (T0, T1)}))
    return bench


def rejoining(bench):
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    return bench


def committed(bench):
    return {(o.topic, o.partition): o.offset for o in bench.sent(m.OffsetCommitRequest).request.offsets}


def test_an_eager_consumer_commits_then_revokes_then_joins():
    """PROTOCOL 9.5, 9.11, C-50, C-51."""
    bench = rejoining(working())
    assert committed(bench) == {T0: 100, T1: 100}
    assert (bench.owned, bench.calls[1:], bench.pending(m.JoinGroupRequest)) == ([T0, T1], [], [])
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.owned, bench.calls[1:]) == ([], [("revoked", [T0, T1])])
    assert bench.join().member_id == "m1"
    assert bench.events_of(OffsetsCommitted)[-1] == OffsetsCommitted(client="c", partitions=2)
    assert bench.events_of(Revoked)[-1].partitions == {"t": [0, 1]}


def test_a_commit_is_not_repeated_when_the_generation_is_lost():
    """C-51."""
    bench = rejoining(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    bench.polls()
    assert bench.events_of(Lost)[-1].partitions == {"t": [0, 1]}
    assert [event.error for event in bench.events_of(OffsetsCommitted)] == ["COORDINATOR_LOAD_IN_PROGRESS"]


def test_a_cooperative_consumer_keeps_partitions_of_subscribed_topics():
    """Given two topics of which one is dropped, then before the join only its partitions are revoked.
    PROTOCOL 9.5, C-50."""
    bench = working(cooperative, T0, U0)
    bench.subscribe("t")
    bench.polls()
    assert committed(bench) == {T0: 100, U0: 100}
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.owned, bench.calls[1:]) == ([T0], [("revoked", [U0])])
    assert bench.subscription().owned == {T0}


def test_a_cooperative_consumer_that_keeps_its_topics_does_not_call_the_listener(calm):
    """PROTOCOL 9.5."""
    calm.stable(T0, T1)
    rejoining(calm)
    assert (calm.owned, len(calm.calls)) == ([T0, T1], 1)
    assert calm.pending(m.JoinGroupRequest)


@pytest.mark.parametrize("make", [Bench, cooperative])
@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_consumer_without_a_generation_loses_its_partitions_and_commits_nothing(make, error):
    """PROTOCOL 9.5, C-50."""
    bench = working(make)
    bench.heartbeat(error)
    bench.polls()
    assert (bench.owned, bench.calls[1:]) == ([], [("lost", [T0, T1])])
    assert bench.requests(m.OffsetCommitRequest) == []
    assert bench.events_of(Lost)[-1].partitions == {"t": [0, 1]}
    assert bench.pending(m.JoinGroupRequest)


def test_partitions_about_to_be_revoked_are_neither_fetched_nor_consumed():
    """Given a commit before a rejoin, then no record of the partitions slips in between. C-51."""
    source = Source()
    bench = rejoining(working(source=source))
    assert all(state.pending_revocation for state in bench.client.partitions.values())
    assert source.calls[-1] == ("stopped", [T0, T1])


def test_a_failed_commit_is_retried_after_the_backoff_with_the_same_offsets():
    """PROTOCOL 9.10, C-51."""
    bench = rejoining(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(99, polling=True)
    assert bench.pending(m.OffsetCommitRequest) == []
    bench.sleep(1, polling=True)
    assert committed(bench) == {T0: 100, T1: 100}
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert bench.pending(m.JoinGroupRequest)


def test_a_commit_that_is_retried_has_the_positions_after_a_seek():
    """C-51."""
    bench = rejoining(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.call("seek", "t", 0, 50)
    bench.sleep(100, polling=True)
    assert committed(bench) == {T0: 50, T1: 100}


def test_a_commit_that_cannot_succeed_is_not_retried():
    """Given REBALANCE_IN_PROGRESS for the commit, then the consumer revokes and joins. C-35, C-51."""
    bench = rejoining(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    assert (bench.calls[-1][0], bench.join().member_id) == ("revoked", "m1")
    assert bench.events_of(OffsetsCommitted)[-1].error == "REBALANCE_IN_PROGRESS"


def test_the_commit_is_bounded_by_the_rebalance_timeout():
    """Given a coordinator that never takes the commit, then after max.poll.interval.ms the consumer revokes
    and joins all the same. C-51."""
    bench = rejoining(working(max_poll_interval_ms=20_000))
    bench.respond_to(m.HeartbeatRequest)
    start = bench.now_ms
    while not bench.pending(m.JoinGroupRequest) and bench.now_ms < start + 60_000:
        if bench.pending(m.OffsetCommitRequest):
            bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        bench.sleep(100, polling=True)
    assert bench.now_ms - start == 20_000
    assert bench.calls[-1] == ("revoked", [T0, T1])


def test_a_commit_without_a_response_delays_the_join_at_most_by_the_rebalance_timeout():
    """Given a commit without a response, then the rebalance continues at its deadline, and a late response
    does not shorten the commit of the next rebalance. C-51."""
    bench = working(max_poll_interval_ms=20_000, request_timeout_ms=60_000)
    bench.respond_to(m.HeartbeatRequest)
    del bench.responders[m.HeartbeatRequest]
    rejoining(bench)
    bench.respond_to(m.HeartbeatRequest)
    late = bench.sent(m.OffsetCommitRequest)
    bench.sleep(20_000, polling=True)
    bench.respond_to_join(generation=2)
    bench.respond_to_sync(T0)
    bench.subscribe("t", "u")
    bench.polls()
    second = bench.sent(m.OffsetCommitRequest)
    assert second is not late
    bench.accept(late)
    bench.polls()
    assert bench.pending(m.JoinGroupRequest) == []
    bench.accept(second)
    bench.polls()
    assert bench.pending(m.JoinGroupRequest)


def test_a_rebalance_is_prepared_once_however_many_joins_fail():
    """Given a prepared rebalance, when join and sync fail in turn, then nothing is committed or called again.
    PROTOCOL 9.5, C-50, C-48."""
    bench = working(cooperative)
    bench.subscribe("t", "u")
    bench.polls()
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    bench.refuse(m.JoinGroupRequest, ErrorCode.NOT_COORDINATOR)
    bench.sleep(100, polling=True)
    bench.respond_to_join(generation=2)
    bench.refuse(m.SyncGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    bench.respond_to_join(generation=3)
    bench.respond_to_sync(T0, T1)
    assert len(bench.requests(m.OffsetCommitRequest)) == 1
    assert bench.calls[1:] == [("assigned", [])]
    assert bench.state is MemberState.STABLE


def test_a_generation_lost_during_the_commit_loses_the_partitions():
    """Given a commit before a rejoin, when it is refused with UNKNOWN_MEMBER_ID, then all partitions are
    lost. PROTOCOL 9.5, C-50."""
    bench = rejoining(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.UNKNOWN_MEMBER_ID)
    bench.polls()
    assert (bench.calls[-1], bench.join().member_id) == (("lost", [T0, T1]), "")


def test_a_lost_generation_commits_nothing_while_an_older_commit_is_in_flight():
    """Given a commit in flight, when a heartbeat reports that the member is unknown and an auto-commit is
    due, then none is sent without a member id. PROTOCOL 9.5, 9.11."""
    bench = Bench(auto_commit_interval_ms=4_000).stable(T0)
    rejoining(bench)
    bench.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    bench.sleep(3_000, polling=True)
    assert [r.member_id for r in bench.requests(m.OffsetCommitRequest)] == ["m1"]


def test_a_topic_subscribed_to_again_before_the_join_is_revoked_nevertheless():
    """Given a cooperative consumer that drops a topic and subscribes to it again while it commits, then the
    stopped partitions are revoked, so that none stays stopped. PROTOCOL 9.5, C-51."""
    bench = working(cooperative, T0, U0)
    bench.subscribe("t")
    bench.polls()
    bench.subscribe("t", "u")
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.owned, bench.calls[-1]) == ([T0], ("revoked", [U0]))
    assert not any(state.pending_revocation for state in bench.client.partitions.values())
