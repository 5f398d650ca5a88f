"""How many more members a load takes: the numbers are tried in runs with so many members."""

import random
from math import isnan

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.balance import utilization
from rebalance_lab.verdicts.scaling import (
    COMFORTABLE_LOAD,
    members_to_ease,
    missing_members,
)
from tests.rebalance_lab.traces import traces


def run(strategy, topics, members, events=(), how=simulate, **fields):
    """The history of a run in which each member handles 1,000 records/s."""
    document = {
        "name": "g",
        "duration": "3m",
        "phase": "0s",
        "topics": {name: {"partitions": len(rates), "rates": rates} for name, rates in topics.items()},
        "members": [
            {"id": "m", "count": members, "topics": list(topics), "process_rate": 1_000, **fields},
        ],
        "events": list(events),
    }
    registry = default_registry()
    scenario = parse_scenario(document, where="g", registry=registry)
    return History(how(scenario, registry.strategy(strategy), registry), registry)


def drawn(seed):
    draw = random.Random(seed)
    return {
        name: [round(draw.lognormvariate(5, 0.6)) for _ in range(draw.randint(4, 9))]
        for name in ("a", "b")[: draw.randint(1, 2)]
    }


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("seed", range(4))
def test_so_many_more_members_and_two_besides_are_enough_and_fewer_are_not(strategy, seed):
    topics = drawn(seed)
    for measure, share in ((missing_members, 1.0), (members_to_ease, COMFORTABLE_LOAD)):
        more = measure(run(strategy, topics, 1))
        sizes = range(2, sum(map(len, topics.values())) + 1)
        held = {size for size in sizes if utilization(run(strategy, topics, size)) <= share}
        enough = [size for size in sizes if {*range(size, min(size + 2, sizes[-1]) + 1)} <= held]
        assert more == (0 if utilization(run(strategy, topics, 1)) <= share else enough[0] - 1)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(4))
def test_members_of_a_sticky_assignor_join_those_that_own_partitions(strategy, seed):
    topics = drawn(seed)
    more = int(missing_members(run(strategy, topics, 1)))
    for joining in range(max(1, more - 1), more + 1):
        members = [{"id": f"n-{n}", "topics": list(topics), "process_rate": 1_000} for n in range(joining)]
        history = run(strategy, topics, 1, [{"at": "1m", "join": members}])
        assert (utilization(history) <= 1) == (joining == more)


def test_a_number_after_which_a_member_has_too_much_again_is_not_enough():
    topics = {"a": [600, 100, 400, 100, 600, 100]}
    held = [utilization(run("roundrobin", topics, size)) <= 1 for size in range(2, 7)]
    assert held == [False, True, False, True, True]
    assert missing_members(run("roundrobin", topics, 2)) == 3


def test_members_that_can_handle_their_load_lack_none():
    history = run("range", {"a": [300, 300]}, 2)
    assert (missing_members(history), members_to_ease(history)) == (0, 0)


def test_no_number_of_members_is_enough_for_a_partition_that_is_too_much():
    assert isnan(missing_members(run("roundrobin", {"a": [1_300, 100, 1_100]}, 2)))


def test_under_range_partitions_of_two_topics_stay_together_whatever_the_number_of_members():
    topics = {"a": [700, 100], "b": [700, 100]}
    assert isnan(missing_members(run("range", topics, 2)))
    assert missing_members(run("roundrobin", topics, 2)) == 1


def test_members_that_left_are_missing_as_well():
    leaves = [{"at": "1m", "leave": "m-1"}]
    assert missing_members(run("range", {"a": [450] * 4}, 2)) == 0
    assert missing_members(run("range", {"a": [450] * 4}, 2, leaves)) == 1


def test_members_without_a_limit_leave_it_open():
    history = run("range", {"a": [5_000] * 4}, 2, process_rate=None)
    assert all(isnan(measure(history)) for measure in (missing_members, members_to_ease))


@pytest.mark.slow
def test_of_many_members_the_number_is_enough_and_a_tenth_fewer_are_not():
    topics = {"a": [90.0] * 300, "b": [900.0] * 20}
    size = 2 + int(missing_members(run("range", topics, 2)))
    assert size > 2 + 16
    assert utilization(run("range", topics, size)) <= 1
    assert utilization(run("range", topics, int(0.9 * size))) > 1


def exactly(*per_partition, limits=(100.0,)):
    """The history of members with these limits, of which the first owns all partitions, all the time."""
    names = "abc"[: len(limits)]
    started = [(0, traces.started(n, "t", process_rate=each)) for n, each in zip(names, limits, strict=True)]
    owned = {name: {"t": list(range(len(per_partition))) if name == "a" else []} for name in names}
    timed = [*started, *traces.round_at(0, 1, owned), (0, traces.rates("t", *per_partition))]
    return traces.history_of(*timed, topics={"t": len(per_partition)}, from_ms=0)


def test_a_member_may_have_just_what_it_can_handle():
    assert missing_members(exactly(50.0, 50.0)) == 0
    assert missing_members(exactly(50.0, 50.0, 50.0, 50.0)) == 1
