"""The costs of strategies in the scenarios that count, and which of several strategies costs least."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_lab.verdicts.rule import TIE, differences, medians
from rebalance_lab.verdicts.scaling import AT_EASE
from rebalance_spark.dominance import means_apart, relieving
from rebalance_spark.gains import Floats, Numbers
from rebalance_spark.parts import Subjects
from rebalance_spark.stored import NO_ROW, Figures2D, Scored

Bools: TypeAlias = npt.NDArray[np.bool_]
BY_COUNT, BY_RATE = "imbalance", "weighted_imbalance"

OVERLOAD, NEAR_OVERLOAD, BY_HISTORY, LOAD = "overload", "near overload", "by history", "load"
"""By how much the busiest member has more than it can handle, as a share of that; whether it has with few
members more, too; whether its load depends on what happened to the group before; and that load."""


class Costs(NamedTuple):
    """The costs of all metrics in the scenarios that count (scenarios x strategies): less of them is better.

    ``rows`` are these scenarios. Where ``counted`` says so of a subject, the costs of `BY_RATE` are those of
    `BY_COUNT`. ``decides`` has those of the metrics that decide: members up to `AT_EASE` are balanced alike,
    and so are those with more than they can handle under strategies that do not relieve them. ``load`` is
    that of the busiest member, as a share of what it can handle, if that is known, and ``overload`` what of
    it is more; ``relieves`` says which strategies take a share of it away (subjects x strategies). ``near``
    is the greatest load with the members of today and few more (subjects x strategies), if it is known, and
    ``by_history`` says under which strategies it depends on what happened to the group before.
    """

    subjects: Subjects
    deciding: Sequence[str]
    today: int
    rows: Bools
    counted: Bools
    signs: Mapping[str, float]
    grids: Mapping[str, Figures2D]
    decides: Mapping[str, Figures2D]
    load: Figures2D | None = None
    overload: Figures2D | None = None
    relieves: Bools | None = None
    near: Figures2D | None = None
    by_history: Bools | None = None


def costs_of(
    scored: Scored,
    baseline: str,
    subjects: Subjects,
    figures: Mapping[str, Figures2D],
    deciding: Sequence[str],
    higher: Mapping[str, bool],
    counts: Figures2D | None,
    load: Figures2D | None,
    near: Figures2D | None = None,
    by_history: Bools | None = None,
) -> Costs:
    """Return the costs of scores. ``figures`` has the deciding metrics, and others whose change is shown.

    ``counts`` are the figures of `BY_COUNT`. They decide about subjects without rates if `BY_RATE` decides.
    ``load`` is that of the busiest member, as a share of what it can handle: a subject in which it is more
    than that switches for the sake of it alone. ``near`` is that with few more members. ``by_history`` is as
    in `Costs`.

    Of each subject the scenarios count in which today's strategy has the deciding figures, and only those
    that are scored under all strategies, if there are any. A strategy without figures in one of them is not
    advised.

    Raises:
        InputError: if the baseline has no scores.
    """
    today, size, numbers = place_of(baseline, scored), len(subjects.names), subjects.numbers
    figures = {metric: figures[metric] for metric in (*deciding, *figures)}
    counted = np.zeros(size, dtype=np.bool_)
    if counts is not None and BY_RATE in deciding:
        counted = _without_rates(subjects, figures[BY_RATE][:, today], counts[:, today])
        figures[BY_RATE] = np.where(counted[numbers][:, None], counts, figures[BY_RATE])
    known = ~np.isnan([figures[metric][:, today] for metric in deciding]).any(axis=0)
    scored_by_all = known & (scored.status != NO_ROW).all(axis=1)
    has_such = np.bincount(numbers[scored_by_all], minlength=size) > 0
    rows = np.where(has_such[numbers], scored_by_all, known)
    signs = {metric: -1.0 if higher[metric] else 1.0 for metric in figures}
    grids = {m: _complete(signs[m] * grid, today, rows, subjects) for m, grid in figures.items()}
    decides = {metric: grids[metric] for metric in deciding}
    if load is None:
        return Costs(subjects, deciding, today, rows, counted, signs, grids, decides)
    load = _complete(load, today, rows, subjects)
    overload = np.maximum(load - 1.0, 0.0)
    relieves = relieving(overload, today, numbers, size)
    if BY_RATE in decides:
        balance = decides[BY_RATE]
        with np.errstate(divide="ignore"):
            eased = balance * np.nan_to_num(np.maximum(1.0, AT_EASE / load), nan=1.0, posinf=1.0)
        is_over = totals(overload, subjects)[:, [today]] > 0
        matters = (~is_over | relieves)[numbers]
        same = np.where(np.isnan(balance), np.nan, eased[:, [today]])
        decides[BY_RATE] = np.where(matters, eased, same)
    return Costs(
        subjects,
        deciding,
        today,
        rows,
        counted,
        signs,
        grids,
        decides,
        load,
        overload,
        relieves,
        near,
        by_history,
    )


def middles_of(costs: Costs) -> dict[str, Figures2D]:
    """Return what the strategies of each subject are compared by, in this order.

    That is the overload of all its scenarios if it is known, whether there is some with few members more, the
    medians of the metrics that decide, whether the load depends on history and what the greatest is if there
    is overload today, and the medians of the others.
    """
    size, numbers = len(costs.subjects.names), costs.subjects.numbers

    def middles(grids: Mapping[str, Figures2D]) -> dict[str, Figures2D]:
        return {m: by_strategy(grid, lambda cost: medians(cost, numbers, size)) for m, grid in grids.items()}

    loads = _loads_of(costs)
    first = {metric: loads[metric] for metric in (OVERLOAD, NEAR_OVERLOAD) if metric in loads}
    rest = {m: grid for m, grid in costs.grids.items() if m not in costs.decides}
    return {**first, **middles(costs.decides), **loads, **middles(rest)}


def _loads_of(costs: Costs) -> dict[str, Figures2D]:
    """Return what is known of the load of each subject (subjects x strategies), by its names.

    The load is the greatest one, with few more members as well if that is known, and the near overload is 1
    where that load is too much. All but the overload are 0 of subjects without overload today.
    """
    if costs.overload is None or costs.load is None:
        return {}
    overload = totals(costs.overload, costs.subjects)
    greatest = np.zeros(overload.shape)
    np.fmax.at(greatest, costs.subjects.numbers, costs.load)
    if costs.near is not None:
        greatest = np.fmax(greatest, costs.near)
    is_over = overload[:, [costs.today]] > 0
    load, near = np.where(is_over, greatest, 0.0), (greatest > 1) & is_over
    found = {OVERLOAD: overload, NEAR_OVERLOAD: near.astype(np.float64)}
    if costs.by_history is not None:
        found[BY_HISTORY] = (is_over & costs.by_history).astype(np.float64)
    return {**found, LOAD: load}


def totals(overload: Figures2D, subjects: Subjects) -> Figures2D:
    """Return the overload of all scenarios of each subject (subjects x strategies)."""
    size = len(subjects.names)
    return by_strategy(overload, lambda cost: np.bincount(subjects.numbers, np.nan_to_num(cost), size))


def alike_in(costs: Costs, margin: float) -> Callable[[str, Numbers, Bools], Bools]:
    """Return a function that says which strategies of each subject are as good as the best one in a metric.

    They are if they are not worse by more than the margin in a metric that decides, in overload, or in load.
    """
    size, numbers = len(costs.subjects.names), costs.subjects.numbers
    loads = _loads_of(costs)

    def alike(metric: str, best: Numbers, possible: Bools) -> Bools:
        found = np.zeros_like(possible)
        if metric in loads:
            least = loads[metric][np.arange(size), best][:, None]
            return np.asarray(differences(loads[metric], least) <= margin)
        if metric not in costs.decides:
            return found
        cost = costs.decides[metric]
        least = cost[np.arange(len(cost)), best[numbers]]
        several = possible & (possible.sum(axis=1, keepdims=True) > 1)
        for number in np.flatnonzero(several.any(axis=0)).tolist():
            found[:, number] = means_apart(cost[:, number], least, numbers, size) <= margin
        return found

    return alike


def agreement(costs: Costs, chosen: Numbers, is_relief: Bools, margin: float) -> Floats:
    """Return the share of the scenarios of each subject that give what is chosen for it by themselves.

    The strategy that is chosen is better in them, or none is where that of today is. Of a relief those count
    in which there is overload.
    """
    today, size, numbers = costs.today, len(chosen), costs.subjects.numbers
    better = _are_better([differences(cost, cost[:, [today]]) for cost in costs.decides.values()], margin)
    counted = costs.rows
    if costs.overload is not None:
        now = costs.overload[:, [today]]
        relief = differences(costs.overload, now)
        better = np.where(now > 0, (relief < -TIE) | (better & (relief <= TIE)), better)
        counted = counted & ((now[:, 0] > 0) | ~is_relief[numbers])
    own = better[np.arange(len(better)), chosen[numbers]]
    agrees = np.where(chosen[numbers] == today, ~better.any(axis=1), own)
    counts = np.bincount(numbers, counted, size)
    return np.asarray(np.bincount(numbers, counted & agrees, size) / np.maximum(counts, 1))


def cheapest(
    possible: npt.NDArray[np.bool_],
    costs: Mapping[str, Figures2D],
    today: int,
    alike: Callable[[str, Numbers, Bools], Bools] | None = None,
) -> npt.NDArray[np.int64]:
    """Return the strategy of each row: today's, or of the better ones (rows x strategies) that of least cost.

    Costs count metric by metric. ``alike`` says which ones are as good as that of the least cost in one.
    """
    switching = np.any(possible, axis=1)
    for metric, cost in costs.items():
        known = np.where(possible & ~np.isnan(cost), cost, np.inf)
        least = known.min(axis=1, keepdims=True)
        best = possible & (differences(cost, least) <= TIE)
        if alike is not None:
            best |= possible & alike(metric, known.argmin(axis=1), possible)
        possible = np.where(best.any(axis=1, keepdims=True), best, possible)
    return np.where(switching, possible.argmax(axis=1), today)


def _are_better(differences: npt.ArrayLike, margin: float) -> npt.NDArray[np.bool_]:
    """Return whether scenarios alone are better in one of the metrics and not worse in all."""
    found = np.asarray(differences)
    return np.asarray((found < -TIE).any(axis=0) & (found <= margin).all(axis=0))


def place_of(baseline: str, scored: Scored) -> int:
    """Return the place of today's strategy among those that have scores.

    Raises:
        InputError: if it has none.
    """
    if baseline not in scored.strategies:
        raise InputError("--baseline", repr(baseline), one_of(baseline, scored.strategies))
    return scored.strategies.index(baseline)


def _complete(figures: Figures2D, today: int, rows: npt.NDArray[np.bool_], subjects: Subjects) -> Figures2D:
    """Return the figures of the rows in which today's strategy has one.

    A strategy that lacks one of them has none for the whole subject.
    """
    known = ~np.isnan(figures)
    pairs = (rows & known[:, today])[:, None]
    gaps = by_strategy(pairs & ~known, lambda gap: np.bincount(subjects.numbers, gap, len(subjects.names)))
    return np.where(pairs & (gaps == 0)[subjects.numbers], figures, np.nan)


def by_strategy(grid: npt.NDArray[Any], call: Callable[[Any], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return what a function makes of the column of each strategy."""
    return np.stack([call(column) for column in grid.T], axis=1)


def _without_rates(
    subjects: Subjects, by_rate: npt.NDArray[np.float64], by_count: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return whether each subject has figures by partitions and none by rates."""
    size = len(subjects.names)
    weighed = np.bincount(subjects.numbers, ~np.isnan(by_rate), size)
    counted = np.bincount(subjects.numbers, ~np.isnan(by_count), size)
    return np.asarray((counted > 0) & (weighed == 0))
