"""What another candidate may make better or worse: a metric, and which of its differences count.

Comparisons, remedies and advice compare two candidates by dimensions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import isnan

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.verdicts.changes import Trouble
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.lag import least_left, least_twice
from rebalance_lab.verdicts.rule import TIE, Order
from rebalance_lab.verdicts.tables import as_text


@dataclass(frozen=True)
class Dimension:
    """What is better or worse with another candidate. Less is better, unless ``better`` is "higher".

    ``name`` is a metric, of runs of the scenario or under a trouble. ``key`` names it in documents, ``head``
    in a table; ``text`` describes a figure, with places for it and the plural, and ``against`` what is to
    become less. Figures are alike within ``margin``, a share of the greater one. ``most`` returns for each
    seed, or without end, up to where a value does no harm: such values are alike. ``least`` returns by how
    much the figure of a candidate must be greater than another one not to be alike. ``unit`` is that in which
    figures are shown.
    """

    name: str
    head: str = ""
    text: str = ""
    trouble: Trouble | None = None
    margin: float = TIE
    key: str = ""
    against: str = ""
    better: str = "lower"
    most: Callable[[Candidate], Iterable[float]] | None = None
    least: Callable[[Candidate], float] | None = None
    unit: float = 1.0

    def figure(self, candidate: Candidate) -> Figure:
        """Return the figure of a candidate; NaN if it is unknown."""
        return candidate.figure(self.name, self.trouble)

    def harm(self, candidate: Candidate) -> Figure:
        """Return the figure of a candidate with 0 for values that do no harm."""
        figure = self.figure(candidate)
        if self.most is None:
            return figure
        pairs = zip(figure.values, self.most(candidate), strict=False)
        return Figure(tuple(0.0 if value <= most else value for value, most in pairs))

    def shown(self, candidate: Candidate) -> str:
        """Return the median of the figure as text."""
        return as_text(self.figure(candidate).median / self.unit)

    def described(self, candidate: Candidate) -> str:
        """Describe the figure of a candidate."""
        return self.described_as(self.figure(candidate).median)

    def described_as(self, value: float) -> str:
        """Describe a value: ``1 round``, ``2 rounds``."""
        return self.text.format(as_text(value / self.unit), s="" if value == 1 else "s")

    def order(self, one: Candidate, other: Candidate) -> Order:
        """Return what is known of the order of two candidates. They are alike if neither has a figure."""
        a, b = self.harm(one), self.harm(other)
        if isnan(a.median) or isnan(b.median):
            return Order.ALIKE if isnan(a.median) and isnan(b.median) else Order.UNKNOWN
        if self.least is not None:
            greater = one if a.median > b.median else other
            if abs(a.median - b.median) <= self.least(greater):
                return Order.ALIKE
        found = a.order(b, self.better, self.margin)
        if self.most is None or found is Order.ALIKE:
            return found
        # a value may do harm beside a smaller limit of its own, and not be greater
        return found if found is self._measured(one, other) else Order.UNKNOWN

    def _measured(self, one: Candidate, other: Candidate) -> Order:
        return self.figure(one).order(self.figure(other), self.better, self.margin)

    def is_better(self, one: Candidate, other: Candidate) -> bool:
        """Return whether a candidate is known to be better than another one."""
        return self.order(one, other) is Order.BETTER

    def is_as_good(self, one: Candidate, other: Candidate) -> bool:
        """Return whether a candidate is known to be as good as another one. It is if neither has a figure."""
        if self.order(one, other) is Order.ALIKE:
            return True
        a, b = self.harm(one), self.harm(other)
        return len(a.values) == len(b.values) and a.is_as_good(b, self.better, self.margin)


def dominates(one: Candidate, other: Candidate, dimensions: Sequence[Dimension]) -> bool:
    """Return whether a candidate is better than another one in a dimension, and as good in all of them."""
    return all(d.is_as_good(one, other) for d in dimensions) and any(
        d.is_better(one, other) for d in dimensions
    )


_NOTABLE = 1 - 1 / 1.2
"""The margin of costs that are of little weight: one is worse if it is 1.2 times as high."""

_STOP = "longest_stop_seconds"
_STANDS_STILL = "its partitions stand still for {} s"

STOPS = Dimension(
    "stopped_partition_seconds",
    "stopped\npartition\nseconds",
    "{} partition second{s} stopped",
    against="stops",
)
MOVES = Dimension("moved_partitions", "moves", "{} partition{s} moved", against="moves")
ROUNDS = Dimension("rounds", "rounds", "{} round{s}", against="rounds")
BALANCE = Dimension(
    "weighted_imbalance",
    "load\nmax/\nmean",
    "{} times the mean load on the busiest member",
    against="imbalance",
)
CRASHED = Dimension(_STOP, "crashed\n(s)", _STANDS_STILL, Trouble.CRASHES, _NOTABLE, "crashed_seconds")
CLOSED = Dimension(_STOP, "closed\n(s)", _STANDS_STILL, Trouble.CLOSES, _NOTABLE, "closed_seconds")
FROZEN = Dimension("rounds", "frozen\nrounds", "{} round{s}", Trouble.FREEZES, _NOTABLE, "frozen_rounds")
LAG = Dimension("max_lag", "lag\nat\nmost", "a lag of {} record{s} at most", against="lag")
LEFT = Dimension(
    "lag_at_end",
    "lag\nat\nend",
    "a lag of {} record{s} at the end",
    against="the lag that is left",
    most=lambda candidate: map(least_left, LAG.figure(candidate).values),
)
LOADED = Dimension(
    "utilization",
    "busiest\nmember\n(%)",
    "the busiest member gets {} % of what it can handle",
    against="overload",
    most=lambda _: repeat(1.0),
    unit=0.01,
)
TWICE = Dimension(
    "duplicate_records",
    "handled\ntwice",
    "{} record{s} handled twice",
    least=lambda candidate: least_twice(LAG.figure(candidate).median),
)
REQUESTS = Dimension("messages", "requests", "{} request{s}", margin=_NOTABLE)

GAINS = (LOADED, LEFT, STOPS, MOVES, ROUNDS, BALANCE, LAG)
"""The dimensions in which a change may help, those that are named first in front."""
COSTS = (TWICE, CRASHED, CLOSED, FROZEN)
FRONT = (*GAINS, *COSTS)
"""The dimensions of the front of an advice: the columns of its table."""

_OF_METRICS = {dimension.name: dimension for dimension in (*GAINS, TWICE, REQUESTS)}


def dimension_of(metric: MetricSpec) -> Dimension:
    """Return the dimension of a metric of the scenario."""
    return _OF_METRICS.get(metric.name) or Dimension(metric.name, better=metric.better)
