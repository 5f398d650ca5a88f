"""What holds for every assignor of the program, whatever the group. Groups are drawn by Hypothesis.

The sticky ones of Apache Kafka keep some of these laws in most groups only; they are held against Kafka in
test_vectors.py and test_oracle.py.
"""

import random
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from coordinator_core.protocol.consumer_protocol import encode_assignment
from coordinator_core.registry.registry import default_registry
from tests.assignors.groups import (
    BALANCED,
    KAFKAS,
    LAWFUL,
    MEMBERS,
    NAMES,
    RACKS,
    assign,
    changed,
    claims,
    cost,
    counted_owners,
    fed_back,
    group,
    groups,
    listed,
    lists_or_error,
    member,
    sets,
    subscriptions,
    wanted,
)
from tests.examples import scaled

every_assignor = pytest.mark.parametrize("name", NAMES)
the_lawful_ones = pytest.mark.parametrize("name", LAWFUL)
the_sticky_ones = pytest.mark.parametrize("name", [*BALANCED, *KAFKAS])
EAGER = {
    "sticky": "sticky",
    "cooperative-sticky": "sticky",
    "sticky-balanced": "sticky-balanced",
    "sticky-balanced+cooperative": "sticky-balanced",
}
examples = settings(max_examples=scaled(35))


def given_out(assignment):
    return [tp for got in assignment.values() for tp in got]


# --- validity


@the_lawful_ones
@examples
@given(drawn=groups())
def test_every_partition_goes_to_one_subscriber_and_none_is_left(name, drawn):
    """C-60: only what a member holds that is to give it up may be left out, and only cooperatively."""
    cluster, members = drawn
    assignment = assign(name, cluster, members)
    assert list(assignment) == members.sorted_members()
    out = given_out(assignment)
    assert len(out) == len(set(out))
    for m, got in assignment.items():
        assert {tp.topic for tp in got} <= set(members[m].topics)
    left = wanted(cluster, members) - set(out)
    assert set(out) <= wanted(cluster, members)
    if name == "sticky-balanced+cooperative":
        final = sets(assign("sticky-balanced", cluster, members))
        new = {tp: m for m, got in final.items() for tp in got}
        assert all(set(claims(cluster, members)[tp]) - {new[tp]} for tp in left)
    else:
        assert not left


# --- determinism


@every_assignor
@examples
@given(drawn=groups(), random=st.randoms(use_true_random=False))
def test_the_order_of_members_and_topics_changes_nothing(name, drawn, random):
    """C-61."""
    cluster, members = drawn

    def shuffled(items):
        items = list(items)
        random.shuffle(items)
        return items

    topics = Cluster(dict(shuffled(cluster.topics.items())))
    again = GroupSubscription(
        {
            m: changed(s, topics=tuple(shuffled(s.topics)), owned=Partitions.of(shuffled(s.owned)))
            for m, s in shuffled(members.items())
        }
    )
    first, second = lists_or_error(name, cluster, members), lists_or_error(name, topics, again)
    if name in ("range", *KAFKAS) and not isinstance(first, str):
        # the lists show how Java's hash maps were filled, see test_range.py, and what members listed first
        first, second = sets(first), sets(second)
    assert list(first) == list(second)
    assert first == second


@every_assignor
@examples
@given(first=groups(), second=groups())
def test_an_assignor_remembers_nothing_of_the_groups_it_has_assigned(name, first, second):
    """C-71: one object, used for one group, another, and the first again."""
    assignor = default_registry().assignor(name)
    once = lists_or_error(assignor, *first)
    lists_or_error(assignor, *second)
    assert lists_or_error(assignor, *first) == once


@every_assignor
def test_assigning_needs_no_clock_file_socket_or_chance(name, monkeypatch):
    """C-71."""
    cluster = Cluster({"a": 9, "b": 4, "c": 3})
    members = group(
        c1=member("a b", "a:0,1,2,3,4,5", rack="r1"), c2=member("b c", "b:0", rack="r2"), c3=member("a")
    )
    expected = listed(assign(name, cluster, members))  # modules are loaded, the registry is filled
    assignor = default_registry().assignor(name)

    def refuse(*_, **__):
        raise AssertionError("an assignor touched the world")

    places = ["builtins.open", "os.urandom", "os.open", "os.getenv", "socket.socket", "time.time"]
    places += ["time.monotonic", "time.perf_counter", "time.sleep", "uuid.uuid4", "numpy.random.default_rng"]
    with monkeypatch.context() as patched:
        for place in places:
            patched.setattr(place, refuse)
        for drawing in ("random", "shuffle", "choice", "sample", "randint", "randrange", "getrandbits"):
            patched.setattr(random, drawing, refuse)
        found = listed(assignor.assign(cluster, members))
    assert found == expected


