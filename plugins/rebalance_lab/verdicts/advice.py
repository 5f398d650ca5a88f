"""Advice for a scenario: the changes to a strategy that help, what they cost, and those that do not help."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import isnan, nan
from typing import Any

from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.causes import AWAY, BATCH, DETECTION, HEARTBEAT, UNASSIGNED, UNKNOWN
from rebalance_lab.verdicts.changes import (
    FREEZE_MS,
    Change,
    Facts,
    Kind,
    Trouble,
    changes,
    delay_ms,
    troubles,
)
from rebalance_lab.verdicts.dimensions import (
    COSTS,
    FRONT,
    GAINS,
    MOVES,
    REQUESTS,
    ROUNDS,
    STOPS,
    TWICE,
    Dimension,
    dominates,
)
from rebalance_lab.verdicts.explaining import where_stopped
from rebalance_lab.verdicts.grid import Candidate, StrategyRun, candidate_of, trial_of
from rebalance_lab.verdicts.overload import overload
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, IN_WORDS, Order
from rebalance_lab.verdicts.tables import Cell, Table
from rebalance_lab.verdicts.words import about, counted, more_findings

MOST_EVENTS = 40_000
"""The most events of the runs of the scenario with `SEEDS`, as estimated from the first run."""
SEEDS = 10
"""The number of seeds, if the runs have so few events; else there are as many as an order needs."""


@dataclass(frozen=True)
class Plan:
    """The runs of an advice: the present strategy and the changes, on the scenario and under each trouble."""

    scenario: Scenario
    facts: Facts
    changes: Sequence[Change]
    seeds: Sequence[int]
    troubles: Mapping[Trouble, Scenario]
    registry: Registry

    def scenarios(self, change: Change) -> list[Scenario]:
        """Return the scenarios of a change: one for each seed, then those of each trouble."""
        return [
            replace(change.of(scenario, self.registry), seed=seed)
            for scenario, seeds in zip((self.scenario, *self.troubles.values()), self._seeds, strict=True)
            for seed in seeds
        ]

    @property
    def _seeds(self) -> list[Sequence[int]]:
        """The seeds of the scenario, and those of each trouble: as many as an order needs."""
        return [self.seeds, *[self.seeds[:FEWEST_PAIRS]] * len(self.troubles)]

    def trial(self, change: Change, runs: Sequence[StrategyRun]) -> Candidate:
        """Return the trial of a change from the runs of its scenarios. It has no figures if one failed."""
        rest = iter(runs)
        own, *under = (
            candidate_of(change.strategy, dict(zip(seeds, rest, strict=False))) for seeds in self._seeds
        )
        if error := next((run.error for run in runs if run.error), ""):
            return trial_of(change, replace(own, figures={}, error=error))
        troubles = dict(zip(self.troubles, (each.figures for each in under), strict=True))
        return trial_of(change, replace(own, troubles=troubles))


def plan_of(
    scenario: Scenario, strategy: str, facts: Facts, registry: Registry, seeds: int | None = None
) -> Plan:
    """Return the runs for an advice. ``facts`` are those of one run of the present strategy.

    Without ``seeds`` there are ten, or as many as an order needs if the runs have many events.
    """
    found = [Change(strategy), *changes(scenario, strategy, facts, registry)]
    if seeds is None:
        events = len(facts.history.trace.events) * len(found)
        seeds = SEEDS if events * SEEDS <= MOST_EVENTS else FEWEST_PAIRS
    longest_ms = max(facts.session_ms, *(change.settings.get(facts.session, 0) for change in found))
    delays_ms = [delay_ms(change, scenario, registry) for change in found]
    trials = troubles(scenario, facts, longest_ms + max(delays_ms))
    return Plan(scenario, facts, found, range(scenario.seed, scenario.seed + seeds), trials, registry)


@dataclass(frozen=True)
class Advice:
    """The trials of changes to a strategy on a scenario. ``now`` is the trial without a change.

    ``facts`` are those of the first run without a change.
    """

    scenario: str
    seeds: Sequence[int]
    facts: Facts
    now: Candidate
    trials: Sequence[Candidate]

    @cached_property
    def singles(self) -> list[Candidate]:
        """The trials of one change."""
        return [trial for trial in self.trials if trial.is_one]

    def helps(self, trial: Candidate) -> list[Dimension]:
        """Return the dimensions in which a trial is better than now; none if it does not work."""
        return [d for d in GAINS if d.is_better(trial, self.now)] if trial.works else []

    def costs(self, trial: Candidate) -> list[Dimension]:
        """Return the dimensions in which a trial is worse than now."""
        return [d for d in (*GAINS, *COSTS, REQUESTS) if d.is_better(self.now, trial)]

    def gains(self, trial: Candidate) -> list[Dimension]:
        """Return the dimensions in which a trial helps: stops, if it works and the strategy now does not."""
        if not self.now.works:
            return [STOPS] if trial.works else []
        return self.helps(trial)

    @cached_property
    def front(self) -> list[Candidate]:
        """The present strategy and the changes that help, as far as no other one of them dominates.

        A change dominates another one if it helps in the same, is as good in every dimension, and is better
        in one or of fewer kinds of changes. Several changes together do not dominate a single one.
        """
        front = [trial for trial in (self.now, *self.trials) if self.gains(trial) or trial is self.now]
        front = [trial for trial in front if trial.works]
        for trial in list(front):
            if any(self._dominates(other, trial) for other in front if other is not trial):
                front.remove(trial)
        return front

    def _dominates(self, one: Candidate, other: Candidate) -> bool:
        if other.is_one and not one.is_one:
            return False
        if not set(self.gains(other)) <= set(self.gains(one)):
            return False
        if len(one.kinds) < len(other.kinds):
            return all(dimension.is_as_good(one, other) for dimension in FRONT)
        return dominates(one, other, FRONT)

    @cached_property
    def leaders(self) -> dict[Dimension, Candidate]:
        """For each dimension in which one change of the front helps, the change that helps most.

        Among changes none of which is known to be better in it, the one with the fewest costs counts. If the
        strategy does not work now, the changes with which it does are compared.
        """
        leaders: dict[Dimension, Candidate] = {}
        for dimension in GAINS:
            contenders = [t for t in self.singles if dimension in self.gains(t)]
            unbeaten = [t for t in contenders if not any(dimension.is_better(o, t) for o in contenders)]
            unbeaten = [t for t in unbeaten if t in self.front]
            if unbeaten and not any(leader in unbeaten for leader in leaders.values()):
                leaders[dimension] = min(unbeaten, key=lambda t: (len(self.costs(t)), len(t.kinds)))
        return leaders

    @property
    def free(self) -> Candidate | None:
        """The change without a known price that helps most against stops, if the first there has a price."""
        leader = self.leaders.get(STOPS)
        if leader is None or not self.now.works or not self.costs(leader):
            return None
        free = [t for t in self.front if t.is_one and STOPS in self.gains(t) and not self.costs(t)]
        return min(free, key=lambda trial: STOPS.figure(trial).median, default=None)

    @property
    def together(self) -> Candidate | None:
        """The combination of changes that stops partitions least, if it does so less than each single one."""
        single = [self.now, *self.leaders.values()]
        several = [t for t in self.front if len(t.kinds) > 1 and not t.is_one]
        several = [t for t in several if all(STOPS.is_better(t, each) for each in single)]
        return min(several, key=lambda trial: STOPS.figure(trial).median, default=None)

    @property
    def without_help(self) -> list[Candidate]:
        """The single changes that help in nothing."""
        return [t for t in self.singles if not self.gains(t)]

    def unsure(self, trial: Candidate) -> list[Dimension]:
        """Return the dimensions of which the seeds do not show whether a trial is better than now."""
        return [d for d in GAINS if d.order(trial, self.now) is Order.UNKNOWN]


# --- sentences


def sentences(advice: Advice) -> list[str]:
    """Return the advice: the costs now, the one change that helps most, with its price, and others.

    A load that no change can carry comes first.
    """
    load = overload(advice.facts.history)
    return [*load, _now(advice), *_leaders(advice), *_free(advice), *_together(advice)]


def _now(advice: Advice) -> str:
    now = advice.now
    costs = ", ".join(d.described(now) for d in (STOPS, MOVES, ROUNDS))
    more = more_findings(now.findings)
    faults = f" It does not work: {now.findings[0]}{more}." if now.findings else ""
    history = advice.facts.history
    of = f"Of the stopped time of seed {history.started.seed}"
    where = f" {where_stopped(history, of)}" if history.stops.stopped_ms else ""
    return f"Now, {now.label()}: {costs}.{where}{faults}"


def _leaders(advice: Advice) -> Iterator[str]:
    leaders = advice.leaders
    if not leaders:
        costs = [d.figure(advice.now).median for d in (STOPS, MOVES, ROUNDS)]
        why = "" if any(costs) else " Nothing stops or moves now, and no round is run."
        if len(advice.seeds) < FEWEST_PAIRS:
            seeds = counted(len(advice.seeds), "seed")
            yield f"Not known from {seeds} ({FEWEST_PAIRS} are needed) whether a change helps.{why}"
        elif any(advice.unsure(trial) for trial in advice.singles if trial.works):
            yield f"No single change is known to help.{why}"
        else:
            yield f"No single change helps.{why}"
    elif not any(STOPS in advice.gains(trial) for trial in leaders.values()):
        is_unsure = any(STOPS in advice.unsure(trial) for trial in advice.singles if trial.works)
        known = "is known to stop" if is_unsure else "stops"
        yield f"No single change {known} partitions less."
    for dimension, trial in leaders.items():
        helps = "Of single changes, helps" if _is_beaten(advice, dimension, trial) else "Helps"
        against = f"most against {dimension.against}"
        if _is_unsure(advice, dimension, trial):
            against = f"against {dimension.against}, and none is known to help more"
        heading = f"{helps} {against}" if advice.now.works else "Makes it work"
        yield f"{heading}: {trial.label()}: {_gains(advice, trial, dimension)}. {price(advice, trial)}"


def _is_beaten(advice: Advice, dimension: Dimension, trial: Candidate) -> bool:
    """Return whether a combination of changes is known to help more than a single one."""
    return any(dimension.is_better(other, trial) for other in advice.front)


def _is_unsure(advice: Advice, dimension: Dimension, trial: Candidate) -> bool:
    """Return whether another single change may help more: its median is less, and the order is not known."""
    return any(
        dimension.order(other, trial) is Order.UNKNOWN
        and dimension.figure(other).median < dimension.figure(trial).median
        for other in advice.singles
        if dimension in advice.gains(other)
    )


def _free(advice: Advice) -> Iterator[str]:
    trial = advice.free
    if trial is not None and trial not in advice.leaders.values():
        yield f"Without a known price: {trial.label()}: {_gains(advice, trial, STOPS)}."


def _together(advice: Advice) -> Iterator[str]:
    trial = advice.together
    if trial is not None:
        yield f"Together: {trial.label()}: {_gains(advice, trial, STOPS)}. {price(advice, trial)}"


def _gains(advice: Advice, trial: Candidate, first: Dimension) -> str:
    """Return in what a trial helps, a dimension in front."""
    if not advice.now.works:
        return f"it works, with {STOPS.described(trial)}"
    helps = sorted(advice.helps(trial), key=lambda dimension: dimension is not first)
    return ", ".join(_compared(d, trial, advice.now) for d in helps)


def price(advice: Advice, trial: Candidate) -> str:
    """Return what a change makes worse, as a sentence."""
    costs = [(d.trouble, _compared(d, trial, advice.now)) for d in advice.costs(trial)]
    parts = list(filter(None, [", ".join(text for trouble, text in costs if trouble is None)]))
    parts += [f"if {trouble.value}, {text}" for trouble, text in costs if trouble is not None]
    return f"Its price: {'; '.join(parts)}." if parts else "No price is known from these trials."


def _compared(dimension: Dimension, trial: Candidate, now: Candidate) -> str:
    return f"{dimension.described(trial)} (now {dimension.shown(now)})"


# --- changes that do not help


def reasons(advice: Advice) -> Iterator[tuple[Candidate, str]]:
    """Yield each single change that does not help, with the reason that the trace and the figures show."""
    for trial in advice.without_help:
        yield trial, _reason(advice, trial)


def _reason(advice: Advice, trial: Candidate) -> str:
    now = advice.now
    if trial.error:
        return f"it failed: {trial.error}"
    if trial.findings:
        return f"it does not work: {trial.findings[0]}"
    kinds = trial.kinds
    whys = (why(advice) for kind, why in _WHY_NOT.items() if kind in kinds and Kind.LONG_SESSION not in kinds)
    known = [reason for reason in whys if reason]
    worse = [_compared(d, trial, now) for d in GAINS if d.is_better(now, trial)]
    if not known and (unsure := advice.unsure(trial)):
        figures = ", ".join(_compared(dimension, trial, now) for dimension in unsure)
        known = [f"not known from {counted(len(advice.seeds), 'seed')}: {figures}"]
    return "; ".join([*known, *worse]) or "stops, moves, rounds, balance and lag are as now"


def _why_static_does_not_help(advice: Advice) -> str:
    longest, session_ms = advice.facts.longest, advice.facts.session_ms
    if longest is None or longest.ms < session_ms:
        return ""
    return (
        f"{longest.client} is away for {about(longest.ms)}, longer than its session of"
        f" {about(session_ms)}: the group removes it before it is back"
    )


def _why_a_short_session_does_not_help(advice: Advice) -> str:
    return "" if advice.facts.expired else "no session expires in the run"


def _why_cooperation_does_not_help(advice: Advice) -> str:
    outside = _share(advice, DETECTION) - _share(advice, UNASSIGNED) + _share(advice, AWAY)
    if not outside > 1 / 2:
        return ""
    return f"{100 * outside:.0f} % of the stopped time passes while members are away or stand still"


def _why_shorter_waits_do_not_help(advice: Advice) -> str:
    """Waits for other causes, as for a session to expire, stay as they are with these changes."""
    waiting = sum(_share(advice, cause) for cause in (HEARTBEAT, BATCH, UNKNOWN))
    if not waiting <= 1 / 10:
        return ""
    some = f"only {100 * waiting:.0f} %" if waiting >= 1 / 200 else "less than 1 %"
    share = some if waiting else "none"
    return f"{share} of the stopped time is due to rounds that wait for heartbeats or batches"


def _share(advice: Advice, part: str) -> float:
    """Return the share of a part or a cause in the stopped time of all seeds; NaN if it is unknown."""
    whole = sum(STOPS.figure(advice.now).values)
    own = sum(advice.now.figure(f"stopped_{part}_partition_seconds").values)
    return own / whole if whole else nan


_WHY_NOT: Mapping[Kind, Callable[[Advice], str]] = {
    Kind.STATIC: _why_static_does_not_help,
    Kind.COOPERATIVE: _why_cooperation_does_not_help,
    Kind.SHORT_SESSION: _why_a_short_session_does_not_help,
    Kind.HEARTBEAT: _why_shorter_waits_do_not_help,
    Kind.RECORDS: _why_shorter_waits_do_not_help,
}


# --- table and document


_NO_HELP = "No known help:"


def lines(advice: Advice) -> list[str]:
    """Return the sentences, and those about changes that do not help, a line each."""
    no_help = [f"  {trial.label()}: {reason}." for trial, reason in reasons(advice)]
    return [*sentences(advice), *([_NO_HELP] if no_help else []), *no_help]


def table(advice: Advice, *, narrow: bool = False) -> Table:
    """Return the table of all trials. The second column marks the front.

    With ``narrow`` the settings of a change are in a line of their own.
    """
    shown = [d for d in FRONT if _is_shown(d, advice)]
    rows = []
    for trial in _all(advice):
        style = "bold" if trial in advice.front else ""
        mark = "front" if style else "" if trial.works else "fails"
        label = f"{trial.label()} (now)" if trial is advice.now else trial.label()
        label = label.replace(" with ", "\n  ") if narrow else label
        figures = [Cell(d.shown(trial), style) for d in shown]
        rows.append([Cell(label, style), Cell(mark, style, left=True), *figures])
    return Table(["change", "", *(d.head for d in shown)], rows, 2)


def _is_shown(dimension: Dimension, advice: Advice) -> bool:
    """Return whether a trial has a figure, one that does harm, or another one than now, if others do none."""
    if dimension.least is not None:
        orders = (dimension.order(trial, advice.now) for trial in advice.trials)
        return any(order in (Order.BETTER, Order.WORSE) for order in orders)
    medians = [dimension.harm(trial).median for trial in _all(advice)]
    return any(median > 0 for median in medians) if dimension.most else not all(map(isnan, medians))


def legend(advice: Advice) -> list[str]:
    """Explain the columns of the table and the front."""
    lines = [
        "front: now and the changes that help, of which no other one is as good in every column, and better"
        " in one or a simpler change"
    ]
    if advice.now.troubles:
        frozen = f"frozen: the rounds if a member freezes for {about(FREEZE_MS)}"
        gone = "how long partitions stand still if their owner crashes, or is closed, for good"
        runs = counted(min(len(advice.seeds), FEWEST_PAIRS), "seed")
        lines.append(f"crashed, closed: {gone}. {frozen}. Median of {runs}, of the group at rest")
    if len(advice.seeds) < FEWEST_PAIRS:
        return [*lines, f"fewer than {FEWEST_PAIRS} seeds: not known what is better with others"]
    last = f"other figures: median of {len(advice.seeds)} seeds. better: {IN_WORDS}; crashed, closed, frozen"
    last += " and requests: by more than a sixth"
    if _is_shown(TWICE, advice):
        last += "; handled twice: also by more than a tenth of the largest lag"
    return [*lines, last]


def as_html(advice: Advice) -> str:
    """Write the sentences, the changes without help as a list, and the table."""
    no_help = "".join(f"<li>{escape(t.label())}: {escape(why)}</li>" for t, why in reasons(advice))
    made = table(advice)
    return "\n".join(
        [
            *(f"<p>{_with_bold_heading(sentence)}</p>" for sentence in sentences(advice)),
            f"<p>{_NO_HELP}</p><ul>{no_help}</ul>" if no_help else "",
            replace(made, head=[name.replace("\n", " ") for name in made.head]).as_html(),
            *(f"<p><small>{escape(line)}</small></p>" for line in legend(advice)),
        ]
    )


def _with_bold_heading(sentence: str) -> str:
    heading, colon, rest = sentence.partition(": ")
    return f"<b>{escape(heading)}</b>{colon}{escape(rest)}" if colon else escape(sentence)


def as_document(advice: Advice) -> dict[str, Any]:
    """Return the sentences, and the figures of all trials. Figures that are unknown are null."""
    return {
        "scenario": advice.scenario,
        "seeds": list(advice.seeds),
        "advice": sentences(advice),
        "no_help": {trial.label(): reason for trial, reason in reasons(advice)},
        "now": _document(advice, advice.now),
        "changes": [_document(advice, trial) for trial in advice.trials],
    }


def _document(advice: Advice, trial: Candidate) -> dict[str, Any]:
    figures = {d.key or d.name: d.figure(trial).median for d in FRONT}
    return {
        "strategy": trial.strategy,
        "settings": {name: text for name, (text, _) in trial.settings.items()},
        "helps": [d.name for d in advice.helps(trial)],
        "price": [d.key or d.name for d in advice.costs(trial)],
        "front": trial in advice.front,
        "figures": {key: None if isnan(value) else value for key, value in figures.items()},
        "findings": list(trial.findings),
        "error": trial.error,
    }


def _all(advice: Advice) -> list[Candidate]:
    return [advice.now, *advice.trials]
