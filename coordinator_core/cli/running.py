"""Runs of strategies on a scenario, in parallel processes, with progress bars on a terminal."""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from coordinator_core.assigning.combinators import with_deadline
from coordinator_core.assigning.limits import without_interrupts
from coordinator_core.cli.output import stderr
from coordinator_core.documents.scenario import Scenario
from coordinator_core.errors import RebalanceLabError
from coordinator_core.reading.raised import traceback_of
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import default_registry
from coordinator_core.scoring.measuring import measure
from coordinator_core.simulation.run import simulate
from coordinator_core.traces.invariants import Invariants
from coordinator_core.traces.trace import Trace

DEFAULT_TIMEOUT = 60.0
TIMEOUT_HELP = "How long an assignor may take for one assignment; 0 waits for ever."

_LOOK_EVERY_SECONDS = 0.2

_reached: "SynchronizedArray[int] | None" = None
"""In a worker process: the virtual time that each run has reached, for the bars of the parent."""


@dataclass(frozen=True)
class StrategyRun:
    """The result of one strategy: its figures and, if requested, its trace; or an error.

    ``traceback`` is that of the exception in an author's code, if it caused the error.
    """

    strategy: str
    figures: dict[str, float] | None = None
    trace: Trace | None = None
    error: str = ""
    traceback: str = ""


def run_all(
    scenario: Scenario,
    strategies: Sequence[str],
    *,
    jobs: int,
    keep_traces: bool,
    timeout: float,
    watch: Invariants | None = None,
) -> list[StrategyRun]:
    """Run every strategy on a scenario, in order. A strategy that fails does not stop the others.

    An assignor fails if it takes longer than `timeout` seconds for an assignment; 0 means no limit. ``watch``
    observes the run of a single strategy in this process.
    """
    if min(jobs, len(strategies)) <= 1:
        with _bars(scenario, strategies) as bars:
            return [
                _run(scenario, s, keep_traces, timeout, partial(bars.move, i), watch)
                for i, s in enumerate(strategies)
            ]
    context = multiprocessing.get_context("spawn")
    reached = context.Array("q", len(strategies))
    workers = min(jobs, len(strategies))
    with (
        ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(reached,)) as pool,
        _bars(scenario, strategies) as bars,
    ):
        try:
            with without_interrupts():
                runs = [
                    pool.submit(_run_apart, scenario, s, keep_traces, timeout, i)
                    for i, s in enumerate(strategies)
                ]
            waiting: set[Future[StrategyRun]] = set(runs)
            while waiting:
                _, waiting = wait(waiting, timeout=_LOOK_EVERY_SECONDS, return_when=FIRST_COMPLETED)
                for i in range(len(strategies)):
                    bars.move(i, reached[i])
        except KeyboardInterrupt:
            for process in multiprocessing.active_children():
                process.kill()
            raise
        return [_result(s, run) for s, run in zip(strategies, runs, strict=True)]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _result(strategy: str, run: Future[StrategyRun]) -> StrategyRun:
    try:
        return run.result()
    except BrokenProcessPool:
        error = "a process ended under it (killed, or out of memory?); --jobs 1 shows whose it was"
        return StrategyRun(strategy, error=error)


def _begin(reached: Any) -> None:
    global _reached
    _reached = reached


def _run_apart(
    scenario: Scenario, strategy: str, keep_trace: bool, timeout: float, number: int
) -> StrategyRun:
    def progress(at_ms: int) -> None:
        if _reached is not None:
            _reached[number] = at_ms

    return _run(scenario, strategy, keep_trace, timeout, progress)


def _run(
    scenario: Scenario,
    strategy: str,
    keep_trace: bool,
    timeout: float,
    progress: Any,
    watch: Invariants | None = None,
) -> StrategyRun:
    registry = default_registry()
    try:
        limited = _with_timeout(registry.strategy(strategy), timeout)
        trace = simulate(scenario, limited, registry, progress=progress, watch=watch)
        return StrategyRun(strategy, measure(trace, registry), trace if keep_trace else None)
    except RebalanceLabError as error:
        return StrategyRun(strategy, error=str(error), traceback=traceback_of(error))
    except SystemExit as error:
        return StrategyRun(strategy, error=f"its code ended the program (SystemExit: {error})")


def _with_timeout(strategy: Strategy, timeout: float) -> Strategy:
    if not timeout:
        return strategy
    deadline = lambda inner, make: with_deadline(inner, timeout)  # noqa: ARG005, E731
    return strategy.with_changes(wrappers=(*strategy.wrappers, deadline))


class _Bars:
    def __init__(self, progress: Progress | None, tasks: Sequence[Any]) -> None:
        self._progress, self._tasks = progress, tasks

    def move(self, number: int, at_ms: int) -> None:
        if self._progress is not None:
            self._progress.update(self._tasks[number], completed=at_ms)


@contextmanager
def _bars(scenario: Scenario, strategies: Sequence[str]) -> Iterator[_Bars]:
    """Show a bar for each strategy on a terminal, and nothing in a pipe."""
    if not sys.stderr.isatty():
        yield _Bars(None, ())
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=stderr(), transient=True) as progress:
        tasks = [progress.add_task(s, total=scenario.duration_ms) for s in strategies]
        yield _Bars(progress, tasks)
