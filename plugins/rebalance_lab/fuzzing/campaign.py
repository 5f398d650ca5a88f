"""Many runs of random scenarios, on all cores, until one fails or the time is over.

Each run is drawn from the seed and its number, so that it can be had again. The processes that run them are
watched: code that hangs or ends its process is a failure like others.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count as count_from
from multiprocessing.connection import Connection, wait
from random import Random
from time import monotonic
from typing import Any, Self

from coordinator_core.assigning.limits import Worker, available_cores
from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.fuzzing.checks import ENDS, HANGS, HASH_SEED, Examined, Failure, examine
from rebalance_lab.fuzzing.coverage import Coverage
from rebalance_lab.fuzzing.drawing import FAULTS, Document, Range, draw_document
from rebalance_lab.fuzzing.shrinking import smallest
from rebalance_lab.scenarios.scenario import parse_scenario

TWICE_EVERY = 25
"""Of so many runs one is done again in another process, which has another hash seed."""

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

    def add(self, examined: Examined) -> int:
        """Count what a run was and reached. Return how many cells no run had reached before."""
        if examined.prevented:
            self.prevented[examined.prevented] = self.prevented.get(examined.prevented, 0) + 1
        return self.coverage.add(examined.coverage.counts)


def strategy_of(plan: Plan, number: int) -> str:
    """Return the strategy of a run: they take turns."""
    return plan.strategies[number % len(plan.strategies)]


def document_of(plan: Plan, number: int, registry: Registry, *, aimed: bool = True) -> Document:
    """Return the document of a run. Equal plans and numbers give equal documents, in every process.

    No code of assignors is run if it is not ``aimed`` (see `draw_document`).

    Raises:
        InputError: if a document to draw around is none of a scenario that the strategy can run.
    """
    around = None
    if plan.around:
        around = plan.around[number // len(plan.strategies) % len(plan.around)]
    random, strategy = Random(f"{plan.seed}:{number}"), registry.strategy(strategy_of(plan, number))
    return draw_document(
        random, strategy, registry, around=around, faults=plan.faults, ranges=plan.ranges, aimed=aimed
    )


def examined_document(document: Document, strategy: str, registry: Registry) -> Examined:
    """Examine the run of a document.

    Raises:
        InputError: if it is none of a scenario that the strategy can run.
    """
    scenario = parse_scenario(document, where=str(document.get("name", "document")), registry=registry)
    return examine(scenario, registry.strategy(strategy), registry)


def shrunk(found: Found, registry: Registry, goes_on: Callable[[], bool]) -> Found:
    """Return the failure with the smallest document for which the same check fails, as far as it goes on."""
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

    document = smallest(found.document, fails, goes_on)
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
        document_of(plan, number, registry, aimed=False)
    with _Pool(plan, jobs or available_cores(), timeout) as pool:
        while len(report.found) < most and (pool.is_busy or goes_on(report)):
            pool.begin(report, goes_on)
            for number, document, answer in pool.answers():
                failure = answer.failure if isinstance(answer, Examined) else answer
                if failure is not None:
                    _note(report, Found(failure, strategy_of(plan, number), document, number))
                report.runs += 1
                if isinstance(answer, Examined) and report.add(answer):
                    new(document)
    return report


def _note(report: Report, found: Found) -> None:
    """Note a failure, unless the same check has failed for the strategy before."""
    known = {(other.failure.check, other.strategy) for other in report.found}
    if (found.failure.check, found.strategy) not in known:
        report.found.append(found)


@dataclass(slots=True)
class _Turn:
    """A run of a process, since when, and its document once it is known."""

    worker: Worker
    number: int
    began: float
    document: Document = field(default_factory=dict)


class _Pool:
    """Processes that do runs, in the order of their numbers. A run is done again after every so many."""

    def __init__(self, plan: Plan, count: int, timeout: float) -> None:
        self._plan, self._count, self._timeout = plan, count, timeout
        self._numbers = count_from(0)
        self._idle: list[Worker] = []
        self._busy: dict[Connection, _Turn] = {}
        self._digests: dict[int, tuple[str, Worker]] = {}
        """The digests of runs that are to be done again, and the processes that have done them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self._idle, *(turn.worker for turn in self._busy.values())):
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
            self._busy[worker.connection] = _Turn(worker, number, monotonic())
            with suppress(OSError):  # the process has ended, which the answer reports
                worker.connection.send(number)

    def answers(self) -> Iterator[tuple[int, Document, Examined | Failure]]:
        """Yield the answers that come within a short time, with the numbers and documents of their runs."""
        for connection in wait(list(self._busy), _TICK_S):
            assert isinstance(connection, Connection)
            turn = self._busy[connection]
            try:
                answer: Document | Examined = connection.recv()
            except (EOFError, OSError):
                yield self._given_up(turn, ENDS, turn.worker.how_it_ended())
                continue
            if not isinstance(answer, Examined):
                turn.document = answer
                continue
            del self._busy[connection]
            self._idle.append(turn.worker)
            compared = self._compared(turn.number, answer, turn.worker)
            if compared is not None:
                yield turn.number, turn.document, compared
        for turn in list(self._busy.values()):
            if monotonic() - turn.began > self._timeout:
                yield self._given_up(turn, HANGS, f"the run did not end within {self._timeout:g} s")

    def _given_up(self, turn: _Turn, check: str, detail: str) -> tuple[int, Document, Failure]:
        """End the process of a run. If it has not told its document, that without an aim takes its place."""
        del self._busy[turn.worker.connection]
        turn.worker.kill()
        document = turn.document or document_of(self._plan, turn.number, default_registry(), aimed=False)
        return turn.number, document, Failure(check, detail)

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
            connection.send(document)
            connection.send(examined_document(document, strategy_of(plan, number), registry))
