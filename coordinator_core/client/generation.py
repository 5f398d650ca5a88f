"""The identity of a consumer in its group, as its requests name it."""

from typing import NamedTuple

from coordinator_core.model import NO_GENERATION
from coordinator_core.protocol.messages import NO_MEMBER


class Generation(NamedTuple):
    """Generation (or epoch), member id and the name of the chosen assignor.

    The number is -1 and the id is empty while the consumer has none.
    """

    number: int = NO_GENERATION
    member_id: str = NO_MEMBER
    protocol: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the consumer is not a member of the group (PITFALLS C-50)."""
        return self.number == NO_GENERATION or self.member_id == NO_MEMBER


NO_MEMBERSHIP = Generation()
