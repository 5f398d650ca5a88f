"""A protocol family that comes in from outside, with messages, parts, settings and states of its own."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from coordinator_core.errors import InputError, PluginError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ModifierSpec, ProtocolSpec, ScenarioEventSpec, hookimpl
from coordinator_core.registry.registry import installed_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.rounds import rounds
from rebalance_lab.verdicts.measuring import measure
from tests.coordinator_core.families import toy
from tests.places import ROOT

DOCUMENT = {
    "name": "four",
    "duration": "2m",
    "topics": {"t": {"partitions": 8, "rate": 80}},
    "members": [{"id": "a", "count": 3, "topics": ["t"]}],
    "events": [
        {"at": "30s", "join": {"id": "b", "topics": ["t"]}},
        {"at": "50s", "leave": "a-1"},
        {"at": "70s", "crash": "a-2"},
        {"at": "90s", "restart": "a-2"},
    ],
}


@pytest.fixture(scope="module")
def registry():
    made = installed_registry()
    made.register(toy, name="toy")
    return made


def scenario_of(registry, **changes):
    return parse_scenario({**DOCUMENT, **changes}, where="test", registry=registry)


def run(registry, strategy="range+toy", **changes):
    watch = Invariants(registry)
    trace = simulate(scenario_of(registry, **changes), strategy, registry, watch=watch)
    assert (watch.violations, watch.settled()) == ([], [])
    return trace


def test_the_toy_has_fewer_than_a_hundred_lines_beside_its_imports():
    lines = Path(toy.__file__).read_text().splitlines()
    assert len([line for line in lines if line.strip() and not line.startswith(("from ", "import "))]) < 100


def test_a_group_of_the_family_goes_through_a_scenario(registry):
    """Given members that join, leave, crash and restart, then each change is a round with its cause, and no
    request is of another family."""
    trace = run(registry)
    told = rounds(trace, registry)
    assert [r.causes[0].partition(" ")[2] for r in told] == ["asks"] * 4 + ["leaves"] * 2 + ["asks"]
    assert [r.generation for r in told] == [1, 2, 3, 4, 5, 6, 7]
    assert {r.protocol for r in told} == {"range"}
    assert trace.protocol == "toy"
    apis = ["FindCoordinator", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "Toy"]
    assert list(trace.ended.messages) == apis
    assert trace.ended.group_state == "Dealt"


def test_its_metrics_stand_beside_those_of_the_classic_protocol(registry):
    figures = {s: measure(run(registry, s), registry) for s in ("range", "range+toy", "toyish")}
    assert figures["range+toy"].keys() == figures["range"].keys()
    for strategy in ("range+toy", "toyish"):
        assert figures[strategy]["rounds"] == 4
        assert figures[strategy]["optimality_gap"] == 0
        assert figures[strategy]["moved_partitions"] > 0
        assert figures[strategy]["stopped_partition_seconds"] > 0


def test_the_coordinator_runs_the_assignor_of_the_strategy(registry):
    def last(strategy):
        owned = {}
        for line in run(registry, strategy, events=[]).events:
            if isinstance(line.event, ev.Assigned):
                owned[line.event.client] = line.event.owned["t"]
        return owned

    assert last("range+toy") == {"a-0": [0, 1, 2], "a-1": [3, 4, 5], "a-2": [6, 7]}
    assert last("toyish") == {"a-0": [0, 3, 6], "a-1": [1, 4, 7], "a-2": [2, 5]}


# --- settings, events and modifiers


def test_a_scenario_may_have_its_settings(registry):
    slow = run(registry, config={"toy.ask.every.ms": "2s"})
    assert slow.ended.messages["Toy"] < run(registry).ended.messages["Toy"]
    with pytest.raises(InputError, match=r"config.toy.ask.evry.ms: .*\(did you mean 'toy.ask.every.ms'\?\)"):
        scenario_of(registry, config={"toy.ask.evry.ms": "2s"})


@pytest.fixture
def extended(registry):
    """The registry with modifiers that change settings, and events for one protocol each."""

    class Plugin:
        @hookimpl
        def modifiers(self):
            def setting(name):
                return lambda strategy, value: strategy.with_changes(settings={name: int(value or "")})

            every, nobodys = setting("toy.ask.every.ms"), setting("toy.ask.nobody.ms")
            return [ModifierSpec("every", every), ModifierSpec("nobodys", nobodys)]

        @hookimpl
        def scenario_events(self):
            nothing = {"parse": lambda value, extra, where: None, "apply": lambda stage, arguments: None}
            names = ("classic", "toy")
            return [ScenarioEventSpec(f"only-{name}", **nothing, protocols=(name,)) for name in names]

    made = installed_registry()
    made.register(toy, name="toy")
    made.register(Plugin(), name="more")
    return made


def test_a_strategy_may_change_its_settings(extended):
    changed = run(extended, "range+toy+every=2000", config={"toy.ask.every.ms": "5s"})
    scenario = run(extended, config={"toy.ask.every.ms": "2s"})
    assert changed.ended.messages == scenario.ended.messages


@pytest.mark.parametrize("strategy", ["range+every=2000", "range+toy+nobodys=1"])
def test_a_setting_of_a_strategy_that_nothing_reads_is_an_error(extended, strategy):
    with pytest.raises(InputError, match=r"setting of strategy .*: found 'toy.ask.*', expected one of "):
        run(extended, strategy)


def test_an_event_without_a_meaning_under_the_protocol_is_an_error(extended):
    events = [{"at": "30s", "coordinator_failover": {}}]
    with pytest.raises(InputError) as caught:
        run(extended, events=events)
    assert str(caught.value) == (
        "scenario 'four': coordinator_failover at 30s: found an event without a meaning under the protocol"
        " 'toy' (its coordinator keeps nothing in the log), expected another event, or another protocol"
    )
    run(extended, "range", events=events)
    run(extended, events=[{"at": "30s", "only-toy": None}])
    with pytest.raises(InputError, match=r"'toy' \(it is an event of classic\)"):
        run(extended, events=[{"at": "30s", "only-classic": None}])


def test_a_group_that_runs_already_needs_a_protocol_that_can_begin_with_one(registry):
    members = [{"id": "a", "topics": ["t"], "owned": {"t": [0]}}]
    with pytest.raises(InputError, match=r"under the protocol 'toy' \(it has no groups that run already\)"):
        run(registry, members=members, events=[])


@pytest.mark.parametrize("protocol", ["toy", "server-side", "watcher", "peers"])
def test_an_instance_id_needs_a_protocol_with_static_members(registry, protocol):
    members = [{"id": "a", "topics": ["t"], "instance_id": "one"}]
    with pytest.raises(
        InputError, match=rf"member 'a': found an instance_id under the protocol '{protocol}' \("
    ):
        run(registry, f"range+{protocol}", members=members, events=[])


def test_a_plan_needs_a_protocol_that_can_be_computed_without_messages(registry):
    with pytest.raises(InputError, match="'toy', which has no plan without messages, expected a simulation"):
        plan(scenario_of(registry), "range+toy", registry)


def test_a_protocol_without_parts_is_named(registry):
    class Half:
        @hookimpl
        def protocols(self):
            return [ProtocolSpec("half", {"Idle": {"Idle"}}, frozenset({"Idle"}), frozenset())]

    other = installed_registry()
    other.register(Half(), name="half")
    with pytest.raises(PluginError, match="plugin 'half', protocols: the protocol has no part for"):
        simulate(scenario_of(other), "range+half", other)


def test_the_toy_family_works_as_copied_behind_the_entry_point_of_its_document(tmp_path, monkeypatch):
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "toy.py").write_text(Path(toy.__file__).read_text())
    monkeypatch.syspath_prepend(tmp_path)
    document = (ROOT / "coordinator_core" / "families" / "README.md").read_text()
    ((name, value),) = re.findall(r'^ *(\w+) = "(my_package[.\w:]+)"$', document, re.MULTILINE)
    made = installed_registry()
    made.load([EntryPoint(name, value, "rebalance_lab")])
    assert made.failures == ()
    assert measure(run(made), made)["rounds"] > 0


def test_an_entry_point_may_name_a_class():
    made = installed_registry()
    made.load([EntryPoint("toy", f"{__name__}:ToyPlugin", "rebalance_lab")])
    assert made.failures == ()
    assert made.protocol("toy") is toy.TOY


class ToyPlugin:
    @hookimpl
    def protocols(self):
        return [toy.TOY]
