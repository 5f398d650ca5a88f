"""What adapted members and leaders tell each other in user data, behind what the assignor says there itself.

Such user data end with twelve bytes: the length of a MessagePack array (big-endian int32), a version byte
(1), and the seven bytes ``RBCLAIM``; the array stands before them, and before it the assignor's own bytes,
from the first on, as decoders of other makes read them. Anything else is foreign: it has no claim, and all of
it is the assignor's. The arrays are the fields of `Claim` in subscriptions and of `Grant` in assignments;
later versions of an array may only add to its end. Equal claims give equal bytes.
"""

import struct
from typing import Annotated, TypeVar

import msgspec

from coordinator_core.model import NO_GENERATION, Partitions, java_order

_FOOT = struct.Struct(">iB7s")
_MAGIC, _VERSION = b"RBCLAIM", 1

_Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Generation = Annotated[int, msgspec.Meta(ge=NO_GENERATION, le=2**31 - 1)]


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """What a member says of itself when it joins.

    ``member_id`` is the one under which it got what it owns, where the leader told it; ``gave_up``: it has
    stopped working on it, as eager members do before they join.
    """

    owned: dict[str, list[_Number]]
    generation: _Generation
    rack: str | None
    instance_id: str | None
    member_id: str | None
    gave_up: bool


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """What a leader tells a member beside its assignment: the count of rounds, and who the member is."""

    generation: _Generation
    member_id: str


_Told = TypeVar("_Told", Claim, Grant)


def as_listed(owned: Partitions) -> dict[str, list[int]]:
    """Partitions as a claim lists them: sorted, for equal ones to give equal bytes."""
    by_topic = owned.by_topic()
    return {topic: sorted(by_topic[topic].tolist()) for topic in java_order(by_topic)}


def attach(own: bytes | None, told: Claim | Grant) -> bytes:
    """The assignor's own user data with a claim or grant behind them."""
    body = msgspec.msgpack.encode(told)
    return (own or b"") + body + _FOOT.pack(len(body), _VERSION, _MAGIC)


def detach(user_data: bytes | None, kind: type[_Told]) -> tuple[bytes | None, _Told | None]:
    """The assignor's own user data, None where there are none, and what was attached; None if foreign."""
    if not user_data or len(user_data) < _FOOT.size:
        return user_data, None
    length, version, magic = _FOOT.unpack_from(user_data, len(user_data) - _FOOT.size)
    end = len(user_data) - _FOOT.size
    if magic != _MAGIC or version < _VERSION or not 0 <= length <= end:
        return user_data, None
    try:
        told = msgspec.msgpack.decode(user_data[end - length : end], type=kind)
    except msgspec.DecodeError:
        return user_data, None
    return user_data[: end - length] or None, told
