"""The events of members that claim their partitions in a registry."""

from coordinator_core.protocol.events import FamilyEvent, PartitionMap


class ClaimFailed(FamilyEvent, frozen=True):
    """The consumer could not claim partitions: others hold the nodes in ``held``.

    ``retry`` is the number of the next attempt after the first one, 0 if there is none; ``retries`` is their
    limit.
    """

    client: str
    held: PartitionMap
    retry: int
    retries: int
