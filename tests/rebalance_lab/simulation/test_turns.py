"""Members that read one partition for many polls, as Java's do: what others handle again."""

from dataclasses import replace
from statistics import mean, stdev

import pytest

from rebalance_lab import default_registry, measure, simulate
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.process.turns import Reading, Turns
from rebalance_lab.simulation.world.dice import Dice

REGISTRY = default_registry()


def test_what_was_handled_is_of_as_many_partitions_as_it_has_turns():
    """Fifteen records of each of four partitions in the mean are sixty of one, or thirty of two."""

    def handled(records):
        return [Reading(records, 4, place, 0.0).handled(15.0) for place in range(4)]

    assert handled(1_000) == [60.0, 0.0, 0.0, 0.0]
    assert handled(30) == [30.0, 30.0, 0.0, 0.0]
    assert handled(1) == [15.0] * 4


def test_records_of_random_times_are_not_as_many_in_each_run():
    """A hundred records in the mean, with a deviation of ten."""
    turns = Turns(1_000, 1.0, Dice("turns"))
    readings = (turns.reading(place, 4, at_ms) for at_ms in range(2_000) for place in range(4))
    found = [handled for handled in (reading.handled(25.0) for reading in readings) if handled]
    assert (mean(found), stdev(found)) == (pytest.approx(100, abs=1), pytest.approx(10, abs=1))
    assert Turns(1_000, 0.0, Dice("turns")).reading(0, 1, 7).handled(25.0) == 25.0


def test_a_member_reads_each_of_its_partitions_as_often_and_one_at_a_time():
    turns = Turns(1_000, 1.0, Dice("turns"))
    first = []
    for at_ms in range(4_000):
        places = [turns.reading(place, 4, at_ms).place for place in range(4)]
        assert sorted(places) == [0, 1, 2, 3]
        first.append(places.index(0))
    assert all(900 < first.count(place) < 1_100 for place in range(4))


def again(client, *, seeds=16, **config):
    """The records that are handled again when a fourth member joins a cooperative group with a backlog."""
    own = {"topics": ["t"], "process_rate": 10, "record_cv": 0, "batch_overhead": 0, "client": client}
    document = {
        "name": "turns",
        "duration": "1m",
        "topics": {"t": {"partitions": 12, "backlog": 6_000}},
        "members": [{"id": "c", "count": 3, "start_up": "0s", **own}],
        "events": [{"at": "20s", "join": {"id": "extra", "start_up": "0s", **own}}],
        "config": {"max.poll.records": 20, **config},
    }
    scenario = parse_scenario(document, where="g.yaml")
    runs = (simulate(replace(scenario, seed=n), "cooperative-sticky", REGISTRY) for n in range(seeds))
    return [round(measure(run, REGISTRY)["duplicate_records"]) for run in runs]


def test_a_java_member_hands_over_a_partition_that_it_read_last_or_one_without_anything_new():
    """Each of three members has read sixty records since its last commit, of one of its four partitions, and
    gives up one of them."""
    found = again("java")
    assert {0, 60} <= set(found)
    assert mean(found) == pytest.approx(45, abs=30)


def test_with_small_fetches_a_member_has_read_three_partitions_in_three_batches():
    found = again("java", **{"max.partition.fetch.bytes": 1_000})
    assert set(found) <= {0, 20, 40, 60}
    assert mean(found) == pytest.approx(45, abs=15)
