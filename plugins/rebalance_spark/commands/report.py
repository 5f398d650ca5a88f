"""``rebalance-lab report``: what the scores say."""

import csv
import io
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator_core.cli.output import check_path, stdout, write_whole
from coordinator_core.errors import InputError
from coordinator_core.reports.comparison import as_text
from rebalance_spark.choices import Statistic
from rebalance_spark.commands.options import CONF_HELP, MASTER_HELP, is_local, pairs

if TYPE_CHECKING:
    from rebalance_spark.findings import Findings


class Format(StrEnum):
    """How to print it."""

    table = "table"
    csv = "csv"
    html = "html"


_SHOWN = (Statistic.mean, Statistic.p95)


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="What `rebalance-lab score` wrote.")],
    output: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.table,
    statistic: Annotated[
        list[Statistic] | None, typer.Option("--stat", help="For the table; mean and p95 when not given.")
    ] = None,
    balance: Annotated[
        str, typer.Option(metavar="METRIC", help="What the front has beside the moves.")
    ] = "imbalance",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the page with plots here.")
    ] = None,
    master: Annotated[str | None, typer.Option(metavar="URL", help=MASTER_HELP)] = None,
    conf: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=CONF_HELP)] = None,
) -> None:
    """Summarise scores by strategy: a table, CSV with every figure, or a static page with plots.

    Percentiles are exact, over the scenarios that are ok. The front is of the strategies of which none is
    better in both moves and balance, over the scenarios that every strategy has figures for.
    """
    from rebalance_spark.chunks import existing_scores
    from rebalance_spark.findings import found_in
    from rebalance_spark.sessions import spark_session

    check_path(html)
    nothing = InputError(folder, "no scores", "a folder that `rebalance-lab score` wrote")
    if is_local(folder) and not Path(folder).is_dir():
        raise nothing
    spark = spark_session(master, pairs(conf, "--conf"))
    scores = existing_scores(spark, folder)
    if scores is None:
        raise nothing
    findings = found_in(scores, balance)
    if html is not None:
        write_whole(html, _page(findings).encode())
    if output is Format.html:
        stdout().out(_page(findings).rstrip("\n"))
    elif output is Format.csv:
        stdout().out(as_csv(findings).rstrip("\n"))
    else:
        print_findings(findings, statistic or list(_SHOWN), stdout())


def _page(findings: "Findings") -> str:
    from rebalance_spark.page import as_page

    return as_page(findings)


def as_csv(findings: "Findings") -> str:
    """A row per strategy and metric, with every statistic and the worst scenario."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["strategy", "metric", "rows", "mean", "p50", "p95", "p99", "worst", "worst_scenario"])
    for strategy in findings.strategies:
        for metric in findings.metrics:
            f = findings.figures.get((metric, strategy))
            if f is not None:
                numbers = [f"{value:.12g}" for value in (f.mean, f.p50, f.p95, f.p99, f.worst)]
                writer.writerow([strategy, metric, f.rows, *numbers, f.worst_scenario])
    return text.getvalue()


def print_findings(findings: "Findings", statistics: list[Statistic], console: Console) -> None:
    """Tables as wide as the terminal allows: strategies that do not fit beside go below one another."""
    head = f"{findings.scenarios:,} scenarios, {' and '.join(findings.fidelities)} fidelity"
    console.print(Text.assemble((head, "bold"), f" ({'; '.join(findings.versions)})"))
    if findings.failed:
        console.print(f"{findings.failed:,} rows have no figures (error or timeout); they do not count")
    for statistic in statistics:
        for strategies in _fitting(findings, statistic, console.width):
            console.print()
            console.print(_table(findings, statistic, strategies))
    if findings.front:
        console.print()
        console.print(_front(findings))


def _fitting(findings: "Findings", statistic: str, width: int) -> list[list[str]]:
    """Strategies in groups, each as many columns as fit beside the metrics."""
    room = width - max((len(metric) for metric in findings.metrics), default=0) - 2
    groups: list[list[str]] = []
    used = room + 1
    for strategy in findings.strategies:
        cells = [_cell(findings, metric, strategy, statistic) for metric in findings.metrics]
        needed = 2 + max([len(strategy), *map(len, cells)])
        if used + needed > room:
            groups.append([])
            used = 0
        groups[-1].append(strategy)
        used += needed
    return groups


def _cell(findings: "Findings", metric: str, strategy: str, statistic: str) -> str:
    figures = findings.figures.get((metric, strategy))
    return "-" if figures is None else as_text(getattr(figures, statistic))


def _table(findings: "Findings", statistic: str, strategies: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(statistic, no_wrap=True)
    for strategy in strategies:
        # a name that alone is wider than the terminal is folded, and nothing beside it cut
        table.add_column(Text(strategy), justify="right", overflow="fold")
    for metric in findings.metrics:
        best = findings.best(metric, statistic)
        cells = []
        for strategy in strategies:
            figures: Any = findings.figures.get((metric, strategy))
            is_best = figures is not None and getattr(figures, statistic) == best
            text = _cell(findings, metric, strategy, statistic)
            cells.append(Text(text, style="bold green" if is_best else ""))
        table.add_row(metric, *cells)
    return table


def _front(findings: "Findings") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(f"front, of {findings.common:,} scenarios", no_wrap=True)
    table.add_column("moved_partitions", justify="right")
    table.add_column(findings.balance, justify="right")
    for each in findings.front:
        name = Text(
            each.strategy if each.on_front else f"({each.strategy})", "bold" if each.on_front else "dim"
        )
        table.add_row(name, as_text(each.moves), as_text(each.balance))
    return table
