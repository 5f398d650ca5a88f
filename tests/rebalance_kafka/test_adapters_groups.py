"""Random groups through the adapters: the same answer as from the assignor itself, whoever leads.

What members say travels through the bytes of the client that leads, as it decodes them.
"""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tests.rebalance_kafka.clusters", reason="a client is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from aiokafka.coordinator.protocol import (
        ConsumerProtocolMemberAssignment,
        ConsumerProtocolMemberMetadata,
    )
    from kafka.protocol.consumer import JoinGroupResponse
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from coordinator_core.errors import AssignmentError
from coordinator_core.model import Cluster, GroupSubscription, RebalanceProtocol, Subscription, TopicInfo
from coordinator_core.protocol.consumer_protocol import encode_subscription
from rebalance_kafka.adapters import as_aiokafka, as_kafka_python
from rebalance_kafka.adapters.claims import Grant, attach
from rebalance_kafka.adapters.leading import MOST_ROUNDS
from tests.assignors.groups import assign, changed, groups, partitions, sets, wanted
from tests.rebalance_kafka.clusters import aiokafka_cluster, kafka_python_cluster

pytestmark = pytest.mark.peer

COOPERATIVE, EAGER = RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER
CLIENTS = ("kafka-python", "aiokafka")
REFUSED = "NullPointerException here"
OURS = "ours"
"""A client without an adapter, that says in its subscription what it has to say."""


def adapted(client, name, member_id, said, protocol):
    """A member's object, which has got what the member owns under the member's id, and its bytes."""
    listed = [(topic, numbers.tolist()) for topic, numbers in said.owned.by_topic().items()]
    grant = attach(None, Grant(said.generation, member_id))
    own = {"rack": said.rack, "instance_id": said.instance_id}
    if client == OURS:
        return None, encode_subscription(said)
    if client == "aiokafka":
        made = as_aiokafka(name, **own)
        made.on_assignment(ConsumerProtocolMemberAssignment(0, listed, grant))
    else:
        made = as_kafka_python(name, protocol=protocol, **own)()
        given = ConsumerProtocolAssignment(0, listed, grant).encode()
        made.on_assignment(ConsumerProtocolAssignment.decode(given), said.generation)
    return made, made.metadata(set(said.topics)).encode()


def led_by_kafka_python(adapter, topics, joined):
    response = JoinGroupResponse.JoinGroupResponseMember
    members = [
        response(member_id=m, group_instance_id=i, metadata=ConsumerProtocolSubscription.decode(data))
        for m, i, data in joined
    ]
    given = adapter.assign(kafka_python_cluster(topics), members)
    return {m: ConsumerProtocolAssignment.decode(each.encode()) for m, each in given.items()}


def led_by_aiokafka(adapter, topics, joined):
    members = {m: ConsumerProtocolMemberMetadata.decode(data) for m, _, data in joined}
    given = adapter.assign(aiokafka_cluster(topics), members)
    return {m: ConsumerProtocolMemberAssignment.decode(each.encode()) for m, each in given.items()}


def through_adapters(name, cluster, members, clients, leader, protocol):
    """The assignment that the leader's client reads from what the leader's adapter made."""
    topics = {
        topic: [info.racks[n] if info.racks else () for n in range(info.partitions)]
        for topic, info in cluster.topics.items()
    }
    adapters, joined = {}, []
    for m, said in members.items():
        adapters[m], data = adapted(clients[m], name, m, said, protocol)
        joined.append((m, said.instance_id, data))
    lead = led_by_aiokafka if clients[leader] == "aiokafka" else led_by_kafka_python
    given = lead(adapters[leader], topics, joined)
    assert set(given) == set(members)
    return {m: frozenset(each.partitions()) for m, each in given.items()}


def drawn(data, group, clients=CLIENTS):
    """Which client each member runs, and who leads. A leader looks at the topics of its group alone."""
    cluster, members = group
    subscribed = {t for said in members.values() for t in said.topics}
    cluster = Cluster({t: info for t, info in cluster.topics.items() if t in subscribed})
    leader = data.draw(st.sampled_from(sorted(members)))
    of = {m: data.draw(st.sampled_from(clients)) for m in members}
    if of[leader] == OURS:
        of[leader] = "kafka-python"
    return cluster, members, of, leader


def played_through(name, cluster, members):
    """Rounds of the assignor, every member owning at once what the round before gave it."""
    given = assign(name, cluster, members)
    for _ in range(MOST_ROUNDS):
        if set().union(*sets(given).values()) == wanted(cluster, members):
            break
        owning = {m: changed(s, owned=given[m]) for m, s in members.items()}
        given = assign(name, cluster, GroupSubscription(owning))
    return sets(given)


