"""Each seed moves the heartbeats and commits of a group against the events."""

from dataclasses import replace

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab import default_registry, measure, simulate
from rebalance_lab.scenarios.scenario import parse_scenario

REGISTRY = default_registry()


def scenario_of(**fields):
    document = {
        "name": "g",
        "duration": "1m",
        "topics": {"t": {"partitions": 12, "rate": 24}},
        "members": [{"id": "c", "count": 4, "topics": ["t"], "start_up": "0s"}],
        "events": [{"at": "30s", "crash": "c-1"}],
        "config": {"session.timeout.ms": "10s"},
        **fields,
    }
    return parse_scenario(document, where="g.yaml")


def run(scenario, seed, strategy="range"):
    return simulate(replace(scenario, seed=seed), strategy, REGISTRY)


def starts(trace):
    return [line.at_ms for line in trace.events if isinstance(line.event, ev.MemberStarted)]


def test_all_members_start_at_one_time_of_an_interval_and_events_happen_at_theirs():
    seen = set()
    for seed in range(10):
        trace = run(scenario_of(), seed)
        (at_ms,) = {*starts(trace)}
        assert 0 <= at_ms < 5_000
        seen.add(at_ms)
        (crash,) = [line.at_ms for line in trace.events if isinstance(line.event, ev.Changed)]
        assert crash == 30_000
    assert len(seen) == 10


def test_a_seed_has_one_phase_under_every_strategy():
    scenario = scenario_of()
    for seed in range(3):
        found = {
            starts(run(scenario, seed, s))[0]
            for s in ("range", "uniform-848+reconcile", "watcher", "rocketmq")
        }
        assert len(found) == 1


def test_few_consecutive_seeds_have_early_and_late_phases():
    for first in (0, 7, 100):
        found = sorted(starts(run(scenario_of(), seed))[0] for seed in range(first, first + 6))
        assert max(b - a for a, b in zip([0, *found], [*found, 5_000], strict=True)) < 2_000


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"phase": "0s"}, (0, 0)),
        ({"phase": ["1s", "2s"]}, (1_000, 2_000)),
        ({"config": {"auto.commit.interval.ms": "9s"}}, (0, 9_000)),
        ({"config": {"group.consumer.heartbeat.interval.ms": "8s"}}, (0, 8_000)),
        ({"events": [{"at": "4s", "crash": "c-1"}]}, (0, 2_000)),
        ({"events": []}, (0, 5_000)),
    ],
)
def test_the_phase_is_within_the_longest_interval_and_before_the_first_event(fields, expected):
    assert scenario_of(**fields).phase_ms == expected


def test_the_records_handled_again_after_a_crash_depend_on_the_phase():
    """A member commits every 5 s. Up to 30 records of its three partitions are handled between."""
    again = [measure(run(scenario_of(), seed), REGISTRY)["duplicate_records"] for seed in range(8)]
    assert max(again) - min(again) >= 15
    steady = {"id": "c", "count": 4, "topics": ["t"], "start_up": "0s", "record_cv": 0}
    fixed = scenario_of(phase="0s", members=[steady])
    again = [measure(run(fixed, seed), REGISTRY)["duplicate_records"] for seed in range(4)]
    assert max(again) - min(again) <= 3


def test_members_of_a_running_group_are_somewhere_in_their_intervals_of_commits():
    owned = [{"id": f"c-{n}", "topics": ["t"], "owned": {"t": [*range(n, 12, 4)]}} for n in range(4)]
    scenario = scenario_of(members=owned)
    again = [measure(run(scenario, seed), REGISTRY)["duplicate_records"] for seed in range(8)]
    assert max(again) - min(again) >= 12
