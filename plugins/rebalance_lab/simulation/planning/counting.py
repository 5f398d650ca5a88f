"""Assignors that only count partitions, and their results for many groups."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from coordinator_core.assigning.assignor import Capability, is_cooperative
from coordinator_core.assigning.problem import Claimed, Problem, build_problem
from coordinator_core.java import java_order
from coordinator_core.java.hash_maps import hash_order
from coordinator_core.model import NO_GENERATION, NO_OWNER, Cluster, GroupSubscription, Int32Array
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario

SMALL = 256
"""The most partitions of a group whose results are kept."""

MOST = 20_000
"""The most results that are kept."""

_EVENTS = frozenset(
    (
        "add_partitions",
        "calm",
        "coordinator_failover",
        "crash",
        "cut",
        "freeze",
        "join",
        "leave",
        "pause",
        "remove_member",
        "restart",
        "rolling_restart",
        "subscribe",
    )
)
"""The scenario events that neither create nor delete a topic, and whose rounds depend on no assignment."""


Claims: TypeAlias = Mapping[int, Int32Array]
"""The claims of members by their generation: int32[P], the member that claims each partition, or -1."""

_NOTHING: Int32Array = np.zeros(0, dtype=np.int32)


class Counting(NamedTuple):
    """A strategy whose assignor only counts partitions. Two fields are those of its `AssignorSpec`."""

    strategy: Strategy
    owners: Callable[[Problem], Int32Array]
    cooperative: bool
    sticky: bool
    by_names: bool


def counting(strategy: Strategy, registry: Registry) -> Counting | None:
    """Return the record of a strategy of which `planned_ledgers` can have ledgers, or None."""
    spec = registry.assignors().get(strategy.assignor)
    if spec is None or spec.owners is None or strategy.factory is not None:
        return None
    if strategy.arguments or strategy.wrappers or strategy.provider or strategy.delay_ms is not None:
        return None
    if strategy.protocol != DEFAULT_PROTOCOL:
        return None
    assignor = registry.build(strategy)
    is_sticky = Capability.STICKY in assignor.capabilities
    return Counting(strategy, spec.owners, is_cooperative(assignor), is_sticky, spec.by_names)


def keeps_topics(scenario: Scenario) -> bool:
    """Return whether `planned_ledgers` can have the ledgers of a scenario."""
    return all(event.kind in _EVENTS for event in scenario.events)


class CountedGroup:
    """A group without claims. ``members`` are its ids in the order of the problem."""

    def __init__(self, cluster: Cluster, group: GroupSubscription) -> None:
        self._cluster, self._group = cluster, group
        self.index, self.members = cluster.index, tuple(group.sorted_members())

    @cached_property
    def problem(self) -> Problem:
        """The group as arrays."""
        return build_problem(self._cluster, self._group)

    @cached_property
    def shape(self) -> Hashable:
        """All that a counting assignor reads of the group; None if the group has racks or is not small."""
        described = self._cluster.topics.values()
        if self.index.size > SMALL or any(topic.racks is not None for topic in described):
            return None
        lists = [subscription.topics for subscription in self._group.in_order(self.members)]
        position = self.index.topic_positions
        numbers = {listed: frozenset(map(position.get, listed)) for listed in dict.fromkeys(lists)}
        return self.index.offsets.tobytes(), tuple(map(numbers.__getitem__, lists))

    @cached_property
    def names(self) -> Hashable:
        """All that counting assignors read of names: how those of members are ordered and hashed.

        With different subscriptions also the names of topics.
        """
        number = {member: at for at, member in enumerate(self.members)}
        lists = tuple(subscription.topics for subscription in self._group.in_order(self.members))
        orders = (tuple(map(number.__getitem__, order(self._group))) for order in (java_order, hash_order))
        return (*orders, () if len(set(lists)) == 1 else (self.index.topics, lists))


class Results:
    """The assignments of small groups. Among many groups, the same problem comes again and again.

    Assignors that only count do not depend on the time, and most of them not on names.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Int32Array] = {}

    def owners(self, strategy: Counting, group: CountedGroup, claims: Claims | None) -> Int32Array:
        """int32[P], not to be changed: the owners in a group with these claims."""
        if group.shape is None:
            return _computed(strategy, group, claims)
        names = group.names if strategy.by_names else None
        key = strategy.owners, group.shape, names, None if claims is None else _order_of(claims)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known[key] = _computed(strategy, group, claims)
        return found


def _computed(strategy: Counting, group: CountedGroup, claims: Claims | None) -> Int32Array:
    problem = group.problem
    if claims is not None:
        problem = replace(problem, claimed=_claimed(claims, len(group.members)))
    return strategy.owners(problem)


def _claimed(claims: Claims, members: int) -> Claimed:
    generation = np.full(members, NO_GENERATION, dtype=np.int64)
    partitions, claimants = [_NOTHING], [_NOTHING]
    for number, claimant in claims.items():
        partitions.append(np.flatnonzero(claimant != NO_OWNER).astype(np.int32))
        claimants.append(claimant[partitions[-1]])
        generation[claimants[-1]] = number
    return Claimed(np.concatenate(partitions), np.concatenate(claimants), generation)


def _order_of(claims: Claims) -> Hashable:
    """Return the claims, with each generation in relation to the newest."""
    newest = max(claims, default=0)
    return tuple((generation - newest, claimant.tobytes()) for generation, claimant in claims.items())
