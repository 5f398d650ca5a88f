"""The load in the window of a run: records that were not yet handled, and records that were handled again."""

from math import inf, isnan, nan

from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.measuring import metric

SLACK, SLACK_RECORDS = 0.01, 1.0
"""The lag is what it was before if it is not higher by more than both."""


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


@metric("lag", "s")
def catch_up_seconds(history: History) -> float:
    """The longest time from a change until the lag was what it was before, if it was at the end.

    A change that comes before the group has caught up with the last one belongs to it: both are caught up
    with when the lag is what it was before the first. NaN without a change, and if the lag is higher at the
    end.
    """
    changes = [(at_ms, True, 0.0) for at_ms in history.change_ms if at_ms >= history.from_ms]
    if not changes or not history.lags:
        return nan
    measures = [(lag.at_ms, False, lag.measured.lag) for lag in history.lags]
    longest, since_ms, level, is_over = 0.0, 0, inf, False
    last_ms, last = history.from_ms, history.lag_before
    for at_ms, is_change, lag in sorted([*measures, *changes]):
        if is_change:
            if not is_over:
                since_ms, level = at_ms, last + max(last * SLACK, SLACK_RECORDS)
            continue
        if is_over and lag <= level:
            back_ms = last_ms + (at_ms - last_ms) * (last - level) / (last - lag)
            longest = max(longest, back_ms - since_ms)
        is_over = lag > level
        last_ms, last = at_ms, lag
    return nan if is_over else longest / 1_000


@metric("lag", "records", headline=True)
def duplicate_records(history: History) -> float:
    """The number of records that were handled again after a move or a crash."""
    return sum(lag.measured.duplicates for lag in history.lags)
