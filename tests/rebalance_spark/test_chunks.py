"""Scores in a folder: a run adds what is missing and nothing else, wherever the one before it stopped."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from rebalance_spark import chunks
from rebalance_spark.choices import Fidelity
from rebalance_spark.chunks import existing_scores, todo, write_scores
from rebalance_spark.rows import ALL, Job
from tests.rebalance_spark.workloads import comparable, frame, read_scores, scenario, scored_here

TEXTS = {f"s-{n}": scenario(partitions=5 + n, seed=n) for n in range(6)}
JOB = Job(("range", "sticky"), Fidelity.PLAN)
CHUNK_MS = 4.5
"""The scenarios under two strategies are three chunks of so much a core."""

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


def run(workload, job, out):
    """Do what is missing, and tell what that was and what was looked at."""
    missing, looks = todo(workload, job, str(out)), []
    if missing.rows:
        write_scores(missing, job, str(out), looks.append)
    return missing, looks


def files(folder):
    return {path.name for path in folder.glob("*.parquet")}


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
    assert [path.name for path in out.iterdir() if path.is_dir()] == []
    assert looks == sorted(looks)
    assert looks[-1] == 12


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
    out.mkdir()
    pq.write_table(pa.Table.from_pylist(part, schema=pq.read_table(whole).schema), out / "part.parquet")
    missing, looks = run(workload, JOB, out)
    assert (missing.rows, missing.done_before, missing.chunks, looks[-1]) == (3, 9, 1, 3)
    assert {(row.scenario_id, row.which) for row in missing.units.collect()} == {("s-1", 0), ("s-4", ALL)}
    assert read_scores(out) == expected
    added = [row for name in files(out) - {"part.parquet"} for row in pq.read_table(out / name).to_pylist()]
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
    assert existing_scores(spark, str(tmp_path / "nowhere")) is None
    assert existing_scores(spark, str(tmp_path)) is None


# --- what is refused


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("s-2", "workload: found scenario_id 's-2' 2 times, expected a different one in each row"),
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
            "scores with fidelity 'plan', expected the same for 'protocol', or another folder",
        ),
        ({"fidelity": Fidelity.PLAN, "seed": 0}, "scores with seed [1-5], expected those with seed 0"),
    ],
)
def test_scores_of_another_fidelity_or_seed_are_not_mixed_with_these(workload, first_run, other, problem):
    with pytest.raises(InputError, match=problem) as caught:
        todo(workload, Job(JOB.strategies, **other), str(first_run[0]))
    assert caught.value.where == str(first_run[0])


def test_scores_of_another_workload_are_not_mixed_with_these(spark, first_run):
    fewer = {name: text for name, text in TEXTS.items() if name != "s-3"}
    with pytest.raises(InputError, match="found the score of 's-3', which is not in the workload"):
        todo(frame(spark, fewer), JOB, str(first_run[0]))


def test_a_folder_with_something_else_in_it_is_left_alone(workload, tmp_path):
    pq.write_table(pa.table({"colour": ["green"]}), tmp_path / "paint.parquet")
    with pytest.raises(InputError, match="found the columns colour, expected scores, or nothing"):
        todo(workload, JOB, str(tmp_path))


# --- what stops a run


def test_a_chunk_that_ends_leaves_alone_what_another_is_writing(spark, workload, tmp_path):
    """Hadoop's committer would take the one file for its own, and delete the other."""
    out = tmp_path / "out"
    others = [out / "_temporary" / "0" / folder / "part.parquet" for folder in ("task_9", "_temporary/try_8")]
    for path in others:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"on its way")
    missing = todo(workload.limit(1), JOB, str(out))
    chunks._write_chunk(missing, JOB, str(out), 0, spark.sparkContext.accumulator(0))
    assert all(path.read_bytes() == b"on its way" for path in others)
    assert "part.parquet" not in files(out)
    assert len(read_scores(out)) == 2


def test_an_interrupted_run_leaves_whole_rows_and_the_next_one_goes_on_from_there(
    workload, tmp_path, monkeypatch
):
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "closed").touch()
    job, out = Job((f"{tmp_path}/waiting.py:Waiting",), Fidelity.PLAN, timeout=60.0), tmp_path / "out"
    monkeypatch.setattr(chunks, "CHUNK_MS", CHUNK_MS / 2)
    missing = todo(workload, job, str(out))
    monkeypatch.undo()
    assert missing.chunks == 3

    def interrupt(done):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_scores(missing, job, str(out), interrupt)
    (tmp_path / "closed").unlink()
    expected = scored_here(job, TEXTS)
    (written,) = read_scores(out)
    assert written in expected
    rest, _ = run(workload, job, out)
    assert (rest.rows, rest.done_before) == (5, 1)
    assert read_scores(out) == expected
