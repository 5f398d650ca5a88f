"""Our consumer with a faulty listener, assignor, setting or broker."""

import asyncio
import socket
from re import search

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.config import ClientConfig
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.messages import MetadataRequest
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl
from coordinator_core.registry.registry import installed_registry
from rebalance_kafka import Consumer
from rebalance_kafka.addresses import Place, places_of
from rebalance_kafka.consumer.admin_client import AdminClient
from rebalance_kafka.consumer.links import Links
from rebalance_kafka.settings import configured
from tests.rebalance_kafka.live import Told, broker, member, polled, produce, run, settled, values

# --- what others' code does


@pytest.mark.parametrize("what", ["assigned", "revoked"])
def test_poll_raises_the_exception_of_the_listener_and_the_consumer_continues(what):
    async def work():
        told = Told()
        told.raising = (what,)
        async with broker() as kafka, member(kafka, listener=told, strategy="range") as first:
            with pytest.raises(ValueError, match=f"does not like what is {what}"):
                await alone_and_then_with_another(first, kafka)
            told.raising = ()
            await settled(first)

    run(work())


def test_close_raises_the_exception_of_the_listener():
    async def work():
        told = Told()
        async with broker() as kafka, member(kafka, "t") as other:
            consumer = member(kafka, listener=told)
            await consumer.start()
            await settled(consumer, other)
            told.raising = ("revoked",)
            with pytest.raises(ValueError, match="does not like what is revoked"):
                await consumer.close()
            await settled(other)
            await consumer.close()

    run(work())


async def alone_and_then_with_another(first, kafka):
    await settled(first)
    async with member(kafka, strategy="range") as second:
        await settled(first, second)


class Failing:
    """An assignor with a bug."""

    name = "failing"

    def assign(self, cluster, group):
        raise ZeroDivisionError("by nothing")


class Plugin:
    @hookimpl
    def assignors(self):
        return [AssignorSpec("failing", Failing)]


def test_the_exception_of_an_assignor_is_raised_with_its_name():
    async def work():
        registry = installed_registry()
        registry.register(Plugin())
        async with broker() as kafka, member(kafka, strategy="failing", registry=registry) as consumer:
            with pytest.raises(RebalanceLabError, match="failing"):
                await polled(consumer, until=lambda _: False)

    run(work())


# --- what cannot be used

NOWHERE = {"bootstrap_servers": "127.0.0.1:9", "group_id": "g"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"settings": {"session.timeout": 5}}, "session.timeout"),
        (
            {"settings": {"session.timeout.ms": "long"}},
            "session.timeout.ms: found 'long', expected a duration",
        ),
        ({"settings": {"session.timeout.ms": 2**31}}, "2147483648, expected a whole number from 0 to 2,147"),
        ({"settings": {"session.timeout.ms": 10**30}}, "expected a whole number"),
        ({"settings": {"enable.auto.commit": "maybe"}}, "found 'maybe', expected true or false"),
        ({"settings": {"client.rack": 3}}, "client.rack: found 3, expected text"),
        ({"settings": {"group.instance.id": ""}}, "group.instance.id: found ''"),
        ({"settings": {"group.instance.id": ".."}}, "group.instance.id: found '..'"),
        ({"settings": {"group.instance.id": "a b"}}, "group.instance.id: found 'a b'"),
        ({"settings": {"group.instance.id": "i" * 250}}, "1 to 249"),
        ({"settings": {"heartbeat.interval.ms": 50_000}}, "less than session.timeout.ms"),
        ({"settings": {"auto.offset.reset": "middle"}}, "earliest, latest, none"),
        ({"strategy": "rnge"}, "did you mean 'range'"),
        ({"strategy": "range+nothing"}, "nothing"),
        ({"strategy": "watcher"}, "'watcher': found the protocol 'watcher', expected 'classic'"),
        ({"strategy": ["range", "range+server-side"]}, "found the protocol 'server-side'"),
        ({"strategy": "range+static"}, "group.instance.id: found none"),
        ({"strategy": []}, "strategy"),
        ({"bootstrap_servers": "127.0.0.1"}, "HOST:PORT"),
        ({"bootstrap_servers": "127.0.0.1:70000"}, "HOST:PORT"),
        ({"bootstrap_servers": "127.0.0.1:٣"}, "HOST:PORT"),
        ({"bootstrap_servers": "a..b:9092"}, "HOST:PORT"),
        ({"bootstrap_servers": f"{'a' * 64}:9092"}, "HOST:PORT"),
        ({"bootstrap_servers": ["127.0.0.1:9", ":9"]}, "HOST:PORT"),
        ({"bootstrap_servers": ""}, "HOST:PORT"),
        ({"bootstrap_servers": []}, "HOST:PORT"),
    ],
)
def test_invalid_arguments_are_errors_of_the_constructor(options, problem):
    with pytest.raises(InputError, match=problem):
        Consumer("t", **NOWHERE | options)


def test_settings_can_be_strings():
    settings = {"session.timeout.ms": "10000", "enable.auto.commit": "false", "client.rack": "7"}
    config = configured(ClientConfig, {"group.id": "g"} | settings)
    assert (config.session_timeout_ms, config.enable_auto_commit, config.client_rack) == (10_000, False, "7")


