"""Choices on generated figures whose truth is known: how often they are wrong, and what they promise.

``python -m tests.rebalance_lab.verdicts.generated_scores`` prints the table of the document.
"""

import sys
from typing import NamedTuple

import numpy as np

from rebalance_lab.verdicts.aims import BALANCE, MOVES, STOPS
from rebalance_lab.verdicts.changes_per_group import HALF_WIDTH, estimates
from rebalance_lab.verdicts.choices_per_group import MARGIN, choose_each
from rebalance_lab.verdicts.grid import Grid, Setup
from rebalance_lab.verdicts.rule import differences

AIMS = (STOPS, MOVES, BALANCE)
GROUPS, SEEDS = 500, 4
SAME, BETTER = (1.0, 1.0, 1.0), (0.9, 1.0, 1.0)
"""The factors of the metrics under a strategy that is exchangeable with that of today, and a better one."""


def figures_of(seed, hours, effects, noise, spread=0.0):
    """The figures of groups of very different sizes (groups x hours x strategies x metrics), and their truth.

    ``effects`` are the factors of the metrics under each strategy; the first is that of today. Each group has
    its own factors, as far as the ``spread`` of their logarithms. All strategies see the same hours;
    ``noise`` is that of the first metric in each hour under each strategy.
    """
    random = np.random.default_rng(seed)
    base = random.lognormal(2, 1.2, (GROUPS, 1, 1, 1)) * random.lognormal(0, 0.5, (GROUPS, hours, 1, 1))
    logs = np.log(np.array(effects)) + random.normal(0, spread, (GROUPS, len(effects), 1))
    logs[:, 0] = 0.0
    noises = np.array([noise, 0.0, 0.0]) * random.normal(0, 1, (GROUPS, hours, *logs.shape[1:]))
    return base * np.exp(logs)[:, None] * np.exp(noises), np.exp(logs)


def chosen(figures, **options):
    """The choices on figures (groups x hours x strategies x metrics)."""
    groups, hours, strategies, _ = figures.shape
    setups = [Setup(f"s{n}") for n in range(strategies)]
    flat = figures.reshape(groups * hours, strategies, -1)
    grid = Grid(range(len(flat)), setups, [aim.metric for aim in AIMS], flat)
    return choose_each(grid, np.repeat(np.arange(groups), hours), groups, AIMS, **options)


class Seen(NamedTuple):
    """Choices on some hours, and what as many other hours show.

    ``switched`` is the share of the groups that switch. The others are shares of these: that are truly worse
    in a metric by more than the margin, and of which the change in the other hours is what was promised,
    within the interval of both. ``promised`` and ``realised`` are mean changes, as shares of today's figure.
    """

    switched: float
    worse: float
    agree: float
    promised: float
    realised: float


def seen(seed, hours, effects, noise, spread=0.0):
    """Choose by the first hours, and look at the others."""
    figures, truth = figures_of(seed, 2 * hours, effects, noise, spread)
    choices = chosen(figures[:, :hours]).chosen
    rows = np.flatnonzero(choices)
    if not len(rows):
        return Seen(0.0, 0.0, np.nan, np.nan, np.nan)
    numbers = choices[rows]
    factors = truth[rows, numbers]
    level = figures[rows, :hours, 0, 0].mean(axis=1)
    found = np.empty((2, len(rows)))
    groups = np.repeat(np.arange(GROUPS), hours)
    for number in np.unique(numbers):
        own = numbers == number
        first = figures[:, :hours, :, 0].reshape(-1, len(effects))
        found[:, own] = np.array(estimates(first[:, number], first[:, 0], groups, GROUPS))[:, rows[own]]
    stops = figures[rows, :, :, 0] / level[:, None, None]
    promised, deviations = found / level
    today, other = stops[:, hours:, 0], stops[np.arange(len(rows)), hours:, numbers]
    ratios = other.sum(axis=1) / today.sum(axis=1)
    errors = (other - ratios[:, None] * today) / today.mean(axis=1, keepdims=True)
    width = HALF_WIDTH * np.sqrt(deviations**2 + errors.var(axis=1, ddof=1) / hours)
    return Seen(
        len(rows) / GROUPS,
        float((differences(factors, np.ones_like(factors)) > MARGIN).any(axis=1).mean()),
        float((np.abs(promised - (ratios - 1)) <= width).mean()),
        float(promised.mean()),
        float((ratios - 1).mean()),
    )


def covered(seed, hours, effect, noise, spread=0.0):
    """The share of all groups of which the interval of the change has the true one."""
    figures, truth = figures_of(seed, hours, [SAME, effect], noise, spread)
    flat = figures[:, :, :, 0].reshape(GROUPS * hours, 2)
    found = estimates(flat[:, 1], flat[:, 0], np.repeat(np.arange(GROUPS), hours), GROUPS)
    factor = truth[:, 1, 0]
    levels = np.sqrt(figures[:, :, 0, 0] * figures[:, :, 1, 0] / factor[:, None]).mean(axis=1)
    true = (factor - 1) * levels
    return float(((found.low <= true) & (true <= found.high)).mean())


CASES = [
    ("exchangeable", [SAME, SAME], 0.3, 0.0),
    ("five exchangeable", [SAME] * 6, 0.3, 0.0),
    ("10 % better, noise of 10 %", [SAME, BETTER], 0.1, 0.0),
    ("10 % better, noise of 30 %", [SAME, BETTER], 0.3, 0.0),
    ("50 % better to 50 % worse", [SAME, SAME, BETTER], 0.3, 0.3),
]

HEAD = ("scores", "hours", "switch", "of these worse", "promised", "realised", "agree", "covered")


def table():
    """The table of the document, in Markdown."""
    lines = [HEAD, ("---",) * len(HEAD)]
    for name, effects, noise, spread in CASES:
        for hours in (12, 24):
            each = np.array([seen(seed, hours, effects, noise, spread) for seed in range(SEEDS)])
            within = np.mean([covered(seed, hours, effects[-1], noise, spread) for seed in range(SEEDS)])
            means = Seen(*(_mean(column) for column in each.T))
            shares = (means.switched, means.worse, means.promised, means.realised, means.agree, within)
            lines.append((name, str(hours), *map(_percent, shares)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _mean(values):
    known = values[~np.isnan(values)]
    return known.mean() if len(known) else np.nan


def _percent(share):
    return "-" if np.isnan(share) else f"{100 * share:.1f} %"


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
