"""The bounds: each is one, held against every assignment, and as good as it says."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assigning.flow.fractional import (
    heaviest_alone,
    least_level,
    pigeonhole,
    sums_at,
    within_moves,
)

amounts = st.one_of(st.integers(1, 9).map(float), st.floats(1e-3, 1e3))
capacities = st.lists(st.one_of(st.just(1.0), st.floats(0.1, 10)), min_size=1, max_size=4)


def numbers(values):
    return np.array(values, dtype=np.float64)


@st.composite
def shared(draw, pools=5):
    """(weight, capacity, allowed): each has somebody who may take of it."""
    capacity = draw(capacities)
    weight = draw(st.lists(st.one_of(st.just(0.0), amounts), max_size=pools))
    row = st.lists(st.booleans(), min_size=len(capacity), max_size=len(capacity)).filter(any)
    allowed = [draw(row) for _ in weight]
    return (
        numbers(weight),
        numbers(capacity),
        np.array(allowed, dtype=bool).reshape(len(weight), len(capacity)),
    )


def level_by_subsets(supply, capacity, allowed):
    """What a set of pools weighs over the room of those that may take of any of it, at its largest."""
    pools = np.flatnonzero(supply > 0).tolist()
    chosen = [list(each) for size in range(1, len(pools) + 1) for each in combinations(pools, size)]
    return max((supply[c].sum() / capacity[allowed[c].any(axis=0)].sum() for c in chosen), default=0.0)


def largest_loads(weight, capacity, allowed):
    """Of every assignment."""
    for owners in product(*(np.flatnonzero(row).tolist() for row in allowed)):
        yield owners, (sums_at(np.array(owners, dtype=int), weight, len(capacity)) / capacity).max()


def test_weights_are_summed_by_place():
    assert sums_at(np.array([2, 0, 2]), numbers([1.5, 2.0, 3.0]), 4).tolist() == [2.0, 0.0, 4.5, 0.0]
    assert sums_at(np.array([], dtype=int), numbers([]), 2).tolist() == [0.0, 0.0]


@given(drawn=shared())
def test_the_least_level_is_that_of_the_most_crowded_set_of_pools(drawn):
    assert least_level(*drawn) == pytest.approx(level_by_subsets(*drawn), rel=1e-8)


@pytest.mark.parametrize("seed", range(30))
def test_the_least_level_of_more_pools_is_that_of_the_most_crowded_set_too(seed):
    """Ten pools and seven takers, of weights between a millionth and a million."""
    rng = np.random.default_rng(seed)
    supply, capacity = 10 ** rng.uniform(-6, 6 * (seed % 2), 10), 10 ** rng.uniform(0, seed % 3, 7)
    allowed = rng.random((10, 7)) < 0.3
    allowed[np.arange(10), rng.integers(0, 7, 10)] = True
    assert least_level(supply, capacity, allowed) == pytest.approx(
        level_by_subsets(supply, capacity, allowed), rel=1e-8
    )


def test_where_nothing_weighs_anything_the_level_is_none():
    assert least_level(numbers([]), numbers([1.0]), np.zeros((0, 1), dtype=bool)) == 0.0
    assert least_level(numbers([0.0]), numbers([1.0]), np.ones((1, 1), dtype=bool)) == 0.0
    assert heaviest_alone(numbers([]), numbers([])) == 0.0
    assert pigeonhole(numbers([]), numbers([])) == 0.0
    assert within_moves(numbers([]), numbers([]), 0.0) == 0.0


@given(drawn=shared())
def test_no_assignment_is_below_any_of_the_bounds(drawn):
    weight, capacity, allowed = drawn
    roomiest = np.where(allowed, capacity, 0.0).max(axis=1, initial=0.0)
    level, hole = least_level(weight, capacity, allowed), pigeonhole(weight, capacity)
    alone = heaviest_alone(weight, roomiest)
    for _, largest in largest_loads(weight, capacity, allowed):
        assert max(level, alone, hole) <= largest * (1 + 1e-9)


def test_the_heaviest_lies_somewhere():
    assert heaviest_alone(numbers([4, 9]), numbers([1, 3])) == 4.0


def test_of_more_than_k_each_somebody_has_one_more():
    """Five of weight 4 on two members: three of them meet; 12 though the mean is 10."""
    assert pigeonhole(numbers([4] * 5), numbers([1, 1])) == 12.0
    assert pigeonhole(numbers([4] * 5), numbers([1, 2])) == 6.0
    assert pigeonhole(numbers([9, 5, 4]), numbers([1, 1])) == 9.0  # the two lightest of three
    assert pigeonhole(numbers([9, 5]), numbers([1, 1])) == 0.0


@given(weight=st.lists(amounts, max_size=9), count=st.integers(1, 4))
def test_pigeonholes_are_counted_with_the_heaviest_of_every_number(weight, count):
    falling = sorted(weight, reverse=True)
    levels = [sum(falling[: count * k + 1][-k - 1 :]) for k in range(1, 10) if count * k < len(falling)]
    assert pigeonhole(numbers(weight), np.ones(count)) == pytest.approx(max(levels, default=0.0))


@given(data=st.data(), capacity=capacities, movable=st.floats(0, 30))
def test_no_assignment_that_moves_so_little_is_below_the_bound_for_it(data, capacity, movable):
    weight = numbers(data.draw(st.lists(amounts, max_size=5)))
    members = range(len(capacity))
    home = [data.draw(st.sampled_from(members)) for _ in weight]
    load = sums_at(np.array(home, dtype=int), weight, len(capacity))
    bound = within_moves(load, numbers(capacity), movable)
    allowed = np.ones((len(weight), len(capacity)), dtype=bool)
    for owners, largest in largest_loads(weight, numbers(capacity), allowed):
        moved = sum(w for w, here, there in zip(weight, home, owners, strict=True) if here != there)
        assert moved > movable or bound <= largest * (1 + 1e-9)


@given(capacity=capacities, data=st.data(), movable=st.floats(0, 100))
def test_the_level_for_moves_is_where_what_is_above_it_is_what_may_move(capacity, data, movable):
    load = numbers([data.draw(amounts) for _ in capacity])
    level = within_moves(load, numbers(capacity), movable)
    above = np.maximum(load - level * numbers(capacity), 0.0).sum()
    assert above == pytest.approx(min(movable, load.sum()), rel=1e-6, abs=1e-9 * load.sum())
