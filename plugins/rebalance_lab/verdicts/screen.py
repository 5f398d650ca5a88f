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
    FRONT,
    GAINS,
    REQUESTS,
    STOPS,
    TWICE,
    further_aims,
)
from rebalance_lab.verdicts.as_seen import HELD, Seen
from rebalance_lab.verdicts.choice import Choice, Decision, choose
from rebalance_lab.verdicts.finding import Changed, Finding, found
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.load import Load
from rebalance_lab.verdicts.reasons import largest_of, metric_of
from rebalance_lab.verdicts.rule import Order, fewest_pairs
from rebalance_lab.verdicts.tables import Cell, Table, as_text, brief
from rebalance_lab.verdicts.words import about, counted, listed_names

BETTER, WORSE = "✓", "✗"
_MOST_GAINS = 2
_FEWEST_COLUMNS = 3


@dataclass(frozen=True)
class Enough:
    """So many members were tried, and left this headroom to the busiest one."""

    members: int
    headroom: float


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
    load: Load | None = None,
    enough: Enough | None = None,
    tries: Sequence[Finding] = (),
    know: Sequence[Finding] = (),
    errors: Sequence[str] = (),
    seen: Seen | None = None,
) -> Screen:
    """Return the answer of a comparison. ``enough``: members that were tried at a high load."""
    is_missed = seen is not None and bool(seen.missed)
    choice = Choice(Decision.NOT_REPRODUCED, grid.now) if is_missed else choose(grid)
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
        [*known(grid, load, seen), *know],
        errors,
        seen,
        columns(grid, metrics, load),
    )


# --- verdict


def verdict(
    grid: Grid, choice: Choice, load: Load | None, enough: Enough | None, seen: Seen | None
) -> Iterator[Finding]:
    """Yield the decision and its price; before it what to change about a load that is too high."""
    if seen is not None and seen.missed:
        yield found("not-reproduced", missed=[HELD[name] for name in seen.missed])
        return
    now = grid.label(grid.now)
    if load is not None and (load.is_high or load.hot):
        yield of_load(load, enough)
        if choice.decision is Decision.WORKS or not grid.working:
            yield from _of_choice(grid, choice, now)
        elif choice.decision.changes:
            yield found(
                "until-then-choose", choice=grid.label(choice.chosen), now=now, gains=_gains(grid, choice)
            )
        elif choice.decision is not Decision.ALONE:
            yield found("until-then", now=now)
        return
    yield from _of_choice(grid, choice, now)


def of_load(load: Load, enough: Enough | None = None) -> Finding:
    """Return what to change about a load that is too high."""
    if load.hot:
        names = [f"{name} ({as_text(rate)})" for name, rate in load.hot.items()]
        return found("hot-partitions", partitions=names, rate=max(load.hot.values()), fastest=load.fastest)
    facts = {"members": load.members, "headroom": 1 - load.share, "without_one": 1 - load.share_without_one}
    more = {} if enough is None else {"enough": enough.members, "enough_headroom": enough.headroom}
    if load.share_without_one < 1:
        return Finding("little-headroom" if more else "little-headroom-now", {**facts, **more})
    if enough is not None:
        return found("add-members", members=load.members, enough=enough.members, headroom=enough.headroom)
    return found(
        "too-few-members", members=load.members, one_away="" if load.share >= 1 else " while one is away"
    )


def _of_choice(grid: Grid, choice: Choice, now: str) -> Iterator[Finding]:
    decision = choice.decision
    if not grid.working:
        yield found("none-works", fault=_fault(grid, grid.now))
        return
    facts: dict[str, Any] = {
        "now": now,
        "units": len(grid.units),
        "needed": fewest_pairs(len(grid.setups) - 1),
    }
    if decision is Decision.ALONE:
        facts["stops"] = grid.value(STOPS, grid.now)
    if decision.changes:
        facts |= {"choice": grid.label(choice.chosen), "gains": _gains(grid, choice)}
    if decision is Decision.WORKS:
        facts["fault"] = _fault(grid, grid.now)
    if choice.others:
        facts["others"] = [grid.label(i) for i in choice.others]
    if decision is Decision.REFUSED:
        worse = [aim for aim in CARRYING if grid.is_better(aim, grid.now, choice.others[0])]
        facts["price"] = _changes(grid, worse, choice.others[0])
    yield Finding(decision.name.lower().replace("_", "-"), facts)
    if choice.price:
        kind = "price" if all(aim.metric == "messages" for aim in choice.price) else "price-stops-count"
        kind = kind if decision is Decision.STOPS else "price"
        yield found(kind, price=_changes(grid, choice.price, choice.chosen))
    if choice.alike:
        yield found("alike", others=[grid.label(i) for i in choice.alike])
    if decision in (Decision.KEEP, Decision.UNKNOWN):
        yield from _instead(grid)


