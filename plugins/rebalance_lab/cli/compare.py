"""``rebalance-lab compare``: several strategies on one scenario, in one table."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from rebalance_lab.cli.running import Task, run_grid
from rebalance_lab.cli.trials import Trials
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import setting_in
from rebalance_lab.scenarios.variants import Variant, expanded, variants
from rebalance_lab.traces.trace import Trace, read_trace
from rebalance_lab.verdicts.as_seen import Seen, held_against
from rebalance_lab.verdicts.calibrated import worth
from rebalance_lab.verdicts.choice import Decision
from rebalance_lab.verdicts.grid import Grid, Setup
from rebalance_lab.verdicts.reasons import parts_under
from rebalance_lab.verdicts.rule import fewest_pairs
from rebalance_lab.verdicts.runs import Failure, Run, faults_of, figures_of, loads_of
from rebalance_lab.verdicts.screen import (
    Screen,
    all_tables,
    by_group,
    decided,
    definition,
    head,
    left_out,
    legend,
    rest,
    screen_of,
    table,
)
from rebalance_lab.verdicts.screen_formats import as_csv, as_document, as_page
from rebalance_lab.verdicts.tables import json_text
from rebalance_lab.verdicts.words import in_seeds, listed_names

DEFAULT_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")

SEEDS = 10
MOST_EVENTS = 80_000
"""Without `--seeds` there are `SEEDS`, or fewer if all runs together have more events than this, as estimated
from the first seed: about ten seconds of work. If they are too few to know an order, there is one seed."""

_WRITERS: Mapping[str, Callable[[Screen], str]] = {
    "json": lambda screen: json_text(as_document(screen)),
    "csv": as_csv,
    "html": as_page,
}
_UNREAD = "-", None
"""Stands for the value of a setting that a strategy does not read."""

_WIDEST = 100
"""The most columns of lines."""
_MOST_FAULTS = 2
"""The most reasons to leave out strategies that are printed without `--all`."""

_Runs: TypeAlias = Sequence[tuple[Variant, dict[int, Run]]]
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
    spread: Annotated[
        bool, typer.Option("--spread", help="Show the least and the greatest figure of the seeds.")
    ] = False,
    output: Annotated[
        Literal["table", "json", "csv", "html"], typer.Option("--format", help="How to print the figures.")
    ] = "table",
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each run's trace here.", file_okay=False),
    ] = None,
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
    seed: options.SeedOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT,
    explain: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--explain-metrics", is_eager=True, callback=_explain, help="Define all metrics."),
    ] = False,  # its callback ends the command
) -> None:
    """Run strategies on a scenario, through the real group protocol, and compare their costs.

    The verdict says what to keep or to choose. Each strategy, and with `--set` each combination, is a row; ✓
    and ✗ mark figures that are known to be better or worse than now. `--explain-metrics` defines all metrics.
    """
    real = None if as_seen is None else _real(as_seen)
    opened = options.opened_scenario(scenario, seed)
    strategies = expanded(strategy or options.own_strategy(opened, DEFAULT_STRATEGIES))
    if real is not None:  # what the others are compared with
        strategies = list(dict.fromkeys([real.strategy, *strategies]))
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

    def run(wanted: range, *, numbered: bool) -> list[dict[int, Run]]:
        rows = list(_tasks(opened, found, wanted, trace, every_message, numbered=numbered))
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
    if succeeded:
        seen = held_against(real, today, default_registry()) if real is not None and today else None
        screen = _screen(opened, entries, succeeded, [f.text for f in failures], seen, jobs, timeout)
        if output == "table":
            print_screen(screen, spread=spread, everything=everything)
        else:
            print_document(_WRITERS[output](screen))
    for failure in failures:
        complain(failure.text, traceback=failure.traceback)
    if failures or (succeeded and screen.faults):
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _screen(
    scenario: Scenario,
    entries: _Runs,
    succeeded: _Runs,
    errors: Sequence[str],
    seen: Seen | None,
    jobs: int | None,
    timeout: float,
) -> Screen:
    """Put the runs together, and try what the first lines and the line of the trial say."""
    registry = default_registry()
    names = list(dict.fromkeys(name for entry, _ in entries for name in entry.settings))
    setups = [_setup(entry, own, names) for entry, own in succeeded]
    (first, own), *_ = entries
    now = _now(scenario, first.strategy, setups)
    load = loads_of(list(succeeded[now][1].values()))
    partitions = 1 if load is None else load.partitions
    figures = [figures_of(runs) for _, runs in succeeded]
    grid = Grid.of(setups, figures, units=list(own), now=now, partitions=partitions)
    choice = decided(grid, seen)
    variant = succeeded[choice.chosen][0]
    trials = Trials(replace(scenario, config=variant.config), variant.strategy, jobs, timeout)
    is_told = (load is not None and load.is_high) or choice.decision is Decision.NOT_REPRODUCED
    strategies = [registry.strategy(setup.strategy) for setup in setups]
    return screen_of(
        scenario.name,
        grid,
        list(registry.metrics().values()),
        choice=choice,
        load=load,
        enough=trials.enough(grid, load),
        tries=[] if is_told else trials.remedy(grid, choice.chosen),
        know=[worth(scenario, strategies, registry)],
        errors=errors,
        seen=seen,
    )


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
    runs: Sequence[Mapping[int, Run]],
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


def _affordable_seeds(runs: Sequence[Run]) -> int:
    """Return how many seeds there are by default, from the runs of the first one.

    That depends on their events and not on the time that they took: it is the same on every machine. After
    an error there is one.
    """
    events = sum(run.events for run in runs)
    count = min(SEEDS, MOST_EVENTS // max(1, events))
    return 1 if count < fewest_pairs(len(runs) - 1) or any(run.error for run in runs) else count


def _tasks(
    scenario: Scenario,
    found: Sequence[Variant],
    seeds: range,
    folder: Path | None,
    every_message: bool,
    *,
    numbered: bool,
) -> Iterator[list[Task]]:
    """Yield the runs of each variant. If ``numbered``, the names of the traces have the seeds."""
    if folder is not None:
        _make_folder(folder)
    for variant in found:
        tasks = []
        for seed in seeds:
            path = None
            if folder is not None:
                number = [f"seed={seed}"] if numbered else []
                parts = [scenario.name, variant.strategy, *(f"{n}={v}" for n, v in variant.settings.items())]
                path = folder / f"{'.'.join(map(_file_name, [*parts, *number]))}.jsonl"
                check_path(path)
            each = replace(scenario, config=variant.config, seed=seed)
            tasks.append(Task(each, variant.strategy, path, every_message))
        yield tasks


def _setup(entry: Variant, runs: Mapping[int, Run], settings: Sequence[str]) -> Setup:
    registry = default_registry()
    values: dict[str, tuple[str, Any]] = {
        name: (entry.settings[name], entry.config[name]) if name in entry.settings else _UNREAD
        for name in settings
    }
    strategy = registry.strategy(entry.strategy)
    protocol = registry.protocol(strategy.protocol)
    return Setup(
        entry.strategy,
        values,
        faults_of(runs),
        parts_under(protocol, delayed=strategy.delay_ms is not None),
        is_kafka=protocol.on_kafka and strategy.delay_ms is None,
    )


def _now(scenario: Scenario, strategy: str, setups: Sequence[Setup]) -> int:
    """Return the position of the first strategy with the settings of the scenario, or of the first one."""
    registry = default_registry()
    for number, setup in enumerate(setups):
        settings = {name: value for name, (_, value) in setup.settings.items() if value is not None}
        values = (setting_in(scenario.config, name, registry) for name in settings)
        if setup.strategy == strategy and list(settings.values()) == list(values):
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


def print_screen(screen: Screen, *, spread: bool = False, everything: bool = False) -> None:
    """Print the title and the verdict, the table, and one thing each to know why, to try and to know."""
    console = stdout()
    width = min(text_width(console), _WIDEST)
    first, *verdict = head(screen)
    name, dot, rest_of_title = first.partition(" · ")
    console.print(Text("\n").join(Text.assemble((name, "bold"), dot, rest_of_title).wrap(console, width)))
    console.print()
    print_hanging(" ".join(verdict), console, "  ", "bold", width)
    for made in all_tables(screen, spread=True) if everything else [table(screen, spread=spread)]:
        console.print(Text(f"\n{made.title}" if made.title else "", style="bold"))
        print_tables(made, console)
    for reason in left_out(screen)[: None if everything else _MOST_FAULTS]:
        print_hanging(reason, console, "  ", "bold red", width)
    console.print()
    for label, text in rest(screen):
        print_hanging(f"{label:<5} {text}", console, " " * 6, "", width)
    more = "" if everything else "--spread --all"
    line = " · ".join(filter(None, [legend(screen), more]))
    print_hanging(f"{' ' * 6}{line}" if line else "", console, " " * 6, "dim", width)


def explain_metrics(metrics: Sequence[MetricSpec], console: Console) -> None:
    """Print the definitions of metrics, by groups."""
    console.print("Lower is better, unless a definition says otherwise.")
    for group, own in by_group(metrics).items():
        console.print(Text(f"\n{group}", style="bold"))
        for metric in own:
            print_hanging(": ".join(definition(metric)), console)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            "--trace", f"{folder} ({error.strerror})", "a folder that can be written to"
        ) from None


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.+=-]+", "_", text)
