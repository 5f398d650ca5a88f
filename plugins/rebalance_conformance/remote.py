"""Assignors in other processes, with other hash seeds.

A process first receives what makes the assignor, then groups, and sends their assignments, as pickles. Output
of the assignor does not go to its standard output.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.reading.raised import raised
from rebalance_conformance.answers import Given, NoAnswerError, answer
from rebalance_conformance.cases import Case
from rebalance_conformance.search import FaultError

_SERVE = "from rebalance_conformance.remote import serve; serve()"


class CannotRemakeError(Exception):
    """The assignor cannot be made in another process."""


class Process:
    """A process with a hash seed."""

    def __init__(self, hash_seed: int) -> None:
        path = os.pathsep.join(folder for folder in sys.path if folder)
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def send(self, thing: Any) -> None:
        """Send what makes the assignor, or a group."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `response` reports that the process has ended
            pickle.dump(thing, self._process.stdin)
            self._process.stdin.flush()

    def receive(self, case: Case) -> Given:
        """Return the assignment of a group.

        Raises:
            FaultError: if the assignor or its process failed.
        """
        error, given = self.response()
        if error:
            raise FaultError(error, case)
        return given

    def response(self) -> tuple[str, Given]:
        """Return the next response: an error or "", and an assignment."""
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)  # type: ignore[no-any-return]
        except (EOFError, pickle.UnpicklingError):
            return f"it ended the process it ran in (status {self._process.wait()})", {}

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def elsewhere(make: Callable[[], Assignor], hash_seeds: Sequence[int]) -> Iterator[list[Process]]:
    """Start a process for each hash seed.

    Raises:
        CannotRemakeError: if the assignor cannot be made there.
    """
    try:
        pickle.dumps(make)
    except Exception as error:  # pickle passes on any exception of an object
        raise CannotRemakeError(str(error)) from error
    with ExitStack() as running:
        processes = []
        for seed in hash_seeds:
            processes.append(Process(seed))
            running.callback(processes[-1].end)
        for process in processes:
            process.send(make)
        for process in processes:
            reason, _ = process.response()
            if reason:
                raise CannotRemakeError(reason)
        yield processes


def serve() -> None:
    """Run in the process: assign each group that is received."""
    responses = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    groups = sys.stdin.buffer

    def respond(error: str, given: Given) -> None:
        pickle.dump((error, given), responses)
        responses.flush()

    try:
        make = pickle.load(groups)
        make()
    except Exception as error:
        respond(raised(error), {})
        return
    respond("", {})
    with suppress(EOFError):
        while True:
            try:
                respond("", answer(make(), pickle.load(groups)))
            except NoAnswerError as error:
                respond(str(error), {})
