"""The costs in time: partitions that stand still, and a group that does not rest."""

from itertools import pairwise
from math import nan

from rebalance_lab.traces.history import History


def stopped_partition_seconds(history: History) -> float:
    """Sum the time in which a partition of a subscribed topic had no working owner."""
    return history.stops.stopped_ms / 1_000


def longest_stop_seconds(history: History) -> float:
    """Return the longest time for which one partition had no working owner without a break."""
    return history.stops.longest_ms / 1_000


def capacity_lost(history: History) -> float:
    """Return the share of the produced records whose partition had no working owner then.

    Without records it is the share of the time of all partitions.
    """
    stops = history.stops
    if stops.records > 0:
        return stops.stopped_records / stops.records
    return stops.stopped_ms / stops.partition_ms if stops.partition_ms else nan


def unowned_partition_seconds(history: History) -> float:
    """Sum the time in which no member of the group had a claim to a partition of a subscribed topic."""
    return history.stops.unowned_ms / 1_000


def double_owned_partition_seconds(history: History) -> float:
    """Sum the time in which two or more consumers worked on a partition."""
    return history.stops.double_owned_ms / 1_000


def start_up_seconds(history: History) -> float:
    """Return the time until the group first rested with all consumers."""
    return nan if history.start_up_ms is None else history.start_up_ms / 1_000


def time_to_stable_seconds(history: History) -> float:
    """Return the mean time from a change to the end of the last round that follows it."""
    times = _times_to_stable(history)
    return sum(times) / len(times) / 1_000 if times else nan


def time_to_stable_seconds_max(history: History) -> float:
    """Return the longest time from a change to the end of the last round that follows it."""
    return max(_times_to_stable(history), default=nan) / 1_000


def _times_to_stable(history: History) -> list[int]:
    """Return a time for each change: to the last rest before the next change, or 0 if no round followed.

    If the next change comes before the group rests, or at the same time, both wait for the same rest.
    """
    times: list[int] = []
    waiting: list[int] = []
    changes = [at_ms for at_ms in history.change_ms if at_ms >= history.from_ms]
    bounds = [*changes, history.started.duration_ms + 1]
    for at_ms, until_ms in pairwise(bounds):
        waiting.append(at_ms)
        stable = [t for t in history.stable_ms if at_ms <= t < until_ms]
        if stable:
            times += [stable[-1] - since for since in waiting]
            waiting = []
        elif until_ms > at_ms and _state_at(history, until_ms) in history.family.at_rest:
            times += [0] * len(waiting)
            waiting = []
    return times + [history.started.duration_ms - since for since in waiting]


def _state_at(history: History, before_ms: int) -> str:
    state = ""
    for at_ms, after in history.states:
        if at_ms >= before_ms:
            break
        state = after
    return state
