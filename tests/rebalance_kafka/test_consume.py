"""``rebalance-lab consume`` as a process: what it prints, what it leaves, and what it refuses."""

import asyncio
import signal
import subprocess
from contextlib import contextmanager

import pytest

from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.asking import Asking
from tests.coordinator_core.cli.commands import COMMAND, environment, in_a_process
from tests.rebalance_kafka.live import broker, produce, run
from tests.rebalance_kafka.served import Served


async def consumed(kafka, *options):
    to = ("--bootstrap-server", kafka.address, "--group", "g", "--topic", "t")
    return await asyncio.to_thread(in_a_process, "consume", *to, *options)


def test_of_a_limit_of_records_what_is_beyond_is_neither_printed_nor_committed():
    async def work():
        async with broker({"t": 2}) as kafka:
            for partition in (0, 1):
                await produce(kafka.address, partition, *(b"%d" % n for n in range(4)))
            printed = []
            for most in (3, 5):
                answer = await consumed(kafka, "--max-records", most, "--from-beginning")
                assert answer.returncode == 0, answer.stderr
                lines = answer.stdout.decode().splitlines()
                assert len(lines) == most
                printed += lines
            async with Asking(places_of(kafka.address, "here")) as asking:
                committed = await asking.committed("g")
        wanted = [f"t\t{partition}\t{n}\t{n}" for partition in (0, 1) for n in range(4)]
        assert sorted(printed) == wanted
        assert committed == {("t", 0): 4, ("t", 1): 4}

    run(work())


def test_what_could_not_be_printed_is_not_committed():
    async def work():
        async with broker({"t": 1}) as kafka:
            await produce(kafka.address, 0, *(b"x" * 1_000 for _ in range(400)))
            with started(kafka.address, "--from-beginning") as process:
                line = await asyncio.to_thread(process.stdout.readline)
                process.stdout.close()
                assert line.startswith(b"t\t0\t0\t")
                assert await asyncio.to_thread(process.wait, 20) == 1
            async with Asking(places_of(kafka.address, "here")) as asking:
                assert (await asking.committed("g")).get(("t", 0), 0) < 400

    run(work())


@contextmanager
def started(address, *options):
    """Its process; killed when it is left."""
    to = ("--bootstrap-server", address, "--group", "g", "--topic", "t")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, "consume", *to, *options], env=environment(), **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_topic_that_is_not_there_is_said():
    async def work():
        async with broker({"u": 1}) as kafka:
            with started(kafka.address) as process:
                lines = [await asyncio.to_thread(process.stderr.readline) for _ in range(2)]
                process.terminate()
                assert await asyncio.to_thread(process.wait, 20) == 0
        assert b"waiting for topics: t (UNKNOWN_TOPIC_OR_PARTITION)\n" in lines

    run(work())


def test_the_second_signal_does_not_wait_for_the_broker():
    options = ("--topic", "t=1", "--set", "group.initial.rebalance.delay.ms=0")
    with Served(*options) as served, started(served.address()) as process:
        assert process.stderr.readline() == b"assigned: t-0\n"
        served.freeze()
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == b"revoked: t-0\n"


def test_settings_may_be_words():
    async def work():
        async with broker() as kafka:
            await produce(kafka.address, 0, b"x")
            settings = ("--set", "auto.offset.reset=earliest", "--set", "client.rack=r")
            answer = await consumed(kafka, "--max-records", 1, *settings)
        assert (answer.returncode, answer.stdout) == (0, b"t\t0\t0\tx\n")

    run(work())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "session.timeout.ms"), "NAME=VALUE, such as session.timeout.ms=10000"),
        (("--set", "session.timeout.ms=soon"), "session.timeout.ms: found 'soon', expected a whole number"),
        (("--set", "session.timeout.ms=99999999999"), "from 0 to 2,147,483,647"),
        (("--set", "auto.offset.reset=middle"), "earliest, latest, none"),
        (("--instance-id", ""), "group.instance.id: found ''"),
        (("-s", "nothing"), "found 'nothing'"),
    ],
)
def test_wrong_options_are_one_error(options, said):
    to = ("--bootstrap-server", "127.0.0.1:9", "--group", "g", "--topic", "t")
    answer = in_a_process("consume", *to, *options)
    assert (answer.returncode, answer.stdout) == (2, b"")
    (line,) = answer.stderr.decode().splitlines()
    assert line.startswith("error: ")
    assert said in line
