"""The choice for each of many groups: the present strategy, or one that is known to be better.

`choice` chooses for one group, from its seeds. Here the units of a grid are scenarios of many groups, such as
their hours, and the chance of an error is shared by all groups (Benjamini and Hochberg 1995).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.aims import BALANCE, FRONT, LOADED, MOVES, STOPS
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.rule import (
    FEWEST_PAIRS,
    TIE,
    FloatArray,
    IntArray,
    chances,
    differences,
    discoveries,
    medians,
)
from rebalance_lab.verdicts.scaling import COMFORTABLE_LOAD

BoolArray: TypeAlias = npt.NDArray[np.bool_]

FALSE_SWITCHES = 0.05
"""The greatest expected share of the switches that are due to chance."""

MARGIN = 0.05
"""By how much a strategy may be worse in the rest of what decides: to keep for the sake of less is not worth
it."""

RELIEF = 0.2
"""The least share of an overload that a switch takes away whatever it costs in the rest."""

COUNTED_BALANCE = "imbalance"
"""The metric that decides in place of `aims.BALANCE` in groups without rates."""

MISSING = "missing_members"

_WEAK_SIGN = 0.3
"""A sign of a switch: by how much the ranks that speak for it exceed the others, as a share of all."""

_SURE = 3.0**2 * 4 / 3
"""Three standard deviations of this share, squared, for one unit: about what stays certain among many."""


class Choices(NamedTuple):
    """What is chosen for each of G groups among K candidates, by M aims.

    ``chosen`` int64[G]: the present candidate if it is kept. ``runner_up`` int64[G]: of a switch, what would
    be chosen without the chosen one; else the candidate that is closest to a switch, or the present one.
    ``chance`` float64[G]: the p-value of the switch, or of the closest one, NaN if none was tested.
    ``units`` int64[G]: the scenarios that count, and ``needed`` about how many would show a better one, 0
    without a sign of it. ``better`` bool[M, G, K]: in which aims a candidate is known to be better;
    ``perhaps_worse`` bool[M, G, K]: in which it is not known to be as good. ``relieves`` bool[G]: whether the
    chosen one is for the sake of an overload. ``overloaded`` int64[G]: scenarios in which the busiest member
    has more than it can handle under the present one. ``counted`` bool[G]: groups without rates. ``used``
    bool[N]: the scenarios that count.
    """

    chosen: IntArray
    runner_up: IntArray
    chance: FloatArray
    units: IntArray
    needed: IntArray
    better: BoolArray
    perhaps_worse: BoolArray
    relieves: BoolArray
    overloaded: IntArray
    counted: BoolArray
    used: BoolArray


class _Tests(NamedTuple):
    """float64[G, K] p-values of switches, int64[G, K] the units they need, float64[M, G, K] by aim."""

    chance: FloatArray
    needed: IntArray
    better: FloatArray
    as_good: FloatArray


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


@dataclass(frozen=True)
class _Groups:
    """The groups of N units, int64[N] their numbers, and the present one of K candidates."""

    of: IntArray
    count: int
    now: int

    def counts(self, units: BoolArray) -> IntArray:
        """int64[G]: how many of some units (bool[N]) each group has."""
        return np.bincount(self.of[units], minlength=self.count)

    def totals(self, values: FloatArray | BoolArray) -> FloatArray:
        """float64[G, K]: the sums of the known figures of each group."""
        known = np.nan_to_num(values.astype(np.float64))
        return _by_candidate(
            known, lambda column: np.bincount(self.of, column, self.count).astype(np.float64)
        )

    def greatest(self, values: FloatArray) -> FloatArray:
        """float64[G, K]: the greatest of the known figures of each group, NaN without any."""
        found = np.full((self.count, values.shape[1]), np.nan)
        np.fmax.at(found, self.of, values)
        return found

    def chances(self, one: FloatArray, other: FloatArray, margin: float) -> tuple[FloatArray, FloatArray]:
        """float64[G] each: see `rule.chances`."""
        return chances(one, other, self.of, self.count, margin)

    def means_apart(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """float64[G]: the difference of the means of each group, as a share of the greater one."""
        known = ~np.isnan(one - other)
        sums = (np.bincount(self.of[known], v[known], self.count).astype(np.float64) for v in (one, other))
        return differences(*sums)


class _Load(NamedTuple):
    """float64[N, K] the load of the busiest member and the overload in it, bool[G, K] who relieves it."""

    load: FloatArray
    over: FloatArray
    relieves: BoolArray


def choose_each(
    grid: Grid,
    groups: IntArray,
    count: int,
    aims: Sequence[Aim],
    *,
    scored: BoolArray | None = None,
    keeps_owners: BoolArray | None = None,
    relief: bool = True,
    rate: float = FALSE_SWITCHES,
    margin: float = MARGIN,
) -> Choices:
    """Return the choice for each of ``count`` groups; ``groups`` int64[N] has the number of each unit's.

    A group switches to a candidate that is known to be better in one of the aims, and worse in none of them
    by more than the margin, or, with ``relief``, to one that takes a share of `RELIEF` of an overload away.
    Of all switches, at most a share of ``rate`` is expected to be due to chance. Of several such candidates,
    it is the one with the least overload, then the one with the best median in the first aim, and of those
    that are not worse in it by more than the margin, the best in the next one. Balance counts where the
    busiest member has more than `COMFORTABLE_LOAD`, if that is known. A unit counts if the present candidate
    has all figures of the aims in it and, where a group has such units, if all candidates are ``scored``
    (bool[N, K]) in it. A candidate without a figure in one of the units of a group is not chosen for it.
    ``keeps_owners`` bool[K]: the candidates whose assignments depend on the owners before; what such a one
    leaves of an overload may be more after other events.
    """
    units = _Groups(groups, count, grid.now)
    figures, counted = _figures(grid, units, aims)
    used = _used(figures, units, scored)
    decides = [_complete(each, units, used) for each in figures]
    load = _load_of(grid, units, used) if relief else None
    if load is not None:
        decides = [
            _where_it_matters(cost, load, units) if aim.metric == BALANCE.metric else cost
            for cost, aim in zip(decides, aims, strict=True)
        ]
    tests = _tested(decides, units, margin)
    is_relief = np.zeros_like(tests.needed, dtype=np.bool_)
    if load is not None:
        tests, is_relief = _relieved(tests, load, units)
    possible = discoveries(tests.chance, rate)
    ranks = [_by_median(cost, units, margin) for cost in decides]
    if load is not None:
        in_vain = _in_vain(grid, tests, aims, load, units, keeps_owners, rate)
        possible &= ~in_vain
        tests = tests._replace(needed=np.where(in_vain, 0, tests.needed))
        total, greatest = _by_load(load, units, margin)
        ranks = [total, *ranks, greatest]
    ranks += [_by_median(_complete(grid.values(aim.metric), units, used), units, margin) for aim in FRONT]
    chosen = _first(possible, ranks, grid.now)
    each = np.arange(count)
    rest = possible.copy()
    rest[each, chosen] = False
    least = np.where(np.isnan(tests.chance), np.inf, tests.chance)
    closest = (least == least.min(axis=1, keepdims=True)) & np.isfinite(least)
    kept = chosen == grid.now
    runner_up = np.where(kept, _first(closest, ranks, grid.now), _first(rest, ranks, grid.now))
    lowest = np.where(np.isfinite(least), least, np.nan)
    never = np.iinfo(np.int64).max
    needed = tests.needed.min(axis=1, initial=never, where=tests.needed > 0)
    overloaded = np.zeros(len(groups), dtype=np.bool_) if load is None else load.over[:, grid.now] > 0
    return Choices(
        chosen,
        runner_up,
        lowest[each, np.where(kept, runner_up, chosen)],
        units.counts(used),
        np.where(needed == never, 0, needed),
        np.array([discoveries(each_aim, rate) for each_aim in tests.better]),
        ~(tests.as_good <= rate),
        is_relief[each, chosen],
        units.counts(overloaded),
        counted,
        used,
    )


# --- figures


def _figures(grid: Grid, units: _Groups, aims: Sequence[Aim]) -> tuple[list[FloatArray], BoolArray]:
    """Return the costs of each aim, float64[N, K], and which groups have balance by partitions alone."""
    has_rates, has_counts = (
        units.counts(~np.isnan(grid.values(name)[:, grid.now])) > 0
        for name in (BALANCE.metric, COUNTED_BALANCE)
    )
    counted = has_counts & ~has_rates
    found = [figures_of(grid, aim.metric, counted[units.of]) for aim in aims]
    costs = [-v if aim.better == "higher" else v for v, aim in zip(found, aims, strict=True)]
    return costs, counted & any(aim.metric == BALANCE.metric for aim in aims)


def figures_of(grid: Grid, metric: str, counted: BoolArray) -> FloatArray:
    """float64[N, K]: the figures of a metric. In ``counted`` units (bool[N]) balance is by partitions."""
    values = grid.values(metric)
    if metric == BALANCE.metric:
        return np.where(counted[:, None], grid.values(COUNTED_BALANCE), values)
    return values


def _used(figures: Sequence[FloatArray], units: _Groups, scored: BoolArray | None) -> BoolArray:
    known: BoolArray = np.asarray(~np.isnan([each[:, units.now] for each in figures]).any(axis=0))
    if scored is None:
        return known
    by_all: BoolArray = np.asarray(known & scored.all(axis=1))
    has_such = units.counts(by_all) > 0
    return np.asarray(np.where(has_such[units.of], by_all, known))


def _complete(figures: FloatArray, units: _Groups, used: BoolArray) -> FloatArray:
    """Return the figures of the units that count; none in a group in which a candidate lacks one."""
    known = ~np.isnan(figures)
    pairs = (used & known[:, units.now])[:, None]
    gaps = units.totals(pairs & ~known)
    return np.where(pairs & (gaps == 0)[units.of], figures, np.nan)


def _by_candidate(values: FloatArray, call: Callable[[FloatArray], FloatArray]) -> FloatArray:
    return np.stack([call(column) for column in values.T], axis=1)


# --- tests


def _tested(costs: Sequence[FloatArray], units: _Groups, margin: float) -> _Tests:
    """Test for each group that a candidate is better in at least one aim, and not worse in the others."""
    shape = (units.count, costs[0].shape[1])
    chance, needed = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    better, as_good = np.full((2, len(costs), *shape), np.nan)
    for number in (n for n in range(shape[1]) if n != units.now):
        pairs = [(cost[:, number], cost[:, units.now]) for cost in costs]
        found, share, p_better, p_as_good = _dominance(pairs, units, margin)
        known = units.counts(~np.isnan(pairs[0][0] - pairs[0][1]))
        excess = np.maximum(2 * np.nan_to_num(share) - 1, 0.0)
        about = np.maximum(np.ceil(_SURE / np.maximum(excess, _WEAK_SIGN) ** 2), known + FEWEST_PAIRS)
        enough = known >= FEWEST_PAIRS
        needed[:, number] = np.where(enough & (excess >= _WEAK_SIGN), about, 0)
        chance[enough, number] = found[enough]
        better[:, enough, number], as_good[:, enough, number] = p_better[:, enough], p_as_good[:, enough]
    return _Tests(chance, needed, better, as_good)


def _dominance(
    pairs: Sequence[tuple[FloatArray, FloatArray]], units: _Groups, margin: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Test for each group that one candidate is better than another one in an aim, and as good in all.

    ``pairs`` has their figures for each of M aims. Better is by more than `rule.TIE`, worse by more than the
    margin. Being as good in all is tested aim by aim at the same level (an intersection-union test). The
    p-value of being better is that of the aim that shows it most, times the number of aims in which the pairs
    differ (Bonferroni). Where the means say otherwise, as with few great losses among many small gains, it is
    1.

    Returns the p-values (float64[G]), the share of the ranks that speak for it where they do least
    (float64[G]), and the p-values of being better and as good in each aim (float64[M, G]).
    """
    better, shares = zip(*(units.chances(*each, -TIE) for each in pairs), strict=True)
    as_good, good_shares = zip(*(units.chances(*each, margin) for each in pairs), strict=True)
    apart = np.array([units.means_apart(*each) for each in pairs])
    differing = sum(units.counts(np.abs(differences(*each)) > TIE) > 0 for each in pairs)
    p_better = np.where(apart < 0, better, 1.0)
    p_as_good = np.where(apart <= margin, as_good, 1.0)
    found = np.maximum(np.maximum(differing, 1) * p_better.min(axis=0), p_as_good.max(axis=0))
    share = np.minimum(np.max(shares, axis=0), np.min(good_shares, axis=0))
    return np.minimum(found, 1.0), share, p_better, p_as_good


