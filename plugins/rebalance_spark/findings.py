"""The contents of a report, computed from scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.reasons import largest_of, metric_of
from rebalance_lab.verdicts.rule import ONE_IN
from rebalance_lab.verdicts.rule import differences as shares
from rebalance_lab.verdicts.scaling import AT_EASE
from rebalance_lab.verdicts.words import listed_names
from rebalance_spark.actions import Action, actions
from rebalance_spark.advising import Advice, advise, holding
from rebalance_spark.capacity import besides, capacity_of
from rebalance_spark.choices import CHANCE, MARGIN, Status
from rebalance_spark.costs import BY_COUNT, BY_RATE, costs_of, place_of
from rebalance_spark.dominance import dominance
from rebalance_spark.paired import Difference, comparable, completed_by_all, difference
from rebalance_spark.parts import Subjects, parts_of, subjects_of, times_per_day
from rebalance_spark.remarks import NO_RATES, remarks
from rebalance_spark.stored import Figures2D, Scored, check_paired

STOPS, MOVES, ROUNDS = "stopped_partition_seconds", "moved_partitions", "rounds"
EVENTS = "events"
UTILIZATION = "utilization"
RECORDS = ("delayed_records", "lag_record_seconds")
"""What a switch does to records: said with it, if it is worse, and summed over a day."""

ROUNDING = 1e-9
"""Figures of a scenario with a smaller relative difference are even."""


_LEVEL = 0.5 / ONE_IN
"""The greatest p of a strategy that is known to be better than another one in the front."""


class Figures(NamedTuple):
    """One metric under one strategy, in ``rows`` scenarios.

    ``curve`` has the figures at 101 evenly spaced quantiles. ``change`` is the difference to the strategy
    that runs today.
    """

    rows: int
    mean: float
    p50: float
    p95: float
    p99: float
    worst: float
    worst_scenario: str
    curve: Sequence[float] = ()
    change: Difference | None = None


@dataclass(frozen=True, slots=True)
class OnFront:
    """A strategy in the plane of moves and balance: its means, and whether no other one dominates it."""

    strategy: str
    moves: float
    balance: float
    on_front: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the scenarios, with the figures of the comparable ones by metric and strategy."""

    name: str
    scenarios: int
    figures: Mapping[tuple[str, str], Figures]


@dataclass(frozen=True, slots=True)
class Question:
    """What a report is asked. ``balance``: the metric of the front beside the moves, "" for no front.

    ``baseline``: the strategy that runs today. ``deciding``: the metrics that decide whether a group
    switches. ``per``: the column with the subjects of decisions, as for `parts.subjects_of`. ``by``: the
    name and the value of each scenario by which there are parts. ``rate``: the greatest expected share of
    switches that are due to chance. ``across``: a column with values under which decisions should hold, such
    as the time of a batch. ``margin``: by which share of a figure a strategy may be worse in the rest.
    ``per_day``: how often a day what happens in a scenario happens to its group, a number or a column with
    it. The defaults of ``balance`` and ``deciding`` are those of `balance_of` and `deciding_of`.
    """

    balance: str | None = None
    baseline: str = ""
    deciding: Sequence[str] = ()
    per: str = ""
    by: tuple[str, Sequence[Any]] | None = None
    rate: float = CHANCE / 100
    margin: float = MARGIN / 100
    across: str = ""
    per_day: str = ""


