"""Requests about topics and records, written and read by kafka-python."""

import asyncio
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator.config import CoordinatorConfig
from rebalance_kafka.access import Acl, access_of
from rebalance_kafka.addresses import Place
from rebalance_kafka.broker.fetching import Fetch
from rebalance_kafka.broker.node import Node
from rebalance_kafka.broker.recorder import Recorder
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from tests.rebalance_kafka.frames import PLENTY, Desk, their_class, their_request, versions
from tests.rebalance_kafka.records import Sent, batch, numbered

LATEST, EARLIEST = -1, -2
SECONDS = 60.0


def rows(api, outer, inner, wanted):
    """Topics with partitions as the request has them: {topic: [fields of a partition]}."""
    topic = getattr(their_class(api, "Request"), outer)
    name = "topic" if api in (Api.FETCH, Api.OFFSET_FOR_LEADER_EPOCH) else "name"
    listed = "partition_data" if api is Api.PRODUCE else "partitions"
    return [
        topic(**{name: each, listed: [getattr(topic, inner)(**fields) for fields in parts]})
        for each, parts in wanted.items()
    ]


@pytest.fixture
def desk():
    return Desk({"t": 2, "u": 1})


# --- Metadata


def metadata(desk, names, version=9, **options):
    topic = their_class(Api.METADATA, "Request").MetadataRequestTopic
    topics = None if names is None else [topic(name=name) for name in names]
    return desk.ask(Api.METADATA, version, topics=topics, **options)


def wanted(*named):
    """Return the topics of a Metadata request: pairs of a name and an id."""
    topic = their_class(Api.METADATA, "Request").MetadataRequestTopic
    return [topic(name=name, topic_id=number) for name, number in named]


def described(answer):
    return [(each.error_code, each.name, each.topic_id, len(each.partitions)) for each in answer.topics]


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("name", [None, "", "u"])
def test_topics_are_described_by_their_ids(desk, name, version):
    """KIP-516. Java's Admin sends an empty name with the id. A name beside an id is not read."""
    own, other = desk.topics.ids["t"], UUID(int=7)
    topics = wanted((name, own), (name, other), (name, own), ("u", None))
    assert described(desk.ask(Api.METADATA, version, topics=topics)) == [
        (Wire.none, "t", own, 2),
        (Wire.unknown_topic_id, None, other, 0),
    ]
    assert list(desk.topics.partitions) == ["t", "u"]


def test_a_request_by_id_creates_no_topic():
    desk = Desk({"t": 2}, auto_create=3)
    topics = wanted(("v", UUID(int=7)), ("", UUID(int=8)))
    answer = desk.ask(Api.METADATA, topics=topics, allow_auto_topic_creation=True)
    assert {error for error, *_ in described(answer)} == {Wire.unknown_topic_id}
    assert list(desk.topics.partitions) == ["t"]


def test_a_topic_that_the_user_may_not_see_has_its_id_and_no_name_in_the_answer(desk):
    desk.access = access_of("ada", [Acl.of("ada:describe:topic:u", "")])
    own = desk.topics.ids
    answer = desk.ask(Api.METADATA, topics=wanted(("", own["t"]), (None, own["u"])))
    assert described(answer) == [
        (Wire.topic_authorization_failed, None, own["t"], 0),
        (Wire.none, "u", own["u"], 1),
    ]


@pytest.mark.parametrize("version", [10, 11])
def test_versions_before_ids_refuse_a_request_with_ids_or_without_names(desk, version):
    for named in ((None, desk.topics.ids["t"]), ("t", desk.topics.ids["t"]), (None, None)):
        answer = desk.ask(Api.METADATA, version, topics=wanted(("u", None), named))
        assert described(answer) == [
            (Wire.invalid_request, "u", None, 0),
            (Wire.invalid_request, named[0] or "", None, 0),
        ]


@pytest.mark.parametrize("version", [10, 11])
def test_topics_that_are_described_by_name_have_their_ids(desk, version):
    (topic,) = metadata(desk, ["t"], version).topics
    assert topic.topic_id == desk.topics.ids["t"]


