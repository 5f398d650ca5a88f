"""The repair of previous owners, held against the min-cost flow that knows nothing of them."""

from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assigning.flow import transport
from coordinator_core.assigning.flow.components import Component
from coordinator_core.assigning.flow.keeping import keep_and_deal
from coordinator_core.assigning.flow.levels import load_levels
from coordinator_core.assigning.flow.spreading import spread


def numbers(*values):
    return np.array(values, dtype=np.int64)


def table(*rows):
    """'x.x' -> True, False, True."""
    return np.array([[mark == "x" for mark in row] for row in rows], dtype=np.bool_)


# --- spreading


def fits(supply, must, may, allowed):
    """Whether a maximum flow of networkx places all partitions and fills what must be filled."""
    graph = nx.DiGraph()
    graph.add_node("source")
    spare = int(supply.sum() - must.sum())
    if spare < 0:
        return False
    graph.add_edge("optional", "sink", capacity=spare)
    for pool, count in enumerate(supply.tolist()):
        graph.add_edge("source", ("pool", pool), capacity=count)
        for taker in np.flatnonzero(allowed[pool]).tolist():
            graph.add_edge(("pool", pool), ("class", taker), capacity=count)
    for taker, (least, more) in enumerate(zip(must.tolist(), may.tolist(), strict=True)):
        graph.add_edge(("class", taker), "sink", capacity=least)
        graph.add_edge(("class", taker), "optional", capacity=more)
    return nx.maximum_flow_value(graph, "source", "sink") == supply.sum()


def assert_spread(supply, must, may, allowed, takers):
    received = np.bincount(takers, minlength=len(must))
    assert (received >= must).all()
    assert (received <= must + may).all()
    assert allowed[np.repeat(np.arange(len(supply)), supply), takers].all()


@given(st.data())
def test_partitions_are_spread_whenever_a_flow_can_spread_them(data):
    pools, classes = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    row = st.lists(st.booleans(), min_size=classes, max_size=classes)
    allowed = np.array(data.draw(st.lists(row, min_size=pools, max_size=pools)))
    supply = numbers(*data.draw(st.lists(st.integers(0, 5), min_size=pools, max_size=pools)))
    must = numbers(*data.draw(st.lists(st.integers(0, 4), min_size=classes, max_size=classes)))
    may = numbers(*data.draw(st.lists(st.integers(0, 2), min_size=classes, max_size=classes)))
    takers = spread(supply, must, may, allowed)
    assert (takers is not None) == fits(supply, must, may, allowed)
    if takers is not None:
        assert_spread(supply, must, may, allowed, takers)


@pytest.mark.parametrize("seed", range(6))
def test_many_pools_are_spread_without_a_place_to_spare(seed):
    """The classes have exactly the places that a random choice of takers needs."""
    random = np.random.default_rng(seed)
    pools, classes = 150, 60
    allowed = random.random((pools, classes)) < (0.5 if seed % 2 else 0.05)
    allowed[np.arange(pools), random.integers(0, classes, pools)] = True
    supply = random.integers(0, 40, pools)
    chosen = [random.choice(np.flatnonzero(row), n) for row, n in zip(allowed, supply, strict=True)]
    must = np.bincount(np.concatenate(chosen), minlength=classes)
    takers = spread(supply, must, np.zeros_like(must), allowed)
    assert takers is not None
    assert_spread(supply, must, np.zeros_like(must), allowed, takers)


def test_the_partitions_of_a_pool_are_spread_over_its_takers():
    assert spread(numbers(4, 2), numbers(3, 3), numbers(0, 0), table("xx", "xx")).tolist() == [
        0,
        1,
        0,
        1,
        0,
        1,
    ]


# --- keeping


def component_of(seed):
    """A random component: nobody owns anything, owners are random, or two members have left."""
    random = np.random.default_rng(seed)
    topics, classes = int(random.integers(1, 14)), int(random.integers(1, 20))
    members = classes if seed % 3 else classes + int(random.integers(0, 2 * classes))
    subscribes = random.random((classes, topics)) < random.choice([0.1, 0.3, 0.5, 0.8])
    subscribes[random.integers(0, classes, topics), np.arange(topics)] = True
    member_class = np.concatenate((np.arange(classes), random.integers(0, classes, members - classes)))
    topic = np.repeat(np.arange(topics), random.integers(0, 12, topics)).astype(np.int32)

    def with_owners(owner):
        return Component(
            topic=topic,
            owner=np.array(owner, dtype=np.int32),
            rack_set=np.zeros(len(topic), dtype=np.int32),
            member_class=member_class.astype(np.int32),
            member_rack=np.zeros(members, dtype=np.int32),
            subscribes=subscribes,
            crossing=np.zeros((1, 1), dtype=np.bool_),
        )

    owner = np.full(len(topic), -1)
    if random.random() < 0.3 or not len(topic):
        return with_owners(owner), False
    if random.random() < 0.5:
        for p, t in enumerate(topic):
            if random.random() < 0.8:
                owner[p] = random.choice(np.flatnonzero(subscribes[member_class, t]))
        return with_owners(owner), True
    owner = by_flow(with_owners(owner))[0].copy()
    owner[np.isin(owner, random.integers(0, members, 2))] = -1
    return with_owners(owner), False


