"""What a switch is worth: differences of paired figures, drawn towards those of other subjects.

The mean difference of one subject is a noisy estimate, and the subjects that are chosen for it are those
where it is too good. Their expected value given all subjects is not (empirical Bayes: Efron and Morris 1975):
the fewer scenarios a subject has, and the more alike the subjects are, the closer it is to their mean.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebalance_spark.paired import MOST_BLOCKS, RESAMPLES, SEED

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

KIN = 20.0
"""Scenarios that the variance within all subjects counts as, beside those of the subject itself."""

HALF_WIDTH = 2.09
"""Of an interval of 95 %, in standard deviations that rest on `KIN` scenarios and more (Student's t)."""


class Gains(NamedTuple):
    """float64[S] each: the expected difference of each subject and its standard deviation, NaN if unknown."""

    means: Floats
    deviations: Floats

    @property
    def low(self) -> Floats:
        """The lower ends of the intervals of 95 %."""
        return self.means - HALF_WIDTH * self.deviations

    @property
    def high(self) -> Floats:
        """The upper ends of the intervals of 95 %."""
        return self.means + HALF_WIDTH * self.deviations


class Change(NamedTuple):
    """What several subjects gain, with its interval of 95 %."""

    value: float
    low: float
    high: float


def gains(one: Floats, today: Floats, subjects: Numbers, count: int) -> Gains:
    """Return the differences of ``one`` to ``today`` for each of ``count`` subjects from float64[N] figures.

    Subjects of very different sizes are compared by their differences as a share of the mean of the greater
    figures of the pairs. The variance between the subjects is that of DerSimonian and Laird (1986). A subject
    without scenarios has no gain. If each has one, chance is not known: the deviations are NaN.
    """
    with np.errstate(invalid="ignore"):  # of infinities
        known = np.isfinite(one - today)
    subjects, greater = subjects[known], np.maximum(np.abs(one), np.abs(today))[known]
    pairs = one[known] - today[known]
    sizes = np.bincount(subjects, minlength=count).astype(np.float64)
    some = sizes > 0
    scales = np.divide(np.bincount(subjects, greater, count), sizes, out=np.ones(count), where=some)
    scales[scales == 0] = 1.0
    means = np.divide(np.bincount(subjects, pairs, count), sizes * scales, out=np.zeros(count), where=some)
    beside = (pairs - means[subjects] * greater) / scales[subjects]
    squares = np.bincount(subjects, beside**2, count)
    free = np.maximum(sizes - 1, 0)
    if not free.any():
        return Gains(np.where(some, means * scales, np.nan), np.full(count, np.nan))
    within = squares.sum() / free.sum()
    noise = (squares + KIN * within)[some] / (free + KIN)[some] / sizes[some]
    center, between, spread = _kin(means[some], noise)
    weight = np.ones(len(noise))
    if np.isfinite(between):
        np.divide(between, between + noise, out=weight, where=between + noise > 0)
    found, deviations = np.full(count, np.nan), np.full(count, np.nan)
    found[some] = center + weight * (means[some] - center)
    deviations[some] = np.sqrt(weight * noise + ((1 - weight) * spread) ** 2)
    return Gains(found * scales, deviations * scales)


def seen(one: Floats, today: Floats, subjects: Numbers, count: int) -> Gains:
    """Return the mean differences of each subject alone, as of `gains`, with their standard errors."""
    with np.errstate(invalid="ignore"):  # of infinities
        known = np.isfinite(one - today)
    pairs, subjects = (one - today)[known], subjects[known]
    sizes = np.bincount(subjects, minlength=count)
    means = np.divide(np.bincount(subjects, pairs, count), sizes, out=np.full(count, np.nan), where=sizes > 0)
    squares = np.bincount(subjects, (pairs - means[subjects]) ** 2, count)
    free = sizes * (sizes - 1)
    return Gains(means, np.sqrt(np.divide(squares, free, out=np.full(count, np.nan), where=free > 0)))


def _kin(means: Floats, noise: Floats) -> tuple[float, float, float]:
    """Return the mean of the subjects, the variance between them, and the standard error of the mean.

    One subject has no kin: its own mean is not drawn to anything.
    """
    if len(means) < 2 or not noise.any():
        return 0.0, np.inf, 0.0
    floor = noise[noise > 0].min()
    precisions = 1 / np.maximum(noise, floor)
    total = precisions.sum()
    center = (precisions * means).sum() / total
    excess = (precisions * (means - center) ** 2).sum() - (len(means) - 1)
    between = max(0.0, excess / (total - (precisions**2).sum() / total))
    weights = 1 / (np.maximum(noise, floor) + between)
    return float((weights * means).sum() / weights.sum()), float(between), float(weights.sum() ** -0.5)


def typical(found: Gains, rows: npt.NDArray[np.bool_]) -> Change:
    """Return the median of the known gains of some subjects, NaN without any.

    The interval is of draws from all of them, or from `MOST_BLOCKS` of them.
    """
    means, deviations = (values[rows & ~np.isnan(found.means)] for values in found)
    if not len(means):
        return Change(np.nan, np.nan, np.nan)
    random = np.random.default_rng(SEED)
    places = random.permutation(len(means))[:MOST_BLOCKS]
    noise = random.standard_normal((RESAMPLES, len(places)))
    medians = np.median(means[places] + deviations[places] * noise, axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return Change(float(np.median(means)), float(low), float(high))


def total(found: Gains, times: Floats, rows: npt.NDArray[np.bool_]) -> Change:
    """Return the sum of the known gains of some subjects, each as often as ``times`` (float64[S]) says."""
    known = rows & ~np.isnan(found.means * times)
    gain = float((times * found.means)[known].sum())
    half = HALF_WIDTH * float(np.sqrt(((times * found.deviations)[known] ** 2).sum()))
    return Change(gain, gain - half, gain + half)
