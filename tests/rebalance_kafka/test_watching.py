"""``watch``: what the looks at a group show, and the trace of them."""

import asyncio
from dataclasses import replace

import pytest

from coordinator_core.model import Partitions, Subscription, TopicPartition
from rebalance_kafka import Consumer
from rebalance_kafka.addresses import places_of
from rebalance_kafka.commands.watch import _look, _watch
from rebalance_kafka.consumer.admin_client import AdminClient
from rebalance_kafka.snapshot import Described, Member
from rebalance_kafka.watching import Watch
from rebalance_lab.traces.history import History
from rebalance_logs.causes import diagnose
from rebalance_logs.findings import Cause
from tests.rebalance_kafka.live import broker, member, polled, run, settled

QUICK = {"group.consumer.heartbeat.interval.ms": 50, "group.consumer.assignment.interval.ms": 0}


def group(state, **owned):
    """The look at a group: the number of each member's process, and the partitions that it owns."""
    members = [
        Member(
            name,
            f"{name}-{process}",
            None,
            None,
            Subscription(("t",)),
            Partitions.of([TopicPartition("t", number) for number in numbers]),
        )
        for name, (process, numbers) in owned.items()
    ]
    return Described(state, members, [], "range")


def seen(*looks):
    """A look every second: the lines, and the trace."""
    watch, lines = Watch("g"), []
    for number, look in enumerate(looks):
        lines.append(watch.see(look, {}, now_ms=1_000_000 + 1_000 * number))
    return lines, watch.trace()


def test_a_round_is_a_line_with_its_length_and_who_came_and_went():
    lines, _ = seen(
        group("Stable", a=(1, [0]), b=(1, [1])),
        group("Stable", a=(1, [0]), b=(1, [1])),
        group("PreparingRebalance", a=(1, []), b=(1, [])),
        group("CompletingRebalance", a=(1, [])),
        group("Stable", a=(1, [0, 1])),
    )
    assert lines == [
        ["Stable: a and b joined, 2 members with 1 partition each"],
        [],
        ["PreparingRebalance: 2 members"],
        ["CompletingRebalance: 1 member"],
        ["Stable after 2.0 s: b gone, a has other partitions, 1 member with 2 partitions"],
    ]


def test_a_round_between_two_looks_shows_by_its_result():
    lines, trace = seen(group("Stable", a=(1, [0]), b=(1, [1])), group("Stable", a=(1, [0, 1])))
    assert lines[1] == ["Stable after 1.0 s: b gone, a has other partitions, 1 member with 2 partitions"]
    assert History(trace).rounds == 2


def test_a_member_that_was_restarted_is_another_one():
    lines, _ = seen(group("Stable", a=(1, [0])), group("Stable", a=(2, [0])))
    assert lines[1] == ["Stable after 1.0 s: a joined, 1 member with 1 partition"]


def test_members_that_share_a_client_id_keep_their_names_when_one_of_them_leaves():
    """In a look they are numbered in order: the second of three is gone, and later a fourth joins."""
    app = [
        Member(f"app-{n}", f"id-{n}", None, None, Subscription(("t",)), Partitions.of([])) for n in range(4)
    ]
    looks = (
        app[:3],
        [app[0], replace(app[2], name="app-1")],
        [app[0], replace(app[3], name="app-1"), app[2]],
    )
    lines, _ = seen(*(Described("Stable", members, [], "range") for members in looks))
    assert [line.partition(": ")[2].rpartition(", ")[0] for (line,) in lines] == [
        "app-0, app-1 and app-2 joined",
        "app-1 gone",
        "app-1 joined",
    ]


def test_the_trace_has_who_owned_what():
    _, trace = seen(group("Stable", a=(1, [0]), b=(1, [1])), group("Stable", a=(1, [0, 1])))
    spans = History(trace).spans
    assert [(s.client, s.from_ms) for s in spans[TopicPartition("t", 1)]] == [("b", 0), ("a", 1_000)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_group_is_watched(protocol, capsys, tmp_path):
    found = {}

    async def watched():
        async def look():
            async with AdminClient(places_of(kafka.address, "here")) as admin:
                await _look(admin, "g", found, several=False)

        def one(seed):
            own = {"heartbeat.interval.ms": 50} if protocol == "classic" else {}
            options = {"bootstrap_servers": kafka.address, "group_id": "g", "protocol": protocol}
            return Consumer("t", settings=own, seed=seed, **options)

        async with broker(settings=QUICK) as kafka, one(1) as a:
            await polled(a, until=lambda _: len(a.assignment) == 4)
            await look()
            async with one(2) as b:
                await polled(a, b, until=lambda _: len(a.assignment) == len(b.assignment) == 2)
                await look()
                assert len(found["g"].members) == 2
        assert found["g"].trace().started.topics == {"t": 4}

    run(watched())
    first, second = capsys.readouterr().out.splitlines()
    assert "1 member with 4 partitions" in first
    assert "2 members with 2 partitions each" in second
    path = tmp_path / "g.jsonl"
    path.write_bytes(found["g"].trace().encode())
    (diagnosis,) = diagnose(path)
    assert [cause.cause for cause in diagnosis.causes] == [Cause.MEMBER_JOINED]
    assert diagnosis.group.is_consumer_protocol == (protocol == "consumer")


def test_a_broker_that_comes_back_is_looked_at_again(capsys):
    async def watched():
        found = {}
        async with broker() as kafka:
            place = places_of(kafka.address, "here")
            looking = asyncio.create_task(_watch(place, {}, ["g"], found, 0.05, None))
            async with member(kafka) as a:
                await settled(a)
                await _until(lambda: "g" in found and len(found["g"].members) == 1)
        await _until(lambda: "trying again" in capsys.readouterr().err)
        seen = len(found["g"].events)
        async with broker(port=place[0].port) as kafka, member(kafka, seed=2) as a:
            await settled(a)
            await _until(lambda: len(found["g"].events) > seen)
        looking.cancel()

    run(watched())


async def _until(is_so):
    while not is_so():
        await asyncio.sleep(0.02)


def test_a_command_that_watches_nothing_is_refused(lab):
    answer = lab("watch", "--bootstrap-server", "localhost:1")
    assert answer.status == 2
    assert "--group, --all-groups: found neither, expected one of them" in answer.err


def test_brokers_that_are_gone_are_waited_for(lab, tmp_path):
    trace = tmp_path / "t.jsonl"
    answer = lab(
        "watch",
        "--bootstrap-server",
        "127.0.0.1:1",
        "--group",
        "g",
        "--for",
        "200ms",
        "--every",
        "100ms",
        "--trace",
        trace,
    )
    assert (answer.status, answer.out) == (0, "")
    assert "trying again" in answer.err
    assert not trace.exists()


def test_requests_are_counted_for_the_pause_between_groups():
    async def counted():
        async with broker() as kafka, AdminClient(places_of(kafka.address, "here")) as admin:
            assert admin.sent == 0
            await admin.groups()
            assert admin.sent == 2  # the brokers, and the groups of the one

    run(counted())
