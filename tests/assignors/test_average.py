"""The two allocations of RocketMQ's clients, by examples and against its own arithmetic."""

import pytest

from assignors.average import AverageAssignor, AverageByCircleAssignor
from coordinator_core.model import Cluster, GroupSubscription, RebalanceProtocol
from tests.assignors.groups import assign, group, listed, member, told


def dealt(name, count, members):
    clients = GroupSubscription({f"c{n}": member("q") for n in range(members)})
    return [[p for _, p in got] for got in assign(name, Cluster({"q": count}), clients).values()]


def test_eight_queues_over_three_clients():
    """PROTOCOL 11.7."""
    assert dealt("average", 8, 3) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert dealt("average-by-circle", 8, 3) == [[0, 3, 6], [1, 4, 7], [2, 5]]


@pytest.mark.parametrize("name", ["average", "average-by-circle"])
def test_with_fewer_queues_than_clients_the_first_have_one_each(name):
    """PROTOCOL 11.7."""
    assert dealt(name, 2, 4) == [[0], [1], [], []]
    assert dealt(name, 0, 2) == [[], []]


@pytest.mark.parametrize("members", range(1, 8))
def test_every_client_computes_its_own_slice(members):
    """PROTOCOL 11.7: as each of RocketMQ's clients does, from its place in the sorted list alone."""
    for count in range(1, 20):
        sliced = []
        for index in range(members):
            rest = count % members
            longer = rest > 0 and index < rest
            size = 1 if count <= members else count // members + longer
            start = index * size if longer else index * size + rest
            sliced.append([(start + i) % count for i in range(max(0, min(size, count - start)))])
        assert dealt("average", count, members) == sliced
        circled = [[p for p in range(count) if p % members == index] for index in range(members)]
        assert dealt("average-by-circle", count, members) == circled


@pytest.mark.parametrize("name", ["average", "average-by-circle"])
def test_each_topic_is_dealt_apart_over_its_own_subscribers(name):
    cluster = Cluster({"t": 3, "u": 3, "v": 2, "nobody": 4})
    members = group(b=member("t u"), a=member("t v"), c=member("u"))
    expected = {
        "average": {"a": "t:0,1 v:0,1", "b": "t:2 u:0,1", "c": "u:2"},
        "average-by-circle": {"a": "t:0,2 v:0,1", "b": "t:1 u:0,2", "c": "u:1"},
    }
    assert told(assign(name, cluster, members)) == expected[name]


@pytest.mark.parametrize("made", [AverageAssignor, AverageByCircleAssignor])
def test_nothing_but_the_sorted_list_of_members_counts(made):
    """PROTOCOL 11.7, C-66: not what they own; static members come first, by their instance."""
    cluster, assignor = Cluster({"t": 5}), made()
    plain = group(a=member("t"), b=member("t"), c=member("t"))
    owning = group(c=member("t", "t:0,1"), b=member("t", "t:4"), a=member("t"))
    assert listed(assignor.assign(cluster, plain)) == listed(assignor.assign(cluster, owning))
    static = group(a=member("t"), z=member("t", instance_id="1"))
    assert told(assignor.assign(cluster, static))["z"] in ("t:0,1,2", "t:0,2,4")
    assert assignor.supported_protocols == (RebalanceProtocol.EAGER,)
