"""Range, by examples with the answer written out."""

import pytest

from assignors.range import RangeAssignor
from coordinator_core.model import Cluster, GroupSubscription, Subscription, TopicInfo
from tests.assignors.groups import assign, group, member, told


def ranged(topics, members):
    return told(assign("range", Cluster(topics), members))


def in_racks(*racks):
    """A topic whose partitions have their replicas in these racks: 'xy' is x and y."""
    return TopicInfo(len(racks), tuple(tuple(each) for each in racks))


def test_ten_partitions_on_three_members_are_four_three_and_three():
    """PROTOCOL 10.1."""
    members = group(c=member("t"), a=member("t"), b=member("t"))
    assert ranged({"t": 10}, members) == {"a": "t:0,1,2,3", "b": "t:4,5,6", "c": "t:7,8,9"}


def test_each_topic_begins_with_the_first_member_again():
    """PROTOCOL 10.1: which is why many small topics burden the first members."""
    members = group(a=member("t u v"), b=member("t u v"))
    found = assign("range", Cluster({"t": 3, "u": 3, "v": 1}), members)
    assert {m: sorted(got) for m, got in found.items()} == {
        "a": [("t", 0), ("t", 1), ("u", 0), ("u", 1), ("v", 0)],
        "b": [("t", 2), ("u", 2)],
    }


def test_fewer_partitions_than_members_go_to_the_first_ones():
    """PROTOCOL 10.1."""
    assert ranged({"t": 2}, group(a=member("t"), b=member("t"), c=member("t"))) == {
        "a": "t:0",
        "b": "t:1",
        "c": "",
    }


def test_only_subscribers_of_a_topic_share_it():
    """PROTOCOL 10.1."""
    members = group(a=member("t"), b=member("t u"), c=member("u"))
    assert ranged({"t": 3, "u": 3}, members) == {"a": "t:0,1", "b": "t:2 u:0,1", "c": "u:2"}


def test_members_with_instance_ids_come_first_and_by_those():
    """PROTOCOL 10.1, C-66."""
    members = group(a=member("t"), y=member("t", instance_id="2"), z=member("t", instance_id="1"))
    assert ranged({"t": 4}, members) == {"z": "t:0,1", "y": "t:2", "a": "t:3"}


def test_the_replacement_of_a_static_member_changes_nothing():
    """C-66: a0 comes back as x9 under its instance id."""
    before = group(a0=member("t", instance_id="i"), b=member("t"))
    after = group(x9=member("t", instance_id="i"), b=member("t"))
    assert ranged({"t": 3}, before) == {"a0": "t:0,1", "b": "t:2"}
    assert ranged({"t": 3}, after) == {"x9": "t:0,1", "b": "t:2"}


def test_partitions_go_where_their_replicas_are_within_the_quota():
    """PROTOCOL 10.1, C-72: the first member may take three of the five in its rack, no more."""
    members = group(a=member("t", rack="x"), b=member("t", rack="y"))
    assert ranged({"t": in_racks("y", "x", "x", "x", "x")}, members) == {"a": "t:1,2,3", "b": "t:0,4"}


def test_the_extra_partition_belongs_to_whom_it_matches_first():
    """PROTOCOL 10.1, C-72."""
    members = group(a=member("t", rack="x"), b=member("t", rack="y"))
    assert ranged({"t": in_racks("y", "y", "x")}, members) == {"a": "t:2", "b": "t:0,1"}


def test_what_matches_nobody_falls_to_the_first_that_has_room():
    """PROTOCOL 10.1, C-72: both took their one match, and the extra place is still to be had."""
    members = group(a=member("t", rack="x"), b=member("t", rack="y"))
    assert ranged({"t": in_racks("y", "x", "z")}, members) == {"a": "t:1,2", "b": "t:0"}


def test_a_member_without_a_rack_matches_everywhere():
    """PROTOCOL 10.1, C-72: it takes its runs as it would without racks."""
    members = group(a=member("t"), b=member("t", rack="x"))
    assert ranged({"t": in_racks("x", "x", "y", "y")}, members) == {"a": "t:0,1", "b": "t:2,3"}


@pytest.mark.parametrize("racks", [("xy", "xy", "xy", "xy"), ("z", "z", "z", "w")])
def test_racks_that_cannot_be_matched_or_missed_leave_the_runs_alone(racks):
    """C-72: replicas in all racks, or in none that a member is in."""
    members = group(a=member("t", rack="y"), b=member("t", rack="x"))
    assert ranged({"t": in_racks(*racks)}, members) == {"a": "t:0,1", "b": "t:2,3"}


def test_topics_with_equal_counts_and_subscribers_stay_co_partitioned():
    """PROTOCOL 10.1: partition n of both goes to one member, and racks count where they match in both."""
    members = group(a=member("t u", rack="x"), b=member("t u", rack="y"))
    topics = {"t": in_racks("y", "y", "x", "x"), "u": in_racks("y", "x", "xy", "x")}
    assert ranged(topics, members) == {"a": "t:2,3 u:2,3", "b": "t:0,1 u:0,1"}


def test_topics_with_unequal_counts_are_matched_apart():
    """PROTOCOL 10.1."""
    members = group(a=member("t u", rack="x"), b=member("t u", rack="y"))
    assert ranged({"t": in_racks("y", "x"), "u": in_racks("x", "y", "y")}, members) == {
        "a": "t:1 u:0",
        "b": "t:0 u:1,2",
    }


def test_a_co_partitioned_topic_without_racks_leaves_nothing_to_match():
    """PROTOCOL 10.1: staying together goes before racks."""
    members = group(a=member("t u", rack="x"), b=member("t u", rack="y"))
    assert ranged({"t": in_racks("y", "x"), "u": 2}, members) == {"a": "t:0 u:0", "b": "t:1 u:1"}


def test_lists_come_in_the_order_of_javas_hash_maps():
    """PROTOCOL 10.1: 'q' (113) falls into bucket 1 of 16 like 'a' (97), after 'p' (112, bucket 0)."""
    topics = dict.fromkeys("apq", 1)
    assert ranged(topics, group(m=member("a p q"))) == {"m": "p:0 a:0 q:0"}


def test_topics_in_one_bucket_come_as_the_subscription_names_them():
    """PROTOCOL 10.1, C-61: the one thing in which the order of a list shows, as it does in Kafka."""
    topics = dict.fromkeys("aq", 1)
    assert ranged(topics, group(m=member("a q"))) == {"m": "a:0 q:0"}
    assert ranged(topics, group(m=member("q a"))) == {"m": "q:0 a:0"}


def test_what_members_own_is_of_no_interest():
    """PROTOCOL 10.1."""
    assert ranged({"t": 4}, group(a=member("t", "t:2,3"), b=member("t", "t:0,1"))) == {
        "a": "t:0,1",
        "b": "t:2,3",
    }


def test_it_can_be_called_without_the_door():
    """The method of the interface, for authors who build on it."""
    members = GroupSubscription({"a": Subscription(("t",)), "b": Subscription(("t",))})
    assert told(RangeAssignor().assign(Cluster({"t": 2}), members)) == {"a": "t:0", "b": "t:1"}


def test_replicas_in_all_racks_do_not_matter():
    """PITFALLS C-72: each partition has a replica in each rack, so that the counts decide."""
    members = group(a=member("t", rack="x"), b=member("t", rack="y"))
    assert ranged({"t": in_racks("xy", "xy", "xy")}, members) == {"a": "t:0,1", "b": "t:2"}
