"""FindCoordinator, and where a group lives."""

import pytest

from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode


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
    """Given the leaders of the partitions, then any broker answers with the leader of the group's partition.
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


def test_the_group_with_an_empty_id_has_a_coordinator(bench):
    """Given an empty group id, which a simple consumer may commit to, then it has the coordinator of
    partition 0. PROTOCOL 1.1, C-02."""
    bench.coordinator.on_cluster_change({0: 7}, 3)
    answer = found(bench, "")
    assert (answer.error, answer.node) == (ErrorCode.NONE, 7)
