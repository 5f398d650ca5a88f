"""Runs of strategies on a scenario, in parallel processes, with a bar on a terminal."""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from coordinator_core.cli.output import stderr
from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry import default_registry
from coordinator_core.scoring.comparison import measure
from coordinator_core.simulation.invariants import Invariants
from coordinator_core.simulation.run import simulate
from coordinator_core.simulation.scenario import Scenario
from coordinator_core.simulation.trace import Trace

_LOOK_EVERY_SECONDS = 0.2

_reached: "SynchronizedArray[int] | None" = None
"""In a worker process: the virtual time that each run has reached, for the parent's bar."""


@dataclass(frozen=True)
class Ran:
    """What became of one strategy: figures and, if asked for, the trace; or an error."""

    strategy: str
    figures: dict[str, float] | None = None
    trace: Trace | None = None
    error: str = ""


def run_all(
    scenario: Scenario,
    strategies: Sequence[str],
    *,
    jobs: int,
    keep_traces: bool,
    watch: Invariants | None = None,
) -> list[Ran]:
    """Every strategy on the scenario, in order; one that fails does not stop the others.

    ``watch`` is for one strategy in this process.
    """
    if min(jobs, len(strategies)) <= 1:
        with _bars(scenario, strategies) as bars:
            return [
                _run(scenario, s, keep_traces, partial(bars.move, i), watch) for i, s in enumerate(strategies)
            ]
    context = multiprocessing.get_context("spawn")
    reached = context.Array("q", len(strategies))
    workers = min(jobs, len(strategies))
    with (
        ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(reached,)) as pool,
        _bars(scenario, strategies) as bars,
    ):
        runs = [pool.submit(_run_apart, scenario, s, keep_traces, i) for i, s in enumerate(strategies)]
        waiting: set[Future[Ran]] = set(runs)
        while waiting:
            _, waiting = wait(waiting, timeout=_LOOK_EVERY_SECONDS, return_when=FIRST_COMPLETED)
            for i in range(len(strategies)):
                bars.move(i, reached[i])
        return [run.result() for run in runs]


def available_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin(reached: Any) -> None:
    global _reached
    _reached = reached


def _run_apart(scenario: Scenario, strategy: str, keep_trace: bool, number: int) -> Ran:
    def progress(at_ms: int) -> None:
        if _reached is not None:
            _reached[number] = at_ms

    return _run(scenario, strategy, keep_trace, progress)


def _run(
    scenario: Scenario, strategy: str, keep_trace: bool, progress: Any, watch: Invariants | None = None
) -> Ran:
    registry = default_registry()
    try:
        trace = simulate(scenario, registry.strategy(strategy), registry, progress=progress, watch=watch)
        return Ran(strategy, measure(trace, registry), trace if keep_trace else None)
    except RebalanceLabError as problem:
        return Ran(strategy, error=str(problem))


class _Bars:
    def __init__(self, progress: Progress | None, tasks: Sequence[Any]) -> None:
        self._progress, self._tasks = progress, tasks

    def move(self, number: int, at_ms: int) -> None:
        if self._progress is not None:
            self._progress.update(self._tasks[number], completed=at_ms)


@contextmanager
def _bars(scenario: Scenario, strategies: Sequence[str]) -> Iterator[_Bars]:
    """A bar for each strategy on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield _Bars(None, ())
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=stderr(), transient=True) as progress:
        tasks = [progress.add_task(s, total=scenario.duration_ms) for s in strategies]
        yield _Bars(progress, tasks)
