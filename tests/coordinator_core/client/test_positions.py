"""Where to start in a partition: committed offset, reset, or a seek that is checked."""

import pytest

from coordinator_core.client.states import FetchState
from coordinator_core.errors import InputError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, Bench
from tests.coordinator_core.client.doubles import Source

INITIALIZING, FETCHING = FetchState.INITIALIZING, FetchState.FETCHING
AWAIT_RESET, AWAIT_VALIDATION = FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION


def holding(*kinds, **config):
    """Return a member that owns t-0 and t-1. The test responds to requests of these kinds."""
    bench = Bench(enable_auto_commit=False, **config)
    for kind in kinds:
        del bench.responders[kind]
    return bench.stable(T0, T1)


def looks(bench, tp=T0):
    state = bench.client.partitions[tp]
    return state.fetch_state, state.position


def test_a_partition_starts_at_its_committed_offset():
    """PROTOCOL 9.11, 9.2."""
    bench = holding(m.OffsetFetchRequest)
    assert looks(bench) == (INITIALIZING, -1)
    (request,) = bench.requests(m.OffsetFetchRequest)
    assert (request.group_id, request.partitions, request.require_stable) == ("g", (T0, T1), True)
    bench.committed = {T0: (7, -1), T1: (0, -1)}
    bench.respond(m.OffsetFetchRequest, bench.offsets(request))
    assert (looks(bench), looks(bench, T1)) == ((FETCHING, 7), (FETCHING, 0))


@pytest.mark.parametrize(("policy", "timestamp", "start"), [("earliest", -2, 0), ("latest", -1, 100)])
def test_without_a_committed_offset_the_policy_applies(policy, timestamp, start):
    """PROTOCOL 9.11, 9.2."""
    bench = holding(m.ListOffsetsRequest, auto_offset_reset=policy)
    assert looks(bench) == (AWAIT_RESET, -1)
    asks = bench.pending(m.ListOffsetsRequest)
    assert {(s.node, s.request.partitions, s.request.timestamp) for s in asks} == {
        (2, (T0,), timestamp),
        (3, (T1,), timestamp),
    }
    for ask in asks:
        bench.respond(ask, bench.listed(ask.request))
    assert (looks(bench), looks(bench, T1)) == ((FETCHING, start),) * 2


def test_without_a_policy_the_application_gets_an_error_and_can_seek():
    """Given auto.offset.reset none, then the error names the partition and is repeated after a backoff, until
    a seek. PROTOCOL 9.11."""
    bench = Bench(auto_offset_reset="none", enable_auto_commit=False).stable(T0)
    assert str(bench.errors[0]).startswith("t-0: no offset is committed")
    assert (len(bench.errors), bench.client.failure, looks(bench)[0]) == (1, None, INITIALIZING)
    bench.sleep(100, polling=True)
    assert len(bench.errors) == 2
    bench.call("seek", "t", 0, 5)
    bench.sleep(1_000, polling=True)
    assert (len(bench.errors), looks(bench)) == (2, (FETCHING, 5))


@pytest.mark.parametrize(
    "error",
    [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE],
)
def test_committed_offsets_are_requested_again_after_the_backoff(error):
    """PROTOCOL 9.9, 9.10."""
    bench = holding(m.OffsetFetchRequest)
    bench.refuse(m.OffsetFetchRequest, error)
    bench.sleep(99, polling=True)
    assert bench.pending(m.OffsetFetchRequest) == []
    bench.sleep(1, polling=True)
    assert bench.pending(m.OffsetFetchRequest)
    found = len(bench.requests(m.FindCoordinatorRequest))
    assert found == (1 if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else 2)


