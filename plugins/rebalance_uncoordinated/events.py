"""The events of members that are told of changes by servers, and rebalance by themselves."""

from typing import ClassVar

from coordinator_core.protocol.events import FamilyEvent, PartitionMap


class Notified(FamilyEvent, frozen=True):
    """A server has told the consumer that something changed. ``cause`` is what it watches."""

    is_notice: ClassVar[bool] = True
    client: str
    cause: str


class Rebalanced(FamilyEvent, frozen=True):
    """The consumer has ended a rebalance of its own. ``changed``: it owns other partitions than before."""

    client: str
    generation: int
    changed: bool

    @property
    def counts(self) -> bool:
        """Whether the rebalance was superfluous."""
        return not self.changed


class ClaimFailed(FamilyEvent, frozen=True):
    """The consumer could not claim partitions: others hold the nodes in ``held``.

    ``retry`` is the number of the next attempt after the first one, 0 if there is none; ``retries`` is their
    limit.
    """

    client: str
    held: PartitionMap
    retry: int
    retries: int
