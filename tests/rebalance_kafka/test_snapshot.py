"""Snapshots of live groups of our consumers, and the scenarios in them."""

import asyncio
import inspect
import json

import pytest
from msgspec import structs

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.registry.registry import default_registry
from rebalance_kafka import Consumer
from rebalance_kafka import snapshot as snapshots
from rebalance_kafka.addresses import places_of
from rebalance_kafka.commands.snapshot import _row, _yaml
from rebalance_kafka.consumer.admin_client import LATEST, AdminClient
from rebalance_kafka.snapshot import snapshot
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_spark.documents import workload_row
from tests.rebalance_kafka.frames import their_class
from tests.rebalance_kafka.live import Api, ask, broker, member, polled, produce, run, settled, values

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def named(kafka, name, *topics, **options):
    settings = {"client.id": name} | options.pop("settings", {})
    return member(kafka, *topics, settings=settings, **options)


async def taken(kafka, group="g", **options):
    async with AdminClient(places_of(kafka.address, "here")) as admin:
        return await snapshot(admin, group, **options)


def owned(scenario):
    return {
        each["id"]: {(topic, n) for topic, numbers in each["owned"].items() for n in numbers}
        for each in scenario["members"]
    }


def check(shot):
    """Check that the scenario loads, as a document and as text, and starts with the group's owners."""
    scenario = load_scenario_text(_yaml(shot), "snapshot.yaml")
    assert parse_scenario(json.loads(json.dumps(shot.scenario)), where="snapshot") == scenario
    row = workload_row("line", json.dumps(_row(shot)))
    assert row["scenario_id"] == shot.group_id
    assert load_scenario_text(row["scenario"], "row.json") == scenario
    trace = simulate(scenario, shot.strategy, default_registry())
    begun = {}
    for each in trace.events:
        if isinstance(each.event, ev.Assigned) and each.at_ms == 0:
            begun[each.event.client] = {(t, n) for t, ns in each.event.owned.items() for n in ns}
    assert begun == owned(shot.scenario)
    return scenario


# --- content


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_and_owned_partitions_agree_with_the_consumers(strategy):
    async def work():
        async with (
            broker({"t": 4, "u": 2}) as kafka,
            named(kafka, "a", "t", "u", strategy=strategy) as a,
            named(kafka, "b", "t", strategy=strategy) as b,
        ):
            await settled(a, b, partitions=6)
            shot = await taken(kafka)
            assert (shot.group_id, shot.strategy) == ("g", strategy)
            assert shot.scenario["name"] == "g"
            assert shot.scenario["topics"] == {"t": {"partitions": 4}, "u": {"partitions": 2}}
            assert {each["id"]: each["topics"] for each in shot.scenario["members"]} == {
                "a": ["t", "u"],
                "b": ["t"],
            }
            assert owned(shot.scenario) == {"a": set(a.assignment), "b": set(b.assignment)}
            check(shot)

    run(work())


def test_nothing_happens_in_the_scenario_that_nobody_asked_about():
    async def work():
        async with broker() as kafka, named(kafka, "new") as a:
            await settled(a)
            shot = await taken(kafka)
            assert (shot.scenario["events"], shot.scenario["duration"]) == ([], "5m")
            check(shot)
            alone = await taken(kafka, ask=("leave", "join"))
            assert alone.scenario["events"] == [{"at": "3m", "join": {"id": "new1", "topics": ["t"]}}]
            async with named(kafka, "b") as b:
                await settled(a, b)
                ask = ("leave", "join", "rolling_restart", "join", "crash")
                shot = await taken(kafka, ask=ask)
                leave, join, roll, second = shot.scenario["events"]  # nobody would be left to crash
                assert leave == {"at": "1m", "leave": shot.scenario["members"][-1]["id"]}
                assert (join["at"], join["join"]["id"]) == ("3m", "new1")
                assert roll == {"at": "5m", "rolling_restart": {"every": "20s", "down": "5s"}}
                assert (second["at"], second["join"]["id"]) == ("8m", "new2")
                assert shot.scenario["duration"] == "12m"
                assert "&" not in _yaml(shot)
                check(shot)
                (crash,) = (await taken(kafka, ask=["crash"])).scenario["events"]
                assert crash == {"at": "1m", "crash": shot.scenario["members"][-1]["id"]}

    run(work())


@pytest.mark.parametrize(
    ("client_id", "client"),
    [
        ("consumer-shop-1", "java"),
        ("rdkafka", "librdkafka"),
        ("kafka-python-3.0.12", "kafka-python"),
        ("aiokafka-0.14.0", "aiokafka"),
        ("kgo", "franz-go"),
        ("consumer-shop", None),
        ("my-rdkafka", None),
    ],
)
def test_a_default_client_id_tells_the_library(client_id, client):
    assert snapshots.client_of(client_id) == client


