"""Other processes, which hash differently, that answer the same groups.

A process is told once how to make the assignor, as a pickle of names; then groups go in and answers come
out, a line of JSON each. Its standard output is closed to the assignor.
"""

import json
import os
import pickle
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.documents.groups import parse_group
from coordinator_core.model import TopicPartition
from rebalance_conformance.answers import Given, NoAnswerError, answer
from rebalance_conformance.cases import Case
from rebalance_conformance.search import FaultError

_SERVE = "from rebalance_conformance.remote import serve; serve()"


class CannotRemakeError(Exception):
    """The assignor cannot be made in another process, and why."""


class Process:
    """One of them."""

    def __init__(self, hash_seed: int) -> None:
        path = os.pathsep.join(each for each in sys.path if each)
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def ask(self, line: str) -> None:
        """Send a line; the process answers in its own time."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # which is told where the answer is missed

    def hear(self, case: Case) -> Given:
        """The answer to a group. Raises FaultError where there is none."""
        said = self.said()
        if "problem" in said:
            raise FaultError(said["problem"], case)
        return {m: [TopicPartition(topic, n) for topic, n in got] for m, got in said["given"].items()}

    def said(self) -> dict[str, Any]:
        """The next answer as it was sent."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            return {"problem": f"it ended the process it ran in (status {self._process.wait()})"}
        said: dict[str, Any] = json.loads(line)
        return said

    def end(self) -> None:
        """Stop it, whatever it is at."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def elsewhere(make: Callable[[], Assignor], hash_seeds: Sequence[int]) -> Iterator[list[Process]]:
    """A process for each hash seed. Raises CannotRemakeError."""
    try:
        pickled = b64encode(pickle.dumps(make)).decode()
    except Exception as wrong:  # pickle lets through whatever objects raise
        raise CannotRemakeError(str(wrong)) from wrong
    with ExitStack() as running:
        processes = []
        for seed in hash_seeds:
            processes.append(Process(seed))
            running.callback(processes[-1].end)
        for process in processes:
            process.ask(pickled)
        for process in processes:
            if problem := process.said().get("problem"):
                raise CannotRemakeError(problem)
        yield processes


def serve() -> None:
    """What such a process runs."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    groups = sys.stdin.buffer
    try:
        make = pickle.loads(b64decode(groups.readline()))
        make()
    except Exception as wrong:
        _say(answers, {"problem": f"{type(wrong).__name__}: {wrong}"})
        return
    _say(answers, {})
    for line in groups:
        parsed = parse_group(json.loads(line), "group")
        try:
            given = answer(make(), Case(parsed.cluster, parsed.group))
        except NoAnswerError as wrong:
            _say(answers, {"problem": str(wrong)})
        else:
            _say(answers, {"given": given})


def _say(answers: BinaryIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
    answers.flush()
