"""Scores of scenarios as plain rows, without Spark: what runs in a worker, and anywhere else."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from time import perf_counter
from typing import Any, TypeAlias

from coordinator_core.documents.files import load_scenario_text
from coordinator_core.documents.scenario import Scenario
from coordinator_core.errors import PluginError, RebalanceLabError
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import DISTRIBUTION, Registry, installed_registry
from coordinator_core.scoring.measuring import measure
from coordinator_core.simulation.plan import plan
from coordinator_core.simulation.run import simulate
from rebalance_spark.choices import Fidelity, Status
from rebalance_spark.limits import run_within

ALL = -1
"""In place of a strategy's number: all of them."""

Row: TypeAlias = dict[str, Any]
"""A row of scores by column; columns that are not in it are null."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked of every scenario. ``plugins``: modules to register beside what is installed.

    ``timeout``: seconds for a scenario under a strategy, 0 for ever. ``seed``: in place of the scenario's.
    """

    strategies: tuple[str, ...]
    fidelity: Fidelity = Fidelity.PROTOCOL
    timeout: float = 0.0
    seed: int | None = None
    plugins: tuple[str, ...] = ()

    def numbers(self, which: int) -> Sequence[int]:
        """The strategies meant by a number, or by `ALL`."""
        return range(len(self.strategies)) if which == ALL else [which]


def registry_with(plugins: Sequence[str]) -> Registry:
    """Everything installed, and modules besides. Raises PluginError for a module that cannot be taken in."""
    return _registry(tuple(plugins), tuple(sys.path))


@cache
def _registry(plugins: tuple[str, ...], _path: tuple[str, ...]) -> Registry:
    """Once a process and search path: a worker may be given further archives for another job."""
    registry = installed_registry()
    for name in plugins:
        try:
            module = import_module(name)
        except Exception as wrong:
            raise PluginError(name, "import", f"{type(wrong).__name__}: {wrong}") from wrong
        registry.register(module, name=name)
    return registry


class WorkerDiedError(Exception):
    """A scenario ended the process that scored it, where it was tried alone."""


class Scorer:
    """Scores scenarios for a job, one after another, whatever they contain."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.registry = registry_with(job.plugins)
        self._strategies: dict[str, Strategy] = {}
        self._versions = {
            "program_version": program_version(),
            "plugin_versions": plugin_versions(self.registry),
        }

    def rows(self, scenario_id: str, text: str, which: int = ALL) -> list[Row]:
        """A row for each strategy that is meant."""
        names = [self.job.strategies[number] for number in self.job.numbers(which)]
        began = perf_counter()
        try:
            scenario = run_within(self.job.timeout, lambda: self._scenario(scenario_id, text))
        except Exception as wrong:
            spent_ms = (perf_counter() - began) * 1_000
            return [self.failed(scenario_id, name, wrong, spent_ms / len(names)) for name in names]
        return [self._row(scenario_id, scenario, name) for name in names]

    def _scenario(self, scenario_id: str, text: str) -> Scenario:
        scenario = load_scenario_text(
            text, scenario_id or "a row without scenario_id", registry=self.registry
        )
        return scenario if self.job.seed is None else replace(scenario, seed=self.job.seed)

    def _row(self, scenario_id: str, scenario: Scenario, name: str) -> Row:
        began = perf_counter()
        try:
            figures = run_within(self.job.timeout, lambda: self._figures(scenario, name))
        except (Exception, SystemExit) as wrong:
            spent_ms = (perf_counter() - began) * 1_000
            return {**self.failed(scenario_id, name, wrong, spent_ms), "seed": scenario.seed}
        spent_ms = (perf_counter() - began) * 1_000
        known = {metric: value for metric, value in figures.items() if not isnan(value)}
        return {**self._base(scenario_id, name, Status.OK, spent_ms), "seed": scenario.seed, **known}

    def _figures(self, scenario: Scenario, name: str) -> dict[str, float]:
        strategy = self._strategies.get(name)
        if strategy is None:
            strategy = self._strategies[name] = self.registry.strategy(name)
        if self.job.fidelity is Fidelity.PLAN:
            return measure(plan(scenario, strategy, self.registry), self.registry, planned=True)
        return measure(simulate(scenario, strategy, self.registry), self.registry)

    def _base(self, scenario_id: str, strategy: str, status: Status, wall_ms: float) -> Row:
        return {
            "scenario_id": scenario_id,
            "strategy": strategy,
            "fidelity": self.job.fidelity.value,
            "seed": self.job.seed,
            "status": status.value,
            "wall_ms": wall_ms,
            **self._versions,
        }

    def failed(self, scenario_id: str, strategy: str, wrong: BaseException, wall_ms: float) -> Row:
        """The row of a scenario that has no figures."""
        status = Status.TIMEOUT if isinstance(wrong, TimeoutError) else Status.ERROR
        own = isinstance(wrong, (RebalanceLabError, TimeoutError, WorkerDiedError))
        said = str(wrong) if own else f"{type(wrong).__name__}: {wrong}"
        return {**self._base(scenario_id, strategy, status, wall_ms), "error": " ".join(said.split())}


def program_version() -> str:
    """Of rebalance-lab; ``unknown`` where it runs from an archive without its metadata."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def plugin_versions(registry: Registry) -> str:
    """Distributions of plugins other than our own, with versions, sorted; modules by their name alone."""
    found = {
        f"{p.distribution} {p.version}" if p.distribution != "-" else p.name
        for p in registry.plugins
        if p.distribution != DISTRIBUTION
    }
    return ", ".join(sorted(found))
