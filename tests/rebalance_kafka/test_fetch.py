"""Fetch requests, at once and after a while, written and read by kafka-python."""

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.fetching import Fetch
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from rebalance_kafka.wire.frames import decode_request, encode_request, head_of
from tests.rebalance_kafka.damage import REQUESTS
from tests.rebalance_kafka.fetches import at_a_node, fetch, fetch_fields, waiting_fetch
from tests.rebalance_kafka.frames import PLENTY, Desk, versions
from tests.rebalance_kafka.records import numbered


@pytest.fixture
def desk():
    return Desk({"t": 2, "u": 1})


def fetched(answer):
    return {
        (topic.topic, each.partition_index): [r.offset for r in records_of(bytes(each.records or b""))[0]]
        for topic in answer.responses
        for each in topic.partitions
    }


@versions(Api.FETCH)
def test_records_are_read_from_an_offset_on(desk, version):
    desk.write("t", 0, numbered(2))
    desk.write("t", 0, numbered(2))
    desk.write("u", 0, numbered(1))
    answer = fetch(desk, {"t": {0: 2, 1: 0}, "u": {0: 1}}, version=version)
    for topic in answer.responses:
        topic.topic = topic.topic if version < 13 else desk.topics.named(topic.topic_id)
    assert fetched(answer) == {("t", 0): [2, 3], ("t", 1): [], ("u", 0): []}
    part = answer.responses[0].partitions[0]
    assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, 4, 4)
    if version >= 7:
        assert (answer.error_code, answer.session_id) == (0, 0)


@pytest.mark.parametrize("offset", [-1, 3, 2**62])
def test_an_offset_out_of_range_is_an_error_at_once(desk, offset):
    desk.write("t", 0, numbered(2))
    answer = fetch(desk, {"t": {0: offset}})
    part = answer.responses[0].partitions[0]
    assert (Wire(part.error_code), part.high_watermark) == (Wire.offset_out_of_range, -1)
    assert fetched(answer) == {("t", 0): []}
    assert Fetch(desk.data, waiting_fetch({"t": {0: offset, 1: 0}})).read()[1]


def at_epoch(desk, offset, **epochs):
    row = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 10_000, **epochs}
    frame = encode_request(
        Api.FETCH,
        12,
        7,
        "us",
        {**REQUESTS[Api.FETCH], "topics": ({"topic": "t", "partitions": (row,)},)},
    )[4:]
    found, is_enough = Fetch(desk.data, decode_request(frame, head_of(frame))).read()
    assert is_enough
    (part,) = found.values()
    return part


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, Wire.none), (0, Wire.none), (1, Wire.unknown_leader_epoch)]
)
def test_a_leader_epoch_of_another_log_is_unknown(desk, epoch, error):
    """KIP-320: the topic was created anew, for instance."""
    desk.write("t", 0, numbered(2))
    part = at_epoch(desk, 0, current_leader_epoch=epoch)
    assert (part["error_code"], bool(part["records"])) == (error, error is Wire.none)


def test_a_client_that_is_ahead_of_the_log_gets_its_end(desk):
    """KIP-595: the end of the epoch of its last record, to which it goes back."""
    desk.write("t", 0, numbered(2))
    part = at_epoch(desk, 9, last_fetched_epoch=0)
    assert part["error_code"] is Wire.none
    assert part["diverging_epoch"] == {"epoch": 0, "end_offset": 2}
    assert at_epoch(desk, 9, last_fetched_epoch=-1)["error_code"] is Wire.offset_out_of_range
    assert at_epoch(desk, 1, last_fetched_epoch=3)["error_code"] is Wire.offset_out_of_range
    assert at_epoch(desk, 1, last_fetched_epoch=0)["records"]


def test_an_unknown_partition_is_an_error(desk):
    answer = fetch(desk, {"t": {2: 0}, "v": {0: 0}})
    errors = [Wire(each.error_code) for topic in answer.responses for each in topic.partitions]
    assert errors == [Wire.unknown_topic_or_partition] * 2


SIZE = len(numbered(1))


@pytest.mark.parametrize(
    ("max_bytes", "most", "first", "second"),
    [
        (PLENTY, PLENTY, [0, 1, 2], [0, 1, 2]),
        (PLENTY, 2 * SIZE, [0, 1], [0, 1]),
        (PLENTY, 1, [0], []),
        (4 * SIZE, PLENTY, [0, 1, 2], [0]),
        (3 * SIZE, 2 * SIZE, [0, 1], [0]),
        (1, PLENTY, [0], []),
        (0, 0, [0], []),
    ],
)
def test_limits_hold_but_at_least_one_batch_is_returned(desk, max_bytes, most, first, second):
    """KIP-74: so that a consumer gets past a batch that is larger than what it allows."""
    for partition in (0, 1):
        for _ in range(3):
            desk.write("t", partition, numbered(1))
    answer = fetch(desk, {"t": {0: 0, 1: 0}}, max_bytes=max_bytes, most=most)
    assert fetched(answer) == {("t", 0): first, ("t", 1): second}


