"""A comparison of strategies: which of them are better, and the Pareto front.

Figures are compared seed by seed, by the one rule of better (`rule`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.verdicts.as_seen import Seen
from rebalance_lab.verdicts.dimensions import Dimension, dimension_of, dominates
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, Order
from rebalance_lab.verdicts.words import listed_names

FRONT_GROUPS = ("stops", "moves", "cost")
"""The groups of metrics whose first headline metrics make the Pareto front."""


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
    ``worth`` says how near predictions came to real runs, "" if nobody asked. ``seen``: a real group, held
    against the simulation of the strategy that it ran.
    """

    scenario: str
    seeds: Sequence[int]
    metrics: Sequence[MetricSpec]
    candidates: Sequence[Candidate]
    errors: Sequence[str] = ()
    remedies: Mapping[str, Sequence[Remedy]] = field(default_factory=dict)
    load: Sequence[str] = ()
    now: int = 0
    worth: str = ""
    seen: Seen | None = None

    @cached_property
    def varied(self) -> list[str]:
        """The names of the settings in which candidates differ."""
        names = self.candidates[0].settings if self.candidates else {}
        return [name for name in names if len({c.settings[name][0] for c in self.candidates}) > 1]

    def label(self, candidate: Candidate) -> str:
        """Return the strategy of a candidate and its settings, where candidates differ in them."""
        return candidate.label(self.varied)

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

    def order(self, metric: MetricSpec | Dimension, one: int, other: int) -> Order:
        """Return what is known of the order of the figures of two candidates."""
        first, second = (self.candidates[i].figure(metric.name) for i in (one, other))
        return first.order(second, metric.better)

    def compare(self, dimension: Dimension, one: int, other: int) -> Order:
        """Return what is known of the order of two candidates in a dimension."""
        return dimension.order(self.candidates[one], self.candidates[other])

    def names(self, numbers: Collection[int]) -> str:
        """Name all of the candidates: one that is not named could be taken for one of the opposite."""
        return listed_names([self.label(self.candidates[i]) for i in numbers], len(numbers))

    def beaten(self, metric: MetricSpec | Dimension) -> list[int]:
        """Return the positions of the figures that another one is known to be better than.

        A candidate with findings does not count.
        """
        known = self._known(metric)
        return [i for i in known if any(self.order(metric, j, i) is Order.BETTER for j in known)]

    def best(self, metric: MetricSpec | Dimension) -> frozenset[int]:
        """Return the positions of the fewest figures of which each is known to be better than all others.

        There are none if there are no others. A candidate with findings does not count.
        """
        others = set(self.beaten(metric))
        first = {i for i in self._known(metric) if i not in others}
        while near := {j for j in others if any(self.order(metric, i, j) is not Order.BETTER for i in first)}:
            first, others = first | near, others - near
        return frozenset(first) if others else frozenset()

    def _known(self, metric: MetricSpec | Dimension) -> list[int]:
        return [i for i in self.working if not isnan(self.candidates[i].figure(metric.name).median)]

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

        There are none without enough seeds. A candidate with findings does not count.
        """
        if not self.front_metrics or not self.is_decided:
            return frozenset()
        known = map(set, map(self._known, self.front_metrics))
        complete = sorted(set(self.working).intersection(*known))
        front = [i for i in complete if not any(self.dominates(j, i) for j in complete)]
        return frozenset(front or complete)

    def dominates(self, one: int, other: int) -> bool:
        """Return whether a candidate dominates another one in the metrics of the front."""
        dimensions = list(map(dimension_of, self.front_metrics))
        return dominates(self.candidates[one], self.candidates[other], dimensions)
