"""What a change is worth in each of many groups: differences of paired figures, drawn towards each other.

The mean difference of one group is a noisy estimate, and the groups that are chosen for it are those where it
is too good. Their expected value given all groups is not (empirical Bayes: Efron and Morris 1975): the fewer
units a group has, and the more alike the groups are, the closer it is to their mean.
"""

from typing import NamedTuple

import numpy as np

from rebalance_lab.verdicts.rule import FloatArray, IntArray

PRIOR_UNITS = 20.0
"""Units that the variance within all groups counts as, beside those of the group itself."""

HALF_WIDTH = 2.09
"""Of an interval of 95 %, in standard deviations that rest on `PRIOR_UNITS` and more (Student's t)."""


class Estimates(NamedTuple):
    """float64[G] each: the expected difference of each group and its standard deviation, NaN if unknown."""

    means: FloatArray
    deviations: FloatArray

    @property
    def low(self) -> FloatArray:
        """The lower ends of the intervals of 95 %."""
        return self.means - HALF_WIDTH * self.deviations

    @property
    def high(self) -> FloatArray:
        """The upper ends of the intervals of 95 %."""
        return self.means + HALF_WIDTH * self.deviations


def estimates(one: FloatArray, now: FloatArray, groups: IntArray, count: int) -> Estimates:
    """Return the differences of ``one`` to ``now`` for each of ``count`` groups from float64[N] figures.

    Groups of very different sizes are compared by their differences as a share of the mean of the greater
    figures of the pairs. The variance between the groups is that of DerSimonian and Laird (1986). A group
    without units has no difference. If each has one, chance is not known: the deviations are NaN.
    """
    with np.errstate(invalid="ignore"):  # of infinities
        known = np.isfinite(one - now)
    groups, greater = groups[known], np.maximum(np.abs(one), np.abs(now))[known]
    pairs = one[known] - now[known]
    sizes = np.bincount(groups, minlength=count).astype(np.float64)
    some = sizes > 0
    scales = np.divide(np.bincount(groups, greater, count), sizes, out=np.ones(count), where=some)
    scales[scales == 0] = 1.0
    means = np.divide(np.bincount(groups, pairs, count), sizes * scales, out=np.zeros(count), where=some)
    residuals = (pairs - means[groups] * greater) / scales[groups]
    squares = np.bincount(groups, residuals**2, count)
    freedom = np.maximum(sizes - 1, 0)
    if not freedom.any():
        return Estimates(np.where(some, means * scales, np.nan), np.full(count, np.nan))
    within = squares.sum() / freedom.sum()
    noise = (squares + PRIOR_UNITS * within)[some] / (freedom + PRIOR_UNITS)[some] / sizes[some]
    center, between, error = _prior(means[some], noise)
    weight = np.ones(len(noise))
    if np.isfinite(between):
        np.divide(between, between + noise, out=weight, where=between + noise > 0)
    found, deviations = np.full(count, np.nan), np.full(count, np.nan)
    found[some] = center + weight * (means[some] - center)
    deviations[some] = np.sqrt(weight * noise + ((1 - weight) * error) ** 2)
    return Estimates(found * scales, deviations * scales)


def _prior(means: FloatArray, noise: FloatArray) -> tuple[float, float, float]:
    """Return the mean of the groups, the variance between them, and the standard error of the mean.

    The mean of a group alone is not drawn to anything.
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
