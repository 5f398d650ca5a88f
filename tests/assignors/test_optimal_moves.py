"""`optimal` moves no partition that can stay, held against min-cost flows of networkx."""

from math import floor

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from tests.assignors.groups import assign, counted_owners, wanted
from tests.assignors.trying import moved_partitions, weights_of
from tests.examples import rest_slow, scaled


def owned_by_chance(random, partitions, names):
    """Each partition has one of the members as its owner, or none."""
    owned = {name: [] for name in names}
    for tp in partitions:
        owned.get(random.choice([*names, ""]), []).append(tp)
    return {name: Partitions.of(own) for name, own in owned.items()}


def moved_by_a_flow(ends, prices):
    """The least sum of prices, of a unit from each source to one of its members, and how many each takes.

    ``ends``: how many units end at most at each member; ``prices``: (source, member) -> a whole number.
    """
    graph = nx.DiGraph()
    for (source, member), price in prices.items():
        graph.add_node(("from", source), demand=-1)
        graph.add_edge(("from", source), member, capacity=1, weight=price)
    for member, most in ends.items():
        graph.add_edge(member, "end", capacity=most)
    graph.add_node("end", demand=len({source for source, _ in prices}))
    return nx.min_cost_flow_cost(graph)


@pytest.mark.parametrize("seed", rest_slow(range(12), fast=4))
def test_members_with_capacities_move_as_few_as_a_flow_under_the_level(seed):
    """Too large to enumerate. Partitions weigh the same, so that a level is a number of partitions."""
    random = np.random.default_rng([8, seed])
    topics, names = [f"t{n}" for n in range(4)], [f"m{n}" for n in range(6)]
    cluster = Cluster({t: TopicInfo(10, None, (2.0,) * 10) for t in topics})
    owned = owned_by_chance(random, [(t, p) for t in topics for p in range(10)], names)
    members = GroupSubscription(
        {
            m: Subscription(
                tuple(t for t in topics if t == topics[n % 4] or random.random() < 0.5),
                owned[m],
                1,
                capacity=float(random.integers(1, 4)),
            )
            for n, m in enumerate(names)
        }
    )
    assignment, owners = assign("optimal", cluster, members), counted_owners(cluster, members)
    level = assignment.report["level"]
    ends = {m: floor(level * s.capacity / 2.0 + 1e-9) for m, s in members.items()}
    prices = {
        (tp, m): int(owners.get(tp, m) != m)
        for tp in wanted(cluster, members)
        for m, s in members.items()
        if tp.topic in s.topics
    }
    assert all(len(assignment[m]) <= most for m, most in ends.items())
    assert moved_partitions(cluster, members, assignment) == moved_by_a_flow(ends, prices)


@pytest.mark.parametrize("strategy", ["optimal", "optimal+strict"])
@settings(max_examples=scaled(400))
@given(data=st.data())
def test_no_exchange_of_all_partitions_between_alike_members_moves_less(strategy, data):
    """The loads of members that subscribe alike may be exchanged: the balance stays. None are enumerated."""
    count, amounts = data.draw(st.integers(2, 5)), st.integers(1, data.draw(st.sampled_from([2, 30])))
    weights = data.draw(st.lists(amounts.map(float), min_size=2, max_size=16))
    names = [f"m{n}" for n in range(count)]
    owners = data.draw(st.lists(st.sampled_from([*names, ""]), min_size=len(weights), max_size=len(weights)))
    cluster = Cluster({"t": TopicInfo(len(weights), None, tuple(weights))})
    members = GroupSubscription(
        {
            m: Subscription(("t",), Partitions.of(("t", p) for p, o in enumerate(owners) if o == m), 1)
            for m in names
        }
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("assignors.weighted.exact.MOST_CELLS", 0)
        assignment = assign(f"{strategy}+time_limit=0.1", cluster, members)
    weight = weights_of(cluster, members)

    def price(bundle, member):
        leaving = [tp for tp in assignment[bundle] if owners[tp[1]] not in ("", member)]
        moved = round(sum(weight[tp] for tp in leaving))  # counts before the number in the strict order
        return len(leaving) + (100 * moved if strategy == "optimal+strict" else 0)

    least = moved_by_a_flow(dict.fromkeys(names, 1), {(b, m): price(b, m) for b in names for m in names})
    assert sum(price(m, m) for m in names) == least
