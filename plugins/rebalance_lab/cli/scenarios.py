"""The arguments that several subcommands share: the scenario, and strategies."""

import sys
from dataclasses import replace
from typing import Any

import typer

from coordinator_core.reading.checks import whole
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.fields import LAST_SEED
from rebalance_lab.scenarios.files import load_scenario, load_scenario_stream
from rebalance_lab.scenarios.scenario import Scenario

SCENARIO_HELP = "A scenario in YAML or JSON; - reads standard input."
SEED_HELP = "Use this seed in place of the scenario's."


def opened_scenario(name: str, seed: int | None) -> Scenario:
    """Return the scenario of a file or of standard input, with another seed if one is given.

    Raises:
        InputError: if the scenario is wrong, or the seed is none that a scenario can have.
    """
    if seed is not None:
        whole(seed, "--seed", low=0, high=LAST_SEED)
    scenario = load_scenario_stream(sys.stdin) if name == "-" else load_scenario(name)
    return scenario if seed is None else replace(scenario, seed=seed)


def strategies_beginning(incomplete: str) -> list[str]:
    """Return the texts of strategies with which a shell may go on: an assignor, or one part more."""
    registry = default_registry()
    begun, plus, _ = incomplete.rpartition("+")
    if not plus:
        names = [*registry.assignors(), *registry.aliases()]
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
