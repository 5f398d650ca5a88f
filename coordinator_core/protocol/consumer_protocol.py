"""The bytes inside JoinGroup and SyncGroup: ConsumerProtocolSubscription and -Assignment, versions 0-3.

Encoding is deterministic (topics in the given order, owned partitions sorted by topic), because the
coordinator compares a member's bytes to find out whether the member has changed (PITFALLS C-21). A version
newer than 3 is decoded by the schema of version 3 (C-68).
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from coordinator_core.errors import ProtocolError
from coordinator_core.java import java_order
from coordinator_core.model import (
    NO_GENERATION,
    NO_PARTITIONS,
    GroupAssignment,
    Int32Array,
    Partitions,
    Subscription,
)
from coordinator_core.packing import FEWEST_LISTS, read_partitions, read_topics, write_partitions

PROTOCOL_TYPE = "consumer"
"""The protocol type of a group of consumers."""

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3

_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")

_MOST_KNOWN = 8
"""The number of lists of topics that are looked for at the start of the next subscription."""

_Topics: TypeAlias = tuple[tuple[str, ...], int]
"""Topics, and the offset of their end in the bytes of a subscription."""


def encode_subscription(subscription: Subscription, *, version: int = SUBSCRIPTION_VERSION) -> bytes:
    """Encode a subscription in the given version (0-3). Capacity and instance id are not part of it."""
    parts = [_I16.pack(version), _I32.pack(len(subscription.topics))]
    parts += [_string(topic) for topic in subscription.topics]
    parts.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        owned = subscription.owned.by_topic()
        parts.append(_topic_partitions({t: np.sort(owned[t]) for t in java_order(owned)}))
    if version >= 2:
        parts.append(_I32.pack(subscription.generation))
    if version >= 3:
        parts.append(_I16.pack(-1) if subscription.rack is None else _string(subscription.rack))
    return b"".join(parts)


def decode_subscription(data: bytes, *, instance_id: str | None = None) -> Subscription:
    """Decode a subscription. The instance id is not in the bytes, but in JoinGroup.

    Raises:
        ProtocolError: if the bytes are not a subscription.
    """
    return _decoded(data, instance_id, None)


def decode_subscriptions(members: Sequence[tuple[bytes, str | None]]) -> list[Subscription]:
    """Decode the subscriptions of a group, given with the instance ids, as `decode_subscription` does.

    Equal topics are one tuple, except in groups with many lists of topics. The owned partitions of most
    members share an index.

    Raises:
        ProtocolError: if the bytes of a member are not a subscription.
    """
    topics = _topics_of_each([data for data, _ in members])
    if len(members) < FEWEST_LISTS:
        return [_decoded(data, i, known) for (data, i), known in zip(members, topics, strict=True)]
    begun = [_begun(data, known) for (data, _), known in zip(members, topics, strict=True)]
    owned = read_partitions([b"" if begin is None else begin.tail for begin in begun])
    return [
        (begin and claimed and _finished(begin, claimed, instance_id)) or _decoded(data, instance_id, known)
        for (data, instance_id), known, begin, claimed in zip(members, topics, begun, owned, strict=True)
    ]


def _decoded(data: bytes, instance_id: str | None, known: _Topics | None) -> Subscription:
    reader = _Reader(data, "subscription")
    version = reader.i16()
    if known is None:
        topics = reader.topics()
    else:
        topics, reader.at = known
    user_data = reader.nullable_bytes()
    owned, generation, rack = NO_PARTITIONS, NO_GENERATION, None
    if version >= 1:
        owned = Partitions(reader.topic_partitions())
    if version >= 2:
        generation = reader.i32()
    if version >= 3:
        rack = reader.nullable_string()
    return Subscription(topics, owned, generation, rack, instance_id, user_data)


def _topics_of_each(data: Sequence[bytes]) -> list[_Topics | None]:
    """Read the topics of subscriptions, and the offset of their end; None if they cannot be read."""
    known: list[tuple[bytes, _Topics]] = []
    found: list[_Topics | None] = []
    for subscription in data:
        for encoded, topics in known:
            if subscription.startswith(encoded, _I16.size):
                found.append(topics)
                break
        else:
            read = _topics_of(subscription) if len(known) < _MOST_KNOWN else None
            found.append(read)
            if read is not None:
                known.append((subscription[_I16.size : read[1]], read))
    unknown = [at for at, topics in enumerate(found) if topics is None]
    for at, together in zip(unknown, read_topics([data[at][_I16.size :] for at in unknown]), strict=True):
        if together is not None:
            found[at] = together[0], together[1] + _I16.size
    return found


def _topics_of(data: bytes) -> _Topics | None:
    reader = _Reader(data, "subscription")
    try:
        reader.i16()
        return reader.topics(), reader.at
    except ProtocolError:
        return None


class _Begun(NamedTuple):
    """A subscription that was read as far as its user data. ``tail``: the fields of later versions."""

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    tail: bytes


def _begun(data: bytes, topics: _Topics | None) -> _Begun | None:
    """Read a subscription after its topics; None if it is cut short or has version 0."""
    if topics is None or len(data) < topics[1] + _I32.size:
        return None
    (version,), (size,) = _I16.unpack_from(data), _I32.unpack_from(data, topics[1])
    begin = topics[1] + _I32.size
    end = begin + max(size, 0)
    if version < 1 or end > len(data):
        return None
    return _Begun(version, topics[0], None if size < 0 else data[begin:end], data[end:])


def _finished(begun: _Begun, claimed: tuple[Partitions, int], instance_id: str | None) -> Subscription | None:
    """Read the fields after the owned partitions; None if they are cut short or not text."""
    version, topics, user_data, tail = begun
    owned, at = claimed
    generation, rack = NO_GENERATION, None
    try:
        if version >= 2:
            (generation,) = _I32.unpack_from(tail, at)
        if version >= 3:
            (size,) = _I16.unpack_from(tail, at + _I32.size)
            begin = at + _I32.size + _I16.size
            if begin + size > len(tail):
                return None
            rack = None if size < 0 else tail[begin : begin + size].decode()
    except (struct.error, UnicodeDecodeError):
        return None
    return Subscription(topics, owned, generation, rack, instance_id, user_data)


def encode_assignment(
    partitions: Partitions, user_data: bytes | None = None, *, version: int = ASSIGNMENT_VERSION
) -> bytes:
    """Encode an assignment. Versions 0-3 have the same layout."""
    return _I16.pack(version) + _topic_partitions(partitions.by_topic()) + _nullable_bytes(user_data)


def encode_assignments(
    assignment: GroupAssignment, members: Iterable[str], *, version: int = ASSIGNMENT_VERSION
) -> list[bytes]:
    """Encode the assignments of members, each as `encode_assignment` does, but together."""
    lists = write_partitions(assignment)
    user_data = assignment.user_data
    if lists is None:
        return [encode_assignment(assignment[m], user_data.get(m), version=version) for m in members]
    list_of = dict(zip(assignment, lists, strict=True))
    head = _I16.pack(version)
    return [head + list_of[m] + _nullable_bytes(user_data.get(m)) for m in members]


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
    return _I32.pack(-1) if data is None else _I32.pack(len(data)) + data


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

    def topics(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self.count()))

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
