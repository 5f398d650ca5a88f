"""A comparison of strategies: their figures over seeds, which of them are better, and the Pareto front.

A figure is a value of a metric for each seed. Its spread is from the least to the greatest value without the
5 % at both ends; of fewer than 20 seeds that is from the least to the greatest. A figure is better than
another one only if their spreads do not overlap and their medians differ by more than 1 %.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isclose, isnan, nan
from statistics import median

from coordinator_core.registry.hookspecs import MetricSpec

TIE = 0.01
"""Medians that differ by at most this share of the greater one are alike."""

CUT = 20
"""One value in so many is cut off at each end of a spread."""

FRONT_GROUPS = ("stops", "moves", "cost")
"""The groups of metrics whose first headline metrics make the Pareto front."""


@dataclass(frozen=True)
class Figure:
    """The values of a metric, one for each seed. NaN stands for a value that a run does not have."""

    values: tuple[float, ...]

    @cached_property
    def _known(self) -> list[float]:
        return sorted(value for value in self.values if not isnan(value))

    @cached_property
    def median(self) -> float:
        """The median of the values, or NaN if there is none."""
        return median(self._known) if self._known else nan

    @cached_property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest value, without the 5 % at both ends."""
        cut = len(self._known) // CUT
        kept = self._known[cut : len(self._known) - cut]
        return (kept[0], kept[-1]) if kept else (nan, nan)

    def is_better(self, other: "Figure", better: str) -> bool:
        """Return whether the figure is better than another one, beyond a tie and beyond the spreads."""
        if isclose(self.median, other.median, rel_tol=TIE):
            return False
        if better == "higher":
            return self.spread[0] > other.spread[1]
        return self.spread[1] < other.spread[0]


@dataclass(frozen=True)
class Candidate:
    """A strategy with settings, and its figures by metric. ``findings`` describe the faults of its runs.

    ``settings`` maps the names of settings to their values: as text, and as a value. ``parts`` has for parts
    of the stopped time what happens in them under the strategy, and what makes them shorter.
    """

    strategy: str
    figures: Mapping[str, Figure]
    settings: Mapping[str, tuple[str, object]] = field(default_factory=dict)
    findings: Sequence[str] = ()
    parts: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """The candidates of a scenario, the definitions of the metrics, and the errors of what failed.

    ``clients`` are the client libraries of the members, if they are known.
    """

    scenario: str
    seeds: Sequence[int]
    metrics: Sequence[MetricSpec]
    candidates: Sequence[Candidate]
    errors: Sequence[str] = ()
    clients: Collection[str] = ()

    @cached_property
    def varied(self) -> list[str]:
        """The names of the settings in which candidates differ."""
        names = self.candidates[0].settings if self.candidates else {}
        return [name for name in names if len({c.settings[name][0] for c in self.candidates}) > 1]

    def label(self, candidate: Candidate) -> str:
        """Return the strategy of a candidate and its settings, where candidates differ in them."""
        texts = {name: candidate.settings[name] for name in self.varied}
        settings = ", ".join(f"{name}={text}" for name, (text, value) in texts.items() if value is not None)
        return f"{candidate.strategy} with {settings}" if settings else candidate.strategy

    @property
    def shown(self) -> list[MetricSpec]:
        """The metrics of tables: all but the optional ones that no candidate has a figure of."""
        return [
            m
            for m in self.metrics
            if not m.optional or any(not isnan(c.figures[m.name].median) for c in self.candidates)
        ]

    @property
    def headlines(self) -> list[MetricSpec]:
        """The metrics of the first screen."""
        return [metric for metric in self.shown if metric.headline]

    def figures(self, metric: MetricSpec) -> list[Figure]:
        """Return the figures of all candidates."""
        return [candidate.figures[metric.name] for candidate in self.candidates]

    def best(self, metric: MetricSpec) -> frozenset[int]:
        """Return the positions of the best figures: the fewest that are better than each of the others.

        There are none if no figure is better than the others, and among figures that are alike. A candidate
        with findings does not count.
        """
        figures = self.figures(metric)
        known = [
            i
            for i, figure in enumerate(figures)
            if not isnan(figure.median) and not self.candidates[i].findings
        ]
        known.sort(key=lambda i: figures[i].median, reverse=metric.better == "higher")
        for count in range(1, len(known)):
            first, others = known[:count], known[count:]
            if all(figures[i].is_better(figures[j], metric.better) for i in first for j in others):
                return frozenset(first)
        return frozenset()

    @cached_property
    def front_metrics(self) -> list[MetricSpec]:
        """The metrics of the Pareto front: one of stops, one of moves and one of cost."""
        firsts = {m.group: m for m in reversed(self.headlines)}
        return [firsts[group] for group in FRONT_GROUPS if group in firsts]

    @cached_property
    def front(self) -> frozenset[int]:
        """The positions of the candidates that no other one dominates in the metrics of the front.

        A candidate dominates another one if it is better in one of the metrics, and not worse in any. A
        candidate with findings does not count.
        """
        names = [metric.name for metric in self.front_metrics]
        complete = [
            i
            for i, candidate in enumerate(self.candidates)
            if names
            and not candidate.findings
            and not any(isnan(candidate.figures[name].median) for name in names)
        ]
        front = [i for i in complete if not any(self._dominates(j, i) for j in complete)]
        return frozenset(front or complete)

    def _dominates(self, one: int, other: int) -> bool:
        pairs = [
            (self.candidates[one].figures[m.name], self.candidates[other].figures[m.name], m.better)
            for m in self.front_metrics
        ]
        return any(a.is_better(b, better) for a, b, better in pairs) and not any(
            b.is_better(a, better) for a, b, better in pairs
        )


def comparison_of(
    scenario: str, seed: int, metrics: Sequence[MetricSpec], figures: Mapping[str, Mapping[str, float]]
) -> Comparison:
    """Return the comparison of single runs: ``figures[strategy][metric]``."""
    candidates = [
        Candidate(strategy, {name: Figure((value,)) for name, value in values.items()})
        for strategy, values in figures.items()
    ]
    return Comparison(scenario, (seed,), metrics, candidates)
