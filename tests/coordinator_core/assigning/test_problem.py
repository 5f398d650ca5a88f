"""The array view: classes, claims, racks, weights, and what is refused."""

from random import Random

import numpy as np
import pytest
from hypothesis import given

from coordinator_core.assigning.problem import build_problem, merged_rows
from coordinator_core.errors import InputError
from coordinator_core.model import (
    Cluster,
    GroupSubscription,
    Partitions,
    Subscription,
    TabledTopics,
    TopicIndex,
    TopicInfo,
)
from tests.assignors.groups import claims, counted_owners, crosses, group, groups, member, wanted


def owners(problem):
    """Partition -> member, for those that have an owner that counts."""
    every = np.arange(problem.index.size, dtype=np.int32)
    return {
        tp: problem.members[o]
        for tp, o in zip(problem.index.partitions(every), problem.owner.tolist(), strict=True)
        if o >= 0
    }


# --- classes


def test_members_that_subscribe_alike_form_a_class():
    problem = build_problem(
        Cluster({"t": 1, "u": 1}), group(a=member("t u"), b=member("t"), c=member("u t"), d=member(""))
    )
    assert problem.members == ("a", "b", "c", "d")
    assert problem.member_class.tolist() == [0, 1, 0, 2]
    assert problem.class_subscribes.tolist() == [[True, True], [True, False], [False, False]]
    assert problem.class_count == 3
    assert not problem.alike


class CountedName(str):
    """A name that counts how often names of its kind are hashed."""

    __slots__ = ()
    hashed = 0

    def __hash__(self):
        CountedName.hashed += 1
        return str.__hash__(self)


def test_equal_lists_of_topics_are_hashed_once_and_not_changed():
    """As a program builds them: every member has a list of its own, tuple or list, of the same names."""
    names = [CountedName(f"t{t:02}") for t in range(20)]
    alike = [names.copy() if m % 2 else tuple(names) for m in range(30)]
    others = [tuple(names[::-1]), (names[0], "other", *names[2:])]
    cluster = Cluster(dict.fromkeys(map(str, names), 1))
    group = GroupSubscription({f"m{m:02}": Subscription(t) for m, t in enumerate([*alike, *others])})
    cluster.index  # noqa: B018 - hashes the names of the cluster
    CountedName.hashed = 0
    problem = build_problem(cluster, group)
    assert CountedName.hashed < 8 * len(names) + 2 * len(group)
    assert problem.member_class.tolist() == [0] * 31 + [1]
    assert problem.member_list.tolist() == [0] * 30 + [1, 2]
    assert list(map(list, problem.topic_lists)) == [names, *map(list, others)]
    assert all(list(listed) == names for listed in alike)


@pytest.mark.parametrize("shared", [True, False])
def test_the_topics_of_a_large_group_are_found_whether_its_lists_share_their_names_or_not(shared):
    """Half of 300 topics for each of 60 members; every fifth topic is unknown."""
    random = Random(3)
    names = [f"topic-{t}" for t in range(300)]
    lists = [tuple(random.sample(names, 150)) for _ in range(60)]
    cluster = Cluster({name: 1 for t, name in enumerate(names) if t % 5})
    if not shared:
        lists = [tuple(f"{name} "[:-1] for name in listed) for listed in lists]
    members = {f"m{m:02}": Subscription(listed) for m, listed in enumerate(lists)}
    problem = build_problem(cluster, GroupSubscription(members))
    rows = problem.class_subscribes[problem.member_class]
    for row, listed in zip(rows, lists, strict=True):
        assert {t for t, has in zip(problem.index.topics, row, strict=True) if has} == set(listed) & set(
            cluster.topics
        )


def test_members_are_alike_when_all_subscribe_to_everything_there_is():
    cluster = Cluster({"t": 1, "u": 1})
    assert build_problem(cluster, group(a=member("t u"), b=member("u t missing"))).alike
    assert not build_problem(cluster, group(a=member("t"), b=member("t"))).alike
    assert not build_problem(cluster, group()).alike


def test_subscribed_partitions_are_those_of_topics_with_a_subscriber():
    problem = build_problem(Cluster({"t": 2, "u": 3, "v": 1}), group(a=member("v"), b=member("t")))
    assert problem.topic_subscribed.tolist() == [True, False, True]
    assert problem.subscribed.tolist() == [0, 1, 5]
    assert build_problem(Cluster({"t": 2}), group(a=member("t"))).subscribed.tolist() == [0, 1]


