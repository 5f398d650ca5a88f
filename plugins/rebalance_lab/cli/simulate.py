"""``rebalance-lab simulate``: one run, round by round."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from coordinator_core.errors import InputError
from rebalance_lab.cli import options
from rebalance_lab.cli.files import check_path, write_whole
from rebalance_lab.cli.output import ExitStatus, complain, give_up, print_document, stdout
from rebalance_lab.cli.running import run_one
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.rounds import rounds
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.messages import message
from rebalance_lab.verdicts.story import in_lines, print_lines, story
from rebalance_lab.verdicts.tables import json_text

DEFAULT_STRATEGY = "cooperative-sticky"


def simulate(
    scenario: options.ScenarioArgument,
    strategies: Annotated[
        list[str] | None,
        options.strategy_option(
            f"A strategy: an assignor, with +options and +modifiers; when not given, the one that"
            f" the scenario names in Kafka's words, or {DEFAULT_STRATEGY}."
        ),
    ] = None,
    output: Annotated[
        Literal["text", "json", "jsonl"],
        typer.Option("--format", help="Round by round in words, the rounds as JSON, or the whole trace."),
    ] = "text",
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the trace here.")] = None,
    every_round: Annotated[
        bool, typer.Option("--rounds", help="Every round in words: who gave up and who got what.")
    ] = False,
    messages: Annotated[
        bool, typer.Option("--messages", help="The requests of all members, with their responses, too.")
    ] = False,
    every_message: options.EveryMessageOption = False,
    seed: options.SeedOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT,
) -> None:
    """Run one strategy on a scenario and describe it round by round.

    Each round has its generation, its causes, and what it waited for; with `--rounds` also the partitions
    that every member revoked, lost, got back, was assigned and kept. The run is checked against the rules
    that hold in every run.
    """
    for option, wanted in (("--rounds", every_round), ("--messages", messages)):
        if output == "jsonl" and wanted:
            raise InputError(option, "--format jsonl", "text or json: a trace is always the same")
    check_path(trace)
    opened = options.opened_scenario(scenario, seed)
    default = opened.words.strategy or DEFAULT_STRATEGY
    strategy = options.only_strategy(strategies, default, "one: compare runs several")
    options.tell_idle(opened, [strategy])
    watch = Invariants()
    exchanges: list[Exchange] = []
    exchanged = exchanges.append if messages else None
    run = run_one(
        opened, strategy, timeout=timeout, watch=watch, exchanged=exchanged, every_message=every_message
    )
    if run.trace is None:
        error = f"strategy {strategy!r}: {run.error}"
        give_up(error, ExitStatus.SOME_INPUTS_FAILED, traceback=run.traceback)
    if trace is not None:
        write_whole(trace, run.trace.encode())
    if output == "jsonl":
        print_document(run.trace.encode().decode())
    elif output == "json":
        print_document(json_text(_document(run.trace, exchanges if messages else None)))
    else:
        told = story(run.trace, exchanges) if every_round or messages else in_lines(run.trace)
        print_lines(told, stdout())
    for violation in watch.violations:
        complain(f"a rule of the protocol was broken {violation}")
    for finding in run.findings:
        complain(f"strategy {strategy!r}: {finding}")
    if watch.violations or run.findings:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _document(trace: Trace, exchanges: Sequence[Exchange] | None) -> Any:
    """Return the rounds, or a document with the rounds and the messages."""
    if exchanges is None:
        return rounds(trace)
    return {"rounds": rounds(trace), "messages": [message(each)._asdict() for each in exchanges]}
