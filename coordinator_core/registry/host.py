"""What a provider is, and what it may ask of the host that runs its consumer."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from coordinator_core.model import Cluster, GroupSubscription, Partitions, TopicPartition


class Seen(NamedTuple):
    """What a consumer sees of a partition: the offset of its next record, and the records not yet handled."""

    end_offset: float
    lag: float


class Load(NamedTuple):
    """The load of a partition: records/s produced, and records not yet handled."""

    rate: float
    lag: float


class Host(Protocol):
    """Who runs a consumer: a simulated process, or a driver of real brokers."""

    def now_ms(self) -> int:
        """The time that it is."""
        ...

    def seen(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, Seen]:
        """What the consumer sees of partitions it has, or has just given up; unknown ones are left out."""
        ...

    def loads(self) -> Mapping[TopicPartition, Load]:
        """The loads of all partitions, where the host knows them by itself; empty where it does not."""
        ...

    def capacity(self) -> float | None:
        """The records/s that the consumer can handle; None when unknown or without limit."""
        ...


class Provider(Protocol):
    """One for each consumer. It may remember; whoever leads is informed by its own."""

    def report(self) -> bytes | None:
        """What the consumer sends the leader along with its subscription."""
        ...

    def assigned(self, partitions: Partitions) -> None:
        """The consumer got these."""
        ...

    def inform(
        self, cluster: Cluster, group: GroupSubscription, reports: Mapping[str, bytes]
    ) -> tuple[Cluster, GroupSubscription]:
        """The leader's cluster and group with what is known of them; `reports` are the members'."""
        ...
