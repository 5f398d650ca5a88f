"""The targets that a broker of Kafka 4.4.0 had after each change of some groups, in ten changes of each.

The recorded members join, leave and list other topics, with the ids that the broker gave to its topics.
"""

import gzip
import json
from uuid import UUID

import pytest

from assignors.kip848 import Uniform848Assignor
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.families.family import Surroundings
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.model import Cluster
from coordinator_core.protocol.reconcile import (
    JOINS,
    LEAVES,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from tests.assignors.vectors import KEPT

with gzip.open(KEPT / "live-uniform-4.4.jsonl.gz", "rt") as file:
    GROUPS = [json.loads(line) for line in file]


class Members:
    """The members of a recorded group on the bench."""

    def __init__(self, make_bench, topics, **bench):
        cluster = Cluster(
            {name: topic["partitions"] for name, topic in topics.items()},
            {name: UUID(topic["id"]) for name, topic in topics.items()},
        )
        surroundings = Surroundings(ReconcileSettings(), Uniform848Assignor, lambda: cluster)
        self.bench = make_bench(parts=(RECONCILE.coordinator(surroundings),), **bench)
        self.epochs = {}

    def beat(self, member, kind, topics):
        joining = {"rebalance_timeout_ms": 60_000, "topic_partitions": ()} if kind == "join" else {}
        epoch = {"join": JOINS, "leave": LEAVES, "beat": self.epochs.get(member)}[kind]
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=None if topics is None else tuple(topics),
            **joining,
        )
        self.epochs[member] = self.bench.ask(request).member_epoch

    def targets(self):
        described = self.bench.ask(ConsumerGroupDescribeRequest(group_id="g"))
        return {member.member_id: list(map(list, member.target_assignment)) for member in described.members}


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_targets_are_those_of_kafka_after_every_change(make_bench, number):
    """PROTOCOL 11.8."""
    members = Members(make_bench, GROUPS[number]["topics"])
    for step in GROUPS[number]["steps"]:
        for beat in step["beats"]:
            members.beat(*beat)
        assert members.targets() == step["targets"]


@pytest.mark.parametrize(("newcomer", "counts"), [("a", {}), ("d", {"b": 1, "c": 1, "d": 1})])
def test_a_newcomer_without_topics_counts_as_alike_while_shares_are_due(make_bench, newcomer, counts):
    """As in Kafka 4.4: the kind of subscriptions is that of before, and the first member's topics count."""
    topics = {"t": {"partitions": 3, "id": str(UUID(int=1))}}
    members = Members(make_bench, topics, now_ms=1)
    members.beat("b", "join", ["t"])
    members.beat("c", "join", ["t"])
    members.bench.sleep(1_000)
    members.beat(newcomer, "join", [])
    assert {member: len(share) for member, share in members.targets().items() if share} == counts


def test_a_newcomer_without_topics_gets_nothing_if_it_changes_the_group(make_bench):
    topics = {"t": {"partitions": 3, "id": str(UUID(int=1))}}
    members = Members(make_bench, topics, now_ms=1)
    members.beat("b", "join", ["t"])
    members.bench.sleep(1_000)
    members.beat("d", "join", ["missing"])
    assert {member: len(share) for member, share in members.targets().items()} == {"b": 3, "d": 0}
