"""What to do about each group: a switch, members, partitions; what follows, and why a busy one stays."""

from collections.abc import Sequence
from math import ceil, inf, isinf, isnan, nan
from typing import NamedTuple

import numpy as np

from rebalance_lab.verdicts.rule import FEWEST_PAIRS
from rebalance_lab.verdicts.scaling import AT_EASE, BESIDES
from rebalance_lab.verdicts.switching import keeps_together
from rebalance_lab.verdicts.tables import as_text, percent, with_sign
from rebalance_lab.verdicts.words import counted, listed_names
from rebalance_spark.advising import LITTLE, Advice
from rebalance_spark.capacity import Capacity
from rebalance_spark.dominance import RELIEF
from rebalance_spark.gains import Floats, Numbers
from rebalance_spark.waits import Ends, as_time

_HARDLY = 1.05
"""A load is hardly more than another one up to so many times that."""

_MOST_HOT = 3
"""Partitions that are too much for a member, and are named."""

_UNSURE = 0.5
"""A decision is unsure if so few of its scenarios give the same by themselves."""


AFTER_THESE = " after these events"
"""What is said of a load that depends on what happened to the group before."""

STAY = "stay"
"""What to do if there is nothing to do."""


class Action(NamedTuple):
    """What to do about the subject of a number.

    ``do`` is what, ``then`` what follows, with what is now, ``why`` says why it is not another strategy, or
    how sure it is, and ``besides`` under which condition. ``first`` is what is to be looked at before all,
    and ``more`` are sentences about what it takes. ``relief``: whether it takes more than a strategy.
    ``strategy``: the number of the one that it takes, and ``members`` how many with it, 0 if as many as now.
    """

    number: int
    relief: bool
    do: str
    then: str
    why: str
    besides: str
    first: str
    more: Sequence[str]
    strategy: int
    members: int

    @property
    def text(self) -> str:
        """The action in one line."""
        told = "; ".join(filter(None, (self.do, self.then, self.why, self.besides)))
        return f"{self.first} {told}" if self.first else told


def actions(advice: Advice) -> list[Action]:
    """Return the action of each subject that switches, or of which a member is busy; the most urgent first.

    There is none for subjects of which it is not known what members can handle.
    """
    if advice.subjects.are_scenarios or advice.capacity is None or advice.overloaded is None:
        return []
    busy = advice.capacity.busiest[:, advice.today]
    shown = np.flatnonzero((busy > AT_EASE) | (advice.is_switching & ~np.isnan(busy)))
    found = [_action(advice, advice.capacity, advice.overloaded, number) for number in shown.tolist()]
    return sorted(found, key=lambda each: (each.do == STAY, -busy[each.number]))


def _action(advice: Advice, known: Capacity, overloaded: Numbers, number: int) -> Action:
    chosen, today = int(advice.chosen[number]), advice.today
    before, after = overloaded[:, number].tolist()
    needed = known.needed[number]
    with_it = _fewest(advice, needed, number) if after and isinf(needed[chosen]) else chosen
    to = chosen if isinf(needed[with_it]) else with_it
    switch = f"switch to {advice.strategies[to]}" if to != today else ""
    enough, members = needed[today], known.members[number]
    either = bool(switch) and members < enough < inf and not (after and needed[to] < enough)
    if either:
        load = known.loads(number, today).get(int(enough))
        leaves = "" if load is None else f" ({percent(load)})"
        switch = f"{switch}, or {enough:.0f} members in place of {members:.0f}{leaves}"
    relief = _relief(advice, known, number, to) if after and not either else ""
    doubt = _doubt(advice, number) if switch and not before else ""
    size = int(needed[to]) if relief and needed[to] < np.inf else 0
    return Action(
        number,
        bool(after),
        (" with " if to != chosen else ", and ").join(filter(None, (switch, relief))) or STAY,
        _then(advice, known, number, to, size, before, after),
        doubt or ("" if switch else _reason(advice, known, number, before)),
        _joins(advice, known, number, to),
        _first(advice, known, number, before),
        _more(known, number, to) if relief else (),
        to,
        size,
    )


def _then(advice: Advice, known: Capacity, number: int, to: int, size: int, before: int, after: int) -> str:
    """Return the load of the busiest member, and how often it has too much, now and with what is done.

    ``size`` is the number of members that are enough under the strategy ``to``, 0 without. Where a switch
    alone is enough, those numbers of members near today's follow with which it would be too much.
    """
    chosen, today = int(advice.chosen[number]), advice.today
    now, load = known.busiest[number, today], known.busiest[number, chosen]
    if size:
        load, after = known.loads(number, to).get(size, nan), 0
    changes = f", now {percent(now)}" * (bool(size) or chosen != today)
    near = "" if after or size else _near(known, number, chosen)
    after_these = AFTER_THESE * bool(to != today and known.by_history[to])
    busiest = (
        f"busiest member at {'most 100 %' if isnan(load) else percent(load)}{after_these}{near}{changes}"
    )
    if not before and not after:
        return busiest
    of = f"of {counted(int(advice.scenarios[number]), 'scenario')}"
    often = f"{after} {of}, now {before}" if changes else f"{before} {of}"
    wait = known.wait(number, today)
    if wait is None:
        return f"{busiest}, overloaded in {often}"
    grows = ", more every day" * (wait.ends is Ends.NEVER)
    waits = f"records wait up to {as_time(wait.seconds)}{' today' * bool(changes)}{grows}"
    return f"{busiest}, overloaded in {often} ({waits})"


