"""What a worker of Spark does with batches, without Spark."""

import pyarrow as pa
import pytest

from rebalance_lab.scoring.apart import Apart
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job, Scorer, registry_with
from rebalance_spark import worker
from rebalance_spark.schema import SCORE_COLUMNS, arrow_schema, score_columns
from rebalance_spark.worker import score_batches, scored_batch
from tests.rebalance_spark.strangers import ME, SMALL_TEXT

ALL = None
SCHEMA = arrow_schema(score_columns(registry_with((ME,)).metrics().values()))
COLUMNS = pa.schema(
    [("scenario_id", pa.string()), ("scenario", pa.string()), ("which", pa.list_(pa.int32()))]
)


def batch(*units):
    rows = [dict(zip(COLUMNS.names, unit, strict=True)) for unit in units]
    return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)


def job(*strategies, **more):
    return Job(strategies, fidelity=Fidelity.PLAN, plugins=(ME,), **more)


def scored(batches, for_job):
    return list(score_batches(iter(batches), job=for_job, schema=SCHEMA))


def table(batches):
    return [row for each in batches for row in each.to_pylist()]


# --- batches as Arrow


def row_of(**fields):
    needed = {c.name: {"string": "-", "double": 1.5}[c.type] for c in SCORE_COLUMNS if not c.nullable}
    return {**needed, "scenario_id": "x", **fields}


def made(*rows, sent=None):
    sent = batch(("x", "", [0])) if sent is None else sent
    found = scored_batch(sent, lambda *_: list(rows), SCHEMA)
    found.validate(full=True)
    return found


def test_columns_are_found_by_name_and_what_a_row_has_not_is_null():
    backwards = dict(reversed(row_of(rounds=3.0, only_here=5.0, seed=2**63 - 1).items()))
    found = made(backwards, row_of(error="none"))
    assert found.schema == SCHEMA
    first, second = found.to_pylist()
    assert (first["rounds"], first["seed"], first["error"]) == (3.0, 2**63 - 1, None)
    assert (second["rounds"], second["seed"], second["error"]) == (None, None, "none")


# --- batches


def test_columns_beside_those_that_are_read_follow_the_id_and_are_repeated_for_each_row():
    sent = batch(("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, [1])).append_column(
        "team", pa.array(["red", None])
    )
    (found,) = scored([sent], job("range", "raising"))
    assert found.schema.names == ["scenario_id", "team", *SCHEMA.names[1:]]
    rows = [(row["scenario_id"], row["team"]) for row in found.to_pylist()]
    assert rows == [("x", "red"), ("x", "red"), ("y", None)]


def test_there_is_a_row_for_each_scenario_and_strategy():
    rows = table(scored([batch(("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, ALL))], job("range", "raising")))
    assert [(r["scenario_id"], r["strategy"], r["status"]) for r in rows] == [
        ("x", "range", "ok"),
        ("x", "raising", "error"),
        ("y", "range", "ok"),
        ("y", "raising", "error"),
    ]


def test_the_figures_are_those_of_the_scorer_and_null_where_it_has_none():
    asked = job("range", "raising")
    for found, row in zip(
        table(scored([batch(("x", SMALL_TEXT, ALL))], asked)),
        Scorer(asked).rows("x", SMALL_TEXT),
        strict=True,
    ):
        full = {name: row.get(name) for name in SCHEMA.names}
        spent = {"wall_ms": 0, "cpu_ms": 0}
        assert found | spent == full | spent


def test_a_row_may_mean_one_strategy_alone():
    rows = table(scored([batch(("x", SMALL_TEXT, [1]), ("y", SMALL_TEXT, [0]))], job("range", "sticky")))
    assert [(r["scenario_id"], r["strategy"]) for r in rows] == [("x", "sticky"), ("y", "range")]


def test_each_batch_is_answered_before_the_next_is_asked_for():
    asked = []

    def batches():
        for name in "ab":
            asked.append(name)
            yield batch((name, SMALL_TEXT, ALL))

    answers = score_batches(batches(), job=job("range"), schema=SCHEMA)
    assert asked == []
    assert next(answers).to_pylist()[0]["scenario_id"] == "a"
    assert asked == ["a"]
    assert next(answers).to_pylist()[0]["scenario_id"] == "b"


def test_no_batches_and_empty_batches_have_no_rows():
    assert scored([], job("range")) == []
    (empty,) = scored([batch()], job("range"))
    assert (empty.num_rows, empty.schema) == (0, SCHEMA)


@pytest.mark.parametrize("unit", [(None, SMALL_TEXT, ALL), ("x", None, ALL), (None, None, ALL)])
def test_what_is_null_is_empty_and_its_row_as_good_as_any(unit):
    made = scored([batch(unit)], job("range"))
    made[0].validate(full=True)
    (row,) = table(made)
    assert row["scenario_id"] == (unit[0] or "")
    assert (row["status"], row["error"]) == ("ok", None) if unit[1] else ("error", row["error"])
    assert unit[1] or "found nothing (it is empty)" in row["error"]


@pytest.fixture
def dogs(monkeypatch):
    """The watchdogs that were made, which only count."""
    made = []

    class Dog:
        def __init__(self, seconds):
            self.seconds, self.pats, self.stops = seconds, 0, 0
            made.append(self)

        def restart(self):
            self.pats += 1

        def stop(self):
            self.stops += 1

    monkeypatch.setattr(worker, "Watchdog", Dog)
    return made


@pytest.mark.slow
def test_an_endless_loop_is_a_row_and_the_watchdog_has_patience_for_it(dogs):
    units = [("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, [0])]
    rows = table(scored([batch(*units)], job("range", "endless", timeout=1.0)))
    assert [r["status"] for r in rows] == ["ok", "timeout", "ok"]
    (dog,) = dogs
    assert dog.seconds > 3 * 1.0  # the document and two strategies
    assert (dog.pats, dog.stops) == (2, 1)


def test_where_a_row_may_take_for_ever_the_watchdog_bites_nobody(dogs):
    scored([batch(("x", SMALL_TEXT, ALL))], job("range"))
    assert [dog.seconds for dog in dogs] == [0]


def test_the_watchdog_is_stopped_when_nobody_asks_for_more(dogs):
    answers = score_batches(iter([batch(("x", SMALL_TEXT, ALL))] * 2), job=job("range"), schema=SCHEMA)
    next(answers)
    assert [dog.stops for dog in dogs] == [0]
    answers.close()
    assert [dog.stops for dog in dogs] == [1]


# --- a task that is tried again


@pytest.mark.slow
def test_another_try_scores_apart_and_survives_what_killed_the_first(monkeypatch):
    closed = []

    class Watched(Apart):
        def close(self):
            closed.append(self)
            super().close()

    monkeypatch.setattr(worker, "_attempt", lambda: 1)
    monkeypatch.setattr(worker, "Apart", Watched)
    units = [("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, [0])]
    rows = table(scored([batch(*units)], job("range", "deadly")))
    assert [(r["scenario_id"], r["strategy"], r["status"]) for r in rows] == [
        ("x", "range", "ok"),
        ("x", "deadly", "error"),
        ("y", "range", "ok"),
    ]
    assert "died" in rows[1]["error"]
    assert closed
    assert closed[-1]._worker is None
