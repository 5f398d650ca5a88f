"""Calls with a limit of wall-clock time: in a thread, which cannot be stopped, or in a process, which can.

This is the only clock below the command line. The result of such a limit is not deterministic.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from threading import TIMEOUT_MAX, Thread, current_thread, main_thread
from typing import Any, TypeVar

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call, or raise its exception.

    A call that exceeds the limit continues in its thread, which ends with the process.

    Raises:
        TimeoutError: if the call takes longer.
    """
    outcome: list[tuple[T] | BaseException] = []

    def run() -> None:
        try:
            outcome.append((call(),))
        except BaseException as error:
            outcome.append(error)

    thread = Thread(target=run, name="within a deadline", daemon=True)
    thread.start()
    thread.join(min(seconds, TIMEOUT_MAX))
    if not outcome:
        raise TimeoutError(f"no answer within {seconds:g} s")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0][0]


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

    Wait for a message with ``connection.poll(seconds)``. The process ends with this one at the latest.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
        with without_interrupts():
            self.process.start()
        theirs.close()

    def exit_status(self, seconds: float | None = None) -> int | None:
        """Return the status of the ended process, negative for a signal, or None if it still runs."""
        self.process.join(seconds)
        return self.process.exitcode

    def kill(self) -> None:
        """Kill the process and, if it leads a process group, all processes of the group."""
        if hasattr(os, "killpg") and self.process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()
