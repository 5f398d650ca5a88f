"""Fetches of records: one request to each node, fetch sessions, a buffer (PROTOCOL 9.12, KIP-227)."""

from collections import deque
from dataclasses import dataclass, field

from coordinator_core.client.core import Core
from coordinator_core.client.outcome import ConsumedRecord
from coordinator_core.client.positions import Positions
from coordinator_core.client.requests import NEVER, Failure, Reply
from coordinator_core.client.states import FetchState
from coordinator_core.errors import ProtocolError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    FetchedPartition,
    FetchedRecord,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)

_ERRORS_TO_RAISE = {
    ErrorCode.CORRUPT_MESSAGE: "records that cannot be read",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this client may not read the topic",
}
"""The errors of a partition that the application gets, with their descriptions."""

_NEW_SESSION = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
_STALE_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


@dataclass(slots=True)
class _Session:
    """The state of a fetch session, which the broker keeps as well."""

    session_id: int = 0
    epoch: int = 0
    known: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    in_flight: bool = False


@dataclass(slots=True)
class _Fetched:
    """Buffered records of a partition. They are valid while its position is ``offset``."""

    partition: TopicPartition
    offset: int
    records: deque[FetchedRecord]
    next_offset: int


class Fetcher:
    """Fetches records between polls. A poll returns max.poll.records of them at most."""

    def __init__(self, core: Core, positions: Positions) -> None:
        self._core, self._positions = core, positions
        self._sessions: dict[int, _Session] = {}
        self._buffer: deque[_Fetched] = deque()
        self._retry_ms: dict[int | TopicPartition, int] = {}
        """The time of the next request to a broker, or for a partition, after an error."""

    @property
    def has_records(self) -> bool:
        """Whether `collect` would return records."""
        return any(self._is_current(fetched) for fetched in self._buffer)

    def collect(self) -> list[ConsumedRecord]:
        """Return at most max.poll.records, in order, and advance the positions."""
        collected: list[ConsumedRecord] = []
        paused: list[_Fetched] = []
        while self._buffer and len(collected) < self._core.config.max_poll_records:
            fetched = self._buffer.popleft()
            state = self._core.subscriptions.partitions.get(fetched.partition)
            if state is None:
                continue
            if state.paused and state.position == fetched.offset:
                paused.append(fetched)
                continue
            if not self._is_current(fetched):
                continue
            while fetched.records and len(collected) < self._core.config.max_poll_records:
                record = fetched.records.popleft()
                collected.append(_consumed(fetched.partition, record))
                fetched.offset = record.offset + 1
            if not fetched.records:
                fetched.offset = max(fetched.offset, fetched.next_offset)
            state.position = fetched.offset
            if fetched.records:
                self._buffer.appendleft(fetched)
        self._buffer.extend(paused)
        return collected

    def send(self, *, now_ms: int) -> None:
        """Request the partitions without buffered records, from leaders without a fetch in flight."""
        buffered = {fetched.partition for fetched in self._buffer}
        self._retry_ms = {key: due_ms for key, due_ms in self._retry_ms.items() if due_ms > now_ms}
        wanted: dict[int, dict[TopicPartition, FetchPartition]] = {}
        for tp, state in self._core.subscriptions.partitions.items():
            if not state.is_fetchable or tp in buffered or tp in self._retry_ms:
                continue
            node = self._core.metadata.leader(tp)
            if node is None or node in self._retry_ms:
                continue  # metadata without a leader are requested again anyway
            epoch = self._core.metadata.leader_epoch(tp)
            most_bytes = self._core.config.max_partition_fetch_bytes
            wanted.setdefault(node, {})[tp] = FetchPartition(*tp, state.position, epoch, most_bytes)
        for node, partitions in wanted.items():
            session = self._sessions.setdefault(node, _Session())
            if not session.in_flight:
                self._send_to(node, session, partitions, now_ms=now_ms)

    def _send_to(
        self, node: int, session: _Session, wanted: dict[TopicPartition, FetchPartition], *, now_ms: int
    ) -> None:
        """Send an incremental request, which contains only the changes since the last one."""
        changed = tuple(p for tp, p in wanted.items() if session.known.get(tp) != p)
        forgotten = tuple(tp for tp in session.known if tp not in wanted)
        session.known, session.in_flight = wanted, True
        request = FetchRequest(
            session_id=session.session_id,
            session_epoch=session.epoch,
            partitions=changed,
            forgotten=forgotten,
            max_wait_ms=self._core.config.fetch_max_wait_ms,
            isolation_level=self._core.config.isolation_level,
        )
        self._core.requests.send(
            node,
            request,
            lambda reply, at_ms: self._on_reply(node, wanted, reply, now_ms=at_ms),
            now_ms=now_ms,
        )

    def is_due(self, *, now_ms: int) -> bool:
        """Return whether the backoff of a broker or partition is over."""
        return any(due_ms <= now_ms for due_ms in self._retry_ms.values())

    def retry_ms(self) -> int:
        """Return the time at which the next backoff is over, or `NEVER`."""
        return min(self._retry_ms.values(), default=NEVER)

    def _on_reply(
        self, node: int, requested: dict[TopicPartition, FetchPartition], reply: Reply, *, now_ms: int
    ) -> None:
        session = self._sessions[node]
        if isinstance(reply, Failure) or not isinstance(reply, FetchResponse):
            self._sessions[node] = _Session()
            self._back_off(node, now_ms=now_ms)
            self._core.metadata.request_update()
            return
        session.in_flight = False
        if reply.error:
            self._sessions[node] = _Session()
            if reply.error not in _NEW_SESSION:
                self._back_off(node, now_ms=now_ms)
                self._core.metadata.request_update()
            return
        if reply.session_id:
            session.session_id = reply.session_id
            session.epoch += 1
        else:
            self._sessions[node] = _Session()
        for part in reply.partitions:
            self._take(part, requested, now_ms=now_ms)

    def _back_off(self, key: int | TopicPartition, *, now_ms: int) -> None:
        self._retry_ms[key] = now_ms + self._core.config.retry_backoff_ms

    def _take(
        self, part: FetchedPartition, requested: dict[TopicPartition, FetchPartition], *, now_ms: int
    ) -> None:
        tp = TopicPartition(part.topic, part.partition)
        state = self._core.subscriptions.partitions.get(tp)
        if state is None or tp not in requested or state.fetch_state is not FetchState.FETCHING:
            return
        if state.position != requested[tp].offset or not state.is_fetchable:
            return  # moved, paused or being revoked since the request (PROTOCOL 9.2)
        if part.error:
            self._on_error(tp, part.error, state.position, now_ms=now_ms)
            return
        state.high_watermark = part.high_watermark
        state.last_stable = part.last_stable_offset
        state.log_start = part.log_start_offset
        records = deque(record for record in part.records if record.offset >= state.position)
        if records or part.next_offset > state.position:
            self._buffer.append(_Fetched(tp, state.position, records, part.next_offset))
            self._core.subscriptions.move_to_end(tp)

    def _on_error(self, tp: TopicPartition, error: ErrorCode, offset: int, *, now_ms: int) -> None:
        self._core.subscriptions.move_to_end(tp)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions.reset_by_policy(tp, f"offset {offset} is out of range")
            return
        self._back_off(tp, now_ms=now_ms)
        if error in _STALE_METADATA:
            self._core.metadata.request_update()
        elif error in _ERRORS_TO_RAISE:
            found = f"{_ERRORS_TO_RAISE[error]} ({error.name}), at offset {offset}"
            self._core.effects.fail(ProtocolError(f"{tp.topic}-{tp.partition}", found))

    def _is_current(self, fetched: _Fetched) -> bool:
        state = self._core.subscriptions.partitions.get(fetched.partition)
        return state is not None and state.is_fetchable and state.position == fetched.offset


def _consumed(partition: TopicPartition, record: FetchedRecord) -> ConsumedRecord:
    return ConsumedRecord(
        *partition, record.offset, record.value, record.key, record.timestamp_ms, record.headers
    )
