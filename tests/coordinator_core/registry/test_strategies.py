"""The text of a strategy: an assignor, a protocol, modifiers, and aliases for their beginning."""

import sys
from types import ModuleType

import pytest

from coordinator_core.assigning.combinators import with_cooperative
from coordinator_core.assigning.loading import author_of
from coordinator_core.errors import InputError, PluginError
from coordinator_core.registry.hookspecs import AssignorSpec, ModifierSpec, ProtocolSpec, hookimpl
from coordinator_core.registry.kafka_names import SHORT
from coordinator_core.registry.registry import Registry, default_registry, installed_registry
from tests.approved import approved
from tests.coordinator_core.registry.refusals import refusal, refusals

STATES = {"states": {"Idle": {"Busy"}, "Busy": {"Idle"}}, "at_rest": {"Idle"}, "round_begins": {"Busy"}}


class Plain:
    name = "plain"

    def assign(self, cluster, group):
        return {member: [] for member in group}


def named(name):
    """A class of assignors of this name."""
    return type("Named", (Plain,), {"name": name})


class Plugin:
    """A protocol of its own, an assignor that needs it, and modifiers."""

    @hookimpl
    def protocols(self):
        return [
            ProtocolSpec("hurry", **STATES, aliases={"quick": "plain+hurry"}, modifiers=frozenset({"pace"})),
            ProtocolSpec("walk", **STATES),
        ]

    @hookimpl
    def assignors(self):
        return [
            AssignorSpec("plain", Plain, aliases={"simple": "plain", "slow": "plain+walk"}),
            AssignorSpec("choosy", named("choosy"), protocols=("hurry", "classic")),
        ]

    @hookimpl
    def modifiers(self):
        def pace(strategy, value):
            return strategy.with_changes(settings={**strategy.settings, "pace.ms": int(value or "")})

        def late(strategy, value):
            return strategy.with_changes(settings={"late": True})

        return [
            ModifierSpec("pace", pace, of_protocol=True),
            ModifierSpec("late", late),
            ModifierSpec("nothing", lambda strategy, value: strategy),
        ]


@pytest.fixture
def registry():
    made = installed_registry()
    made.register(Plugin(), name="mine")
    return made


def test_the_protocol_is_classic_unless_the_strategy_names_another(registry):
    assert registry.strategy("range").protocol == "classic"
    assert registry.strategy("range+hurry").protocol == "hurry"


def test_naming_the_classic_protocol_changes_nothing_but_the_name(registry):
    named, plain = registry.strategy("range+classic"), registry.strategy("range")
    assert (named.name, plain.name) == ("range+classic", "range")
    assert named.with_changes(name="range") == plain


def test_protocol_options_and_modifiers_come_in_any_order(registry):
    for text in ("plain+pace=5+hurry", "plain+hurry+pace=5"):
        strategy = registry.strategy(text)
        assert (strategy.name, strategy.protocol, strategy.settings) == (text, "hurry", {"pace.ms": 5})
    assert registry.strategy("optimal+classic+max_moves=3+static").static


def test_strategies_that_are_refused_are_told_why(registry):
    """Two protocols, one with a value, or one alone; modifiers that the protocol does not have, that change
    nothing, or that come twice; a delay of an eager assignor."""
    told = refusals(
        registry,
        "range+classic+hurry range+hurry+classic quick+classic rocketmq+peers range+hurry=5 choosy+walk",
        "classic server-side peers",
        "plain+pace=5 plain+static+hurry plain+walk+cooperative watcher+static watcher+delay",
        "rocketmq+delay=5s range+server-side+static range+server-side+cooperative range+owners=off",
        "plain+nothing plain+static+static range+weights=none",
        "range+delay=60s average+delay roundrobin+budget=2s+delay=60s",
    )
    approved("strategies", told)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("range+clasic", "classic"),
        ("plain+hury", "hurry"),
        ("qick", "quick"),
        ("sticky+budget=2s:rnage", "range"),
        ("848", "kip-848"),
        ("Next-Gen", "kip-848"),
        ("KIP848", "kip-848"),
        ("coop", "cooperative-sticky"),
    ],
)
def test_what_was_meant_is_suggested(registry, text, meant):
    assert refusal(registry, text).endswith(f"(did you mean {meant!r}?)")


