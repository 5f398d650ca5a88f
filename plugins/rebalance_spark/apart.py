"""Scoring in a separate process, for rows of which one has killed its worker."""

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from rebalance_spark.rows import Job, Row, Scorer, WorkerDiedError

START_SECONDS = 60.0
"""The longest time that a process may take to start."""


class Apart:
    """Scores like `Scorer`, in a process. A row that kills the process or hangs gets a status."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._scorer = Scorer(job)
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def rows(self, scenario_id: str, text: str, which: int) -> list[Row]:
        """Return a row for each strategy that `which` selects. Each one is scored separately."""
        return [row for number in self._job.numbers(which) for row in self._row(scenario_id, text, number)]

    def _row(self, scenario_id: str, text: str, number: int) -> list[Row]:
        # the document and the strategy have a timeout each; the alarm of the process rings before this one
        longest = 2 * self._job.timeout + 5.0 if self._job.timeout else None
        try:
            pipe = self._ready()
            pipe.send((scenario_id, text, number))
            if pipe.poll(longest):
                rows: list[Row] = pipe.recv()
                return rows
            error: Exception = TimeoutError(
                f"no result within {self._job.timeout:g} s, and it could not be stopped"
            )
        except (EOFError, OSError):
            error = WorkerDiedError(self._cause_of_death())
        self.close()
        strategy = self._job.strategies[number]
        return [self._scorer.failed(scenario_id, strategy, error, 0.0)]

    def _cause_of_death(self) -> str:
        process = self._process
        if process is not None:
            process.join(5)
        code = process.exitcode if process is not None else None
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        return f"the process that scored it died ({how}; out of memory, or a crash in compiled code?)"

    def _ready(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, other_end = context.Pipe()
            self._process = context.Process(target=_serve, args=(other_end, self._job), daemon=True)
            self._process.start()
            other_end.close()
            if not self._pipe.poll(START_SECONDS) or self._pipe.recv() != "ready":
                raise EOFError("the process for scoring did not start")
        return self._pipe

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _serve(pipe: Connection, job: Job) -> None:
    """Run in the process: receive a row, send its scores, until the other end is closed."""
    scorer = Scorer(job)
    pipe.send("ready")
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        pipe.send(scorer.rows(*request))
