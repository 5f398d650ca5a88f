"""librdkafka: it writes the same bytes, and our consumer reads from its mock cluster."""

import asyncio
import time

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from rebalance_kafka import Consumer
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import LATEST, AdminClient

pytestmark = pytest.mark.peer

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

ENOUGH_SECONDS = 120.0
OLD_FORMS = {
    "JoinGroup": 5,
    "SyncGroup": 3,
    "Heartbeat": 3,
    "LeaveGroup": 1,
    "OffsetCommit": 7,
    "OffsetFetch": 5,
}
"""The mock cluster offers the flexible versions of these and reads them wrong."""

SETTINGS = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "heartbeat.interval.ms": 200,
    "session.timeout.ms": 3_000,  # the mock cluster lets a second member in after one
}


def described(address, group):
    """The members of a group as the broker tells of them."""

    async def ask():
        async with AdminClient(places_of(address, "address")) as admin:
            return (await admin.describe(group)).members

    return asyncio.run(ask())


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_its_subscriptions_and_assignments_are_ours_byte_for_byte(kafka_broker, strategy):
    broker = kafka_broker(topics={"orders": 5, "payments": 2})
    members = [
        confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "g",
                "client.rack": "r1",
                "partition.assignment.strategy": strategy,
                "heartbeat.interval.ms": 200,
            }
        )
        for _ in range(2)
    ]
    for member in members:
        member.subscribe(["payments", "orders"])
    until = time.monotonic() + ENOUGH_SECONDS
    while sorted(len(m.assignment()) for m in members) != [3, 4] and time.monotonic() < until:
        for member in members:
            member.poll(0.05)
    seen = described(broker.address, "g")
    for member in members:
        member.close()
    assert len(seen) == 2
    for each in seen:
        subscription = decode_subscription(each.metadata)
        assert (subscription.topics, subscription.rack) == (("orders", "payments"), "r1")
        version = int.from_bytes(each.metadata[:2], "big")
        assert encode_subscription(subscription, version=version) == each.metadata
        given, user_data = decode_assignment(each.assignment)
        assert len(given) in (3, 4)
        version = int.from_bytes(each.assignment[:2], "big")
        assert encode_assignment(given, user_data, version=version) == each.assignment


@pytest.fixture
def mock_cluster():
    """The address of a cluster inside librdkafka, with ten records on each of four partitions of orders."""
    producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": ""})
    broker = next(iter(producer.list_topics(timeout=ENOUGH_SECONDS).brokers.values()))
    for number in range(40):
        producer.produce("orders", str(number).encode(), partition=number % 4)
    assert producer.flush(ENOUGH_SECONDS) == 0
    yield f"{broker.host}:{broker.port}"
    del producer


async def read(consumer, count):
    """So many records, waited for."""
    records, until = [], time.monotonic() + ENOUGH_SECONDS
    while len(records) < count and time.monotonic() < until:
        records += await consumer.poll(0.2)
    return records


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_our_consumer_resumes_at_its_committed_offsets(mock_cluster, strategy):
    async def members():
        joined = {
            "bootstrap_servers": mock_cluster,
            "group_id": "g",
            "strategy": strategy,
            "api_versions": OLD_FORMS,
        }
        async with Consumer("orders", settings={**SETTINGS, "max.poll.records": 30}, **joined) as first:
            handed_out = await read(first, 30)
            assert {tp.partition for tp in first.assignment} == {0, 1, 2, 3}
            assert first.state is MemberState.STABLE
            await first.commit()
        async with Consumer("orders", settings=SETTINGS, **joined) as second:
            rest = await read(second, 40 - len(handed_out))
            # on a busy machine the mock cluster may have begun another round by now
            assert {second.position(*tp) for tp in second.assignment} <= {10}
        return handed_out, rest

    handed_out, rest = asyncio.run(members())
    read_values = [int(record.value) for record in (*handed_out, *rest)]
    assert sorted(read_values) == list(range(40))
    assert all(record.offset == int(record.value) // 4 for record in (*handed_out, *rest))


def test_topics_and_end_offsets_of_the_mock_cluster(mock_cluster):
    async def ask():
        async with AdminClient(places_of(mock_cluster, "address")) as admin:
            return await admin.offsets((await admin.metadata(["orders"])).topics, LATEST)

    assert asyncio.run(ask()) == {TopicPartition("orders", n): 10 for n in range(4)}
