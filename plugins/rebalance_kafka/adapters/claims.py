"""Private data of adapted members and leaders, in an `envelope` behind the assignor's own user data.

The data are a MessagePack array: the fields of `Claim` in subscriptions, those of `Grant` in assignments.
Later versions may only append fields. User data without an envelope, or with invalid data in it, belong to
the assignor as a whole. Equal claims have equal bytes.
"""

from typing import Annotated, TypeVar

import msgspec

from coordinator_core.assigning import envelope
from coordinator_core.java import java_order
from coordinator_core.model import NO_GENERATION, Partitions

KIND = b"RBCLAIM"

_Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Generation = Annotated[int, msgspec.Meta(ge=NO_GENERATION, le=2**31 - 1)]


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """The state of a member that joins.

    ``member_id``: the member id of the assignment that the claim lists, if the leader sent it; ``gave_up``:
    whether the member has stopped consuming, as eager members do before they join.
    """

    owned: dict[str, list[_Number]]
    generation: _Generation
    rack: str | None
    instance_id: str | None
    member_id: str | None
    gave_up: bool


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """The data that a leader adds to an assignment: the count of rounds, and the id of the member."""

    generation: _Generation
    member_id: str


_Data = TypeVar("_Data", Claim, Grant)


def as_listed(owned: Partitions) -> dict[str, list[int]]:
    """Return the sorted partition numbers of each topic; equal sets give equal bytes."""
    by_topic = owned.by_topic()
    return {topic: sorted(by_topic[topic].tolist()) for topic in java_order(by_topic)}


def attach(own: bytes | None, data: Claim | Grant) -> bytes:
    """Return the assignor's own user data followed by a claim or grant."""
    return envelope.attach(own, KIND, msgspec.msgpack.encode(data))


def detach(user_data: bytes | None, kind: type[_Data]) -> tuple[bytes | None, _Data | None]:
    """Return the assignor's own user data and the claim or grant; None for each if absent."""
    own, data = envelope.detach(user_data, KIND)
    if data is None:
        return user_data, None
    try:
        return own, msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError:
        return user_data, None
