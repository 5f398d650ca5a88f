"""The load in the window of a run: records that were not yet handled, and records that were handled again."""

from math import isnan, nan

from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.measuring import metric

SLACK_RECORDS = 1.0
"""A lag that is higher by no more than this is not higher."""


@metric("lag", "records", headline=True)
def max_lag(history: History) -> float:
    """The most records of all partitions together that were produced and not yet handled."""
    if not history.lags:
        return nan
    return max(history.lag_before, *(lag.measured.max_lag for lag in history.lags))


@metric("lag", "records")
def lag_at_end(history: History) -> float:
    """The records of all partitions together that were produced and not yet handled at the end."""
    return history.lags[-1].measured.lag if history.lags else nan


def least_left(most: float) -> float:
    """Return the lag at the end of a run above which it has not come down, if it was ``most`` at most."""
    return max(most / 2, SLACK_RECORDS)


def least_twice(most: float) -> float:
    """Return how many more records must be handled twice to be a price, if the lag was ``most`` at most."""
    return 0.0 if isnan(most) else most / 10


@metric("lag", "record seconds")
def lag_record_seconds(history: History) -> float:
    """The integral over time of the records that were produced and not yet handled."""
    return sum(lag.measured.lag_record_seconds for lag in history.lags)


@metric("lag", "records", headline=True)
def duplicate_records(history: History) -> float:
    """The number of records that were handled again after a move or a crash."""
    return sum(lag.measured.duplicates for lag in history.lags)
