"""Scoring in a process apart, for rows of which one has killed its worker: the process that dies is ours."""

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from rebalance_spark.rows import Job, Row, Scorer, WorkerDiedError

START_SECONDS = 60.0
"""A process that is not ready by then never will be."""


class Apart:
    """Scores like `Scorer`; the row that ends its process, or does not come back, has a status for it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._scorer = Scorer(job)
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def rows(self, scenario_id: str, text: str, which: int) -> list[Row]:
        """A row for each strategy that is meant, each scored on its own."""
        return [row for number in self._job.numbers(which) for row in self._row(scenario_id, text, number)]

    def _row(self, scenario_id: str, text: str, number: int) -> list[Row]:
        # twice over: once for reading the document, once for the strategy; the alarm of the process is first
        patience = 2 * self._job.timeout + 5.0 if self._job.timeout else None
        try:
            pipe = self._ready()
            pipe.send((scenario_id, text, number))
            if pipe.poll(patience):
                rows: list[Row] = pipe.recv()
                return rows
            wrong: Exception = TimeoutError(
                f"no result within {self._job.timeout:g} s, and it could not be stopped"
            )
        except (EOFError, OSError):
            wrong = WorkerDiedError(self._obituary())
        self.close()
        strategy = self._job.strategies[number]
        return [self._scorer.failed(scenario_id, strategy, wrong, 0.0)]

    def _obituary(self) -> str:
        process = self._process
        if process is not None:
            process.join(5)
        code = process.exitcode if process is not None else None
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        return f"the process that scored it died ({how}; out of memory, or a crash in compiled code?)"

    def _ready(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._job), daemon=True)
            self._process.start()
            theirs.close()
            if not self._pipe.poll(START_SECONDS) or self._pipe.recv() != "ready":
                raise EOFError("a process for scoring that does not start")
        return self._pipe

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _serve(pipe: Connection, job: Job) -> None:
    """In the process: a row in, its rows out, until nobody is there."""
    scorer = Scorer(job)
    pipe.send("ready")
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        pipe.send(scorer.rows(*asked))
