"""The bytes that the sticky assignors send along, as Apache Kafka writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assigning.user_data import (
    decode_generation,
    decode_ownership,
    encode_generation,
    encode_ownership,
)
from coordinator_core.model import Partitions
from tests.assignors.groups import partitions

pairs = st.lists(
    st.tuples(st.sampled_from(["a", "größe", "\U0001f600"]), st.integers(0, 2**31 - 1)), max_size=9
)
generations = st.integers(-1, 2**31 - 1)

BYTES = bytes.fromhex(
    "00000002"  # topics
    "0001 61 00000002 00000001 00000003"  # 'a': 1 and 3
    "0002 c3bc 00000001 00000000"  # 'ü': 0
    "00000007"  # generation
)


def test_ownership_is_an_array_of_topics_and_the_generation():
    """PROTOCOL 10.3."""
    assert encode_ownership(partitions("ü:0 a:3,1"), 7) == BYTES
    assert encode_ownership(partitions(""), -1) == bytes.fromhex("00000000 ffffffff")


def test_ownership_is_read_back():
    owned, generation = decode_ownership(BYTES)
    assert (owned, generation) == (partitions("a:1,3 ü:0"), 7)


@given(pairs, generations)
def test_what_was_written_is_read_whatever_it_is(owned, generation):
    made = Partitions.of(owned)
    assert decode_ownership(encode_ownership(made, generation)) == (made, generation)


@given(pairs, st.randoms(use_true_random=False))
def test_equal_ownership_gives_equal_bytes(owned, random):
    """C-61: in whatever order the partitions come."""
    shuffled = list(owned)
    random.shuffle(shuffled)
    assert encode_ownership(Partitions.of(shuffled), 3) == encode_ownership(Partitions.of(owned), 3)


def test_anything_shorter_is_something_else():
    """C-68."""
    assert all(decode_ownership(BYTES[:end]) is None for end in range(len(BYTES) - 4))


@pytest.mark.parametrize("missing", [1, 2, 3, 4])
def test_ownership_without_a_generation_is_version_0(missing):
    """PROTOCOL 10.5: Kafka reads as version 0 what it cannot read as version 1."""
    assert decode_ownership(BYTES[:-missing]) == (partitions("a:1,3 ü:0"), -1)


def test_a_topic_may_come_more_than_once():
    """As lists that are not sorted by topic are written."""
    data = bytes.fromhex("00000002 000161 00000001 00000004 000161 00000001 00000000 00000007")
    assert decode_ownership(data) == (partitions("a:4,0"), 7)


@given(st.binary(max_size=40))
def test_what_comes_after_is_not_looked_at(tail):
    assert decode_ownership(BYTES + tail) == (partitions("a:1,3 ü:0"), 7)


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"\xff" * 30, BYTES.replace(b"\xc3\xbc", b"\xc3\xc3"), b"\0\0\0\1\xff\xff"]
)
def test_bytes_of_another_assignor_say_nothing(data):
    """C-68: names that are no UTF-8, lengths below nought."""
    assert decode_ownership(data) is None


@given(st.binary(max_size=60))
def test_no_bytes_at_all_are_an_error(data):
    """C-68."""
    found = decode_ownership(data)
    assert found is None or isinstance(found[0], Partitions)
    assert decode_generation(data) is None or len(data) == 4


@given(generations)
def test_a_generation_alone_is_four_bytes(generation):
    """PROTOCOL 10.3."""
    data = encode_generation(generation)
    assert data == generation.to_bytes(4, "big", signed=True)
    assert decode_generation(data) == generation


def test_neither_kind_is_mistaken_for_the_other():
    """C-68."""
    assert decode_generation(BYTES) is None
    assert decode_ownership(encode_generation(7)) is None


def test_a_negative_count_of_partitions_is_no_ownership():
    """Of -1 numbers, `numpy.frombuffer` would read all that there are."""
    assert decode_ownership(bytes.fromhex("00000001 0001 61 ffffffff 00000001 00000007")) is None
