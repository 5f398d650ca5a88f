"""Documents that are drawn: what they keep, what they may have, and that they are scenarios."""

from random import Random

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.fuzzing.drawing import FAULTS, draw_document
from rebalance_lab.fuzzing.liveness import LEARNING_MS, QUIET_MS, settles_in_ms
from rebalance_lab.scenarios.scenario import parse_scenario
from tests.examples import rest_slow

REGISTRY = default_registry()
GIVEN = {
    "name": "mine",
    "duration": "60s",
    "topics": {"orders": {"partitions": 4, "rate": 20}},
    "members": [{"id": "c", "count": 2, "topics": ["orders"]}],
    "events": [{"at": "10s", "crash": "c-1"}],
    "config": {"session.timeout.ms": "10s"},
}


def drawn(number, strategy="range", **options):
    return draw_document(Random(f"drawing:{number}"), REGISTRY.strategy(strategy), REGISTRY, **options)


def kinds_in(documents):
    return {key for document in documents for event in document["events"] for key in event}


@pytest.mark.parametrize(
    "strategy", ["range", "cooperative-sticky+static", "sticky+reconcile", "watcher", "rocketmq"]
)
def test_every_document_is_a_scenario_with_time_to_settle_at_its_end(strategy):
    for number in range(10):
        document = drawn(number, strategy)
        scenario = parse_scenario(document, where="drawn", registry=REGISTRY)
        (calm,) = [event for event in scenario.events if event.kind == "calm"]
        settles_ms = settles_in_ms(scenario, REGISTRY.strategy(strategy), REGISTRY)
        assert scenario.duration_ms - calm.at_ms > settles_ms + QUIET_MS


def test_without_a_coordinator_somebody_joins_when_requests_that_were_lost_have_timed_out():
    """Before, their senders may not have given up partitions, for which others try some seconds only."""
    for number in range(8):
        scenario = parse_scenario(drawn(number, "watcher"), where="drawn", registry=REGISTRY)
        (calm,) = [event for event in scenario.events if event.kind == "calm"]
        last = [event for event in scenario.events if event.kind == "join"][-1]
        timeout_ms = scenario.config.get("request.timeout.ms", 30_000)
        assert last.at_ms - calm.at_ms == LEARNING_MS + timeout_ms


def test_what_is_given_is_kept():
    for number in range(20):
        document = drawn(number, around=GIVEN)
        assert {key: document[key] for key in ("name", "topics", "members")} == {
            key: GIVEN[key] for key in ("name", "topics", "members")
        }
        assert document["config"].items() >= GIVEN["config"].items()
        assert any("crash" in event for event in document["events"])
    assert GIVEN["events"] == [{"at": "10s", "crash": "c-1"}]


@pytest.mark.parametrize("strategy", rest_slow(["range+static", "watcher"]))
def test_what_was_drawn_can_be_drawn_around_again(strategy):
    """Members and topics that joined or were created before keep their names, and others get new ones."""
    for number in range(12):
        document = drawn(number, strategy)
        for turn in range(3):
            document = drawn(100 * turn + number, strategy, around=document)
        parse_scenario(document, where="drawn", registry=REGISTRY)


def test_all_faults_happen_in_some_documents_and_none_in_those_without():
    with_all = [drawn(number, "watcher" if number % 2 else "range", aimed=False) for number in range(60)]
    network = {key for document in with_all for key in document.get("network", ())}
    events = [event for document in with_all for event in document["events"]]
    partly = {"partial_cut"} if any("way" in event for event in events) else set()
    failovers = [event.get("coordinator_failover", {}) for event in events]
    in_steps = {"failover_in_step"} if any("after" in event for event in failovers) else set()
    assert kinds_in(with_all) | network | partly | in_steps >= FAULTS.keys()
    without = [drawn(number, faults=(), aimed=False) for number in range(15)]
    assert not kinds_in(without) & FAULTS.keys()
    assert all("network" not in document for document in without)


def test_only_the_faults_that_are_named_happen():
    documents = [drawn(number, faults=("freeze", "loss"), aimed=False) for number in range(25)]
    assert kinds_in(documents) & FAULTS.keys() == {"freeze"}
    assert {key for document in documents for key in document.get("network", ())} == {"loss"}


def test_a_setting_with_a_range_is_between_its_ends():
    ranges = {"session.timeout.ms": (6_000, 45_000)}
    documents = [drawn(n, around=GIVEN, ranges=ranges, aimed=False) for n in range(15)]
    values = [document["config"]["session.timeout.ms"] for document in documents]
    assert all(6_000 <= value <= 45_000 for value in values)
    assert len(set(values)) > 10


def test_a_protocol_without_static_members_gets_none():
    documents = [drawn(number, "watcher", aimed=False) for number in range(15)]
    assert not any("instance_id" in member for document in documents for member in document["members"])


def test_each_document_has_some_of_the_features_and_not_all():
    """A subset is drawn for each document, so that a few things are seen together without the others."""
    documents = [drawn(number, aimed=False) for number in range(12)]
    having = [sum("process_rate" in member for member in document["members"]) for document in documents]
    assert any(having)
    assert not all(having)
