"""The assignors of KIP-848, by examples with the answer written out."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.model import Cluster, TopicInfo
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from tests.assignors.groups import assign, group, member, told

CLUSTER = Cluster({"t": 4})
WITH_RACKS = Cluster({"t": TopicInfo(2, (("r2",), ("r1",)))})


def test_range_848_gives_runs_of_each_topic_and_static_members_come_first():
    """PROTOCOL 11.8 and 10.1."""
    members = group(a=member("t u"), b=member("t", instance_id="z"), c=member("u"))
    shares = told(assign("range-848", Cluster({"t": 3, "u": 3}), members))
    assert shares == {"a": "t:2 u:0,1", "b": "t:0,1", "c": "u:2"}


def test_uniform_848_moves_no_more_than_the_balance_requires():
    """PROTOCOL 11.8: c gets one partition of each."""
    members = group(a=member("t", "t:0,2"), b=member("t", "t:1,3"), c=member("t"))
    assert told(assign("uniform-848", CLUSTER, members)) == {"a": "t:0,2", "b": "t:1", "c": "t:3"}


def test_neither_looks_at_racks():
    """PROTOCOL 11.8: Kafka 4 has no racks in the assignors of its coordinator."""
    members = group(a=member("t", "t:0", rack="r1"), b=member("t", "t:1", rack="r2"))
    for name in ("range-848", "uniform-848"):
        assert told(assign(name, WITH_RACKS, members)) == {"a": "t:0", "b": "t:1"}


@pytest.mark.parametrize("name", ["range-848", "uniform-848"])
def test_a_group_with_assignors_of_coordinators_has_a_protocol_whose_coordinator_assigns(name):
    """They would run in members under the classic protocol, which stop all their work for each round."""
    registry = default_registry()
    for protocol in ("reconcile", "server-side"):
        assert registry.strategy(f"{name}+{protocol}").protocol == protocol
    for text in (name, f"{name}+static", f"{name}+watcher"):
        with pytest.raises(InputError, match=rf"expected one .* {name}\+reconcile or {name}\+server-side"):
            registry.strategy(text)
    assert registry.assignor(name).name == name


def test_members_of_the_classic_protocol_do_not_list_assignors_of_coordinators():
    document = {
        "name": "g",
        "duration": "1m",
        "topics": {"t": {"partitions": 2, "rate": 1}},
        "members": [{"id": "m", "topics": ["t"], "assignors": ["uniform-848"]}],
    }
    scenario = parse_scenario(document, where="g")
    with pytest.raises(InputError, match="is an assignor of the protocol reconcile or server-side"):
        simulate(scenario, "range", default_registry())
    assert simulate(scenario, "range-848+reconcile", default_registry()).ended.group_state == "Stable"
