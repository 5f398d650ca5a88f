"""``rebalance-lab consume``: output, commits, signals and errors."""

import asyncio
import signal
import subprocess
from contextlib import contextmanager

import pytest

from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import AdminClient
from tests.rebalance_kafka.live import broker, produce, run
from tests.rebalance_kafka.served import Served
from tests.rebalance_lab.cli.commands import COMMAND, environment, the_error


def options_of(address):
    return ("--bootstrap-server", address, "--group", "g", "--topic", "t")


async def committed_at(address):
    async with AdminClient(places_of(address, "here")) as admin:
        return await admin.committed("g")


def test_records_beyond_the_limit_are_neither_printed_nor_committed(lab, kafka_broker):
    address = kafka_broker({"t": 2}).address
    for partition in (0, 1):
        asyncio.run(produce(address, partition, *(b"%d" % n for n in range(4))))
    printed = []
    for most in (3, 5):
        answer = lab("consume", *options_of(address), "--max-records", most, "--from-beginning")
        assert answer.status == 0, answer.err
        lines = answer.out.splitlines()
        assert len(lines) == most
        printed += lines
    expected = [f"t\t{partition}\t{n}\t{n}" for partition in (0, 1) for n in range(4)]
    assert sorted(printed) == expected
    assert asyncio.run(committed_at(address)) == {("t", 0): 4, ("t", 1): 4}


def test_a_member_of_a_consumer_group_reads_records(lab, kafka_broker):
    """The coordinator runs the assignor, also after the member has left."""
    address = kafka_broker({"t": 1}).address
    asyncio.run(produce(address, 0, b"0"))
    options = ("--protocol", "consumer", "-s", "range", "--max-records", 1, "--from-beginning")
    answer = lab("consume", *options_of(address), *options)
    assert (answer.status, answer.out) == (0, "t\t0\t0\t0\n"), answer.err
    options = ("--protocol", "consumer", "-s", "sticky", "--max-records", 1)
    answer = lab("consume", *options_of(address), *options)
    assert answer.status == 2
    found = "UNSUPPORTED_ASSIGNOR: ServerAssignor sticky is not supported. Supported assignors: uniform"
    assert found in answer.err


@pytest.mark.slow
def test_records_that_could_not_be_printed_are_not_committed():
    async def work():
        async with broker({"t": 1}) as kafka:
            await produce(kafka.address, 0, *(b"x" * 1_000 for _ in range(400)))
            with started(kafka.address, "--from-beginning") as process:
                line = await asyncio.to_thread(process.stdout.readline)
                process.stdout.close()
                assert line.startswith(b"t\t0\t0\t")
                assert await asyncio.to_thread(process.wait, 60) == 1
            assert (await committed_at(kafka.address)).get(("t", 0), 0) < 400

    run(work())


@contextmanager
def started(address, *options):
    """Start the command in a process, which is killed on leaving the block."""
    command = [*COMMAND, "consume", *options_of(address), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_missing_topic_is_reported():
    async def work():
        async with broker({"u": 1}) as kafka:
            with started(kafka.address) as process:
                lines = [await asyncio.to_thread(process.stderr.readline) for _ in range(2)]
                process.terminate()
                assert await asyncio.to_thread(process.wait, 60) == 0
        assert b"waiting for topics: t (UNKNOWN_TOPIC_OR_PARTITION)\n" in lines

    run(work())


@pytest.mark.slow
def test_the_second_signal_does_not_wait_for_the_broker():
    options = ("--topic", "t=1", "--set", "group.initial.rebalance.delay.ms=0")
    with Served(*options) as served, started(served.address()) as process:
        assert process.stderr.readline() == b"assigned: t-0\n"
        served.freeze()
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b"revoked: t-0\n"


def test_settings_may_be_words(lab, kafka_broker):
    address = kafka_broker({"t": 4}).address
    asyncio.run(produce(address, 0, b"x"))
    settings = ("--set", "auto.offset.reset=earliest", "--set", "client.rack=r")
    answer = lab("consume", *options_of(address), "--max-records", 1, *settings)
    assert (answer.status, answer.out) == (0, "t\t0\t0\tx\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "session.timeout.ms"), "NAME=VALUE, such as session.timeout.ms=10000"),
        (("--set", "session.timeout.ms=soon"), "session.timeout.ms: found 'soon', expected a duration"),
        (("--set", "session.timeout.ms=99999999999"), "from 0 to 2,147,483,647"),
        (("--set", "auto.offset.reset=middle"), "earliest, latest, none"),
        (("--instance-id", ""), "group.instance.id: found ''"),
        (("-s", "nothing"), "found 'nothing'"),
    ],
)
def test_wrong_options_are_one_error(lab, options, message):
    assert message in the_error(lab("consume", *options_of("127.0.0.1:9"), *options))
