"""Weights and racks reach the leader of a real group: the shares are those of the simulator."""

import asyncio

import pytest

from coordinator_core.errors import InputError
from coordinator_core.model import Partitions, TopicPartition
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl
from coordinator_core.registry.host import Seen
from coordinator_core.registry.providers.builtin import Reported, by_rate
from coordinator_core.registry.providers.report import Estimate, decode_report
from coordinator_core.registry.registry import default_registry, installed_registry
from rebalance_kafka import MeasuredLoads
from rebalance_kafka.broker import data_requests
from rebalance_kafka.loads import REMEMBERED_MS
from rebalance_kafka.wire.apis import Api
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.rounds import rounds
from tests.documents import blocks, defined
from tests.examples import rest_slow
from tests.places import ROOT
from tests.rebalance_kafka.live import broker, member, polled, produce, run, settled

NearestFirst = defined(*blocks(ROOT / "assignors" / "README.md", "python"))["NearestFirst"]

RATES = [20] + 11 * [1]
RACKS = 8 * ["a"] + 4 * ["b"]
MEMBER_RACKS = ("a", "a", "b")
SHARES = {frozenset({0}), frozenset(range(1, 8)), frozenset(range(8, 12))}
MEASURED_SECONDS = 1.0
"""The time for which rates are measured: long beside the differences between the first fetches."""


@pytest.fixture
def racks(monkeypatch):
    """Two brokers in the metadata that have racks. Each partition has its replica on one of them."""
    metadata = data_requests.HANDLERS[Api.METADATA]

    def with_racks(broker, request):
        values = metadata(broker, request)
        (node,) = values["brokers"]
        nodes = {rack: {**node, "node_id": 100 + n, "rack": rack} for n, rack in enumerate("ab")}
        for topic in values["topics"]:
            for partition, rack in zip(topic["partitions"], RACKS, strict=True):
                partition["replica_nodes"] = partition["isr_nodes"] = (nodes[rack]["node_id"],)
        return {**values, "brokers": (node, *nodes.values())}

    monkeypatch.setitem(data_requests.HANDLERS, Api.METADATA, with_racks)


def simulated():
    """Return the shares of the same group in the simulator."""
    document = {
        "name": "weights",
        "duration": "60s",
        "topics": {"t": {"partitions": 12, "rates": RATES, "racks": [[rack] for rack in RACKS]}},
        "members": [{"id": f"m{n}", "topics": ["t"], "rack": MEMBER_RACKS[n]} for n in range(2)],
        "events": [{"at": "30s", "join": {"id": "m2", "topics": ["t"], "rack": MEMBER_RACKS[2]}}],
    }
    registry = default_registry()
    last = rounds(
        simulate(parse_scenario(document, where="weights", registry=registry), NearestFirst, registry)
    )[-1]
    owned = ({**share.assigned, **share.kept} for share in last.members.values())
    return {frozenset(partitions["t"]) for partitions in owned if partitions}


def test_the_simulator_gives_the_heavy_partition_to_a_member_of_its_own_in_its_rack():
    assert simulated() == SHARES


async def produce_all(address):
    for partition, rate in enumerate(RATES):
        await produce(address, partition, *(b"r" for _ in range(rate)))


def test_a_group_of_our_consumers_has_the_shares_of_the_simulator(racks):
    async def work():
        async with broker({"t": 12}) as kafka:
            consumers = [
                member(kafka, strategy=NearestFirst, settings={"client.rack": rack}) for rack in MEMBER_RACKS
            ]
            async with consumers[0], consumers[1]:
                await settled(*consumers[:2], partitions=12)
                await polled(*consumers[:2], until=lambda _: all(map(sees_all, consumers[:2])))
                await produce_all(kafka.address)
                loop = asyncio.get_running_loop()
                until = loop.time() + MEASURED_SECONDS
                read = await polled(*consumers[:2], until=lambda _: loop.time() > until)
                assert sum(map(len, read.values())) == sum(RATES)
                async with consumers[2]:
                    await settled(*consumers, partitions=12)
                    assert {numbers(each.assignment) for each in consumers} == simulated() == SHARES

    run(work())


def sees_all(consumer):
    return len(consumer._loads.seen(consumer.assignment)) == len(consumer.assignment)


def numbers(partitions):
    return frozenset(tp.partition for tp in partitions)


