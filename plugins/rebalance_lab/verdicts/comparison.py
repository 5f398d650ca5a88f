"""A comparison of strategies: their figures over seeds, which of them are better, and the Pareto front.

A figure is a value of a metric for each seed. Its spread is from the least to the greatest value without the
5 % at both ends; of fewer than 20 seeds that is from the least to the greatest.
Figures are compared seed by seed, by the one rule of better (`rule`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan, nan
from statistics import median

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, TIE, Order, ends, order

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

    def order(self, other: "Figure", better: str = "lower", margin: float = TIE) -> Order:
        """Return what is known of the order of two figures whose values are of the same seeds."""
        return order(self.values, other.values, better=better, margin=margin)

    def is_better(self, other: "Figure", better: str) -> bool:
        """Return whether the figure is known to be better than another one."""
        return self.order(other, better) is Order.BETTER

    def is_as_good(self, other: "Figure", better: str = "lower", margin: float = TIE) -> bool:
        """Return whether the figure is known to be better than another one or alike, or one of the two."""
        _, high = ends(self.values, other.values, better=better)
        return bool(high[0] <= margin)


@dataclass(frozen=True)
class Candidate:
    """A strategy with settings, and its figures by metric. ``findings`` describe the faults of its runs.

    ``settings`` maps the names of settings to their values: as text, and as a value. ``parts`` has for parts
    of the stopped time what happens in them under the strategy.
    """

    strategy: str
    figures: Mapping[str, Figure]
    settings: Mapping[str, tuple[str, object]] = field(default_factory=dict)
    findings: Sequence[str] = ()
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Remedy:
    """A change that was run to shorten the stopped time, in partition seconds before and with it.

    ``helps``: whether it is shorter beyond the margin, on the same seeds; ``is_known``: whether they show
    that. ``price`` has the metrics that are worse with it, with the figures before and with it.
    ``costs_later``: whether it may also cost more when a member crashes, is closed or freezes, which was not
    tried.
    """

    label: str
    before: float
    after: float
    helps: bool
    is_known: bool = True
    price: Sequence[tuple[str, float, float]] = ()
    costs_later: bool = False


@dataclass(frozen=True)
class Comparison:
    """The candidates of a scenario, the definitions of the metrics, and the errors of what failed.

    ``remedies`` has those that were tried, by the labels of candidates. ``load`` are the sentences about a
    load that no candidate can carry. ``now`` is the position of the candidate that the others are to replace.
    """

    scenario: str
    seeds: Sequence[int]
    metrics: Sequence[MetricSpec]
    candidates: Sequence[Candidate]
    errors: Sequence[str] = ()
    remedies: Mapping[str, Sequence[Remedy]] = field(default_factory=dict)
    load: Sequence[str] = ()
    now: int = 0

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

    @cached_property
    def working(self) -> list[int]:
        """The positions of the candidates without findings."""
        return [i for i, candidate in enumerate(self.candidates) if not candidate.findings]

    def order(self, metric: MetricSpec, one: int, other: int) -> Order:
        """Return what is known of the order of the figures of two candidates."""
        figures = self.figures(metric)
        return figures[one].order(figures[other], metric.better)

    def beaten(self, metric: MetricSpec) -> list[int]:
        """Return the positions of the figures that another one is known to be better than.

        A candidate with findings does not count.
        """
        known = self._known(metric)
        return [i for i in known if any(self.order(metric, j, i) is Order.BETTER for j in known)]

    def best(self, metric: MetricSpec) -> frozenset[int]:
        """Return the positions of the figures that none is better than, if each is better than all others.

        There are none if that is not known, or if there are no others. A candidate with findings does not
        count.
        """
        others = self.beaten(metric)
        first = [i for i in self._known(metric) if i not in others]
        is_known = all(self.order(metric, i, j) is Order.BETTER for i in first for j in others)
        return frozenset(first) if others and is_known else frozenset()

    def _known(self, metric: MetricSpec) -> list[int]:
        figures = self.figures(metric)
        return [i for i in self.working if not isnan(figures[i].median)]

    @cached_property
    def front_metrics(self) -> list[MetricSpec]:
        """The metrics of the Pareto front: one of stops, one of moves and one of cost."""
        firsts = {m.group: m for m in reversed(self.headlines)}
        return [firsts[group] for group in FRONT_GROUPS if group in firsts]

    @property
    def is_decided(self) -> bool:
        """Whether there are enough seeds to know an order."""
        return len(self.seeds) >= FEWEST_PAIRS

    @cached_property
    def front(self) -> frozenset[int]:
        """The positions of the candidates that no other one dominates in the metrics of the front.

        There are none without enough seeds.

        A candidate dominates another one if it is better in one of the metrics, and as good in the others. A
        candidate with findings does not count.
        """
        names = [metric.name for metric in self.front_metrics]
        complete = [
            i
            for i, candidate in enumerate(self.candidates)
            if names
            and self.is_decided
            and not candidate.findings
            and not any(isnan(candidate.figures[name].median) for name in names)
        ]
        front = [i for i in complete if not any(self.dominates(j, i) for j in complete)]
        return frozenset(front or complete)

    def dominates(self, one: int, other: int) -> bool:
        """Return whether a candidate dominates another one in the metrics of the front."""
        pairs = [
            (self.candidates[one].figures[m.name], self.candidates[other].figures[m.name], m.better)
            for m in self.front_metrics
        ]
        return all(a.is_as_good(b, better) for a, b, better in pairs) and any(
            a.is_better(b, better) for a, b, better in pairs
        )


def comparison_of(
    scenario: str,
    seed: int,
    metrics: Sequence[MetricSpec],
    figures: Mapping[str, Mapping[str, float]],
    *,
    seeds: int = 1,
) -> Comparison:
    """Return the comparison of runs: ``figures[strategy][metric]``, which are the same for all seeds."""
    candidates = [
        Candidate(strategy, {name: Figure((value,) * seeds) for name, value in values.items()})
        for strategy, values in figures.items()
    ]
    return Comparison(scenario, range(seed, seed + seeds), metrics, candidates)
