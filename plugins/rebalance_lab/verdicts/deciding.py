"""What decides about many groups, what a choice changes in each, and why it is made, in words."""

from collections.abc import Sequence

import numpy as np

from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.aims import BALANCE, LOADED, MOVES, STOPS
from rebalance_lab.verdicts.choices import COUNTED_BALANCE, MISSING, Choices
from rebalance_lab.verdicts.estimates import estimates
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


def deciding(metrics: Sequence[str]) -> list[str]:
    """Return the metrics that decide by default, of some: stops, or else moves, and balance."""
    first = STOPS.metric if STOPS.metric in metrics else MOVES.metric
    balance = BALANCE.metric if BALANCE.metric in metrics else COUNTED_BALANCE
    return [name for name in (first, balance) if name in metrics]


def aims_of(metrics: Sequence[str]) -> list[Aim]:
    """Return the aims of metrics that decide. Less is better of a metric that is not installed."""
    specs = default_registry().metrics()
    return [Aim(name, better=specs[name].better if name in specs else "lower") for name in metrics]


def default_aims(grid: Grid) -> list[Aim]:
    """Return the aims that decide, of the metrics that the present candidate has.

    Where all members are known to have limits, moves do not decide beside balance: what a move costs is a
    part of the stopped time.
    """
    aims = aims_of(deciding(grid.metrics))
    names = {*(aim.metric for aim in aims), LOADED.metric, COUNTED_BALANCE, BALANCE.metric}
    known = {name: ~np.isnan(grid.values(name)[:, grid.now]) for name in names}
    known[BALANCE.metric] = known[BALANCE.metric] | known[COUNTED_BALANCE]
    found = [aim for aim in aims if known[aim.metric].any()]
    has_limits = known[LOADED.metric].any() and known[LOADED.metric][known[aims[0].metric]].all()
    if has_limits and [aim.metric for aim in found] == [MOVES.metric, BALANCE.metric]:
        return found[1:]
    return found or aims


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
    values = grid.values(metric)
    if metric == BALANCE.metric:
        values = np.where(choices.counted[groups][:, None], grid.values(COUNTED_BALANCE), values)
    values = np.where(choices.used[:, None], values, np.nan)
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
    values = grid.values(metric)
    if metric == MISSING:  # it has none where no number of members is enough
        values = np.where(np.isnan(values) & (grid.values(LOADED.metric) > 1), np.inf, values)
    found = np.full((len(choices.chosen), values.shape[1]), np.nan)
    np.fmax.at(found, groups, np.where(choices.used[:, None], values, np.nan))
    each = np.arange(len(found))
    return np.stack([found[each, grid.now], found[each, choices.chosen]])
