"""Scoring in a separate process, for rows of which one has killed its worker."""

from collections.abc import Sequence
from multiprocessing.connection import Connection

from coordinator_core.assigning.limits import Worker
from rebalance_lab.scoring.rows import Job, Row, Scorer, Spent, WorkerDiedError

START_SECONDS = 60.0
"""The longest time that a process may take to start."""


class Apart:
    """Scores like `Scorer`, in a process. A row that kills the process or hangs gets a status."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._scorer = Scorer(job)
        self._worker: Worker | None = None

    def rows(self, scenario_id: str, text: str, which: Sequence[int] | None = None) -> list[Row]:
        """Return a row for each strategy, or for those whose numbers are in `which`, one after the other."""
        chosen = range(len(self._job.strategies)) if which is None else which
        return [row for number in chosen for row in self._row(scenario_id, text, number)]

    def _row(self, scenario_id: str, text: str, number: int) -> list[Row]:
        # the document and the strategy have a timeout each; the alarm of the process rings before this one
        longest = 2 * self._job.timeout + 5.0 if self._job.timeout else None
        try:
            pipe = self._ready()
            pipe.send((scenario_id, text, [number]))
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
        return [self._scorer.failed(scenario_id, text, strategy, error, Spent())]

    def _cause_of_death(self) -> str:
        code = None if self._worker is None else self._worker.exit_status(5)
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        return f"the process that scored it died ({how}; out of memory, or a crash in compiled code?)"

    def _ready(self) -> Connection:
        if self._worker is None:
            self._worker = Worker(_serve, self._job)
            pipe = self._worker.connection
            if not pipe.poll(START_SECONDS) or pipe.recv() != "ready":
                raise EOFError("a process for scoring that does not start")
        return self._worker.connection

    def close(self) -> None:
        """Kill the process."""
        if self._worker is not None:
            self._worker.kill()
        self._worker = None


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
