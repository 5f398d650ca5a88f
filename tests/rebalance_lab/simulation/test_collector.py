"""Python's cyclic collector during a run, and for its host afterwards."""

import gc

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.simulation.world.collector import OBJECTS, collecting_rarely


@pytest.fixture(autouse=True)
def threshold():
    before = gc.get_threshold()
    gc.set_threshold(500, 7, 9)
    yield 500, 7, 9
    gc.set_threshold(*before)


def test_a_run_collects_rarely_and_its_host_as_before(threshold):
    """Given a host with thresholds of its own, when a run ends or fails, then the host has them again."""
    with collecting_rarely():
        assert gc.get_threshold() == (OBJECTS, 7, 9)
        with collecting_rarely():
            pass
        assert gc.get_threshold() == (OBJECTS, 7, 9)
    assert gc.get_threshold() == threshold
    with pytest.raises(ZeroDivisionError), collecting_rarely():
        _ = 1 / 0
    assert gc.get_threshold() == threshold


@pytest.mark.parametrize("objects", [0, OBJECTS + 1])
def test_a_host_that_never_collects_or_more_rarely_is_left_alone(objects):
    gc.set_threshold(objects, 7, 9)
    with collecting_rarely():
        assert gc.get_threshold() == (objects, 7, 9)
    assert gc.get_threshold() == (objects, 7, 9)


def test_a_simulation_is_such_a_run(threshold):
    document = {
        "name": "test",
        "duration": "5s",
        "topics": {"t": {"partitions": 1}},
        "members": [{"id": "c", "topics": ["t"]}],
    }
    seen = []
    scenario = parse_scenario(document, where="test")
    simulate(scenario, "range", default_registry(), progress=lambda _: seen.append(gc.get_threshold()[0]))
    assert set(seen) == {OBJECTS}
    assert gc.get_threshold() == threshold
