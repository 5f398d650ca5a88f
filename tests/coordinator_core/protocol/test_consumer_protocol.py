"""The bytes inside JoinGroup and SyncGroup: round trips, versions to come, torn input, and Kafka's own."""

import contextlib
import os
import struct
import subprocess
import sys
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_core.errors import ProtocolError
from coordinator_core.model import NO_GENERATION, NO_PARTITIONS, Partitions, Subscription
from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas in an old way
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
user_data = st.none() | st.binary(max_size=20)
owned = st.dictionaries(names, st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=4), max_size=4).map(
    lambda listed: Partitions({topic: sorted(numbers) for topic, numbers in listed.items()})
)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(names, unique=True, max_size=4).map(tuple),
    owned=owned,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
    user_data=user_data,
)
versions = st.integers(0, 3)


def fields(s):
    return s.topics, sorted(s.owned), s.generation, s.rack, s.instance_id, s.user_data


@given(subscriptions, versions)
def test_a_subscription_comes_back_as_far_as_its_version_goes(subscription, version):
    """Given any subscription, when encoded in a version, then its fields come back, and the rest is
    left out. PROTOCOL 9.6."""
    back = decode_subscription(encode_subscription(subscription, version=version), instance_id="i")
    assert fields(back) == (
        subscription.topics,
        sorted(subscription.owned) if version >= 1 else [],
        subscription.generation if version >= 2 else NO_GENERATION,
        subscription.rack if version >= 3 else None,
        "i",
        subscription.user_data,
    )


def test_a_topic_may_come_more_than_once():
    """A librdkafka leader lists a topic twice: the partitions that a member keeps, and the new ones."""
    data = bytes.fromhex(
        "0000 00000003"
        "0001 74 00000001 00000004"
        "0001 75 00000001 00000000"
        "0001 74 00000002 00000000 00000002"
        "00000000"
    )
    owned_, _ = decode_assignment(data)
    assert list(owned_) == [("t", 4), ("t", 0), ("t", 2), ("u", 0)]
    kafka = ConsumerProtocolAssignment.decode(data)
    assert sorted((t, p) for t, ps in kafka.assigned_partitions for p in ps) == sorted(owned_)


@given(owned, user_data, versions)
def test_an_assignment_comes_back(partitions, data, version):
    """PROTOCOL 9.6."""
    back, user_data_back = decode_assignment(encode_assignment(partitions, data, version=version))
    assert (sorted(back), user_data_back) == (sorted(partitions), data)


@given(subscriptions, owned, user_data, st.integers(4, 2**15 - 1), st.binary(max_size=10))
def test_newer_versions_are_read_by_the_newest_known(subscription, partitions, data, version, more):
    """Given a version that is not known yet, with fields at its end, then everything known is read.
    PROTOCOL 9.6, C-68."""
    newer = struct.pack(">h", version)
    back = decode_subscription(newer + encode_subscription(subscription)[2:] + more)
    assert fields(back) == fields(subscription)
    back, user_data_back = decode_assignment(newer + encode_assignment(partitions, data)[2:] + more)
    assert (sorted(back), user_data_back) == (sorted(partitions), data)


@given(subscriptions, versions, st.data())
def test_torn_input_is_a_protocol_error(subscription, version, data):
    """Given a subscription cut off inside a field, then the error names it. C-53."""
    encoded = encode_subscription(subscription, version=version)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    torn = encoded[:cut]
    try:
        back = decode_subscription(torn)
    except ProtocolError:
        with pytest.raises(ProtocolError, match="subscription"):
            decode_subscription(torn)
        return
    assert back.topics == subscription.topics  # it ends after a field
    assert encode_subscription(back, version=version).startswith(torn)


def test_fields_that_are_missing_at_the_end_are_absent():
    """kafka-go announces version 1 and writes no owned partitions."""
    short = bytes.fromhex("0001 00000001 0001 74 ffffffff")
    assert fields(decode_subscription(short)) == fields(Subscription(("t",)))
    for end in ("", "ffffffff", "ffffffff 00000000", "ffffffff 00000000 00000007"):
        read = decode_subscription(bytes.fromhex("0003 00000001 0001 74" + end))
        assert (read.topics, list(read.owned), read.rack) == (("t",), [], None)
        assert read.generation == (7 if end.endswith("7") else NO_GENERATION)


