"""What can be adapted, by which name and protocol; every consumer has its own; what is not installed."""

import sys

import pytest

pytest.importorskip("tests.rebalance_kafka.clusters", reason="a client is not installed")

from assignors.kip848 import Uniform848Assignor
from assignors.sticky import StickyAssignor
from coordinator_core.assigning.user_data import decode_ownership
from coordinator_core.errors import AssignmentError, InputError, PluginError
from coordinator_core.model import Partitions, RebalanceProtocol
from coordinator_core.registry.hookspecs import AssignorSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_kafka import MeasuredLoads
from rebalance_kafka.adapters import as_aiokafka, as_kafka_python
from rebalance_kafka.adapters.claims import Claim, Grant, attach, detach

pytestmark = pytest.mark.peer

COOPERATIVE, EAGER = RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER


def by_function(cluster, group):
    return {}


class ByClass:
    def assign(self, cluster, group):
        return {}


def made():
    return StickyAssignor()


@pytest.mark.parametrize(
    ("assignor", "name"),
    [
        ("sticky", "sticky"),
        ("optimal+max_moves=5%", "optimal"),
        ("range+cooperative", "range-cooperative"),
        ("assignors.sticky:StickyAssignor", "sticky"),
        (StickyAssignor, "sticky"),
        (StickyAssignor(), "sticky"),
        (ByClass, "by-class"),
        (ByClass(), "by-class"),
        (made, "sticky"),
        (by_function, "by-function"),
        (AssignorSpec("sticky", StickyAssignor), "sticky"),
    ],
)
def test_whatever_is_an_assignor_goes_by_its_own_name(assignor, name):
    assert as_kafka_python(assignor).name == name


def test_objects_of_aiokafka_go_by_the_assignors_name():
    assert as_aiokafka("optimal+max_moves=5%").name == "optimal"


@pytest.mark.parametrize("adapt", [as_kafka_python, as_aiokafka])
@pytest.mark.parametrize(
    ("assignor", "error", "said"),
    [
        ("stikcy", InputError, "did you mean 'sticky'"),
        ("sticky+colour=red", InputError, "colour"),
        (7, PluginError, "neither a class with assign or solve, nor a function of two arguments"),
        (lambda: 7, PluginError, "makes int, which is not an assignor"),
        (lambda: 1 / 0, PluginError, "ZeroDivisionError: division by zero"),
        (lambda: StickyAssignor, PluginError, "makes type, which is not an assignor"),
    ],
)
def test_what_is_no_assignor_is_refused_at_once(adapt, assignor, error, said):
    with pytest.raises(error, match=said):
        adapt(assignor)


@pytest.mark.parametrize("adapt", [as_kafka_python, as_aiokafka])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("range+static", r"'range\+static' in a client: found the modifier static, .*set group_instance_id"),
        ("sticky+cooperative+static", "expected an assignor without it"),
        ("cooperative-sticky+delay=9s", "the modifier delay, .*does not join again when a delay is over"),
        ("sticky+weights=reported-lags", "found the provider 'reported-lags' without a host"),
    ],
)
def test_a_part_of_a_strategy_that_an_assignor_alone_cannot_have_is_refused(adapt, text, said):
    with pytest.raises(InputError, match=said):
        adapt(text)


@pytest.mark.parametrize("adapt", [as_kafka_python, as_aiokafka])
@pytest.mark.parametrize(
    "assignor",
    [
        "uniform-848",
        "range-848",
        "range-848+reconcile",
        "uniform-848+cooperative",
        "assignors.kip848:Range848Assignor",
        Uniform848Assignor,
        AssignorSpec("sticky", StickyAssignor, protocols=("reconcile", "server-side")),
    ],
)
def test_an_assignor_that_coordinators_run_is_refused(adapt, assignor):
    """In a client it would run as an eager assignor of the classic protocol."""
    said = "found an assignor of the protocol reconcile or server-side, expected one .* 'classic'"
    with pytest.raises(InputError, match=f"in a client: {said}"):
        adapt(assignor)


@pytest.mark.parametrize("changes", [{"protocol": "other"}, {"settings": {"other.interval.ms": 5}}])
def test_a_strategy_of_another_protocol_is_refused(changes, monkeypatch):
    strategy = Strategy("range+other", "range", **changes)
    monkeypatch.setattr(Registry, "strategy", lambda *_, **__: strategy)
    with pytest.raises(InputError, match=r"'range\+other' in a client: found .*other"):
        as_kafka_python("range+other")


@pytest.mark.parametrize(
    ("assignor", "protocol", "declared"),
    [
        ("sticky", None, "EAGER"),
        ("cooperative-sticky", None, "COOPERATIVE"),
        ("cooperative-sticky", EAGER, "EAGER"),
        ("range+cooperative", COOPERATIVE, "COOPERATIVE"),
    ],
)
def test_kafka_python_is_told_one_protocol(assignor, protocol, declared):
    made = as_kafka_python(assignor, protocol=protocol)()
    assert [each.name for each in made.supported_protocols()] == [declared]


class CooperativeOnly(ByClass):
    supported_protocols = (COOPERATIVE,)


