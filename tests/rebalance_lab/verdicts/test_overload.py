"""Loads that no assignment can carry: against the time that simulated members take, and in sentences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.advise import advice_on
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.advice import sentences
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.load import overload
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.of_traces import comparison_of_traces
from rebalance_lab.verdicts.overload import overload_of
from tests.examples import scaled
from tests.rebalance_lab.traces import traces


def scenario_of(rates, *events, members=2, process_rate=100, overhead="500ms", topics=(), **changes):
    return parse_scenario(
        {
            "name": "load",
            "duration": "4m",
            "topics": {"t": {"partitions": len(rates), "rates": rates}, **dict(topics)},
            "members": [
                {
                    "id": "m",
                    "count": members,
                    "topics": ["t"],
                    "process_rate": process_rate,
                    "batch_overhead": overhead,
                }
            ],
            "events": list(events),
            **changes,
        },
        where="load",
    )


def history_of(*args, **options):
    return History(simulate(scenario_of(*args, **options), "range", default_registry()))


def test_a_partition_beyond_what_a_member_can_handle_comes_first():
    """A batch of 500 records takes 5 s and half a second more: 90.9 records/s."""
    (first,) = overload(history_of([95, 10], members=2))
    assert first == (
        "t 0 (95) gets more records/s than the 90.9 that a member can handle in full batches. No assignor"
        " removes this backlog, only more partitions or faster processing."
    )
    assert overload(history_of([95, 10], overhead=0)) == ()


def test_a_group_beyond_what_its_members_can_handle():
    (only,) = overload(history_of([60, 60, 60, 60]))
    assert only == (
        "The load of 240 records/s is more than the 181.8 that all members together can handle in full"
        " batches. No assignor removes this backlog, only more members or faster processing."
    )


def test_members_that_crash_handle_nothing():
    crash = {"at": "2m", "crash": "m-0"}
    assert overload(history_of([40, 40, 40, 40], crash, measure={"from": "2m"})) != ()
    assert overload(history_of([40, 40, 40, 40], crash, measure={"from": 0})) == (
        "The load of 160 records/s is more than the 136.4 that all members together can handle in full"
        " batches. No assignor removes this backlog, only more members or faster processing.",
    )


@pytest.mark.parametrize(("until_ms", "is_too_high"), [(52_000, False), (90_000, True)])
def test_a_rate_that_is_high_for_a_moment_is_no_overload(until_ms, is_too_high):
    timed = [
        (0, traces.started("a", "t", process_rate=100.0)),
        *traces.round_at(0, 1, {"a": {"t": [0]}}),
        (0, traces.rates("t", 20)),
        (50_000, traces.rates("t", 400)),
        (until_ms, traces.rates("t", 20)),
    ]
    history = traces.history_of(timed, topics={"t": 1}, from_ms=0)
    assert (overload_of(history) is not None) is is_too_high


def test_a_topic_that_nobody_reads_is_no_load():
    assert overload(history_of([20, 20], topics={"u": {"partitions": 1, "rate": 900}}.items())) == ()


def test_a_member_without_a_limit_carries_every_load():
    assert overload_of(history_of([9_000, 10], process_rate=None)) is None


def test_the_share_of_the_busiest_member_counts_the_time_of_its_polls():
    registry = default_registry()
    trace = simulate(scenario_of([50, 50]), "range", registry)
    assert measure(trace, registry)["utilization"] == pytest.approx(50 / (500 / 5.5))


def test_it_is_the_first_sentence_of_comparisons_and_advice():
    scenario, registry = scenario_of([95, 10], {"at": "2m", "crash": "m-0"}), default_registry()
    (first, *_) = overload(History(simulate(scenario, "range", registry)))
    runs = [simulate(scenario, name, registry) for name in ("range", "sticky")]
    assert answers(comparison_of_traces(runs, registry))[0] == first
    assert sentences(advice_on(scenario, "range", seeds=1, jobs=1))[0] == first


@settings(max_examples=scaled(60))
@given(
    st.lists(st.integers(5, 150), min_size=1, max_size=4),
    st.integers(1, 3),
    st.sampled_from([0, 500, 3_000]),
)
def test_under_every_assignor_the_lag_of_an_overload_grows(rates, members, overhead_ms):
    """A group that carries its load within 10 % is left out: batches vary."""
    scenario = scenario_of(rates, members=members, overhead=overhead_ms, duration="8m")
    registry = default_registry()
    history = History(simulate(scenario, "range", registry))
    limit = 1_000 * 500 / (5_000 + overhead_ms)
    lag = measure(history, registry)["lag_at_end"]
    if max(rates) > 1.1 * limit or sum(rates) > 1.1 * members * limit:
        assert overload_of(history) is not None
        assert lag > 0.05 * limit * 8 * 60
    elif max(rates) < 0.9 * limit and sum(rates) < 0.9 * members * limit:
        assert overload_of(history) is None
