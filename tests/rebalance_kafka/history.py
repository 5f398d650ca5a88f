"""The history of what clients did, and what in it cannot have happened on a broker that works.

An operation begins and ends: as ``ok``, if the client knows that it has happened, as ``failed``, if it knows
that it has not, or as ``unknown``: then it may have happened, or happen later. The idea is that of Jepsen's
histories and of Elle.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import count
from threading import Lock
from typing import NamedTuple, TypeAlias


class Outcome(StrEnum):
    """How an operation ended."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    """What a client does."""

    PRODUCE = "produce"
    """Writes ``value``, which nobody else writes, to a partition. ``offset`` is where, if it is ok."""
    FETCH = "fetch"
    """Reads ``value`` at ``offset``. A read that finds nothing is no operation."""
    COMMIT = "commit"
    """Commits ``offset`` for the group ``client``, of which it is the only member."""
    COMMITTED = "committed"
    """Reads the committed offset of its group: -1 if there is none."""


class Operation(NamedTuple):
    """What one client did. ``began`` and ``ended`` order all operations of a history."""

    client: str
    kind: Kind
    partition: int
    began: int
    ended: int
    outcome: Outcome
    offset: int = -1
    value: bytes = b""


Log: TypeAlias = Mapping[int, Sequence[tuple[int, bytes]]]
"""Partition -> the offsets and values of its records, as they are at the end."""


class History:
    """Notes operations, from several threads."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._moments, self._lock = count(1), Lock()

    def begin(self) -> int:
        """Return the moment at which an operation begins."""
        with self._lock:
            return next(self._moments)

    def acknowledged(self) -> set[tuple[int, int]]:
        """Return partitions and offsets of the records that are known to be written."""
        with self._lock:
            written = [each for each in self.operations if each.kind is Kind.PRODUCE]
        return {(each.partition, each.offset) for each in written if each.outcome is Outcome.OK}

    def end(
        self,
        client: str,
        kind: Kind,
        partition: int,
        began: int,
        outcome: Outcome,
        offset: int = -1,
        value: bytes = b"",
    ) -> None:
        """Note an operation that has ended."""
        with self._lock:
            ended = next(self._moments)
            self.operations.append(Operation(client, kind, partition, began, ended, outcome, offset, value))


def broken_rules(operations: Sequence[Operation], log: Log) -> list[str]:
    """Return what is wrong, each with the operation that shows it."""
    return [
        *_lost(operations, log),
        *_twice(log),
        *_invented(operations, log),
        *_changed(operations, log),
        *_backwards(operations),
    ]


def _lost(operations: Iterable[Operation], log: Log) -> Iterable[str]:
    for each in operations:
        if each.kind is Kind.PRODUCE and each.outcome is Outcome.OK:
            found = dict(log.get(each.partition, ())).get(each.offset)
            if found != each.value:
                yield f"an acknowledged record is not at its offset, where {found!r} is: {each}"


def _twice(log: Log) -> Iterable[str]:
    """All producers are idempotent."""
    seen: dict[bytes, tuple[int, int]] = {}
    for partition, records in log.items():
        for offset, value in records:
            if value in seen:
                yield f"a record is there twice: {value!r} at {seen[value]} and {(partition, offset)}"
            seen[value] = partition, offset


def _invented(operations: Iterable[Operation], log: Log) -> Iterable[str]:
    written = {(each.partition, each.value): each for each in operations if each.kind is Kind.PRODUCE}
    for partition, records in log.items():
        for offset, value in records:
            found = written.get((partition, value))
            if found is None or found.outcome is Outcome.FAILED:
                yield f"nobody has written {value!r}, which is at {(partition, offset)}: {found}"


def _changed(operations: Iterable[Operation], log: Log) -> Iterable[str]:
    kept = {(partition, offset): value for partition, records in log.items() for offset, value in records}
    for each in operations:
        found = kept.get((each.partition, each.offset))
        if each.kind is Kind.FETCH and found != each.value:
            yield f"another record was read than is there, {found!r}: {each}"


def _backwards(operations: Sequence[Operation]) -> Iterable[str]:
    """A committed offset is that of the last commit, or of one that may have happened since."""
    for read in operations:
        if read.kind is not Kind.COMMITTED or read.outcome is not Outcome.OK:
            continue
        commits = [
            each
            for each in operations
            if each.kind is Kind.COMMIT
            and (each.client, each.partition) == (read.client, read.partition)
            and each.began < read.ended
            and each.outcome is not Outcome.FAILED
        ]
        past = [each for each in commits if each.outcome is Outcome.OK and each.ended < read.began]
        last_began = max((each.began for each in past), default=0)
        possible = {
            each.offset for each in commits if each.outcome is Outcome.UNKNOWN or each.ended > last_began
        }
        if read.offset not in (possible if past else {*possible, -1}):
            yield f"a committed offset went back, expected one of {sorted(possible)}: {read}"
