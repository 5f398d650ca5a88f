"""Sticky, by examples with the answer that Apache Kafka 4.4 gives, written out in the order of its lists."""

import pytest

from assignors.sticky import StickyAssignor
from coordinator_core.assigning.user_data import encode_generation, encode_ownership
from coordinator_core.errors import AssignmentError
from coordinator_core.model import Cluster, GroupSubscription, RebalanceProtocol, TopicInfo
from tests.assignors.groups import assign, changed, fed_back, group, member, partitions, told


def stuck(topics, members):
    return told(assign("sticky", Cluster(topics), members))


def said(topics, owned, generation, **rest):
    """An eager member: it owns nothing, and says in its user data what it had."""
    return member(topics, user_data=encode_ownership(partitions(owned), generation), **rest)


def test_a_new_group_is_dealt_in_a_circle():
    """PROTOCOL 10.5: all topics in one circle."""
    members = group(a=member("t u"), b=member("t u"), c=member("t u"))
    assert stuck({"t": 4, "u": 4}, members) == {"a": "t:0,3 u:2", "b": "t:1 u:0,3", "c": "t:2 u:1"}


def test_a_leave_moves_only_what_the_leaver_had():
    """PROTOCOL 10.5, C-67: t-2 and t-5 are dealt out, one each."""
    members = group(a=member("t", "t:0,3"), b=member("t", "t:1,4"))
    assert stuck({"t": 6}, members) == {"a": "t:0,3,2", "b": "t:1,4,5"}


def test_a_join_moves_the_share_of_the_newcomer():
    """PROTOCOL 10.5, C-67: floor(7 / 3) = 2 partitions move, the highest of those who own most."""
    members = group(a=member("t", "t:0,2,4,6"), b=member("t", "t:1,3,5"), c=member("t"))
    assert stuck({"t": 7}, members) == {"a": "t:0,2,4", "b": "t:1,3", "c": "t:5,6"}


def test_each_topic_is_dealt_evenly_if_it_divides():
    """KAFKA-16277: two members and two topics of 16 partitions, in a new group, next round and a join."""
    topics, both = {"t": 16, "u": 16}, group(a=member("t u"), b=member("t u"))
    first = assign("sticky", Cluster(topics), both)
    again = assign("sticky", Cluster(topics), fed_back(both, first))
    alone = assign("sticky", Cluster(topics), group(a=member("t u")))
    owning = changed(member("t u"), owned=alone["a"], generation=1)
    grown = assign("sticky", Cluster(topics), group(a=owning, b=member("t u")))
    for given in (first, again, grown):
        shares = {(m, t): len(n) for m, got in given.items() for t, n in got.by_topic().items()}
        assert shares == dict.fromkeys([("a", "t"), ("a", "u"), ("b", "t"), ("b", "u")], 8)


def test_two_members_that_leave_and_one_that_joins_are_one_change():
    """PROTOCOL 10.5."""
    members = group(b=member("t", "t:1,5"), d=member("t", "t:3,7"), new=member("t"))
    assert stuck({"t": 8}, members) == {"b": "t:1,5,4", "d": "t:3,7,6", "new": "t:0,2"}


def test_subscriptions_bind_more_than_ownership():
    """PROTOCOL 10.5: a gave u up; b, who owns all of t, sheds the first ones until no move evens out."""
    members = group(a=member("t", "u:0,1"), b=member("t u", "t:0,1,2,3"))
    assert stuck({"t": 4, "u": 2}, members) == {"a": "t:0,1,2", "b": "t:3 u:0,1"}


def test_the_newest_claim_wins_and_equal_ones_cancel():
    """C-65: t-0 goes to c whose claim is newer; t-1 of a and b is free, and falls to a, the first."""
    members = group(a=member("t", "t:0,1,2", 3), b=member("t", "t:1,3", 3), c=member("t", "t:0", 4))
    assert stuck({"t": 4}, members) == {"a": "t:2,1", "b": "t:3", "c": "t:0"}


