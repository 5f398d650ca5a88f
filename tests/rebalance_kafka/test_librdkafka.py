"""librdkafka: it writes the same bytes, and our consumer reads from its mock cluster."""

import asyncio
import time

import pytest

from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import AdminClient

pytestmark = pytest.mark.peer

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

ENOUGH_SECONDS = 120.0


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
