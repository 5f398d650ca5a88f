"""Scores in a folder: a run adds what is missing and nothing else, wherever the one before it stopped."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from coordinator_core.errors import InputError
from rebalance_spark import chunks
from rebalance_spark.choices import Fidelity, Status
from rebalance_spark.chunks import Kept, last_scores, todo, write_scores
from rebalance_spark.identity import identified, new_run_id
from rebalance_spark.places import Folder
from rebalance_spark.rows import ALL, Job, scenario_hash
from rebalance_spark.stored import collected_scores
from tests.rebalance_spark.workloads import comparable, frame, read_scores, scenario, scored_here

TEXTS = {f"s-{n}": scenario(partitions=5 + n, seed=n) for n in range(6)}
JOB = identified(Job(("range", "sticky"), Fidelity.PLAN))
CHUNK_MS = 1
"""The scenarios under two strategies are three chunks of so much."""

WAITING = '''
"""As long as a file beside it says so, it answers only the scenario that asks first; others wait."""

import time
from contextlib import suppress
from pathlib import Path

CLOSED, FIRST = Path(__file__).with_name("closed"), Path(__file__).with_name("first")


class Waiting:
    name = "waiting"

    def assign(self, cluster, group):
        me = str([info.partitions for info in cluster.topics.values()])
        with suppress(FileExistsError), FIRST.open("x") as first:
            first.write(me)
        while CLOSED.exists() and FIRST.read_text() != me:
            time.sleep(0.05)
        owned = {member: [] for member in group}
        owned[min(owned)] = [(t, p) for t, info in cluster.topics.items() for p in range(info.partitions)]
        return owned
'''


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_tasks")]


def run(workload, job, out, retry=()):
    """Do what is missing, and tell what that was and what was looked at."""
    job = replace(identified(job), run_id=new_run_id())
    missing, looks = todo(workload, job, str(out), retry), []
    if missing.rows:
        write_scores(missing, job, str(out), lambda *look: looks.append(look))
    return missing, looks


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}


@pytest.fixture(scope="module")
def workload(spark):
    return frame(spark, TEXTS)


@pytest.fixture(scope="module")
def expected():
    return scored_here(JOB, TEXTS)


@pytest.fixture(scope="module")
def first_run(few_tasks, workload, tmp_path_factory):
    """In several chunks."""
    out = tmp_path_factory.mktemp("scores") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_MS", CHUNK_MS)
        return out, *run(workload, JOB, out)


@pytest.fixture
def whole(first_run, tmp_path):
    """A copy of a folder in which nothing is missing."""
    return shutil.copytree(first_run[0], tmp_path / "whole")


# --- what is missing


def test_the_first_run_writes_every_row_once_and_tells_how_many_are_done(first_run, expected):
    out, missing, looks = first_run
    assert (missing.rows, missing.done_before, missing.chunks) == (12, 0, 3)
    assert read_scores(out) == expected
    assert [sorted(path.name for path in run.iterdir()) for run in out.iterdir()] == [
        ["chunk=0", "chunk=1", "chunk=2"]
    ]
    assert looks == sorted(looks)
    assert looks[-1] == (12, pytest.approx(1.0))


def test_nothing_is_missing_after_it(workload, whole):
    before = files(whole)
    missing, looks = run(workload, JOB, whole)
    assert (missing.rows, missing.done_before, looks) == (0, 12, [])
    assert files(whole) == before


def test_a_run_after_a_part_is_written_does_only_what_is_missing(workload, whole, tmp_path, expected):
    gone = {("s-1", "range"), ("s-4", "range"), ("s-4", "sticky")}
    rows = pq.read_table(whole).to_pylist()
    part = [row for row in rows if (row["scenario_id"], row["strategy"]) not in gone]
    out = tmp_path / "part"
    earlier = out / "run=earlier" / "chunk=0" / "part.parquet"
    earlier.parent.mkdir(parents=True)
    any_file = next(whole.rglob("*.parquet"))
    pq.write_table(pa.Table.from_pylist(part, schema=pq.read_schema(any_file)), earlier)
    missing, looks = run(workload, JOB, out)
    assert (missing.rows, missing.done_before, missing.chunks) == (3, 9, 1)
    assert looks[-1] == (3, pytest.approx(1.0))
    assert {(row.scenario_id, row.which) for row in missing.units.collect()} == {("s-1", 0), ("s-4", ALL)}
    assert read_scores(out) == expected
    added = [
        row
        for name in files(out) - {str(earlier.relative_to(out))}
        for row in pq.read_table(out / name).to_pylist()
    ]
    assert {(row["scenario_id"], row["strategy"]) for row in added} == gone


def test_another_strategy_adds_its_rows_and_leaves_the_others_as_they_are(spark, workload, whole):
    before = {name: (whole / name).read_bytes() for name in files(whole)}
    missing, _ = run(workload, Job(("roundrobin", "range", "sticky"), Fidelity.PLAN), whole)
    assert (missing.rows, missing.done_before) == (6, 12)
    added = comparable(
        row for n in files(whole) - set(before) for row in pq.read_table(whole / n).to_pylist()
    )
    assert added == scored_here(Job(("roundrobin",), Fidelity.PLAN), TEXTS)
    assert before == {name: (whole / name).read_bytes() for name in before}


def test_a_workload_whose_rows_are_in_another_order_and_without_sizes_is_the_same(spark, whole):
    bare = frame(spark, dict(reversed(TEXTS.items())), sized=False)
    assert todo(bare, JOB, str(whole)).rows == 0


def test_a_folder_where_nothing_is_has_no_scores(spark, tmp_path):
    assert Folder(str(tmp_path / "nowhere")).read(spark) is None
    assert Folder(str(tmp_path)).read(spark) is None


ALL_TO_ONE = """
class Mine:
    name = "mine"

    def assign(self, cluster, group):
        owned = {{member: [] for member in group}}
        owned[{}(owned)] = [(t, p) for t, info in cluster.topics.items() for p in range(info.partitions)]
        return owned
