"""Consume, transform and produce in transactions: every record counts once, whatever is killed."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from random import Random
from time import monotonic

import pytest

from tests.places import ROOT
from tests.rebalance_kafka.peers import missing
from tests.rebalance_kafka.proxy import Proxy, strike
from tests.rebalance_kafka.served import Served, serving

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.killed]

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

SECONDS, LIMIT_SECONDS = 60.0, 240.0
QUIET = {"log_level": 0}
PARTITIONS, RECORDS = 4, 200
OPTIONS = (
    *("--topic", f"input={PARTITIONS}", "--topic", f"output={PARTITIONS}"),
    *("--set", "group.initial.rebalance.delay.ms=0", "--set", "group.min.session.timeout.ms=500"),
)
DIES_BEFORE_THE_MARKERS = (
    "import os, signal; from rebalance_kafka.broker.transactions import Transactions;"
    " Transactions._write_markers = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
)
VALUES = [b"value-%d" % number for number in range(RECORDS)]
EXPECTED = sorted(value.upper() for value in VALUES)


class Transformer:
    """A process of `peers.transformer`, or of Java's, which is killed at the end of the block."""

    def __init__(self, address, name, stop_after=-1, *, kind="transformer", protocol="classic"):
        command = [sys.executable, "-m", f"tests.rebalance_kafka.peers.{kind}"]
        self.process = subprocess.Popen(
            [*command, address, name, str(stop_after), protocol],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            encoding="utf-8",
        )

    def wait_for_its_transaction(self):
        assert self.process.stdout.readline() == "in a transaction\n"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


def fill(address):
    producer = confluent_kafka.Producer({"bootstrap.servers": address, **QUIET})
    for number, value in enumerate(VALUES):
        producer.produce("input", value, partition=number % PARTITIONS)
    assert producer.flush(SECONDS) == 0


class Reader:
    """Reads all partitions of the output from the start."""

    def __init__(self, address, isolation):
        self.values = []
        self._client = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reader",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        places = [confluent_kafka.TopicPartition("output", number, 0) for number in range(PARTITIONS)]
        self._client.assign(places)

    def read(self, seconds=0.1):
        messages = self._client.consume(500, seconds)
        assert not any(message.error() for message in messages)
        self.values += [message.value() for message in messages]

    def read_until(self, condition):
        end = monotonic() + LIMIT_SECONDS
        while not condition(self.values):
            assert monotonic() < end, f"{len(self.values)} values are read"
            self.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._client.close()


def committed_offsets(address):
    client = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "transformers", **QUIET})
    places = [confluent_kafka.TopicPartition("input", number) for number in range(PARTITIONS)]
    found = client.committed(places, timeout=SECONDS)
    client.close()
    return [place.offset for place in found]


SETTINGS = {
    "group.min.session.timeout.ms": 500,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.session.timeout.ms": 2_000,
}
JAVA = "java_transformer"
NEEDS_JAVA = pytest.mark.skipif(bool(missing("java")), reason="there is no Java client")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    "kinds",
    [
        ("transformer", "transformer"),
        pytest.param(
            (JAVA, "transformer"), marks=pytest.mark.skipif(bool(missing("java")), reason="no Java")
        ),
    ],
)
def test_every_record_counts_once_through_crashes_and_rebalances(kafka_broker, kinds, protocol):
    broker = kafka_broker(topics={"input": PARTITIONS, "output": PARTITIONS}, settings=SETTINGS)
    address = broker.address
    fill(address)
    with ExitStack() as stack:

        def begun(name, **given):
            kind = kinds[name == "second"]
            return stack.enter_context(Transformer(address, name, kind=kind, protocol=protocol, **given))

        first = begun("first", stop_after=2)
        first.wait_for_its_transaction()
        second = begun("second", stop_after=2)
        first.kill()
        second.wait_for_its_transaction()
        begun("first")
        second.kill()
        begun("second")
        committed = stack.enter_context(Reader(address, "read_committed"))
        committed.read_until(lambda values: len(values) >= RECORDS)
        everything = stack.enter_context(Reader(address, "read_uncommitted"))
        everything.read_until(lambda values: len(values) > RECORDS)
        committed.read(1.0)
    assert sorted(committed.values) == EXPECTED
    assert set(everything.values) == set(EXPECTED)
    assert sum(committed_offsets(address)) == RECORDS