@every_assignor
@examples
@given(drawn=groups())
def test_the_group_and_the_cluster_are_left_as_they_were(name, drawn):
    """C-71."""
    cluster, members = drawn
    before = [(m, list(s.owned), s.topics, s.generation) for m, s in members.items()]
    topics = dict(cluster.topics)
    lists_or_error(name, cluster, members)
    assert [(m, list(s.owned), s.topics, s.generation) for m, s in members.items()] == before
    assert dict(cluster.topics) == topics


# --- rounds


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky-balanced"])
@examples
@given(drawn=groups())
def test_a_group_that_does_not_change_is_assigned_the_same_again(name, drawn):
    """C-62."""
    cluster, members = drawn
    first = assign(name, cluster, members)
    assert listed(assign(name, cluster, fed_back(members, first))) == listed(first)


@given(drawn=groups())
def test_the_cooperative_one_comes_to_rest_within_two_rounds(drawn):
    """C-62, C-63, from any claims: the second round hands out what the first held back, and is the last."""
    cluster, members = drawn
    first = assign("sticky-balanced+cooperative", cluster, members)
    second = assign("sticky-balanced+cooperative", cluster, fed_back(members, first))
    third = assign("sticky-balanced+cooperative", cluster, fed_back(members, second, generation=8))
    assert set(given_out(second)) == wanted(cluster, members)
    assert sets(third) == sets(second)
    kept = sets(second)
    assert all(set(got) <= kept[m] for m, got in first.items())


@given(drawn=groups(least=2), newcomer=st.data())
def test_the_cooperative_one_takes_two_rounds_at_most_after_a_join_or_leave(drawn, newcomer):
    """C-63: from a group at rest, with racks and subscriptions of every kind."""
    cluster, members = drawn
    rest = assign("sticky-balanced", cluster, members)
    settled = fed_back(members, rest)
    after = dict(settled.items())
    if newcomer.draw(st.booleans()):
        after.pop(newcomer.draw(st.sampled_from(sorted(after))))
    else:
        after["new"] = changed(
            newcomer.draw(subscriptions(sorted(cluster.topics))), owned=Partitions(), generation=-1
        )
    after, answers = GroupSubscription(after), []
    for generation in range(10, 14):
        answers.append(sets(assign("sticky-balanced+cooperative", cluster, after)))
        after = fed_back(after, assign("sticky-balanced+cooperative", cluster, after), generation)
    assert answers[1] == answers[2] == answers[3]
    assert set().union(*answers[1].values()) == wanted(cluster, after)


# --- ownership


@given(drawn=groups())
def test_nothing_is_given_to_one_member_while_another_holds_it(drawn):
    """C-64: whoever gets a partition is alone in claiming it, or is the owner that counts."""
    cluster, members = drawn
    counted, claimed = counted_owners(cluster, members), claims(cluster, members)
    for m, got in assign("sticky-balanced+cooperative", cluster, members).items():
        for tp in got:
            assert set(claimed.get(tp, ())) <= {m} or counted.get(tp) == m


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky-balanced"])
@examples
@given(drawn=groups())
def test_claims_that_do_not_count_change_nothing(name, drawn):
    """C-65: outbid or doubled claims are as good as none, and the others of the same member still count."""
    cluster, members = drawn
    counted = counted_owners(cluster, members)
    cleaned = GroupSubscription(
        {
            m: changed(s, owned=Partitions.of(tp for tp in s.owned if counted.get(tp) == m))
            for m, s in members.items()
        }
    )
    assert listed(assign(name, cluster, members)) == listed(assign(name, cluster, cleaned))


