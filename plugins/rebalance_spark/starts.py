"""What a report says of the assignment with which groups start: that of their owners, or of an assignor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from coordinator_core.assigning.problem import Problem
from coordinator_core.model import NO_OWNER
from rebalance_lab.simulation.planning.counting import Counting
from rebalance_spark.sweeps import parted

if TYPE_CHECKING:
    from rebalance_spark.stored import Scored

_FEW = 0.05
"""The share of scenarios with other owners below which a report does not mention them."""


def moves_at_start(problem: Problem, strategies: Sequence[Counting]) -> list[int]:
    """Return how many owned partitions each strategy gives to another member in a group as it starts."""
    before = problem.owner
    owned = before != NO_OWNER
    return [int(np.count_nonzero((strategy.owners(problem) != before) & owned)) for strategy in strategies]


def start_of(scored: "Scored") -> str:
    """Return the assignor whose assignment groups have at the start, or an empty text."""
    if "start_assignor" not in scored.names:
        return ""
    return next((name for (name,) in scored.distinct("start_assignor") if name), "")


def about_starts(scored: "Scored", baseline: str) -> list[str]:
    """Return sentences of a report: with which assignment groups start, and what this means for a strategy.

    The strategy that runs today is charged for the way from the owners to its own assignment, if these are
    not the same.
    """
    start = start_of(scored)
    found = [f"Running groups start with the assignment of {start} (--start)."] if start else []
    if baseline not in scored.strategies or "start_moves" not in scored.names:
        return found
    moves = scored.figures("start_moves")[:, scored.strategies.index(baseline)]
    examined = moves[~np.isnan(moves)]
    others = int(np.count_nonzero(examined))
    if others > _FEW * len(examined):
        of = f"{len(examined):,}{' examined' if len(examined) < len(moves) else ''} scenarios"
        name = parted(baseline)[0]
        found.append(
            f"In {others:,} of {of}, the owners at the start are not those that {name} gives; its moves"
            f" include the way there. score --start {name} begins with its own."
        )
    return found
