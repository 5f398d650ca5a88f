"""``rebalance-lab compare``: several strategies on one scenario, in one table."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from coordinator_core.cli.output import ExitStatus, check_path, complain, stdout, write_whole
from coordinator_core.cli.running import DEFAULT_TIMEOUT, TIMEOUT_HELP, Ran, available_cores, run_all
from coordinator_core.cli.scenarios import SCENARIO_HELP, SEED_HELP, opened_scenario
from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from coordinator_core.reports.comparison import Comparison, as_csv, as_html, as_json, as_text

DEFAULT_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")


class Format(StrEnum):
    """How to print it."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"


_WRITERS = {Format.json: as_json, Format.csv: as_csv, Format.html: as_html}


def compare(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            help="A strategy: an assignor, with +options and +modifiers (range+static); file.py:Name is an"
            " assignor that is not installed. Give it several times; "
            f"{', '.join(DEFAULT_STRATEGIES)} when not given.",
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print the figures.")] = Format.table,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each run's trace here, as JSON Lines.", file_okay=False),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes at once; the cores there are.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help=SEED_HELP)] = None,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=TIMEOUT_HELP)] = DEFAULT_TIMEOUT,
) -> None:
    """Run strategies on a scenario, through the real group protocol, and compare what they cost.

    Each metric is a row, each strategy a column; the best figure of a row is bold. `rebalance-lab plugins`
    says what the metrics mean.
    """
    registry = default_registry()
    strategies = list(dict.fromkeys(strategy or DEFAULT_STRATEGIES))
    for name in strategies:
        registry.strategy(name)
    opened = opened_scenario(scenario, seed)
    paths: dict[str, Path] = {}
    if trace is not None:
        _make_folder(trace)
        paths = {s: trace / f"{_file_name(opened.name)}.{_file_name(s)}.jsonl" for s in strategies}
        for path in paths.values():
            check_path(path)
    ran = run_all(
        opened,
        strategies,
        jobs=jobs or available_cores(),
        keep_traces=trace is not None,
        timeout=timeout,
    )
    _print(opened.name, opened.seed, ran, output)
    for each in ran:
        if each.error:
            complain(f"strategy {each.strategy!r}: {each.error}")
        if each.trace is not None:
            write_whole(paths[each.strategy], each.trace.encode())
    if any(each.error for each in ran):
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _print(scenario: str, seed: int, ran: list[Ran], output: Format) -> None:
    figures = {each.strategy: each.figures for each in ran if each.figures is not None}
    if not figures:
        return
    comparison = Comparison(scenario, seed, list(default_registry().metrics().values()), figures)
    if output is Format.table:
        print_comparison(comparison)
    else:
        stdout().out(_WRITERS[output](comparison).rstrip("\n"))


def print_comparison(comparison: Comparison) -> None:
    """A table as wide as the terminal allows: strategies that do not fit beside go below one another."""
    console = stdout()
    console.print(Text.assemble((comparison.scenario, "bold"), f", seed {comparison.seed}"))
    names = list(comparison.figures)
    room = console.width - max((len(metric.name) for metric in comparison.shown), default=0)
    while names:
        shown, width = [names.pop(0)], 0
        width = _column_width(comparison, shown[0])
        while names and width + _column_width(comparison, names[0]) <= room:
            width += _column_width(comparison, names[0])
            shown.append(names.pop(0))
        console.print(_table(comparison, shown))
        if names:
            console.print()


def _column_width(comparison: Comparison, strategy: str) -> int:
    figures = comparison.figures[strategy].values()
    return 2 + max(len(strategy), *(len(as_text(value)) for value in figures))


def _table(comparison: Comparison, strategies: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for name in strategies:
        table.add_column(name, justify="right", no_wrap=True)
    for metric in comparison.shown:
        best = comparison.best(metric)
        cells = []
        for name in strategies:
            value = comparison.figures[name][metric.name]
            cells.append(Text(as_text(value), style="bold green" if value == best else ""))
        table.add_row(metric.name, *cells)
    return table


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            "--trace", f"{folder} ({problem.strerror})", "a folder that can be written to"
        ) from None


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.+=-]+", "_", text)
