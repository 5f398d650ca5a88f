"""Each metric on a trace written by hand, with the figure worked out beside it."""

from math import isnan, nan
from types import SimpleNamespace

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import METRIC_GROUPS
from rebalance_lab.simulation.process.batches import Batches
from rebalance_lab.verdicts import balance, lag, metrics, stops
from tests.rebalance_lab.traces.traces import (
    assigned,
    changed,
    generation,
    history_of,
    joined,
    lost,
    measured,
    rates,
    removed,
    revoked,
    round_at,
    started,
    state,
    stopped,
)

CONTRACT = [
    "stopped_partition_seconds",
    "stopped_detection_partition_seconds",
    "stopped_standing_partition_seconds",
    "stopped_unassigned_partition_seconds",
    "stopped_waiting_partition_seconds",
    "stopped_waiting_heartbeat_partition_seconds",
    "stopped_waiting_batch_partition_seconds",
    "stopped_waiting_session_partition_seconds",
    "stopped_waiting_callback_partition_seconds",
    "stopped_waiting_start_partition_seconds",
    "stopped_waiting_delay_partition_seconds",
    "stopped_waiting_unknown_partition_seconds",
    "stopped_messages_partition_seconds",
    "stopped_application_partition_seconds",
    "stopped_take_over_partition_seconds",
    "stopped_callbacks_partition_seconds",
    "stopped_restore_partition_seconds",
    "stopped_away_partition_seconds",
    "stopped_vacant_partition_seconds",
    "longest_stop_seconds",
    "capacity_lost",
    "unowned_partition_seconds",
    "double_owned_partition_seconds",
    "time_to_stable_seconds",
    "time_to_stable_seconds_max",
    "start_up_seconds",
    "moved_partitions",
    "avoidable_moves",
    "max_lag",
    "lag_at_end",
    "lag_record_seconds",
    "catch_up_seconds",
    "duplicate_records",
    "imbalance",
    "weighted_imbalance",
    "optimality_gap",
    "weighted_optimality_gap",
    "utilization",
    "cross_rack_partitions",
    "rounds",
    "messages",
    "notifications",
    "superfluous_rebalances",
]


def two_members(*timed, topics=None, **options):
    return history_of(
        (0, started("a", "t")), (0, started("b", "t")), *timed, topics=topics or {"t": 4}, **options
    )


def test_the_metrics_are_those_of_the_contract_in_its_order():
    assert [metric.name for metric in metrics.metrics()] == CONTRACT


def test_every_metric_has_a_definition_a_unit_and_a_group_and_less_is_better():
    for metric in metrics.metrics():
        assert metric.doc.startswith("The ")
        assert metric.doc.endswith(".")
        assert len(metric.doc) > 40
        assert metric.unit
        assert metric.group in METRIC_GROUPS
        assert metric.better == "lower"


def test_every_group_has_metrics_and_some_metrics_are_on_the_first_screen():
    assert {metric.group for metric in metrics.metrics()} == set(METRIC_GROUPS)
    assert 4 <= sum(metric.headline for metric in metrics.metrics()) <= 7


# --- rounds and moves


def test_a_round_counts_when_it_is_completed():
    history = two_members(
        round_at(1_000, 1, {"a": {"t": [0, 1, 2, 3]}}),
        round_at(5_000, 2, {"a": {"t": [0, 1, 2, 3]}}),
        (9_000, state("PreparingRebalance")),
        from_ms=0,
    )
    assert metrics.rounds(history) == 2


def rebalanced(before, after):
    """Everyone gives up all of it, and a round later owns what they own then."""
    given_up = [(4_000, revoked(client, {"t": numbers})) for client, numbers in before.items()]
    return two_members(
        round_at(1_000, 1, {client: {"t": before.get(client, [])} for client in ("a", "b")}),
        (4_000, state("PreparingRebalance")),
        given_up,
        round_at(5_000, 2, {client: {"t": numbers} for client, numbers in after.items()}),
    )


