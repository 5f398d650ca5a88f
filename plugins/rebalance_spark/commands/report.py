"""``rebalance-lab report``: a summary of scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from coordinator_core.cli.output import check_path, print_document, stdout, write_whole
from coordinator_core.errors import InputError
from coordinator_core.reports.tables import Cell, as_text, csv_text, text_table, text_tables
from rebalance_spark.choices import Statistic
from rebalance_spark.commands.options import CONF_HELP, MASTER_HELP, is_local, pairs, session_of_a_command

if TYPE_CHECKING:
    from rebalance_spark.findings import Findings


_SHOWN = (Statistic.mean, Statistic.p95)


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="What `rebalance-lab score` wrote.")],
    output: Annotated[
        Literal["table", "csv", "html"], typer.Option("--format", help="How to print it.")
    ] = "table",
    statistic: Annotated[
        list[Statistic] | None,
        typer.Option(
            "--stat",
            metavar="STATISTIC",
            help=f"For the table: {', '.join(Statistic)}; repeatable. The default is mean and p95.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="For the table: all metrics.")] = False,
    balance: Annotated[
        str, typer.Option(metavar="METRIC", help="The metric of the front beside the moves.")
    ] = "imbalance",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the page with plots here.")
    ] = None,
    master: Annotated[str | None, typer.Option(metavar="URL", help=MASTER_HELP)] = None,
    conf: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=CONF_HELP)] = None,
) -> None:
    """Summarize scores by strategy: a table, CSV with every figure, or a static page with plots.

    Percentiles are exact, over the scenarios that are ok. The front has the strategies that no other strategy
    beats in both moves and balance, over the scenarios that every strategy has figures for.
    """
    from rebalance_spark.chunks import existing_scores
    from rebalance_spark.findings import found_in

    check_path(html)
    nothing = InputError(folder, "no scores", "a folder that `rebalance-lab score` wrote")
    if is_local(folder) and not Path(folder).is_dir():
        raise nothing
    spark = session_of_a_command(master, pairs(conf, "--conf"))
    scores = existing_scores(spark, folder)
    if scores is None:
        raise nothing
    findings = found_in(scores, balance)
    if html is not None:
        write_whole(html, _page(findings).encode())
    if output == "html":
        print_document(_page(findings))
    elif output == "csv":
        print_document(as_csv(findings))
    else:
        print_findings(findings, statistic or list(_SHOWN), stdout(), everything=everything)


def _page(findings: "Findings") -> str:
    from rebalance_spark.page import as_page

    return as_page(findings)


def as_csv(findings: "Findings") -> str:
    """Write a row for each strategy and metric, with every statistic and the worst scenario."""
    head = ["strategy", "metric", "rows", "mean", "p50", "p95", "p99", "worst", "worst_scenario"]
    rows = [
        [strategy, metric, f.rows, f.mean, f.p50, f.p95, f.p99, f.worst, f.worst_scenario]
        for strategy in findings.strategies
        for metric in findings.metrics
        if (f := findings.figures.get((metric, strategy))) is not None
    ]
    return csv_text(head, rows)


def print_findings(
    findings: "Findings", statistics: list[Statistic], console: Console, *, everything: bool
) -> None:
    """Print tables of the headlines, or of all metrics.

    Strategies that are too wide for the terminal follow in further tables below.
    """
    from rebalance_spark.findings import figures_table

    head = f"{findings.scenarios:,} scenarios, {' and '.join(findings.fidelities)} fidelity"
    console.print(Text.assemble((head, "bold"), f" ({'; '.join(findings.versions)})"))
    if findings.failed:
        console.print(f"{findings.failed:,} rows have no figures (error or timeout); they do not count")
    metrics = findings.metrics if everything else findings.headlines
    for statistic in statistics:
        for table in text_tables(*figures_table(findings, statistic, metrics), console.width):
            console.print()
            console.print(table)
    if findings.front:
        console.print()
        title = f"front, of {findings.common:,} scenarios"
        console.print(text_table([title, "moved_partitions", findings.balance], _front(findings)))
    if rest := len(findings.metrics) - len(metrics):
        console.print(f"\n--all shows {rest} more metrics")


def _front(findings: "Findings") -> list[list[Cell]]:
    return [
        [
            Cell(point.strategy, "bold") if point.on_front else Cell(f"({point.strategy})", "dim"),
            Cell(as_text(point.moves)),
            Cell(as_text(point.balance)),
        ]
        for point in findings.front
    ]
