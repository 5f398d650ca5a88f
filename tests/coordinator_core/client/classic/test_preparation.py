"""What a consumer does before it joins: commit, then give up what it must."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Lost, OffsetsCommitted, Revoked
from tests.coordinator_core.client.bench import T0, T1, U0, Bench, cooperative
from tests.coordinator_core.client.doubles import Workshop


def working(make=Bench, *owned, **config):
    """A member with auto-commit whose partitions have positions."""
    bench = make(auto_commit_interval_ms=1_000_000, **config)
    bench.stable(*(owned or (T0, T1)), topics=sorted({tp[0] for tp in owned or (T0, T1)}))
    return bench


def told_to_rejoin(bench):
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    return bench


def committed(bench):
    return {(o.topic, o.partition): o.offset for o in bench.sent(m.OffsetCommitRequest).request.offsets}


def test_an_eager_consumer_commits_then_gives_everything_up_then_joins():
    """PROTOCOL 9.5, 9.11, C-50, C-51."""
    bench = told_to_rejoin(working())
    assert committed(bench) == {T0: 100, T1: 100}
    assert (bench.owned, bench.calls[1:], bench.asked(m.JoinGroupRequest)) == ([T0, T1], [], [])
    bench.agree(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.owned, bench.calls[1:]) == ([], [("revoked", [T0, T1])])
    assert bench.join().member_id == "m1"
    assert bench.events_of(OffsetsCommitted)[-1] == OffsetsCommitted(client="c", partitions=2)
    assert bench.events_of(Revoked)[-1].partitions == {"t": [0, 1]}


def test_a_cooperative_consumer_keeps_what_it_subscribes_to():
    """Given two topics of which one is dropped, then before the join only its partitions are revoked.
    PROTOCOL 9.5, C-50."""
    bench = working(cooperative, T0, U0)
    bench.subscribe("t")
    bench.polls()
    assert committed(bench) == {T0: 100, U0: 100}
    bench.agree(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.owned, bench.calls[1:]) == ([T0], [("revoked", [U0])])
    assert bench.subscription().owned == {T0}


def test_a_cooperative_consumer_that_keeps_its_topics_calls_nobody(calm):
    """PROTOCOL 9.5."""
    calm.stable(T0, T1)
    told_to_rejoin(calm)
    assert (calm.owned, len(calm.calls)) == ([T0, T1], 1)
    assert calm.asked(m.JoinGroupRequest)


@pytest.mark.parametrize("make", [Bench, cooperative])
@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_with_its_generation_everything_is_lost_and_nothing_committed(make, error):
    """PROTOCOL 9.5, C-50."""
    bench = working(make)
    bench.beat(error)
    bench.polls()
    assert (bench.owned, bench.calls[1:]) == ([], [("lost", [T0, T1])])
    assert bench.requests(m.OffsetCommitRequest) == []
    assert bench.events_of(Lost)[-1].partitions == {"t": [0, 1]}
    assert bench.asked(m.JoinGroupRequest)


def test_what_is_about_to_be_given_up_is_not_fetched_and_its_work_stops():
    """Given a commit before a rejoin, then no record of the partitions slips in between. C-51."""
    source = Workshop()
    bench = told_to_rejoin(working(source=source))
    assert all(state.pending_revocation for state in bench.client.partitions.values())
    assert source.calls[-1] == ("stopped", [T0, T1])


def test_a_commit_that_fails_is_tried_again_after_the_backoff_as_it_was():
    """PROTOCOL 9.10, C-51."""
    bench = told_to_rejoin(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(99, polling=True)
    assert bench.asked(m.OffsetCommitRequest) == []
    bench.sleep(1, polling=True)
    assert committed(bench) == {T0: 100, T1: 100}
    bench.agree(m.OffsetCommitRequest)
    bench.polls()
    assert bench.asked(m.JoinGroupRequest)


def test_a_commit_that_cannot_succeed_is_not_tried_again():
    """Given REBALANCE_IN_PROGRESS for the commit, then the consumer revokes and joins. C-35, C-51."""
    bench = told_to_rejoin(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    assert (bench.calls[-1][0], bench.join().member_id) == ("revoked", "m1")
    assert bench.events_of(OffsetsCommitted)[-1].error == "REBALANCE_IN_PROGRESS"


def test_the_commit_is_bounded_by_the_rebalance_timeout():
    """Given a coordinator that never takes the commit, then after max.poll.interval.ms the consumer revokes
    and joins all the same. C-51."""
    bench = told_to_rejoin(working(max_poll_interval_ms=20_000))
    bench.serve(m.HeartbeatRequest)
    start = bench.now_ms
    while not bench.asked(m.JoinGroupRequest) and bench.now_ms < start + 60_000:
        if bench.asked(m.OffsetCommitRequest):
            bench.refuse(m.OffsetCommitRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        bench.sleep(100, polling=True)
    assert bench.now_ms - start == 20_000
    assert bench.calls[-1] == ("revoked", [T0, T1])


def test_a_commit_without_an_answer_does_not_hold_the_join_up_for_ever():
    """Given a commit that is not answered, then the rebalance goes on at its deadline, and the late answer
    does not cut the next rebalance's commit short. C-51."""
    bench = working(max_poll_interval_ms=20_000, request_timeout_ms=60_000)
    bench.serve(m.HeartbeatRequest)
    del bench.served[m.HeartbeatRequest]
    told_to_rejoin(bench)
    bench.serve(m.HeartbeatRequest)
    late = bench.sent(m.OffsetCommitRequest)
    bench.sleep(20_000, polling=True)
    bench.join_answered(generation=2)
    bench.synced(T0)
    bench.subscribe("t", "u")
    bench.polls()
    second = bench.sent(m.OffsetCommitRequest)
    assert second is not late
    bench.agree(late)
    bench.polls()
    assert bench.asked(m.JoinGroupRequest) == []
    bench.agree(second)
    bench.polls()
    assert bench.asked(m.JoinGroupRequest)


