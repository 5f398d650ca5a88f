"""The tables and sentences of a report, for a terminal and for a page."""

from collections.abc import Sequence

import numpy as np

from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.answers import what_it_takes
from rebalance_lab.verdicts.tables import BEST, Cell, as_text
from rebalance_lab.verdicts.words import listed_names
from rebalance_spark.advising import BY_COUNT, BY_RATE, UNKNOWN, Advice
from rebalance_spark.choices import Fidelity
from rebalance_spark.findings import MOVES, Findings, higher_is_better
from rebalance_spark.paired import LEVEL, Difference, signed
from rebalance_spark.sweeps import parted, swept

_MOST_SWITCHES = 5
"""Strategies to switch to that have a sentence of their own."""

_NO_STOPS = (
    "Plan fidelity does not measure how long partitions stop, which cooperative strategies shorten: score"
    " without --fidelity plan to compare it."
)

_EACH_ALONE = (
    "Each decision rests on one scenario: score more hours (--keys) or --draws, or decide --per COLUMN"
)

_AT_ONCE = (
    "Members without process_rate, if there are any, handle records at once, so that rounds do not wait for"
    " batches of records."
)

Table = tuple[list[str], list[list[Cell]], int]
"""The head of a table, its rows, and how many of its columns are headings of rows."""


def title_of(findings: Findings) -> str:
    """Return the number of scenarios, that of their groups, and their fidelity."""
    subjects = findings.subjects
    are_scenarios = subjects is None or subjects.are_scenarios
    of = "" if subjects is None or are_scenarios else f" of {len(subjects.names):,} {subjects.plural}"
    return f"{findings.scenarios:,} scenarios{of}, {' and '.join(findings.fidelities)} fidelity"


def verdict(findings: Findings) -> list[str]:
    """Return the answer in sentences: what to switch, and what to leave as it is."""
    advice = findings.advice
    if advice is None:
        best = [point.strategy for point in findings.front if point.on_front]
        if len(findings.front) < 2:
            return []
        least = f"fewest moves or least {findings.balance}, and none is worse than another in both"
        return [f"{', '.join(best)}: {least}. --baseline STRATEGY adds the change from today's strategy."]
    total, switches, groups = len(advice.chosen), advice.switches, advice.subjects.plural
    lines = [
        f"switch {count:,} of {total:,} {groups} to {name}: {_changes(findings, advice, name)}"
        for name, count in switches[:_MOST_SWITCHES]
    ]
    if rest := switches[_MOST_SWITCHES:]:
        lines.append(
            f"switch {sum(n for _, n in rest):,} {groups} to one of {len(rest)} others (--advice FILE)"
        )
    unknown = int((~advice.known).sum())
    staying = total - sum(count for _, count in switches)
    if staying:
        of_these = f" ({unknown:,} of them have {UNKNOWN})" if unknown else ""
        lines.append(f"leave {staying:,} of {total:,} {groups} as they are, with {advice.baseline}{of_these}")
    alone = int((advice.scenarios == 1).sum())
    if advice.subjects.are_scenarios and alone:
        lines.append(_EACH_ALONE)
    elif 2 * alone > total:
        lines.append(f"{alone:,} of {total:,} {groups} have one scenario: score more hours, or --draws")
    return lines


