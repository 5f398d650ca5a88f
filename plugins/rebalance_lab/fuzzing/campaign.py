"""Many runs of random scenarios, on all cores, until one fails or the time is over.

Each run is drawn from the seed and its number, so that it can be had again. The processes that run them are
watched: code that hangs or ends its process is a failure like others.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count as count_from
from multiprocessing.connection import Connection, wait
from random import Random
from time import monotonic
from typing import Any, Self

from coordinator_core.assigning.limits import Worker
from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.fuzzing.checks import ENDS, HANGS, HASH_SEED, Examined, Failure, examine
from rebalance_lab.fuzzing.coverage import Coverage
from rebalance_lab.fuzzing.drawing import FAULTS, Document, Range, draw_document
from rebalance_lab.fuzzing.shrinking import smallest
from rebalance_lab.scenarios.scenario import parse_scenario

TWICE_EVERY = 25
"""Of so many runs one is done again in another process, which has another hash seed."""

SHRINKING_TRIES = 400
_TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: strategies by their texts, documents to draw around, faults, ranges of settings."""

    strategies: tuple[str, ...]
    seed: int
    around: tuple[Document, ...] = ()
    faults: tuple[str, ...] = tuple(FAULTS)
    ranges: Mapping[str, Range] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """A failure, the strategy, and the smallest document that was found for it."""

    failure: Failure
    strategy: str
    document: Document
    number: int


@dataclass(slots=True)
class Report:
    """What has been done: runs that began and ended, why some need not come to rest, what they reached."""

    begun: int = 0
    runs: int = 0
    prevented: dict[str, int] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    found: list[Found] = field(default_factory=list)


def strategy_of(plan: Plan, number: int) -> str:
    """Return the strategy of a run: they take turns."""
    return plan.strategies[number % len(plan.strategies)]


