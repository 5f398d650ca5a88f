"""Requests about producer ids and transactions, written and read by kafka-python."""

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.transaction_states import Producer
from rebalance_kafka.broker.transactions import RETRY_MS
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.frames import Desk, their_class, versions
from tests.rebalance_kafka.live import broker, run
from tests.rebalance_kafka.stand import Line

TIMEOUT_MS = 60_000
FENCED = {False: Wire.invalid_producer_epoch, True: Wire.producer_fenced}
"""Whether a version knows PRODUCER_FENCED -> the error of a fenced producer."""


@pytest.fixture
def desk():
    desk = Desk({"t": 2, "u": 1})
    desk.ended_groups = []
    desk.data.transactions.end_on_group = lambda *arguments: desk.ended_groups.append(arguments) is None
    return desk


def init(desk, version=4, *, name="x", named=(-1, -1), timeout_ms=TIMEOUT_MS):
    fields = {"transactional_id": name, "transaction_timeout_ms": timeout_ms}
    if version >= 3:
        fields |= {"producer_id": named[0], "producer_epoch": named[1]}
    answer = desk.ask(Api.INIT_PRODUCER_ID, version, **fields)
    return Wire(answer.error_code), (answer.producer_id, answer.producer_epoch)


def add(desk, producer, topics, version=3, *, name="x"):
    topic = their_class(Api.ADD_PARTITIONS_TO_TXN, "Request").AddPartitionsToTxnTopic
    answer = desk.ask(
        Api.ADD_PARTITIONS_TO_TXN,
        version,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[topic(name=each, partitions=numbers) for each, numbers in topics.items()],
    )
    return {
        (topic.name, row.partition_index): Wire(row.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    }


def error_of(desk, api, producer, version, *, name="x", **fields):
    producer_id, epoch = producer
    answer = desk.ask(
        api, version, transactional_id=name, producer_id=producer_id, producer_epoch=epoch, **fields
    )
    return Wire(answer.error_code)


def add_offsets(desk, producer, version=4, *, name="x", group="g"):
    return error_of(desk, Api.ADD_OFFSETS_TO_TXN, producer, version, name=name, group_id=group)


def end(desk, producer, version=4, *, name="x", committed=True):
    return error_of(desk, Api.END_TXN, producer, version, name=name, committed=committed)


def is_added(desk, producer, **where):
    """Return whether a partition or a group is in the transaction of x."""
    return desk.data.transactions.verify("x", Producer(*producer), **where) is Wire.none


def described(desk, *names):
    answer = desk.ask(Api.DESCRIBE_TRANSACTIONS, transactional_ids=list(names))
    return answer.transaction_states


def listed(desk, version=1, **filters):
    fields = {"state_filters": [], "producer_id_filters": [], **filters}
    if version >= 1:
        fields = {"duration_filter": -1, **fields}
    answer = desk.ask(Api.LIST_TRANSACTIONS, version, **fields)
    return [row.transactional_id for row in answer.transaction_states], answer.unknown_state_filters


# --- producers


@versions(Api.INIT_PRODUCER_ID)
def test_every_producer_without_a_transactional_id_gets_a_different_id(desk, version):
    answers = [init(desk, version, name=None) for _ in range(3)]
    assert {(error, producer[1]) for error, producer in answers} == {(Wire.none, 0)}
    assert len({producer for _, producer in answers}) == 3


@versions(Api.INIT_PRODUCER_ID)
def test_a_transactional_producer_gets_the_next_epoch(desk, version):
    _, first = init(desk, version)
    assert init(desk, version) == (Wire.none, (first[0], 1))


@pytest.mark.parametrize("version", [3, 4])
def test_a_fenced_producer_cannot_continue(desk, version):
    _, first = init(desk)
    assert init(desk, named=first) == (Wire.none, (first[0], 1))
    init(desk)
    assert init(desk, version, named=first) == (FENCED[version >= 4], (-1, -1))


@pytest.mark.parametrize("named", [(5, -1), (-1, 5)])
def test_a_producer_with_half_a_name_is_invalid(desk, named):
    assert init(desk, named=named) == (Wire.invalid_request, (-1, -1))


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"timeout_ms": 900_001}, Wire.invalid_transaction_timeout), ({"name": ""}, Wire.invalid_request)],
)
def test_an_invalid_producer_is_refused(desk, fields, error):
    assert init(desk, **fields) == (error, (-1, -1))


# --- transactions


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_to_a_transaction(desk, version):
    _, producer = init(desk)
    assert add(desk, producer, {"t": [0, 1], "u": [0]}, version) == {
        ("t", 0): Wire.none,
        ("t", 1): Wire.none,
        ("u", 0): Wire.none,
    }
    assert is_added(desk, producer, partition=("t", 1))
    init(desk)
    assert add(desk, producer, {"t": [0]}, version) == {("t", 0): FENCED[version >= 2]}


def test_an_unknown_partition_is_added_with_no_other(desk):
    _, producer = init(desk)
    assert add(desk, producer, {"t": [1, 2], "v": [0]}) == {
        ("t", 1): Wire.operation_not_attempted,
        ("t", 2): Wire.unknown_topic_or_partition,
        ("v", 0): Wire.unknown_topic_or_partition,
    }
    assert not is_added(desk, producer, partition=("t", 1))


def test_partitions_are_answered_as_requested(desk):
    """A topic twice, or without partitions."""
    _, producer = init(desk)
    topic = their_class(Api.ADD_PARTITIONS_TO_TXN, "Request").AddPartitionsToTxnTopic
    wanted = [("t", [0]), ("u", []), ("t", [1, 0])]
    answer = desk.ask(
        Api.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[topic(name=name, partitions=numbers) for name, numbers in wanted],
    )
    found = [
        (row.name, [part.partition_index for part in row.results_by_partition])
        for row in answer.results_by_topic_v3_and_below
    ]
    assert found == wanted