def notes(findings: Findings) -> list[str]:
    """Return sentences that follow the verdict.

    They are its rule, what the changes are, how many scenarios agree, what is not measured, what is assumed,
    and what a switch takes.
    """
    advice = findings.advice
    if advice is None:
        return []
    groups = advice.subjects.plural
    found = [advice.rule]
    if advice.counted:
        listed = listed_names(advice.counted, 3)
        found.append(
            f"{len(advice.counted):,} of {len(advice.chosen):,} {groups} have no rates ({listed}):"
            f" {BY_COUNT}, which counts partitions, decides about them in place of {BY_RATE}."
        )
    if advice.switches:
        per = "" if advice.subjects.are_scenarios else " per scenario"
        found.append(f"Changes are means{per} over the {groups} that switch, with {LEVEL} % intervals.")
    if not np.isnan(advice.agree).all():
        share = f"{100 * np.nanmean(advice.agree):.0f} %"
        alone = f"the strategy of its {advice.subjects.singular} in {share} of them, in the mean"
        found.append(f"Applied to each scenario alone, the rule gives {alone}.")
    if Fidelity.PLAN in findings.fidelities:
        found.append(_NO_STOPS)
    if Fidelity.PROTOCOL in findings.fidelities:
        found.append(f"{_events(findings.events)}{_AT_ONCE}")
    takes = what_it_takes({name: parted(name)[0] for name, _ in advice.switches}, default_registry())
    return [*found, *filter(None, [takes])]


def _events(events: tuple[int, int] | None) -> str:
    if events is None:
        return ""
    fewest, most = events
    return f"Each scenario has {f'{fewest:,} to ' * (fewest < most)}{most:,} event{'s' * (most != 1)}. "


def _changes(findings: Findings, advice: Advice, strategy: str) -> str:
    """Return the mean changes where the strategy is advised: of deciding metrics, then of worse headlines."""
    texts, worse = (
        ", ".join(
            _change(findings, metric, change)
            for metric in metrics
            if not np.isnan((change := advice.differences[strategy, metric]).mean)
        )
        for metrics in (advice.decisive, advice.worse.get(strategy, ()))
    )
    return texts + (f"; but {worse}" if worse else "")


def _is_worse(metric: str, change: Difference) -> bool:
    return (change.mean < 0) if higher_is_better(metric) else (change.mean > 0)


def _change(findings: Findings, metric: str, change: Difference) -> str:
    unit = findings.units.get(metric, "")
    shown = metric if unit in ("", "ratio") or unit.replace(" ", "_") in metric else f"{unit} {metric}"
    return f"{interval(change, _subject(findings))} {shown}"


def _subject(findings: Findings) -> str:
    return "scenario" if findings.subjects is None else findings.subjects.singular


def with_sign(value: float) -> str:
    """Return a difference with three significant digits and its sign."""
    return signed(value, as_text(value))


def interval(change: Difference, subject: str) -> str:
    """Return a mean difference with its interval. That of one subject, such as a group, has none."""
    if not change.has_interval:
        return f"{with_sign(change.mean)} (one {subject}: no interval)"
    return f"{with_sign(change.mean)} [{with_sign(change.low)}, {with_sign(change.high)}]"


def figures_table(findings: Findings, statistic: str, metrics: Sequence[str]) -> Table:
    """Return a row per metric and a column per strategy; in a sweep, a row per strategy."""
    cells = {
        (metric, strategy): _figure(findings, statistic, metric, strategy)
        for metric in metrics
        for strategy in findings.strategies
    }
    return _laid_out(findings, f"{statistic} of {findings.common:,}", metrics, cells)


def differences_table(findings: Findings, metrics: Sequence[str]) -> Table:
    """Return the mean differences to the strategy that runs today, with their intervals."""
    baseline = "" if findings.advice is None else findings.advice.baseline
    cells = {
        (metric, strategy): Cell(interval(change, _subject(findings)), _style(metric, change))
        for (metric, strategy), change in findings.differences.items()
    }
    others = [strategy for strategy in findings.strategies if strategy != baseline]
    title = f"less {baseline}, of {findings.common:,} [{LEVEL} %]"
    return _laid_out(findings, title, metrics, cells, others)


def parts_table(findings: Findings, metric: str) -> Table:
    """Return a row per part and a column per strategy with the means of a metric."""
    rows = []
    for part in findings.parts:
        means = [part.means.get((metric, strategy)) for strategy in findings.strategies]
        known = {mean for mean in means if mean is not None}
        best = _best(metric, known)
        cells = [Cell("-" if m is None else as_text(m), BEST if m == best else "") for m in means]
        rows.append([Cell(part.name), Cell(f"{part.scenarios:,}"), *cells])
    return [f"{metric} by {findings.by}", "scenarios", *findings.strategies], rows, 1


