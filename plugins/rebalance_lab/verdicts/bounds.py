"""Lower bounds for the metrics of runs: the best balance, and the fewest moves at a balance."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.flow.fractional import least_level, pigeonhole, sums_at
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import (
    NO_OWNER,
    Cluster,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicIndex,
    TopicPartition,
)


def least_sum_of_squares(topics: Mapping[str, int], members: Mapping[str, Sequence[str]]) -> int:
    """Return the least sum of squares of loads over all assignments of topics to their subscribers."""
    if _all_subscribe(topics, members):
        return least_sum_of_alike(sum(topics.values()), len(members))
    group = GroupSubscription({m: Subscription(tuple(t)) for m, t in members.items()})
    owner = balanced_owners(build_problem(Cluster(topics), group))
    loads = np.bincount(owner[owner != NO_OWNER], minlength=len(members)).astype(np.int64)
    return int((loads * loads).sum())


def least_sum_of_alike(partitions: int, members: int) -> int:
    """Return the least sum of squares of loads if every member subscribes to all partitions."""
    least, extras = divmod(partitions, members)
    return members * least * least + extras * (2 * least + 1)


def largest_load_bound(
    weight: NDArray[np.float64], index: TopicIndex, subscriptions: Collection[Sequence[str]]
) -> float:
    """Return a lower bound of the largest load, over all assignments of partitions to their subscribers.

    ``weight`` float64[P]: those of the partitions of the index. ``subscriptions``: the topics of each member.
    It is the greatest of four bounds: the average, the heaviest partition, the level at which topics with few
    subscribers fit (a linear program, solved by flows), and the bound of the pigeonhole principle. It is 0 if
    no subscribed partition has a weight.
    """
    classes = Counter(map(frozenset, subscriptions))
    if classes and frozenset.intersection(*classes).issuperset(index.topics):
        return _bound_of_alike(weight[weight > 0], len(subscriptions))
    allowed = np.array([[t in listed for listed in classes] for t in index.topics], dtype=np.bool_)
    if not allowed.size:
        return 0.0
    subscribed = np.asarray(allowed.any(axis=1))
    weighty = weight > 0
    if not subscribed.all():
        weighty &= subscribed[index.topic_of_every]
    loads = weight[weighty]
    if not len(loads):
        return 0.0
    supply = sums_at(index.topic_of_every[weighty], loads, len(index.topics))
    present = supply > 0
    level = least_level(supply[present], np.array(list(classes.values()), dtype=np.float64), allowed[present])
    return max(level, _bound_of_alike(loads, len(subscriptions)))


def _bound_of_alike(loads: NDArray[np.float64], members: int) -> float:
    """Return the greatest of the average, the heaviest partition, and the pigeonhole bound."""
    if not len(loads):
        return 0.0
    return max(float(loads.sum()) / members, float(loads.max()), pigeonhole(loads, np.ones(members)))


def fewest_moves_in_balance(
    before: Mapping[TopicPartition, str], topics: Mapping[str, int], members: Mapping[str, Sequence[str]]
) -> int:
    """Return the exact number of partitions that must change owner to reach the least sum of squares."""
    there = {tp: owner for tp, owner in before.items() if tp.partition < topics.get(tp.topic, 0)}
    if _all_subscribe(topics, members):
        held, count = Counter(there.values()), sum(topics.values())
        least, extras = divmod(count, len(members))
        loads = least, least + bool(extras)
        return fewest_moves_of_alike(len(there), [held[m] for m in members], count, loads)
    owned: dict[str, list[TopicPartition]] = {m: [] for m in members}
    for tp, owner in there.items():
        owned.setdefault(owner, []).append(tp)
    group = {m: Subscription(tuple(t), Partitions.of(owned[m]), 1) for m, t in members.items()}
    problem = build_problem(Cluster(topics), GroupSubscription(group))
    stayed = (balanced_owners(problem) == problem.owner) & (problem.owner != NO_OWNER)
    return len(there) - int(stayed.sum())


def fewest_moves_of_alike(there: int, held: Sequence[int], partitions: int, loads: tuple[int, int]) -> int:
    """Return the fewest moves to loads within `loads`, both included, if all members subscribe to all.

    ``there``: how many of the partitions had an owner; ``held``: how many each member had of them.
    Members keep what fits, less the partitions that others lack for the least load.
    """
    least, most = loads
    kept = sum([min(count, most) for count in held])
    lacking = sum([least - count for count in held if count < least])
    return there - min(kept, partitions - lacking)


def _all_subscribe(topics: Mapping[str, int], members: Mapping[str, Sequence[str]]) -> bool:
    """Return whether there are members and each subscribes to all topics: the balance is arithmetic then."""
    wanted = topics.keys()
    return bool(members) and all(wanted <= set(listed) for listed in set(map(tuple, members.values())))


def fewest_moves(
    before: Mapping[TopicPartition, str],
    partitions: Sequence[TopicPartition],
    members: Mapping[str, Sequence[str]],
    loads: tuple[int, int],
) -> int:
    """Return how many partitions must change owner so that the load of every member is within ``loads``.

    ``before`` maps partitions to their owners. A partition must move if its owner has left or does not
    subscribe to its topic; it does not count if it had no owner. ``loads`` are the least and the most
    partitions of a member, both included. There must be an assignment within them. The number is exact: it
    is the cost of a flow over topics and members.
    """
    least, most = loads
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    topics = sorted({tp.topic for tp in partitions})
    topic_node = {t: i for i, t in enumerate(topics)}
    member_node = {m: len(topics) + i for i, m in enumerate(members)}
    sink = len(topics) + len(members)
    supply = dict.fromkeys(topics, 0)
    pairs: dict[tuple[str, str], int] = {}
    forced = 0
    for tp in partitions:
        supply[tp.topic] += 1
        owner = before.get(tp)
        if owner is None:
            continue
        if owner in members and tp.topic in members[owner]:
            pairs[tp.topic, owner] = pairs.get((tp.topic, owner), 0) + 1
        else:
            forced += 1
    stay = sum(pairs.values())
    graph = SimpleMinCostFlow()
    for (topic, member), owned in pairs.items():
        graph.add_arc_with_capacity_and_unit_cost(topic_node[topic], member_node[member], owned, -1)
    for member, subscribed in members.items():
        for topic in subscribed:
            if supply.get(topic):
                node = topic_node[topic]
                graph.add_arc_with_capacity_and_unit_cost(node, member_node[member], supply[topic], 0)
        graph.add_arc_with_capacity_and_unit_cost(member_node[member], sink, most - least, 0)
        graph.set_node_supply(member_node[member], -least)
    for topic, count in supply.items():
        graph.set_node_supply(topic_node[topic], count)
    graph.set_node_supply(sink, least * len(members) - len(partitions))
    status = graph.solve()
    assert status == graph.OPTIMAL, "no assignment keeps within the loads"
    return forced + stay + int(graph.optimal_cost())