@pytest.mark.parametrize(
    ("before", "after", "moved", "avoidable"),
    [
        # Two must move for a balance of 2 and 2, and two did.
        ({"a": [0, 1, 2, 3]}, {"a": [0, 1], "b": [2, 3]}, 2, 0),
        # In balance before and after: the swap of all four was for nothing.
        ({"a": [0, 1], "b": [2, 3]}, {"a": [2, 3], "b": [0, 1]}, 4, 4),
        # Nothing moved.
        ({"a": [0, 1], "b": [2, 3]}, {"a": [0, 1], "b": [2, 3]}, 0, 0),
        # 1 and 3 is not the best balance, but the one that was reached; one move would do for it.
        ({"a": [0, 1, 2, 3]}, {"a": [0], "b": [1, 2, 3]}, 3, 2),
        # The owner is gone, so both must move whatever happens.
        ({"a": [0, 1], "b": [2, 3]}, {"b": [0, 1, 2, 3]}, 2, 0),
    ],
)
def test_avoidable_moves_are_those_beyond_the_fewest_for_the_balance_reached(before, after, moved, avoidable):
    history = rebalanced(before, after)
    assert balance.moved_partitions(history) == moved
    assert balance.avoidable_moves(history) == avoidable


# --- times


def figure(name, history):
    (metric,) = (metric for metric in metrics.metrics() if metric.name == name)
    return metric.compute(history)


SHARED = round_at(2_500, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})


def test_stopped_time_is_in_seconds():
    history = two_members(SHARED, from_ms=0)
    assert stops.stopped_partition_seconds(history) == pytest.approx(4 * 2.5)
    assert stops.longest_stop_seconds(history) == pytest.approx(2.5)


def test_start_up_is_a_figure_of_its_own_and_in_no_other():
    history = two_members(SHARED)
    assert stops.start_up_seconds(history) == pytest.approx(2.5)
    assert stops.stopped_partition_seconds(history) == 0
    assert metrics.rounds(history) == 0


def test_a_group_that_never_rests_has_no_start_up_and_is_measured_from_the_beginning():
    history = two_members((1_000, state("PreparingRebalance")))
    assert isnan(stops.start_up_seconds(history))
    assert stops.stopped_partition_seconds(history) == pytest.approx(4 * 100)


def test_the_parts_of_the_stopped_time_have_a_metric_each():
    """From 10 s to 50 s the dead member has two partitions; then the round lasts 2 s, of which it waits 1 s
    for b; b takes over 3 s later, runs its callback for 4 s, and restores one partition for 10 s."""
    history = two_members(
        SHARED,
        (10_000, stopped("a", "crashed")),
        (50_000, removed("a")),
        (50_000, state("PreparingRebalance", generation=1)),
        (51_000, generation(2, "b")),
        (51_000, joined("b", 2)),
        (51_000, state("CompletingRebalance", generation=2)),
        (52_000, state("Stable", generation=2)),
        (55_000, assigned("b", 2, {"t": [0, 1, 2, 3]}, added={"t": [0, 1]})),
        (55_000, ev.WorkStopped(client="b", partitions={"t": [0, 1]}, why="callback")),
        (59_000, ev.WorkStarted(client="b", partitions={"t": [0, 1]})),
        (59_000, ev.WorkStopped(client="b", partitions={"t": [0]}, why="restore")),
        (69_000, ev.WorkStarted(client="b", partitions={"t": [0]})),
    )
    parts = {"detection": 80, "waiting": 2, "messages": 2, "application": 24, "away": 0}
    of_application = {"take_over": 6, "callbacks": 8, "restore": 10}
    for part, seconds in {**parts, **of_application, "unassigned": 0}.items():
        assert figure(f"stopped_{part}_partition_seconds", history) == pytest.approx(seconds)
    assert stops.stopped_partition_seconds(history) == pytest.approx(sum(parts.values()))
    assert stops.longest_stop_seconds(history) == pytest.approx(59)
    assert stops.unowned_partition_seconds(history) == pytest.approx(2 + 2 + 6)


def test_two_consumers_that_work_on_a_partition_own_it_twice():
    """a is fenced at 10 s, and learns of it at 14 s; b has had one of its partitions for 3 s then."""
    history = two_members(
        SHARED,
        (10_000, removed("a")),
        (11_000, assigned("b", 2, {"t": [0, 2, 3]}, added={"t": [0]})),
        (14_000, lost("a", {"t": [0, 1]})),
    )
    assert stops.double_owned_partition_seconds(history) == pytest.approx(3)


