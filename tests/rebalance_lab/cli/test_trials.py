"""Trials: what is printed was run, with the figures and the price of its runs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.running import Task, run_all
from rebalance_lab.cli.trials import Trials
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.verdicts.aims import STOPS
from rebalance_lab.verdicts.changes import Change
from rebalance_lab.verdicts.grid import Grid, Setup
from rebalance_lab.verdicts.runs import figures_of
from tests.examples import scaled

REGISTRY = default_registry()
DOCUMENT = {
    "name": "day",
    "duration": "3m",
    "topics": {"t": {"partitions": 6, "rate": 60}},
    "members": [{"id": "m", "count": 3, "topics": ["t"], "process_rate": 100}],
    "config": {"session.timeout.ms": "20s"},
}


def scenario_of(**changes):
    return parse_scenario({**DOCUMENT, **changes}, where="x")


def run(scenario, strategy="range", seeds=range(6)):
    runs = run_all([Task(replace(scenario, seed=seed), strategy) for seed in seeds], jobs=1, timeout=0)
    return dict(zip(seeds, runs, strict=True))


def grid_of(scenario, seeds=range(6), strategy="range"):
    return Grid.of([Setup(strategy)], [figures_of(run(scenario, strategy, seeds))], partitions=6)


@settings(max_examples=scaled(20))
@given(
    st.sampled_from([None, 100, 400]),
    st.sampled_from(["crash", "freeze", "leave", "pause"]),
    st.integers(0, 2**16),
)
def test_a_remedy_that_is_printed_was_run_and_its_effect_is_the_measured_one(rate, kind, seed):
    event = {"at": "60s", kind: "m-0", **({"for": "80s"} if kind in ("freeze", "pause") else {})}
    members = [{"id": "m", "count": 3, "topics": ["t"], "process_rate": rate}]
    scenario, seeds = scenario_of(members=members, events=[event]), range(seed, seed + 6)
    found = Trials(scenario, "range", 1, 0).remedy(grid_of(scenario, seeds), 0)
    for finding in found:
        facts, name = finding.facts, finding.facts["change"]
        texts = dict(text.split("=") for text in name.split(", ")) if "=" in name else {}
        own = scenario_of(members=members, events=[event], config=DOCUMENT["config"] | texts)
        again = grid_of(own, seeds, "range" if texts else name)
        assert facts["before"] == grid_of(scenario, seeds).value(STOPS, 0)
        assert facts["after"] == again.value(STOPS, 0)
        for each in facts.get("price", ()):
            assert each.after > each.before


def test_a_consumer_that_is_stuck_for_six_minutes_is_removed_earlier():
    scenario = scenario_of(duration="8m", events=[{"at": "60s", "pause": "m-0", "for": "6m"}])
    (found,) = Trials(scenario, "range", 1, 0).remedy(grid_of(scenario), 0)
    assert (found.kind, found.facts["change"]) == ("helps", "max.poll.interval.ms=3m")


def test_few_seeds_do_not_show_what_helps():
    scenario = scenario_of(events=[{"at": "60s", "leave": "m-0"}])
    assert Trials(scenario, "range", 1, 0).remedy(grid_of(scenario, range(2)), 0) == []


@pytest.mark.parametrize(("rate", "members"), [(270, 4), (330, 6)])
def test_members_that_are_said_to_be_enough_carry_the_load_in_a_run(rate, members):
    scenario = scenario_of(topics={"t": {"partitions": 12, "rate": rate}}, duration="6m")
    (first, *_) = run(scenario, seeds=[0]).values()
    assert first.load.is_high
    found = Trials(scenario, "range", 1, 0).enough(grid_of(scenario), first.load)
    assert found.members == members
    (again,) = run(Change("range", more=members - 3).of(scenario, REGISTRY), seeds=[0]).values()
    assert 1 - again.figures["utilization"] == pytest.approx(found.headroom)
    assert (again.load.is_high, again.load.left) == (False, 0)


def test_members_that_leave_a_backlog_are_not_enough():
    """A member freezes for the last 30 s, whoever else is there: its backlog still grows."""
    events = [{"at": "150s", "freeze": "m-0", "for": "60s"}]
    scenario = scenario_of(topics={"t": {"partitions": 12, "rate": 270}}, events=events)
    (first, *_) = run(scenario, seeds=[0]).values()
    assert first.load.is_high
    assert Trials(scenario, "range", 1, 0).enough(grid_of(scenario), first.load) is None


def test_a_partition_that_no_member_can_handle_is_not_helped_by_members():
    scenario = scenario_of(topics={"t": {"partitions": 2, "rates": [150, 100]}})
    (first, *_) = run(scenario, seeds=[0]).values()
    assert Trials(scenario, "range", 1, 0).enough(grid_of(scenario), first.load) is None
