"""The grid: medians, spreads, what is known of orders, the best, and the front."""

from dataclasses import replace
from math import inf, isclose, isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lab.verdicts.aims import FRONT, LEFT, LOADED, TWICE
from rebalance_lab.verdicts.grid import Aim, Grid, Setup
from rebalance_lab.verdicts.rule import TIE, Order, chances, order
from rebalance_lab.verdicts.tables import brief
from tests.examples import scaled
from tests.rebalance_lab.verdicts.grids import LESS, UP, figures, grid_of, load, single

X = Aim("x")
TURNED = {Order.BETTER: Order.WORSE, Order.WORSE: Order.BETTER}


def pair(one, other):
    array = np.array([one, other], dtype=np.float64).T.reshape(len(one), 2, 1)
    return Grid(range(len(one)), [Setup("a"), Setup("b")], ["x"], array)


# --- figures over seeds


def test_a_figure_has_the_median_and_the_spread_of_the_values_that_there_are():
    made = pair([5.0, nan, 1.0, 9.0, 2.0], [nan] * 5)
    assert (made.median("x", 0), made.spread("x", 0)) == (3.5, (1.0, 9.0))
    assert isnan(made.median("x", 1))
    assert all(map(isnan, made.spread("x", 1)))
    assert isnan(made.median("unknown", 0))


@pytest.mark.parametrize(("count", "cut"), [(1, 0), (19, 0), (20, 1), (39, 1), (40, 2), (100, 5)])
def test_a_spread_is_without_the_five_percent_at_both_ends(count, cut):
    values = list(map(float, range(count)))
    assert pair(values, values).spread("x", 0) == (cut, count - 1 - cut)


def test_a_run_that_is_missing_has_no_figures():
    made = Grid.of([Setup("a"), Setup("b")], [{1: {"x": 1.0}, 2: {"x": 3.0}}, {2: {"y": 5.0}}])
    assert (list(made.units), list(made.metrics)) == ([1, 2], ["x", "y"])
    assert (made.median("x", 0), made.median("y", 1)) == (2.0, 5.0)
    assert isnan(made.values("y")[0, 1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (nan, "-"),
        (inf, "inf"),
        (4.984, "5"),
        (1.61, "1.6"),
        (17.92, "17.9"),
        (261.5, "262"),
        (0.047, "0.047"),
    ],
)
def test_a_figure_of_a_table_has_as_many_digits_as_somebody_acts_on(value, text):
    assert brief(value) == text


# --- order


TEN = [10.0 * n for n in range(1, 11)]


def times(*factors):
    return [value * factor for value, factor in zip(TEN, factors, strict=True)]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (times(*[0.9] * 10), TEN, Order.BETTER),
        (times(*[0.9] * 9, 1.05), TEN, Order.BETTER),
        (times(*[0.9] * 9, 2), TEN, Order.UNKNOWN),
        (times(*[0.9] * 8, 1.1, 1.1), TEN, Order.UNKNOWN),
        (times(*[0.9] * 6, *[0.995] * 4), TEN, Order.UNKNOWN),
        (times(*[0.995] * 5, *[1.005] * 5), TEN, Order.ALIKE),
        (times(*[0.995] * 9, 2), TEN, Order.UNKNOWN),
        ([0.0] * 6, [1e-9] * 6, Order.BETTER),
        ([0.0] * 6, [0.0] * 6, Order.ALIKE),
        ([inf] * 6, [inf] * 6, Order.ALIKE),
        ([5.0] * 6, [inf] * 6, Order.BETTER),
        ([1.0] * 5, [2.0] * 5, Order.UNKNOWN),
        ([1.0] * 5 + [nan], [2.0] * 6, Order.UNKNOWN),
        ([nan, *[1.0] * 7], [*[2.0] * 7, nan], Order.BETTER),
        ([nan] * 6, [1.0] * 6, Order.UNKNOWN),
        ([nan] * 6, [nan] * 6, Order.ALIKE),
    ],
)
def test_figures_are_compared_seed_by_seed_by_a_signed_rank_test(one, other, found):
    made, higher = pair(one, other), Aim("x", better="higher")
    turned = TURNED.get(found, found)
    assert (made.order(X, 0, 1), made.order(higher, 1, 0)) == (found, found)
    assert (made.order(X, 1, 0), made.order(higher, 0, 1)) == (turned, turned)


