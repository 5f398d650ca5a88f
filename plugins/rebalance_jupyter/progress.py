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
    reached, began, done = [0, 0], monotonic(), Event()

    def move(number: int, at_ms: int) -> None:
        reached[:] = number, at_ms

    def line() -> dict[str, str]:
        number, at_ms = reached
        text = progress_text(names, number, at_ms / duration_ms, monotonic() - began)
        return {"text/plain": text, "text/html": f'<div role="status">{escape(text)}</div>'}

    if not hasattr(get_ipython(), "kernel"):
        yield move
        return
    thread = Thread(target=copy_context().run, args=(_write, line, done), daemon=True)
    thread.start()
    try:
        yield move
    finally:
        done.set()
        thread.join()


def progress_text(names: Sequence[str], number: int, part: float, seconds: float) -> str:
    """Describe how far runs are: ``sticky (2 of 3): 40 %, 12 s``."""
    which = f" ({number + 1} of {len(names)})" if len(names) > 1 else ""
    return f"{names[number]}{which}: {100 * part:.0f} %, {seconds:.0f} s"


def _write(line: Callable[[], dict[str, str]], done: Event) -> None:
    if done.wait(AFTER_SECONDS):
        return
    handle: Any = display(line(), raw=True, display_id=True)
    while not done.wait(EVERY_SECONDS):
        handle.update(line(), raw=True)
    handle.update({"text/plain": "", "text/html": ""}, raw=True)
