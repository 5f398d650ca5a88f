"""A group that was seen, held against the simulation of its strategy: how far the model misses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan
from statistics import median

from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.tables import as_text

HELD = {"rounds": "rounds", "stopped_partition_seconds": "stopped partition seconds"}
"""The metrics that logs show of a group, with their names in sentences."""

MARGIN = 0.25
"""A prediction that is further away does not reproduce what was seen."""


@dataclass(frozen=True)
class Seen:
    """What was seen under a strategy, and the median of the simulated figures, by the names of metrics.

    ``ranges`` has the least and the greatest simulated figure.
    """

    strategy: str
    figures: Mapping[str, tuple[float, float]]
    ranges: Mapping[str, tuple[float, float]]

    @property
    def missed(self) -> list[str]:
        """The metrics that the simulation does not reproduce."""
        return [
            name for name, (seen, predicted) in self.figures.items() if abs(_error(seen, predicted)) > MARGIN
        ]

    def texts(self) -> list[str]:
        """Return each figure with the simulated one and by how much that misses."""
        return [
            f"{HELD[name]} {as_text(real)} ({as_text(predicted)} simulated, {_error(real, predicted):+.0%})"
            for name, (real, predicted) in self.figures.items()
        ]

    def as_document(self) -> dict[str, object]:
        """Return what was seen as an object of JSON."""
        return {
            "strategy": self.strategy,
            "seen": {name: real for name, (real, _) in self.figures.items()},
            "simulated": {name: predicted for name, (_, predicted) in self.figures.items()},
            "least": {name: low for name, (low, _) in self.ranges.items()},
            "greatest": {name: high for name, (_, high) in self.ranges.items()},
            "missed": self.missed,
        }


def held_against(trace: Trace, simulated: Iterable[Mapping[str, float]], registry: Registry) -> Seen:
    """Return what a trace of a real group shows beside the figures of simulated runs of the same strategy."""
    seen = measure(trace, registry, only=HELD)
    runs = list(simulated)
    figures = {name: (seen[name], median(run[name] for run in runs)) for name in HELD}
    figures = {name: pair for name, pair in figures.items() if not any(map(isnan, pair))}
    ends = {name: (min(run[name] for run in runs), max(run[name] for run in runs)) for name in figures}
    return Seen(trace.strategy, figures, ends)


def _error(seen: float, predicted: float) -> float:
    """Return by which share of what was seen the prediction is more."""
    if seen == predicted:
        return 0.0
    return (predicted - seen) / seen if seen else 1.0
