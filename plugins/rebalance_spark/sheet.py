"""All that is known of one group: each strategy beside today's, its busy scenarios, and how to switch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.scaling import AT_EASE, BESIDES
from rebalance_lab.verdicts.switching import steps_of_a_switch
from rebalance_lab.verdicts.tables import BEST, Cell, Table, as_text, percent
from rebalance_lab.verdicts.words import counted, listed_names
from rebalance_spark.actions import STAY, Action, least_of
from rebalance_spark.advising import LITTLE, SWITCH, Advice
from rebalance_spark.capacity import Capacity
from rebalance_spark.costs import OVERLOAD
from rebalance_spark.dominance import RELIEF
from rebalance_spark.findings import UTILIZATION, Findings, higher_is_better
from rebalance_spark.gains import Floats
from rebalance_spark.sentences import named
from rebalance_spark.stored import Figures2D, Scored
from rebalance_spark.sweeps import parted
from rebalance_spark.waits import Ends, Wait, as_time, keys_of_time

_SPREAD = 0.1
"""By how much more or less members may handle than was given."""

_MOST_SCENARIOS = 12
"""Busy scenarios that have a row."""

_MOST_SIZES = 32
"""Numbers of members that all have a row."""

MORE_PARTITIONS = (
    "More partitions put keys on other ones: the records of a key from before and after are not in order, and"
    " topics that are joined need as many."
)


class Sheet(NamedTuple):
    """The sentences of a sheet, what to do first, its tables, and the steps of a switch."""

    sentences: Sequence[str]
    tables: Sequence[Table]
    steps: Sequence[str]


def sheets_of(scored: Scored, findings: Findings, names: Sequence[str]) -> dict[str, Sheet]:
    """Return the sheets of subjects of the advice.

    Raises:
        InputError: if there is no subject of a name.
    """
    advice = findings.advice
    assert advice is not None
    subjects = advice.subjects
    metrics = list(dict.fromkeys([*advice.metrics, *findings.headlines]))
    if advice.capacity is not None:
        metrics.append(UTILIZATION)
    figures = {metric: scored.figures(metric) for metric in metrics}
    found = {}
    for name in names:
        if name not in subjects.names:
            raise InputError("--group", repr(name), one_of(name, subjects.names))
        number = subjects.names.index(name)
        rows = np.flatnonzero(subjects.numbers == number)
        own = {metric: grid[rows] for metric, grid in figures.items()}
        load = own.pop(UTILIZATION, None) if advice.capacity is not None else None
        tables = [_strategies(advice, number, own, load)]
        if load is not None and advice.capacity is not None:
            ids = [scored.scenarios[row] for row in rows]
            tables.append(_by_members(advice, advice.capacity, number))
            tables.append(_scenarios(advice, number, ids, load))
            tables.append(_partitions(advice.capacity.hottest(number, advice.today)))
        action = next((each for each in findings.actions if each.number == number), None)
        does = action.text if action else SWITCH if advice.is_switching[number] else STAY
        to, size = (action.strategy, action.members) if action else (int(advice.chosen[number]), 0)
        found[name] = Sheet(
            [
                f"{named(findings, number)}: {does}",
                *(action.more if action else ()),
                *_why(advice, number, action),
            ],
            [table for table in tables if table.rows],
            [*_steps(advice, number, to, size)],
        )
    return found


def _why(advice: Advice, number: int, action: Action | None) -> Iterator[str]:
    """Yield why the subject switches or stays, and in how many scenarios by themselves it would.

    Nothing is said that the line of the action says.
    """
    chosen = advice.strategies[int(advice.chosen[number])]
    better = advice.better_in[number]
    if action is not None and action.strategy != advice.chosen[number]:
        yield f"{advice.strategies[action.strategy]} ends the overload with more members only."
        return
    if action is not None and action.why:
        return
    if advice.is_undecided[number]:
        yield f"It stays with {chosen}: {advice.reasons[number]}."
        return
    if chosen == advice.baseline:
        over = advice.overloaded is not None and advice.overloaded[0][number]
        what = "be better in what decides and as good in the rest"
        if over:
            fewer = f"{percent(LITTLE)} fewer members to end it"
            what = f"take {percent(RELIEF)} or more of the overload away, and {fewer}"
        yield f"It stays with {chosen}: no other strategy is known to {what}."
        return
    if better == [OVERLOAD]:
        yield f"{chosen} is known to take {percent(RELIEF)} or more of the overload away, which decides."
    else:
        yield f"{chosen} is known to be better in {listed_names(better)}, and as good in the rest."
    of = "the scenarios with overload" if better == [OVERLOAD] else "its scenarios"
    yield f"{percent(advice.agree[number])} of {of} show it by themselves."


def _steps(advice: Advice, number: int, to: int, size: int) -> Iterator[str]:
    """Yield how to switch to a strategy, and how to know that it was right.

    ``size`` is the number of members that it takes besides, 0 if it takes those of today.
    """
    known = advice.capacity
    if known is not None and known.load[number] > known.partitions[number]:
        yield MORE_PARTITIONS
    if to == advice.today:
        return
    if known is not None and size:
        yield _first(advice, known, number, to, size)
    now, then = (parted(advice.strategies[n])[0] for n in (advice.today, to))
    joins = known is None or bool(known.alike[number])
    yield from steps_of_a_switch(now, then, default_registry(), joins=joins)
    if known is None or not known.busiest[number, advice.today] > 1:
        return
    most, members = known.busiest[number, to], ""
    if size:
        more = " more" * bool(np.isnan(known.members[number]))
        most, members = known.loads(number, to).get(size, 1.0), f" with {size}{more} members"
    lag = ", and the lag of no member grows in them" * bool(most <= 1)
    yield (
        f"It was right if{members}, in scenarios like those with overload, the busiest member has"
        f" {percent(most)} of what it can handle at most{lag}."
    )


def _first(advice: Advice, known: Capacity, number: int, to: int, size: int) -> str:
    """Return what comes first, the further members or the switch: that which leaves less load."""
    members, later = known.members[number], known.busiest[number, to]
    load = known.loads(number, advice.today).get(size, np.nan)
    if load > later:
        return (
            f"Switch before the further members start: with {size} members the busiest has {percent(load)}"
            f" under {advice.baseline}, and with {members:.0f} {percent(later)} under"
            f" {advice.strategies[to]}."
        )
    before = "" if np.isnan(load) else f"; with {size}, {percent(load)} under {advice.baseline}"
    return (
        "Start the further members before the switch: with those of today, the busiest has"
        f" {percent(later)} under {advice.strategies[to]}{before}."
    )


class _Row(NamedTuple):
    """A row of figures, float64[K]: of strategies. ``sign``: 1 if less is better, -1 if more is, else 0."""

    label: str
    values: Floats
    sign: int
    text: Callable[[float], str]


def _strategies(
    advice: Advice, number: int, figures: Mapping[str, Figures2D], load: Figures2D | None
) -> Table:
    """Return a row for each figure and a column for each strategy, today's first."""
    found = (
        list(_of_load(advice, load, advice.capacity, number)) if load is not None and advice.capacity else []
    )
    for metric, grid in figures.items():
        means = np.where(np.isnan(grid).any(axis=0), np.nan, grid.mean(axis=0))
        found.append(_Row(metric, means, -1 if higher_is_better(metric) else 1, as_text))
        if metric in advice.worse_in:
            label = f"  worse by more than {percent(advice.margin)} in"
            worse = advice.worse_in[metric][number].copy()
            worse[advice.today] = np.nan
            found.append(_Row(label, worse, 0, percent))
    order = _order(advice)
    table = []
    for row in found:
        costs = row.sign * row.values
        best = np.nanmin(costs) if row.sign and len(np.unique(costs[~np.isnan(costs)])) > 1 else np.nan
        cells = [Cell(row.text(float(row.values[n])), BEST if costs[n] == best else "") for n in order]
        table.append([Cell(row.label), *cells])
    heads = [advice.strategies[n] + " (today)" * (n == advice.today) for n in order]
    title = f"{advice.subjects.names[number]}, of {counted(int(advice.scenarios[number]), 'scenario')}"
    return Table(["", *heads], table, title=title)


