"""Scores of scenarios as plain rows. This module does not use Spark; a worker of Spark uses it."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeAlias

import msgspec

from coordinator_core.errors import PluginError, RebalanceLabError
from coordinator_core.reading.raised import raised
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import DISTRIBUTION, Registry, installed_registry
from rebalance_lab.scenarios.families import check_settings
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import grid
from rebalance_lab.simulation.planning.counting import Counting, Results, counting, keeps_topics
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.planning.planned_rests import planned_ledgers
from rebalance_lab.simulation.planning.starting import problem_at_start, started
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.traces.ledger import Ledger
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import history_of, measure, metrics_of
from rebalance_lab.verdicts.scaling import busiest_members, loads_by_members
from rebalance_spark.choices import Fidelity, Status
from rebalance_spark.documents import load_scenario_or_group, seed_of
from rebalance_spark.limits import run_within
from rebalance_spark.starts import moves_at_start
from rebalance_spark.sweeps import parted

ALL = -1
"""A value of ``which`` that selects all strategies."""

HASH_LENGTH = 32
"""The hexadecimal digits of a hash that identifies a scenario, or a strategy with all that decides."""

EXAMINED = 1 / 32
"""The default share of scenarios in which the moves at the start are counted: it costs 1 % of the time."""

MISSING, LOADS, OWNERS = "missing_members", "loads", "busiest"
"""The metric with which there are columns with loads, and these: by number of members, and of members."""

SIZES = (MISSING, "members_to_ease", "hot_partitions", "load_in_members")
"""The metrics of other numbers of members. Plans have them of groups that run at the start: of a group that
is drawn at random, they would cost ten times as much as the plan."""

ALIKE = "alike"
"""The column with topics that members may join."""

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
    assignor whose assignment a running group has at the start, empty for that of its owners. ``examined``:
    the share of the scenarios in which the moves at the start are counted.
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
    examined: float = EXAMINED

    def numbers(self, which: int) -> Sequence[int]:
        """Return the numbers of the strategies that `which` selects: one, or all for `ALL`."""
        return range(len(self.strategies)) if which == ALL else [which]


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


class _Measured(NamedTuple):
    """The metrics of a row, the errors of those that failed, columns with loads, and the time it took."""

    figures: dict[str, float]
    broken: dict[str, PluginError]
    texts: dict[str, str]
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
        is_planned = job.fidelity is Fidelity.PLAN
        self._metrics = metrics_of(self.registry, planned=is_planned, only=job.metrics)
        self._counts = is_planned and all(metric.rests for metric in self._metrics)
        self._hashes = dict(zip(job.strategies, job.hashes, strict=False))
        self._versions = {
            "program_version": program_version(),
            "plugin_versions": plugin_versions(self.registry),
        }

    def rows(self, scenario_id: str, text: str, which: int = ALL) -> list[Row]:
        """Return a row for each strategy that `which` selects."""
        names = [self.job.strategies[number] for number in self.job.numbers(which)]
        started = Spent.now()
        try:
            scenario = run_within(self.job.timeout, lambda: self.scenario(scenario_id, text))
        except Exception as error:
            spent = started.since(len(names))
            return [self.failed(scenario_id, text, name, error, spent) for name in names]
        counted = self._counted(scenario, names)
        rows = [self._row(scenario_id, text, scenario, name, counted.get(name)) for name in names]
        self._count_moves_at_start(scenario, rows)
        return rows

    def scenario(self, scenario_id: str, text: str) -> Scenario:
        """Return the scenario of a text as it is scored.

        Raises:
            RebalanceLabError: if it is malformed, or the assignor of the start fails.
        """
        where = scenario_id or "a row without scenario_id"
        seed = seed_of(scenario_id, self.job.seed or 0)
        scenario = load_scenario_or_group(text, where, self.registry, seed=seed)
        texts = [parted(name)[0] for name in self.job.strategies]
        at = f"{where}: config"
        check_settings(scenario.config, texts, at, self.registry, migrates=scenario.migrates)
        if self.job.start:
            scenario = started(scenario, self.registry.assignor(self.job.start))
        return scenario if self.job.seed is None else replace(scenario, seed=seed)

    def _count_moves_at_start(self, scenario: Scenario, rows: Sequence[Row]) -> None:
        """Add the moves at the start to rows of a scenario, if it is examined and has a running group."""
        if int(rows[0]["scenario_hash"][:8], 16) >= self.job.examined * 2**32:
            return
        counted = [(row, counting) for row in rows if (counting := self._counting(row["strategy"]))]
        try:
            problem = problem_at_start(scenario) if counted else None
            moves = [] if problem is None else moves_at_start(problem, [each for _, each in counted])
        except (Exception, SystemExit):
            return  # a strategy that fails here fails in its own row
        for (row, _), count in zip(counted, moves, strict=False):
            row["start_moves"] = count

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
        row |= measured.texts
        if alike := alike_topics(scenario):
            row[ALIKE] = ", ".join(alike)
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
            texts = _texts(run) if MISSING in figures else {}
            found.append((figures, broken, texts))
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
            self._strategies[name] = self.registry.strategy(parted(name)[0])
        return self._strategies[name]

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
        return {
            **self._base(scenario_id, text, strategy, status, spent),
            "error": _in_one_line(message),
        }


def alike_topics(scenario: Scenario) -> list[str]:
    """Return the topics with several partitions that have as many as another one."""
    counts = {name: topic.partitions for name, topic in scenario.topics.items() if topic.partitions > 1}
    several = {count for count, number in Counter(counts.values()).items() if number > 1}
    return sorted(name for name, count in counts.items() if count in several)


def _texts(history: History | Ledger) -> dict[str, str]:
    """Return the columns with loads of a run that has them."""
    loads, owners = loads_by_members(history), busiest_members(history)
    return {
        **({LOADS: loads_as_text(loads)} if loads else {}),
        **({OWNERS: members_as_text(owners)} if owners else {}),
    }


def members_as_text(members: Sequence[tuple[float, Mapping[str, float]]]) -> str:
    """Return loads of members and of some of their partitions as JSON, with four digits."""
    rounded = [
        (round(load, 4), {name: round(share, 4) for name, share in parts.items()}) for load, parts in members
    ]
    return msgspec.json.encode(rounded).decode()


def members_in(text: str) -> list[tuple[float, dict[str, float]]]:
    """Return what `members_as_text` wrote."""
    return msgspec.json.decode(text, type=list[tuple[float, dict[str, float]]])


def loads_as_text(loads: Mapping[int, float]) -> str:
    """Return loads by numbers of members more as a text, such as ``-1=1.2, +0=0.84``."""
    return ", ".join(f"{more:+d}={load:.6g}" for more, load in loads.items())


def loads_in(text: str) -> dict[int, float]:
    """Return what `loads_as_text` wrote."""
    pairs = (part.split("=") for part in text.split(", ") if part)
    return {int(more): float(load) for more, load in pairs}


def _in_one_line(message: str) -> str:
    return " ".join(message.split())


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
