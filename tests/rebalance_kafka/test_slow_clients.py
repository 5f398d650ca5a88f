"""Clients that never pause, are slow, silent or gone: the others are served, and buffers have limits."""

import pytest

from rebalance_kafka.broker.connections import AHEAD_BYTES, INCOMING_BYTES
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.damage import TOPIC, request
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.stand import Line, Stand, until, within

PLENTY = 300


def paused(stand):
    """The connections from which nothing is read for the time being."""
    return [connection for connection in stand.broker._connections if not connection._transport.is_reading()]


@pytest.fixture
def handled(stand, monkeypatch):
    """The client ids of the requests in the order in which they are handled. A turn is one request."""
    monkeypatch.setattr("rebalance_kafka.broker.turns.TURN_SECONDS", 0.0)
    listed, receive = [], stand.broker.receive

    def noted(request, host, reply):
        listed.append(request.client_id)
        return receive(request, host, reply)

    monkeypatch.setattr(stand.broker, "receive", noted)
    return listed


def test_other_clients_are_served_while_one_sends_without_a_pause(stand, handled):
    async def greedy():
        line = await stand.line()
        line.writer.write(request(Api.API_VERSIONS, 0) * 1_000)
        await until(lambda: handled)
        await stand.neighbour_works()
        for _ in range(1_000):
            await within(line.frame())
        await line.close()

    stand.run(greedy())
    assert handled.index("good") < 1_000
    assert handled.count("them") == 1_000


def test_nothing_is_handled_for_a_client_that_is_gone(stand, handled):
    """It sends many requests and closes without reading, so that writing to it fails."""

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
        waiting = {"topics": ({"topic": TOPIC, "partitions": parts},), "max_wait": 60_000}
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
