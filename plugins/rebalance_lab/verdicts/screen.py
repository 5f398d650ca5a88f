"""The answer of a command: a verdict, a table, one why, one thing to try and one to know.

It is the same on a terminal, in a notebook and as JSON: findings and a grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from coordinator_core.registry.hookspecs import METRIC_GROUPS, MetricSpec
from rebalance_lab.verdicts.aims import (
    BALANCE,
    CARRYING,
    COLUMNS,
    GAINS,
    REQUESTS,
    STOPS,
    TWICE,
    further_aims,
)
from rebalance_lab.verdicts.as_seen import Seen
from rebalance_lab.verdicts.choice import Choice, Decision, choose
from rebalance_lab.verdicts.finding import Finding, found
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.load import Load
from rebalance_lab.verdicts.reasons import largest_of, metric_of
from rebalance_lab.verdicts.rule import Order
from rebalance_lab.verdicts.tables import Cell, Table, as_text, brief
from rebalance_lab.verdicts.verdict import Enough, changed, fault_of, reason_of, verdict
from rebalance_lab.verdicts.words import about, counted, listed_names

BETTER, WORSE = "✓", "✗"
_FEWEST_COLUMNS = 3


@dataclass(frozen=True)
class Screen:
    """The answer to a question about the candidates of a grid.

    ``aims`` are the columns of the table, ``rows`` the candidates in it, all without any. ``verdict``,
    ``why``, ``tries`` and ``know`` are findings; of the last three the terminal shows the first. ``seen``: a
    real group, held against the simulation of its strategy.
    """

    scenario: str
    grid: Grid
    choice: Choice
    verdict: Sequence[Finding]
    metrics: Sequence[MetricSpec]
    load: Load | None = None
    why: Sequence[Finding] = ()
    tries: Sequence[Finding] = ()
    know: Sequence[Finding] = ()
    errors: Sequence[str] = ()
    seen: Seen | None = None
    aims: Sequence[Aim] = ()
    rows: Sequence[int] = ()

    @property
    def faults(self) -> list[str]:
        """The faults of all candidates, each with the name of its candidate."""
        grid = self.grid
        return [f"{grid.label(i)}: {text}" for i, each in enumerate(grid.setups) for text in each.findings]


def screen_of(
    scenario: str,
    grid: Grid,
    metrics: Sequence[MetricSpec],
    *,
    choice: Choice | None = None,
    aims: Sequence[Aim] | None = None,
    rows: Sequence[int] = (),
    load: Load | None = None,
    enough: Enough | None = None,
    tries: Sequence[Finding] = (),
    know: Sequence[Finding] = (),
    errors: Sequence[str] = (),
    seen: Seen | None = None,
) -> Screen:
    """Return the answer of a comparison, or of another choice, with the aims and the rows of its table.

    ``enough``: members that were tried at a high load.
    """
    if choice is None:
        choice = decided(grid, seen)
    if not grid.setups:
        return Screen(scenario, grid, choice, [], metrics, errors=errors)
    return Screen(
        scenario,
        grid,
        choice,
        list(verdict(grid, choice, load, enough, seen)),
        metrics,
        load,
        list(why(grid, grid.now if grid.now in grid.working else choice.chosen)),
        tries,
        [*known(grid, load, seen, rows), *know],
        errors,
        seen,
        columns(grid, metrics, load) if aims is None else aims,
        rows,
    )


def decided(grid: Grid, seen: Seen | None) -> Choice:
    """Return what to choose, which is nothing if the model misses the real group."""
    if seen is not None and seen.missed:
        return Choice(Decision.NOT_REPRODUCED, grid.now)
    return choose(grid)


# --- why, try, know


def why(grid: Grid, candidate: int) -> Iterator[Finding]:
    """Yield the largest part of the stopped time of a candidate."""
    largest = largest_part(grid, candidate)
    if largest is not None:
        part, share = largest
        reason = grid.setups[candidate].parts.get(part, part)
        yield found("why", strategy=grid.label(candidate), part=part, share=share, reason=reason)


def largest_part(grid: Grid, candidate: int) -> tuple[str, float] | None:
    """Return the largest part or cause of the stopped time of all units, and its share."""

    def time_in(part: str) -> float:
        return float(np.nansum(grid.values(metric_of(part))[:, candidate]))

    return largest_of(time_in)


def tried(grid: Grid, before: int, after: int, change: str) -> Finding:
    """Return what a change that was run does to the stopped time, with its price."""
    facts: dict[str, Any] = {
        "change": change,
        "before": grid.value(STOPS, before),
        "after": grid.value(STOPS, after),
        "units": len(grid.units),
    }
    if not grid.setups[after].works:
        return Finding("fails", {**facts, "fault": fault_of(grid, after)})
    order = grid.order(STOPS, after, before)
    if order is Order.UNKNOWN:
        return Finding("may-help" if facts["after"] < facts["before"] else "not-known-to-help", facts)
    if order is not Order.BETTER:
        return Finding("does-not-help", facts)
    price = [a for a in (*GAINS, TWICE, REQUESTS) if a is not STOPS and grid.is_better(a, before, after)]
    changes = [changed(grid, aim, before, after) for aim in price]
    return Finding("helps-at-a-price" if price else "helps", {**facts, "price": changes})


def known(grid: Grid, load: Load | None, seen: Seen | None, rows: Sequence[int]) -> Iterator[Finding]:
    """Yield what to know of a backlog, of settings, and of the strategies in the rows of the table."""
    if seen is not None:
        yield found("seen", strategy=seen.strategy, figures=seen.texts())
    if load is not None and load.left:
        if load.gone_s is None:
            yield found("backlog-stays", now=grid.label(grid.now), left=load.left)
        else:
            yield found("backlog", now=grid.label(grid.now), left=load.left, gone_s=load.gone_s)
    foreign = [grid.label(i) for i in rows or range(len(grid.setups)) if not grid.setups[i].is_kafka]
    if foreign:
        yield found("not-kafka", strategies=foreign, them="it" if len(foreign) == 1 else "them")
    for name in grid.varied:
        if _has_no_effect(grid, name):
            yield found("no-effect", setting=name)


def _has_no_effect(grid: Grid, setting: str) -> bool:
    """Return whether a setting changes no figure of any strategy."""
    groups: dict[object, set[bytes]] = {}
    counts: dict[object, int] = {}
    for i, setup in enumerate(grid.setups):
        others = [(n, text) for n, (text, _) in setup.settings.items() if n != setting]
        key = setup.strategy, *others
        groups.setdefault(key, set()).add(grid.figures[:, i].tobytes())
        counts[key] = counts.get(key, 0) + 1
    return any(n > 1 for n in counts.values()) and all(len(own) == 1 for own in groups.values())


# --- text


def left_out(screen: Screen) -> list[str]:
    """Return why candidates are left out: each reason once, with their names and what to change."""
    grid, names, advice = screen.grid, dict[str, list[str]](), dict[str, str]()
    for i, setup in enumerate(grid.setups):
        for reason, fault in {reason_of(fault): fault for fault in setup.findings}.items():
            names.setdefault(reason, []).append(grid.label(i))
            advice.setdefault(reason, fault.partition("; ")[2])
    return ["; ".join(filter(None, [f"{listed_names(own)}: {r}", advice[r]])) for r, own in names.items()]


def title(screen: Screen) -> str:
    """Return the group, its load, and the load while one member is away."""
    load, grid = screen.load, screen.grid
    parts = [screen.scenario]
    if load is not None:
        of = [counted(load.members, "member"), counted(load.partitions, "partition")]
        parts.append(", ".join([*of, f"{as_text(float(f'{load.rate:.3g}'))} records/s"] if load.rate else of))
        if load.capacity and load.rate:
            away = f" ({100 * load.share_without_one:.0f} % with one away)" if load.members > 1 else ""
            parts.append(f"load {100 * load.share:.0f} %{away}")
    seeds = grid.units
    parts.append(counted(len(seeds), "seed") if len(seeds) != 1 else f"seed {seeds[0]}")
    return " · ".join(parts)


def head(screen: Screen) -> list[str]:
    """Return the title and the verdict: the first lines on a terminal, and in a notebook."""
    return [title(screen), *map(str, screen.verdict)]


def rest(screen: Screen) -> list[tuple[str, str]]:
    """Return why, what to try and what to know: the first of each, below the table."""
    named = (("Why", screen.why), ("Try", screen.tries), ("Know", screen.know))
    return [(name, str(findings[0])) for name, findings in named if findings]


def legend(screen: Screen) -> str:
    """Explain the marks, and what a member handles."""
    parts = []
    if screen.grid.is_decided and len(screen.grid.setups) > 1:
        parts.append(f"{BETTER} better, {WORSE} worse than now")
    load = screen.load
    if load is not None and load.batch_ms and load.capacity:
        batch = f"{load.batch_records} records in {about(load.batch_ms)}"
        parts.append(f"{batch} = {brief(load.fastest)}/s each")
    return " · ".join(parts)


def columns(grid: Grid, metrics: Sequence[MetricSpec], load: Load | None) -> list[Aim]:
    """Return the aims of the table: those that a candidate has a figure of, and that tell something.

    A figure in which none is known to differ tells nothing, unless few others are left.
    """
    rows = range(len(grid.setups))
    known = [
        aim
        for aim in (*COLUMNS, *further_aims(metrics))
        if not all(isnan(grid.median(aim.key, i)) for i in rows)
    ]
    is_high = load is not None and load.is_high
    if not is_high and not any((grid.harm(aim) > 0).any() for aim in CARRYING):
        known = [aim for aim in known if aim not in CARRYING]
    told = [aim for aim in known if aim is STOPS or aim not in COLUMNS or not _is_alike(grid, aim)]
    return told if len(told) >= _FEWEST_COLUMNS else [aim for aim in known if aim is not BALANCE]


def _is_alike(grid: Grid, aim: Aim) -> bool:
    """Return whether no candidate is known to differ from the present one, from enough units to know it."""
    rows = [i for i in grid.working if i != grid.now]
    if not rows:
        return aim is BALANCE  # it is not the strategy's, unless another one has a better one
    orders = {grid.order(aim, i, grid.now) for i in rows}
    return grid.is_decided and not orders & {Order.BETTER, Order.WORSE}


def table(screen: Screen, *, spread: bool = False) -> Table:
    """Return the table: a row for each candidate, the chosen one bold, with marks against the present one."""
    grid = screen.grid
    rows = []
    shown = screen.rows or range(len(grid.setups))
    for i in shown:
        setup = grid.setups[i]
        name = f"{grid.name(i)}{' (now)' if i == grid.now and len(grid.setups) > 1 else ''}"
        name += "" if setup.works else " fails"
        style = "bold" if i == screen.choice.chosen else "" if setup.works else "red"
        cells = [_cell(grid, aim, i, max(1, len(shown) - 1), spread=spread) for aim in screen.aims]
        rows.append([Cell(name, style), *cells])
    definitions = {metric.name: metric.doc for metric in screen.metrics}
    hints = ["", *(definitions.get(aim.metric, "") for aim in screen.aims)]
    return Table(["", *(aim.head for aim in screen.aims)], rows, 1, hints=hints)


def _cell(grid: Grid, aim: Aim, candidate: int, others: int, *, spread: bool) -> Cell:
    """Return a figure, marked if it is known to be better or worse than now, as one of so many others."""
    mark, style = " ", ""
    if candidate != grid.now and {candidate, grid.now} <= set(grid.working):
        if grid.is_surely_better(aim, candidate, grid.now, others):
            mark, style = BETTER, "green"
        elif grid.is_surely_better(aim, grid.now, candidate, others):
            mark, style = WORSE, "red"
    return Cell(f"{grid.shown(aim, candidate, spread=spread)}{mark}", style)


def all_tables(screen: Screen, *, spread: bool = True) -> list[Table]:
    """Return a table for each group of metrics: a row for each metric, a column for each candidate."""
    grid, tables = screen.grid, []
    for group, metrics in by_group(screen.metrics).items():
        rows = []
        for metric in metrics:
            aim = Aim(metric.name, better=metric.better)
            count = len(grid.setups)
            if is_shown(metric, [grid.median(metric.name, i) for i in range(count)]):
                cells = [_cell(grid, aim, i, max(1, count - 1), spread=spread) for i in range(count)]
                name = f"  {metric.name}" if metric.part_of else metric.name
                rows.append([Cell(name, hint=metric.doc), Cell(metric.unit, left=True), *cells])
        names = [grid.label(i) for i in range(len(grid.setups))]
        tables.append(Table(["", "", *names], rows, 2, title=group))
    return tables


def is_shown(metric: MetricSpec, medians: Sequence[float]) -> bool:
    """Return whether a table of all metrics has one: an optional one if known, a part if it is not 0."""
    known = [median for median in medians if not isnan(median)]
    return any(known) if metric.part_of else bool(known) or not metric.optional


def by_group(metrics: Sequence[MetricSpec]) -> dict[str, list[MetricSpec]]:
    """Return metrics by their groups: those that are known first, and those of plugins after them."""
    names = dict.fromkeys([*METRIC_GROUPS, *(metric.group for metric in metrics)])
    groups = {name or "others": [m for m in metrics if m.group == name] for name in names}
    return {name: own for name, own in groups.items() if own}


def definition(metric: MetricSpec) -> tuple[str, str]:
    """Return the name and the unit of a metric, and its definition."""
    name = f"{metric.name} [{metric.unit}]" if metric.unit else metric.name
    return name, metric.doc + " Higher is better." * (metric.better == "higher")