@the_lawful_ones
@examples
@given(drawn=groups(), ids=st.permutations(MEMBERS))
def test_static_members_get_the_same_under_new_member_ids(name, drawn, ids):
    """C-66: members are told apart by their instance id, so a replacement changes nothing."""
    cluster, members = drawn
    old = sorted(members)
    new = dict(zip(old, ids, strict=False))

    def with_ids(names):
        return GroupSubscription({names[m]: changed(members[m], instance_id=f"i-{m}") for m in old})

    first = assign(name, cluster, with_ids({m: m for m in old}))
    second = assign(name, cluster, with_ids(new))
    assert {new[m]: got for m, got in sets(first).items()} == sets(second)


@the_sticky_ones
@examples
@given(drawn=groups(least=2, alike=True, racks=False), leaver=st.integers(0, 9))
def test_a_leave_moves_only_what_the_leaver_had(name, drawn, leaver):
    """C-67, where all subscribe alike."""
    cluster, members = drawn
    settled = fed_back(members, assign(EAGER[name], cluster, members))
    gone = sorted(members)[leaver % len(members)]
    after = GroupSubscription({m: s for m, s in settled.items() if m != gone})
    for m, got in assign(name, cluster, after).items():
        assert set(settled[m].owned) <= set(got)


@the_sticky_ones
@examples
@given(drawn=groups(least=1, alike=True, racks=False))
def test_a_join_moves_a_share_of_the_newcomer_and_no_more(name, drawn):
    """C-67: floor(P / (n + 1)) partitions, which is what the newcomer ends up with."""
    cluster, members = drawn
    settled = fed_back(members, assign(EAGER[name], cluster, members))
    newcomer = Subscription(tuple(sorted(cluster.topics)))
    after = GroupSubscription({**settled, "new": newcomer})
    assignment = assign(name, cluster, after)
    lost = sum(len(set(settled[m].owned) - set(assignment[m])) for m in members)
    gained = sum(len(set(assignment[m]) - set(settled[m].owned)) for m in members)
    share = len(wanted(cluster, after)) // len(after)
    assert (lost, gained) == (share, 0)
    assert len(assignment["new"]) == (share if name == EAGER[name] else 0)


# --- unusual groups


@every_assignor
def test_nobody_gets_nothing_from_nothing(name):
    """C-69: no members, no topics, neither."""
    assert dict(assign(name, Cluster({}), group())) == {}
    assert dict(assign(name, Cluster({"t": 3}), group())) == {}
    assert listed(assign(name, Cluster({}), group(a=member("t"), b=member("")))) == {"a": [], "b": []}


@every_assignor
def test_a_topic_nobody_described_or_without_partitions_is_left_out(name):
    """C-69: and what members claim of it is forgotten."""
    members = group(a=member("known unknown none", "unknown:0,1 none:0"), b=member("unknown"))
    cluster = Cluster({"known": 2, "none": 0})
    assert listed(assign(name, cluster, members)) == {"a": [("known", 0), ("known", 1)], "b": []}


@the_lawful_ones
def test_whoever_subscribes_to_nothing_gets_nothing(name):
    """C-69: not even what it says it owns."""
    members = group(a=member("", "t:0,1"), b=member("t"))
    first = assign(name, Cluster({"t": 2}), members)
    assert list(first["a"]) == []
    second = assign(name, Cluster({"t": 2}), fed_back(members, first))
    assert listed(second) == {"a": [], "b": [("t", 0), ("t", 1)]}


@every_assignor
def test_more_members_than_partitions_leaves_some_without(name):
    """C-69."""
    members = GroupSubscription({f"m{n}": member("t") for n in range(5)})
    lengths = [len(got) for got in assign(name, Cluster({"t": 3}), members).values()]
    assert sorted(lengths) == [0, 0, 1, 1, 1]


@every_assignor
def test_names_may_be_anything_that_text_can_be(name):
    """C-69: spaces, accents, letters outside the basic plane."""
    topics = ("größe", "\U0001f600", "with space", "\uff41")
    members = GroupSubscription({m: Subscription(topics) for m in ("ü", "\U0001f642", "\uffee", " ")})
    assignment = assign(name, Cluster(dict.fromkeys(topics, 4)), members)
    assert list(assignment) == [" ", "ü", "\U0001f642", "\uffee"]  # surrogates come before U+FFEE in Java
    assert {m: len(got) for m, got in assignment.items()} == dict.fromkeys(members, 4)


