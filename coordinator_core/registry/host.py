"""Providers, and the hosts that run their consumers."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from coordinator_core.model import Cluster, GroupSubscription, Partitions, TopicPartition


class Seen(NamedTuple):
    """A partition as its consumer sees it: the offset of the next record, and the records not yet handled.

    A consumer of real brokers learns offsets with its fetches, first some time after the assignment.
    ``at_ms`` is the time of ``end_offset``, None if it is now. ``first`` are the time and the end offset from
    which a host can measure a partition that it could not see when it was assigned, None if it always can.
    """

    end_offset: float
    lag: float
    at_ms: int | None = None
    first: tuple[int, float] | None = None


class Load(NamedTuple):
    """The load of a partition: records/s produced, and records not yet handled."""

    rate: float
    lag: float


class Host(Protocol):
    """The program that runs a consumer: a simulated process, or a driver of real brokers."""

    def now_ms(self) -> int:
        """Return the current time."""
        ...

    def seen(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, Seen]:
        """Return partitions that the consumer owns or has just given up. Unknown ones are left out."""
        ...

    def loads(self) -> Mapping[TopicPartition, Load]:
        """Return the loads of all partitions if the host knows them, else an empty mapping."""
        ...

    def capacity(self) -> float | None:
        """Return the records/s that the consumer can handle; None if unknown or unlimited."""
        ...


class Provider(Protocol):
    """A source of weights and capacities, one for each consumer. The leader's informs the assignor."""

    def report(self) -> bytes | None:
        """Return the report that the consumer sends to the leader with its subscription."""
        ...

    def assigned(self, partitions: Partitions) -> None:
        """Take note of the partitions that the consumer was assigned."""
        ...

    def inform(
        self, cluster: Cluster, group: GroupSubscription, reports: Mapping[str, bytes]
    ) -> tuple[Cluster, GroupSubscription]:
        """Return the cluster and the group with the weights and capacities that follow from the reports."""
        ...