@dataclass(frozen=True)
class Findings:
    """The contents of a report. Metrics and strategies are in their orders.

    ``scenarios`` is the number of all scenarios, ``common`` of those that all compared strategies completed.
    ``figures`` maps (metric, strategy) to figures over the scenarios that are comparable: among the common
    ones, those in which each strategy that has the metric has a figure. ``left_out`` are sentences about
    the others. Intervals of changes are over the ``subjects``.

    ``wins`` maps (metric, strategy, other) to the numbers of scenarios in which the first strategy is better,
    even and worse. It is empty unless it was asked for. ``unread`` metrics were not read. ``events`` are the
    fewest and the most events of a scenario, if the scores have them. ``has_limits``: whether the load of
    members is known in all scenarios, as a share of what they can handle. ``waits`` has the largest part of
    the stopped time (`reasons.largest_of`) of strategies that stop partitions longer than that of today.
    ``labels``: the value of ``by`` of each subject, empty where it has several.
    """

    scenarios: int
    common: int
    fidelities: Sequence[str]
    versions: Sequence[str]
    strategies: Sequence[str]
    metrics: Sequence[str]
    figures: Mapping[tuple[str, str], Figures]
    statuses: Mapping[str, Mapping[str, int]]
    front: Sequence[OnFront] = ()
    left_out: Sequence[str] = ()
    wins: Mapping[tuple[str, str, str], tuple[int, int, int]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)
    balance: str = BY_COUNT
    subjects: Subjects | None = None
    advice: Advice | None = None
    by: str = ""
    across: str = ""
    parts: Sequence[Part] = ()
    unread: int = 0
    events: tuple[int, int] | None = None
    overloaded: Mapping[str, int] = field(default_factory=dict)
    has_limits: bool = False
    waits: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    labels: Sequence[str] = ()

    @cached_property
    def actions(self) -> list[Action]:
        """What to do about each subject of the advice."""
        return [] if self.advice is None else actions(self.advice)

    @property
    def failed(self) -> int:
        """Rows that are not ok."""
        return sum(n for counts in self.statuses.values() for s, n in counts.items() if s != Status.OK)

    @property
    def headlines(self) -> list[str]:
        """The metrics of the short form: headlines and the metric of the front, or all if none is scored."""
        return headlines_of(self.metrics, self.balance)


def balance_of(scored: Scored) -> str:
    """Return the metric of balance: by records/s if the scores have such figures, else by partitions."""
    has_rates = any(metric.name == BY_RATE for metric in scored.metrics)
    return BY_RATE if has_rates and not np.isnan(scored.figures(BY_RATE)).all() else BY_COUNT


def deciding_of(scored: Scored, baseline: str, balance: str) -> list[str]:
    """Return the metrics that decide by default, of those that today's strategy has: stops and balance.

    Where stops are not measured, moves decide in their place, unless it is known in all scenarios what
    members can handle: then balance decides alone. What a move costs besides, such as the time to restore
    state, is a part of the stopped time of a scenario that has it.

    Raises:
        InputError: if it has no scores, or none of these metrics.
    """
    today = place_of(baseline, scored)
    if not scored.ok[:, today].any():
        nothing = f"no scenario that {baseline} completed"
        raise InputError("--baseline", nothing, "some; the column error of the scores says why they failed")
    names = [metric.name for metric in scored.metrics]
    candidates = [name for name in (STOPS, MOVES, balance) if name]
    known = [name for name in candidates if name in names]
    found = [name for name in known if not np.isnan(scored.figures(name)[:, today]).all()]
    if MOVES in found and len(found) > 1 and (STOPS in found or _has_limits(scored, found, today)):
        found.remove(MOVES)
    if not found:
        nothing = f"no figures of {listed_names(candidates)} under {baseline}"
        raise InputError("--baseline", nothing, "--decide METRIC, which the scores have")
    return found


def _has_limits(scored: Scored, deciding: Sequence[str], today: int) -> bool:
    """Return whether rates decide, and it is known in all scenarios what members can handle."""
    if BY_RATE not in deciding or not any(metric.name == UTILIZATION for metric in scored.metrics):
        return False
    is_known = ~np.isnan(scored.figures(UTILIZATION)[:, today])
    return bool(is_known.any() and is_known[scored.ok[:, today]].all())


def higher_is_better(name: str) -> bool:
    """Return whether higher values of a metric are better. They are not if the metric is not installed."""
    spec = default_registry().metrics().get(name)
    return spec is not None and spec.better == "higher"


