"""What several subcommands share: the scenario, strategies, and the options of their runs."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import typer

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import whole
from coordinator_core.registry.kafka_names import SHORT
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.output import warn
from rebalance_lab.scenarios.families import idle
from rebalance_lab.scenarios.fields import LAST_SEED
from rebalance_lab.scenarios.files import load_scenario, load_scenario_stream
from rebalance_lab.scenarios.scenario import Scenario

ScenarioArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario in YAML or JSON, or the name of one that comes with the package; - reads standard"
        " input.",
    ),
]
SeedOption: TypeAlias = Annotated[
    int | None, typer.Option(min=0, help="Use this seed in place of the scenario's.")
]
TimeoutOption: TypeAlias = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="How long an assignor may take for one assignment; 0 waits for ever.",
    ),
]
EveryMessageOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--every-message",
        help="Simulate every message, also the heartbeats and commits of a group at rest. The result is the"
        " same.",
    ),
]
DEFAULT_TIMEOUT = 60.0


def opened_scenario(name: str, seed: int | None) -> Scenario:
    """Return the scenario of a file or of standard input, with another seed if one is given.

    Raises:
        InputError: if the scenario is wrong, or the seed is none that a scenario can have.
    """
    if seed is not None:
        whole(seed, "--seed", low=0, high=LAST_SEED)
    scenario = load_scenario_stream(sys.stdin) if name == "-" else load_scenario(name)
    return scenario if seed is None else replace(scenario, seed=seed)


def tell_idle(scenario: Scenario, strategies: Sequence[str], settings: Iterable[str] = ()) -> None:
    """Print a line for each setting that does nothing. ``settings`` are those beside the scenario's."""
    for sentence in idle(scenario, settings, strategies, default_registry()):
        warn(f"scenario {scenario.name!r}: {sentence}")


def own_strategy(scenario: Scenario, default: Sequence[str]) -> list[str]:
    """Return the strategies of a command that is given none: the scenario's own, if any, and others."""
    return list(dict.fromkeys([*filter(None, [scenario.words.strategy]), *default]))


def only_strategy(strategies: Sequence[str] | None, default: str, expected: str) -> str:
    """Return the strategy of a command that runs one: ``default`` when none is given.

    Raises:
        InputError: if there are several, or if there is none of that name.
    """
    strategy, *others = strategies or [default]
    if others:
        raise InputError("--strategy", f"{1 + len(others)} strategies", expected)
    default_registry().strategy(strategy)
    return strategy


def strategies_beginning(incomplete: str) -> list[str]:
    """Return the texts of strategies with which a shell may go on: an assignor, or one part more."""
    registry = default_registry()
    begun, plus, _ = incomplete.rpartition("+")
    if not plus:
        names = [*registry.assignors(), *registry.aliases(), *SHORT]
    else:
        spec = registry.assignors().get(begun.partition("+")[0])
        parts = [*(spec.options if spec else ()), *registry.modifiers(), *registry.protocols()]
        names = [f"{begun}+{part}" for part in parts]
    return [name for name in names if name.startswith(incomplete)]


def strategy_option(text: str) -> Any:
    """Return the option ``--strategy`` of a command, with its help."""
    return typer.Option(
        "--strategy", "-s", metavar="STRATEGY", autocompletion=strategies_beginning, help=text
    )


def jobs_option(default: str) -> Any:
    """Return the option ``--jobs`` of a command, with its default in words."""
    return typer.Option("--jobs", "-j", min=1, help=f"The number of processes; default: {default}.")


def seeds_option(text: str) -> Any:
    """Return the option ``--seeds`` of a command, with its help."""
    return typer.Option(min=1, metavar="N", help=text)