# --- overload


def _load_of(grid: Grid, units: _Groups, used: BoolArray) -> _Load | None:
    """Return the loads of the busiest members, None if none is known.

    A candidate relieves that takes a share of `RELIEF` away, of all overload and of the worst.
    """
    load = _complete(grid.values(LOADED.metric), units, used)
    if np.isnan(load).all():
        return None
    over, left = np.maximum(load - 1.0, 0.0), 1 - RELIEF
    worst, total = np.nan_to_num(units.greatest(over)), units.totals(over)
    now = [units.now]
    return _Load(load, over, (worst < left * worst[:, now]) & (total < left * total[:, now]))


def _where_it_matters(balance: FloatArray, load: _Load, units: _Groups) -> FloatArray:
    """Return balance that is alike where all members are at ease, and in overload that is not relieved."""
    with np.errstate(divide="ignore"):
        eased = balance * np.nan_to_num(np.maximum(1.0, COMFORTABLE_LOAD / load.load), nan=1.0, posinf=1.0)
    is_over = units.totals(load.over)[:, [units.now]] > 0
    matters = (~is_over | load.relieves)[units.of]
    return np.where(matters, eased, np.where(np.isnan(balance), np.nan, eased[:, [units.now]]))


def _relieved(tests: _Tests, load: _Load, units: _Groups) -> tuple[_Tests, BoolArray]:
    """Return the tests where overload decides alone, and which p-values are those of a relief.

    A candidate that relieves is better, whatever it costs, if the overload is known to be less in the units
    that have some, or the load in all; one that dominates, if the overload is as good. The p-value is the
    least of the three, three times. Of few units with overload, none with more of it is better.
    """
    chance, is_relief = tests.chance.copy(), np.zeros_like(load.relieves)
    for number in (n for n in range(chance.shape[1]) if n != units.now):
        some = (load.over[:, [number, units.now]] > 0).any(axis=1)
        one, present = (np.where(some, load.over[:, n], np.nan) for n in (number, units.now))
        known = units.counts(~np.isnan(one - present))
        less, as_good = (units.chances(one, present, margin)[0] for margin in (-TIE, TIE))
        steadily, _ = units.chances(load.load[:, number], load.load[:, units.now], -TIE)
        relief = np.where(load.relieves[:, number], np.fmin(less, steadily), 1.0)
        own = chance[:, number]
        few = np.where(units.means_apart(one, present) > 0, 1.0, own)
        either = np.where(known >= FEWEST_PAIRS, np.maximum(own, as_good), few)
        is_tested = (known > 0) & ~np.isnan(own)
        is_relief[:, number] = is_tested & (relief <= either)
        chance[:, number] = np.where(is_tested, np.minimum(3 * np.fmin(relief, either), 1.0), own)
    return tests._replace(chance=chance), is_relief