def headlines_of(metrics: Sequence[str], balance: str) -> list[str]:
    """Return the metrics of the short form of a report."""
    specs = default_registry().metrics()
    chosen = {name for name, spec in specs.items() if spec.headline} | {balance}
    return [name for name in metrics if name in chosen] or list(metrics)


def found_in(scored: Scored, question: Question, *, everything: bool = True, pairs: bool = True) -> Findings:
    """Return the findings of scores.

    Without ``everything``, only the metrics of the short form are read. ``pairs``: with wins.

    Raises:
        InputError: if the scores do not have a metric or the strategy of the question, or if those of a
            scenario were made by different versions, fidelities or starts.
    """
    check_paired(scored)
    unweighted = []
    if question.balance is None:
        question = replace(question, balance=balance_of(scored))
        if question.balance == BY_COUNT and any(metric.name == BY_RATE for metric in scored.metrics):
            unweighted.append(NO_RATES)
    balance = question.balance or ""
    deciding = _deciding(scored, question)
    subjects = subjects_of(scored, question.per)
    today = place_of(question.baseline, scored) if question.baseline else None
    names = [metric.name for metric in scored.metrics]
    headlines = headlines_of(names, balance)
    wanted = {*(names if everything else headlines), *deciding, MOVES}
    watched = {*headlines, *deciding, *(RECORDS if question.baseline else ())}
    read = [name for name in names if name in wanted]
    beside = [name for name in names if name in watched and name not in wanted]
    common = completed_by_all(scored)
    figures: dict[tuple[str, str], Figures] = {}
    wins: dict[tuple[str, str, str], tuple[int, int, int]] = {}
    grids: dict[str, Figures2D] = {}
    divided = parts_of(question.by[1]) if question.by else []
    parts = [(name, inside, dict[tuple[str, str], Figures]()) for name, inside in divided]
    for metric in read:
        grid = scored.figures(metric)
        rows = comparable(grid, common)
        figures |= figures_of(scored, metric, grid, rows, subjects, today)
        if pairs:
            wins |= wins_of(scored, metric, grid)
        if metric in watched:
            grids[metric] = grid
        for _, inside, of_part in parts if metric in (MOVES, balance, *deciding) else ():
            of_part |= figures_of(scored, metric, grid, rows & inside, subjects, today)
    grids |= {metric: scored.figures(metric) for metric in beside}
    described = {metric.name: metric for metric in scored.metrics}
    specs = default_registry().metrics()
    return Findings(
        scenarios=len(scored.scenarios),
        common=int(common.sum()),
        fidelities=[text for (text,) in scored.distinct("fidelity")],
        versions=[_version(*texts) for texts in scored.distinct("program_version", "plugin_versions")],
        strategies=scored.strategies,
        metrics=[name for name in read if any(metric == name for metric, _ in figures)],
        figures=figures,
        statuses=_statuses(scored),
        front=front_of(scored, MOVES, balance)[1] if {MOVES, balance} <= set(read) else (),
        left_out=[*remarks(scored, common, subjects, question.baseline), *unweighted],
        wins=wins,
        units={n: c.unit or (specs[n].unit if n in specs else "") for n, c in described.items()},
        definitions={n: c.doc or (specs[n].doc if n in specs else "") for n, c in described.items()},
        balance=balance,
        subjects=subjects,
        advice=_advice(scored, question, subjects, deciding, grids) if question.baseline else None,
        by=question.by[0] if question.by else "",
        across=question.across,
        parts=[Part(name, int((common & inside).sum()), of_part) for name, inside, of_part in parts],
        unread=len(names) - len(read),
        events=_events(scored),
        overloaded=_overloaded(scored, common) if UTILIZATION in names else {},
        labels=_labels(subjects, question.by[1]) if question.by else (),
        waits=_waits(scored, figures, question, names),
        has_limits=UTILIZATION in names and not np.isnan(scored.figures(UTILIZATION)[common]).any(),
    )


