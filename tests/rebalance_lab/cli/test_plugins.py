"""`rebalance-lab plugins`: what is installed, from where, and what failed to load."""

import json
from importlib.metadata import EntryPoint, version

import pytest

from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.cli import app
from rebalance_lab.cli import plugins as plugins_module

CONTRIBUTED = {
    "assignors": [
        "range",
        "roundrobin",
        "sticky",
        "cooperative-sticky",
        "optimal",
        "lag-aware",
        "rendezvous",
        "average",
        "average-by-circle",
        "range-848",
        "uniform-848",
    ],
    "metrics": ["rounds", "optimality_gap", "weighted_optimality_gap"],
    "modifiers": ["static", "cooperative", "budget", "weights"],
    "providers": ["reported-rates", "reported-lags", "reported-work", "scenario-rates", "scenario-lags"],
    "scenario_events": ["join", "rolling_restart", "coordinator_failover"],
}


class Mine:
    @hookimpl
    def metrics(self):
        return [MetricSpec("mine", "", lambda history: 0.0, doc="Of [red]mine[/], as written :key:.")]


@pytest.fixture
def registry(monkeypatch):
    """One plugin that works, and one that does not."""
    made = Registry()
    made.register(Mine(), name="good", distribution="my-metrics", version="1.2")
    made.load([EntryPoint("broken", "no_such_module", "rebalance_lab")])
    for module in (app, plugins_module):
        monkeypatch.setattr(module, "default_registry", lambda: made)
    return made


def test_everything_built_in_is_listed_with_where_it_is_from(lab):
    answer = lab("plugins")
    assert (answer.status, answer.err) == (0, "")
    origin = f"from rebalance-lab {version('rebalance-lab')} ("
    for kind, names in CONTRIBUTED.items():
        assert f"{kind.replace('_', ' ')} {origin}" in answer.out
        rows = [line.split()[0] for line in answer.out.splitlines() if line.startswith("  ")]
        assert set(names) <= set(rows)
    assert not any(line.endswith(" ") for line in answer.out.splitlines())


def test_json_has_plugins_what_they_contribute_and_failures(lab):
    listed = json.loads(lab("plugins", "--format", "json").out)
    assert listed["failures"] == []
    built_in = [p for p in listed["plugins"] if p["distribution"] == "rebalance-lab"]
    assert {"assignors", "rebalance_lab.verdicts.metrics"} <= {p["module"] for p in built_in}
    for kind, names in CONTRIBUTED.items():
        found = {n: doc for p in built_in for n, doc in p["contributes"].get(kind, {}).items()}
        assert set(names) <= set(found)
        assert all(found.values())


def test_a_plugin_that_failed_is_named_once_and_the_status_is_1(lab, registry):
    answer = lab("plugins")
    assert answer.status == 1
    (line,) = answer.err.splitlines()
    assert line.startswith("error: plugin 'broken' of - -: cannot be imported from 'no_such_module'")
    assert "broken" not in answer.out


def test_what_a_plugin_says_of_itself_is_shown_as_it_wrote_it(lab, registry):
    out = lab("plugins").out
    assert "metrics from my-metrics 1.2 (Mine)" in out
    assert "  mine  Of [red]mine[/], as written :key:." in out


def test_a_plugin_that_failed_is_in_the_json_and_the_status_is_1(lab, registry):
    answer = lab("plugins", "--format", "json")
    assert answer.status == 1
    listed = json.loads(answer.out)
    (failure,) = listed["failures"]
    assert failure["name"] == "broken"
    assert "ModuleNotFoundError" in failure["problem"]
    assert listed["plugins"] == [
        {
            "name": "good",
            "distribution": "my-metrics",
            "version": "1.2",
            "module": "Mine",
            "contributes": {"metrics": {"mine": "Of [red]mine[/], as written :key:."}},
        }
    ]
