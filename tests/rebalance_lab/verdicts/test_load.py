"""The load of a run: against the time that simulated members take."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.load import Overload, Stretch, load_of, overload_of
from rebalance_lab.verdicts.measuring import measure
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


def test_a_partition_beyond_what_a_member_can_handle_is_hot():
    """A batch of 500 records takes 5 s and half a second more: 90.9 records/s."""
    found = load_of(history_of([95, 10]))
    assert (found.hot, found.is_too_high) == ({"t 0": 95.0}, False)
    assert found.fastest == pytest.approx(90.9, abs=0.1)
    assert (found.batch_records, found.batch_ms) == (500, 5_500)
    assert load_of(history_of([95, 10], overhead=0)).hot == {}


def test_a_group_beyond_what_its_members_can_handle():
    found = load_of(history_of([60, 60, 60, 60]))
    assert (found.members, found.partitions, found.rate, found.is_too_high) == (2, 4, 240.0, True)
    assert found.share == pytest.approx(240 / 181.8, abs=0.01)
    assert found.share_without_one == pytest.approx(2 * found.share)
    assert (found.left > 10_000, found.gone_s) == (True, None)


@pytest.mark.parametrize("since", ["2m", 0])
def test_members_that_crash_for_good_handle_nothing(since):
    crash = {"at": "2m", "crash": "m-0"}
    found = load_of(history_of([40, 40, 40, 40], crash, measure={"from": since}))
    assert found.is_too_high


RETURNS = ({"at": "60s", "crash": "m-1"}, {"at": "3m", "restart": "m-1"})


def test_a_backlog_of_the_time_in_which_a_member_was_away_goes_in_the_time_that_is_told():
    """The three members handle 300 records/s each: 900 together, 600 while one is away."""
    options = {"members": 3, "process_rate": 300, "overhead": 0, "config": {"session.timeout.ms": "10s"}}
    found = load_of(history_of([92.2] * 9, *RETURNS, duration="6m", **options))
    assert (found.is_too_high, found.share) == (False, pytest.approx(0.922, abs=0.001))
    assert found.gone_s == pytest.approx(found.left / 70.2, rel=0.01)
    later = f"{int(60 * 6 + found.gone_s)}s"
    assert load_of(history_of([92.2] * 9, *RETURNS, duration=later, **options)).left == 0


def test_a_group_without_members_at_the_end_has_no_load_that_is_too_high():
    assert not load_of(history_of([40, 40], {"at": "60s", "crash": ["m-0", "m-1"]})).is_too_high


def test_the_load_is_that_of_the_time_in_which_most_members_run():
    joins = {"at": "1m", "join": {"id": "n", "topics": ["t"], "process_rate": 100}}
    found = load_of(history_of([20, 20, 20], joins, overhead=0))
    assert (found.members, found.capacity, found.rate) == (3, pytest.approx(300, abs=1), 60.0)


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
    found = load_of(history_of([20, 20], topics={"u": {"partitions": 1, "rate": 900}}.items()))
    assert (found.rate, found.hot, found.is_too_high) == (40.0, {}, False)


def test_a_member_without_a_limit_carries_every_load():
    history = history_of([9_000, 10], process_rate=None, overhead=0)
    assert (overload_of(history), load_of(history).capacity, load_of(history).share) == (None, 0.0, 0.0)


def test_polls_limit_a_member_whose_records_take_no_time():
    """500 records in half a second."""
    assert overload_of(history_of([900, 10], process_rate=None)) is None
    found = load_of(history_of([9_000, 10], process_rate=None))
    assert (found.hot, found.fastest) == ({"t 0": 9_000.0}, pytest.approx(1_000))


def test_the_share_of_the_busiest_member_counts_the_time_of_its_polls():
    registry = default_registry()
    trace = simulate(scenario_of([50, 50]), "range", registry)
    assert measure(trace, registry)["utilization"] == pytest.approx(50 / (500 / 5.5))


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
