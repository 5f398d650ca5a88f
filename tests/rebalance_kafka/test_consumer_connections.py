"""Our consumer and its connections: silent ones, waiting ones, corrupt records, late topics."""

import asyncio

import pytest
from crc32c import crc32c

from coordinator_core.client.classic.states import MemberState
from coordinator_core.errors import RebalanceLabError
from rebalance_kafka.addresses import place_of
from rebalance_kafka.consumer.links import Link
from rebalance_kafka.consumer.security import security_of
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.frames import their_class
from tests.rebalance_kafka.live import (
    BY_NAME,
    POLL_SECONDS,
    ask,
    broker,
    member,
    polled,
    produce,
    run,
    settled,
    values,
)
from tests.rebalance_kafka.proxy import Proxy
from tests.rebalance_kafka.records import GZIP, batch


def test_a_silent_connection_is_replaced():
    """Nothing closes the connection, as with a firewall that forgot it or a host without power."""

    async def work():
        async with Proxy() as proxy, broker({"t": 1}, advertise=proxy.address) as kafka:
            proxy.broker = kafka.address
            async with member(proxy.address, settings={"request.timeout.ms": 300}) as consumer:
                await produce(kafka.address, 0, b"0")
                assert await values(consumer, 1) == [b"0"]
                before = proxy.came
                proxy.silence()
                await produce(kafka.address, 0, b"1")
                assert await values(consumer, 1) == [b"1"]
                assert proxy.came > before

    run(work())


def test_records_are_read_while_a_join_waits():
    """One member does not join the round; another one keeps its partition and reads on."""

    async def work():
        async with broker({"t": 3}) as kafka, member(kafka) as first, member(kafka) as second:
            await settled(first, second, partitions=3)
            async with member(kafka) as third:
                await polled(first, third, until=lambda _: first.state is not MemberState.STABLE)
                await produce(kafka.address, first.assignment[0].partition, b"0", b"1", b"2")
                assert await values(first, 3) == [b"0", b"1", b"2"]
                assert first.state is not MemberState.STABLE
                await settled(first, second, third, partitions=3)

    run(work())


def test_corrupt_records_raise_an_error_and_the_other_partitions_continue():
    async def work():
        async with broker({"t": 2}) as kafka, member(kafka) as consumer:
            good = batch(b"good", compression=GZIP)
            bad = good[:70] + bytes(len(good) - 70)
            bad = bad[:17] + crc32c(bad[21:]).to_bytes(4, "big") + bad[21:]
            await produce(kafka.address, 1, b"one")
            cls = their_class(Api.PRODUCE, "Request").TopicProduceData
            data = cls(name="t", partition_data=[cls.PartitionProduceData(index=0, records=bad)])
            await ask(kafka.address, Api.PRODUCE, BY_NAME, acks=-1, timeout_ms=1_000, topic_data=[data])
            read, said = [], []
            while not (read and said):
                try:
                    read += await consumer.poll(POLL_SECONDS)
                except RebalanceLabError as wrong:
                    said.append(str(wrong))
            assert [(each.partition, each.value) for each in read] == [(1, b"one")]
            assert said[0] == "t-0: records that cannot be read (CORRUPT_MESSAGE), at offset 0"

    run(work())


def test_a_topic_created_later_is_found_soon():
    async def work():
        async with broker({"t": 1}) as kafka, member(kafka, "later") as consumer:
            await polled(consumer, until=lambda _: consumer.state is MemberState.STABLE)
            kafka.create_topics({"later": 2})
            await settled(consumer, partitions=2)

    run(work())


def test_a_link_with_tls_is_closed_when_both_sides_have_ended_it():
    async def work():
        async with broker(tls=True) as kafka:
            ready = asyncio.Event()
            calls = dict.fromkeys(("received", "lost", "refused"), lambda *_: None)
            security = security_of(kafka.client_settings(), "here")
            link = Link(place_of(kafka.address, "test"), "us", ready=ready.set, security=security, **calls)
            await ready.wait()
            socket = link._transport.get_extra_info("socket")
            assert socket.fileno() != -1
            await link.close()
            assert socket.fileno() == -1
            assert link.is_over

    run(work())


@pytest.mark.parametrize("is_early", [True, False])
def test_a_link_that_is_dropped_while_it_connects_ends_and_closes(monkeypatch, is_early):
    made, opened = Link.connection_made, []

    def drop_at_once(link, transport):
        opened.append(transport)
        if is_early:
            link.drop()
        made(link, transport)
        link.drop()

    async def work():
        async with broker() as kafka:
            calls = dict.fromkeys(("received", "lost", "refused", "ready"), lambda *_: None)
            link = Link(place_of(kafka.address, "test"), "us", **calls)
            await asyncio.gather(link._task, return_exceptions=True)
            assert opened[0].is_closing()
            await link.close()
            assert link.is_over

    monkeypatch.setattr(Link, "connection_made", drop_at_once)
    run(work())
