"""Grids by hand: candidates with figures of each seed."""

from math import nan

import numpy as np

from rebalance_lab.traces.causes import PARTS
from rebalance_lab.verdicts.aims import STOPS
from rebalance_lab.verdicts.grid import Grid, Setup
from rebalance_lab.verdicts.reasons import metric_of, parts_under

UP = tuple(10.0 * n for n in range(1, 7))
DOWN = UP[::-1]
LESS = tuple(value / 2 for value in UP)


def figures(stops=None, **more):
    """Figures by metric: parts of stopped time (``waiting``), their sum if there is no other, and others."""
    parts = {metric_of(name): more.pop(name, 0.0) for name in PARTS}
    return {STOPS.metric: sum(parts.values()) if stops is None else stops, **parts, **more}


def load(most, left, utilization=nan):
    return {"max_lag": float(most), "lag_at_end": float(left), "utilization": utilization}


def grid_of(seeds=6, now="", findings=(), foreign=(), kinds=(), protocol=None, **candidates):
    """A grid of candidates by their figures, each with a value for all seeds or one for each."""
    known, of = dict(findings), dict(kinds)
    parts = {} if protocol is None else parts_under(protocol, delayed=False)
    setups = [
        Setup(name, findings=known.get(name, ()), parts=parts, kinds=of.get(name, frozenset()),
              is_kafka=name not in foreign)
        for name in candidates
    ]  # fmt: skip
    runs = [
        {
            unit: {name: v[unit] if isinstance(v, tuple) else v for name, v in own.items()}
            for unit in range(seeds)
        }
        for own in candidates.values()
    ]
    return Grid.of(setups, runs, units=range(seeds), now=[*candidates].index(now) if now else 0)


def single(metric, values, seeds=6):
    """A grid of one metric."""
    array = np.array([[values]], dtype=np.float64).reshape(1, len(values), 1).repeat(seeds, axis=0)
    return Grid(range(seeds), [Setup(f"s{i}") for i in range(len(values))], [metric], array)