def _in_vain(
    grid: Grid,
    tests: _Tests,
    aims: Sequence[Aim],
    load: _Load,
    units: _Groups,
    keeps_owners: BoolArray | None,
    rate: float,
) -> BoolArray:
    """bool[G, K]: switches that leave much of an overload and hardly save a member that it takes to end it.

    Where no number of members is enough, those that leave some in as many units. A switch that is better in
    another aim than balance is not in vain.
    """
    more = grid.values(MISSING)
    if np.isnan(more).all():
        return np.zeros_like(load.relieves)
    more = np.where(np.isnan(more) & (load.over > 0), np.inf, more)
    members = units.greatest(grid.values("members") + more)
    present = members[:, [units.now]]
    total, often = (units.totals(v) for v in (load.over, load.over > 0))
    little = np.where(False if keeps_owners is None else keeps_owners, 0.0, RELIEF)
    leaves = total > little * total[:, [units.now]]
    never = np.isinf(present) & np.isinf(members) & (often >= often[:, [units.now]])
    saves_none = (np.isfinite(present) & (members > (1 - RELIEF) * present)) | never
    others = [p <= rate for p, aim in zip(tests.better, aims, strict=True) if aim.metric != BALANCE.metric]
    return np.asarray(leaves & saves_none & ~np.any(others, axis=0))