def _overloaded(scored: Scored, common: npt.NDArray[np.bool_]) -> dict[str, int]:
    """Return in how many scenarios a member has more than it can handle, under each strategy."""
    grid = scored.figures(UTILIZATION)[common]
    return dict(zip(scored.strategies, (grid > 1).sum(axis=0).tolist(), strict=True))


def _labels(subjects: Subjects, values: Sequence[Any]) -> list[str]:
    """Return the value of each subject as text, empty where its scenarios have several."""
    found: list[set[Any]] = [set() for _ in subjects.names]
    for number, value in zip(subjects.numbers.tolist(), values, strict=True):
        found[number].add(value)
    return ["" if len(each) != 1 or None in each else str(*each) for each in found]


def _waits(
    scored: Scored, figures: Mapping[tuple[str, str], Figures], question: Question, names: Sequence[str]
) -> dict[str, tuple[str, float]]:
    """Return the largest part of the stopped time of strategies in which it is longer than today's."""
    today = figures.get((STOPS, question.baseline))
    found = {}
    for number, strategy in enumerate(scored.strategies):
        figure = figures.get((STOPS, strategy))
        if today is None or figure is None or figure.mean <= (1 + question.margin) * today.mean:
            continue

        def time_in(part: str, number: int = number) -> float:
            name = metric_of(part)
            return float(np.nansum(scored.figures(name)[:, number])) if name in names else 0.0

        if largest := largest_of(time_in):
            found[strategy] = largest
    return found


def _deciding(scored: Scored, question: Question) -> list[str]:
    known_metrics(scored, "metric", filter(None, (*question.deciding, question.balance)))
    if question.deciding or not question.baseline:
        return list(question.deciding)
    return deciding_of(scored, question.baseline, question.balance or "")


def known_metrics(scored: Scored, where: str, metrics: Iterable[str]) -> list[str]:
    """Return the names of all metrics.

    Raises:
        InputError: if one of ``metrics`` is not among them. ``where`` names it.
    """
    known = [metric.name for metric in scored.metrics]
    for name in metrics:
        if name not in known:
            raise InputError(where, repr(name), one_of(name, known))
    return known


def figures_of(
    scored: Scored,
    metric: str,
    grid: Figures2D,
    rows: npt.NDArray[np.bool_],
    subjects: Subjects,
    today: int | None,
) -> dict[tuple[str, str], Figures]:
    """Return the figures of a metric in some scenarios, and their changes from today's strategy."""
    found = {}
    places, groups = np.flatnonzero(rows), subjects.numbers[rows]
    for number, strategy in enumerate(scored.strategies):
        values = grid[rows, number]
        if not len(values) or np.isnan(values).all():
            continue
        curve = np.percentile(values, range(101)).tolist()
        worst = values.min() if higher_is_better(metric) else values.max()
        last = int(places[np.flatnonzero(values == worst)[-1]])
        change = None if today in (None, number) else values - grid[rows, today]
        found[metric, strategy] = Figures(
            len(values),
            float(values.mean()),
            curve[50],
            curve[95],
            curve[99],
            float(worst),
            scored.scenarios[last],
            curve,
            None if change is None or np.isnan(change).any() else difference(change, groups),
        )
    return found


def wins_of(
    scored: Scored, metric: str, grid: Figures2D | None = None
) -> dict[tuple[str, str, str], tuple[int, int, int]]:
    """Count over the scenarios in which both strategies have the figure."""
    found = {}
    grid = scored.figures(metric) if grid is None else grid
    grid = grid if higher_is_better(metric) else -grid
    for i, one in enumerate(scored.strategies):
        for j, other in enumerate(scored.strategies):
            if i != j:
                gains = shares(grid[:, i], grid[:, j])
                better, worse = (int((each > ROUNDING).sum()) for each in (gains, -gains))
                found[metric, one, other] = (better, int((~np.isnan(gains)).sum()) - better - worse, worse)
    return found