@pytest.mark.parametrize(
    ("timed", "lost_share"),
    [
        # 30 of 100 records/s for 10 of 100 seconds
        ([(0, rates("t", 10.0, 20.0, 30.0, 40.0))], 0.03),
        # the rates of the time in which the partitions stand still: 30 for 5 s, 60 for 5 s, of 15,200 records
        (
            [(0, rates("t", 10.0, 20.0, 30.0, 40.0)), (45_000, rates("t", 20.0, 40.0, 60.0, 76.0))],
            450 / 15_280,
        ),
        # without records, two of four partitions for 10 of 100 seconds
        ([], 0.05),
        ([(0, rates("t", 0.0, 0.0, 0.0, 0.0))], 0.05),
    ],
)
def test_the_capacity_lost_is_the_share_of_records_of_stopped_partitions(timed, lost_share):
    history = two_members(
        [pair for pair in timed if not pair[0]],
        round_at(0, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
        (40_000, revoked("a", {"t": [0, 1]})),
        [pair for pair in timed if pair[0]],
        (50_000, assigned("a", 1, {"t": [0, 1]})),
    )
    assert stops.capacity_lost(history) == pytest.approx(lost_share)


def states(*pairs):
    return [(at_ms, state(after)) for at_ms, after in pairs]


BEGUN = states((0, "PreparingRebalance"), (1_000, "Stable"))


@pytest.mark.parametrize(
    ("timed", "times"),
    [
        # One change, one round, from 10 s to 13 s.
        ([(10_000, changed()), *states((10_100, "PreparingRebalance"), (13_000, "Stable"))], [3_000]),
        # Two rounds follow (a cooperative rebalance): up to the last Stable.
        (
            [
                (10_000, changed()),
                *states((10_100, "PreparingRebalance"), (13_000, "Stable")),
                *states((13_100, "PreparingRebalance"), (17_000, "Stable")),
            ],
            [7_000],
        ),
        # No round follows (a static member is back in time): nothing to wait for.
        ([(10_000, changed("restart"))], [0]),
        # A change that comes during a round takes over the wait: 15 - 10 and 15 - 12.
        (
            [
                (10_000, changed()),
                *states((10_100, "PreparingRebalance")),
                (12_000, changed("leave")),
                *states((15_000, "Stable")),
            ],
            [5_000, 3_000],
        ),
        # Two changes with a round each.
        (
            [
                (10_000, changed()),
                *states((10_100, "PreparingRebalance"), (13_000, "Stable")),
                (20_000, changed()),
                *states((20_100, "PreparingRebalance"), (21_000, "Stable")),
            ],
            [3_000, 1_000],
        ),
        # Two changes at the same time wait for the same round.
        (
            [
                (10_000, changed("join")),
                (10_000, changed("leave")),
                *states((10_100, "PreparingRebalance"), (13_000, "Stable")),
            ],
            [3_000, 3_000],
        ),
        # The group becomes Stable in the very moment of the change: nothing to wait for.
        (
            [*states((8_000, "PreparingRebalance"), (10_000, "Stable")), (10_000, changed())],
            [0],
        ),
        # Never Stable again: up to the end of the run at 100 s.
        ([(10_000, changed()), *states((10_100, "PreparingRebalance"))], [90_000]),
    ],
)
def test_time_to_stable_is_from_a_change_to_the_last_stable_before_the_next(timed, times):
    history = two_members(BEGUN, timed)
    assert stops.time_to_stable_seconds(history) == pytest.approx(sum(times) / len(times) / 1_000)
    assert stops.time_to_stable_seconds_max(history) == pytest.approx(max(times) / 1_000)


# --- balance


def test_imbalance_is_the_most_over_the_mean_of_partitions():
    """3 and 1 partitions: 3 over 2."""
    history = two_members(round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}))
    assert balance.imbalance(history) == pytest.approx(1.5)


def test_a_member_that_owns_nothing_counts_for_the_mean():
    history = two_members(round_at(1_000, 1, {"a": {"t": [0, 1, 2, 3]}, "b": {}}))
    assert balance.imbalance(history) == pytest.approx(2)


def test_weighted_imbalance_weighs_partitions_by_their_rates():
    """10 + 20 + 30 against 40 records/s: 60 over 50."""
    history = two_members(
        (0, rates("t", 10.0, 20.0, 30.0, 40.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}),
    )
    assert balance.weighted_imbalance(history) == pytest.approx(1.2)


