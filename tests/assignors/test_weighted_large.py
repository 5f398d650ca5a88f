"""`optimal` with weights where nobody can try everything: never worse than a simple answer, and honest."""

from dataclasses import replace

import numpy as np
import pytest

from assignors.weighted import solve as solving
from assignors.weighted.greedy import largest_first, stay_home
from assignors.weighted.instance import Aim, build_instance
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from tests.assignors.groups import assign, wanted
from tests.assignors.trying import moved_partitions, relative_loads
from tests.examples import rest_slow, rest_weekly


def large_group(seed, members, partitions):
    """One component: ``all`` has every tenth partition; lognormal weights, whole ones in every third."""
    rng = np.random.default_rng(seed)
    names = ["all", *(f"t{t}" for t in range(8))]
    sizes = [partitions // 10, *[partitions * 9 // 80] * 8]
    weights = [rng.lognormal(0, 1 + seed % 2, size) for size in sizes]
    weights = [np.ceil(w * 10) if seed % 3 == 0 else w for w in weights]
    topics = {n: TopicInfo(len(w), None, tuple(w.tolist())) for n, w in zip(names, weights, strict=True)}
    owner = {(n, p): rng.integers(members) for n, size in zip(names, sizes, strict=True) for p in range(size)}
    made = {}
    for m in range(members):
        chosen = names if seed % 2 else ["all", *rng.choice(names[1:], 4, replace=False).tolist()]
        owned = Partitions.of(tp for tp, o in owner.items() if o == m and rng.random() < 0.9)
        capacity = float(rng.choice([1.0, 2.0])) if seed % 5 == 4 else None
        made[f"m{m}"] = Subscription(tuple(chosen), owned, 1, capacity=capacity)
    return Cluster(topics), GroupSubscription(made)


def whole_instance(cluster, members):
    """The instance, and the members in its order; checked on its own in `test_weighted_pieces`."""
    problem = build_problem(cluster, members)
    everybody = np.arange(len(problem.members), dtype=np.int32)
    units = list(problem.subscribed[:, None])
    return problem, build_instance(problem, everybody, units, problem.weights, racks=True)


def check(cluster, members, strategy, aim=None):
    """Valid, with true figures, and no worse than the two greedy answers as far as they are allowed."""
    aim = aim or Aim()
    assignment = assign(strategy, cluster, members)
    report, loads = assignment.report, relative_loads(cluster, members, assignment)
    assert {tp for got in assignment.values() for tp in got} == wanted(cluster, members)
    assert report["largest_load"] == pytest.approx(max(loads.values()))
    assert report["moved_partitions"] == moved_partitions(cluster, members, assignment)
    assert report["bound"] <= report["largest_load"] * (1 + 1e-9) or aim.price
    optimal = report["largest_load"] <= report["bound"] * (1 + 1e-9)
    if (report["optimality_gap"] or not optimal) and not aim.price:
        assert report["optimality_gap"] == pytest.approx(report["largest_load"] / report["bound"] - 1)
    problem, instance = whole_instance(cluster, members)
    found = instance.worth(assignment.owners(problem.index, problem.members)[problem.subscribed])
    assert aim.allows(found)
    if "level" in report:
        aim = replace(aim, floor=report["level"], moves_first=True)
        assert report["moves_bound"] <= report["moved_partitions"]
    for simple in (largest_first(instance), stay_home(instance)):
        if aim.allows(instance.worth(simple)):
            assert not aim.prefers(instance.worth(simple), found)
    return report


SIZES = [(12, 80), (30, 320), (60, 800)]


@pytest.mark.slow
@pytest.mark.parametrize("size", rest_slow(SIZES, fast=2))
@pytest.mark.parametrize("seed", rest_weekly(range(5), 2))
def test_it_is_never_worse_than_the_greedy_answers_it_starts_from(seed, size):
    check(*large_group(seed, *size), "optimal+time_limit=0.1")
    check(*large_group(seed, *size), "optimal+strict+time_limit=0.1")


@pytest.mark.slow
@pytest.mark.parametrize("seed", rest_weekly(range(4), 2))
def test_nor_where_moves_are_limited(seed):
    cluster, members = large_group(seed, 20, 240)
    total = sum(sum(info.weights) for info in cluster.topics.values())
    _, instance = whole_instance(cluster, members)
    for order in ("", "+strict"):
        budget = Aim(budget=15, by_count=True)
        check(cluster, members, f"optimal{order}+max_moves=15+time_limit=0.1", budget)
        check(cluster, members, f"optimal{order}+max_moves=3%+time_limit=0.1", Aim(budget=0.03 * total))
    price = 0.5 * instance.bound / instance.total
    check(cluster, members, "optimal+move_cost=0.5+time_limit=0.1", Aim(price=price))


@pytest.mark.slow
def test_nor_where_it_is_improved_by_neighbourhoods(monkeypatch):
    """Above so many pairs the solver takes a few members at a time."""
    monkeypatch.setattr(solving, "MOST_PAIRS_FOR_PROOF", 1_000)
    for seed in range(6):
        report = check(*large_group(seed, 16, 160), "optimal+strict+time_limit=0.3")
        assert report["method"] == "heuristic"
        if seed == 2:
            assert report["solver_seconds"] > 0


@pytest.mark.parametrize(
    ("options", "seed", "size", "moves"),
    [
        ("", 0, (12, 80), 3),
        ("", 6, (12, 80), 5),
        ("", 4, (20, 160), 4),
        ("", 5, (16, 160), 5),
        ("+max_moves=5%", 4, (16, 120), 6),
        ("+max_moves=15", 2, (20, 160), 3),
    ],
)
def test_without_a_solver_no_more_partitions_move_than_were_found_to_suffice(
    monkeypatch, options, seed, size, moves
):
    """Recorded figures: of the fewest units to shed, to displace, and to take back home."""
    monkeypatch.setattr("assignors.weighted.within.MOST_PAIRS_FOR_PROOF", 0)
    report = assign(f"optimal{options}+time_limit=0.1", *large_group(seed, *size)).report
    assert (report["method"], report["moved_partitions"] <= moves) == ("heuristic", True)


def test_nor_where_neighbourhoods_find_something_worse(monkeypatch):
    """All of a component with one member is not taken for an improvement."""
    monkeypatch.setattr(solving, "MOST_PAIRS_FOR_PROOF", 1_000)
    monkeypatch.setattr(solving, "_by_neighbourhoods", lambda _i, _a, best, _b, _s: (best * 0, 0.1))
    report = check(*large_group(2, 16, 160), "optimal+strict+time_limit=0.3")
    assert report["solver_seconds"] == 0.1


@pytest.mark.slow
def test_neighbourhoods_find_what_a_search_by_exchanges_does_not(monkeypatch):
    monkeypatch.setattr(solving, "MOST_PAIRS_FOR_PROOF", 1_000)
    cluster, members = large_group(2, 16, 160)
    found = assign("optimal+strict+time_limit=0.5", cluster, members).report["largest_load"]
    monkeypatch.setattr(solving, "_by_neighbourhoods", lambda _i, _a, best, _b, _s: (best, 0.0))
    assert found < assign("optimal+strict+time_limit=0.5", cluster, members).report["largest_load"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", rest_slow(range(4)))
def test_more_tolerance_never_moves_more(seed):
    """And every answer is within it."""
    cluster, members = large_group(seed, 12, 80)
    plain = assign("optimal+strict+time_limit=0.2", cluster, members).report
    for tolerance in (0.02, 0.2):
        report = assign(f"optimal+tolerance={tolerance}+time_limit=0.2", cluster, members).report
        limit = max(plain["largest_load"], plain["bound"] * (1 + tolerance))
        assert report["largest_load"] <= limit * (1 + 1e-6)
        assert report["moved_partitions"] <= plain["moved_partitions"]


def test_members_with_nothing_to_own_and_components_of_one_are_no_obstacle():
    cluster, members = large_group(1, 12, 80)
    more = Cluster({**cluster.topics, "alone": TopicInfo(2, None, (100.0, 50.0))})
    grown = GroupSubscription({**members, "idle": Subscription(()), "one": Subscription(("alone",))})
    report = assign("optimal+time_limit=0.1", more, grown).report
    assert (report["largest_load"], report["bound"], report["optimality_gap"]) == (150.0, 150.0, 0.0)


@pytest.mark.slow
def test_the_bound_of_moves_is_proven_before_racks_use_up_the_time():
    """The heaviest units and the count of receivers alone prove that 3 move. Without racks 4 must move."""
    rng = np.random.default_rng(4)
    weights = tuple((np.round(rng.lognormal(0, 1, 70), 1) + 0.1).tolist())
    racks = tuple((str(rack),) for rack in rng.choice(["x", "y"], 70))
    owner = rng.integers(0, 11, 70)
    members = {
        f"m{m}": Subscription(
            ("t",), Partitions({"t": np.flatnonzero(owner == m).tolist()}), 1, rack="xy"[m % 2]
        )
        for m in range(10)
    }
    cluster = Cluster({"t": TopicInfo(70, racks, weights)})
    report = check(cluster, GroupSubscription(members), "optimal+time_limit=0.1")
    assert report["moves_bound"] == 4


def weighted_circle(members, partitions, seed):
    """A group whose members are balanced by weight, of which one leaves. All but the first one stay."""
    weights = np.random.default_rng(seed).lognormal(0, 1, partitions)
    cluster = Cluster({"t": TopicInfo(partitions, None, tuple(weights.tolist()))})
    empty = GroupSubscription({f"m{m}": Subscription(("t",)) for m in range(members)})
    owned = assign("optimal+strict", cluster, empty)
    stay = {m: Subscription(("t",), owned[m], 1) for m in list(empty)[1:]}
    return cluster, GroupSubscription(stay)


@pytest.mark.parametrize("seed", rest_slow([0, 2, 1]))
def test_when_one_of_a_hundred_leaves_few_partitions_move(seed):
    """20 partitions lose their owner; the others have room for 2 % each, and 1 % of the weight to take."""
    cluster, members = weighted_circle(100, 2_000, seed)
    report = check(cluster, members, "optimal")
    assert report["largest_load"] <= report["bound"] * 1.02 * (1 + 1e-9)
    assert report["moved_partitions"] <= 40
    assert 0 < report["optimality_gap"] <= 0.02 * (1 + 1e-9)


def test_a_member_that_joins_a_large_group_gets_a_partition():
    """C-73: with 2 % of room none would have to move."""
    cluster, members = weighted_circle(40, 800, 0)
    joined = GroupSubscription({**members, "new": Subscription(("t",))})
    assignment = assign("optimal", cluster, joined)
    assert len(assignment["new"]) >= 1