def test_a_rebalance_is_prepared_once_however_often_it_is_tried():
    """Given a prepared rebalance, when join and sync fail in turn, then nothing is committed or called again.
    PROTOCOL 9.5, C-50, C-48."""
    bench = working(cooperative)
    bench.subscribe("t", "u")
    bench.polls()
    bench.agree(m.OffsetCommitRequest)
    bench.polls()
    bench.refuse(m.JoinGroupRequest, ErrorCode.NOT_COORDINATOR)
    bench.sleep(100, polling=True)
    bench.join_answered(generation=2)
    bench.refuse(m.SyncGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    bench.join_answered(generation=3)
    bench.synced(T0, T1)
    assert len(bench.requests(m.OffsetCommitRequest)) == 1
    assert bench.calls[1:] == [("assigned", [])]
    assert bench.state is MemberState.STABLE


def test_a_generation_lost_while_committing_makes_everything_lost():
    """Given a commit before a rejoin, when it is answered with UNKNOWN_MEMBER_ID, then all is lost.
    PROTOCOL 9.5, C-50."""
    bench = told_to_rejoin(working())
    bench.refuse(m.OffsetCommitRequest, ErrorCode.UNKNOWN_MEMBER_ID)
    bench.polls()
    assert (bench.calls[-1], bench.join().member_id) == (("lost", [T0, T1]), "")


def test_a_lost_generation_commits_nothing_while_an_older_commit_is_under_way():
    """Given a commit under way, when a heartbeat says the member is unknown and an auto-commit is due, then
    none is sent as if by nobody. PROTOCOL 9.5, 9.11."""
    bench = Bench(auto_commit_interval_ms=4_000).stable(T0)
    told_to_rejoin(bench)
    bench.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    bench.sleep(3_000, polling=True)
    assert [r.member_id for r in bench.requests(m.OffsetCommitRequest)] == ["m1"]


def test_a_topic_taken_back_before_the_join_is_given_up_all_the_same():
    """Given a cooperative consumer that drops a topic and, while it commits, subscribes to it again, then
    what was stopped is revoked, and is not stuck in between. PROTOCOL 9.5, C-51."""
    bench = working(cooperative, T0, U0)
    bench.subscribe("t")
    bench.polls()
    bench.subscribe("t", "u")
    bench.agree(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.owned, bench.calls[-1]) == ([T0], ("revoked", [U0]))
    assert not any(state.pending_revocation for state in bench.client.partitions.values())


def test_without_auto_commit_nothing_is_committed(bench):
    """PROTOCOL 9.5, 9.11."""
    told_to_rejoin(bench.stable(T0))
    assert bench.requests(m.OffsetCommitRequest) == []
    assert bench.asked(m.JoinGroupRequest)
