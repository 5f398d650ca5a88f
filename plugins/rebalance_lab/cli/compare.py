"""``rebalance-lab compare``: several strategies on one scenario, in one table."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import Console
from rich.text import Text

from coordinator_core.errors import InputError
from coordinator_core.protocol.events import MemberStarted
from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli import options
from rebalance_lab.cli.files import check_path
from rebalance_lab.cli.output import (
    ExitStatus,
    complain,
    print_document,
    print_hanging,
    print_tables,
    stdout,
    text_width,
    warn,
)
from rebalance_lab.cli.remedies import with_remedies
from rebalance_lab.cli.running import Task, run_grid
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import setting_in
from rebalance_lab.scenarios.variants import Variant, expanded, variants
from rebalance_lab.simulation.planning.starting import started
from rebalance_lab.traces.trace import Trace, read_trace
from rebalance_lab.verdicts import comparison_tables
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.as_seen import held_against
from rebalance_lab.verdicts.calibrated import worth
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.comparison_formats import as_csv, as_html, as_json
from rebalance_lab.verdicts.grid import Candidate, Failure, StrategyRun, candidate_of, load_of
from rebalance_lab.verdicts.reasons import parts_under
from rebalance_lab.verdicts.rule import FEWEST_PAIRS
from rebalance_lab.verdicts.words import in_seeds, listed_names

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

_Runs: TypeAlias = Sequence[tuple[Variant, dict[int, StrategyRun]]]
"""Strategies with settings, and the run of each seed."""


def _explain(wanted: bool) -> None:
    if wanted:
        explain_metrics(list(default_registry().metrics().values()), stdout())
        raise typer.Exit


def compare(
    scenario: options.ScenarioArgument,
    strategy: Annotated[
        list[str] | None,
        options.strategy_option(
            "A strategy: an assignor, with +options and +modifiers (range+static); file.py:Name is an"
            " assignor that is not installed. Alternatives in braces are several strategies"
            " (optimal+tolerance={1%,2%}). Give it several times; "
            f"{', '.join(DEFAULT_STRATEGIES)} when not given, and before them the one that the scenario"
            " names in Kafka's words."
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
        options.seeds_option(
            f"Run N seeds: the scenario's and those that follow it; default: {SEEDS}, fewer if the runs"
            " are long, one with `--seed`."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all metrics, by groups.")] = False,
    output: Annotated[
        Literal["table", "json", "csv", "html"], typer.Option("--format", help="How to print the figures.")
    ] = "table",
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each run's trace here.", file_okay=False),
    ] = None,
    trace_format: options.TraceFormatOption = "jsonl",
    as_seen: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE",
            help="The trace of the real group (diagnose or watch --trace): the strategy that it ran is"
            " simulated, too, and held against what was seen.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None, options.jobs_option("none for little work, else as many as there are cores")
    ] = None,
    every_message: options.EveryMessageOption = False,
    start: Annotated[
        str,
        typer.Option(
            metavar="ASSIGNOR",
            help="A running group starts with the assignment of ASSIGNOR, in place of that of its owners.",
        ),
    ] = "",
    seed: options.SeedOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT,
    explain: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--explain-metrics", is_eager=True, callback=_explain, help="Define all metrics."),
    ] = False,  # its callback ends the command
) -> None:
    """Run strategies on a scenario, through the real group protocol, and compare their costs.

    Each metric is a row, each strategy a column; with `--set` each combination is a row. A star marks the
    figures that are better than the others. `--explain-metrics` defines the metrics.
    """
    real = None if as_seen is None else _real(as_seen)
    opened = options.opened_scenario(scenario, seed)
    strategies = expanded(strategy or options.own_strategy(opened, DEFAULT_STRATEGIES))
    if real is not None:  # what the others are compared with
        strategies = list(dict.fromkeys([real.strategy, *strategies]))
    if start:
        opened = _started(opened, start)
    if real is not None:
        _check_members(opened, real)
    found = variants(
        strategies,
        settings or (),
        opened.config,
        default_registry(),
        migrates=opened.migrates,
    )

    options.tell_idle(opened, strategies, found[0].config)

    def run(wanted: range, *, numbered: bool) -> list[dict[int, StrategyRun]]:
        is_perfetto = trace_format == "perfetto"
        rows = list(
            _tasks(opened, found, wanted, trace, every_message, numbered=numbered, perfetto=is_perfetto)
        )
        done = run_grid(rows, jobs=jobs, timeout=timeout)
        return [dict(zip(wanted, row, strict=True)) for row in done]

    first = opened.seed
    runs = run(range(first, first + (seeds or 1)), numbered=(seeds or 1) > 1)
    if seeds is None and seed is None and (count := _affordable_seeds([own[first] for own in runs])) > 1:
        more = run(range(first + 1, first + count), numbered=True)
        runs = [{**own, **others} for own, others in zip(runs, more, strict=True)]
    today = () if real is None else _today(opened, real, found, runs, jobs=jobs, timeout=timeout)
    entries = list(zip(found, runs, strict=True))
    failures = [*_failed_runs(entries), *_failed_metrics(entries)]
    succeeded = [
        (entry, own) for entry, own in entries if any(run.figures is not None for run in own.values())
    ]
    comparison = _comparison(opened, entries, succeeded, failures)
    if real is not None and today:
        comparison = replace(comparison, seen=held_against(real, today, default_registry()))
    compared = [(each.strategy, _scenarios(opened, each, own)) for each, own in succeeded]
    comparison = with_remedies(comparison, compared, jobs=jobs, timeout=timeout)
    if comparison.candidates and output == "table":
        print_comparison(comparison, everything=everything)
    elif comparison.candidates:
        print_document(_WRITERS[output](comparison))
    for failure in failures:
        complain(failure.text, traceback=failure.traceback)
    if failures or comparison_tables.faults(comparison):
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _started(scenario: Scenario, assignor: str) -> Scenario:
    """Return a scenario whose running group starts with the assignment of an assignor.

    Raises:
        InputError: if there is no such assignor, or no running group.
    """
    registry = default_registry()
    made = registry.build(registry.strategy(assignor, what="assignor"))
    if not scenario.running:
        expected = "a running group, whose members have `owned`: another one starts without an assignment"
        raise InputError("--start", f"none in {scenario.name}", expected)
    return started(scenario, made)


def _check_members(scenario: Scenario, real: Trace) -> None:
    """Check that a scenario has members of the real group that it is held against.

    Raises:
        InputError: if it has none of them.
    """
    if real.scenario != scenario.name:
        warn(f"--as-seen: the trace is of {real.scenario}, the scenario of {scenario.name}")
    clients = {line.event.client for line in real.events if isinstance(line.event, MemberStarted)}
    known = [member.id for member in scenario.members]
    if clients and clients.isdisjoint(known):
        found = f"the trace of {real.scenario}, with {listed_names(sorted(clients), 3)}"
        raise InputError("--as-seen", found, f"that of {scenario.name}, with {listed_names(known, 3)}")


def _real(path: Path) -> Trace:
    """Read the trace of a real group.

    Raises:
        InputError: if it is none, or does not tell the strategy.
    """
    trace = read_trace(path)
    try:
        default_registry().strategy(trace.strategy)
    except InputError as error:
        expected = 'the trace of a group whose assignor is known: write it as "strategy" in the first line'
        raise InputError(f"{path}: strategy", error.found, expected) from None
    return trace


def _today(
    scenario: Scenario,
    real: Trace,
    found: Sequence[Variant],
    runs: Sequence[Mapping[int, StrategyRun]],
    *,
    jobs: int | None,
    timeout: float,
) -> list[Mapping[str, float]]:
    """Return the figures of the strategy that a real group ran, with the settings of the scenario."""
    own = [o for v, o in zip(found, runs, strict=True) if v.strategy == real.strategy and not v.settings]
    if own:
        done = list(own[0].values())
    else:  # --set has other settings
        tasks = [Task(replace(scenario, seed=seed), real.strategy) for seed in runs[0]]
        (done,) = run_grid([tasks], jobs=jobs, timeout=timeout)
    return [run.figures for run in done if run.figures is not None]


def _named(variant: Variant) -> str:
    """Return the strategy and the settings, as errors name them."""
    settings = " ".join(f"{name}={text}" for name, text in variant.settings.items())
    return f"strategy {variant.strategy!r}" + (f" with {settings}" if settings else "")


def _scenarios(scenario: Scenario, variant: Variant, seeds: Iterable[int]) -> list[Scenario]:
    return [replace(scenario, config=variant.config, seed=seed) for seed in seeds]


def _affordable_seeds(runs: Sequence[StrategyRun]) -> int:
    """Return how many seeds there are by default, from the runs of the first one.

    That depends on their events and not on the time that they took: it is the same on every machine. After
    an error there is one.
    """
    events = sum(run.events for run in runs)
    count = min(SEEDS, MOST_EVENTS // max(1, events))
    return 1 if count < FEWEST_PAIRS or any(run.error for run in runs) else count


def _tasks(
    scenario: Scenario,
    found: Sequence[Variant],
    seeds: range,
    folder: Path | None,
    every_message: bool,
    *,
    numbered: bool,
    perfetto: bool,
) -> Iterator[list[Task]]:
    """Yield the runs of each variant. If ``numbered``, the names of the traces have the seeds."""
    if folder is not None:
        _make_folder(folder)
    for variant in found:
        tasks = []
        for each in _scenarios(scenario, variant, seeds):
            path = None
            if folder is not None:
                number = [f"seed={each.seed}"] if numbered else []
                parts = [scenario.name, variant.strategy, *(f"{n}={v}" for n, v in variant.settings.items())]
                ending = "json" if perfetto else "jsonl"
                path = folder / f"{'.'.join(map(_file_name, [*parts, *number]))}.{ending}"
                check_path(path)
            tasks.append(Task(each, variant.strategy, path, every_message, perfetto))
        yield tasks


def _comparison(
    scenario: Scenario, entries: _Runs, succeeded: _Runs, failures: Sequence[Failure]
) -> Comparison:
    """Put the runs together. ``succeeded`` are the entries with a run that succeeded."""
    names = list(dict.fromkeys(name for entry, _ in entries for name in entry.settings))
    candidates = [_candidate(entry, own, names) for entry, own in succeeded]
    load = load_of(
        {candidate.label(): own for candidate, (_, own) in zip(candidates, succeeded, strict=True)}
    )
    (first, own), *_ = entries
    return Comparison(
        scenario.name,
        list(own),
        list(default_registry().metrics().values()),
        candidates,
        [failure.text for failure in failures],
        load=load,
        now=_now(scenario, first.strategy, candidates),
        worth=worth(
            scenario, [default_registry().strategy(c.strategy) for c in candidates], default_registry()
        ),
    )


def _candidate(entry: Variant, runs: Mapping[int, StrategyRun], settings: Sequence[str]) -> Candidate:
    registry = default_registry()
    values: dict[str, tuple[str, Any]] = {
        name: (entry.settings[name], entry.config[name]) if name in entry.settings else _UNREAD
        for name in settings
    }
    strategy = registry.strategy(entry.strategy)
    parts = parts_under(registry.protocol(strategy.protocol), delayed=strategy.delay_ms is not None)
    return replace(candidate_of(entry.strategy, runs), settings=values, parts=parts)


def _now(scenario: Scenario, strategy: str, candidates: Sequence[Candidate]) -> int:
    """Return the position of the first strategy with the settings of the scenario, or of the first one."""
    registry = default_registry()
    for number, candidate in enumerate(candidates):
        settings = {name: value for name, (_, value) in candidate.settings.items() if value is not None}
        values = (setting_in(scenario.config, name, registry) for name in settings)
        if candidate.strategy == strategy and list(settings.values()) == list(values):
            return number
    return 0


def _failed_runs(entries: _Runs) -> Iterator[Failure]:
    """Yield the errors of runs: an error of an entry once."""
    for entry, own in entries:
        for text in dict.fromkeys(run.error for run in own.values() if run.error):
            failed = {seed: run for seed, run in own.items() if run.error == text}
            some = in_seeds(failed, own)
            traceback = next(iter(failed.values())).traceback
            yield Failure(f"{_named(entry)}: {text}{f' ({some})' * bool(some)}", traceback)


def _failed_metrics(entries: _Runs) -> Iterator[Failure]:
    """Yield an error for each metric whose code failed: the first one, and the number of runs."""
    runs = [run for _, own in entries for run in own.values()]
    for name in dict.fromkeys(name for run in runs for name in run.failed):
        found = [run.failed[name] for run in runs if name in run.failed]
        yield Failure(f"{found[0].text}, in {len(found)} of {len(runs)} runs", found[0].traceback)


def print_comparison(comparison: Comparison, *, everything: bool = False) -> None:
    """Print tables and their legend. What is too wide for the terminal follows in further tables below."""
    console = stdout()
    width = text_width(console)
    console.print(Text.assemble((comparison.scenario, "bold"), f", {comparison_tables.title_of(comparison)}"))
    for answer in answers(comparison):
        print_hanging(answer, console)
    console.print()
    with_units = console.width >= _NARROWEST_WITH_UNITS
    for table in comparison_tables.tables_of(comparison, everything=everything, units=with_units):
        if table.title:
            console.print(Text(f"\n{table.title}", style="bold"))
        print_tables(table, console)
    _print_lines(console, [comparison_tables.front_line(comparison)], "", width)
    _print_lines(console, comparison_tables.faults(comparison), "bold red", width)
    shown = comparison_tables.metrics_of(comparison, everything=everything)
    rest = len(comparison.shown) - len(shown)
    all_shown = f"--all shows {rest} more metrics, " if rest else ""
    more = f"{all_shown}--explain-metrics defines all"
    few = "" if comparison.is_decided else f"--seeds {FEWEST_PAIRS} runs as many seeds as an order needs"
    _print_lines(console, [*comparison_tables.signs(comparison), few, more], "dim", width)


def _print_lines(console: Console, lines: Sequence[str], style: str, width: int) -> None:
    """Print lines that are not empty, below an empty line."""
    written = [line for line in lines if line]
    if written:
        console.print()
    for line in written:
        console.print(Text("\n".join(map(str.rstrip, line.splitlines())), style=style), width=width)


def explain_metrics(metrics: Sequence[MetricSpec], console: Console) -> None:
    """Print the definitions of metrics, by groups."""
    console.print("Lower is better, unless a definition says otherwise.")
    for group, own in comparison_tables.by_group(metrics).items():
        console.print(Text(f"\n{group}", style="bold"))
        for definition in comparison_tables.definitions(own):
            print_hanging(": ".join(definition), console)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            "--trace", f"{folder} ({error.strerror})", "a folder that can be written to"
        ) from None


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.+=-]+", "_", text)
