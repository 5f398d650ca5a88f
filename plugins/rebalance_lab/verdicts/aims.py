"""The aims of a choice: which metrics decide or explain it, in the words of tables and sentences."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.verdicts.changes import Trouble
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.lag import least_left, least_twice
from rebalance_lab.verdicts.rule import FloatArray

NOTABLE = 1 - 1 / 1.2
"""The margin of costs that are of little weight: one is worse if it is 1.2 times as high."""


def _carried(grid: Grid) -> FloatArray:
    return np.ones(grid.figures.shape[:2])


def _most_left(grid: Grid) -> FloatArray:
    return np.asarray([[least_left(most) for most in row] for row in grid.values("max_lag").tolist()])


def _least_twice(grid: Grid, candidate: int) -> float:
    return least_twice(grid.median("max_lag", candidate))


STOPS = Aim("stopped_partition_seconds", "stop per partition", "stopped s\n/partition", " s", each=True)
LONGEST = Aim("longest_stop_seconds", "longest stop", "longest\nstop s", " s")
MOVES = Aim("moved_partitions", "partitions moved", "moved")
LATE = Aim("capacity_lost", "late records", "late\nrecords %", " %", 100)
TWICE = Aim("duplicate_records", "records handled twice", "handled\ntwice", least=_least_twice)
ROUNDS = Aim("rounds", "rounds", "rounds")
BALANCE = Aim("weighted_imbalance", "busiest member over the mean", "busiest\n/mean")
LAG = Aim("max_lag", "largest backlog", "largest\nbacklog")
LEFT = Aim("lag_at_end", "backlog at the end", "backlog\nat end", most=_most_left)
LOADED = Aim("utilization", "load of the busiest member", "busiest\nmember %", " %", 100, most=_carried)
REQUESTS = Aim("messages", "requests", "requests", margin=NOTABLE)
CRASHED = replace(
    LONGEST,
    words="stop if a member dies",
    head="stop s if\none dies",
    trouble=Trouble.CRASHES,
    margin=NOTABLE,
)
CLOSED = replace(
    CRASHED, words="stop if a member leaves", head="stop s if\none leaves", trouble=Trouble.CLOSES
)
FROZEN = replace(
    ROUNDS,
    words="rounds if a member freezes",
    head="rounds if\none freezes",
    trouble=Trouble.FREEZES,
    margin=NOTABLE,
)

CARRYING = (LOADED, LEFT)
"""Whether a group keeps up with its load."""
GAINS = (LOADED, LEFT, STOPS, MOVES, ROUNDS, BALANCE, LAG)
"""In what a change may help, that which is named first in front."""
COSTS = (TWICE, CRASHED, CLOSED, FROZEN)
FRONT = (STOPS, MOVES, ROUNDS)
COLUMNS = (STOPS, LONGEST, MOVES, LATE, TWICE, ROUNDS, LEFT, LOADED, BALANCE)

_KNOWN = {aim.metric for aim in (*COLUMNS, LAG, REQUESTS)}


def further_aims(metrics: Iterable[MetricSpec]) -> list[Aim]:
    """Return the aims of other headline metrics, such as those of plugins."""
    return [
        Aim(m.name, m.name, m.name.replace("_", "\n"), better=m.better)
        for m in metrics
        if m.headline and m.name not in _KNOWN
    ]
