"""Scores in a folder or a table: a run adds what is missing, wherever the last one stopped."""

import os
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from coordinator_core.errors import InputError
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job
from rebalance_spark import read_scores, storage, write_scores
from rebalance_spark.storage import outcomes
from tests.places import ROOT
from tests.rebalance_spark.workloads import (
    FOR_FEW_ROWS,
    collected,
    comparable,
    frame,
    fresh_environment,
    scenario,
    scored_here,
    write_parquet,
)

TEXTS = {f"s-{n}": scenario(partitions=5 + n, seed=n) for n in range(6)}
STRATEGIES = ("range", "sticky")
PLAN = {"fidelity": "plan"}
DIFFERENT = "expected a different one in each row"

KILLED = """
import os, signal, sys
from rebalance_spark import spark_session, storage, write_scores

storage.PART_MS = 0.2
spark = spark_session("local[2]", {conf})
workload, out = spark.read.parquet(sys.argv[1]), sys.argv[2]
report = lambda progress: print(progress.written, flush=True)
write_scores(workload, ["range", "sticky"], out, fidelity="plan", report=report)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workload(spark):
    return frame(spark, TEXTS)


@pytest.fixture(scope="module")
def expected():
    return scored_here(Job(STRATEGIES, Fidelity.PLAN), TEXTS)


def written(workload, out, strategies=STRATEGIES, **options):
    return write_scores(workload, strategies, str(out), **{**PLAN, **options})


def stored(folder):
    return comparable(pq.read_table(folder, partitioning=None).to_pylist())


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.parquet")}


def test_a_run_writes_every_row_once_in_parts_and_the_next_one_nothing(
    spark, workload, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(storage, "PART_MS", 1)
    seen = []
    progress = written(workload, tmp_path / "a b", report=lambda p: seen.append((p.done, p.written)))
    assert (progress.scenarios, progress.rows, progress.written, progress.before) == (6, 12, 12, 0)
    assert progress.parts == len(seen) - 1 > 2
    assert [seen[0], seen[-1]] == [(0, 0), (progress.parts, 12)]
    assert stored(tmp_path / "a b") == expected == collected(read_scores(spark, str(tmp_path / "a b")))
    before = files(tmp_path / "a b")
    again = written(frame(spark, dict(reversed(TEXTS.items())), sized=False), tmp_path / "a b")
    assert (again.rows, again.before) == (0, 12)
    assert files(tmp_path / "a b") == before
    assert not (tmp_path / "a b" / "_lock.json").exists()


def test_what_is_missing_is_added_and_the_rest_stays(workload, expected, tmp_path):
    written(workload, tmp_path / "whole")
    gone = {("s-1", "range"), ("s-4", "range"), ("s-4", "sticky")}
    table = pq.read_table(tmp_path / "whole", partitioning=None)
    kept = [row for row in table.to_pylist() if (row["scenario_id"], row["strategy"]) not in gone]
    part = tmp_path / "out" / "run=earlier" / "part=0" / "part.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(kept, schema=table.schema), part)
    before = files(tmp_path / "out")
    progress = written(workload, tmp_path / "out")
    assert (progress.rows, progress.written, progress.before) == (3, 3, 9)
    assert stored(tmp_path / "out") == expected
    assert before.items() <= files(tmp_path / "out").items()


def test_another_strategy_text_or_file_is_other_work_but_fewer_metrics_are_none(spark, workload, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("from assignors.range import RangeAssignor as Mine\n")
    strategies = ["range", f"{mine}:Mine"]
    assert written(workload, tmp_path / "out", ["range"]).rows == 6
    assert written(workload, tmp_path / "out", strategies).rows == 6
    assert written(workload, tmp_path / "out", strategies, metrics=["rounds"]).rows == 0
    mine.write_text("from assignors.sticky import StickyAssignor as Mine\n")
    assert written(workload, tmp_path / "out", strategies).rows == 6
    other = frame(spark, {**TEXTS, "s-2": scenario(partitions=9)})
    assert written(other, tmp_path / "out", ["range"]).rows == 1
    assert read_scores(spark, str(tmp_path / "out")).count() == 13


def test_failed_rows_are_computed_again_if_asked_for_and_the_last_row_counts(spark, tmp_path):
    texts, out = {"good": scenario(), "bad": "name: x"}, tmp_path / "out"
    runs = [
        written(frame(spark, texts), out, ["range"], retry=each).rows
        for each in ([], [], ["timeout"], ["error"])
    ]
    assert runs == [2, 0, 0, 1]
    assert pq.read_table(out, partitioning=None).num_rows == 3
    assert read_scores(spark, str(out)).count() == 2
    counted = [(o["status"], o["scenario_id_count"], o["scenario_id_min"]) for o in outcomes(spark, str(out))]
    assert sorted(counted) == [("error", 1, "bad"), ("ok", 1, "good")]


def test_scores_in_a_table_are_those_in_a_folder(spark, workload, tmp_path):
    teams = workload.withColumn("team", sf.lit("red"))
    try:
        assert write_scores(teams, ["range"], table="stored_scores", **PLAN).written == 6
        assert write_scores(teams, STRATEGIES, table="stored_scores", **PLAN).written == 6
        written(teams, tmp_path / "out")
        assert collected(read_scores(spark, table="stored_scores")) == stored(tmp_path / "out")
        counted = outcomes(spark, table="stored_scores")
        assert sorted(map(str, counted)) == sorted(map(str, outcomes(spark, str(tmp_path / "out"))))
        with pytest.raises(InputError, match="stored_scores: found a table without colour, expected these"):
            write_scores(teams.withColumn("colour", sf.lit(1)), ["range"], table="stored_scores", **PLAN)
    finally:
        spark.sql("DROP TABLE IF EXISTS stored_scores")


@pytest.mark.parametrize(
    ("name", "problem"), [("s-2", "'s-2' 2 times"), ("", "a row without"), (None, "a row")]
)
def test_an_id_that_is_missing_or_there_twice_is_refused(spark, workload, tmp_path, name, problem):
    with pytest.raises(InputError, match=problem):
        written(workload.union(frame(spark, {name: scenario()})), tmp_path / "out")


def test_other_scores_and_other_files_are_not_mixed_with_these(spark, workload, tmp_path):
    out = tmp_path / "out"
    written(workload.withColumn("team", sf.lit(1)), out, ["range"])
    for other, problem in (
        (
            {"fidelity": "protocol"},
            "scores with fidelity 'plan', expected those with fidelity 'protocol', or",
        ),
        ({"seed": 0}, "scores with other seeds, expected those with seed 0"),
        ({"start": "range"}, "with no start, expected those with start 'range'"),
    ):
        with pytest.raises(InputError, match=problem):
            written(workload, out, ["range"], **other)
    with pytest.raises(InputError, match="scores in which 'team' is int, expected string, or another place"):
        written(workload.withColumn("team", sf.lit("red")), out, ["range"])
    pq.write_table(pa.table({"colour": ["green"]}), tmp_path / "paint.parquet")
    (tmp_path / "paint").mkdir()
    (tmp_path / "paint.parquet").rename(tmp_path / "paint" / "paint.parquet")
    with pytest.raises(InputError, match="found the columns colour, expected scores, or nothing"):
        written(workload, tmp_path / "paint")
    assert [path.name for path in (tmp_path / "paint").iterdir()] == ["paint.parquet"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: found a file, expected a folder"):
        written(workload, tmp_path / "file")
    with pytest.raises(InputError, match="nowhere: found no scores"):
        read_scores(spark, str(tmp_path / "nowhere"))


@pytest.mark.parametrize("left", [40, 2_000])
def test_a_file_that_is_torn_is_named_with_what_to_do(spark, workload, tmp_path, left):
    written(workload, tmp_path / "out")
    path = next((tmp_path / "out").rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(InputError, match="remove this one, and score computes its rows again") as caught:
        written(workload, tmp_path / "out")
    assert caught.value.where == str(path)
    path.unlink()
    assert written(workload, tmp_path / "out").written > 0


@pytest.mark.killed
def test_a_run_that_is_killed_and_started_again_equals_a_whole_one(spark, tmp_path, expected):
    source, out = write_parquet(tmp_path / "workload.parquet", TEXTS), tmp_path / "out"
    paths = os.pathsep.join([f"{ROOT}", f"{ROOT / 'plugins'}", *sys.path])
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(conf=FOR_FEW_ROWS), source, out],
        env={**fresh_environment(), "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while int(run.stdout.readline()) == 0:
        pass
    with pytest.raises(InputError, match=f"process {run.pid} on "):
        written(spark.read.parquet(source), out)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    assert (out / "_lock.json").exists()
    half = len(stored(out))
    assert 0 < half < len(expected)
    assert written(spark.read.parquet(source), out).written == len(expected) - half
    assert stored(out) == expected
