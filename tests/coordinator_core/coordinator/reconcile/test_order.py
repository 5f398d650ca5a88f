"""The order in which the coordinator hands members over. Kafka's TimelineHashMap yields the same lists."""

import pytest

from coordinator_core.coordinator.reconcile.order import handed_over

SMALL = ["m5", "m0", "m2", "m4", "m1", "m3"]
LARGE = ["m0", "m5", "m2", "m4", "m1", "m3"]


@pytest.mark.parametrize(
    ("joined", "ordered"),
    [
        ([], []),
        (["a", "b", "c", "d", "e", "f"], ["f", "c", "e", "b", "d", "a"]),
        (["f", "e", "d", "c", "b", "a"], ["f", "c", "e", "b", "d", "a"]),
        (["consumer-1", "consumer-2", "consumer-3"], ["consumer-2", "consumer-1", "consumer-3"]),
        (["größe", "\U0001f600", "m"], ["m", "größe", "\U0001f600"]),
    ],
)
def test_members_are_in_the_order_of_the_slots_of_their_hashes(joined, ordered):
    assert handed_over(joined, len(joined), None) == ordered


def test_of_members_in_one_slot_the_last_to_join_is_the_first():
    assert handed_over(["AaAa", "BBBB", "AaBB"], 3, None) == ["AaBB", "BBBB", "AaAa"]


def test_the_table_of_a_group_that_was_larger_stays_as_large():
    members = [f"m{number}" for number in range(6)]
    assert handed_over(members, 6, None) == SMALL
    assert handed_over(members, 40, None) == LARGE


def test_the_member_whose_request_lets_it_in_is_the_last():
    assert handed_over(["a", "f", "b"], 2, "f") == [*handed_over(["a", "b"], 2, None), "f"]
