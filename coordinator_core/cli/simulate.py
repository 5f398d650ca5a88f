"""``rebalance-lab simulate``: one run, told round by round."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from coordinator_core.cli.output import ExitStatus, check_path, complain, give_up, stdout, write_whole
from coordinator_core.cli.running import DEFAULT_TIMEOUT, TIMEOUT_HELP, run_all
from coordinator_core.cli.scenarios import SCENARIO_HELP, SEED_HELP, opened_scenario
from coordinator_core.protocol.events import PartitionMap
from coordinator_core.registry.registry import default_registry
from coordinator_core.reports.trace_picture import trace_svg
from coordinator_core.traces.invariants import Invariants
from coordinator_core.traces.rounds import InitialGroup, Occurrence, Round, entries, rounds
from coordinator_core.traces.trace import Trace

MOST_LANES = 200


class Format(StrEnum):
    """How to tell it."""

    text = "text"
    json = "json"
    jsonl = "jsonl"


def simulate(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="A strategy: an assignor, with +options and +modifiers.")
    ] = "cooperative-sticky",
    output: Annotated[
        Format,
        typer.Option("--format", help="Round by round in words, the rounds as JSON, or the whole trace."),
    ] = Format.text,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the trace here, as JSON Lines.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw who worked on which partition when, as SVG.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help=SEED_HELP)] = None,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=TIMEOUT_HELP)] = DEFAULT_TIMEOUT,
) -> None:
    """Run one strategy on a scenario and tell it round by round.

    Each round has its generation, its cause, and what every member revoked, lost, was assigned and kept.
    What must hold in every run is checked on the way.
    """
    default_registry().strategy(strategy)
    check_path(trace)
    check_path(picture)
    opened = opened_scenario(scenario, seed)
    watch = Invariants()
    (ran,) = run_all(opened, [strategy], jobs=1, keep_traces=True, timeout=timeout, watch=watch)
    if ran.trace is None:
        give_up(f"strategy {strategy!r}: {ran.error}", ExitStatus.SOME_INPUTS_FAILED)
    if trace is not None:
        write_whole(trace, ran.trace.encode())
    if picture is not None:
        write_whole(picture, trace_svg(ran.trace, most_lanes=MOST_LANES).encode())
    if output is Format.jsonl:
        stdout().out(ran.trace.encode().decode().rstrip("\n"))
    elif output is Format.json:
        stdout().out(msgspec.json.format(msgspec.json.encode(rounds(ran.trace)), indent=2).decode())
    else:
        print_told(ran.trace, stdout())
    for violation in watch.violations:
        complain(f"a rule of the protocol was broken {violation}")
    if watch.violations:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def print_told(trace: Trace, console: Console) -> None:
    """The run in lines of text."""
    started, ended = trace.started, trace.ended
    title = f" under {started.strategy}, seed {started.seed}"
    console.print(Text.assemble((started.scenario, "bold"), title), end="\n\n")
    for each in entries(trace):
        if isinstance(each, Occurrence):
            console.print(Text.assemble((_clock(each.at_ms), "dim"), "  ", (each.text, "yellow")))
        elif isinstance(each, InitialGroup):
            _print_standing(each, console)
        else:
            _print_round(each, console)
    requests = sum(ended.messages.values())
    console.print(
        f"\nended {ended.group_state} in generation {ended.generation}"
        f" after {_clock(started.duration_ms).strip()}, {requests:,} requests"
    )


def _print_standing(each: InitialGroup, console: Console) -> None:
    number = f"generation {each.generation}"
    rest = f" ({each.protocol}): Stable before the run began"
    console.print(Text.assemble((_clock(each.at_ms), "dim"), "  ", (number, "bold"), rest))
    width = max((len(_name(name, each)) for name in each.owned), default=0)
    for name in sorted(each.owned):
        partitions = each.owned[name]
        line = Text(f"{'':>14}{_name(name, each):<{width}}  ")
        if partitions:
            line.append(f"owns {_listed(partitions)}")
        else:
            line.append("nothing", style="dim")
        console.print(line)


def _print_round(each: Round, console: Console) -> None:
    number = f"generation {each.generation}" if each.generation else "a round"
    took = "never Stable"
    if each.stable_ms is not None:
        took = f"Stable after {(each.stable_ms - each.began_ms) / 1_000:g} s"
    rest = f" ({each.protocol or 'no assignor'}): {took}"
    console.print(Text.assemble((_clock(each.began_ms), "dim"), "  ", (number, "bold"), rest))
    for cause in dict.fromkeys(each.causes):
        console.print(f"{'':>14}because {cause}", markup=False)
    if said := _reported(each.report):
        console.print(f"{'':>14}{said}", markup=False)
    names = sorted(each.members)
    width = max((len(_name(n, each)) for n in names), default=0)
    for name in names:
        member = each.members[name]
        parts = [
            (f"revoked {_listed(member.revoked)}", "red", member.revoked),
            (f"lost {_listed(member.lost)}", "bold red", member.lost),
            (f"assigned {_listed(member.assigned)}", "green", member.assigned),
            (f"kept {_listed(member.kept)}", "", member.kept),
        ]
        shown = [(text, style) for text, style, partitions in parts if partitions] or [("nothing", "dim")]
        line = Text(f"{'':>14}{_name(name, each):<{width}}  ")
        for i, (text, style) in enumerate(shown):
            line.append("; " if i else "").append(text, style=style)
        console.print(line)


def _reported(report: Mapping[str, Any]) -> str:
    """What people want to know of it: ``found by solver, gap 0.03 %, weights: reported-rates``."""
    said = [f"found by {report['method']}"] if "method" in report else []
    if isinstance(report.get("optimality_gap"), (int, float)):
        said.append(f"gap {100 * report['optimality_gap']:.2g} %")
    if "weights" in report:
        said.append(f"weights: {report['weights']}")
    return ", ".join(said)


def _name(client: str, each: Round | InitialGroup) -> str:
    return f"{client} (leader)" if client == each.leader else client


def _listed(partitions: PartitionMap) -> str:
    return ", ".join(f"{topic} {_ranges(numbers)}" for topic, numbers in partitions.items())


def _ranges(numbers: list[int]) -> str:
    """0 1 2 5 as ``0-2 5``."""
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
