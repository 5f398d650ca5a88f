"""How many more members the load at the end of a run takes, under the assignor of the group."""

from collections.abc import Iterator
from functools import cache
from math import ceil, nan
from statistics import fmean, median

import numpy as np

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import settled
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.errors import RebalanceLabError
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.traces.history import History
from rebalance_lab.traces.rests import FloatArray, Rest
from rebalance_lab.verdicts.balance import rates_at_end, rest_at_end, utilization
from rebalance_lab.verdicts.measuring import metric

AT_EASE = 0.7
"""The load of the busiest member, as a share of what it can handle, up to which members are at ease."""

BESIDES = 2
"""Members that may come besides, so that a number is not enough by luck."""

_ONE_BY_ONE = 16
"""So many numbers of members are tried one after the other, and those that follow in steps of a tenth."""


@metric("balance", "members", optional=True)
def missing_members(history: History) -> float:
    """The fewest members more with which (and two besides) none gets more than it can handle, at the end.

    The assignor of the run computes the assignment of each number, from the owners at the end, up to a member
    for each partition. With one or two members besides, a member may have too much again: then the number is
    not enough. NaN if no number is, or if a member has no limit. After `_ONE_BY_ONE` numbers
    that are not enough, it is up to a tenth greater than the fewest.
    """
    return _missing(history, 1.0)


@metric("balance", "members", optional=True)
def members_to_ease(history: History) -> float:
    """The fewest members more with which (and two besides) none gets more than 70 % of it, at the end."""
    return _missing(history, AT_EASE)


@metric("balance", "partitions", optional=True)
def hot_partitions(history: History) -> float:
    """The number of partitions with more records/s than any member can handle, at the end."""
    rest, rates = rest_at_end(history), history.process_rates
    if rest is None or not rates:
        return nan
    return float(np.count_nonzero(rates_at_end(history, rest) > max(rates.values())))


@metric("balance", "members", optional=True)
def load_in_members(history: History) -> float:
    """The records/s of all partitions over what a member can handle, in the mean, at the end."""
    rest = rest_at_end(history)
    limits = [] if rest is None else _limits(history, rest)
    if rest is None or not limits:
        return nan
    return float(rates_at_end(history, rest).sum()) / fmean(limits)


def _limits(history: History, rest: Rest) -> list[float]:
    """Return what each member can handle, or nothing if one has no limit."""
    names = (history.rests.clients[number] for number in rest.members.clients.tolist())
    limits = [history.process_rates.get(name, 0.0) for name in names]
    return limits if all(limits) else []


def _missing(history: History, share: float) -> float:
    rest, now = rest_at_end(history), utilization(history)
    if rest is None or not now > share:
        return nan if rest is None or np.isnan(now) else 0.0
    limits, rates = _limits(history, rest), rates_at_end(history, rest)
    if not limits or rates.max() > share * max(limits):
        return nan
    first = max(1, ceil((float(rates.sum()) - share * sum(limits)) / (share * median(limits))))
    most = len(rest.owner) - len(rest.members)
    try:
        assignor = _assignor(history, history.registry or default_registry())

        @cache
        def is_enough(more: int) -> bool:
            return _busiest(assignor, _group(rest, rates, limits, more)) <= share

        for more in _numbers(first, most):
            if all(map(is_enough, range(more, min(more + BESIDES, most) + 1))):
                return float(more)
    except RebalanceLabError:
        return nan
    return nan


def _numbers(first: int, most: int) -> Iterator[int]:
    """Yield the numbers of members to try, up to one for each partition."""
    more = first
    while more <= most:
        yield more
        more += 1 if more < first + _ONE_BY_ONE else max(1, more // 10)


def _assignor(history: History, registry: Registry) -> Assignor:
    return registry.build(registry.strategy(history.started.strategy))


def _group(rest: Rest, rates: FloatArray, limits: list[float], more: int) -> Problem:
    """Return the group of an assignment with more members, each like the first, and what they can handle."""
    index, counts = rest.index, rest.index.counts
    offsets = dict(zip(index.topics, index.offsets.tolist(), strict=False))
    topics = {
        topic: TopicInfo(count, weights=tuple(rates[offsets[topic] : offsets[topic] + count].tolist()))
        for topic, count in counts.items()
    }
    members = {
        f"member-{number}": Subscription(
            listed,
            Partitions.dense(index, np.flatnonzero(rest.owner == client).astype(np.int32)),
            generation=1,
            capacity=limit,
        )
        for number, (client, listed, limit) in enumerate(
            zip(rest.members.clients.tolist(), rest.members.topics, limits, strict=True)
        )
    }
    added = Subscription(rest.members.topics[0], capacity=median(limits))
    members |= {f"more-{number}": added for number in range(more)}
    return build_problem(Cluster(topics), GroupSubscription(members))


def _busiest(assignor: Assignor, problem: Problem) -> float:
    """Return the load of the busiest member when the group rests, as a share of what it can handle."""
    owner = settled(assignor, problem).owners(problem.index, problem.members)
    assert problem.weights is not None
    assert problem.capacity is not None
    loads = np.bincount(owner + 1, problem.weights, len(problem.members) + 1)[1:]
    return float((loads / problem.capacity).max())
