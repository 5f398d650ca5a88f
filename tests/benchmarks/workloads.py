"""Groups of many sizes for the benchmarks: equal, disjoint and half-overlapping subscriptions."""

from random import Random

from coordinator_core.model import Cluster, GroupSubscription, Subscription, TopicInfo

SIZES = {
    "100x1k": (100, 1_000, 20),
    "1kx10k": (1_000, 10_000, 100),
    "1kx50k": (1_000, 50_000, 500),
    "10kx100k": (10_000, 100_000, 1_000),
    "2kx1m": (2_000, 1_000_000, 1_000),
}


def cluster(size):
    """Topics of equal partition counts."""
    _, partitions, topics = SIZES[size]
    return Cluster({f"topic-{t:04}": TopicInfo(partitions // topics) for t in range(topics)})


def subscriptions(size, shape, *, extra=0):
    """Member id -> topics. ``extra`` more members than the size says, at the end."""
    members, _, topic_count = SIZES[size]
    topics = tuple(cluster(size).topics)
    fifths = [topics[i * topic_count // 5 : (i + 1) * topic_count // 5] for i in range(5)]
    random = Random(11)
    made = {}
    for m in range(members + extra):
        if shape == "equal":
            chosen = topics
        elif shape == "disjoint":
            chosen = fifths[m % 5]
        else:
            chosen = tuple(sorted(random.sample(topics, topic_count // 2)))
        made[f"member-{m:05}"] = chosen
    return made


def fresh(size, shape):
    """Nobody owns anything."""
    return GroupSubscription({m: Subscription(t) for m, t in subscriptions(size, shape).items()})


def after(assignment, size, shape, change, generation=1):
    """The group after a member has joined or left, or none, everybody else owning what they were assigned."""
    members = subscriptions(size, shape, extra=change == "join")
    if change == "leave":
        members.pop(f"member-{SIZES[size][0] // 2:05}")
    return GroupSubscription(
        {
            m: Subscription(t, assignment[m], generation) if m in assignment else Subscription(t)
            for m, t in members.items()
        }
    )
