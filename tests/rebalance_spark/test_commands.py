"""``rebalance-lab generate``, ``score`` and ``report``, in this process."""

import csv
import io
import shutil
import subprocess
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from rebalance_spark import findings
from rebalance_spark.choices import Fidelity
from rebalance_spark.findings import Findings
from rebalance_spark.page import as_page
from rebalance_spark.rows import Job, Scorer, registry_with
from rebalance_spark.schema import arrow_schema, score_columns
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

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark", "few_tasks", "search_path")]

TEXTS = {"one": scenario(partitions=5), "two": scenario(partitions=7), "three": scenario(partitions=9)}


@pytest.fixture
def workload(tmp_path):
    return write_parquet(tmp_path / "workload.parquet", TEXTS)


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """A folder of scores, one of which is an error."""
    job = Job(("range", "roundrobin"), Fidelity.PLAN)
    columns = arrow_schema(score_columns(registry_with(())))
    rows = [r for name, text in {**TEXTS, "wrong": "topics: ["}.items() for r in Scorer(job).rows(name, text)]
    folder = tmp_path_factory.mktemp("scores")
    pq.write_table(pa.Table.from_pylist(rows, schema=columns), folder / "part-0.parquet")
    return folder


# --- one after the other


@pytest.mark.parametrize("form", rest_weekly(["jsonl", "parquet"]))
def test_a_workload_is_generated_and_scored_once(lab, tmp_path, form):
    groups, out = tmp_path / "groups", tmp_path / "scores"
    generate = ("generate", "--profile", "microservices", "--rows", 3, "--seed", 5, "--out", groups)
    made = lab(*generate, "--format", form)
    assert made == (0, f"3 scenarios of microservices, seed 5, in {groups}\n", "")
    score = ("score", groups, "-s", "range", "-s", "sticky", "--fidelity", "plan", "--out", out)
    first = lab(*score)
    assert (first.status, first.err) == (0, "")
    assert [line.split() for line in first.out.splitlines()] == [
        ["strategy", "ok", "error", "timeout"],
        ["range", "3", "0", "0"],
        ["sticky", "3", "0", "0"],
    ]
    ids = {row["scenario_id"] for row in read_scores(out)}
    assert ids == {f"microservices-5-{number}" for number in range(3)}
    if form == "parquet":
        files = sorted(out.iterdir())
        assert lab(*score) == (0, first.out, "nothing to score: all 6 rows are done\n")
        assert sorted(out.iterdir()) == files


def test_rows_that_fail_are_a_warning_each_kind_and_the_status_is_1(lab, tmp_path):
    texts = {"good": scenario(), "wrong": scenario(duration="soon"), "empty": "", "void": ""}
    path = write_parquet(tmp_path / "workload.parquet", texts)
    answer = lab("score", path, "-s", "range", "--fidelity", "plan", "--out", tmp_path / "scores")
    assert answer.status == 1
    assert answer.out.splitlines()[1].split() == ["range", "1", "3", "0"]
    assert "warning: error in wrong: wrong: duration: found 'soon', expected" in answer.err
    assert len(answer.err.splitlines()) == 3


def test_errors_that_differ_in_names_and_numbers_only_are_one_kind(lab, tmp_path):
    texts = {f"group-{n}": scenario(duration=f"soon {n}") for n in range(3)}
    path = write_parquet(tmp_path / "workload.parquet", {**texts, "void": ""})
    answer = lab("score", path, "-s", "range", "--fidelity", "plan", "--out", tmp_path / "scores")
    assert [line.partition(" in ")[0] for line in answer.err.splitlines()] == [
        "warning: error 3 times, first",
        "warning: error",
    ]
    assert "group-0: group-0: duration: found 'soon 0'" in answer.err


def test_a_table_is_scored_into_a_table_and_a_second_run_adds_what_is_missing(lab, spark, workload):
    spark.read.parquet(workload).withColumn("team", sf.lit("red")).createOrReplaceTempView("groups_of_teams")
    score = ("score", "--table", "groups_of_teams", "--out-table", "scores_of_teams", "--fidelity", "plan")
    try:
        runs = [lab(*score, "-s", "range"), lab(*score, "-s", "range"), lab(*score, "-s", "sticky")]
        assert [(run.status, run.err) for run in (runs[0], runs[2])] == [(0, "")] * 2
        assert runs[1] == (0, runs[0].out, "nothing to score: all 3 rows are done\n")
        rows = spark.table("scores_of_teams").toArrow().to_pylist()
        assert {row["team"] for row in rows} == {"red"}
        assert comparable(rows) == [
            {**row, "team": "red"} for row in scored_here(Job(("range", "sticky"), Fidelity.PLAN), TEXTS)
        ]
        assert len({row["run_id"] for row in rows}) == 2
        answer = lab("score", workload, "--out-table", "groups_of_teams")
        assert (answer.status, answer.out) == (2, "")
        assert "groups_of_teams: found the columns scenario_id" in answer.err
    finally:
        spark.sql("DROP TABLE IF EXISTS scores_of_teams")


