"""Adapted assignors in the clients' own coordinators, round after round: what the assignor says directly."""

import asyncio

import pytest

pytest.importorskip("tests.rebalance_kafka.test_adapters_driver", reason="a client is not installed")

from aiokafka.errors import KafkaError

from coordinator_core.errors import AssignmentError
from coordinator_core.model import Cluster, GroupSubscription, Partitions, RebalanceProtocol, Subscription
from rebalance_kafka.adapters import as_aiokafka, as_kafka_python
from tests.assignors.groups import assign, sets
from tests.rebalance_kafka.test_adapters_driver import AiokafkaPeer, Group, KafkaPythonPeer

pytestmark = pytest.mark.peer

EAGER = RebalanceProtocol.EAGER
ADAPTED = {"kafka-python": (KafkaPythonPeer, as_kafka_python), "aiokafka": (AiokafkaPeer, as_aiokafka)}
BOTH = [("kafka-python", "kafka-python"), ("aiokafka", "aiokafka"), ("kafka-python", "aiokafka")]


async def started(topics, members):
    """A group with members by name: (client, topics it subscribes to, strategy, further arguments)."""
    group = Group(topics)
    for name, (client, subscribed, strategy, *rest) in members.items():
        await join(group, name, client, subscribed, strategy, **(rest[0] if rest else {}))
    return group


async def join(group, name, client, subscribed, strategy, **kwargs):
    kind, adapt = ADAPTED[client]
    instance_id = kwargs.get("instance_id")
    await group.add(kind, name, subscribed, adapt(strategy, **kwargs), instance_id=instance_id)


async def stop(group):
    for name in list(group.peers):
        await group.remove(name)


def directly(name, topics, group, owned, generation, subscribed):
    """What an assignor says of the same members: their ids, topics, and what they owned since when."""
    ids = {peer: each.member_id for peer, each in group.peers.items()}
    members = {
        ids[peer]: Subscription(
            tuple(subscribed[peer].split()),
            Partitions.of(sorted(owned.get(peer, ()))),
            generation.get(peer, -1),
        )
        for peer in group.peers
    }
    given = sets(assign(name, Cluster(topics), GroupSubscription(members)))
    return {peer: given[ids[peer]] for peer in group.peers}


async def follow(name, clients, leader):
    """Members come and go and topics grow; after every round everybody has what the assignor says."""
    topics = {"t": 6, "u": 3}
    subscribed = {"a": "t u", "b": "t", "c": "t u", "d": "u"}
    group = await started(topics, {"a": (clients[0], "t u", name), "b": (clients[1], "t", name)})
    owned, since = {}, {}

    async def settle():
        for _ in range(4):
            await group.round(leader=leader)
            expected = directly(name, topics, group, owned, since, subscribed)
            assert group.owned() == expected
            owned.update(expected)
            since.update(dict.fromkeys(expected, group.generation))
            if not any(peer.wants_rejoin() for peer in group.peers.values()):
                break
        everything = {(topic, n) for topic, count in topics.items() for n in range(count)}
        assert set().union(*group.owned().values()) == everything

    await settle()
    await join(group, "c", clients[0], "t u", name)
    await join(group, "d", clients[1], "u", name)
    await settle()
    topics["u"] = 7
    group.set_topics(topics)
    await settle()
    gone = "b" if leader != "b" else "a"
    await group.remove(gone)
    owned.pop(gone)
    await settle()
    await stop(group)


@pytest.mark.parametrize("leader", ["a", "b"])
@pytest.mark.parametrize("clients", BOTH, ids="+".join)
@pytest.mark.parametrize("name", ["sticky", "range", "roundrobin", "optimal", "lag-aware+tolerance=10%"])
def test_an_eager_group_gets_what_the_assignor_says(name, clients, leader):
    asyncio.run(follow(name, clients, leader))


@pytest.mark.parametrize("leader", ["a", "b"])
@pytest.mark.parametrize("name", ["cooperative-sticky", "range+cooperative"])
def test_a_cooperative_group_of_kafka_python_gets_what_the_assignor_says_in_every_round(name, leader):
    asyncio.run(follow(name, ("kafka-python", "kafka-python"), leader))


def test_what_moves_in_a_cooperative_group_waits_until_its_owner_has_given_it_up():
    async def run():
        member = "kafka-python", "t", "cooperative-sticky"
        group = await started({"t": 4}, {"a": member})
        assert await group.rebalance() == 1
        await join(group, "b", *member)
        await group.round()
        first = group.owned()
        await group.rebalance()
        return first, group.owned()

    first, last = asyncio.run(run())
    assert {name: len(owned) for name, owned in first.items()} == {"a": 2, "b": 0}
    assert {name: len(owned) for name, owned in last.items()} == {"a": 2, "b": 2}
    assert first["a"] == last["a"]


