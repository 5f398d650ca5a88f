"""The grid that verdicts read: candidates with the figures of their runs, by metric and seed.

A candidate is a strategy with settings: one of a comparison, or a change to a strategy that is tried. It is
made from runs by `candidate_of`, in commands and notebooks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan, nan
from statistics import median

from coordinator_core.errors import PluginError
from coordinator_core.reading.raised import traceback_of
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.changes import Change, Kind, Trouble, is_one_change, labelled
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.overload import overload, overload_of_all
from rebalance_lab.verdicts.rule import TIE, Order, ends, order
from rebalance_lab.verdicts.words import findings_of_seeds

CUT = 20
"""One value in so many is cut off at each end of a spread."""


@dataclass(frozen=True)
class Failure:
    """An error, and the traceback of the exception in an author's code that caused it; else an empty text."""

    text: str
    traceback: str = ""


@dataclass(frozen=True)
class StrategyRun:
    """The result of a run: its figures or, if requested, its trace; or an error.

    ``traceback`` is that of the exception in an author's code, if it caused the error. ``failed`` has the
    failures of metrics by their names. Their figures are NaN. ``findings`` are the faults of the group at the
    end of the run, ``load`` the sentences about a load that no assignor can carry. ``events`` counts those
    of the trace.
    """

    strategy: str
    figures: dict[str, float] | None = None
    trace: Trace | None = None
    error: str = ""
    traceback: str = ""
    failed: Mapping[str, Failure] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    events: int = 0


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

    def is_as_good(self, other: "Figure", better: str = "lower", margin: float = TIE) -> bool:
        """Return whether the figure is known to be better than another one or alike, or one of the two."""
        _, high = ends(self.values, other.values, better=better)
        return high <= margin


UNKNOWN = Figure((nan,))


@dataclass(frozen=True)
class Candidate:
    """A strategy with settings, and its figures by metric. ``findings`` describe the faults of its runs.

    ``settings`` maps the names of settings to their values: as text, and as a value, which is None if the
    strategy does not read it. ``parts`` has for parts of the stopped time what happens in them under the
    strategy. Of a change ``kinds`` has what it changes, and ``troubles`` the figures under each trouble.
    """

    strategy: str
    figures: Mapping[str, Figure]
    settings: Mapping[str, tuple[str, object]] = field(default_factory=dict)
    findings: Sequence[str] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    kinds: frozenset[Kind] = frozenset()
    troubles: Mapping[Trouble, Mapping[str, Figure]] = field(default_factory=dict)
    error: str = ""

    def figure(self, metric: str, trouble: Trouble | None = None) -> Figure:
        """Return a figure of the scenario, or under a trouble; NaN if it is unknown."""
        known = self.figures if trouble is None else self.troubles.get(trouble, {})
        return known.get(metric, UNKNOWN)

    def label(self, settings: Iterable[str] | None = None) -> str:
        """Return the strategy and the settings that it reads, or some of them."""
        names = self.settings if settings is None else settings
        values = {name: self.settings[name] for name in names}
        return labelled(self.strategy, {n: text for n, (text, value) in values.items() if value is not None})

    @property
    def works(self) -> bool:
        """Whether the runs succeeded and had no faults."""
        return not self.error and not self.findings

    @property
    def is_one(self) -> bool:
        """Whether it is one change: of one kind, or of two that need one another."""
        return is_one_change(self.kinds)


def candidate_of(strategy: str, runs: Mapping[int, StrategyRun], seeds: Iterable[int] = ()) -> Candidate:
    """Return the candidate of runs by their seeds, with a value of each metric for each of the seeds.

    The value is NaN if the run failed, or if there is none. Without ``seeds`` they are those of the runs.
    """
    known = {seed: run.figures for seed, run in runs.items() if run.figures is not None}
    names = next(iter(known.values()), {})
    wanted = list(seeds or runs)
    figures = {
        name: Figure(tuple(known[seed][name] if seed in known else nan for seed in wanted)) for name in names
    }
    found = findings_of_seeds({seed: run.findings for seed, run in runs.items()})
    error = next((run.error for run in runs.values() if run.error), "")
    return Candidate(strategy, figures, findings=found, error=error)


def trial_of(change: Change, found: Candidate) -> Candidate:
    """Return the candidate that was found with a change as its trial."""
    settings = {name: (text, change.settings[name]) for name, text in change.texts.items()}
    return replace(found, settings=settings, kinds=change.kinds)


def run_of(history: History, registry: Registry, failed: dict[str, PluginError] | None = None) -> StrategyRun:
    """Return the result of a run. ``failed``: see `measure`.

    Raises:
        PluginError: if the code of a metric fails and there is no such mapping.
    """
    figures = measure(history, registry, failed=failed)
    failures = {name: Failure(str(error), traceback_of(error)) for name, error in (failed or {}).items()}
    return StrategyRun(
        history.trace.strategy,
        figures,
        failed=failures,
        findings=findings(history),
        load=overload(history),
        events=len(history.trace.events),
    )


def load_of(runs: Mapping[str, Mapping[int, StrategyRun]]) -> tuple[str, ...]:
    """Return the sentences about a load that no candidate can carry. ``runs[label][seed]`` are all runs."""
    return overload_of_all(
        [
            (f"{label}, seed {seed}", run.load)
            for label, own in runs.items()
            for seed, run in own.items()
            if run.figures is not None
        ]
    )
