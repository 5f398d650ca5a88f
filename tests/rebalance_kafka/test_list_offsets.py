"""Requests for offsets by time and by epoch, written and read by kafka-python."""

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from tests.rebalance_kafka.fetches import at_a_node, fetch, rows, waiting_fetch
from tests.rebalance_kafka.frames import Desk, versions
from tests.rebalance_kafka.records import BEGINS, Sent, batch, numbered

LATEST, EARLIEST = -1, -2


@pytest.fixture
def desk():
    return Desk({"t": 2, "u": 1})


def in_transaction(desk):
    """Write a record, one of a transaction that is open, and one after it, with times 10, 20 and 30."""
    desk.write("t", 0, batch(Sent(b"a", timestamp_ms=10)))
    own = batch(Sent(b"b", timestamp_ms=20), producer=(5, 0, 0), transactional=True)
    desk.topics.append([("t", 0, own)], begin=BEGINS)
    desk.write("t", 0, batch(Sent(b"c", timestamp_ms=30)))


def abort(desk):
    desk.topics.end_transaction([("t", 0)], 5, 0, committed=False, now_ms=25)


@versions(Api.FETCH)
def test_committed_records_are_read_up_to_the_last_stable_offset(desk, version):
    """KIP-98: with the aborted transactions among them."""
    in_transaction(desk)

    def part(isolation_level):
        answer = fetch(desk, {"t": {0: 0}}, version=version, isolation_level=isolation_level)
        (part,) = answer.responses[0].partitions
        aborted = part.aborted_transactions
        listed = None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted]
        offsets = [each.offset for each in records_of(bytes(part.records or b""))[0]]
        return part.high_watermark, part.last_stable_offset, listed, offsets

    assert part(isolation_level=1) == (3, 1, [], [0])
    assert part(isolation_level=0) == (3, 1, None, [0, 1, 2])
    abort(desk)
    assert part(isolation_level=1) == (4, 4, [(5, 1)], [0, 1, 2])
    assert part(isolation_level=0) == (4, 4, None, [0, 1, 2])


def test_a_waiting_fetch_of_committed_records_is_answered_at_the_marker():
    async def steps(desk, waiting):
        in_transaction(desk)
        waiting.fetch(waiting_fetch({"t": {0: 1}}, max_wait_ms=60_000, isolation_level=1))
        desk.write("t", 0, numbered(1))
        assert waiting.answers.empty()
        abort(desk)
        assert waiting.offsets() == [[1, 2, 3]]

    at_a_node(steps)


@pytest.mark.parametrize("version", [2, 9])
def test_committed_offsets_are_listed_up_to_the_last_stable_offset(desk, version):
    in_transaction(desk)
    times = [LATEST, EARLIEST, 10, 20] + ([-3] if version >= 7 else [])

    def found(isolation_level):
        return [each.offset for each in at_each(desk, times, version, isolation_level=isolation_level)]

    assert found(isolation_level=1) == [1, 0, 0, -1, -1][: len(times)]
    assert found(isolation_level=0) == [3, 0, 0, 1, 2][: len(times)]
    abort(desk)
    assert found(isolation_level=1) == [4, 0, 0, 1, 2][: len(times)]


def list_offsets(desk, wanted, version=6, **options):
    parts = {
        topic: [{"partition_index": n, "timestamp": at_ms} for n, at_ms in each]
        for topic, each in wanted.items()
    }
    topics = rows(Api.LIST_OFFSETS, "ListOffsetsTopic", "ListOffsetsPartition", parts)
    answer = desk.ask(Api.LIST_OFFSETS, version, topics=topics, **options)
    return [p for t in answer.topics for p in t.partitions]


def at_each(desk, times, version=6, **options):
    """Return the offset of partition 0 for each time, with a request of its own."""
    return [list_offsets(desk, {"t": [(0, at_ms)]}, version, **options)[0] for at_ms in times]


def test_a_partition_that_is_listed_twice_is_an_invalid_request(desk):
    found = list_offsets(desk, {"t": [(0, LATEST), (1, LATEST), (0, EARLIEST)], "u": [(0, LATEST)]})
    assert [(each.partition_index, Wire(each.error_code)) for each in found] == [
        (0, Wire.invalid_request),
        (1, Wire.none),
        (0, Wire.none),
    ]


@versions(Api.LIST_OFFSETS)
def test_earliest_and_latest_offsets_are_returned(desk, version):
    desk.write("t", 0, numbered(3))
    found = at_each(desk, (LATEST, EARLIEST), version)
    found += list_offsets(desk, {"t": [(1, LATEST)]}, version)
    assert [(each.error_code, each.offset, each.timestamp) for each in found] == [
        (0, 3, -1),
        (0, 0, -1),
        (0, 0, -1),
    ]


