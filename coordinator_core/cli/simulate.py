"""``rebalance-lab simulate``: one run, round by round."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from coordinator_core.cli.output import (
    ExitStatus,
    check_path,
    complain,
    give_up,
    print_document,
    stdout,
    write_whole,
)
from coordinator_core.cli.running import DEFAULT_TIMEOUT, TIMEOUT_HELP, run_all
from coordinator_core.cli.scenarios import SCENARIO_HELP, SEED_HELP, opened_scenario
from coordinator_core.protocol.events import PartitionMap
from coordinator_core.registry.registry import default_registry
from coordinator_core.reports.picture import trace_svg
from coordinator_core.reports.tables import json_text
from coordinator_core.traces.invariants import Invariants
from coordinator_core.traces.rounds import InitialGroup, Occurrence, Round, entries, rounds
from coordinator_core.traces.trace import Trace

MOST_LANES = 200


def simulate(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="A strategy: an assignor, with +options and +modifiers.")
    ] = "cooperative-sticky",
    output: Annotated[
        Literal["text", "json", "jsonl"],
        typer.Option("--format", help="Round by round in words, the rounds as JSON, or the whole trace."),
    ] = "text",
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the trace here, as JSON Lines.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the owners of partitions over time, as SVG."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help=SEED_HELP)] = None,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=TIMEOUT_HELP)] = DEFAULT_TIMEOUT,
) -> None:
    """Run one strategy on a scenario and describe it round by round.

    Each round has its generation, its causes, and the partitions that every member revoked, lost, was
    assigned and kept. The run is checked against the rules that hold in every run.
    """
    default_registry().strategy(strategy)
    check_path(trace)
    check_path(picture)
    opened = opened_scenario(scenario, seed)
    watch = Invariants()
    (run,) = run_all(opened, [strategy], jobs=1, keep_traces=True, timeout=timeout, watch=watch)
    if run.trace is None:
        error = f"strategy {strategy!r}: {run.error}"
        give_up(error, ExitStatus.SOME_INPUTS_FAILED, traceback=run.traceback)
    if trace is not None:
        write_whole(trace, run.trace.encode())
    if picture is not None:
        write_whole(picture, trace_svg(run.trace, most_lanes=MOST_LANES).encode())
    if output == "jsonl":
        print_document(run.trace.encode().decode())
    elif output == "json":
        print_document(json_text(rounds(run.trace)))
    else:
        print_run(run.trace, stdout())
    for violation in watch.violations:
        complain(f"a rule of the protocol was broken {violation}")
    if watch.violations:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def print_run(trace: Trace, console: Console) -> None:
    """Print a run as lines of text."""
    started, ended = trace.started, trace.ended
    title = f" under {started.strategy}, seed {started.seed}"
    console.print(Text.assemble((started.scenario, "bold"), title), end="\n\n")
    for entry in entries(trace):
        if isinstance(entry, Occurrence):
            console.print(Text.assemble((_clock(entry.at_ms), "dim"), "  ", (entry.text, "yellow")))
        elif isinstance(entry, InitialGroup):
            _print_initial_group(entry, console)
        else:
            _print_round(entry, console)
    requests = sum(ended.messages.values())
    console.print(
        f"\nended {ended.group_state} in generation {ended.generation}"
        f" after {_clock(started.duration_ms).strip()}, {requests:,} requests"
    )


def _print_initial_group(group: InitialGroup, console: Console) -> None:
    number = f"generation {group.generation}"
    rest = f" ({group.protocol}): Stable before the run began"
    console.print(Text.assemble((_clock(group.at_ms), "dim"), "  ", (number, "bold"), rest))
    width = max((len(_name(name, group)) for name in group.owned), default=0)
    for name in sorted(group.owned):
        partitions = group.owned[name]
        line = Text(f"{'':>14}{_name(name, group):<{width}}  ")
        if partitions:
            line.append(f"owns {_listed(partitions)}")
        else:
            line.append("nothing", style="dim")
        console.print(line)


def _print_round(entry: Round, console: Console) -> None:
    number = f"generation {entry.generation}" if entry.generation else "a round"
    took = "never Stable"
    if entry.stable_ms is not None:
        took = f"Stable after {(entry.stable_ms - entry.began_ms) / 1_000:g} s"
    rest = f" ({entry.protocol or 'no assignor'}): {took}"
    console.print(Text.assemble((_clock(entry.began_ms), "dim"), "  ", (number, "bold"), rest))
    for cause in dict.fromkeys(entry.causes):
        console.print(f"{'':>14}because {cause}", markup=False)
    if text := _reported(entry.report):
        console.print(f"{'':>14}{text}", markup=False)
    names = sorted(entry.members)
    width = max((len(_name(n, entry)) for n in names), default=0)
    for name in names:
        member = entry.members[name]
        parts = [
            (f"revoked {_listed(member.revoked)}", "red", member.revoked),
            (f"lost {_listed(member.lost)}", "bold red", member.lost),
            (f"assigned {_listed(member.assigned)}", "green", member.assigned),
            (f"kept {_listed(member.kept)}", "", member.kept),
        ]
        shown = [(text, style) for text, style, partitions in parts if partitions] or [("nothing", "dim")]
        line = Text(f"{'':>14}{_name(name, entry):<{width}}  ")
        for i, (text, style) in enumerate(shown):
            line.append("; " if i else "").append(text, style=style)
        console.print(line)


def _reported(report: Mapping[str, Any]) -> str:
    """Summarize the report of an assignor: ``found by solver, gap 0.03 %, weights: reported-rates``."""
    parts = [f"found by {report['method']}"] if "method" in report else []
    if isinstance(report.get("optimality_gap"), (int, float)):
        parts.append(f"gap {100 * report['optimality_gap']:.2g} %")
    if "weights" in report:
        parts.append(f"weights: {report['weights']}")
    return ", ".join(parts)


def _name(client: str, entry: Round | InitialGroup) -> str:
    return f"{client} (leader)" if client == entry.leader else client


def _listed(partitions: PartitionMap) -> str:
    return ", ".join(f"{topic} {_ranges(numbers)}" for topic, numbers in partitions.items())


def _ranges(numbers: list[int]) -> str:
    """Write 0 1 2 5 as ``0-2 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def _clock(at_ms: int) -> str:
    hours, rest = divmod(at_ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours}:{minutes:02}:{rest / 1_000:06.3f}".rjust(12)
