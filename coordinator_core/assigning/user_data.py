"""The user data of the sticky assignors, in the formats of Apache Kafka.

Eager members own nothing when they join, so Sticky sends their last assignment: StickyAssignorUserData v1, an
array of topics with their partitions, then the generation. CooperativeSticky sends only the generation.
Bytes of another assignor or version are ignored (PITFALLS C-68).
"""

import struct
from collections.abc import Sequence

import msgspec
import numpy as np

from coordinator_core.java import java_order
from coordinator_core.model import Int32Array, Partitions
from coordinator_core.packing import FEWEST_LISTS, read_partitions, rows_of

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


class Ownership(msgspec.Struct, frozen=True, eq=False):
    """User data, and the ownership and generation in them; None for other bytes.

    ``size`` is the size of the list of partitions, 0 for other bytes.
    """

    data: bytes | None
    decoded: tuple[Partitions, int] | None = None
    size: int = 0


def decode_ownership(data: bytes) -> tuple[Partitions, int] | None:
    """Return the ownership of a member and its generation, or None for other bytes.

    Bytes after the fields are ignored, as by the decoders of Apache Kafka.
    """
    return _decoded(data).decoded


def _decoded(data: bytes | None) -> Ownership:
    if data is None:
        return Ownership(data)
    owned: dict[str, Int32Array] = {}
    try:
        (topics,), at = _NUMBER.unpack_from(data), _NUMBER.size
        if topics < 0:
            return Ownership(data)
        for _ in range(topics):
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            topic = data[at : at + length].decode()
            (count,) = _NUMBER.unpack_from(data, at + length)
            if length < 0 or count < 0:
                return Ownership(data)
            at += length + _NUMBER.size
            numbers = np.frombuffer(data, dtype=">i4", count=count, offset=at).astype(np.int32)
            owned[topic] = np.concatenate((owned[topic], numbers)) if topic in owned else numbers
            at += 4 * count
        (generation,) = _NUMBER.unpack_from(data, at)
    except (struct.error, ValueError):
        return Ownership(data)
    return Ownership(data, (Partitions(owned), generation), at)


def decode_ownerships(data: Sequence[bytes | None]) -> list[Ownership]:
    """Decode the user data of a group, as `decode_ownership` does."""
    if len(data) < FEWEST_LISTS:
        return list(map(_decoded, data))
    rows = rows_of([each or b"" for each in data])
    owned, after = read_partitions(rows, rows.begin)
    sizes = (after - rows.begin).tolist()
    columns = owned, sizes, rows.hold(after, _NUMBER.size).tolist(), rows.numbers(after).tolist()
    return [
        _decoded(each) if partitions is None or not whole else Ownership(each, (partitions, generation), size)
        for each, partitions, size, whole, generation in zip(data, *columns, strict=True)
    ]


def decode_ownership_again(data: bytes | None, last: Ownership) -> Ownership | None:
    """Decode user data in which only the generation may have changed; None if anything else has."""
    old, decoded, size = last.data, last.decoded, last.size
    if data == old:
        return last
    if data is None or old is None or decoded is None or len(data) != len(old) or data[:size] != old[:size]:
        return None
    return Ownership(data, (decoded[0], _NUMBER.unpack_from(data, size)[0]), size)


def encode_generation(generation: int) -> bytes:
    """Return CooperativeStickyAssignorUserData v0."""
    return _NUMBER.pack(generation)


def decode_generation(data: bytes) -> int | None:
    """Return the generation, or None for other bytes."""
    return _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else None
