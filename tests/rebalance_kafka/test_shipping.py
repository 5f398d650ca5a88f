"""A plugin's assignor in running consumers: a project of `new-assignor` leads a group of two libraries."""

import asyncio
import importlib.util
import time
import warnings

import pytest

from coordinator_core.model import Cluster, GroupSubscription, TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.consumer_protocol import decode_assignment, decode_subscription
from rebalance_conformance.commands.new_assignor import checked_name, write_project
from rebalance_kafka import as_aiokafka, as_kafka_python
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import AdminClient
from tests.rebalance_kafka.peers import Peer, missing

pytestmark = pytest.mark.peer

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.structs import MemberState

TOPICS = {"orders": 5, "payments": 3}
ENOUGH_SECONDS = 60.0
NAME = "fewest-first"


@pytest.fixture
def project(tmp_path):
    """The assignor of a project as `new-assignor` writes it."""
    write_project(NAME, checked_name(NAME), tmp_path / NAME)
    source = tmp_path / NAME / "src" / "fewest_first" / "__init__.py"
    spec = importlib.util.spec_from_file_location("fewest_first", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FewestFirst


class Threaded:
    """A kafka-python consumer that polls on a thread of its own. ``others`` are assignors of the library."""

    def __init__(self, address, name, assignor, *others):
        self._over, self._owned = False, set()
        self._task = asyncio.create_task(asyncio.to_thread(self._work, address, name, assignor, *others))

    def _work(self, address, name, assignor, *others):
        consumer = kafka.KafkaConsumer(
            *TOPICS,
            bootstrap_servers=address,
            group_id="g",
            client_id=name,
            partition_assignment_strategy=[as_kafka_python(assignor), *others],
            heartbeat_interval_ms=200,
            enable_auto_commit=False,
        )
        for topic in TOPICS:  # a leader that learns of partitions later joins again
            consumer.partitions_for_topic(topic)
        while not self._over:
            stable = consumer.group_metadata().state is MemberState.STABLE
            consumer.poll(100 if stable else 1_000)  # what comes of a join between two polls is thrown away
            self._owned = {(tp.topic, tp.partition) for tp in consumer.assignment()}
        consumer.close()

    def owned(self):
        return self._owned

    async def close(self):
        self._over = True
        await self._task


class Awaited:
    """An aiokafka consumer."""

    def __init__(self, address, name, assignor):
        self._consumer = aiokafka.AIOKafkaConsumer(
            *TOPICS,
            bootstrap_servers=address,
            group_id="g",
            client_id=name,
            partition_assignment_strategy=[as_aiokafka(assignor)],
            heartbeat_interval_ms=200,
            enable_auto_commit=False,
        )
        self._task = asyncio.create_task(self._consumer.start())

    def owned(self):
        return {(tp.topic, tp.partition) for tp in self._consumer.assignment()}

    async def close(self):
        await self._task
        await self._consumer.stop()


class OfPeer:
    """A client of another kind, which knows range only, in a process of its own."""

    def __init__(self, kind, address, folder):
        options = {"bootstrap": address, "group": "g", "topics": list(TOPICS), "client_id": kind}
        self.peer = Peer(kind, kind, folder, {**options, "strategy": "range"})

    def owned(self):
        return set(self.peer.membership().owned)

    async def close(self):
        await asyncio.to_thread(self.peer.close, ENOUGH_SECONDS)
        self.peer.kill()


def shares(group):
    return {each.member_id: set(decode_assignment(each.assignment)[0]) for each in group.members}


async def settled(address, members):
    """Return the group as soon as it is Stable and its members agree with the broker."""
    until = time.monotonic() + ENOUGH_SECONDS
    async with AdminClient(places_of(address, "address")) as admin:
        while True:
            group = await admin.describe("g")
            owned = sorted(sorted(member.owned()) for member in members)
            if (
                group.state == "Stable"
                and all(owned)
                and owned == sorted(map(sorted, shares(group).values()))
            ):
                return group
            assert time.monotonic() < until, (group, owned)
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [(Threaded, Awaited, Threaded, Awaited), (Awaited, Threaded, Awaited, Threaded)],
    ids=["kafka-python leads", "aiokafka leads"],
)
def test_a_plugins_assignor_runs_in_a_group_of_two_libraries(kafka_broker, project, kinds):
    broker = kafka_broker(topics=TOPICS)

    async def group():
        members = []
        try:
            for number, kind in enumerate(kinds):
                members.append(kind(broker.address, f"c{number}", project))
                reported = await settled(broker.address, members)
            trace = broker.trace("g")
            while len(members) > 1:
                await members.pop().close()
                await settled(broker.address, members)
        finally:
            for member in members:
                await member.close()
        return reported, trace

    reported, trace = asyncio.run(group())
    assert reported.protocol_name == NAME
    subscriptions = {each.member_id: decode_subscription(each.metadata) for each in reported.members}
    wanted = project().assign(Cluster(TOPICS), GroupSubscription(subscriptions))
    assert sum(map(len, wanted.values())) == sum(TOPICS.values())
    assert shares(reported) == {
        member: {TopicPartition(*tp) for tp in share} for member, share in wanted.items()
    }
    leaders = {line.event.client for line in trace.events if isinstance(line.event, ev.AssignmentComputed)}
    assert leaders == {"c0"}


@pytest.mark.slow
def test_a_plugins_assignor_waits_until_all_members_know_it(kafka_broker, project, tmp_path):
    """Members with the adapter are in a group with Java, librdkafka and ours, which know range only."""
    kinds = ("java", "confluent", "rebalance-lab")
    for kind in kinds:
        if reason := missing(kind):
            pytest.skip(reason)
    broker = kafka_broker(topics=TOPICS)

    async def group():
        members, names = [], []
        known = project, RangePartitionAssignor
        try:
            members += [Threaded(broker.address, f"c{number}", *known) for number in range(2)]
            members += [OfPeer(kind, broker.address, tmp_path) for kind in kinds]
            names.append((await settled(broker.address, members)).protocol_name)
            while len(members) > 2:
                await members.pop().close()
            names.append((await settled(broker.address, members)).protocol_name)
        finally:
            for member in members:
                await member.close()
        return names

    assert asyncio.run(group()) == ["range", NAME]
