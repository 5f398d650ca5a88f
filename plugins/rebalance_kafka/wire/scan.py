"""What must be done with the bytes of a message before kio reads it: check lengths, leave out unknown tags.

kio allocates an array by its announced length. Twenty bytes can announce four billion elements, which aborts
a process without the memory for them. Only messages with arrays are checked. kio finds out whether a message
is complete.

kio rejects tagged fields that the schema does not have. A receiver must skip them (KIP-482).
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from rebalance_kafka.wire.schemas import is_array, is_nullable, nested

MOST_ELEMENTS = 250_000
"""Elements of all arrays of a request, and its tagged fields."""

LONGEST_STRING = 32_767
"""Bytes of a string in every version, as in Kafka's brokers: text from a client of a new version may be sent
to a client of an old one."""

_FIXED_BYTES = {
    "bool": 1,
    "datetime_i64": 8,
    "error_code": 2,
    "float64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uint16": 2,
    "uuid": 16,
}


class _Edit(NamedTuple):
    """Bytes of a message that are to be replaced."""

    begin: int
    end: int
    replacement: bytes


class _Walk:
    """A message, the number of elements and tags that it may still have, and the edits that remove tags."""

    __slots__ = ("data", "edits", "left")

    def __init__(self, data: bytes, left: int) -> None:
        self.data, self.left = data, left
        self.edits: list[_Edit] = []

    def edited(self, begin: int, end: int, since: int = 0) -> bytes:
        """Return a part of the message after the edits ``since`` an index, which are all in this part."""
        pieces = []
        for edit in self.edits[since:]:
            pieces += [self.data[begin : edit.begin], edit.replacement]
            begin = edit.end
        return b"".join((*pieces, self.data[begin:end]))


_Skip: TypeAlias = Callable[[_Walk, int], int]
"""Returns where a value ends, given where it begins."""

Check: TypeAlias = Callable[[bytes, int], None]


@cache
def length_check(schema: Any, most_elements: int | None = None) -> Check | None:
    """Return the function that checks a message from an offset on, None if the schema has no arrays.

    The function raises ValueError if a string is too long, or if there are more than ``most_elements``
    elements and tagged fields in all, or more than bytes.
    """
    if not _has_arrays(schema):
        return None
    skip = _entity(schema)

    def check(data: bytes, at: int) -> None:
        skip(_Walk(data, len(data) if most_elements is None else most_elements), at)

    return check


def without_unknown_tags(frame: bytes, schemas: Iterable[Any], most_elements: int | None = None) -> bytes:
    """Return the frame of these entities, one after the other, without the tagged fields they do not have.

    Raises:
        ValueError: if a tagged field does not end within the frame, or there are more than ``most_elements``
            elements and tagged fields in all.
    """
    walk, at = _Walk(frame, len(frame) if most_elements is None else most_elements), 0
    for schema in schemas:
        at = _entity(schema)(walk, at)
    return walk.edited(0, len(frame))


def _has_arrays(schema: Any) -> bool:
    return any(
        is_array(field) or (nested(field) is not None and _has_arrays(nested(field)))
        for field in fields(schema)
    )


# --- lengths of values


@cache
def _entity(schema: Any) -> _Skip:
    compact = schema.__flexible__
    steps: list[_Skip] = []
    run = 0
    for field in fields(schema):
        if "tag" in field.metadata:
            continue
        size = None if is_array(field) else _FIXED_BYTES.get(field.metadata.get("kafka_type", ""))
        if size is not None:
            run += size
            continue
        if run:
            steps.append(_bytes(run))
            run = 0
        is_legacy = field.name == "client_id" and schema.__name__ == "RequestHeader"  # in every version
        steps.append(_field(field, compact and not is_legacy))
    if run:
        steps.append(_bytes(run))
    if compact:
        steps.append(_tags({f.metadata["tag"]: f for f in fields(schema) if "tag" in f.metadata}))
    if len(steps) == 1:
        return steps[0]

    def skip(walk: _Walk, at: int) -> int:
        for step in steps:
            at = step(walk, at)
        return at

    return skip


def _field(field: Any, compact: bool) -> _Skip:
    if is_array(field):
        return _array(_element(field, compact), compact, nullable=is_nullable(field))
    return _optional(_element(field, compact), field)


def _element(field: Any, compact: bool) -> _Skip:
    entity = nested(field)
    if entity is not None:
        return _entity(entity)
    kind = field.metadata["kafka_type"]
    if kind in _FIXED_BYTES:
        return _bytes(_FIXED_BYTES[kind])
    is_string = kind == "string"
    if compact:
        return _compact_string if is_string else _compact_bytes
    return _legacy_string if is_string else _legacy_bytes


def _optional(skip: _Skip, field: Any) -> _Skip:
    """Skip a nullable entity. Its first byte tells whether it is null."""
    if nested(field) is None or not is_nullable(field):
        return skip
    return lambda walk, at: at + 1 if walk.data[at : at + 1] == b"\xff" else skip(walk, at + 1)


def _bytes(size: int) -> _Skip:
    return lambda _, at: at + size


def _legacy_string(walk: _Walk, at: int) -> int:
    return at + 2 + max(0, int.from_bytes(walk.data[at : at + 2], "big", signed=True))


def _legacy_bytes(walk: _Walk, at: int) -> int:
    return at + 4 + max(0, int.from_bytes(walk.data[at : at + 4], "big", signed=True))


def _compact_string(walk: _Walk, at: int) -> int:
    size, at = _length(walk.data, at)
    if size > LONGEST_STRING:
        raise ValueError(f"a string of {size:,} bytes, expected {LONGEST_STRING:,} at most")
    return at + size


def _compact_bytes(walk: _Walk, at: int) -> int:
    size, at = _length(walk.data, at)
    return at + size


def _array(element: _Skip, compact: bool, *, nullable: bool) -> _Skip:
    def skip(walk: _Walk, at: int) -> int:
        if compact:
            count, at = _unsigned(walk.data, at)
            count -= 1
        else:
            count, at = int.from_bytes(walk.data[at : at + 4], "big", signed=True), at + 4
        if count < 0 and not nullable:
            raise ValueError("null, where an array must be")
        most = min(walk.left, max(0, len(walk.data) - at))
        if count > most:
            raise ValueError(f"an array of {count:,} elements, expected {most:,} at most")
        walk.left -= max(0, count)
        for _ in range(count):
            at = element(walk, at)
        return at

    return skip


def _tags(known: dict[int, Any]) -> _Skip:
    skips = {tag: _field(field, compact=True) for tag, field in known.items()}

    def skip(walk: _Walk, at: int) -> int:
        begin, edits = at, len(walk.edits)
        count, at = _unsigned(walk.data, at)
        if not count:
            return at
        if count > walk.left:
            raise ValueError(f"{count:,} tagged fields, expected {walk.left:,} at most")
        walk.left -= count
        kept: list[bytes] = []
        for _ in range(count):
            tag, at = _unsigned(walk.data, at)
            size, at = _unsigned(walk.data, at)
            if at + size > len(walk.data):
                raise ValueError(f"tagged field {tag} has {size:,} bytes, which are not all there")
            if tag in skips:
                inside = len(walk.edits)
                if skips[tag](walk, at) != at + size:
                    raise ValueError(f"the value of tagged field {tag} does not end after its {size:,} bytes")
                value = walk.edited(at, at + size, inside)
                kept += [_varint(tag), _varint(len(value)), value]
            at += size
        if len(kept) < 3 * count or len(walk.edits) > edits:
            walk.edits[edits:] = [_Edit(begin, at, b"".join((_varint(len(kept) // 3), *kept)))]
        return at

    return skip


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of a compact value, 0 for null, and where the value begins."""
    size, at = _unsigned(data, at)
    return max(0, size - 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a length without an end")


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
