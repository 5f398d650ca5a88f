"""Malformed and excessive requests: the broker answers or closes, serves others, and does not grow.

Longer runs: ``python -m tests.rebalance_kafka.malformed 10000``.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker import producers, recorder
from rebalance_kafka.broker.connections import AHEAD_BYTES, INCOMING_BYTES, Connection
from rebalance_kafka.wire import scan
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import decode_response, from_ms
from tests.examples import scaled
from tests.rebalance_kafka.damage import EVERY_REQUEST, SUBSCRIPTION, TOPIC, corpus, damaged, request
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.stand import LIMITS, Line, Stand, until, within

FRAMES_AT_ONCE = 25
EXAMPLES = 80
PLENTY = 300


@pytest.fixture(scope="module")
def shared():
    """One broker for all frames, whatever they leave behind."""
    with Stand(**LIMITS) as stand:
        yield stand


@pytest.fixture
def stand():
    with Stand(**LIMITS) as stand:
        yield stand


def paused(stand):
    """The connections from which nothing is read for the time being."""
    return [connection for connection in stand.broker._connections if not connection._transport.is_reading()]


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


def asked(stand, api, version, **other):
    async def ask():
        line = await stand.line()
        answer = await line.ask(api, version, **other)
        await line.close()
        return answer

    return stand.run(ask())


def join(stand, group, *, version=5, **other):
    return asked(stand, Api.JOIN_GROUP, version, group_id=group, **other)


def commit(stand, group, *, topic=TOPIC, partition=0, metadata=""):
    offset = {
        "partition_index": partition,
        "committed_offset": 5,
        "committed_leader_epoch": -1,
        "committed_metadata": metadata,
    }
    answer = asked(
        stand, Api.OFFSET_COMMIT, 8, group_id=group, topics=({"name": topic, "partitions": (offset,)},)
    )
    return answer.topics[0].partitions[0].error_code


def test_groups_are_created_until_they_take_too_much_memory():
    with Stand(most_group_bytes=100_000) as stand:
        errors = [join(stand, f"g{n}").error_code for n in range(PLENTY)]
        assert errors[0] == ErrorCode.MEMBER_ID_REQUIRED
        assert errors[-1] == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert stand.figures()["group bytes"] <= 100_000
        stand.run(stand.neighbour_works())


def test_pending_member_ids_count_towards_the_limit():
    with Stand(most_group_bytes=100_000) as stand:
        errors = [join(stand, "g").error_code for _ in range(PLENTY)]
        assert errors[-1] == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert stand.figures()["group bytes"] <= 100_000


@pytest.mark.slow
def test_groups_with_offsets_only_count_towards_the_limit():
    with Stand(most_group_bytes=100_000) as stand:
        errors = [commit(stand, f"g{n}", metadata="m" * 1_000) for n in range(PLENTY)]
        assert (errors[0], errors[-1]) == (ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED)
        assert stand.figures()["group bytes"] <= 100_000


def test_repeated_commits_take_no_more_memory():
    with Stand(most_group_bytes=20_000) as stand:
        assert {commit(stand, "g") for _ in range(100)} == {ErrorCode.NONE}
        assert stand.figures()["group bytes"] <= 20_000


def test_offsets_of_unknown_partitions_are_not_kept(stand):
    assert commit(stand, "g", topic="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(stand, "g", partition=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "g" not in stand.broker.groups


def test_unknown_groups_are_not_remembered(monkeypatch):
    monkeypatch.setattr("coordinator_core.coordinator.facade.HOMES_REMEMBERED", 10)
    with Stand(**LIMITS) as stand:
        for n in range(30):
            error = asked(stand, Api.HEARTBEAT, 4, group_id=f"g{n}").error_code
            assert error == ErrorCode.UNKNOWN_MEMBER_ID
        assert stand.figures()["homes"] == 10
        assert stand.broker.groups == ["consumer neighbours", "neighbours"]


def test_traces_are_kept_until_they_take_too_much_memory():
    with Stand(most_trace_bytes=20_000) as stand:
        for n in range(30):
            join(stand, f"g{n}")
        figures = stand.figures()
        assert figures["trace bytes"] <= 20_000
        assert figures["traces"] == len(stand.broker.traces()) < 30
        create(stand, made=1)  # every trace records it
        assert stand.figures()["trace bytes"] <= 20_000
        assert stand.broker.trace("neighbours").events  # the group still has a member


def test_a_refused_group_leaves_no_trace(stand):
    assert join(stand, "g", session_timeout=from_ms(1)).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert list(stand.broker.traces()) == ["neighbours", "consumer neighbours"]


def test_events_of_a_group_are_recorded_up_to_a_limit():
    with Stand(most_trace_bytes=recorder.GROUP_BYTES + 5_000, neighbour=False) as stand:
        joined = join(stand, "g", version=3)
        for n in range(50):
            protocols = ({"name": "range", "metadata": SUBSCRIPTION + bytes(n)},)
            join(stand, "g", version=3, member_id=joined.member_id, protocols=protocols)
        assert stand.figures()["trace bytes"] <= recorder.GROUP_BYTES + 5_000


def test_producers_are_forgotten_when_there_are_many(stand, monkeypatch):
    monkeypatch.setattr(producers, "MOST_PRODUCERS", 10)
    for producer in range(30):
        records = batch(b"one", producer=(producer, 0, 0))
        data = ({"name": TOPIC, "partition_data": ({"index": 0, "records": records},)},)
        (topic,) = asked(stand, Api.PRODUCE, 9, topic_data=data).responses
        assert topic.partition_responses[0].error_code == 0
    assert stand.figures()["producers"] == 10


def create(stand, **partitions):
    made = tuple(
        {"name": name, "num_partitions": n, "replication_factor": 1, "assignments": (), "configs": ()}
        for name, n in partitions.items()
    )
    return [each.error_code for each in asked(stand, Api.CREATE_TOPICS, 5, topics=made).topics]


def test_partitions_are_created_up_to_a_limit(stand):
    assert create(stand, a=1_000, b=1_000, c=1) == [0, Wire.policy_violation, 0]
    assert create(stand, million=1_000_000) == [Wire.invalid_partitions]
    grown = ({"name": "a", "count": 1_998, "assignments": None},)
    (answer,) = asked(stand, Api.CREATE_PARTITIONS, 3, topics=grown).results
    assert answer.error_code == Wire.policy_violation
    names = tuple({"name": f"auto{n}"} for n in range(1_500))
    errors = [each.error_code for each in asked(stand, Api.METADATA, 9, topics=names).topics]
    assert (errors[0], errors[-1]) == (0, Wire.policy_violation)
    assert stand.figures()["partitions"] == LIMITS["most_partitions"]


def test_a_member_that_lists_too_many_assignors_is_refused(stand):
    protocols = tuple({"name": f"p{n}", "metadata": b""} for n in range(5_000))
    assert join(stand, "g", protocols=protocols).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


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
    assert asked(shared, api, version, group_id="").error_code == ErrorCode.INVALID_GROUP_ID


def test_a_simple_consumer_commits_without_a_group_id(shared):
    """C-02, C-33."""
    found = asked(shared, Api.FIND_COORDINATOR, 3, key="")
    assert found.error_code == ErrorCode.NONE
    assert commit(shared, "") == ErrorCode.NONE
    wanted = ({"name": TOPIC, "partition_indexes": (0,)},)
    fetched = asked(shared, Api.OFFSET_FETCH, 5, group_id="", topics=wanted)
    assert fetched.topics[0].partitions[0].committed_offset == 5


@pytest.mark.parametrize("longest", ["client", "instance"])
def test_the_longest_names_do_not_prevent_a_rebalance(stand, longest):
    """Member ids contain these names, and the leader receives all member ids."""
    if longest == "instance":
        answer = join(stand, "g", group_instance_id="i" * 32_767)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID
        return
    frame = bytearray(request(Api.JOIN_GROUP, 3, group_id="g"))
    named = frame[:12] + (32_767).to_bytes(2, "big") + b"c" * 32_767 + frame[18:]
    named[:4] = (len(named) - 4).to_bytes(4, "big")

    async def joined():
        line = await stand.line()
        line.writer.write(named)
        assert b"range" in await within(line.frame())
        await line.close()

    stand.run(joined())


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

    assert stand.run(answer_to(numbers(scan.MOST_ELEMENTS - 1)))
    assert stand.run(answer_to(numbers(scan.MOST_ELEMENTS))) == b""


def test_repeated_names_in_a_request_are_answered_once(stand):
    assert len(asked(stand, Api.DESCRIBE_GROUPS, 5, groups=("g",) * 1_000).groups) == 1
    wanted = ({"name": TOPIC, "partition_indexes": (0,) * 1_000},)
    (topic,) = asked(stand, Api.OFFSET_FETCH, 5, topics=wanted).topics
    assert len(topic.partitions) == 1


@pytest.mark.parametrize("api", [Api.JOIN_GROUP, Api.SYNC_GROUP], ids=lambda api: api.name)
def test_a_repeated_request_takes_the_place_of_the_first(monkeypatch, stand, api):
    """A client whose first request took too long sends it again on another connection."""
    monkeypatch.setattr("rebalance_kafka.broker.embedded.DRAIN_SECONDS", 0.1)
    slow = {"group_id": "g", "rebalance_timeout": from_ms(60_000)}

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
        return [leader, other], {**slow, **who}

    async def asks_again():
        lines, asking = await one_who_waits()
        first, second = await stand.line(), await stand.line()
        for line in (first, second):
            line.writer.write(request(api, 3, **asking))
        _, answer = decode_response(api, 3, await within(first.frame()))
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert stand.figures()["parked"] == 1
        for line in (*lines, first, second):
            await line.close()

    stand.run(asks_again())


def test_other_clients_are_served_while_one_sends_without_a_pause(stand, monkeypatch):
    monkeypatch.setattr("rebalance_kafka.broker.turns.TURN_SECONDS", 0.0)
    order, receive = [], stand.broker.receive

    def noted(request, host, reply):
        order.append(request.client_id)
        return receive(request, host, reply)

    monkeypatch.setattr(stand.broker, "receive", noted)

    async def greedy():
        line = await stand.line()
        line.writer.write(request(Api.API_VERSIONS, 0) * 1_000)
        await until(lambda: order)
        await stand.neighbour_works()
        for _ in range(1_000):
            await within(line.frame())
        await line.close()

    stand.run(greedy())
    assert order.index("good") < 1_000
    assert order.count("them") == 1_000


def test_nothing_is_handled_for_a_client_that_is_gone(stand, monkeypatch):
    """It sends many requests and closes without reading, so that writing to it fails."""
    monkeypatch.setattr("rebalance_kafka.broker.turns.TURN_SECONDS", 0.0)
    handled, receive = [], stand.broker.receive

    def noted(request, host, reply):
        handled.append(request.client_id)
        return receive(request, host, reply)

    monkeypatch.setattr(stand.broker, "receive", noted)

    async def gone():
        line = await stand.line()
        line.writer.write(request(Api.API_VERSIONS, 0) * 5_000)
        await until(lambda: len(handled) > 10)
        line.abort()
        await until(lambda: stand.broker.connections == 1)
        return len(handled)

    before = stand.run(gone())
    assert before < 5_000
    stand.run(stand.neighbour_works())
    assert handled.count("them") == before


def test_responses_of_one_turn_are_written_together(stand, monkeypatch):
    writes, send = [], Connection._send

    def noted(self):
        writes.append(len(self._unsent))
        send(self)

    monkeypatch.setattr(Connection, "_send", noted)

    async def pipelined():
        line = await stand.line()
        line.writer.write(request(Api.HEARTBEAT, 4) * 20)
        for _ in range(20):
            await within(line.frame())
        await line.close()

    stand.run(pipelined())
    assert max(writes) > 1
    assert sum(writes) == 20


# --- slow and silent clients


def test_a_request_may_come_byte_by_byte(stand):
    async def slowly():
        line = await stand.line()
        for byte in request(Api.METADATA, 9):
            line.writer.write(bytes([byte]))
            await line.writer.drain()
        assert await within(line.frame())
        await line.close()

    stand.run(slowly())


@pytest.mark.parametrize("message", [b"", b"\0", request(Api.METADATA, 9)[:-1], b"\x05\0\0\0" + bytes(100)])
def test_an_idle_connection_is_closed(message):
    with Stand(idle_seconds=0.2, neighbour=False) as stand:

        async def silent():
            line = await stand.line()
            line.writer.write(message)
            assert await line.rest() == b""
            await line.close()

        stand.run(silent())
        stand.run(until(lambda: stand.broker.connections == 0))


@pytest.mark.parametrize("api", [Api.METADATA, Api.FETCH])
def test_requests_before_a_half_close_are_answered(stand, api):
    async def half_closed():
        line = await stand.line()
        line.writer.write(request(api, 9) * 5)
        line.writer.write_eof()
        answers = [await within(line.frame()) for _ in range(5)]
        assert await line.rest() == b""
        await line.close()
        return answers

    assert len(set(stand.run(half_closed()))) == 1


def test_half_a_request_before_a_half_close_is_closed(stand):
    async def half():
        line = await stand.line()
        line.writer.write(request(Api.METADATA, 9)[:-3])
        line.writer.write_eof()
        assert await line.rest() == b""
        await line.close()

    stand.run(half())


RECORD_BYTES = 20_000
REQUESTS_AHEAD = 6_000


async def one_who_does_not_read(stand):
    """Request more than fits into all buffers between client and broker."""
    line = await stand.line()
    records = batch(bytes(RECORD_BYTES))
    data = ({"name": TOPIC, "partition_data": ({"index": 0, "records": records},)},)
    await line.ask(Api.PRODUCE, 9, topic_data=data)
    parts = ({"partition": 0, "fetch_offset": 0, "partition_max_bytes": RECORD_BYTES},)
    fetch = request(Api.FETCH, 12, topics=({"topic": TOPIC, "partitions": parts},))
    line.writer.write(fetch * REQUESTS_AHEAD)
    await until(lambda: paused(stand))
    (own,) = paused(stand)
    return line, own


@pytest.mark.slow
def test_reading_pauses_for_a_client_that_does_not_read_responses(stand):
    async def backed_up():
        line, own = await one_who_does_not_read(stand)
        for _ in range(20):
            await stand.neighbour_works()
            assert own.size < 700_000
        for _ in range(REQUESTS_AHEAD):
            assert len(await within(line.frame())) > RECORD_BYTES
        await line.close()

    stand.run(backed_up())


def test_the_requests_after_one_that_waits_stay_with_the_kernel(stand):
    async def waits():
        line = await stand.line()
        parts = ({"partition": 0, "fetch_offset": 0, "partition_max_bytes": RECORD_BYTES},)
        waiting = {"topics": ({"topic": TOPIC, "partitions": parts},), "max_wait": from_ms(60_000)}
        line.writer.write(request(Api.FETCH, 12, min_bytes=PLENTY, **waiting))
        line.writer.write(request(Api.METADATA, 9) * REQUESTS_AHEAD * 5)
        await until(lambda: paused(stand))
        (own,) = paused(stand)
        assert own.size < AHEAD_BYTES + INCOMING_BYTES
        line.abort()
        other = await stand.line()
        data = ({"name": TOPIC, "partition_data": ({"index": 0, "records": batch(bytes(PLENTY))},)},)
        await other.ask(Api.PRODUCE, 9, topic_data=data)
        await other.close()

    stand.run(waits())


def test_a_connection_without_more_requests_has_no_further_turn(stand):
    async def turns():
        line = await stand.line()
        await line.ask(Api.METADATA, 9)
        own, frames = list(stand.broker._connections)[-1], request(Api.METADATA, 9) * 2
        own.get_buffer(-1)[: len(frames)] = frames
        own.buffer_updated(len(frames))
        assert [own.take_turn(0.0), own.take_turn(0.0)] == [True, False]
        await line.close()

    stand.run(turns())


def test_a_client_that_never_reads_is_disconnected(monkeypatch):
    monkeypatch.setattr("rebalance_kafka.broker.connections.LINGER_SECONDS", 0.1)
    with Stand(idle_seconds=0.5, neighbour=False) as stand:

        async def never():
            line, _ = await one_who_does_not_read(stand)
            await until(lambda: stand.broker.connections == 0)
            line.abort()

        stand.run(never())


def test_unread_responses_have_a_limit():
    with Stand(most_waiting_bytes=500_000) as stand:

        async def too_much():
            # each that is backed up keeps at least 64 KiB of its responses waiting
            lines = [await stand.line() for _ in range(4)]
            records = batch(bytes(400_000))
            data = ({"name": TOPIC, "partition_data": ({"index": 0, "records": records},)},)
            await lines[0].ask(Api.PRODUCE, 9, topic_data=data)
            parts = ({"partition": 0, "fetch_offset": 0, "partition_max_bytes": 400_000},)
            fetch = request(
                Api.FETCH, 12, topics=({"topic": TOPIC, "partitions": parts},), max_bytes=2**31 - 1
            )
            for line in lines:
                line.writer.write(fetch * 100)
            await until(lambda: stand.broker.connections < 5)
            await stand.neighbour_works()
            for line in lines:
                line.abort()

        stand.run(too_much())


@pytest.mark.slow
def test_a_thousand_idle_connections_do_not_disturb_other_clients(stand, many_files):
    async def crowd():
        lines = [await stand.line() for _ in range(1_000)]
        await until(lambda: stand.broker.connections == 1_001)
        for _ in range(20):
            await stand.neighbour_works()
        for line in (lines[0], lines[-1]):
            assert (await line.ask(Api.METADATA, 9)).topics
        for line in lines:
            line.abort()
        await until(lambda: stand.broker.connections == 1)

    stand.run(crowd())


@pytest.fixture
def many_files():
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3_000
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this process may open {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_one_connection_too_many_is_closed_until_another_leaves():
    with Stand(most_connections=4) as stand:

        async def too_many():
            lines = [await stand.line() for _ in range(3)]
            for line in lines:
                await line.ask(Api.METADATA, 9)
            refused = await stand.line()
            assert await refused.rest() == b""
            await refused.close()
            await stand.neighbour_works()
            await lines.pop().close()
            await until(lambda: stand.broker.connections == 3)
            lines.append(await stand.line())
            assert (await lines[-1].ask(Api.METADATA, 9)).topics
            for line in lines:
                await line.close()

        stand.run(too_many())


def test_an_incomplete_request_waits_for_its_last_byte(stand):
    async def later():
        line: Line = await stand.line()
        frame = request(Api.METADATA, 9)
        line.writer.write(frame + frame[:-1])
        await within(line.frame())
        await stand.neighbour_works()
        line.writer.write(frame[-1:])
        assert await within(line.frame())
        await line.close()

    stand.run(later())


# --- OffsetFetch of several groups (KIP-709)


@pytest.mark.parametrize("version", [8, 9])
def test_offsets_of_several_groups_are_fetched(stand, version):
    assert commit(stand, "g") == commit(stand, "h", partition=2) == ErrorCode.NONE
    wanted = ({"name": TOPIC, "partition_indexes": (0, 1, 0)},)
    groups = (
        {"group_id": "g", "topics": wanted},
        {"group_id": "h", "topics": None},
        {"group_id": "unknown", "topics": wanted},
        {"group_id": "g", "topics": wanted},
    )
    found = {
        group.group_id: [
            (row.partition_index, row.committed_offset, row.error_code)
            for topic in group.topics
            for row in topic.partitions
        ]
        for group in asked(stand, Api.OFFSET_FETCH, version, groups=groups).groups
    }
    assert found == {
        "g": [(0, 5, 0), (1, -1, 0)],
        "h": [(2, 5, 0)],
        "unknown": [(0, -1, 0), (1, -1, 0)],
    }


def test_groups_are_listed_by_their_type(stand):
    listed = [
        [(group.group_id, group.group_type) for group in asked(stand, Api.LIST_GROUPS, 5, **wanted).groups]
        for wanted in (
            {"states_filter": (), "types_filter": ()},
            {"states_filter": (), "types_filter": ("Classic",)},
            {"states_filter": (), "types_filter": ("consumer",)},
        )
    ]
    classic, consumer = ("neighbours", "classic"), ("consumer neighbours", "consumer")
    assert listed == [[consumer, classic], [classic], [consumer]]
