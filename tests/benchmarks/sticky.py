"""`sticky` and `cooperative-sticky` beside Apache Kafka's own, in a warmed Java machine of the same process.

A member joins a group that has settled without it. Kafka goes from decoded subscriptions to the list of each
member, this program from decoded subscriptions to the bytes of all assignments. Figures are the least CPU
times of the calling thread in several rounds by turns. *Balanced* is `sticky-balanced` for the same group.
*Spread* is the difference of the largest and the least load, *moves* are the partitions that left a member.
Run with ``python -m tests.benchmarks.sticky``; Kafka's jars are those of `tests.real_kafka`.
"""

import time
from random import Random

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.client.classic.leading import decode_members
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription
from coordinator_core.protocol.consumer_protocol import encode_assignments
from coordinator_core.registry.registry import default_registry
from tests.assignors import jvm
from tests.benchmarks.test_assignors import joining

SIZES = [(10, 100, 10), (50, 500, 20), (100, 1_000, 20), (500, 5_000, 50), (1_000, 10_000, 100)]
SHAPES = {"equal": 1.0, "half": 0.5}
BALANCED = "sticky-balanced"
FEWEST, ROUNDS = 3, 40
ENOUGH_S = 10


def topics_of(shape, members, topics):
    """Member id -> topics. With ``half``, a member subscribes to each topic or not."""
    random = Random(1)
    names = [f"t{t}" for t in range(topics)]
    return {f"m{m:04}": tuple(t for t in names if random.random() < SHAPES[shape]) for m in range(members)}


def group_of(name, topics, owning):
    """Return a new group in which members own what a mapping says, as the leader has decoded it."""
    made = {}
    for member, names in topics.items():
        had = owning.get(member, [])
        made[member] = Subscription(names, Partitions.of(had), 1 if had else -1)
    sent = joining("sticky" if name == BALANCED else name, GroupSubscription(made))
    return GroupSubscription(decode_members(sent))


def kafkas(name, cluster, group):
    """Return the seconds of one round by Kafka's assignor, whose Java objects are made before."""
    call = jvm.prepared(name, cluster, group)
    began = time.thread_time()
    call()
    return time.thread_time() - began


def ours(name, counts, topics, owning):
    """Return the seconds and the lists of one round, in which nothing is left from the round before."""
    made, cluster, group = default_registry().assignor(name), Cluster(counts), group_of(name, topics, owning)
    began = time.thread_time()
    assignment = compute_assignment(made, cluster, group)
    encode_assignments(assignment, group)
    return time.thread_time() - began, assignment.lists()


def row(shape, name, members, partitions, topics):
    """Return a line of the table."""
    counts = {f"t{t}": partitions // topics for t in range(topics)}
    wanted = topics_of(shape, members, topics)
    before = dict(list(wanted.items())[1:])
    _, owned = ours(name, counts, before, {})
    joined = group_of(name, wanted, owned)
    here, lists = {name: [], BALANCED: []}, {}
    kafka, ends = [], time.perf_counter() + ENOUGH_S
    while len(kafka) < FEWEST or (len(kafka) < ROUNDS and time.perf_counter() < ends):
        kafka.append(kafkas(name, Cluster(counts), joined))
        for each, seconds in here.items():
            took, lists[each] = ours(each, counts, wanted, owned)
            seconds.append(took)
    least = [min(seconds) * 1000 for seconds in (kafka, here[name], here[BALANCED])]
    times = f"{least[0]:.1f} | {least[1]:.1f} | {least[1] / least[0]:.2f} | {least[2]:.1f}"
    quality = " | ".join(quality_of(lists[each], owned) for each in here)
    return f"| {members:,} x {partitions:,} | {shape} | {name} | {times} | {quality} |"


def quality_of(lists, owned):
    """Return the spread of the loads, and how many partitions left a member, as text."""
    loads = [len(pairs) for pairs in lists.values()]
    left = sum(len(set(pairs) - set(lists[member])) for member, pairs in owned.items())
    return f"{max(loads) - min(loads)}, {left}"


def main():
    """Print the table."""
    header = ["members x partitions", "topics", "assignor", "Kafka ms", "here ms", "ratio", "balanced ms"]
    header += ["spread, moves", "balanced"]
    print(f"Apache Kafka {jvm.kafka_version()}\n| {' | '.join(header)} |\n|{' --- |' * len(header)}")  # noqa: T201
    for shape in SHAPES:
        for size in SIZES:
            for name in ("sticky", "cooperative-sticky"):
                print(row(shape, name, *size), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