def test_topics_with_the_same_subscribers_share_a_signature():
    problem = build_problem(
        Cluster({"t": 1, "u": 1, "v": 1, "w": 1}), group(a=member("t u v"), b=member("t v"), c=member("v t"))
    )
    signature, subscribers = problem.topic_signature
    assert signature.tolist() == [0, 1, 0, -1]
    assert [each.tolist() for each in subscribers] == [[0, 1, 2], [0]]


def test_eligible_members_subscribe_to_the_topic():
    problem = build_problem(Cluster({"t": 1, "u": 1}), group(a=member("t"), b=member("t u")))
    members, partitions = np.array([0, 0, 1]), np.array([0, 1, 1])
    assert problem.eligible(members, partitions).tolist() == [True, False, True]
    alike = build_problem(Cluster({"t": 1}), group(a=member("t")))
    assert alike.eligible(np.array([0, 0]), np.array([0, 0])).tolist() == [True, True]


# --- claims


T6 = Cluster({"t": 6})


def test_two_claims_of_the_newest_generation_cancel():
    """C-65: an older third claim does not count either."""
    members = group(a=member("t", "t:0,1", 4), b=member("t", "t:1,2", 4), c=member("t", "t:1", 3))
    assert owners(build_problem(T6, members)) == {("t", 0): "a", ("t", 2): "b"}


def test_an_owner_that_no_longer_subscribes_counts_as_none():
    """C-65: its claim still outbids an older one, because it may still be at work."""
    problem = build_problem(T6, group(a=member("", "t:0", 4), b=member("t", "t:0,1", 3)))
    assert owners(problem) == {("t", 1): "b"}
    assert problem.claim_partition.tolist() == [0, 0, 1]
    assert problem.claim_member.tolist() == [0, 1, 1]


def test_a_claim_made_twice_by_one_member_is_one_claim():
    """C-65: numbers come from the wire as they are, doubled ones too."""
    twice = Subscription(("t",), Partitions({"t": [1, 1]}), 3)
    assert owners(build_problem(T6, GroupSubscription({"a": twice}))) == {("t", 1): "a"}
    both = GroupSubscription({"a": twice, "b": member("t", "t:1", 2)})
    assert owners(build_problem(T6, both)) == {("t", 1): "a"}


@given(drawn=groups())
def test_owners_and_claims_are_those_found_one_by_one(drawn):
    """C-65."""
    cluster, members = drawn
    problem = build_problem(cluster, members)
    assert owners(problem) == counted_owners(cluster, members)
    found = {}
    partitions = problem.index.partitions(problem.claim_partition)
    for tp, m in zip(partitions, problem.claim_member.tolist(), strict=True):
        found.setdefault(tp, set()).add(problem.members[m])
    assert found == {tp: set(by) for tp, by in claims(cluster, members).items()}
    assert set(problem.index.partitions(problem.subscribed)) == wanted(cluster, members)


def test_claims_in_another_numbering_mean_the_same_partitions():
    """A topic has come and one has gone since the members were assigned."""
    old = TopicIndex({"gone": 2, "t": 6})
    owned = Partitions.dense(old, np.array([1, 2, 7], dtype=np.int32))
    members = GroupSubscription({"a": Subscription(("t", "new"), owned, 1)})
    assert owners(build_problem(Cluster({"new": 3, "t": 5}), members)) == {("t", 0): "a"}


# --- racks


def test_racks_are_sets_of_names_with_the_empty_set_first():
    """C-72."""
    cluster = Cluster({"t": TopicInfo(4, (("y", "x"), (), ("x", "y"), ("z",))), "u": 1})
    racks = build_problem(
        cluster, group(a=member("t", rack="y"), b=member("t"), c=member("t", rack="w"))
    ).racks
    assert racks.names == ("w", "x", "y", "z")
    assert racks.member.tolist() == [2, -1, 0]
    assert racks.sets.tolist() == [
        [False, False, False, False],
        [False, True, True, False],
        [False, False, False, True],
    ]
    assert racks.partition_set.tolist() == [1, 0, 1, 2, 0]


@given(drawn=groups())
def test_an_owner_crosses_where_no_replica_is_in_its_rack(drawn):
    """C-72: members and partitions without racks never do."""
    cluster, members = drawn
    problem = build_problem(cluster, members)
    every = np.arange(problem.index.size, dtype=np.int32)
    for p, tp in enumerate(problem.index.partitions(every)):
        for m, name in enumerate(problem.members):
            expected = crosses(cluster, members[name], tp)
            if problem.racks is None:
                assert not expected
            else:
                row, column = problem.racks.partition_set[p], problem.racks.member[m]
                assert problem.racks.crossing[row, column] == expected