@pytest.fixture
def exported(tmp_path):
    """A folder with a row per partition, in columns with other names; one member has all that others had."""
    rows = {"app": ["g"] * 5, "pod": ["a", "b", "b", "c", "c"], "topic": ["t"] * 5, "team": ["red"] * 5}
    amounts = {"partition": [0, 1, 1, 2, 3], "rate": [None, 2.0, 2.0, -1.0, 1.0], "zone": ["x", *["y"] * 4]}
    (tmp_path / "groups").mkdir()
    pq.write_table(pa.table({**rows, **amounts}), tmp_path / "groups" / "hour=7.parquet")
    columns = ("--columns", "group=app,member=pod", "--fidelity", "plan")
    return (tmp_path / "groups", *columns)


def test_repairs_and_columns_that_differ_are_named_and_a_team_is_a_column(lab, exported, tmp_path):
    out = tmp_path / "scores"
    answer = lab("score", *exported, "-s", "range", "--out", out)
    assert answer.status == 0
    assert answer.err.splitlines() == [
        "warning: 3 rows of the input were repaired, in 1 scenarios (g): 2 with a rate or lag that is no"
        " amount, which counts as 0, 1 of a partition that has another row, which count as one",
        "warning: the column zone is null in 1 scenarios (g), because it differs within the group",
    ]
    report = lab("report", out, "--by", "team")
    assert "moved_partitions by team" in report.out
    assert "3 rows of the input were repaired, in 1 scenarios (g)" in report.out