def test_a_modifier_of_another_protocol_has_a_reason_under_every_built_in_protocol():
    registry = default_registry()
    own = {name for name, modifier in registry.modifiers().items() if modifier.of_protocol}
    elsewhere = {name for name in own if registry.modifiers()[name].elsewhere}
    for name, protocol in registry.protocols().items():
        assert own - protocol.modifiers <= elsewhere | set(protocol.meaningless), name


def test_an_assignor_may_work_with_some_protocols_only(registry):
    assert registry.strategy("choosy").protocol == "classic"
    assert registry.strategy("choosy+hurry").protocol == "hurry"
    assert registry.strategy("choosy+walk", what="assignor").protocol == "walk"


def test_a_modifier_may_name_the_default(registry):
    named = registry.strategy("optimal+weights=reported-rates")
    assert named.with_changes(name="optimal") == registry.strategy("optimal")


def test_an_alias_stands_for_the_beginning_of_a_strategy_and_keeps_its_name(registry):
    for text, assignor, protocol in (
        ("quick", "plain", "hurry"),
        ("simple", "plain", "classic"),
        ("simple+hurry", "plain", "hurry"),
        ("slow+late", "plain", "walk"),
    ):
        strategy = registry.strategy(text)
        assert (strategy.name, strategy.assignor, strategy.protocol) == (text, assignor, protocol)
    assert registry.assignor("quick").name == "plain"


def test_the_built_in_aliases_are_strategies():
    registry = default_registry()
    assert registry.aliases()
    for alias, text in registry.aliases().items():
        assert registry.strategy(alias) == registry.strategy(text).with_changes(name=alias)
    assert registry.strategy("eager+static").static


def test_aliases_are_listed_with_the_assignors():
    names = {*default_registry().assignors(), *default_registry().aliases(), *SHORT}
    assert {"range", "watcher", "kip-848"} < names
    expected = f"strategy: found 'zookeeper', expected one of {', '.join(sorted(names))}"
    assert refusal(default_registry(), "zookeeper") == expected


def test_a_short_name_of_the_consumer_protocol_may_say_it_twice():
    found, once = (default_registry().strategy(name) for name in ("uniform+reconcile", "kip-848+static"))
    assert (found.protocol, found.assignor) == ("reconcile", "uniform-848")
    assert (once.protocol, once.static) == ("reconcile", True)


@pytest.mark.parametrize(
    ("hook", "records"),
    [
        ("assignors", [AssignorSpec("quick", named("quick"))]),
        ("assignors", [AssignorSpec("new", named("new"), aliases={"range": "new"})]),
        ("assignors", [AssignorSpec("new", named("new"), aliases={"new": "new+static"})]),
        (
            "assignors",
            [
                AssignorSpec("new", named("new"), aliases={"other": "new"}),
                AssignorSpec("other", named("other")),
            ],
        ),
        ("protocols", [ProtocolSpec("new", **STATES, aliases={"quick": "range"})]),
    ],
)
def test_assignors_and_aliases_have_different_names(registry, hook, records):
    plugin = type("Made", (), {hook: hookimpl(lambda self: records)})()
    with pytest.raises(PluginError, match="is already an assignor or an alias"):
        registry.register(plugin, name="second")
    assert not {"new", "other"} & (registry.assignors().keys() | registry.protocols().keys())


def test_protocols_and_modifiers_have_different_names(registry):
    class Modifier:
        @hookimpl
        def modifiers(self):
            return [ModifierSpec("hurry", lambda strategy, value: strategy)]

    class Second:
        @hookimpl
        def protocols(self):
            return [ProtocolSpec("static", **STATES)]

    for plugin in (Modifier(), Second()):
        with pytest.raises(PluginError, match="is already contributed by"):
            registry.register(plugin, name="second")


def test_a_protocol_is_found_by_its_name(registry):
    assert registry.protocol("hurry").at_rest == {"Idle"}
    with pytest.raises(
        InputError, match=r"protocol: found 'hury', expected one of classic, hurry, .*did you mean 'hurry'"
    ):
        registry.protocol("hury")


def test_a_bare_registry_has_no_protocols_and_parses_strategies_all_the_same():
    bare = Registry()
    bare.register(Plugin(), name="mine")
    assert bare.strategy("plain+late").protocol == "classic"


