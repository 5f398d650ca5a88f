"""A report, and what is known of one group, on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from rebalance_lab.verdicts.tables import Table, text_tables
from rebalance_spark import report_tables as tables
from rebalance_spark.choices import Statistic
from rebalance_spark.findings import Findings
from rebalance_spark.sentences import notes, title_of, to_do, verdict
from rebalance_spark.sheet import Sheet


def print_findings(
    findings: Findings, statistics: Sequence[Statistic], console: Console, *, everything: bool
) -> None:
    """Print the verdict, and tables of the headlines, or of all metrics.

    Strategies that are too wide for the terminal follow in further tables below.
    """
    console.print(Text.assemble((title_of(findings), "bold"), f" ({'; '.join(findings.versions)})"))
    for sentence in findings.left_out:
        console.print(Text(sentence))
    if lines := verdict(findings):
        console.print()
    for line in lines:
        console.print(Text(line, "bold"))
    if found := to_do(findings):
        console.print()
    for line in found:
        console.print(Text(line))
    if found:
        console.print()
    for line in notes(findings):
        console.print(Text(line))
    metrics = findings.metrics if everything else findings.headlines
    shown = [tables.figures_table(findings, statistic, metrics) for statistic in statistics]
    shown += [tables.differences_table(findings, metrics)] if findings.advice is not None else []
    shown += tables.parts_tables(findings)
    shown += [tables.front_table(findings)] if findings.front else []
    _print_tables(shown, console)
    if findings.unread or len(findings.metrics) > len(metrics):
        console.print("\n--all shows the other metrics")


def print_sheet(sheet: Sheet, console: Console) -> None:
    """Print what is known of one group."""
    for sentence in sheet.sentences:
        console.print(Text(sentence, "bold" if sentence is sheet.sentences[0] else ""))
    _print_tables(sheet.tables, console)
    if sheet.steps:
        console.print()
    for step in sheet.steps:
        console.print(Text(step))


def _print_tables(shown: Sequence[Table], console: Console) -> None:
    """Print tables. Columns that are too wide for the terminal follow below."""
    for table in shown:
        for part in text_tables([table.title, *table.head[1:]], table.rows, console.width, table.headings):
            console.print()
            console.print(part)
