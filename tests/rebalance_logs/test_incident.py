"""A group of logs as a scenario: what it says of its members, and when things happened."""

from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.reading.durations import parse_duration
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_logs.incident import _bounds, scenario_of
from tests.examples import scaled
from tests.rebalance_logs.kafka_lines import logs_of
from tests.rebalance_logs.test_causes import DOCUMENT, MEMBER
from tests.rebalance_logs.test_round_trip import diagnosis


def incident(tmp_path, *events, without_settings=False, **changes):
    """The document of a run that was logged, what is guessed in it, and the stopped time of the run."""
    text = DOCUMENT | {"events": list(events)} | changes
    run = logs_of(parse_scenario(text, where="test", registry=default_registry()), "range")
    for name, lines in run.lines.items():
        kept = [each for each in lines if not without_settings or "ConsumerConfig values" not in each[1]]
        run.lines[name] = kept
    document, guesses = scenario_of(diagnosis(run.write(tmp_path)))
    return document, guesses, History(run.trace).stops.stopped_ms


def batches(document):
    bounds = {
        m["id"]: [parse_duration(end, "batch") for end in m["batch_overhead"]] for m in document["members"]
    }
    return {name: (low + high) / 2 for name, (low, high) in bounds.items()}


@settings(max_examples=scaled(60))
@given(st.floats(0.0, 1.0), st.integers(0, 10**6))
def test_batches_are_as_long_as_what_is_left_of_them_shows(least, seed):
    """Batches of up to a second, of which rounds meet the longer ones more often, each anywhere."""
    random = Random(seed)
    lengths = [random.uniform(1_000 * least, 1_000) for _ in range(4_000)]
    met = random.choices(lengths, lengths, k=400)
    low, high = _bounds([round(random.uniform(0, length)) for length in met])
    assert 800 <= high <= 1_010
    assert low <= 0.8 * high + 1
    assert least > 0.5 or low < 650


def test_of_few_batches_the_bounds_are_wide():
    assert _bounds([300, 500]) == (400, 1_200)
    assert _bounds([500] * 6) == (467, 583)  # the greatest is an n-th more, and no two are the same


def stopped_ms(document, seed):
    scenario = parse_scenario({**document, "seed": seed}, where="incident", registry=default_registry())
    return History(simulate(scenario, "range", default_registry())).stops.stopped_ms


def test_a_slow_member_is_slow_and_the_others_are_not(tmp_path):
    slow = [{"id": "a", **MEMBER, "batch": "20s"}, *DOCUMENT["members"][1:]]
    events = [{"at": f"{60 + 40 * n}s", "leave" if n % 2 else "restart": "c"} for n in range(1, 7)]
    document, _, _ = incident(tmp_path, *events, members=slow, duration="6m")
    found = batches(document)
    assert found["a"] > 3 * found["b"]


def test_a_member_was_killed_a_session_before_it_expired(tmp_path):
    crash = {"at": "60s", "crash": "b"}
    before = {"at": "40s", "leave": "c"}
    document, guesses, true_ms = incident(tmp_path, before, crash)
    (found,) = [event for event in document["events"] if "crash" in event]
    assert parse_duration(found["at"], "at") == pytest.approx(60_000, abs=3_000)
    assert parse_duration(document["duration"], "duration") >= 60_000 + 10_000
    assert any(guess.startswith("when members were killed") for guess in guesses)
    assert median(stopped_ms(document, seed) for seed in range(5)) == pytest.approx(true_ms, rel=0.25)


def test_a_member_that_joins_is_like_its_log(tmp_path):
    join = {"at": "60s", "join": {"id": "d", **MEMBER, "topics": ["u"], "start_up": "2s"}}
    topics = DOCUMENT["topics"] | {"u": {"partitions": 2}}
    document, _, _ = incident(tmp_path, join, topics=topics)
    ((member,),) = [[event["join"]] for event in document["events"]]
    assert (member["id"], member["topics"], member["client"]) == ("d", ["u"], "java")
    assert parse_duration(member["start_up"][0], "start_up") == pytest.approx(2_000, abs=200)


@pytest.mark.parametrize("interval", ["1s", "3s"])
def test_heartbeats_are_as_far_apart_as_it_took_to_learn_of_rounds(interval, tmp_path):
    config = DOCUMENT["config"] | {"heartbeat.interval.ms": interval}
    events = [{"at": f"{40 + 10 * n}s", "leave" if n % 2 else "restart": "c"} for n in range(1, 7)]
    document, guesses, _ = incident(tmp_path, *events, config=config, without_settings=True)
    found = parse_duration(document.get("config", {}).get("heartbeat.interval.ms", "3s"), "interval")
    true_ms = parse_duration(interval, "interval")
    assert 0.5 * true_ms <= found <= 1.2 * true_ms
    assert any("heartbeat.interval.ms" in guess for guess in guesses) == (found < 3_000)
