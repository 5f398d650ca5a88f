"""The strategy for each group: the one that runs today, or one that is known to be better and not worse.

A group stands for any subject of a decision. The pairs of the one rule of better (`verdicts.rule`) are its
scenarios: its hours, and its draws.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebalance_lab.verdicts.rule import (
    FEWEST_PAIRS,
    TIE,
    Order,
    differences,
    discoveries,
    order,
)
from rebalance_lab.verdicts.scaling import AT_EASE
from rebalance_lab.verdicts.words import listed_names
from rebalance_spark.capacity import Capacity
from rebalance_spark.choices import MARGIN
from rebalance_spark.costs import (
    BY_COUNT,
    BY_RATE,
    OVERLOAD,
    Bools,
    Costs,
    agreement,
    alike_in,
    by_strategy,
    cheapest,
    middles_of,
    totals,
)
from rebalance_spark.dominance import NEVER, RELIEF, Tests, relieved, tested
from rebalance_spark.gains import Change, Floats, Gains, Numbers, gains, seen, total, typical
from rebalance_spark.groups import DRAW
from rebalance_spark.parts import Subjects
from rebalance_spark.stored import Figures2D, Scored

ADDITIVE = (
    "stopped_partition_seconds",
    "delayed_records",
    "unowned_partition_seconds",
    "moved_partitions",
    "duplicate_records",
    "rounds",
    "messages",
)
"""Metrics of which a day has the sum of its scenarios. Lag that stands over hours is none of them."""

RULE = (
    "A {subject} switches to a strategy only if that is known to be {better}. All others stay. Known is what"
    " the signed-rank test of its scenarios shows, so that of all switches at most {rate:g} % are expected to"
    " be due to chance (Benjamini-Hochberg). It takes scenarios as independent: another day says more than"
    " further hours of one day or --draws. Of several strategies, it is the one with the best median of"
    " {first}, and of those that are not worse in it by more than {margin:g} %, the best in the next metric."
)

RELIEF_RULE = (
    "A {subject} of which a member has more than it can handle switches to a strategy that is known to take"
    " {relief:g} % or more of that away, in the mean and in the worst scenario, whatever it costs in the"
    " rest. Balance counts for it only under such strategies. Of several, it is the one that leaves the"
    " least, then one that leaves none with one or two more members, too, then the one with the best median"
    " of {first}, then one whose load does not depend on history, and then the one with the least load of the"
    " busiest member, each by more than {margin:g} %. Where more than {little:g} % is left, or anything under"
    " a strategy whose load depends on history, it must take {little:g} % fewer members to end than today, or"
    " be left in fewer scenarios if no number is enough."
)

EASE = (
    "Balance counts only in scenarios in which the busiest member has more than {ease:g} % of what it can"
    " handle: below that, a switch is not worth it."
)

LITTLE = 0.2
"""So little of an overload may be left by a switch that does not save such a share of the members. Where the
load depends on history, nothing may be: after other events it would be more."""

SWITCH, STAY, UNKNOWN = "switch", "stay", "no figures"
"""Reasons: another strategy is known to be better; none is; that of today has no figures for the group."""

FEW, UNDECIDED = "not enough data: {} of {} scenarios", "not enough data: {} of about {} scenarios"
"""The reasons of a group with figures in fewer scenarios than show any order, and of one of which more
scenarios would show that a switch is better, if they were like those that it has."""


class Held(NamedTuple):
    """Subjects that stay although a strategy is known to be better in something: it may be worse in the rest.

    ``better`` and ``perhaps_worse`` map metrics to the median of the mean changes of these subjects, and
    ``worse_in`` the latter to the median share of scenarios in which it is worse by more than the margin.
    """

    strategy: str
    subjects: Sequence[str]
    better: Mapping[str, float]
    perhaps_worse: Mapping[str, float]
    worse_in: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """The number of the advised strategy for each subject, and how many scenarios it rests on.

    ``metrics`` decide. ``scenarios`` has the number of those that decide for each subject, and ``agree`` the
    share of them that give the same by themselves (`agreement`), NaN for a subject without enough scenarios.
    ``chances`` has the p of the switch that is advised, or of the one that is closest to it; NaN if none
    could be tested. ``needed`` is about how many scenarios would show that a switch is better, 0 if there is
    no sign of it. ``rate`` is the greatest expected share of switches that are due to chance.

    ``changes`` maps the metrics, those that decide first, to the change of each subject, NaN without figures.
    ``worse`` maps an advised strategy to the other metrics that are worse in the scenarios of the subjects
    that switch to it. ``counted`` are the subjects without rates: `BY_COUNT` decides about them in place of
    `BY_RATE`. ``holds`` says for each subject under which values of a column the same is advised, if it was
    asked for. ``second`` is the number of the strategy that is advised without the one that is: that of
    today, unless several are known to be better; of a subject that stays, the one that is closest to a
    switch. ``mean_changes`` are those to each strategy in the metrics that decide (subjects x strategies),
    ``worse_in`` the shares of scenarios in which it is worse by more than the margin, and ``perhaps_worse``
    says where it is not known to be as good. ``seen`` has the changes to what is advised of the
    scenarios of each subject alone, which add up, as ``changes`` do not, and ``levels`` the means of today's
    strategy in the metrics that decide. ``held`` says why groups stay although a strategy is better in
    something. ``per_day`` has how often a day what happens in a scenario happens to each subject, NaN where
    it is not known, if it was given. ``margin`` is the share by which a strategy may be worse in the rest.
    ``overloaded`` has in how many scenarios of each subject the busiest member has more than it can handle,
    today and under the advised strategy (2 x subjects), if that is known. ``capacity`` says what the members
    of each subject can handle. ``better_in`` has for each subject the metrics in which what it switches to is
    known to be better, or `OVERLOAD` alone if that is why.
    """

    baseline: str
    metrics: Sequence[str]
    strategies: Sequence[str]
    subjects: Subjects
    chosen: npt.NDArray[np.int64]
    scenarios: npt.NDArray[np.int64]
    agree: npt.NDArray[np.float64]
    chances: npt.NDArray[np.float64]
    needed: npt.NDArray[np.int64]
    changes: Mapping[str, Gains]
    worse: Mapping[str, Sequence[str]]
    counted: Sequence[str]
    rate: float
    second: npt.NDArray[np.int64]
    held: Sequence[Held]
    mean_changes: Mapping[str, Figures2D] = field(default_factory=dict)
    worse_in: Mapping[str, Figures2D] = field(default_factory=dict)
    perhaps_worse: Mapping[str, Bools] = field(default_factory=dict)
    seen: Mapping[str, Gains] = field(default_factory=dict)
    levels: Mapping[str, Floats] = field(default_factory=dict)
    margin: float = MARGIN / 100
    overloaded: Numbers | None = None
    capacity: Capacity | None = None
    holds: Sequence[str] = ()
    per_day: Floats | None = None
    better_in: Sequence[Sequence[str]] = ()

    @property
    def today(self) -> int:
        """The number of today's strategy."""
        return self.strategies.index(self.baseline)

    @property
    def switches(self) -> list[tuple[str, int]]:
        """The strategies to switch to, with the number of subjects, the most first."""
        counts = np.bincount(self.chosen, minlength=len(self.strategies))
        found = [(name, int(count)) for name, count in zip(self.strategies, counts, strict=True) if count]
        return sorted((f for f in found if f[0] != self.baseline), key=lambda each: -each[1])

    def change(self, strategy: str, metric: str) -> Change:
        """Return the change over the subjects that switch to a strategy, NaN without figures."""
        return typical(self.changes[metric], self.chosen == self.strategies.index(strategy))

    @property
    def per_day_metrics(self) -> list[str]:
        """The metrics of which a day has the sum, those that decide first."""
        return [metric for metric in self.changes if metric in ADDITIVE]

    def change_per_day(self, metric: str) -> Change:
        """Return the change of a day over all subjects that switch."""
        assert self.per_day is not None
        return total(self.seen[metric], self.per_day, self.is_switching)

    @property
    def decisive(self) -> list[str]:
        """The metrics that decide, with that of the subjects without rates."""
        return list(dict.fromkeys([*self.metrics, *([BY_COUNT] if self.counted else [])]))

    @property
    def reasons(self) -> list[str]:
        """The reason for the strategy of each subject."""
        columns = (self.scenarios, self.needed, self.is_undecided, self.is_switching)
        return [_reason(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]

    @property
    def is_undecided(self) -> npt.NDArray[np.bool_]:
        """Whether more scenarios of each subject could show that a switch is better."""
        return np.asarray((self.scenarios < FEWEST_PAIRS) | (~self.is_switching & (self.needed > 0)))

    @property
    def is_switching(self) -> npt.NDArray[np.bool_]:
        """Whether another strategy is advised for each subject."""
        return np.asarray(self.chosen != self.today)

    @property
    def rules(self) -> list[str]:
        """The rules in words."""
        listed = listed_names(self.metrics, len(self.metrics))
        margin, words = 100 * self.margin, {"subject": self.subjects.singular, "first": self.metrics[0]}
        better = f"better in {listed} by more than {100 * TIE:g} %"
        if len(self.metrics) > 1:
            better = (
                f"better in at least one of {listed} by more than {100 * TIE:g} %, and to be worse in none of"
                f" them by more than {margin:g} %"
            )
        parts = [RULE.format(better=better, rate=100 * self.rate, margin=margin, **words)]
        if self.overloaded is not None and self.overloaded[0].any():
            parts.append(RELIEF_RULE.format(relief=100 * RELIEF, little=100 * LITTLE, margin=margin, **words))
        if self.overloaded is not None and self.capacity is not None and BY_RATE in self.metrics:
            parts.append(EASE.format(ease=100 * AT_EASE))
        return parts


def holding(advice: Advice, alone: Mapping[str, Advice]) -> list[str]:
    """Return for each subject under which values, of which ``alone`` has the advice, the same is advised.

    ``all`` stands for all of them, ``none`` for none; a value in parentheses decides nothing by itself.
    """
    same = {value: one.chosen == advice.chosen for value, one in alone.items()}
    is_open = {value: one.is_undecided for value, one in alone.items()}
    found = []
    for number in range(len(advice.chosen)):
        held = [value for value in alone if same[value][number] and not is_open[value][number]]
        texts = held + [f"({value})" for value in alone if is_open[value][number]]
        found.append("all" if len(held) == len(alone) else ", ".join(texts) or "none")
    return found


def _reason(scenarios: int, needed: int, is_undecided: bool, switches: bool) -> str:
    if not scenarios:
        return UNKNOWN
    if is_undecided:
        return UNDECIDED.format(scenarios, needed) if needed else FEW.format(scenarios, FEWEST_PAIRS)
    return SWITCH if switches else STAY


def advise(
    costs: Costs,
    strategies: Sequence[str],
    rate: float,
    margin: float = MARGIN / 100,
    members: Figures2D | None = None,
) -> Advice:
    """Return the advice that costs give.

    ``rate`` is the greatest expected share of the switches that are due to chance. ``margin`` is the share by
    which a strategy may be worse in the rest. ``members`` (subjects x strategies) are those with which there
    is no overload, if that is known.
    """
    subjects, today, grids = costs.subjects, costs.today, costs.grids
    size, numbers = len(subjects.names), subjects.numbers
    tests = tested([costs.decides[m] for m in costs.deciding], today, numbers, size, margin)
    if costs.load is not None and costs.relieves is not None:
        tests = relieved(tests, costs.load, costs.relieves, today, numbers, size)
    middles = middles_of(costs)
    alike = alike_in(costs, margin)
    possible = discoveries(tests.chances, rate)
    if members is not None:
        in_vain = _saving_nobody(costs, tests, rate, members)
        possible &= ~in_vain
        tests = tests._replace(needed=np.where(in_vain, 0, tests.needed))
    chosen = cheapest(possible, middles, today, alike)
    rest = possible.copy()
    rest[np.arange(size), chosen] = False
    closest = cheapest(_least(tests.chances), middles, today)
    second = np.where(chosen == today, closest, cheapest(rest, middles, today, alike))
    is_relief = tests.relief[np.arange(size), chosen]
    scenarios = np.bincount(numbers[costs.rows], minlength=size)
    few = scenarios < FEWEST_PAIRS
    overloaded, stays = None, chosen == today
    if costs.overload is not None:
        overloaded = _overloaded(costs.overload, today, chosen, numbers, size)
        stays &= overloaded[0] == 0  # overload decides alone
    changes = _all_changes(costs, chosen)
    mean_changes = {
        m: _mean_changes(grids[m], costs.signs[m], today, numbers, size) for m in changes if m in grids
    }
    measured = [m for m in costs.deciding if m in mean_changes]
    worse_in = [_worse_in(grids[m], today, numbers, size, margin) for m in measured]
    return Advice(
        strategies[today],
        list(costs.deciding),
        strategies,
        subjects,
        chosen,
        scenarios,
        np.where(few, np.nan, agreement(costs, chosen, is_relief, margin)),
        _of_chosen(tests.chances, chosen, today),
        tests.needed.min(axis=1, initial=NEVER, where=tests.needed > 0) % NEVER,
        changes,
        _worse(costs, chosen, changes, strategies, margin),
        [name for name, is_counted in zip(subjects.names, costs.counted, strict=True) if is_counted],
        rate,
        second,
        _held(
            tests,
            subjects.names,
            strategies,
            {m: mean_changes[m] for m in measured},
            worse_in,
            stays,
            rate,
        ),
        {m: mean_changes[m] for m in measured},
        dict(zip(measured, worse_in, strict=True)),
        {m: tests.as_good[costs.deciding.index(m)] > rate for m in measured},
        {m: _changes(grids[m], costs.signs[m], chosen, today, numbers, seen) for m in mean_changes},
        {m: costs.signs[m] * _means(grids[m][:, today], numbers, size) for m in measured},
        margin,
        overloaded,
        better_in=_better_in(tests, is_relief, chosen, costs, rate),
    )


def _all_changes(costs: Costs, chosen: Numbers) -> dict[str, Gains]:
    """Return the changes of all metrics that have figures. Those of subjects without rates are `BY_COUNT`."""
    found = {
        m: _changes(grid, costs.signs[m], chosen, costs.today, costs.subjects.numbers)
        for m, grid in costs.grids.items()
        if m in costs.deciding or not np.isnan(grid).all()
    }
    if costs.counted.any():
        none = Gains(*np.full((2, len(chosen)), np.nan))
        by_rate, by_count = found[BY_RATE], found.get(BY_COUNT, none)
        found[BY_COUNT] = Gains(*np.where(costs.counted, by_rate, by_count))
        found[BY_RATE] = Gains(*np.where(costs.counted, none, by_rate))
    return found


def _worse(
    costs: Costs, chosen: Numbers, changes: Iterable[str], strategies: Sequence[str], margin: float
) -> dict[str, list[str]]:
    """Return for each strategy that is advised the metrics beside that are worse where it is."""
    decisive = {*costs.deciding, *([BY_COUNT] if costs.counted.any() else [])}
    found: dict[str, list[str]] = {}
    for number in np.unique(chosen[chosen != costs.today]).tolist():
        switched = chosen[costs.subjects.numbers] == number
        pairs = {m: costs.grids[m][switched] for m in changes if m not in decisive}
        found[strategies[number]] = [
            m
            for m, cost in pairs.items()
            if order(cost[:, number], cost[:, costs.today], margin=margin) is Order.WORSE
        ]
    return found


def _overloaded(overload: Figures2D, today: int, chosen: Numbers, numbers: Numbers, size: int) -> Numbers:
    """Return in how many scenarios of each subject there is overload, today and under what is advised."""
    columns = (overload[:, today], overload[np.arange(len(numbers)), chosen[numbers]])
    return np.stack([np.bincount(numbers[column > 0], minlength=size) for column in columns])


def _saving_nobody(costs: Costs, tests: Tests, rate: float, members: Figures2D) -> Bools:
    """Return which switches leave much of an overload that takes hardly fewer members to end than today.

    Where no number is enough, it is those that leave some in as many scenarios. Those that are better in
    another metric than balance have a reason besides.
    """
    assert costs.overload is not None
    now = members[:, [costs.today]]
    rest = [tests.better[n] <= rate for n, m in enumerate(costs.deciding) if m != BY_RATE]
    overload = totals(costs.overload, costs.subjects)
    little = np.full(overload.shape[1], LITTLE)
    if costs.by_history is not None:
        little[costs.by_history] = 0.0
    leaves = overload > little * overload[:, [costs.today]]
    often = totals((costs.overload > 0).astype(np.float64), costs.subjects)
    never = np.isinf(now) & np.isinf(members) & (often >= often[:, [costs.today]])
    saves_none = (np.isfinite(now) & (members > (1 - LITTLE) * now)) | never
    return np.asarray(leaves & saves_none & ~np.any(rest, axis=0))


def _better_in(tests: Tests, is_relief: Bools, chosen: Numbers, costs: Costs, rate: float) -> list[list[str]]:
    """Return in what the strategy of each subject that switches is known to be better."""
    known = tests.better[:, np.arange(len(chosen)), chosen] <= rate
    return [
        [OVERLOAD]
        if is_relief[number]
        else [m for m, row in zip(costs.deciding, known, strict=True) if row[number]]
        for number in range(len(chosen))
    ]


def _least(chances: Floats) -> Bools:
    """Return which strategies have the least p of each subject: none where none was tested."""
    known = np.where(np.isnan(chances), np.inf, chances)
    return np.asarray((known == known.min(axis=1, keepdims=True)) & ~np.isinf(known))


def _worse_in(cost: Figures2D, today: int, numbers: Numbers, size: int, margin: float) -> Figures2D:
    """Return the share of the scenarios of each subject in which each strategy is worse than today's."""
    apart = differences(cost, cost[:, [today]])
    counts = by_strategy(~np.isnan(apart), lambda known: np.bincount(numbers, known, size))
    worse = by_strategy(apart > margin, lambda row: np.bincount(numbers, row, size))
    return np.asarray(worse / np.maximum(counts, 1), dtype=np.float64)


def _of_chosen(
    chances: npt.NDArray[np.float64], chosen: npt.NDArray[np.int64], today: int
) -> npt.NDArray[np.float64]:
    """Return the p of what is chosen for each subject; of one that stays, the least that it has."""
    least = np.where(np.isnan(chances), np.inf, chances).min(axis=1)
    least[np.isinf(least)] = np.nan
    return np.where(chosen == today, least, chances[np.arange(len(chosen)), chosen])


def _changes(
    costs: Figures2D,
    sign: float,
    chosen: Numbers,
    today: int,
    numbers: Numbers,
    worth: Callable[[Floats, Floats, Numbers, int], Gains] = gains,
) -> Gains:
    """Return the change of each subject to the strategy that is chosen for it; none for one that stays."""
    size = len(chosen)
    figured = np.bincount(numbers, ~np.isnan(costs[:, today]), size) > 0
    found = np.where(figured, np.zeros((2, size)), np.nan)
    for number in np.unique(chosen[chosen != today]).tolist():
        rows = chosen == number
        found[:, rows] = np.array(worth(costs[:, number], costs[:, today], numbers, size))[:, rows]
    return Gains(sign * found[0], found[1])


def _held(
    tests: Tests,
    subjects: Sequence[str],
    names: Sequence[str],
    changes: Mapping[str, Figures2D],
    worse_in: Sequence[Figures2D],
    stays: Bools,
    rate: float,
) -> list[Held]:
    """Return what holds back subjects that stay: for each strategy, those that are alike in it together.

    ``changes`` has the mean changes of each metric (subjects x strategies), and ``worse_in`` the shares of
    scenarios that are worse. Those that may be worse in the fewest metrics are first.
    """
    metrics = list(changes)
    known = np.array([discoveries(each, rate) for each in tests.better])
    bits = 1 << np.arange(len(metrics))[:, None, None]
    better, open_ = (known * bits).sum(axis=0), ((tests.as_good > rate) * bits).sum(axis=0)
    found = []
    for place, strategy in enumerate(names):
        rows = np.flatnonzero(stays & (better[:, place] > 0) & (open_[:, place] > 0))
        kinds, of_rows = np.unique(
            np.stack([better[rows, place], open_[rows, place]], axis=1), axis=0, return_inverse=True
        )
        for number, codes in enumerate(kinds.tolist()):
            inside = rows[of_rows.ravel() == number]
            listed = [*changes.values()]
            parts = [
                _medians(metrics, grids, code, inside, place)
                for code, grids in ((codes[0], listed), (codes[1], listed), (codes[1], worse_in))
            ]
            found.append(Held(strategy, [subjects[n] for n in inside.tolist()], *parts))
    return sorted(found, key=lambda each: (len(each.perhaps_worse), -len(each.subjects) * len(each.better)))


def _medians(
    metrics: Sequence[str], grids: Sequence[Figures2D], code: int, subjects: Numbers, strategy: int
) -> dict[str, float]:
    """Return the medians of some subjects under a strategy in the metrics whose bits a code has."""
    return {
        metric: float(np.nanmedian(grid[subjects, strategy]))
        for n, (metric, grid) in enumerate(zip(metrics, grids, strict=True))
        if code >> n & 1
    }


def _mean_changes(cost: Figures2D, sign: float, today: int, numbers: Numbers, size: int) -> Figures2D:
    """Return the mean change of each subject to each strategy, NaN without figures."""
    return sign * by_strategy(cost, lambda column: seen(column, cost[:, today], numbers, size).means)


def _means(values: Floats, numbers: Numbers, size: int) -> Floats:
    """Return the mean of the known values of each subject, NaN without any."""
    known = ~np.isnan(values)
    counts = np.bincount(numbers[known], minlength=size)
    sums = np.bincount(numbers[known], values[known], size)
    return np.asarray(np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0))


def first_draws(scored: Scored) -> npt.NDArray[np.bool_]:
    """Return whether each scenario is the first of the draws of a group under its keys."""
    if DRAW not in scored.others:
        return np.ones(len(scored.scenarios), dtype=np.bool_)
    return np.array([draw in (None, 0) for draw in scored.values(DRAW)], dtype=np.bool_)
