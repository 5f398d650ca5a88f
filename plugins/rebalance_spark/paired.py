"""The scenarios that are compared, and mean differences over them, with bootstrap intervals."""

from dataclasses import dataclass
from functools import cache
from math import isnan

import numpy as np
import numpy.typing as npt

from rebalance_spark.stored import Figures2D, Scored

RESAMPLES = 1_000
MOST_BLOCKS = 2_000
"""The most blocks that are drawn. Of more groups, each block has several, drawn at random once."""

SEED = 18
LEVEL = 95
"""The percentage of resamples whose mean is in the interval."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference over scenarios, and the ends of its interval: NaN if there is none."""

    mean: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval: the differences are of two groups or more."""
        return not isnan(self.low)

    @property
    def is_clear(self) -> bool:
        """Whether the interval is on one side of zero."""
        return self.low > 0 or self.high < 0


def completed_by_all(scored: Scored) -> npt.NDArray[np.bool_]:
    """Return the scenarios that all strategies completed. A strategy that completed none does not count."""
    ok = scored.ok
    return np.asarray(ok[:, ok.any(axis=0)].all(axis=1)) & bool(ok.any())


def comparable(figures: Figures2D, common: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the scenarios of ``common`` in which no strategy that has this metric is without a figure."""
    known = ~np.isnan(figures)
    having = known[common].any(axis=0)
    return np.asarray(known[:, having].all(axis=1)) & common & bool(having.any())


def difference(values: npt.NDArray[np.float64], groups: npt.NDArray[np.int64] | None = None) -> Difference:
    """Return the mean of differences and its interval by the bootstrap (Efron 1979, percentile method).

    ``groups`` has the number of the group of each value. Groups are drawn whole, because the values of a
    group are not independent. Without it each value is a group. Equal arguments give equal intervals. One
    group has no interval: every resample of it would be the group itself.
    """
    if not len(values):
        return Difference(np.nan, np.nan, np.nan)
    blocks = _blocks(np.arange(len(values)) if groups is None else groups)
    count = int(blocks.max()) + 1
    if count == 1:
        return Difference(float(values.mean()), np.nan, np.nan)
    sums = np.bincount(blocks, values, minlength=count)
    sizes = np.bincount(blocks, minlength=count).astype(np.float64)
    weights = _weights(count)
    means = (weights @ sums) / (weights @ sizes)
    tail = (100 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Difference(float(values.mean()), float(low), float(high))


@cache
def _weights(blocks: int) -> npt.NDArray[np.float64]:
    """Return how often each block is drawn (resamples x blocks)."""
    random = np.random.default_rng(SEED)
    return random.multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES).astype(np.float64)


def _blocks(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the block of each value. The blocks differ by at most one group."""
    different, numbers = np.unique(groups, return_inverse=True)
    count = len(different)
    if count <= MOST_BLOCKS:
        return numbers
    return np.asarray((np.random.default_rng(SEED).permutation(count) * MOST_BLOCKS // count)[numbers])
