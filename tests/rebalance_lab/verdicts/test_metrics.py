"""The metrics of the contract, those of rounds and messages, and runs without figures."""

from math import isnan

import pytest

from coordinator_core.registry.hookspecs import METRIC_GROUPS
from rebalance_lab.verdicts import balance, lag, metrics, stops
from tests.rebalance_lab.traces.traces import history_of, round_at, state, two_members

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
    "moved_partitions",
    "avoidable_moves",
    "max_lag",
    "lag_at_end",
    "lag_record_seconds",
    "duplicate_records",
    "imbalance",
    "weighted_imbalance",
    "optimality_gap",
    "weighted_optimality_gap",
    "utilization",
    "cross_rack_partitions",
    "missing_members",
    "members_to_ease",
    "rounds",
    "messages",
]


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
    assert 4 <= sum(metric.headline and not metric.optional for metric in metrics.metrics()) <= 7


def test_a_round_counts_when_it_is_completed():
    history = two_members(
        round_at(1_000, 1, {"a": {"t": [0, 1, 2, 3]}}),
        round_at(5_000, 2, {"a": {"t": [0, 1, 2, 3]}}),
        (9_000, state("PreparingRebalance")),
        from_ms=0,
    )
    assert metrics.rounds(history) == 2


def test_messages_are_the_requests_of_all_kinds():
    history = two_members(messages={"Heartbeat": 40, "JoinGroup": 2})
    assert metrics.messages(history) == 42


@pytest.mark.parametrize(
    "metric",
    [
        stops.time_to_stable_seconds,
        stops.time_to_stable_seconds_max,
        balance.imbalance,
        balance.weighted_imbalance,
        lag.max_lag,
        stops.capacity_lost,
        balance.optimality_gap,
        balance.weighted_optimality_gap,
    ],
)
def test_a_run_in_which_nothing_happened_has_no_such_figure(metric):
    assert isnan(metric(history_of(topics={"t": 4})))


def test_a_run_in_which_nothing_happened_counts_nothing():
    history = history_of(topics={"t": 4})
    counted = [metrics.rounds, balance.moved_partitions, balance.avoidable_moves, metrics.messages]
    counted += [stops.stopped_partition_seconds, lag.lag_record_seconds, lag.duplicate_records]
    counted += [stops.longest_stop_seconds, stops.unowned_partition_seconds]
    counted += [stops.double_owned_partition_seconds]
    assert [metric(history) for metric in counted] == [0] * 10