def test_a_consumer_that_is_not_started_is_an_error():
    consumer = Consumer("t", **NOWHERE)
    for use in (lambda: consumer.subscribe("t"), consumer.unsubscribe, lambda: asyncio.run(consumer.poll())):
        with pytest.raises(InputError, match="async with Consumer"):
            use()


def test_a_closed_consumer_is_an_error():
    async def work():
        async with broker() as kafka:
            async with member(kafka) as consumer:
                await settled(consumer)
            with pytest.raises(InputError, match="async with Consumer"):
                await consumer.poll()

    run(work())


def test_a_consumer_without_a_broker_waits_and_shows_the_reason():
    async def work():
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{unused.getsockname()[1]}"
            async with member(address) as consumer:
                await polled(consumer, until=lambda _: consumer.last_disconnect)
                assert consumer.last_disconnect.startswith(f"{address}: ")
                assert "Connect call failed" in consumer.last_disconnect
                assert (consumer.assignment, consumer.state) == ((), MemberState.UNJOINED)

    run(work())


# --- brokers that go away


def test_a_consumer_continues_after_a_restart_of_the_broker(tmp_path):
    async def work():
        async with broker({"t": 2}, data_dir=tmp_path) as kafka:
            port = int(kafka.address.split(":")[1])
            await produce(kafka.address, 0, b"0")
            consumer = member(kafka)
            await consumer.start()
            assert await values(consumer, 1) == [b"0"]
            await consumer.commit()
            was = consumer.member_id
        await polled(consumer, until=lambda _: consumer.last_disconnect)
        assert "security.protocol" not in consumer.last_disconnect
        async with broker(data_dir=tmp_path, topics={}, port=port) as kafka:
            await produce(kafka.address, 0, b"1")
            assert await values(consumer, 1) == [b"1"]
            assert (consumer.member_id, len(consumer.assignment)) == (was, 2)
            await consumer.close()

    run(work())


def test_a_commit_succeeds_after_a_restart_of_the_broker(tmp_path):
    async def work():
        async with broker({"t": 1}, data_dir=tmp_path) as kafka:
            port = int(kafka.address.split(":")[1])
            await produce(kafka.address, 0, b"0")
            consumer = member(kafka)
            await consumer.start()
            assert await values(consumer, 1) == [b"0"]
        committing = asyncio.create_task(consumer.commit())
        await asyncio.sleep(0.1)
        assert not committing.done()
        async with broker(data_dir=tmp_path, topics={}, port=port) as kafka:
            await committing
            async with AdminClient(places_of(kafka.address, "here")) as admin:
                assert await admin.committed("g") == {TopicPartition("t", 0): 1}
            await consumer.close()

    run(work())


def test_a_commit_without_a_broker_times_out(tmp_path):
    async def work():
        settings = {"default.api.timeout.ms": 200}
        async with broker({"t": 1}, data_dir=tmp_path) as kafka:
            consumer = member(kafka, settings=settings)
            await consumer.start()
            await settled(consumer, partitions=1)
        with pytest.raises(InputError, match="commit: found"):
            await consumer.commit({TopicPartition("t", 0): 1})
        await consumer.close()

    run(work())


def torn(reader, writer):
    """Announce 100 bytes, send three, and close."""
    writer.write((100).to_bytes(4, "big") + b"\0\0\0")
    writer.close()


def silent(reader, writer):
    """Close at once."""
    writer.close()


def endless(reader, writer):
    """Announce a frame that is too large."""
    writer.write(b"\x7f\xff\xff\xff")


def strange(reader, writer):
    """Send a response to no request."""
    writer.write((12).to_bytes(4, "big") + b"what is it??")


@pytest.mark.parametrize(
    ("serve", "problem"),
    [
        (torn, "closed the connection in the middle of a response"),
        (silent, "closed the connection before its first response|reset by peer"),
        (endless, "a frame of 2,147,483,647 bytes"),
        (strange, "answer to API_VERSIONS"),
    ],
)
def test_a_broker_that_breaks_the_protocol_is_tried_again(serve, problem):
    async def work():
        visits = []

        def served(reader, writer):
            visits.append(writer)
            serve(reader, writer)

        server = await asyncio.start_server(served, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            async with member(f"{host}:{port}") as consumer:
                await polled(consumer, until=lambda _: len(visits) > 2)
                assert consumer.state is MemberState.UNJOINED
                assert search(problem, consumer.last_disconnect)
            for writer in visits:
                writer.close()

    run(work())


def test_an_invalid_host_counts_as_disconnected():
    async def work():
        lost = asyncio.get_running_loop().create_future()
        links = Links([Place("a..b", 9092)], "me", received=print, lost=lambda *said: lost.set_result(said))
        links.send(-1, 1, MetadataRequest(topics=()))
        assert await lost == (-1, "broker: 'a..b' cannot be the name of a host")
        await links.close()

    run(work())


def test_one_address_that_responds_is_enough():
    async def work():
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            nobody = f"127.0.0.1:{unused.getsockname()[1]}"
            async with broker() as kafka:
                async with member(kafka, bootstrap_servers=f"{nobody}, {kafka.address}") as consumer:
                    await settled(consumer)
                async with member(kafka, bootstrap_servers=[kafka.address, nobody]) as consumer:
                    await settled(consumer)

    run(work())
