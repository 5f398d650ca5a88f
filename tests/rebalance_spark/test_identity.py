"""The hash of a job: equal for the same work, another one for whatever changes a score."""

from dataclasses import replace

import pytest

from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job
from rebalance_spark import identity
from rebalance_spark.identity import identified, new_run_id

MINE = """
class Mine:
    def assign(self, cluster, group):
        return {member: [] for member in group}
"""


def hashes(*strategies, **options):
    return identified(Job(strategies, **options)).hashes


def test_each_strategy_has_its_hash_wherever_it_stands():
    first, second = hashes("range", "optimal+tolerance=1%")
    assert hashes("optimal+tolerance=1%", "range", "sticky")[:2] == (second, first)
    assert first != second != hashes("optimal+tolerance=2%")[0]


@pytest.mark.parametrize(
    "other", [{"seed": 3}, {"timeout": 5.0}, {"fidelity": Fidelity.PLAN}, {"start": "range"}]
)
def test_options_of_the_job_are_part_of_it(other):
    assert hashes("range") != hashes("range", **other)


def test_fewer_metrics_are_other_work_but_that_of_all_metrics_is_known_by_its_hash():
    whole = identified(Job(("range", "sticky"), start="range"))
    some = identified(Job(("range", "sticky"), start="range", metrics=("rounds",)))
    assert not {*whole.hashes} & {*some.hashes}
    assert whole.hashes == whole.whole == some.whole


def test_versions_are_part_of_it(monkeypatch):
    before = hashes("range")
    monkeypatch.setattr(identity, "program_version", lambda: "9.9")
    assert hashes("range") != before


def test_the_source_of_a_file_is_part_of_it(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    before = hashes(f"{path}:Mine+static")
    assert hashes(f"{path}:Mine+static") == before
    path.write_text(f"{MINE}\n# changed\n")
    assert hashes(f"{path}:Mine+static") != before


def test_a_job_carries_each_file_of_its_strategies_once(tmp_path):
    for name in ("mine.py", "start.py"):
        (tmp_path / name).write_text(MINE)
    mine, start = (f"{tmp_path / name}" for name in ("mine.py", "start.py"))
    job = identified(
        Job((f"{mine}:Mine", f"{mine}:Mine+static session.timeout.ms=6s", "range"), start=f"{start}:Mine")
    )
    assert job.sources == ((mine, MINE.encode()), (start, MINE.encode()))
    assert identified(Job(("range", "assignors.range:RangeAssignor"))).sources == ()


def test_the_source_of_a_module_is_part_of_it(tmp_path, search_path):
    path = tmp_path / "a_module_of_mine.py"
    path.write_text(MINE)
    search_path.insert(0, str(tmp_path))
    before = hashes("a_module_of_mine:Mine")
    path.write_text(f"{MINE}\n# changed\n")
    assert hashes("a_module_of_mine:Mine") != before


def test_a_job_that_has_its_hashes_keeps_them():
    job = identified(Job(("range",)))
    assert identified(job) == job
    assert identified(replace(job, hashes=("x",))).hashes == ("x",)


def test_run_ids_differ_and_are_in_the_order_of_time(monkeypatch):
    first = new_run_id()
    assert first != new_run_id()
    assert first < "29991231T235959-00000000"
