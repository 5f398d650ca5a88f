"""Runs of strategies on scenarios, in this process or in parallel ones, with progress bars on a terminal."""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

from coordinator_core.assigning.combinators import with_deadline
from coordinator_core.assigning.limits import Ended, Workers, available_cores, exits_raise
from coordinator_core.errors import RebalanceLabError
from coordinator_core.reading.raised import traceback_of
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.files import write_whole
from rebalance_lab.cli.output import stderr
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.simulation.world.collector import collecting_rarely
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.traces.findings import findings_at_end
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.runs import Run, run_of

if TYPE_CHECKING:
    from rich.progress import Progress

TRIED_SECONDS = 0.25
WORTH_SECONDS = 1.0
"""Processes are started if runs of so many CPU seconds wait, as estimated after `TRIED_SECONDS`. To start one
takes a third of it."""


@dataclass(frozen=True)
class Task:
    """A run to be done: a strategy on a scenario. The trace is written to ``trace``, if given.

    ``every_message``: whether periodic messages of a group at rest are simulated.
    """

    scenario: Scenario
    strategy: str
    trace: Path | None = None
    every_message: bool = False


def run_all(
    tasks: Sequence[Task],
    *,
    jobs: int | None,
    timeout: float,
    progress: Callable[[float], None] | None = None,
) -> list[Run]:
    """Do runs and return their results in order. A run that fails does not stop others.

    With one job, all runs are done in this process, and so is a single run of code of this distribution; with
    more jobs, in so many parallel processes. A process that ends fails its run, and another process takes its
    place. None stands for this process, with others on the other cores if much work is left; for a process
    per core if code of other authors is run. An assignor fails if it takes longer than `timeout` seconds for
    an assignment; 0 means no limit. ``progress`` receives the share of all virtual time that the runs have
    reached.
    """
    with _bars(tasks, progress) as bars, closing(_Processes(tasks, timeout, bars.move)) as processes:
        if jobs == 1 or (len(tasks) == 1 and _is_ours(tasks)):
            with exits_raise():
                return [_run(task, timeout, partial(bars.move, i)) for i, task in enumerate(tasks)]
        if jobs is None:
            _take_part(processes)
        return processes.finish(jobs or available_cores())


def run_grid(
    rows: Sequence[Sequence[Task]],
    *,
    jobs: int | None,
    timeout: float,
    progress: Callable[[float], None] | None = None,
) -> list[list[Run]]:
    """Do rows of runs, for example one row for each candidate, and return their results: see `run_all`."""
    tasks = [task for row in rows for task in row]
    runs = iter(run_all(tasks, jobs=jobs, timeout=timeout, progress=progress) if tasks else [])
    return [list(islice(runs, len(row))) for row in rows]


def run_one(
    scenario: Scenario,
    strategy: str,
    *,
    timeout: float,
    watch: Invariants,
    exchanged: Callable[[Exchange], None] | None = None,
    every_message: bool = False,
) -> Run:
    """Do one run in this process, and return its trace and findings, without figures.

    ``watch`` and ``exchanged`` observe the run.
    """
    task = Task(scenario, strategy, every_message=every_message)
    with _bars([task]) as bars, exits_raise():
        move = partial(bars.move, 0)
        return _run(task, timeout, move, watch=watch, exchanged=exchanged)


class _Processes:
    """Runs, and the processes that do them.

    ``waiting`` lists the numbers of the runs that nobody has begun, ``results`` has the results by number.
    """

    def __init__(self, tasks: Sequence[Task], timeout: float, move: Callable[[int, int], None]) -> None:
        self.tasks, self.timeout, self.move = tasks, timeout, move
        self.waiting = deque(range(len(tasks)))
        self.results: dict[int, Run] = {}
        self._workers = Workers(_serve, timeout)
        self.close = self._workers.close

    def finish(self, count: int) -> list[Run]:
        """Do the runs that wait in up to `count` processes, and return the results of all runs."""
        while self.waiting or self._workers.busy:
            self.proceed(count, None)
        return [self.results[number] for number in range(len(self.tasks))]

    def proceed(self, count: int, seconds: float | None = 0) -> None:
        """Let up to `count` processes do runs, and take over what they report.

        Wait for a report so long; None waits for ever.
        """
        while self.waiting and len(self._workers.busy) < count:
            number = self.waiting.popleft()
            self._workers.begin(number, self.tasks[number])
        for number, answer in self._workers.answers(seconds):
            if isinstance(answer, int):
                self.move(number, answer)
                continue
            if isinstance(answer, Ended):
                answer = Run(self.tasks[number].strategy, error=answer.how)
            self.results[number] = answer
            self._workers.end(number, kill=bool(answer.error))  # its code may still run in the process


