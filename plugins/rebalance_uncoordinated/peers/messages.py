"""The requests of members without a coordinator, and the responses of brokers that list them."""

from typing import ClassVar

from coordinator_core.protocol.messages import FamilyRequest, FamilyResponse


class MemberHeartbeatRequest(FamilyRequest, frozen=True):
    """A member is there. The first one puts it on the broker's list."""

    is_periodic: ClassVar[bool] = True
    group_id: str
    member_id: str


class MemberHeartbeatResponse(FamilyResponse, frozen=True):
    """The broker lists the member, since this heartbeat if ``is_new``. ``revision``: that of the list."""

    is_new: bool
    revision: int


class MemberListRequest(FamilyRequest, frozen=True):
    """Ask a broker for the members of a group."""

    is_periodic: ClassVar[bool] = True
    group_id: str


class MemberListResponse(FamilyResponse, frozen=True):
    """The members that the broker lists.

    ``revision`` grows with each change of this list, ``version`` with each change of the group's members.
    """

    members: tuple[str, ...]
    revision: int
    version: int


class MemberNoticeRequest(FamilyRequest, frozen=True):
    """Wait until the broker's list is newer than a revision."""

    waits: ClassVar[bool] = True
    group_id: str
    revision: int


class MemberNoticeResponse(FamilyResponse, frozen=True):
    """The broker's list has changed."""

    revision: int


class MemberGoneRequest(FamilyRequest, frozen=True):
    """A member leaves."""

    is_notable: ClassVar[bool] = True
    group_id: str
    member_id: str


class MemberGoneResponse(FamilyResponse, frozen=True):
    """The broker does not list the member any longer."""
