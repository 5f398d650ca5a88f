"""Sweeps of options and settings."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.variants import expanded, variants


def test_braces_are_alternatives_and_several_are_all_combinations():
    assert expanded(["a+x={1,2}+y={3, 4}", "b", "a+x=1+y=3"]) == [
        "a+x=1+y=3",
        "a+x=1+y=4",
        "a+x=2+y=3",
        "a+x=2+y=4",
        "b",
    ]


@pytest.mark.parametrize("text", ["a+x={1,2", "a+x=1}", "a+x={1,{2}}", "a+x={1,}", "a+x={}"])
def test_braces_that_do_not_match_or_are_empty_are_refused(text):
    with pytest.raises(InputError, match="expected alternatives in braces"):
        expanded([text])


def test_a_setting_that_a_strategy_does_not_read_makes_no_further_variants():
    found = variants(["range", "range+peers"], ["heartbeat.broker.interval=5s,9s"], {}, default_registry())
    assert [(each.strategy, dict(each.settings)) for each in found] == [
        ("range", {}),
        ("range+peers", {"heartbeat.broker.interval": "5s"}),
        ("range+peers", {"heartbeat.broker.interval": "9s"}),
    ]


def test_a_setting_that_a_strategy_sets_itself_is_not_varied():
    with pytest.raises(InputError) as caught:
        variants(["watcher+owners=off", "watcher"], ["owner.nodes=true,false"], {}, default_registry())
    assert str(caught.value) == (
        "--set: owner.nodes: found a setting of the strategy 'watcher+owners=off',"
        " expected a setting that the strategy leaves to the scenario"
    )