@pytest.mark.parametrize("name", ["cooperative-sticky", "range+cooperative"])
@pytest.mark.parametrize("client", ADAPTED)
def test_eager_members_arrive_in_one_round_where_a_cooperative_assignor_goes_in_two(client, name):
    eager = {"protocol": EAGER} if client == "kafka-python" else {}

    async def run():
        group = await started({"t": 5}, {"a": (client, "t", name, eager)})
        await group.rebalance()
        before = group.owned()
        await join(group, "b", client, "t", name, **eager)
        assert await group.rebalance() == 1
        after = group.owned()
        await stop(group)
        return before, after

    before, after = asyncio.run(run())
    assert after["a"] < before["a"]
    assert after["a"] | after["b"] == before["a"]
    assert sorted(map(len, after.values())) == [2, 3]


@pytest.mark.parametrize("leader", ["k", "l", "x", "y"])
def test_in_a_mixed_cooperative_group_only_what_is_worked_on_is_held_back(leader):
    """Eager members have given everything up; nobody gets what a cooperative one still works on."""

    async def run():
        name = "cooperative-sticky"
        group = await started({"t": 12}, {"k": ("kafka-python", "t", name), "x": ("aiokafka", "t", name)})
        await group.rebalance()
        assert {name: len(owned) for name, owned in group.owned().items()} == {"k": 6, "x": 6}
        held = group.owned()["k"]
        before = group.owned()
        await join(group, "l", "kafka-python", "t", name)
        await join(group, "y", "aiokafka", "t", name)
        await group.round(leader=leader)
        first = group.owned()
        rounds = 1 + await group.rebalance(leader=leader)
        last = group.owned()
        await stop(group)
        return before, held, first, rounds, last

    before, held, first, rounds, last = asyncio.run(run())
    given = set().union(*first.values())
    assert given == {("t", n) for n in range(12)} - (held - first["k"])
    assert not any(held & owned for name, owned in first.items() if name != "k")
    assert rounds == 2
    assert {name: len(owned) for name, owned in last.items()} == dict.fromkeys("kxly", 3)
    assert last["k"] < before["k"]
    assert last["x"] < before["x"]


@pytest.mark.parametrize(("client", "other"), [("kafka-python", "aiokafka"), ("aiokafka", "kafka-python")])
def test_the_next_leader_may_be_of_the_other_library(client, other):
    async def run():
        group = await started({"t": 7}, {"a": (client, "t", "sticky"), "b": (other, "t", "sticky")})
        await group.rebalance(leader="a")
        first = group.owned()
        await group.rebalance(leader="b")
        second = group.owned()
        await join(group, "c", other, "t", "sticky")
        await group.rebalance(leader="a")
        third = group.owned()
        await group.remove("c")
        await group.rebalance(leader="b")
        fourth = group.owned()
        await stop(group)
        return first, second, third, fourth

    first, second, third, fourth = asyncio.run(run())
    assert second == first
    assert all(third[name] <= first[name] for name in "ab")
    assert len(third["c"]) == 2
    assert all(third[name] < fourth[name] for name in "ab")


@pytest.mark.parametrize("client", ADAPTED)
def test_a_member_that_comes_back_after_others_took_over_does_not_win(client):
    """The newest owner counts: generations arrive at assignors, whoever tells them."""

    async def run():
        group = await started({"t": 4}, dict.fromkeys("ab", (client, "t", "sticky")))
        await group.rebalance(leader="b")
        away = group.peers.pop("a")
        await group.rebalance(leader="b")
        away.lose_membership()
        group.peers["a"] = away
        await join(group, "c", client, "t", "sticky")
        await group.rebalance(leader="b")
        counts = {name: len(owned) for name, owned in group.owned().items()}
        await stop(group)
        return counts

    counts = asyncio.run(run())
    assert sorted(counts.values()) == [1, 1, 2]
    assert counts["b"] == 2