"""


# --- what is refused


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "s-2",
            "workload: found scenario_id 's-2' 2 times, expected a different one in each row"
            " (--keys names the columns that tell rows apart)",
        ),
        ("", "workload: found a row without scenario_id, expected one in each row"),
        (None, "workload: found a row without scenario_id, expected one in each row"),
    ],
)
def test_an_id_that_is_missing_or_there_twice_is_refused(spark, workload, tmp_path, name, problem):
    one_more = workload.union(frame(spark, {name: scenario()}))
    with pytest.raises(InputError) as caught:
        todo(one_more, JOB, str(tmp_path / "out"))
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (
            {"fidelity": Fidelity.PROTOCOL},
            "scores with fidelity 'plan', expected those with fidelity 'protocol', or another folder",
        ),
        ({"fidelity": Fidelity.PLAN, "seed": 0}, "scores with other seeds, expected those with seed 0"),
        ({"fidelity": Fidelity.PLAN, "start": "range"}, "with no start, expected those with start 'range'"),
    ],
)
def test_scores_of_another_fidelity_seed_or_start_are_not_mixed_with_these(
    workload, first_run, other, problem
):
    with pytest.raises(InputError, match=problem) as caught:
        todo(workload, Job(JOB.strategies, **other), str(first_run[0]))
    assert caught.value.where == str(first_run[0])


def test_another_text_under_the_same_id_is_other_work(spark, workload, whole):
    later = {**TEXTS, "s-2": scenario(partitions=9, seed=2)}
    missing, _ = run(frame(spark, later), JOB, whole)
    assert (missing.rows, missing.done_before) == (2, 10)
    found = collected_scores(Folder(str(whole)).read(spark))
    texts = (TEXTS["s-2"], later["s-2"])
    assert {*found.scenarios} == {*TEXTS, *(f"s-2 {scenario_hash(text)}" for text in texts)} - {"s-2"}
    assert last_scores(Folder(str(whole)).read(spark)).count() == 14


def test_fewer_metrics_than_there_are_is_no_work(workload, whole):
    before = files(whole)
    missing, _ = run(workload, replace(JOB, metrics=("rounds",)), whole)
    assert missing.rows == 0
    assert files(whole) == before


def test_another_file_of_a_strategy_is_other_work_and_its_last_score_counts(spark, workload, tmp_path):
    source, out = tmp_path / "mine.py", tmp_path / "out"
    job = Job((f"{source}:Mine",), Fidelity.PLAN)
    for owner in ("min", "max"):
        source.write_text(ALL_TO_ONE.format(owner))
        missing, _ = run(workload, job, out)
        assert (missing.rows, missing.done_before) == (6, 0)
    assert run(workload, job, out)[0].rows == 0
    first, last = sorted({row.run_id for row in pq_rows(out)})
    assert {row.run_id for row in last_scores(Folder(str(out)).read(spark)).collect()} == {last}
    assert first < last


def pq_rows(folder):
    return [SimpleNamespace(**row) for row in pq.read_table(folder).to_pylist()]


def test_failed_rows_are_final_unless_they_are_asked_for_again(spark, tmp_path):
    texts, out = {"good": scenario(), "bad": "name: x"}, tmp_path / "out"
    run(frame(spark, texts), JOB, out)
    assert run(frame(spark, texts), JOB, out)[0].rows == 0
    assert run(frame(spark, texts), JOB, out, [Status.TIMEOUT])[0].rows == 0
    assert run(frame(spark, texts), JOB, out, [Status.ERROR])[0].rows == 2
    assert last_scores(Folder(str(out)).read(spark)).count() == 4


def test_a_folder_with_something_else_in_it_is_left_alone(workload, tmp_path):
    pq.write_table(pa.table({"colour": ["green"]}), tmp_path / "paint.parquet")
    with pytest.raises(InputError, match="found the columns colour, expected scores, or nothing"):
        todo(workload, JOB, str(tmp_path))


# --- what stops a run


def _scenarios_in_a_chunk(workload, chunks):
    """The most."""
    number = f"pmod(xxhash64(scenario_id), {chunks})"
    return max(row["count"] for row in workload.groupBy(sf.expr(number)).count().collect())


def test_an_interrupted_run_leaves_whole_rows_and_the_next_one_goes_on_from_there(workload, tmp_path):
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "closed").touch()
    job = identified(Job((f"{tmp_path}/waiting.py:Waiting",), Fidelity.PLAN, timeout=60.0))
    out = tmp_path / "out"
    apart = next(n for n in range(len(TEXTS), 1_000) if _scenarios_in_a_chunk(workload, n) == 1)
    missing = replace(todo(workload, job, str(out)), chunks=apart)

    def interrupt(done, _):
        if done and any(pq.read_table(path.parent).num_rows for path in out.rglob("_SUCCESS")):
            raise KeyboardInterrupt

    kept = Kept()
    with pytest.raises(KeyboardInterrupt):
        write_scores(missing, job, str(out), interrupt, kept)
    (tmp_path / "closed").unlink()
    assert (kept.written, kept.rows) == (len(read_scores(out)), 6)
    expected = scored_here(job, TEXTS)
    (written,) = read_scores(out)
    assert written in expected
    rest, _ = run(workload, job, out)
    assert (rest.rows, rest.done_before) == (5, 1)
    assert read_scores(out) == expected
