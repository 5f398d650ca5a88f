"""Largest first, sticky within a tolerance: for groups that are too large for a search.

Every member keeps the partitions that fit under a level a little above the bound, the heaviest first. The
others go, the heaviest first, to the member with the least relative load. No member stays without
partitions only because others keep theirs.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace
from math import inf, isinf

import numpy as np

from assignors.weighted.instance import capacities_of
from coordinator_core.assigning.flow.fractional import heaviest_alone, least_level, sums_at
from coordinator_core.assigning.problem import FloatArray, Problem
from coordinator_core.model import NO_OWNER, Int32Array


def bound_of(problem: Problem, weight: FloatArray) -> float:
    """Return a lower bound of the largest relative load (see `flow.fractional`)."""
    capacity, topics = capacities_of(problem), np.flatnonzero(problem.topic_subscribed)
    supply = sums_at(problem.index.topic_of_every, weight, len(problem.index.topics))[topics]
    room = sums_at(problem.member_class, capacity, problem.class_count)
    allowed = problem.class_subscribes[:, topics].T
    roomiest = np.zeros(problem.class_count)
    np.maximum.at(roomiest, problem.member_class, capacity)
    widest = np.where(problem.class_subscribes, roomiest[:, None], 0.0).max(axis=0, initial=0.0)
    mine = problem.subscribed
    alone = heaviest_alone(weight[mine], widest[problem.index.topic_of_every[mine]])
    return max(least_level(supply, room, allowed), alone)


def sticky_within(problem: Problem, weight: FloatArray, tolerance: float) -> tuple[Int32Array, float]:
    """Return the owners, int32[P] with -1 without subscribers, and the bound of the largest relative load.

    ``weight`` float64[P]; ``tolerance``: a member keeps its partitions up to this share above the bound; if
    infinite, members keep everything.
    """
    owner = np.full(problem.index.size, NO_OWNER, dtype=np.int32)
    if not problem.members or not len(problem.subscribed):
        return owner, 0.0
    bound, capacity, mine = bound_of(problem, weight), capacities_of(problem), problem.subscribed
    order = mine[np.argsort(-weight[mine], kind="stable")]
    order = order[: int((weight[mine] > 0).sum())]
    load = [0.0] * len(problem.members)
    room = (capacity * bound * (1 + tolerance)).tolist()
    waiting: list[int] = []
    for p, held_by, heavy in zip(
        order.tolist(), problem.owner[order].tolist(), weight[order].tolist(), strict=True
    ):
        if held_by != NO_OWNER and load[held_by] + heavy <= room[held_by]:
            load[held_by] += heavy
            owner[p] = held_by
        else:
            waiting.append(p)
    _spread(problem, weight, capacity, owner, load, waiting)
    if not isinf(tolerance):
        _fill_empty(problem, weight, capacity, owner, load, order, tolerance)
    weightless = mine[weight[mine] == 0]
    deal_weightless(problem, weightless, problem.owner[weightless], owner)
    return owner, bound


def deal_weightless(
    problem: Problem, partitions: Int32Array, home: Int32Array, owner: Int32Array, most_moves: float = inf
) -> None:
    """Assign partitions without weight by number, in place (PITFALLS C-73).

    They stay at ``home`` (int32, -1 for none) or go to the members with the fewest partitions. Then a member
    with two more than another subscriber gives it one, at most `most_moves` times.
    """
    owner[partitions] = home
    count = np.bincount(owner[owner != NO_OWNER], minlength=len(problem.members)).tolist()
    waiting = partitions[home == NO_OWNER].tolist()
    for p, member in _by_least(problem, waiting, lambda m: (count[m], m)):
        owner[p] = member
        count[member] += 1
    left = most_moves
    while left >= 1:
        moved = _even_counts(problem, partitions, owner, count, left)
        if not moved:
            break
        left -= moved


def _even_counts(
    problem: Problem, partitions: Int32Array, owner: Int32Array, count: list[int], most_moves: float
) -> int:
    """Move partitions from the members with the most. Returns the number of moves."""
    signature, subscribers = problem.topic_signature
    sets = signature[problem.index.topic_of_every[partitions]].tolist()
    held: dict[int, dict[int, list[int]]] = {}
    for p, at, member in zip(partitions.tolist(), sets, owner[partitions].tolist(), strict=True):
        held.setdefault(member, {}).setdefault(at, []).append(p)
    takers = {at: [(count[m], m) for m in subscribers[at].tolist()] for at in set(sets)}
    for heap in takers.values():
        heapify(heap)
    givers = [(-count[m], m) for m in held]
    heapify(givers)
    moved = 0
    while givers and moved + 1 <= most_moves:
        most, giver = givers[0]
        if most != -count[giver]:
            heapreplace(givers, (-count[giver], giver))
            continue
        for at, given in held[giver].items():
            target = _fewest(takers[at], count)
            if given and count[target] + 1 < count[giver]:
                owner[given.pop()] = target
                count[giver] -= 1
                count[target] += 1
                moved += 1
                break
        else:
            heappop(givers)
    return moved


def _fewest(heap: list[tuple[int, int]], count: list[int]) -> int:
    while (now := count[heap[0][1]]) != heap[0][0]:
        heapreplace(heap, (now, heap[0][1]))
    return heap[0][1]


def _fill_empty(
    problem: Problem,
    weight: FloatArray,
    capacity: FloatArray,
    owner: Int32Array,
    load: list[float],
    order: Int32Array,
    tolerance: float,
) -> None:
    """Give partitions of others to members without any weight, in place (PITFALLS C-73).

    The most loaded members give, the heaviest partition first, while their load exceeds that of the
    receiver by more than the tolerance. The receiver stays below the former load of the giver.
    """
    count = np.bincount(owner[order], minlength=len(load))
    empty = np.flatnonzero(count == 0)
    if not len(empty) or count.max() < 2:
        return
    held: dict[int, list[int]] = {}
    for p, member in zip(order.tolist(), owner[order].tolist(), strict=True):
        held.setdefault(member, []).append(p)
    rooms, topic = capacity.tolist(), problem.index.topic_of_every
    for receiver in empty[np.argsort(-capacity[empty], kind="stable")].tolist():
        wanted = problem.class_subscribes[problem.member_class[receiver]]
        room = rooms[receiver]
        givers = [(-load[m] / rooms[m], m) for m in held]
        heapify(givers)
        while givers and -givers[0][0] > load[receiver] / room * (1 + tolerance):
            before, giver = -givers[0][0], givers[0][1]
            mine = held[giver]
            fitting = (
                i
                for i, p in enumerate(mine)
                if wanted[topic[p]] and (load[receiver] + weight[p]) / room < before
            )
            at = next(fitting, None) if len(mine) > 1 else None
            if at is None:
                heappop(givers)
                continue
            given = mine.pop(at)
            owner[given] = receiver
            load[giver] -= float(weight[given])
            load[receiver] += float(weight[given])
            heapreplace(givers, (-load[giver] / rooms[giver], giver))


def _spread(
    problem: Problem,
    weight: FloatArray,
    capacity: FloatArray,
    owner: Int32Array,
    load: list[float],
    waiting: list[int],
) -> None:
    """Assign waiting partitions, in place.

    Members are compared by their load with one more partition of mean weight, so that the empty member with
    the most capacity comes first.
    """
    if not waiting:
        return
    mean, rooms = float(weight[waiting].mean()), capacity.tolist()
    count = np.bincount(owner[owner != NO_OWNER], minlength=len(load)).tolist()
    for p, member in _by_least(problem, waiting, lambda m: ((load[m] + mean) / rooms[m], count[m], m)):
        owner[p] = member
        load[member] += float(weight[p])
        count[member] += 1


def _by_least(
    problem: Problem, waiting: list[int], key: Callable[[int], tuple[float, ...]]
) -> Iterator[tuple[int, int]]:
    """Yield each partition with its subscriber of the least key. A key ends with the member and only grows.

    Each set of subscribers has a heap. An entry is stale if the key of its member has grown.
    """
    signature, subscribers = problem.topic_signature
    heaps: dict[int, list[tuple[float, ...]]] = {}
    topics = problem.index.topic_of_every[waiting]
    for p, at in zip(waiting, signature[topics].tolist(), strict=True):
        if at not in heaps:
            heaps[at] = [key(m) for m in subscribers[at].tolist()]
            heapify(heaps[at])
        heap = heaps[at]
        while (now := key(int(heap[0][-1]))) != heap[0]:
            heapreplace(heap, now)
        yield p, int(heap[0][-1])
