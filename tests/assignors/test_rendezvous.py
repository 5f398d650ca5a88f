"""Rendezvous: who owns what follows from the names, within a bound."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import rendezvous
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import Cluster, GroupSubscription
from tests.assignors.groups import assign, fed_back, group, groups, listed, member, sets, told, wanted
from tests.examples import scaled

examples = settings(max_examples=scaled(60))


def dealt(cluster, members):
    return sets(assign("rendezvous", cluster, members))


def alike(names, topics="t"):
    return GroupSubscription({name: member(topics) for name in names})


def without(members, gone):
    return GroupSubscription({m: s for m, s in members.items() if m != gone})


@pytest.mark.parametrize(("partitions", "members"), [(1000, 20), (64, 7), (5, 4), (3, 5), (9, 1), (1, 2)])
def test_nobody_has_more_than_a_quarter_above_the_share(partitions, members):
    """Rounded up; all topics with the same subscribers count together."""
    topics = {"t": partitions // 2, "u": partitions - partitions // 2}
    loads = [len(got) for got in dealt(Cluster(topics), alike(map(str, range(members)), "t u")).values()]
    assert max(loads) <= ceil(1.25 * partitions / members)
    assert sum(loads) == partitions


@examples
@given(drawn=groups(least=1, racks=False))
def test_the_bound_holds_for_each_set_of_subscribers(drawn):
    cluster, members = drawn
    assignment = dealt(cluster, members)
    together = {}
    for tp in wanted(cluster, members):
        together.setdefault(frozenset(m for m in members if tp.topic in members[m].topics), set()).add(tp)
    assert set().union(*assignment.values()) == wanted(cluster, members)
    for subscribers, mine in together.items():
        for m in subscribers:
            assert len(assignment[m] & mine) <= ceil(1.25 * len(mine) / len(subscribers))


def test_nobody_and_a_partition_would_rather_have_each_other():
    """Each is with the member of the highest weight that did not prefer as many others, up to the bound."""
    problem = build_problem(Cluster({"t": 90, "u": 30}), alike("abcdefg", "t u"))
    owner = rendezvous.RendezvousAssignor().solve(problem).owners(problem.index, problem.members)
    weight = rendezvous._mixed(
        rendezvous._partition_words(problem)[:, None], rendezvous._member_words(problem)[None, :]
    )
    bound, mine = ceil(1.25 * 120 / 7), weight[np.arange(120), owner]
    assert np.bincount(owner).max() == bound  # somebody had to turn partitions away
    for p, m in np.argwhere(weight > mine[:, None]).tolist():
        assert (owner == m).sum() == bound
        assert mine[owner == m].min() > weight[p, m]


def test_without_a_bound_a_leave_moves_only_what_the_leaver_had(monkeypatch):
    """C-67: highest random weight alone; nothing comes from or goes to the others."""
    monkeypatch.setattr(rendezvous, "BOUND", 1e9)
    cluster, members = Cluster({"t": 300}), alike(f"m{n}" for n in range(12))
    before = dealt(cluster, members)
    for gone in members:
        after = dealt(cluster, without(members, gone))
        assert all(before[m] <= after[m] for m in after)


@pytest.mark.parametrize(("partitions", "members"), [(1000, 20), (200, 10), (1000, 5)])
def test_a_leave_moves_little_of_what_others_have(partitions, members):
    """C-67: beside the leaver's, what the bound pushed or pushes; measured, 3 of a share of 20 at most."""
    cluster, everybody = Cluster({"t": partitions}), alike(f"m{n}" for n in range(members))
    before = dealt(cluster, everybody)
    for gone in everybody:
        after = dealt(cluster, without(everybody, gone))
        assert sum(len(before[m] - after[m]) for m in after) <= partitions / members / 4


@pytest.mark.parametrize("newcomer", ["m20", "x", "ü"])
def test_a_join_moves_little_more_than_what_the_newcomer_gets(newcomer):
    cluster, members = Cluster({"t": 1000}), alike(f"m{n}" for n in range(20))
    before = dealt(cluster, members)
    after = dealt(cluster, GroupSubscription({**members, newcomer: member("t")}))
    assert len(after[newcomer]) >= 25
    assert sum(len(before[m] - after[m]) for m in before) <= len(after[newcomer]) + 12


def test_weights_of_members_differ_by_partition():
    """No member is first everywhere: the loads of many partitions are near the share."""
    loads = [len(got) for got in dealt(Cluster({"t": 4000}), alike("abcdefgh")).values()]
    assert min(loads) > 430


@examples
@given(drawn=groups(static=False), random=st.randoms(use_true_random=False))
def test_the_order_of_members_and_what_they_own_changes_nothing(drawn, random):
    """C-61: nothing is remembered."""
    cluster, members = drawn
    names = list(members)
    random.shuffle(names)
    first = assign("rendezvous", cluster, members)
    again = assign("rendezvous", cluster, GroupSubscription({m: members[m] for m in names}))
    assert listed(first) == listed(again)
    assert listed(first) == listed(assign("rendezvous", cluster, fed_back(members, first)))


def test_static_members_are_known_by_their_instance():
    """C-66: a returning member has a new id and the same partitions; among others it is like a member."""
    cluster = Cluster({"t": 40})
    before = group(old=member("t", instance_id="1"), a=member("t"), b=member("t"))
    after = group(zz=member("t", instance_id="1"), a=member("t"), b=member("t"))
    first, second = dealt(cluster, before), dealt(cluster, after)
    assert second == {"zz": first["old"], "a": first["a"], "b": first["b"]}
    assert dealt(cluster, group(old=member("t"), a=member("t"), b=member("t")))["old"] != first["old"]


def test_many_pairs_are_hashed_in_pieces(monkeypatch):
    cluster, members = Cluster({"t": 90, "u": 31}), alike("abcde", "t u")
    whole = dealt(cluster, members)
    monkeypatch.setattr(rendezvous, "_CHUNK", 7)
    assert dealt(cluster, members) == whole


def test_it_answers_the_same_in_years_to_come():
    """Members of several versions share a group: what names make of it is fixed."""
    expected = {"a": "t:0,2,5", "b": "t:3", "c": "t:1,4,6,7"}
    assert told(assign("rendezvous", Cluster({"t": 8}), alike("abc"))) == expected
