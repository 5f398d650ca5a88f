"""A run in the trace format of Chrome: its slices are what the ledger says."""

import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.perfetto import MEMBERS, PARTITIONS, ROUNDS, STILL, as_perfetto
from tests.places import DATA

SCENARIOS = DATA / "scenarios"
STRATEGIES = ("range", "cooperative-sticky", "uniform-848+reconcile", "range+watcher", "range+peers")


def run_of(name, strategy):
    scenario = replace(load_scenario(SCENARIOS / f"{name}.yaml"), phase_ms=(0, 0))
    trace = simulate(scenario, strategy, default_registry())
    return History(trace), json.loads(as_perfetto(trace))["traceEvents"]


def slices(events, process):
    """The slices of each named thread of a process, in order: name, begin and end in milliseconds."""
    names = {
        e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == process
    }
    found = defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e["pid"] == process:
            found[names[e["tid"]]].append((e["name"], e["ts"] // 1_000, (e["ts"] + e["dur"]) // 1_000))
    return {name: sorted(own, key=lambda each: each[1:]) for name, own in found.items()}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["scale-out", "bounce"])
def test_partitions_stand_still_as_long_as_the_ledger_says_and_slices_do_not_overlap(name, strategy):
    history, events = run_of(name, strategy)
    of_partitions = slices(events, PARTITIONS)
    still = [end - begin for own in of_partitions.values() for what, begin, end in own if what == STILL]
    assert sum(still) == history.stops.stopped_ms
    for own in (*of_partitions.values(), *slices(events, MEMBERS).values()):
        assert all(end <= begin for (_, _, end), (_, begin, _) in pairwise(own))


def test_a_member_owns_in_its_slices_what_it_owns_in_the_ledger():
    history, events = run_of("scale-out", "range")
    worked = sum(
        span.to_ms - span.from_ms for n in range(6) for span in history.ledger.of(TopicPartition("clicks", n))
    )
    owned = sum(
        (end - begin) * (0 if what == "owns nothing" else int(what.split()[0]))
        for own in slices(events, MEMBERS).values()
        for what, begin, end in own
    )
    assert owned == worked


def test_a_round_has_its_causes_and_arrows_from_the_members_that_it_waited_for():
    _, events = run_of("scale-out", "cooperative-sticky")
    names = [name for name, _, _ in slices(events, ROUNDS)["rounds"]]
    assert names == ["generation 1", "generation 2", "generation 3", "generation 4"]
    second = next(e for e in events if e["name"] == "generation 2")
    assert second["args"]["causes"] == ["c3 joined"]
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert begins.keys() == ends.keys() == {"2 c2", "3 c3", "4 c1"}
    assert all(begins[name]["ts"] < ends[name]["ts"] for name in begins)
    assert begins["2 c2"]["ts"] == second["ts"]


def test_the_lag_is_a_counter():
    _, events = run_of("scale-out", "range")
    assert {e["name"] for e in events if e["ph"] == "C"} == {"lag"}


def test_commands_write_it(lab, tmp_path):
    file, folder = tmp_path / "run.json", tmp_path / "runs"
    scenario = SCENARIOS / "scale-out.yaml"
    assert lab("simulate", scenario, "-s", "range", "--trace", file, "--trace-format", "perfetto").status == 0
    assert json.loads(file.read_text())["otherData"]["strategy"] == "range"
    arguments = ("--seed", "1", "--trace", folder, "--trace-format", "perfetto")
    assert lab("compare", scenario, "-s", "range", "-s", "sticky", *arguments).status == 0
    assert sorted(path.name for path in folder.iterdir()) == ["scale-out.range.json", "scale-out.sticky.json"]
    assert all(json.loads(path.read_text())["traceEvents"] for path in folder.iterdir())
