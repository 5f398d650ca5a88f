"""The tests behind the rule of better, against counting by hand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.verdicts import rule
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, chances, discoveries, ends, medians

ONE = np.zeros(100, dtype=np.int64)


def chance(differences, margin=0.0):
    """The p of differences from 1, and the share of the ranks that speak for it."""
    values = np.array(differences)
    found, share = chances(1 + values, np.ones(len(values)), ONE[: len(values)], 1, margin)
    return found[0], share[0]


def counted(pairs):
    """The p by counting all ways in which the signs may fall."""
    ranks = np.argsort(np.argsort(np.abs(pairs))) + 1
    seen = ranks[pairs <= 0].sum()
    sums = [np.dot(signs, ranks) for signs in product((0, 1), repeat=len(pairs))]
    return np.mean([each >= seen for each in sums])


@given(st.permutations(range(1, 10)), st.lists(st.booleans(), min_size=9, max_size=9), st.integers(6, 9))
def test_the_p_is_the_share_of_all_signs_with_the_same_sum_of_ranks_or_more(sizes, signs, count):
    signed = [size * (1 if sign else -1) for size, sign in zip(sizes, signs, strict=True)]
    shares = np.array(signed)[:count] / 10
    one = np.where(shares < 0, 1 + shares, 1 / (1 - np.abs(shares)))
    found, _ = chances(one, np.ones(count), ONE[:count], 1, 0.0)
    assert found[0] == pytest.approx(counted(shares))


@pytest.mark.parametrize(
    ("count", "outside"),
    [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89), (50, 434)],
)
def test_intervals_are_those_of_the_tables_of_the_signed_rank_test(count, outside):
    """The critical values of Wilcoxon's test, two-sided, 5 %."""
    pairs = np.linspace(-0.4, 0.3, count) ** 3
    means = sorted((a + b) / 2 for i, a in enumerate(pairs) for b in pairs[i:])
    low, high = ends(np.where(pairs < 0, 1 + pairs, 1), np.where(pairs < 0, 1, 1 - pairs))
    assert (low, high) == pytest.approx((means[outside], means[-1 - outside]))


@pytest.mark.parametrize("count", [61, 120])
def test_more_pairs_than_are_counted_have_nearly_the_p_and_the_interval_of_those_that_are(count):
    tails = rule._tails(count)
    for p in (0.3, 0.1, 0.05):
        least = int(np.flatnonzero(tails <= p)[0])
        assert rule._chance(np.array([float(least)]), count)[0] == pytest.approx(tails[least], rel=0.01)
    assert rule._cut(count) == len(tails) - 1 - int(np.flatnonzero(tails <= 0.025)[0])


def test_too_few_pairs_have_no_p_and_unknown_ones_do_not_count():
    assert chance([-0.5] * (FEWEST_PAIRS - 1))[0] == 1.0
    assert chance([-0.5] * FEWEST_PAIRS)[0] == 1 / 64
    assert chance([-0.5] * FEWEST_PAIRS + [np.nan])[0] == 1 / 64
    assert np.isnan(chance([np.nan] * 8)[1])


def test_what_is_better_is_so_beyond_the_margin_and_what_is_as_good_within_it():
    assert chance([-0.005] * 8, -0.01)[0] == 1.0
    assert chance([-0.005] * 8, 0.01)[0] == 1 / 256
    assert chance([0.005] * 8, 0.01) == (1 / 256, 1.0)
    assert chance([0.02] * 8, 0.01) == (1.0, 0.0)


def test_what_is_at_the_margin_is_not_better_and_is_as_good():
    one, other = np.ones(8), np.full(8, 2.0)
    assert chances(one, other, ONE[:8], 1, -0.5)[0][0] == 1.0
    assert chances(other, one, ONE[:8], 1, 0.5)[0][0] == 1 / 256


def test_equal_differences_have_the_mean_of_their_ranks():
    """A fall to the half, and a rise to the double, are a half of the greater value."""
    for differences in ([-0.5] * 3 + [1.0] * 3, [1.0] * 3 + [-0.5] * 3):
        assert chance(differences)[1] == 0.5


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.5, 2)), min_size=20, max_size=40))
def test_subjects_are_as_if_each_was_alone(drawn):
    subjects = np.array([subject for subject, _ in drawn])
    one = np.array([value for _, value in drawn])
    together = np.array(chances(one, np.ones(len(one)), subjects, 3, 0.0))
    for subject in set(subjects.tolist()):
        alone = one[subjects == subject]
        expected = chances(alone, np.ones(len(alone)), ONE[: len(alone)], 1, 0.0)
        assert together[:, subject] == pytest.approx(np.ravel(expected))


def test_medians_are_of_the_known_values_of_each_subject():
    found = medians(np.array([np.nan, 1, 3, np.nan, 5, np.nan]), np.array([0, 0, 0, 1, 0, 2]), 4)
    assert found.tolist() == pytest.approx([3, np.nan, np.nan, np.nan], nan_ok=True)


def test_subjects_are_tested_by_themselves():
    subjects = np.array([0, 1] * 8)
    one = np.where(subjects == 0, 0.5, 2.0)
    found, share = chances(one, np.ones(16), subjects, 3, -0.01)
    assert found.tolist() == [1 / 256, 1.0, 1.0]
    assert (share[:2].tolist(), np.isnan(share[2])) == ([1.0, 0.0], True)


def test_discoveries_are_those_of_the_example_of_benjamini_and_hochberg():
    """Their fifteen p, of which four are discoveries at 5 %; a bound for each test alone would find three."""
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324]
    ps += [0.4262, 0.5719, 0.6528, 0.759, 1.0]
    assert discoveries(np.array(ps), 0.05).tolist() == [True] * 4 + [False] * 11
    assert discoveries(np.array([np.nan, *ps, np.nan]), 0.05).sum() == 4
    assert not discoveries(np.array([np.nan]), 0.05).any()