def test_the_client_ids_are_those_of_the_libraries():
    kafka_python, aiokafka = pytest.importorskip("kafka"), pytest.importorskip("aiokafka")
    defaults = kafka_python.KafkaConsumer.DEFAULT_CONFIG
    assert snapshots.client_of(defaults["client_id"]) == "kafka-python"
    (client_id,) = [
        parameter.default
        for name, parameter in inspect.signature(aiokafka.AIOKafkaConsumer).parameters.items()
        if name == "client_id"
    ]
    assert snapshots.client_of(client_id) == "aiokafka"


def test_the_library_of_a_member_is_in_the_scenario_and_what_is_unknown_is_named(window):
    async def work():
        async with broker({"t": 2}) as kafka, named(kafka, "rdkafka") as a, named(kafka, "mine") as b:
            await settled(a, b, partitions=2)

            async def nothing():
                pass

            window.happens = nothing
            shot = await taken(kafka, window_seconds=10.0)
            clients = {each["id"]: each.get("client") for each in shot.scenario["members"]}
            assert clients == {"rdkafka": "librdkafka", "mine": None}
            rate, client, *_ = shot.unseen
            assert rate.startswith("process_rate of ")
            assert client == "client of mine: their client ids are their own"
            assert "--rates measures them" in (await taken(kafka)).unseen[0]
            check(shot)

    run(work())


def test_racks_and_instance_ids_are_included():
    async def work():
        settings = {"group.instance.id": "ada", "client.rack": "east"}
        async with broker() as kafka, named(kafka, "a", settings=settings) as a:
            await settled(a)
            shot = await taken(kafka)
            (reported,) = shot.scenario["members"]
            assert (reported["id"], reported["instance_id"], reported["rack"]) == ("ada", "ada", "east")
            check(shot)

    run(work())


def test_racks_of_replicas_are_included(monkeypatch):
    """As a cluster of brokers in racks describes its topics; here one broker has them all, in none."""
    described = AdminClient.metadata

    async def in_racks(admin, topics=None):
        answer = await described(admin, topics)
        placed = {"t": [("east", "west"), ("west",)], "u": [(), ()]}
        reported = [
            m.TopicMetadata(
                each.name,
                tuple(
                    structs.replace(partition, racks=racks)
                    for partition, racks in zip(each.partitions, placed[each.name], strict=True)
                ),
            )
            for each in answer.topics
        ]
        return structs.replace(answer, topics=tuple(reported))

    async def work():
        async with broker({"t": 2, "u": 2}) as kafka, named(kafka, "a", "t", "u") as a:
            await settled(a, partitions=4)
            monkeypatch.setattr(AdminClient, "metadata", in_racks)
            shot = await taken(kafka)
            assert shot.scenario["topics"]["t"]["racks"] == [["east", "west"], ["west"]]
            assert "racks" not in shot.scenario["topics"]["u"]
            assert check(shot).racks == {"t": (("east", "west"), ("west",))}

    run(work())


def test_equal_client_ids_are_numbered():
    async def work():
        async with (
            broker() as kafka,
            named(kafka, "a", seed=1) as one,
            named(kafka, "a", seed=2) as two,
            named(kafka, "a-0", seed=3) as three,
        ):
            await settled(one, two, three)
            shot = await taken(kafka)
            assert {each["id"] for each in shot.scenario["members"]} == {"a-0", "a-1", "a-2"}
            by_id = owned(shot.scenario)
            assert by_id["a-0"] == set(three.assignment)
            assert sorted((by_id["a-1"], by_id["a-2"]), key=sorted) == sorted(
                (set(one.assignment), set(two.assignment)), key=sorted
            )
            check(shot)

    run(work())


# --- lag and rates


def test_the_backlog_is_what_is_not_committed():
    async def work():
        async with broker({"t": 2, "u": 1}) as kafka, named(kafka, "a", "t", "u") as a:
            await produce(kafka.address, 0, *(b"%d" % n for n in range(5)))
            await produce(kafka.address, 1, b"0", b"1")
            await values(a, 7)
            assert (await taken(kafka)).scenario["topics"]["t"] == {"partitions": 2}  # nobody can tell
            await a.commit({T0: 3, T1: 1})
            shot = await taken(kafka)
            assert shot.scenario["topics"] == {
                "t": {"partitions": 2, "backlog": [2, 1]},
                "u": {"partitions": 1},
            }
            scenario = check(shot)
            assert scenario.topics["t"].backlog == (2, 1)

    run(work())