def test_combinators_get_further_assignors_by_their_strategies(registry):
    class Wrapping:
        @hookimpl
        def modifiers(self):
            def wrapped(strategy, value):
                def wrap(inner, make):
                    return with_cooperative(make("quick"))

                return strategy.with_changes(wrappers=(*strategy.wrappers, wrap))

            return [ModifierSpec("wrapped", wrapped)]

    registry.register(Wrapping(), name="wrapping")
    assert registry.assignor("range+wrapped").name == "plain-cooperative"


# --- assignors in any form


def held(cluster, group):
    return {member: [] for member in group}


PROGRAM = """\
class Mine:
    def assign(self, cluster, group):
        return {member: [] for member in group}

def first_come(cluster, group):
    return {}

class Wrong: ...

number = 3
"""


@pytest.fixture
def program(monkeypatch):
    """The module of the program that runs, such as a notebook, with a class and a function."""
    made = ModuleType("__main__")
    exec(PROGRAM, vars(made))
    monkeypatch.setitem(sys.modules, "__main__", made)
    return made


def test_a_strategy_is_itself(registry):
    strategy = registry.strategy("plain+static")
    assert registry.strategy(strategy) is strategy


def test_a_class_and_a_function_of_the_program_are_known_by_their_names(registry, program):
    assert registry.strategy(program.Mine) == registry.strategy("Mine")
    assert registry.strategy(program.first_come).name == "first_come"
    assert registry.strategy("Mine+static").static
    assert registry.assignor("Mine").name == "mine"
    assert not registry.is_ours(registry.strategy("Mine"))


def test_the_program_s_class_is_looked_up_at_each_use(registry, program):
    strategy = registry.strategy(program.Mine)
    program.Mine = type("Mine", (program.Mine,), {"name": "newer"})
    assert registry.build(strategy).name == "newer"


def test_what_is_installed_goes_before_the_program(registry, program):
    program.plain = program.first_come
    assert registry.assignor("plain").name == "plain"
    program.first_come.__name__ = "plain"
    assert registry.build(registry.strategy(program.first_come)).name == "plain"
    assert not registry.is_ours(registry.strategy(program.first_come))


def test_a_function_of_a_module_is_known_by_its_reference(registry):
    assert registry.strategy(held).name == f"{__name__}:held"


def test_an_object_has_its_own_name_and_each_consumer_gets_a_copy(registry):
    given = Plain()
    strategy = registry.strategy(given)
    first, second = (author_of(registry.build(strategy)) for _ in range(2))
    assert (strategy.name, type(first)) == ("plain", Plain)
    assert len({id(given), id(first), id(second)}) == 3
    assert not registry.is_ours(strategy)


@pytest.mark.parametrize("thing", [3, None, object(), dict, lambda one: one])
def test_what_is_no_assignor_is_refused(registry, thing):
    with pytest.raises(PluginError, match="neither a class with assign or solve, nor a function"):
        registry.strategy(thing)


def test_a_name_of_the_program_that_is_no_assignor_is_refused(registry, program):
    with pytest.raises(PluginError, match=r"Wrong.*neither a class with assign"):
        registry.strategy("Wrong")
    assert "expected one of" in refusal(registry, "number")
    assert "did you mean 'Mine'?" in refusal(registry, "Mime")


CLIENTS, BROKERS = "org.apache.kafka.clients.consumer", "org.apache.kafka.coordinator.group.assignor"


@pytest.mark.parametrize(
    ("text", "assignor", "protocol"),
    [
        ("kip-848", "uniform-848", "reconcile"),
        ("consumer", "uniform-848", "reconcile"),
        ("uniform+static", "uniform-848", "reconcile"),
        ("RangeAssignor", "range", "classic"),
        ("CooperativeStickyAssignor+delay=30s", "cooperative-sticky", "classic"),
        (f"{CLIENTS}.RoundRobinAssignor", "roundrobin", "classic"),
        (f"{CLIENTS}.StickyAssignor+static", "sticky", "classic"),
        (f"{BROKERS}.UniformAssignor", "uniform-848", "reconcile"),
        (f"{BROKERS}.RangeAssignor", "range-848", "reconcile"),
    ],
)
def test_kafkas_own_names_are_strategies(text, assignor, protocol):
    found = default_registry().strategy(text)
    assert (found.name, found.assignor, found.protocol) == (text, assignor, protocol)
    assert found.static is text.endswith("+static")


def test_one_of_kafkas_names_for_an_assignor_is_the_assignor_alone():
    assert default_registry().strategy("uniform", what="assignor").protocol == "classic"