# --- which of several

_Rank: TypeAlias = tuple[FloatArray, Callable[[BoolArray, IntArray], BoolArray]]
"""float64[G, K] costs, and what says which candidates are as good as the best one of each group."""


def _by_median(cost: FloatArray, units: _Groups, margin: float) -> _Rank:
    """Rank by the median. As good are means that are not worse by more than the margin."""

    def alike(possible: BoolArray, best: IntArray) -> BoolArray:
        found = np.zeros_like(possible)
        least = cost[np.arange(len(cost)), best[units.of]]
        for number in np.flatnonzero(possible.any(axis=0)).tolist():
            found[:, number] = units.means_apart(cost[:, number], least) <= margin
        return found

    return _by_candidate(cost, lambda column: medians(column, units.of, units.count)), alike


def _by_load(load: _Load, units: _Groups, margin: float) -> list[_Rank]:
    """Rank by all overload. In groups with overload, the greatest load decides then."""
    total = units.totals(load.over)
    greatest = np.where(total[:, [units.now]] > 0, np.nan_to_num(units.greatest(load.load)), 0.0)
    return [_by_value(total, margin), _by_value(greatest, margin)]


def _by_value(cost: FloatArray, margin: float) -> _Rank:
    def alike(_: BoolArray, best: IntArray) -> BoolArray:
        return np.asarray(differences(cost, cost[np.arange(len(cost)), best][:, None]) <= margin)

    return cost, alike


def _first(possible: BoolArray, ranks: Sequence[_Rank], now: int) -> IntArray:
    """int64[G]: the possible candidate that is best by the first rank that tells them apart, or the present.

    One that is as good as the best one stays possible for the next rank.
    """
    some = possible.any(axis=1)
    for cost, alike in ranks:
        known = np.where(possible & ~np.isnan(cost), cost, np.inf)
        best = possible & (
            (differences(known, known.min(axis=1, keepdims=True)) <= TIE)
            | alike(possible, known.argmin(axis=1))
        )
        possible = np.where(best.any(axis=1, keepdims=True), best, possible)
    return np.where(some, possible.argmax(axis=1), now)