def parts_differences_table(findings: Findings, metric: str) -> Table:
    """Return a row per part with the mean differences of a metric to the strategy that runs today."""
    baseline = "" if findings.advice is None else findings.advice.baseline
    others = [strategy for strategy in findings.strategies if strategy != baseline]
    rows = []
    for part in findings.parts:
        changes = [part.differences.get((metric, strategy)) for strategy in others]
        texts = ["-" if c is None else interval(c, _subject(findings)) for c in changes]
        styles = ["" if c is None else _style(metric, c) for c in changes]
        cells = [Cell(text, style) for text, style in zip(texts, styles, strict=True)]
        rows.append([Cell(part.name), *cells])
    return [f"{metric} less {baseline} [{LEVEL} %]", *others], rows, 1


def _best(metric: str, values: set[float]) -> float | None:
    if len(values) < 2:
        return None
    return max(values) if higher_is_better(metric) else min(values)


def parts_metrics(findings: Findings) -> list[str]:
    """Return the metrics of which parts have tables: moves, balance, and those that decide."""
    shown = {metric for part in findings.parts for metric, _ in part.means}
    return [name for name in findings.metrics if name in shown]


def front_table(findings: Findings) -> Table:
    """Return a row per strategy with its moves and balance; those not on the front in parentheses."""
    title = f"front, of {findings.common:,} scenarios"
    rows = [
        [
            Cell(point.strategy, "bold") if point.on_front else Cell(f"({point.strategy})", "dim"),
            Cell(as_text(point.moves)),
            Cell(as_text(point.balance)),
        ]
        for point in findings.front
    ]
    return [title, MOVES, findings.balance], rows, 1


def _figure(findings: Findings, statistic: str, metric: str, strategy: str) -> Cell:
    figures = findings.figures.get((metric, strategy))
    value = None if figures is None else getattr(figures, statistic)
    best = findings.best(metric, statistic)
    return Cell("-" if value is None else as_text(value), BEST if value is not None and value == best else "")


def _style(metric: str, change: Difference) -> str:
    if not change.is_clear:
        return ""
    return "yellow" if _is_worse(metric, change) else "green"


def _laid_out(
    findings: Findings,
    title: str,
    metrics: Sequence[str],
    cells: dict[tuple[str, str], Cell],
    strategies: Sequence[str] | None = None,
) -> Table:
    strategies = findings.strategies if strategies is None else strategies
    parameters, names = swept(strategies)
    if parameters:
        rows = [
            [*map(Cell, names[strategy]), *(cells.get((metric, strategy), Cell("-")) for metric in metrics)]
            for strategy in strategies
        ]
        heads = [_with_rows(findings, metric) for metric in metrics]
        return [title, *parameters, *heads], rows, 1 + len(parameters)
    rows = [
        [Cell(_with_rows(findings, metric), hint=hint_of(findings, metric))]
        + [cells.get((metric, strategy), Cell("-")) for strategy in strategies]
        for metric in metrics
    ]
    return [title, *strategies], rows, 1


def _with_rows(findings: Findings, metric: str) -> str:
    """Return the name of a metric, with the number of its scenarios if some of the common ones lack it."""
    rows = next((f.rows for (name, _), f in findings.figures.items() if name == metric), findings.common)
    return metric if rows == findings.common else f"{metric}, of {rows:,}"


def hint_of(findings: Findings, metric: str) -> str:
    """Return the definition of a metric and its unit."""
    unit = findings.units.get(metric, "")
    texts = (findings.definitions.get(metric, ""), f"({unit})" if unit else "")
    return " ".join(text for text in texts if text)


def definitions(findings: Findings, metrics: Sequence[str]) -> list[tuple[str, str]]:
    """Return the metrics with their definitions and units."""
    return [(metric, text) for metric in metrics if (text := hint_of(findings, metric))]