def test_a_group_starts_with_the_assignment_of_an_assignor_and_has_draws(lab, exported, tmp_path):
    owned, started = tmp_path / "owned", tmp_path / "started"
    score = ("score", *exported, "-s", "range", "-s", "sticky")
    assert lab(*score, "--out", owned).status == 0
    assert lab(*score, "--out", started, "--start", "range", "--draws", "2").status == 0
    assert {row["scenario_id"] for row in read_scores(started)} == {"draw=0/g", "draw=1/g"}
    said = [lab("report", folder, "--baseline", "range").out.splitlines()[2] for folder in (owned, started)]
    assert said[0].startswith("In 1 of 1 scenarios, the owners at the start are not those that range gives;")
    assert said[1] == "Running groups start with the assignment of range (--start)."
    mixed = lab(*score, "--out", owned, "--start", "range")
    assert mixed.err == (
        f"error: {owned}: found scores with no start, expected those with start 'range', or another folder\n"
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
    assert (answer.status, answer.err) == (0, "")
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


@pytest.mark.parametrize("left", [40, 4_000])
def test_a_damaged_file_of_scores_is_set_aside_and_its_rows_are_computed_again(lab, tmp_path, left):
    workload, out = write_parquet(tmp_path / "w.parquet", {"x": scenario()}), tmp_path / "scores"
    command = ("score", workload, "--out", out, "--fidelity", "plan", "-s", "range")
    assert lab(*command).status == 0
    (path,) = out.rglob("*.parquet")
    whole = path.read_bytes()
    assert len(whole) > left
    path.write_bytes(whole[:left])
    refused = lab("report", out)
    assert refused.status == 2
    assert f"{path}: found a file that cannot be read" in refused.err
    answer = lab(*command)
    assert answer.status == 0, answer.err
    aside = path.with_name(f"_unreadable-{path.name}")
    assert f"{path} cannot be read: it is called {aside.name} now, and its rows are computed again" in (
        " ".join(answer.err.split())
    )
    assert aside.read_bytes() == whole[:left]
    assert "at java" not in answer.err
    assert lab("report", out).out.startswith("1 scenarios, plan fidelity")


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
    assert lab("report", folder / "out", "--all") == lab("report", tmp_path / "out", "--all")


# --- reports


def test_a_report_is_a_table_with_the_statistics_asked_for_and_the_front(lab, scores):
    answer = lab("report", scores, "--stat", "mean", "--balance", "weighted_imbalance")
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith("4 scenarios, plan fidelity (rebalance-lab ")
    assert lines[1] == "1 scenarios were completed by no strategy (wrong)"
    assert ["mean", "of", "3", "range", "roundrobin"] in [line.split() for line in lines]
    assert ["rounds", "1", "1"] in [line.split() for line in lines]
    front = next(line for line in lines if line.startswith("front"))
    assert front.split() == ["front,", "of", "3", "scenarios", "moved_partitions", "weighted_imbalance"]


def test_a_report_has_every_figure_as_csv(lab, scores):
    answer = lab("report", scores, "--format", "csv")
    assert (answer.status, answer.err) == (0, "")
    rows = {(row["strategy"], row["metric"]): row for row in csv.DictReader(io.StringIO(answer.out))}
    moves = {
        row["scenario_id"]: row["moved_partitions"]
        for row in read_scores(scores)
        if row["strategy"] == "range" and row["status"] == "ok"
    }
    found = rows["range", "moved_partitions"]
    assert found["rows"] == "3"
    assert float(found["mean"]) == pytest.approx(sum(moves.values()) / 3)
    assert float(found["worst"]) == max(moves.values()) == moves[found["worst_scenario"]]


def test_a_report_is_a_page_that_may_also_be_written_to_a_file(lab, scores, tmp_path, monkeypatch):
    page, nothing = tmp_path / "page.html", Findings(0, 0, [], [], [], [], {}, {})
    monkeypatch.setattr(findings, "found_in", lambda *arguments, **options: nothing)
    answer = lab("report", scores, "--format", "html", "--html", page)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == page.read_text() == as_page(nothing)


def test_a_report_of_files_of_this_machine_needs_no_session(lab, scores, monkeypatch):
    monkeypatch.setattr("rebalance_spark.commands.report.session_of_a_command", None)
    assert lab("report", scores).status == 0


def test_scores_that_spark_reads_are_reported_as_those_that_arrow_reads(lab, scores):
    read = [lab("report", folder, "--format", "csv") for folder in (scores, scores.as_uri())]
    assert read[0].status == 0
    assert read[0] == read[1]


def test_scores_in_a_table_are_reported(lab, scores, spark):
    spark.read.parquet(str(scores)).createOrReplaceTempView("scores_of_a_test")
    answer = lab("report", "--table", "scores_of_a_test", "--format", "csv")
    assert answer == lab("report", scores, "--format", "csv")


def test_advice_is_written_and_the_worst_scenarios_lead_to_their_views(lab, scores, workload, tmp_path):
    page, advice = tmp_path / "page.html", tmp_path / "advice.csv"
    options = ("--baseline", "range", "--advice", advice, "--html", page)
    answer = lab("report", scores, *options, "--by", "partitions", "--workload", workload)
    assert (answer.status, answer.err) == (0, "")
    assert "scenarios as they are, with range" in answer.out
    assert "weighted_imbalance by partitions" in answer.out
    with advice.open() as rows:
        assert {row["scenario_id"] for row in csv.DictReader(rows)} == {*TEXTS, "wrong"}
    views = sorted((tmp_path / "page-scenarios").iterdir())
    assert views
    assert all(f'href="page-scenarios/{view.name}"' in page.read_text() for view in views)
    assert "roundrobin" in views[0].read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--advice", "a.csv"], "--advice: found no --baseline, expected --baseline STRATEGY"),
        (["--advice", "a.txt"], "--advice: found a.txt, expected a file that ends with .csv or .parquet"),
        (["--baseline", "stiky"], "--baseline: found 'stiky', expected one of range, roundrobin"),
        (
            ["--baseline", "range", "--decide", "imbalanc"],
            "metric: found 'imbalanc', expected one of ",
        ),
        (
            ["--baseline", "range", "--per", "team"],
            "--per: found 'team', expected one of group, scenario_id",
        ),
        (["--by", "team"], "--by: found 'team', expected --workload INPUT with it"),
        (["-s", "sticky"], "strategy: found 'sticky', expected one of range, roundrobin"),
        (["--table", "scores"], "report: found both, expected one of DIR and --table"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_line(lab, scores, tmp_path, monkeypatch, options, problem):
    monkeypatch.chdir(tmp_path)
    answer = lab("report", scores, *options)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {problem}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("team", "--by: found 'team', expected one of scenario_id, scenario, members, partitions, events\n"),
        ("members", "--workload: found {}, with none of the scenarios, expected the workload that was"),
    ],
)
def test_a_column_of_another_workload_is_refused(lab, scores, tmp_path, column, problem):
    other = write_parquet(tmp_path / "other.parquet", {"x": scenario()})
    answer = lab("report", scores, "--by", column, "--workload", other)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {problem.format(other)}")