def counts(answer):
    return {topic.name: len(topic.partitions) for topic in answer.topics}


@versions(Api.METADATA)
def test_metadata_names_the_broker_and_what_it_leads(desk, version):
    desk.data.address = Place("somewhere", 9092)
    answer = metadata(desk, ["t"], version)
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(1, "somewhere", 9092)]
    (topic,) = answer.topics
    assert (topic.name, topic.error_code) == ("t", 0)
    reported = [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions]
    assert reported == [(0, 1, [1], [1]), (1, 1, [1], [1])]
    if version >= 2:
        assert (answer.cluster_id, answer.controller_id) == ("c", 1)


@pytest.mark.parametrize(
    ("version", "names", "reported"),
    [
        (0, [], {"t": 2, "u": 1}),
        (1, [], {}),
        (9, [], {}),
        (1, None, {"t": 2, "u": 1}),
        (9, None, {"t": 2, "u": 1}),
    ],
)
def test_an_empty_list_means_all_topics_in_version_0_and_no_topic_later(desk, version, names, reported):
    assert counts(metadata(desk, names, version)) == reported


def test_topics_are_described_once_in_the_order_of_the_request(desk):
    assert [topic.name for topic in metadata(desk, ["u", "t", "u"]).topics] == ["u", "t"]


def test_unknown_topics_have_an_error(desk):
    answer = metadata(desk, ["t", "v", "no topic"])
    assert [(t.name, Wire(t.error_code), len(t.partitions)) for t in answer.topics] == [
        ("t", Wire.none, 2),
        ("v", Wire.unknown_topic_or_partition, 0),
        ("no topic", Wire.invalid_topic_exception, 0),
    ]
    assert desk.topics.partitions == {"t": 2, "u": 1}


@pytest.mark.parametrize(
    ("version", "allowed", "is_made"), [(3, None, True), (4, True, True), (4, False, False)]
)
def test_a_requested_topic_is_created_if_client_and_broker_allow_it(version, allowed, is_made):
    desk = Desk({"t": 1}, auto_create=3)
    options = {} if allowed is None else {"allow_auto_topic_creation": allowed}
    answer = metadata(desk, ["v", "no topic", "t"], version, **options)
    assert counts(answer) == {"v": 3 if is_made else 0, "no topic": 0, "t": 1}
    assert desk.topics.partitions == ({"t": 1, "v": 3} if is_made else {"t": 1})


# --- Produce


def produce(desk, wanted, *, version=9, acks=-1, **options):
    parts = {
        topic: [{"index": n, "records": data} for n, data in each.items()] for topic, each in wanted.items()
    }
    topic_data = rows(Api.PRODUCE, "TopicProduceData", "PartitionProduceData", parts)
    for topic in topic_data:
        topic.topic_id = desk.topics.ids.get(topic.name)
    return desk.ask(Api.PRODUCE, version, acks=acks, timeout_ms=1_000, topic_data=topic_data, **options)


def written(answer, names=None):
    return {
        (topic.name or names[topic.topic_id], each.index): (Wire(each.error_code), each.base_offset)
        for topic in answer.responses
        for each in topic.partition_responses
    }


@versions(Api.PRODUCE)
def test_records_are_written_and_their_offsets_returned(desk, version):
    desk.write("t", 1, numbered(2))
    answer = produce(desk, {"t": {1: numbered(3), 5: numbered(1)}, "u": {0: numbered(1)}}, version=version)
    names = {number: name for name, number in desk.topics.ids.items()}
    assert written(answer, names) == {
        ("t", 1): (Wire.none, 2),
        ("t", 5): (Wire.unknown_topic_or_partition, -1),
        ("u", 0): (Wire.none, 0),
    }
    assert [desk.topics.end(*place) for place in (("t", 1), ("u", 0))] == [5, 1]
    part = answer.responses[0].partition_responses[0]
    assert (part.log_append_time_ms, part.log_start_offset) == (-1, 0 if version >= 5 else -1)


