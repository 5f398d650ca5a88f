"""CooperativeSticky, by examples with the answer written out."""

import pytest

from assignors.cooperative_sticky import CooperativeStickyAssignor
from coordinator_core.assigning.user_data import encode_generation, encode_ownership
from coordinator_core.model import Cluster, GroupSubscription
from tests.assignors.groups import assign, fed_back, group, member, partitions, told


def stuck(topics, members):
    return told(assign("cooperative-sticky", Cluster(topics), members))


def test_a_newcomer_gets_its_share_in_the_second_round():
    """PROTOCOL 11.5: P1 to P6 are p:1 to p:6, c1 owns three, c2 owns three, c3 joins.

    Nobody stops P1, P2, P4 and P5; P3 and P6 are owned by nobody between the rounds.
    """
    cluster = Cluster({"p": 6})  # numbered from nought: P1 is p:0
    joined = group(c1=member("p", "p:0,1,2"), c2=member("p", "p:3,4,5"), c3=member("p"))
    first = assign("cooperative-sticky", cluster, joined)
    assert told(first) == {"c1": "p:0,1", "c2": "p:3,4", "c3": ""}
    second = assign("cooperative-sticky", cluster, fed_back(joined, first))
    assert told(second) == {"c1": "p:0,1", "c2": "p:3,4", "c3": "p:2,5"}


def test_a_leave_takes_one_round():
    """PROTOCOL 10.5, C-63, C-67: nobody has to give anything up."""
    members = group(c1=member("p", "p:0,1"), c2=member("p", "p:3,4"))
    assert stuck({"p": 6}, members) == {"c1": "p:0,1,2", "c2": "p:3,4,5"}


def test_a_new_group_takes_one_round():
    """PROTOCOL 10.5: what nobody claims needs nobody's consent."""
    assert stuck({"p": 3}, group(a=member("p"), b=member("p"))) == {"a": "p:0,2", "b": "p:1"}


def test_a_partition_with_two_equal_claims_is_held_back_even_from_the_claimants():
    """PROTOCOL 10.5, C-64, C-65: one of the two will get it, once both have let go."""
    cluster = Cluster({"t": 4})
    members = group(a=member("t", "t:0,1", 3), b=member("t", "t:1,2", 3))
    first = assign("cooperative-sticky", cluster, members)
    assert told(first) == {"a": "t:0", "b": "t:2,3"}
    second = assign("cooperative-sticky", cluster, fed_back(members, first))
    assert told(second) == {"a": "t:0,1", "b": "t:2,3"}


def test_an_owner_whose_claim_counts_keeps_what_a_stale_member_claims_too():
    """PROTOCOL 10.5, C-65: the stale member learns from its answer that it must stop."""
    members = group(a=member("t", "t:0,1", 4), b=member("t", "t:1,2", 3))
    assert stuck({"t": 4}, members) == {"a": "t:0,1", "b": "t:2,3"}


def test_a_stale_claimant_too_waits_until_the_owner_has_given_up():
    """PROTOCOL 10.5, C-64: t-2 is to go from a to b, which says from older times that it has it."""
    cluster = Cluster({"t": 6})
    members = group(a=member("t", "t:0,1,2", 4), b=member("t", "t:2,3", 3), c=member("t"))
    first = assign("cooperative-sticky", cluster, members)
    assert told(first) == {"a": "t:0,1", "b": "t:3", "c": "t:4,5"}
    second = assign("cooperative-sticky", cluster, fed_back(members, first))
    assert told(second) == {"a": "t:0,1", "b": "t:3,2", "c": "t:4,5"}


def test_what_a_stale_member_alone_claims_is_held_back_from_everybody_else():
    """PROTOCOL 10.5, C-64: it may still be at work on it, though it is a generation behind."""
    members = group(a=member("t", "t:0", 4), b=member("t", "t:1,2,3", 2))
    assert stuck({"t": 4}, members) == {"a": "t:0", "b": "t:1,2"}