def test_the_one_batch_may_come_from_a_later_partition(desk):
    desk.write("t", 1, numbered(1))
    assert fetched(fetch(desk, {"t": {0: 0, 1: 0}}, max_bytes=1)) == {("t", 0): [], ("t", 1): [0]}


def test_places_and_waiting_time_of_a_fetch(desk):
    fetch = Fetch(desk.data, waiting_fetch({"t": {0: 0, 1: 5}, "u": {0: 0}}, max_wait_ms=250))
    assert (fetch.places, fetch.wait_ms) == ([("t", 0), ("t", 1), ("u", 0)], 250)
    assert Fetch(desk.data, waiting_fetch({}, max_wait_ms=-1)).wait_ms == 0


def test_a_fetch_is_answered_at_once_if_records_exist():
    async def steps(desk, waiting):
        desk.write("t", 0, numbered(2))
        assert waiting.fetch(waiting_fetch({"t": {0: 0}})) is None
        assert waiting.offsets() == [[0, 1]]

    at_a_node(steps)


def test_a_fetch_without_waiting_time_or_partitions_is_answered_at_once():
    async def steps(desk, waiting):
        assert waiting.fetch(waiting_fetch({"t": {0: 0}}, max_wait_ms=0)) is None
        assert waiting.fetch(waiting_fetch({"t": {0: 0}}, min_bytes=0)) is None
        assert waiting.fetch(waiting_fetch({})) is None
        assert [waiting.offsets() for _ in range(3)] == [[[]], [[]], []]

    at_a_node(steps)


def test_a_write_wakes_a_waiting_fetch():
    async def steps(desk, waiting):
        assert waiting.fetch(waiting_fetch({"t": {0: 0}, "u": {0: 0}})) is not None
        desk.write("t", 1, numbered(1))
        assert waiting.answers.empty()
        desk.write("u", 0, numbered(2))
        assert waiting.offsets() == [[], [0, 1]]
        assert waiting.answers.empty()
        assert desk.topics._waiting == {}

    at_a_node(steps)


def test_a_fetch_waits_for_its_minimum_of_bytes():
    async def steps(desk, waiting):
        waiting.fetch(waiting_fetch({"t": {0: 0, 1: 0}}, min_bytes=2 * SIZE))
        desk.write("t", 0, numbered(1))
        assert waiting.answers.empty()
        desk.write("t", 1, numbered(1))
        assert waiting.offsets() == [[0], [0]]

    at_a_node(steps)


def test_a_fetch_is_answered_when_its_waiting_time_is_over():
    async def steps(desk, waiting):
        waiting.fetch(waiting_fetch({"t": {0: 0}}, min_bytes=PLENTY, max_wait_ms=1))
        desk.write("t", 0, numbered(1))
        values = await waiting.answers.get()
        assert values["responses"][0]["partitions"][0]["records"] == bytes(
            desk.topics.read("t", 0, 0, PLENTY, at_least_one=True)
        )
        assert desk.topics._waiting == {}

    at_a_node(steps)


def test_a_fetch_that_is_given_up_is_not_answered():
    async def steps(desk, waiting):
        give_up = waiting.fetch(waiting_fetch({"t": {0: 0}}))
        give_up()
        desk.write("t", 0, numbered(1))
        assert waiting.answers.empty()
        assert desk.topics._waiting == {}

    at_a_node(steps)


@pytest.mark.parametrize("version", [13, 16])
def test_a_fetch_by_an_unknown_id_is_an_error(desk, version):
    """KIP-516: the topic was deleted, and perhaps created again."""
    wanted = fetch_fields({"t": {0: 0}}, {"t": UUID(int=7)})
    answer = desk.ask(Api.FETCH, version, max_wait_ms=0, min_bytes=1, max_bytes=PLENTY, topics=wanted)
    (topic,) = answer.responses
    assert topic.topic_id == UUID(int=7)
    assert [part.error_code for part in topic.partitions] == [Wire.unknown_topic_id]


@pytest.mark.parametrize(
    ("session_id", "session_epoch", "error"), [(0, -1, 0), (0, 0, 0), (7, 1, 70), (0, 1, 70)]
)
def test_a_fetch_begins_no_session_and_finds_none(desk, session_id, session_epoch, error):
    """KIP-227: with FETCH_SESSION_ID_NOT_FOUND (70), a client lists all partitions again."""
    desk.write("t", 0, numbered(1))
    answer = fetch(desk, {"t": {0: 0}}, session_id=session_id, session_epoch=session_epoch)
    assert (answer.error_code, answer.session_id, len(answer.responses)) == (error, 0, 0 if error else 1)
