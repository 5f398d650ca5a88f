"""Campaigns: what is found, in which processes, and that a run can be had again."""

import os
import subprocess
import sys

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.fuzzing.campaign import (
    Found,
    Plan,
    document_of,
    examined_document,
    fuzz,
    shrunk,
    strategy_of,
)
from rebalance_lab.fuzzing.checks import ENDS, HANGS, INVARIANTS, RAISES
from tests.rebalance_lab.cli.commands import PATHS
from tests.rebalance_lab.fuzzing.planted import PLANTED

REGISTRY = default_registry()
FAILOVERS = ("coordinator_failover", "latency")


GROUP = {
    "name": "g",
    "duration": "60s",
    "topics": {"t": {"partitions": 4, "rate": 20}},
    "members": [{"id": "m", "count": 3, "topics": ["t"]}],
    "config": {"auto.commit.interval.ms": 1_000},
}


def first_found(plan, most):
    """The first failure of a plan's runs, all in this process."""
    for number in range(most):
        document, strategy = document_of(plan, number, REGISTRY), strategy_of(plan, number)
        failure = examined_document(document, strategy, REGISTRY).failure
        if failure is not None:
            return Found(failure, strategy, document, number)
    return None


def ends_after(count):
    return lambda report: report.begun < count


@pytest.mark.parametrize("rule", [rule for rule in PLANTED if rule != "generations only grow"])
def test_an_engine_that_breaks_a_rule_is_found(rule, monkeypatch):
    PLANTED[rule](monkeypatch)
    found = first_found(Plan(("range", "cooperative-sticky"), 1, around=(GROUP,)), 12)
    assert found is not None
    assert found.failure.check == INVARIANTS
    assert rule in found.failure.detail


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_a_fault_that_needs_a_failover_between_a_sync_and_its_answer_is_found(seed, monkeypatch):
    PLANTED["generations only grow"](monkeypatch)
    found = first_found(Plan(("range", "cooperative-sticky"), seed, faults=FAILOVERS), 300)
    assert found is not None
    assert "generations only grow" in found.failure.detail


def test_what_is_found_is_shrunk_to_what_is_needed(monkeypatch):
    PLANTED["one leader, who is a member"](monkeypatch)
    smaller = shrunk(first_found(Plan(("range",), 2), 5), REGISTRY, lambda: True)
    assert smaller.failure.check == INVARIANTS
    assert smaller.document["events"] == []
    assert len(smaller.document["members"]) == len(smaller.document["topics"]) == 1
    assert examined_document(smaller.document, "range", REGISTRY).failure == smaller.failure


def test_shrinking_keeps_the_smallest_so_far_when_it_has_to_end(monkeypatch):
    PLANTED["one leader, who is a member"](monkeypatch)
    found = first_found(Plan(("range",), 2), 5)
    assert shrunk(found, REGISTRY, lambda: False) == found


def test_nothing_is_found_where_nothing_is_wrong():
    report = fuzz(Plan(("range", "sticky+reconcile"), 3), goes_on=ends_after(6), jobs=2)
    assert (report.runs, report.found) == (6, [])
    assert {cell.family for cell in report.coverage.counts} == {"classic", "reconcile"}


IN_ANOTHER_PROCESS = """\
import json
from coordinator_core.registry.registry import default_registry
from rebalance_lab.fuzzing.campaign import Plan, document_of
plan = Plan(("sticky+static", "watcher"), 8)
print(json.dumps([document_of(plan, n, default_registry()) for n in range(6)]))
"""


def test_equal_seeds_draw_equal_documents_in_every_process():
    texts = {
        subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS],
            env={**os.environ, "PYTHONPATH": PATHS, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


AUTHORS = {
    RAISES: "raise KeyError('gone')",
    HANGS: "while True: pass",
    ENDS: "__import__('os')._exit(3)",
}
ASSIGNOR = """\
class Author:
    name = "author"

    def assign(self, cluster, group):
        {body}
"""


@pytest.mark.slow
@pytest.mark.parametrize("check", [RAISES, HANGS, ENDS])
def test_an_assignor_that_raises_hangs_or_ends_its_process_is_found(check, tmp_path):
    path = tmp_path / "author.py"
    path.write_text(ASSIGNOR.format(body=AUTHORS[check]))
    plan = Plan((f"{path}:Author",), 1)
    report = fuzz(plan, goes_on=ends_after(4), jobs=1, timeout=5)
    assert report.found[0].failure.check == check


def test_a_scenario_that_the_strategy_cannot_run_is_refused():
    static = GROUP | {"members": [{"id": "m", "topics": ["t"], "instance_id": "one"}]}
    with pytest.raises(InputError, match="instance_id"):
        fuzz(Plan(("watcher",), 1, around=(static,)), goes_on=ends_after(1))
