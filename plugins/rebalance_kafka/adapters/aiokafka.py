"""Assignors in aiokafka, 0.13 or newer.

A consumer calls the methods of the given object (GroupCoordinator._lookup_assignor): ``metadata`` before
every JoinGroup, ``assign`` when it leads, and ``on_assignment``, without the generation. All calls are made
in one task, which exists as long as the consumer.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from aiokafka.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
)
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from coordinator_core.model import RebalanceProtocol, Subscription
from coordinator_core.protocol.consumer_protocol import ASSIGNMENT_VERSION
from coordinator_core.registry.host import Host
from rebalance_kafka.adapters.leading import describe, joined, lead
from rebalance_kafka.adapters.making import Assignors
from rebalance_kafka.adapters.member import MakeMember, Member

_VERSION = 0
"""The version of the subscription. The client cannot write the fields of later versions."""


class AiokafkaAssignor(AbstractPartitionAssignor):
    """An assignor with the interface of aiokafka. It has a `Member` for the task of each consumer."""

    def __init__(self, name: str, make_member: MakeMember) -> None:
        self._name, self._make_member = name, make_member
        self._members: WeakKeyDictionary[asyncio.Task[Any], Member] = WeakKeyDictionary()
        self._without_task: Member | None = None

    @property
    def name(self) -> str:
        """Return the name of the assignor."""
        return self._name

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription of the consumer."""
        subscription = self._member().subscription(topics)
        return ConsumerProtocolMemberMetadata(_VERSION, list(subscription.topics), subscription.user_data)

    def assign(
        self, cluster: Any, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignments of all members."""
        group = {
            m: joined(m, Subscription(tuple(sent.subscription), user_data=sent.user_data))
            for m, sent in members.items()
        }

        given = lead(self._member().assignor, describe(cluster, group.values(), "replicas"), group)
        return {
            m: ConsumerProtocolMemberAssignment(ASSIGNMENT_VERSION, own.by_topic, own.user_data)
            for m, own in given.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Receive the assignment of the consumer."""
        self._member().assigned(assignment.partitions(), assignment.user_data, None)

    def _member(self) -> Member:
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no event loop runs in this thread
            task = None
        if task is None:
            self._without_task = self._without_task or self._make_member()
            return self._without_task
        if task not in self._members:
            self._members[task] = self._make_member()
        return self._members[task]


def adapted(
    assignor: Any,
    *,
    rack: str | None = None,
    instance_id: str | None = None,
    host: Callable[[], Host] | None = None,
) -> AiokafkaAssignor:
    """Return the object of an assignor; see `rebalance_kafka.adapters.as_aiokafka`."""
    assignors = Assignors(assignor, host=host)
    assignors.check_protocol(RebalanceProtocol.EAGER, "aiokafka")

    def make_member() -> Member:
        return Member(assignors.fresh(), rack=rack, instance_id=instance_id, gives_up=True)

    return AiokafkaAssignor(assignors.name, make_member)
