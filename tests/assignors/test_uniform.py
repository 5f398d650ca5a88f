"""Uniform, by examples with the answer written out, as Kafka's own classes give it."""

from uuid import UUID

import pytest

from coordinator_core.model import Cluster, GroupSubscription, Handover, Partitions
from tests.assignors.groups import assign, group, member, told

NAME = "uniform-848"
IN_BUCKET_3, IN_BUCKET_0 = UUID(int=3), UUID(int=2**127)
"""Two ids by the buckets of their hashes. The second one is less: its halves are signed numbers."""


def shares(assignment):
    return {name: set(partitions) for name, partitions in assignment.items()}


def numbers(*found):
    return set(Partitions({"t": found}))


# --- the same topics for all


def test_the_last_members_get_the_additional_partitions():
    members = group(a=member("t"), b=member("t"), c=member("t"))
    assert told(assign(NAME, Cluster({"t": 4}), members)) == {"a": "t:0", "b": "t:1", "c": "t:2,3"}


@pytest.mark.parametrize(
    ("keeps_extras", "kept"), [(False, {"a": (1, 2), "b": (0,)}), (True, {"a": (2,), "b": (0, 1)})]
)
def test_since_4_1_a_member_keeps_its_additional_partition(keeps_extras, kept):
    members = {"a": member("t", "t:2"), "b": member("t", "t:0,1")}
    handed = GroupSubscription(members, handover=Handover(alike=True, keeps_extras=keeps_extras))
    found = shares(assign(NAME, Cluster({"t": 3}), handed))
    assert found == {name: numbers(*of_member) for name, of_member in kept.items()}


def test_ids_of_topics_decide_whose_partitions_are_given_first():
    members, counts = group(a=member("t u"), b=member("t u")), {"t": 1, "u": 1}
    first = Cluster(counts, {"t": IN_BUCKET_0, "u": IN_BUCKET_3})
    second = Cluster(counts, {"t": IN_BUCKET_3, "u": IN_BUCKET_0})
    assert told(assign(NAME, first, members)) == {"a": "t:0", "b": "u:0"}
    assert told(assign(NAME, second, members)) == {"a": "u:0", "b": "t:0"}


def test_a_member_gives_up_the_last_partitions_in_the_order_of_a_hash_set():
    """In a table of 16 buckets, 16 and 17 are before 8."""
    members = group(a=member("t", "t:1,2,3,4,5,6,7,8,9,16,17"), b=member("t"))
    found = shares(assign(NAME, Cluster({"t": 18}), members))
    assert found["a"] == numbers(1, 2, 3, 4, 5, 6, 7, 16, 17)


# --- different topics


def test_partitions_move_from_the_member_with_the_most_to_that_with_the_fewest():
    members = group(a=member("t", "t:0,1,2,3"), b=member("t u", "t:4,5"), c=member("t u"))
    found = told(assign(NAME, Cluster({"t": 6, "u": 2}), members))
    assert found == {"a": "t:0,1,2", "b": "t:3,4,5", "c": "u:0,1"}


def test_the_best_balance_may_be_missed():
    """Two partitions for each member would need a move of t from c to b, which has no fewer than c then."""
    members = group(a=member("u"), b=member("t u"), c=member("t"))
    cluster = Cluster({"t": 3, "u": 3})
    assert sorted(map(len, assign(NAME, cluster, members).values())) == [1, 2, 3]
    assert sorted(map(len, assign("sticky-balanced", cluster, members).values())) == [2, 2, 2]


def test_a_member_without_partitions_of_the_topic_leaves_its_turn_to_the_first_of_its_level():
    members = group(
        a=member("t u v", "t:0,2,4 u:0,2"), b=member("v", "v:2", 4), c=member("t u v", "v:0,1", 3)
    )
    found = told(assign(NAME, Cluster({"t": 5, "u": 3, "v": 3}), members))
    assert found == {"a": "t:0,2 u:0,2", "b": "v:0,1,2", "c": "t:1,3,4 u:1"}


def test_topics_are_leveled_again_after_others_until_none_changes():
    members = group(
        a=member("w"),
        b=member("t v w", "t:0"),
        c=member("t v w", "t:1,2 v:3 w:0,1,2"),
        d=member("t u", "t:3"),
    )
    found = told(assign(NAME, Cluster({"t": 4, "u": 5, "v": 4, "w": 3}), members))
    assert found == {"a": "w:0,1,2", "b": "t:0,3 v:0,1", "c": "t:1,2 v:2,3", "d": "u:0,1,2,3,4"}


def test_of_topics_alike_the_one_with_the_least_id_is_first():
    members, counts = group(a=member("t u"), b=member("t u"), c=member("v")), {"t": 1, "u": 1, "v": 0}
    first = Cluster(counts, {"t": IN_BUCKET_3, "u": IN_BUCKET_0})
    second = Cluster(counts, {"t": IN_BUCKET_0, "u": IN_BUCKET_3})
    assert told(assign(NAME, first, members)) == {"a": "u:0", "b": "t:0", "c": ""}
    assert told(assign(NAME, second, members)) == {"a": "t:0", "b": "u:0", "c": ""}


# --- groups of a coordinator


def test_what_a_coordinator_takes_to_be_different_is_leveled():
    """Topics that do not exist count for it, so that the first member gets the additional partition."""
    members = {"a": member("t missing"), "b": member("t")}
    by_document, different = (
        GroupSubscription(members),
        GroupSubscription(members, handover=Handover(alike=False)),
    )
    assert told(assign(NAME, Cluster({"t": 1}), by_document)) == {"a": "", "b": "t:0"}
    assert told(assign(NAME, Cluster({"t": 1}), different)) == {"a": "t:0", "b": ""}


def test_members_of_a_coordinator_list_their_partitions_as_its_records_do():
    """In a set of 16 buckets, those of 0 and 16 are in one, in the order in which they were read or came."""
    members = GroupSubscription(
        {"a": member("t"), "b": member("t", "t:17,16,1,0")}, handover=Handover(alike=True)
    )
    assert told(assign(NAME, Cluster({"t": 18}), members))["b"] == "t:16,0,17,1,11,12,13,14,15"