@pytest.mark.parametrize(("limits", "most"), [((90, 50), 0.8), ((30, 50), 2.0), ((None, 50), 0.8)])
def test_the_utilization_is_that_of_the_member_nearest_to_its_limit(limits, most):
    history = history_of(
        *((0, started(name, "t", process_rate=limit)) for name, limit in zip("ab", limits, strict=True)),
        (0, rates("t", 10.0, 20.0, 30.0, 40.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}),
        topics={"t": 4},
    )
    assert balance.utilization(history) == pytest.approx(most)


def test_the_utilization_counts_the_time_of_polls_as_the_simulator_does():
    """A batch of one record takes 10 ms, and its poll 15 ms: 40 records/s."""
    batches = Batches(10.0, 1.0, (10, 20), 1)
    history = history_of(
        (0, started("a", "t", process_rate=100.0)),
        (0, batches.started("a", 300_000)),
        (0, rates("t", 10.0, 20.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1]}}),
        topics={"t": 2},
    )
    assert history.process_rates == {"a": 40.0}
    assert balance.utilization(history) == pytest.approx(0.75)


def test_members_without_a_limit_have_no_utilization():
    history = two_members(
        (0, rates("t", 10.0, 20.0, 30.0, 40.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}),
    )
    assert isnan(balance.utilization(history))


def test_the_lag_at_the_end_is_the_last_one():
    history = two_members((10_000, measured(5.0, max_lag=70.0)), (20_000, measured(30.0, max_lag=30.0)))
    assert lag.lag_at_end(history) == 30
    assert isnan(lag.lag_at_end(two_members()))


def test_rates_count_while_the_assignment_is_in_force_each_for_its_time():
    """In force from 20 s to 100 s. Partition 0 has 8 records/s for 20 s of it and 0 for 60 s: 2 on average;
    partition 1 has 4, then 8: 7. The mean is 4.5, the most 7. What was before 20 s does not count."""
    history = two_members(
        (0, rates("t", 1_000.0, 0.0)),
        (10_000, rates("t", 8.0, 4.0)),
        round_at(20_000, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (40_000, rates("t", 0.0, 8.0)),
        topics={"t": 2},
    )
    assert balance.weighted_imbalance(history) == pytest.approx(7 / 4.5)


def test_partitions_that_were_added_have_no_rate_before():
    """Partition 1 has 6 records/s for the second half of the time: 3, against 5 of partition 0."""
    history = two_members(
        (0, rates("t", 5.0)),
        round_at(0, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (50_000, rates("t", 5.0, 6.0)),
        topics={"t": 2},
    )
    assert balance.weighted_imbalance(history) == pytest.approx(5 / 4)


def test_the_optimality_gap_is_the_sum_of_squares_over_the_least_less_one():
    """9 + 1 over 4 + 4, less one."""
    history = two_members(round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}))
    assert balance.optimality_gap(history) == pytest.approx(0.25)


def test_the_gap_is_none_where_subscriptions_do_not_allow_more():
    """Only a subscribes to u, so 3 and 1 is the best there is."""
    history = history_of(
        (0, started("a", "t", "u")),
        (0, started("b", "t")),
        round_at(1_000, 1, {"a": {"u": [0, 1, 2]}, "b": {"t": [0]}}),
        topics={"t": 1, "u": 3},
    )
    assert balance.optimality_gap(history) == 0
    assert balance.imbalance(history) == pytest.approx(1.5)


def weighed(owned, *per_partition):
    topics = {"t": len(per_partition)}
    return two_members((0, rates("t", *per_partition)), round_at(1_000, 1, owned), topics=topics)


@pytest.mark.parametrize(
    ("owned", "per_partition", "gap"),
    [
        # 9 records/s of a against an average of 6
        ({"a": {"t": [0, 1]}, "b": {"t": [2]}}, (6.0, 3.0, 3.0), 0.5),
        # no better way: the heaviest alone has as much
        ({"a": {"t": [0]}, "b": {"t": [1, 2]}}, (6.0, 3.0, 3.0), 0.0),
        # three alike on two members: somebody has two, so 8 against 8
        ({"a": {"t": [0, 1]}, "b": {"t": [2]}}, (4.0, 4.0, 4.0), 0.0),
        # 0.2 + 0.1 against 0.3 is rounding, and no gap
        ({"a": {"t": [0]}, "b": {"t": [1, 2]}}, (0.3, 0.2, 0.1), 0.0),
        # all on one of two members
        ({"a": {"t": [0, 1]}, "b": {}}, (5.0, 5.0), 1.0),
    ],
)
def test_the_weighted_gap_is_the_heaviest_member_over_the_bound_less_one(owned, per_partition, gap):
    found = balance.weighted_optimality_gap(weighed(owned, *per_partition))
    assert found == pytest.approx(gap)
    assert (found == 0) == (gap == 0)


