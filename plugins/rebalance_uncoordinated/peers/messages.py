"""The requests of members without a coordinator, and the responses of brokers that list them."""

from typing import ClassVar

import msgspec

from coordinator_core.errors import InputError
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


class PeersSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of members without a coordinator: times in milliseconds, with RocketMQ's defaults.

    RocketMQ has no option for the second and the third one.

    Raises:
        InputError: if a setting is out of range.
    """

    heartbeat_ms: int = msgspec.field(default=30_000, name="heartbeat.broker.interval")
    look_ms: int = msgspec.field(default=20_000, name="rocketmq.client.rebalance.waitInterval")
    expired_ms: int = msgspec.field(default=120_000, name="channel.expired.timeout")

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise InputError(field.encode_name, f"{value}", "1 or more")
