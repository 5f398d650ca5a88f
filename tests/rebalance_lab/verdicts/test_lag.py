"""Metrics of load, on traces written by hand with the figures worked out beside them."""

import pytest

from rebalance_lab.verdicts import lag
from tests.rebalance_lab.traces.traces import changed, measured, round_at, two_members

SHARED = round_at(2_500, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})


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
