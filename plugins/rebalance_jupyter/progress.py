"""A line in the output of a cell while runs take longer than a moment. It disappears at the end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from html import escape
from threading import Event, Thread
from time import monotonic
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display

AFTER_SECONDS = 1.0
"""Shorter runs show nothing."""
EVERY_SECONDS = 0.5


@contextmanager
def shown_progress(names: Sequence[str], duration_ms: int) -> Iterator[Callable[[int, int], None]]:
    """Show how far runs are. Yields the function that receives the number of a run and its virtual time.

    A thread writes the line, because a single step of a run may take long. Without a kernel nothing is shown.
    """
    line, done = _Line(names, duration_ms), Event()
    if not hasattr(get_ipython(), "kernel"):
        yield line.move
        return
    thread = Thread(target=copy_context().run, args=(_write, line, done), daemon=True)
    thread.start()
    try:
        yield line.move
    finally:
        done.set()
        thread.join()


class _Line:
    def __init__(self, names: Sequence[str], duration_ms: int) -> None:
        self._names, self._duration_ms = names, duration_ms
        self._number = self._at_ms = 0
        self._began = monotonic()

    def move(self, number: int, at_ms: int) -> None:
        self._number, self._at_ms = number, at_ms

    def __str__(self) -> str:
        return progress_text(
            self._names, self._number, self._at_ms / self._duration_ms, monotonic() - self._began
        )


def progress_text(names: Sequence[str], number: int, part: float, seconds: float) -> str:
    """Describe how far runs are: ``sticky (2 of 3): 40 %, 12 s``."""
    which = f" ({number + 1} of {len(names)})" if len(names) > 1 else ""
    return f"{names[number]}{which}: {100 * part:.0f} %, {seconds:.0f} s"


def _write(line: _Line, done: Event) -> None:
    if done.wait(AFTER_SECONDS):
        return
    handle: Any = display(_bundle(line), raw=True, display_id=True)
    while not done.wait(EVERY_SECONDS):
        handle.update(_bundle(line), raw=True)
    handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _bundle(line: _Line) -> dict[str, str]:
    text = str(line)
    return {"text/plain": text, "text/html": f'<div role="status">{escape(text)}</div>'}
