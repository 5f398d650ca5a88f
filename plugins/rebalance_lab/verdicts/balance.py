"""The balance of the last settled assignment, and the moves that balance needs."""

from collections import Counter
from math import nan

import numpy as np

from coordinator_core.assigning.flow.fractional import sums_at
from coordinator_core.model import NO_OWNER, Int32Array
from rebalance_lab.traces.history import History
from rebalance_lab.traces.ledger import Ledger
from rebalance_lab.traces.rests import FloatArray, Rest
from rebalance_lab.verdicts.bounds import (
    fewest_moves,
    fewest_moves_in_balance,
    fewest_moves_of_alike,
    largest_load_bound,
    least_sum_of_alike,
    least_sum_of_squares,
)
from rebalance_lab.verdicts.measuring import metric

ROUNDING = 1e-9
"""A smaller gap is a rounding error."""


@metric("moves", "partitions", headline=True, planned=True)
def moved_partitions(history: History) -> float:
    """The number of times a partition was given to another member than its last owner, by name."""
    return history.moved


@metric("moves", "partitions", planned=True)
def avoidable_moves(history: History) -> float:
    """The moves beyond the fewest from each settled assignment to one as balanced as the next."""
    rests = history.rests
    needed, before = 0, rests.before
    for after in rests.settled:
        if after.from_ms > rests.from_ms or not rests.from_ms:
            if len(after.members):
                needed += _fewest_between(rests, before, after)
            before = after.owner if after.is_whole else np.where(after.owner < 0, before, after.owner)
    return history.moved - needed


def _fewest_between(ledger: Ledger, before: Int32Array, after: Rest) -> int:
    """Return the fewest moves: exact at the best balance, else with loads from the least to the most."""
    loads = after.member_loads.tolist()
    within = min(loads), max(loads)
    if after.is_alike and after.is_whole and sum(loads) == len(after.owner):
        held = np.bincount(before + 1, minlength=len(after.loads) + 1)[1:]
        there = int(np.count_nonzero(before != NO_OWNER))
        return fewest_moves_of_alike(there, held[after.members.clients].tolist(), len(after.owner), within)
    named = {
        ledger.clients[m]: topics
        for m, topics in zip(after.members.clients, after.members.topics, strict=True)
    }
    owners = ledger.names(before)
    if _gap(after) == 0:
        return fewest_moves_in_balance(owners, after.sizes, named)
    # members without a coordinator may rest with partitions of topics that they have given up
    owner_of = {tp: m for tp, m in ledger.names(after.owner).items() if tp.topic in named.get(m, ())}
    counts = Counter(owner_of.values())
    within = min(counts[m] for m in named), max(counts[m] for m in named)
    return fewest_moves(owners, list(owner_of), named, within)


def _gap(rest: Rest) -> float:
    if rest.is_alike:
        least = least_sum_of_alike(sum(rest.sizes.values()), len(rest.members))
    else:
        least = least_sum_of_squares(rest.sizes, {str(n): t for n, t in enumerate(rest.members.topics)})
    return int(rest.loads @ rest.loads) / least - 1 if least else nan


@metric("balance", "ratio", planned=True)
def imbalance(history: History) -> float:
    """The most partitions of a member over the mean of all members, at the end."""
    rest = rest_at_end(history)
    return nan if rest is None else _max_over_mean(rest.member_loads.tolist())


@metric("balance", "ratio", headline=True, planned=True)
def weighted_imbalance(history: History) -> float:
    """The most records/s of a member over the mean of all members, at the end."""
    rest = rest_at_end(history)
    return nan if rest is None else _max_over_mean(_rate_loads(rest, rates_at_end(history, rest)))


@metric("balance", "ratio", planned=True)
def optimality_gap(history: History) -> float:
    """The sum of the squared partition counts of members at the end over the least sum, less one."""
    rest = rest_at_end(history)
    return nan if rest is None else _gap(rest)


@metric("balance", "ratio", planned=True)
def weighted_optimality_gap(history: History) -> float:
    """The most records/s of a member at the end over a lower bound of the least possible, less one."""
    rest = rest_at_end(history)
    if rest is None:
        return nan
    rates = rates_at_end(history, rest)
    owned = rest.owner != NO_OWNER
    bound = history.rests.traffic.once(
        (rest.from_ms, rest.until_ms, rest.members.topics, rest.is_whole or owned.tobytes()),
        lambda: largest_load_bound(rates * owned, rest.index, rest.members.topics),
    )
    if not bound > 0:
        return nan
    gap = max(_rate_loads(rest, rates)) / bound - 1
    return gap if gap > ROUNDING else 0.0


def rest_at_end(history: History | Ledger) -> Rest | None:
    """Return the assignment in force at the end, or None if the group has no members then."""
    rest = history.rests.last
    return rest if rest is not None and len(rest.members) else None


def rates_at_end(history: History | Ledger, rest: Rest) -> FloatArray:
    """Return the mean records/s of the partitions in the time in which an assignment was in force."""
    return history.rests.traffic.mean(rest.from_ms, rest.until_ms)


def _rate_loads(rest: Rest, rates: FloatArray) -> list[float]:
    loads = sums_at(rest.owner + 1, rates, len(rest.loads) + 1)[1:]
    listed: list[float] = loads[rest.members.clients].tolist()
    return listed


def _max_over_mean(loads: list[float]) -> float:
    mean = sum(loads) / len(loads)
    return max(loads) / mean if mean > 0 else nan


@metric("balance", "ratio", planned=True, optional=True)
def utilization(history: History | Ledger) -> float:
    """The most records/s of a member over what it can handle, at the end."""
    rest, rates = rest_at_end(history), history.rests.process_rates
    if rest is None:
        return nan
    loads = _rate_loads(rest, rates_at_end(history, rest))
    names = (history.rests.clients[number] for number in rest.members.clients.tolist())
    shares = (load / rates[name] for name, load in zip(names, loads, strict=True) if name in rates)
    return max(shares, default=nan)


@metric("balance", "partitions", headline=True, planned=True, optional=True)
def cross_rack_partitions(history: History) -> float:
    """The number of partitions at the end whose owner is in a rack without a replica of them.

    Partitions whose replicas have unknown racks do not count. NaN if no owner or no partition has a rack.
    """
    rests = history.rests
    rest = rests.last
    if rest is None or not rests.replicas or not rests.racks:
        return nan
    if not rests.racks.keys() & {rests.clients[m] for m in rest.members.clients}:
        return nan
    elsewhere = 0
    for (topic, number), owner in rests.names(rest.owner).items():
        replicas, rack = rests.replicas.get(topic, ()), rests.racks.get(owner)
        known = replicas[number] if number < len(replicas) else ()
        elsewhere += rack is not None and bool(known) and rack not in known
    return elsewhere
