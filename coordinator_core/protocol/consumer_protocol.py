"""The bytes inside JoinGroup and SyncGroup: ConsumerProtocolSubscription and -Assignment, versions 0-3.

Encoding is deterministic (topics in the given order, owned partitions sorted by topic), because the
coordinator compares a member's bytes to find out whether the member has changed (PITFALLS C-21). A version
newer than 3 is decoded by the schema of version 3 (C-68).
"""

import struct
from collections.abc import Mapping

import numpy as np

from coordinator_core.errors import ProtocolError
from coordinator_core.java import java_order
from coordinator_core.model import NO_GENERATION, NO_PARTITIONS, Int32Array, Partitions, Subscription

PROTOCOL_TYPE = "consumer"
"""The protocol type of a group of consumers."""

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3

_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")


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


class KnownTopics:
    """The topics of the last subscription, and their bytes. Most members of a group have the same topics.

    Equal topics of subscriptions decoded with the same `KnownTopics` are one tuple.
    """

    __slots__ = ("encoded", "topics")

    def __init__(self) -> None:
        self.encoded = b""
        self.topics: tuple[str, ...] = ()


def decode_subscription(
    data: bytes, *, instance_id: str | None = None, known: KnownTopics | None = None
) -> Subscription:
    """Decode a subscription. The instance id is not in the bytes, but in JoinGroup.

    Raises:
        ProtocolError: if the bytes are not a subscription.
    """
    reader = _Reader(data, "subscription")
    version = reader.i16()
    topics = reader.topics(known or KnownTopics())
    user_data = reader.nullable_bytes()
    owned, generation, rack = NO_PARTITIONS, NO_GENERATION, None
    if version >= 1:
        owned = Partitions(reader.topic_partitions())
    if version >= 2:
        generation = reader.i32()
    if version >= 3:
        rack = reader.nullable_string()
    return Subscription(topics, owned, generation, rack, instance_id, user_data)


def encode_assignment(
    partitions: Partitions, user_data: bytes | None = None, *, version: int = ASSIGNMENT_VERSION
) -> bytes:
    """Encode an assignment. Versions 0-3 have the same layout."""
    return _I16.pack(version) + _topic_partitions(partitions.by_topic()) + _nullable_bytes(user_data)


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

    __slots__ = ("_at", "_data", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what, self._at = data, what, 0

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if size < 0 or len(piece) < size:
            raise ProtocolError(
                self._what,
                f"{len(self._data)} bytes, ends at byte {self._at} where {size} more are announced",
            )
        self._at += size
        return piece

    def topics(self, known: KnownTopics) -> tuple[str, ...]:
        """Read the topics; bytes that begin with the known ones give the known tuple."""
        begin = self._at
        if known.encoded and self._data.startswith(known.encoded, begin):
            self._at += len(known.encoded)
            return known.topics
        known.topics = tuple(self.string() for _ in range(self.count()))
        known.encoded = self._data[begin : self._at]
        return known.topics

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