def _order(advice: Advice) -> list[int]:
    return [advice.today, *(n for n in range(len(advice.strategies)) if n != advice.today)]


def _of_load(advice: Advice, load: Figures2D, known: Capacity, number: int) -> Iterator[_Row]:
    """Yield what members have of what they can handle, and how many of them it takes."""
    yield _Row("busiest member", known.busiest[number], 1, percent)
    yield _Row("  in the mean", known.mean[number], 1, percent)
    for label, more in (
        ("overloaded scenarios", 0.0),
        (f"  if members handle {percent(_SPREAD)} less", -_SPREAD),
        (f"  if they handle {percent(_SPREAD)} more", _SPREAD),
    ):
        over = np.where(np.isnan(load).any(axis=0), np.nan, (load > 1 + more).sum(axis=0))
        yield _Row(label, over, 1, as_text)
    now = known.members[number]
    for share, fewest in ((1.0, known.needed[number]), (AT_EASE, known.at_ease[number])):
        held = [known.holding(number, strategy, share) for strategy in range(len(fewest))]
        members = np.where(np.isnan(held), fewest, held)
        label = f"members for {percent(share)}" + f", now {now:.0f}" * (not np.isnan(now))
        yield _Row(label, members, 1, lambda value: "no number" if np.isinf(value) else as_text(value))
    if known.hot[number] > 0:
        cool = [known.without_hot(number, strategy) for strategy in range(len(advice.strategies))]
        yield _Row("busiest without hot partitions", np.array(cool), 1, percent)
    waits = [known.wait(number, strategy) for strategy in range(len(advice.strategies))]
    if any(waits):
        seconds = np.array([wait.seconds if wait else 0.0 for wait in waits])
        yield _Row("records wait up to", seconds, 1, as_time)
        ends = [_until(known, wait) if wait else "" for wait in waits]
        yield _Row("  until", np.arange(len(ends), dtype=np.float64), 0, lambda strategy: ends[int(strategy)])


