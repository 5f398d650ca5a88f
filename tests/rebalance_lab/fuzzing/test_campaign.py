"""Campaigns: what is found, in which processes, and that a run can be had again."""

import os
import subprocess
import sys

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.fuzzing.campaign import Campaign, Found, examine_document, fuzz, shrink_found
from rebalance_lab.fuzzing.checks import ENDS, HANGS, HASH_SEED, INVARIANTS, RAISES
from tests.rebalance_lab.cli.commands import PATHS
from tests.rebalance_lab.fuzzing.planted import PLANTED

REGISTRY = default_registry()
FAILOVERS = ("coordinator_failover", "latency")


GROUP = {
    "name": "g",
    "duration": "60s",
    "topics": {"t": {"partitions": 4, "rate": 20}},
    "members": [{"id": "m", "count": 3, "topics": ["t"]}],
    "config": {"auto.commit.interval.ms": 1_000, "max.poll.interval.ms": 20_000},
}


def first_found(campaign, most):
    """The first defect of a campaign's runs, all in this process."""
    for number in range(most):
        document, strategy = campaign.document_of(number, REGISTRY), campaign.strategy_of(number)
        defect = examine_document(document, REGISTRY.strategy(strategy), REGISTRY).defect
        if defect is not None:
            return Found(defect, strategy, document, number)
    return None


def ends_after(count):
    return lambda tally: tally.begun < count


@pytest.mark.parametrize("rule", [rule for rule in PLANTED if rule != "generations only grow"])
def test_an_engine_that_breaks_a_rule_is_found(rule, monkeypatch):
    PLANTED[rule](monkeypatch)
    found = first_found(Campaign(("range", "cooperative-sticky"), 2, around=(GROUP,)), 12)
    assert found is not None
    assert found.defect.check == INVARIANTS
    assert rule in found.defect.detail


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_a_fault_that_needs_a_failover_between_a_sync_and_its_answer_is_found(seed, monkeypatch):
    PLANTED["generations only grow"](monkeypatch)
    found = first_found(Campaign(("range", "cooperative-sticky"), seed, faults=FAILOVERS), 300)
    assert found is not None
    assert "generations only grow" in found.defect.detail


def test_what_is_found_is_shrunk_to_what_is_needed(monkeypatch):
    PLANTED["one leader, who is a member"](monkeypatch)
    smaller = shrink_found(first_found(Campaign(("range",), 2), 5), REGISTRY, lambda: True)
    assert smaller.defect.check == INVARIANTS
    assert smaller.document["events"] == []
    assert len(smaller.document["members"]) == len(smaller.document["topics"]) == 1
    assert examine_document(smaller.document, REGISTRY.strategy("range"), REGISTRY).defect == smaller.defect


def test_shrinking_keeps_the_smallest_so_far_when_it_has_to_end(monkeypatch):
    PLANTED["one leader, who is a member"](monkeypatch)
    found = first_found(Campaign(("range",), 2), 5)
    assert shrink_found(found, REGISTRY, lambda: False) == found


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is_wrong():
    tally = fuzz(Campaign(("range", "sticky+reconcile"), 3), goes_on=ends_after(6), jobs=2)
    assert (tally.runs, tally.found) == (6, [])
    assert {cell.family for cell in tally.coverage.counts} == {"classic", "reconcile"}


IN_ANOTHER_PROCESS = """\
import json
from coordinator_core.registry.registry import default_registry
from rebalance_lab.fuzzing.campaign import Campaign
campaign = Campaign(("sticky+static", "watcher"), 8)
print(json.dumps([campaign.document_of(n, default_registry()) for n in range(6)]))
"""


@pytest.mark.slow
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
    campaign = Campaign((f"{path}:Author",), 1)
    tally = fuzz(campaign, goes_on=ends_after(4), jobs=1, timeout=5)
    assert tally.found[0].defect.check == check


DEPENDS = """\
class Author:
    name = "author"

    def assign(self, cluster, group):
        members = sorted(group, key=hash)
        every = [(topic, n) for topic in cluster.topics for n in range(cluster.partition_count(topic))]
        return {member: every[i :: len(members)] for i, member in enumerate(members)}
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_assignor_that_depends_on_the_hash_seed_is_found(jobs, tmp_path):
    path = tmp_path / "author.py"
    path.write_text(DEPENDS)
    many = GROUP | {"members": [{"id": "m", "count": 9, "topics": ["t"]}]}
    campaign = Campaign((f"{path}:Author",), 1, around=(many,), as_they_are=True)
    tally = fuzz(campaign, goes_on=lambda _: True, most=9, jobs=jobs)
    assert [found.defect.check for found in tally.found] == [HASH_SEED]
    assert tally.runs == 1


@pytest.mark.slow
def test_documents_are_run_as_they_are_once_with_each_strategy():
    campaign = Campaign(("range", "sticky"), 1, around=(GROUP, GROUP | {"seed": 8}), as_they_are=True)
    tally = fuzz(campaign, goes_on=lambda _: True, jobs=2)
    assert (tally.begun, tally.runs, tally.found) == (4, 4, [])


def test_nothing_is_drawn_of_documents_that_are_run_as_they_are():
    other = GROUP | {"seed": 8}
    campaign = Campaign(("range", "sticky"), 1, around=(GROUP, other), as_they_are=True)
    assert [campaign.document_of(n, REGISTRY) for n in range(4)] == [GROUP, GROUP, other, other]


def test_a_scenario_that_the_strategy_cannot_run_is_refused():
    static = GROUP | {"members": [{"id": "m", "topics": ["t"], "instance_id": "one"}]}
    with pytest.raises(InputError, match="instance_id"):
        fuzz(Campaign(("watcher",), 1, around=(static,)), goes_on=ends_after(1))
