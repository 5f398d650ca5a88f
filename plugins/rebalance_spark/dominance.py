"""Tests that one strategy is better for a group than today's, and as good in the rest.

A group stands for any subject of a decision. The pairs of the one rule of better (`verdicts.rule`) are its
scenarios.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rebalance_lab.verdicts.rule import FEWEST_PAIRS, TIE, chances, differences
from rebalance_spark.gains import Floats, Numbers
from rebalance_spark.stored import Figures2D

Pairs: TypeAlias = tuple[Floats, Floats, Numbers, int]
"""The figures of two strategies, the number of the subject of each pair, and the number of subjects."""


class Dominance(NamedTuple):
    """The test that one strategy dominates another, for each of S subjects and in M metrics.

    ``chances``: the p (S). ``share``: of the ranks that speak for it, where they do least (S).
    ``better`` and ``as_good``: the p in each metric by itself (M x S).
    """

    chances: Floats
    share: Floats
    better: Floats
    as_good: Floats


def dominance(pairs: Sequence[Pairs], margin: float = TIE) -> Dominance:
    """Test that one strategy dominates another: better in at least one metric, and not worse in the others.

    ``pairs`` has the arguments of `rule.chances` for each metric. Better is by more than `TIE`, and worse by
    more than the margin.

    Being as good in all is tested metric by metric at the same level (an intersection-union test). The p of
    being better is that of the metric that shows it most, times the number of metrics in which pairs of the
    subject differ (Bonferroni): the test is of the signs of differences, given their sizes. Where the means
    say otherwise, as with few great losses among many small gains, the p is 1.
    """
    better, shares = zip(*(chances(*each, -TIE) for each in pairs), strict=True)
    as_good, good_shares = zip(*(chances(*each, margin) for each in pairs), strict=True)
    apart = np.array([means_apart(*each) for each in pairs])
    differing = sum(_differs(*each) for each in pairs)
    p_better = np.where(apart < 0, better, 1.0)
    p_as_good = np.where(apart <= margin, as_good, 1.0)
    found = np.maximum(np.maximum(differing, 1) * p_better.min(axis=0), p_as_good.max(axis=0))
    share = np.minimum(np.max(shares, axis=0), np.min(good_shares, axis=0))
    return Dominance(np.minimum(found, 1.0), share, p_better, p_as_good)


class Tests(NamedTuple):
    """The p of each switch (subjects x strategies), NaN if it is not tested, and the scenarios it needs.

    ``better`` and ``as_good`` have those of each metric by itself (metrics x subjects x strategies).
    ``relief`` says of which switches the p is that of a relief.
    """

    chances: npt.NDArray[np.float64]
    needed: npt.NDArray[np.int64]
    better: npt.NDArray[np.float64]
    as_good: npt.NDArray[np.float64]
    relief: npt.NDArray[np.bool_]


NEVER = 1_000_000
"""Scenarios that nobody has."""


RELIEF = 0.2
"""The least share of the overload that a relief takes away: a switch for less of it is not worth it."""


def relieved(
    tests: Tests,
    load: Figures2D,
    relieves: npt.NDArray[np.bool_],
    today: int,
    numbers: Numbers,
    size: int,
) -> Tests:
    """Return the tests with those of subjects in which the busiest member has more than it can handle.

    ``load`` is what it has, as a share of what it can handle. A strategy is better for these, whatever it
    costs, if ``relieves`` says so (`relieving`), and if the overload is known to be less in the scenarios in
    which there is some under one of the two, or the load is known to be less in all scenarios. It is better,
    too, if it dominates today's and the overload is as good. The p is the least of the three, three times.
    Where scenarios with overload are few, no strategy with more of it is better.
    """
    overload = np.maximum(load - 1.0, 0.0)
    found, is_relief = tests.chances.copy(), tests.relief.copy()
    for number in (n for n in range(found.shape[1]) if n != today):
        one, now = (
            np.where((overload[:, [number, today]] > 0).any(axis=1), overload[:, n], np.nan)
            for n in (number, today)
        )
        counts = np.bincount(numbers, ~np.isnan(one - now), size)
        less, as_good = (chances(one, now, numbers, size, margin)[0] for margin in (-TIE, TIE))
        steadily = chances(load[:, number], load[:, today], numbers, size, -TIE)[0]
        apart = means_apart(one, now, numbers, size)
        relief = np.where(relieves[:, number], np.fmin(less, steadily), 1.0)
        few = np.where(apart > 0, 1.0, found[:, number])
        either = np.where(counts >= FEWEST_PAIRS, np.maximum(found[:, number], as_good), few)
        is_tested = (counts > 0) & ~np.isnan(found[:, number])
        is_relief[:, number] = is_tested & (relief <= either)
        either = np.minimum(3 * np.fmin(relief, either), 1.0)
        found[:, number] = np.where(is_tested, either, found[:, number])
    return tests._replace(chances=found, relief=is_relief)


def relieving(overload: Figures2D, today: int, numbers: Numbers, size: int) -> npt.NDArray[np.bool_]:
    """Return which strategies take a share of `RELIEF` of the overload of each subject away (subjects x
    strategies): of all of it, and of that of the worst scenario.
    """
    worst, total = np.zeros((2, size, overload.shape[1]))
    np.fmax.at(worst, numbers, overload)
    np.add.at(total, numbers, np.nan_to_num(overload))
    left = 1 - RELIEF
    return np.asarray((worst < left * worst[:, [today]]) & (total < left * total[:, [today]]))


def tested(
    costs: Sequence[Figures2D], today: int, numbers: npt.NDArray[np.int64], size: int, margin: float
) -> Tests:
    """Test for each subject and strategy that it dominates today's."""
    shape = (size, costs[0].shape[1])
    found, needed = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    better, as_good = np.full((2, len(costs), *shape), np.nan)
    for number in (n for n in range(shape[1]) if n != today):
        pairs = [(cost[:, number], cost[:, today], numbers, size) for cost in costs]
        own = dominance(pairs, margin)
        found[:, number] = own.chances
        better[:, :, number], as_good[:, :, number] = own.better, own.as_good
        excess = np.maximum(2 * np.nan_to_num(own.share) - 1, 0.0)
        counts = np.bincount(numbers, ~np.isnan(pairs[0][0] - pairs[0][1]), size)
        about = np.maximum(np.ceil(_FAR / np.maximum(excess, _LEAST) ** 2), counts + FEWEST_PAIRS)
        needed[:, number] = np.where((counts >= FEWEST_PAIRS) & (excess >= _LEAST), about, 0)
        for each in (found, *better, *as_good):
            each[counts < FEWEST_PAIRS, number] = np.nan
    return Tests(found, needed, better, as_good, np.zeros(shape, dtype=np.bool_))


_LEAST = 0.3
"""A sign of a switch: by how much the ranks that speak for it exceed the others, as a share of all."""

_FAR = 3.0**2 * 4 / 3
"""Three standard deviations of this share, squared, for one scenario: about what stays certain among many."""


def means_apart(one: Floats, other: Floats, subjects: Numbers, count: int) -> Floats:
    """Return the difference of the means of each subject, as a share of the greater one."""
    known = ~np.isnan(one - other)
    first, second = (np.bincount(subjects[known], v[known], count).astype(np.float64) for v in (one, other))
    return differences(first, second)


def _differs(one: Floats, other: Floats, subjects: Numbers, count: int) -> Numbers:
    """Return for each subject 1 if any of its pairs differ by more than the margin, else 0."""
    apart = np.abs(differences(one, other)) > TIE
    return np.asarray(np.bincount(subjects, apart, count) > 0, dtype=np.int64)