@pytest.mark.parametrize(
    ("replicas", "rack"),
    [(None, "x"), ((("x",), ("x",)), None), ((("x",), ("x",)), ""), (((), ()), "x")],
    ids=["no replicas known", "member without", "member with an empty one", "empty sets only"],
)
def test_without_racks_on_both_sides_there_are_none(replicas, rack):
    """C-72."""
    assert (
        build_problem(Cluster({"t": TopicInfo(2, replicas)}), group(a=member("t", rack=rack))).racks is None
    )


def test_racks_must_be_there_for_every_partition():
    """Even where no member has a rack."""
    with pytest.raises(InputError) as told:
        build_problem(Cluster({"t": TopicInfo(3, (("x",), ("x",)))}), group(a=member("t")))
    assert str(told.value) == "topics.t.racks: found 2 entries, expected one per partition, 3"


# --- weights and capacities


def test_topics_without_weights_weigh_one_where_others_have_them():
    cluster = Cluster({"t": TopicInfo(2, weights=(0.5, 3)), "u": 2})
    assert build_problem(cluster, group(a=member("t u"))).weights.tolist() == [0.5, 3.0, 1.0, 1.0]
    assert build_problem(Cluster({"t": 2}), group(a=member("t"))).weights is None


def test_a_member_that_names_no_capacity_counts_as_the_mean_of_those_that_do():
    members = group(b=member("t"), a=member("t", capacity=2.5), c=member("t", capacity=1.5))
    assert build_problem(T6, members).capacity.tolist() == [2.5, 2.0, 1.5]
    assert build_problem(T6, group(a=member("t"))).capacity is None


def test_weights_must_be_there_for_every_partition():
    with pytest.raises(InputError) as told:
        build_problem(Cluster({"t": TopicInfo(1, weights=(1.0, 2.0))}), group())
    assert str(told.value) == "topics.t.weights: found 2 entries, expected one per partition, 1"


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), 1e100])
def test_a_weight_that_is_no_amount_is_refused_by_place(weight):
    with pytest.raises(InputError) as told:
        build_problem(Cluster({"t": TopicInfo(2, weights=(1.0, weight))}), group())
    expected = "expected a number of 0 or more, below 1e+100"
    assert str(told.value) == f"topics.t.weights[1]: found {weight}, {expected}"


@pytest.mark.parametrize("capacity", [0, -1.0, 1e-51, 1e100, float("nan"), float("inf")])
def test_a_capacity_that_is_no_amount_is_refused_by_member(capacity):
    with pytest.raises(InputError) as told:
        build_problem(T6, group(a=member("t"), b=member("t", capacity=capacity)))
    expected = "expected a number of 1e-50 or more, below 1e+100"
    assert str(told.value) == f"members.b.capacity: found {capacity}, {expected}"


def test_a_group_of_nobody_is_a_problem_like_any_other():
    """C-69."""
    problem = build_problem(T6, group())
    assert problem.members == ()
    assert problem.owner.tolist() == [-1] * 6
    assert problem.subscribed.tolist() == []
    assert (problem.class_count, problem.racks, problem.capacity) == (0, None, None)


def test_topics_of_a_table_are_those_of_their_names():
    """Given lists that share names, lists with other names and plain ones, then classes and topics are those
    of plain lists. C-70."""

    def tabled(names, *number):
        row = np.isin(np.arange(len(names)), number)
        return TabledTopics.of(names, row, [names[n] for n in number])

    names, others = ("unknown", "b", "a"), ("c", "a")
    lists = [tabled(names, 2, 0), ("a",), tabled(others, 0), tabled(names), tabled(names, 1, 2)]
    lists += [tabled(names, 2), ("c", "nowhere"), tabled(others, 1, 0)]
    plain = [tuple(topics) for topics in lists]
    cluster = Cluster({"a": 2, "b": 1, "c": 1})
    found, expected = (
        build_problem(cluster, GroupSubscription({f"m{m}": Subscription(t) for m, t in enumerate(each)}))
        for each in (lists, plain)
    )
    assert found.member_class.tolist() == expected.member_class.tolist() == [0, 0, 1, 2, 3, 0, 1, 4]
    assert found.class_subscribes.tolist() == expected.class_subscribes.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
def test_equal_rows_are_merged_in_order_of_appearance_however_they_lie_in_memory(order):
    rows = np.zeros((4, 20), dtype=np.bool_, order=order)
    rows[[1, 3], 19] = rows[2, 0] = True
    distinct, number = merged_rows(rows)
    assert (distinct.tolist(), number.tolist()) == (rows[:3].tolist(), [0, 1, 2, 1])
