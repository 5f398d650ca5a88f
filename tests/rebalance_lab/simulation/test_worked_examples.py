"""The worked examples of rebalancing, told by the simulator."""

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.rounds import rounds

THIRD_JOINS = {
    "name": "third-joins",
    "duration": "2m",
    "phase": "0s",
    "seed": 8,
    "topics": {"P": {"partitions": 6, "rate": 60}},
    "members": [{"id": "c1", "topics": ["P"]}, {"id": "c2", "topics": ["P"]}],
    "events": [{"at": "60s", "join": {"id": "c3", "topics": ["P"]}}],
}


def run(strategy):
    scenario = parse_scenario(THIRD_JOINS, where="test")
    trace = simulate(scenario, strategy, default_registry())
    return trace, rounds(trace)


def count(partitions):
    return sum(map(len, partitions.values()))


def test_an_incremental_cooperative_join_takes_two_rounds_and_stops_only_what_moves():
    """PROTOCOL 11.5: c1 and c2 own three each, c3 joins. Round 1: each keeps two, c3 gets nothing. Round 2:
    c3 gets the two that were given up; the four never stopped."""
    trace, (_, first, second) = run("cooperative-sticky")
    assert [r.generation for r in (first, second)] == [2, 3]
    for owner in ("c1", "c2"):
        assert count(first.members[owner].kept) == 2
        assert count(first.members[owner].revoked) == 1
        assert first.members[owner].assigned == {}
        assert second.members[owner].kept == first.members[owner].kept
        assert second.members[owner].revoked == {}
    assert count(first.members["c3"].assigned) == count(first.members["c3"].kept) == 0
    given_up = [n for owner in ("c1", "c2") for n in first.members[owner].revoked["P"]]
    assert second.members["c3"].assigned == {"P": sorted(given_up)}
    stopped = {n for e in trace.events if isinstance(e.event, ev.Revoked) for n in e.event.partitions["P"]}
    assert stopped == set(given_up)


def test_an_eager_join_takes_one_round_in_which_everybody_stops():
    """PROTOCOL 11.3: every member gives up everything before it joins."""
    _, (_, first) = run("range")
    for owner in ("c1", "c2"):
        assert count(first.members[owner].revoked) == 3
        assert count(first.members[owner].assigned) == 2
        assert first.members[owner].kept == {}
    assert count(first.members["c3"].assigned) == 2


def test_eager_sticky_stops_everybody_and_moves_no_more_than_it_must():
    """PROTOCOL 10.3, 11.3: what was owned travels in the user data, since nobody owns anything any more."""
    _, (_, first) = run("sticky")
    for owner in ("c1", "c2"):
        member = first.members[owner]
        assert count(member.revoked) == 3
        assert set(member.assigned["P"]) < set(member.revoked["P"])
