"""Assignors made of assignors: cooperative ones, ones within a budget, ones held to a time."""

import threading
from collections import defaultdict
from dataclasses import replace
from importlib.metadata import entry_points
from math import inf, nan

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.cooperative_sticky import CooperativeStickyAssignor
from assignors.range import RangeAssignor
from assignors.roundrobin import RoundRobinAssignor
from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.combinators import Pairs, with_budget, with_cooperative, with_deadline
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.errors import AssignmentError
from coordinator_core.model import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from tests.examples import scaled
from tests.places import SCENARIOS

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
CLUSTER = Cluster({"t": 6, "u": 2})
SHORT = 0.05
"""Seconds; assignors that are too late here wait until they are let go."""


class Dealing:
    """As an author writes one: plain mappings, every partition to the next of its subscribers by name."""

    name = "dealing"

    def assign(self, cluster, group):
        dealt = {member: [] for member in group}
        for topic in sorted(cluster.topics):
            takers = sorted(m for m in group if topic in group[m].topics)
            for p in range(cluster.partition_count(topic) if takers else 0):
                dealt[takers[p % len(takers)]].append((topic, p))
        return dealt


class Talkative(Dealing):
    """It has everything that an assignor may have, and notes what it is told."""

    name, version = "talkative", 7
    capabilities = ("balanced", Capability.WEIGHTED)

    def __init__(self):
        self.told = []

    def assign(self, cluster, group):
        dealt = {m: Partitions.of(given) for m, given in super().assign(cluster, group).items()}
        assignment = GroupAssignment(dealt, user_data={m: m.encode() for m in group})
        assignment.report = {"method": "dealing"}
        return assignment

    def subscription_user_data(self, topics):
        return "/".join(topics).encode()

    def on_assignment(self, partitions, generation):
        self.told.append((sorted(partitions), generation))


class Broken(Dealing):
    name = "broken"

    def __init__(self, raises):
        self.raises = raises

    def assign(self, cluster, group):
        raise self.raises


class Stuck(Dealing):
    name = "stuck"

    def __init__(self):
        self.let_go = threading.Event()

    def assign(self, cluster, group):
        self.let_go.wait()
        return super().assign(cluster, group)


@pytest.fixture
def stuck():
    """An assignor that hangs until the test is over."""
    made = Stuck()
    yield made
    made.let_go.set()


def group_of(**owned):
    """Members that subscribe to everything, and what they own."""
    return GroupSubscription({m: Subscription(("t", "u"), Partitions.of(o), 1) for m, o in owned.items()})


GROUP = group_of(a=[], b=[])


def owners(assignment):
    return {tp: member for member, given in assignment.items() for tp in given}


def answer(assignor, group=GROUP, cluster=CLUSTER):
    return owners(compute_assignment(assignor, cluster, group))


# --- cooperative


@st.composite
def groups(draw):
    """Members that subscribe to this and that, and claim what they like, in whatever generation."""
    claims = st.lists(st.sampled_from([("t", 0), ("t", 1), ("t", 5), ("u", 0), ("u", 9)]), unique=True)
    subscriptions = st.builds(
        lambda topics, owned, generation: Subscription(tuple(topics), Partitions.of(owned), generation),
        st.lists(st.sampled_from(["t", "u"]), unique=True),
        claims,
        st.integers(-1, 3),
    )
    return GroupSubscription(draw(st.dictionaries(st.sampled_from("abcd"), subscriptions, min_size=1)))


def claimants(group):
    found = defaultdict(list)
    for member, subscription in group.items():
        for tp in subscription.owned:
            found[tp].append(member)
    return found


def valid_owner(group, tp, members):
    """Who claims it in the newest generation, if that is one member, and it still subscribes."""
    newest = max(group[m].generation for m in members)
    newest_members = [m for m in members if group[m].generation == newest]
    alone = len(newest_members) == 1 and tp.topic in group[newest_members[0]].topics
    return newest_members[0] if alone else None


INNER = [RangeAssignor, RoundRobinAssignor, Dealing]


