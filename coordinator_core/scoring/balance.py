"""The balance of the last settled assignment, and the moves that balance needs."""

from collections import Counter
from collections.abc import Mapping
from itertools import zip_longest
from math import nan

from coordinator_core.model import TopicPartition
from coordinator_core.scoring.bounds import (
    fewest_moves,
    fewest_moves_in_balance,
    least_largest_load,
    least_sum_of_squares,
)
from coordinator_core.traces.history import History, Settled

ROUNDING = 1e-9
"""A smaller gap is a rounding error."""


def avoidable_moves(history: History) -> float:
    """Count the moves beyond the fewest possible from each settled assignment to the next, at its balance."""
    needed, before = 0, history.owners_before
    for after in history.settled:
        if after.from_ms > history.from_ms or not history.from_ms:
            if after.members:
                needed += _fewest_between(before, after)
            before = {**before, **after.owners}
    return history.moved - needed


def _fewest_between(before: Mapping[TopicPartition, str], after: Settled) -> int:
    """Return the fewest moves: exact at the best balance, else with loads from the least to the most."""
    partitions = [tp for tp in sorted(after.owners) if after.owners[tp] in after.members]
    if _gap(after) == 0:
        return fewest_moves_in_balance(before, _counts(after), after.members)
    loads = Counter(after.owners[tp] for tp in partitions)
    per_member = [loads[m] for m in after.members]
    return fewest_moves(before, partitions, after.members, (min(per_member), max(per_member)))


def _counts(settled: Settled) -> dict[str, int]:
    counts: dict[str, int] = {}
    for topic, number in settled.owners:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def _gap(settled: Settled) -> float:
    least = least_sum_of_squares(_counts(settled), settled.members)
    loads = Counter(settled.owners.values())
    return sum(load * load for load in loads.values()) / least - 1 if least else nan


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
    from_ms, until_ms = settled.from_ms, settled.until_ms
    if until_ms <= from_ms:
        return dict.fromkeys(settled.owners, nan)
    produced = {
        TopicPartition(topic, number): records
        for topic in dict.fromkeys(tp.topic for tp in settled.owners)
        for number, records in enumerate(_produced(history, topic, from_ms, until_ms))
    }
    return {tp: produced.get(tp, 0.0) / (until_ms - from_ms) for tp in settled.owners}


def _produced(history: History, topic: str, from_ms: int, until_ms: int) -> list[float]:
    """Return a thousand times the records produced to each partition of a topic in a time."""
    steps = history.rates.get(topic, [])
    ends = [*(at_ms for at_ms, _ in steps[1:]), until_ms][: len(steps)]
    produced: list[float] = []
    for (at_ms, rates), end_ms in zip(steps, ends, strict=True):
        overlap_ms = min(end_ms, until_ms) - max(at_ms, from_ms)
        if overlap_ms > 0:
            pairs = zip_longest(produced, rates, fillvalue=0.0)
            produced = [records + rate * overlap_ms for records, rate in pairs]
    return produced


def _rate_loads(settled: Settled, rates: Mapping[TopicPartition, float]) -> dict[str, float]:
    loads = dict.fromkeys(settled.members, 0.0)
    for tp, owner in settled.owners.items():
        if owner in loads:
            loads[owner] += rates[tp]
    return loads


def _max_over_mean(loads: list[float]) -> float:
    mean = sum(loads) / len(loads)
    return max(loads) / mean if mean > 0 else nan


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