@every_assignor
def test_disjoint_subscriptions_do_not_meet(name):
    """C-69: the members of each topic get what they would get alone."""
    cluster = Cluster({"t": 5, "u": 4})
    left, right = {"a": member("t"), "c": member("t")}, {"b": member("u"), "d": member("u")}
    together = listed(assign(name, cluster, GroupSubscription({**left, **right})))
    apart = [listed(assign(name, cluster, GroupSubscription(each))) for each in (left, right)]
    assert together == apart[0] | apart[1]


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("range", [3, 6, 9]),
        ("roundrobin", [3, 5, 10]),
        ("sticky", [6, 6, 6]),
        ("cooperative-sticky", [6, 6, 6]),
        ("sticky-balanced", [6, 6, 6]),
    ],
)
def test_nested_subscriptions_are_balanced_as_well_as_the_assignor_can(name, loads):
    """C-69: the sticky ones give the narrow member its fill and the rest to the others."""
    cluster = Cluster({"t": 8, "u": 5, "v": 5})
    members = group(a=member("t"), b=member("t u"), c=member("t u v"))
    assert [len(got) for got in assign(name, cluster, members).values()] == loads


@given(drawn=groups())
def test_racks_never_make_the_balance_worse(drawn):
    """C-72: the sum of squares is the same as without racks, and no more owners are across racks."""
    with_racks, members = drawn
    without = Cluster({t: info.partitions for t, info in with_racks.topics.items()})
    blind, aware = assign("sticky-balanced", without, members), assign("sticky-balanced", with_racks, members)
    measured, reference = cost(with_racks, members, aware), cost(with_racks, members, blind)
    assert measured[0] == reference[0]
    assert measured[1] <= reference[1]


@every_assignor
@examples
@given(drawn=groups(), everywhere=st.booleans())
def test_racks_that_cannot_matter_change_nothing(name, drawn, everywhere):
    """C-72: all partitions have replicas in all racks, or no member says where it is."""
    cluster, members = drawn
    bare = Cluster({t: info.partitions for t, info in cluster.topics.items()})
    racked = cluster
    if everywhere:
        topics = {
            t: TopicInfo(i.partitions, (tuple(RACKS),) * i.partitions) for t, i in cluster.topics.items()
        }
        racked = Cluster(topics)
    else:
        members = GroupSubscription({m: changed(s, rack=None) for m, s in members.items()})
    assert lists_or_error(name, racked, members) == lists_or_error(name, bare, members)


# --- size


def wire_size(partitions):
    """Version, array of topics (name, array of numbers), user data that is null."""
    named = sum(2 + len(t.encode()) + 4 + 4 * len(numbers) for t, numbers in partitions.by_topic().items())
    return 2 + 4 + named + 4


@every_assignor
def test_the_assignment_of_a_big_group_stays_below_the_message_limit(name):
    """C-74: 500 members on 20,000 partitions of 200 topics."""
    topics = tuple(f"topic-{n:03}" for n in range(200))
    members = GroupSubscription({f"member-{n:04}": Subscription(topics) for n in range(500)})
    assignment = assign(name, Cluster(dict.fromkeys(topics, 100)), members)
    sizes = {m: len(encode_assignment(got)) for m, got in assignment.items()}
    assert sizes == {m: wire_size(got) for m, got in assignment.items()}
    assert sum(sizes.values()) < 1_000_000
    assert sum(map(len, assignment.values())) == 20_000


def test_random_churn_never_leaves_the_sticky_ones_apart():
    """C-63, C-67: thirty joins and leaves, one after another; both end each one with the same loads."""
    random = Random(5)
    cluster = Cluster({"a": 12, "b": 7, "c": 5})
    group_of = {name: {"m00": member("a b c"), "m01": member("a b"), "m02": member("c")} for name in BALANCED}
    for step in range(30):
        leaver = random.choice(sorted(group_of["sticky-balanced"])) if random.random() < 0.5 else None
        topics = random.choice(["a b c", "a b", "b c", "c"])
        loads = []
        for name, members in group_of.items():
            if leaver is not None and len(members) > 2:
                members.pop(leaver)
            else:
                members[f"m{step + 3:02}"] = member(topics)
            for round_ in range(2):
                answer = assign(name, cluster, GroupSubscription(members))
                fed = fed_back(GroupSubscription(members), answer, generation=10 * step + round_)
                members.update(fed.items())
            loads.append(sorted(len(got) for got in answer.values()))
            assert set(given_out(answer)) == wanted(cluster, GroupSubscription(members))
        assert loads[0] == loads[1]
