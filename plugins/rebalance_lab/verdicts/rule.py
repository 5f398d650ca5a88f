"""The one rule of better: what pairs of figures show of their order.

A pair is two runs under the same conditions: of one seed in a comparison, of one scenario in scores of many
groups. Runs of one seed have the same latencies and start at the same times. The order of two figures follows
from the differences of their pairs, by the signed-rank test (Wilcoxon 1945): the interval of the middle of
the differences (Hodges and Lehmann 1963) has it with a probability of at least 95 %, if they are spread alike
around it, as those of exchangeable strategies are around zero. Fewer than six pairs have no such interval. Of
many subjects under many strategies, what is found by chance is bounded as a share of what is found (Benjamini
and Hochberg 1995).
"""

from enum import IntEnum
from functools import cache
from math import ceil, erfc, floor, isclose, log2, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

TIE = 0.01
"""Figures that differ by at most this share of the greater one are alike."""

ONE_IN = 20
"""The interval of the differences is beside their middle once in so many cases at most."""

FEWEST_PAIRS = 6
"""The fewest pairs from which an order is known: of fewer, a coin falls on one side too often."""

_COUNTED = 60
"""Of so many pairs, all ways in which their signs may fall are counted; of more, the sum is normal."""

_NOTHING = 1e-12
"""A smaller difference is one of rounding."""

_FAR = 1.96
"""Standard deviations beside the mean, of which a normal value is farther away once in `ONE_IN` cases."""


class Order(IntEnum):
    """What is known of the order of two figures."""

    BETTER, WORSE, ALIKE, UNKNOWN = range(4)


def fewest_pairs(others: int) -> int:
    """Return the fewest pairs with which one of so many others can be known to be better.

    The chance that one of them is by luck in all pairs is `ONE_IN` at most (Bonferroni).
    """
    return max(FEWEST_PAIRS, ceil(log2(ONE_IN * max(1, others))))


def is_tie(one: float, other: float) -> bool:
    """Return whether two single figures are alike. Whether others are, too, is shown by pairs alone."""
    return isclose(one, other, rel_tol=TIE)


def order(one: ArrayLike, other: ArrayLike, *, better: str = "lower", margin: float = TIE) -> Order:
    """Return what is known of the order of two figures from the values of their pairs.

    A figure is better, or worse, if the interval of the differences is on one side, beyond the margin, and so
    is the difference of the medians. It is alike if both are within it. The margin is a share of the greater
    of two values.
    """
    low, high = ends(one, other, better=better)
    if low >= -margin and high <= margin:
        return Order.ALIKE
    return Order.BETTER if high < -margin else Order.WORSE if low > margin else Order.UNKNOWN


