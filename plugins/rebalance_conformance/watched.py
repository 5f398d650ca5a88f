"""The suite in a process of its own, which is killed if a check takes too long.

The process reports each group before it tries it, so that a group on which it hangs can be named.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from coordinator_core.assigning.limits import Worker
from rebalance_conformance.cases import Case, size_of
from rebalance_conformance.checking import checks_named, failed, line_of, result_of
from rebalance_conformance.results import Outcome, Result
from rebalance_conformance.search import Bench, Check, FaultError, Listener
from rebalance_conformance.subject import Subject

STARTUP_SECONDS = 60
"""The time limit for the imports of a check on a busy machine."""

MOST_STOPPED = 3
"""After so many the others are not run: an assignor that hangs on ordinary groups hangs in most checks."""


class _Reporter(Listener):
    """Sends each group, as a line with its size, and the result so far."""

    def __init__(self, connection: Connection, subject: Subject) -> None:
        self._connection, self._subject = connection, subject
        self.check: Check | None = None

    def running(self) -> None:
        self._connection.send(("running", ""))

    def trying(self, case: Case) -> None:
        self._connection.send(("trying", (line_of(self._subject, case), size_of(case))))

    def found(self, fault: FaultError) -> None:
        assert self.check is not None
        self._connection.send(("found", failed(self._subject, self.check, fault)))


def results_in_time(
    subject: Subject,
    checks: Sequence[Check],
    *,
    examples: int,
    seconds: float,
    copied: bool = False,
) -> Iterator[Result]:
    """Yield the result of each check. A check without a result after `seconds` fails.

    In a check that runs scenarios, the limit applies to each run. After three such checks, the others are
    not run. Unless the process is a copy of this one, it must be possible to pickle the subject.
    """
    start = Worker.copied if copied else Worker
    left, stopped = list(checks), 0
    while left and stopped < MOST_STOPPED:
        with start(_work, subject, [check.name for check in left], examples) as worker:
            while left:
                result, alive = _next_result(left[0], worker, seconds)
                yield result
                left.pop(0)
                if not alive:
                    stopped += 1
                    break
    for check in left:
        yield Result(check.name, check.doc, Outcome.NOT_RUN, f"{stopped} checks were stopped before")


def _next_result(check: Check, worker: Worker, seconds: float) -> tuple[Result, bool]:
    """Return the result of a check, and whether its process can continue."""
    until, wait = time.monotonic() + STARTUP_SECONDS, float(STARTUP_SECONDS)
    tried, found = ("", ""), None
    while worker.connection.poll(max(0.0, until - time.monotonic())):
        try:
            kind, message = worker.connection.recv()
        except (EOFError, ConnectionError):
            reason = f"it ended the process it ran in (status {worker.exit_status()})"
            return _stopped(check, reason, tried), False
        if kind in ("begun", "running"):
            until, wait = time.monotonic() + seconds, seconds
        elif kind == "trying":
            tried = message
        elif kind == "found":
            found = message
        else:
            return message, True
    if found is not None:
        return found, False  # the group is not the smallest one
    return _stopped(check, f"no answer within {wait:g} s", tried), False


def _stopped(check: Check, reason: str, tried: tuple[str, str]) -> Result:
    line, size = tried
    if size and not line:
        reason = f"{reason}, on a group of {size}"
    return Result(check.name, check.doc, Outcome.FAILED, reason, line)


def _work(connection: Connection, subject: Subject, names: Sequence[str], examples: int) -> None:
    """Run the checks. Output of the assignor goes to standard error."""
    if hasattr(os, "setsid"):
        os.setsid()  # so that `kill` reaches the processes that a check starts
    os.dup2(2, 1)
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)  # not those of a notebook
    reporter = _Reporter(connection, subject)
    bench = Bench(subject, examples, time.process_time, reporter)
    for check in checks_named(names):
        reporter.check = check
        connection.send(("begun", check.name))
        connection.send(("result", result_of(bench, check)))
