"""The answer is the best there is, held against every assignment of small groups and against another flow."""

from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from tests.assignors.groups import cost, fed_back, group, groups, member, told, wanted
from tests.coordinator_core.assigning.flow.oracle import best_by_one_flow, best_by_trying, solved, ways

MOST_WAYS = 1_000

patient = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def assert_best(cluster, members, best):
    answer = solved(cluster, members)
    assert {tp for got in answer.values() for tp in got} == wanted(cluster, members)
    assert cost(cluster, members, answer) == best


@patient
@given(drawn=groups(least=1))
def test_no_assignment_of_a_small_group_is_better(drawn):
    """PROTOCOL 10.3, C-67: all assignments are tried."""
    cluster, members = drawn
    assume(ways(cluster, members) <= MOST_WAYS)
    assert_best(cluster, members, best_by_trying(cluster, members))


def random_group(seed):
    """Up to 9 members and 6 topics; racks, void claims and previous owners by chance."""
    random = Random(seed)
    racks = ["r1", "r2", "r3"] if random.random() < 0.6 else []
    topics = {}
    for t in range(random.randint(1, 6)):
        count = random.randint(0, 7)
        replicas = None
        if racks and random.random() < 0.8:
            replicas = tuple(tuple(random.sample(racks, random.randint(0, 2))) for _ in range(count))
        topics[f"t{t}"] = TopicInfo(count, replicas)
    alike = random.random() < 0.2
    members = {}
    for m in range(random.randint(1, 9)):
        chosen = list(topics) if alike else random.sample(list(topics), random.randint(0, len(topics)))
        owned = [(random.choice(list(topics)), random.randint(0, 7)) for _ in range(random.randint(0, 8))]
        members[f"m{m}"] = Subscription(
            tuple(chosen),
            Partitions.of(owned),
            random.choice([-1, 4, 5, 5]),
            rack=random.choice(racks) if racks and random.random() < 0.8 else None,
        )
    return Cluster(topics), GroupSubscription(members)


@pytest.mark.parametrize("first_seed", range(0, 400, 100))
def test_a_flow_with_partitions_as_nodes_finds_nothing_better(first_seed):
    """PROTOCOL 10.3, C-65, C-72: a hundred groups each."""
    for seed in range(first_seed, first_seed + 100):
        cluster, members = random_group(seed)
        answer = solved(cluster, members)
        assert cost(cluster, members, answer) == best_by_one_flow(cluster, members), f"seed {seed}"
        assert {tp for got in answer.values() for tp in got} == wanted(cluster, members), f"seed {seed}"


@patient
@given(drawn=groups(least=1, most=6))
def test_the_two_ways_to_judge_agree(drawn):
    """The judges are judged: the other flow finds what trying all assignments finds."""
    cluster, members = drawn
    assume(ways(cluster, members) <= MOST_WAYS)
    assert best_by_one_flow(cluster, members) == best_by_trying(cluster, members)


@pytest.mark.parametrize("seed", range(5))
def test_sixty_members_that_subscribe_differently_lose_one_of_them(seed):
    """PROTOCOL 10.3, C-67: 600 partitions of 40 topics, 8 topics a member; racks in every other group."""
    random = Random(seed)
    racks = ["r1", "r2", "r3"]

    def topic():
        replicas = tuple(tuple(random.sample(racks, 2)) for _ in range(15)) if seed % 2 else None
        return TopicInfo(15, replicas)

    cluster = Cluster({f"t{n:02}": topic() for n in range(40)})
    names = list(cluster.topics)
    members = {
        f"m{n:02}": Subscription(tuple(random.sample(names, 8)), rack=random.choice(racks)) for n in range(60)
    }
    before = fed_back(GroupSubscription(members), solved(cluster, GroupSubscription(members)))
    after = GroupSubscription({m: s for m, s in before.items() if m != "m17"})
    assert_best(cluster, after, best_by_one_flow(cluster, after))


def test_where_everything_else_is_equal_the_lowest_partitions_are_kept():
    """PROTOCOL 10.3, C-61: the same in the closed form and in the flow."""
    members = {"a": member("t", "t:3,1,5,0"), "b": member("t")}
    expected = {"a": "t:0,1,3", "b": "t:2,4,5"}
    assert told(solved(Cluster({"t": 6}), group(**members))) == expected
    apart = Cluster({"t": 6, "u": 3})
    joined = told(solved(apart, group(**members, c=member("t u", "u:0,1,2"))))
    assert joined["a"] == "t:0,1,3"
