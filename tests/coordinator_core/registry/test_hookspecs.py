"""What plugins contribute: records with defaults, through hooks that put everything together."""

import inspect
from dataclasses import MISSING, FrozenInstanceError, fields

import pluggy
import pytest

from assignors import assignors as built_in_assignors
from coordinator_core.assigning.assignor import Assignor, Capability
from coordinator_core.model import RebalanceProtocol
from coordinator_core.registry.hookspecs import (
    PROJECT,
    AssignorSpec,
    Hooks,
    MetricSpec,
    ModifierSpec,
    ProtocolSpec,
    ProviderSpec,
    ScenarioEventSpec,
    Strategy,
    WorkloadSpec,
)

HOOKS = [
    "assignors",
    "protocols",
    "modifiers",
    "providers",
    "metrics",
    "workloads",
    "scenario_events",
    "commands",
    "log_formats",
]
BUILT_IN = ["range", "roundrobin", "sticky", "cooperative-sticky", "sticky-balanced", "optimal", "lag-aware"]
BUILT_IN += ["rendezvous", "average", "average-by-circle", "range-848", "uniform-848"]


def manager():
    made = pluggy.PluginManager(PROJECT)
    made.add_hookspecs(Hooks)
    return made


def test_the_hooks_are_these_and_each_says_what_it_is_for():
    found = [name for name in vars(Hooks) if not name.startswith("_")]
    assert found == HOOKS
    assert all(inspect.getdoc(getattr(Hooks, name)) for name in found)


def test_no_hook_takes_arguments():
    plugins = manager()
    assert [plugins.hook.__dict__[name].spec.argnames for name in HOOKS] == [()] * len(HOOKS)


RECORDS = [AssignorSpec, ModifierSpec, ProviderSpec, MetricSpec, WorkloadSpec, ScenarioEventSpec]


@pytest.mark.parametrize("record", RECORDS)
def test_every_record_has_a_name_first_and_its_description_last(record):
    names = [field.name for field in fields(record)]
    assert (names[0], names[-1]) == ("name", "doc")
    made = record(*[f.name for f in fields(record) if f.default is f.default_factory is MISSING])
    assert made.doc == ""
    with pytest.raises(FrozenInstanceError):
        made.name = "other"


@pytest.mark.parametrize("field", ["at_rest", "round_begins", "vacant"])
def test_a_protocol_names_only_states_that_it_has(field):
    given = {"states": {"Idle": {"Busy"}, "Busy": {"Idle"}}, "at_rest": {"Idle"}, "round_begins": {"Busy"}}
    made = ProtocolSpec("mine", **given)
    assert (made.vacant, made.modifiers, dict(made.aliases), made.doc) == (frozenset(), frozenset(), {}, "")
    with pytest.raises(ValueError, match="the states of 'mine' do not contain Gone"):
        ProtocolSpec("mine", **{**given, field: frozenset({"Gone"})})


def test_a_protocol_moves_only_to_states_that_it_has():
    with pytest.raises(ValueError, match="the states of 'mine' do not contain Busy, Gone"):
        ProtocolSpec("mine", {"Idle": {"Busy", "Gone"}}, frozenset({"Idle"}), frozenset())


def test_a_strategy_is_an_assignor_and_what_modifiers_made_of_the_rest():
    plain = Strategy("range", "range")
    assert (plain.protocol, plain.static, dict(plain.settings)) == ("classic", False, {})
    assert (dict(plain.arguments), plain.wrappers, plain.provider) == ({}, (), "")
    static = plain.with_changes(name="range+static", static=True)
    assert static == Strategy("range+static", "range", static=True)
    assert plain == Strategy("range", "range")


def test_the_built_in_assignors_come_by_the_same_hook():
    """PROTOCOL 10.1, 10.2, 10.3."""
    specs = built_in_assignors()
    assert [spec.name for spec in specs] == BUILT_IN
    for spec in specs:
        made = spec.factory()
        assert made.name == spec.name
        assert spec.doc
        assert isinstance(made, Assignor)
        assert type(made).solve is not Assignor.solve
        assert spec.factory() is not made


def test_only_assignors_that_weigh_are_informed_unless_asked_otherwise():
    """Whoever counts partitions needs nobody to tell it anything; its user data stay its own."""
    found = {spec.name: spec.provider for spec in built_in_assignors() if spec.provider}
    assert found == {"optimal": "reported-rates", "lag-aware": "reported-work"}
    for spec in built_in_assignors():
        assert (Capability.WEIGHTED in spec.factory().capabilities) == (spec.name in found)


def test_every_option_of_a_built_in_assignor_is_an_argument_of_its_factory():
    options = {spec.name: spec.options for spec in built_in_assignors() if spec.options}
    assert set(options) == {"optimal", "lag-aware"}
    for spec in built_in_assignors():
        assert set(spec.options) <= set(inspect.signature(spec.factory).parameters)


def test_options_and_provider_are_given_by_name():
    """A third argument that is not named is the description, as it was before there were options."""
    spec = AssignorSpec("mine", dict, "An assignor.")
    assert (spec.doc, dict(spec.options), spec.provider) == ("An assignor.", {}, "")


def test_only_cooperative_sticky_can_leave_what_stays_alone():
    """PROTOCOL 11.5: it prefers the cooperative protocol, and can do without in a mixed group."""
    eager, cooperative = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
    found = {spec.name: tuple(spec.factory().supported_protocols) for spec in built_in_assignors()}
    assert found == dict.fromkeys(BUILT_IN, (eager,)) | {"cooperative-sticky": (cooperative, eager)}