def test_offsets_are_found_by_time(desk):
    for at_ms in (10, 20):
        desk.write("t", 0, batch(Sent(b"a", timestamp_ms=at_ms), Sent(b"b", timestamp_ms=at_ms + 5)))
    found = at_each(desk, (0, 15, 16, 25, 26))
    assert [(each.offset, each.timestamp) for each in found] == [(0, 10), (1, 15), (2, 20), (3, 25), (-1, -1)]


@versions(Api.LIST_OFFSETS)
def test_the_offset_of_the_newest_record_is_found(desk, version):
    """KIP-734: timestamp -3, from version 7 on."""
    desk.write("t", 0, batch(*(Sent(b"a", timestamp_ms=at_ms) for at_ms in (10, 30, 20))))
    (found,) = list_offsets(desk, {"t": [(0, -3)]}, version)
    expected = (Wire.none, 1, 30) if version >= 7 else (Wire.unsupported_version, -1, -1)
    assert (found.error_code, found.offset, found.timestamp) == expected


def test_offsets_start_after_deleted_records(desk):
    for at_ms in (10, 20):
        desk.write("t", 0, batch(Sent(b"a", timestamp_ms=at_ms), Sent(b"b", timestamp_ms=at_ms + 5)))
    desk.topics.delete_records({("t", 0): 3})
    found = at_each(desk, (EARLIEST, 0, 25))
    assert [each.offset for each in found] == [3, 3, 3]
    parts = [fetch(desk, {"t": {0: at}}).responses[0].partitions[0] for at in (2, 3)]
    assert [part.error_code for part in parts] == [Wire.offset_out_of_range, Wire.none]
    assert [part.log_start_offset for part in parts] == [-1, 3]


@pytest.mark.parametrize(
    ("timestamp", "since", "offset"), [(-3, 7, 0), (-4, 8, 0), (-5, 9, -1), (-6, 11, -1), (-7, 12, -1)]
)
def test_other_negative_timestamps_are_not_times(desk, timestamp, since, offset):
    """Each is of a KIP, and of the versions since then: the tiered and the pending offset are -1 here."""
    desk.write("t", 0, numbered(1))
    for version in range(1, 12):
        ((found,),) = [at_each(desk, [timestamp], version)]
        expected = (Wire.none, offset) if version >= since else (Wire.unsupported_version, -1)
        assert (found.error_code, found.offset) == expected, version


def test_an_offset_that_is_not_found_has_no_leader_epoch(desk):
    desk.write("t", 0, numbered(1))
    found = at_each(desk, (LATEST, 10**15))
    assert [(each.offset, each.leader_epoch) for each in found] == [(1, 0), (-1, -1)]


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (1, Wire.unknown_leader_epoch)])
def test_a_leader_epoch_of_another_log_is_unknown(desk, epoch, error):
    """KIP-320: the topic was created anew, for instance."""
    row = {"partition_index": 0, "timestamp": LATEST, "current_leader_epoch": epoch}
    topics = rows(Api.LIST_OFFSETS, "ListOffsetsTopic", "ListOffsetsPartition", {"t": [row]})
    answer = desk.ask(Api.LIST_OFFSETS, 6, topics=topics)
    assert answer.topics[0].partitions[0].error_code == error


def test_unknown_partitions_have_no_offsets(desk):
    found = list_offsets(desk, {"t": [(2, LATEST)], "v": [(0, EARLIEST)]})
    assert [(Wire(each.error_code), each.offset) for each in found] == [
        (Wire.unknown_topic_or_partition, -1)
    ] * 2


@versions(Api.OFFSET_FOR_LEADER_EPOCH)
def test_epoch_0_ends_at_the_end_of_the_log(desk, version):
    desk.write("t", 0, numbered(3))
    wanted = {
        "t": [{"partition": 0, "leader_epoch": 0}, {"partition": 0, "leader_epoch": 1}, {"partition": 2}],
        "v": [{"partition": 0, "leader_epoch": 0}],
    }
    topics = rows(Api.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderTopic", "OffsetForLeaderPartition", wanted)
    answer = desk.ask(Api.OFFSET_FOR_LEADER_EPOCH, version, topics=topics)
    reported = [
        (Wire(p.error_code), p.leader_epoch, p.end_offset) for t in answer.topics for p in t.partitions
    ]
    unknown = (Wire.unknown_topic_or_partition, -1, -1)
    assert reported == [(Wire.none, 0, 3), (Wire.none, -1, -1), unknown, unknown]
