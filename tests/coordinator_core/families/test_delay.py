"""Groups whose lost partitions wait for their owner, in the simulator (PROTOCOL 11.6)."""

from dataclasses import replace

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.rounds import rounds
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.story import story
from tests.places import SCENARIOS

REGISTRY = default_registry()
DELAYED = "cooperative-sticky+delay=60s"


def run(given, strategy=DELAYED):
    """Return the trace of a scenario in which the rules of the protocol hold."""
    scenario = parse_scenario(given, where="test", registry=REGISTRY) if isinstance(given, dict) else given
    watch = Invariants(REGISTRY)
    trace = simulate(scenario, strategy, REGISTRY, watch=watch)
    assert (watch.violations, watch.settled()) == ([], [])
    return trace


def named(name, **changes):
    return replace(load_scenario(SCENARIOS / f"{name}.yaml"), **changes)


def document(*events):
    """Three members that run already: c1, the leader, has P0 P1, c2 has P3 P4, c3 has P2 P5."""
    owned = {"c1": [0, 1], "c2": [3, 4], "c3": [2, 5]}
    return {
        "name": "three",
        "duration": "5m",
        "topics": {"P": {"partitions": 6, "rate": 60}},
        "members": [{"id": name, "topics": ["P"], "owned": {"P": own}} for name, own in owned.items()],
        "events": list(events),
        "config": {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 3_000},
    }


def of_kind(trace, kind):
    return [line.event for line in trace.events if isinstance(line.event, kind)]


def lines(trace):
    return [line.body.plain for line in story(trace)]


def test_the_worked_example():
    """Given c2 vanishes and comes back, then there are three rounds, nobody revokes anything, and c2 gets
    exactly P3 P4 when the delay ends. PROTOCOL 11.6."""
    trace = run(named("delayed"), "cooperative-sticky+delay=300s")
    first, second, third = rounds(trace)
    assert of_kind(trace, ev.Revoked) == of_kind(trace, ev.Lost) == []
    assert [entry.report.get("lost") for entry in (first, second, third)] == [["P 3", "P 4"]] * 2 + [None]
    given = [{c: m.assigned for c, m in r.members.items() if m.assigned} for r in (first, second, third)]
    assert given == [{}, {}, {"c2": {"P": [3, 4]}}]
    assert third.began_ms == pytest.approx(first.stable_ms + 300_000, abs=1_000)
    assert measure(trace, REGISTRY)["moved_partitions"] == 0


@pytest.mark.parametrize(("delay", "low", "high"), [("300s", 655, 665), ("60s", 175, 183)])
def test_what_a_bounce_costs(delay, low, high):
    """Given a member that is back after 62 s, counted from time 0, then what it lost waits to the end of the
    delay, and nothing moves. PROTOCOL 11.6."""
    figures = measure(run(named("bounce", measure_from_ms=0), f"cooperative-sticky+delay={delay}"), REGISTRY)
    assert low < figures["stopped_partition_seconds"] < high
    assert figures["moved_partitions"] == 0


def test_a_short_bounce_is_the_case_for_static_members():
    """Given a member that is back within its session, then static members have no round, with a delay or
    without one, and others have. PROTOCOL 11.4, 11.6."""
    scenario = named("bounce-short")
    count = {
        strategy: len(rounds(run(scenario, strategy)))
        for strategy in ("cooperative-sticky+static", f"{DELAYED}+static", "cooperative-sticky", DELAYED)
    }
    assert count["cooperative-sticky+static"] == count[f"{DELAYED}+static"] == 1
    assert min(count["cooperative-sticky"], count[DELAYED]) > 1
    assert len(rounds(run(named("bounce"), "cooperative-sticky+static"))) > 1


def test_a_static_member_that_returns_after_its_session_gets_its_partitions_at_the_end():
    """PROTOCOL 11.6."""
    trace = run(named("delayed"), f"{DELAYED}+static")
    assert rounds(trace)[-1].members["c2"].assigned == {"P": [3, 4]}
    assert of_kind(trace, ev.Revoked) == []


def test_those_that_are_left_take_over_when_the_delay_ends():
    """PROTOCOL 11.6."""
    trace = run(document({"at": "30s", "crash": "c2"}))
    first, last = rounds(trace)
    assert last.began_ms - first.stable_ms == pytest.approx(60_000, abs=1_000)
    assert sorted(n for m in last.members.values() for n in m.assigned.get("P", ())) == [3, 4]


def test_a_new_leader_starts_the_delay_anew_and_the_story_says_so():
    """Given the leader vanishes while the delay runs, then the next one begins again. PROTOCOL 11.6."""
    trace = run(document({"at": "30s", "crash": "c2"}, {"at": "60s", "crash": "c1"}))
    _, second, last = rounds(trace)
    assert second.report["delay_starts_anew"]
    assert last.began_ms - second.stable_ms == pytest.approx(60_000, abs=1_000)
    told = [line for line in lines(trace) if line.startswith("delay")]
    assert told == [
        "delay 60 s, 60 s left for P 3-4",
        "delay 60 s starts anew under a new leader, 60 s left for P 0-1 3-4",
    ]


@pytest.mark.parametrize(
    "strategy",
    [
        "range+cooperative+delay=60s",
        "optimal+cooperative+delay=60s",
        "cooperative-sticky+budget=1pairs+delay=60s",
        "cooperative-sticky+delay=60s+budget=10000pairs:range",
        "optimal+cooperative+weights=scenario-lags+delay=60s",
    ],
)
def test_the_delay_goes_with_any_cooperative_strategy(strategy):
    """Given modifiers in any order, then what c2 had waits, and is assigned in the end."""
    trace = run(document({"at": "30s", "crash": "c2"}, {"at": "50s", "restart": "c2"}), strategy)
    waiting = [entry for entry in rounds(trace) if "lost" in entry.report]
    assert waiting
    assert waiting[0].report["lost"] == ["P 3", "P 4"]
    assert "lost" not in rounds(trace)[-1].report
