"""``rebalance-lab generate`` and ``score``, in this process, and how signals end them."""

import re
import shutil
import subprocess
import sys
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job
from rebalance_spark import storage
from rebalance_spark.storage import Progress
from tests.examples import rest_weekly
from tests.rebalance_spark.workloads import comparable, read_scores, scenario, scored_here, write_parquet

PLUGIN = """
from assignors.{module} import {name}
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl


@hookimpl
def assignors():
    return [AssignorSpec("{as_name}", type("Named", ({name},), dict(name="{as_name}")))]
"""
RANGE = {"module": "range", "name": "RangeAssignor"}

pytestmark = pytest.mark.slow

USUAL = r"^warning: groups with few scenarios|^[\d,]+ scenarios x \d+ strategies: [\d,]+ rows to score"

TEXTS = {"one": scenario(partitions=5), "two": scenario(partitions=7), "three": scenario(partitions=9)}


@pytest.fixture(autouse=True)
def session(request, search_path):
    """The session of the tests, but for those with a process of their own."""
    if "lab" in request.fixturenames:
        request.getfixturevalue("spark")


def told(answer):
    """The lines on stderr but for those of every run: its size, and that decisions take more scenarios."""
    return [line for line in answer.err.splitlines() if not re.search(USUAL, line)]


@pytest.fixture
def workload(tmp_path):
    return write_parquet(tmp_path / "workload.parquet", TEXTS)


@pytest.mark.parametrize("form", rest_weekly(["jsonl", "parquet"]))
def test_a_workload_is_generated_and_scored_once(lab, tmp_path, form):
    groups, out = tmp_path / "groups", tmp_path / "scores"
    generate = ("generate", "--profile", "microservices", "--rows", 3, "--seed", 5, "--out", groups)
    made = lab(*generate, "--format", form)
    assert made == (0, f"3 scenarios of microservices, seed 5, in {groups}\n", "")
    score = ("score", groups, "-s", "range", "-s", "sticky", "--fidelity", "plan", "--out", out)
    first = lab(*score)
    assert (first.status, told(first)) == (0, [])
    assert [line.split() for line in first.out.splitlines()] == [
        ["strategy", "ok", "error", "timeout"],
        ["range", "3", "0", "0"],
        ["sticky", "3", "0", "0"],
    ]
    ids = {row["scenario_id"] for row in read_scores(out)}
    assert ids == {f"microservices-5-{number}" for number in range(3)}
    if form == "parquet":
        files = sorted(out.iterdir())
        again = lab(*score)
        assert (again.status, again.out) == (0, first.out)
        assert told(again) == ["nothing to score: all 6 rows are done"]
        assert sorted(out.iterdir()) == files


def test_rows_that_fail_are_a_warning_each_kind_and_the_status_is_1(lab, tmp_path):
    texts = {"good": scenario(), "wrong": scenario(duration="soon"), "empty": "", "void": ""}
    path = write_parquet(tmp_path / "workload.parquet", texts)
    answer = lab("score", path, "-s", "range", "--fidelity", "plan", "--out", tmp_path / "scores")
    assert answer.status == 1
    assert answer.out.splitlines()[1].split() == ["range", "1", "3", "0"]
    assert "warning: error in wrong: wrong: duration: found 'soon', expected" in answer.err
    assert len(told(answer)) == 3


def test_errors_that_differ_in_names_and_numbers_only_are_one_kind(lab, tmp_path):
    texts = {f"group-{n}": scenario(duration=f"soon {n}") for n in range(3)}
    path = write_parquet(tmp_path / "workload.parquet", {**texts, "void": ""})
    answer = lab("score", path, "-s", "range", "--fidelity", "plan", "--out", tmp_path / "scores")
    assert [line.partition(" in ")[0] for line in told(answer)] == [
        "warning: error 3 times, first",
        "warning: error",
    ]
    assert "group-0: group-0: duration: found 'soon 0'" in answer.err


