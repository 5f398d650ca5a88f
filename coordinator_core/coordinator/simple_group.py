"""A group that has committed offsets and never had a member."""

from dataclasses import dataclass, field

from coordinator_core.coordinator.shard import EMPTY, GROUP_BYTES, Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import DescribedGroup, OffsetCommitRequest, TxnOffsetCommitRequest


@dataclass(slots=True)
class SimpleGroup:
    """The group of a simple consumer. The first family that a member joins with takes the group over."""

    group_id: str
    family: str = ""
    state: str = EMPTY
    generation: int = 0
    protocol_type: str | None = None
    members: dict[str, object] = field(default_factory=dict)
    emptied_at_ms: int = 0
    is_empty: bool = True
    expects_members: bool = False

    def describe(self) -> DescribedGroup:
        """Return the group as administrators see it."""
        return DescribedGroup(error=ErrorCode.NONE, group_id=self.group_id, state=self.state)

    def subscribed_topics(self) -> frozenset[str]:
        """Return no topic."""
        return frozenset()

    def topics_in_use(self) -> frozenset[str]:
        """Return no topic."""
        return frozenset()

    def accept_commit(self, step: Step, request: OffsetCommitRequest) -> ErrorCode:  # noqa: ARG002 - the interface's
        """Accept only commits without a generation."""
        return ErrorCode.NONE if request.generation_id < 0 else ErrorCode.UNKNOWN_MEMBER_ID

    def accept_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:  # noqa: ARG002 - the interface's
        """Accept no member."""
        return ErrorCode.UNKNOWN_MEMBER_ID

    def forget_expected(self) -> None:
        """Do nothing: no member is expected."""

    def size_bytes(self) -> int:
        """Return about how much memory the group takes."""
        return GROUP_BYTES + 2 * len(self.group_id)
