"""The records in the log of the offsets topic (PROTOCOL 8.1), and their bytes.

The key of a record is a group, or a group, a topic and a partition. The newest record of a key counts; the
value None deletes. An encoded record has its length and a checksum, so that damage is noticed.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.protocol.messages import OffsetToCommit


class StoredMember(msgspec.Struct, frozen=True, array_like=True):
    """A member as of the last stored assignment."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(msgspec.Struct, frozen=True, array_like=True):
    """A group as of the last stored assignment, or as it became Empty.

    ``family`` is the protocol family of the group. Records that older versions wrote have none; they are
    of classic groups.
    """

    protocol_type: str
    protocol_name: str | None
    generation: int
    leader: str | None
    members: tuple[StoredMember, ...]
    changed_at_ms: int
    family: str = "classic"


class StoredOffset(msgspec.Struct, frozen=True, array_like=True):
    """A committed offset. ``expires_at_ms``: None for the retention of the coordinator."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int | None = None


class GroupRecord(msgspec.Struct, frozen=True, tag="g", array_like=True):
    """A group; None deletes the group."""

    group_id: str
    value: StoredGroup | None


class OffsetRecord(msgspec.Struct, frozen=True, tag="o", array_like=True):
    """A committed offset; None deletes the offset."""

    group_id: str
    topic: str
    partition: int
    value: StoredOffset | None


class PendingRecord(msgspec.Struct, frozen=True, tag="t", array_like=True):
    """An offset in the transaction of a producer; None removes it from the transaction."""

    group_id: str
    producer_id: int
    epoch: int
    topic: str
    partition: int
    value: StoredOffset | None


class GenerationRecord(msgspec.Struct, frozen=True, tag="n", array_like=True):
    """The highest generation that may be handed out; None deletes it.

    Kafka has no such record. There the next coordinator hands out a generation again if its assignment was
    never stored.
    """

    group_id: str
    value: int | None


class PartRecord(msgspec.Struct, frozen=True, tag="p", array_like=True):
    """A part of a group, as the group's protocol family writes it; None deletes the part.

    The parts of a group are deleted with it.
    """

    group_id: str
    key: str
    value: bytes | None


Record: TypeAlias = GroupRecord | OffsetRecord | PendingRecord | GenerationRecord | PartRecord


class CommittedOffsets(msgspec.Struct, frozen=True):
    """The `OffsetRecord` of each offset of a commit. They are made only where they are read."""

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    committed_at_ms: int
    expires_at_ms: int | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[OffsetRecord]:
        for o in self.offsets:
            yield OffsetRecord(self.group_id, o.topic, o.partition, self.stored(o))

    def stored(self, offset: OffsetToCommit) -> StoredOffset:
        """Return one of the offsets as it is stored."""
        return StoredOffset(
            offset.offset, offset.leader_epoch, offset.metadata, self.committed_at_ms, self.expires_at_ms
        )


Records: TypeAlias = tuple[Record, ...] | CommittedOffsets
"""Records that are appended together."""

RecordKey: TypeAlias = tuple[str] | tuple[str, str] | tuple[str, str, int] | tuple[str, int, str, int]
Partition: TypeAlias = tuple[str, int]
"""A topic and the number of a partition: a plain pair, which a `TopicPartition` equals."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_HEADER_BYTES = 8
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def record_key(record: Record) -> RecordKey:
    """Return the key of a record. Compaction keeps the newest record of a key."""
    match record:
        case GroupRecord(group_id):
            return (group_id,)
        case GenerationRecord(group_id):
            return (group_id, "", -1)
        case PartRecord(group_id, key):
            return (group_id, key)
        case PendingRecord(group_id, producer_id, _, topic, partition):
            return (group_id, producer_id, topic, partition)
        case OffsetRecord(group_id, topic, partition):
            return (group_id, topic, partition)


@dataclass(slots=True)
class PendingOffsets:
    """The offsets of a group in the transaction of a producer of this epoch."""

    epoch: int
    offsets: dict[Partition, StoredOffset] = field(default_factory=dict)


class GroupTable:
    """The durable state: groups with their parts, offsets, generations. Only records change it.

    ``pending`` has the offsets in transactions, by group and producer id.
    """

    def __init__(self) -> None:
        self.groups: dict[str, StoredGroup] = {}
        self.offsets: defaultdict[str, dict[Partition, StoredOffset]] = defaultdict(dict)
        self.pending: defaultdict[str, dict[int, PendingOffsets]] = defaultdict(dict)
        self.generations: dict[str, int] = {}
        self.parts: defaultdict[str, dict[str, bytes]] = defaultdict(dict)

    def apply_all(self, records: Iterable[Record]) -> None:
        """Apply records, live or at recovery."""
        if isinstance(records, CommittedOffsets):
            offsets = self.offsets[records.group_id]
            for o in records.offsets:
                offsets[o.topic, o.partition] = records.stored(o)
        else:
            for record in records:
                self.apply(record)

    def apply(self, record: Record) -> None:
        """Apply one record."""
        match record:
            case OffsetRecord(group_id, topic, partition, stored):
                _set_or_delete(self.offsets[group_id], (topic, partition), stored)
                if not self.offsets[group_id]:
                    del self.offsets[group_id]
            case PendingRecord():
                self._apply_pending(record)
            case GroupRecord(group_id, group):
                _set_or_delete(self.groups, group_id, group)
                if group is None:
                    self.parts.pop(group_id, None)
            case PartRecord(group_id, key, value):
                _set_or_delete(self.parts[group_id], key, value)
            case GenerationRecord(group_id, generation):
                _set_or_delete(self.generations, group_id, generation)

    def pending_partitions(self, group_id: str) -> set[Partition]:
        """Return the partitions of a group that have offsets in transactions."""
        return {partition for held in self.pending.get(group_id, {}).values() for partition in held.offsets}

    def _apply_pending(self, record: PendingRecord) -> None:
        producers = self.pending[record.group_id]
        held = producers.setdefault(record.producer_id, PendingOffsets(record.epoch))
        _set_or_delete(held.offsets, (record.topic, record.partition), record.value)
        if not held.offsets:
            del producers[record.producer_id]
        if not producers:
            del self.pending[record.group_id]


def _set_or_delete(table: dict[Key, Value], key: Key, value: Value | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def encode_record(record: Record) -> bytes:
    """Encode a record: its length, a checksum, and the record in msgpack."""
    body = _encoder.encode(record)
    return _header(body) + body


def _header(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big")


def decode_record(data: bytes, where: str) -> Record:
    """Decode one record that was written whole. ``where`` names its place in the message of an error.

    Raises:
        InputError: if the bytes are not those that were written, or not a record that this version knows.
    """
    header, body = data[:_HEADER_BYTES], data[_HEADER_BYTES:]
    if header != _header(body):
        found, expected = (f"length and checksum {part.hex(' ', 4)}" for part in (_header(body), header))
        raise InputError(where, f"a damaged record ({found})", expected)
    try:
        record: Record = _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise InputError(where, str(error), "a record of this version or an earlier one") from None
    return record


def compact(records: Iterable[Record]) -> list[Record]:
    """Return the newest record of each key in the order of the log, without tombstones."""
    newest: dict[RecordKey, Record] = {}
    for record in records:
        key = record_key(record)
        newest.pop(key, None)
        newest[key] = record
    return [record for record in newest.values() if record.value is not None]
