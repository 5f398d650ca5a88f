"""Many runs of random scenarios, on all cores, until one fails or the time is over.

Each run is drawn from the seed and its number, so that it can be had again. The processes that run them are
watched: code that hangs or ends its process is a defect like others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from random import Random
from time import monotonic
from typing import Any

from coordinator_core.assigning.limits import Ended, Worker, Workers, available_cores
from coordinator_core.errors import InputError
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.fuzzing.checks import ENDS, HANGS, HASH_SEED, Defect, Examined, examine
from rebalance_lab.fuzzing.coverage import Coverage
from rebalance_lab.fuzzing.drawing import FAULTS, Document, Range, draw_document, scenario_of
from rebalance_lab.fuzzing.shrinking import shrink
from rebalance_lab.scenarios.scenario import parse_scenario

TWICE_EVERY = 25
"""Of so many runs one is done again in another process, which has another hash seed."""

_TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Campaign:
    """What to run: strategies by their texts, documents to draw around, faults, ranges of settings.

    ``as_they_are``: the documents are run with nothing drawn, each once with each strategy.
    """

    strategies: tuple[str, ...]
    seed: int
    around: tuple[Document, ...] = ()
    faults: tuple[str, ...] = tuple(FAULTS)
    ranges: Mapping[str, Range] = field(default_factory=dict)
    as_they_are: bool = False

    @property
    def combinations(self) -> int:
        """The strategies times the documents to draw around."""
        return len(self.strategies) * max(1, len(self.around))

    def strategy_of(self, number: int) -> str:
        """Return the strategy of a run: they take turns."""
        return self.strategies[number % len(self.strategies)]

    def document_of(self, number: int, registry: Registry, *, aimed: bool = True) -> Document:
        """Return the document of a run. Equal campaigns and numbers give equal documents, in every process.

        No code of assignors is run if it is not ``aimed`` (see `draw_document`).

        Raises:
            InputError: if a document to draw around is none of a scenario that the strategy can run.
        """
        turn = number // len(self.strategies)
        around = self.around[turn % len(self.around)] if self.around else None
        strategy = registry.strategy(self.strategy_of(number))
        if around is not None and self.as_they_are:
            scenario_of(around, strategy, registry)
            return around
        return draw_document(
            Random(f"{self.seed}:{number}"),
            strategy,
            registry,
            around=around,
            faults=self.faults,
            ranges=self.ranges,
            aimed=aimed,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A defect, the strategy, and the smallest document that was found for it."""

    defect: Defect
    strategy: str
    document: Document
    number: int


@dataclass(slots=True)
class Tally:
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


def under_every_protocol(text: str, registry: Registry, documents: Iterable[Document] = ()) -> list[str]:
    """Return the texts of a strategy under all protocols that take it, and that can run some documents."""
    found = []
    for protocol in registry.protocols():
        with suppress(InputError):
            strategy = registry.strategy(f"{text}+{protocol}")
            for document in documents:
                scenario_of(document, strategy, registry)
            found.append(strategy.name)
    return found


def examine_document(document: Document, strategy: Strategy, registry: Registry) -> Examined:
    """Examine the run of a document.

    Raises:
        InputError: if it is none of a scenario that the strategy can run.
    """
    scenario = parse_scenario(document, where=str(document.get("name", "document")), registry=registry)
    return examine(scenario, strategy, registry)


def shrink_document(
    document: Document,
    defect: Defect,
    strategy: Strategy,
    registry: Registry,
    goes_on: Callable[[], bool],
) -> tuple[Defect, Document]:
    """Return the smallest document for which the same check fails, as far as it goes on, with its defect."""

    def fails(smaller: Document) -> bool:
        nonlocal defect
        try:
            found = examine_document(smaller, strategy, registry).defect
        except InputError:
            return False
        if found is None or found.check != defect.check:
            return False
        defect = found
        return True

    smallest = shrink(document, fails, goes_on)
    return defect, smallest


def shrink_found(found: Found, registry: Registry, goes_on: Callable[[], bool]) -> Found:
    """Return a defect that was found with the smallest document, as far as it goes on."""
    strategy = registry.strategy(found.strategy)
    defect, document = shrink_document(found.document, found.defect, strategy, registry, goes_on)
    return replace(found, defect=defect, document=document)


