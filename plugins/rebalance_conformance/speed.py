"""The check of growth: the time may grow linearly with partitions and with members."""

from coordinator_core.model import NO_PARTITIONS, Cluster, GroupSubscription, Partitions, Subscription
from rebalance_conformance.cases import Case, copy_of, size_of
from rebalance_conformance.search import Bench, Check, FaultError

TIMES_AS_BIG = 8
MOST_GROWTH = 3.0 * TIMES_AS_BIG
"""Linear growth is 8 and quadratic 64. The limit allows a logarithm, caches and a busy machine."""
REPEATS = 3
ATTEMPTS = 3
TOPICS = 4
PARTITIONS = 512
MEMBERS = 16


def _slower_than_linear(bench: Bench) -> None:
    """Fail if 8 times the partitions, or 8 times the members, take more than 24 times as long."""
    small = group_of(PARTITIONS, MEMBERS)
    for what, large in (
        ("partitions", group_of(PARTITIONS * TIMES_AS_BIG, MEMBERS)),
        ("members", group_of(PARTITIONS, MEMBERS * TIMES_AS_BIG)),
    ):
        growth = _growth(bench, small, large)
        if growth > MOST_GROWTH:
            raise FaultError(
                f"{TIMES_AS_BIG} times the {what} took {growth:.0f} times as long"
                f" ({size_of(small)}, then {size_of(large)}); at most {MOST_GROWTH:.0f} times is let pass"
            )


slower_than_linear = Check(
    "slower-than-linear", _slower_than_linear, "Time grows with the group, not faster."
)


def group_of(partitions: int, members: int) -> Case:
    """Return a group with equal subscriptions. All but the newest member own a share of the partitions."""
    topics = [f"topic-{t}" for t in range(TOPICS)]
    count = partitions // TOPICS
    names = [f"member-{m}" for m in range(members)]
    cluster = Cluster(dict.fromkeys(topics, count))
    owned = {
        name: Partitions({t: list(range(m, count, members - 1)) for t in topics})
        for m, name in enumerate(names[:-1])
    }
    group = {
        name: Subscription(tuple(topics), owned.get(name, NO_PARTITIONS), 1 if name in owned else -1)
        for name in names
    }
    return Case(cluster, GroupSubscription(group))


def _growth(bench: Bench, small: Case, large: Case) -> float:
    """Return the ratio of the best times of both groups, measured again if it is too large."""
    best: dict[str, float] = {}
    growth = 0.0
    for _ in range(ATTEMPTS):
        for name, case in (("small", small), ("large", large)):
            took = min(_seconds(bench, case) for _ in range(REPEATS))
            best[name] = min(took, best.get(name, took))
        growth = best["large"] / best["small"] if best["small"] > 0 else 0.0
        if growth <= MOST_GROWTH:
            break
    return growth


def _seconds(bench: Bench, case: Case) -> float:
    assignor, lent = bench.subject.make(), copy_of(case)
    started = bench.clock()
    bench.lend(lent, case, assignor)
    return bench.clock() - started
