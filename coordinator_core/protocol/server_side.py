"""The messages of groups whose coordinator computes the assignments, besides heartbeats and leaves."""

from typing import ClassVar

from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import NO_MEMBER, FamilyRequest, FamilyResponse


class JoinRequest(FamilyRequest, frozen=True):
    """Join a group, or join again. A client without a member id gets one with MEMBER_ID_REQUIRED."""

    is_notable: ClassVar[bool] = True
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    member_id: str = NO_MEMBER


class JoinResponse(FamilyResponse, frozen=True):
    """The share of the member, encoded as an assignment of Kafka's consumers, or an error."""

    error: ErrorCode
    member_id: str = NO_MEMBER
    generation_id: int = -1
    protocol_name: str = ""
    assignment: bytes = b""