def fuzz(
    campaign: Campaign,
    *,
    goes_on: Callable[[Tally], bool],
    most: float = 1,
    jobs: int | None = None,
    timeout: float = 60.0,
) -> Tally:
    """Run random scenarios as long as ``goes_on(tally)``, until ``most`` defects are found.

    ``jobs``: the processes, by default one for each core. ``timeout``: the seconds that one run may take; 0
    waits for ever.

    Raises:
        InputError: if a document to draw around is none of a scenario that a strategy can run.
    """
    tally, registry = Tally(), default_registry()
    for number in range(campaign.combinations):
        campaign.document_of(number, registry, aimed=False)

    def has_more() -> bool:
        ends = campaign.as_they_are and tally.begun == campaign.combinations
        return len(tally.found) < most and not ends and goes_on(tally)

    with closing(_Pool(campaign, timeout)) as pool:
        while len(tally.found) < most and (pool.running or pool.again or has_more()):
            while pool.running < (jobs or available_cores()) and (pool.again or has_more()):
                tally.begun += pool.begin(tally.begun)
            for turn, answer in pool.answers():
                defect = answer.defect if isinstance(answer, Examined) else answer
                if defect is not None:
                    strategy = campaign.strategy_of(turn.number)
                    tally.found.append(Found(defect, strategy, turn.document, turn.number))
                if turn.first is None:
                    tally.runs += 1
                    if isinstance(answer, Examined):
                        tally.add(answer)
    return tally


@dataclass(slots=True)
class _Turn:
    """A run of a process, since when, and its document once it is known.

    ``first``: the digest of the run that it repeats, and the process that did that.
    """

    number: int
    began: float
    first: tuple[str, Worker] | None
    document: Document = field(default_factory=dict)


class _Pool:
    """Processes that do runs. Some are done again: those in ``again``, with what the first one was."""

    def __init__(self, campaign: Campaign, timeout: float) -> None:
        self.again: dict[int, tuple[str, Worker]] = {}
        self._campaign, self._timeout = campaign, timeout
        self._workers = Workers(_serve, campaign)
        self._turns: dict[int, _Turn] = {}
        self.close = self._workers.close

    @property
    def running(self) -> int:
        """The number of runs that have not ended."""
        return len(self._turns)

    def begin(self, number: int) -> bool:
        """Begin a run that is to be done again, or else that of a number. Return whether it is new."""
        first = None
        if self.again:
            number, first = self.again.popitem()
        self._turns[number] = _Turn(number, monotonic(), first)
        self._workers.begin(number, number, not_in=first and first[1])
        return first is None

    def answers(self) -> Iterator[tuple[_Turn, Examined | Defect]]:
        """Yield the answers that come within a short time."""
        for number, answer in self._workers.answers(_TICK_S):
            turn = self._turns[number]
            if isinstance(answer, Ended):
                yield self._given_up(turn, Defect(ENDS, answer.how))
            elif isinstance(answer, Examined):
                yield self._done(turn, answer)
            else:
                turn.document = answer
        for turn in list(self._turns.values()):
            if self._timeout and monotonic() - turn.began > self._timeout:
                yield self._given_up(turn, Defect(HANGS, f"the run did not end within {self._timeout:g} s"))

    def _done(self, turn: _Turn, answer: Examined) -> tuple[_Turn, Examined | Defect]:
        """Return the answer of a run, or a defect if it is another one than the first time."""
        del self._turns[turn.number]
        worker = self._workers.busy[turn.number]
        self._workers.end(turn.number)
        if turn.first is not None and turn.first[0] != answer.digest:
            return turn, Defect(HASH_SEED, "two processes have different traces of one run")
        wanted = self._campaign.as_they_are or turn.number % TWICE_EVERY == 0
        if turn.first is None and wanted and answer.defect is None:
            self.again[turn.number] = answer.digest, worker
        return turn, answer

    def _given_up(self, turn: _Turn, defect: Defect) -> tuple[_Turn, Defect]:
        """End the process of a run. If it has not told its document, that without an aim takes its place."""
        del self._turns[turn.number]
        self._workers.end(turn.number, kill=True)
        if not turn.document:
            turn.document = self._campaign.document_of(turn.number, default_registry(), aimed=False)
        return turn, defect


def _serve(connection: Any, campaign: Campaign) -> None:
    """Do the runs whose numbers the parent sends, until it closes the connection: perhaps during a run."""
    registry = default_registry()
    with suppress(EOFError, BrokenPipeError):
        while True:
            number = connection.recv()
            document = campaign.document_of(number, registry)
            connection.send(document)
            strategy = registry.strategy(campaign.strategy_of(number))
            connection.send(examine_document(document, strategy, registry))