def test_an_older_members_claim_that_nobody_contests_is_honoured():
    """C-65: a lags a generation behind and keeps t-0 all the same."""
    members = group(a=member("t", "t:0,1", 3), b=member("t", "t:1,2", 4))
    assert stuck({"t": 4}, members) == {"a": "t:0,3", "b": "t:1,2"}


def test_user_data_counts_before_the_subscriptions_own_fields():
    """C-65b: what and when come from one place, never one from here and the other from there."""
    fields = {"owned": partitions("t:2,3"), "generation": 4}
    members = group(a=changed(said("t", "t:0,1", 4), **fields), b=said("t", "t:0,1", 5))
    assert stuck({"t": 4}, members) == {"a": "t:2,3", "b": "t:0,1"}


@pytest.mark.parametrize("order", ["abc", "cba"])
@pytest.mark.parametrize(
    ("in_field", "expected"),
    [
        ("ab", {"a": "t:1", "b": "t:2", "c": "t:0"}),
        ("a", {"a": "t:1", "b": "t:2", "c": "t:0"}),
        ("b", {"a": "t:1", "b": "t:0", "c": "t:2"}),
        ("", {"a": "t:1", "b": "t:0", "c": "t:2"}),
    ],
)
def test_a_claim_is_newer_than_one_whose_subscription_has_no_generation(order, in_field, expected):
    """C-65b: a and b claim t-0, both since generation 4; Kafka's hash map yields a first.

    Kafka compares b's generation, from user data or not, with the one in the subscription of a.
    """
    members = {"c": member("t")}
    for m, owned in (("a", "t:0,1"), ("b", "t:0,2")):
        members[m] = (member if m in in_field else said)("t", owned, 4)
    assert stuck({"t": 3}, GroupSubscription({m: members[m] for m in order})) == expected


def test_user_data_of_version_0_claim_without_a_generation():
    """C-65: the claim of version 1 on t-0 is newer."""
    old, new = said("t", "t:0,1", 9), said("t", "t:0,2", 3)
    members = group(b=changed(old, user_data=old.user_data[:-4], generation=2), a=changed(new, generation=3))
    assert stuck({"t": 4}, members) == {"b": "t:1,3", "a": "t:0,2"}


@pytest.mark.parametrize("strange", [b"", b"hello", encode_generation(7), b"\xff" * 40])
def test_user_data_of_another_assignor_says_nothing(strange):
    """C-68: the subscription's own fields count then."""
    members = group(a=member("t", "t:1", user_data=strange), b=member("t", "t:0"))
    assert stuck({"t": 2}, members) == {"a": "t:1", "b": "t:0"}


def test_members_keep_nothing_far_from_its_replicas():
    """PROTOCOL 10.5, C-72: equal subscriptions; all partitions are far from their owners."""
    topic = TopicInfo(4, (("x",), ("x",), ("y",), ("y",)))
    members = group(a=member("t", "t:2,3", rack="x"), b=member("t", "t:0,1", rack="y"))
    assert stuck({"t": topic}, members) == {"a": "t:0,1", "b": "t:2,3"}


def test_racks_decide_who_gets_what_but_not_how_much():
    """PROTOCOL 10.5, C-72: a is in the rack of three partitions and may have two."""
    topic = TopicInfo(4, (("x",), ("x",), ("x",), ("y",)))
    members = group(a=member("t", "t:3", rack="x"), b=member("t", "t:0,1,2", rack="y"))
    assert stuck({"t": topic}, members) == {"a": "t:0,1", "b": "t:3,2"}


def test_static_members_are_dealt_to_by_member_id():
    """C-66: Kafka's sticky assignors do not look at instance ids."""
    assert stuck({"t": 3}, group(z=member("t", instance_id="1"), a=member("t"))) == {"z": "t:1", "a": "t:0,2"}
    assert stuck({"t": 3}, group(b=member("t", instance_id="1"), c=member("t"))) == {"b": "t:0,2", "c": "t:1"}


