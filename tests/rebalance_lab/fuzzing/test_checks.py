"""The checks of a run: each finds what is wrong, and nothing where nothing is."""

from pathlib import Path

import pytest
import yaml

from coordinator_core.registry.registry import default_registry
from rebalance_lab.fuzzing import checks, reference
from rebalance_lab.fuzzing.checks import LIVENESS, METRICS, RAISES, RECOVERY, SKIPPING, SUPERFLUOUS, examine
from rebalance_lab.fuzzing.liveness import prevented_by
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.world.brokers import Brokers
from rebalance_lab.verdicts.measuring import measure
from tests.places import DATA

REGISTRY = default_registry()
MEMBER = {"topics": ["t"], "process_rate": 1_000}
DOCUMENT = {
    "name": "g",
    "duration": "1000s",
    "seed": 4,
    "topics": {"t": {"partitions": 4, "rate": 20}},
    "members": [{"id": "a", **MEMBER}, {"id": "b", **MEMBER}],
    "events": [
        {"at": "30s", "crash": "b"},
        {"at": "60s", "restart": "b"},
        {"at": "70s", "coordinator_failover": {"down": "1s"}},
        {"at": "80s", "calm": True},
    ],
    "config": {"max.poll.interval.ms": "20s", "session.timeout.ms": "10s"},
    "measure": {"from": 0},
}


def examined(document=DOCUMENT, strategy="cooperative-sticky"):
    scenario = parse_scenario(document, where="test", registry=REGISTRY)
    return examine(scenario, REGISTRY.strategy(strategy), REGISTRY)


def check_of(document=DOCUMENT, strategy="cooperative-sticky"):
    defect = examined(document, strategy).defect
    return defect and defect.check


@pytest.mark.parametrize(
    "strategy", ["range", "cooperative-sticky+static", "sticky+reconcile", "range+server-side"]
)
def test_nothing_is_wrong_with_a_group_that_comes_to_rest(strategy):
    assert check_of(strategy=strategy) is None


def test_equal_runs_have_equal_digests():
    assert examined().digest == examined().digest != examined(DOCUMENT | {"seed": 5}).digest


def test_a_group_that_is_not_at_rest_in_time_is_found(monkeypatch):
    """A member joins so late that it is not in the group at the end, and that is said to be time enough."""
    for name in ("QUIET_MS", "LEARNING_MS"):
        monkeypatch.setattr(checks, name, 500)
    monkeypatch.setattr(checks, "settles_in_ms", lambda *_: 500)
    late = {"id": "late", **MEMBER, "start_up": ["1400ms", "1401ms"]}
    events = [*DOCUMENT["events"], {"at": "998s", "join": late}]
    found = examined(DOCUMENT | {"events": events}).defect
    assert found.check == LIVENESS
    assert "the group is PreparingRebalance" in found.detail


def test_a_round_in_the_quiet_time_is_found(monkeypatch):
    monkeypatch.setattr(checks, "settles_in_ms", lambda *_: 1_000)
    late = {"id": "late", **MEMBER, "start_up": ["24s", "25s"]}
    events = [*DOCUMENT["events"], {"at": "949s", "join": late}]
    assert check_of(DOCUMENT | {"events": events}) == SUPERFLUOUS


def test_settings_that_prevent_a_rest_are_named_and_it_is_not_asked_for():
    slow = [{"id": "a", **MEMBER, "on_revoked": "25s"}, DOCUMENT["members"][1]]
    found = examined(DOCUMENT | {"members": slow}, "range")
    assert found.defect is None
    assert found.prevented == "callbacks of a take 25000 ms; max.poll.interval.ms is 20000 ms"


def test_a_library_without_heartbeats_in_callbacks_that_outlast_the_session_prevents_a_rest():
    calls = [{"id": "a", **MEMBER, "client": "kafka-python", "on_assigned": "11s"}]
    found = examined(DOCUMENT | {"members": [*calls, DOCUMENT["members"][1]]}, "range")
    assert found.defect is None
    assert found.prevented.startswith(
        "a is out of its session in callbacks, which take 11000 ms; session.timeout"
    )
    assert (
        examined(DOCUMENT | {"members": [calls[0] | {"client": "java"}, DOCUMENT["members"][1]]}).prevented
        == ""
    )


