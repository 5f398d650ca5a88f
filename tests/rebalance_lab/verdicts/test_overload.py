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
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.of_traces import comparison_of_traces
from rebalance_lab.verdicts.overload import Overload, Stretch, overload, overload_of
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


def test_members_that_crash_for_good_handle_nothing():
    crash = {"at": "2m", "crash": "m-0"}
    for since in ("2m", 0):
        assert overload(history_of([40, 40, 40, 40], crash, measure={"from": since})) == (
            "The load of 160 records/s is more than the 90.9 that the members that run at the end together"
            " can handle in full batches. No assignor removes this backlog, only more members or faster"
            " processing.",
        )


RETURNS = ({"at": "60s", "crash": "m-1"}, {"at": "3m", "restart": "m-1"})


def test_a_backlog_of_the_time_in_which_a_member_was_away_is_worked_off_without_a_change():
    """The three members handle 300 records/s each: 900 together, 600 while one is away."""
    options = {"members": 3, "process_rate": 300, "overhead": 0, "config": {"session.timeout.ms": "10s"}}
    (only,) = overload(history_of([92.2] * 9, *RETURNS, duration="6m", **options))
    assert only == (
        "While m-1 was away, the load of 829.8 records/s was more than the 600 that the members that ran"
        " together could handle in full batches. At the end of the run the lag falls by 70.2 records/s. This"
        " backlog is worked off without a change."
    )
    assert overload(history_of([92.2] * 9, *RETURNS, duration="30m", **options)) == ()


def test_an_overload_of_a_member_does_not_go_while_the_lag_of_the_others_falls():
    """The first member gets 110 records/s, and the second one works off what piled up without it."""
    crash = {"at": "30s", "crash": "m-1"}, {"at": "90s", "restart": "m-1"}
    options = {"overhead": 0, "config": {"session.timeout.ms": "10s", "max.poll.records": 10}}
    assert overload(history_of([55, 55, 35, 35], *crash, duration="130s", **options)) == ()
    assert overload(history_of([45, 45, 45, 45], *crash, duration="130s", **options)) != ()


def test_a_group_without_members_at_the_end_is_not_said_to_be_too_small():
    assert overload(history_of([40, 40], {"at": "60s", "crash": ["m-0", "m-1"]})) == ()


def test_loads_that_are_hardly_too_high_have_as_many_digits_as_show_it():
    (of_partition, of_group) = overload(history_of([10], members=1, process_rate=10, overhead="1ms"))
    assert of_partition.startswith("t 0 (10.0000) gets more records/s than the 9.9998 that a member can")
    assert of_group.startswith("The load of 10.0000 records/s is more than the 9.9998 that all members")


@pytest.mark.parametrize(
    ("until_ms", "is_too_high"), [(52_000, False), (90_000, False), (99_999, False), (None, True)]
)
def test_a_rate_that_is_high_for_a_moment_or_until_before_the_end_is_no_overload(until_ms, is_too_high):
    timed = [
        (0, traces.started("a", "t", process_rate=100.0)),
        *traces.round_at(0, 1, {"a": {"t": [0]}}),
        (0, traces.rates("t", 20)),
        (50_000, traces.rates("t", 400)),
        *([] if until_ms is None else [(until_ms, traces.rates("t", 20))]),
    ]
    found = overload_of(traces.history_of(timed, topics={"t": 1}, from_ms=0))
    assert (found is not None and bool(found.partitions) and found.of_group) is is_too_high


def test_a_topic_that_nobody_reads_is_no_load():
    assert overload(history_of([20, 20], topics={"u": {"partitions": 1, "rate": 900}}.items())) == ()


def test_a_member_without_a_limit_carries_every_load():
    assert overload_of(history_of([9_000, 10], process_rate=None, overhead=0)) is None


def test_polls_limit_a_member_whose_records_take_no_time():
    """500 records in half a second."""
    assert overload_of(history_of([900, 10], process_rate=None)) is None
    first, _ = overload(history_of([9_000, 10], process_rate=None))
    assert first.startswith("t 0 (9,000) gets more records/s than the 1,000 that a member can handle in full")


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


def test_times_with_the_same_members_have_the_mean_load_of_their_time():
    running = frozenset({"m"})
    stretches = [Stretch(1_000, 100.0, 90.0, running), Stretch(3_000, 200.0, 90.0, running)]
    assert Overload((), 100.0, stretches).at_end == Stretch(4_000, 175.0, 90.0, running)


def test_the_fastest_member_is_the_limit_of_a_partition():
    slow = {"at": "1s", "join": {"id": "slow", "topics": ["t"], "process_rate": 50}}
    found = overload_of(history_of([150, 60], slow, members=1, overhead=0))
    assert found.fastest == pytest.approx(100)
    assert [partition.partition for partition, _ in found.partitions] == [0]
