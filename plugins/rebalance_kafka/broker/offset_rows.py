"""The rows of requests about committed offsets: those that the coordinator receives, and the others.

The order of a response is Kafka's. Rows that the broker refuses by itself come first in commits and
deletions, each topic once; the others follow as requested. In OffsetFetch the refused topics come last.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from coordinator_core.coordinator.offset_commit import refused
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.rows import Rows, Topic, as_requested

_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

Exists: TypeAlias = Callable[[str, int], bool]
"""Returns whether there is a partition."""

_Complete: TypeAlias = Callable[[Any], m.Response]


def _unchanged(response: m.Response) -> m.Response:
    return response


class Part(NamedTuple):
    """The part of a request that the coordinator receives.

    ``refusal``: the response, if it receives nothing. ``complete`` adds the other rows to its response.
    """

    message: m.Request
    refusal: m.Response | None = None
    complete: _Complete = _unchanged


_Listed: TypeAlias = dict[Any, tuple[Topic, list[m.PartitionError]]]
"""Topics with the rows of a response, by their ids or their names."""


def known_rows(message: m.Request, exists: Exists) -> Part:
    """Return the rows of a request of `OF_OFFSETS` whose partitions exist."""
    return OF_OFFSETS[type(message)](message, exists)


def _commit(message: m.OffsetCommitRequest | m.TxnOffsetCommitRequest, exists: Exists) -> Part:
    known, errors = _checked(_rows_of(message.offsets), exists)
    answered = replace(message, offsets=known)
    complete = partial(_completed, known=known, errors=errors)
    if known:
        return Part(answered, complete=complete)
    return Part(answered, refused(answered, ErrorCode.NONE), complete)


def _delete(message: m.OffsetDeleteRequest, exists: Exists) -> Part:
    known, errors = _checked(_rows_of(message.partitions), exists)

    def complete(response: Any) -> m.Response:
        if response.error is not ErrorCode.NONE:
            return m.OffsetDeleteResponse(error=response.error)
        return _completed(response, known=known, errors=errors)

    return Part(replace(message, partitions=known), complete=complete)


def _fetch(message: m.OffsetFetchRequest, _: Exists) -> Part:
    if message.partitions is None:
        return Part(message)
    known, unknown = [], []
    for topic, own in _rows_of(message.partitions).by_topic():
        if topic.name is not None:
            known.append((topic, own))
        else:
            unknown.append((topic, [_no_offset(row, ErrorCode.UNKNOWN_TOPIC_ID) for row in own]))
    requested, refusals = Rows.of(known), Rows.of(unknown)

    def complete(response: Any) -> m.Response:
        if response.error is not ErrorCode.NONE:
            return m.OffsetFetchResponse(error=response.error)
        offsets = as_requested(requested, response.offsets)
        found = Rows.of((*offsets.by_topic(), *refusals.by_topic()))
        return m.OffsetFetchResponse(error=response.error, offsets=found)

    return Part(replace(message, partitions=requested), complete=complete)


OF_OFFSETS: Mapping[type, Callable[[Any, Exists], Part]] = {
    m.OffsetCommitRequest: _commit,
    m.TxnOffsetCommitRequest: _commit,
    m.OffsetDeleteRequest: _delete,
    m.OffsetFetchRequest: _fetch,
}
"""Requests for committed offsets, by their messages."""


# --- rows


def _rows_of(rows: Iterable[Any]) -> Rows:
    """Return the rows of a request, each with a topic of its own if it was not read from a frame."""
    if isinstance(rows, Rows):
        return rows
    return Rows.of((Topic(row.topic, None), (row,)) for row in rows)


def _checked(requested: Rows, exists: Exists) -> tuple[Rows, _Listed]:
    """Return the rows whose partitions exist, and the errors of the others."""
    errors: _Listed = {}
    known: list[tuple[Topic, list[Any]]] = []
    for topic, own in requested.by_topic():
        if topic.name is None or not exists(topic.name, 0):
            error = ErrorCode.UNKNOWN_TOPIC_ID if topic.name is None else _UNKNOWN
            _add(errors, topic, [_error(row, error) for row in own])
            continue
        present = [row for row in own if exists(row.topic, row.partition)]
        absent = [_error(row, _UNKNOWN) for row in own if not exists(row.topic, row.partition)]
        if absent:
            _add(errors, topic, absent)
        if present:
            known.append((topic, present))
    return Rows.of(known), errors


def _completed(response: Any, *, known: Rows, errors: _Listed) -> m.Response:
    """Return a response with the rows of the coordinator's response behind those of the errors."""
    rows = as_requested(known, response.partitions)
    if errors:
        listed = {key: (topic, list(own)) for key, (topic, own) in errors.items()}
        for topic, own in rows.by_topic():
            _add(listed, topic, own)
        rows = Rows.of(listed.values())
    completed: m.Response = replace(response, partitions=rows)
    return completed


def _add(listed: _Listed, topic: Topic, rows: Iterable[m.PartitionError]) -> None:
    listed.setdefault(topic.topic_id or topic.name, (topic, []))[1].extend(rows)


def _error(row: Any, error: ErrorCode) -> m.PartitionError:
    return m.PartitionError(row.topic, row.partition, error)


def _no_offset(row: Any, error: ErrorCode) -> m.FetchedOffset:
    return m.FetchedOffset(row.topic, row.partition, m.NO_OFFSET, error=error)
