"""A group that was seen, held against the simulation of its strategy: how far the model misses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan
from statistics import median

from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import listed_names

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


def held_against(trace: Trace, simulated: Iterable[Mapping[str, float]], registry: Registry) -> Seen:
    """Return what a trace of a real group shows beside the figures of simulated runs of the same strategy."""
    seen = measure(trace, registry, only=HELD)
    runs = list(simulated)
    figures = {name: (seen[name], median(run[name] for run in runs)) for name in HELD}
    figures = {name: pair for name, pair in figures.items() if not any(map(isnan, pair))}
    ends = {name: (min(run[name] for run in runs), max(run[name] for run in runs)) for name in figures}
    return Seen(trace.strategy, figures, ends)


def sentences(seen: Seen) -> list[str]:
    """Return what was seen and simulated; before it a warning, if the model does not reproduce the group."""
    parts = [
        f"{as_text(real)} {HELD[name].removesuffix('s') if real == 1 else HELD[name]}"
        f" ({as_text(predicted)} simulated{_between(seen.ranges[name])}, {_error(real, predicted):+.0%})"
        for name, (real, predicted) in seen.figures.items()
    ]
    text = f"Seen under {seen.strategy}: {listed_names(parts)}."
    if not seen.missed:
        return [text]
    names = listed_names([HELD[name] for name in seen.missed])
    by_chance = all(low <= seen.figures[n][0] <= high for n in seen.missed for low, high in [seen.ranges[n]])
    but = " Chance may explain it: what was seen lies within the simulated figures." if by_chance else ""
    return [
        f"The model does not reproduce this group within {MARGIN:.0%}, in {names}: do not rely on the figures"
        f" below.{but}",
        text,
    ]


def _between(ends: tuple[float, float]) -> str:
    low, high = map(as_text, ends)
    return "" if low == high else f", {low} to {high}"


def as_document(seen: Seen) -> dict[str, object]:
    """Return what was seen as an object of JSON."""
    return {
        "strategy": seen.strategy,
        "seen": {name: real for name, (real, _) in seen.figures.items()},
        "simulated": {name: predicted for name, (_, predicted) in seen.figures.items()},
        "least": {name: low for name, (low, _) in seen.ranges.items()},
        "greatest": {name: high for name, (_, high) in seen.ranges.items()},
        "missed": seen.missed,
    }


def _error(seen: float, predicted: float) -> float:
    """Return by which share of what was seen the prediction is more."""
    if seen == predicted:
        return 0.0
    return (predicted - seen) / seen if seen else 1.0
