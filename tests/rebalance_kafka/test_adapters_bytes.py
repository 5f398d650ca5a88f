"""Our bytes of subscriptions and assignments are those of the clients' own classes, in every version."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tests.rebalance_kafka.clusters", reason="a client is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from coordinator_core.java import java_order
from coordinator_core.model import Partitions, Subscription
from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from rebalance_kafka.adapters import as_aiokafka, as_kafka_python

pytestmark = pytest.mark.peer

names = st.text(st.characters(codec="utf-8"), max_size=8)
user_data = st.none() | st.binary(max_size=20)
numbers = st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=4)
owned = st.dictionaries(names, numbers, max_size=4)
topics = st.lists(names, max_size=4)
racks = st.none() | names
generations = st.integers(-1, 2**31 - 1)
versions = st.sampled_from([0, 1, 2, 3])


@given(versions, topics, user_data, owned, generations, racks)
def test_subscriptions_of_kafka_python_are_the_same_bytes(version, names, data, has, generation, rack):
    part = ConsumerProtocolSubscription.TopicPartition
    theirs = ConsumerProtocolSubscription(
        version=version,
        topics=names,
        user_data=data,
        owned_partitions=[part(topic=t, partitions=sorted(has[t])) for t in java_order(has)],
        generation_id=generation,
        rack_id=rack,
    )
    ours = Subscription(tuple(names), Partitions(has), generation, rack, user_data=data)
    encoded = encode_subscription(ours, version=version)
    assert theirs.encode() == encoded

    read = ConsumerProtocolSubscription.decode(encoded)
    assert (read.version, read.topics, read.user_data) == (version, names, data)
    assert {each.topic: each.partitions for each in read.owned_partitions} == (
        {t: sorted(n) for t, n in has.items()} if version >= 1 else {}
    )
    assert read.generation_id == (generation if version >= 2 else -1)
    assert read.rack_id == (rack if version >= 3 else None)

    back = decode_subscription(theirs.encode())
    assert (list(back.topics), back.user_data) == (names, data)
    assert back.owned == (Partitions(has) if version >= 1 else Partitions())
    assert back.generation == (generation if version >= 2 else -1)
    assert back.rack == (rack if version >= 3 else None)


@given(versions, owned, user_data)
def test_assignments_of_kafka_python_are_the_same_bytes(version, given, data):
    theirs = ConsumerProtocolAssignment(version, list(given.items()), data)
    encoded = encode_assignment(Partitions(given), data, version=version)
    assert theirs.encode() == encoded

    read = ConsumerProtocolAssignment.decode(encoded)
    assert [(topic, numbers) for topic, numbers in read.assigned_partitions] == list(given.items())
    assert (read.version, read.user_data) == (version, data)

    back, user_data = decode_assignment(theirs.encode())
    assert list(back) == [(topic, n) for topic, each in given.items() for n in each]
    assert user_data == data


def test_an_adapted_member_of_kafka_python_says_what_ours_would_in_the_newest_version():
    made = as_kafka_python("cooperative-sticky", rack="r1")()
    made.on_assignment(ConsumerProtocolAssignment(0, [("u", [1]), ("t", [2, 0])], b""), 4)
    data = made.metadata({"u", "t"})
    ours = Subscription(("t", "u"), Partitions({"t": [0, 2], "u": [1]}), 4, "r1", user_data=data.user_data)
    assert data.encode() == encode_subscription(ours)
    assert decode_subscription(data.encode()).owned == ours.owned


def test_an_adapted_member_of_aiokafka_says_what_ours_would_in_the_oldest_version():
    made = as_aiokafka("sticky", rack="r1")
    data = made.metadata({"u", "t"})
    assert data.encode() == encode_subscription(Subscription(("t", "u"), user_data=data.user_data), version=0)
