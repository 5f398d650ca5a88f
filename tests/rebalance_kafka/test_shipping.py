"""A plugin's assignor in running consumers: a project of `new-assignor` leads a group of two libraries."""

import asyncio
import importlib.util
import time
from itertools import pairwise

import pytest

from coordinator_core.model import Cluster, GroupSubscription, TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.consumer_protocol import decode_assignment, decode_subscription
from rebalance_conformance.commands.new_assignor import checked_name, write_project
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import AdminClient
from tests.rebalance_kafka.consumers import OfAiokafka, OfKafkaPython, RangePartitionAssignor
from tests.rebalance_kafka.peers import Peer, missing

pytestmark = pytest.mark.peer


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
    [
        (OfKafkaPython, OfAiokafka, OfKafkaPython, OfAiokafka),
        (OfAiokafka, OfKafkaPython, OfAiokafka, OfKafkaPython),
    ],
    ids=["kafka-python leads", "aiokafka leads"],
)
def test_a_plugins_assignor_runs_in_a_group_of_two_libraries(kafka_broker, project, kinds):
    broker = kafka_broker(topics=TOPICS)

    async def group():
        members = []
        try:
            for number, kind in enumerate(kinds):
                members.append(kind(broker.address, TOPICS, project, name=f"c{number}"))
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
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky", "range+cooperative"])
@pytest.mark.parametrize("mixed", [False, True], ids=["kafka-python", "both libraries"])
def test_members_keep_what_they_can_as_others_come_and_go(kafka_broker, strategy, mixed):
    """In a cooperative group, aiokafka's members are eager, and give everything up in each round."""
    broker = kafka_broker(topics=TOPICS)
    kinds = (OfKafkaPython, OfAiokafka if mixed else OfKafkaPython)

    async def group():
        members, looks = [], []
        try:
            for number in range(4):
                members.append(kinds[number % 2](broker.address, TOPICS, strategy, name=f"c{number}"))
                await settled(broker.address, members)
                looks.append([each.owned() for each in members])
            await members.pop().close()
            await settled(broker.address, members)
            looks.append([each.owned() for each in members])
        finally:
            for member in members:
                await member.close()
        return looks

    looks = asyncio.run(group())
    for owned in looks:
        assert len(frozenset().union(*owned)) == sum(map(len, owned)) == sum(TOPICS.values())
    if strategy != "range+cooperative":
        for fewer, more in pairwise(looks[:4]):
            assert all(after <= before for before, after in zip(fewer, more, strict=False))
        assert all(before <= after for before, after in zip(looks[3], looks[4], strict=False))


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
            members += [OfKafkaPython(broker.address, TOPICS, *known) for _ in range(2)]
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
