"""``rebalance-lab serve``: output, shutdown and errors."""

import asyncio
import json
import socket

import pytest

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from rebalance_kafka.wire.frames import decode_response
from tests.examples import rest_slow
from tests.rebalance_kafka.damage import request
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.served import Served, serving
from tests.rebalance_kafka.stand import Line, within
from tests.rebalance_lab.cli.commands import the_error
from tests.written import FIFO, check_written

pytest.importorskip("resource", reason="SIGTERM is for systems that have it")

QUICK = ("--set", "group.initial.rebalance.delay.ms=0")


def talking(served, talk):
    """What a client gets from a process."""

    async def talked():
        line = await Line.to(served.address())
        answer = await talk(line)
        await line.close()
        return answer

    return asyncio.run(talked())


async def join(line, group="g"):
    return await line.ask(Api.JOIN_GROUP, 3, group_id=group)


@pytest.mark.parametrize("stop", rest_slow(["terminate", "interrupt"]))
def test_the_address_is_all_that_is_on_stdout_and_the_status_is_0(stop):
    """Port 0 stands for any free port on the given host."""
    with Served("--topic", "orders=3", listen="127.0.0.1:0") as served:
        metadata = talking(served, lambda line: line.ask(Api.METADATA, 9, topics=None))
        assert [(topic.name, len(topic.partitions)) for topic in metadata.topics] == [("orders", 3)]
        (node,) = metadata.brokers
        assert node.host == "127.0.0.1"
        assert node.port > 0
        getattr(served, stop)()
        assert served.ended() == (0, "", "stopping ...\n")


@pytest.mark.slow
def test_requests_in_progress_are_answered_before_the_end():
    """A Fetch that waits for records, on a connection that has another request behind it."""

    async def asked(line):
        line.writer.write(request(Api.FETCH, 9, topics=(), min_bytes=1, max_wait=1))
        await within(line.frame())
        waits = {"topic": "orders", "partitions": ({"partition": 0, "fetch_offset": 0},)}
        waits["partitions"][0]["partition_max_bytes"] = 1_000
        line.writer.write(request(Api.FETCH, 9, topics=(waits,), max_wait=1_000))
        beside = await Line.to("{}:{}".format(*line.writer.get_extra_info("peername")))
        await beside.ask(Api.METADATA, 9)  # the Fetch has come by now, most likely
        served.terminate()
        correlation, answer = decode_response(Api.FETCH, 9, await within(line.frame()))
        assert correlation == 7
        assert answer.responses[0].partitions[0].error_code == 0
        assert await line.rest() == b""
        assert await beside.rest() == b""
        await beside.close()

    with Served("--topic", "orders=1") as served:
        talking(served, asked)
        assert served.ended()[0] == 0


@pytest.mark.slow
def test_a_client_that_waits_forever_does_not_prevent_shutdown():
    async def parked(line):
        joined = await join(line)
        other = await Line.to("{}:{}".format(*line.writer.get_extra_info("peername")))
        other.writer.write(request(Api.JOIN_GROUP, 3, group_id="g", rebalance_timeout=600_000))
        again = {"group_id": "g", "member_id": joined.member_id, "generation_id": 1}

        async def in_a_round():
            return (await line.ask(Api.HEARTBEAT, 3, **again)).error_code == ErrorCode.REBALANCE_IN_PROGRESS

        while not await in_a_round():
            pass
        served.terminate()
        assert await other.rest() == b""
        await other.close()

    with Served(
        *QUICK, before="from rebalance_kafka.broker import embedded; embedded.DRAIN_SECONDS = 0.3"
    ) as served:
        talking(served, parked)
        assert served.ended()[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "names"),
    [
        pytest.param(("g",), ["trace.json"], marks=pytest.mark.slow),
        (("a/b", "a_b", ".."), ["trace.json...", "trace.json.a%2Fb", "trace.json.a_b"]),
        pytest.param(
            ("x" * 300, "y"), ["trace.json." + "x" * 100 + "-{}", "trace.json.y"], marks=pytest.mark.slow
        ),
    ],
)
def test_the_trace_is_written_at_the_end(tmp_path, groups, names):
    async def joined(line):
        for group in groups:
            await join(line, group)

    with Served(*QUICK, "--assignor-trace", tmp_path / "trace.json") as served:
        talking(served, joined)
        served.terminate()
        assert served.ended()[0] == 0
    written = sorted(tmp_path.iterdir())
    assert len(written) == len(names)
    for path, name in zip(written, names, strict=True):
        before, _, _ = name.partition("{}")
        assert path.name.startswith(before)
        first, *_ = path.read_bytes().splitlines()
        assert json.loads(first)


@pytest.mark.slow
def test_a_fifo_gets_the_traces_of_all_groups(tmp_path):
    async def joined(line):
        for group in ("a", "b"):
            await join(line, group)

    def served_to(path):
        with Served(*QUICK, "--assignor-trace", path) as served:
            talking(served, joined)
            served.terminate()
            assert served.ended()[0] == 0

    written = check_written(served_to, tmp_path / "place" / "trace.json", FIFO)
    assert written.count(b'"RunStarted"') == 2


def test_a_trace_without_a_group_is_reported_as_not_written(tmp_path):
    path = tmp_path / "trace.json"
    with Served(*QUICK, "--assignor-trace", path) as served:
        served.address()
        served.terminate()
        status, _, err = served.ended()
    assert (status, path.exists()) == (0, False)
    assert "is not written: no member has joined a group" in " ".join(err.split())


