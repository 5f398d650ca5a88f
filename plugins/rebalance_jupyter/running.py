"""Runs of strategies in a notebook.

Code of this distribution runs in this process, as it ends by itself. Code of other authors, such as a class
of a cell, runs in a copy of this process (`assigning.limits`): it may never return, and only a process can be
ended. A new process could not import a class of a cell. The copy has the names of all cells, and only the
trace that it returns is pickled. What it prints is printed here; variables that it changes keep their values
here. Where processes cannot be copied, the code runs in a thread, which is ended at its next line of Python.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import dropwhile
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock, Thread, main_thread
from time import monotonic
from traceback import walk_stack
from typing import Any

from coordinator_core.assigning.limits import CAN_COPY, Worker
from coordinator_core.errors import AssignmentError, RebalanceLabError
from coordinator_core.reading.raised import place_in, raised
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.trace import Trace

LIMIT_S = 60.0
"""The seconds for which a run of authors' code may stand still."""

_TICK_S = 0.1
_ANSWER_S = 2.0
"""The time for the answer of a process that is asked for its line."""
_MOST_PRINTED = 100_000
"""Characters of output of a run that are passed on."""

Progress = Callable[[int], None]
"""Receives the virtual time that a run has reached, several times a second. An exception ends the run."""


def run_each(
    scenario: Scenario,
    strategies: Sequence[Strategy],
    registry: Registry,
    progress: Callable[[int, int], None] = lambda number, at_ms: None,  # noqa: ARG005
    *,
    limit_s: float | None = LIMIT_S,
) -> tuple[list[Trace], list[str]]:
    """Run strategies. Return the traces of those that succeeded and the errors of the others.

    ``progress`` receives the number of the running strategy and the virtual time that it has reached.
    """
    traces: list[Trace] = []
    errors: list[str] = []
    for number, strategy in enumerate(strategies):

        def reached(at_ms: int, number: int = number) -> None:
            progress(number, at_ms)

        try:
            traces.append(run_one(scenario, strategy, registry, reached, limit_s=limit_s))
        except RebalanceLabError as error:
            errors.append(f"{strategy.name}: {error}")
    return traces, errors


def run_one(
    scenario: Scenario,
    strategy: Strategy,
    registry: Registry,
    progress: Progress = lambda at_ms: None,  # noqa: ARG005
    *,
    limit_s: float | None = LIMIT_S,
) -> Trace:
    """Run a strategy. The limit is on the seconds for which the virtual time of authors' code stands still.

    Raises:
        InputError, PluginError, AssignmentError: as `simulate`; also if the limit is exceeded, or the process
            of authors' code ends.
    """
    if _is_ours(scenario, strategy, registry):
        return simulate(scenario, strategy, registry, progress=progress)
    return _run_apart(scenario, strategy, registry, progress, limit_s)


def _is_ours(scenario: Scenario, strategy: Strategy, registry: Registry) -> bool:
    """Whether the run executes code of this distribution alone, also in the assignors of single members."""
    texts = {text for member in scenario.members for text in member.overrides.assignors}
    return all(registry.is_ours(each) for each in (strategy, *map(registry.strategy, sorted(texts))))


def _run_apart(
    scenario: Scenario, strategy: Strategy, registry: Registry, progress: Progress, limit_s: float | None
) -> Trace:
    worker: _Copy | _InThread = (_Copy if CAN_COPY else _InThread)(scenario, strategy, registry)
    at_ms, since = 0, monotonic()
    try:
        while True:
            answer: Any = at_ms
            if worker.connection.poll(_TICK_S):
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    raise AssignmentError(strategy.name, [worker.how_it_ended()]) from None
            if isinstance(answer, Trace):
                return answer
            if isinstance(answer, RebalanceLabError):
                raise answer
            if isinstance(answer, str):
                print(answer, end="")  # noqa: T201
            elif answer > at_ms:
                at_ms, since = answer, monotonic()
            elif limit_s is not None and monotonic() - since > limit_s:
                text = f"did not get further than {at_ms / 1_000:g} s of the scenario within {limit_s:g} s"
                place = worker.place()
                raise AssignmentError(strategy.name, [f"{text} ({place})" if place else text])
            progress(at_ms)
    finally:
        worker.kill()


