"""The suite in a process of its own, which is stopped where a check takes too long.

The process says which group it is about to try, so that what it hung on can be told.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from rebalance_conformance.cases import Case, size_of
from rebalance_conformance.checks import Check
from rebalance_conformance.results import Outcome, Result
from rebalance_conformance.search import Bench, FaultError, Listener
from rebalance_conformance.subject import Subject
from rebalance_conformance.suite import as_expected, chosen_checks, failed, line_of, result_of

STARTUP_SECONDS = 60
"""To import what a check needs, on a machine that is busy."""

MOST_STOPPED = 3
"""After so many the others are not run: whoever hangs on ordinary groups hangs in nearly every check."""


class _Teller(Listener):
    """Sends on what it hears: the group as a line with its size, or the result as it stands."""

    def __init__(self, connection: Connection, subject: Subject) -> None:
        self._connection, self._subject = connection, subject
        self.check: Check | None = None

    def trying(self, case: Case) -> None:
        self._connection.send(("trying", (line_of(self._subject, case), size_of(case))))

    def found(self, fault: FaultError) -> None:
        assert self.check is not None
        self._connection.send(("found", failed(self._subject, self.check, fault)))


def results_in_time(
    subject: Subject, checks: Sequence[Check], expected: Mapping[str, str], *, examples: int, seconds: float
) -> Iterator[Result]:
    """What comes of each check; one without a result after so many seconds has failed.

    When three have, the rest are not run. The subject must pickle.
    """
    left, stopped = list(checks), 0
    while left and stopped < MOST_STOPPED:
        with _running(subject, [check.name for check in left], examples) as (process, connection):
            while left:
                result, alive = _next_result(left[0], connection, process, seconds)
                yield as_expected(result, expected)
                left.pop(0)
                if not alive:
                    stopped += 1
                    break
    for check in left:
        yield Result(check.name, check.doc, Outcome.NOT_RUN, f"{stopped} checks were stopped before")


def _next_result(
    check: Check, connection: Connection, process: SpawnProcess, seconds: float
) -> tuple[Result, bool]:
    """A check's result, and whether its process can go on."""
    until, wait = time.monotonic() + STARTUP_SECONDS, float(STARTUP_SECONDS)
    tried, found = ("", ""), None
    while connection.poll(max(0.0, until - time.monotonic())):
        try:
            kind, message = connection.recv()
        except (EOFError, ConnectionError):
            process.join()
            return _stopped(
                check, f"it ended the process it ran in (status {process.exitcode})", tried
            ), False
        if kind == "begun":
            until, wait = time.monotonic() + seconds, seconds
        elif kind == "trying":
            tried = message
        elif kind == "found":
            found = message
        else:
            return message, True
    if found is not None:
        return found, False  # not the smallest group, but one that it fails on
    return _stopped(check, f"no answer within {wait:g} s", tried), False


def _stopped(check: Check, problem: str, tried: tuple[str, str]) -> Result:
    line, size = tried
    reason = f"{problem}, on a group of {size}" if size and not line else problem
    return Result(check.name, check.doc, Outcome.FAILED, reason, line)


@contextmanager
def _running(
    subject: Subject, names: Sequence[str], examples: int
) -> Iterator[tuple[SpawnProcess, Connection]]:
    spawning = get_context("spawn")
    connection, theirs = spawning.Pipe()
    process = spawning.Process(target=_work, args=(theirs, subject, names, examples), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, connection
    finally:
        _end(process)
        connection.close()


def _end(process: SpawnProcess) -> None:
    """With all that it started: a process that hangs elsewhere does not see that this one is gone."""
    assert process.pid is not None
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()


def _work(connection: Connection, subject: Subject, names: Sequence[str], examples: int) -> None:
    """What the process runs. What the assignor prints goes where errors go."""
    if hasattr(os, "setsid"):
        os.setsid()
    os.dup2(sys.stderr.fileno(), 1)
    teller = _Teller(connection, subject)
    bench = Bench(subject, examples, time.process_time, teller)
    for check in chosen_checks(names):
        teller.check = check
        connection.send(("begun", check.name))
        connection.send(("result", result_of(bench, check)))
