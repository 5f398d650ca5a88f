"""Generators of scenarios for batches. An entry point of the plugin group ``rebalance_lab``.

A row depends on the profile, the seed and its number alone, not on the order or the process in which it is
made. All profiles but `replay` run 15 minutes of virtual time. Changes happen from the second minute to the
thirteenth, at whole seconds.
"""

from collections.abc import Iterable, Mapping
from math import exp
from random import Random
from typing import Any

from coordinator_core.registry.hookspecs import WorkloadSpec, hookimpl
from rebalance_lab.scenarios.replay import REPLAY

DURATION = "15m"
_FIRST_CHANGE, _LAST_CHANGE = 60, 780

Document = Mapping[str, Any]


def microservices(seed: int, row: int) -> Document:
    """Small groups, one service each.

    1 to 8 members (geometric, half as likely each time), 1 to 3 topics of 1, 3, 6 or 12 partitions,
    records/s of a topic lognormal (median 50, sigma 1.5), members handle twice their even share; 0
    to 3 changes: a join, a leave, or a crash.
    """
    random = _random("microservices", seed, row)
    topics = {
        f"events-{t}": {"partitions": random.choice((1, 3, 6, 12)), "rate": _lognormal(random, 50, 1.5)}
        for t in range(random.randint(1, 3))
    }
    count = min(8, 1 + _geometric(random))
    group = _Group(random, topics, count, headroom=2.0)
    for at in _times(random, random.randint(0, 3)):
        group.change(at, random.choice(("join", "leave", "crash")))
    return group.document(f"microservices-{seed}-{row}")


def pipeline(seed: int, row: int) -> Document:
    """Large groups of a data pipeline.

    100 to 400 members, 5 to 20 topics, 1,000 to 5,000 partitions over all of them, evenly;
    records/s of a topic lognormal (median 20,000, sigma 1), members handle 1.5 times their even
    share; 1 to 3 joins, leaves or crashes.
    """
    random = _random("pipeline", seed, row)
    count = random.randint(5, 20)
    partitions = random.randint(1_000, 5_000) // count
    topics = {
        f"stage-{t:02}": {"partitions": partitions, "rate": _lognormal(random, 20_000, 1.0)}
        for t in range(count)
    }
    group = _Group(random, topics, random.randint(100, 400), headroom=1.5)
    for at in _times(random, random.randint(1, 3)):
        group.change(at, random.choice(("join", "leave", "crash")))
    return group.document(f"pipeline-{seed}-{row}")


def skewed(seed: int, row: int) -> Document:
    """Groups whose traffic is mostly in a few partitions.

    4 to 16 members, one topic of 2 to 5 partitions a member; records/s of its partitions Zipf
    (exponent 0.8 to 1.4), in random order, 1,000 times the partitions in all; members handle 1.5
    times their even share; 1 to 3 joins or leaves.
    """
    random = _random("skewed", seed, row)
    members = random.randint(4, 16)
    partitions = members * random.randint(2, 5)
    exponent = random.uniform(0.8, 1.4)
    shares = [1 / (rank + 1) ** exponent for rank in range(partitions)]
    random.shuffle(shares)
    total = sum(shares)
    rates = [round(1_000 * partitions * share / total, 3) for share in shares]
    group = _Group(random, {"clicks": {"partitions": partitions, "rates": rates}}, members, headroom=1.5)
    for at in _times(random, random.randint(1, 3)):
        group.change(at, random.choice(("join", "leave")))
    return group.document(f"skewed-{seed}-{row}")


def churny(seed: int, row: int) -> Document:
    """Groups that are scaled and deployed all the time.

    3 to 12 members, 1 to 2 topics of 12, 24 or 48 partitions, records/s of a topic lognormal
    (median 5,000, sigma 0.7), members handle twice their even share; an autoscaler adds up to 4
    members one by one and takes as many away again, and in half of the rows a rolling restart
    follows (10 s apart, 3 s down).
    """
    random = _random("churny", seed, row)
    topics = {
        f"orders-{t}": {"partitions": random.choice((12, 24, 48)), "rate": _lognormal(random, 5_000, 0.7)}
        for t in range(random.randint(1, 2))
    }
    group = _Group(random, topics, random.randint(3, 12), headroom=2.0)
    steps = random.randint(1, 4)
    last = _LAST_CHANGE - 240
    times = sorted(random.sample(range(_FIRST_CHANGE, last, 20), 2 * steps))
    for at in times[:steps]:
        group.change(at, "join")
    for at in times[steps:]:
        group.change(at, "leave")
    if random.random() < 0.5:
        group.add(last + 60, {"rolling_restart": {"every": "10s", "down": "3s"}})
    return group.document(f"churny-{seed}-{row}")


class _Group:
    """A scenario that is being made: its members and events."""

    def __init__(self, random: Random, topics: Document, members: int, *, headroom: float) -> None:
        self._random, self._topics = random, topics
        total = sum(topic["rate"] if "rate" in topic else sum(topic["rates"]) for topic in topics.values())
        self._handles = max(round(headroom * total / members, 3), 0.001)
        self._running = [f"m-{number}" for number in range(members)]
        self._first = list(self._running)
        self._events: list[Document] = []

    def change(self, at: int, kind: str) -> None:
        """Add a join, leave or crash. If only one member is left, another one joins instead."""
        if kind == "join" or len(self._running) < 2:
            name = f"m-{len(self._first) + len(self._events)}"
            self._running.append(name)
            self.add(at, {"join": self._member(name)})
        else:
            self.add(at, {kind: self._running.pop(self._random.randrange(len(self._running)))})

    def add(self, at: int, event: Document) -> None:
        """Add an event at a number of seconds after the start."""
        self._events.append({"at": f"{at}s", **event})

    def document(self, name: str) -> Document:
        """Return the scenario. Its seed follows from the random numbers drawn so far."""
        return {
            "name": name,
            "duration": DURATION,
            "seed": self._random.randrange(2**31),
            "topics": self._topics,
            "members": [self._member(name) for name in self._first],
            "events": self._events,
        }

    def _member(self, name: str) -> Document:
        return {"id": name, "topics": list(self._topics), "process_rate": self._handles}


def _random(profile: str, seed: int, row: int) -> Random:
    return Random(f"{profile}:{seed}:{row}")


def _times(random: Random, count: int) -> list[int]:
    """Return different times in ascending order, at least half a minute apart."""
    return sorted(random.sample(range(_FIRST_CHANGE, _LAST_CHANGE, 30), count))


def _lognormal(random: Random, median: float, sigma: float) -> float:
    return round(median * exp(random.gauss(0, sigma)), 3)


def _geometric(random: Random) -> int:
    """Return 0, 1, 2 and so on, each half as likely as the one before."""
    failures = 0
    while random.random() < 0.5:
        failures += 1
    return failures


@hookimpl
def workloads() -> Iterable[WorkloadSpec]:
    """Return the workloads of this package."""
    return [
        WorkloadSpec("microservices", microservices, "Many small groups, one service each."),
        WorkloadSpec("pipeline", pipeline, "Hundreds of members, thousands of partitions."),
        WorkloadSpec("skewed", skewed, "Zipf traffic: a few partitions have most of it."),
        WorkloadSpec("churny", churny, "Groups that are scaled and deployed all the time."),
        REPLAY,
    ]
