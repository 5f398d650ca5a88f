"""Scores of scenarios as plain rows. This module does not use Spark; a worker of Spark uses it."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from coordinator_core.errors import PluginError, RebalanceLabError
from coordinator_core.reading.raised import raised
from coordinator_core.registry.hookspecs import MetricSpec, Strategy
from coordinator_core.registry.registry import DISTRIBUTION, Registry, installed_registry
from rebalance_lab.scenarios.families import check_settings
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import grid
from rebalance_lab.scoring.documents import load_scenario_or_group, seed_of
from rebalance_lab.scoring.labels import parted
from rebalance_lab.scoring.limits import run_within
from rebalance_lab.scoring.outcomes import Fidelity, Status
from rebalance_lab.simulation.planning.counting import Counting, Results, counting, keeps_topics
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.planning.planned_rests import planned_ledgers
from rebalance_lab.simulation.planning.starting import started
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.ledger import Ledger
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import history_of, measure, metrics_of

HASH_LENGTH = 32
"""The hexadecimal digits of a hash that identifies a scenario, or a strategy with all that decides."""

SIZES = ("missing_members", "members_to_ease")
"""The metrics of other numbers of members. Plans have them of groups that run at the start: of a group that
is drawn at random, they would cost ten times as much as the plan."""

Row: TypeAlias = dict[str, Any]
"""A row of scores: column -> value. Missing columns are null."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to compute for every scenario. ``plugins``: modules to register besides the installed plugins.

    ``timeout``: seconds for one scenario under one strategy (0: no limit). ``seed``: replaces the seeds of
    the scenarios by others that follow from it (see `documents.seed_of`). ``hashes``: the identity of the
    score of each strategy (see `identity.identified`), and ``whole`` that of one with all metrics, which
    counts, too.
    ``run_id``: the run that computes the scores. ``metrics``: those to compute, empty for all. ``start``: the
    assignor whose assignment a running group has at the start, empty for that of its owners. ``sources``:
    the files of strategies, as path and content, which workers need not have.
    """

    strategies: tuple[str, ...]
    fidelity: Fidelity = Fidelity.PROTOCOL
    timeout: float = 0.0
    seed: int | None = None
    plugins: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    run_id: str = ""
    metrics: tuple[str, ...] = ()
    start: str = ""
    sources: tuple[tuple[str, bytes], ...] = ()


class Spent(NamedTuple):
    """The time that a row took, in milliseconds: on the clock, and of the processor."""

    wall_ms: float = 0.0
    cpu_ms: float = 0.0

    @classmethod
    def now(cls) -> "Spent":
        """Return the present readings of both clocks."""
        return cls(perf_counter() * 1_000, process_time() * 1_000)

    def since(self, shares: int = 1) -> "Spent":
        """Return the time since these readings, or a share of it."""
        now = Spent.now()
        return Spent((now.wall_ms - self.wall_ms) / shares, (now.cpu_ms - self.cpu_ms) / shares)


@lru_cache(maxsize=1)  # the rows of a scenario follow one another
def scenario_hash(text: str) -> str:
    """Return the hash of a scenario's text."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:HASH_LENGTH]


def registry_with(plugins: Sequence[str]) -> Registry:
    """Return a registry of the installed plugins and of further modules.

    Raises:
        PluginError: if a module cannot be imported or registered.
    """
    return _registry(tuple(plugins), tuple(sys.path))


@cache
def _registry(plugins: tuple[str, ...], _path: tuple[str, ...]) -> Registry:
    """Build the registry once per process and search path. A later job may bring further archives."""
    registry = installed_registry()
    for name in plugins:
        try:
            module = import_module(name)
        except (Exception, SystemExit) as error:
            raise PluginError(name, "import", raised(error)) from error
        registry.register(module, name=name)
    return registry


@cache
def _results() -> Results:
    """Return what the scorers of a process share. A task of Spark is too short to have many equal groups."""
    return Results()


def computed_metrics(job: Job) -> list[MetricSpec]:
    """Return the metrics that a job computes, in order."""
    return metrics_of(registry_with(job.plugins), planned=job.fidelity is Fidelity.PLAN, only=job.metrics)


class _Measured(NamedTuple):
    """The metrics of a row, the errors of those that failed, and the time it took."""

    figures: dict[str, float]
    broken: dict[str, PluginError]
    spent: Spent


class WorkerDiedError(Exception):
    """A scenario killed the separate process that scored it."""


