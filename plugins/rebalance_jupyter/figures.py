"""The figures of runs as the view shows them: the head of the answer first, then metrics by groups."""

from collections.abc import Sequence
from math import isnan
from typing import Any

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.aims import FRONT
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.of_traces import screen_of_traces
from rebalance_lab.verdicts.rule import is_tie
from rebalance_lab.verdicts.screen import by_group, head, is_shown, rest
from rebalance_lab.verdicts.tables import as_text


def figures_of(traces: Sequence[Trace], registry: Registry) -> dict[str, Any]:
    """Return the head of the answer and the metrics of traces. Cells have texts, and numbers or None."""
    if not traces:
        return {}
    screen = screen_of_traces(traces, registry)
    grid = screen.grid
    title, *verdict = head(screen)
    groups = [
        {"name": name, "metrics": [row for m in metrics if (row := _row(grid, m)) is not None]}
        for name, metrics in by_group(screen.metrics).items()
    ]
    return {
        "title": title,
        "workload": title.partition(" · ")[2],
        "answer": " ".join(verdict),
        "reasons": [f"{name}: {text}" for name, text in rest(screen)],
        "strategies": [grid.label(i) for i in range(len(grid.setups))],
        "groups": groups,
        "front": grid.front(FRONT),
        "front_line": "front: no other one is better in stops, moves or rounds and as good in the others",
    }


def _differs(medians: Sequence[float]) -> bool:
    """Return whether medians differ by more than a tie, or only some are known."""
    known = [median for median in medians if not isnan(median)]
    if len(known) in (0, len(medians)):
        return bool(known) and not is_tie(max(known), min(known))
    return True


def _row(grid: Grid, metric: MetricSpec) -> dict[str, Any] | None:
    """Return the row of a metric, None for one that is not shown."""
    aim = Aim(metric.name, better=metric.better)
    best = grid.best(aim)
    medians = [grid.median(metric.name, i) for i in range(len(grid.setups))]
    if not is_shown(metric, medians):
        return None
    known = [median for median in medians if not isnan(median)]
    most = max(map(abs, known), default=0.0)
    compared = [medians[i] for i in grid.working if not isnan(medians[i])]
    least = (max if metric.better == "higher" else min)(compared, default=float("nan"))
    cells = []
    for i, median in enumerate(medians):
        low, high = map(as_text, grid.spread(metric.name, i))
        cells.append(
            {
                "text": as_text(median),
                "number": None if isnan(median) else median,
                "spread": "" if low == high else f"{low} to {high}",
                "share": abs(median) / most if most and not isnan(median) else 0,
                "best": i in best,
                "difference": "" if i in best else _difference(median, least),
            }
        )
    return {
        "name": metric.name,
        "unit": metric.unit,
        "definition": metric.doc + " Higher is better." * (metric.better == "higher"),
        "headline": metric.headline,
        "differs": _differs(medians),
        "cells": cells,
    }


def _difference(value: float, least: float) -> str:
    if value == least or isnan(value - least):
        return ""
    return f"{'+' if value > least else '−'}{as_text(abs(value - least))}"
