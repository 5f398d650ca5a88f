"""The scenario argument that several subcommands share."""

import sys
from dataclasses import replace

from coordinator_core.documents.files import load_scenario, load_scenario_stream
from coordinator_core.documents.scenario import Scenario

SCENARIO_HELP = "A scenario in YAML or JSON; - reads standard input."
SEED_HELP = "Use this seed in place of the scenario's."


def opened_scenario(name: str, seed: int | None) -> Scenario:
    """Return the scenario of a file or of standard input, with another seed if one is given."""
    scenario = load_scenario_stream(sys.stdin) if name == "-" else load_scenario(name)
    return scenario if seed is None else replace(scenario, seed=seed)
