"""`sticky` and `cooperative-sticky` beside Apache Kafka's own, in a warmed Java machine of the same process.

A member joins a group that has settled without it. Both sides go from the subscriptions to the list of each
member; figures are the least wall-clock time of several rounds in turn. *Balanced* is the assignor
`sticky-balanced`, with the balance and the moves of all: the difference of the largest and the smallest load,
and how many partitions left a member. Run with ``python -m tests.benchmarks.sticky``; Kafka's jars are found
as those of the tests are (`tests.assignors.jvm`).
"""

import sys
import time
from random import Random

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription
from coordinator_core.registry.registry import default_registry
from tests.assignors import jvm

SIZES = [(10, 100, 10), (50, 500, 20), (100, 1_000, 20), (500, 5_000, 50), (1_000, 10_000, 100)]
SHAPES = {"equal": 1.0, "half": 0.5}
ROUNDS = 12
ENOUGH_S = 10


def topics_of(shape, members, topics):
    """Member id -> topics. With ``half``, a member subscribes to each topic or not."""
    random = Random(1)
    names = [f"t{t}" for t in range(topics)]
    return {f"m{m:04}": tuple(t for t in names if random.random() < SHAPES[shape]) for m in range(members)}


def group_of(topics, owned, *, eager):
    """Return a new group in which members own what a mapping says, and name it as the assignor wants it."""
    registry = default_registry()
    made = {}
    for member, names in topics.items():
        had = owned.get(member, [])
        assignor = registry.assignor("sticky" if eager else "cooperative-sticky")
        assignor.on_assignment(Partitions.of(had), 1 if had else -1)
        data = assignor.subscription_user_data(names)
        made[member] = Subscription(names, Partitions.of(() if eager else had), 1 if had else -1, user_data=data)
    return GroupSubscription(made)


class Kafka:
    """An assignor of Kafka, with the Java objects of one group."""

    def __init__(self, name, cluster, group):
        self.cluster, self.group, self.name = cluster, group, name

    def timed(self):
        call = jvm.prepared(self.name, self.cluster, self.group)
        began = time.perf_counter()
        call()
        return time.perf_counter() - began


def ours(name, counts, topics, owned):
    """Return the seconds and the result of one round, in which nothing is left from the round before."""
    made, cluster = default_registry().assignor(name), Cluster(counts)
    group = group_of(topics, owned, eager=name != "cooperative-sticky")
    began = time.perf_counter()
    lists = compute_assignment(made, cluster, group).lists()
    return time.perf_counter() - began, lists


def row(shape, name, members, partitions, topics):
    counts = {f"t{t}": partitions // topics for t in range(topics)}
    wanted = topics_of(shape, members, topics)
    first = next(iter(wanted))
    before = {member: names for member, names in wanted.items() if member != first}
    _, owned = ours(name, counts, before, {})
    kafka = Kafka(name, Cluster(counts), group_of(wanted, owned, eager=name == "sticky"))
    best = {"kafka": [], name: [], "sticky-balanced": []}
    results = {}
    ends = time.perf_counter() + ENOUGH_S
    for done in range(ROUNDS):
        if done > 2 and time.perf_counter() > ends:
            break
        best["kafka"].append(kafka.timed())
        for each in (name, "sticky-balanced"):
            seconds, results[each] = ours(each, counts, wanted, owned)
            best[each].append(seconds)
    least = {each: min(seconds) * 1000 for each, seconds in best.items()}
    quality = " | ".join(quality_of(results[each], owned) for each in (name, "sticky-balanced"))
    figures = f"{least['kafka']:.1f} | {least[name]:.1f} | {least[name] / least['kafka']:.2f}"
    return f"| {members:,} x {partitions:,} | {shape} | {name} | {figures} | {least['sticky-balanced']:.1f} | {quality} |"


def quality_of(lists, owned):
    """Spread of the loads, and partitions that left a member."""
    loads = [len(pairs) for pairs in lists.values()]
    left = sum(len(set(pairs) - set(lists[member])) for member, pairs in owned.items())
    return f"{max(loads) - min(loads)}, {left}"


def main():
    if found := jvm.missing():
        sys.exit(found)
    print(f"Apache Kafka {jvm.kafka_version()}; times in ms")  # noqa: T201
    print("| members x partitions | topics | assignor | Kafka | here | ratio | balanced | spread, moves | balanced |")  # noqa: T201
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")  # noqa: T201
    for shape in SHAPES:
        for size in SIZES:
            for name in ("sticky", "cooperative-sticky"):
                print(row(shape, name, *size), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
