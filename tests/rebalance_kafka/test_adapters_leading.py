"""The leader's work apart from the clients: what it knows of the cluster, and assignors that misbehave."""

from types import SimpleNamespace

import pytest

from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.model import (
    Cluster,
    GroupAssignment,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicInfo,
)
from rebalance_kafka.adapters.claims import Grant, detach
from rebalance_kafka.adapters.leading import Joined, describe, lead
from tests.places import placeless


class Metadata:
    """What both clients' metadata answer."""

    def __init__(self, topics, racks=None, replicas=None):
        self._topics, self._racks = topics, racks or {}
        listed = replicas or {}
        self._partitions = {
            topic: {n: SimpleNamespace(nodes=nodes) for n, nodes in by_number.items()}
            for topic, by_number in listed.items()
        }

    def partitions_for_topic(self, topic):
        return self._topics.get(topic)

    def broker_metadata(self, broker_id):
        if broker_id not in self._racks:
            return None
        return SimpleNamespace(rack=self._racks[broker_id])


def subscribed(*topics, rack=None, owned=None, holds=True):
    owns = Partitions(owned or {})
    return Joined(Subscription(tuple(topics), owns, 3 if owned else -1, rack), holds)


def test_only_topics_of_the_group_that_are_known_are_described():
    metadata = Metadata({"t": {0, 1}, "u": set(), "other": {0}})
    cluster = describe(metadata, [subscribed("t", "u"), subscribed("t", "unknown")], "nodes")
    assert cluster.topics == {"t": TopicInfo(2), "u": TopicInfo(0)}


def test_a_partition_that_is_missing_at_present_is_there():
    assert describe(Metadata({"t": {0, 2}}), [subscribed("t")], "nodes").topics == {"t": TopicInfo(3)}


def test_racks_are_those_of_the_replicas_brokers_each_once():
    racks, replicas = {1: "r1", 2: "r2", 3: "r1", 4: None}, {"t": {0: [1, 2, 3], 1: [4, 9]}}
    metadata = Metadata({"t": {0, 1}, "u": {0}}, racks, replicas)
    members = [subscribed("t", "u", rack="r1")]
    cluster = describe(metadata, members, "nodes")
    assert cluster.topics == {"t": TopicInfo(2, (("r1", "r2"), ())), "u": TopicInfo(1)}


def test_racks_are_not_asked_for_where_no_member_has_one():
    metadata = Metadata({"t": {0}}, {1: "r1"}, {"t": {0: [1]}})
    assert describe(metadata, [subscribed("t")], "nodes").topics == {"t": TopicInfo(1)}


class Restless:
    """Gives every partition to who does not own it, and waits until its owner has given it up."""

    name = "restless"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def assign(self, cluster, group):
        owner = {tp: m for m, s in group.items() for tp in s.owned}
        if not owner:
            return {min(group): [("t", 0), ("t", 1)]}
        other = {"a": "b", "b": "a"}
        free = [tp for tp in (("t", 0), ("t", 1)) if tp not in owner]
        return {other[next(iter(owner.values()))]: free}


def test_an_assignor_that_never_rests_starts_over_without_owners():
    members = {
        "a": subscribed("t", owned={"t": [0]}, holds=False),
        "b": subscribed("t", owned={}, holds=False),
    }
    given = lead(Restless(), Cluster({"t": 2}), members)
    assert {m: each.by_topic for m, each in given.items()} == {"a": [("t", [0, 1])], "b": []}


class Complaining:
    name = "complaining"

    def assign(self, cluster, group):
        raise InputError("its file", "nothing", "a list")


def test_errors_of_this_program_that_an_assignor_raises_get_its_name_too():
    with pytest.raises(AssignmentError) as caught:
        lead(Complaining(), Cluster({"t": 1}), {"a": subscribed("t")})
    assert placeless(str(caught.value)) == (
        "assignor 'complaining' on a group of 1 members on 1 topics:"
        " assign raised InputError: its file: found nothing, expected a list"
    )


class Silent:
    name = "silent"

    def assign(self, cluster, group):
        return {}


def test_leaders_count_rounds_from_the_newest_they_heard_of():
    members = {"a": subscribed("t", owned={"t": [0]}), "b": subscribed("t")}
    given = lead(Silent(), Cluster({"t": 1}), members)
    assert {m: detach(each.user_data, Grant)[1] for m, each in given.items()} == {
        "a": Grant(4, "a"),
        "b": Grant(4, "b"),
    }
    assert (
        detach(lead(Silent(), Cluster({}), {"b": subscribed("t")})["b"].user_data, Grant)[1].generation == 1
    )


class Talking:
    name = "talking"

    def assign(self, cluster, group):
        return GroupAssignment({"a": Partitions()}, user_data={"a": b"hello"})


def test_what_an_assignor_tells_a_member_comes_first():
    given = lead(Talking(), Cluster({"t": 1}), {"a": subscribed("t")})
    assert detach(given["a"].user_data, Grant) == (b"hello", Grant(1, "a"))
