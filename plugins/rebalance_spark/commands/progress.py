"""The progress of `rebalance-lab score`: a bar on a terminal; elsewhere lines, if they are asked for."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn

from rebalance_lab.cli.output import stderr

if TYPE_CHECKING:
    from rebalance_spark.chunks import ReportProgress, Todo

LINE_SECONDS = 30.0
"""The time between two lines."""

STARTING_SECONDS = 5.0
"""The approximate time in which Spark starts its workers, and counts errors at the end."""

_FIRST_SHARE = 0.1
"""The share of a run after which the first line is printed, if the rest takes longer than a line."""


def estimate(missing: "Todo", strategies: int, cores: int) -> str:
    """Return a sentence on the size of a run and its estimated time where nothing else runs."""
    minutes = (missing.cost_ms / cores / 1_000 + STARTING_SECONDS) / 60
    time = f"{minutes:,.0f} min" if minutes >= 1.5 else f"{60 * minutes:,.0f} s"
    done = f", {missing.done_before:,} are done" if missing.done_before else ""
    size = f"{missing.scenarios:,} scenarios x {strategies} strategies: {missing.rows:,} rows to score{done}"
    return f"{size}, {time} or more on {cores} idle cores"


@contextmanager
def progress(total: int, *, as_lines: bool) -> Iterator["ReportProgress"]:
    """Show finished rows, rate and remaining time of `total` rows: nothing without terminal and lines."""
    if not sys.stderr.isatty():
        yield lines(total, monotonic) if as_lines else lambda *_: None
        return
    columns = (
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"),
        TextColumn("{task.fields[rate]}"),
    )
    with Progress(*columns, console=stderr(), transient=True) as bar:
        task, pace = bar.add_task("", total=total, rate=""), Pace(monotonic())

        def report(done: int, share: float) -> None:
            bar.update(task, completed=done, rate=pace.text(done, share, monotonic()))

        yield report


def lines(total: int, clock: Callable[[], float]) -> "ReportProgress":
    """Return a function that prints a line to stderr every `LINE_SECONDS`, and one after a tenth."""
    pace = Pace(clock())
    due, is_first = pace.started + LINE_SECONDS, True

    def report(done: int, share: float) -> None:
        nonlocal due, is_first
        now = clock()
        left = pace.left(share, now)
        begins = is_first and share >= _FIRST_SHARE and left is not None and left > LINE_SECONDS
        if (now < due and not begins) or done >= total:
            return
        due, is_first = now + LINE_SECONDS, is_first and not begins
        rate = pace.text(done, share, now)
        stderr().print(f"{done:,} of {total:,} rows{', ' if rate else ''}{rate}")

    return report


class Pace:
    """The speed of a run as it is measured, by the estimated cost of the rows, and the time that is left.

    The start of Spark, but at most half of the time, is subtracted until as much again is done as in the
    first report.
    """

    def __init__(self, started: float) -> None:
        self.started = started
        self._first: tuple[float, float] | None = None

    def left(self, share: float, now: float) -> float | None:
        """Return the remaining seconds after a share of the cost, or None before anything is done."""
        if not share or now <= self.started:
            return None
        if self._first is None:
            self._first = now, share
        then, before = self._first
        passed = now - self.started
        speed = share / (passed - min(STARTING_SECONDS, passed / 2))
        if share >= 2 * before:
            speed = (share - before) / (now - then)
        return max(0.0, 1 - share) / speed

    def text(self, done: int, share: float, now: float) -> str:
        """Return the rows per second and the remaining time, or an empty text before anything is done."""
        left = self.left(share, now)
        if left is None:
            return ""
        minutes, seconds = divmod(round(left), 60)
        return f"{done / (now - self.started):,.0f} rows/s, {minutes}:{seconds:02} left"
