"""Lines about a score that takes long, where there is no terminal, and how signals end it."""

import os
import subprocess
import sys
from concurrent.futures import Future

import pytest

from rebalance_spark.chunks import Kept, Todo
from rebalance_spark.commands.progress import Pace, estimate, lines, progress

STOPPING = """
import os
import signal
import time
from rebalance_spark import sessions
from rebalance_spark.commands.options import session_of_a_command

sessions.spark_session = lambda master, conf: os.kill(os.getpid(), signal.{name}) or time.sleep(60)
session_of_a_command(None, {{}}, lambda: "stopped")
"""


def todo(rows, cost_ms, done=0):
    return Todo(None, rows, done, 1, 6_000, cost_ms)


def test_a_line_appears_at_most_every_half_minute_with_the_time_that_is_left(capsys):
    times = iter([0.0, 29.0, 31.0, 32.0, 60.0, 61.0, 95.0])
    report = lines(18_000, lambda: next(times))
    for done in (100, 1_550, 1_600, 1_650, 1_700, 18_000):
        report(done, done / 18_000)
    assert capsys.readouterr() == (
        "",
        "1,550 of 18,000 rows, 50 rows/s, 0:23 left\n1,700 of 18,000 rows, 28 rows/s, 5:26 left\n",
    )


@pytest.mark.parametrize(("now", "printed"), [(20.0, "100 of 900 rows, 5 rows/s, 1:00 left\n"), (4.0, "")])
def test_a_line_appears_when_a_tenth_is_done_if_the_rest_takes_longer_than_a_line(capsys, now, printed):
    times = iter([0.0, now, now + 1])
    report = lines(900, lambda: next(times))
    report(100, 0.2)
    report(101, 0.2)
    assert capsys.readouterr().err == printed


def test_the_time_that_is_left_goes_by_cost_and_not_by_the_start_of_spark():
    pace = Pace(100.0)
    assert pace.left(0.0, 105.0) is None
    assert pace.left(0.1, 110.0) == pytest.approx(45.0)
    assert pace.left(0.15, 112.0) == pytest.approx(0.85 * 7 / 0.15)
    assert pace.left(0.3, 114.0) == pytest.approx(14.0)


def test_a_line_says_when_nothing_is_done_yet(capsys):
    times = iter([0.0, 31.0])
    lines(10, lambda: next(times))(0, 0.0)
    assert capsys.readouterr().err == "0 of 10 rows\n"


def test_nothing_is_printed_without_a_terminal_unless_lines_are_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("rebalance_spark.commands.progress.LINE_SECONDS", 0)
    with progress(10, as_lines=True) as report:
        report(5, 0.5)
    assert capsys.readouterr().err.startswith("5 of 10 rows")
    with progress(10, as_lines=False) as report:
        report(5, 0.5)
        report(10, 1.0)
    assert capsys.readouterr() == ("", "")


def test_the_estimate_names_scenarios_rows_and_the_time_on_the_cores():
    assert estimate(todo(18_000, 1_080_000.0), 3, 2) == (
        "6,000 scenarios x 3 strategies: 18,000 rows to score, 9 min or more on 2 idle cores"
    )
    assert estimate(todo(12_000, 80_000.0, done=6_000), 3, 2) == (
        "6,000 scenarios x 3 strategies: 12,000 rows to score, 6,000 are done, 45 s or more on 2 idle cores"
    )


def chunk(rows, result=None):
    """A chunk that is complete, or has failed, or is in work."""
    work = Future()
    if isinstance(result, BaseException):
        work.set_exception(result)
    elif result is not None:
        work.set_result(None)
    return work, rows


def test_rows_of_chunks_that_are_complete_are_kept_and_no_others():
    cancelled, rows = chunk(7)
    cancelled.cancel()
    kept = Kept(45, [chunk(10, "done"), chunk(20), chunk(5, "done"), chunk(3, OSError()), (cancelled, rows)])
    assert kept.written == 15
    assert kept.after("stopped") == (
        "stopped; 15 of the 45 rows of this run are written and kept; the same command computes the other 30"
    )


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (Kept(), "this run has written no rows; those of earlier runs are kept"),
        (
            Kept(1_000, [chunk(1_000)]),
            "none of the 1,000 rows of this run is written, because its one chunk was not complete; the same"
            " command computes all of them",
        ),
        (
            Kept(9, [chunk(4), chunk(5)]),
            "none of the 9 rows of this run is written, because its 2 chunks were not complete; the same"
            " command computes all of them",
        ),
    ],
)
def test_a_run_that_keeps_nothing_says_so(kept, said):
    assert kept.after("Spark gave up (no disk)") == f"Spark gave up (no disk); {said}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_the_process_at_once_with_a_line(name, status):
    run = subprocess.run(
        [sys.executable, "-c", STOPPING.format(name=name)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (status, "", "stopped\n")
