"""What a worker of Spark does with batches, without Spark."""

import pyarrow as pa
import pytest

from rebalance_spark import worker
from rebalance_spark.apart import Apart
from rebalance_spark.choices import Fidelity
from rebalance_spark.rows import ALL, Job, Scorer, registry_with
from rebalance_spark.schema import WORKLOAD_COLUMNS, arrow_schema, score_columns
from rebalance_spark.worker import COST, as_batch, score_batches
from tests.rebalance_spark.strangers import ME, SMALL_TEXT

SCHEMA = arrow_schema(score_columns(registry_with((ME,))))
COLUMNS = pa.schema([("scenario_id", pa.string()), ("scenario", pa.string()), ("which", pa.int32())])
RIGHT = {
    "scenario_id": "x",
    "strategy": "range",
    "fidelity": "plan",
    "status": "ok",
    "wall_ms": 1.5,
    "cpu_ms": 1.5,
    "program_version": "1",
    "plugin_versions": "",
}


def batch(*units):
    rows = [dict(zip(COLUMNS.names, unit, strict=True)) for unit in units]
    return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)


def job(*strategies, **more):
    return Job(strategies, fidelity=Fidelity.PLAN, plugins=(ME,), **more)


def scored(batches, for_job, done=None):
    return list(score_batches(iter(batches), job=for_job, schema=SCHEMA, done=done))


def table(batches):
    return [row for each in batches for row in each.to_pylist()]


# --- rows as Arrow


def test_columns_are_found_by_name_whatever_the_order_of_a_row():
    backwards = dict(reversed(RIGHT.items()))
    (row,) = as_batch([backwards], SCHEMA).to_pylist()
    assert {name: row[name] for name in RIGHT} == RIGHT


def test_a_batch_has_the_columns_of_the_schema_in_their_order():
    made = as_batch([RIGHT], SCHEMA)
    assert made.schema == SCHEMA
    made.validate(full=True)


def test_what_a_row_does_not_have_is_null():
    first, second = as_batch([{**RIGHT, "rounds": 3.0}, {**RIGHT, "seed": 7}], SCHEMA).to_pylist()
    assert (first["rounds"], first["seed"], first["error"]) == (3.0, None, None)
    assert (second["rounds"], second["seed"], second["error"]) == (None, 7, None)


def test_a_metric_that_the_schema_does_not_know_is_left_out():
    made = as_batch([{**RIGHT, "only_here": 5.0}], SCHEMA)
    assert made.schema == SCHEMA
    assert "only_here" not in made.to_pylist()[0]


def test_no_rows_are_a_batch_too():
    made = as_batch([], SCHEMA)
    assert (made.num_rows, made.schema) == (0, SCHEMA)


def test_the_largest_seed_there_is_fits():
    assert as_batch([{**RIGHT, "seed": 2**63 - 1}], SCHEMA).to_pylist()[0]["seed"] == 2**63 - 1


# --- batches


def test_columns_beside_those_that_are_read_are_repeated_for_each_row():
    sent = batch(("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, 1)).append_column("team", pa.array(["red", None]))
    (made,) = scored([sent], job("range", "raising"))
    assert made.schema.names == [*SCHEMA.names, "team"]
    assert [(row["scenario_id"], row["team"]) for row in made.to_pylist()] == [
        ("x", "red"),
        ("x", "red"),
        ("y", None),
    ]


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
    rows = table(scored([batch(("x", SMALL_TEXT, 1), ("y", SMALL_TEXT, 0))], job("range", "sticky")))
    assert [(r["scenario_id"], r["strategy"]) for r in rows] == [("x", "sticky"), ("y", "range")]


def test_columns_that_come_in_another_order_and_others_beside_are_no_matter():
    made = batch(("x", SMALL_TEXT, ALL)).select(["which", "scenario", "scenario_id"])
    made = made.append_column("more", pa.array([5]))
    assert table(scored([made], job("range")))[0]["scenario_id"] == "x"


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


def test_who_asked_is_told_how_many_rows_are_done():
    told = []
    first, second = batch(("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, 0)), batch(("z", SMALL_TEXT, ALL))
    first = first.append_column(COST, pa.array([2.0, 1.5]))
    found = scored([first, second], job("range", "raising"), lambda *done: told.append(done))
    assert told == [(3, 3.5), (2, 0.0)]
    assert [each.schema for each in found] == [SCHEMA, SCHEMA]


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
    units = [("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, 0)]
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


def test_the_first_try_scores_in_the_worker_itself(monkeypatch):
    monkeypatch.setattr(worker, "Apart", None)
    assert table(scored([batch(("x", SMALL_TEXT, ALL))], job("range")))[0]["status"] == "ok"


@pytest.mark.slow
def test_another_try_scores_apart_and_survives_what_killed_the_first(monkeypatch):
    closed = []

    class Watched(Apart):
        def close(self):
            closed.append(self)
            super().close()

    monkeypatch.setattr(worker, "_attempt", lambda: 1)
    monkeypatch.setattr(worker, "Apart", Watched)
    told = []
    units = [("x", SMALL_TEXT, ALL), ("y", SMALL_TEXT, 0)]
    rows = table(scored([batch(*units)], job("range", "deadly"), lambda *done: told.append(done)))
    assert [(r["scenario_id"], r["strategy"], r["status"]) for r in rows] == [
        ("x", "range", "ok"),
        ("x", "deadly", "error"),
        ("y", "range", "ok"),
    ]
    assert "died" in rows[1]["error"]
    assert told == [(3, 0.0)]
    assert closed
    assert closed[-1]._worker is None


def test_outside_of_spark_every_try_is_the_first():
    assert worker._attempt() == 0


def test_a_worker_reads_columns_that_a_workload_has():
    assert set(worker.UNIT_COLUMNS) - {"which"} <= {column.name for column in WORKLOAD_COLUMNS}