def test_a_partition_of_a_member_that_no_longer_subscribes_waits_for_it():
    """PROTOCOL 10.5, C-64."""
    members = group(a=member("u", "t:0"), b=member("t"))
    first = assign("cooperative-sticky", Cluster({"t": 2, "u": 1}), members)
    assert told(first) == {"a": "u:0", "b": "t:1"}
    second = assign("cooperative-sticky", Cluster({"t": 2, "u": 1}), fed_back(members, first))
    assert told(second) == {"a": "u:0", "b": "t:1,0"}


def test_the_generation_is_read_from_user_data_where_the_subscription_has_none():
    """C-65b: a subscription of v1 tells what is owned, its user data since when. Kafka looks at b last."""
    old = member("t", "t:1,2", -1, user_data=encode_generation(5))
    new = member("t", "t:0,1", 4)
    assert stuck({"t": 4}, group(a=new, b=old)) == {"a": "t:0,3", "b": "t:1,2"}


@pytest.mark.parametrize("order", ["abc", "cba"])
@pytest.mark.parametrize(
    ("old", "expected"),
    [("b", {"a": "t:1", "b": "t:2", "c": ""}), ("a", {"a": "t:1", "b": "t:0", "c": ""})],
)
def test_claims_of_one_generation_cancel_if_the_first_subscription_tells_it(order, old, expected):
    """C-65b: v1 and v2 mixed. Kafka compares the generation of b with that in the subscription of a."""

    def claimant(m, owned):
        data = encode_generation(4) if m == old else None
        return member("t", owned, -1 if m == old else 4, user_data=data)

    members = {"a": claimant("a", "t:0,1"), "b": claimant("b", "t:0,2"), "c": member("t")}
    in_order = GroupSubscription({m: members[m] for m in order})
    assert stuck({"t": 3}, in_order) == expected


def test_the_field_of_the_subscription_counts_before_user_data():
    """C-65b: where there are both."""
    members = group(
        a=member("t", "t:0,1", 4, user_data=encode_generation(9)), b=member("t", "t:1,2", 5), c=member("")
    )
    assert ("t", 1) in assign("cooperative-sticky", Cluster({"t": 4}), members)["b"]


@pytest.mark.parametrize("strange", [b"", b"hello", encode_ownership(partitions("t:0"), 9)])
def test_user_data_of_another_assignor_says_nothing(strange):
    """C-68."""
    members = group(a=member("t", "t:1", -1, user_data=strange), b=member("t", "t:0"))
    assert stuck({"t": 2}, members) == {"a": "t:1", "b": "t:0"}


def test_a_claimant_keeps_what_it_gets_though_another_one_owned_it():
    """C-64: with different subscriptions, Kafka withholds nothing from a member that claims it, too."""
    members = group(a=member("t u", "t:0,1,2", 4), b=member("t", "t:0", 3))
    assert stuck({"t": 3, "u": 1}, members) == {"a": "t:2 u:0", "b": "t:0"}  # t-1 moves, too, and waits


def test_the_assignor_of_a_member_remembers_the_generation():
    """PROTOCOL 10.5: for leaders that read subscriptions older than v2."""
    assignor = CooperativeStickyAssignor()
    assert assignor.subscription_user_data(("t",)) == encode_generation(-1)
    assignor.on_assignment(partitions("t:1"), 6)
    assert assignor.subscription_user_data(("t",)) == encode_generation(6)


def test_it_can_be_called_without_the_door():
    """User data is read there too."""
    members = group(
        a=member("t", "t:0", -1, user_data=encode_generation(5)), b=member("t", "t:0,1", 4), c=member("")
    )
    found = CooperativeStickyAssignor().assign(Cluster({"t": 2}), members)
    assert told(found) == {"a": "t:0", "b": "t:1", "c": ""}
    assert CooperativeStickyAssignor.name == "cooperative-sticky"
