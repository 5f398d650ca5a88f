"""The load of a run: against the time that simulated members take."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.load import Load, Overload, Stretch, load_of, overload_of
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.runs import Run, loads_of
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


def test_of_partitions_that_are_hot_the_largest_is_the_first():
    assert list(load_of(history_of([95, 10, 120, 95])).hot) == ["t 2", "t 0", "t 3"]


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


def timed(*rates, partitions=1, b=None):
    """The overload of members a and b (100 records/s each, b while it runs) at rates of one partition."""
    events = [
        (0, traces.started("a", "t", process_rate=100.0)),
        *traces.round_at(0, 1, {"a": {"t": list(range(partitions))}}),
        *[(at_ms, traces.rates("t", *[rate] * partitions)) for at_ms, rate in rates],
    ]
    if b is not None:
        begins_ms, ends_ms = b
        events += [(begins_ms, traces.started("b", "t", process_rate=100.0))]
        events += [] if ends_ms is None else [(ends_ms, traces.stopped("b"))]
    events.sort(key=lambda each: each[0])
    found = overload_of(traces.history_of(*events, topics={"t": partitions}, from_ms=0))
    return None if found is None else (len(found.partitions), found.of_group)


@pytest.mark.parametrize(
    ("rates", "found"),
    [
        pytest.param([(0, 20), (50_000, 400)], (1, True), id="from the middle to the end"),
        pytest.param([(0, 20), (98_000, 400)], None, id="for a moment at the end"),
        pytest.param([(0, 20), (50_000, 400), (52_000, 20)], None, id="for a moment"),
        pytest.param([(0, 20), (50_000, 400), (90_000, 20)], None, id="until before the end"),
        pytest.param([(0, 20), (50_000, 400), (99_999, 20)], None, id="until just before the end"),
        pytest.param([(0, 100)], None, id="exactly what the member can handle"),
        pytest.param([(0, 200), (50_000, 100)], None, id="exactly what it can handle at the end"),
        pytest.param([(0, 100.1)], (1, True), id="a little more"),
    ],
)
def test_a_partition_and_a_group_are_overloaded_by_what_is_too_much_in_the_mean_and_at_the_end(rates, found):
    assert timed(*rates) == found


def test_of_a_group_with_other_members_before_the_loads_of_the_window_and_since_then_are_too_much():
    """150 records/s are half a member too few and half a member too many for as long: just enough."""
    assert timed((0, 75), partitions=2, b=(0, 50_000)) is None
    assert timed((0, 75), partitions=2, b=(0, 49_000)) == (0, True)
    assert timed((0, 75), (60_000, 25), (90_000, 62.5), partitions=4, b=(60_000, None)) is None


@pytest.mark.parametrize(("of_b", "gone_s"), [(0.0, 250.0), (400.0, None)])
def test_a_backlog_is_gone_at_the_rate_at_which_it_fell_last_unless_that_of_a_member_rises(of_b, gone_s):
    lags = [(10_000, 1_000, 0.0), (50_000, 3_000, 0.0), (75_000, 2_750, of_b / 2), (99_000, 2_510, of_b)]
    measured = [
        (at_ms, msgspec.structs.replace(traces.measured(lag), by_client={"a": lag - b, "b": b}))
        for at_ms, lag, b in lags
    ]
    events = [(0, traces.started("a", "t", process_rate=100.0)), (0, traces.rates("t", 90.0))]
    events += [*traces.round_at(0, 1, {"a": {"t": [0]}}), *measured]
    found = load_of(traces.history_of(*events, topics={"t": 1}, from_ms=0))
    assert (found.left, found.gone_s) == (2_510, gone_s and pytest.approx(gone_s, rel=0.01))


def test_a_partition_is_hot_and_a_load_too_high_if_it_is_in_all_runs():
    some = Load(2, 2, 9.0, hot={"t 0": 9.0, "t 1": 8.0}, is_too_high=True)
    found = loads_of([Run("a", load=each) for each in (some, Load(2, 2, 9.0, hot={"t 1": 7.0}))])
    assert (found.hot, found.is_too_high) == ({"t 1": 8.0}, False)


def test_without_one_member_is_without_the_fastest():
    slow = {"at": "1s", "join": {"id": "slow", "topics": ["t"], "process_rate": 50}}
    found = load_of(history_of([30, 30], slow, members=1, overhead=0))
    assert (found.share, found.share_without_one) == (
        pytest.approx(0.4, rel=0.01),
        pytest.approx(1.2, rel=0.01),
    )


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
