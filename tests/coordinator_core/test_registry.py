"""The registry: built-ins and strangers come in by the same door, and a broken one harms nobody else."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from coordinator_core.errors import InputError, PluginError
from coordinator_core.hookspecs import AssignorSpec, Hooks, MetricSpec, ModifierSpec, hookimpl
from coordinator_core.registry import Registry, default_registry


class Mine:
    name = "mine"

    def assign(self, cluster, group):
        return {member: [] for member in group}


class Plugin:
    @hookimpl
    def assignors(self):
        return [AssignorSpec("mine", Mine, "An assignor.")]


def plugin_with(hook, function):
    return type("Made", (), {hook: hookimpl(function)})()


@pytest.fixture
def registry():
    made = Registry()
    made.register(Plugin(), name="first", distribution="first-dist")
    return made


@pytest.fixture
def module():
    """Makes importable modules, and takes them away again."""
    made = []

    def make(name, **content):
        module = ModuleType(name)
        vars(module).update(content)
        sys.modules[name] = module
        made.append(name)
        return EntryPoint(name, name, "rebalance_lab")

    yield make
    for name in made:
        del sys.modules[name]


def test_the_built_in_assignors_come_in_through_the_entry_points():
    origins = {p.name: p for p in default_registry().plugins}
    assert {"range", "roundrobin", "sticky", "cooperative-sticky"} <= set(
        origins["assignors"].contributes["assignors"]
    )
    assert origins["assignors"].distribution == "rebalance-lab"
    assert not [f for f in default_registry().failures if f.distribution == "rebalance-lab"]


def test_an_assignor_is_made_afresh_for_each_consumer(registry):
    assert registry.assignor("mine") is not registry.assignor("mine")


def test_an_unknown_assignor_lists_what_there_is_and_the_closest_name(registry):
    with pytest.raises(InputError, match=r"found 'mone', expected one of mine \(did you mean 'mine'\?\)"):
        registry.assignor("mone")


def test_an_assignor_that_cannot_be_made_is_a_plugin_error_that_names_the_plugin(registry):
    def broken():
        raise RuntimeError("no licence")

    registry.register(plugin_with("assignors", lambda self: [AssignorSpec("bad", broken)]), name="second")
    with pytest.raises(PluginError, match=r"'second'.*'bad'.*RuntimeError: no licence"):
        registry.assignor("bad")


def test_a_name_that_is_taken_is_refused_and_both_distributions_are_named(registry):
    with pytest.raises(PluginError, match=r"'mine' of second-dist is already contributed by first-dist"):
        registry.register(Plugin(), name="second", distribution="second-dist")
    assert [p.name for p in registry.plugins] == ["first"]


def test_a_plugin_with_one_bad_record_contributes_nothing(registry):
    bad = plugin_with("assignors", lambda self: [AssignorSpec("good", Mine), AssignorSpec("Not Good", Mine)])
    with pytest.raises(PluginError, match="'Not Good' is not lower-case"):
        registry.register(bad, name="bad")
    assert "good" not in registry.assignors()


@pytest.mark.parametrize(
    ("hook", "function", "problem"),
    [
        ("assignors", lambda self: [Mine], "expected AssignorSpec records"),
        ("assignors", lambda self: [AssignorSpec("twice", Mine)] * 2, "contributes 'twice' twice"),
        ("assignors", lambda self: 1 / 0, "ZeroDivisionError"),
        ("assignors", lambda self: None, "TypeError"),
        ("assigners", lambda self: [], "no such hook; there are assignors, modifiers"),
    ],
)
def test_an_unusable_contribution_says_what_was_found(registry, hook, function, problem):
    with pytest.raises(PluginError, match=problem):
        registry.register(plugin_with(hook, function), name="bad")


def test_an_object_without_hooks_is_not_a_plugin(registry):
    with pytest.raises(PluginError, match="marked with hookimpl"):
        registry.register(object(), name="nothing")


def test_the_same_plugin_twice_is_refused(registry):
    plugin = plugin_with("metrics", lambda self: [])
    registry.register(plugin, name="once")
    with pytest.raises(PluginError):
        registry.register(plugin, name="once")


def test_a_plugin_that_cannot_be_imported_is_put_down_and_the_others_are_loaded(module):
    good = module("zz_good_plugin", metrics=hookimpl(lambda: [MetricSpec("m", "1", lambda history: 0.0)]))
    registry = Registry()
    registry.load([good, EntryPoint("gone", "no_such_module_here", "rebalance_lab")])
    assert [p.name for p in registry.plugins] == ["zz_good_plugin"]
    assert [f.name for f in registry.failures] == ["gone"]
    assert "no_such_module_here" in registry.failures[0].problem


def test_entry_points_are_loaded_in_sorted_order_whatever_order_they_come_in(module):
    def metric():
        return hookimpl(lambda: [MetricSpec("m", "1", lambda history: 0.0)])

    points = [module("plugin_b", metrics=metric()), module("plugin_a", metrics=metric())]
    for order in (points, points[::-1]):
        registry = Registry()
        registry.load(order)
        assert [p.name for p in registry.plugins] == ["plugin_a"]
        assert [f.name for f in registry.failures] == ["plugin_b"]


def test_a_strategy_is_an_assignor_with_modifiers(registry):
    modifier = ModifierSpec("slow", lambda strategy, value: strategy.with_changes(options={"slow": value}))
    registry.register(plugin_with("modifiers", lambda self: [modifier]), name="modifiers")
    strategy = registry.strategy("mine+slow=30s")
    assert (strategy.name, strategy.assignor, strategy.options) == ("mine+slow=30s", "mine", {"slow": "30s"})


def test_an_unknown_modifier_lists_what_there_is(registry):
    with pytest.raises(InputError, match=r"strategy 'mine[+]fast': found 'fast', expected one of"):
        registry.strategy("mine+fast")


def test_a_modifier_says_what_value_it_expects(registry):
    def refuse(strategy, value):
        raise ValueError("a duration")

    registry.register(plugin_with("modifiers", lambda self: [ModifierSpec("slow", refuse)]), name="modifiers")
    with pytest.raises(InputError, match="found 'slow=x', expected a duration"):
        registry.strategy("mine+slow=x")


def test_static_membership_is_a_modifier_of_any_assignor():
    assert default_registry().strategy("range+static").static
    assert not default_registry().strategy("range").static


def test_every_hook_has_a_sentence_and_a_record_type_in_the_registry():
    hooks = {n for n in vars(Hooks) if not n.startswith("_")}
    assert hooks == {"assignors", "modifiers", "metrics", "workloads", "scenario_events"}
    assert all(getattr(Hooks, h).__doc__ for h in hooks)