@pytest.fixture
def window(monkeypatch):
    """The snapshot's window is whatever a test puts there."""

    class Window:
        happens = None

        async def sleep(self, seconds):
            assert seconds == 10.0
            await self.happens()

    window = Window()
    doubled = type("asyncio", (), {"sleep": window.sleep, "get_running_loop": asyncio.get_running_loop})
    monkeypatch.setattr(snapshots, "asyncio", doubled)
    return window


def test_rates_are_measured_in_the_window(window):
    async def work():
        async with broker({"t": 2}) as kafka, named(kafka, "a") as a:
            await settled(a, partitions=2)
            await a.commit({T0: 0})

            async def happens():
                await produce(kafka.address, 0, *(b"x" for _ in range(25)))

            window.happens = happens
            shot = await taken(kafka, window_seconds=10.0)
            assert shot.scenario["topics"]["t"]["rates"] == [2.5, 0.0]
            assert shot.scenario["topics"]["t"]["backlog"] == [25, 0]
            assert "process_rate" not in shot.scenario["members"][0]
            check(shot)

    run(work())


def test_a_member_with_a_backlog_has_a_process_rate(window):
    async def work():
        async with broker({"t": 2}) as kafka, named(kafka, "a") as a:
            await produce(kafka.address, 0, *(b"x" for _ in range(20)))
            await produce(kafka.address, 1, *(b"x" for _ in range(20)))
            await values(a, 40)
            await a.commit({T0: 1, T1: 1})

            async def happens():
                await a.commit({T0: 9, T1: 13})

            window.happens = happens
            shot = await taken(kafka, window_seconds=10.0, ask=["join"])
            (reported,) = shot.scenario["members"]
            assert reported["process_rate"] == 2.0
            assert shot.scenario["events"][-1]["join"]["process_rate"] == 2.0
            check(shot)

    run(work())


def test_a_member_that_waited_for_records_has_no_process_rate(window):
    async def work():
        async with broker({"t": 1}) as kafka, named(kafka, "a") as a:
            await produce(kafka.address, 0, b"x")
            await values(a, 1)
            await a.commit({T0: 0})

            async def happens():
                await produce(kafka.address, 0, b"y", b"z")
                await a.commit({T0: 3})

            window.happens = happens
            shot = await taken(kafka, window_seconds=10.0)
            assert "process_rate" not in shot.scenario["members"][0]

    run(work())


def test_a_first_commit_in_the_window_gives_no_process_rate(window):
    """Where it was before, nobody knows: a member that begins at the end has handled nothing."""

    async def work():
        async with broker({"t": 1}) as kafka:
            await produce(kafka.address, 0, *(b"x" for _ in range(50)))
            async with named(kafka, "a", settings={"auto.offset.reset": "latest"}) as a:
                await settled(a, partitions=1)

                async def happens():
                    await a.commit({T0: 50})

                window.happens = happens
                shot = await taken(kafka, window_seconds=10.0)
                assert "process_rate" not in shot.scenario["members"][0]

    run(work())


def test_deleted_records_are_not_in_the_backlog(monkeypatch):
    """A log that begins at 7, as retention leaves it."""
    offsets = AdminClient.offsets

    async def begun_late(admin, topics, which):
        found = await offsets(admin, topics, which)
        return found if which == LATEST else dict.fromkeys(found, 7)

    async def work():
        async with broker({"t": 1}) as kafka, named(kafka, "a") as a:
            await produce(kafka.address, 0, *(b"x" for _ in range(10)))
            await settled(a, partitions=1)
            await a.commit({T0: 2})
            monkeypatch.setattr(AdminClient, "offsets", begun_late)
            assert (await taken(kafka)).scenario["topics"]["t"]["backlog"] == [3]

    run(work())


# --- groups that cannot be taken


@pytest.mark.parametrize(("group", "state"), [("nobody", "Dead"), ("g", "Empty")])
def test_a_group_without_members_is_refused(group, state):
    async def work():
        async with broker() as kafka:
            async with member(kafka) as a:
                await settled(a)
            with pytest.raises(
                InputError, match=f"group {group}: found state {state}, expected a group with"
            ):
                await taken(kafka, group)

    run(work())


def join(group_id, protocol_type, timeout_ms=10_000):
    cls = their_class(Api.JOIN_GROUP, "Request")
    return {
        "group_id": group_id,
        "session_timeout_ms": timeout_ms,
        "rebalance_timeout_ms": timeout_ms,
        "member_id": "",
        "protocol_type": protocol_type,
        "protocols": [cls.JoinGroupRequestProtocol(name="range", metadata=b"")],
    }


def test_a_group_of_another_type_is_refused():
    async def work():
        async with broker() as kafka:
            await ask(kafka.address, Api.JOIN_GROUP, 3, **join("connectors", "connect"))
            with pytest.raises(InputError, match="found one of type 'connect', expected a consumer group"):
                await taken(kafka, "connectors")

    run(work())


