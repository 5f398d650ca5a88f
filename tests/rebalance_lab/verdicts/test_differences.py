"""Partitions with different owners at a time: the owners, and why each has the partition."""

from dataclasses import replace
from functools import cache

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import Revoked
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.verdicts.differences import MOST_ROWS, NOBODY, Difference, Differences, differences
from tests.places import SCENARIOS


@cache
def traces(name="scale-out", strategies=("range", "cooperative-sticky")):
    scenario = replace(load_scenario(SCENARIOS / f"{name}.yaml"), phase_ms=(0, 0))
    return [simulate(scenario, strategy, default_registry()) for strategy in strategies]


def by_partition(found):
    return {row.partition.partition: row for row in found.rows}


def test_before_the_first_assignment_nothing_differs():
    found = differences(traces(), 0)
    assert found.rows == ()
    assert str(found) == "at 0 s: no partition has different owners"
    assert found.as_html() == "<p>at 0 s: no partition has different owners</p>"


def test_equal_runs_never_differ():
    first, _ = traces()
    assert all(differences([first, first], at_ms).rows == () for at_ms in range(0, 180_001, 9_000))


def test_an_owner_that_never_lost_the_partition_has_kept_it():
    rows = by_partition(differences(traces(), 31_000))
    assert list(rows) == [1, 4]
    assert rows[1].owners == ("c1", "c2")
    assert all(reason.startswith("kept since it was first assigned, at 8.") for reason in rows[1].reasons)


def test_an_eager_member_that_revokes_and_gets_back_has_kept_it():
    rows = by_partition(differences(traces(), 33_100))
    assert rows[1].reasons[0].startswith("kept since it was first assigned, at 8.")


def test_a_moved_partition_names_the_last_owner_and_the_round():
    rows = by_partition(differences(traces(), 33_100))
    assert rows[2].owners == ("c2", "c1")
    assert rows[2].reasons[0].startswith("moved from c1 at 32.")
    assert rows[2].reasons[0].endswith(" s in generation 2 (c3 joined)")


def test_a_partition_between_two_cooperative_rounds_has_nobody_and_the_cause_of_the_first_round():
    rows = by_partition(differences(traces(), 34_000))
    assert rows[4].owners == ("c3", NOBODY)
    assert rows[4].reasons[1].startswith("c1 had it until 33.")
    assert rows[4].reasons[1].endswith(" s, given up in generation 2 (c3 joined)")


def test_a_partition_of_a_killed_member_has_nobody_since_the_crash():
    rows = by_partition(differences(traces(), 100_000))
    assert rows[2].owners == (NOBODY, "c1")
    assert rows[2].reasons[0] == "c2 had it until 90 s (crash c2)"


def test_the_end_of_the_run_has_the_last_owners():
    assert differences(traces(), 180_000).rows == differences(traces(), 179_999).rows


def test_several_owners_are_all_named():
    found = differences(traces("late-view", ("watcher", "rocketmq")), 36_000)
    assert any(" and " in row.owners[1] for row in found.rows)


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


def test_at_the_moment_at_which_an_owner_gives_a_partition_up_it_has_none():
    _, trace = traces()
    at_ms = next(e.at_ms for e in trace.events if isinstance(e.event, Revoked) and e.at_ms > 30_000)
    (row,) = [row for row in differences(traces(), at_ms).rows if row.owners[1] == NOBODY]
    assert f" had it until {at_ms / 1_000:g} s" in row.reasons[1]
