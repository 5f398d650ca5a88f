"""The Assignor interface, and the one door through which assignors are run.

An author writes `assign` over plain mappings; the built-ins write `solve` over arrays. Names are those of
Kafka's ConsumerPartitionAssignor.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from coordinator_core.model import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    RebalanceProtocol,
)

PlainAssignment: TypeAlias = Mapping[str, Iterable[tuple[str, int]]]


@runtime_checkable
class Assignor(Protocol):
    """What an author writes: a name and one pure function.

    Optional attributes, with what counts when they are absent: ``version`` (0), ``supported_protocols``
    ((EAGER,)), ``subscription_user_data(topics) -> bytes | None`` (None),
    ``on_assignment(partitions, generation) -> None``.
    """

    name: str

    def assign(self, cluster: Cluster, group: GroupSubscription) -> PlainAssignment | GroupAssignment:
        """Give every partition of a subscribed topic to one of the topic's subscribers."""
        ...


def supported_protocols(assignor: Assignor) -> Sequence[RebalanceProtocol]:
    """The protocols the assignor can run under; eager when it does not say."""
    return getattr(assignor, "supported_protocols", (RebalanceProtocol.EAGER,))
