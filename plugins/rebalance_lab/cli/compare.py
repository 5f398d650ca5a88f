"""``rebalance-lab compare``: several strategies on one scenario, in one table."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import nan
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from coordinator_core.errors import InputError
from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.files import check_path
from rebalance_lab.cli.output import (
    ExitStatus,
    complain,
    print_document,
    print_table,
    stdout,
    text_width,
)
from rebalance_lab.cli.remedies import with_remedies
from rebalance_lab.cli.running import (
    DEFAULT_TIMEOUT,
    EVERY_MESSAGE_HELP,
    TIMEOUT_HELP,
    Failure,
    StrategyRun,
    Task,
    run_all,
)
from rebalance_lab.cli.scenarios import SCENARIO_HELP, SEED_HELP, opened_scenario, strategy_option
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import setting_in
from rebalance_lab.scenarios.variants import expanded, variants
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.comparison import Candidate, Comparison, Figure
from rebalance_lab.verdicts.comparison_formats import as_csv, as_html, as_json
from rebalance_lab.verdicts.comparison_tables import (
    by_group,
    definitions,
    faults,
    front_line,
    hanging,
    metrics_of,
    signs,
    tables_of,
    title_of,
)
from rebalance_lab.verdicts.load import overload_of_all
from rebalance_lab.verdicts.reasons import parts_under
from rebalance_lab.verdicts.rule import FEWEST_PAIRS
from rebalance_lab.verdicts.tables import text_tables
from rebalance_lab.verdicts.words import findings_of_seeds, in_seeds

DEFAULT_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")

SEEDS = 10
MOST_EVENTS = 80_000
"""Without `--seeds` there are `SEEDS`, or fewer if all runs together have more events than this, as estimated
from the first seed: about ten seconds of work. If they are too few to know an order, there is one seed."""

_WRITERS: Mapping[str, Callable[[Comparison], str]] = {"json": as_json, "csv": as_csv, "html": as_html}
_UNREAD = "-", None
"""Stands for the value of a setting that a strategy does not read."""

_NARROWEST_WITH_UNITS = 100
"""Columns of a terminal on which the units of metrics have a column of their own."""


@dataclass(frozen=True)
class _Entry:
    """A strategy with a combination of settings, and its scenario for each seed.

    A setting with several values that the strategy does not read is left out.
    """

    strategy: str
    settings: Mapping[str, str]
    scenarios: Sequence[Scenario]

    @property
    def label(self) -> str:
        """The strategy and the settings, as errors name them."""
        settings = " ".join(f"{name}={text}" for name, text in self.settings.items())
        return f"strategy {self.strategy!r}" + (f" with {settings}" if settings else "")


def _explain(wanted: bool) -> None:
    if wanted:
        explain_metrics(list(default_registry().metrics().values()), stdout())
        raise typer.Exit


def compare(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)],
    strategy: Annotated[
        list[str] | None,
        strategy_option(
            "A strategy: an assignor, with +options and +modifiers (range+static); file.py:Name is an"
            " assignor that is not installed. Alternatives in braces are several strategies"
            " (optimal+tolerance={1%,2%}). Give it several times; "
            f"{', '.join(DEFAULT_STRATEGIES)} when not given."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=V1,V2",
            help="Values of a setting under `config`, in place of the scenario's. Give it several times;"
            " every strategy is run with every combination of the values.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help=f"Run N seeds: the scenario's and those that follow it; default: {SEEDS}, fewer if the runs"
            " are long, one with `--seed`.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all metrics, by groups.")] = False,
    output: Annotated[
        Literal["table", "json", "csv", "html"], typer.Option("--format", help="How to print the figures.")
    ] = "table",
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each run's trace here, as JSON Lines.", file_okay=False),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="The number of processes; default: none for little work, else as many as there are cores.",
        ),
    ] = None,
    every_message: Annotated[bool, typer.Option("--every-message", help=EVERY_MESSAGE_HELP)] = False,
    seed: Annotated[int | None, typer.Option(min=0, help=SEED_HELP)] = None,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=TIMEOUT_HELP)] = DEFAULT_TIMEOUT,
    explain: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--explain-metrics", is_eager=True, callback=_explain, help="Define all metrics."),
    ] = False,  # its callback ends the command
) -> None:
    """Run strategies on a scenario, through the real group protocol, and compare their costs.

    Each metric is a row, each strategy a column; with `--set` each combination is a row. A star marks the
    figures that are better than the others. `--explain-metrics` defines the metrics.
    """
    registry = default_registry()
    strategies = expanded(strategy or DEFAULT_STRATEGIES)
    opened = opened_scenario(scenario, seed)
    entries = _entries(opened, strategies, settings or (), range(opened.seed, opened.seed + (seeds or 1)))
    tasks = _tasks(entries, trace, every_message, numbered=seeds is not None and seeds > 1)
    runs = run_all(tasks, jobs=jobs, timeout=timeout)
    if seeds is None and seed is None and (count := _affordable_seeds(runs)) > 1:
        more = _entries(opened, strategies, settings or (), range(opened.seed + 1, opened.seed + count))
        tasks = _tasks(more, trace, every_message, numbered=True)
        entries, runs = _joined(entries, runs, more, run_all(tasks, jobs=jobs, timeout=timeout))
    failures = [*_failed_runs(entries, runs), *_failed_metrics(runs)]
    comparison = _comparison(opened, list(registry.metrics().values()), entries, runs, failures)
    compared = [
        (each.strategy, each.scenarios) for each, own in _by_entry(entries, runs) if _has_figures(own)
    ]
    comparison = with_remedies(comparison, compared, jobs=jobs, timeout=timeout)
    if comparison.candidates and output == "table":
        print_comparison(comparison, everything=everything)
    elif comparison.candidates:
        print_document(_WRITERS[output](comparison))
    for failure in failures:
        complain(failure.text, traceback=failure.traceback)
    if failures or faults(comparison):
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _entries(
    scenario: Scenario, strategies: Sequence[str], settings: Sequence[str], seeds: range
) -> list[_Entry]:
    where = f"scenario {scenario.name!r}: config"
    return [
        _Entry(
            variant.strategy,
            variant.settings,
            [replace(scenario, config=variant.config, seed=seed) for seed in seeds],
        )
        for variant in variants(strategies, settings, scenario.config, where, default_registry())
    ]


def _affordable_seeds(runs: Sequence[StrategyRun]) -> int:
    """Return how many seeds there are by default, from the runs of the first one.

    That depends on their events and not on the time that they took: it is the same on every machine. After
    an error there is one.
    """
    events = sum(run.events for run in runs)
    count = min(SEEDS, MOST_EVENTS // max(1, events))
    return 1 if count < FEWEST_PAIRS or any(run.error for run in runs) else count


def _joined(
    entries: Sequence[_Entry],
    runs: Sequence[StrategyRun],
    more: Sequence[_Entry],
    more_runs: Sequence[StrategyRun],
) -> tuple[list[_Entry], list[StrategyRun]]:
    """Return the entries with the seeds of both, and their runs."""
    both = zip(_by_entry(entries, runs), _by_entry(more, more_runs), strict=True)
    joined, joined_runs = [], []
    for (entry, own), (other, others) in both:
        joined.append(replace(entry, scenarios=[*entry.scenarios, *other.scenarios]))
        joined_runs += [*own, *others]
    return joined, joined_runs


def _tasks(
    entries: Sequence[_Entry], folder: Path | None, every_message: bool, *, numbered: bool
) -> list[Task]:
    """Return the runs of all entries, those of an entry one after another.

    If ``numbered``, the names of the traces have the seeds.
    """
    if folder is not None:
        _make_folder(folder)
    tasks = []
    for entry in entries:
        for scenario in entry.scenarios:
            path = None
            if folder is not None:
                number = [f"seed={scenario.seed}"] if numbered else []
                parts = [scenario.name, entry.strategy, *(f"{n}={v}" for n, v in entry.settings.items())]
                path = folder / f"{'.'.join(map(_file_name, [*parts, *number]))}.jsonl"
                check_path(path)
            tasks.append(Task(scenario, entry.strategy, path, every_message))
    return tasks


def _comparison(
    scenario: Scenario,
    metrics: list[MetricSpec],
    entries: Sequence[_Entry],
    runs: Sequence[StrategyRun],
    failures: Sequence[Failure],
) -> Comparison:
    """Put the runs together. An entry without a run that succeeded is left out."""
    registry, candidates = default_registry(), []
    names = dict.fromkeys(name for entry in entries for name in entry.settings)
    for entry, own in _by_entry(entries, runs):
        if not _has_figures(own):
            continue
        figures = {
            m.name: Figure(tuple((run.figures or {}).get(m.name, nan) for run in own)) for m in metrics
        }
        config = entry.scenarios[0].config
        settings = {n: (entry.settings[n], config[n]) if n in entry.settings else _UNREAD for n in names}
        strategy = registry.strategy(entry.strategy)
        parts = parts_under(registry.protocol(strategy.protocol), delayed=strategy.delay_ms is not None)
        found = {each.seed: run.findings for each, run in zip(entry.scenarios, own, strict=True)}
        candidates.append(Candidate(entry.strategy, figures, settings, findings_of_seeds(found), parts))
    seeds = [each.seed for each in entries[0].scenarios]
    errors = [failure.text for failure in failures]
    load = overload_of_all(
        [
            (f"{entry.label}, seed {each.seed}", run.load)
            for entry, own in _by_entry(entries, runs)
            for each, run in zip(entry.scenarios, own, strict=True)
            if run.figures is not None
        ]
    )
    now = _now(scenario, entries[0].strategy, candidates)
    return Comparison(scenario.name, seeds, metrics, candidates, errors, load=load, now=now)


def _now(scenario: Scenario, strategy: str, candidates: Sequence[Candidate]) -> int:
    """Return the position of the first strategy with the settings of the scenario, or of the first one."""
    registry = default_registry()
    for number, candidate in enumerate(candidates):
        settings = {name: value for name, (_, value) in candidate.settings.items() if value is not None}
        values = (setting_in(scenario.config, name, registry) for name in settings)
        if candidate.strategy == strategy and list(settings.values()) == list(values):
            return number
    return 0


def _has_figures(runs: Sequence[StrategyRun]) -> bool:
    return any(run.figures is not None for run in runs)


def _by_entry(
    entries: Sequence[_Entry], runs: Sequence[StrategyRun]
) -> Iterator[tuple[_Entry, Sequence[StrategyRun]]]:
    """Yield each entry with its runs, one for each seed."""
    rest = iter(runs)
    for entry in entries:
        yield entry, list(islice(rest, len(entry.scenarios)))


def _failed_runs(entries: Sequence[_Entry], runs: Sequence[StrategyRun]) -> Iterator[Failure]:
    """Yield the errors of runs: an error of an entry once."""
    for entry, own in _by_entry(entries, runs):
        for text in dict.fromkeys(run.error for run in own if run.error):
            seeds = [each.seed for each in entry.scenarios]
            some = in_seeds([seed for seed, run in zip(seeds, own, strict=True) if run.error == text], seeds)
            traceback = next(run.traceback for run in own if run.error == text)
            yield Failure(f"{entry.label}: {text}{f' ({some})' * bool(some)}", traceback)


def _failed_metrics(runs: Sequence[StrategyRun]) -> Iterator[Failure]:
    """Yield an error for each metric whose code failed: the first one, and the number of runs."""
    for name in dict.fromkeys(name for run in runs for name in run.failed):
        found = [run.failed[name] for run in runs if name in run.failed]
        yield Failure(f"{found[0].text}, in {len(found)} of {len(runs)} runs", found[0].traceback)


def print_comparison(comparison: Comparison, *, everything: bool = False) -> None:
    """Print tables and their legend. What is too wide for the terminal follows in further tables below."""
    console = stdout()
    width = text_width(console)
    console.print(Text.assemble((comparison.scenario, "bold"), f", {title_of(comparison)}"))
    for answer in answers(comparison):
        console.print(Text(hanging(answer, width)))
    console.print()
    with_units = console.width >= _NARROWEST_WITH_UNITS
    for table in tables_of(comparison, everything=everything, units=with_units):
        if table.title:
            console.print(Text(f"\n{table.title}", style="bold"))
        for number, part in enumerate(text_tables(table.head, table.rows, console.width, table.headings)):
            if number:
                console.print()
            print_table(part, console)
    _print_lines(console, [front_line(comparison)], "", width)
    _print_lines(console, faults(comparison), "bold red", width)
    shown = metrics_of(comparison, everything=everything)
    rest = len(comparison.shown) - len(shown)
    all_shown = f"--all shows {rest} more metrics, " if rest else ""
    more = f"{all_shown}--explain-metrics defines all"
    few = "" if comparison.is_decided else f"--seeds {FEWEST_PAIRS} runs as many seeds as an order needs"
    _print_lines(console, [*signs(comparison), few, more], "dim", width)


def _print_lines(console: Console, lines: Sequence[str], style: str, width: int) -> None:
    """Print lines that are not empty, below an empty line."""
    written = [line for line in lines if line]
    if written:
        console.print()
    for line in written:
        console.print(Text("\n".join(map(str.rstrip, line.splitlines())), style=style), width=width)


def explain_metrics(metrics: Sequence[MetricSpec], console: Console) -> None:
    """Print the definitions of metrics, by groups."""
    width = text_width(console)
    console.print("Lower is better, unless a definition says otherwise.")
    for group, own in by_group(metrics).items():
        console.print(Text(f"\n{group}", style="bold"))
        for definition in definitions(own):
            console.print(Text(hanging(": ".join(definition), width)))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            "--trace", f"{folder} ({error.strerror})", "a folder that can be written to"
        ) from None


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.+=-]+", "_", text)