@pytest.mark.parametrize("inner", INNER)
@settings(max_examples=scaled(60))
@given(group=groups())
def test_cooperative_is_the_inner_answer_without_what_another_still_claims(inner, group):
    """C-65: a claim in whatever generation counts, but does not keep the valid owner from what it has."""
    wanted, claims = answer(inner(), group), claimants(group)
    given_now = answer(with_cooperative(inner()), group)
    expected = {
        tp: member
        for tp, member in wanted.items()
        if set(claims[tp]) <= {member} or valid_owner(group, tp, claims[tp]) == member
    }
    assert given_now == expected


@pytest.mark.parametrize("inner", INNER)
@settings(max_examples=scaled(60))
@given(group=groups())
def test_one_round_after_everybody_gave_up_what_it_lost_it_is_the_inner_answer(inner, group):
    assignor = with_cooperative(inner())
    first = compute_assignment(assignor, CLUSTER, group)
    after = GroupSubscription(
        {m: msgspec.structs.replace(s, owned=first[m], generation=4) for m, s in group.items()}
    )
    assert answer(assignor, after) == answer(inner(), after)


def test_what_moves_is_held_back_and_what_stays_is_not():
    """Four of a's six must go to b: they are nobody's for a round; the two new ones need not wait."""
    group = group_of(a=[("t", p) for p in range(6)], b=[])
    given_now = answer(with_cooperative(RangeAssignor()), group)
    assert given_now == {("t", 0): "a", ("t", 1): "a", ("t", 2): "a", ("u", 0): "a", ("u", 1): "b"}


def test_a_cooperative_one_has_a_name_of_its_own_and_can_do_without():
    """In a group in which some have it and some do not yet, the name tells them apart."""
    made = with_cooperative(RangeAssignor())
    assert made.name == "range-cooperative"
    assert tuple(made.supported_protocols) == (COOPERATIVE, EAGER)
    assert tuple(with_deadline(RangeAssignor(), 60).supported_protocols) == (EAGER,)


# --- cooperative, in the simulator


@pytest.fixture(scope="module")
def registry():
    """Everything built in, and an author's assignor."""

    class Plugin:
        @hookimpl
        def assignors(self):
            return [AssignorSpec("dealing", Dealing)]

    made = Registry()
    made.load(entry_points(group="rebalance_lab"))
    made.register(Plugin(), name="dealing")
    return made


def run(name, strategy, registry):
    """The trace of a run in which no rule was broken and which ended at rest."""
    watch = Invariants()
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    if name == "rolling-deploy":  # of 40 members, twelve
        scenario = replace(scenario, members=scenario.members[:12], duration_ms=10 * 60_000)
    trace = simulate(scenario, strategy, registry, watch=watch)
    assert watch.violations == []
    assert watch.settled() == []
    assert trace.ended.group_state == "Stable"
    return trace