class _Copy:
    """A run in a copy of this process."""

    def __init__(self, *of_run: Any) -> None:
        self._worker = Worker.copied(_serve, *of_run)
        self.connection = self._worker.connection
        self.how_it_ended, self.kill = self._worker.how_it_ended, self._worker.kill

    def place(self) -> str:
        """Return the line of the author that runs; empty if it is unknown."""
        with suppress(EOFError, OSError):
            self.connection.send(None)
            until = monotonic() + _ANSWER_S
            while self.connection.poll(max(0, until - monotonic())):
                match self.connection.recv():
                    case ("at", str(place)):
                        return place
        return ""


class _InThread:
    """A run in a thread. It is ended at its next line of Python."""

    def __init__(self, *of_run: Any) -> None:
        self.connection, self._theirs = Pipe()
        self._has_ended = False
        self._thread = Thread(target=self._work, args=of_run, daemon=True)
        self._thread.start()

    def _work(self, *of_run: Any) -> None:
        with suppress(_EndedError):
            _simulate(self._send, *of_run)

    def _send(self, message: Any) -> None:
        self._has_ended = not isinstance(message, int | str)
        self._theirs.send(message)

    def place(self) -> str:
        """Return the line of the author that runs; empty if it is unknown."""
        return _place_of(self._thread.ident)

    def how_it_ended(self) -> str:
        """Describe the end of a thread that has sent no answer."""
        return "its thread ended without a result"

    def kill(self) -> None:
        """Raise an exception in the thread, if it still runs."""
        if not self._has_ended:
            raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
            raise_in(ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(_EndedError))
        self.connection.close()


class _EndedError(BaseException):
    """The run was ended. Code of an author that handles exceptions lets it pass."""


def _simulate(
    send: Callable[[Any], None], scenario: Scenario, strategy: Strategy, registry: Registry
) -> None:
    """Run, and send the virtual time, and at the end the trace or the error."""
    try:
        answer: Any = simulate(scenario, strategy, registry, progress=send)
    except RebalanceLabError as error:
        answer = error
    except BaseException as error:
        answer = AssignmentError(strategy.name, [f"raised {raised(error)}"])
    with suppress(OSError):  # nobody waits any more
        send(answer)


def _place_of(thread: int | None) -> str:
    """Return the line of the author that runs in the simulation of a thread."""
    frame = sys._current_frames().get(thread or 0)
    stack = list(walk_stack(frame))[::-1] if frame is not None else []
    return place_in(dropwhile(lambda pair: pair[0].f_code is not _simulate.__code__, stack))


# --- in the copy


def _serve(connection: Connection, *of_run: Any) -> None:
    lock = Lock()

    def send(message: Any) -> None:
        with lock:
            connection.send(message)

    Thread(target=_attend, args=(connection, send), daemon=True).start()
    sys.stdout = sys.stderr = _Output(send)
    _simulate(send, *of_run)


def _attend(connection: Connection, send: Callable[[Any], None]) -> None:
    """Answer with the line that runs, and end the process when the one that waits for it has ended."""
    try:
        while True:
            connection.recv()
            send(("at", _place_of(main_thread().ident)))
    except (EOFError, OSError):
        os._exit(1)


class _Output:
    """Passes on what is printed, until it is too much."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send, self._left = send, _MOST_PRINTED

    def write(self, text: str) -> int:
        if self._left > 0:
            end = "" if len(text) < self._left else "\n(the rest of the output is left out)\n"
            self._send(text[: self._left] + end)
            self._left -= len(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: text is passed on at once."""