async def read_behind_faults(kinds, protocol, seed):
    """Let two processes transform everything behind a faulty network, and return what is read.

    A process that ends, because it cannot know the outcome of a transaction, is started again.
    """
    loop, settings = asyncio.get_running_loop(), [f"--set={name}={value}" for name, value in SETTINGS.items()]
    async with Proxy() as proxy:
        with ExitStack() as stack:
            broker = stack.enter_context(Served(*OPTIONS, *settings, "--advertise", proxy.address))
            address = proxy.broker = await loop.run_in_executor(None, broker.address)
            await loop.run_in_executor(None, fill, address)

            def begun(number):
                found = Transformer(proxy.address, f"t{number}", kind=kinds[number], protocol=protocol)
                return stack.enter_context(found)

            processes = [begun(number) for number in range(2)]
            striking = asyncio.create_task(strike(proxy, Random(seed)))
            committed = stack.enter_context(Reader(address, "read_committed"))
            end = monotonic() + LIMIT_SECONDS
            while len(committed.values) < RECORDS or not striking.done():
                assert monotonic() < end, f"{len(committed.values)} values are read"
                await loop.run_in_executor(None, committed.read)
                for number, each in enumerate(processes):
                    if each.process.poll() is not None:
                        processes[number] = begun(number)
            await loop.run_in_executor(None, committed.read, 1.0)
            return committed.values, await loop.run_in_executor(None, committed_offsets, address)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    "kinds", [("transformer", "transformer"), pytest.param((JAVA, JAVA), marks=NEEDS_JAVA)]
)
def test_every_record_counts_once_behind_a_faulty_network(kinds, protocol):
    values, offsets = asyncio.run(read_behind_faults(kinds, protocol, seed=3))
    assert sorted(values) == EXPECTED
    assert sum(offsets) == RECORDS


def test_every_record_counts_once_though_the_broker_is_killed(tmp_path):
    with ExitStack() as stack:
        broker = stack.enter_context(serving(tmp_path, "127.0.0.1:0", OPTIONS))
        address = broker.address()
        fill(address)
        for name in ("first", "second"):
            stack.enter_context(Transformer(address, name))
        committed = stack.enter_context(Reader(address, "read_committed"))
        for count in (RECORDS // 8, RECORDS // 2):
            committed.read_until(lambda values, enough=count: len(values) >= enough)
            broker.kill()
            broker = stack.enter_context(serving(tmp_path, address, OPTIONS))
            assert broker.address() == address
        committed.read_until(lambda values: len(values) >= RECORDS)
        committed.read(1.0)
        assert sum(committed_offsets(address)) == RECORDS
    assert sorted(committed.values) == EXPECTED


def test_a_broker_that_is_killed_before_the_markers_writes_them_at_its_start(tmp_path):
    with ExitStack() as stack:
        broker = stack.enter_context(Served("--data-dir", tmp_path, *OPTIONS, before=DIES_BEFORE_THE_MARKERS))
        address = broker.address()
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "transactional.id": "x", "reconnect.backoff.max.ms": 200, **QUIET}
        )
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        producer.produce("output", b"one", partition=0)
        with ThreadPoolExecutor(1) as background:
            ended = background.submit(producer.commit_transaction, SECONDS)
            broker.ended()
            stack.enter_context(serving(tmp_path, address, OPTIONS)).address()
            ended.result(SECONDS)
        committed = stack.enter_context(Reader(address, "read_committed"))
        committed.read_until(lambda values: values == [b"one"])