@pytest.mark.parametrize("leader", ["a", "b", "c"])
def test_claims_of_a_lost_membership_hold_nothing_back(leader):
    """A group that all of kafka-python's members were thrown out of: they own nothing, so that nobody would
    ask for the round in which a partition held back is given away."""

    async def run():
        member = "kafka-python", "t", "cooperative-sticky"
        group = await started({"t": 6}, {"a": member, "b": member})
        await group.rebalance()
        before = group.owned()
        for peer in group.peers.values():
            peer.lose_membership()
        await join(group, "c", *member)
        assert await group.rebalance(leader=leader) == 1
        return before, group.owned()

    before, after = asyncio.run(run())
    assert {name: len(owned) for name, owned in after.items()} == dict.fromkeys("abc", 2)
    assert all(after[name] < before[name] for name in "ab")


@pytest.mark.parametrize("clients", BOTH, ids="+".join)
def test_racks_reach_whoever_leads(clients):
    async def run(leader):
        racks = {"t": [("r1",), ("r2",), ("r1",), ("r2",)]}
        group = await started(
            racks,
            {
                "a": (clients[0], "t", "sticky", {"rack": "r2"}),
                "b": (clients[1], "t", "sticky", {"rack": "r1"}),
            },
        )
        await group.rebalance(leader=leader)
        owned = group.owned()
        await stop(group)
        return owned

    for leader in "ab":
        assert asyncio.run(run(leader)) == {"a": {("t", 1), ("t", 3)}, "b": {("t", 0), ("t", 2)}}


@pytest.mark.parametrize("clients", BOTH, ids="+".join)
def test_instance_ids_reach_whoever_leads(clients):
    """Static members come first, by instance id."""

    async def run(leader):
        group = await started(
            {"t": 3},
            {
                "a": (clients[0], "t", "range"),
                "b": (clients[1], "t", "range", {"instance_id": "i2"}),
                "c": (clients[0], "t", "range", {"instance_id": "i1"}),
            },
        )
        await group.rebalance(leader=leader)
        owned = group.owned()
        await stop(group)
        return owned

    for leader in "abc":
        assert asyncio.run(run(leader)) == {"c": {("t", 0)}, "b": {("t", 1)}, "a": {("t", 2)}}


@pytest.mark.parametrize("client", ADAPTED)
def test_everybody_has_an_entry_and_unknown_topics_are_as_empty(client):
    async def run():
        group = await started({"t": 1}, dict.fromkeys("abc", (client, "t unknown", "sticky")))
        assert await group.rebalance(leader="b") == 1
        owned = group.owned()
        await stop(group)
        return owned

    assert sorted(map(sorted, asyncio.run(run()).values())) == [[], [], [("t", 0)]]


def test_a_cooperative_member_does_not_claim_what_it_has_unsubscribed_from():
    """The client has given that up before it joins: others get it in the same round."""

    async def run():
        member = "kafka-python", "t u", "cooperative-sticky"
        group = await started({"t": 2, "u": 2}, {"a": member, "b": member})
        await group.rebalance()
        assert {tp.topic for tp in group.owned()["a"]} == {"t", "u"}
        group.peers["a"].subscribe("t")
        await group.round()
        return group.owned()

    assert {("u", 0), ("u", 1)} <= asyncio.run(run())["b"]


class Wrong:
    name = "wrong"

    def assign(self, cluster, group):
        return {"nobody": [("t", 0)]}


class Broken:
    name = "broken"

    def assign(self, cluster, group):
        raise KeyError("nine")


LINE = f"tests/rebalance_kafka/test_adapters_rounds.py:{Broken.assign.__code__.co_firstlineno + 1}"


WRONG = [
    (Wrong, "wrong", "there is no member 'nobody'"),
    (Broken, "broken", f"raised KeyError: 'nine' ({LINE})"),
]


@pytest.mark.parametrize(("strategy", "name", "violation"), WRONG)
def test_what_goes_wrong_in_an_assignor_is_one_error_in_kafka_python(strategy, name, violation):
    async def run():
        group = await started({"t": 1}, {"a": ("kafka-python", "t", strategy)})
        await group.rebalance()

    with pytest.raises(AssignmentError) as caught:
        asyncio.run(run())
    assert str(caught.value) == f"assignor {name!r} on a group of 1 members on 1 topics: {violation}"


@pytest.mark.parametrize(("strategy", "name", "violation"), WRONG)
def test_what_goes_wrong_in_an_assignor_is_one_error_that_aiokafka_quotes(strategy, name, violation):
    async def run():
        group = await started({"t": 1}, {"a": ("aiokafka", "t", strategy)})
        try:
            await group.rebalance()
        finally:
            await stop(group)

    with pytest.raises(KafkaError) as caught:
        asyncio.run(run())
    error = AssignmentError(name, [violation], "a group of 1 members on 1 topics")
    assert repr(error) in str(caught.value)