def test_of_two_that_hold_one_more_the_first_in_hash_order_keeps_it():
    """PROTOCOL 10.5: only one member may have two; Java's HashMap yields c before ba."""
    members = group(ba=member("t", "t:0,1"), c=member("t", "t:2,3"), y=member("t"), z=member("t", "t:4"))
    assert stuck({"t": 5}, members) == {"ba": "t:0", "c": "t:2,3", "y": "t:1", "z": "t:4"}


def test_members_without_topics_get_some_if_a_hash_map_yields_them_first():
    """C-69: Kafka takes the subscriptions of a (none) and b as equal, and those of b and c not."""
    assert stuck({"t": 2}, group(a=member(""), b=member("t"))) == {"a": "t:0", "b": "t:1"}
    assert stuck({"t": 2}, group(c=member(""), b=member("t"))) == {"c": "", "b": "t:0,1"}


def test_a_partition_moves_to_a_member_that_had_it_in_an_older_generation():
    """PROTOCOL 10.5: t-0 to a2, though a1 is the first of those with the fewest."""
    members = group(
        a1=member("t"), a2=member("t", "t:0", 3), b=member("t", "t:0,1,2,3", 4), c=member("t u", "u:0", 4)
    )
    expected = {"a1": "t:1", "a2": "t:0", "b": "t:2,3", "c": "u:0"}
    assert stuck({"t": 4, "u": 1}, members) == expected


def test_of_two_that_had_it_in_one_older_generation_the_first_in_hash_order_counts():
    """PROTOCOL 10.5: b and c claim u-1 since generation 3; a has one too many."""
    members = group(a=member("t u", "t:0 u:0,1,2", 4), b=member("u", "u:1", 3), c=member("u", "u:0,1", 3))
    assert stuck({"t": 1, "u": 3}, members) == {"a": "t:0 u:2", "b": "u:1", "c": "u:0"}


def test_it_does_so_even_if_the_member_no_longer_subscribes():
    """PROTOCOL 10.5: a subscribes to u alone, and has to join again for what it gets."""
    members = group(
        a=member("u", "t:0", 3), b=member("t u", "t:0,1,2,3", 4), c=member("u", "u:0", 4), d=member("t")
    )
    assert stuck({"t": 4, "u": 1}, members) == {"a": "t:0", "b": "t:2,3", "c": "u:0", "d": "t:1"}


def test_it_fails_if_that_member_takes_no_part_in_moves():
    """PROTOCOL 10.5: a subscribes to nothing, and Kafka's raises NullPointerException."""
    members = group(b=member("t u", "t:0,1,2,3", 4), a=member("", "t:0", 3), d=member("t"))
    with pytest.raises(AssignmentError, match="NullPointerException here: 'a' claims"):
        stuck({"t": 4, "u": 1}, members)


def test_the_assignor_of_a_member_remembers_what_it_got():
    """PROTOCOL 10.5: and tells it, with the generation, at the next join."""
    assignor = StickyAssignor()
    assert assignor.subscription_user_data(("t",)) == encode_ownership(partitions(""), -1)
    assignor.on_assignment(partitions("t:1 u:0"), 6)
    assert assignor.subscription_user_data(("t",)) == encode_ownership(partitions("t:1 u:0"), 6)
    assert StickyAssignor().subscription_user_data(()) == encode_ownership(partitions(""), -1)


def test_it_is_known_to_kafka_by_name_version_and_protocol():
    """PROTOCOL 10.5."""
    assert (StickyAssignor.name, StickyAssignor.version) == ("sticky", 1)
    assert StickyAssignor.supported_protocols == (RebalanceProtocol.EAGER,)


def test_it_can_be_called_without_the_door():
    """User data is read there too."""
    members = group(a=said("t", "t:1", 5), b=said("t", "t:0", 5))
    assert told(StickyAssignor().assign(Cluster({"t": 2}), members)) == {"a": "t:1", "b": "t:0"}
