"""The sentences of a report: the verdict, its rule and its price, and what else there is to know."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coordinator_core.registry.registry import default_registry
from rebalance_lab.traces.causes import happens_in
from rebalance_lab.verdicts.calibrated import worth_in_all
from rebalance_lab.verdicts.rule import FEWEST_PAIRS
from rebalance_lab.verdicts.switching import not_scored, what_it_takes, what_switches_take
from rebalance_lab.verdicts.tables import as_text, percent, with_sign
from rebalance_lab.verdicts.words import agreeing, listed_names
from rebalance_spark.advising import UNKNOWN, Advice
from rebalance_spark.choices import Fidelity
from rebalance_spark.costs import BY_COUNT, BY_RATE, OVERLOAD
from rebalance_spark.findings import MOVES, RECORDS, ROUNDS, STOPS, Findings
from rebalance_spark.gains import Change
from rebalance_spark.sweeps import parted

_MOST_SWITCHES = 5
"""Strategies to switch to that have a sentence of their own."""

_MOST_NAMED = 12
"""Groups that a sentence names."""

MOST_ACTIONS = 20
"""Groups that have a line of their own, with what to do about them."""

_MOST_HELD = 3
"""Sentences about what holds groups back."""

_NO_STOPS = (
    "Plan fidelity does not measure how long partitions stop, which cooperative strategies shorten: score"
    " without --fidelity plan to compare it."
)

_NO_STOPS_BUT_LOAD = (
    "Plan fidelity measures loads, which decide here, and not how long partitions stop: that may hold back"
    " switches of groups without overload (score without --fidelity plan)."
)

_EACH_ALONE = (
    f"Each decision rests on one scenario, and takes {FEWEST_PAIRS}: score more hours (--keys) or --draws, or"
    " decide --per COLUMN"
)
_FEW = "not have enough data for a switch yet"

_AT_ONCE = (
    "Members without process_rate (--member process_rate=N) handle records at once, so that rounds do not"
    " wait for batches of records."
)


_CAPACITY = (
    "If the lag of a group does not grow in the scenarios in which it is overloaded, its members handle more"
    " than the process_rate that was given. Numbers of members are the fewest with which, and with one or two"
    " more, no scenario ends with an overloaded member, under the assignor and with the partitions as they"
    " are."
)

_HISTORY = (
    "Loads under {} depend on what happened to a group before: after other events, or with other owners, they"
    " are other ones."
)

_OF_ONE = "`rebalance-lab compare` says it of the scenario of one group."

_SETTINGS = (
    "Settings, such as a shorter heartbeat interval, may help more than an assignor: `rebalance-lab advise`"
    " tries them on the scenario of a group (score --show ID)."
)


def title_of(findings: Findings) -> str:
    """Return the number of scenarios, that of their groups, and their fidelity."""
    subjects = findings.subjects
    are_scenarios = subjects is None or subjects.are_scenarios
    of = "" if subjects is None or are_scenarios else f" of {subjects.counted}"
    return f"{findings.scenarios:,} scenarios{of}, {' and '.join(findings.fidelities)} fidelity"


def verdict(findings: Findings) -> list[str]:
    """Return the answer in sentences: what to switch, and what to leave as it is."""
    advice = findings.advice
    if advice is None:
        best = [point.strategy for point in findings.front if point.on_front]
        if len(findings.front) < 2:
            return []
        none = f"no other strategy is better in {MOVES} or {findings.balance} and as good in the other"
        return [f"{', '.join(best)}: {none}. --baseline STRATEGY adds the change from today's strategy."]
    total, switches, groups = len(advice.chosen), advice.switches, advice.subjects.plural
    lines = [
        f"switch {count:,} of {total:,} {groups} to {name} ({_names(advice, name)}):"
        f" {_price(findings, advice, name)}"
        for name, count in switches[:_MOST_SWITCHES]
    ]
    if rest := switches[_MOST_SWITCHES:]:
        lines.append(
            f"switch {sum(n for _, n in rest):,} {groups} to one of {len(rest)} others (--advice FILE)"
        )
    lines += _per_day(findings, advice)
    unknown = int((advice.scenarios == 0).sum())
    few = int(advice.is_undecided.sum())
    relieving = [each for each in findings.actions if each.relief]
    relieved = [each.number for each in relieving]
    keep = sum(each.strategy == advice.today for each in relieving)
    also = f" ({len(relieved) - keep:,} of these switch, {keep:,} do not)" if keep < len(relieved) else ""
    if relieved:
        count, listed = len(relieved), listed_names([advice.subjects.names[n] for n in relieved], _MOST_NAMED)
        lines.append(
            f"{count:,} of {total:,} {groups} {agreeing('has', count)} members with more than they can"
            " handle, which no strategy that was scored is known to end with the members of today:"
            f" {listed}{also}"
        )
    staying = int((~advice.is_switching).sum() - (~advice.is_switching[relieved]).sum())
    if staying:
        of_these = f" ({unknown:,} of them have {UNKNOWN})" if unknown else ""
        lines.append(f"leave {staying:,} of {total:,} {groups} as they are, with {advice.baseline}{of_these}")
    if few:
        alone = advice.subjects.are_scenarios
        listed = _listed(advice.subjects.names, advice.is_undecided)
        some = f"{few:,} of {total:,} {groups} ({listed}) {agreeing('does', few)} {_FEW}"
        lines.append(_EACH_ALONE if alone else f"{some}: {_more(advice)}")
    return lines


def _names(advice: Advice, strategy: str) -> str:
    """Return the subjects that switch to a strategy."""
    return _listed(advice.subjects.names, advice.chosen == advice.strategies.index(strategy))


def _more(advice: Advice) -> str:
    """Return what would be enough data for the groups that do not have it."""
    open_ = advice.is_undecided & (advice.scenarios > 0)
    if not open_.any():
        return "score more hours (--keys) or --draws"
    needed, have = np.maximum(advice.needed, FEWEST_PAIRS)[open_], advice.scenarios[open_]
    draws = -(-needed // have)
    middle = np.argsort(draws, kind="stable")[len(draws) // 2]
    return (
        f"one with {have[middle]:,} scenarios needs about {needed[middle]:,} (more hours by"
        f" --keys, or score --draws {draws[middle]})"
    )


def _per_day(findings: Findings, advice: Advice) -> list[str]:
    """Return what all switches together change in a day, if it is known how often scenarios happen."""
    if advice.per_day is None or not advice.switches or not advice.per_day_metrics:
        return []
    wanted = [m for m in advice.per_day_metrics if m in (*advice.metrics, *RECORDS)]
    changes = ", ".join(_change(findings, metric, advice.change_per_day(metric)) for metric in wanted)
    unknown = int(np.isnan(advice.per_day[advice.is_switching]).sum())
    without = f", without {unknown:,} of which it is not known how often" if unknown else ""
    return [f"all switches together, in a day: {changes}{without}"]


def to_do(findings: Findings) -> list[str]:
    """Return what to do about each subject, the most urgent first, a line for each."""
    if findings.advice is None:
        return []
    found = [f"{named(findings, each.number)}: {each.text}" for each in findings.actions[:MOST_ACTIONS]]
    rest = len(findings.actions) - len(found)
    return [*found, f"and {rest:,} more (--advice FILE)"] if rest else found


def named(findings: Findings, number: int) -> str:
    """Return the name of a subject, with its value of the column ``by``: ``payments (team red)``."""
    assert findings.advice is not None
    name = findings.advice.subjects.names[number]
    label = findings.labels[number] if findings.labels else ""
    return f"{name} ({findings.by} {label})" if label and label != name else name


def notes(findings: Findings) -> list[str]:
    """Return sentences that follow the verdict.

    They are its rule, what the changes are, how many scenarios agree, what is not measured, what is assumed,
    and what a switch takes.
    """
    advice = findings.advice
    if advice is None:
        return []
    groups = advice.subjects.plural
    found = advice.rules if (advice.scenarios >= FEWEST_PAIRS).any() else []
    if advice.counted:
        listed = listed_names(advice.counted, 3)
        found.append(
            f"{len(advice.counted):,} of {len(advice.chosen):,} {groups} have no rates ({listed}):"
            f" {BY_COUNT}, which counts partitions, decides about them in place of {BY_RATE}."
        )
    if advice.switches:
        one = advice.subjects.singular
        found.append(
            f"Changes are of a scenario, for the median {one} that switches, with intervals of 95 %, and in"
            f" parentheses of single {groups}. The mean difference of a {one} is drawn towards those of the"
            " others, as far as chance would explain it."
        )
    found += _overloaded(findings, advice)
    found += _held_back(advice)
    found += _stops(findings, advice.baseline)
    if advice.holds and advice.switches:
        switching = advice.is_switching
        held = sum(h == "all" for h, each in zip(advice.holds, switching, strict=True) if each)
        found.append(
            f"{held:,} of {int(switching.sum()):,} switches are advised under each value of {findings.across}"
            " by itself (--advice FILE has the values)."
        )
    if not np.isnan(advice.agree[advice.is_switching]).all():
        found += _agreement(advice)
    if Fidelity.PLAN in findings.fidelities:
        found.append(_NO_STOPS if advice.capacity is None else _NO_STOPS_BUT_LOAD)
    if Fidelity.PROTOCOL in findings.fidelities:
        found.append(f"{_events(findings.events)}{'' if findings.has_limits else _AT_ONCE}".strip())
        real = worth_in_all((parted(name)[0] for name in findings.strategies), default_registry())
        found.append(real and f"{real} {_OF_ONE}")
        found.append(_SETTINGS)
    if missing := not_scored(findings.strategies, advice.baseline):
        was = agreeing("was", len(missing))
        found.append(f"{listed_names(missing)}, which Kafka's own clients have, {was} not scored (-s).")
    takes = what_it_takes({name: parted(name)[0] for name, _ in advice.switches}, default_registry())
    to = [parted(name)[0] for name, _ in advice.switches]
    restarts = what_switches_take(parted(advice.baseline)[0], to) if to else ""
    return [*filter(None, [*found, restarts, takes])]


def _stops(findings: Findings, today: str) -> list[str]:
    """Return of which strategies partitions stop longer than today, and what they mostly wait for."""
    found = []
    for strategy, (part, share) in findings.waits.items():
        then, now = (as_text(findings.figures[STOPS, name].mean) for name in (strategy, today))
        said = (
            f"Under {strategy}, partitions stop longer than under {today} ({then} for {now} {STOPS} in the"
            f" mean): in {percent(share)} of this time, {happens_in(part)}"
        )
        after, before = (findings.figures.get((ROUNDS, name)) for name in (strategy, today))
        if after and before and after.mean > before.mean:
            second = ", as partitions that move wait for a second one" * ("cooperative" in strategy)
            said += f"; there are {as_text(after.mean)} rounds for {as_text(before.mean)}{second}"
        found.append(f"{said}.")
    return found


def _agreement(advice: Advice) -> list[str]:
    """Return how many scenarios of the subjects that switch give the same by themselves."""
    share = np.where(advice.is_switching, advice.agree, np.nan)
    fewest = int(np.nanargmin(share))
    least, mean = float(share[fewest]), float(np.nanmean(share))
    one, name = advice.subjects.singular, advice.subjects.names[fewest]
    of = f"{percent(mean)} of the scenarios of a {one} that switches"
    of_one = f" (the fewest, {percent(least)}, are those of {name})" * (least < 1)
    overload = "; of those that switch for overload, the scenarios with overload count"
    counts = overload * any(OVERLOAD in metrics for metrics in advice.better_in)
    return [f"In the mean, {of} show it by themselves{of_one}{counts}."]


def _overloaded(findings: Findings, advice: Advice) -> list[str]:
    """Return in how many scenarios a member has more than it can handle, if there are any."""
    today = findings.overloaded.get(advice.baseline, 0)
    if not today:
        return []
    others = [n for n in findings.strategies if n != advice.baseline and n in findings.overloaded]
    listed = listed_names(
        [f"{findings.overloaded[name] or 'none'} under {name}" for name in others], len(others)
    )
    more = f", {listed}" if others else ""
    found = [
        f"The busiest member has more than it can handle in {today:,} of {findings.common:,} scenarios under"
        f" {advice.baseline}{more}."
    ]
    if advice.subjects.are_scenarios or advice.capacity is None:
        return found
    found.append(_CAPACITY)
    by_history = zip(findings.strategies, advice.capacity.by_history, strict=True)
    if names := [name for name, depends in by_history if depends and name != advice.baseline]:
        found.append(_HISTORY.format(listed_names(names, len(names))))
    return found


def _listed(names: Sequence[str], rows: npt.NDArray[np.bool_]) -> str:
    return listed_names([name for name, row in zip(names, rows, strict=True) if row], _MOST_NAMED)


def _held_back(advice: Advice) -> list[str]:
    """Return what is better for groups that stay, and what may be worse."""
    found = []
    for held in advice.held[:_MOST_HELD]:
        count = len(held.subjects)
        noun = advice.subjects.singular if count == 1 else advice.subjects.plural
        stays = f"({listed_names(held.subjects, _MOST_NAMED)}) {agreeing('stays', count)}"
        better = [f"{with_sign(change)} {metric}" for metric, change in held.better.items()]
        worse = [
            f"{with_sign(change)} {metric}, worse in {100 * held.worse_in[metric]:.0f} %"
            for metric, change in held.perhaps_worse.items()
        ]
        found.append(
            f"{count:,} {noun} {stays} though {held.strategy} is known to be better"
            f" ({listed_names(better)}): it may be worse by more than {100 * advice.margin:g} % in the rest"
            f" ({listed_names(worse)} of the scenarios). --decide {','.join(held.better)} decides without."
        )
    return found


def _events(events: tuple[int, int] | None) -> str:
    if events is None:
        return ""
    fewest, most = events
    return f"Each scenario has {f'{fewest:,} to ' * (fewest < most)}{most:,} event{'s' * (most != 1)}. "


def _price(findings: Findings, advice: Advice, strategy: str) -> str:
    """Return the mean changes where the strategy is advised: of deciding metrics, then of worse headlines."""
    rows = advice.chosen == advice.strategies.index(strategy)
    parts, alike = [], []
    if advice.overloaded is not None and (before := int(advice.overloaded[0][rows].sum())):
        after, of = int(advice.overloaded[1][rows].sum()), int(advice.scenarios[rows].sum())
        parts.append(f"overloaded in {after:,} of {of:,} scenarios, now {before:,}")
    if advice.capacity is not None:
        ends = (
            advice.capacity.busiest[rows, advice.strategies.index(each)]
            for each in (strategy, advice.baseline)
        )
        parts.append("busiest member at {}, now {}".format(*map(_ends, ends)))
    for metric in advice.decisive:
        change = advice.change(strategy, metric)
        if np.isnan(change.value):
            continue
        if change.low <= 0 <= change.high and len(advice.decisive) > 1:
            alike.append(metric)
        else:
            parts.append(f"{_change(findings, metric, change)}{_by_subject(advice, metric, rows)}")
    if alike:
        parts.append(f"{listed_names(alike)} about as now")
    worse = ", ".join(
        f"{_change(findings, m, advice.change(strategy, m))}{_by_subject(advice, m, rows)}"
        for m in advice.worse.get(strategy, ())
    )
    return ", ".join(parts) + (f"; but {worse}" if worse else "")


def _ends(loads: npt.NDArray[np.float64]) -> str:
    low, high = (f"{100 * float(end):.0f} %" for end in (loads.min(), loads.max()))
    return low if low == high else f"{low} to {high}"


def _by_subject(advice: Advice, metric: str, rows: npt.NDArray[np.bool_]) -> str:
    """Return the least and the greatest of the changes, if there are several."""
    means = advice.changes[metric].means[rows]
    known = means[~np.isnan(means)]
    if len(known) < 2:
        return ""
    low, high = with_sign(float(known.min())), with_sign(float(known.max()))
    return f" (from {low} to {high})" if low != high else ""


def _change(findings: Findings, metric: str, change: Change) -> str:
    unit = findings.units.get(metric, "")
    shown = metric if unit in ("", "ratio") or unit.replace(" ", "_") in metric else f"{unit} {metric}"
    low, value, high = map(with_sign, (change.low, change.value, change.high))
    return f"{value}{f' [{low}, {high}]' * (low != high)} {shown}"