def _until(known: Capacity, wait: Wait) -> str:
    """Return when no record waits any longer."""
    name = keys_of_time(known.scenarios[wait.until])
    return {
        Ends.TODAY: name,
        Ends.NEXT_DAY: f"{name}, next day",
        Ends.NEVER: "more every day",
        Ends.UNKNOWN: f"after {name}",
    }[wait.ends]


def _by_members(advice: Advice, known: Capacity, number: int) -> Table:
    """Return the load of the busiest member by the number of members, as far as it was computed.

    The last number is two more than what all strategies take that take a number. Of very many there are those
    near today's, and near those that each strategy takes.
    """
    order, now = _order(advice), known.members[number]
    loads = [known.loads(number, n) for n in order]
    endless = [n for n in order if not known.needed[number, n] < np.inf]
    least = [found[0] for n in endless if (found := least_of(known, number, n, n))]
    near = [n for n in (now, *known.needed[number], *known.at_ease[number], *least) if n < np.inf]
    sizes = [size for size in sorted(set().union(*loads)) if size <= max(near, default=0) + BESIDES]
    if len(sizes) > _MOST_SIZES:
        sizes = [size for size in sizes if any(-1 <= size - each <= BESIDES for each in near)]
    shown = [
        [Cell(f"{size}{' (today)' * bool(size == now)}"), *(_load(each.get(size)) for each in loads)]
        for size in sizes
    ]
    heads = [advice.strategies[n] for n in order]
    return Table(["members", *heads], shown, title="busiest member by the number of members")


def _load(load: float | None) -> Cell:
    return Cell("") if load is None else Cell(percent(load), "red" if load > 1 else "")


def _scenarios(advice: Advice, number: int, ids: Sequence[str], load: Figures2D) -> Table:
    """Return the scenarios with overload under today's strategy or the advised one, the busiest first."""
    order = _order(advice)
    greatest = np.fmax(load[:, advice.today], load[:, advice.chosen[number]])
    places = [place for place in np.argsort(-greatest, kind="stable").tolist() if greatest[place] > 1]
    shown = [
        [Cell(ids[place]), *map(_load, load[place, order].tolist())] for place in places[:_MOST_SCENARIOS]
    ]
    count = len(places)
    first = f", the first {_MOST_SCENARIOS} of {count}" * (count > _MOST_SCENARIOS)
    heads = [advice.strategies[n] for n in order]
    return Table(["scenario", *heads], shown, title=f"overloaded: the busiest member{first}")


def _partitions(hottest: Mapping[str, Sequence[float]]) -> Table:
    """Return the partitions that alone have more than a member can handle, among the busiest ones."""
    shown = [
        [Cell(name), Cell(percent(max(loads))), Cell(f"{sum(load > 1 for load in loads):,}")]
        for name, loads in hottest.items()
    ]
    return Table(["partition", "load", "scenarios"], shown, title="partitions that are too much for a member")
