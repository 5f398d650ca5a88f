"""The tables of a comparison, and the lines around them, for terminals and pages.

Candidates without settings of their own are columns, with a row for each metric. With settings each candidate
is a row, with a column for each metric.
"""

from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.registry.hookspecs import METRIC_GROUPS, MetricSpec
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.grid import CUT, Candidate, Figure
from rebalance_lab.verdicts.reasons import STOPS, largest_part
from rebalance_lab.verdicts.rule import IN_WORDS
from rebalance_lab.verdicts.tables import BEST, Cell, Table, as_text

MARK = "*"
"""Stands before the best figures, also where there are no colours."""

_MOSTLY = "The largest part of the stopped time, and its share."

_WIDEST_WORD = 10
"""Headings of columns are broken at underscores into lines of about this width."""


def tables_of(comparison: Comparison, *, everything: bool, units: bool = True) -> list[Table]:
    """Return the tables of the first screen, or those of all metrics, by groups.

    With ``units`` a row of a metric has a column for its unit. Columns of metrics always have their units.
    """
    metrics = metrics_of(comparison, everything=everything)
    if not comparison.varied:
        return [_by_metric(comparison, by_group(metrics), grouped=everything, units=units)]
    if not everything:
        return [_by_candidate(comparison, metrics, "")]
    return [_by_candidate(comparison, own, name) for name, own in by_group(metrics).items()]


def by_group(metrics: Sequence[MetricSpec]) -> dict[str, list[MetricSpec]]:
    """Return metrics by their groups: those that are known first, and those of plugins after them."""
    names = dict.fromkeys([*METRIC_GROUPS, *(metric.group for metric in metrics)])
    groups = {name or "others": [m for m in metrics if m.group == name] for name in names}
    return {name: own for name, own in groups.items() if own}


def _by_metric(
    comparison: Comparison, groups: Mapping[str, Sequence[MetricSpec]], *, grouped: bool, units: bool
) -> Table:
    """Return a table with a row for each metric; if ``grouped``, below the headings of the groups."""
    ordered = [metric for own in groups.values() for metric in own]
    best = {metric.name: comparison.best(metric) for metric in ordered}
    columns = [
        _column((candidate.figures[m.name], i in best[m.name]) for m in ordered)
        for i, candidate in enumerate(comparison.candidates)
    ]
    headings, indent = 2 if units else 1, "  " if grouped else ""
    rows: list[list[Cell]] = []
    cells = zip(*columns, strict=True)
    for group, own in groups.items():
        if grouped:
            rows.append([Cell(group, "bold"), *[Cell("")] * (headings - 1 + len(columns))])
        for metric in own:
            name = Cell(f"{indent}{metric.name}", hint=metric.doc)
            unit = [Cell(metric.unit, "dim", left=True)] if units else []
            rows.append([name, *unit, *next(cells)])
            if metric.name == STOPS:
                parts = map(_largest_part, comparison.candidates)
                rows.append([Cell(f"{indent}  mostly", "dim", _MOSTLY), *[Cell("")] * (headings - 1), *parts])
    head = [*[""] * headings, *(candidate.strategy for candidate in comparison.candidates)]
    return Table(head, rows, headings)


def _largest_part(candidate: Candidate) -> Cell:
    largest = largest_part(candidate)
    if largest is None:
        return Cell("", "dim")
    part, _, cause = largest[0].partition("_")
    return Cell(f"{part}{f' ({cause})' if cause else ''} {100 * largest[1]:.0f} %", "dim")


def _by_candidate(comparison: Comparison, metrics: Sequence[MetricSpec], title: str) -> Table:
    """Return a table with a row for each candidate. The last of its headings marks the Pareto front."""
    best = {metric.name: comparison.best(metric) for metric in metrics}
    columns = [
        _column((figure, i in best[m.name]) for i, figure in enumerate(comparison.figures(m)))
        for m in metrics
    ]
    heads = [_broken(m.name, "_") + (f"\n{_broken(f'({m.unit})', ' ')}" if m.unit else "") for m in metrics]
    hints = [m.doc for m in metrics]
    for i, metric in enumerate(metrics):
        if metric.name == STOPS:
            columns.insert(i + 1, list(map(_largest_part, comparison.candidates)))
            heads.insert(i + 1, "mostly")
            hints.insert(i + 1, _MOSTLY)
    rows = []
    for i, candidate in enumerate(comparison.candidates):
        on_front = i in comparison.front
        style = "bold" if on_front else ""
        settings = [Cell(candidate.settings[name][0], style, left=True) for name in comparison.varied]
        front = Cell("front" if on_front else "", style, left=True)
        rows.append([Cell(candidate.strategy, style), *settings, front, *(column[i] for column in columns)])
    names = ["strategy", *(_broken(name, ".") for name in comparison.varied), ""]
    return Table([*names, *heads], rows, len(names), title, [*[""] * len(names), *hints])


