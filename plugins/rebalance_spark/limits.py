"""Calls that are stopped when they take too long, and a last resort for those that cannot be stopped."""

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
"""How long after the first alarm the next one follows, for code that swallows what an alarm raises."""


class _Overtime(BaseException):
    """Raised by the alarm in whatever runs; no Exception, so that a plugin does not take it for its own."""


def run_within(seconds: float, call: Callable[[], T]) -> T:
    """What the call returns or raises; 0 waits for ever. Raises TimeoutError when it takes longer.

    In the main thread of a process on Unix the call is really stopped, by an alarm, as soon as it is in
    Python code. Elsewhere it goes on in a thread of its own.
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
    """Ends the process if nobody has come by for too long: a call that no alarm could stop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._set_at = -seconds

    def pat(self) -> None:
        """Somebody came by. Between one and two times the seconds from now the process ends."""
        now = monotonic()
        if self._seconds and now - self._set_at >= self._seconds:
            self._set_at = now
            faulthandler.dump_traceback_later(2 * self._seconds, exit=True, file=sys.__stderr__ or 2)

    def stop(self) -> None:
        """Nothing can hang any more."""
        if self._seconds:
            self._set_at = -self._seconds
            faulthandler.cancel_dump_traceback_later()
