"""The user data of the sticky assignors, in the formats of Apache Kafka.

Eager members own nothing when they join, so Sticky sends their last assignment: StickyAssignorUserData v1, an
array of topics with their partitions, then the generation, which version 0 has not. CooperativeSticky sends
only the generation. Other bytes are ignored (PITFALLS C-68).
"""

import struct
from collections.abc import Sequence

import numpy as np

from coordinator_core.assigning.problem import Claimed
from coordinator_core.java import java_order
from coordinator_core.model import (
    NO_GENERATION,
    NO_PARTITIONS,
    Int32Array,
    Partitions,
    Subscription,
    TopicIndex,
)
from coordinator_core.packing import read_claims, rows_of

_LENGTH = struct.Struct(">h")
_NUMBER = struct.Struct(">i")


def encode_ownership(owned: Partitions, generation: int) -> bytes:
    """Return StickyAssignorUserData v1. Equal ownership gives equal bytes."""
    by_topic = owned.by_topic()
    parts = [_NUMBER.pack(len(by_topic))]
    for topic in java_order(by_topic):
        name, numbers = topic.encode(), np.sort(by_topic[topic])
        parts += [_LENGTH.pack(len(name)), name, _NUMBER.pack(len(numbers)), numbers.astype(">i4").tobytes()]
    return b"".join([*parts, _NUMBER.pack(generation)])


def decode_ownership(data: bytes) -> tuple[Partitions, int] | None:
    """Return the ownership of a member and its generation, or None for other bytes.

    Bytes after the fields are ignored, as by the decoders of Apache Kafka. Version 0 has no generation.
    """
    owned: dict[str, Int32Array] = {}
    try:
        (topics,), at = _NUMBER.unpack_from(data), _NUMBER.size
        if topics < 0:
            return None
        for _ in range(topics):
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            topic = data[at : at + length].decode()
            (count,) = _NUMBER.unpack_from(data, at + length)
            if length < 0 or count < 0:
                return None
            at += length + _NUMBER.size
            numbers = np.frombuffer(data, dtype=">i4", count=count, offset=at).astype(np.int32)
            owned[topic] = np.concatenate((owned[topic], numbers)) if topic in owned else numbers
            at += 4 * count
        version_0 = len(data) - at < _NUMBER.size
        generation = NO_GENERATION if version_0 else _NUMBER.unpack_from(data, at)[0]
    except (struct.error, ValueError):
        return None
    return Partitions(owned), generation


def decode_claims(index: TopicIndex, subscriptions: Sequence[Subscription]) -> Claimed:
    """Return what members claim in their user data, which are decoded together.

    A member without valid user data keeps the claims of its subscription.
    """
    rows = rows_of([s.user_data or b"" for s in subscriptions])
    partition, member, read, after = read_claims(rows, rows.begin, index)
    read &= rows.hold(after, _NUMBER.size)
    generation = rows.numbers(after)
    owned = [NO_PARTITIONS] * len(subscriptions)
    for m in np.flatnonzero(~read).tolist():
        s = subscriptions[m]
        owned[m], generation[m] = decode_ownership(s.user_data or b"") or (s.owned, s.generation)
    valid = read[member]
    others = Partitions.claims(index, owned)
    return Claimed(
        np.concatenate((partition[valid], others[0])), np.concatenate((member[valid], others[1])), generation
    )


def encode_generation(generation: int) -> bytes:
    """Return CooperativeStickyAssignorUserData v0."""
    return _NUMBER.pack(generation)


def decode_generation(data: bytes) -> int | None:
    """Return the generation, or None for other bytes."""
    return _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else None
