"""Fetching: one request a node, fetch sessions, so many records a poll, and errors of partitions."""

import pytest

from coordinator_core.client.outcome import ConsumedRecord
from coordinator_core.client.states import FetchState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, T2, T3, Bench

BACKOFF_MS = 100


def fetching(*owned, **config):
    """A member whose partitions start at 100: t-0 and t-2 are led by node 2, t-1 and t-3 by node 3."""
    bench = Bench(fetching=True, enable_auto_commit=False, **config)
    bench.respond_to(m.HeartbeatRequest)
    bench.stable(*(owned or (T0,)))
    bench.poll()
    return bench


def part(tp, *records, offset=100, **given):
    listed = tuple(m.FetchedRecord(offset + i, value) for i, value in enumerate(records))
    return m.FetchedPartition(tp[0], tp[1], offset, records=listed, **given)


def deliver(bench, *parts, what=m.FetchRequest, session=5, error=ErrorCode.NONE):
    bench.respond(what, m.FetchResponse(error=error, session_id=session, partitions=parts))


def requested(bench):
    """Return the partitions of the fetch in flight, with their offsets."""
    return {(p.topic, p.partition): p.offset for p in bench.sent(m.FetchRequest).request.partitions}


def values(bench):
    return [(r.topic, r.partition, r.offset, r.value) for r in bench.records]


def test_a_poll_returns_records_and_advances_the_position():
    """PROTOCOL 9.3, 9.12."""
    bench = fetching()
    assert requested(bench) == {T0: 100}
    deliver(bench, part(T0, b"a", b"b"))
    assert (bench.records, bench.client.wants_poll) == ([], True)
    bench.poll()
    assert values(bench) == [("t", 0, 100, b"a"), ("t", 0, 101, b"b")]
    assert bench.client.partitions[T0].position == 102
    assert requested(bench) == {T0: 102}


