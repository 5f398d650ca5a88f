"""Calls with a time limit, and a watchdog for calls that cannot be stopped."""

import faulthandler
import signal
import sys
from collections.abc import Callable
from threading import current_thread, main_thread
from time import monotonic
from typing import Any, TypeVar

from coordinator_core.assigning.limits import within

T = TypeVar("T")

_AGAIN_SECONDS = 1.0
"""The time between alarms. Further alarms follow the first one for code that catches its exception."""


class _Overtime(BaseException):
    """Raised by the alarm. It does not derive from Exception, so that plugins do not catch it."""


def run_within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call, which may take a number of seconds (0: no limit).

    In the main thread on Unix, an alarm stops the call as soon as it executes Python code. Elsewhere the call
    continues in a thread of its own.

    Raises:
        TimeoutError: if the call takes longer.
    """
    if not seconds:
        return call()
    if current_thread() is not main_thread() or not hasattr(signal, "setitimer"):
        return within(seconds, call)
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
        try:
            return call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _Overtime:
        raise TimeoutError(f"no result within {seconds:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(_signal: int, _frame: Any) -> None:
    raise _Overtime


class Watchdog:
    """Ends the process if `restart` is not called in time, because a call cannot be stopped by an alarm."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._set_at = -seconds

    def restart(self) -> None:
        """Restart the time. The process ends after one to two times the seconds."""
        now = monotonic()
        if self._seconds and now - self._set_at >= self._seconds:
            self._set_at = now
            faulthandler.dump_traceback_later(2 * self._seconds, exit=True, file=sys.__stderr__ or 2)

    def stop(self) -> None:
        """Stop watching."""
        if self._seconds:
            self._set_at = -self._seconds
            faulthandler.cancel_dump_traceback_later()