@given(owned, user_data, st.data())
def test_a_torn_assignment_is_a_protocol_error(partitions, user_data, data):
    """Given an assignment cut off anywhere, of less than a version too, then the error names it. C-53."""
    encoded = encode_assignment(partitions, user_data)
    with pytest.raises(ProtocolError, match="assignment"):
        decode_assignment(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


RACK_OF_NO_TEXT = b"\x00\x03" + bytes(4) + b"\xff" * 4 + bytes(4) + b"\xff" * 4 + b"\x00\x01\xff"


@given(st.binary(max_size=60))
@example(RACK_OF_NO_TEXT)
@example(b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x01\xff")
@example(b"\x00\x00" + b"\x00\x00\x00\x01" + b"\xff\xff")
def test_any_bytes_are_read_or_are_a_protocol_error(data):
    """C-53, C-68."""
    for decode in (decode_subscription, decode_assignment):
        with contextlib.suppress(ProtocolError):
            decode(data)


def test_null_arrays_are_empty():
    """C-68."""
    back = decode_subscription(b"\x00\x01" + b"\xff" * 12)
    assert (back.topics, back.owned, back.user_data) == ((), NO_PARTITIONS, None)


def test_what_is_owned_is_written_in_order_however_it_was_gathered():
    """Given equal ownership in another order, then the bytes are equal. C-21."""
    one = Subscription(("t",), Partitions({"b": [1, 0], "a": [2]}))
    other = Subscription(("t",), Partitions.of([("a", 2), ("b", 0), ("b", 1)]))
    assert encode_subscription(one) == encode_subscription(other)


PROGRAM = """
from coordinator_core.model import Partitions, Subscription
from coordinator_core.protocol.consumer_protocol import encode_subscription
owned = Partitions.of({(t, p) for t in ("a", "\\U0001f600", "b", "\\uffee") for p in range(5)})
print(encode_subscription(Subscription(("a", "b"), owned, 3, "r", None, b"x")).hex())
"""


def test_the_bytes_are_the_same_in_every_process():
    """Given two processes with other hash seeds, then a subscription made from sets has the same bytes.
    C-21."""
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1] != ""


def kafkas_subscription(s, version):
    struct_of = ConsumerProtocolSubscription.TopicPartition
    listed = {topic: sorted(int(n) for n in numbers) for topic, numbers in s.owned.by_topic().items()}
    return ConsumerProtocolSubscription(
        version=version,
        topics=list(s.topics),
        user_data=s.user_data,
        owned_partitions=[struct_of(topic=t, partitions=listed[t]) for t in sorted(listed)],
        generation_id=s.generation,
        rack_id=s.rack,
    ).encode()


ascii_names = st.text("abcxyz019._-", min_size=1, max_size=8)
ascii_owned = st.dictionaries(
    ascii_names, st.sets(st.integers(0, 99), min_size=1, max_size=4), max_size=4
).map(lambda listed: Partitions({topic: sorted(numbers) for topic, numbers in listed.items()}))


@given(
    st.builds(
        Subscription,
        topics=st.lists(ascii_names, unique=True, max_size=4).map(tuple),
        owned=ascii_owned,
        generation=st.integers(-1, 1_000),
        rack=st.none() | ascii_names,
        user_data=user_data,
    ),
    versions,
)
def test_a_subscription_has_the_bytes_another_client_gives_it(subscription, version):
    """Given any subscription, then kafka-python encodes it to the same bytes. PROTOCOL 9.6."""
    encoded = encode_subscription(subscription, version=version)
    assert encoded == kafkas_subscription(subscription, version)


@given(ascii_owned, user_data, versions)
def test_an_assignment_has_the_bytes_another_client_gives_it(partitions, data, version):
    """PROTOCOL 9.6."""
    struct_of = ConsumerProtocolAssignment.TopicPartition
    by_topic = partitions.by_topic()
    theirs = ConsumerProtocolAssignment(
        version=version,
        assigned_partitions=[
            struct_of(topic=t, partitions=[int(n) for n in numbers]) for t, numbers in by_topic.items()
        ],
        user_data=data,
    )
    assert encode_assignment(partitions, data, version=version) == theirs.encode()


def test_the_first_version_has_owned_partitions_and_no_generation():
    owned = Partitions({"t": [0, 2]})
    told = Subscription(("t",), owned, generation=7)
    found = [decode_subscription(encode_subscription(told, version=version)) for version in (0, 1, 2)]
    assert [sorted(each.owned) for each in found] == [[], sorted(owned), sorted(owned)]
    assert [each.generation for each in found] == [NO_GENERATION, NO_GENERATION, 7]