@pytest.mark.parametrize(("strategy", "prevents"), [("optimal+watcher", True), ("range+watcher", False)])
def test_weights_that_each_member_measures_for_itself_prevent_a_rest_without_a_coordinator(
    strategy, prevents
):
    document = DOCUMENT | {"members": [{"id": "a", "topics": ["t"]}], "events": []}
    scenario = parse_scenario(document, where="test", registry=REGISTRY)
    found = prevented_by(scenario, REGISTRY.strategy(strategy), REGISTRY)
    assert found.startswith("members without a coordinator divide by what each has measured") is prevents
    assert prevented_by(scenario, REGISTRY.strategy("optimal"), REGISTRY) == ""


@pytest.mark.parametrize(
    ("strategy", "client", "prevents"),
    [
        ("cooperative-sticky", "java", True),
        ("cooperative-sticky+static", "java", True),
        ("cooperative-sticky", "librdkafka", False),
        ("range", "java", False),
        ("uniform-848+reconcile", "java", False),
    ],
)
def test_batches_that_outlast_the_session_prevent_a_rest_of_members_that_read_in_polls_that_they_joined(
    strategy, client, prevents
):
    """Found by fuzz (seed 391400): the session of a member that has joined ends before its next poll."""
    member = {"id": "a", "topics": ["t"], "process_rate": 20, "record_cv": 0, "client": client}
    config = {"session.timeout.ms": 6_000, "max.poll.interval.ms": 60_000}
    document = DOCUMENT | {"members": [member], "events": [], "config": config}
    scenario = parse_scenario(document, where="test", registry=REGISTRY)
    found = prevented_by(scenario, REGISTRY.strategy(strategy), REGISTRY)
    assert found.startswith("a reads the response to its JoinGroup after a batch, which takes 25") is prevents
    assert bool(found) is prevents


def test_long_batches_prevent_a_rest():
    slow = {"id": "a", "topics": ["t"], "process_rate": 1}
    scenario = parse_scenario(DOCUMENT | {"members": [slow], "events": []}, where="test", registry=REGISTRY)
    assert prevented_by(scenario, REGISTRY.strategy("range"), REGISTRY).startswith("batches of a take ")


def test_a_run_that_leaves_out_messages_and_differs_is_found(monkeypatch):
    simulate = checks.simulate
    other = parse_scenario(DOCUMENT | {"seed": 5}, where="test", registry=REGISTRY)
    monkeypatch.setattr(checks, "simulate", lambda _, *arguments: simulate(other, *arguments))
    assert check_of() == SKIPPING


def test_a_log_that_does_not_have_the_group_is_found(monkeypatch):
    recovered = Brokers.recovered

    def without_members(self):
        coordinator = recovered(self)
        coordinator.group("g").members.popitem()
        return coordinator

    monkeypatch.setattr(Brokers, "recovered", without_members)
    assert check_of() == RECOVERY


@pytest.mark.parametrize("name", reference.METRICS)
def test_a_metric_that_differs_from_the_plain_fold_is_found(name, monkeypatch):
    monkeypatch.setattr(checks, "measure", lambda *given: measure(*given) | {name: 4711.0})
    found = examined().defect
    assert found.check == METRICS
    assert found.detail.startswith(f"{name} is 4711, and ")


def test_an_error_of_the_program_itself_is_found(monkeypatch):
    monkeypatch.setattr(Brokers, "recovered", lambda self: 1 / 0)
    found = examined().defect
    assert found.check == RAISES
    assert found.detail.startswith("the program itself: ZeroDivisionError")


FOUND = sorted((DATA / "found").glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", FOUND, ids=lambda path: Path(path).stem)
def test_what_was_found_once_is_not_found_again(path):
    """Each file names its strategy in its description: what ``fuzz`` found, and was mended."""
    document = yaml.safe_load(path.read_text())
    assert check_of(document, document["description"].split(":")[0]) is None


OPEN = sorted((DATA / "found" / "open").glob("*.yaml"))


@pytest.mark.xfail(strict=True, reason="found by fuzz and not mended yet: the description says what it is")
@pytest.mark.parametrize("path", OPEN, ids=lambda path: Path(path).stem)
def test_what_was_found_and_is_open_is_not_found_again(path):
    document = yaml.safe_load(path.read_text())
    assert check_of(document, document["description"].split(":")[0]) is None
