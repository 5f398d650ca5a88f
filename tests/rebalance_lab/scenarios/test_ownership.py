"""What a scenario says of the group it begins with: what is read, and what is refused by its place."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from rebalance_lab.scenarios.scenario import parse_scenario

TOPICS = {"orders": {"partitions": 4}, "payments": {"partitions": 2}, "refunds": {"partitions": 1}}


def parse(*members):
    document = {"name": "n", "duration": "10m", "topics": TOPICS, "members": list(members)}
    return parse_scenario(document, where="x.yaml")


def member(name="a", **fields):
    return {"id": name, "topics": ["orders", "payments"]} | fields


def error_of(*members):
    with pytest.raises(InputError) as caught:
        parse(*members)
    return caught.value.where.removeprefix("x.yaml: "), caught.value.found, caught.value.expected


def test_who_says_what_it_owns_runs_and_the_others_join():
    scenario = parse(member("late"), member("a", owned={"orders": [1]}), member("b", owned={}))
    assert [m.id for m in scenario.running] == ["a", "b"]
    assert [m.id for m in scenario.joining] == ["late"]


def test_what_is_owned_is_read_in_order():
    (only,) = parse(member(owned={"payments": [1], "orders": [3, 0]})).members
    pairs = [("orders", 0), ("orders", 3), ("payments", 1)]
    assert only.owned == tuple(TopicPartition(*pair) for pair in pairs)


def test_the_generation_is_the_first_where_none_is_said():
    assert parse(member(owned={})).members[0].generation == 1
    assert parse(member(owned={}, generation=42)).members[0].generation == 42


def test_a_count_of_one_may_own_something():
    (only,) = parse(member(owned={"orders": [0]}, count=1)).members
    assert (only.id, only.owned) == ("a-0", (("orders", 0),))


def test_who_subscribes_by_a_pattern_owns_what_matches_it():
    entry = {"id": "a", "topics_pattern": "orders|refunds", "owned": {"refunds": [0]}}
    assert parse(entry).members[0].owned == (("refunds", 0),)


WRONG = {
    "what is owned as a list": (
        [member(owned=[["orders", 0]])],
        "members[0].owned",
        "a list of 1",
        "a mapping of topics, each with a list of partition numbers",
    ),
    "what is owned without a value": (
        [member(owned=None)],
        "members[0].owned",
        "nothing",
        "a mapping of topics, each with a list of partition numbers",
    ),
    "partitions that are no list": (
        [member(owned={"orders": 0})],
        "members[0].owned.orders",
        "0",
        "a list of partition numbers",
    ),
    "a partition there is not": (
        [member(owned={"orders": [0, 4]})],
        "members[0].owned.orders[1]",
        "4",
        "a whole number from 0 to 3",
    ),
    "a partition below nothing": (
        [member(owned={"orders": [-1]})],
        "members[0].owned.orders[0]",
        "-1",
        "a whole number from 0 to 3",
    ),
    "a partition that is said twice": (
        [member(owned={"orders": [2, 2]})],
        "members[0].owned.orders[1]",
        "partition 2 twice",
        "each partition once",
    ),
    "an unknown topic": (
        [member(owned={"order": [0]})],
        "members[0].owned",
        "the unknown topic 'order'",
        "one of orders, payments, refunds (did you mean 'orders'?)",
    ),
    "a topic that is not subscribed to": (
        [member(owned={"refunds": [0]})],
        "members[0].owned",
        "the topic 'refunds'",
        "one that the member subscribes to: orders, payments",
    ),
    "a topic that the pattern does not match": (
        [{"id": "a", "topics_pattern": "order", "owned": {"orders": [0]}}],
        "members[0].owned",
        "the topic 'orders'",
        "one that the member subscribes to: (none)",
    ),
    "several members with the same": (
        [member(owned={"orders": [0]}, count=2)],
        "members[0].owned",
        "the partitions of each of 2 members",
        "a count of 1: a partition has one owner",
    ),
    "a partition with two owners": (
        [member("a", owned={"orders": [0]}), member("late"), member("b", owned={"orders": [1, 0]})],
        "members[2].owned.orders",
        "partition 0, which a owns",
        "partitions that no other member owns",
    ),
    "two generations": (
        [member("a", owned={}, generation=3), member("late"), member("b", owned={})],
        "members[2].generation",
        "1, where a is in 3",
        "one generation for all members with owned",
    ),
    "a generation of who is yet to join": (
        [member(generation=3)],
        "members[0].generation",
        "a generation",
        "one only together with owned",
    ),
    "a generation before the first": (
        [member(owned={}, generation=0)],
        "members[0].generation",
        "0",
        "a whole number from 1 to 2,146,483,648",
    ),
    "a generation without a value": (
        [member(owned={}, generation=None)],
        "members[0].generation",
        "nothing",
        "a whole number from 1 to 2,146,483,648",
    ),
}


@pytest.mark.parametrize(("members", "place", "found", "expected"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_is_named_with_its_place(members, place, found, expected):
    assert error_of(*members) == (place, found, expected)
