"""Who a consumer is in its group: generation, member id, and the assignor the group chose."""

from typing import NamedTuple

from coordinator_core.model import NO_GENERATION
from coordinator_core.protocol.messages import NO_MEMBER


class Generation(NamedTuple):
    """-1 and an empty id while the consumer has none."""

    number: int = NO_GENERATION
    member_id: str = NO_MEMBER
    protocol: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the consumer has no valid part in the group (PITFALLS C-50)."""
        return self.number == NO_GENERATION or self.member_id == NO_MEMBER


NO_PART = Generation()
