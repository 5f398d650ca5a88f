"""Assignors in kafka-python, 3.0 or newer.

A consumer creates an object of the given class (ConsumerCoordinator.__init__). It calls ``metadata`` before
every JoinGroup, ``assign`` when it leads, and ``on_assignment`` with the generation.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.abstract import RebalanceProtocol as ClientProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from coordinator_core.model import Partitions, RebalanceProtocol, Subscription
from coordinator_core.protocol.consumer_protocol import ASSIGNMENT_VERSION, SUBSCRIPTION_VERSION
from coordinator_core.registry.host import Host
from rebalance_kafka.adapters.claims import as_listed
from rebalance_kafka.adapters.leading import describe, joined, lead
from rebalance_kafka.adapters.making import Assignors
from rebalance_kafka.adapters.member import MakeMember, Member


class KafkaPythonAssignor(AbstractPartitionAssignor):
    """An assignor with the interface of kafka-python: one object for each consumer."""

    name = ""
    version = SUBSCRIPTION_VERSION
    protocol: ClassVar[RebalanceProtocol] = RebalanceProtocol.EAGER
    _make_member: ClassVar[MakeMember]

    def __init__(self) -> None:
        self._member = type(self)._make_member()

    def supported_protocols(self) -> list[ClientProtocol]:
        """Return one protocol only: a consumer would not report a fallback to eager."""
        return [ClientProtocol[self.protocol.name]]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return the subscription of the consumer."""
        subscription = self._member.subscription(topics)
        topic_partitions = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=self.version,
            topics=list(subscription.topics),
            user_data=subscription.user_data,
            owned_partitions=[
                topic_partitions(topic=topic, partitions=numbers)
                for topic, numbers in as_listed(subscription.owned).items()
            ],
            generation_id=subscription.generation,
            rack_id=subscription.rack,
        )

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Return the assignments of all members."""
        group = {m.member_id: joined(m.member_id, _read(m)) for m in members}
        given = lead(self._member.assignor, describe(cluster, group.values(), "replica_nodes"), group)
        return {
            m: ConsumerProtocolAssignment(ASSIGNMENT_VERSION, own.by_topic, own.user_data)
            for m, own in given.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Receive the assignment of the consumer in a generation."""
        self._member.assigned(assignment.partitions(), assignment.user_data, generation)


def _read(member: Any) -> Subscription:
    """Return the subscription of a member. Fields that its version lacks have their defaults."""
    metadata = member.metadata
    return Subscription(
        topics=tuple(metadata.topics),
        owned=Partitions({owned.topic: owned.partitions for owned in metadata.owned_partitions or ()}),
        generation=metadata.generation_id,
        rack=metadata.rack_id,
        instance_id=member.group_instance_id,
        user_data=metadata.user_data,
    )


def adapted(
    assignor: Any,
    *,
    rack: str | None = None,
    instance_id: str | None = None,
    protocol: RebalanceProtocol | None = None,
    host: Callable[[], Host] | None = None,
) -> type[KafkaPythonAssignor]:
    """Return the class of an assignor; see `rebalance_kafka.adapters.as_kafka_python`."""
    assignors = Assignors(assignor, host=host)
    if protocol is None:
        cooperative = RebalanceProtocol.COOPERATIVE in assignors.protocols
        protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
    assignors.check_protocol(protocol, "kafka-python")
    gives_up = protocol is RebalanceProtocol.EAGER

    def make_member() -> Member:
        return Member(assignors.fresh(), rack=rack, instance_id=instance_id, gives_up=gives_up)

    body = {"name": assignors.name, "protocol": protocol, "_make_member": staticmethod(make_member)}
    return type(f"KafkaPython[{assignors.name}]", (KafkaPythonAssignor,), body)
