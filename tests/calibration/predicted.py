"""The figures of a cell in the simulator."""

from dataclasses import replace

from rebalance_lab import default_registry, simulate
from rebalance_lab.scenarios.scenario import parse_scenario
from tests.calibration.cells import Cell, simulated_by
from tests.calibration.figures import Figures, figures

SEEDS = 20


def predicted(cell: Cell, seeds: int = SEEDS) -> list[Figures]:
    """Return the figures of a cell for each seed."""
    registry = default_registry()
    document = simulated_by(cell.document, cell.client)
    scenario = parse_scenario(document, where=cell.scenario, registry=registry)
    runs = (simulate(replace(scenario, seed=seed), cell.strategy, registry) for seed in range(seeds))
    return [figures(trace, registry) for trace in runs]
