"""The instances of a group: units, components, and units without weight."""

import numpy as np

from assignors.weighted.instance import build_instance
from assignors.weighted.tolerant import deal_weightless
from coordinator_core.assigning.flow.components import components
from coordinator_core.assigning.problem import FloatArray, Problem
from coordinator_core.model import NO_OWNER, Int32Array


class Part:
    """A component: its instance, and the numbers of its units and members in the problem."""

    def __init__(
        self,
        problem: Problem,
        weight: FloatArray,
        members: Int32Array,
        units: list[Int32Array],
        *,
        racks: bool,
    ) -> None:
        self._members, self._units = members, units
        self.instance = build_instance(problem, members, units, weight, racks=racks)

    def write(self, placed: Int32Array, owner: Int32Array) -> None:
        """Write the owners of units to the owner array."""
        counts = [len(unit) for unit in self._units]
        owner[np.concatenate(self._units)] = np.repeat(self._members[placed], counts)


class Light:
    """Units without weight, which are assigned by number. The first partition of a unit stands for all of it.

    ``torn`` is the number of partitions that must move to bring units together.
    """

    def __init__(self) -> None:
        self._units: list[Int32Array] = []
        self._home: list[int] = []
        self.torn = 0

    def add(self, unit: Int32Array, problem: Problem) -> None:
        """Add a unit. Its home is the member that owns most of it."""
        held = problem.owner[unit]
        held = held[held != NO_OWNER]
        counts = np.bincount(held)
        self._units.append(unit)
        self._home.append(int(counts.argmax()) if len(held) else NO_OWNER)
        self.torn += len(held) - int(counts.max(initial=0))

    def deal(self, problem: Problem, owner: Int32Array, budget: float) -> None:
        """Write the owners to the owner array. At most `budget` partitions move, besides those torn."""
        if not self._units:
            return
        first = np.array([unit[0] for unit in self._units], dtype=np.int32)
        gifts = budget / max(map(len, self._units))
        deal_weightless(problem, first, np.array(self._home, dtype=np.int32), owner, gifts)
        owner[np.concatenate(self._units)] = np.repeat(owner[first], [len(unit) for unit in self._units])


def units_of(problem: Problem, partitions: Int32Array, *, colocate: bool) -> list[Int32Array]:
    """Return the units: single partitions, or with ``colocate`` those of one number of alike topics."""
    if not colocate:
        return list(partitions[:, None])
    signature, _ = problem.topic_signature
    sizes, offsets = np.diff(problem.index.offsets), problem.index.offsets
    topic = problem.index.topic_of_every[partitions]
    together: dict[tuple[int, int, int], list[int]] = {}
    for p, t in zip(partitions.tolist(), topic.tolist(), strict=True):
        together.setdefault((int(sizes[t]), int(signature[t]), p - int(offsets[t])), []).append(p)
    return [np.array(unit, dtype=np.int32) for unit in together.values()]


def parts_of(
    problem: Problem, units: list[Int32Array], weight: FloatArray, *, racks: bool, together: bool
) -> list[Part]:
    """Return the components with units in the order of their first members; one part if ``together``."""
    if together:
        everybody = np.arange(len(problem.members), dtype=np.int32)
        return [Part(problem, weight, everybody, units, racks=racks)] if units else []
    class_component, topic_component, _ = components(problem.class_subscribes)
    of_member = class_component[problem.member_class]
    of_unit = topic_component[problem.index.topic_of_every[[unit[0] for unit in units]]].tolist()
    inside: dict[int, list[Int32Array]] = {}
    for unit, component in zip(units, of_unit, strict=True):
        inside.setdefault(component, []).append(unit)
    return [
        Part(problem, weight, np.flatnonzero(of_member == c).astype(np.int32), inside[c], racks=racks)
        for c in sorted(inside)
    ]
