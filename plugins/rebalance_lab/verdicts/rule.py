"""The one rule of better: what pairs of figures show of their order.

A pair is two runs under the same conditions: of one seed in a comparison, of one scenario in scores of many
groups. Runs of one seed have the same latencies and start at the same times. The order of two figures follows
from the interval of the differences of their pairs, by the sign test: it has the median difference with a
probability of at least 95 %, whatever the distribution. Fewer than six pairs have no such interval.
"""

from enum import IntEnum
from functools import cache
from math import isclose
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

TIE = 0.01
"""Figures that differ by at most this share of the greater one are alike."""

IN_WORDS = "by more than 1 %, seed by seed (sign test, 5 %)"
"""How much better a figure is that is said to be better."""

ONE_IN = 20
"""The interval of the differences is beside the median difference once in so many cases at most."""

FEWEST_PAIRS = 6
"""The fewest pairs from which an order is known: of fewer, a coin falls on one side too often."""


class Order(IntEnum):
    """What is known of the order of two figures."""

    BETTER, WORSE, ALIKE, UNKNOWN = range(4)


def is_tie(one: float, other: float) -> bool:
    """Return whether two single figures are alike. Whether others are, too, is shown by pairs alone."""
    return isclose(one, other, rel_tol=TIE)


def order(one: ArrayLike, other: ArrayLike, *, better: str = "lower", margin: float = TIE) -> Order:
    """Return what is known of the order of two figures from the values of their pairs, see `orders`."""
    return Order(int(orders(one, other, better=better, margin=margin)[0]))


def orders(
    one: ArrayLike,
    other: ArrayLike,
    subjects: IntArray | None = None,
    *,
    better: str = "lower",
    margin: float = TIE,
) -> IntArray:
    """int64[S]: the `Order` of ``one`` and ``other``, of which a pair has the values, for each subject.

    A figure is better, or worse, if the interval of the differences is on one side, beyond the margin, and so
    is the difference of the medians. It is alike if both are within it. The margin is a share of the greater
    of two values.

    ``subjects`` int64[N] has the number of the subject of each pair; without it, all are of one.
    """
    low, high = ends(one, other, subjects, better=better)
    found = np.full(len(low), Order.UNKNOWN, dtype=np.int64)
    found[(low >= -margin) & (high <= margin)] = Order.ALIKE
    found[high < -margin] = Order.BETTER
    found[low > margin] = Order.WORSE
    return found


def ends(
    one: ArrayLike, other: ArrayLike, subjects: IntArray | None = None, *, better: str = "lower"
) -> tuple[FloatArray, FloatArray]:
    """float64[S] twice: between which differences the figures of each subject are, as shares of the greater.

    They are negative if ``one`` is better, and NaN if too few pairs are known.
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    subjects = np.zeros(len(first), dtype=np.int64) if subjects is None else subjects
    count = int(subjects.max(initial=0)) + 1
    values, starts, sizes = _sorted(differences(first, second), subjects, count)
    different, places = np.unique(sizes, return_inverse=True)
    cut = np.array(list(map(_cut, different.tolist())))[places]
    known = cut >= 0
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    low[known] = values[(starts + cut)[known]]
    high[known] = values[(starts + sizes - 1 - cut)[known]]
    middle = differences(medians(first, subjects, count), medians(second, subjects, count))
    low, high = np.minimum(low, middle), np.maximum(high, middle)
    return (-high, -low) if better == "higher" else (low, high)


def medians(values: FloatArray, subjects: IntArray, count: int) -> FloatArray:
    """float64[count]: the median of the known values of each subject, NaN without any."""
    ordered, starts, sizes = _sorted(values, subjects, count)
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
        found: FloatArray = np.where(np.isinf(greater), np.sign(one - other), (one - other) / greater)
    found[one == other] = 0.0
    return found


def _sorted(values: FloatArray, subjects: IntArray, count: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the known values of each subject in order, where those of each begin, and how many there are."""
    known = ~np.isnan(values)
    values, subjects = values[known], subjects[known]
    sizes = np.bincount(subjects, minlength=count)
    return values[np.lexsort((values, subjects))], np.cumsum(sizes) - sizes, sizes


@cache
def _cut(count: int) -> int:
    """Return how many values at each end are outside of the interval; -1 if too few are known.

    They are as many as the error allows.
    """
    if count < FEWEST_PAIRS:
        return -1
    cut, outside, ways = -1, 0, 1
    while 2 * ONE_IN * (outside := outside + ways) <= 2**count:
        cut += 1
        ways = ways * (count - cut) // (cut + 1)
    return cut
