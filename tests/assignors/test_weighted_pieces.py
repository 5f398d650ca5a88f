"""The pieces of the weighted solver, each on its own."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.weighted.cp import improve
from assignors.weighted.exact import best_of_all
from assignors.weighted.greedy import largest_first, stay_home
from assignors.weighted.instance import Aim, Instance, Worth, build_instance, build_part, less
from assignors.weighted.keeping import fewest_moves, fill_idle, keep_under
from assignors.weighted.local_search import Work, even_out
from assignors.weighted.relabel import keep_most
from assignors.weighted.shedding import _STEPS, _lightest, fewest_above, go_home, shed_to
from assignors.weighted.tolerant import deal_weightless
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import Cluster, TopicInfo
from tests.assignors.groups import group, member

ENDLESS = Work(np.inf)


def made(weight, home, *, members=None, capacity=None, allowed=None, crossing=None):
    """An instance of single partitions; who is at home may stay there."""
    count = members or len(capacity)
    weight, home = np.array(weight, dtype=float), np.array(home, dtype=np.int32)
    allowed = np.ones((len(weight), count), dtype=bool) if allowed is None else np.array(allowed, dtype=bool)
    away = (home[:, None] >= 0) & (home[:, None] != np.arange(count))
    return Instance(
        weight=weight,
        capacity=np.ones(count) if capacity is None else np.array(capacity, dtype=float),
        allowed=allowed,
        moved=np.where(away, weight[:, None], 0.0),
        moved_count=away.astype(float),
        crossing=None if crossing is None else np.array(crossing, dtype=np.int32),
        home=home,
    )


@st.composite
def instances(draw, units=7, members=4, whole=False):
    """Owners, capacities and subscriptions by chance; somebody may own each unit."""
    count = draw(st.integers(1, members))
    amount = st.integers(1, 9).map(float) if whole else st.floats(0.01, 50, allow_subnormal=False)
    weight = draw(st.lists(amount, min_size=1, max_size=units))
    row = st.lists(st.booleans(), min_size=count, max_size=count).filter(any)
    allowed = draw(st.lists(row, min_size=len(weight), max_size=len(weight)))
    able = [[m for m in range(count) if row[m]] for row in allowed]
    home = [draw(st.sampled_from([-1, *each])) for each in able]
    capacity = [draw(st.sampled_from([1.0, 1.0, 2.0])) for _ in range(count)]
    return made(weight, home, capacity=capacity, allowed=allowed)


def answers(instance):
    able = [np.flatnonzero(row).tolist() for row in instance.allowed]
    return [np.array(each, dtype=np.int32) for each in product(*able)]


@st.composite
def answered(draw, **rest):
    instance = draw(instances(**rest))
    owner = [draw(st.sampled_from(np.flatnonzero(row).tolist())) for row in instance.allowed]
    return instance, np.array(owner, dtype=np.int32)


def relative(instance, owner):
    return (
        np.array([instance.weight[owner == m].sum() for m in range(len(instance.capacity))])
        / instance.capacity
    )


# --- what an answer is worth


def test_the_figures_of_an_answer():
    instance = made([4.0, 3.0, 2.0], [0, 0, -1], capacity=[1.0, 2.0], crossing=[[0, 1], [0, 1], [1, 0]])
    assert instance.worth(np.array([0, 1, 1])) == Worth(4.0, 16 + 2.5**2, 1, 3.0, 1)
    assert instance.kept_loads.tolist() == [7.0, 0.0]


@pytest.mark.parametrize(
    ("one", "other", "which"),
    [(1.0, 1.0, 0), (1.0, 1.0 + 1e-12, 0), (1.0, 1.001, -1), (2.0, 1.0, 1), (0.0, 0.0, 0), (0.0, 1e-300, -1)],
)
def test_what_differs_by_rounding_is_the_same(one, other, which):
    assert less(one, other) == which


def test_aims_compare_in_their_order():
    even, odd = Worth(2.0, 8.0, 0, 5.0, 5), Worth(3.0, 9.0, 0, 0.0, 0)
    assert Aim().prefers(even, odd)
    assert Aim(price=1.0).prefers(odd, even)
    assert Aim(floor=3.0).prefers(even, odd)  # by the squares
    assert Aim(floor=3.0, moves_first=True).prefers(odd, even)
    assert Aim().prefers(Worth(2.0, 8.0, 0, 9.0, 9), Worth(2.0, 8.0, 1, 0.0, 0))
    assert not Aim().prefers(even, even)
    assert [Aim(budget=4, by_count=True).allows(each) for each in (even, odd)] == [False, True]


def test_an_instance_says_what_moves_and_what_crosses_racks():
    """t-0 and u-0 are one unit of 5, of which a owns 2 and b 3; c subscribes to neither."""
    racks = (("x",), ("y",))
    cluster = Cluster({"t": TopicInfo(2, racks, (2.0, 1.0)), "u": TopicInfo(2, racks, (3.0, 1.0)), "v": 1})
    members = group(
        a=member("t u", "t:0", rack="x"), b=member("t u", "u:0", rack="y", capacity=2.0), c=member("v")
    )
    problem = build_problem(cluster, members)
    units = [np.array(each, dtype=np.int32) for each in ([0, 2], [1, 3], [4])]
    instance = build_instance(problem, np.arange(3, dtype=np.int32), units, problem.weights, racks=True)
    assert instance.weight.tolist() == [5.0, 2.0, 1.0]
    assert instance.allowed.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    assert instance.moved.tolist() == [[3.0, 2.0, 5.0], [0.0] * 3, [0.0] * 3]
    assert instance.moved_count.tolist() == [[1.0, 1.0, 2.0], [0.0] * 3, [0.0] * 3]
    assert instance.crossing.tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
    assert instance.home.tolist() == [1, -1, -1]
    assert instance.capacity.tolist() == [2.0, 2.0, 2.0]
    assert instance.attached_loads.tolist() == [0.0, 1.0, 0.0]  # a has 2 of the 5 too
    blind = build_instance(problem, np.arange(2, dtype=np.int32), units[:2], problem.weights, racks=False)
    assert blind.crossing is None
    assert blind.allowed.shape == (2, 2)


@given(drawn=answered(), data=st.data())
def test_a_part_is_what_some_members_have(drawn, data):
    instance, owner = drawn
    everybody = list(range(len(instance.capacity)))
    some = sorted(data.draw(st.sets(st.sampled_from(everybody), min_size=1)))
    part, units = build_part(instance, owner, np.array(some, dtype=np.int32))
    assert units.tolist() == [u for u, m in enumerate(owner.tolist()) if m in some]
    for at, unit in enumerate(units.tolist()):
        assert part.weight[at] == instance.weight[unit]
        assert part.allowed[at].tolist() == [bool(instance.allowed[unit, m]) for m in some]
        assert part.moved[at].tolist() == [instance.moved[unit, m] for m in some]
        home = instance.home[unit]
        assert part.home[at] == (some.index(home) if home in some else -1)
    assert part.capacity.tolist() == [instance.capacity[m] for m in some]


@given(instance=instances(), budget=st.floats(0, 60))
def test_no_answer_is_below_the_bounds(instance, budget):
    for owner in answers(instance):
        worth = instance.worth(owner)
        assert worth.largest >= instance.bound * (1 - 1e-9)
        if worth.moved <= budget:
            assert worth.largest >= instance.bound_within(budget) * (1 - 1e-9)


def test_too_many_partial_answers_are_left_to_others(monkeypatch):
    instance = made([3.0, 2.0, 2.0], [-1] * 3, members=2)
    assert best_of_all(instance, Aim(), stay_home(instance)).tolist() == [0, 1, 1]
    monkeypatch.setattr("assignors.weighted.exact.MOST_CELLS", 4)
    assert best_of_all(instance, Aim(), stay_home(instance)) is None


# --- the solver


@pytest.mark.parametrize("part", [1.0, 0.1, 1 / 3])
def test_the_solver_may_use_the_whole_budget(part):
    """Half of the weight, in two of four units, however it is rounded."""
    instance = made(np.array([3.0, 7.0, 4.0, 6.0]) * part, [0] * 4, members=2)
    home = np.zeros(4, dtype=np.int32)
    found = improve(instance, Aim(budget=10.0 * part), home, instance.bound, 1.0)
    assert relative(instance, found.owner) == pytest.approx([10 * part, 10 * part])
    assert found.proven
    less_than_half = improve(instance, Aim(budget=9.9 * part), home, instance.bound, 1.0)
    assert instance.worth(less_than_half.owner).moved == pytest.approx(9 * part)


def test_the_solver_finds_what_moves_least_under_a_level():
    """Under 10 the 5, the 4, or the 3 and the 2 may leave; the 5 would cross."""
    instance = made([5.0, 4.0, 3.0, 2.0], [0, 0, 0, 0], members=2, crossing=[[0, 1], [0, 0], [0, 0], [0, 0]])
    known = np.array([0, 0, 1, 1], dtype=np.int32)
    found = improve(instance, Aim(floor=10.0, moves_first=True), known, instance.bound, 1.0)
    assert found.owner.tolist() == [0, 1, 0, 0]
    assert found.placing == 1


def test_the_solver_moves_no_less_where_a_level_is_between_whole_loads():
    """6 is above 5.1, though by less than one: a unit of 3 leaves."""
    instance = made([3.0, 3.0, 1.0], [0, 0, 1], members=2)
    known = np.array([0, 1, 0], dtype=np.int32)
    found = improve(instance, Aim(floor=5.1, moves_first=True), known, instance.bound, 1.0)
    assert (found.placing, instance.worth(found.owner).moved_count) == (1, 1)


def test_the_solver_fills_a_level_with_weights_that_are_rounded():
    instance = made([1 / 3] * 3, [0] * 3, members=2)
    known = np.array([0, 0, 1], dtype=np.int32)
    found = improve(instance, Aim(floor=1.0, moves_first=True), known, instance.bound, 1.0)
    assert (found.placing, found.owner.tolist()) == (0, [0, 0, 0])


@given(drawn=answered(), data=st.data())
def test_the_solver_proves_no_more_moves_than_needed_under_a_level(drawn, data):
    """The level may be the load of an assignment, however the loads are rounded."""
    instance, known = drawn
    under = instance.worth(known).largest
    level = data.draw(st.sampled_from([w.largest for w in map(instance.worth, answers(instance))]))
    aim = Aim(floor=max(level, under), moves_first=True)
    found = improve(instance, aim, known, instance.bound, 1.0)
    fits = [w for o in answers(instance) if (w := instance.worth(o)).largest <= aim.floor]
    assert found.placing <= min(w.moved_count for w in fits)


# --- first answers


def test_the_heaviest_goes_first_and_to_the_emptiest():
    """By relative load; of two alike to the one with fewer, then to the first."""
    assert largest_first(made([2.0, 5.0, 3.0, 1.0], [-1] * 4, members=2)).tolist() == [1, 0, 1, 0]
    assert largest_first(made([6.0, 3.0, 3.0], [-1] * 3, capacity=[1.0, 2.0])).tolist() == [1, 0, 1]


def test_what_has_an_owner_stays_at_home():
    assert stay_home(made([2.0, 5.0, 3.0, 1.0], [0, 0, -1, -1], members=2)).tolist() == [0, 0, 1, 1]


# --- local search


@given(drawn=answered(), budget=st.floats(0, 40))
def test_evening_out_raises_neither_the_largest_load_nor_the_cost_above_the_budget(drawn, budget):
    instance, start = drawn
    owner = even_out(instance, start, ENDLESS, cost=instance.moved, budget=budget)
    before, after = instance.worth(start), instance.worth(owner)
    assert instance.allowed[np.arange(len(owner)), owner].all()
    assert after.largest <= before.largest * (1 + 1e-9)
    assert after.squares <= before.squares * (1 + 1e-9)
    assert after.moved <= max(budget, before.moved) + 1e-6


@given(drawn=answered())
def test_after_evening_out_no_move_and_no_exchange_helps(drawn):
    """Of those that leave the receiver below what the giver had."""
    instance, start = drawn
    owner = even_out(instance, start, ENDLESS)
    squares, loads = instance.worth(owner).squares, relative(instance, owner)
    units, members = range(len(owner)), range(len(instance.capacity))
    changes = [{u: m} for u in units for m in members]
    changes += [{u: owner[v], v: owner[u]} for u, v in combinations(units, 2)]
    for change in changes:
        other = owner.copy()
        other[list(change)] = list(change.values())
        if not instance.allowed[np.arange(len(owner)), other].all():
            continue
        touched = [m for m in members if m in {*other[list(change)], *owner[list(change)]}]
        if relative(instance, other)[touched].max() < loads[touched].max() * (1 - 1e-9):
            assert instance.worth(other).squares >= squares * (1 - 1e-8)


def test_without_work_nothing_changes():
    instance, start = made([1.0, 1.0], [0, 0], members=2), np.zeros(2, dtype=np.int32)
    assert even_out(instance, start, Work(0)).tolist() == [0, 0]
    work = Work(100)
    assert sorted(even_out(instance, start, work).tolist()) == [0, 1]
    assert work.cells < 100


def test_of_very_many_exchanges_only_some_are_looked_at():
    """Two members of 30,000 partitions each would make 900 million."""
    weight = np.linspace(1.0, 2.0, 60_000)
    start = np.repeat(np.array([0, 1], dtype=np.int32), 30_000)
    instance, work = made(weight, start, members=2), Work(1e7)
    owner = even_out(instance, start, work)
    assert work.cells > -3e6
    assert instance.worth(owner).largest < instance.worth(start).largest


# --- who of those alike gets which load


@given(data=st.data(), drawn=answered(whole=True))
def test_members_alike_trade_all_they_have_and_never_move_more(data, drawn):
    instance, start = drawn
    owner = keep_most(instance, start)
    assert sorted(relative(instance, owner)) == pytest.approx(sorted(relative(instance, start)))
    assert instance.allowed[np.arange(len(owner)), owner].all()
    assert instance.worth(owner).moved <= instance.worth(start).moved + 1e-6


@given(data=st.data(), members=st.integers(2, 4))
def test_no_deal_among_members_alike_moves_less(data, members):
    weight = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    who = st.lists(st.integers(0, members - 1), min_size=len(weight), max_size=len(weight))
    instance, start = made(weight, data.draw(who), members=members), np.array(data.draw(who), dtype=np.int32)
    least = min(instance.worth(np.array(deal)[start]).moved for deal in permutations(range(members)))
    assert instance.worth(keep_most(instance, start)).moved == pytest.approx(least)


@pytest.mark.parametrize("start", [[0, 0, 0], [1, 1, 1]])
@pytest.mark.parametrize("keeper", [0, 1])
def test_of_deals_that_move_the_same_weight_the_one_with_fewer_partitions_is_taken(start, keeper):
    instance = made([2.0, 1.0, 1.0], [1 - keeper, keeper, keeper], members=2)
    assert keep_most(instance, np.array(start)).tolist() == [keeper] * 3


def test_crossings_count_for_more_than_moves_when_loads_are_dealt():
    instance = made([5.0, 3.0], [0, 1], members=2, crossing=[[1, 0], [1, 0]])
    assert keep_most(instance, np.array([1, 0])).tolist() == [0, 1]  # one crosses either way
    instance = made([5.0, 3.0], [0, 1], members=2, crossing=[[1, 0], [0, 1]])
    assert keep_most(instance, np.array([0, 1])).tolist() == [1, 0]


# --- shedding


@given(weight=st.lists(st.floats(0.01, 100), min_size=1, max_size=12), share=st.floats(0.01, 0.99))
def test_the_lightest_that_is_enough_is_shed(weight, share):
    """All subsets; to a part in so many of what there is, for each partition."""
    falling = np.sort(np.array(weight))[::-1]
    excess, rounding = share * falling.sum(), len(falling) * falling.sum() / _STEPS
    shed = _lightest(falling, excess)
    assert len(set(shed)) == len(shed)
    sums = np.array(list(product([0, 1], repeat=len(falling)))) @ falling
    assert falling[shed].sum() >= excess * (1 - 1e-9)
    clearly_enough = sums[sums >= min(excess + rounding, falling.sum() * (1 - 1e-12))]
    assert falling[shed].sum() <= clearly_enough.min() + rounding * (1 + 1e-9)


@given(weight=st.lists(st.floats(0.01, 100), min_size=1, max_size=9), share=st.floats(0.01, 0.99))
def test_the_fewest_that_are_enough_are_shed(weight, share):
    falling = np.sort(np.array(weight))[::-1]
    excess = share * falling.sum()
    shed = fewest_above(falling, excess)
    assert falling[shed].sum() >= excess * (1 - 1e-9)
    sums = np.cumsum(falling)
    least, most = (np.searchsorted(sums * (1 + rounding), excess) + 1 for rounding in (1e-12, -1e-12))
    assert least <= len(shed) <= min(most, len(falling))


@given(instance=instances(), level=st.floats(0.1, 40), by_count=st.booleans())
def test_whoever_sheds_comes_down_to_the_level_and_nobody_else_gives_anything(instance, level, by_count):
    owner = shed_to(instance, level, by_count=by_count)
    kept = owner >= 0
    assert (owner[kept] == instance.home[kept]).all()
    loads = relative(instance, owner)
    assert (loads <= level * (1 + 1e-6)).all()
    fine = np.flatnonzero(instance.kept_loads / instance.capacity <= level)
    assert kept[np.isin(instance.home, fine)].all()


@given(drawn=answered(), level=st.floats(0.1, 40))
def test_going_home_raises_nobody_above_the_level_and_moves_no_more(drawn, level):
    instance, start = drawn
    owner = go_home(instance, start, level)
    before, after = relative(instance, start), relative(instance, owner)
    changed = owner != start
    assert (owner[changed] == instance.home[changed]).all()
    assert (after <= np.maximum(before, level) * (1 + 1e-6)).all()
    away = np.flatnonzero((owner != instance.home) & (instance.home >= 0))
    for unit in away:  # nothing is left that still fits
        home = instance.home[unit]
        assert after[home] + instance.weight[unit] / instance.capacity[home] > level * (1 - 1e-6)


def test_a_unit_that_returns_makes_room_for_heavier_ones():
    """The 4 fits at home with the second member only after the 1 of the first member left it."""
    instance = made([1.0, 4.0, 3.0], [0, 1, -1], members=2)
    assert go_home(instance, np.array([1, 0, 1], dtype=np.int32), 7.0).tolist() == [0, 1, 1]


# --- members keep what fits under a level


@given(instance=instances(), share=st.floats(1.0, 2.0))
def test_members_keep_their_units_up_to_a_level(instance, share):
    """An assignment; no move and no idle member if every member may keep all, and the rest fits."""
    level = instance.bound * share
    owner = keep_under(instance, level, Work(1e6))
    assert instance.allowed[np.arange(len(owner)), owner].all()
    assert instance.worth(owner).idle == 0
    home = stay_home(instance)
    before = instance.worth(home)
    if (instance.home >= 0).all() and before.largest <= level and not before.idle:
        assert owner.tolist() == home.tolist()


def test_a_member_does_not_lose_its_only_unit_when_others_are_evened_out():
    """The 2 goes to the idle second member, though the first one has more room for it."""
    allowed = [[0, 1], [3], [3], [3], [2], [0, 1, 2], [3]]
    may = np.array([[member in members for member in range(4)] for members in allowed])
    weight, home = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0], [0, -1, -1, -1, -1, 2, -1]
    instance = made(weight, home, capacity=[2.0, 1.0, 1.0, 1.0], allowed=may)
    assert keep_under(instance, instance.bound, Work(1e6)).tolist() == [0, 3, 3, 3, 2, 1, 3]


@pytest.mark.parametrize(
    ("weight", "home", "level", "moves"),
    [
        ([6.0, 5.0, 4.0, 4.0], [0, 0, 1, 1], 10.0, 2),  # the 6 leaves, and a 4 makes room for it
        ([5.0, 5.0, 3.0, 4.0, 3.0], [-1, 0, 0, 1, 1], 11.0, 1),  # a 3 makes room for a 5
        ([8.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], [-1, 0, 0, 0, 1, 1, 1], 10.0, 2),  # two of 2 for the 8
    ],
)
def test_a_heavy_unit_takes_the_place_of_lighter_ones(weight, home, level, moves):
    instance = made(weight, home, members=2)
    found = instance.worth(keep_under(instance, level, Work(1e6)))
    assert (found.moved_count, found.largest <= level) == (moves, True)


@given(instance=instances(), share=st.floats(1.0, 2.0))
def test_no_assignment_under_a_level_moves_less_than_the_bound(instance, share):
    level = instance.bound * share
    under = [found for o in answers(instance) if (found := instance.worth(o)).largest <= level]
    bound = fewest_moves(instance, level)
    assert all(found.moved_count >= bound for found in under)


def test_the_bound_of_moves_counts_givers_and_takers():
    assert fewest_moves(made([5.0, 4.0, 3.0, 1.0], [0] * 4, members=3), 6.0) == 2  # 7 too many: 5 and 4
    held = made([9.0, 9.0, 9.0, 9.0, 4.0], [0, 1, 2, 3, -1], members=4)
    assert fewest_moves(held, 10.0) == 3  # four take one each, and one of them is the 4
    torn = made([9.0, 1.0], [0, 0], members=2)
    torn.moved_count[:] = [[1.0, 1.0], [0.0, 1.0]]  # a unit of two members
    assert fewest_moves(torn, 9.0) == 1


@given(drawn=answered())
def test_idle_members_get_one_unit_of_members_that_have_others(drawn):
    instance, start = drawn
    owner = start.copy()
    fill_idle(instance, owner)
    before, after = instance.worth(start), instance.worth(owner)
    assert after.idle == 0
    assert after.largest <= before.largest * (1 + 1e-9)
    assert after.squares <= before.squares
    assert min(before.idle, 1) <= (owner != start).sum() <= before.idle


# --- what weighs nothing


@given(data=st.data())
def test_weightless_partitions_are_spread_as_evenly_as_gifts_can(data):
    """Nobody has two more than another that might have one of them, and without owners nothing is to move."""
    topics = {t: data.draw(st.integers(0, 5)) for t in "tuv"}
    chosen = st.lists(st.sampled_from("tuv"), unique=True, min_size=1)
    members = group(
        **{f"m{n}": member(" ".join(data.draw(chosen))) for n in range(data.draw(st.integers(1, 4)))}
    )
    problem = build_problem(Cluster(topics), members)
    able = {p: [m for m in range(len(members)) if problem.eligible(np.array([m]), np.array([p]))[0]]
            for p in problem.subscribed.tolist()}  # fmt: skip
    heavy = {p: data.draw(st.sampled_from(who)) for p, who in able.items() if data.draw(st.booleans())}
    light = np.array([p for p in able if p not in heavy], dtype=np.int32)
    home = np.array([data.draw(st.sampled_from([-1, *able[p]])) for p in light], dtype=np.int32)
    owner = np.full(problem.index.size, -1, dtype=np.int32)
    owner[list(heavy)] = list(heavy.values())
    most = data.draw(st.sampled_from([np.inf, 0, 2]))
    deal_weightless(problem, light, home, owner, most)
    count = np.bincount(owner[owner >= 0], minlength=len(members))
    assert all(owner[p] == m for p, m in heavy.items())
    assert all(owner[p] in able[p] for p in able)
    assert ((owner[light] != home) & (home >= 0)).sum() <= most
    if most == np.inf:
        assert all(count[owner[p]] <= count[m] + 1 for p in light.tolist() for m in able[p])
