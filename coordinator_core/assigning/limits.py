"""Calls with a limit of wall-clock time: in a thread, which cannot be stopped, or in a process, which can.

This is the only clock below the command line. The result of such a limit is not deterministic.

A process is new (`Worker`), or a copy of this one (`Worker.copied`). A new one imports what it needs. A copy
has everything that this process has, such as the classes of a notebook's cells, which cannot be imported,
and starts in milliseconds. It has only the thread that has started it, and must not wait for the others.
There are copies where the platform can make them (`CAN_COPY`).
"""

import gc
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from threading import TIMEOUT_MAX, Lock, Thread, current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

T = TypeVar("T")

CAN_COPY = hasattr(os, "fork") and sys.platform != "darwin"
"""Whether a process can be copied. On macOS, libraries of the system may fail in a copy."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call, or raise its exception.

    A call that exceeds the limit continues in its thread, which ends with the process.

    Raises:
        TimeoutError: if the call takes longer.
    """
    (outcome,) = each_within(seconds, [call])
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome[0]


def each_within(seconds: float, calls: Sequence[Callable[[], T]]) -> Iterator[tuple[T] | BaseException]:
    """Yield the outcomes of calls that are made one after another: the result in a tuple, or the exception.

    The outcome of a call that exceeds the limit is TimeoutError, and the calls after it are made in another
    thread. A thread makes many calls, as it takes longer to start it than to assign a small group.
    """
    made = 0
    while made < len(calls):
        series = _Series(calls[made:])
        series.start()
        late = series.exceeds(seconds)
        yield from series.outcomes
        made += len(series.outcomes)
        if late:
            yield TimeoutError(f"no answer within {seconds:g} s")
            made += 1


def outcome_of(call: Callable[[], T]) -> tuple[T] | BaseException:
    """Return the result of a call in a tuple, or its exception."""
    try:
        return (call(),)
    except BaseException as error:
        return error


@contextmanager
def exits_raise() -> Iterator[None]:
    """Let `os._exit`, by which code of others would end this process without a word, raise SystemExit."""
    pid, exit_now = os.getpid(), os._exit

    def raise_exit(status: int) -> NoReturn:
        if os.getpid() != pid:  # a copy of this process, which ends so
            exit_now(status)
        raise SystemExit(status)

    os._exit = raise_exit
    try:
        yield
    finally:
        os._exit = exit_now


class _Series(Thread):
    """A thread that makes calls until one of them is too late."""

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        super().__init__(name="within a deadline", daemon=True)
        self.outcomes: list[tuple[Any] | BaseException] = []
        self._calls, self._began = calls, monotonic()
        self._turn, self._abandoned = Lock(), False

    def run(self) -> None:
        for call in self._calls:
            outcome = outcome_of(call)
            with self._turn:
                if self._abandoned:
                    return
                self.outcomes.append(outcome)
                self._began = monotonic()

    def exceeds(self, seconds: float) -> bool:
        """Wait until all calls are made, or until one takes longer than the limit."""
        left = seconds
        while True:
            self.join(min(left, TIMEOUT_MAX))
            with self._turn:
                if len(self.outcomes) == len(self._calls):
                    return False
                left = seconds - (monotonic() - self._began)
                if left <= 0:
                    self._abandoned = True
                    return True


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: the program that has started them ends them.

    Ctrl-C in this process has its effect at the end of the context.
    """
    if not hasattr(signal, "pthread_sigmask") or current_thread() is not main_thread():
        yield
        return
    resource_tracker.ensure_running()  # which unblocks signals when it starts its process
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a new process inherits
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if received:
            signal.raise_signal(signal.SIGINT)


class Worker:
    """A new process that runs ``target(connection, *arguments)``, and the other end of its connection.

    Wait for a message with ``connection.poll(seconds)``. The process is killed at the end of a ``with``. It
    ends with this one at the latest.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        call = pickle.dumps((target, arguments))
        self.process: BaseProcess = context.Process(target=_work, args=(theirs, call), daemon=True)
        with without_interrupts():
            self.process.start()
        theirs.close()

    @classmethod
    def copied(cls, target: Callable[..., None], *arguments: Any) -> Self:
        """Run the target in a copy of this process, which needs to pickle nothing."""
        context = get_context("fork")
        worker = cls.__new__(cls)
        worker.connection, theirs = context.Pipe()
        call = (worker.connection, theirs, target, arguments)
        worker.process = context.Process(target=_work_as_copy, args=call, daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: this process has threads
            worker.process.start()
        theirs.close()
        return worker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def exit_status(self, seconds: float | None = None) -> int | None:
        """Return the status of the ended process, negative for a signal, or None if it still runs."""
        self.process.join(seconds)
        return self.process.exitcode

    def how_it_ended(self) -> str:
        """Describe the end of a process that has sent no answer."""
        status = self.exit_status()
        how = f"status {status}" if status is None or status >= 0 else f"signal {-status}"
        return f"its process ended with {how} (by code of the strategy, or killed for lack of memory)"

    def kill(self) -> None:
        """Kill the process and, if it leads a process group, all processes of the group."""
        if hasattr(os, "killpg") and self.process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


@dataclass(frozen=True, slots=True)
class Ended:
    """What comes from a process that has ended in place of an answer."""

    how: str


class Workers:
    """Processes that run one target, each with one task at a time.

    A task is a message to a process. A process that has none gets the next; if all have one, another process
    is started. ``busy``: the processes that have a task, by its number.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self.busy: dict[int, Worker] = {}
        self._idle: list[Worker] = []
        self._target, self._arguments = target, arguments

    def begin(self, number: int, message: object, *, not_in: Worker | None = None) -> None:
        """Send a task to a process, if wanted to another one than a given one."""
        worker = next((worker for worker in reversed(self._idle) if worker is not not_in), None)
        if worker is None:
            worker = Worker(self._target, *self._arguments)
        else:
            self._idle.remove(worker)
        self.busy[number] = worker
        with suppress(OSError):  # the process has ended, which the answer reports
            worker.connection.send(message)

    def answers(self, seconds: float | None) -> Iterator[tuple[int, Any]]:
        """Yield what comes within a time, None for ever: numbers of tasks with a message, or with `Ended`."""
        from multiprocessing.connection import wait

        numbers = {worker.connection: number for number, worker in self.busy.items()}
        for connection in wait(list(numbers), seconds):
            number = numbers[connection]  # type: ignore[index]
            try:
                answer = self.busy[number].connection.recv()
            except (EOFError, OSError):
                answer = Ended(self.busy[number].how_it_ended())
            yield number, answer

    def end(self, number: int, *, kill: bool = False) -> None:
        """Note that a task is done. Its process is killed, or gets others."""
        worker = self.busy.pop(number)
        if kill:
            worker.kill()
        else:
            self._idle.append(worker)

    def close(self) -> None:
        """End the processes."""
        for worker in (*self._idle, *self.busy.values()):
            worker.kill()


def _work(connection: "Connection", call: bytes) -> None:
    """Make a call in a new process. Its modules are imported here, and no collection goes through them."""
    gc.disable()
    target, arguments = pickle.loads(call)
    gc.freeze()
    gc.enable()
    target(connection, *arguments)


def _work_as_copy(
    theirs: "Connection", connection: "Connection", target: Callable[..., None], arguments: Sequence[Any]
) -> None:
    """Make a call in a copy of a process. What the process had is not collected here."""
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    theirs.close()
    target(connection, *arguments)
