"""FindCoordinator, and where a group lives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.model import java_hash
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("my-group", -1906497762),
        ("polygenelubricants", -(2**31)),
        ("é", 233),
        ("😀", 0xD83D * 31 + 0xDE00),
        ("zzzzzz", -685785664),
    ],
)
def test_the_hash_is_javas(text, hashed):
    """Given group ids, when they are hashed, then as by String.hashCode: 32 bits with wrap-around, over
    UTF-16 code units. PROTOCOL 1.1."""
    assert java_hash(text) == hashed


@given(st.text(max_size=30))
def test_the_hash_is_the_polynomial_over_code_units(text):
    """PROTOCOL 1.1."""
    units = text.encode("utf-16-le", "surrogatepass")
    numbers = [int.from_bytes(units[at : at + 2], "little") for at in range(0, len(units), 2)]
    total = sum(unit * 31 ** (len(numbers) - 1 - at) for at, unit in enumerate(numbers))
    assert java_hash(text) == (total + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(
    ("group", "partitions", "home"),
    [("polygenelubricants", 50, 0), ("polygenelubricants", 7, 0), ("hello", 50, 22), ("zzzzzz", 50, 14)],
)
def test_the_home_partition_is_the_hash_without_sign(group, partitions, home):
    """Given hashes of both signs and -2^31, then abs(h) % n, and 0 for -2^31. PROTOCOL 1.1."""
    assert home_partition(group, partitions) == home


def found(bench, group):
    return bench.ask(m.FindCoordinatorRequest(key=group))


def test_the_leader_of_the_home_partition_is_the_coordinator(bench):
    """Given the leaders of the partitions, when any broker is asked, then the node that leads the group's.
    PROTOCOL 1.1."""
    bench.coordinator.on_cluster_change({partition: 100 + partition for partition in range(50)}, 3)
    assert found(bench, "hello").node == 122
    assert found(bench, "polygenelubricants").node == 100


def test_a_partition_without_a_leader_has_no_coordinator(bench):
    """PROTOCOL 1.2."""
    bench.coordinator.on_cluster_change({0: 1}, 3)
    answer = found(bench, "hello")
    assert (answer.error, answer.node) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert found(bench, "polygenelubricants").error is ErrorCode.NONE


def test_the_topic_is_not_created_with_too_few_brokers(bench):
    """Given the topic does not exist, when fewer brokers live than its replication factor, then
    COORDINATOR_NOT_AVAILABLE; with a topic that exists, their number does not matter. PROTOCOL 1.2."""
    bench.coordinator.on_cluster_change({}, 2)
    assert found(bench, "g").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.coordinator.on_cluster_change(dict.fromkeys(range(50), 4), 1)
    assert (found(bench, "g").error, found(bench, "g").node) == (ErrorCode.NONE, 4)


def test_an_empty_key_is_an_invalid_group(bench):
    assert found(bench, "").error is ErrorCode.INVALID_GROUP_ID
