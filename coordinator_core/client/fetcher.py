"""Fetching records: one request a node, fetch sessions, a buffer for the polls (PROTOCOL 9.12; KIP-227)."""

from collections import deque
from dataclasses import dataclass, field

from coordinator_core.client.core import Core
from coordinator_core.client.outcome import ConsumedRecord
from coordinator_core.client.positions import Positions
from coordinator_core.client.requests import Answer, Failure
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

_TROUBLES = {
    ErrorCode.CORRUPT_MESSAGE: "records that cannot be read",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this client may not read the topic",
}
"""What the application has to hear."""

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
    """What a broker remembers of our last request to it."""

    session_id: int = 0
    epoch: int = 0
    known: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    in_flight: bool = False


@dataclass(slots=True)
class _Fetched:
    """Records of one partition that a poll has not handed out yet, for a position of ``offset``."""

    partition: TopicPartition
    offset: int
    records: deque[FetchedRecord]
    next_offset: int


class Fetcher:
    """Asks for records in the background of polls and hands out max.poll.records of them a poll."""

    def __init__(self, core: Core, positions: Positions) -> None:
        self._core, self._positions = core, positions
        self._sessions: dict[int, _Session] = {}
        self._buffer: deque[_Fetched] = deque()
        self._later: dict[int | TopicPartition, int] = {}
        """Brokers and partitions that are asked again at a time, not before."""

    @property
    def has_records(self) -> bool:
        """Whether a poll would hand out records."""
        return any(self._is_current(fetched) for fetched in self._buffer)

    def collect(self) -> list[ConsumedRecord]:
        """At most max.poll.records, in order; positions move on as they are handed out."""
        collected: list[ConsumedRecord] = []
        paused: list[_Fetched] = []
        while self._buffer and len(collected) < self._core.config.max_poll_records:
            fetched = self._buffer.popleft()
            state = self._core.subscriptions.partitions.get(fetched.partition)
            if state is not None and state.paused and state.position == fetched.offset:
                paused.append(fetched)
                continue
            if not self._is_current(fetched) or state is None:
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
        """Ask every leader without a request under way for the partitions that have nothing buffered."""
        buffered = {fetched.partition for fetched in self._buffer}
        self._later = {what: due_ms for what, due_ms in self._later.items() if due_ms > now_ms}
        wanted: dict[int, dict[TopicPartition, FetchPartition]] = {}
        for tp, state in self._core.subscriptions.partitions.items():
            if not state.is_fetchable or tp in buffered or tp in self._later:
                continue
            node = self._core.metadata.leader(tp)
            if node is None or node in self._later:
                continue  # a leader that is missing is asked for in any case
            epoch = self._core.metadata.leader_epoch(tp)
            asked = FetchPartition(tp.topic, tp.partition, state.position, epoch)
            wanted.setdefault(node, {})[tp] = asked
        for node, partitions in wanted.items():
            session = self._sessions.setdefault(node, _Session())
            if not session.in_flight:
                self._ask(node, session, partitions, now_ms=now_ms)

    def _ask(
        self, node: int, session: _Session, wanted: dict[TopicPartition, FetchPartition], *, now_ms: int
    ) -> None:
        """An incremental request says only what changed since the last."""
        changed = tuple(p for tp, p in wanted.items() if session.known.get(tp) != p)
        forgotten = tuple(tp for tp in session.known if tp not in wanted)
        session.known, session.in_flight = wanted, True
        request = FetchRequest(
            session_id=session.session_id,
            session_epoch=session.epoch,
            partitions=changed,
            forgotten=forgotten,
            max_wait_ms=self._core.config.fetch_max_wait_ms,
        )
        self._core.send(
            node,
            request,
            lambda answer, at_ms: self._answered(node, wanted, answer, now_ms=at_ms),
            now_ms=now_ms,
        )

    def is_due(self, *, now_ms: int) -> bool:
        """Whether what failed may be asked for again."""
        return any(due_ms <= now_ms for due_ms in self._later.values())

    def next_deadline_ms(self) -> int | None:
        """When that will be."""
        return min(self._later.values()) if self._later else None

    def _answered(
        self, node: int, asked: dict[TopicPartition, FetchPartition], answer: Answer, *, now_ms: int
    ) -> None:
        session = self._sessions[node]
        if isinstance(answer, Failure) or not isinstance(answer, FetchResponse):
            self._sessions[node] = _Session()
            self._back_off(node, now_ms=now_ms)
            self._core.metadata.request_update()
            return
        session.in_flight = False
        if answer.error is not ErrorCode.NONE:
            self._sessions[node] = _Session()
            if answer.error not in _NEW_SESSION:
                self._back_off(node, now_ms=now_ms)
                self._core.metadata.request_update()
            return
        if answer.session_id:
            session.session_id = answer.session_id
            session.epoch += 1
        else:
            self._sessions[node] = _Session()
        for part in answer.partitions:
            self._take(part, asked, now_ms=now_ms)

    def _back_off(self, what: int | TopicPartition, *, now_ms: int) -> None:
        self._later[what] = now_ms + self._core.config.retry_backoff_ms

    def _take(
        self, part: FetchedPartition, asked: dict[TopicPartition, FetchPartition], *, now_ms: int
    ) -> None:
        tp = TopicPartition(part.topic, part.partition)
        state = self._core.subscriptions.partitions.get(tp)
        if state is None or tp not in asked or state.fetch_state is not FetchState.FETCHING:
            return
        if state.position != asked[tp].offset or not state.is_fetchable:
            return  # it was moved, paused or is going away since (PROTOCOL 9.2)
        if part.error is not ErrorCode.NONE:
            self._core.subscriptions.move_to_end(tp)
            if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._positions.reset_by_policy(tp, f"offset {state.position} is out of range")
                return
            self._back_off(tp, now_ms=now_ms)
            if part.error in _STALE_METADATA:
                self._core.metadata.request_update()
            elif part.error in _TROUBLES:
                said = f"{_TROUBLES[part.error]} ({part.error.name}), at offset {state.position}"
                self._core.effects.fail(ProtocolError(f"{tp.topic}-{tp.partition}", said))
            return
        state.high_watermark = part.high_watermark
        state.last_stable = part.last_stable_offset
        state.log_start = part.log_start_offset
        records = deque(record for record in part.records if record.offset >= state.position)
        if records or part.next_offset > state.position:
            self._buffer.append(_Fetched(tp, state.position, records, part.next_offset))
            self._core.subscriptions.move_to_end(tp)

    def _is_current(self, fetched: _Fetched) -> bool:
        state = self._core.subscriptions.partitions.get(fetched.partition)
        return state is not None and state.is_fetchable and state.position == fetched.offset


def _consumed(partition: TopicPartition, record: FetchedRecord) -> ConsumedRecord:
    return ConsumedRecord(
        *partition, record.offset, record.value, record.key, record.timestamp_ms, record.headers
    )
