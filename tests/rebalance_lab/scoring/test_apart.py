"""Rows scored in a process apart: what kills it gets a row that says so, and the next ones their scores."""

import pytest

from rebalance_lab.scoring.apart import Apart
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job, Scorer
from tests.rebalance_spark.strangers import ME, SMALL_TEXT

pytestmark = pytest.mark.slow


@pytest.fixture
def apart_for():
    """Makes them; their processes end with the test."""
    made = []

    def make(*strategies, **job):
        made.append(Apart(Job(strategies, fidelity=Fidelity.PLAN, plugins=(ME,), **job)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def without_clock(rows):
    return [{name: value for name, value in row.items() if name not in ("wall_ms", "cpu_ms")} for row in rows]


def test_rows_are_those_of_the_same_process(apart_for):
    names = ("range", "raising", "sticky", "leaving", "no-such-strategy")
    apart = apart_for(*names, seed=9)
    scorer = Scorer(Job(names, fidelity=Fidelity.PLAN, plugins=(ME,), seed=9))
    for text in (SMALL_TEXT, "members: [", SMALL_TEXT.replace("small", "other")):
        rows = apart.rows("x", text)
        assert without_clock(rows) == without_clock(scorer.rows("x", text))
        assert all(row["wall_ms"] > 0 for row in rows)


def test_one_strategy_may_be_meant_alone(apart_for):
    assert [r["strategy"] for r in apart_for("sticky", "range").rows("x", SMALL_TEXT, [1])] == ["range"]


@pytest.mark.killed
def test_a_row_that_kills_its_process_gets_a_row_that_says_so(apart_for):
    before, row, after = apart_for("range", "deadly", "sticky").rows("x", SMALL_TEXT)
    assert (row["scenario_id"], row["strategy"], row["status"]) == ("x", "deadly", "error")
    assert row["error"] == (
        "the process that scored it died (exit status 7; out of memory, or a crash in compiled code?)"
    )
    assert "rounds" not in row
    assert (before["status"], after["status"]) == ("ok", "ok")
    assert after["strategy"] == "sticky"


@pytest.mark.killed
def test_a_process_that_is_killed_is_told_by_its_signal(apart_for):
    apart = apart_for("range")
    assert apart.rows("x", SMALL_TEXT)[0]["status"] == "ok"
    apart._worker.process.kill()
    apart._worker.process.join()
    (row,) = apart.rows("y", SMALL_TEXT)
    assert (row["scenario_id"], row["status"]) == ("y", "error")
    assert "died (signal 9;" in row["error"]
    assert apart.rows("z", SMALL_TEXT)[0]["status"] == "ok"


def test_a_row_that_no_alarm_can_stop_is_a_timeout_and_its_process_ends(apart_for, monkeypatch):
    apart = apart_for("range", "stubborn", timeout=1.0)
    rows = apart.rows("x", SMALL_TEXT) + apart.rows("y", SMALL_TEXT, [0])
    assert [(r["scenario_id"], r["status"]) for r in rows] == [("x", "ok"), ("x", "timeout"), ("y", "ok")]
    assert rows[1]["error"] == "no result within 1 s, and it could not be stopped"


def test_a_row_that_the_alarm_stops_costs_no_process(apart_for):
    apart = apart_for("range", "endless", timeout=1.0)
    apart.rows("x", SMALL_TEXT, [0])
    process = apart._worker.process
    (row,) = apart.rows("x", SMALL_TEXT, [1])
    assert (row["status"], row["error"]) == ("timeout", "no result within 1 s")
    assert apart._worker.process is process
    assert process.is_alive()


def test_closed_it_leaves_no_process_and_can_be_used_again(apart_for):
    apart = apart_for("range")
    apart.close()
    apart.rows("x", SMALL_TEXT)
    process = apart._worker.process
    apart.close()
    assert not process.is_alive()
    assert apart.rows("x", SMALL_TEXT)[0]["status"] == "ok"