def _instead(grid: Grid) -> Iterator[Finding]:
    """Yield what the strategies would do that are not chosen: those that stop alike, and the next one."""
    now, others = grid.now, [i for i in grid.working if i != grid.now]
    orders = {i: grid.order(STOPS, i, now) for i in others}
    for i in others:
        gains = [aim for aim in (TWICE, *FRONT[1:]) if grid.is_better(aim, i, now)]
        if orders[i] in (Order.ALIKE, Order.UNKNOWN) and gains:
            kind = "alike-but" if orders[i] is Order.ALIKE else "would-change"
            yield found(kind, other=grid.label(i), gains=_changes(grid, gains[:_MOST_GAINS], i))
            break
    worse = [i for i in others if orders[i] is Order.WORSE and grid.median(STOPS.key, now)]
    if worse:
        least = min(worse, key=lambda i: grid.median(STOPS.key, i))
        times = round(grid.ratio(STOPS, least, now), 1)
        yield found("longer", other=grid.label(least), times=times)


def _gains(grid: Grid, choice: Choice) -> list[Changed]:
    first = CARRYING if choice.decision is Decision.CARRIES else (STOPS,)
    ordered = sorted(choice.gains, key=lambda aim: aim not in first)
    return _changes(grid, ordered[:_MOST_GAINS], choice.chosen)


def _changes(grid: Grid, aims: Sequence[Aim], candidate: int) -> list[Changed]:
    """Return the figures of a candidate beside those of the present one."""
    return [changed(grid, aim, grid.now, candidate) for aim in aims]


def changed(grid: Grid, aim: Aim, before: int, after: int) -> Changed:
    """Return a figure of two candidates."""
    return Changed(aim.key, aim.words, grid.value(aim, before), grid.value(aim, after), aim.unit)


def _fault(grid: Grid, candidate: int) -> str:
    setup = grid.setups[candidate]
    return reason_of((*setup.findings, setup.error)[0])


def reason_of(fault: str) -> str:
    """Return what is wrong, without the members of whom it is said, and without what to change."""
    reason, is_of_members, _ = fault.split("; ")[0].partition("): ")
    return f"{reason})" if is_of_members else reason


def left_out(screen: Screen) -> list[str]:
    """Return why candidates are left out: each reason once, with their names and what to change."""
    grid, names, advice = screen.grid, dict[str, list[str]](), dict[str, str]()
    for i, setup in enumerate(grid.setups):
        for reason, fault in {reason_of(fault): fault for fault in setup.findings}.items():
            names.setdefault(reason, []).append(grid.label(i))
            advice.setdefault(reason, fault.partition("; ")[2])
    return ["; ".join(filter(None, [f"{listed_names(own)}: {r}", advice[r]])) for r, own in names.items()]


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
        return Finding("fails", {**facts, "fault": _fault(grid, after)})
    order = grid.order(STOPS, after, before)
    if order is not Order.BETTER:
        return Finding("may-help" if order is Order.UNKNOWN else "does-not-help", facts)
    price = [a for a in (*GAINS, TWICE, REQUESTS) if a is not STOPS and grid.is_better(a, before, after)]
    changes = [changed(grid, aim, before, after) for aim in price]
    return Finding("helps-at-a-price" if price else "helps", {**facts, "price": changes})


def known(
    grid: Grid, load: Load | None, seen: Seen | None, rows: Sequence[int] | None = None
) -> Iterator[Finding]:
    """Yield what to know of a backlog, of the strategies in the rows of a table, and of settings."""
    if seen is not None:
        yield found("seen", strategy=seen.strategy, figures=seen.texts())
    if load is not None and load.left:
        if load.gone_s is None:
            yield found("backlog-stays", now=grid.label(grid.now), left=load.left)
        else:
            yield found("backlog", now=grid.label(grid.now), left=load.left, gone_s=load.gone_s)
    shown = range(len(grid.setups)) if rows is None else rows
    foreign = [grid.label(i) for i in shown if not grid.setups[i].is_kafka]
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
            cells = [_cell(grid, aim, i, max(1, count - 1), spread=spread) for i in range(count)]
            if not metric.optional or any(cell.text.strip() != "-" for cell in cells):
                rows.append([Cell(metric.name, hint=metric.doc), Cell(metric.unit, left=True), *cells])
        names = [grid.label(i) for i in range(len(grid.setups))]
        tables.append(Table(["", "", *names], rows, 2, title=group))
    return tables


def by_group(metrics: Sequence[MetricSpec]) -> dict[str, list[MetricSpec]]:
    """Return metrics by their groups: those that are known first, and those of plugins after them."""
    names = dict.fromkeys([*METRIC_GROUPS, *(metric.group for metric in metrics)])
    groups = {name or "others": [m for m in metrics if m.group == name] for name in names}
    return {name: own for name, own in groups.items() if own}


def definition(metric: MetricSpec) -> tuple[str, str]:
    """Return the name and the unit of a metric, and its definition."""
    name = f"{metric.name} [{metric.unit}]" if metric.unit else metric.name
    return name, metric.doc + " Higher is better." * (metric.better == "higher")
