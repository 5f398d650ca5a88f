"""RoundRobin, by examples with the answer written out."""

from coordinator_core.model import Cluster
from tests.assignors.groups import assign, group, member, told


def dealt(topics, members):
    return told(assign("roundrobin", Cluster(topics), members))


def test_partitions_of_all_topics_are_dealt_in_one_circle():
    """PROTOCOL 10.2: the second topic goes on where the first one stopped."""
    members = group(c=member("t u"), a=member("t u"), b=member("t u"))
    assert dealt({"u": 3, "t": 4}, members) == {"a": "t:0,3 u:2", "b": "t:1 u:0", "c": "t:2 u:1"}


def test_members_that_do_not_subscribe_are_skipped():
    """PROTOCOL 10.2: b is passed over for t, a and c for u; v begins behind b."""
    members = group(a=member("t v"), b=member("u v"), c=member("t v"))
    assert dealt({"t": 3, "u": 2, "v": 4}, members) == {
        "a": "t:0,2 v:1",
        "b": "u:0,1 v:2",
        "c": "t:1 v:0,3",
    }


def test_the_circle_goes_on_behind_who_got_the_last_even_if_the_next_topic_is_not_his():
    """PROTOCOL 10.2: t ends at c, the last; u begins at the first again."""
    members = group(a=member("u"), b=member("u"), c=member("t"))
    assert dealt({"t": 1, "u": 3}, members) == {"a": "u:0,2", "b": "u:1", "c": "t:0"}


def test_topics_without_partitions_or_subscribers_do_not_move_the_circle():
    """PROTOCOL 10.2, C-69."""
    members = group(a=member("t none v"), b=member("t none v"))
    assert dealt({"t": 1, "none": 0, "u": 5, "v": 2}, members) == {"a": "t:0 v:1", "b": "v:0"}


def test_members_with_instance_ids_come_first():
    """PROTOCOL 10.2, C-66."""
    members = group(a=member("t"), z=member("t", instance_id="i"))
    assert dealt({"t": 3}, members) == {"z": "t:0,2", "a": "t:1"}


def test_lists_are_sorted_by_topic_as_in_java_then_by_number():
    """PROTOCOL 10.2."""
    found = dealt({"\uff41": 2, "\U0001f600": 1, "a": 1}, group(m=member("\uff41 a \U0001f600")))
    assert found == {"m": "a:0 \U0001f600:0 \uff41:0,1"}


def test_a_join_deals_everything_anew():
    """PROTOCOL 10.2: nobody keeps what he had on purpose."""
    members = group(a=member("t", "t:0,2"), b=member("t", "t:1,3"), c=member("t"))
    assert dealt({"t": 4}, members) == {"a": "t:0,3", "b": "t:1", "c": "t:2"}
