"""The choice for each of many groups: the present strategy, or one that is known to be better.

`choice` chooses for one group, from seeds. Here the units of a grid are scenarios of many groups, such as
their hours, and the chance of an error is shared by all groups (Benjamini and Hochberg 1995).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rebalance_lab.verdicts.aims import BALANCE, FRONT, LOADED
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
    now = grid.now
    figures, counted = _figures(grid, groups, count, aims)
    used = _used(figures, now, groups, count, scored)
    costs = [_complete(each, now, used, groups, count) for each in figures]
    load = _complete(grid.values(LOADED.metric), now, used, groups, count) if relief else None
    overload = None if load is None or np.isnan(load).all() else np.maximum(load - 1.0, 0.0)
    decides, relieves = list(costs), np.zeros((count, costs[0].shape[1]), dtype=np.bool_)
    if load is not None and overload is not None:
        relieves = _relieving(overload, now, groups, count)
        decides = [
            _where_it_matters(cost, load, overload, relieves, now, groups, count)
            if aim.metric == BALANCE.metric
            else cost
            for cost, aim in zip(costs, aims, strict=True)
        ]
    tests = _tested(decides, now, groups, count, margin)
    is_relief = np.zeros_like(relieves)
    if load is not None and overload is not None:
        tests, is_relief = _relieved(tests, load, overload, relieves, now, groups, count)
    possible = discoveries(tests.chance, rate)
    if overload is not None:
        in_vain = _in_vain(grid, tests, aims, overload, keeps_owners, groups, count, rate)
        possible &= ~in_vain
        tests = tests._replace(needed=np.where(in_vain, 0, tests.needed))
    ranks = [_by_median(cost, groups, count, margin) for cost in decides]
    if load is not None and overload is not None:
        total, greatest = _by_load(load, overload, now, groups, count, margin)
        ranks = [total, *ranks, greatest]
    ranks += [
        _by_median(_complete(grid.values(aim.metric), now, used, groups, count), groups, count, margin)
        for aim in FRONT
    ]
    chosen = _first(possible, ranks, now)
    each = np.arange(count)
    rest = possible.copy()
    rest[each, chosen] = False
    least = np.where(np.isnan(tests.chance), np.inf, tests.chance)
    closest = (least == least.min(axis=1, keepdims=True)) & np.isfinite(least)
    kept = chosen == now
    runner_up = np.where(kept, _first(closest, ranks, now), _first(rest, ranks, now))
    lowest = np.where(np.isfinite(least), least, np.nan)
    never = np.iinfo(np.int64).max
    needed = tests.needed.min(axis=1, initial=never, where=tests.needed > 0)
    return Choices(
        chosen,
        runner_up,
        lowest[each, np.where(kept, runner_up, chosen)],
        np.bincount(groups[used], minlength=count),
        np.where(needed == never, 0, needed),
        np.array([discoveries(each_aim, rate) for each_aim in tests.better]),
        ~(tests.as_good <= rate),
        is_relief[each, chosen],
        np.zeros(count, dtype=np.int64)
        if overload is None
        else np.bincount(groups[overload[:, now] > 0], minlength=count),
        counted,
        used,
    )


# --- figures


def _figures(
    grid: Grid, groups: IntArray, count: int, aims: Sequence[Aim]
) -> tuple[list[FloatArray], BoolArray]:
    """Return the costs of each aim, float64[N, K], and which groups have balance by partitions alone."""
    found, counted = [], np.zeros(count, dtype=np.bool_)
    for aim in aims:
        values = grid.values(aim.metric)
        if aim.metric == BALANCE.metric:
            by_count = grid.values(COUNTED_BALANCE)
            has_rates, has_counts = (
                np.bincount(groups, ~np.isnan(each[:, grid.now]), count) > 0 for each in (values, by_count)
            )
            counted = has_counts & ~has_rates
            values = np.where(counted[groups][:, None], by_count, values)
        found.append(-values if aim.better == "higher" else values)
    return found, counted


def _used(
    figures: Sequence[FloatArray], now: int, groups: IntArray, count: int, scored: BoolArray | None
) -> BoolArray:
    known: BoolArray = np.asarray(~np.isnan([each[:, now] for each in figures]).any(axis=0))
    if scored is None:
        return known
    by_all: BoolArray = np.asarray(known & scored.all(axis=1))
    has_such = np.bincount(groups[by_all], minlength=count) > 0
    return np.asarray(np.where(has_such[groups], by_all, known))


def _complete(figures: FloatArray, now: int, used: BoolArray, groups: IntArray, count: int) -> FloatArray:
    """Return the figures of the units that count; none in a group in which a candidate lacks one."""
    known = ~np.isnan(figures)
    pairs = (used & known[:, now])[:, None]
    gaps = _by_candidate(pairs & ~known, lambda gap: np.bincount(groups, gap, count))
    return np.where(pairs & (gaps == 0)[groups], figures, np.nan)


def _by_candidate(
    values: npt.NDArray[np.generic], call: Callable[[npt.NDArray[np.generic]], npt.NDArray[np.generic]]
) -> FloatArray:
    return np.stack([call(column) for column in values.T], axis=1).astype(np.float64)


def _totals(values: FloatArray, groups: IntArray, count: int) -> FloatArray:
    return _by_candidate(np.nan_to_num(values), lambda column: np.bincount(groups, column, count))


def _greatest(values: FloatArray, groups: IntArray, count: int) -> FloatArray:
    found = np.full((count, values.shape[1]), np.nan)
    np.fmax.at(found, groups, values)
    return found


# --- tests


def _tested(costs: Sequence[FloatArray], now: int, groups: IntArray, count: int, margin: float) -> _Tests:
    """Test for each group that a candidate is better in at least one aim, and not worse in the others."""
    shape = (count, costs[0].shape[1])
    chance, needed = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    better, as_good = np.full((2, len(costs), *shape), np.nan)
    for number in (n for n in range(shape[1]) if n != now):
        pairs = [(cost[:, number], cost[:, now]) for cost in costs]
        found, share, p_better, p_as_good = dominance(pairs, groups, count, margin)
        units = np.bincount(groups, ~np.isnan(pairs[0][0] - pairs[0][1]), count)
        excess = np.maximum(2 * np.nan_to_num(share) - 1, 0.0)
        about = np.maximum(np.ceil(_SURE / np.maximum(excess, _WEAK_SIGN) ** 2), units + FEWEST_PAIRS)
        enough = units >= FEWEST_PAIRS
        needed[:, number] = np.where(enough & (excess >= _WEAK_SIGN), about, 0)
        chance[enough, number] = found[enough]
        better[:, enough, number], as_good[:, enough, number] = p_better[:, enough], p_as_good[:, enough]
    return _Tests(chance, needed, better, as_good)


def dominance(
    pairs: Sequence[tuple[FloatArray, FloatArray]], groups: IntArray, count: int, margin: float = TIE
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
    better, shares = zip(*(chances(*each, groups, count, -TIE) for each in pairs), strict=True)
    as_good, good_shares = zip(*(chances(*each, groups, count, margin) for each in pairs), strict=True)
    apart = np.array([_means_apart(*each, groups, count) for each in pairs])
    differing = sum(np.bincount(groups, np.abs(differences(*each)) > TIE, count) > 0 for each in pairs)
    p_better = np.where(apart < 0, better, 1.0)
    p_as_good = np.where(apart <= margin, as_good, 1.0)
    found = np.maximum(np.maximum(differing, 1) * p_better.min(axis=0), p_as_good.max(axis=0))
    share = np.minimum(np.max(shares, axis=0), np.min(good_shares, axis=0))
    return np.minimum(found, 1.0), share, p_better, p_as_good


def _means_apart(one: FloatArray, other: FloatArray, groups: IntArray, count: int) -> FloatArray:
    """Return the difference of the means of each group, as a share of the greater one."""
    known = ~np.isnan(one - other)
    first, second = (np.bincount(groups[known], v[known], count).astype(np.float64) for v in (one, other))
    return differences(first, second)


# --- overload


def _relieving(overload: FloatArray, now: int, groups: IntArray, count: int) -> BoolArray:
    """bool[G, K]: which candidates take a share of `RELIEF` away, of all overload and of the worst."""
    left = 1 - RELIEF
    worst = np.nan_to_num(_greatest(overload, groups, count))
    total = _totals(overload, groups, count)
    return np.asarray((worst < left * worst[:, [now]]) & (total < left * total[:, [now]]))


def _where_it_matters(
    balance: FloatArray,
    load: FloatArray,
    overload: FloatArray,
    relieves: BoolArray,
    now: int,
    groups: IntArray,
    count: int,
) -> FloatArray:
    """Return balance that is alike where all members are at ease, and in overload that is not relieved."""
    with np.errstate(divide="ignore"):
        eased = balance * np.nan_to_num(np.maximum(1.0, COMFORTABLE_LOAD / load), nan=1.0, posinf=1.0)
    is_over = _totals(overload, groups, count)[:, [now]] > 0
    matters = (~is_over | relieves)[groups]
    return np.where(matters, eased, np.where(np.isnan(balance), np.nan, eased[:, [now]]))


def _relieved(
    tests: _Tests,
    load: FloatArray,
    overload: FloatArray,
    relieves: BoolArray,
    now: int,
    groups: IntArray,
    count: int,
) -> tuple[_Tests, BoolArray]:
    """Return the tests where overload decides alone, and which p-values are those of a relief.

    A candidate that relieves is better, whatever it costs, if the overload is known to be less in the units
    that have some, or the load in all; one that dominates, if the overload is as good. The p-value is the
    least of the three, three times. Of few units with overload, none with more of it is better.
    """
    chance, is_relief = tests.chance.copy(), np.zeros_like(relieves)
    for number in (n for n in range(chance.shape[1]) if n != now):
        some = (overload[:, [number, now]] > 0).any(axis=1)
        one, present = (np.where(some, overload[:, n], np.nan) for n in (number, now))
        units = np.bincount(groups, ~np.isnan(one - present), count)
        less, as_good = (chances(one, present, groups, count, margin)[0] for margin in (-TIE, TIE))
        steadily = chances(load[:, number], load[:, now], groups, count, -TIE)[0]
        relief = np.where(relieves[:, number], np.fmin(less, steadily), 1.0)
        own = chance[:, number]
        few = np.where(_means_apart(one, present, groups, count) > 0, 1.0, own)
        either = np.where(units >= FEWEST_PAIRS, np.maximum(own, as_good), few)
        is_tested = (units > 0) & ~np.isnan(own)
        is_relief[:, number] = is_tested & (relief <= either)
        chance[:, number] = np.where(is_tested, np.minimum(3 * np.fmin(relief, either), 1.0), own)
    return tests._replace(chance=chance), is_relief


def _in_vain(
    grid: Grid,
    tests: _Tests,
    aims: Sequence[Aim],
    overload: FloatArray,
    keeps_owners: BoolArray | None,
    groups: IntArray,
    count: int,
    rate: float,
) -> BoolArray:
    """bool[G, K]: switches that leave much of an overload and hardly save a member that it takes to end it.

    Where no number of members is enough, those that leave some in as many units. A switch that is better in
    another aim than balance is not in vain.
    """
    more = grid.values(MISSING)
    if np.isnan(more).all():
        return np.zeros((count, overload.shape[1]), dtype=np.bool_)
    more = np.where(np.isnan(more) & (overload > 0), np.inf, more)
    members = _greatest(grid.values("members") + more, groups, count)
    present = members[:, [grid.now]]
    total, often = (_totals(v, groups, count) for v in (overload, (overload > 0).astype(np.float64)))
    little = np.where(False if keeps_owners is None else keeps_owners, 0.0, RELIEF)
    leaves = total > little * total[:, [grid.now]]
    never = np.isinf(present) & np.isinf(members) & (often >= often[:, [grid.now]])
    saves_none = (np.isfinite(present) & (members > (1 - RELIEF) * present)) | never
    others = [p <= rate for p, aim in zip(tests.better, aims, strict=True) if aim.metric != BALANCE.metric]
    return np.asarray(leaves & saves_none & ~np.any(others, axis=0))


# --- which of several

_Rank: TypeAlias = tuple[FloatArray, Callable[[BoolArray, IntArray], BoolArray]]
"""float64[G, K] costs, and what says which candidates are as good as the best one of each group."""


def _by_median(cost: FloatArray, groups: IntArray, count: int, margin: float) -> _Rank:
    """Rank by the median. As good are means that are not worse by more than the margin."""

    def alike(possible: BoolArray, best: IntArray) -> BoolArray:
        found = np.zeros_like(possible)
        least = cost[np.arange(len(cost)), best[groups]]
        for number in np.flatnonzero(possible.any(axis=0)).tolist():
            found[:, number] = _means_apart(cost[:, number], least, groups, count) <= margin
        return found

    return _by_candidate(cost, lambda column: medians(column, groups, count)), alike  # type: ignore[arg-type]


def _by_load(
    load: FloatArray, overload: FloatArray, now: int, groups: IntArray, count: int, margin: float
) -> list[_Rank]:
    """Rank by all overload. In groups with overload, the greatest load decides then."""
    total = _totals(overload, groups, count)
    greatest = np.where(total[:, [now]] > 0, np.nan_to_num(_greatest(load, groups, count)), 0.0)
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
