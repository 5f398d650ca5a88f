"""The built-in metrics, in the order in which they are shown.

An entry point of the plugin group ``rebalance_lab``. A metric is a function of a `History`. It returns NaN if
the run has no such figure, for example without a change or without a subscription.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
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


@hookimpl
def metrics() -> Iterable[MetricSpec]:
    """Return the metrics of this package."""
    return [
        MetricSpec("rounds", "", rounds, doc="Completed generations.", planned=True),
        MetricSpec(
            "moved_partitions",
            "",
            moved_partitions,
            doc="Given to another than the last owner.",
            planned=True,
        ),
        MetricSpec(
            "avoidable_moves", "", avoidable_moves, doc="Moves beyond the fewest possible.", planned=True
        ),
        MetricSpec(
            "stopped_partition_seconds", "s", stopped_partition_seconds, doc="Partitions without a worker."
        ),
        MetricSpec("time_to_stable_seconds", "s", time_to_stable_seconds, doc="From a change, on average."),
        MetricSpec(
            "time_to_stable_seconds_max", "s", time_to_stable_seconds_max, doc="The longest of those."
        ),
        MetricSpec(
            "imbalance", "", imbalance, doc="Most over mean partitions of a member, at the end.", planned=True
        ),
        MetricSpec("weighted_imbalance", "", weighted_imbalance, doc="The same by records/s.", planned=True),
        MetricSpec("max_lag", "records", max_lag, doc="Most records waiting at one time."),
        MetricSpec("lag_record_seconds", "records·s", lag_record_seconds, doc="The lag summed over time."),
        MetricSpec("duplicate_records", "records", duplicate_records, doc="Handled again after a move."),
        MetricSpec("messages", "", messages, doc="Requests of the protocol."),
        MetricSpec(
            "optimality_gap",
            "",
            optimality_gap,
            doc="Balance at the end against the best possible.",
            planned=True,
        ),
        MetricSpec(
            "weighted_optimality_gap",
            "",
            weighted_optimality_gap,
            doc="Heaviest member at the end, by records/s, against a lower bound.",
            planned=True,
        ),
        MetricSpec(
            "cross_rack_partitions",
            "",
            cross_rack_partitions,
            doc="Owned at the end by a member in whose rack they have no replica.",
            planned=True,
            optional=True,
        ),
    ]
