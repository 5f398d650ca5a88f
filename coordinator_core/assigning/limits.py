"""Calls that must answer within a time, by the wall clock.

The one clock below the command line, for whoever asks for a limit in seconds; what such a limit decides
differs from run to run.
"""

from collections.abc import Callable
from threading import TIMEOUT_MAX, Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what the call returns.

    Raises:
        TimeoutError: if the call takes longer.

    Python cannot stop a call from outside: one that hangs goes on in a thread of its own, which ends with
    the process.
    """
    outcome: list[tuple[T] | BaseException] = []

    def run() -> None:
        try:
            outcome.append((call(),))
        except BaseException as raised:
            outcome.append(raised)

    thread = Thread(target=run, name="within a deadline", daemon=True)
    thread.start()
    thread.join(min(seconds, TIMEOUT_MAX))
    if not outcome:
        raise TimeoutError(f"no answer within {seconds:g} s")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0][0]
