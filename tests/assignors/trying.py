"""Random groups and the best that can be had of them, found by trying everything there is.

Nothing here uses the program's flow, bounds or arrays: owners and racks come from `groups`.
"""

from functools import cached_property, reduce
from itertools import combinations
from statistics import fmean

import numpy as np

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from tests.assignors.groups import counted_owners, crosses, wanted

CLOSE = 1e-9
KINDS = ["integers", "lognormal", "tenths", "zeros", "capacities"]


def drawn_weights(rng, kind, count):
    drawn = {
        "integers": lambda: rng.integers(1, 7, count).astype(float),
        "lognormal": lambda: rng.lognormal(0, 1, count),
        "tenths": lambda: rng.integers(1, 20, count) * 0.1,
        "zeros": lambda: rng.integers(0, 3, count).astype(float),
        "capacities": lambda: rng.integers(1, 4, count).astype(float),
    }
    return tuple(drawn[kind]().tolist())


def random_group(rng, most_members, most_partitions, *, kind=None, topics=3, equal=False):
    """Unequal subscriptions, racks in every other, claims that conflict; ``equal``: topics of one size."""
    count = int(rng.integers(1, most_members + 1))
    names = [f"t{t}" for t in range(rng.integers(1, topics + 1))]
    if equal:
        sizes = [int(rng.integers(1, most_partitions // len(names) + 1))] * len(names)
    else:
        cuts = np.sort(rng.integers(0, most_partitions + 1, len(names)))
        sizes = np.diff(cuts, prepend=0).tolist()
    racks = ["x", "y"] if rng.random() < 0.5 else []
    described = {}
    for name, size in zip(names, sizes, strict=True):
        weights = drawn_weights(rng, kind, size) if kind is not None and rng.random() < 0.9 else None
        replicas = None
        if racks and rng.random() < 0.8:
            replicas = tuple(tuple(r for r in racks if rng.random() < 0.5) for _ in range(size))
        described[name] = TopicInfo(size, replicas, weights)
    how = rng.random()
    members = {}
    for m in range(count):
        if how < 0.2:  # components
            chosen = [str(rng.choice(names))]
        else:
            chosen = [n for n in names if how < 0.4 or rng.random() < 0.7]
        owned = [(t, p) for t, size in zip(names, sizes, strict=True) for p in range(size)]
        members[f"m{m}"] = Subscription(
            tuple(chosen),
            Partitions.of(pair for pair in owned if rng.random() < 0.35),
            int(rng.integers(1, 3)),
            rack=str(rng.choice(racks)) if racks and rng.random() < 0.8 else None,
            capacity=float(rng.integers(1, 4)) if kind == "capacities" and rng.random() < 0.8 else None,
        )
    return Cluster(described), GroupSubscription(members)


# --- partitions that count the same


def least_cost(cluster, members, most_squares):
    """The least (sum of squares, owners across racks, moves) of all assignments up to a sum of squares.

    One partition after the other; of all partial assignments with the same loads the cheapest is kept.
    """
    names, owners = list(members), counted_owners(cluster, members)
    partitions = sorted(wanted(cluster, members))
    base, price = len(partitions) + 1, 1_000
    assert base ** len(names) < 2**40
    code, squares, cost = (np.zeros(1, dtype=np.int64) for _ in range(3))
    for done, tp in enumerate(partitions, start=1):
        after = []
        for m, name in enumerate(names):
            if tp.topic in members[name].topics:
                load = code // base**m % base
                extra = crosses(cluster, members[name], tp) * price + (owners.get(tp, name) != name)
                after.append((code + base**m, squares + 2 * load + 1, cost + extra))
        code, squares, cost = (np.concatenate(each) for each in zip(*after, strict=True))
        near = squares + len(partitions) - done <= most_squares
        code, squares, cost = code[near], squares[near], cost[near]
        order = np.lexsort((cost, code))
        order = order[np.flatnonzero(np.diff(code[order], prepend=-1))]
        code, squares, cost = code[order], squares[order], cost[order]
    best = np.lexsort((cost, squares))[0]
    return int(squares[best]), *divmod(int(cost[best]), price)


# --- partitions that weigh differently


def weights_of(cluster, members):
    """Partition -> its weight; 1 where a topic has none, or where nothing weighs anything."""
    weights = {}
    for tp in sorted(wanted(cluster, members)):
        given = cluster.topics[tp.topic].weights
        weights[tp] = 1.0 if given is None else given[tp.partition]
    return weights if any(weights.values()) else dict.fromkeys(weights, 1.0)


def capacities_of(members):
    said = [s.capacity for s in members.values() if s.capacity is not None]
    return {m: s.capacity if s.capacity is not None else fmean(said or [1.0]) for m, s in members.items()}


class Everything:
    """All assignments of what weighs something, and their figures: arrays with an entry for each."""

    def __init__(self, cluster, members, *, colocate=False):
        self.weights = weights_of(cluster, members)
        self.names, self.total = list(members), sum(self.weights.values())
        owners = counted_owners(cluster, members)
        able = {tp: frozenset(m for m in members if tp.topic in members[m].topics) for tp in self.weights}
        together = {}
        for tp in self.weights:
            key = (cluster.partition_count(tp.topic), able[tp], tp.partition) if colocate else tp
            together.setdefault(key, []).append(tp)
        self.units = [unit for unit in together.values() if sum(self.weights[tp] for tp in unit)]
        self.choices = [[m for m in self.names if m in able[unit[0]]] for unit in self.units]

        def summed(figure):
            """The figure of each unit with each of its subscribers, summed for every assignment."""
            each = [
                [float(sum(figure(tp, m) for tp in unit)) for m in able_ones]
                for unit, able_ones in zip(self.units, self.choices, strict=True)
            ]
            return reduce(lambda a, b: np.add.outer(a, b).ravel(), map(np.array, each), np.zeros(1))

        capacity = capacities_of(members)
        self.capacity = capacity
        self.loads = {m: summed(lambda tp, n, m=m: self.weights[tp] * (n == m)) for m in self.names}
        relative = [self.loads[m] / capacity[m] for m in self.names]
        self.largest = reduce(np.maximum, relative, np.zeros(self.count))
        self.squares = sum((r**2 for r in relative), np.zeros(self.count))
        self.crossings = summed(lambda tp, m: crosses(cluster, members[m], tp))
        self.moved = summed(lambda tp, m: self.weights[tp] * (owners.get(tp, m) != m))
        self.moved_count = summed(lambda tp, m: owners.get(tp, m) != m)

    @property
    def count(self):
        return int(np.prod([len(c) for c in self.choices], dtype=np.int64))

    def place(self, assignment):
        """Which entry is an assignment's. Fails where it tears a unit apart."""
        at = {tp: m for m, got in assignment.items() for tp in got}
        place = 0
        for unit, able in zip(self.units, self.choices, strict=True):
            (owner,) = {at[tp] for tp in unit}
            place = place * len(able) + able.index(owner)
        return place

    def best(self, *keys, among=None):
        """bool for each entry: whether none among them is less in the first key, then in the second ..."""
        left = np.ones(self.count, dtype=bool) if among is None else among.copy()
        for key in keys:
            left &= key <= key[left].min() * (1 + CLOSE) + CLOSE * CLOSE * self.total
        return left

    def strict_keys(self):
        return self.largest, self.squares, self.crossings, self.moved, self.moved_count

    def best_within(self, tolerance, among=True):
        """The best of the default order: within the tolerance of the least largest load."""
        among = np.full(self.count, True) & among
        among &= self.largest <= self.largest[among].min() * (1 + tolerance) * (1 + CLOSE)
        keys = self.idle, self.crossings, self.moved_count, self.squares, self.moved
        return self.best(*keys, among=among)

    def fewest_moves(self, level):
        """The fewest moves of the assignments with a largest load up to a level, the heavier units only."""
        return self.moved_count[self.largest <= level * (1 + CLOSE)].min()

    def is_least_load(self, place):
        return self.largest[place] <= self.largest.min() * (1 + CLOSE)

    @cached_property
    def idle(self):
        """How many have nothing, though another of two or more could give one of them: C-73."""
        idle = np.zeros(self.count)
        counts = [len(able) for able in self.choices]
        owners = np.unravel_index(np.arange(self.count), counts) if counts else ()
        for name in self.names:
            at = np.flatnonzero(self.loads[name] == 0)
            better = np.zeros(len(at), dtype=bool)
            for unit, able, chosen in zip(self.units, self.choices, owners, strict=True):
                for number, giver in enumerate(able if name in able else ()):
                    weight = sum(self.weights[tp] for tp in unit)
                    full, own, room = self.loads[giver][at], self.capacity[giver], self.capacity[name]
                    rest = full - weight
                    gives = (chosen[at] == number) & (rest > CLOSE) & (weight / room < full / own - CLOSE)
                    after = (rest / own) ** 2 + (weight / room) ** 2
                    better |= gives & (after < (full / own) ** 2 * (1 - CLOSE))
            idle[at] += better
        return idle


def ideal(cluster, members):
    """The least largest load there could be, by subsets of topics, the heaviest and the pigeonholes."""
    weights, capacity = weights_of(cluster, members), capacities_of(members)
    heavy = {tp: w for tp, w in weights.items() if w}
    topics = sorted({tp.topic for tp in heavy})
    levels = [0.0]
    for size in range(1, len(topics) + 1):
        for chosen in combinations(topics, size):
            takers = [m for m, s in members.items() if set(chosen) & set(s.topics)]
            level = sum(w for tp, w in heavy.items() if tp.topic in chosen)
            levels.append(level / sum(capacity[m] for m in takers))
    for tp, w in heavy.items():
        levels.append(w / max(capacity[m] for m, s in members.items() if tp.topic in s.topics))
    falling = sorted(heavy.values(), reverse=True)
    for last in range(len(members), len(falling), len(members)):
        crowded = falling[: last + 1][-(last // len(members) + 1) :]
        levels.append(sum(crowded) / max(capacity.values()))
    return max(levels)


def moved_partitions(cluster, members, assignment):
    """How many left an owner that counts."""
    owners = counted_owners(cluster, members)
    return sum(owners.get(tp, m) != m for m, got in assignment.items() for tp in got)


def relative_loads(cluster, members, assignment):
    weights, capacity = weights_of(cluster, members), capacities_of(members)
    return {m: sum(weights[tp] for tp in got) / capacity[m] for m, got in assignment.items()}
