"""``rebalance-lab report`` on files of this machine, which needs no session of Spark."""

import pytest

from rebalance_spark.rows import scenario_hash
from rebalance_spark.sessions import file_of
from tests.rebalance_spark.score_files import row, write
from tests.rebalance_spark.workloads import scenario, write_parquet
from tests.written import DEVICE, FIFO, LINK, PLACES, check_written


@pytest.fixture
def scores(tmp_path):
    """Scores of two scenarios under two strategies."""
    moves = {"range": 4.0, "sticky": 1.0}
    write(
        tmp_path / "scores", [row(f"s-{n}", name, figure) for n in range(2) for name, figure in moves.items()]
    )
    return tmp_path / "scores"


PAGE, ADVICE = (("--html",), "page.html"), (("--baseline", "range", "--advice"), "advice.csv")


@pytest.mark.parametrize(
    ("options", "name", "kind"), [*((*ADVICE, kind) for kind in PLACES), (*PAGE, LINK), (*PAGE, FIFO)]
)
def test_a_report_leaves_its_place_what_it_is(lab, scores, tmp_path, options, name, kind):
    def write(path):
        answer = lab("report", scores, *options, path)
        assert (answer.status, answer.err) == (0, "")

    written = check_written(write, tmp_path / "place" / name, kind)
    assert kind == DEVICE or b"range" in written


@pytest.fixture
def changed(tmp_path):
    """Scores, and a workload in which one of the two scenarios has another text by now."""
    texts = {"s-0": scenario(), "s-1": scenario(partitions=5)}
    rows = [row(name, "range", 1.0, scenario_hash=scenario_hash(text)) for name, text in texts.items()]
    write(tmp_path / "changed", rows)
    return tmp_path / "changed", write_parquet(
        tmp_path / "later.parquet", {**texts, "s-1": scenario(partitions=6)}
    )


def test_a_column_of_another_snapshot_of_the_workload_is_refused(lab, changed):
    scores, workload = changed
    answer = lab("report", scores, "--by", "partitions", "--workload", workload)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        f"error: --workload: found {workload}, with 1 scenarios with other texts than those that were scored"
        " (s-1), expected the workload that was scored\n"
    )


def test_a_scenario_of_another_snapshot_has_no_view(lab, changed, tmp_path):
    scores, workload = changed
    more = [row("s-0", "sticky", 9.0, scenario_hash=scenario_hash(scenario())), row("s-1", "sticky", 1.0)]
    write(scores, [more[0], {**more[1], "scenario_hash": scenario_hash(scenario(partitions=5))}], "b.parquet")
    answer = lab("report", scores, "--html", tmp_path / "page.html", "--workload", workload)
    assert answer.status == 0
    assert "no view of s-1: the text in" in answer.err
    assert len(list((tmp_path / "page-scenarios").iterdir())) == 1


def test_a_page_through_a_fifo_has_no_folder_of_views_beside_it(lab, scores, tmp_path):
    workload = write_parquet(tmp_path / "workload.parquet", {"s-0": scenario(), "s-1": scenario()})

    def write(path):
        answer = lab("report", scores, "--workload", workload, "--html", path)
        assert (answer.status, answer.err) == (0, "")

    check_written(write, tmp_path / "place" / "page.html", FIFO)


@pytest.mark.parametrize(
    ("error", "file"),
    [
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a/b%20c.gz. SQLSTATE",
            "/a/b c.gz",
        ),
        ("Encountered error while reading file s3a://a/b.parquet.\nCould not", "s3a://a/b.parquet"),
        ("out of memory", ""),
    ],
)
def test_the_file_that_spark_could_not_read_is_found_in_its_error(error, file):
    assert file_of(Exception(error)) == file


def test_what_is_known_of_one_group_is_asked_for_with_the_strategy_of_today(lab, scores):
    answer = lab("report", scores, "--group", "s-1")
    assert (answer.status, answer.err) == (
        2,
        "error: --group: found no --baseline, expected --baseline STRATEGY, which runs today\n",
    )
    answer = lab("report", scores, "--baseline", "range", "--group", "s-1", "--format", "csv")
    assert answer.err == "error: --group: found --format csv, expected the table\n"
    answer = lab("report", scores, "--baseline", "range", "--group", "s-1")
    assert answer.status == 0
    assert answer.out.startswith("s-1: stay\n")
    assert lab("report", scores, "--baseline", "range", "--group", "s").err == (
        "error: --group: found 's', expected one of s-0, s-1\n"
    )