def test_a_sweep_of_settings_is_scored_and_reported_with_columns(lab, workload, tmp_path):
    out = tmp_path / "scores"
    options = ("--set", "session.timeout.ms=6s,45s", "--fidelity", "plan", "--out", out)
    assert lab("score", workload, "-s", "range", *options).status == 0
    answer = lab("report", out, "--stat", "mean")
    heads = [line.split() for line in answer.out.splitlines() if line.startswith("mean")]
    assert heads[0][3:5] == ["session.timeout.ms", "moved_partitions"]


# --- wrong use


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--profile", "microservice"], "profile: found 'microservice', expected one of "),
        (["--profile", "skewed", "--with", "colour"], "--with: found 'colour', expected NAME=VALUE"),
        (["--profile", "skewed", "--with", "colour=green"], "profile 'skewed': found the option 'colour'"),
        (["--profile", "replay", "--with", "members=1"], "profile 'replay': members: found '1', expected a"),
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
        (
            ["--out", "out"],
            "score: found neither, expected one of INPUT, the path of a",
        ),
        (["x", "--table", "y", "--out", "out"], "score: found both, expected one of INPUT"),
        (
            ["x", "--out", "out", "--out-table", "y"],
            "score: found both, expected one of --out and",
        ),
        (["--table", "no_table", "--out", "out"], "table no_table: found no such table, expected a table"),
        (["workload.parquet", "--out", "file"], "file: found a file, expected a folder"),
        (["workload.parquet", "--out", "out", "-s", "rang"], "strategy: found 'rang', expected one of "),
        (["workload.parquet", "--out", "out", "-s", "watcher", "--fidelity", "plan"], "which has no plan"),
        (["workload.parquet", "--out", "out", "--fidelity", "plam"], "fidelity: found 'plam', expected one"),
        (
            ["workload.parquet", "--out", "out", "--retry", "ok"],
            "--retry: found 'ok', expected some of error",
        ),
        (["workload.parquet", "--out", "out", "--conf", "x"], "--conf: found 'x', expected NAME=VALUE"),
        (["workload.parquet", "--out", "out", "--py-files", "x.py"], "--py-files x.py: found no such file"),
        (["workload.parquet", "--out", "out", "--plugin", "no_module"], "plugin 'no_module', import: Mod"),
        (["file.parquet", "--out", "out"], "file.parquet: found a file that is not Parquet"),
        (
            ["workload.parquet", "--out", "paint"],
            "paint: found the columns colour, expected scores, or nothing",
        ),
    ],
)
def test_a_workload_that_cannot_be_scored_is_one_line(
    lab, workload, tmp_path, monkeypatch, arguments, problem
):
    for name in ("file", "file.parquet"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "paint").mkdir()
    pq.write_table(pa.table({"colour": ["green"]}), tmp_path / "paint" / "paint.parquet")
    monkeypatch.chdir(tmp_path)
    for_java = (
        "workload.parquet",
        "file.parquet",
        "paint",
        "file",
    )  # which does not know of another working folder
    answer = lab("score", *(str(tmp_path / each) if each in for_java else each for each in arguments))
    assert (answer.status, answer.out) == (2, "")
    assert problem in answer.err
    assert len(answer.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "paint").iterdir()] == ["paint.parquet"]


def test_rows_that_failed_are_computed_again_if_asked_for(lab, tmp_path):
    source = write_parquet(tmp_path / "bad.parquet", {"good": scenario(), "bad": "topics: ["})
    score = ("score", source, "-s", "range", "--fidelity", "plan", "--out", tmp_path / "scores")
    runs = [lab(*score), lab(*score), lab(*score, "--retry", "error,timeout")]
    assert {run.status for run in runs} == {1}
    assert len({run.out for run in runs}) == 1
    assert len(read_scores(tmp_path / "scores")) == 3


@pytest.mark.parametrize("there", ["nothing", "a file", "an empty folder"])
def test_where_no_scores_are_there_is_nothing_to_report(lab, tmp_path, there):
    folder = tmp_path / "scores"
    if there == "a file":
        folder.write_text("")
    elif there == "an empty folder":
        folder.mkdir()
    expected = "a folder that `rebalance-lab score` wrote"
    assert lab("report", folder) == (2, "", f"error: {folder}: found no scores, expected {expected}\n")


def test_a_page_that_cannot_be_written_and_a_metric_there_is_not_are_refused(lab, scores, tmp_path):
    answer = lab("report", scores, "--html", tmp_path / "nowhere" / "page.html")
    assert (answer.status, answer.out) == (2, "")
    assert "found a path that cannot be written (No such file or directory)" in answer.err
    answer = lab("report", scores, "--balance", "colour")
    assert (answer.status, answer.out) == (2, "")
    assert "found 'colour', expected one of " in answer.err
    assert "moved_partitions, avoidable_moves" in answer.err
