"""Malformed and excessive requests: the broker answers or closes, serves others, and does not grow."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker import producers
from rebalance_kafka.wire import values
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import decode_response
from tests.examples import scaled
from tests.rebalance_kafka.damage import EVERY_REQUEST, SUBSCRIPTION, TOPIC, corpus, damaged, request
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.stand import LIMITS, Stand, until, within

FRAMES_AT_ONCE = 25
EXAMPLES = 80
PLENTY = 300


@pytest.fixture(scope="module")
def shared():
    """One broker for all frames, whatever they leave behind."""
    with Stand(**LIMITS) as stand:
        yield stand


@pytest.mark.parametrize("name", corpus())
def test_saved_frames_are_answered_or_closed(shared, name):
    shared.throw([corpus()[name]] * 3)


@settings(max_examples=scaled(EXAMPLES), suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_damaged_frames_are_answered_or_closed(shared, random):
    shared.throw(damaged(random) for _ in range(FRAMES_AT_ONCE))


@pytest.mark.parametrize(("api", "version"), EVERY_REQUEST, ids=lambda each: getattr(each, "name", each))
def test_truncated_requests_are_answered_or_closed(shared, api, version):
    frame = request(api, version)
    whole_size = range(4, len(frame), 3)
    cut = [frame[:at] for at in range(0, len(frame), 7)]
    torn = [(at - 4).to_bytes(4, "big") + frame[4:at] for at in whole_size]
    shared.throw(cut + torn)


# --- excessive requests


def join(stand, group, *, version=5, **other):
    return stand.asked(Api.JOIN_GROUP, version, group_id=group, **other)


def test_offsets_of_unknown_partitions_are_not_kept(stand):
    assert stand.commit("g", topic="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stand.commit("g", partition=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "g" not in stand.broker.groups


def test_unknown_groups_are_not_remembered(monkeypatch):
    monkeypatch.setattr("coordinator_core.coordinator.facade.HOMES_REMEMBERED", 10)
    with Stand(**LIMITS) as stand:
        for n in range(30):
            error = stand.asked(Api.HEARTBEAT, 4, group_id=f"g{n}").error_code
            assert error == ErrorCode.UNKNOWN_MEMBER_ID
        assert stand.figures()["homes"] == 10
        assert stand.broker.groups == ["consumer neighbours", "neighbours"]


def test_traces_are_kept_until_they_have_too_many_events():
    with Stand(most_trace_events=40) as stand:
        for n in range(30):
            join(stand, f"g{n}")
        figures = stand.figures()
        assert figures["trace events"] <= 40
        assert figures["traces"] == len(stand.broker.traces()) < 30
        create(stand, made=1)  # every trace records it
        assert stand.figures()["trace events"] <= 40
        assert stand.broker.trace("neighbours").events  # the group still has a member


def test_a_refused_group_leaves_no_trace(stand):
    assert join(stand, "g", session_timeout=1).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert list(stand.broker.traces()) == ["neighbours", "consumer neighbours"]


def test_events_of_a_group_are_recorded_up_to_a_limit():
    with Stand(most_trace_events=20, neighbour=False) as stand:
        joined = join(stand, "g", version=3)
        for n in range(50):
            protocols = ({"name": "range", "metadata": SUBSCRIPTION + bytes(n)},)
            join(stand, "g", version=3, member_id=joined.member_id, protocols=protocols)
        assert stand.figures()["trace events"] == 20


def test_producers_are_forgotten_when_there_are_many(stand, monkeypatch):
    monkeypatch.setattr(producers, "MOST_PRODUCERS", 10)
    for producer in range(30):
        records = batch(b"one", producer=(producer, 0, 0))
        data = ({"name": TOPIC, "partition_data": ({"index": 0, "records": records},)},)
        (topic,) = stand.asked(Api.PRODUCE, 9, topic_data=data).responses
        assert topic.partition_responses[0].error_code == 0
    assert stand.figures()["producers"] == 10


def create(stand, **partitions):
    made = tuple(
        {"name": name, "num_partitions": n, "replication_factor": 1, "assignments": (), "configs": ()}
        for name, n in partitions.items()
    )
    return [each.error_code for each in stand.asked(Api.CREATE_TOPICS, 5, topics=made).topics]


def test_partitions_are_created_up_to_a_limit(stand):
    assert create(stand, a=1_000, b=1_000, c=1) == [0, Wire.policy_violation, 0]
    assert create(stand, million=1_000_000) == [Wire.invalid_partitions]
    grown = ({"name": "a", "count": 1_998, "assignments": None},)
    (answer,) = stand.asked(Api.CREATE_PARTITIONS, 3, topics=grown).results
    assert answer.error_code == Wire.policy_violation
    names = tuple({"name": f"auto{n}"} for n in range(1_500))
    errors = [each.error_code for each in stand.asked(Api.METADATA, 9, topics=names).topics]
    assert (errors[0], errors[-1]) == (0, Wire.policy_violation)
    assert stand.figures()["partitions"] == LIMITS["most_partitions"]


@pytest.mark.parametrize(
    ("api", "version"),
    [
        (Api.JOIN_GROUP, 5),
        (Api.SYNC_GROUP, 3),
        (Api.HEARTBEAT, 3),
        (Api.LEAVE_GROUP, 3),
        (Api.OFFSET_DELETE, 0),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_requests_of_members_need_a_group_id(shared, api, version):
    """C-02."""
    assert shared.asked(api, version, group_id="").error_code == ErrorCode.INVALID_GROUP_ID


def test_a_simple_consumer_commits_without_a_group_id(shared):
    """C-02, C-33."""
    found = shared.asked(Api.FIND_COORDINATOR, 3, key="")
    assert found.error_code == ErrorCode.NONE
    assert shared.commit("") == ErrorCode.NONE
    wanted = ({"name": TOPIC, "partition_indexes": (0,)},)
    fetched = shared.asked(Api.OFFSET_FETCH, 5, group_id="", topics=wanted)
    assert fetched.topics[0].partitions[0].committed_offset == 5


@pytest.mark.slow
def test_a_request_with_too_many_elements_is_closed(stand, monkeypatch):
    def numbers(count):
        return request(Api.OFFSET_FETCH, 5, topics=({"name": TOPIC, "partition_indexes": (0,) * count},))

    async def answer_to(frame):
        line = await stand.line()
        line.writer.write(frame)
        line.writer.write_eof()
        answer = await line.rest()
        await line.close()
        return answer

    assert stand.run(answer_to(numbers(values.MOST_ELEMENTS - 1)))
    assert stand.run(answer_to(numbers(values.MOST_ELEMENTS))) == b""


@pytest.mark.parametrize(("times", "answered"), [(100, 100), (101, 1)])
def test_groups_that_are_repeated_many_times_are_answered_once(stand, times, answered):
    """Kafka always answers as often as requested: the response to a short request could be endless."""
    names, all_offsets = ("g",) * times, ({"group_id": "g", "topics": None},) * times
    assert len(stand.asked(Api.DESCRIBE_GROUPS, 5, groups=names).groups) == answered
    assert len(stand.asked(Api.CONSUMER_GROUP_DESCRIBE, 1, group_ids=names).groups) == answered
    assert len(stand.asked(Api.OFFSET_FETCH, 9, groups=all_offsets).groups) == answered


def test_partitions_that_are_repeated_are_answered_as_often(stand):
    wanted = ({"name": TOPIC, "partition_indexes": (0,) * 1_000},)
    (topic,) = stand.asked(Api.OFFSET_FETCH, 5, topics=wanted).topics
    assert len(topic.partitions) == 1_000


@pytest.mark.parametrize("api", [Api.JOIN_GROUP, Api.SYNC_GROUP], ids=lambda api: api.name)
def test_a_repeated_request_takes_the_place_of_the_first(stand, api):
    """A client whose first request took too long sends it again on another connection. As in Kafka, the first
    one is never answered."""
    slow = {"group_id": "g", "rebalance_timeout": 60_000}

    async def one_who_waits():
        """The leader sends nothing more, so that every request of the other member waits."""
        leader, other = await stand.line(), await stand.line()
        leads = (await leader.ask(Api.JOIN_GROUP, 3, **slow)).member_id
        other.writer.write(request(Api.JOIN_GROUP, 3, **slow))
        await until(lambda: stand.figures()["parked"] == 1)
        joined = await leader.ask(Api.JOIN_GROUP, 3, **slow, member_id=leads)
        (follows,) = {each.member_id for each in joined.members} - {leads}
        await within(other.frame())
        protocols = ({"name": "range", "metadata": b"other than before"},)
        who = {"member_id": follows, "generation_id": joined.generation_id, "protocols": protocols}
        return [leader, other], {**slow, **who, "leader": leads}

    async def asks_again():
        lines, asking = await one_who_waits()
        first, second = await stand.line(), await stand.line()
        first.writer.write(request(api, 3, **asking))
        await until(lambda: stand.figures()["parked"] == 1)
        second.writer.write(request(api, 3, **asking))
        leads = {**asking, "member_id": asking["leader"]}
        leads |= {"assignments": ({"member_id": asking["member_id"], "assignment": b"share"},)}
        await lines[0].ask(api, 3, **leads)
        _, answer = decode_response(api, 3, await within(second.frame()))
        assert answer.error_code == ErrorCode.NONE
        assert stand.figures()["parked"] == 0
        await first.close()
        assert await first.rest() == b""
        for line in (*lines, second):
            await line.close()

    stand.run(asks_again())
