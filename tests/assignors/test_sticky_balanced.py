"""StickyBalanced, by examples with the answer written out."""

import pytest

from assignors.sticky_balanced import StickyBalancedAssignor
from coordinator_core.assigning.user_data import encode_generation, encode_ownership
from coordinator_core.model import Cluster, GroupSubscription, RebalanceProtocol
from tests.assignors.groups import assign, changed, group, listed, member, partitions, told


def stuck(topics, members):
    return told(assign("sticky-balanced", Cluster(topics), members))


def said(topics, owned, generation, **rest):
    """An eager member: it owns nothing, and says in its user data what it had."""
    return member(topics, user_data=encode_ownership(partitions(owned), generation), **rest)


def test_a_new_group_is_dealt_in_a_circle():
    """PROTOCOL 10.3: each topic is spread over many members."""
    members = group(a=member("t u"), b=member("t u"), c=member("t u"))
    assert stuck({"t": 4, "u": 4}, members) == {"a": "t:0,3 u:2", "b": "t:1 u:0,3", "c": "t:2 u:1"}


def test_a_leave_moves_only_what_the_leaver_had():
    """PROTOCOL 10.3, C-67: t-2 and t-5 are dealt out, one each."""
    members = group(a=member("t", "t:0,3"), b=member("t", "t:1,4"))
    assert stuck({"t": 6}, members) == {"a": "t:0,2,3", "b": "t:1,4,5"}


def test_a_join_moves_the_share_of_the_newcomer():
    """PROTOCOL 10.3, C-67: floor(7 / 3) = 2 partitions move, the highest of those who own most."""
    members = group(a=member("t", "t:0,2,4,6"), b=member("t", "t:1,3,5"), c=member("t"))
    assert stuck({"t": 7}, members) == {"a": "t:0,2,4", "b": "t:1,3", "c": "t:5,6"}


def test_user_data_counts_before_the_subscriptions_own_fields():
    """C-65b: what and when come from one place, never one from here and the other from there."""
    fields = {"owned": partitions("t:2,3"), "generation": 9}
    members = group(a=changed(said("t", "t:0,1", 4), **fields), b=said("t", "t:0,1", 5))
    assert stuck({"t": 4}, members) == {"a": "t:2,3", "b": "t:0,1"}
    assert listed(assign("sticky-balanced", Cluster({"t": 4}), members))["b"] == [("t", 0), ("t", 1)]


@pytest.mark.parametrize("order", ["abc", "cba"])
@pytest.mark.parametrize("field_first", [True, False])
def test_one_accessor_reads_generations_of_both_kinds_of_subscription(order, field_first):
    """C-65b: one member tells its generation in the subscription (v2), the other in user data (v1).

    The claims on t-0 are of one generation, so neither counts, in whichever order the members come. A
    newer one would keep its t-0, the lowest it has.
    """
    for newer, expected in (
        (None, {"a": "t:1", "b": "t:2", "c": "t:0"}),
        ("a", {"a": "t:0", "b": "t:2", "c": "t:1"}),
        ("b", {"a": "t:1", "b": "t:0", "c": "t:2"}),
    ):
        generation = {m: 4 + (m == newer) for m in "ab"}
        members = {"c": member("t")}
        for m, owned, in_field in (("a", "t:0,1", field_first), ("b", "t:0,2", not field_first)):
            made = member if in_field else said
            members[m] = made("t", owned, generation[m])
        assert stuck({"t": 3}, GroupSubscription({m: members[m] for m in order})) == expected


@pytest.mark.parametrize("strange", [b"", b"hello", encode_generation(7), b"\xff" * 40])
def test_user_data_of_another_assignor_says_nothing(strange):
    """C-68: the subscription's own fields count then."""
    members = group(a=member("t", "t:1", user_data=strange), b=member("t", "t:0"))
    assert stuck({"t": 2}, members) == {"a": "t:1", "b": "t:0"}


def test_static_members_keep_their_place_under_a_new_member_id():
    """C-66."""
    before = group(z=member("t", instance_id="1"), a=member("t"))
    after = group(b=member("t", instance_id="1"), a=member("t"))
    assert stuck({"t": 3}, before) == {"z": "t:0,2", "a": "t:1"}
    assert stuck({"t": 3}, after) == {"b": "t:0,2", "a": "t:1"}


def test_the_assignor_of_a_member_remembers_what_it_got():
    """PROTOCOL 10.3: and tells it, with the generation, at the next join."""
    assignor = StickyBalancedAssignor()
    assert assignor.subscription_user_data(("t",)) == encode_ownership(partitions(""), -1)
    assignor.on_assignment(partitions("t:1 u:0"), 6)
    assert assignor.subscription_user_data(("t",)) == encode_ownership(partitions("t:1 u:0"), 6)
    assert StickyBalancedAssignor().subscription_user_data(()) == encode_ownership(partitions(""), -1)


def test_it_has_a_name_a_version_and_the_eager_protocol():
    """PROTOCOL 10.3."""
    assert (StickyBalancedAssignor.name, StickyBalancedAssignor.version) == ("sticky-balanced", 1)
    assert StickyBalancedAssignor.supported_protocols == (RebalanceProtocol.EAGER,)


def test_it_can_be_called_without_the_door():
    """User data is read there too."""
    members = group(a=said("t", "t:1", 5), b=said("t", "t:0", 5))
    assert told(StickyBalancedAssignor().assign(Cluster({"t": 2}), members)) == {"a": "t:1", "b": "t:0"}
