"""Advice for a scenario: the changes to a strategy that help, what they cost, and those that do not help."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from math import isclose, isnan, nan
from typing import Any

from coordinator_core.documents.scenario import Scenario
from coordinator_core.registry.registry import Registry
from coordinator_core.reports.changes import (
    FREEZE_MS,
    SESSION,
    Change,
    Facts,
    Kind,
    Trouble,
    changes,
    delay_ms,
    troubles,
)
from coordinator_core.reports.comparison import TIE, Figure
from coordinator_core.reports.explaining import where_stopped
from coordinator_core.reports.tables import Cell, as_text, html_table
from coordinator_core.reports.words import about
from coordinator_core.traces.stopped import AWAY, DETECTION, STANDING, WAITING

MOST_EVENTS = 40_000
"""The runs have fewer events than this in all, as estimated from the first one, unless there is one seed."""
SEEDS = (10, 5, 3)
"""The numbers of seeds, if the runs have few enough events."""


@dataclass(frozen=True)
class Dimension:
    """What a change may make better or worse. Less is better.

    ``name`` is a metric, of runs of the scenario or under a trouble. ``key`` names it in documents, ``head``
    in a table; ``text`` describes a figure, with places for it and the plural. One figure is better than
    another one only if that is more than ``times`` as high.
    """

    name: str
    key: str
    head: str
    text: str
    trouble: Trouble | None = None
    times: float = 1.0

    def figure(self, trial: "Trial") -> Figure:
        """Return the figure of a trial; NaN if it is unknown."""
        known = trial.figures if self.trouble is None else trial.troubles.get(self.trouble, {})
        return known.get(self.name, _UNKNOWN)

    def is_better(self, one: "Trial", other: "Trial") -> bool:
        """Return whether a trial is better than another one, beyond ties.

        It is if the spreads over the seeds do not overlap, or if it is with nine of ten seeds.
        """
        a, b = self.figure(one), self.figure(other)
        if isnan(a.median) or isnan(b.median) or b.median <= self.times * a.median:
            return False
        return a.is_better(b, "lower") or _is_better_with_most_seeds(a, b)


def _is_better_with_most_seeds(one: Figure, other: Figure) -> bool:
    if len(one.values) < _FEW_SEEDS or isclose(one.median, other.median, rel_tol=TIE):
        return False
    better = [a < b and not isclose(a, b, rel_tol=TIE) for a, b in zip(one.values, other.values, strict=True)]
    return sum(better) >= _MOST * len(better)


_FEW_SEEDS, _MOST = 5, 0.9
"""With fewer seeds only spreads count. Of more seeds, this share decides: runs of one seed go together."""

_UNKNOWN = Figure((nan,))
_NOTABLE = 1.2
"""A cost of which there is one run, or that is of little weight, is worse if it is so many times as high."""

_STOP = "longest_stop_seconds"
_STANDS_STILL = "its partitions stand still for {} s"

STOPS = Dimension(
    "stopped_partition_seconds",
    "stopped_partition_seconds",
    "stopped\npartition\nseconds",
    "{} partition second{s} stopped",
)
MOVES = Dimension("moved_partitions", "moved_partitions", "moves", "{} partition{s} moved")
ROUNDS = Dimension("rounds", "rounds", "rounds", "{} round{s}")
BALANCE = Dimension(
    "weighted_imbalance",
    "weighted_imbalance",
    "load\nmax/\nmean",
    "{} times the mean load on the busiest member",
)
CRASHED = Dimension(_STOP, "crashed_seconds", "crashed\n(s)", _STANDS_STILL, Trouble.CRASHES, _NOTABLE)
CLOSED = Dimension(_STOP, "closed_seconds", "closed\n(s)", _STANDS_STILL, Trouble.CLOSES, _NOTABLE)
FROZEN = Dimension("rounds", "frozen_rounds", "frozen\nrounds", "{} round{s}", Trouble.FREEZES, _NOTABLE)
REQUESTS = Dimension("messages", "messages", "requests", "{} request{s}", times=_NOTABLE)

GAINS = (STOPS, MOVES, ROUNDS, BALANCE)
COSTS = (CRASHED, CLOSED, FROZEN)
FRONT = (STOPS, MOVES, BALANCE, *COSTS)
"""The dimensions of the front."""


@dataclass(frozen=True)
class Trial:
    """A change with its figures by metric, on the scenario and under each trouble, and its faults."""

    change: Change
    figures: Mapping[str, Figure]
    troubles: Mapping[Trouble, Mapping[str, Figure]] = field(default_factory=dict)
    findings: Sequence[str] = ()
    error: str = ""

    @property
    def works(self) -> bool:
        """Whether the runs succeeded and had no faults."""
        return not self.error and not self.findings


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
        """Return the scenarios of a change: one for each seed, then one for each trouble."""
        return [
            *(replace(change.of(self.scenario, self.registry), seed=seed) for seed in self.seeds),
            *(change.of(scenario, self.registry) for scenario in self.troubles.values()),
        ]

    def trial(
        self, change: Change, figures: Sequence[Mapping[str, float]], findings: Sequence[str], error: str = ""
    ) -> Trial:
        """Return the trial of a change from the figures of its scenarios, in their order."""
        count = len(self.seeds)
        of_seeds, of_troubles = figures[:count], figures[count:]
        names = of_seeds[0] if of_seeds else {}
        return Trial(
            change,
            {name: Figure(tuple(run[name] for run in of_seeds)) for name in names},
            {
                trouble: {name: Figure((value,)) for name, value in run.items()}
                for trouble, run in zip(self.troubles, of_troubles, strict=False)
            },
            findings,
            error,
        )


def plan_of(
    scenario: Scenario, strategy: str, facts: Facts, registry: Registry, seeds: int | None = None
) -> Plan:
    """Return the runs for an advice. ``facts`` are those of one run of the present strategy.

    Without ``seeds`` there are ten, five, three or one, the fewer the more events the runs have.
    """
    found = [Change(strategy), *changes(scenario, strategy, facts, registry)]
    if seeds is None:
        events = len(facts.history.trace.events) * len(found)
        seeds = next((count for count in SEEDS if events * count <= MOST_EVENTS), 1)
    longest_ms = max(facts.session_ms, *(change.settings.get(SESSION, 0) for change in found))
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
    now: Trial
    trials: Sequence[Trial]

    def helps(self, trial: Trial) -> list[Dimension]:
        """Return the dimensions in which a trial is better than now; none if it does not work."""
        return [d for d in GAINS if d.is_better(trial, self.now)] if trial.works else []

    def costs(self, trial: Trial) -> list[Dimension]:
        """Return the dimensions in which a trial is worse than now."""
        return [d for d in (*GAINS, *COSTS, REQUESTS) if d.is_better(self.now, trial)]

    @cached_property
    def front(self) -> list[Trial]:
        """The trials that work and that no other one dominates.

        It does if it is worse in no dimension, and better in one of them or of fewer kinds of changes.
        """
        working = [trial for trial in (self.now, *self.trials) if trial.works]
        return [t for t in working if not any(_dominates(other, t) for other in working)]

    @cached_property
    def leaders(self) -> dict[Dimension, Trial]:
        """For each dimension in which one change helps, the change that helps most.

        Among changes that are alike in it, the one with the fewest costs counts. If the strategy does not
        work now, the changes with which it does are compared.
        """
        leaders: dict[Dimension, Trial] = {}
        for dimension in GAINS:
            contenders = [t for t in self.trials if t.change.is_one and self._may_lead(t, dimension)]
            unbeaten = [t for t in contenders if not any(dimension.is_better(o, t) for o in contenders)]
            if unbeaten and not any(leader in unbeaten for leader in leaders.values()):
                leaders[dimension] = min(unbeaten, key=lambda t: (len(self.costs(t)), len(t.change.kinds)))
        return leaders

    def _may_lead(self, trial: Trial, dimension: Dimension) -> bool:
        if not self.now.works:
            return trial.works and dimension is STOPS
        return dimension in self.helps(trial)

    @property
    def together(self) -> Trial | None:
        """The combination of changes that stops partitions least, if it does so less than each single one."""
        best = self.leaders.get(STOPS, self.now)
        several = [t for t in self.trials if not t.change.is_one and t.works and STOPS.is_better(t, best)]
        return min(several, key=lambda trial: STOPS.figure(trial).median, default=None)

    @property
    def without_help(self) -> list[Trial]:
        """The single changes that help in nothing."""
        return [t for t in self.trials if t.change.is_one and not self._helps_at_all(t)]

    def _helps_at_all(self, trial: Trial) -> bool:
        return bool(self.helps(trial)) or (trial.works and not self.now.works)


def _dominates(one: Trial, other: Trial) -> bool:
    if any(d.is_better(other, one) for d in FRONT):
        return False
    simpler = len(one.change.kinds) < len(other.change.kinds)
    return simpler or any(d.is_better(one, other) for d in FRONT)


# --- sentences


_AGAINST = {STOPS: "stops", MOVES: "moves", ROUNDS: "rounds", BALANCE: "imbalance"}


def sentences(advice: Advice) -> list[str]:
    """Return the advice: the costs now, the one change that helps most, with its price, and others."""
    return [_now(advice), *_leaders(advice), *_together(advice)]


def _now(advice: Advice) -> str:
    now = advice.now
    costs = ", ".join(_described(d, now) for d in (STOPS, MOVES, ROUNDS))
    more = f" (and {len(now.findings) - 1} more)" if now.findings[1:] else ""
    faults = f" It does not work: {now.findings[0]}{more}." if now.findings else ""
    history = advice.facts.history
    of = f"Of the stopped time of seed {history.started.seed}"
    where = f" {where_stopped(history, of)}" if history.stops.stopped_ms else ""
    return f"Now, {now.change.label}: {costs}.{where}{faults}"


def _leaders(advice: Advice) -> Iterator[str]:
    leaders = advice.leaders
    if not leaders:
        costs = [d.figure(advice.now).median for d in (STOPS, MOVES, ROUNDS)]
        why = "" if any(costs) else " Nothing stops or moves now, and no round is run."
        yield f"No single change helps.{why}"
    elif STOPS not in leaders:
        yield "No single change stops partitions less."
    for dimension, trial in leaders.items():
        heading = f"Helps most against {_AGAINST[dimension]}" if advice.now.works else "Makes it work"
        yield f"{heading}: {trial.change.label}: {_gains(advice, trial)}. {price(advice, trial)}"


def _together(advice: Advice) -> Iterator[str]:
    trial = advice.together
    if trial is not None:
        yield f"Together: {trial.change.label}: {_gains(advice, trial)}. {price(advice, trial)}"


def _gains(advice: Advice, trial: Trial) -> str:
    if not advice.now.works:
        return f"it works, with {_described(STOPS, trial)}"
    return ", ".join(_compared(d, trial, advice.now) for d in advice.helps(trial))


def price(advice: Advice, trial: Trial) -> str:
    """Return what a change makes worse, as a sentence."""
    worse = [d for d in advice.costs(trial) if d.trouble is None]
    parts = [", ".join(_compared(d, trial, advice.now) for d in worse)] if worse else []
    parts += [
        f"if {d.trouble.value}, {_compared(d, trial, advice.now)}"
        for d in advice.costs(trial)
        if d.trouble is not None
    ]
    return f"Its price: {'; '.join(parts)}." if parts else "It has no price in these trials."


def _compared(dimension: Dimension, trial: Trial, now: Trial) -> str:
    before = as_text(dimension.figure(now).median)
    return f"{_described(dimension, trial)} (now {before})"


def _described(dimension: Dimension, trial: Trial) -> str:
    value = dimension.figure(trial).median
    return dimension.text.format(as_text(value), s="" if value == 1 else "s")


# --- changes that do not help


def reasons(advice: Advice) -> Iterator[tuple[Trial, str]]:
    """Yield each single change that does not help, with the reason that the trace and the figures show."""
    for trial in advice.without_help:
        yield trial, _reason(advice, trial)


def _reason(advice: Advice, trial: Trial) -> str:
    now = advice.now
    if trial.error:
        return f"it failed: {trial.error}"
    whys = (why(advice) for kind, why in _WHY_NOT.items() if kind in trial.change.kinds)
    known = [reason for reason in whys if reason]
    known += [f"it does not work: {finding}" for finding in trial.findings[:1]]
    if trial.works:
        known += [_compared(d, trial, now) for d in GAINS if d.is_better(now, trial)]
    if not known and STOPS.figure(now).median > _NOTABLE * STOPS.figure(trial).median:
        known = [f"{_compared(STOPS, trial, now)} in the median, but not with most seeds"]
    return "; ".join(known) or "stops, moves, rounds and balance are as now"


def _why_static_does_not_help(advice: Advice) -> str:
    longest, session_ms = advice.facts.longest, advice.facts.session_ms
    if longest is None:
        return "no member ends and comes back in the run"
    if longest.ms < session_ms:
        return ""
    return (
        f"{longest.client} is away for {about(longest.ms)}, longer than its session of"
        f" {about(session_ms)}: the group removes it before it is back"
    )


def _why_a_short_session_does_not_help(advice: Advice) -> str:
    return "" if advice.facts.expired else "no session expires in the run"


def _why_cooperation_does_not_help(advice: Advice) -> str:
    causes = advice.facts.history.stops.causes_ms
    outside = sum(causes[cause] for cause in (DETECTION, STANDING, AWAY))
    whole = sum(causes.values())
    if not whole or outside <= whole / 2:
        return ""
    share = f"{100 * outside / whole:.0f} % of the stopped time"
    return f"{share} passes while members are away or stand still, which no assignor shortens"


def _why_shorter_waits_do_not_help(advice: Advice) -> str:
    causes = advice.facts.history.stops.causes_ms
    whole = sum(causes.values())
    if not whole or causes[WAITING] > whole / 10:
        return ""
    share = (
        f"only {100 * causes[WAITING] / whole:.0f} % of the stopped time passes" if causes[WAITING] else ""
    )
    return f"{share or 'no partition stands still'} while rounds wait for members"


_WHY_NOT: Mapping[Kind, Callable[[Advice], str]] = {
    Kind.STATIC: _why_static_does_not_help,
    Kind.COOPERATIVE: _why_cooperation_does_not_help,
    Kind.SHORT_SESSION: _why_a_short_session_does_not_help,
    Kind.HEARTBEAT: _why_shorter_waits_do_not_help,
    Kind.RECORDS: _why_shorter_waits_do_not_help,
}


# --- table and document


def lines(advice: Advice) -> list[str]:
    """Return the sentences, and those about changes that do not help, a line each."""
    no_help = [f"  {trial.change.label}: {reason}." for trial, reason in reasons(advice)]
    return [*sentences(advice), *(["No help:"] if no_help else []), *no_help]


def table(advice: Advice, *, narrow: bool = False) -> tuple[list[str], list[list[Cell]]]:
    """Return the heads and the rows of all trials. The second column marks the front.

    With ``narrow`` the settings of a change are in a line of their own.
    """
    shown = [d for d in (*GAINS, *COSTS) if not all(isnan(d.figure(t).median) for t in _all(advice))]
    rows = []
    for trial in _all(advice):
        style = "bold" if trial in advice.front else ""
        mark = "front" if style else "" if trial.works else "fails"
        label = f"{trial.change.label} (now)" if trial is advice.now else trial.change.label
        label = label.replace(" with ", "\n  ") if narrow else label
        figures = [Cell(as_text(d.figure(trial).median), style) for d in shown]
        rows.append([Cell(label, style), Cell(mark, style, left=True), *figures])
    return ["change", "", *(d.head for d in shown)], rows


def legend(advice: Advice) -> list[str]:
    """Explain the columns of the table and the front."""
    lines = [
        "front: no other row is as good in every column but rounds, and better in one or a simpler change"
    ]
    if advice.now.troubles:
        frozen = f"frozen: the rounds if a member freezes for {about(FREEZE_MS)}"
        gone = "how long partitions stand still if their owner crashes, or is closed, for good"
        lines.append(f"crashed, closed: {gone}. {frozen}. One run each, on the group at rest")
    if len(advice.seeds) == 1:
        lines.append("figures of one seed: small differences may be chance, more seeds show it")
    else:
        how = "with nine of ten seeds or " if len(advice.seeds) >= _FEW_SEEDS else ""
        better = f"better: by more than 1 %, {how}with spreads that do not overlap"
        lines.append(f"other figures: median of {len(advice.seeds)} seeds. {better}")
    return lines


def as_html(advice: Advice) -> str:
    """Write the sentences, the changes without help as a list, and the table."""
    no_help = "".join(f"<li>{escape(t.change.label)}: {escape(why)}</li>" for t, why in reasons(advice))
    head, rows = table(advice)
    return "\n".join(
        [
            *(f"<p>{_with_bold_heading(sentence)}</p>" for sentence in sentences(advice)),
            f"<p>No help:</p><ul>{no_help}</ul>" if no_help else "",
            html_table([name.replace("\n", " ") for name in head], rows),
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
        "no_help": {trial.change.label: reason for trial, reason in reasons(advice)},
        "now": _document(advice, advice.now),
        "changes": [_document(advice, trial) for trial in advice.trials],
    }


def _document(advice: Advice, trial: Trial) -> dict[str, Any]:
    figures = {d: d.figure(trial).median for d in (*GAINS, *COSTS)}
    return {
        "strategy": trial.change.strategy,
        "settings": trial.change.texts,
        "helps": [d.name for d in advice.helps(trial)],
        "price": [d.key for d in advice.costs(trial)],
        "front": trial in advice.front,
        "figures": {d.key: None if isnan(value) else value for d, value in figures.items()},
        "findings": list(trial.findings),
        "error": trial.error,
    }


def _all(advice: Advice) -> list[Trial]:
    return [advice.now, *advice.trials]