class Describing:
    """An administration client with one group, of members with this metadata."""

    def __init__(self, *metadata):
        members = tuple(
            m.DescribedMember(f"x-{n}", None, "x", "/here", data, b"") for n, data in enumerate(metadata)
        )
        self.group = m.DescribedGroup(
            error=ErrorCode.NONE,
            group_id="g",
            state="Stable",
            protocol_type="consumer",
            protocol_name="range",
            members=members,
        )

    async def describe(self, group_id):
        return self.group


def test_a_member_with_an_unreadable_subscription_is_left_out():
    """And one that announces a version and leaves out its last fields, as kafka-go does, is not."""

    class Answering(Describing):
        async def metadata(self, topics):
            return m.MetadataResponse(topics=(m.TopicMetadata("t", (m.PartitionMetadata(1),)),))

        async def committed(self, group_id):
            return {}

        async def offsets(self, topics, timestamp):
            return {}

    short = bytes.fromhex("0001 00000001 0001 74 ffffffff")
    taken = asyncio.run(snapshot(Answering(short, b"!"), "g"))
    assert [(member["topics"], member["owned"]) for member in taken.scenario["members"]] == [(["t"], {})]
    (message,) = taken.left_out
    assert message.startswith("member x-1 is left out: subscription: 1 bytes")


def test_a_snapshot_waits_for_the_end_of_a_rebalance(monkeypatch):
    monkeypatch.setattr(snapshots, "LOOK_AGAIN_SECONDS", 0.01)

    async def work():
        async with broker() as kafka, named(kafka, "a") as a, named(kafka, "b") as b:
            await settled(a)
            async with AdminClient(places_of(kafka.address, "here")) as admin:
                while (await admin.describe("g")).state != "PreparingRebalance":
                    await b.poll(0.02)  # and a does not, without which nothing goes on
                seen = asyncio.create_task(snapshot(admin, "g"))
                assert (await admin.describe("g")).state == "PreparingRebalance"
                assert not seen.done()
                await polled(a, b, until=lambda _: seen.done())
            assert {each["id"] for each in seen.result().scenario["members"]} == {"a", "b"}

    run(work())


def test_a_rebalance_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(snapshots, "LOOK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(snapshots, "SETTLE_SECONDS", 0.05)

    async def work():
        async with broker() as kafka:
            await ask(kafka.address, Api.JOIN_GROUP, 3, **join("g", "consumer", timeout_ms=100_000))
            with pytest.raises(InputError, match="state CompletingRebalance"):
                await taken(kafka)

    run(work())


def test_subscriptions_to_unknown_topics_are_left_out():
    async def work():
        async with broker({"t": 2}) as kafka, named(kafka, "a", "t", "missing") as a:
            async with named(kafka, "b", "missing") as b:
                await polled(a, b, until=lambda _: len(a.assignment) == 2 and b.generation == a.generation)
                shot = await taken(kafka)
                assert owned(shot.scenario) == {"a": {("t", 0), ("t", 1)}}
                assert shot.scenario["members"][0]["topics"] == ["t"]
                check(shot)
            a.subscribe("missing")
            await polled(a, until=lambda _: not a.assignment and a.state.value == "stable")
            with pytest.raises(InputError, match="a topic that exists"):
                await taken(kafka)

    run(work())


def test_a_group_of_the_consumer_protocol_is_one_with_its_strategy(kafka_broker):
    """A member with a pattern lists the topics that it has. The scenario begins with the group's owners."""
    settings = {"group.consumer.heartbeat.interval.ms": 50}
    address = kafka_broker({"t": 4, "u": 2}, settings=settings).address

    async def work():
        options = {"bootstrap_servers": address, "group_id": "g", "protocol": "consumer"}
        async with (
            Consumer("t", settings={"client.id": "a"}, **options) as a,
            Consumer(settings={"client.id": "b", "group.instance.id": "one"}, **options) as b,
        ):
            b.subscribe_pattern("t|u")
            await polled(a, b, until=lambda _: len(a.assignment) == len(b.assignment) == 3)
            async with AdminClient(places_of(address, "here")) as admin:
                taking = asyncio.create_task(snapshot(admin, "g"))
                await polled(a, b, until=lambda _: taking.done())
                listed = await admin.groups()
            shot = taking.result()
            assert (shot.strategy, [group.group_type for group in listed]) == (
                "uniform-848+reconcile",
                ["consumer"],
            )
            by_client = {"a": set(a.assignment), "one": set(b.assignment)}
            assert owned(shot.scenario) == by_client
            topics = sorted(
                each["topics"] for each in shot.scenario["members"]
            )  # members are in the order of their ids
            assert topics == [["t"], ["t", "u"]]
            check(shot)

    run(work())
