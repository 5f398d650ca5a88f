"""``rebalance-lab report`` on files of this machine, which needs no session of Spark."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rebalance_spark.decisions import Question, decisions
from rebalance_spark.report import Decided, as_page, figures_of
from rebalance_spark.storage import local_scores
from tests.approved import approved
from tests.rebalance_spark.score_files import as_scores, hourly, row, write
from tests.written import DEVICE, FIFO, LINK, PLACES, check_written


def rows():
    """Groups that switch, stay, are overloaded under everything, and have too few scenarios."""
    found = hourly([row("a", "range", 4.0, 2.0), row("a", "sticky", 1.0, 2.0)])
    found += hourly([row("b\n", "range", 4.0, 2.0), row("b\n", "sticky", 4.0, 2.0)])
    found += hourly([row("c", "range", 4.0, 2.0), row("c", "sticky", 4.0, 2.0)], 2)
    found = [{**each, "utilization": 0.5, "missing_members": 0.0} for each in found]
    busy = hourly([row("d", "range", 4.0, 2.0), row("d", "sticky", 2.0, 2.0)])
    return found + [{**each, "utilization": 1.4, "missing_members": 3.0} for each in busy]


def decided():
    scores = as_scores(rows())
    return Decided(decisions(scores, Question("range")), figures_of(scores), "plan")


@pytest.fixture
def scores(tmp_path):
    return write(tmp_path / "scores", rows())


def test_the_reports_are_those_that_were_approved(lab, scores, tmp_path):
    """The last ones: of groups that stay, of which today failed, and of which one was scored again."""
    of_group = {name: [each for each in rows() if each["group"] == name] for name in ("a", "b\n", "d")}
    failed = [e if e["strategy"] == "sticky" else {**e, "status": "error"} for e in of_group["d"]]
    again = [{**each, "run_id": "2", "moved_partitions": 3.0} for each in of_group["a"]]
    folders = {
        "stays": write(tmp_path / "stays", of_group["b\n"]),
        "failed": write(tmp_path / "failed", of_group["a"] + failed),
        "again": write(tmp_path / "again", of_group["a"] + again),
    }
    asked = {"": (), "--today": ("--today", "range")}
    asked |= {name: ("--today", "range", name) for name in ("--all", "--undecided")}
    asked |= {f"--group {name}": ("--today", "range", "--group", name) for name in ("a", "d")}
    answers = {name: lab("report", scores, *options) for name, options in asked.items()}
    answers |= {name: lab("report", folder, "--today", "range") for name, folder in folders.items()}
    assert {(answer.status, answer.err) for answer in answers.values()} == {(0, "")}
    assert len(answers["--today"].out.splitlines()) <= 12
    approved(
        "reports",
        {
            f"report {name}".rstrip(): "\n".join(line.rstrip() for line in answer.out.splitlines())
            for name, answer in answers.items()
        },
    )


def test_means_of_strategies_are_of_the_scenarios_that_all_completed():
    scores = as_scores([row("x", "a", 1.0), row("x", "b", 3.0), row("y", "a", 9.0), row("y", "b")])
    assert figures_of(scores).select(["strategy", "scenarios", "failed", "moved_partitions"]).to_pylist() == [
        {"strategy": "a", "scenarios": 2, "failed": 0, "moved_partitions": 1.0},
        {"strategy": "b", "scenarios": 2, "failed": 1, "moved_partitions": 3.0},
    ]


def test_the_page_has_two_plots_and_a_row_for_each_group():
    page = as_page(decided())
    assert page.count("<svg role") == 2
    assert page.count("<tr>") == 2 + 4 + 2
    assert page == as_page(decided())


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_decisions_are_a_file_with_a_row_for_each_group(lab, scores, tmp_path, ending):
    path = tmp_path / f"decisions{ending}"
    assert lab("report", scores, "--today", "range", "-o", path).status == 0
    read = pyarrow.csv.read_csv(path) if ending == ".csv" else pq.read_table(path)
    assert read.column_names[:4] == ["group", "today", "advised", "reason"]
    assert read.column("advised").to_pylist() == ["sticky", "sticky", "range", "range"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--today", "rang"), "scores: found none of 'rang', expected one of range, sticky"),
        (("--undecided",), "report: found no strategy that runs today, expected --today STRATEGY"),
        (("--today", "range", "-o", "x.txt"), "--out: found x.txt, expected a file that ends in"),
        (("--today", "range", "--group", "e"), "--group: found 'e', expected one of a, d, b"),
        (("--today", "range", "--per", "tem"), "per: found no column 'tem', expected one of"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_line(lab, scores, options, problem):
    answer = lab("report", scores, *options)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {problem}")


@pytest.mark.parametrize("there", ["nothing", "empty", "others", "damaged"])
def test_where_no_scores_are_there_is_nothing_to_report(lab, tmp_path, there):
    folder = tmp_path / there
    if there != "nothing":
        folder.mkdir()
    if there == "others":
        pq.write_table(pa.table({"x": [1]}), folder / "x.parquet")
    if there == "damaged":
        (folder / "part.parquet").write_bytes(b"PAR1")
    answer = lab("report", folder)
    assert (answer.status, answer.out) == (2, "")
    expected = {"others": "found the columns x", "damaged": "part.parquet: found a file that cannot be read"}
    assert expected.get(there, "found no scores") in answer.err


def test_files_of_several_runs_are_one_table(tmp_path):
    folder = write(tmp_path / "s", [row("x", "a", 1.0)], "a.parquet")
    write(folder / "run=2", [row("y", "a", 1.0, team="blue")], "b.parquet")
    write(folder, [row("z", "a", 1.0)], "_temporary.parquet")
    assert local_scores(folder).select(["group", "team"]).to_pylist() == [
        {"group": "x", "team": None},
        {"group": "y", "team": "blue"},
    ]


PAGE, TABLE = (("--html",), "page.html"), (("-o",), "decisions.csv")


@pytest.mark.parametrize(
    ("options", "name", "kind"), [*((*TABLE, kind) for kind in PLACES), (*PAGE, LINK), (*PAGE, FIFO)]
)
def test_a_report_leaves_its_place_what_it_is(lab, scores, tmp_path, options, name, kind):
    def write(path):
        answer = lab("report", scores, "--today", "range", *options, path)
        assert (answer.status, answer.err) == (0, "")

    written = check_written(write, tmp_path / "place" / name, kind)
    assert kind == DEVICE or b"range" in written