def test_an_order_of_pairs_that_the_medians_contradict_is_not_known():
    """Ten of eleven pairs are better by a tenth, the other one is worse by a little, and is the median."""
    made = pair([*[0.9] * 5, 1.05, *[90.0] * 5], [*[1.0] * 6, *[100.0] * 5])
    assert made.median("x", 0) > made.median("x", 1)
    assert made.order(X, 0, 1) is Order.UNKNOWN


def test_nothing_is_known_of_pairs_whose_medians_differ_more_than_they_do():
    """All but two pairs at each end are alike; the medians are 1 and 1, and those of three are not."""
    one, other = [1, 2, 1, 100, 2, 100, 100, 1, 1], [1, 3, 1, 100, 2, 1, 100, 1, 1]
    assert order(one, other) == Order.UNKNOWN
    assert order(one, one) == Order.ALIKE


def test_figures_that_differ_by_the_margin_are_alike():
    assert pair([1.0] * 6, [2.0] * 6).order(Aim("x", margin=0.5), 0, 1) is Order.ALIKE
    assert pair([1.0] * 6, [2.0] * 6).order(Aim("x", margin=0.49), 0, 1) is Order.BETTER


@pytest.mark.parametrize(
    ("seeds", "of", "is_sure"), [(6, 3, True), (6, 4, False), (7, 6, True), (7, 7, False)]
)
def test_one_that_was_picked_out_of_several_needs_more_pairs(seeds, of, is_sure):
    made = pair([1.0] * seeds, [2.0] * seeds)
    assert made.is_better(X, 0, 1)
    assert made.is_surely_better(X, 0, 1, of) is is_sure
    assert not made.is_surely_better(X, 1, 0, 1)


VALUES = st.one_of(st.just(nan), st.floats(0, 1e6), st.integers(0, 5).map(float))


@settings(max_examples=scaled(2_000))
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=25))
def test_an_order_turns_round_and_needs_six_pairs_of_which_a_coin_seldom_has_so_many(pairs):
    made = pair(*zip(*pairs, strict=True))
    found = made.order(X, 0, 1)
    assert made.order(X, 1, 0) is TURNED.get(found, found)
    known = [(a, b) for a, b in pairs if not isnan(a) and not isnan(b)]
    if found is Order.BETTER:
        assert len(known) >= 6
        values = made.figures[:, :, 0].T
        by_chance, _ = chances(*values, np.zeros(len(pairs), dtype=np.int64), 1, -TIE)
        assert by_chance[0] <= 0.025
        assert made.median("x", 0) < made.median("x", 1)
        assert made.is_surely_better(X, 0, 1, 1)
        assert not made.is_surely_better(X, 0, 1, 1 + int(0.05 / by_chance[0]))
    if found is Order.ALIKE and known:
        assert isclose(made.median("x", 0), made.median("x", 1), rel_tol=0.0101)


@settings(max_examples=scaled(500))
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_count(differences, random):
    pairs = [(10 + difference, 10.0) for difference in differences]
    shuffled = random.sample(pairs, len(pairs))
    first, second = (pair(*zip(*each, strict=True)).order(X, 0, 1) for each in (pairs, shuffled))
    assert first is second


# --- harm


def test_a_load_that_members_carry_and_a_backlog_that_comes_down_do_no_harm():
    made = grid_of(a=load(100, 50, 0.3), b=load(100, 0, 1.0), c=load(100, 51, 1.2))
    assert [made.order(aim, 0, 1) for aim in (LEFT, LOADED)] == [Order.ALIKE] * 2
    assert [made.order(aim, 1, 2) for aim in (LEFT, LOADED)] == [Order.BETTER] * 2


def test_a_backlog_that_is_left_is_not_less_beside_a_larger_one():
    made = grid_of(a=load(90, 50), b=load(120, 50))
    assert made.order(LEFT, 1, 0) is Order.UNKNOWN


