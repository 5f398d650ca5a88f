"""Values of Kafka's protocol as bytes: a `Codec` for each kind, in the legacy and the compact encoding.

Reading checks what is announced before memory is taken: twenty bytes can announce four billion elements.
"""

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

MOST_ELEMENTS = 250_000
"""Elements of all arrays of a request, and its tagged fields."""

LONGEST_STRING = 32_767
"""Bytes of a string in every version, as in Kafka's brokers: text from a client of a new version may be sent
to a client of an old one."""


class Topics(Protocol):
    """The topics with their ids."""

    @property
    def ids(self) -> Mapping[str, UUID]:
        """The ids by name."""

    def named(self, topic_id: UUID | None) -> str | None:
        """Return the name of a topic, None if it is unknown."""


class KnownTopics:
    """The topics whose ids were learned. An id stays known when its topic has got another one."""

    def __init__(self) -> None:
        self.ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}

    def learn(self, ids: Mapping[str, UUID]) -> None:
        """Take over ids by name."""
        self.ids |= ids
        self._names |= {topic_id: name for name, topic_id in ids.items()}

    def named(self, topic_id: UUID | None) -> str | None:
        """Return the name of a topic, None if it is unknown."""
        return None if topic_id is None else self._names.get(topic_id)


NO_TOPICS = KnownTopics()
"""No topics, for messages without ids."""