def _column(figures: Iterable[tuple[Figure, bool]]) -> list[Cell]:
    """Return the cells of a column, with the figures and their spreads below one another."""
    listed = list(figures)
    texts = [as_text(figure.median) for figure, _ in listed]
    spreads = [_spread(figure) for figure, _ in listed]
    texts = [MARK * is_best + text for text, (_, is_best) in zip(texts, listed, strict=True)]
    if any(spreads):
        width, spread_width = max(map(len, texts)), max(map(len, spreads))
        texts = [f"{t:>{width}} {s:<{spread_width}}" for t, s in zip(texts, spreads, strict=True)]
    return [Cell(text, BEST if is_best else "") for text, (_, is_best) in zip(texts, listed, strict=True)]


def _spread(figure: Figure) -> str:
    low, high = map(as_text, figure.spread)
    return "" if low == high else f"({low}-{high})"


def _broken(name: str, separator: str) -> str:
    """Return a name in lines, broken behind separators."""
    lines = [""]
    for part in name.split(separator):
        if lines[-1] and len(lines[-1]) + len(part) > _WIDEST_WORD:
            lines.append("")
        lines[-1] += part + separator
    return "\n".join(line.rstrip() for line in lines).removesuffix(separator)


def title_of(comparison: Comparison) -> str:
    """Return the seeds and the settings that all candidates have."""
    first, count = comparison.seeds[0], len(comparison.seeds)
    settings = comparison.candidates[0].settings
    fixed = [f"{name}={text}" for name, (text, _) in settings.items() if name not in comparison.varied]
    seeds = f"seed {first} (one seed)" if count == 1 else f"{count} seeds ({first} to {comparison.seeds[-1]})"
    return ", ".join([seeds, *fixed])


def front_line(comparison: Comparison) -> str:
    """Explain the Pareto front, or return an empty text if there is nothing to choose from.

    It names the candidates of the front, unless the table marks them.
    """
    if len(comparison.candidates) < 2 or not comparison.front:
        return ""
    metrics = [metric.name for metric in comparison.front_metrics]
    named = " and ".join(filter(None, (", ".join(metrics[:-1]), metrics[-1])))
    if comparison.varied:
        return f"front: no other row is better in one of {named} and as good in the others"
    candidates = ", ".join(comparison.label(comparison.candidates[i]) for i in sorted(comparison.front))
    return f"Pareto front of {named}: {candidates}"


def faults(comparison: Comparison) -> list[str]:
    """Return the findings of all candidates, each with the name of its candidate."""
    return [f"{comparison.label(c)}: {finding}" for c in comparison.candidates for finding in c.findings]


def signs(comparison: Comparison) -> list[str]:
    """Explain the signs in the tables, and say what the figures are worth."""
    where = "column" if comparison.varied else "row"
    lines = []
    if any(comparison.best(metric) for metric in comparison.shown):
        lines.append(f"{MARK} better than each figure of the {where} without {MARK}: {IN_WORDS}")
    if len(comparison.seeds) > 1:
        whole = len(comparison.seeds) < CUT
        range_of = (
            "least and greatest value" if whole else "least and greatest value without 5 % at both ends"
        )
        mostly = "; mostly: of all seeds" if STOPS in [m.name for m in comparison.shown] else ""
        lines.append(f"figures: median of {len(comparison.seeds)} seeds ({range_of}){mostly}")
    return [*lines, comparison.worth] if comparison.worth else lines


def metrics_of(comparison: Comparison, *, everything: bool) -> list[MetricSpec]:
    """Return the metrics of the tables, in the order of the tables."""
    metrics = comparison.shown if everything else comparison.headlines or comparison.shown
    return [metric for own in by_group(metrics).values() for metric in own]


def definitions(metrics: Sequence[MetricSpec]) -> list[tuple[str, str]]:
    """Return the name and the unit of metrics, and their definitions."""
    return [
        (f"{m.name} [{m.unit}]" if m.unit else m.name, m.doc + " Higher is better." * (m.better == "higher"))
        for m in metrics
    ]
