"""``rebalance-lab compare``: several strategies on one scenario, in one table."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from coordinator_core.cli.output import ExitStatus, check_path, complain, print_document, stdout, write_whole
from coordinator_core.cli.running import DEFAULT_TIMEOUT, TIMEOUT_HELP, StrategyRun, available_cores, run_all
from coordinator_core.cli.scenarios import SCENARIO_HELP, SEED_HELP, opened_scenario
from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from coordinator_core.reports.comparison import Comparison, as_csv, as_html, as_json, table_of
from coordinator_core.reports.tables import text_tables

DEFAULT_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")


_WRITERS: Mapping[str, Callable[[Comparison], str]] = {"json": as_json, "csv": as_csv, "html": as_html}


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
    output: Annotated[
        Literal["table", "json", "csv", "html"], typer.Option("--format", help="How to print the figures.")
    ] = "table",
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each run's trace here, as JSON Lines.", file_okay=False),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="The number of processes; default: one per core."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help=SEED_HELP)] = None,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=TIMEOUT_HELP)] = DEFAULT_TIMEOUT,
) -> None:
    """Run strategies on a scenario, through the real group protocol, and compare their costs.

    Each metric is a row, each strategy a column. The best figure of a row is bold. `rebalance-lab plugins`
    describes the metrics.
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
    runs = run_all(
        opened,
        strategies,
        jobs=jobs or available_cores(),
        keep_traces=trace is not None,
        timeout=timeout,
    )
    _print(opened.name, opened.seed, runs, output)
    for run in runs:
        if run.error:
            complain(f"strategy {run.strategy!r}: {run.error}", traceback=run.traceback)
        if run.trace is not None:
            write_whole(paths[run.strategy], run.trace.encode())
    if any(run.error for run in runs):
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _print(scenario: str, seed: int, runs: list[StrategyRun], output: str) -> None:
    figures = {run.strategy: run.figures for run in runs if run.figures is not None}
    if not figures:
        return
    comparison = Comparison(scenario, seed, list(default_registry().metrics().values()), figures)
    if output == "table":
        print_comparison(comparison)
    else:
        print_document(_WRITERS[output](comparison))


def print_comparison(comparison: Comparison) -> None:
    """Print a table. Strategies that are too wide for the terminal follow in further tables below."""
    console = stdout()
    console.print(Text.assemble((comparison.scenario, "bold"), f", seed {comparison.seed}"))
    for number, table in enumerate(text_tables(*table_of(comparison), console.width)):
        if number:
            console.print()
        console.print(table)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "--trace", f"{folder} ({error.strerror})", "a folder that can be written to"
        ) from None


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.+=-]+", "_", text)
