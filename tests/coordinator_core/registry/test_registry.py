"""The registry: built-ins and strangers come in by the same door, and a broken one harms nobody else."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import ClassVar

import pytest

from assignors.range import RangeAssignor
from coordinator_core.assigning.envelope import detach
from coordinator_core.assigning.loading import author_of
from coordinator_core.errors import InputError, PluginError
from coordinator_core.registry import modifiers
from coordinator_core.registry import registry as registry_module
from coordinator_core.registry.catalog import DISTRIBUTION
from coordinator_core.registry.hookspecs import (
    AssignorSpec,
    MetricSpec,
    ModifierSpec,
    ProviderSpec,
    hookimpl,
)
from coordinator_core.registry.providers.informed import REPORT, Informed
from coordinator_core.registry.registry import Registry, default_registry, installed_registry
from tests.approved import approved
from tests.coordinator_core.registry.refusals import refusals


class Mine:
    name = "mine"

    def assign(self, cluster, group):
        return {member: [] for member in group}


def named(name):
    """A class of assignors of this name."""
    return type("Named", (Mine,), {"name": name})


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
    assert {"range", "roundrobin", "sticky", "cooperative-sticky", "optimal", "lag-aware"} <= set(
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


class Other(Mine):
    def assign(self, cluster, group):
        return {}


class Second:
    @hookimpl
    def assignors(self):
        return [AssignorSpec("mine", Other), AssignorSpec("second", named("second"))]


@pytest.fixture
def both(registry):
    registry.register(Second(), name="second", distribution="second.dist")
    return registry


def class_of(assignor):
    return type(author_of(assignor))


@pytest.mark.parametrize("text", ["mine", "mine+static"])
def test_an_assignor_of_two_distributions_is_refused_and_both_are_named(both, text):
    with pytest.raises(InputError) as caught:
        both.strategy(text)
    assert str(caught.value) == (
        "strategy: found 'mine', which first-dist and second.dist contribute,"
        " expected first-dist:mine or second.dist:mine"
    )


def test_a_distribution_before_a_colon_chooses_among_assignors_of_one_name(both):
    both.register(modifiers, name="modifiers")
    assert class_of(both.assignor("first-dist:mine")) is Mine
    strategy = both.strategy("second.dist:mine+static")
    assert strategy.static
    assert class_of(both.build(strategy)) is Other


def test_the_other_names_of_both_distributions_stay(both):
    assert both.assignor("second").name == "second"
    assert [(p.name, p.contributes["assignors"]) for p in both.plugins] == [
        ("first", ("mine",)),
        ("second", ("mine", "second")),
    ]
    (failure,) = both.failures
    assert (failure.distribution, failure.partial) == ("second.dist", True)
    assert failure.reason == (
        "assignors: 'mine' is also contributed by first-dist; 'second.dist:mine' chooses it"
    )


def test_a_third_distribution_of_the_same_name_is_named_too(both):
    both.register(Plugin(), name="third")
    with pytest.raises(InputError, match=r"which first-dist and second\.dist and plugin 'third' contribute"):
        both.assignor("mine")
    assert class_of(both.assignor("third:mine")) is Mine


def test_a_distribution_may_be_named_before_any_assignor(registry):
    assert registry.strategy("first-dist:mine").assignor == "mine"
    assert class_of(registry.assignor("first-dist:mine")) is Mine
    with pytest.raises(InputError, match="'second-dist:mine'"):
        registry.assignor("second-dist:mine")


def test_one_distribution_contributes_a_name_once(both):
    for name, distribution in (("again", "first-dist"), ("again", "second.dist")):
        with pytest.raises(
            PluginError, match=f"'mine' of {distribution} is already contributed by {distribution}"
        ):
            both.register(Plugin(), name=name, distribution=distribution)


def test_a_built_in_assignor_keeps_its_name():
    registry = installed_registry()
    registry.register(
        plugin_with("assignors", lambda self: [AssignorSpec("range", named("range"))]),
        name="x",
        distribution="x-dist",
    )
    assert class_of(registry.assignor("range")) is RangeAssignor
    assert class_of(registry.assignor("rebalance-lab:range")) is RangeAssignor
    assert class_of(registry.assignor("x-dist:range")).__name__ == "Named"
    assert "'range' is also contributed by rebalance-lab; 'x-dist:range'" in registry.failures[-1].reason


def test_a_metric_that_is_taken_is_refused_and_both_distributions_are_named(registry):
    def metric():
        return plugin_with("metrics", lambda self: [MetricSpec("taken", "", len)])

    registry.register(metric(), name="second", distribution="second-dist")
    with pytest.raises(PluginError, match=r"'taken' of third-dist is already contributed by second-dist"):
        registry.register(metric(), name="third", distribution="third-dist")
    assert [p.name for p in registry.plugins] == ["first", "second"]


def test_a_plugin_with_one_bad_record_contributes_nothing(registry):
    bad = plugin_with(
        "assignors",
        lambda self: [AssignorSpec("good", named("good")), AssignorSpec("Not Good", named("Not Good"))],
    )
    with pytest.raises(PluginError, match="'Not Good' is not lower-case"):
        registry.register(bad, name="bad")
    assert "good" not in registry.assignors()


@pytest.mark.parametrize(
    ("hook", "function", "problem"),
    [
        ("assignors", lambda self: [Mine], "expected AssignorSpec records"),
        ("assignors", lambda self: [AssignorSpec("twice", named("twice"))] * 2, "contributes 'twice' twice"),
        ("assignors", lambda self: 1 / 0, "ZeroDivisionError"),
        ("assignors", lambda self: None, "TypeError"),
        ("assigners", lambda self: [], "no such hook; the hooks are assignors, protocols, mod"),
        (
            "assignors",
            lambda self: [AssignorSpec("bad", Mine, options=5)],
            "'bad' are not a mapping",
        ),
        (
            "assignors",
            lambda self: [AssignorSpec("hers", Mine)],
            "the AssignorSpec 'hers' has the assignor 'mine', expected one name for both",
        ),
        ("providers", lambda self: [MetricSpec("bad", "", len)], "expected ProviderSpec records"),
    ],
)
def test_an_unusable_contribution_says_what_was_found(registry, hook, function, problem):
    with pytest.raises(PluginError, match=problem):
        registry.register(plugin_with(hook, function), name="bad")


def test_an_object_without_hooks_is_not_a_plugin(registry):
    with pytest.raises(PluginError, match="marked with hookimpl"):
        registry.register(object(), name="nothing")


def test_a_plugin_that_cannot_be_imported_is_put_down_and_the_others_are_loaded(module):
    good = module("zz_good_plugin", metrics=hookimpl(lambda: [MetricSpec("m", "1", lambda history: 0.0)]))
    registry = Registry()
    registry.load([good, EntryPoint("gone", "no_such_module_here", "rebalance_lab")])
    assert [p.name for p in registry.plugins] == ["zz_good_plugin"]
    assert [f.name for f in registry.failures] == ["gone"]
    assert "no_such_module_here" in registry.failures[0].reason


def test_an_interrupt_that_python_has_wrapped_is_no_failure_of_a_plugin(tmp_path, monkeypatch):
    """What is raised in __set_name__ is the cause of a RuntimeError until Python 3.12."""
    (tmp_path / "zz_interrupted.py").write_text("raise RuntimeError('wrapped') from KeyboardInterrupt()\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry()
    with pytest.raises(KeyboardInterrupt):
        registry.load([EntryPoint("zz", "zz_interrupted", "rebalance_lab")])
    assert registry.failures == ()


def test_entry_points_are_loaded_in_sorted_order_whatever_order_they_come_in(module):
    def metric():
        return hookimpl(lambda: [MetricSpec("m", "1", lambda history: 0.0)])

    points = [module("plugin_b", metrics=metric()), module("plugin_a", metrics=metric())]
    for order in (points, points[::-1]):
        registry = Registry()
        registry.load(order)
        assert [p.name for p in registry.plugins] == ["plugin_a"]
        assert [f.name for f in registry.failures] == ["plugin_b"]


# --- options: what a strategy may say to the assignor itself


class Optioned(Mine):
    name = "optioned"

    def __init__(self, *, limit=10, fast=False):
        if limit == 13:
            raise RuntimeError("unlucky")
        self.limit, self.fast = limit, fast


def whole_number(text):
    if not text.isdecimal():
        raise ValueError("a whole number")
    return int(text)


OPTIONS = {"limit": whole_number, "fast": lambda text: text != "no", "broken": {}.__getitem__}


def slowly(strategy, value):
    return strategy.with_changes(settings={"slow": value})


def no_wrapper(inner, make):
    raise RuntimeError("cannot be wrapped")


def unwrappable(strategy, value):
    return strategy.with_changes(wrappers=(no_wrapper,))


class Telling:
    """A provider that says who made it."""

    def __init__(self, host):
        self.host = host

    def report(self):
        return b"said"

    def assigned(self, partitions):
        pass

    def inform(self, cluster, group, reports):
        return cluster, group


class Rich:
    """Assignors with options and providers, and modifiers that work and do not."""

    @hookimpl
    def assignors(self):
        return [
            AssignorSpec("optioned", Optioned, options=OPTIONS),
            AssignorSpec("told", named("told"), provider="telling"),
            AssignorSpec("orphan", named("orphan"), provider="nobody"),
            AssignorSpec("worried", named("worried"), provider="failing"),
            AssignorSpec("nameless", object),
        ]

    @hookimpl
    def modifiers(self):
        def broken(strategy, value):
            raise KeyError("no such key")

        return [
            ModifierSpec("slow", slowly),
            ModifierSpec("limit", slowly),
            ModifierSpec("crashing", broken),
            ModifierSpec("unwrappable", unwrappable),
            ModifierSpec("weights", lambda strategy, value: strategy.with_changes(provider=value or "")),
        ]

    @hookimpl
    def providers(self):
        return [ProviderSpec("telling", Telling), ProviderSpec("failing", lambda host: 1 / 0)]


@pytest.fixture
def rich():
    made = Registry()
    made.register(Rich(), name="rich", distribution="rich-dist")
    return made


def test_options_are_read_and_given_to_the_factory(rich):
    made = author_of(rich.assignor("optioned+limit=4+fast"))
    assert (made.limit, made.fast) == (4, True)
    assert rich.strategy("optioned+limit=4+fast").arguments == {"limit": 4, "fast": True}
    assert author_of(rich.assignor("optioned")).limit == 10


def test_the_last_value_of_an_option_counts(rich):
    assert author_of(rich.assignor("optioned+limit=4+limit=5")).limit == 5


def test_an_assignors_own_option_goes_before_a_modifier_of_that_name(rich):
    assert rich.strategy("optioned+limit=4").settings == {}
    assert rich.strategy("told+limit=4").settings == {"slow": "4"}


def test_options_and_modifiers_come_in_any_order(rich):
    for text in ("optioned+slow=1+limit=4", "optioned+limit=4+slow=1"):
        strategy = rich.strategy(text)
        assert (strategy.arguments, strategy.settings) == ({"limit": 4}, {"slow": "1"})


def test_options_and_records_that_fail_or_do_not_exist_are_told_with_plugin_and_place(rich):
    told = refusals(
        rich,
        "optioned+limit=many optioned+limit= optioned+limit optioned+limti=4 told+fast",
        "optioned+ optioned++fast optioned+=4",
        "optioned+broken=x optioned+crashing optioned+limit=13 nameless told+unwrappable",
        "orphan told+weights=nobody",
    )
    approved("options", told)


# --- providers: who informs the assignor


def test_an_assignor_is_informed_by_the_provider_of_its_record_for_its_own_host(rich):
    one, other = object(), object()
    made = rich.build(rich.strategy("told"), one)
    assert isinstance(made, Informed)
    assert detach(made.subscription_user_data(("t",)), REPORT) == (None, b"said")
    assert made._provider.host is one
    assert rich.build(rich.strategy("told"), other)._provider.host is other


def test_without_a_host_there_is_nobody_to_ask(rich):
    assert isinstance(author_of(rich.build(rich.strategy("told"))), Mine)
    assert isinstance(author_of(rich.assignor("told")), Mine)


def test_a_strategy_may_name_another_provider_or_none(rich):
    assert rich.strategy("optioned+weights=telling").provider == "telling"
    assert isinstance(author_of(rich.build(rich.strategy("told+weights"), object())), Mine)


def test_a_provider_that_cannot_be_made_is_a_plugin_error_that_names_it(rich):
    with pytest.raises(PluginError, match="plugin 'rich', provider 'failing': ZeroDivisionError"):
        rich.build(rich.strategy("worried"), object())


def test_the_built_in_assignors_that_weigh_take_their_options():
    registry = default_registry()
    for text in (
        "optimal+max_moves=5%+racks=false+weights=none",
        "lag-aware+tolerance=20%",
        "optimal+colocate",
    ):
        assert registry.assignor(text).name == text.split("+")[0]
    with pytest.raises(InputError, match="found 'max_moves=x', expected a number of partitions such as 20"):
        registry.strategy("optimal+max_moves=x")


class WithItsOwn:
    """An assignor that declares options and a provider itself."""

    name = "with-its-own"
    options: ClassVar = {"share": float, "pace": int}
    provider = "telling"

    def __init__(self, share=0.0, pace=0):
        self.share, self.pace = share, pace

    def assign(self, cluster, group):
        return {}


@pytest.mark.parametrize(
    ("given", "provider", "pace"),
    [({}, "telling", 7), ({"provider": "failing"}, "failing", 7), ({"options": {"pace": len}}, "telling", 1)],
)
def test_options_and_provider_of_a_class_count_for_its_record(rich, given, provider, pace):
    rich.register(
        plugin_with("assignors", lambda self: [AssignorSpec("with-its-own", WithItsOwn, **given)]), name="own"
    )
    strategy = rich.strategy("with-its-own+share=0.5+pace=7")
    assert strategy.provider == provider
    assert strategy.arguments == {"share": 0.5, "pace": pace}


def test_a_plugin_that_was_refused_may_be_loaded_once_it_is_mended(registry):
    records = [AssignorSpec("", Mine)]
    plugin = plugin_with("assignors", lambda self: records)
    with pytest.raises(PluginError):
        registry.register(plugin, name="second", distribution="d")
    records[:] = [AssignorSpec("other", named("other"))]
    registry.register(plugin, name="second", distribution="d")
    assert "other" in registry.assignors()


def test_an_entry_point_that_is_switched_off_is_not_loaded(module):
    registry = Registry()
    points = [
        module("one", assignors=Plugin().assignors),
        EntryPoint("off", "no_such_module", "rebalance_lab"),
    ]
    registry.load(points, without=["off"])
    assert registry.failures == ()
    assert registry.switched_off == ("off",)


def test_entry_points_of_this_distribution_come_first_and_then_those_of_others_by_name(monkeypatch):
    owners = {"a": "zoo", "z": DISTRIBUTION, "b": "ant"}
    monkeypatch.setattr(registry_module, "_origin_of", lambda point: (owners[point.name], "1"))
    points = [EntryPoint(name, name, "rebalance_lab") for name in owners]
    assert [point.name for point in sorted(points, key=registry_module._entry_point_order)] == ["z", "b", "a"]