@pytest.mark.parametrize(("twice", "found"), [(100.0, Order.ALIKE), (101.0, Order.WORSE)])
def test_records_handled_twice_count_from_a_tenth_of_the_largest_backlog_on(twice, found):
    own = {"max_lag": 1_000.0, "duplicate_records": twice}
    made = grid_of(a=own, b={**own, "duplicate_records": 0.0})
    assert made.order(TWICE, 0, 1) is found


# --- the best, and the front


@pytest.mark.parametrize(
    ("values", "better", "best"),
    [
        ([3.0, 2.0, 5.0], "lower", [1]),
        ([3.0, 2.0, 5.0], "higher", [2]),
        ([3.0, 2.0, 2.0], "lower", [1, 2]),
        ([nan, 2.0, 5.0], "lower", [1]),
        ([2.0, 2.0, 2.0], "lower", []),
        ([nan, 2.0], "lower", []),
        ([4.0], "lower", []),
        ([100.0, 101.0], "lower", []),
        ([100.0, 101.1], "lower", [0]),
        ([100.0, 100.9, 101.5], "lower", []),
        ([inf, 5.0], "lower", [1]),
    ],
)
def test_the_best_are_better_than_each_of_the_others_by_more_than_a_tie(values, better, best):
    assert single("x", values).best(Aim("x", better=better)) == best


@pytest.mark.parametrize(
    ("rows", "front"),
    [
        ([(1, 9, 9), (9, 1, 9), (9, 9, 1)], [0, 1, 2]),
        ([(1, 9, 9), (2, 9, 9), (1, 1, 9)], [2]),
        ([(100, 100, 100), (100.5, 100, 99.5)], [0, 1]),
        ([(100, 100, 100), (100.5, 100, 50)], [1]),
        ([(5, 5, 5)], [0]),
        ([(nan, 1, 1), (5, 5, 5)], [1]),
        ([(1.0, 1.015, 1.0075), (1.0075, 1.0, 1.015), (1.015, 1.0075, 1.0)], [0, 1, 2]),
    ],
)
def test_the_front_has_the_candidates_that_no_other_one_dominates(rows, front):
    own = {f"s{i}": dict(zip([a.metric for a in FRONT], row, strict=True)) for i, row in enumerate(rows)}
    assert grid_of(**own).front(FRONT) == front
    assert grid_of(seeds=5, **own).front(FRONT) == []


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [((1, 2), (2, 2), True), ((1, 3), (2, 2), False), ((2, 2), (2, 2), False), ((1, 1), (2, 2), True)],
)
def test_one_dominates_that_is_better_in_something_and_worse_in_nothing(one, other, found):
    own = [dict(zip("xy", map(float, values), strict=True)) for values in (one, other)]
    assert grid_of(a=own[0], b=own[1]).dominates(0, 1, [X, Aim("y")]) is found


def test_a_candidate_with_faults_is_neither_best_nor_on_the_front():
    made = grid_of(
        findings={"a": ["broken"]},
        **{name: figures(stops, moved_partitions=0, rounds=0) for name, stops in (("a", 0.0), ("b", 1.0))},
        c=figures(2.0, moved_partitions=0, rounds=0),
    )
    assert made.best(FRONT[0]) == made.front(FRONT) == [1]


def test_one_is_as_good_that_is_worse_by_no_more_than_the_margin_though_the_order_is_not_known():
    made = grid_of(a={"x": 100.0}, b={"x": (100.5, 100.5, 80.0, 80.0, 80.0, 80.0)})
    aim = Aim("x")
    assert made.order(aim, 1, 0) is Order.UNKNOWN
    assert made.is_as_good(aim, 1, 0)
    assert not made.is_as_good(aim, 0, 1)


def test_where_more_is_better_more_is_surely_better():
    made, aim = grid_of(a={"x": UP}, b={"x": LESS}), Aim("x", better="higher")
    assert made.is_surely_better(aim, 0, 1, 3)
    assert not made.is_surely_better(aim, 1, 0, 3)


def test_labels_have_the_settings_in_which_candidates_differ():
    setups = [Setup("a", {"x.ms": (text, 1), "y.ms": ("2s", 2)}) for text in ("1s", "2s")]
    made = replace(grid_of(a={}, b={}), setups=setups)
    assert [made.label(number) for number in range(2)] == ["a with x.ms=1s", "a with x.ms=2s"]
