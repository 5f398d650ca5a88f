"""How many more members a load takes: the numbers are tried in runs with so many members."""

import random
from math import isnan

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.balance import utilization
from rebalance_lab.verdicts.scaling import (
    AT_EASE,
    BESIDES,
    MOST_BUSY,
    busiest_members,
    hot_partitions,
    load_in_members,
    loads_by_members,
    members_to_ease,
    missing_members,
)


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
    for measure, share in ((missing_members, 1.0), (members_to_ease, AT_EASE)):
        more = measure(run(strategy, topics, 1))
        sizes = range(2, sum(map(len, topics.values())) + 1)
        held = {size for size in sizes if utilization(run(strategy, topics, size)) <= share}
        enough = [size for size in sizes if {*range(size, min(size + BESIDES, sizes[-1]) + 1)} <= held]
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


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("seed", range(3))
def test_loads_by_number_of_members_are_those_of_runs_with_so_many(strategy, seed):
    topics = drawn(seed)
    found = loads_by_members(run(strategy, topics, 1))
    assert {0, 1, 2} <= found.keys()
    for more, load in found.items():
        assert load == pytest.approx(utilization(run(strategy, topics, 1 + more)))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_loads_of_a_plan_are_those_of_its_run(strategy):
    events = [{"at": "1m", "leave": "m-1"}]
    histories = [run(strategy, drawn(5), 4, events, how, batch_overhead="50ms") for how in (simulate, plan)]
    (run_loads, run_owners), (loads, owners) = (
        (loads_by_members(each), sorted(busiest_members(each), key=str)) for each in histories
    )
    assert loads == pytest.approx(run_loads)
    assert [parts for _, parts in owners] == [pytest.approx(parts) for _, parts in run_owners]
    assert utilization(histories[0]) == pytest.approx(utilization(histories[1])) != 0


def test_one_member_less_has_the_partitions_of_all():
    assert loads_by_members(run("range", {"a": [450] * 4}, 2))[-1] == pytest.approx(1.8, rel=0.02)
    assert loads_by_members(run("sticky", {"a": [450] * 6}, 3))[-1] == pytest.approx(1.35, rel=0.02)


def test_there_are_the_loads_of_one_member_less_to_sixteen_more_up_to_one_for_each_partition():
    assert [*loads_by_members(run("roundrobin", {"a": [400] * 8}, 2))] == [*range(-1, 7)]
    assert [*loads_by_members(run("roundrobin", {"a": [10] * 40}, 1))] == [*range(17)]
    assert [*loads_by_members(run("range", {"a": [240, 240]}, 2))] == [-1, 0]
    assert loads_by_members(run("range", {"a": [5_000] * 4}, 2, process_rate=None)) == {}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky"])
def test_the_owners_of_the_busiest_partitions_have_their_loads(strategy):
    topics = {"a": [900, *[10 * n for n in range(1, 13)]], "b": [5, 800]}
    history = run(strategy, topics, 4)
    found = busiest_members(history)
    told = {name: load for _, parts in found for name, load in parts.items()}
    rates = {f"{topic} {n}": rate for topic, each in topics.items() for n, rate in enumerate(each)}
    busiest = sorted(rates, key=rates.get)[-MOST_BUSY:]
    assert told == pytest.approx({name: rates[name] / 1_000 for name in busiest}, rel=0.02)
    assert max(load for load, _ in found) == pytest.approx(utilization(history))
    assert all(load >= sum(parts.values()) - 1e-9 for load, parts in found)


def test_the_busiest_member_that_owns_none_of_the_busiest_partitions_is_there():
    topics = {"a": [*[500] * 10, *[200, 210, 30, 40]]}
    found = busiest_members(run("range", topics, 7))
    assert [load for load, parts in found if not parts] == [pytest.approx(0.41, rel=0.02)]
    assert sum(len(parts) for _, parts in found) == MOST_BUSY
    assert busiest_members(run("range", topics, 7, process_rate=None)) == []


def test_a_number_after_which_a_member_has_too_much_again_is_not_enough():
    topics = {"a": [600, 100, 400, 100, 600, 100]}
    held = [utilization(run("roundrobin", topics, size)) <= 1 for size in range(2, 7)]
    assert held == [False, True, False, True, True]
    assert missing_members(run("roundrobin", topics, 2)) == 3


def test_members_that_can_handle_their_load_lack_none():
    history = run("range", {"a": [300, 300]}, 2)
    assert (missing_members(history), members_to_ease(history), hot_partitions(history)) == (0, 0, 0)
    assert load_in_members(history) == pytest.approx(0.6, rel=0.02)


def test_no_number_of_members_is_enough_for_a_partition_that_is_too_much():
    history = run("roundrobin", {"a": [1_300, 100, 1_100]}, 2)
    assert isnan(missing_members(history))
    assert (hot_partitions(history), load_in_members(history)) == (2, pytest.approx(2.5, rel=0.02))


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
    assert all(isnan(measure(history)) for measure in (missing_members, hot_partitions, load_in_members))


@pytest.mark.slow
def test_of_many_members_the_number_is_enough_and_a_tenth_fewer_are_not():
    topics = {"a": [90.0] * 300, "b": [900.0] * 20}
    size = 2 + int(missing_members(run("range", topics, 2)))
    assert size > 2 + 16
    assert utilization(run("range", topics, size)) <= 1
    assert utilization(run("range", topics, int(0.9 * size))) > 1