class Scorer:
    """Scores scenarios for a job, one after the other. Errors become rows."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.registry = registry_with(job.plugins)
        self._strategies: dict[str, Strategy] = {}
        self._countings: dict[str, Counting | None] = {}
        self._results = _results()
        self._metrics = computed_metrics(job)
        self._counts = job.fidelity is Fidelity.PLAN and all(metric.rests for metric in self._metrics)
        self._hashes = dict(zip(job.strategies, job.hashes, strict=False))
        self._versions = {
            "program_version": program_version(),
            "plugin_versions": plugin_versions(self.registry),
        }

    def rows(self, scenario_id: str, text: str, which: Sequence[int] | None = None) -> list[Row]:
        """Return a row for each strategy, or for those whose numbers are in `which`."""
        chosen = range(len(self.job.strategies)) if which is None else which
        names = [self.job.strategies[number] for number in chosen]
        started = Spent.now()
        try:
            scenario = run_within(self.job.timeout, lambda: self.scenario(scenario_id, text))
        except Exception as error:
            spent = started.since(len(names))
            return [self.failed(scenario_id, text, name, error, spent) for name in names]
        counted = self._counted(scenario, names)
        return [self._row(scenario_id, text, scenario, name, counted.get(name)) for name in names]

    def scenario(self, scenario_id: str, text: str) -> Scenario:
        """Return the scenario of a text as it is scored.

        Raises:
            RebalanceLabError: if it is malformed, or the assignor of the start fails.
        """
        where = printable(scenario_id) or "a row without scenario_id"
        seed = seed_of(scenario_id, self.job.seed or 0)
        scenario = load_scenario_or_group(text, where, self.registry, seed=seed)
        texts = [self._importable(name) for name in self.job.strategies]
        at = f"{where}: config"
        check_settings(scenario.config, texts, at, self.registry, migrates=scenario.migrates)
        if self.job.start:
            scenario = started(scenario, self.registry.assignor(self._importable(self.job.start)))
        return scenario if self.job.seed is None else replace(scenario, seed=seed)

    def _row(
        self, scenario_id: str, text: str, scenario: Scenario, name: str, measured: "_Measured | None"
    ) -> Row:
        started = Spent.now()
        try:
            if measured is None:
                (measured,) = run_within(
                    self.job.timeout, lambda: self._measured(scenario, [self._trace(scenario, name)], started)
                )
        except (Exception, SystemExit) as error:
            return {
                **self.failed(scenario_id, text, name, error, started.since()),
                "seed": scenario.seed,
            }
        row = {**self._base(scenario_id, text, name, Status.OK, measured.spent), "seed": scenario.seed}
        if measured.broken:
            row["error"] = _in_one_line("; ".join(map(str, measured.broken.values())))
        return row | {metric: value for metric, value in measured.figures.items() if not isnan(value)}

    def _measured(
        self, scenario: Scenario, runs: Iterable[Trace | Ledger], started: Spent
    ) -> list[_Measured]:
        """Return the metrics of runs, each with an equal share of the time since they were started."""
        planned = self.job.fidelity is Fidelity.PLAN
        left_out = SIZES if planned and not scenario.running else ()
        only = [metric.name for metric in self._metrics if metric.name not in left_out]
        found = []
        for each in runs:
            broken: dict[str, PluginError] = {}
            run = history_of(each, self.registry, self._metrics) if isinstance(each, Trace) else each
            figures = measure(run, self.registry, planned=planned, only=only, failed=broken) if only else {}
            found.append((figures, broken))
        spent = started.since(len(found))
        return [_Measured(*one, spent) for one in found]

    def _counted(self, scenario: Scenario, names: Sequence[str]) -> dict[str, "_Measured"]:
        """Return the metrics under strategies whose assignors only count partitions, without traces.

        Nothing is returned if one of them fails. Then each is measured by itself, with an error of its own.
        """
        if not self._counts or not keeps_topics(scenario):
            return {}
        alike: dict[tuple[str, ...], dict[str, Counting]] = {}
        for name in names:
            strategy = self._counting(name)
            if strategy is not None:
                alike.setdefault(tuple(parted(name)[1]), {})[name] = strategy
        measured: dict[str, _Measured] = {}
        try:
            for group in alike.values():
                run_within(self.job.timeout, lambda g=group: self._measure(scenario, g, measured))  # type: ignore[misc]
        except (Exception, SystemExit):
            return {}
        return measured

    def _measure(
        self, scenario: Scenario, group: Mapping[str, Counting], measured: dict[str, "_Measured"]
    ) -> None:
        """Add the metrics under strategies with the same settings."""
        started = Spent.now()
        scenario = self._configured(scenario, next(iter(group)))
        ledgers = planned_ledgers(scenario, list(group.values()), self.registry, self._results)
        measured |= zip(group, self._measured(scenario, ledgers, started), strict=True)

    def trace(self, scenario_id: str, text: str, name: str) -> Trace:
        """Return the trace of a scenario under a strategy.

        Raises:
            RebalanceLabError: as `simulation.run.simulate`.
        """
        return self._trace(self.scenario(scenario_id, text), name)

    def _trace(self, scenario: Scenario, name: str) -> Trace:
        run = plan if self.job.fidelity is Fidelity.PLAN else simulate
        return run(self._configured(scenario, name), self._strategy(name), self.registry)

    def _strategy(self, name: str) -> Strategy:
        if name not in self._strategies:
            self._strategies[name] = self.registry.strategy(self._importable(name))
        return self._strategies[name]

    def _importable(self, name: str) -> str:
        """Return a strategy without its settings, with a module in place of a file that the job carries."""
        text = parted(name)[0]
        for path, source in self.job.sources:
            if text.startswith(f"{path}:"):
                return text.replace(path, module_of(path, source), 1)
        return text

    def _counting(self, name: str) -> Counting | None:
        """Return a strategy that only counts partitions, or None. One that fails does so in its own row."""
        if name not in self._countings:
            try:
                self._countings[name] = counting(self._strategy(name), self.registry)
            except (Exception, SystemExit):
                self._countings[name] = None
        return self._countings[name]

    def _configured(self, scenario: Scenario, name: str) -> Scenario:
        """Return the scenario with the settings of a strategy."""
        settings = parted(name)[1]
        if not settings:
            return scenario
        config = grid(settings, scenario.config, f"strategy {name!r}", self.registry)[0][1]
        return replace(scenario, config=config)

    def _base(self, scenario_id: str, text: str, strategy: str, status: Status, spent: Spent) -> Row:
        return {
            "scenario_id": scenario_id,
            "strategy": strategy,
            "scenario_hash": scenario_hash(text),
            "job_hash": self._hashes.get(strategy, ""),
            "run_id": self.job.run_id,
            **({"start_assignor": self.job.start} if self.job.start else {}),
            "fidelity": self.job.fidelity.value,
            "seed": None if self.job.seed is None else seed_of(scenario_id, self.job.seed),
            "status": status.value,
            **spent._asdict(),
            **self._versions,
        }

    def failed(self, scenario_id: str, text: str, strategy: str, error: BaseException, spent: Spent) -> Row:
        """Return the row of a scenario that failed."""
        status = Status.TIMEOUT if isinstance(error, TimeoutError) else Status.ERROR
        own = isinstance(error, (RebalanceLabError, TimeoutError, WorkerDiedError))
        message = str(error) if own else f"{type(error).__name__}: {error}"
        for path, source in self.job.sources:
            message = message.replace(_module_name(path, source), path)
        return {
            **self._base(scenario_id, text, strategy, status, spent),
            "error": _in_one_line(message),
        }


def printable(text: str) -> str:
    """Return a text in one line, with escapes in place of control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _in_one_line(message: str) -> str:
    return printable(" ".join(message.split()))


def _module_name(path: str, source: bytes) -> str:
    return f"rebalance_lab_source_{sha256(path.encode() + source).hexdigest()[:HASH_LENGTH]}"


def module_of(path: str, source: bytes) -> str:
    """Return the name of a module with the source of a file that this machine need not have.

    Modules in the folder of the file can be imported if the folder is there.

    Raises:
        PluginError: if it cannot be imported.
    """
    name = _module_name(path, source)
    if name in sys.modules:
        return name
    module = sys.modules[name] = ModuleType(name)  # dataclasses and pickle look up the module
    module.__file__ = path
    folder = str(Path(path).resolve().parent)
    if folder not in sys.path and Path(folder).is_dir():
        sys.path.append(folder)
    try:
        exec(compile(source, path, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginError(path, "import", raised(error)) from error
    return name


def program_version() -> str:
    """Return the version of rebalance-lab, or ``unknown`` if it runs from an archive without metadata."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def plugin_versions(registry: Registry) -> str:
    """Return the other distributions with plugins and their versions, sorted. A module has no version."""
    found = {
        f"{p.distribution} {p.version}" if p.distribution != "-" else p.name
        for p in registry.plugins
        if p.distribution != DISTRIBUTION
    }
    return ", ".join(sorted(found))
