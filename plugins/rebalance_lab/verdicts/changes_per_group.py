"""What the choice for each of many groups changes in it, and why it is made, in words.

The mean difference of one group is a noisy estimate, and the groups that are chosen for it are those where it
is too good. Their expected value given all groups is not (empirical Bayes: Efron and Morris 1975): the fewer
units a group has, and the more alike the groups are, the closer it is to their mean.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rebalance_lab.verdicts.aims import BALANCE, LOADED, MOVES, STOPS
from rebalance_lab.verdicts.choices_per_group import COUNTED_BALANCE, MISSING, Choices, figures_of
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, FloatArray, IntArray

_BALANCED = ("is better balanced", "may be worse balanced")
WORDS = {
    STOPS.metric: ("stops less", "may stop longer"),
    MOVES.metric: ("moves less", "may move more"),
    BALANCE.metric: _BALANCED,
    COUNTED_BALANCE: _BALANCED,
}
"""What is said of a strategy that is better in a metric, or may be worse."""

OVERLOAD = "relieves an overload"

PRIOR_UNITS = 20.0
"""Units that the variance within all groups counts as, beside those of the group itself."""

HALF_WIDTH = 2.09
"""Of an interval of 95 %, in standard deviations that rest on `PRIOR_UNITS` and more (Student's t)."""


def needed_of(choices: Choices, grid: Grid) -> FloatArray:
    """float64[G]: about how many scenarios a decision about each group takes, NaN where one is made."""
    needed = np.where(choices.units < FEWEST_PAIRS, FEWEST_PAIRS, choices.needed)
    is_open = (choices.units > 0) & (choices.chosen == grid.now) & (needed > 0)
    return np.where(is_open, needed, np.nan)


def reason_of(choices: Choices, grid: Grid, aims: Sequence[Aim], group: int) -> str:
    """Return the reason of the choice for a group, in words."""
    units, needed, chosen = (int(each[group]) for each in (choices.units, choices.needed, choices.chosen))
    if not units:
        return f"{grid.label(grid.now)} has no figures"
    if units < FEWEST_PAIRS:
        return f"{units} of {FEWEST_PAIRS} scenarios"
    is_switch = chosen != grid.now
    other = chosen if is_switch else int(choices.runner_up[group])
    words = [WORDS.get(aim.metric, (f"less {aim.metric}", f"may be worse in {aim.metric}")) for aim in aims]
    better = ", ".join(each[0] for n, each in enumerate(words) if choices.better[n, group, other])
    if is_switch:
        return OVERLOAD if choices.relieves[group] or not better else better
    if needed:
        return f"{units} of about {needed} scenarios"
    worse = ", ".join(each[1] for n, each in enumerate(words) if choices.perhaps_worse[n, group, other])
    if better and worse and not choices.overloaded[group]:
        return f"{grid.label(other)} {better}, {worse}"
    return "none is known to be better"


def changes(grid: Grid, metric: str, choices: Choices, groups: IntArray) -> tuple[FloatArray, ...]:
    """float64[G] each: the mean of the present candidate, the change of a switch, and its interval of 95 %.

    Changes are NaN where nothing changes.
    """
    count = len(choices.chosen)
    values = _used(grid, metric, choices, groups)
    now = values[:, grid.now]
    known = ~np.isnan(now)
    units = np.bincount(groups[known], minlength=count)
    sums = np.bincount(groups[known], now[known], count)
    means = np.divide(sums, units, out=np.full(count, np.nan), where=units > 0)
    change = np.full((3, count), np.nan)
    for number in np.unique(choices.chosen[choices.chosen != grid.now]).tolist():
        rows = choices.chosen == number
        each = estimates(values[:, number], now, groups, count)
        change[:, rows] = np.array([each.means, each.low, each.high])[:, rows]
    return means, *change


def greatest(grid: Grid, metric: str, choices: Choices, groups: IntArray) -> FloatArray:
    """float64[2, G]: the greatest figure of each group under the present candidate, and the chosen one."""
    values = _used(grid, metric, choices, groups)
    if metric == MISSING:  # it has none where no number of members is enough
        is_over = choices.used[:, None] & (grid.values(LOADED.metric) > 1)
        values = np.where(np.isnan(values) & is_over, np.inf, values)
    found = np.full((len(choices.chosen), values.shape[1]), np.nan)
    np.fmax.at(found, groups, values)
    each = np.arange(len(found))
    return np.stack([found[each, grid.now], found[each, choices.chosen]])


def _used(grid: Grid, metric: str, choices: Choices, groups: IntArray) -> FloatArray:
    """float64[N, K]: the figures of the units that count."""
    values = figures_of(grid, metric, choices.counted[groups])
    return np.where(choices.used[:, None], values, np.nan)


# --- estimates


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