def ends(one: ArrayLike, other: ArrayLike, *, better: str = "lower") -> tuple[float, float]:
    """Return between which differences two figures are, as shares of the greater one.

    They are negative if ``one`` is better, and NaN if too few pairs are known.
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    pairs = differences(first, second)
    pairs = pairs[~np.isnan(pairs)]
    cut = _cut(len(pairs))
    if cut < 0:
        return np.nan, np.nan
    means = np.sort(((pairs[:, None] + pairs) / 2)[np.triu_indices(len(pairs))])
    subjects = np.zeros(len(first), dtype=np.int64)
    middle = differences(medians(first, subjects, 1), medians(second, subjects, 1))[0]
    low, high = float(min(means[cut], middle)), float(max(means[-1 - cut], middle))
    return (-high, -low) if better == "higher" else (low, high)


def chances(
    one: FloatArray, other: FloatArray, subjects: IntArray, count: int, margin: float
) -> tuple[FloatArray, FloatArray]:
    """float64[count] twice: the p of the signed-rank test, and how far the ranks speak for what it tests.

    It tests for each subject, from its pairs (float64[N] each), that ``one`` is less than ``other`` by more
    than ``-margin``, as a share of the greater, or, if the margin is not negative, that it is greater by no
    more than the margin. The p is 1 of fewer than `FEWEST_PAIRS`. The second array is the sum of the ranks
    that speak for it as a share of all, NaN without pairs.
    """
    pairs = differences(one, other)
    known = ~np.isnan(pairs)
    pairs, subjects = pairs[known] - margin, subjects[known]
    sizes = np.bincount(subjects, minlength=count)
    speak = pairs < 0 if margin < 0 else pairs <= 0
    sums = np.bincount(subjects, _ranks(np.abs(pairs), subjects, sizes) * speak, count)
    found = np.ones(count)
    for size in np.unique(sizes[sizes >= FEWEST_PAIRS]).tolist():
        rows = sizes == size
        found[rows] = _chance(sums[rows], size)
    whole = sizes * (sizes + 1) / 2
    return found, np.divide(sums, whole, out=np.full(count, np.nan), where=sizes > 0)


def discoveries(chances: FloatArray, rate: float) -> NDArray[np.bool_]:
    """bool[...]: which of many tests show something, where the expected share of errors is at most ``rate``.

    The procedure of Benjamini and Hochberg (1995) over all p. NaN is no test.
    """
    known = np.sort(chances[~np.isnan(chances)])
    fit = np.flatnonzero(known <= rate * np.arange(1, len(known) + 1) / max(1, len(known)))
    return np.asarray(chances <= (known[fit[-1]] if len(fit) else -1.0))


def medians(values: FloatArray, subjects: IntArray, count: int) -> FloatArray:
    """float64[count]: the median of the known values of each subject, NaN without any."""
    known = ~np.isnan(values)
    values, subjects = values[known], subjects[known]
    sizes = np.bincount(subjects, minlength=count)
    ordered, starts = values[np.lexsort((values, subjects))], np.cumsum(sizes) - sizes
    found = np.full(count, np.nan)
    some = sizes > 0
    lower, upper = (starts + (sizes - 1) // 2)[some], (starts + sizes // 2)[some]
    with np.errstate(invalid="ignore"):  # of opposite infinities there is no mean
        found[some] = np.where(
            ordered[lower] == ordered[upper], ordered[lower], (ordered[lower] + ordered[upper]) / 2
        )
    return found


def differences(one: FloatArray, other: FloatArray) -> FloatArray:
    """float64[N]: each difference as a share of the greater of the two; NaN if one is unknown."""
    greater = np.maximum(np.abs(one), np.abs(other))
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = one - other
        found: FloatArray = np.where(np.isinf(greater), np.sign(apart), apart / greater)
    found[np.abs(apart) < _NOTHING] = 0.0
    found[one == other] = 0.0
    return found


def _ranks(values: FloatArray, subjects: IntArray, sizes: IntArray) -> FloatArray:
    """float64[N]: the rank of each value among those of its subject, from 1 on; of equals the mean."""
    order = np.lexsort((values, subjects))
    values, subjects = values[order], subjects[order]
    places = np.arange(1, len(values) + 1) - (np.cumsum(sizes) - sizes)[subjects]
    begins = np.ones(len(values), dtype=np.bool_)
    begins[1:] = (values[1:] != values[:-1]) | (subjects[1:] != subjects[:-1])
    equals = np.cumsum(begins) - 1
    found = np.empty(len(values))
    found[order] = (np.bincount(equals, places) / np.bincount(equals))[equals]
    return found


def _chance(sums: FloatArray, count: int) -> FloatArray:
    """Return the chance that the ranks of one sign add up to so much, if the signs are those of coins."""
    if count <= _COUNTED:
        return _tails(count)[np.floor(sums).astype(np.int64)]
    middle, deviation = _normal(count)
    return np.array([erfc(each / sqrt(2)) / 2 for each in ((sums - 0.5 - middle) / deviation).tolist()])


@cache
def _tails(count: int) -> FloatArray:
    """float64[count * (count + 1) / 2 + 1]: the chance of each sum of ranks or a greater one."""
    ways = np.ones(1)
    for rank in range(1, count + 1):
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    return np.asarray(np.cumsum(ways[::-1])[::-1] / 2.0**count)


def _normal(count: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of the sum of ranks of one sign."""
    return count * (count + 1) / 4, sqrt(count * (count + 1) * (2 * count + 1) / 24)


def _cut(count: int) -> int:
    """Return how many means of two differences are outside of the interval at each end: as many as the error
    allows, and -1 of too few pairs.
    """
    if count < FEWEST_PAIRS:
        return -1
    if count > _COUNTED:
        middle, deviation = _normal(count)
        return floor(middle - 0.5 - _FAR * deviation)
    tails = _tails(count)  # those of great sums are those of small ones
    return len(tails) - 1 - int(np.flatnonzero(2 * ONE_IN * tails <= 1)[0])