def test_a_table_is_scored_into_a_table_and_a_second_run_adds_what_is_missing(lab, spark, workload):
    spark.read.parquet(workload).withColumn("team", sf.lit("red")).createOrReplaceTempView("groups_of_teams")
    score = ("score", "--table", "groups_of_teams", "--out-table", "scores_of_teams", "--fidelity", "plan")
    try:
        runs = [lab(*score, "-s", "range"), lab(*score, "-s", "range"), lab(*score, "-s", "sticky")]
        assert [(run.status, told(run)) for run in (runs[0], runs[2])] == [(0, [])] * 2
        assert (runs[1].status, runs[1].out) == (0, runs[0].out)
        assert told(runs[1]) == ["nothing to score: all 3 rows are done"]
        rows = spark.table("scores_of_teams").toArrow().to_pylist()
        assert {row["team"] for row in rows} == {"red"}
        assert comparable(rows) == [
            {**row, "team": "red"} for row in scored_here(Job(("range", "sticky"), Fidelity.PLAN), TEXTS)
        ]
        assert len({row["run_id"] for row in rows}) == 2
        answer = lab("score", workload, "--out-table", "groups_of_teams")
        assert (answer.status, answer.out) == (2, "")
        assert "groups_of_teams: found a table without " in answer.err
    finally:
        spark.sql("DROP TABLE IF EXISTS scores_of_teams")


@pytest.fixture
def exported(tmp_path):
    """A folder with a row per partition, in columns with other names."""
    rows = {"app": ["g"] * 4, "pod": ["a", "b", "c", "c"], "topic": ["t"] * 4, "team": ["red"] * 4}
    amounts = {"partition": [0, 1, 2, 3], "rate": [None, 2.0, -1.0, 1.0]}
    (tmp_path / "groups").mkdir()
    pq.write_table(pa.table({**rows, **amounts}), tmp_path / "groups" / "hour=7.parquet")
    columns = ("--columns", "group=app,member=pod", "--fidelity", "plan")
    return (tmp_path / "groups", *columns)


def test_problems_of_a_table_are_said_before_it_is_scored_and_columns_are_carried(lab, exported, tmp_path):
    answer = lab(
        "score", *exported, "-s", "range", "--out", tmp_path / "scores", "--draws", "2", "--start", "range"
    )
    assert answer.status == 0, answer.err
    lines = answer.err.splitlines()
    assert lines[0].startswith("warning: unknown rates: ")
    assert lines[-1] == "2 scenarios x 1 strategies: 2 rows to score"
    rows = pq.read_table(tmp_path / "scores", partitioning=None).to_pylist()
    assert {(row["group"], row["team"], row["draw"], row["start_assignor"]) for row in rows} == {
        ("g", "red", draw, "range") for draw in (0, 1)
    }
    answer = lab("score", *exported, "-s", "range", "--out", tmp_path / "other", "--on-bad", "row")
    assert answer.status == 1
    assert answer.out.splitlines()[1].split() == ["range", "0", "1", "0"]
    answer = lab("score", *exported, "-s", "range", "--out", tmp_path / "third", "--on-bad", "raise")
    assert (answer.status, answer.out) == (2, "")
    shown = lab("score", *exported, "--show", "g")
    assert shown.out.startswith("name: g\n")
    assert "seed: " in shown.out
    assert (
        "--show: found 'h', expected an id of the workload, such as g"
        in lab("score", *exported, "--show", "h").err
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--columns", "owner=pod"], "--columns: found 'owner', expected one of group, member, topic,"),
        (["--columns", "pod"], "--columns: found 'pod', expected NAME=VALUE"),
        (["--start", "rnage"], "assignor: found 'rnage', expected one of"),
    ],
)
def test_columns_and_starts_that_do_not_exist_are_refused(lab, exported, tmp_path, options, problem):
    answer = lab("score", exported[0], *options, "--out", tmp_path / "scores")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {problem}")


