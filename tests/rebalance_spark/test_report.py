"""``rebalance-lab report`` on files of this machine, which needs no session of Spark."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rebalance_spark.decisions import Question, decisions
from rebalance_spark.report import Decided, as_page, decision_table, figures_of, summary
from rebalance_spark.storage import local_scores
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


def decided(these=None):
    scores = as_scores(rows() if these is None else these)
    return Decided(decisions(scores, Question("range")), figures_of(scores), "plan")


@pytest.fixture
def scores(tmp_path):
    return write(tmp_path / "scores", rows())


def test_the_summary_says_what_to_switch_to_keep_and_not_know():
    assert summary(decided()) == [
        "Switch 2 groups to sticky. Keep range in 1. 1 has too few scenarios to know: c.",
        "d needs more members or capacity: the busiest member has more than it can handle, also under the"
        " strategy that is advised.",
    ]


def test_where_no_group_switches_the_summary_says_to_keep():
    kept = [each for each in rows() if each["group"] == "b\n"]
    assert summary(decided(kept)) == ["Keep range in 1 group."]


def test_a_group_of_which_today_has_no_figures_is_no_decision():
    failed = [each if each["strategy"] == "sticky" else {**each, "status": "error"} for each in rows()]
    some = [each for each in rows() if each["group"] == "a"] + [e for e in failed if e["group"] == "d"]
    assert summary(decided(some)) == ["Switch 1 group to sticky. 1 has no figures: d (column error)."]


def test_scores_that_were_computed_again_count_once(lab, scores):
    again = [{**each, "run_id": "2", "moved_partitions": 3.0} for each in rows() if each["group"] == "a"]
    write(scores, again, "part-1.parquet")
    answer = lab("report", scores, "--today", "range", "--group", "a")
    assert answer.out.splitlines()[0] == "1 group, 12 scenarios, plan fidelity · today range"
    assert answer.out.splitlines()[-1].split()[:4] == ["sticky", "12", "0", "3"]


def test_a_row_has_the_change_of_each_figure_and_the_members_that_are_missing():
    table = decision_table(decided())
    assert table.head[:4] == ["group", "advised", "reason", "moved"]
    assert [[cell.text for cell in each] for each in table.rows] == [
        ["a", "sticky", "moves less", "4 -> 1", "2", "50 %", "0", "<0.001", "12"],
        ["d", "sticky", "moves less", "4 -> 2", "2", "140 %", "3", "<0.001", "12"],
    ]


def test_a_line_break_in_the_name_of_a_group_breaks_no_line():
    assert [cell.text for cell, *_ in decision_table(decided(), None).rows] == ["a", "d", "b\\n", "c"]


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


def test_a_report_without_a_strategy_of_today_has_the_figures_of_all(lab, scores):
    answer = lab("report", scores)
    assert (answer.status, answer.err) == (0, "")
    assert [line.split()[:2] for line in answer.out.splitlines()[-2:]] == [["range", "38"], ["sticky", "38"]]


def test_a_report_is_at_most_twelve_lines_and_names_what_to_do_in_the_third(lab, scores):
    lines = lab("report", scores, "--today", "range").out.splitlines()
    assert lines[0] == "4 groups, 38 scenarios, plan fidelity · today range"
    assert lines[2].startswith("Switch 2 groups to sticky.")
    assert len(lines) <= 12


def test_a_group_by_itself_has_the_figures_of_its_strategies(lab, scores):
    answer = lab("report", scores, "--today", "range", "--group", "d")
    assert "1 group, 12 scenarios" in answer.out
    assert "sticky" in answer.out.splitlines()[-5]
    assert answer.out.splitlines()[-4].startswith("1. In all members set partition.assignment.strategy=")


def test_the_groups_that_are_not_decided_about_are_listed(lab, scores):
    answer = lab("report", scores, "--today", "range", "--undecided")
    assert answer.out.splitlines()[-1].split()[:3] == ["c", "range", "2"]


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