def test_there_is_no_weighted_gap_where_subscriptions_do_not_allow_more():
    """Only a subscribes to u: 20 records/s are its in any case."""
    history = history_of(
        (0, started("a", "t", "u")),
        (0, started("b", "t")),
        (0, rates("t", 1.0)),
        (0, rates("u", 10.0, 10.0)),
        round_at(1_000, 1, {"a": {"u": [0, 1]}, "b": {"t": [0]}}),
        topics={"t": 1, "u": 2},
    )
    assert balance.weighted_optimality_gap(history) == 0


def test_the_weighted_gap_goes_by_the_rates_while_the_assignment_is_in_force():
    """Partition 0 has 0 and then 12 records/s, 6 on average, and partition 1 six throughout."""
    history = two_members(
        (0, rates("t", 0.0, 6.0)),
        round_at(0, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (50_000, rates("t", 12.0, 6.0)),
        topics={"t": 2},
    )
    assert balance.weighted_optimality_gap(history) == 0


def test_balance_is_that_of_the_assignment_at_the_end():
    history = rebalanced({"a": [0, 1, 2, 3]}, {"a": [0, 1], "b": [2, 3]})
    assert balance.imbalance(history) == 1
    assert balance.optimality_gap(history) == 0


# --- load and messages


def test_lag_and_duplicates_are_put_together_from_the_measures():
    history = two_members(
        (10_000, measured(5.0, max_lag=70.0, lag_record_seconds=100.0, duplicates=2.0)),
        (20_000, measured(30.0, max_lag=30.0, lag_record_seconds=50.5, duplicates=0.5)),
    )
    assert lag.max_lag(history) == 70
    assert lag.lag_record_seconds(history) == pytest.approx(150.5)
    assert lag.duplicate_records(history) == pytest.approx(2.5)


def test_records_that_pile_up_while_the_group_starts_do_not_count():
    """The group rests at 2.5 s, and works its backlog off until 30 s. The change comes at 40 s."""
    history = two_members(
        (0, measured(0.0)),
        SHARED,
        (2_500, measured(600.0, lag_record_seconds=750.0, duplicates=1.0)),
        (20_000, measured(200.0, max_lag=600.0, lag_record_seconds=7_000.0)),
        (30_000, measured(0.0, max_lag=200.0, lag_record_seconds=1_000.0)),
        (40_000, measured(0.0)),
        (40_000, changed()),
        (50_000, measured(80.0, lag_record_seconds=400.0, duplicates=2.0)),
    )
    assert lag.max_lag(history) == 80
    assert lag.lag_record_seconds(history) == 400
    assert lag.duplicate_records(history) == 2


def test_records_that_are_still_there_at_the_first_change_count():
    history = two_members(
        (0, measured(0.0)),
        SHARED,
        (2_500, measured(600.0)),
        (10_000, measured(500.0, max_lag=600.0)),
        (10_000, changed()),
        (20_000, measured(300.0, max_lag=550.0)),
    )
    assert lag.max_lag(history) == 550


def test_records_that_wait_at_time_0_count():
    history = two_members(
        (0, measured(900.0)), SHARED, (2_500, measured(890.0)), (20_000, measured(200.0, max_lag=890.0))
    )
    assert lag.max_lag(history) == 890


CAUGHT_UP = [
    # 10 records before and one of slack: from 51 at 40 s to 0 at 50 s the lag is 11 after 40 / 51 of it
    ([(20, 10.0), (30, 51.0), (40, 51.0), (50, 0.0)], [20], 20 + 10 * 40 / 51),
    # no lag, no time
    ([(20, 10.0), (30, 10.0)], [20], 0.0),
    # never again what it was
    ([(20, 10.0), (30, 51.0), (40, 12.0)], [20], nan),
    # the second change belongs to the first: 21 to 41
    ([(20, 0.0), (30, 41.0), (40, 41.0), (50, 0.0)], [20, 35], 40 + 10 * 40 / 41 - 20),
    # the longer one of two
    ([(20, 0.0), (30, 11.0), (40, 1.0), (50, 0.0), (60, 1.0), (70, 101.0), (90, 1.0)], [20, 50], 40.0),
    # nothing has changed
    ([(20, 0.0), (30, 11.0), (40, 1.0)], [], nan),
]


@pytest.mark.parametrize(("lags", "changes", "seconds"), CAUGHT_UP)
def test_catching_up_lasts_until_the_lag_is_what_it_was_before_the_change(lags, changes, seconds):
    timed = [(at * 1_000, measured(lag)) for at, lag in lags] + [(at * 1_000, changed()) for at in changes]
    history = two_members(sorted(timed, key=lambda pair: pair[0]), from_ms=0)
    assert lag.catch_up_seconds(history) == pytest.approx(seconds, nan_ok=True)


def test_messages_are_the_requests_of_all_kinds():
    history = two_members(messages={"Heartbeat": 40, "JoinGroup": 2})
    assert metrics.messages(history) == 42


# --- runs without a figure


@pytest.mark.parametrize(
    "metric",
    [
        stops.time_to_stable_seconds,
        stops.time_to_stable_seconds_max,
        balance.imbalance,
        balance.weighted_imbalance,
        lag.max_lag,
        lag.catch_up_seconds,
        stops.start_up_seconds,
        stops.capacity_lost,
        balance.optimality_gap,
        balance.weighted_optimality_gap,
    ],
)
def test_a_run_in_which_nothing_happened_has_no_such_figure(metric):
    assert isnan(metric(history_of(topics={"t": 4})))


BALANCE = [balance.imbalance, balance.weighted_imbalance, balance.optimality_gap]
BALANCE += [balance.weighted_optimality_gap]


@pytest.mark.parametrize("metric", BALANCE)
@pytest.mark.parametrize(
    "unsettled",
    [
        [(60_000, state("PreparingRebalance"))],
        [(60_000, stopped("a", "crashed"))],
        [(60_000, ev.ConsumerFailed(client="a", error="FENCED_INSTANCE_ID"))],
    ],
)
def test_a_run_that_does_not_end_at_rest_has_no_balance(metric, unsettled):
    history = two_members(
        (0, rates("t", 1.0, 1.0, 1.0, 1.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
        unsettled,
    )
    assert isnan(metric(history))


@pytest.mark.parametrize("timed", [[], [(0, rates("t", 0.0, 0.0, 0.0, 0.0))]])
def test_without_records_there_is_no_weighted_imbalance(timed):
    """Nobody said anything of rates, or they are zero."""
    history = two_members(timed, round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}))
    assert isnan(balance.weighted_imbalance(history))
    assert isnan(balance.weighted_optimality_gap(history))


def test_a_run_in_which_nothing_happened_counts_nothing():
    history = history_of(topics={"t": 4})
    counted = [metrics.rounds, balance.moved_partitions, balance.avoidable_moves, metrics.messages]
    counted += [stops.stopped_partition_seconds, lag.lag_record_seconds, lag.duplicate_records]
    counted += [stops.longest_stop_seconds, stops.unowned_partition_seconds]
    counted += [stops.double_owned_partition_seconds]
    assert [metric(history) for metric in counted] == [0] * 10


def test_the_lag_that_the_window_begins_with_counts():
    """The group rests at 1 s, with a lag of 90 records, which falls after a change."""
    history = two_members(
        (0, measured(90.0)),
        *round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
        (1_000, measured(90.0)),
        (2_000, changed()),
        (9_000, measured(10.0, max_lag=80.0)),
    )
    assert lag.max_lag(history) == 90


def test_a_partition_whose_replicas_have_no_racks_is_in_no_other_rack():
    owned = {("t", number): "a" for number in range(4)}
    rests = SimpleNamespace(
        last=SimpleNamespace(members=SimpleNamespace(clients=[0]), owner=None),
        replicas={"t": [("x", "y"), (), ("y",)]},
        racks={"a": "x"},
        clients=["a"],
        names=lambda _: owned,
    )
    assert balance.cross_rack_partitions(SimpleNamespace(rests=rests)) == 1