@pytest.mark.parametrize(("isolation", "number"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_ends_and_records_are_requested_with_the_isolation_level(isolation, number):
    """KIP-98."""
    bench = fetching(isolation=isolation)
    asked = [*bench.requests(m.ListOffsetsRequest), *bench.requests(m.FetchRequest)]
    assert [(type(request), request.isolation_level) for request in asked] == [
        (m.ListOffsetsRequest, number),
        (m.FetchRequest, number),
    ]


def test_records_before_the_position_are_not_returned():
    """Given a batch that begins before the position, as brokers return batches whole."""
    bench = fetching()
    bench.call("seek", "t", 0, 102)
    bench.open.clear()
    bench.sleep(60_000, polling=True)
    deliver(bench, part(T0, b"a", b"b", b"c", b"d", offset=100))
    bench.poll()
    assert values(bench) == [("t", 0, 102, b"c"), ("t", 0, 103, b"d")]


def test_records_keep_their_offsets_if_some_are_missing():
    """Given offsets 100, 103 and 104 of a compacted partition, then polls return them as they are, and the
    next fetch starts at the next offset of the response."""
    bench = fetching(max_poll_records=2)
    kept = tuple(m.FetchedRecord(n, b"v", b"k", 5, (("h", None),)) for n in (100, 103, 104))
    deliver(bench, m.FetchedPartition(*T0, 100, records=kept, next_offset=110))
    bench.poll()
    assert [r.offset for r in bench.records] == [100, 103]
    assert bench.client.partitions[T0].position == 104
    bench.poll()
    assert bench.records[-1] == ConsumedRecord(*T0, 104, b"v", b"k", 5, (("h", None),))
    assert requested(bench) == {T0: 110}


def test_a_fetch_of_control_records_only_advances_the_position():
    """Given a response with nothing but markers of transactions, then the position moves over them."""
    bench = fetching()
    deliver(bench, m.FetchedPartition(*T0, 100, next_offset=103))
    bench.poll()
    assert (bench.records, requested(bench)) == ([], {T0: 103})


def test_a_fetch_updates_high_watermark_last_stable_offset_and_log_start():
    """Given a response, then the partition has its four offsets. PROTOCOL 9.2, 9.11."""
    bench = fetching()
    deliver(bench, part(T0, b"a", high_watermark=120, last_stable_offset=110, log_start_offset=3))
    bench.poll()
    state = bench.client.partitions[T0]
    assert (state.position, state.high_watermark, state.last_stable, state.log_start) == (101, 120, 110, 3)


def test_a_node_gets_one_request_at_a_time_for_all_its_partitions():
    """PROTOCOL 9.12."""
    bench = fetching(T0, T1, T2)
    for _ in range(3):
        bench.poll()
    sends = {s.node: {p.partition for p in s.request.partitions} for s in bench.pending(m.FetchRequest)}
    assert sends == {2: {0, 2}, 3: {1}}
    assert len(bench.requests(m.FetchRequest)) == 2


def test_a_poll_returns_at_most_max_poll_records_and_keeps_the_rest():
    """Given more records than max.poll.records, then the next polls return the rest, and nothing more of the
    partition is fetched before. PROTOCOL 9.12."""
    bench = fetching(max_poll_records=2)
    deliver(bench, part(T0, b"a", b"b", b"c", b"d", b"e"))
    counts = []
    while bench.client.wants_poll:
        counts.append(len(bench.poll().records))
        assert bench.client.partitions[T0].position == 100 + sum(counts)
        assert bool(bench.pending(m.FetchRequest)) is (sum(counts) == 5)
    assert counts == [2, 2, 1]


def test_a_request_of_a_session_contains_only_changes():
    """Given an established session, then a request has its id, the next epoch, the partitions that moved or
    came, and those to forget. PROTOCOL 9.12."""
    bench = fetching(T0, T2)
    first = bench.sent(m.FetchRequest).request
    assert (first.session_id, first.session_epoch, first.max_wait_ms) == (0, 0, 500)
    deliver(bench, part(T0, b"a"))
    bench.poll()
    second = bench.sent(m.FetchRequest).request
    assert (second.session_id, second.session_epoch, requested(bench)) == (5, 1, {T0: 101})
    bench.call("pause", "t", 2)
    deliver(bench)
    bench.poll()
    third = bench.sent(m.FetchRequest).request
    assert (third.session_epoch, third.partitions, third.forgotten) == (2, (), (T2,))


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_session_that_the_broker_does_not_know_is_replaced(error):
    """PROTOCOL 9.12."""
    bench = fetching(T0, T2)
    deliver(bench)
    bench.poll()
    deliver(bench, error=error)
    bench.sleep(BACKOFF_MS, polling=True)
    bench.poll()
    request = bench.sent(m.FetchRequest).request
    assert (request.session_id, request.session_epoch, requested(bench)) == (0, 0, {T0: 100, T2: 100})


def test_a_lost_connection_starts_a_new_session():
    """PROTOCOL 9.10, 9.12."""
    bench = fetching()
    deliver(bench)
    bench.poll()
    bench.disconnect(2)
    bench.poll()
    assert bench.pending(m.FetchRequest) == []
    bench.sleep(BACKOFF_MS, polling=True)
    assert bench.sent(m.FetchRequest).request.session_epoch == 0


def test_a_response_without_a_session_keeps_none():
    """PROTOCOL 9.12."""
    bench = fetching()
    deliver(bench, session=0)
    bench.poll()
    assert (bench.sent(m.FetchRequest).request.session_epoch, requested(bench)) == (0, {T0: 100})


def seek(bench):
    bench.call("seek", "t", 0, 50)


def pause(bench):
    bench.call("pause", "t", 0)


def revoke(bench):
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.poll()


def reset(bench):
    bench.call("seek_to", "t", 0, "earliest")


@pytest.mark.parametrize("change", [seek, pause, revoke, reset])
@pytest.mark.parametrize("arrived", [False, True])
def test_records_of_a_partition_moved_paused_or_revoked_meanwhile_are_not_returned(change, arrived):
    """Given a fetch in flight, or buffered records, when the partition is moved, paused or revoked, then no
    record of it is returned. PROTOCOL 9.2, C-51."""
    bench = fetching()
    del bench.responders[m.HeartbeatRequest]
    ask = bench.sent(m.FetchRequest)
    if arrived:
        deliver(bench, part(T0, b"a"))
        change(bench)
    else:
        change(bench)
        deliver(bench, part(T0, b"a"), what=ask)
    bench.poll()
    assert bench.records == []


def test_records_of_a_paused_partition_are_kept_until_it_resumes():
    """PROTOCOL 9.2, 9.12."""
    bench = fetching()
    deliver(bench, part(T0, b"a"))
    bench.call("pause", "t", 0)
    bench.poll()
    assert (bench.records, bench.client.wants_poll) == ([], False)
    bench.call("resume", "t", 0)
    bench.poll()
    assert values(bench) == [("t", 0, 100, b"a")]


def test_no_record_of_a_partition_about_to_be_revoked_is_returned():
    """Given an eager member that commits before a rejoin, when a fetch has its response, then the records are
    dropped and none is fetched. C-51."""
    bench = Bench(fetching=True, auto_commit_interval_ms=1_000_000).stable(T0)
    bench.poll()
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.poll()
    deliver(bench, part(T0, b"a"))
    bench.polls()
    assert (bench.records, bench.pending(m.FetchRequest)) == ([], [])
    assert bench.sent(m.OffsetCommitRequest).request.offsets[0].offset == 100


@pytest.mark.parametrize(("policy", "position"), [("earliest", 0), ("latest", 100)])
def test_an_offset_out_of_range_is_reset(policy, position):
    """PROTOCOL 9.12."""
    bench = fetching(auto_offset_reset=policy)
    bench.call("seek", "t", 0, 7_000)
    deliver(bench)
    bench.poll()
    deliver(bench, part(T0, offset=7_000, error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert bench.client.partitions[T0].fetch_state is FetchState.AWAIT_RESET
    bench.polls()
    assert bench.client.partitions[T0].position == position


def test_an_offset_out_of_range_without_a_policy_is_an_error():
    """PROTOCOL 9.12."""
    bench = Bench(fetching=True, enable_auto_commit=False, auto_offset_reset="none")
    bench.committed[T0] = (7_000, -1)
    bench.stable(T0).poll()
    deliver(bench, part(T0, offset=7_000, error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert str(bench.errors[0]).startswith("t-0: offset 7000 is out of range")
    assert bench.client.failure is None


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ],
)
def test_a_partition_with_another_leader_refreshes_the_metadata(error):
    """PROTOCOL 9.12."""
    bench = fetching()
    asked_for = len(bench.requests(m.MetadataRequest))
    deliver(bench, part(T0, error=error))
    bench.poll()
    assert len(bench.requests(m.MetadataRequest)) == asked_for + 1
    assert bench.client.partitions[T0].position == 100


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_a_partition_in_error_moves_to_the_end(error):
    """PROTOCOL 9.12."""
    bench = fetching(T0, T2)
    deliver(bench, part(T0, error=error), part(T2))
    assert list(bench.client.partitions) == [T2, T0]


def test_partitions_take_turns():
    """Given records of every partition, then the partition of the last records moves to the end. PROTOCOL
    9.12."""
    bench = fetching(T0, T2)
    deliver(bench, part(T0, b"a"))
    assert list(bench.client.partitions) == [T2, T0]


def test_a_partition_without_a_leader_refreshes_metadata_every_second():
    """PROTOCOL 9.12."""
    bench = fetching(T1)
    bench.leaderless.add(T1)
    bench.disconnect(3)
    bench.poll()
    before = len(bench.requests(m.MetadataRequest))
    bench.sleep(3_000, polling=True)
    assert bench.pending(m.FetchRequest) == []
    assert len(bench.requests(m.MetadataRequest)) == before + 3
    bench.leaderless.clear()
    bench.sleep(1_000, polling=True)
    assert requested(bench) == {T1: 100}


def test_a_fetch_contains_the_epoch_of_the_leader():
    """Given a position that was committed in epoch 0 and a leader in epoch 5, then the fetch contains 5: a
    broker refuses less with FENCED_LEADER_EPOCH (KIP-320)."""
    bench = Bench(fetching=True, enable_auto_commit=False)
    bench.respond_to(m.HeartbeatRequest)
    bench.committed[T0], bench.epochs[T0] = (30, 0), 5
    bench.respond_to(m.OffsetForLeaderEpochRequest)
    bench.stable(T0)
    for _ in range(3):
        bench.poll()
        if bench.pending(m.OffsetForLeaderEpochRequest):
            ends = m.EpochEnd(*T0, end_offset=100, leader_epoch=0)
            bench.respond(m.OffsetForLeaderEpochRequest, m.OffsetForLeaderEpochResponse(ends=(ends,)))
    (partition,) = bench.sent(m.FetchRequest).request.partitions
    assert (partition.offset, partition.leader_epoch) == (30, 5)


def test_a_poll_that_raises_returns_no_records():
    """Nobody would see the records: their offsets would be committed all the same."""

    def raising(error):
        raise ValueError("the callback does not like it")

    bench = fetching()
    bench.call("commit", {T0: 100}, callback=raising)
    bench.accept(m.OffsetCommitRequest)
    deliver(bench, part(T0, b"a"))
    bench.poll()
    assert [str(e) for e in bench.errors] == ["the callback does not like it"]
    assert (bench.records, bench.client.partitions[T0].position) == ([], 100)
    bench.poll()
    assert values(bench) == [("t", 0, 100, b"a")]


@pytest.mark.parametrize("error", [ErrorCode.CORRUPT_MESSAGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_an_error_of_one_partition_goes_to_the_application_and_the_others_continue(error):
    bench = fetching(T0, T2)
    deliver(bench, part(T0, error=error), part(T2, b"a"))
    assert [str(e) for e in bench.errors] == [f"t-0: {said_of(error)} ({error.name}), at offset 100"]
    bench.poll()
    assert values(bench) == [("t", 2, 100, b"a")]
    assert requested(bench) == {T2: 101}
    bench.sleep(BACKOFF_MS, polling=True)
    deliver(bench, what=m.FetchRequest)
    bench.poll()
    assert requested(bench)[T0] == 100


def said_of(error):
    if error is ErrorCode.CORRUPT_MESSAGE:
        return "records that cannot be read"
    return "this client may not read the topic"


def test_a_poll_fetches_after_it_has_returned_records():
    """Given a poll that rejoins, then it fetches nothing of the revoked partitions. PROTOCOL 9.3."""
    bench = fetching(T0, T1, T3)
    for ask in bench.pending(m.FetchRequest):
        deliver(bench, what=ask)
    before = len(bench.requests(m.FetchRequest))
    bench.responders[m.HeartbeatRequest] = lambda _: m.HeartbeatResponse(
        error=ErrorCode.REBALANCE_IN_PROGRESS
    )
    bench.sleep(3_000)
    bench.poll()
    assert bench.pending(m.JoinGroupRequest)
    assert len(bench.requests(m.FetchRequest)) == before