@pytest.mark.slow
def test_clients_that_break_the_protocol_are_reported_on_stderr():
    async def wrong(line):
        line.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        return await line.rest()

    with Served() as served:
        assert talking(served, wrong) == b""
        served.terminate()
        status, out, err = served.ended()
    assert (status, out) == (0, "")
    assert err.splitlines() == [
        "a connection is closed: a frame of 1,195,725,856 bytes, expected 104,857,600 at most",
        "stopping ...",
    ]


# --- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--listen", "nowhere"), "--listen"),
        (("--listen", "127.0.0.1:70000"), "HOST:PORT"),
        (("--listen", "a..b:0"), "HOST:PORT"),
        (("--listen", "127.0.0.1:0", "--topic", "orders=none"), "NAME=PARTITIONS"),
        (("--listen", "127.0.0.1:0", "--topic", "or ders=1"), "found 'or ders', expected 1 to 249"),
        (("--listen", "127.0.0.1:0", "--topic", "orders=1000000"), "1000000 partitions"),
        (("--listen", "127.0.0.1:0", "--set", "group.max.size"), "NAME=VALUE"),
        (("--listen", "127.0.0.1:0", "--set", "group.max.size=-5"), "group.max.size: found '-5', expected"),
        (("--listen", "127.0.0.1:0", "--set", f"group.max.size={10**20}"), "a whole number from 0 to"),
        (("--listen", "127.0.0.1:0", "--advertise", "here"), "--advertise: found 'here', expected HOST:PORT"),
        (("--listen", "127.0.0.1:0", "--set", "group.max.sise=5"), "group.max.sise"),
        (
            ("--listen", "127.0.0.1:0", "--set", "group.initial.rebalance.delay.ms=10 parsecs"),
            "group.initial.rebalance.delay.ms: found '10 parsecs', expected a duration such as",
        ),
        (("--listen", "127.0.0.1:0", "--set", "group.max.size=10s"), "group.max.size: found '10s', expected"),
        (("--listen", "127.0.0.1:0", "--assignor-trace", "/nowhere/at/all/trace"), "cannot be written"),
        (("--listen", "127.0.0.1:0", "--data-dir", "/dev/null/data"), "a folder to write to"),
        (("--listen", "192.0.2.1:9092"), "an address to listen on"),
        (("--listen", "127.0.0.1:0", "--mechanism", "PLAIN"), "--mechanism: found no user, expected --user"),
    ],
)
def test_wrong_options_are_one_error(lab, options, message):
    assert message in the_error(lab("serve", *options))


async def written_until_it_ends(address, sent, acknowledged):
    """Write numbered records and commit their number, each batch again until it is acknowledged."""
    line = await Line.to(address)
    try:
        while True:
            records = batch(b"%d" % sent[0], producer=(7, 0, sent[0]))
            topic = {"name": "t", "partition_data": ({"index": 0, "records": records},)}
            answer = await line.ask(Api.PRODUCE, 9, topic_data=(topic,))
            (row,) = answer.responses[0].partition_responses
            assert (row.error_code, row.base_offset) == (0, sent[0])
            offset = {"partition_index": 0, "committed_offset": sent[0], "committed_leader_epoch": -1}
            topics = ({"name": "t", "partitions": ({**offset, "committed_metadata": ""},)},)
            committed = await line.ask(Api.OFFSET_COMMIT, 8, group_id="g", topics=topics)
            assert committed.topics[0].partitions[0].error_code == 0
            acknowledged[0] = sent[0]
            sent[0] += 1
    except (OSError, EOFError):
        line.abort()


@pytest.mark.slow
@pytest.mark.killed
def test_a_broker_that_is_killed_loses_no_acknowledged_write(tmp_path):
    """Longer and with clients: test_exactly_once.py."""
    sent, acknowledged, listen = [0], [-1], "127.0.0.1:0"

    async def work(address, served, seconds):
        killing = asyncio.get_running_loop().call_later(seconds, served.kill)
        await written_until_it_ends(address, sent, acknowledged)
        killing.cancel()

    async def read(address):
        line = await Line.to(address)
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10**7}
        topics = ({"topic": "t", "partitions": (part,)},)
        fetched = await line.ask(Api.FETCH, 12, topics=topics, max_bytes=10**7)
        offsets = await line.ask(Api.OFFSET_FETCH, 7, group_id="g", topics=None)
        await line.close()
        return records_of(fetched.responses[0].partitions[0].records)[0], offsets.topics[0].partitions[0]

    for seconds in (0.05, 0.2):
        with serving(tmp_path, listen, ("--topic", "t", *QUICK)) as served:
            listen = served.address()
            asyncio.run(work(listen, served, seconds))
    with serving(tmp_path, listen) as served:
        records, offset = asyncio.run(read(served.address()))
    assert [record.value for record in records] == [b"%d" % number for number in range(len(records))]
    assert acknowledged[0] < len(records) <= sent[0] + 1
    assert acknowledged[0] <= offset.committed_offset <= sent[0]


@pytest.mark.slow
def test_a_second_process_on_the_same_folder_is_one_error(lab, tmp_path):
    with Served("--data-dir", tmp_path) as first:
        first.address()
        second = lab("serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path)
        assert "a broker's data that no other process uses" in the_error(second)
        first.terminate()
        assert first.ended()[0] == 0
    with Served("--data-dir", tmp_path) as successor:
        successor.address()


def test_an_address_in_use_is_one_error(lab):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
        assert f"{host}:{port}: found a port in use" in the_error(lab("serve", "--listen", f"{host}:{port}"))


def test_a_file_of_another_format_is_one_error(lab, tmp_path):
    (tmp_path / "broker.sqlite").write_bytes(b"something else entirely, and longer than nothing" * 100)
    second = lab("serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path)
    assert "broker.sqlite" in the_error(second)
