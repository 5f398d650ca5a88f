"""Assignors that only count partitions, and their results for many groups."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import NamedTuple

from coordinator_core.assigning.assignor import Capability, is_cooperative
from coordinator_core.assigning.problem import Claimed, Problem
from coordinator_core.documents.scenario import Scenario
from coordinator_core.model import Int32Array
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, Strategy
from coordinator_core.registry.registry import Registry

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


class Counting(NamedTuple):
    """A strategy whose assignor only counts partitions. ``owners`` is that of its `AssignorSpec`."""

    strategy: Strategy
    owners: Callable[[Problem], Int32Array]
    cooperative: bool
    sticky: bool


def counting(strategy: Strategy, registry: Registry) -> Counting | None:
    """Return the record of a strategy of which `planned_histories` can have histories, or None."""
    spec = registry.assignors().get(strategy.assignor)
    if spec is None or spec.owners is None or strategy.factory is not None:
        return None
    if strategy.arguments or strategy.wrappers or strategy.provider or strategy.delay_ms is not None:
        return None
    if strategy.protocol != DEFAULT_PROTOCOL:
        return None
    assignor = registry.build(strategy)
    is_sticky = Capability.STICKY in assignor.capabilities
    return Counting(strategy, spec.owners, is_cooperative(assignor), is_sticky)


def keeps_topics(scenario: Scenario) -> bool:
    """Return whether `planned_histories` can have the histories of a scenario."""
    return all(event.kind in _EVENTS for event in scenario.events)


class Results:
    """The assignments of small groups. Among many groups, the same problem comes again and again.

    Assignors that only count depend neither on names nor on the time.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Int32Array] = {}

    def owners(
        self, strategy: Counting, problem: Problem, shape: Hashable, claimed: Claimed | None
    ) -> Int32Array:
        """int32[P], not to be changed: the owners of a problem with claims. ``shape``: `shape_of` it."""
        key = None if shape is None else (strategy.owners, shape, claimed and _order_of(claimed))
        found = None if key is None else self._known.get(key)
        if found is None:
            found = strategy.owners(problem if claimed is None else replace(problem, claimed=claimed))
            if len(self._known) >= MOST:
                self._known.clear()
            if key is not None:
                self._known[key] = found
        return found


def shape_of(problem: Problem) -> Hashable:
    """Return all that a counting assignor reads of a problem but its claims; None if it is not small."""
    if problem.racks is not None or problem.index.size > SMALL:
        return None
    arrays = problem.index.offsets, problem.member_class, problem.class_subscribes
    return tuple(array.tobytes() for array in arrays)


def _order_of(claimed: Claimed) -> Hashable:
    """Return the claims, with the generation of each in relation to the others."""
    generation = claimed.generation[claimed.member]
    if len(generation):
        generation = generation - generation.max()
    return claimed.partition.tobytes(), claimed.member.tobytes(), generation.tobytes()