@versions(Api.ADD_OFFSETS_TO_TXN)
def test_groups_are_added_to_a_transaction(desk, version):
    _, producer = init(desk)
    assert add_offsets(desk, producer, version) is Wire.none
    assert is_added(desk, producer, group="g")
    init(desk)
    assert add_offsets(desk, producer, version) is FENCED[version >= 2]


@versions(Api.END_TXN)
def test_a_transaction_ends(desk, version):
    _, producer = init(desk)
    assert end(desk, producer, version) is Wire.invalid_txn_state
    add(desk, producer, {"t": [0]})
    add_offsets(desk, producer)
    assert end(desk, producer, version) is Wire.none
    assert desk.ended_groups == [("g", producer[0], True, 0)]
    assert desk.topics.end("t", 0) == 1, "the marker"
    assert desk.topics.end("t", 1) == 0
    init(desk)
    assert end(desk, producer, version) is FENCED[version >= 2]


def test_an_unknown_transactional_id_has_no_producer(desk):
    _, producer = init(desk)
    unmapped = Wire.invalid_producer_id_mapping
    assert add(desk, producer, {"t": [0]}, name="other") == {("t", 0): unmapped}
    assert add_offsets(desk, producer, name="other") is unmapped
    assert end(desk, producer, name="other") is unmapped


def test_the_marker_of_a_partition_that_is_gone_is_left_out(desk):
    _, producer = init(desk)
    add(desk, producer, {"t": [0], "u": [0]})
    desk.topics.delete(["t"])
    assert end(desk, producer) is Wire.none
    assert desk.topics.end("u", 0) == 1


# --- administration


def test_transactions_are_described(desk):
    desk.now_ms = 5_000
    _, producer = init(desk)
    init(desk, name="y")
    add(desk, producer, {"t": [0, 1], "u": [0]})
    rows = described(desk, "x", "y", "z")
    assert [(row.transactional_id, Wire(row.error_code), row.transaction_state) for row in rows] == [
        ("x", Wire.none, "Ongoing"),
        ("y", Wire.none, "Empty"),
        ("z", Wire.transactional_id_not_found, ""),
    ]
    assert [row.transaction_start_time_ms for row in rows] == [5_000, -1, 0]
    assert (rows[0].producer_id, rows[0].producer_epoch) == producer
    assert rows[0].transaction_timeout_ms == TIMEOUT_MS
    assert [(topic.topic, topic.partitions) for topic in rows[0].topics] == [("t", [0, 1]), ("u", [0])]


def test_transactions_are_listed(desk):
    desk.now_ms = 5_000
    _, first = init(desk, name="x")
    _, second = init(desk, name="y")
    add(desk, second, {"t": [0]}, name="y")
    desk.now_ms += RETRY_MS
    assert listed(desk, version=0) == (["x", "y"], [])
    assert listed(desk, state_filters=["Ongoing", "Sleeping"]) == (["y"], ["Sleeping"])
    assert listed(desk, state_filters=["Sleeping"]) == ([], ["Sleeping"])
    assert listed(desk, producer_id_filters=[first[0]]) == (["x"], [])
    ongoing = {"state_filters": ["Ongoing"]}
    assert listed(desk, duration_filter=RETRY_MS - 1, **ongoing) == (["y"], [])
    assert listed(desk, duration_filter=RETRY_MS, **ongoing) == ([], [])
    assert listed(desk, duration_filter=RETRY_MS) == (["x"], []), "Kafka: began at -1, so that it lasts long"


@pytest.mark.parametrize(
    ("pattern", "names"), [(None, ["x", "yy"]), ("", ["x", "yy"]), ("y+", ["yy"]), ("y", [])]
)
def test_transactions_are_listed_by_a_pattern_of_their_whole_ids(desk, pattern, names):
    """KIP-1152, from version 2 on."""
    init(desk, name="x")
    init(desk, name="yy")
    assert listed(desk, version=2, transactional_id_pattern=pattern) == (names, [])


def test_an_invalid_pattern_is_an_error(desk):
    fields = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    answer = desk.ask(Api.LIST_TRANSACTIONS, 2, transactional_id_pattern="[", **fields)
    assert Wire(answer.error_code) is Wire.invalid_regular_expression


# --- the broker


def test_a_transaction_that_is_not_ended_is_aborted_after_its_time():
    async def work():
        async with broker({"t": 1}) as kafka:
            line = await Line.to(kafka.address)
            time = 20
            found = await line.ask(Api.INIT_PRODUCER_ID, 4, transactional_id="x", transaction_timeout=time)
            names = {"transactional_id": "x", "producer_id": found.producer_id, "producer_epoch": 0}
            added = await line.ask(
                Api.ADD_PARTITIONS_TO_TXN,
                3,
                v3_and_below_topics=({"name": "t", "partitions": (0,)},),
                **{f"v3_and_below_{name}": value for name, value in names.items()},
            )
            assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
            rows = ({"name": "t", "partitions": ({"partition_index": 0, "timestamp": -1},)},)
            end = 0
            while end == 0:
                listed = await line.ask(Api.LIST_OFFSETS, 9, topics=rows)
                end = listed.topics[0].partitions[0].offset
            assert end == 1, "the marker"
            assert (await line.ask(Api.END_TXN, 4, **names)).error_code == Wire.producer_fenced
            await line.close()

    run(work())
