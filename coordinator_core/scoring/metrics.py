"""The built-in metrics, in the order in which they are shown.

An entry point of the plugin group ``rebalance_lab``. A metric is a function of a `History`. It returns NaN if
the run has no such figure, for example without a change or without a subscription.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from math import nan

from coordinator_core.model import TopicPartition
from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.scoring.bounds import (
    fewest_moves,
    fewest_moves_in_balance,
    least_largest_load,
    least_sum_of_squares,
)
from coordinator_core.traces.history import History, Settled

ROUNDING = 1e-9
"""A smaller gap is a rounding error."""


def rounds(history: History) -> float:
    """Count the completed generations: the times at which the group came to rest."""
    return len(history.stable_ms)


def moved_partitions(history: History) -> float:
    """Count the assignments to another consumer, by name, than the last owner."""
    return history.moved


def avoidable_moves(history: History) -> float:
    """Count the moves beyond the fewest possible from each settled assignment to the next, at its balance."""
    needed = 0
    for before, after in zip(history.settled, history.settled[1:], strict=False):
        if after.members:
            needed += _fewest_between(before, after)
    return history.moved - needed


def _fewest_between(before: Settled, after: Settled) -> int:
    """Return the fewest moves: exact at the best balance, else with loads from the least to the most."""
    partitions = [tp for tp in sorted(after.owners) if after.owners[tp] in after.members]
    if _gap(after) == 0:
        return fewest_moves_in_balance(before.owners, _counts(after), after.members)
    loads = Counter(after.owners[tp] for tp in partitions)
    per_member = [loads[m] for m in after.members]
    return fewest_moves(before.owners, partitions, after.members, (min(per_member), max(per_member)))


def _counts(settled: Settled) -> dict[str, int]:
    counts: dict[str, int] = {}
    for topic, number in settled.owners:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def _gap(settled: Settled) -> float:
    least = least_sum_of_squares(_counts(settled), settled.members)
    loads = Counter(settled.owners.values())
    return sum(load * load for load in loads.values()) / least - 1 if least else nan


def stopped_partition_seconds(history: History) -> float:
    """Sum the time in which a partition of a subscribed topic had no working owner."""
    return history.stopped_partition_ms / 1_000


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
    bounds = [*history.change_ms, history.started.duration_ms + 1]
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


def imbalance(history: History) -> float:
    """Return the most partitions of a member over the mean, in the assignment in force at the end."""
    settled = history.last_settled
    if settled is None or not settled.members:
        return nan
    loads = Counter(settled.owners.values())
    return _max_over_mean([float(loads[m]) for m in settled.members])


def weighted_imbalance(history: History) -> float:
    """Return the imbalance by records/s, the mean of the time in which the assignment was in force."""
    settled = history.last_settled
    if settled is None or not settled.members:
        return nan
    return _max_over_mean(list(_rate_loads(settled, _mean_rates(history, settled)).values()))


def weighted_optimality_gap(history: History) -> float:
    """Return the most records/s of a member at the end over the least that is possible, less one."""
    settled = history.last_settled
    if settled is None or not settled.members:
        return nan
    rates = _mean_rates(history, settled)
    bound = least_largest_load(rates, settled.members)
    if not bound > 0:
        return nan
    gap = max(_rate_loads(settled, rates).values()) / bound - 1
    return gap if gap > ROUNDING else 0.0


def _mean_rates(history: History, settled: Settled) -> dict[TopicPartition, float]:
    return {tp: _mean_rate(history, tp, settled.from_ms, settled.until_ms) for tp in settled.owners}


def _rate_loads(settled: Settled, rates: Mapping[TopicPartition, float]) -> dict[str, float]:
    loads = dict.fromkeys(settled.members, 0.0)
    for tp, owner in settled.owners.items():
        if owner in loads:
            loads[owner] += rates[tp]
    return loads


def _mean_rate(history: History, tp: TopicPartition, from_ms: int, until_ms: int) -> float:
    steps = history.rates.get(tp.topic, [])
    ends = [*(at_ms for at_ms, _ in steps[1:]), until_ms][: len(steps)]
    total = 0.0
    for (at_ms, rates), end_ms in zip(steps, ends, strict=True):
        overlap = min(end_ms, until_ms) - max(at_ms, from_ms)
        if overlap > 0 and tp.partition < len(rates):
            total += rates[tp.partition] * overlap
    return total / (until_ms - from_ms) if until_ms > from_ms else nan


def _max_over_mean(loads: list[float]) -> float:
    mean = sum(loads) / len(loads)
    return max(loads) / mean if mean > 0 else nan


def max_lag(history: History) -> float:
    """Return the most records that were produced and not yet handled, over all partitions."""
    return max((measured.max_lag for measured in history.lags), default=nan)


def lag_record_seconds(history: History) -> float:
    """Return the integral of the lag over time."""
    return sum(measured.lag_record_seconds for measured in history.lags)


def duplicate_records(history: History) -> float:
    """Return the number of records that were handled again after a move or a crash."""
    return sum(measured.duplicates for measured in history.lags)


def messages(history: History) -> float:
    """Return the number of requests of all consumers."""
    return sum(history.ended.messages.values())


def optimality_gap(history: History) -> float:
    """Return the sum of squares of loads at the end over the least possible sum, less one."""
    settled = history.last_settled
    if settled is None or not settled.members:
        return nan
    return _gap(settled)


def cross_rack_partitions(history: History) -> float:
    """Count the partitions at the end whose owner has a rack without a replica of them.

    Partitions whose replicas have unknown racks do not count. NaN if no owner or no partition has a rack.
    """
    settled = history.last_settled
    replicas = history.started.racks
    if settled is None or not replicas or not history.racks.keys() & settled.members.keys():
        return nan
    return sum(_is_elsewhere(tp, history.racks.get(owner), replicas) for tp, owner in settled.owners.items())


def _is_elsewhere(
    tp: TopicPartition, rack: str | None, replicas: Mapping[str, tuple[tuple[str, ...], ...]]
) -> bool:
    racks = replicas.get(tp.topic, ())
    known = racks[tp.partition] if tp.partition < len(racks) else ()
    return rack is not None and bool(known) and rack not in known


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
        optional=optional,
        doc=doc,
    )


@hookimpl
def metrics() -> Iterable[MetricSpec]:
    """Return the metrics of this package."""
    return [
        _metric(
            rounds,
            "cost",
            "rounds",
            "The number of rebalances that were completed: the times at which the group came to rest.",
            planned=True,
            headline=True,
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
            stopped_partition_seconds,
            "stops",
            "partition seconds",
            "The time in which partitions of subscribed topics had no working owner, summed over partitions.",
            headline=True,
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
            max_lag,
            "lag",
            "records",
            "The most records of all partitions together that were produced and not yet handled.",
            headline=True,
        ),
        _metric(
            lag_record_seconds,
            "lag",
            "record seconds",
            "The integral over time of the records that were produced and not yet handled.",
        ),
        _metric(
            duplicate_records,
            "lag",
            "records",
            "The number of records that were handled again after a move or a crash.",
        ),
        _metric(messages, "cost", "requests", "The number of requests that all consumers sent to brokers."),
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
            cross_rack_partitions,
            "balance",
            "partitions",
            "The number of partitions at the end whose owner is in a rack without a replica of them.",
            planned=True,
            optional=True,
        ),
    ]
