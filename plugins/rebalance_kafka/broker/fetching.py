"""Fetch: records from an offset on. There are no sessions (KIP-227): every request lists its partitions."""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.protocol.messages import READ_COMMITTED
from rebalance_kafka.broker.data import LEADER_EPOCH, NO_EPOCH, Data
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.messages import Values

MOST_FETCHED_BYTES = 55 * 1024 * 1024
"""Bytes of one response, whatever a client allows: Kafka's fetch.max.bytes."""

NEW_SESSION, NO_SESSION = 0, 0
"""The epoch of a request that begins a session, and the session id of a response that has none."""


class Key(NamedTuple):
    """A partition. Its topic has a name or, from version 13 of Fetch on, an id."""

    topic: str | None
    topic_id: UUID | None
    partition: int


class Wanted(NamedTuple):
    """What a client wants of a partition, and the leader epochs that it knows, -1 for none (KIP-320).

    ``fetched_epoch``: that of the record before the offset.
    """

    offset: int
    most_bytes: int
    leader_epoch: int = -1
    fetched_epoch: int = -1


class Fetch:
    """One request, from its receipt to its response."""

    def __init__(self, data: Data, request: Request) -> None:
        self._data, self._request = data, request
        is_in_session = getattr(request.body, "session_epoch", NEW_SESSION) > NEW_SESSION
        self._error = Wire.fetch_session_id_not_found if is_in_session else Wire.none
        self._wanted = {} if is_in_session else _wanted(request.body.topics)

    @property
    def wait_ms(self) -> int:
        """How long the request waits for records."""
        return max(0, int(self._request.body.max_wait))

    @property
    def places(self) -> list[tuple[str, int]]:
        """The partitions to watch, without those of unknown topics."""
        named = ((self._name(key), key.partition) for key in self._wanted)
        return [(name, partition) for name, partition in named if name is not None]

    def read(self) -> tuple[dict[Key, dict[str, Any]], bool]:
        """Return a row for each partition, and whether they hold enough to be sent at once."""
        body = self._request.body
        left, found, errors = min(body.max_bytes, MOST_FETCHED_BYTES), 0, False
        rows: dict[Key, dict[str, Any]] = {}
        for key, wanted in self._wanted.items():
            row = rows[key] = self._row(key, wanted, left, first=not found)
            left -= len(row["records"])
            found += len(row["records"])
            errors = errors or row["error_code"] is not Wire.none or "diverging_epoch" in row
        return rows, errors or found >= min(body.min_bytes, left + found) or not rows

    def response(self, rows: dict[Key, dict[str, Any]]) -> Values:
        """Return the body of the response."""
        topics: dict[tuple[str | None, UUID | None], list[Values]] = {}
        for key, row in rows.items():
            topics.setdefault((key.topic, key.topic_id), []).append(row)
        responses = tuple(
            {"topic": topic, "topic_id": topic_id, "partitions": tuple(partitions)}
            for (topic, topic_id), partitions in topics.items()
        )
        return {"error_code": self._error, "session_id": NO_SESSION, "responses": responses}

    @property
    def _is_committed(self) -> bool:
        """Whether only records of ended transactions are to be read (KIP-98)."""
        return bool(self._request.body.isolation_level == READ_COMMITTED)

    def _name(self, key: Key) -> str | None:
        return key.topic if key.topic_id is None else self._data.topics.named(key.topic_id)

    def _row(self, key: Key, wanted: Wanted, left: int, *, first: bool) -> dict[str, Any]:
        topics, topic, number = self._data.topics, self._name(key), key.partition
        row: dict[str, Any] = {
            "partition_index": number,
            "error_code": Wire.none,
            "high_watermark": -1,
            "aborted_transactions": None,
            "records": b"",
        }
        if topic is None:
            return {**row, "error_code": Wire.unknown_topic_id, "aborted_transactions": ()}
        error = self._data.refusal(topic, number, wanted.leader_epoch)
        if error is Wire.unknown_topic_or_partition:
            return {**row, "error_code": error, "aborted_transactions": ()}
        if error is not None:
            return {**row, "error_code": error}
        start, end = topics.start(topic, number), topics.end(topic, number)
        is_ahead = wanted.fetched_epoch == LEADER_EPOCH and wanted.offset > end
        if wanted.fetched_epoch > LEADER_EPOCH or not (start <= wanted.offset <= end or is_ahead):
            return {**row, "error_code": Wire.offset_out_of_range}
        row |= {"high_watermark": end, "log_start_offset": start}
        row["last_stable_offset"] = topics.last_stable(topic, number)
        if is_ahead:  # the client has records that the log has lost
            return {**row, "diverging_epoch": {"epoch": LEADER_EPOCH, "end_offset": end}}
        most = min(left, wanted.most_bytes)
        try:
            if most > 0 or first:
                row |= self._records(topic, number, wanted.offset, most, at_least_one=first)
        except sqlite3.Error as failure:
            self._data.store.failed(failure)
            row["error_code"] = Wire.kafka_storage_error
        return row

    def _records(
        self, topic: str, number: int, offset: int, most: int, *, at_least_one: bool
    ) -> dict[str, Any]:
        """Return the values of a row that has records.

        Raises:
            sqlite3.Error: if they cannot be read.
        """
        topics = self._data.topics
        if not self._is_committed:
            return {"records": topics.read(topic, number, offset, most, at_least_one=at_least_one)}
        data, aborted = topics.read_committed(topic, number, offset, most, at_least_one=at_least_one)
        return {"records": data, "aborted_transactions": tuple(each._asdict() for each in aborted)}


def _wanted(topics: Sequence[Any]) -> dict[Key, Wanted]:
    return {
        _key(topic, row.partition): Wanted(
            row.fetch_offset,
            row.partition_max_bytes,
            getattr(row, "current_leader_epoch", NO_EPOCH),
            getattr(row, "last_fetched_epoch", NO_EPOCH),
        )
        for topic in topics
        for row in topic.partitions
    }


def _key(topic: Any, partition: int) -> Key:
    if hasattr(topic, "topic"):
        return Key(topic.topic, None, partition)
    return Key(None, topic.topic_id, partition)