def front_of(scored: Scored, moves: str, balance: str) -> tuple[int, list[OnFront]]:
    """Return the number of scenarios, and the strategies with both figures, by their moves.

    A strategy without figures is left out.
    """
    common = completed_by_all(scored)
    grids = [scored.figures(metric) for metric in (moves, balance)]
    rows = comparable(grids[0], common) & comparable(grids[1], common)
    known = np.flatnonzero(rows.any() & ~np.isnan([grid[rows] for grid in grids]).any(axis=(0, 1)))
    costs = [grid[rows][:, known] for grid in grids]
    one = np.zeros(int(rows.sum()), dtype=np.int64)
    front = []
    for i, number in enumerate(known):
        others = (j for j in range(len(known)) if j != i)
        worse = any(
            dominance([(c[:, j], c[:, i], one, 1) for c in costs]).chances[0] <= _LEVEL for j in others
        )
        means = [float(cost[:, i].mean()) for cost in costs]
        front.append(OnFront(scored.strategies[number], means[0], means[1], not worse))
    return int(rows.sum()), sorted(front, key=lambda each: (each.moves, each.balance, each.strategy))


def _events(scored: Scored) -> tuple[int, int] | None:
    """Return the fewest and the most events of a scenario, if the scores have them."""
    values = scored.values(EVENTS) if EVENTS in scored.others else []
    known = [value for value in values if isinstance(value, int)]
    return (min(known), max(known)) if known else None


def _advice(
    scored: Scored,
    question: Question,
    subjects: Subjects,
    deciding: list[str],
    grids: Mapping[str, Figures2D],
) -> Advice:
    """Return the advice. Where the balance by rates decides, that by partitions does for groups without."""
    higher = {metric: higher_is_better(metric) for metric in grids}
    has_counts = any(metric.name == BY_COUNT for metric in scored.metrics)
    counts = scored.figures(BY_COUNT) if BY_RATE in deciding and has_counts else None
    has_load = not question.deciding and any(metric.name == UTILIZATION for metric in scored.metrics)
    load = scored.figures(UTILIZATION) if has_load else None

    known = near = None
    if load is not None and not np.isnan(load).all():
        known = capacity_of(scored, load, AT_EASE, subjects)
        near = besides(known)

    def made(rows: npt.NDArray[np.bool_]) -> Advice:
        def of(grid: Figures2D) -> Figures2D:
            return np.where(rows[:, None], grid, np.nan)

        inside = {metric: of(grid) for metric, grid in grids.items()}
        costs = costs_of(
            scored,
            question.baseline,
            subjects,
            inside,
            deciding,
            higher,
            None if counts is None else of(counts),
            None if load is None else of(load),
            near,
            None if known is None else known.by_history,
        )
        members = None if known is None else known.needed
        return advise(costs, scored.strategies, question.rate, question.margin, members)

    advice = made(np.ones(len(scored.scenarios), dtype=np.bool_))
    advice = replace(advice, capacity=known)
    if question.per_day:
        advice = replace(advice, per_day=times_per_day(scored, question.per_day, subjects))
    if not question.across:
        return advice
    if question.across not in scored.others:
        raise InputError("--across", repr(question.across), one_of(question.across, scored.others))
    values = np.array([str(value) for value in scored.values(question.across)], dtype=object)
    alone = {value: made(values == value) for value in sorted(set(values.tolist()))}
    return replace(advice, holds=holding(advice, alone))


def _statuses(scored: Scored) -> dict[str, dict[str, int]]:
    return {
        strategy: {
            status.value: int((scored.status[:, number] == place).sum())
            for place, status in enumerate(Status)
        }
        for number, strategy in enumerate(scored.strategies)
    }


def _version(program: str, plugins: str) -> str:
    return f"rebalance-lab {program}" + (f", {plugins}" if plugins else "")