def test_a_protocol_that_the_assignor_does_not_support_is_refused():
    with pytest.raises(InputError, match="'range' in kafka-python: found the protocols eager, expected coop"):
        as_kafka_python("range", protocol=COOPERATIVE)
    with pytest.raises(InputError, match="in kafka-python: found the protocols cooperative, expected eager"):
        as_kafka_python(CooperativeOnly, protocol=EAGER)
    with pytest.raises(InputError, match="in aiokafka: found the protocols cooperative, expected eager"):
        as_aiokafka(CooperativeOnly)


def test_one_object_serves_one_consumer():
    shared = as_kafka_python(StickyAssignor())
    shared()
    with pytest.raises(InputError) as caught:
        shared()
    assert str(caught.value) == (
        "assignor 'sticky': found one object of StickyAssignor for several consumers,"
        " expected its class or a function that makes it, for each to have its own"
    )


@pytest.mark.parametrize("assignor", [StickyAssignor, "sticky", AssignorSpec("sticky", StickyAssignor)])
def test_a_host_needs_an_assignor_with_a_provider(assignor):
    with pytest.raises(InputError, match=r"which has no provider, expected .* provider of its class"):
        as_kafka_python(assignor, host=MeasuredLoads)


class Weighs:
    provider = "scenario-rates"

    def assign(self, cluster, group):
        weights = cluster.topics["t"].weights
        return {min(group): [("t", n) for n in range(5) if weights and weights[n] > 50]}


@pytest.mark.parametrize("adapt", [as_kafka_python, as_aiokafka])
@pytest.mark.parametrize(
    "assignor",
    ["optimal", Weighs, Weighs(), AssignorSpec("weighs", ByClass, provider="reported-rates")],
)
def test_an_assignor_without_the_weights_that_it_wants_is_reported_once(adapt, assignor, caplog):
    adapt(assignor)
    (record,) = caplog.records
    assert "gets no weights" in record.getMessage()


@pytest.mark.parametrize("assignor", ["optimal+weights=none", "sticky", ByClass])
def test_an_assignor_that_wants_no_weights_is_not_reported(assignor, caplog):
    as_kafka_python(assignor)
    assert caplog.records == []


class Raises(ByClass):
    name = "raises"

    def subscription_user_data(self, topics):
        raise ValueError("no data")

    def on_assignment(self, partitions, generation):
        raise OSError("no disk")


def test_errors_beside_assigning_name_the_assignor_and_the_cause():
    made = as_aiokafka(Raises)
    with pytest.raises(AssignmentError, match="'raises': subscription_user_data raised ValueError: no data"):
        made.metadata({"t"})
    with pytest.raises(AssignmentError, match="'raises': on_assignment raised OSError: no disk"):
        made.on_assignment(_assignment([("t", [0])], None))


class Heard(ByClass):
    name = "heard"
    calls = None

    def __init__(self):
        self.calls = []

    def on_assignment(self, partitions, generation):
        self.calls.append((partitions, generation))


def test_the_assignor_hears_what_its_member_got_and_in_which_generation():
    heard = Heard()
    as_aiokafka(heard).on_assignment(_assignment([("u", [0]), ("t", [1, 0])], attach(None, Grant(6, "m"))))
    ((partitions, generation),) = heard.calls
    assert (list(partitions), generation) == ([("t", 0), ("t", 1), ("u", 0)], 6)


def test_sticky_sends_along_what_its_member_got():
    made = as_aiokafka("sticky")
    made.on_assignment(_assignment([("t", [1, 0])], attach(None, Grant(6, "m"))))
    own, claim = detach(made.metadata({"t"}).user_data, Claim)
    assert decode_ownership(own) == (Partitions({"t": [0, 1]}), 6)
    assert (claim.owned, claim.generation) == ({"t": [0, 1]}, 6)


def _assignment(listed, user_data):
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

    return ConsumerProtocolMemberAssignment(0, listed, user_data)


@pytest.mark.parametrize(
    ("adapt", "client", "module", "requirement"),
    [
        (as_kafka_python, "kafka", "kafka_python", "kafka-python>=3.0"),
        (as_aiokafka, "aiokafka", "aiokafka", "aiokafka>=0.13"),
    ],
)
def test_a_client_that_is_not_installed_is_named(adapt, client, module, requirement, monkeypatch):
    monkeypatch.delitem(sys.modules, f"rebalance_kafka.adapters.{module}", raising=False)
    for name in list(sys.modules):
        if name == client or name.startswith(f"{client}."):
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError) as caught:
        adapt("sticky")
    assert str(caught.value).startswith(f"{adapt.__name__}: found import of {client}")
    assert str(caught.value).endswith(f"expected {requirement}: pip install '{requirement}'")


@pytest.mark.parametrize(("adapt", "other"), [(as_kafka_python, "aiokafka"), (as_aiokafka, "kafka")])
def test_one_client_does_without_the_other(adapt, other, monkeypatch):
    for name in list(sys.modules):
        if name.startswith("rebalance_kafka.adapters."):
            monkeypatch.delitem(sys.modules, name)
        if name == other or name.startswith(f"{other}."):
            monkeypatch.setitem(sys.modules, name, None)
    assert adapt("sticky").name == "sticky"