def test_modules_archives_and_wheels_are_sent_to_the_workers(lab, workload, tmp_path):
    module, archive = tmp_path / "sent_module.py", tmp_path / "sent.zip"
    wheel = tmp_path / "sent_wheel-1.5-py3-none-any.whl"
    module.write_text(PLUGIN.format(**RANGE, as_name="from-module"))
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("sent_archive/__init__.py", "from assignors.range import RangeAssignor as Ranged\n")
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("sent_wheel.py", PLUGIN.format(**RANGE, as_name="from-wheel"))
        made.writestr(
            "sent_wheel-1.5.dist-info/METADATA", "Metadata-Version: 2.1\nName: sent-wheel\nVersion: 1.5\n"
        )
        made.writestr("sent_wheel-1.5.dist-info/entry_points.txt", "[rebalance_lab]\nsent = sent_wheel\n")
    names = ("from-module", "sent_archive:Ranged", "from-wheel")
    answer = lab(
        "score", workload, "--fidelity", "plan", "--out", tmp_path / "scores", "--plugin", "sent_module",
        *(each for name in names for each in ("-s", name)),
        *(each for path in (module, archive, wheel) for each in ("--py-files", path)),
    )  # fmt: skip
    assert (answer.status, told(answer)) == (0, [])
    rows = read_scores(tmp_path / "scores")
    ranged = scored_here(Job(("range",), Fidelity.PLAN), TEXTS)
    for name in names:
        found = [row["moved_partitions"] for row in rows if row["strategy"] == name]
        assert found == [row["moved_partitions"] for row in ranged]
    (versions,) = set(pq.read_table(tmp_path / "scores")["plugin_versions"].to_pylist())
    assert {"sent-wheel 1.5", "sent_module"} <= set(versions.split(", "))


def test_a_damaged_file_of_a_workload_is_named(lab, tmp_path):
    (tmp_path / "groups").mkdir()
    for name in ("whole", "damaged"):
        write_parquet(tmp_path / "groups" / f"{name}.parquet", {f"{name}-{n}": scenario() for n in range(20)})
    path = tmp_path / "groups" / "damaged.parquet"
    path.write_bytes(path.read_bytes()[:40] + bytes(160) + path.read_bytes()[200:])
    answer = lab("score", tmp_path / "groups", "--out", tmp_path / "scores", "--fidelity", "plan")
    assert (answer.status, answer.out) == (2, "")
    assert f"error: {path}: found a file that cannot be read (" in answer.err


