"""The lower bounds against exhaustive search, over small groups with different subscriptions."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.model import TopicPartition
from rebalance_lab.verdicts.bounds import fewest_moves, fewest_moves_in_balance, least_sum_of_squares
from tests.examples import scaled
from tests.rebalance_lab.verdicts.compared import least_largest_load

TOPICS, MEMBERS = ("t", "u", "v"), ("a", "b", "c")
LARGE_ENOUGH = settings(max_examples=scaled(150))


@st.composite
def groups(draw):
    """Topics of at most seven partitions, one to three members, and who owned what before.

    In half of the groups every member subscribes to all topics.
    """
    topics = {t: draw(st.integers(0, 3 if t == "t" else 2)) for t in TOPICS}
    some = st.lists(st.sampled_from(TOPICS), unique=True)
    listed = st.permutations(TOPICS) if draw(st.booleans()) else some
    members = {m: draw(listed) for m in MEMBERS[: draw(st.integers(1, 3))]}
    owners = st.sampled_from([None, *MEMBERS, "gone"])
    before = {tp: owner for tp in partitions_of(topics) if (owner := draw(owners)) is not None}
    return topics, members, before


def partitions_of(topics):
    return [TopicPartition(t, n) for t, count in topics.items() for n in range(count)]


def assignments(partitions, members):
    """Every way to give each partition to a subscriber; one without a subscriber has no owner."""
    choices = [[m for m, topics in members.items() if tp.topic in topics] or [None] for tp in partitions]
    for owners in product(*choices):
        yield dict(zip(partitions, owners, strict=True))


def loads(owners, members):
    counts = Counter(owner for owner in owners.values() if owner is not None)
    return [counts[m] for m in members]


def sum_of_squares(owners, members):
    return sum(load * load for load in loads(owners, members))


def moves(before, after):
    return sum(1 for tp, owner in before.items() if after[tp] != owner)


@LARGE_ENOUGH
@given(groups())
def test_the_least_sum_of_squares_is_that_of_the_best_of_all_assignments(group):
    topics, members, _ = group
    every = assignments(partitions_of(topics), members)
    assert least_sum_of_squares(topics, members) == min(sum_of_squares(each, members) for each in every)


@LARGE_ENOUGH
@given(groups())
def test_the_fewest_moves_in_balance_are_those_of_the_best_of_all_balanced_assignments(group):
    """An owner that is gone, or that no longer subscribes, loses its partitions in any case."""
    topics, members, before = group
    every = list(assignments(partitions_of(topics), members))
    least = min(sum_of_squares(each, members) for each in every)
    best = min(moves(before, each) for each in every if sum_of_squares(each, members) == least)
    assert fewest_moves_in_balance(before, topics, members) == best


@LARGE_ENOUGH
@given(groups(), st.data())
def test_the_fewest_moves_within_loads_are_those_of_the_best_assignment_within_them(group, data):
    topics, members, before = group
    subscribed = {t for listed in members.values() for t in listed}
    partitions = [tp for tp in partitions_of(topics) if tp.topic in subscribed]
    before = {tp: owner for tp, owner in before.items() if tp in partitions}
    every = list(assignments(partitions, members))
    reached = loads(data.draw(st.sampled_from(every)), members)
    within = (min(reached), max(reached))
    fitting = [each for each in every if all(within[0] <= x <= within[1] for x in loads(each, members))]
    best = min(moves(before, each) for each in fitting)
    assert fewest_moves(before, partitions, members, within) == best


def test_of_partitions_that_members_cannot_share_evenly_some_have_one_more():
    assert least_sum_of_squares({"t": 5}, {"a": ["t"], "b": ["t"]}) == 2**2 + 3**2


def test_a_member_without_partitions_takes_one_from_those_that_have_no_more_than_they_may():
    before = {TopicPartition("t", number): "aabb"[number] for number in range(4)}
    assert fewest_moves_in_balance(before, {"t": 4}, {m: ["t"] for m in "abc"}) == 1


def test_what_no_longer_exists_need_not_move():
    """Partition 5 of a topic of two, and a topic that is gone."""
    before = {TopicPartition("t", 0): "a", TopicPartition("t", 5): "a", TopicPartition("x", 0): "a"}
    assert fewest_moves_in_balance(before, {"t": 2}, {"a": ["t"], "b": ["t"]}) == 0


def test_a_better_balance_costs_more_moves():
    """Four partitions of one member, and a second that owns none: within 1 to 3 one must move, in balance
    two."""
    members = {"a": ["t"], "b": ["t"]}
    before = {TopicPartition("t", n): "a" for n in range(4)}
    assert fewest_moves(before, list(before), members, (0, 4)) == 0
    assert fewest_moves(before, list(before), members, (1, 3)) == 1
    assert fewest_moves(before, list(before), members, (2, 2)) == 2
    assert fewest_moves_in_balance(before, {"t": 4}, members) == 2


def test_loads_that_no_assignment_keeps_within_are_the_callers_bug():
    with pytest.raises(AssertionError, match="no assignment keeps within the loads"):
        fewest_moves({}, [TopicPartition("t", 0)], {"a": ["t"], "b": ["t"]}, (1, 1))


def test_nobody_and_nothing_have_no_load():
    assert least_sum_of_squares({}, {"a": []}) == 0
    assert least_sum_of_squares({"t": 3}, {"a": []}) == 0
    assert least_sum_of_squares({"t": 3}, {}) == 0
    assert fewest_moves_in_balance({}, {}, {}) == 0


# --- the least largest load, by weights


@st.composite
def weighed_groups(draw):
    """Partitions with weights, some of which weigh nothing, and one to three members."""
    topics, members, _ = draw(groups())
    weight = st.sampled_from([0.0, 0.1, 1.0, 2.0, 3.0, 5.0, 8.0]) | st.floats(0.01, 1e6)
    return {tp: draw(weight) for tp in partitions_of(topics)}, members


def largest(weights, owners, members):
    found = dict.fromkeys(members, 0.0)
    for tp, owner in owners.items():
        if owner is not None:
            found[owner] += weights[tp]
    return max(found.values())


@LARGE_ENOUGH
@given(weighed_groups())
def test_no_assignment_goes_below_the_least_largest_load(group):
    weights, members = group
    best = min(largest(weights, each, members) for each in assignments(list(weights), members))
    bound = least_largest_load(weights, members)
    assert bound <= best * (1 + 1e-9)
    assert (bound > 0) == (best > 0)


@LARGE_ENOUGH
@given(weighed_groups(), st.integers(1, 3))
def test_for_equal_weights_of_all_to_all_the_bound_is_reached(group, count):
    """Of n partitions on m members somebody has n / m, rounded up: the pigeonhole's bound."""
    weights, _ = group
    weights = dict.fromkeys(weights, 2.5)
    members = dict.fromkeys(MEMBERS[:count], TOPICS)
    assert least_largest_load(weights, members) == pytest.approx(2.5 * -(-len(weights) // count))


def weighed(topic, *weights):
    return {TopicPartition(topic, n): weight for n, weight in enumerate(weights)}


EVERYBODY = {"a": ["t"], "b": ["t"]}

BOUNDS = {
    "the average": (weighed("t", 3, 3, 4, 4), EVERYBODY, 7),
    "the heaviest": (weighed("t", 9, 1, 1, 1), EVERYBODY, 9),
    "of three equal ones somebody has two": (weighed("t", 4, 4, 4), EVERYBODY, 8),
    "a topic that one of two subscribes to": (
        weighed("t", 1, 1) | weighed("u", 5, 5),
        {"a": ["t"], "b": ["t", "u"]},
        10,
    ),
    "two topics that only two of four subscribe to": (
        weighed("t", 4, 4, 4) | weighed("u", 1, 1) | weighed("v", 2, 2, 2, 2),
        {"a": ["t", "u"], "b": ["t", "u"], "c": ["v"], "d": ["v"]},
        7,
    ),
    "what nobody subscribes to weighs nothing": (weighed("t", 2, 2) | weighed("x", 99), EVERYBODY, 2),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_greatest_of_the_bounds_counts(bound):
    weights, members, expected = BOUNDS[bound]
    assert least_largest_load(weights, members) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "members"),
    [
        ({}, EVERYBODY),
        (weighed("t", 5), {}),
        (weighed("t", 5), {"a": [], "b": ["u"]}),
        (weighed("t", 0.0, 0.0), EVERYBODY),
    ],
)
def test_nothing_that_weighs_anything_is_a_load_of_nothing(weights, members):
    assert least_largest_load(weights, members) == 0.0