def test_a_group_that_the_consumer_may_not_read_ends_it():
    """C-46."""
    bench = holding(m.OffsetFetchRequest)
    bench.refuse(m.OffsetFetchRequest, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert bench.client.failure == "OffsetFetch: GROUP_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNSTABLE_OFFSET_COMMIT])
def test_one_partition_in_error_is_requested_alone(error):
    """PROTOCOL 9.11."""
    bench = holding(m.OffsetFetchRequest)
    offsets = (
        m.FetchedOffset("t", 0, 7),
        m.FetchedOffset("t", 1, -1, error=error),
    )
    bench.respond(m.OffsetFetchRequest, m.OffsetFetchResponse(error=ErrorCode.NONE, offsets=offsets))
    bench.sleep(100, polling=True)
    assert (looks(bench), looks(bench, T1)) == ((FETCHING, 7), (INITIALIZING, -1))
    assert bench.sent(m.OffsetFetchRequest).request.partitions == (T1,)


@pytest.mark.parametrize("how", ["refused", "disconnected"])
def test_a_beginning_or_end_is_requested_again_with_new_metadata(how):
    """PROTOCOL 9.10, 9.12."""
    bench = holding(m.ListOffsetsRequest)
    before = len(bench.requests(m.MetadataRequest))
    ask = bench.pending(m.ListOffsetsRequest)[0]
    if how == "refused":
        bench.refuse(ask, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    else:
        bench.disconnect(ask.node)
    bench.sleep(100, polling=True)
    assert len(bench.requests(m.MetadataRequest)) == before + 1
    assert bench.sent(m.ListOffsetsRequest).request.partitions == ask.request.partitions


def test_a_partition_without_a_leader_waits_for_one():
    """PROTOCOL 9.10, 9.12."""
    bench = Bench(enable_auto_commit=False)
    bench.leaderless.add(T0)
    bench.stable(T0)
    bench.sleep(1_000, polling=True)
    assert (looks(bench)[0], bench.requests(m.ListOffsetsRequest)) == (AWAIT_RESET, [])
    bench.leaderless.clear()
    bench.disconnect(3)
    bench.sleep(200, polling=True)
    assert looks(bench) == (FETCHING, 100)


# --- seeking


@pytest.mark.parametrize(
    ("epoch", "leader_epoch", "state"),
    [(-1, 5, FETCHING), (5, 5, FETCHING), (4, 5, AWAIT_VALIDATION), (4, -1, FETCHING)],
)
def test_a_seek_is_validated_if_its_epoch_is_older_than_the_leaders(bench, epoch, leader_epoch, state):
    """PROTOCOL 9.2."""
    bench.epochs[T0] = leader_epoch
    bench.stable(T0)
    bench.call("seek", "t", 0, 50, epoch=epoch)
    assert looks(bench) == (state, 50)
    assert bench.client.wants_poll is (state is AWAIT_VALIDATION)


def checking(offset=50, epoch=4):
    bench = Bench(enable_auto_commit=False)
    bench.epochs[T0] = 9
    bench.stable(T0)
    bench.call("seek", "t", 0, offset, epoch=epoch)
    bench.polls()
    return bench


def ends_at(bench, what, offset, epoch=4):
    bench.respond(what, m.OffsetForLeaderEpochResponse(ends=(m.EpochEnd("t", 0, offset, epoch),)))


@pytest.mark.parametrize(("end", "position"), [(80, 50), (50, 50), (30, 30), (0, 0), (-1, 50)])
def test_a_validated_position_continues_at_the_end_of_a_truncated_log(end, position):
    """PROTOCOL 9.2."""
    bench = checking()
    ask = bench.sent(m.OffsetForLeaderEpochRequest)
    assert (ask.node, ask.request.partitions) == (2, (m.EpochToCheck("t", 0, 4),))
    ends_at(bench, ask, end)
    assert looks(bench) == (FETCHING, position)


@pytest.mark.parametrize("how", ["refused", "disconnected"])
def test_a_failed_validation_is_repeated(how):
    """PROTOCOL 9.2, 9.10."""
    bench = checking()
    if how == "refused":
        bench.refuse(m.OffsetForLeaderEpochRequest, ErrorCode.FENCED_LEADER_EPOCH)
    else:
        bench.disconnect(2)
    bench.sleep(100, polling=True)
    assert looks(bench) == (AWAIT_VALIDATION, 50)
    assert bench.pending(m.OffsetForLeaderEpochRequest)


def test_a_validation_of_an_earlier_position_is_dropped():
    """Given a validation in flight, when the application seeks elsewhere, then the old response moves
    nothing, and the new position is validated. PROTOCOL 9.2."""
    bench = checking()
    old = bench.sent(m.OffsetForLeaderEpochRequest)
    bench.call("seek", "t", 0, 90, epoch=6)
    bench.polls()
    ends_at(bench, old, 30)
    assert looks(bench) == (AWAIT_VALIDATION, 90)
    bench.polls()
    ends_at(bench, bench.sent(m.OffsetForLeaderEpochRequest), 95, 6)
    assert looks(bench) == (FETCHING, 90)


@pytest.mark.parametrize(("where", "start"), [("earliest", 0), ("latest", 100)])
def test_seeking_to_an_end_requests_its_offset(bench, where, start):
    """PROTOCOL 9.2."""
    bench.stable(T0)
    bench.call("seek", "t", 0, 50)
    bench.call("seek_to", "t", 0, where)
    assert looks(bench)[0] is AWAIT_RESET
    bench.polls()
    assert looks(bench) == (FETCHING, start)


def test_an_offset_requested_before_a_seek_is_dropped():
    """Given a request for a committed offset or an end, when the application seeks meanwhile, then the seek
    holds; a seek to the other end sends another request. PROTOCOL 9.2."""
    bench = holding(m.OffsetFetchRequest, m.ListOffsetsRequest)
    bench.call("seek", "t", 0, 50)
    bench.committed = {T0: (7, -1), T1: (8, -1)}
    bench.respond(m.OffsetFetchRequest, bench.offsets(bench.sent(m.OffsetFetchRequest).request))
    assert (looks(bench), looks(bench, T1)) == ((FETCHING, 50), (FETCHING, 8))
    bench.call("seek_to", "t", 0, "earliest")
    bench.polls()
    first = bench.sent(m.ListOffsetsRequest)
    bench.call("seek_to", "t", 0, "latest")
    bench.polls()
    bench.respond(first, bench.listed(first.request))
    assert looks(bench)[0] is AWAIT_RESET
    second = bench.sent(m.ListOffsetsRequest)
    bench.respond(second, bench.listed(second.request))
    assert looks(bench) == (FETCHING, 100)


def test_an_offset_requested_before_a_partition_was_assigned_again_is_dropped():
    """Given a request for a committed offset, when the partition is lost and assigned again, then the old
    response is dropped. PROTOCOL 9.2."""
    bench = holding(m.OffsetFetchRequest)
    old = bench.sent(m.OffsetFetchRequest)
    bench.round(T0)
    bench.committed[T0] = (7, -1)
    bench.respond(old, bench.offsets(old.request))
    assert looks(bench) == (INITIALIZING, -1)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("seek", ("t", 3, 5)),
        ("seek_to", ("t", 3, "latest")),
        ("pause", ("t", 3)),
        ("resume", ("t", 3)),
        ("seek", ("t", 0, -1)),
        ("seek_to", ("t", 0, "middle")),
    ],
)
def test_an_unassigned_partition_or_an_invalid_offset_is_an_error(bench, name, args):
    """PROTOCOL 9.2."""
    bench.stable(T0)
    with pytest.raises(InputError, match=name):
        bench.call(name, *args)


def test_no_position_is_requested_of_a_partition_about_to_be_revoked():
    """Given a partition that waits for its beginning, when it waits for a commit before it is given up, then
    no poll is wanted for it. PROTOCOL 9.2, C-51."""
    bench = Bench(auto_commit_interval_ms=1_000_000).stable(T0, T1)
    before = len(bench.requests(m.ListOffsetsRequest))
    bench.call("seek_to", "t", 1, "earliest")
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    assert bench.pending(m.OffsetCommitRequest)
    assert (len(bench.requests(m.ListOffsetsRequest)), bench.client.wants_poll) == (before, False)


def test_the_position_source_gets_the_start_positions():
    """PROTOCOL 9.11."""
    source = Source()
    bench = Bench(source=source, enable_auto_commit=False)
    bench.committed[T0] = (7, -1)
    bench.stable(T0, T1)
    assert source.calls == [("started", {T0: 7}), ("started", {T1: 100})]