@pytest.fixture
def disk(tmp_path):
    """A small file system, and the call that makes it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=30k", "tmpfs", folder]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder, lambda: subprocess.run(["mount", "-o", "remount,size=20m", folder], check=True)
    subprocess.run(["umount", "-l", folder], check=True)  # Spark may still have files open


def test_a_disk_that_was_full_has_all_scores_when_there_is_room(lab, disk, tmp_path):
    folder, grow = disk
    workload = write_parquet(tmp_path / "w.parquet", {f"x-{n}": scenario() for n in range(4)})
    command = ("score", workload, "--fidelity", "plan", "-s", "range", "-s", "sticky", "--out")
    full = lab(*command, folder / "out")
    assert full.status == 1
    assert "error: Spark gave up" in full.err
    assert "No space left on device" in full.err
    grow()
    assert lab(*command, folder / "out").status == 0
    assert lab(*command, tmp_path / "out").status == 0
    assert read_scores(folder / "out") == read_scores(tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--profile", "microservice"], "profile: found 'microservice', expected one of "),
        (["--profile", "skewed", "--with", "colour"], "--with: found 'colour', expected NAME=VALUE"),
        (["--profile", "skewed", "--conf", "=x"], "--conf: found '=x', expected NAME=VALUE"),
        (["--profile", "skewed", "--plugin", "no_module"], "plugin 'no_module', import: ModuleNotFound"),
        (
            ["--profile", "skewed", "--conf", "spark.sql.shuffle.partitions=-1"],
            "Spark: found a session that ",
        ),
    ],
)
def test_a_workload_that_cannot_be_generated_is_one_line_and_leaves_nothing(
    lab, tmp_path, arguments, problem
):
    out = tmp_path / "out"
    answer = lab("generate", "--rows", 1, "--out", out, *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {problem}")
    assert len(answer.err.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("there", ["a file", "a folder of somebody", "a workload"])
def test_what_is_there_is_not_written_over(lab, tmp_path, there):
    out = tmp_path / "out"
    if there == "a file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / ("part-0.parquet" if there == "a workload" else "notes.txt")).write_text("mine")
        if there == "a workload":
            (out / "_SUCCESS").touch()
    answer = lab("generate", "--profile", "skewed", "--rows", 1, "--out", out)
    assert answer == (
        2,
        "",
        f"error: --out: found {out}, which exists, expected a folder that does not exist yet\n",
    )
    left = out if out.is_file() else next(path for path in out.iterdir() if path.name != "_SUCCESS")
    assert left.read_text() == "mine"


def test_what_an_interrupted_run_left_is_written_over(lab, tmp_path):
    out = tmp_path / "out"
    (out / "_temporary").mkdir(parents=True)
    assert lab("generate", "--profile", "skewed", "--rows", 1, "--out", out).status == 0
    assert pq.read_table(out).num_rows == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["missing", "--out", "out"],
            "missing: found no such file or folder, expected Parquet or JSON Lines",
        ),
        (["--out", "out"], "score: found neither, expected one of INPUT, the path of a"),
        (["x", "--table", "y", "--out", "out"], "score: found both, expected one of INPUT"),
        (["x", "--out", "out", "--out-table", "y"], "score: found both, expected one of --out and"),
        (["x", "--out", "out", "-s", "watcher", "--fidelity", "plan"], "which has no plan"),
        (["x", "--out", "out", "--retry", "ok"], "--retry: found 'ok', expected one of error, timeout"),
        (["x", "--out", "out", "--conf", "x"], "--conf: found 'x', expected NAME=VALUE"),
        (["x", "--out", "out", "--py-files", "x.py"], "--py-files x.py: found no such file"),
        (["x", "--out", "out", "--plugin", "no_module"], "plugin 'no_module', import: Mod"),
    ],
)
def test_a_workload_that_cannot_be_scored_is_one_line(lab, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    answer = lab("score", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert problem in answer.err
    assert len(told(answer)) == 1
    assert not (tmp_path / "out").exists()


def test_rows_that_failed_are_computed_again_if_asked_for(lab, tmp_path):
    source = write_parquet(tmp_path / "bad.parquet", {"good": scenario(), "bad": "topics: ["})
    score = ("score", source, "-s", "range", "--fidelity", "plan", "--out", tmp_path / "scores")
    runs = [lab(*score), lab(*score), lab(*score, "--retry", "error,timeout")]
    assert {run.status for run in runs} == {1}
    assert len({run.out for run in runs}) == 1
    assert len(read_scores(tmp_path / "scores")) == 3


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (Progress(rows=9), "this run has written no rows; those of earlier runs are kept"),
        (
            Progress(rows=45, written=15),
            "15 of the 45 rows of this run are written and kept; the same command computes the other 30",
        ),
    ],
)
def test_a_run_that_ends_before_its_time_says_what_it_has_kept(progress, said):
    assert progress.after("Spark gave up (no disk)") == f"Spark gave up (no disk); {said}"


def test_a_run_that_spark_ends_says_how_many_rows_are_written(lab, workload, tmp_path, monkeypatch):
    write = storage._append

    def append(scores, out, table, run_id, part):
        if part == 1:
            scores = scores.where(sf.raise_error(sf.lit("no disk")).isNull())
        return write(scores, out, table, run_id, part)

    monkeypatch.setattr(storage, "PART_MS", 0.5)
    monkeypatch.setattr(storage, "_append", append)
    answer = lab("score", workload, "-s", "range", "--fidelity", "plan", "--out", tmp_path / "out")
    assert answer.status == 1
    assert "error: Spark gave up (" in answer.err
    assert "no disk" in answer.err


STOPPING = """
import os
import signal
import time
from rebalance_spark import sessions
from rebalance_spark.commands.options import session_of_a_command

sessions.spark_session = lambda master, conf, record: os.kill(os.getpid(), signal.{name}) or time.sleep(60)
session_of_a_command(None, {{}}, lambda: "stopped")
"""


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_a_run_with_a_line(name, status):
    done = subprocess.run(
        [sys.executable, "-c", STOPPING.format(name=name)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (status, "stopped\n")