class Input:
    """A message, the place of the next value, and how many elements and tags it may still have.

    ``topics`` names the topics that the message has by id. The ids of others are added to ``unknown``.
    """

    __slots__ = ("at", "data", "left", "topics", "unknown")

    def __init__(
        self, data: bytes, at: int = 0, most_elements: int | None = None, topics: Topics = NO_TOPICS
    ) -> None:
        self.data, self.at, self.topics = data, at, topics
        self.left = len(data) if most_elements is None else most_elements
        self.unknown: list[UUID] = []

    def take(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            ValueError: if there are not so many.
        """
        begin, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise ValueError(f"{size:,} bytes, but only {len(self.data) - begin:,} are left")
        return self.data[begin : self.at]

    def count(self, elements: int, what: str) -> None:
        """Count elements that are announced.

        Raises:
            ValueError: if there are more than there may be, or than bytes.
        """
        most = min(self.left, max(0, len(self.data) - self.at))
        if elements > most:
            raise ValueError(f"{elements:,} {what}, expected {most:,} at most")
        self.left -= elements

    def name_of(self, topic_id: UUID | None) -> str:
        """Return the name of a topic. An unknown topic has its id as its name."""
        name = self.topics.named(topic_id)
        if name is None and topic_id is not None:
            self.unknown.append(topic_id)
        return name or str(topic_id)


class Output(bytearray):
    """The bytes of a message. ``topics`` has the ids of the topics that the message names by id."""

    topics: Topics = NO_TOPICS


Read: TypeAlias = Callable[[Input], Any]
Write: TypeAlias = Callable[[Output, Any], None]


class Codec(NamedTuple):
    """How a value is read and written."""

    read: Read
    write: Write


# --- numbers


def _number(letter: str) -> Codec:
    struct = Struct(f">{letter}")
    size, unpack, pack = struct.size, struct.unpack_from, struct.pack

    def read(source: Input) -> Any:
        (value,) = unpack(source.data, source.at)
        source.at += size
        return value

    def write(out: Output, value: Any) -> None:
        out += pack(value)

    return Codec(read, write)


def unsigned(source: Input) -> int:
    """Read a number of up to 35 bits in groups of seven bits, the lowest first."""
    data, at, value = source.data, source.at, 0
    for shift in range(0, 35, 7):
        if at == len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            source.at = at
            return value
    raise ValueError("a length without an end")


def write_unsigned(out: Output, value: int) -> None:
    """Write a number in groups of seven bits."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


INT16, INT32, INT64 = _number("h"), _number("i"), _number("q")


def _write_compact(out: Output, size: int) -> None:
    if size < 0x7F:
        out.append(size + 1)
    else:
        write_unsigned(out, size + 1)


COMPACT = Codec(lambda source: unsigned(source) - 1, _write_compact)
"""Lengths of compact values. That of null is -1, as with legacy values."""


def _uuid(source: Input) -> UUID | None:
    data = source.take(16)
    return UUID(bytes=data) if any(data) else None


def _write_uuid(out: Output, value: UUID | None) -> None:
    out += bytes(16) if value is None else value.bytes


def _time(source: Input) -> int | None:
    time_ms: int = INT64.read(source)
    return None if time_ms == -1 else time_ms


FIXED: Mapping[str, Codec] = {
    "bool": _number("?"),
    "datetime_i64": Codec(_time, lambda out, time_ms: INT64.write(out, -1 if time_ms is None else time_ms)),
    "error_code": Codec(lambda source: Wire(INT16.read(source)), INT16.write),
    "float64": _number("d"),
    "int8": _number("b"),
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "timedelta_i32": INT32,
    "timedelta_i64": INT64,
    "uint16": _number("H"),
    "uuid": Codec(_uuid, _write_uuid),
}
"""kio's name of a kind -> its codec. Times are milliseconds. A time of day may be None."""


# --- values with a length


def sized(length: Codec, *, is_text: bool, nullable: bool) -> Codec:
    """Return the codec of text or bytes."""

    def read(source: Input) -> Any:
        size = _length(source, length, nullable=nullable)
        if size is None:
            return None
        if not is_text:
            return source.take(size)
        if size > LONGEST_STRING:
            raise ValueError(f"a string of {size:,} bytes, expected {LONGEST_STRING:,} at most")
        return source.take(size).decode()

    def write(out: Output, value: Any) -> None:
        if value is None and nullable:
            length.write(out, -1)
            return
        data = value.encode() if is_text else value
        length.write(out, len(data))
        out += data

    return Codec(read, write)


def array(length: Codec, element: Codec, *, nullable: bool) -> Codec:
    """Return the codec of an array. It is read as a tuple."""
    read_element, write_element = element

    def read(source: Input) -> tuple[Any, ...] | None:
        count = _length(source, length, nullable=nullable)
        if count is None:
            return None
        source.count(count, "elements of an array")
        return tuple([read_element(source) for _ in range(count)])

    def write(out: Output, elements: Any) -> None:
        if elements is None and nullable:
            length.write(out, -1)
            return
        length.write(out, len(elements))
        for value in elements:
            write_element(out, value)

    return Codec(read, write)


def optional(entity: Codec) -> Codec:
    """Return the codec of an entity that may be null (KIP-893)."""

    def read(source: Input) -> Any:
        return None if source.take(1) == b"\xff" else entity.read(source)

    def write(out: Output, value: Any) -> None:
        out += b"\xff" if value is None else b"\1"
        if value is not None:
            entity.write(out, value)

    return Codec(read, write)


def _length(source: Input, length: Codec, *, nullable: bool) -> int | None:
    size: int = length.read(source)
    if size >= 0:
        return size
    if not nullable:
        raise ValueError("null, where a value must be")
    return None


# --- tagged fields (KIP-482)


def read_tags(source: Input, known: Mapping[int, tuple[str, Codec]], values: dict[str, Any]) -> None:
    """Add the tagged fields that are known to values by their names. Others are skipped."""
    if source.data[source.at : source.at + 1] == b"\0":
        source.at += 1
        return
    count = unsigned(source)
    source.count(count, "tagged fields")
    for _ in range(count):
        tag, size = unsigned(source), unsigned(source)
        begin = source.at
        source.take(size)
        if tag in known:
            name, codec = known[tag]
            source.at, end = begin, source.at
            values[name] = codec.read(source)
            if source.at != end:
                raise ValueError(f"the value of tagged field {tag} does not end after its {size:,} bytes")


def write_tags(out: Output, values: Sequence[tuple[int, Codec, Any]]) -> None:
    """Write tagged fields, which are sorted by their tags."""
    write_unsigned(out, len(values))
    for tag, codec, value in values:
        data = Output()
        codec.write(data, value)
        write_unsigned(out, tag)
        write_unsigned(out, len(data))
        out += data
