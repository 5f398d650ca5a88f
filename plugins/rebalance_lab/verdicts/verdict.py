"""The verdict in findings: the load first, then what is chosen, its price, and what the others would do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.verdicts.aims import CARRYING, FRONT, STOPS, TWICE
from rebalance_lab.verdicts.as_seen import HELD, Seen
from rebalance_lab.verdicts.choice import Choice, Decision
from rebalance_lab.verdicts.finding import Changed, Finding, found
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.load import Load
from rebalance_lab.verdicts.rule import Order
from rebalance_lab.verdicts.tables import as_text

_MOST_GAINS = 2


@dataclass(frozen=True)
class Enough:
    """So many members were tried, and left this headroom to the busiest one."""

    members: int
    headroom: float


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
    if load.share_without_one <= 1:
        return Finding("little-headroom" if more else "little-headroom-now", {**facts, **more})
    if enough is not None:
        return found("add-members", members=load.members, enough=enough.members, headroom=enough.headroom)
    return found(
        "too-few-members", members=load.members, one_away="" if load.share > 1 else " while one is away"
    )


def _of_choice(grid: Grid, choice: Choice, now: str) -> Iterator[Finding]:
    decision = choice.decision
    if not grid.working:
        yield found("none-works", fault=fault_of(grid, grid.now))
        return
    facts: dict[str, Any] = {"now": now, "units": len(grid.units)}
    if decision is Decision.TOO_FEW:
        facts["needed"] = choice.needed
    if decision is Decision.ALONE:
        facts["stops"] = grid.value(STOPS, grid.now)
    if decision.changes:
        facts |= {"choice": grid.label(choice.chosen), "gains": _gains(grid, choice)}
    if decision is Decision.WORKS:
        facts["fault"] = fault_of(grid, grid.now)
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


def fault_of(grid: Grid, candidate: int) -> str:
    setup = grid.setups[candidate]
    return reason_of((*setup.findings, setup.error)[0])


def reason_of(fault: str) -> str:
    """Return what is wrong, without the members of whom it is said, and without what to change."""
    reason, is_of_members, _ = fault.split("; ")[0].partition("): ")
    return f"{reason})" if is_of_members else reason