def _first(advice: Advice, known: Capacity, number: int, before: int) -> str:
    """Return what to look at first where a member has too much in all scenarios, and more every day.

    If the lag does not grow all day, members handle more than was given.
    """
    wait = known.wait(number, advice.today)
    if wait is None or wait.ends is not Ends.NEVER or before < advice.scenarios[number]:
        return ""
    return "if its lag grows all day,"


def _joins(advice: Advice, known: Capacity, number: int, to: int) -> str:
    """Return the condition of a switch from an assignor that keeps partitions of one number together."""
    alike = known.alike[number]
    if not alike or not keeps_together(advice.baseline) or to == advice.today:
        return ""
    return f"unless members join {listed_names(alike, len(alike))}, which have as many partitions"


def _near(known: Capacity, number: int, strategy: int) -> str:
    """Return the loads that are too much with one member less than now, or with up to two more."""
    now, loads = known.members[number], known.loads(number, strategy)
    near = {n: load for n, load in loads.items() if now - 1 <= n <= now + BESIDES and round(load, 2) > 1}
    listed = listed_names([f"{percent(load)} with {n}" for n, load in near.items()])
    return f" ({listed})" if near else ""


def least_of(known: Capacity, number: int, strategy: int, beside: int) -> tuple[int, float] | None:
    """Return the fewest further members with which the busiest has hardly more than with any number.

    Its load then follows. None is returned where less than half of what is too much with today's members
    under the strategy ``beside`` goes, or if it is not known.
    """
    now, loads = known.members[number], known.loads(number, strategy)
    more = {n: load for n, load in loads.items() if n > now}
    least = min(more.values(), default=np.inf)
    found = next(((n, load) for n, load in more.items() if load <= _HARDLY * least), None)
    excess = known.busiest[number, beside] - 1
    return found if found is not None and found[1] - 1 <= excess / 2 else None


def _relief(advice: Advice, known: Capacity, number: int, to: int) -> str:
    """Return what relieves a subject that has too much under what is chosen, beside the strategy ``to``."""
    needed, members = known.needed[number], known.members[number]
    if isinf(needed[to]) or isnan(needed[to]):
        return _beyond(advice, known, number, to)
    fewest, beside = _fewest(advice, needed, number), []
    if needed[fewest] < needed[to]:
        beside.append(f"{needed[fewest]:.0f} {_under(advice, known, fewest)}")
    if advice.today not in (fewest, to):
        beside.append(_without(advice, known, number))
    if members < known.at_ease[number, to] < inf:
        beside.append(f"{known.at_ease[number, to]:.0f} for {percent(AT_EASE)}")
    also = f" ({', '.join(beside)})" if beside else ""
    now = " more members" if isnan(members) else f" members in place of {members:.0f}"
    return f"{needed[to]:.0f}{now}{also}"


def _fewest(advice: Advice, costs: Floats, number: int) -> int:
    """Return the strategy with the least cost; of several, one whose loads do not depend on history, and then
    the one that is best in the first metric.
    """
    fewest = costs == np.nanmin(costs)
    changes = np.nan_to_num(advice.mean_changes[advice.metrics[0]][number])
    assert advice.capacity is not None
    return int(np.lexsort((changes, advice.capacity.by_history, ~fewest))[0])


def _without(advice: Advice, known: Capacity, number: int) -> str:
    """Return what today's strategy takes."""
    needed, least = known.needed[number, advice.today], least_of(known, number, advice.today, advice.today)
    if not isinf(needed):
        return f"{needed:.0f} under {advice.baseline}"
    best = f": {percent(least[1])} with {least[0]}" if least else ""
    return f"no number is enough under {advice.baseline}{best}"


def _meanwhile(advice: Advice, known: Capacity, number: int, to: int) -> str:
    """Return how many members leave least of an overload, under ``to`` or the strategy that leaves least."""
    found = {n: least_of(known, number, n, to) for n in range(len(advice.strategies))}
    loads = {n: least[1] for n, least in found.items() if least is not None}
    if not loads:
        return ""
    best = _fewest(advice, np.array([loads.get(n, inf) for n in found]), number)
    best = to if loads.get(to, inf) <= _HARDLY * loads[best] else best
    size, load = found[best] or (0, nan)
    return f"; until then {size} members {_under(advice, known, best)} leave {percent(load)}"


