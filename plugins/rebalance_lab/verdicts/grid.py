"""The grid that verdicts read: figures of candidates by unit and metric, and what is known of their order.

Units are seeds of a scenario, or scenarios. Figures are compared unit by unit, by the one rule of better
(`rule`). An `Aim` says which differences of a metric count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isnan

import numpy as np

from rebalance_lab.verdicts.changes import Kind, Trouble, is_one_change, labelled
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, ONE_IN, TIE, FloatArray, Order, chances, ends, order
from rebalance_lab.verdicts.tables import brief

CUT = 20
"""One value in so many is cut off at each end of a spread."""


@dataclass(frozen=True)
class Setup:
    """What a candidate is: a strategy with settings, and what its runs showed besides figures.

    ``settings`` maps the names of settings to their values: as text, and as a value, which is None if the
    strategy does not read it. ``parts`` has for parts of the stopped time what happens in them. ``kinds``:
    what a change changes. ``findings`` describe the faults of its runs, ``error`` is that of a run that
    failed. ``is_kafka``: whether Kafka's consumers and brokers run it. ``members``: how many are added.
    """

    strategy: str
    settings: Mapping[str, tuple[str, object]] = field(default_factory=dict)
    findings: Sequence[str] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    kinds: frozenset[Kind] = frozenset()
    error: str = ""
    is_kafka: bool = True
    members: int = 0

    def label(self, settings: Iterable[str] | None = None) -> str:
        """Return the strategy and the settings that it reads, or some of them."""
        names = self.settings if settings is None else settings
        values = {name: self.settings[name] for name in names if name in self.settings}
        texts = {n: text for n, (text, value) in values.items() if value is not None}
        return labelled(self.strategy, texts, self.members)

    @property
    def works(self) -> bool:
        """Whether the runs succeeded and had no faults."""
        return not self.error and not self.findings

    @property
    def is_one(self) -> bool:
        """Whether it is one change: of one kind, or of two that need one another."""
        return is_one_change(self.kinds)


@dataclass(frozen=True)
class Aim:
    """What is better or worse with another candidate: a metric, and which of its differences count.

    ``metric`` is that of the scenario, or of a ``trouble``. ``words`` name it in sentences, ``head`` in
    tables. Figures are alike within ``margin``, a share of the greater one. ``most`` returns for each unit
    and candidate up to where a value does no harm: such values are alike. ``least`` returns by how much the
    figure of a candidate must be greater than another one not to be alike. Figures are shown ``scale`` times
    as great, with a ``unit``; ``each``: divided by the number of partitions.
    """

    metric: str
    words: str = ""
    head: str = ""
    unit: str = ""
    scale: float = 1.0
    each: bool = False
    trouble: Trouble | None = None
    margin: float = TIE
    better: str = "lower"
    most: "Callable[[Grid], FloatArray] | None" = None
    least: "Callable[[Grid, int], float] | None" = None

    @property
    def key(self) -> str:
        """The name of the metric in a grid."""
        return under(self.metric, self.trouble)


def under(metric: str, trouble: Trouble | None) -> str:
    """Return the name of a metric under a trouble, or of the scenario."""
    return metric if trouble is None else f"{metric} if {trouble.value}"


@dataclass(frozen=True)
class Grid:
    """``figures`` float64[unit, candidate, metric], NaN where a run has none.

    ``now`` is the position of the candidate that others are to replace. ``partitions``: those of the group.
    """

    units: Sequence[int | str]
    setups: Sequence[Setup]
    metrics: Sequence[str]
    figures: FloatArray
    now: int = 0
    partitions: int = 1

    @classmethod
    def of(
        cls,
        setups: Sequence[Setup],
        runs: Sequence[Mapping[int, Mapping[str, float]]],
        *,
        units: Sequence[int] = (),
        now: int = 0,
        partitions: int = 1,
    ) -> "Grid":
        """Return the grid of the figures of runs, ``runs[candidate][unit][metric]``."""
        units = list(units or dict.fromkeys(unit for own in runs for unit in own))
        metrics = list(dict.fromkeys(name for own in runs for found in own.values() for name in found))
        number = {name: i for i, name in enumerate(metrics)}
        figures = np.full((len(units), len(setups), len(metrics)), np.nan)
        for candidate, own in enumerate(runs):
            for i, unit in enumerate(units):
                for name, value in own.get(unit, {}).items():
                    figures[i, candidate, number[name]] = value
        return cls(units, setups, metrics, figures, now, max(1, partitions))

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.metrics)}

    def values(self, metric: str) -> FloatArray:
        """float64[unit, candidate]: the figures of a metric, NaN if it is unknown."""
        if (number := self._number.get(metric)) is None:
            return np.full(self.figures.shape[:2], np.nan)
        return self.figures[:, :, number]

    def median(self, metric: str, candidate: int) -> float:
        """Return the median over the units that have a figure, or NaN."""
        found = self.values(metric)[:, candidate]
        known = found[~np.isnan(found)]
        return float(np.median(known)) if len(known) else np.nan

    def spread(self, metric: str, candidate: int) -> tuple[float, float]:
        """Return the least and the greatest figure, without the 5 % at both ends."""
        found = self.values(metric)[:, candidate]
        known = np.sort(found[~np.isnan(found)])
        cut = len(known) // CUT
        kept = known[cut : len(known) - cut]
        return (float(kept[0]), float(kept[-1])) if len(kept) else (np.nan, np.nan)

    def label(self, candidate: int) -> str:
        """Return the strategy of a candidate and its settings, where candidates differ in them."""
        return self.setups[candidate].label(self.varied)

    def name(self, candidate: int) -> str:
        """Return the label of a candidate, or of a change to the present one what it changes."""
        label, now = self.label(candidate), self.setups[self.now].strategy
        if candidate != self.now and label.startswith(f"{now}+") and " with " in label:
            label = label.removeprefix(now)
        return label.removeprefix(f"{now} with ")

    @cached_property
    def varied(self) -> list[str]:
        """The names of the settings in which candidates differ."""
        names = dict.fromkeys(name for setup in self.setups for name in setup.settings)
        texts = {name: {s.settings.get(name, ("", None))[0] for s in self.setups} for name in names}
        return [name for name, found in texts.items() if len(found) > 1]

    @cached_property
    def working(self) -> list[int]:
        """The positions of the candidates without faults."""
        return [i for i, setup in enumerate(self.setups) if setup.works]

    @property
    def is_decided(self) -> bool:
        """Whether there are enough units to know an order."""
        return len(self.units) >= FEWEST_PAIRS

    # --- order

    def harm(self, aim: Aim) -> FloatArray:
        """float64[unit, candidate]: the figures of an aim, 0 for values that do no harm."""
        found = self.values(aim.key)
        return found if aim.most is None else np.where(found <= aim.most(self), 0.0, found)

    def order(self, aim: Aim, one: int, other: int) -> Order:
        """Return what is known of the order of two candidates. They are alike if neither has a figure."""
        a, b = self.harm(aim)[:, [one, other]].T
        unknown = np.isnan(a).all(), np.isnan(b).all()
        if any(unknown):
            return Order.ALIKE if all(unknown) else Order.UNKNOWN
        if aim.least is not None:
            apart = float(np.nanmedian(a) - np.nanmedian(b))
            if abs(apart) <= aim.least(self, one if apart > 0 else other):
                return Order.ALIKE
        found = order(a, b, better=aim.better, margin=aim.margin)
        if aim.most is None or found is Order.ALIKE:
            return found
        # a value may do harm beside a smaller limit of its own, and not be greater
        measured = self.values(aim.key)
        same = order(measured[:, one], measured[:, other], better=aim.better, margin=aim.margin)
        return found if found is same else Order.UNKNOWN

    def is_surely_better(self, aim: Aim, one: int, other: int, of: int) -> bool:
        """Return whether a candidate is known to be better, also as one that was picked out ``of`` several.

        The chance of each counts ``of`` times (Bonferroni).
        """
        if not self.is_better(aim, one, other):
            return False
        a, b = self.harm(aim)[:, [one, other]].T
        first, second = (b, a) if aim.better == "higher" else (a, b)
        units = np.zeros(len(self.units), dtype=np.int64)
        chance, _ = chances(first, second, units, 1, -aim.margin)
        return bool(of * chance[0] <= 1 / ONE_IN)

    def is_better(self, aim: Aim, one: int, other: int) -> bool:
        """Return whether a candidate is known to be better than another one."""
        return self.order(aim, one, other) is Order.BETTER

    def is_as_good(self, aim: Aim, one: int, other: int) -> bool:
        """Return whether a candidate is known to be as good as another one. It is if neither has a figure."""
        if self.order(aim, one, other) is Order.ALIKE:
            return True
        a, b = self.harm(aim)[:, [one, other]].T
        return bool(ends(a, b, better=aim.better)[1] <= aim.margin)

    def dominates(self, one: int, other: int, aims: Sequence[Aim]) -> bool:
        """Return whether a candidate is better than another one in an aim, and as good in all of them."""
        return all(self.is_as_good(aim, one, other) for aim in aims) and any(
            self.is_better(aim, one, other) for aim in aims
        )

    def front(self, aims: Sequence[Aim]) -> list[int]:
        """Return the working candidates that no other one dominates; none without enough units."""
        if not self.is_decided or not aims:
            return []
        known = [i for i in self.working if not any(isnan(self.median(aim.key, i)) for aim in aims)]
        front = [i for i in known if not any(self.dominates(j, i, aims) for j in known if j != i)]
        return front or known

    def best(self, aim: Aim) -> list[int]:
        """Return the fewest candidates of which each is known to be better than all others.

        There are none if there are no others.
        """
        known = [i for i in self.working if not isnan(self.median(aim.key, i))]
        others = {i for i in known if any(self.is_better(aim, j, i) for j in known)}
        first = {i for i in known if i not in others}
        while near := {j for j in others if any(not self.is_better(aim, i, j) for i in first)}:
            first, others = first | near, others - near
        return sorted(first) if others else []

    # --- text

    def value(self, aim: Aim, candidate: int) -> float:
        """Return the median of an aim as it is shown."""
        return self.median(aim.key, candidate) * self.scale(aim)

    def scale(self, aim: Aim) -> float:
        """Return how many times as great the figures of an aim are shown."""
        return aim.scale / (self.partitions if aim.each else 1)

    def shown(self, aim: Aim, candidate: int, *, spread: bool = False) -> str:
        """Return the median of an aim as text, with its spread if it is wanted."""
        text = brief(self.value(aim, candidate))
        low, high = (brief(end * self.scale(aim)) for end in self.spread(aim.key, candidate))
        return f"{text} ({low}-{high})" if spread and low != high else text

    def ratio(self, aim: Aim, one: int, other: int) -> float:
        """Return the figure of a candidate as a multiple of that of another one."""
        a, b = self.median(aim.key, one), self.median(aim.key, other)
        return a / b if b else (inf if a else 1.0)
