"""Events that only a family has: they are written, read back, and told in the family's own words."""

import msgspec
import pytest

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.invariants import check_trace
from rebalance_lab.traces.trace import read_trace
from rebalance_lab.verdicts.story import story
from rebalance_uncoordinated.events import ClaimFailed, Notified, Rebalanced
from tests.places import SCENARIOS

SHARED = (Notified, Rebalanced)


def late_view(strategy):
    return simulate(load_scenario(SCENARIOS / "late-view.yaml"), strategy, default_registry())


def told(strategy):
    return "\n".join(str(prefix + body) for prefix, body, *_ in story(late_view(strategy)))


@pytest.mark.parametrize(("strategy", "kinds"), [("watcher", (*SHARED, ClaimFailed)), ("rocketmq", SHARED)])
def test_a_trace_with_events_of_a_family_is_read_back(strategy, kinds, tmp_path):
    trace, path = late_view(strategy), tmp_path / "trace.jsonl"
    path.write_bytes(trace.encode())
    again = read_trace(path, default_registry())
    assert {kind for kind in kinds if any(isinstance(e.event, kind) for e in again.events)} == set(kinds)
    assert again.events == trace.events
    assert again.encode() == trace.encode()
    assert check_trace(again) == []


def test_the_default_registry_knows_the_families(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(late_view("watcher").encode())
    assert read_trace(path).events == late_view("watcher").events


def test_an_event_of_a_family_that_is_not_installed_is_an_error_that_names_the_line(tmp_path):
    trace, path = late_view("watcher"), tmp_path / "trace.jsonl"
    path.write_bytes(trace.encode())
    first = next(i for i, e in enumerate(trace.events, start=1) if isinstance(e.event, Rebalanced))
    with pytest.raises(InputError, match="Rebalanced") as caught:
        read_trace(path, Registry())
    assert caught.value.where == f"{path}: line {first}"


def test_an_event_of_another_family_is_an_error(tmp_path):
    trace, path = late_view("rocketmq"), tmp_path / "trace.jsonl"
    failed = ev.TraceEvent(60_000, ClaimFailed(client="c-0", held={}, retry=0, retries=4))
    path.write_bytes(trace.encode() + msgspec.json.encode(failed) + b"\n")
    with pytest.raises(InputError, match="ClaimFailed"):
        read_trace(path, default_registry())


@pytest.mark.parametrize(
    "sentence",
    [
        "the watch on the members fired (3 times)",
        "claim failed, the nodes of events 4-5 exist: retry 2 of 4",
        "claim failed, the nodes of events 4-5 exist: no more retries",
    ],
)
def test_the_story_has_the_words_of_the_watchers(sentence):
    assert sentence in told("watcher")


def test_the_story_has_the_words_of_the_peers():
    assert "a broker reported a change of the members (9 times)" in told("rocketmq")


def test_the_sentence_of_a_watch_names_what_is_watched():
    sentence = default_registry().protocols()["watcher"].sentences[Notified]
    causes = ("/brokers/ids", "/brokers/topics", "/consumers/g/ids")
    assert [sentence(Notified(client="a", cause=cause)) for cause in causes] == [
        "the watch on the brokers fired",
        "the watch on the topics fired",
        "the watch on the members fired",
    ]