def test_an_unknown_topic_id_is_an_error_and_the_other_topics_are_written(desk):
    old = desk.topics.ids["u"]
    desk.topics.delete(["u"])
    desk.topics.ids["u"] = old
    answer = produce(desk, {"u": {0: numbered(1)}, "t": {0: numbered(1)}}, version=13)
    found = written(answer, {desk.topics.ids["t"]: "t", old: "u"})
    assert found == {("u", 0): (Wire.unknown_topic_id, -1), ("t", 0): (Wire.none, 0)}


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_produce_request_with_acks_gets_a_response(desk, acks):
    assert written(produce(desk, {"t": {0: numbered(1)}}, acks=acks)) == {("t", 0): (Wire.none, 0)}


def test_a_produce_request_without_acks_gets_no_response(desk):
    assert produce(desk, {"t": {0: numbered(1), 7: numbered(1)}}, acks=0) is None
    assert desk.topics.end("t", 0) == 1


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_write_nothing(desk, acks):
    answer = produce(desk, {"t": {0: numbered(1)}}, acks=acks)
    assert written(answer) == {("t", 0): (Wire.invalid_required_acks, -1)}
    assert desk.topics.end("t", 0) == 0


def test_a_transactional_id_needs_the_right_to_write_it(desk):
    desk.access = access_of("me", [Acl.of("me:write:topic:t", "acls")])
    answer = produce(desk, {"t": {0: numbered(1, producer=(1, 0, 0))}}, transactional_id="x")
    assert written(answer) == {("t", 0): (Wire.transactional_id_authorization_failed, -1)}
    assert desk.topics.end("t", 0) == 0


def test_a_refusal_says_why(desk):
    answer = produce(desk, {"t": {0: b"!" * 70}})
    (part,) = answer.responses[0].partition_responses
    assert (Wire(part.error_code), part.log_start_offset) == (Wire.corrupt_message, -1)
    assert part.error_message == "record batch: format 33, expected 2"


# --- Fetch


def fetch_fields(wanted, ids, *, most=PLENTY):
    """Topics as a Fetch has them, with their names, or from version 13 on with their ids."""
    parts = {
        topic: [{"partition": n, "fetch_offset": at, "partition_max_bytes": most} for n, at in each.items()]
        for topic, each in wanted.items()
    }
    topics = rows(Api.FETCH, "FetchTopic", "FetchPartition", parts)
    for topic in topics:
        topic.topic_id = ids.get(topic.topic)
    return topics


def fetch(desk, wanted, *, version=12, max_bytes=PLENTY, most=PLENTY, min_bytes=1, **options):
    return desk.ask(
        Api.FETCH,
        version,
        max_wait_ms=0,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=fetch_fields(wanted, desk.topics.ids, most=most),
        **options,
    )


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
    assert (Wire(part.error_code), part.high_watermark) == (Wire.offset_out_of_range, 2)
    assert fetched(answer) == {("t", 0): []}
    assert Fetch(desk.data, waiting_fetch({"t": {0: offset, 1: 0}})).read()[1]


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


# --- Fetch that waits


def waiting_fetch(wanted, *, min_bytes=1, max_wait_ms=3_600_000, **options):
    return their_request(
        Api.FETCH,
        12,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=PLENTY,
        topics=fetch_fields(wanted, {}),
        **options,
    )


class Waiting:
    """Fetches at a node, and what has been answered."""

    def __init__(self, desk):
        self.answers = asyncio.Queue()
        recorder = Recorder(desk.topics)
        config = CoordinatorConfig(offsets_topic_partitions=1)
        loop = asyncio.get_running_loop()
        self.node = Node(loop, desk.store, desk.data, config, recorder, None)

    def fetch(self, request):
        return self.node.receive(request, "/here", self.answers.put_nowait)

    def offsets(self):
        values = self.answers.get_nowait()
        parts = [part for topic in values["responses"] for part in topic["partitions"]]
        return [[each.offset for each in records_of(part["records"])[0]] for part in parts]