def by_flow(component):
    """Return the owners by the min-cost flow alone, and the levels."""
    classes = len(component.subscribes)
    level = np.full(classes, -(-len(component.topic) // len(component.member_class)))
    flows = transport._solve(component, level)
    if flows is None:
        sizes = np.bincount(component.topic, minlength=component.subscribes.shape[1])
        size = np.bincount(component.member_class, minlength=classes)
        level = load_levels(sizes, size, component.subscribes)
        flows = transport._solve(component, level)
    return transport._materialise(*flows), level


def cost(component, owner):
    """Return the sum of squares and the number of moves; owners must subscribe."""
    assert component.subscribes[component.member_class[owner], component.topic].all()
    moved = (component.owner >= 0) & (component.owner != owner)
    return int((np.bincount(owner) ** 2).sum()), int(moved.sum())


@pytest.mark.parametrize("first_seed", range(0, 150, 50))
def test_what_is_repaired_is_as_good_as_the_flow(first_seed):
    """PROTOCOL 10.3, C-67: and where owners are not random, nothing is left to the flow."""
    for seed in range(first_seed, first_seed + 50):
        component, random_owners = component_of(seed)
        expected, level = by_flow(component)
        repaired = keep_and_deal(component, level)
        if repaired is not None:
            assert cost(component, repaired) == cost(component, expected), f"seed {seed}"
        else:
            assert random_owners, f"seed {seed}"
        assert cost(component, transport.balance_apart(component)) == cost(component, expected), (
            f"seed {seed}"
        )


def half_overlapping(members, topics, partitions):
    """A component in which every member subscribes to a random half of the topics."""
    random = Random(members)
    subscribes = np.zeros((members, topics), dtype=np.bool_)
    for row in subscribes:
        row[random.sample(range(topics), topics // 2)] = True
    topic = np.repeat(np.arange(topics, dtype=np.int32), partitions // topics)
    return Component(
        topic=topic,
        owner=np.full(len(topic), -1, dtype=np.int32),
        rack_set=np.zeros(len(topic), dtype=np.int32),
        member_class=np.arange(members, dtype=np.int32),
        member_rack=np.zeros(members, dtype=np.int32),
        subscribes=subscribes,
        crossing=np.zeros((1, 1), dtype=np.bool_),
    )


def test_a_join_of_a_large_group_moves_the_share_of_the_newcomer():
    """C-67: 201 members, 119 topics; the newcomer takes one partition from each of as many members."""
    component = half_overlapping(201, 119, 2380)
    before = half_overlapping(200, 119, 2380)
    old = keep_and_deal(
        Component(**{**vars(before), "subscribes": component.subscribes[:200]}), np.full(200, 12)
    )
    joined = Component(**{**vars(component), "owner": old})
    new = keep_and_deal(joined, np.full(201, 12))
    moved = np.flatnonzero(old != new)
    assert (new[moved] == 200).all()
    assert len(moved) == len(set(old[moved].tolist())) == 11


def test_a_partition_that_must_be_passed_on_is_left_to_the_flow():
    """C-67: a must give up one of t; only b may take it, and b is full until c takes one of u."""
    component = Component(
        topic=numbers(0, 0, 1).astype(np.int32),
        owner=numbers(0, 0, 1).astype(np.int32),
        rack_set=numbers(0, 0, 0).astype(np.int32),
        member_class=numbers(0, 1, 2).astype(np.int32),
        member_rack=numbers(0, 0, 0).astype(np.int32),
        subscribes=table("x.", "xx", ".x"),
        crossing=np.zeros((1, 1), dtype=np.bool_),
    )
    assert keep_and_deal(component, numbers(1, 1, 1)) is None
    assert transport.balance_apart(component).tolist() == [0, 1, 2]
