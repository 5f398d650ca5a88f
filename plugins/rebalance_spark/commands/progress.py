"""The progress of `rebalance-lab score`: a bar on a terminal; elsewhere lines, if they are asked for."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn

from coordinator_core.cli.output import stderr

if TYPE_CHECKING:
    from rebalance_spark.chunks import ReportProgress, Todo

LINE_SECONDS = 30.0
"""The time between two lines."""


def estimate(missing: "Todo", strategies: int, cores: int) -> str:
    """Return a sentence on the size of a run and its estimated time."""
    minutes = missing.cost_ms / cores / 60_000
    time = f"{minutes:,.0f} min" if minutes >= 1.5 else f"{60 * minutes:,.0f} s"
    done = f", {missing.done_before:,} are done" if missing.done_before else ""
    size = f"{missing.scenarios:,} scenarios x {strategies} strategies: {missing.rows:,} rows to score{done}"
    return f"{size}, about {time} on {cores} cores"


@contextmanager
def progress(total: int, *, as_lines: bool) -> Iterator["ReportProgress"]:
    """Show finished rows, rate and remaining time of `total` rows: nothing without terminal and lines."""
    if not sys.stderr.isatty():
        yield lines(total, monotonic) if as_lines else lambda done: None  # noqa: ARG005 (the interface's)
        return
    columns = (
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"),
        TextColumn("{task.fields[rate]}"),
    )
    with Progress(*columns, console=stderr(), transient=True) as bar:
        task = bar.add_task("", total=total, rate="")

        def report(done: int) -> None:
            bar.update(task, completed=done, rate=_rate(done, total, bar.tasks[0].elapsed or 0.0))

        yield report


def lines(total: int, clock: Callable[[], float]) -> "ReportProgress":
    """Return a function that prints a line to stderr, at most one every `LINE_SECONDS`."""
    started = clock()
    due = started + LINE_SECONDS

    def report(done: int) -> None:
        nonlocal due
        now = clock()
        if now < due or done >= total:
            return
        due = now + LINE_SECONDS
        rate = _rate(done, total, now - started)
        stderr().print(f"{done:,} of {total:,} rows{', ' if rate else ''}{rate}")

    return report


def _rate(done: int, total: int, elapsed: float) -> str:
    if not done or not elapsed:
        return ""
    left = (total - done) * elapsed / done
    minutes, seconds = divmod(round(left), 60)
    return f"{done / elapsed:,.0f} rows/s, {minutes}:{seconds:02} left"