def at_a_node(steps):
    """Carry out steps that take a desk and fetches at its node."""

    async def work():
        desk = Desk({"t": 2, "u": 1})
        waiting = Waiting(desk)
        try:
            async with asyncio.timeout(SECONDS):
                await steps(desk, waiting)
        finally:
            waiting.node.stop()

    asyncio.run(work())


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


# --- ListOffsets


def in_transaction(desk):
    """Write a record, one of a transaction that is open, and one after it, with times 10, 20 and 30."""
    desk.topics.is_in_transaction = lambda *_: True
    desk.write("t", 0, batch(Sent(b"a", timestamp_ms=10)))
    own = batch(Sent(b"b", timestamp_ms=20), producer=(5, 0, 0), transactional=True)
    desk.topics.append([("t", 0, own)], transactions_of=5)
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
        wanted = {"t": [(0, at_ms) for at_ms in times]}
        return [each.offset for each in list_offsets(desk, wanted, version, isolation_level=isolation_level)]

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


@versions(Api.LIST_OFFSETS)
def test_earliest_and_latest_offsets_are_returned(desk, version):
    desk.write("t", 0, numbered(3))
    found = list_offsets(desk, {"t": [(0, LATEST), (0, EARLIEST), (1, LATEST)]}, version)
    assert [(each.error_code, each.offset, each.timestamp) for each in found] == [
        (0, 3, -1),
        (0, 0, -1),
        (0, 0, -1),
    ]


def test_offsets_are_found_by_time(desk):
    for at_ms in (10, 20):
        desk.write("t", 0, batch(Sent(b"a", timestamp_ms=at_ms), Sent(b"b", timestamp_ms=at_ms + 5)))
    found = list_offsets(desk, {"t": [(0, at_ms) for at_ms in (0, 15, 16, 25, 26)]})
    assert [(each.offset, each.timestamp) for each in found] == [(0, 10), (1, 15), (2, 20), (3, 25), (-1, -1)]


@versions(Api.LIST_OFFSETS)
def test_the_offset_of_the_newest_record_is_found(desk, version):
    """KIP-734: timestamp -3. It is a time in no version."""
    desk.write("t", 0, batch(*(Sent(b"a", timestamp_ms=at_ms) for at_ms in (10, 30, 20))))
    (found,) = list_offsets(desk, {"t": [(0, -3)]}, version)
    assert (found.error_code, found.offset, found.timestamp) == (0, 1, 30)


def test_offsets_start_after_deleted_records(desk):
    for at_ms in (10, 20):
        desk.write("t", 0, batch(Sent(b"a", timestamp_ms=at_ms), Sent(b"b", timestamp_ms=at_ms + 5)))
    desk.topics.delete_records({("t", 0): 3})
    found = list_offsets(desk, {"t": [(0, EARLIEST), (0, 0), (0, 25)]})
    assert [each.offset for each in found] == [3, 3, 3]
    parts = [fetch(desk, {"t": {0: at}}).responses[0].partitions[0] for at in (2, 3)]
    assert [part.error_code for part in parts] == [Wire.offset_out_of_range, Wire.none]
    assert [part.log_start_offset for part in parts] == [3, 3]


def test_other_negative_timestamps_are_not_times(desk):
    desk.write("t", 0, numbered(3))
    found = list_offsets(desk, {"t": [(0, -4), (0, -5), (0, -7)]})
    assert [(each.error_code, each.offset) for each in found] == [(0, 0), (0, -1), (Wire.invalid_request, -1)]


def test_unknown_partitions_have_no_offsets(desk):
    found = list_offsets(desk, {"t": [(2, LATEST)], "v": [(0, EARLIEST)]})
    assert [(Wire(each.error_code), each.offset) for each in found] == [
        (Wire.unknown_topic_or_partition, -1)
    ] * 2


# --- producers and epochs


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