@pytest.mark.parametrize("name", ["sticky", "range", "roundrobin"])
@given(groups(least=1), st.data())
def test_an_eager_group_of_both_libraries_gets_what_the_assignor_says(name, group, data):
    cluster, members, clients, leader = drawn(data, group)
    agree(
        lambda: through_adapters(name, cluster, members, clients, leader, None),
        lambda: sets(assign(name, cluster, members)),
    )


@given(groups(least=1), st.data())
def test_a_cooperative_group_gets_what_the_assignor_says(group, data):
    """Members without an adapter included. Adapters do not claim what has been unsubscribed from."""
    cluster, members, clients, leader = drawn(data, group, ["kafka-python", OURS])
    still = {
        m: s if clients[m] == OURS else changed(s, owned=partitions_in(s.owned, s.topics))
        for m, s in members.items()
    }
    agree(
        lambda: through_adapters("cooperative-sticky", cluster, members, clients, leader, COOPERATIVE),
        lambda: sets(assign("cooperative-sticky", cluster, GroupSubscription(still))),
    )


@given(groups(least=1), st.data())
def test_members_without_an_adapter_own_nothing_where_aiokafka_leads(group, data):
    cluster, members, clients, leader = drawn(data, group, ["aiokafka", OURS])
    clients[leader] = "aiokafka"
    shown = {m: Subscription(s.topics) if clients[m] == OURS else s for m, s in members.items()}
    agree(
        lambda: through_adapters("sticky", cluster, members, clients, leader, None),
        lambda: sets(assign("sticky", cluster, GroupSubscription(shown))),
    )


@given(groups(least=1), st.data())
def test_an_eager_group_gets_all_rounds_of_a_cooperative_assignor_at_once(group, data):
    cluster, members, clients, leader = drawn(data, group)
    still = {m: changed(s, owned=partitions_in(s.owned, s.topics)) for m, s in members.items()}
    agree(
        lambda: through_adapters("cooperative-sticky", cluster, members, clients, leader, EAGER),
        lambda: played_through("cooperative-sticky", cluster, GroupSubscription(still)),
    )


@given(groups(least=1), st.data())
def test_a_mixed_group_gets_all_that_no_cooperative_member_still_works_on(group, data):
    cluster, members, clients, leader = drawn(data, group)
    found = through_adapters("cooperative-sticky", cluster, members, clients, leader, COOPERATIVE)
    held = {
        m: {tp for tp in s.owned if tp.topic in s.topics}
        for m, s in members.items()
        if clients[m] == "kafka-python"
    }
    given = set().union(*found.values())
    assert sum(map(len, found.values())) == len(given)
    assert wanted(cluster, members) - given <= set().union(*held.values())
    for m, got in found.items():
        taken = {tp for tp in got for other, owned in held.items() if other != m and tp in owned}
        assert taken <= set(members[m].owned), "from somebody who still works on it"


@given(groups(least=1), st.data())
def test_a_subscription_is_the_same_bytes_whatever_the_order_of_the_topics(group, data):
    """A member whose bytes differ is a member that changed (C-21)."""
    _, members, clients, leader = drawn(data, group)
    said = members[leader]
    made, first = adapted(clients[leader], "sticky", leader, said, None)
    shuffled = data.draw(st.permutations(said.topics))
    assert made.metadata(dict.fromkeys(shuffled)).encode() == first


def agree(found, expected):
    """Both compute the same, or refuse the group, as Apache Kafka's sticky fails on some that mix claims."""
    try:
        answer = expected()
    except AssignmentError:
        with pytest.raises(AssignmentError, match=REFUSED):
            found()
    else:
        assert found() == answer


def partitions_in(owned, topics):
    listed = {t: numbers.tolist() for t, numbers in owned.by_topic().items() if t in topics}
    text = " ".join(f"{t}:{','.join(map(str, numbers))}" for t, numbers in listed.items())
    return partitions(text)


def test_racks_of_members_without_an_adapter_count_where_kafka_python_leads():
    cluster = Cluster({"t": TopicInfo(4, (("r1",), ("r2",), ("r1",), ("r2",)))})
    members = {"a": Subscription(("t",), rack="r2"), "b": Subscription(("t",), rack="r1")}
    clients = {"a": OURS, "b": "kafka-python"}
    found = through_adapters("sticky", cluster, members, clients, "b", None)
    assert found == {"a": {("t", 1), ("t", 3)}, "b": {("t", 0), ("t", 2)}}
