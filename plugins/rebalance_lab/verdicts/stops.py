"""The costs in time: partitions that stand still, and a group that does not rest."""

from collections.abc import Collection
from itertools import pairwise
from math import nan

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.traces.causes import CAUSES, PARTS, WHOLE
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.measuring import DEFINED, STOPS, metric
from rebalance_lab.verdicts.reasons import metric_of


@metric("stops", "partition seconds", headline=True)
def stopped_partition_seconds(history: History) -> float:
    """The time in which partitions of subscribed topics had no working owner, summed over partitions.
    Topics are still subscribed to when their consumers have crashed, or restart.
    """
    return history.stops.stopped_ms / 1_000


def _define_part(name: str, causes: Collection[str], whole: str, while_: str) -> None:
    DEFINED.append(
        MetricSpec(
            metric_of(name),
            "partition seconds",
            lambda history: sum(history.stops.causes_ms[cause] for cause in causes) / 1_000,
            group=STOPS,
            part_of=whole,
            doc=f"The part of {whole} in which {while_}.",
        )
    )


def _define_parts() -> None:
    """Define a metric for each part of the stopped time, and for each cause in a part that has several."""
    for part, causes in PARTS.items():
        docs = [CAUSES[cause].doc for cause in causes]
        sentences = WHOLE[part].doc if part in WHOLE else "; or ".join(docs)
        _define_part(part, causes, stopped_partition_seconds.__name__, sentences)
        for cause in causes if len(causes) > 1 else ():
            if cause != part:
                _define_part(cause, (cause,), metric_of(part), CAUSES[cause].doc)


_define_parts()


@metric("stops", "s", headline=True)
def longest_stop_seconds(history: History) -> float:
    """The longest time for which one partition of a subscribed topic had no working owner."""
    return history.stops.longest_ms / 1_000


@metric("stops", "ratio")
def capacity_lost(history: History) -> float:
    """The share of the produced records whose partition was stopped then; of time if there are none.

    Without records it is the share of the time of all partitions.
    """
    stops = history.stops
    if stops.records > 0:
        return stops.stopped_records / stops.records
    return stops.stopped_ms / stops.partition_ms if stops.partition_ms else nan


@metric("stops", "partition seconds")
def unowned_partition_seconds(history: History) -> float:
    """The time in which no member of the group had a claim to a partition, summed over partitions."""
    return history.stops.unowned_ms / 1_000


@metric("stops", "partition seconds")
def double_owned_partition_seconds(history: History) -> float:
    """The time in which two or more consumers worked on a partition, summed over partitions."""
    return history.stops.double_owned_ms / 1_000


@metric("stops", "s")
def time_to_stable_seconds(history: History) -> float:
    """The mean time from a change to the last rest of the group before the next change."""
    times = _times_to_stable(history)
    return sum(times) / len(times) / 1_000 if times else nan


@metric("stops", "s")
def time_to_stable_seconds_max(history: History) -> float:
    """The longest time from a change to the last rest of the group before the next change."""
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