def document_of(plan: Plan, number: int, registry: Registry) -> Document:
    """Return the document of a run. Equal plans and numbers give equal documents, in every process.

    Raises:
        InputError: if a document to draw around is none of a scenario that the strategy can run.
    """
    around = None
    if plan.around:
        around = plan.around[number // len(plan.strategies) % len(plan.around)]
    random, strategy = Random(f"{plan.seed}:{number}"), registry.strategy(strategy_of(plan, number))
    return draw_document(random, strategy, registry, around=around, faults=plan.faults, ranges=plan.ranges)


def examined_document(document: Document, strategy: str, registry: Registry) -> Examined:
    """Examine the run of a document.

    Raises:
        InputError: if it is none of a scenario that the strategy can run.
    """
    scenario = parse_scenario(document, where=str(document.get("name", "document")), registry=registry)
    return examine(scenario, registry.strategy(strategy), registry)


def shrunk(found: Found, registry: Registry, tries: int = SHRINKING_TRIES) -> Found:
    """Return the failure with the smallest document for which the same check fails."""
    last = found.failure

    def fails(document: Document) -> bool:
        nonlocal last
        try:
            failure = examined_document(document, found.strategy, registry).failure
        except InputError:
            return False
        if failure is None or failure.check != last.check:
            return False
        last = failure
        return True

    document = smallest(found.document, fails, tries)
    return Found(last, found.strategy, document, found.number)


def fuzz(
    plan: Plan,
    *,
    goes_on: Callable[[Report], bool],
    most: int = 1,
    jobs: int | None = None,
    timeout: float = 60.0,
    new: Callable[[Document], None] = lambda document: None,  # noqa: ARG005
) -> Report:
    """Run random scenarios as long as ``goes_on(report)``, until ``most`` failures are found.

    A failure of the same check and strategy as one before does not count. ``jobs``: the processes, by default
    one for each core. ``timeout``: the seconds that one run may take. ``new`` is called with each document
    whose run reached something that no run had reached.

    Raises:
        InputError: if a document to draw around is none of a scenario that a strategy can run.
    """
    report, registry = Report(), default_registry()
    for number in range(len(plan.strategies) * max(1, len(plan.around))):
        document_of(plan, number, registry)
    with _Pool(plan, jobs or available_cores(), timeout) as pool:
        while len(report.found) < most and (pool.is_busy or goes_on(report)):
            pool.begin(report, goes_on)
            for number, answer in pool.answers():
                _note(plan, report, number, answer, new)
    return report


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _note(
    plan: Plan, report: Report, number: int, answer: Examined | Failure, new: Callable[[Document], None]
) -> None:
    report.runs += 1
    failure = answer if isinstance(answer, Failure) else answer.failure
    strategy, registry = strategy_of(plan, number), default_registry()
    if isinstance(answer, Examined):
        if answer.prevented:
            report.prevented[answer.prevented] = report.prevented.get(answer.prevented, 0) + 1
        if report.coverage.add(answer.coverage.counts):
            new(document_of(plan, number, registry))
    known = {(found.failure.check, found.strategy) for found in report.found}
    if failure is not None and (failure.check, strategy) not in known:
        report.found.append(Found(failure, strategy, document_of(plan, number, registry), number))


class _Pool:
    """Processes that do runs, in the order of their numbers. A run is done again after every so many."""

    def __init__(self, plan: Plan, count: int, timeout: float) -> None:
        self._plan, self._count, self._timeout = plan, count, timeout
        self._numbers = count_from(0)
        self._idle: list[Worker] = []
        self._busy: dict[Connection, tuple[Worker, int, float]] = {}
        self._digests: dict[int, tuple[str, Worker]] = {}
        """The digests of runs that are to be done again, and the processes that have done them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self._idle, *(worker for worker, _, _ in self._busy.values())):
            worker.kill()

    @property
    def is_busy(self) -> bool:
        """Whether a run has not ended."""
        return bool(self._busy)

    def begin(self, report: Report, goes_on: Callable[[Report], bool]) -> None:
        """Begin runs while there are cores for them."""
        while len(self._busy) < self._count and goes_on(report):
            again = [
                n for n, (_, first) in self._digests.items() if self._idle and self._idle[-1] is not first
            ]
            number = again[0] if again else next(self._numbers)
            report.begun += not again
            worker = self._idle.pop() if self._idle else Worker(_serve, self._plan)
            self._busy[worker.connection] = worker, number, monotonic()
            with suppress(OSError):  # the process has ended, which the answer reports
                worker.connection.send(number)

    def answers(self) -> Iterator[tuple[int, Examined | Failure]]:
        """Yield the answers that come within a short time."""
        for connection in wait(list(self._busy), _TICK_S):
            assert isinstance(connection, Connection)
            worker, number, _ = self._busy.pop(connection)
            try:
                answer: Examined | Failure = connection.recv()
            except (EOFError, OSError):
                answer = Failure(ENDS, worker.how_it_ended())
                worker.kill()
            else:
                self._idle.append(worker)
            compared = self._compared(number, answer, worker)
            if compared is not None:
                yield number, compared
        for connection, (worker, number, began) in list(self._busy.items()):
            if monotonic() - began > self._timeout:
                del self._busy[connection]
                worker.kill()
                yield number, Failure(HANGS, f"the run did not end within {self._timeout:g} s")

    def _compared(self, number: int, answer: Examined | Failure, worker: Worker) -> Examined | Failure | None:
        """Return an answer, or of a run that was done again only a failure: a trace that differs."""
        if isinstance(answer, Failure) or number % TWICE_EVERY:
            return answer
        if number not in self._digests:
            self._digests[number] = answer.digest, worker
            return answer
        digest, _ = self._digests.pop(number)
        if digest == answer.digest:
            return None
        return Failure(HASH_SEED, "two processes have different traces of one run")


def _serve(connection: Any, plan: Plan) -> None:
    """Do the runs whose numbers the parent sends, until it closes the connection."""
    registry = default_registry()
    with suppress(EOFError):
        while True:
            number = connection.recv()
            document = document_of(plan, number, registry)
            connection.send(examined_document(document, strategy_of(plan, number), registry))
