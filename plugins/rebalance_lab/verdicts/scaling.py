"""How many more members the load at the end of a run takes under its assignor, and what each number gives."""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from math import ceil, nan
from statistics import median

import numpy as np

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import settled
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.errors import RebalanceLabError
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from rebalance_lab.traces.history import History
from rebalance_lab.traces.ledger import Ledger
from rebalance_lab.traces.rests import FloatArray, Rest
from rebalance_lab.verdicts.balance import rates_at_end, rest_at_end, utilization
from rebalance_lab.verdicts.measuring import metric

COMFORTABLE_LOAD = 0.7
"""The load of the busiest member, as a share of what it can handle, that leaves enough headroom."""

EXTRA_MEMBERS = 2
"""Members that may come besides, so that a number is not enough by luck."""

SINGLE_STEPS = 16
"""So many numbers of members are tried one after the other, and those that follow in steps of a tenth."""


@metric("balance", "members", planned=True, optional=True)
def missing_members(history: History | Ledger) -> float:
    """The fewest members more with which (and two besides) none gets more than it can handle, at the end.

    The assignor of the run computes the assignment of each number, from the owners at the end, up to a member
    for each partition. With one or two members besides, a member may have too much again: then the number is
    not enough. NaN if no number is, or if a member has no limit. After `SINGLE_STEPS` numbers
    that are not enough, it is up to a tenth greater than the fewest.
    """
    return _sizes(history).enough(1.0)


@metric("balance", "members", planned=True, optional=True)
def members_to_ease(history: History | Ledger) -> float:
    """The fewest members more with which (and two besides) none gets more than 70 % of it, at the end."""
    return _sizes(history).enough(COMFORTABLE_LOAD)


def _limits(history: History | Ledger, rest: Rest) -> list[float]:
    """Return what each member can handle, or nothing if one has no limit."""
    names = (history.rests.clients[number] for number in rest.members.clients.tolist())
    limits = [history.rests.process_rates.get(name, 0.0) for name in names]
    return limits if all(limits) else []


class _Sizes:
    """The assignment at the end of a run with other numbers of members, each computed once."""

    def __init__(self, history: History | Ledger) -> None:
        self._history = history
        self._rest, self._now = rest_at_end(history), utilization(history)
        self._loads: dict[int, float] = {}
        if self._rest is not None:
            self._limits, self._rates = _limits(history, self._rest), rates_at_end(history, self._rest)
            self._most = len(self._rest.owner) - len(self._rest.members)

    def enough(self, share: float) -> float:
        """Return the fewest members more with which, and two besides, none has more than a share of it."""
        if self._rest is None or not self._now > share:
            return nan if self._rest is None or np.isnan(self._now) else 0.0
        if not self._limits or self._rates.max() > share * max(self._limits):
            return nan
        try:
            return self._fewest(share)
        except RebalanceLabError:
            return nan

    def _fewest(self, share: float) -> float:
        if self._now <= share:
            return 0.0
        too_much = float(self._rates.sum()) - share * sum(self._limits)
        first = max(1, ceil(too_much / (share * median(self._limits))))
        for more in _numbers(first, self._most):
            sizes = range(more, min(more + EXTRA_MEMBERS, self._most) + 1)
            if all(self._busiest(size) <= share for size in sizes):
                return float(more)
        return nan

    def _busiest(self, more: int) -> float:
        if more not in self._loads:
            assert self._rest is not None
            group = _group(self._rest, self._rates, self._limits, more)
            self._loads[more] = _busiest(self._assignor, group) if more else self._now
        return self._loads[more]

    @cached_property
    def _assignor(self) -> Assignor:
        return self._history.rests.new_assignor()


@lru_cache(maxsize=1)  # the metrics of a run follow one another
def _sizes(history: History | Ledger) -> _Sizes:
    return _Sizes(history)


def _numbers(first: int, most: int) -> Iterator[int]:
    """Yield the numbers of members to try, up to one for each partition."""
    more = first
    while more <= most:
        yield more
        more += 1 if more < first + SINGLE_STEPS else max(1, more // 10)


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
