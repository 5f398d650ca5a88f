"""The bytes inside JoinGroup and SyncGroup: ConsumerProtocolSubscription and -Assignment, versions 0-3.

Encoding is deterministic (topics in the given order, owned partitions sorted by topic), because the
coordinator compares a member's bytes to find out whether the member has changed (PITFALLS C-21). A version
newer than 3 is decoded by the schema of version 3 (C-68). A subscription may end after any field, as some
clients announce a version and leave out its last fields.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from coordinator_core.errors import ProtocolError
from coordinator_core.java import java_order
from coordinator_core.model import (
    NO_GENERATION,
    NO_PARTITIONS,
    GroupAssignment,
    Int32Array,
    Partitions,
    Subscription,
    TopicIndex,
)
from coordinator_core.packing import FEWEST_LISTS, read_partitions, read_topics, rows_of, write_partitions

PROTOCOL_TYPE = "consumer"
"""The protocol type of a group of consumers."""

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3

_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_NO_DATA = _I32.pack(-1)

_MOST_KNOWN = 8
"""The number of lists of topics that are looked for at the start of the next subscription."""


def encode_subscription(subscription: Subscription, *, version: int = SUBSCRIPTION_VERSION) -> bytes:
    """Encode a subscription in the given version (0-3). Capacity and instance id are not part of it."""
    parts = [_encoded_head(version, subscription.topics), _nullable_bytes(subscription.user_data)]
    if version >= 1:
        owned = subscription.owned.by_topic()
        parts.append(_topic_partitions({t: np.sort(owned[t]) for t in java_order(owned)}))
    if version >= 2:
        parts.append(_I32.pack(subscription.generation))
    if version >= 3:
        parts.append(_I16.pack(-1) if subscription.rack is None else _string(subscription.rack))
    return b"".join(parts)


@lru_cache(_MOST_KNOWN)
def _encoded_head(version: int, topics: tuple[str, ...]) -> bytes:
    return b"".join((_I16.pack(version), _I32.pack(len(topics)), *map(_string, topics)))


class Decoded(msgspec.Struct, frozen=True, eq=False):
    """A subscription and its bytes.

    ``head``: the bytes of the version and the topics; ``user_data_at``, ``owned_at``, ``generation_at`` and
    ``rack_at``: the offsets of these fields, the first one after the size of the user data. A field that the
    version does not have is empty. ``error``: why the bytes are not a subscription; the subscription then has
    no topics.
    """

    data: bytes
    subscription: Subscription
    head: bytes
    user_data_at: int
    owned_at: int
    generation_at: int
    rack_at: int
    error: str = ""


def decode_subscription(data: bytes, *, instance_id: str | None = None) -> Subscription:
    """Decode a subscription. The instance id is not in the bytes, but in JoinGroup.

    Raises:
        ProtocolError: if the bytes are not a subscription.
    """
    return _decoded(data, instance_id, None).subscription


def decode_subscriptions(members: Sequence[tuple[bytes, str | None]]) -> list[Decoded]:
    """Decode the subscriptions of a group, given with the instance ids, as `decode_subscription` does.

    Equal topics are one tuple, except in groups with many lists of topics. The owned partitions of most
    members share an index. Bytes that are not a subscription have an ``error``.
    """
    heads = _heads([data for data, _ in members])
    if len(members) < FEWEST_LISTS:
        return [_decoded_alone(data, i, head) for (data, i), head in zip(members, heads, strict=True)]
    together = _decoded_together(members, heads)
    return [
        _decoded_alone(data, instance_id, head) if decoded is None else decoded
        for (data, instance_id), head, decoded in zip(members, heads, together, strict=True)
    ]


def decode_again(sent: tuple[bytes, str | None], last: Decoded) -> Decoded | None:
    """Decode the subscription of a member in which only the generation and the user data may have changed.

    None if anything else differs from the member's last subscription.
    """
    data, instance_id = sent
    old, subscription, head = last.data, last.subscription, last.head
    if instance_id != subscription.instance_id:
        return None
    if data == old:
        return last
    user_data_at, owned_at = last.user_data_at, last.owned_at
    generation_at, rack_at = last.generation_at, last.rack_at
    if (
        len(data) != len(old)
        or not data.startswith(head)
        or data[len(head) : user_data_at] != old[len(head) : user_data_at]
        or data[owned_at:generation_at] != old[owned_at:generation_at]
        or data[rack_at:] != old[rack_at:]
    ):
        return None
    again = Subscription(
        subscription.topics,
        subscription.owned,
        NO_GENERATION if rack_at == generation_at else _I32.unpack_from(data, generation_at)[0],
        subscription.rack,
        instance_id,
        None if subscription.user_data is None else data[user_data_at:owned_at],
    )
    return Decoded(data, again, head, user_data_at, owned_at, generation_at, rack_at)


class _Head(NamedTuple):
    """The first fields of a subscription, and their bytes."""

    version: int
    topics: tuple[str, ...]
    encoded: bytes


_NO_HEAD = _Head(0, (), b"")


def _decoded_together(
    members: Sequence[tuple[bytes, str | None]], known: Sequence[_Head | None]
) -> list[Decoded | None]:
    """Decode the fields after the topics.

    An element is None if its bytes must be decoded alone: in version 0, if they are cut short, if the rack is
    not ASCII, or if the owned partitions have an unusual form.
    """
    heads = [head or _NO_HEAD for head in known]
    ends = [len(head.encoded) for head in heads]
    rows = rows_of([data[end:] for (data, _), end in zip(members, ends, strict=True)])
    version = np.array([head.version for head in heads])
    size = np.where(rows.hold(rows.begin, _I32.size), rows.numbers(rows.begin), -1)
    user_data = rows.begin + _I32.size
    begin = user_data + np.maximum(size, 0)
    owned, after = read_partitions(rows, np.where(version >= 1, begin, rows.end))
    generation = np.where(version >= 2, rows.numbers(after), NO_GENERATION)
    rack_field = after + _I32.size * (version >= 2)
    rack_size = np.where(version >= 3, rows.lengths(rack_field), -1)
    rack = rack_field + _I16.size
    rack_end = rack + np.maximum(rack_size, 0)
    whole = rows.hold(np.where(version >= 3, rack_end, rack_field), 0)
    shift = np.array(ends) - rows.begin
    places = (each + shift for each in (user_data, begin, after, rack_field))
    columns = (whole, generation, size, rack_size, rack, rack_end, *places)
    return [
        None
        if o is None or not w or (r >= 0 and not rows.piece(r_begin, r_end).isascii())
        else Decoded(
            data,
            Subscription(
                head.topics,
                o,
                g,
                None if r < 0 else rows.piece(r_begin, r_end).decode(),
                instance_id,
                None if s < 0 else data[u_at:o_at],
            ),
            head.encoded,
            u_at,
            o_at,
            g_at,
            r_at,
        )
        for (data, instance_id), head, o, w, g, s, r, r_begin, r_end, u_at, o_at, g_at, r_at in zip(
            members, heads, owned, *(column.tolist() for column in columns), strict=True
        )
    ]


def _decoded_alone(data: bytes, instance_id: str | None, head: _Head | None) -> Decoded:
    try:
        return _decoded(data, instance_id, head)
    except ProtocolError as error:
        return Decoded(data, Subscription((), instance_id=instance_id), b"", 0, 0, 0, 0, str(error))


def _decoded(data: bytes, instance_id: str | None, head: _Head | None) -> Decoded:
    reader = _Reader(data, "subscription")
    if head is None:
        head = reader.head()
    reader.at = len(head.encoded)
    user_data = None if reader.is_at_end else reader.nullable_bytes()
    owned_at = reader.at
    owned, generation, rack = NO_PARTITIONS, NO_GENERATION, None
    if head.version >= 1 and not reader.is_at_end:
        owned = Partitions(reader.topic_partitions())
    generation_at = reader.at
    if head.version >= 2 and not reader.is_at_end:
        generation = reader.i32()
    rack_at = reader.at
    if head.version >= 3 and not reader.is_at_end:
        rack = reader.nullable_string()
    subscription = Subscription(head.topics, owned, generation, rack, instance_id, user_data)
    user_data_at = owned_at - len(user_data or b"")
    return Decoded(data, subscription, head.encoded, user_data_at, owned_at, generation_at, rack_at)


def _heads(data: Sequence[bytes]) -> list[_Head | None]:
    """Read the versions and topics of subscriptions. An element is None if it must be read alone."""
    known: list[_Head] = []
    found: list[_Head | None] = []
    for subscription in data:
        for head in known:
            if subscription.startswith(head.encoded):
                found.append(head)
                break
        else:
            alone = _head(subscription) if len(known) < _MOST_KNOWN else None
            found.append(alone)
            if alone is not None:
                known.append(alone)
    unknown = [at for at, head in enumerate(found) if head is None]
    if len(unknown) < FEWEST_LISTS:
        return found
    rows = rows_of([data[at] for at in unknown])
    read, after = read_topics(rows, rows.begin + _I16.size)
    versions = rows.lengths(rows.begin).tolist()
    ends = (after - rows.begin).tolist()
    for at, version, topics, end in zip(unknown, versions, read, ends, strict=True):
        found[at] = None if topics is None else _Head(version, topics, data[at][:end])
    return found


def _head(data: bytes) -> _Head | None:
    try:
        return _Reader(data, "subscription").head()
    except ProtocolError:
        return None


def encode_assignment(
    partitions: Partitions, user_data: bytes | None = None, *, version: int = ASSIGNMENT_VERSION
) -> bytes:
    """Encode an assignment. Versions 0-3 have the same layout."""
    return _I16.pack(version) + _topic_partitions(partitions.by_topic()) + _nullable_bytes(user_data)


def encode_assignments(
    assignment: GroupAssignment, members: Iterable[str], *, version: int = ASSIGNMENT_VERSION
) -> list[bytes]:
    """Encode the assignments of members, each as `encode_assignment` does, but those of many together."""
    listing = None if len(assignment) < FEWEST_LISTS else assignment.listing()
    lists = None if listing is None else encode_listing(*listing, version=version)
    user_data = assignment.user_data
    if lists is None:
        return [encode_assignment(assignment[m], user_data.get(m), version=version) for m in members]
    list_of = dict(zip(assignment, lists, strict=True))
    for m in user_data.keys() & list_of:
        list_of[m] = list_of[m][: -len(_NO_DATA)] + _nullable_bytes(user_data[m])
    return list(map(list_of.__getitem__, members))


def encode_listing(
    index: TopicIndex, listed: Int32Array, starts: NDArray[np.int64], *, version: int = ASSIGNMENT_VERSION
) -> list[bytes] | None:
    """Encode the assignments of a listing (see `GroupAssignment.from_owners`), without user data.

    None if the partitions of a topic are apart in a member's list.
    """
    return write_partitions(index, listed, starts, before=_I16.pack(version), after=_NO_DATA)


def decode_assignment(data: bytes) -> tuple[Partitions, bytes | None]:
    """Decode an assignment into its partitions and its user data.

    Raises:
        ProtocolError: if the bytes are not an assignment; empty ones are the leader's fault (C-53).
    """
    reader = _Reader(data, "assignment")
    reader.i16()
    partitions = Partitions(reader.topic_partitions())
    return partitions, reader.nullable_bytes()


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _I16.pack(len(encoded)) + encoded


def _nullable_bytes(data: bytes | None) -> bytes:
    return _NO_DATA if data is None else _I32.pack(len(data)) + data


def _topic_partitions(by_topic: Mapping[str, Int32Array]) -> bytes:
    parts = [_I32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        parts += [_string(topic), _I32.pack(len(numbers)), numbers.astype(">i4").tobytes()]
    return b"".join(parts)


class _Reader:
    """Reads big-endian fields from a buffer. A field that is cut short raises a ProtocolError."""

    __slots__ = ("_data", "_what", "at")

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what, self.at = data, what, 0

    def _take(self, size: int) -> bytes:
        piece = self._data[self.at : self.at + size]
        if size < 0 or len(piece) < size:
            raise ProtocolError(
                self._what,
                f"{len(self._data)} bytes, ends at byte {self.at} where {size} more are announced",
            )
        self.at += size
        return piece

    @property
    def is_at_end(self) -> bool:
        return self.at == len(self._data)

    def head(self) -> _Head:
        """Read the version and the topics of a subscription."""
        version = self.i16()
        topics = tuple(self.string() for _ in range(self.count()))
        return _Head(version, topics, self._data[: self.at])

    def i16(self) -> int:
        value: int = _I16.unpack(self._take(2))[0]
        return value

    def i32(self) -> int:
        value: int = _I32.unpack(self._take(4))[0]
        return value

    def count(self) -> int:
        """Read the length of an array; a null array (-1) counts as empty."""
        return max(0, self.i32())

    def string(self) -> str:
        return self._text(self.i16())

    def nullable_string(self) -> str | None:
        size = self.i16()
        return None if size < 0 else self._text(size)

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(self._what, f"a name is not UTF-8: {error}") from None

    def nullable_bytes(self) -> bytes | None:
        size = self.i32()
        return None if size < 0 else self._take(size)

    def topic_partitions(self) -> dict[str, Int32Array]:
        """Read partitions by topic. A topic may occur more than once, as with librdkafka's sticky leader."""
        by_topic: dict[str, Int32Array] = {}
        for _ in range(self.count()):
            topic, numbers = self.string(), self._numbers()
            known = by_topic.get(topic)
            by_topic[topic] = numbers if known is None else np.concatenate((known, numbers))
        return by_topic

    def _numbers(self) -> Int32Array:
        return np.frombuffer(self._take(4 * self.count()), dtype=">i4").astype(np.int32)
