"""What a change to a strategy may make better or worse, and the trial of a change, which has the figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import isnan, nan

from rebalance_lab.verdicts.changes import Change, Trouble
from rebalance_lab.verdicts.comparison import Figure
from rebalance_lab.verdicts.lag import least_left, least_twice
from rebalance_lab.verdicts.rule import TIE, Order
from rebalance_lab.verdicts.tables import as_text


@dataclass(frozen=True)
class Dimension:
    """What a change may make better or worse. Less is better.

    ``name`` is a metric, of runs of the scenario or under a trouble. ``key`` names it in documents, ``head``
    in a table; ``text`` describes a figure, with places for it and the plural, and ``against`` what is to
    become less. Figures are alike within ``margin``, a share of the greater one. ``most`` returns for each
    seed, or without end, up to where a value does no harm: such values are alike. ``least`` returns by how
    much the figure of a trial must be greater than another one not to be alike. ``unit`` is that in which
    figures are shown.
    """

    name: str
    key: str
    head: str
    text: str
    trouble: Trouble | None = None
    margin: float = TIE
    against: str = ""
    most: Callable[["Trial"], Iterable[float]] | None = None
    least: Callable[["Trial"], float] | None = None
    unit: float = 1.0

    def figure(self, trial: "Trial") -> Figure:
        """Return the figure of a trial; NaN if it is unknown."""
        known = trial.figures if self.trouble is None else trial.troubles.get(self.trouble, {})
        return known.get(self.name, _UNKNOWN)

    def harm(self, trial: "Trial") -> Figure:
        """Return the figure of a trial with 0 for values that do no harm."""
        figure = self.figure(trial)
        if self.most is None:
            return figure
        pairs = zip(figure.values, self.most(trial), strict=False)
        return Figure(tuple(0.0 if value <= most else value for value, most in pairs))

    def shown(self, trial: "Trial") -> str:
        """Return the median of the figure as text."""
        return as_text(self.figure(trial).median / self.unit)

    def described(self, trial: "Trial") -> str:
        """Describe the figure of a trial."""
        return self.text.format(self.shown(trial), s="" if self.figure(trial).median == 1 else "s")

    def order(self, one: "Trial", other: "Trial") -> Order:
        """Return what is known of the order of two trials. They are alike if neither has a figure."""
        a, b = self.harm(one), self.harm(other)
        if isnan(a.median) or isnan(b.median):
            return Order.ALIKE if isnan(a.median) and isnan(b.median) else Order.UNKNOWN
        if self.least is not None:
            greater = one if a.median > b.median else other
            if abs(a.median - b.median) <= self.least(greater):
                return Order.ALIKE
        return a.order(b, margin=self.margin)

    def is_better(self, one: "Trial", other: "Trial") -> bool:
        """Return whether a trial is known to be better than another one."""
        return self.order(one, other) is Order.BETTER

    def is_as_good(self, one: "Trial", other: "Trial") -> bool:
        """Return whether a trial is known to be as good as another one. It is if neither has a figure."""
        if self.order(one, other) is Order.ALIKE:
            return True
        a, b = self.harm(one), self.harm(other)
        return len(a.values) == len(b.values) and a.is_as_good(b, margin=self.margin)


_UNKNOWN = Figure((nan,))
_NOTABLE = 1 - 1 / 1.2
"""The margin of costs that are of little weight: one is worse if it is 1.2 times as high."""

_STOP = "longest_stop_seconds"
_STANDS_STILL = "its partitions stand still for {} s"

STOPS = Dimension(
    "stopped_partition_seconds",
    "stopped_partition_seconds",
    "stopped\npartition\nseconds",
    "{} partition second{s} stopped",
    against="stops",
)
MOVES = Dimension("moved_partitions", "moved_partitions", "moves", "{} partition{s} moved", against="moves")
ROUNDS = Dimension("rounds", "rounds", "rounds", "{} round{s}", against="rounds")
BALANCE = Dimension(
    "weighted_imbalance",
    "weighted_imbalance",
    "load\nmax/\nmean",
    "{} times the mean load on the busiest member",
    against="imbalance",
)
CRASHED = Dimension(_STOP, "crashed_seconds", "crashed\n(s)", _STANDS_STILL, Trouble.CRASHES, _NOTABLE)
CLOSED = Dimension(_STOP, "closed_seconds", "closed\n(s)", _STANDS_STILL, Trouble.CLOSES, _NOTABLE)
FROZEN = Dimension("rounds", "frozen_rounds", "frozen\nrounds", "{} round{s}", Trouble.FREEZES, _NOTABLE)
LAG = Dimension("max_lag", "max_lag", "lag\nat\nmost", "a lag of {} record{s} at most", against="lag")
LEFT = Dimension(
    "lag_at_end",
    "lag_at_end",
    "lag\nat\nend",
    "a lag of {} record{s} at the end",
    against="the lag that is left",
    most=lambda trial: map(least_left, LAG.figure(trial).values),
)
LOADED = Dimension(
    "utilization",
    "utilization",
    "busiest\nmember\n(%)",
    "the busiest member gets {} % of what it can handle",
    against="overload",
    most=lambda _: repeat(1.0),
    unit=0.01,
)
TWICE = Dimension(
    "duplicate_records",
    "duplicate_records",
    "handled\ntwice",
    "{} record{s} handled twice",
    least=lambda trial: least_twice(LAG.figure(trial).median),
)
REQUESTS = Dimension("messages", "messages", "requests", "{} request{s}", margin=_NOTABLE)

GAINS = (LOADED, LEFT, STOPS, MOVES, ROUNDS, BALANCE, LAG)
"""The dimensions in which a change may help, those that are named first in front."""
COSTS = (TWICE, CRASHED, CLOSED, FROZEN)
FRONT = (*GAINS, *COSTS)
"""The dimensions of the front: the columns of the table."""


@dataclass(frozen=True)
class Trial:
    """A change with its figures by metric, on the scenario and under each trouble, and its faults."""

    change: Change
    figures: Mapping[str, Figure]
    troubles: Mapping[Trouble, Mapping[str, Figure]] = field(default_factory=dict)
    findings: Sequence[str] = ()
    error: str = ""

    @property
    def works(self) -> bool:
        """Whether the runs succeeded and had no faults."""
        return not self.error and not self.findings
