"""Partitions with different owners at a time: the owners, and why each has the partition."""

from dataclasses import replace
from functools import cache

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.verdicts.differences import MOST_ROWS, Difference, Differences, differences
from tests.approved import approved
from tests.places import SCENARIOS


@cache
def traces(name="scale-out", strategies=("range", "cooperative-sticky")):
    scenario = replace(load_scenario(SCENARIOS / f"{name}.yaml"), phase_ms=(0, 0))
    return [simulate(scenario, strategy, default_registry()) for strategy in strategies]


def test_equal_runs_never_differ():
    first, _ = traces()
    assert all(differences([first, first], at_ms).rows == () for at_ms in range(0, 180_001, 9_000))


def test_owners_and_their_reasons_are_as_approved():
    """At 33.34 s an owner gives a partition up, at 90 s another one crashes."""
    times = (0, 31_000, 33_100, 33_340, 34_000, 100_000, 180_000)
    found = {f"scale-out at {at_ms} ms": str(differences(traces(), at_ms)) for at_ms in times}
    late = differences(traces("late-view", ("watcher", "rocketmq")), 36_000)
    approved("differences", {**found, "late-view at 36000 ms": str(late)})
    assert differences(traces(), 0).as_html() == "<p>at 0 s: no partition has different owners</p>"


@pytest.mark.parametrize("count", [1, MOST_ROWS, MOST_ROWS + 3])
def test_a_long_table_is_cut_and_counts_the_rest(count):
    rows = [Difference(TopicPartition("<t>", n), ("a", "b"), ("kept", "moved")) for n in range(count)]
    found = Differences(("x", "y"), 1_500, 40, tuple(rows))
    have = "has" if count == 1 else "have"
    assert found.title == f"at 1.5 s: {count} of 40 partitions {have} different owners"
    shown = min(count, MOST_ROWS)
    assert found._repr_html_().count("<tr>") == 1 + shown
    assert "&lt;t&gt;-0" in found._repr_html_()
    lines = repr(found).splitlines()
    assert lines[:3] == [found.title, "<t>-0 under x: a, kept", "<t>-0 under y: b, moved"]
    assert len(lines) == 1 + 2 * shown + (count > MOST_ROWS)
    assert ("and 3 more" in found.as_html()) == (lines[-1] == "and 3 more") == (count > MOST_ROWS)