def _under(advice: Advice, known: Capacity, strategy: int) -> str:
    """Return the words for a strategy that another number of members would have."""
    return f"under {advice.strategies[strategy]}{AFTER_THESE * bool(known.by_history[strategy])}"


def _beyond(advice: Advice, known: Capacity, number: int, to: int) -> str:
    """Return what it takes where no number of members is enough, or that it is not known."""
    until = _meanwhile(advice, known, number, to)
    faster = f"members that handle {percent(known.busiest[number, to] - 1)} more"
    load, partitions = known.load[number], known.partitions[number]
    hottest = {name: percent(max(loads)) for name, loads in known.hottest(number, to).items()}
    if load > partitions:
        alone = [f" ({name} alone has {most})" for name, most in hottest.items()][:1]
        now = f"now {partitions:.0f} and {known.members[number]:.0f}{''.join(alone)}"
        fewest = f"at least {ceil(load):,} partitions, more where keys are uneven, and as many members"
        return f"{fewest}, {now}, or {faster}{until}"
    if known.hot[number] > 0:
        which = listed_names([f"{name} ({most})" for name, most in hottest.items()], _MOST_HOT)
        return f"other keys{f' for {which}' * bool(which)}, or {faster}{until}"
    return "more members, or members that handle more"


def _more(known: Capacity, number: int, to: int) -> list[str]:
    """Return what else there is to know of the members and partitions that it takes."""
    load, partitions, members = (each[number] for each in (known.load, known.partitions, known.members))
    found = []
    if not isnan(load):
        now = "" if isnan(members) else f", now {members:.0f}"
        found.append(f"All partitions together have the load of {as_text(float(load))} members{now}.")
    if load > partitions:
        found.append(f"For {percent(AT_EASE)}, it takes {ceil(load / AT_EASE):,} partitions.")
    alone = max(map(max, known.loads_of_partitions(number, to).values()), default=0.0)
    if isinf(known.at_ease[number, to]) and known.needed[number, to] < inf and alone > AT_EASE:
        found.append(
            f"No number of members is enough for {percent(AT_EASE)}: a partition alone has {percent(alone)}."
        )
    return found


def _doubt(advice: Advice, number: int) -> str:
    share = advice.agree[number]
    if not share < _UNSURE:
        return ""
    return f"only {percent(share)} of its scenarios give the same by themselves"


def _reason(advice: Advice, known: Capacity, number: int, before: int) -> str:
    """Return why a busy subject does not switch to the strategy that would relieve it most."""
    today, loads = advice.today, known.busiest[number]
    if loads[today] <= AT_EASE:
        return ""
    best = _fewest(advice, loads, number) if before else _nearest(advice, loads, number)
    if not loads[best] < (1 - advice.margin) * loads[today]:
        return "" if before else "with no strategy that was scored it would be less"
    found = f"with {advice.strategies[best]} it would be {percent(loads[best])}"
    if before:
        if loads[best] - 1 > (1 - RELIEF) * (loads[today] - 1):
            return f"{found}, which takes less than {percent(RELIEF)} of what is too much away"
        now, then = known.needed[number, [today, best]]
        if (1 - LITTLE) * now < then < np.inf:
            under = " under both" if now == then else f" under it, {now:.0f} under {advice.baseline}"
            return f"{found}, but ending the overload takes {then:.0f} members{under}"
        rows = known.rows[number]
        if isinf(now) and isinf(then) and (known.each[rows, best] > 1).sum() >= before:
            return f"{found}, with overload in as many scenarios"
        if before < FEWEST_PAIRS:
            return f"{found}, but so few overloaded scenarios do not show it"
        return f"{found}, which is not known to take {percent(RELIEF)} of what is too much away"
    against = [
        f"{metric} {with_sign(float(changes[number, best]))} from"
        f" {as_text(float(advice.levels[metric][number]))}, worse by more than {percent(advice.margin)} in"
        f" {percent(worse[number, best])}"
        for (metric, changes), worse in zip(
            advice.mean_changes.items(), advice.worse_in.values(), strict=True
        )
        if advice.perhaps_worse[metric][number, best]
    ]
    if against:
        rest = f"({listed_names(against)} of the scenarios)"
        return f"{found}, which is not known to be as good in the rest {rest}"
    if advice.needed[number]:
        return f"{found}, which takes about {advice.needed[number]:,} scenarios to be sure of"
    busy, of = f"{known.busy[number, today]:.0f}", int(advice.scenarios[number])
    return f"{found}, but only {busy} of {of} scenarios are above {percent(AT_EASE)} today"


def _nearest(advice: Advice, loads: Floats, number: int) -> int:
    """Return the strategy with the least load, of those known to be as good if one of them has less."""
    less = loads < (1 - advice.margin) * loads[advice.today]
    worse = np.any([open_[number] for open_ in advice.perhaps_worse.values()], axis=0)
    for possible in (less & ~worse, less):
        if possible.any():
            return int(np.nanargmin(np.where(possible, loads, np.nan)))
    return int(np.nanargmin(loads))
