"""The tables of a report, for a terminal and for a page."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from coordinator_core.errors import InputError
from rebalance_lab.verdicts.tables import BEST, Cell, Table, as_text, csv_text, with_sign
from rebalance_spark.actions import actions
from rebalance_spark.advising import ADDITIVE, Advice, first_draws
from rebalance_spark.choices import Status
from rebalance_spark.findings import MOVES, Figures, Findings, higher_is_better
from rebalance_spark.groups import REPAIRS
from rebalance_spark.paired import LEVEL, Difference
from rebalance_spark.parts import Subjects
from rebalance_spark.stored import Scored, encoded
from rebalance_spark.sweeps import swept

_WRITERS: Mapping[str, Callable[..., None]] = {".csv": csv.write_csv, ".parquet": parquet.write_table}
"""How a table is written to a file, by the ending of its name."""


def _interval(findings: Findings, change: Difference) -> str:
    """Return a mean difference with its interval. That of one subject, such as a group, has none."""
    if not change.has_interval:
        subject = "scenario" if findings.subjects is None else findings.subjects.singular
        return f"{with_sign(change.mean)} (one {subject}: no interval)"
    return f"{with_sign(change.mean)} [{with_sign(change.low)}, {with_sign(change.high)}]"


def figures_table(findings: Findings, statistic: str, metrics: Sequence[str]) -> Table:
    """Return a row per metric and a column per strategy; in a sweep, a row per strategy."""
    cells = {metric: _values(findings, findings.figures, metric, statistic) for metric in metrics}
    return _laid_out(findings, f"{statistic} of {findings.common:,}", findings.strategies, cells)


def differences_table(findings: Findings, metrics: Sequence[str]) -> Table:
    """Return the mean differences to the strategy that runs today, with their intervals."""
    cells = {metric: _changes(findings, findings.figures, metric) for metric in metrics}
    title = f"minus {_baseline(findings)}, of {findings.common:,} [{LEVEL} %]"
    return _laid_out(findings, title, _others(findings), cells)


def parts_tables(findings: Findings) -> list[Table]:
    """Return the tables of the parts: of moves, balance, and the metrics that decide.

    Each has a row per part, with the means, and with the differences to the strategy that runs today.
    """
    shown = {metric for part in findings.parts for metric, _ in part.figures}
    found = []
    for metric in (name for name in findings.metrics if name in shown):
        rows = [
            [Cell(part.name), Cell(f"{part.scenarios:,}"), *_values(findings, part.figures, metric, "mean")]
            for part in findings.parts
        ]
        head = [findings.by, "scenarios", *findings.strategies]
        found.append(Table(head, rows, title=f"{metric} by {findings.by}"))
        if findings.advice is not None:
            rows = [[Cell(part.name), *_changes(findings, part.figures, metric)] for part in findings.parts]
            title = f"{metric} minus {_baseline(findings)} [{LEVEL} %]"
            found.append(Table([findings.by, *_others(findings)], rows, title=title))
    return found


def front_table(findings: Findings) -> Table:
    """Return a row per strategy with its moves and balance; those not on the front in parentheses."""
    rows = [
        [
            Cell(point.strategy, "bold") if point.on_front else Cell(f"({point.strategy})", "dim"),
            Cell(as_text(point.moves)),
            Cell(as_text(point.balance)),
        ]
        for point in findings.front
    ]
    return Table(
        ["strategy", MOVES, findings.balance], rows, title=f"front, of {findings.common:,} scenarios"
    )


def _baseline(findings: Findings) -> str:
    return "" if findings.advice is None else findings.advice.baseline


def _others(findings: Findings) -> list[str]:
    return [strategy for strategy in findings.strategies if strategy != _baseline(findings)]


def _values(
    findings: Findings, figures: Mapping[tuple[str, str], Figures], metric: str, statistic: str
) -> list[Cell]:
    """Return the figures of a metric under each strategy. The best is marked, if not all are the same."""
    found = [figures.get((metric, strategy)) for strategy in findings.strategies]
    values = [None if each is None else getattr(each, statistic) for each in found]
    known = {value for value in values if value is not None}
    best = (max if higher_is_better(metric) else min)(known) if len(known) > 1 else None
    return [Cell("-") if v is None else Cell(as_text(v), BEST if v == best else "") for v in values]


def _changes(findings: Findings, figures: Mapping[tuple[str, str], Figures], metric: str) -> list[Cell]:
    """Return the differences of a metric to the strategy of today: green if they are clearly better."""
    cells = []
    for strategy in _others(findings):
        change = figures[metric, strategy].change if (metric, strategy) in figures else None
        if change is None:
            cells.append(Cell("-"))
            continue
        style = "green" if (change.mean > 0) == higher_is_better(metric) else "yellow"
        cells.append(Cell(_interval(findings, change), style if change.is_clear else ""))
    return cells


def _laid_out(
    findings: Findings, title: str, strategies: Sequence[str], cells: Mapping[str, Sequence[Cell]]
) -> Table:
    parameters, names = swept(strategies)
    if parameters:
        rows = [
            [*map(Cell, names[strategy]), *(column[i] for column in cells.values())]
            for i, strategy in enumerate(strategies)
        ]
        heads = [_with_rows(findings, metric) for metric in cells]
        return Table(["strategy", *parameters, *heads], rows, 1 + len(parameters), title)
    rows = [
        [Cell(_with_rows(findings, metric), hint=hint_of(findings, metric)), *row]
        for metric, row in cells.items()
    ]
    return Table(["metric", *strategies], rows, title=title)


def _with_rows(findings: Findings, metric: str) -> str:
    """Return the name of a metric, with the number of its scenarios if some of the common ones lack it."""
    rows = next((f.rows for (name, _), f in findings.figures.items() if name == metric), findings.common)
    return metric if rows == findings.common else f"{metric}, of {rows:,}"


def hint_of(findings: Findings, metric: str) -> str:
    """Return the definition of a metric and its unit."""
    unit = findings.units.get(metric, "")
    texts = (findings.definitions.get(metric, ""), f"({unit})" if unit else "")
    return " ".join(text for text in texts if text)


def definitions(findings: Findings) -> list[tuple[str, str]]:
    """Return the metrics with their definitions and units."""
    return [(metric, text) for metric in findings.metrics if (text := hint_of(findings, metric))]


def worst_table(findings: Findings, links: Mapping[str, str]) -> Table:
    """Return the worst scenario of each metric and strategy. ``links`` lead to views of scenarios."""
    rows = []
    for metric in findings.metrics:
        found = [findings.figures.get((metric, strategy)) for strategy in findings.strategies]
        names = ["" if each is None else each.worst_scenario for each in found]
        worst = [Cell(name or "-", left=True, link=quote(links.get(name, ""))) for name in names]
        rows.append([Cell(metric, hint=hint_of(findings, metric)), *worst])
    return Table(["metric", *findings.strategies], rows, title="the worst scenario")


def wins_table(findings: Findings, metric: str) -> Table:
    """Return in how many percent of the scenarios the strategy of the row is better than that of a column."""
    rows = []
    for strategy in findings.strategies:
        counts = [findings.wins.get((metric, strategy, other), (0, 0, 0)) for other in findings.strategies]
        shares = [f"{100 * each[0] / sum(each):.1f} %" if sum(each) else "" for each in counts]
        rows.append([Cell(strategy), *map(Cell, shares)])
    return Table(["better than", *findings.strategies], rows, title=metric)


def status_table(statuses: Mapping[str, Mapping[str, int]]) -> Table:
    """Return how many rows of each strategy have which status."""
    rows = [
        [Cell(strategy), *(Cell(f"{counts[status.value]:,}") for status in Status)]
        for strategy, counts in statuses.items()
    ]
    return Table(["strategy", *(status.value for status in Status)], rows, title="Rows")


def as_csv(findings: Findings) -> str:
    """Write a row for each strategy and metric, with every statistic and the worst scenario.

    The parameters of a sweep have columns. With a baseline there are the mean difference and its interval.
    """
    parameters, names = swept(findings.strategies)
    columns = Figures._fields[:7]
    head = ["strategy", *parameters, "metric", "unit", *columns]
    head += ["difference", "difference_low", "difference_high"] if findings.advice else []
    rows = []
    for strategy in findings.strategies:
        for metric in findings.metrics:
            found = findings.figures.get((metric, strategy))
            if found is None:
                continue
            unit = findings.units.get(metric, "")
            row: list[Any] = [strategy, *names[strategy][1:], metric, unit, *found[:7]]
            if findings.advice:
                change = found.change
                row += ["", "", ""] if change is None else [change.mean, change.low, change.high]
            rows.append(row)
    return csv_text(head, rows)


def as_file(table: pa.Table, ending: str) -> bytes:
    """Return a table as CSV or Parquet."""
    sink = pa.BufferOutputStream()
    _WRITERS[ending](table, sink)
    return bytes(sink.getvalue().to_pybytes())


def check_ending(path: Path) -> None:
    """Check the name of a file for advice.

    Raises:
        InputError: if it does not end with .csv or .parquet.
    """
    if path.suffix not in _WRITERS:
        raise InputError("--advice", str(path), "a file that ends with .csv or .parquet")


def advice_table(scored: Scored, advice: Advice) -> pa.Table:
    """Return the advice as a table, a row per subject.

    The columns that the scores have from the workload follow its name, if they have one value for each. The
    repaired rows of its scenarios are summed. Switches are first, those with the greatest gain in the first
    metric that decides on top: the gain of a day, if it is known how often its scenarios happen.
    """
    subjects = advice.subjects
    names = np.array(scored.strategies, dtype=object)
    columns: dict[str, Any] = {subjects.column: subjects.names}
    if not subjects.are_scenarios:
        columns["scenarios"] = np.bincount(subjects.numbers, minlength=len(subjects.names))
        columns["agree"] = pa.array(advice.agree, from_pandas=True)
    columns |= _carried(scored, subjects)
    columns |= {
        "today": [advice.baseline] * len(subjects.names),
        "strategy": names[advice.chosen].tolist(),
        "action": _actions(advice),
        "reason": advice.reasons,
        "runner_up": [scored.strategies[second] for second in advice.second.tolist()],
        "p": pa.array(advice.chances, from_pandas=True),
        **({"holds": list(advice.holds)} if advice.holds else {}),
    }
    columns |= _of_metrics(advice) | _of_load(advice)
    first = advice.changes[advice.metrics[0]].means
    if advice.per_day is not None:
        columns["times_per_day"] = pa.array(advice.per_day, from_pandas=True)
        for metric in advice.per_day_metrics:
            values = advice.seen[metric].means * advice.per_day
            columns[f"{metric}_change_per_day"] = pa.array(values, from_pandas=True)
        first = first * advice.per_day if advice.metrics[0] in ADDITIVE else first
    gain = np.nan_to_num(first) * (1 if higher_is_better(advice.metrics[0]) else -1)
    return pa.table(columns).take(pa.array(np.lexsort((-gain, ~advice.is_switching))))


def _actions(advice: Advice) -> list[str]:
    """Return what to do about each subject, empty where there is nothing to do or to know."""
    found = [""] * len(advice.chosen)
    for each in actions(advice):
        found[each.number] = each.text
    return found


def _of_metrics(advice: Advice) -> dict[str, Any]:
    """Return the figures of today and the changes."""
    found = {}
    for metric, change in advice.changes.items():
        known = {"today": advice.levels[metric]} if metric in advice.levels else {}
        ends = {"low": change.low, "high": change.high} if metric in advice.decisive else {}
        for name, values in {**known, "change": change.means, **ends}.items():
            found[f"{metric}_{name}"] = pa.array(values, from_pandas=True)
    for metric, changes in advice.mean_changes.items():
        values = changes[np.arange(len(advice.second)), advice.second]
        found[f"runner_up_{metric}_change"] = pa.array(values, from_pandas=True)
    for metric, seen in advice.seen.items():
        found[f"{metric}_seen_change"] = pa.array(seen.means, from_pandas=True)
    return found


def _of_load(advice: Advice) -> dict[str, Any]:
    """Return what is known of overload, of what members can handle, and of how many of them it takes."""
    found: dict[str, Any] = {}
    if advice.overloaded is not None:
        found["overloaded_scenarios"], found["overloaded_then"] = advice.overloaded
    if advice.capacity is None:
        return found
    known, rows = advice.capacity, np.arange(len(advice.chosen))
    found["busiest_today"], found["busiest_then"] = (
        known.busiest[:, advice.today],
        known.busiest[rows, advice.chosen],
    )
    for name, numbers in (("members_needed", known.needed), ("members_at_ease", known.at_ease)):
        needed = numbers[rows, advice.chosen]
        found[name] = np.where((needed > known.members) & (needed < np.inf), needed, np.nan)
    found["hot_partitions"], alone = (
        known.hot,
        [known.loads_of_partitions(n, advice.today) for n in rows.tolist()],
    )
    found["hottest_partition_load"] = [max(map(max, each.values()), default=None) for each in alone]
    waits = [known.wait(number, advice.today) for number in rows.tolist()]
    found["records_wait_seconds"] = [wait.seconds if wait else None for wait in waits]
    return {name: pa.array(values, from_pandas=True) for name, values in found.items()}


def _carried(scored: Scored, subjects: Subjects) -> dict[str, list[Any]]:
    """Return the sums of repairs, and the columns that are the same in all scenarios of each subject."""
    first = np.unique(subjects.numbers, return_index=True)[1]
    found: dict[str, list[Any]] = {}
    for name in scored.others:
        values = scored.values(name)
        if name == REPAIRS:
            counts = np.array([value or 0 for value in values]) * first_draws(scored)
            sums = np.bincount(subjects.numbers, counts, len(first))
            found[name] = sums.astype(np.int64).tolist()
            continue
        if all(value is None for value in values):
            continue
        codes = encoded(pa.array([str(value) for value in values], pa.string()))[0]
        if name != subjects.column and np.array_equal(codes, codes[first][subjects.numbers]):
            found[name] = [values[row] for row in first]
    return found