async def reached(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


@pytest.mark.peer
@pytest.mark.parametrize("library", rest_slow(["OfAiokafka", "OfKafkaPython"]))
def test_a_group_of_a_library_has_the_shares_of_the_simulator(library, racks):
    consumers = pytest.importorskip("tests.rebalance_kafka.consumers", reason="a client is not installed")
    kind = getattr(consumers, library)

    def shared(members):
        return sum(len(each.owned()) for each in members) == 12 and all(each.owned() for each in members)

    def measured(members):
        return sum(len(each.loads.seen(each.owned())) for each in members) == 12

    async def work():
        async with broker({"t": 12}) as kafka:
            members = []

            def join(rack):
                loads = MeasuredLoads()
                members.append(kind(kafka.address, ["t"], NearestFirst, loads=loads, rack=rack))

            try:
                for rack in MEMBER_RACKS[:2]:
                    join(rack)
                await reached(lambda: shared(members))
                await reached(lambda: measured(members))
                await produce_all(kafka.address)
                await asyncio.sleep(MEASURED_SECONDS)
                join(MEMBER_RACKS[2])
                await reached(lambda: shared(members))
                assert {numbers(each.owned()) for each in members} == simulated()
            finally:
                for each in members:
                    await each.close()

    run(work())


class Clock:
    ms = 0

    def __call__(self):
        return self.ms


T0 = TopicPartition("t", 0)


def test_a_rate_is_measured_from_the_first_fetch_of_a_partition():
    clock = Clock()
    loads = MeasuredLoads(clock=clock)
    reported = Reported(loads, by_rate)
    reported.assigned(Partitions.of([T0]))
    clock.ms = 3_000
    loads.record(T0, 100, 100)
    clock.ms = 13_000
    loads.record(T0, 300, 250)
    clock.ms = 14_000
    assert decode_report(reported.report()).estimates == {T0: Estimate(10, 20, 50)}


def test_an_old_end_offset_of_a_consumer_that_lags_is_not_taken_for_a_new_one():
    clock = Clock()
    loads = MeasuredLoads(clock=clock)
    loads.record(T0, 100, 40)
    clock.ms = 5_000
    loads.record(T0, 100, 90)
    assert loads.seen([T0])[T0] == Seen(100, 10, at_ms=0, first=(0, 100))
    loads.record(T0, 100, 100)
    assert loads.seen([T0])[T0] == Seen(100, 0, at_ms=5_000, first=(0, 100))


def test_a_partition_that_was_given_up_long_ago_is_forgotten():
    clock = Clock()
    loads = MeasuredLoads(clock=clock)
    loads.record(T0, 100, 100)
    clock.ms = REMEMBERED_MS
    assert T0 in loads.seen([T0])
    clock.ms += 1
    assert loads.seen([T0]) == {}


@pytest.mark.parametrize("capacity", [0, -1.0, float("nan"), float("inf")])
def test_an_invalid_capacity_is_refused(capacity):
    with pytest.raises(InputError, match=r"capacity: found .*, expected records/s above 0, or None"):
        member("127.0.0.1:9", capacity=capacity)
    with pytest.raises(InputError, match=r"capacity: found .*, expected records/s above 0, or None"):
        MeasuredLoads(capacity=capacity)


def test_a_consumer_refuses_an_assignor_of_two_distributions():
    class Plugin:
        @hookimpl
        def assignors(self):
            return [AssignorSpec("nearest-first", NearestFirst)]

    registry = installed_registry()
    for name in ("one", "two"):
        registry.register(Plugin(), name=name, distribution=f"dist-{name}")
    with pytest.raises(InputError, match="'nearest-first', which dist-one and dist-two contribute"):
        member("127.0.0.1:9", strategy="nearest-first", registry=registry)
    member("127.0.0.1:9", strategy="dist-two:nearest-first", registry=registry)


def test_a_leader_without_weights_reports_it_once(caplog):
    async def work():
        async with broker({"t": 2}) as kafka:
            strategy = "optimal+weights=scenario-rates"
            async with member(kafka, strategy=strategy) as first:
                await settled(first, partitions=2)
                for _ in range(2):
                    async with member(kafka, strategy=strategy) as second:
                        await settled(first, second, partitions=2)
                    await settled(first, partitions=2)

    run(work())
    assert [r.getMessage() for r in caplog.records if "gets no weights" in r.getMessage()] == [
        "the assignor optimal gets no weights: no member has reported what its partitions receive"
    ]
