"""The built-in metrics, in the order in which they are shown.

An entry point of the plugin group ``rebalance_lab``. A metric is a function of a `History`. It returns NaN if
the run has no such figure, for example without a change or without a subscription.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from rebalance_lab.traces.causes import CAUSES, PARTS, WHOLE
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.balance import (
    avoidable_moves,
    cross_rack_partitions,
    imbalance,
    optimality_gap,
    utilization,
    weighted_imbalance,
    weighted_optimality_gap,
)
from rebalance_lab.verdicts.lag import (
    catch_up_seconds,
    duplicate_records,
    lag_at_end,
    lag_record_seconds,
    max_lag,
)
from rebalance_lab.verdicts.stops import (
    capacity_lost,
    double_owned_partition_seconds,
    longest_stop_seconds,
    start_up_seconds,
    stopped_partition_seconds,
    time_to_stable_seconds,
    time_to_stable_seconds_max,
    unowned_partition_seconds,
)


def rounds(history: History) -> float:
    """Count the completed generations: the times at which the group came to rest."""
    return history.rounds


def moved_partitions(history: History) -> float:
    """Count the assignments to another consumer, by name, than the last owner."""
    return history.moved


def messages(history: History) -> float:
    """Return the number of requests of all consumers in the whole run."""
    return sum(history.ended.messages.values())


def notifications(history: History) -> float:
    """Count the notices of changes that servers sent to members."""
    return history.counted.get(ev.Notified, 0)


def superfluous_rebalances(history: History) -> float:
    """Count the rebalances of single members that changed nothing."""
    return history.superfluous


def _stopped(name: str, causes: Collection[str], doc: str) -> MetricSpec:
    return MetricSpec(
        f"stopped_{name}_partition_seconds",
        "partition seconds",
        lambda history: sum(history.stops.causes_ms[cause] for cause in causes) / 1_000,
        group="stops",
        doc=doc,
    )


def _parts_of_stopped_time() -> Iterator[MetricSpec]:
    """Yield a metric for each part, then one for each cause in a part that has several."""
    for part, causes in PARTS.items():
        docs = [CAUSES[cause].doc for cause in causes]
        sentences = WHOLE[part].doc if part in WHOLE else "; or ".join(docs)
        yield _stopped(part, causes, f"The part of stopped_partition_seconds in which {sentences}.")
        for cause in causes if len(causes) > 1 else ():
            if cause != part:
                doc = f"The part of stopped_{part}_partition_seconds in which {CAUSES[cause].doc}."
                yield _stopped(cause, (cause,), doc)


def _metric(
    compute: Callable[[History], float],
    group: str,
    unit: str,
    doc: str,
    *,
    headline: bool = False,
    planned: bool = False,
    optional: bool = False,
) -> MetricSpec:
    return MetricSpec(
        compute.__name__,
        unit,
        compute,
        group=group,
        headline=headline,
        planned=planned,
        rests=planned,
        optional=optional,
        doc=doc,
    )


@hookimpl
def metrics() -> Iterable[MetricSpec]:
    """Return the metrics of this package."""
    return [
        _metric(
            stopped_partition_seconds,
            "stops",
            "partition seconds",
            "The time in which partitions of subscribed topics had no working owner, summed over partitions."
            " Topics are still subscribed to when their consumers have crashed, or restart.",
            headline=True,
        ),
        *_parts_of_stopped_time(),
        _metric(
            longest_stop_seconds,
            "stops",
            "s",
            "The longest time for which one partition of a subscribed topic had no working owner.",
            headline=True,
        ),
        _metric(
            capacity_lost,
            "stops",
            "ratio",
            "The share of the produced records whose partition was stopped then; of time if there are none.",
        ),
        _metric(
            unowned_partition_seconds,
            "stops",
            "partition seconds",
            "The time in which no member of the group had a claim to a partition, summed over partitions.",
        ),
        _metric(
            double_owned_partition_seconds,
            "stops",
            "partition seconds",
            "The time in which two or more consumers worked on a partition, summed over partitions.",
        ),
        _metric(
            time_to_stable_seconds,
            "stops",
            "s",
            "The mean time from a change to the last rest of the group before the next change.",
        ),
        _metric(
            time_to_stable_seconds_max,
            "stops",
            "s",
            "The longest time from a change to the last rest of the group before the next change.",
        ),
        _metric(
            start_up_seconds,
            "stops",
            "s",
            "The time until the group first rested with all consumers that ran.",
        ),
        _metric(
            moved_partitions,
            "moves",
            "partitions",
            "The number of times a partition was given to another member than its last owner, by name.",
            planned=True,
            headline=True,
        ),
        _metric(
            avoidable_moves,
            "moves",
            "partitions",
            "The moves beyond the fewest from each settled assignment to one as balanced as the next.",
            planned=True,
        ),
        _metric(
            max_lag,
            "lag",
            "records",
            "The most records of all partitions together that were produced and not yet handled.",
            headline=True,
        ),
        _metric(
            lag_at_end,
            "lag",
            "records",
            "The records of all partitions together that were produced and not yet handled at the end.",
        ),
        _metric(
            lag_record_seconds,
            "lag",
            "record seconds",
            "The integral over time of the records that were produced and not yet handled.",
        ),
        _metric(
            catch_up_seconds,
            "lag",
            "s",
            "The longest time from a change until the lag was what it was before, if it was at the end.",
        ),
        _metric(
            duplicate_records,
            "lag",
            "records",
            "The number of records that were handled again after a move or a crash.",
            headline=True,
        ),
        _metric(
            imbalance,
            "balance",
            "ratio",
            "The most partitions of a member over the mean of all members, at the end.",
            planned=True,
        ),
        _metric(
            weighted_imbalance,
            "balance",
            "ratio",
            "The most records/s of a member over the mean of all members, at the end.",
            planned=True,
            headline=True,
        ),
        _metric(
            optimality_gap,
            "balance",
            "ratio",
            "The sum of the squared partition counts of members at the end over the least sum, less one.",
            planned=True,
        ),
        _metric(
            weighted_optimality_gap,
            "balance",
            "ratio",
            "The most records/s of a member at the end over a lower bound of the least possible, less one.",
            planned=True,
        ),
        _metric(
            utilization,
            "balance",
            "ratio",
            "The most records/s of a member over what it can handle, at the end.",
            optional=True,
        ),
        _metric(
            cross_rack_partitions,
            "balance",
            "partitions",
            "The number of partitions at the end whose owner is in a rack without a replica of them.",
            planned=True,
            optional=True,
        ),
        _metric(
            rounds,
            "cost",
            "rounds",
            "The number of rebalances that were completed: the times at which the group came to rest.",
            planned=True,
            headline=True,
        ),
        _metric(
            messages,
            "cost",
            "requests",
            "The number of requests that all consumers sent to brokers and other servers in the whole run.",
        ),
        _metric(
            notifications,
            "cost",
            "notices",
            "The number of notices of changes that servers sent to members.",
        ),
        _metric(
            superfluous_rebalances,
            "cost",
            "rebalances",
            "The number of rebalances of single members, each by itself, after which its share was the same.",
        ),
    ]
