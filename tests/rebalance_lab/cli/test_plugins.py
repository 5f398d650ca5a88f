"""`rebalance-lab plugins`: what is installed, from where, and what failed to load."""

import json
from importlib.metadata import EntryPoint, version

import pytest

from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.cli import app
from rebalance_lab.cli import plugins as plugins_module
from tests.approved import approved


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
    assert not any(line.endswith(" ") for line in answer.out.splitlines())
    listed = json.loads(lab("plugins", "--format", "json").out)
    assert listed["failures"] == []
    built_in = [p for p in listed["plugins"] if p["distribution"] == "rebalance-lab"]
    assert {"assignors", "rebalance_lab.verdicts.metrics"} <= {p["module"] for p in built_in}
    own = default_registry()
    contributed = {"assignors": own.assignors(), "metrics": own.metrics(), "modifiers": own.modifiers()}
    rows = {line.split()[0] for line in answer.out.splitlines() if line.startswith("  ")}
    for kind, names in contributed.items():
        assert f"{kind} from rebalance-lab {version('rebalance-lab')} (" in answer.out
        found = {n: doc for p in built_in for n, doc in p["contributes"].get(kind, {}).items()}
        assert found.keys() == names.keys() <= rows
        assert all(found.values())


def test_a_plugin_that_failed_is_named_once_with_status_1_and_the_words_of_another_stay(lab, registry):
    answers = {" ".join(words): lab(*words) for words in (("plugins",), ("plugins", "--format", "json"))}
    assert {answer.status for answer in answers.values()} == {1}
    approved("plugins", {title: f"{answer.out}{answer.err}" for title, answer in answers.items()})