SMALL = ["scale-out", "leave", "bounce", "mixed-subscriptions"]
RUNS = [(name, inner) for name in SMALL for inner in ("range", "roundrobin", "dealing")]
RUNS += [pytest.param("rolling-deploy", "range", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("name", "inner"), RUNS)
def test_a_cooperative_group_breaks_no_rule_and_ends_with_the_inner_answer(name, inner, registry):
    cooperative = History(run(name, f"{inner}+cooperative", registry)).last_settled
    assert cooperative is not None
    if name in SMALL:
        assert cooperative.owners == History(run(name, inner, registry)).last_settled.owners


# --- within a budget


def test_an_assignor_that_answers_in_time_is_not_replaced():
    assert answer(with_budget(Dealing(), 60, RangeAssignor())) == answer(Dealing())
    assert answer(with_budget(Dealing(), inf, RangeAssignor())) == answer(Dealing())


def test_the_fallback_answers_for_one_that_is_too_late(stuck):
    assert answer(with_budget(stuck, SHORT, RangeAssignor())) == answer(RangeAssignor())
    assert answer(RangeAssignor()) != answer(Dealing())


@pytest.mark.parametrize("raises", [ValueError("no"), TimeoutError("a service did not answer")])
def test_one_that_fails_in_time_has_failed(raises):
    """Lateness is what the budget is for; an error is not covered up."""
    with pytest.raises(AssignmentError, match="'broken': raised") as caught:
        answer(with_budget(Broken(raises), 60, RangeAssignor()))
    assert str(raises) in str(caught.value)


def test_a_budget_of_pairs_reaches_to_its_number_and_no_further():
    """Six partitions for two members and two for one of them are fourteen pairs."""
    both, one = Subscription(("t", "u")), Subscription(("t",))
    group = GroupSubscription({"a": both, "b": one})
    assert answer(with_budget(Dealing(), Pairs(14), RangeAssignor()), group) == answer(Dealing(), group)
    assert answer(with_budget(Dealing(), Pairs(13), RangeAssignor()), group) == answer(RangeAssignor(), group)


@pytest.mark.parametrize("limit", [0, -1, -inf, nan, Pairs(0), Pairs(-3)])
def test_a_limit_that_is_not_above_zero_is_refused(limit):
    with pytest.raises(ValueError, match="a limit above 0, not "):
        with_budget(Dealing(), limit, RangeAssignor())


def test_the_fallback_hears_of_assignments_too():
    """It may have to answer the next time, and then knows what its member had."""
    inner, fallback = Talkative(), Talkative()
    with_budget(inner, 60, fallback).on_assignment(Partitions.of([("t", 1)]), 4)
    assert inner.told == fallback.told == [([TopicPartition("t", 1)], 4)]


def test_in_a_cooperative_group_the_fallback_holds_back_what_moves():
    """Else two members would work on one partition."""
    group = group_of(a=[("t", p) for p in range(6)], b=[])
    limited = with_budget(with_cooperative(Dealing()), Pairs(1), RangeAssignor())
    assert answer(limited, group) == answer(with_cooperative(RangeAssignor()), group)
    assert answer(with_budget(Dealing(), Pairs(1), RangeAssignor()), group) == answer(RangeAssignor(), group)


def test_a_fallback_that_is_cooperative_is_left_as_it_is():
    group = group_of(a=[("t", p) for p in range(6)], b=[])
    limited = with_budget(with_cooperative(Dealing()), Pairs(1), CooperativeStickyAssignor())
    assert answer(limited, group) == answer(CooperativeStickyAssignor(), group)


@pytest.mark.parametrize(
    "strategy", ["range+cooperative+budget=1pairs:range", "range+budget=1pairs+cooperative"]
)
def test_a_cooperative_group_with_a_budget_breaks_no_rule(strategy, registry):
    run("scale-out", strategy, registry)


# --- held to a time


def test_one_that_is_too_late_has_failed_and_is_named(stuck):
    with pytest.raises(AssignmentError) as caught:
        answer(with_deadline(stuck, SHORT))
    assert (caught.value.assignor, caught.value.violations) == ("stuck", ("no answer within 0.05 s",))


# --- what passes through all of them

COMBINED = {
    "cooperative": with_cooperative,
    "budget": lambda inner: with_budget(inner, 60, Dealing()),
    "pairs": lambda inner: with_budget(inner, Pairs(1_000), Dealing()),
    "deadline": lambda inner: with_deadline(inner, 60),
    "all": lambda inner: with_deadline(with_budget(with_cooperative(inner), 60, Dealing()), 60),
}


@pytest.mark.parametrize("combine", COMBINED.values(), ids=COMBINED)
def test_everything_but_assigning_is_the_inner_ones(combine):
    inner = Talkative()
    made = combine(inner)
    assert made.version == 7
    assert frozenset(made.capabilities) == {Capability.BALANCED, Capability.WEIGHTED}
    assert made.subscription_user_data(("t", "u")) == b"t/u"
    made.on_assignment(Partitions.of([("u", 0)]), 2)
    assert inner.told == [([TopicPartition("u", 0)], 2)]
    assignment = compute_assignment(made, CLUSTER, GROUP)
    assert assignment.user_data == {"a": b"a", "b": b"b"}
    assert assignment.report == {"method": "dealing"}