def _is_ours(tasks: Sequence[Task]) -> bool:
    """Return whether runs execute code of this distribution alone."""
    registry = default_registry()
    return all(registry.is_ours(registry.strategy(task.strategy)) for task in tasks)


def _take_part(processes: _Processes) -> None:
    """Do runs in this process, in order, until none waits. If much work is left, processes do runs meanwhile.

    No run is begun if a strategy has code of other authors, which could end the process, or after a run that
    has failed, whose code may still run.
    """
    tasks, waiting = processes.tasks, processes.waiting
    if not _is_ours(tasks):
        return
    helpers = done_ms = 0
    began = process_time()

    def progress(number: int, at_ms: int) -> None:
        nonlocal helpers
        processes.move(number, at_ms)
        spent = process_time() - began
        if not helpers and spent > TRIED_SECONDS:
            left_ms = sum(tasks[number].scenario.duration_ms for number in waiting)
            if spent * left_ms > WORTH_SECONDS * (done_ms + at_ms):
                helpers = available_cores() - 1
        if helpers:
            processes.proceed(helpers)

    while waiting:
        number = waiting.popleft()
        run = _run(tasks[number], processes.timeout, partial(progress, number))
        processes.results[number] = run
        if run.error:
            return
        done_ms += tasks[number].scenario.duration_ms


def _serve(connection: Any, timeout: float) -> None:
    """Do the runs that the parent sends, until it closes the connection."""
    with suppress(EOFError), collecting_rarely():
        while True:
            connection.send(_run(connection.recv(), timeout, connection.send))


def _run(
    task: Task,
    timeout: float,
    progress: Callable[[int], None],
    *,
    watch: Invariants | None = None,
    exchanged: Callable[[Exchange], None] | None = None,
) -> Run:
    """Do a run. One that is watched has its trace as a result, others their figures."""
    registry = default_registry()
    try:
        limited = _with_timeout(registry.strategy(task.strategy), timeout)
        trace = simulate(
            task.scenario,
            limited,
            registry,
            progress=progress,
            watch=watch,
            exchanged=exchanged,
            every_message=task.every_message,
        )
        if task.trace is not None:
            write_whole(task.trace, trace.encode())
        if watch is not None:
            return Run(task.strategy, trace=trace, findings=findings_at_end(trace, watch.now, registry))
        return replace(run_of(History(trace, registry), registry, {}), strategy=task.strategy)
    except RebalanceLabError as error:
        return Run(task.strategy, error=str(error), traceback=traceback_of(error))
    except SystemExit as error:
        return Run(task.strategy, error=f"its code ended the program (SystemExit: {error})")


def _with_timeout(strategy: Strategy, timeout: float) -> Strategy:
    if not timeout:
        return strategy
    deadline = lambda inner, make: with_deadline(inner, timeout)  # noqa: ARG005, E731
    return strategy.with_changes(wrappers=(*strategy.wrappers, deadline))


class _Bars:
    """A bar for each strategy: the virtual time that its runs have reached, of all of them together."""

    def __init__(
        self,
        tasks: Sequence[Task],
        progress: "Progress | None",
        share: Callable[[float], None] | None = None,
    ) -> None:
        self._tasks, self._progress, self._share = tasks, progress, share
        self._reached = [0] * len(tasks)
        self._all_ms = sum(task.scenario.duration_ms for task in tasks)
        self._bars: dict[str, Any] = {}
        if progress is not None:
            for name in dict.fromkeys(task.strategy for task in tasks):
                total = sum(task.scenario.duration_ms for task in tasks if task.strategy == name)
                self._bars[name] = progress.add_task(name, total=total)

    def move(self, number: int, at_ms: int) -> None:
        """Record the time that a run has reached."""
        step_ms, self._reached[number] = at_ms - self._reached[number], at_ms
        if self._share is not None:
            self._share(sum(self._reached) / self._all_ms)
        if self._progress is not None:
            self._progress.advance(self._bars[self._tasks[number].strategy], step_ms)


@contextmanager
def _bars(tasks: Sequence[Task], share: Callable[[float], None] | None = None) -> Iterator[_Bars]:
    """Show the bars on a terminal, and nothing in a pipe."""
    if not sys.stderr.isatty():
        yield _Bars(tasks, None, share)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=stderr(), transient=True) as progress:
        yield _Bars(tasks, progress, share)
