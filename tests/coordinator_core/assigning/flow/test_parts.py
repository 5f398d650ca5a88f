"""The parts of the flow, each on its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assigning.flow.closed_form import balance_alike
from coordinator_core.assigning.flow.components import components
from coordinator_core.assigning.flow.dealing import deal, ranks_within, starts_of
from coordinator_core.assigning.flow.levels import load_levels


def numbers(*values):
    return np.array(values, dtype=np.int32)


def table(*rows):
    """'x.x' -> True, False, True."""
    return np.array([[mark == "x" for mark in row] for row in rows], dtype=np.bool_)


# --- dealing


def test_starts_are_where_segments_begin_and_the_last_one_ends():
    assert starts_of(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert starts_of(np.array([], dtype=np.int64)).tolist() == [0]


def test_ranks_count_anew_in_each_segment():
    assert ranks_within(np.array([2, 0, 3])).tolist() == [0, 1, 0, 1, 2]


def test_each_circle_is_dealt_before_the_next():
    dealt = deal(numbers(1, 2, 3, 4), np.array([1, 2, 2, 1]), np.array([0, 0, 5, 5]))
    assert dealt.tolist() == [1, 2, 2, 3, 4, 3]


def test_circles_of_single_cards_stay_in_order():
    assert deal(numbers(3, 2, 1), np.array([1, 1, 1]), np.array([0, 1, 2])).tolist() == [3, 2, 1]


def test_more_turns_than_sixteen_bits_are_dealt_in_order():
    dealt = deal(numbers(0, 1), np.array([40_000, 40_000]))
    assert dealt[:4].tolist() == [0, 1, 0, 1]
    assert dealt[-2:].tolist() == [0, 1]


@given(counts=st.lists(st.integers(0, 6), max_size=6))
def test_a_deal_gives_everybody_his_count_and_never_a_second_card_before_all_had_one(counts):
    receivers = np.arange(len(counts), dtype=np.int32)
    dealt = deal(receivers, np.array(counts, dtype=np.int64)).tolist()
    assert [dealt.count(r) for r in receivers] == counts
    left, expected = list(counts), []
    while any(left):
        expected += [r for r in range(len(left)) if left[r]]
        left = [max(0, each - 1) for each in left]
    assert dealt == expected


# --- components


@pytest.mark.parametrize("length", [2, 9, 60])
def test_a_chain_of_any_length_is_one_component(length):
    chain = np.eye(length, length + 1, dtype=np.bool_) | np.eye(length, length + 1, k=1, dtype=np.bool_)
    for order in (np.arange(length), np.arange(length)[::-1], np.random.default_rng(3).permutation(length)):
        classes, topics, count = components(chain[order])
        assert (set(classes.tolist()), set(topics.tolist()), count) == ({0}, {0}, 1)


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=8))
def test_components_are_those_of_a_walk_through_the_graph(rows):
    subscribes = np.array(rows, dtype=np.bool_)
    classes, topics, count = components(subscribes)
    expected = [-1] * len(rows)
    for start in range(len(rows)):
        if expected[start] >= 0:
            continue
        label, waiting = max(expected) + 1, [start]
        while waiting:
            at = waiting.pop()
            expected[at] = label
            near = np.flatnonzero((subscribes & subscribes[at]).any(axis=1)).tolist()
            waiting += [n for n in near if expected[n] < 0]
    assert classes.tolist() == expected
    assert count == max(expected) + 1
    for t, component in enumerate(topics.tolist()):
        subscribers = {expected[c] for c in np.flatnonzero(subscribes[:, t])}
        assert subscribers == ({component} if component >= 0 else set())


# --- the closed form


def balance(owner, partitions, members):
    owner = None if owner is None else np.array(owner, dtype=np.int32)
    return balance_alike(owner, starts_of(np.array(partitions)), starts_of(np.array(members))).tolist()


def test_partitions_nobody_owned_are_dealt_in_a_circle():
    assert balance(None, [7], [3]) == [0, 1, 2, 0, 1, 2, 0]


def test_each_component_is_dealt_among_its_own_members():
    assert balance(None, [3, 4], [2, 3]) == [0, 1, 0, 2, 3, 4, 2]
    assert balance([-1] * 7, [3, 4], [2, 3]) == [0, 1, 0, 2, 3, 4, 2]


def test_the_highest_partitions_above_a_load_are_given_up():
    assert balance([0, 0, 0, 0, 1], [5], [2]) == [0, 0, 0, 1, 1]


def test_extra_places_go_to_those_who_own_enough_to_keep_them():
    assert balance([2, 2, 2, 0, -1, -1, -1], [7], [3]) == [2, 2, 2, 0, 0, 1, 1]


@given(
    st.integers(1, 6).flatmap(lambda m: st.tuples(st.just(m), st.lists(st.integers(-1, m - 1), max_size=20)))
)
def test_loads_differ_by_one_at_most_and_all_that_can_be_kept_is_kept(drawn):
    """C-67: for one component; the number kept is the sum of what fits under the best choice of loads."""
    members, owner = drawn
    solved = balance(owner, [len(owner)], [members])
    loads = [solved.count(m) for m in range(members)]
    floor, extra = divmod(len(owner), members)
    assert sorted(loads) == [floor] * (members - extra) + [floor + 1] * extra
    held = [owner.count(m) for m in range(members)]
    can_keep = sum(min(h, floor) for h in held) + min(extra, sum(h > floor for h in held))
    assert sum(old == new for old, new in zip(owner, solved, strict=True)) == can_keep


# --- levels


def levels(supply, size, *rows):
    return load_levels(np.array(supply), np.array(size), table(*rows)).tolist()


def test_one_level_where_everything_fits_under_the_average():
    assert levels([7], [3], "x") == [3]
    assert levels([4, 4], [1, 1, 1], "x.", "xx", ".x") == [3, 3, 3]


def test_a_crowded_topic_makes_a_level_of_its_own():
    assert levels([12, 3], [2, 3], "x.", ".x") == [6, 1]
    assert levels([12, 3], [1, 1, 2], "x.", "xx", ".x") == [6, 6, 2]


def test_members_with_nothing_to_own_are_on_level_none():
    assert levels([5], [1, 2], "x", ".") == [5, 0]
    assert levels([0], [3], "x") == [0]


def test_many_levels_come_apart_one_by_one():
    """A chain: each class may also own the next pool, which is ten times as small."""
    assert levels([1000, 100, 10, 1], [1] * 4, "xx..", ".xx.", "..xx", "...x") == [1000, 100, 10, 1]


@given(st.data())
def test_every_best_load_is_the_level_or_one_less(data):
    """Loads are improved along chains until no exchange helps; that is the least sum of squares."""
    classes, pools = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    rows = data.draw(
        st.lists(st.lists(st.booleans(), min_size=pools, max_size=pools), min_size=classes, max_size=classes)
    )
    subscribes = np.array(rows, dtype=np.bool_)
    supply = np.array(data.draw(st.lists(st.integers(0, 9), min_size=pools, max_size=pools)))
    supply[~subscribes.any(axis=0)] = 0
    size = np.array(data.draw(st.lists(st.integers(1, 3), min_size=classes, max_size=classes)))
    level = load_levels(supply, size, subscribes)
    for m, load in best_loads(supply, size, subscribes):
        assert level[m] - 1 <= load <= level[m]


def best_loads(supply, size, subscribes):
    """(class, load) of every member, by moving one partition at a time towards less crowded members."""
    member_class = np.repeat(np.arange(len(size)), size).tolist()
    held = [[0] * len(supply) for _ in member_class]
    for pool, count in enumerate(supply.tolist()):
        if count:
            first = next(m for m, c in enumerate(member_class) if subscribes[c, pool])
            held[first][pool] = count
    while improve(held, member_class, subscribes):
        pass
    return [(c, sum(owned)) for c, owned in zip(member_class, held, strict=True)]


def improve(held, member_class, subscribes):
    for start in range(len(held)):
        came_from, waiting = {start: None}, [start]
        while waiting:
            at = waiting.pop(0)
            if sum(held[start]) >= sum(held[at]) + 2:
                while came_from[at] is not None:
                    giver, pool = came_from[at]
                    held[giver][pool] -= 1
                    held[at][pool] += 1
                    at = giver
                return True
            for other, c in enumerate(member_class):
                pool = next((p for p, n in enumerate(held[at]) if n and subscribes[c, p]), None)
                if other not in came_from and pool is not None:
                    came_from[other] = at, pool
                    waiting.append(other)
    return False
