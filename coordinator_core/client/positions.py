"""The start position of a partition: committed offset, reset, or validated seek (PROTOCOL 9.2, 9.11)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.requests import NEVER, Failure, Reply
from coordinator_core.client.states import FetchState
from coordinator_core.client.subscription import PartitionState, Subscriptions
from coordinator_core.errors import ProtocolError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    NO_OFFSET,
    EpochEnd,
    EpochToCheck,
    ListedOffset,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Request,
)

TIMESTAMPS = {"latest": -1, "earliest": -2}

_FETCHING, _INITIALIZING = FetchState.FETCHING, FetchState.INITIALIZING


class Positions:
    """Gives every assigned partition a position. Requests are sent in polls, one to each node."""

    def __init__(self, core: Core, coordinator: CoordinatorFinder) -> None:
        self._core, self._coordinator = core, coordinator
        self._retry_ms = 0
        self.settled: object = None
        """The last mapping of partitions that all had positions. Each assignment makes a new mapping."""

    def all_known(self) -> bool:
        """Return whether all assigned partitions have positions."""
        partitions = self._core.subscriptions.partitions
        if self.settled is partitions:
            return True
        for state in partitions.values():
            if state.fetch_state is not _FETCHING:
                return False
        self.settled = partitions
        return True

    def wants_poll(self, *, now_ms: int) -> bool:
        """Return whether `update` would send a request."""
        if self.all_known() or now_ms < self._retry_ms or self._core.failure is not None:
            return False
        for tp, state in self._core.subscriptions.partitions.items():
            if state.busy or state.pending_revocation or state.fetch_state is _FETCHING:
                continue
            if state.fetch_state is FetchState.INITIALIZING:
                if self._coordinator.node is not None:
                    return True
            elif self._core.metadata.leader(tp) is not None:
                return True
        return False

    def retry_ms(self) -> int:
        """Return the time at which `update` can retry, or `NEVER` if all partitions have positions."""
        return NEVER if self.all_known() else self._retry_ms

    def update(self, *, now_ms: int) -> None:
        """Request the positions that are missing."""
        if self.all_known() or now_ms < self._retry_ms or self._core.failure is not None:
            return
        partitions, waiting = self._core.subscriptions.partitions, self._core.subscriptions.waiting()
        if _INITIALIZING in waiting:
            self._fetch_committed(waiting[_INITIALIZING], now_ms=now_ms)
        if FetchState.AWAIT_RESET in waiting:
            for strategy in TIMESTAMPS:
                resets = [
                    tp for tp in waiting[FetchState.AWAIT_RESET] if partitions[tp].reset_strategy == strategy
                ]
                self._list_offsets(resets, strategy, now_ms=now_ms)
        if FetchState.AWAIT_VALIDATION in waiting:
            self._check_epochs(waiting[FetchState.AWAIT_VALIDATION], now_ms=now_ms)

    def resume(self, positions: Mapping[TopicPartition, int], *, now_ms: int) -> None:
        """Continue assigned partitions at positions that another consumer had reached."""
        for partition, offset in positions.items():
            self.seek(partition, offset, -1)
        self._start(dict(positions), now_ms=now_ms)

    # --- calls of the application

    def seek(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        """Continue at an offset. An offset of an older leader epoch is validated first."""
        state = self._core.subscriptions.partitions[partition]
        self.settled = None
        state.position, state.epoch, state.reset_strategy = offset, epoch, None
        must_check = epoch >= 0 and epoch < self._core.metadata.leader_epoch(partition)
        state.move_to(FetchState.AWAIT_VALIDATION if must_check else _FETCHING)
        state.busy = False

    def reset(self, partition: TopicPartition, strategy: str) -> None:
        """Continue at the beginning or the end, whose offset is requested in the next poll."""
        state = self._core.subscriptions.partitions[partition]
        self.settled = None
        state.move_to(FetchState.AWAIT_RESET)
        state.reset_strategy, state.busy = strategy, False

    def reset_by_policy(self, partition: TopicPartition, why: str) -> None:
        """Apply auto.offset.reset; with "none" the application gets an error."""
        strategy = self._core.config.auto_offset_reset
        if strategy == "none":
            named = f"{partition.topic}-{partition.partition}"
            self._core.effects.fail(ProtocolError(named, f"{why}, and auto.offset.reset is none"))
        else:
            self.reset(partition, strategy)

    # --- committed offsets

    def _fetch_committed(self, partitions: list[TopicPartition], *, now_ms: int) -> None:
        node = self._coordinator.node
        if node is None:
            return
        self._core.requests.send(
            node,
            OffsetFetchRequest(
                group_id=self._core.config.group_id, partitions=tuple(partitions), require_stable=True
            ),
            partial(self._on_committed, _Requested(self._core.subscriptions, partitions)),
            now_ms=now_ms,
        )

    def _on_committed(self, requested: "_Requested", reply: Reply, now_ms: int) -> None:
        requested.release()
        if isinstance(reply, Failure) or not isinstance(reply, OffsetFetchResponse):
            self._back_off(now_ms=now_ms)
            return
        if reply.error:
            if reply.error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._coordinator.lose(now_ms=now_ms)
            elif reply.error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                self._core.fail(ProtocolError("OffsetFetch", reply.error.name))
            self._back_off(now_ms=now_ms)
            return
        started: dict[TopicPartition, int] = {}
        for offset in reply.offsets:
            tp = TopicPartition(offset.topic, offset.partition)
            state = requested.current(tp, _INITIALIZING)
            if state is None:
                continue
            if offset.error:
                self._back_off(now_ms=now_ms)
            elif offset.offset == NO_OFFSET:
                self.reset_by_policy(tp, "no offset is committed")
                if state.fetch_state is FetchState.INITIALIZING:
                    self._back_off(now_ms=now_ms)
            else:
                self.seek(tp, offset.offset, offset.leader_epoch)
                if state.is_fetchable:
                    started[tp] = offset.offset
        self._start(started, now_ms=now_ms)
        self.update(now_ms=now_ms)

    # --- offsets that leaders know

    def _list_offsets(self, partitions: list[TopicPartition], strategy: str, *, now_ms: int) -> None:
        """Request the beginnings or the ends."""

        def request(led: list[TopicPartition]) -> ListOffsetsRequest:
            return ListOffsetsRequest(
                partitions=tuple(led),
                timestamp=TIMESTAMPS[strategy],
                isolation_level=self._core.config.isolation_level,
            )

        def take(state: PartitionState, listed: ListedOffset) -> None:
            state.position, state.epoch, state.reset_strategy = listed.offset, listed.leader_epoch, None

        self._ask_leaders(partitions, FetchState.AWAIT_RESET, request, take, now_ms)

    def _check_epochs(self, partitions: list[TopicPartition], *, now_ms: int) -> None:
        """Request the ends of the epochs in which the positions were read."""
        states = self._core.subscriptions.partitions

        def request(led: list[TopicPartition]) -> OffsetForLeaderEpochRequest:
            checks = tuple(EpochToCheck(tp.topic, tp.partition, states[tp].epoch) for tp in led)
            return OffsetForLeaderEpochRequest(partitions=checks)

        def take(state: PartitionState, end: EpochEnd) -> None:
            if 0 <= end.end_offset < state.position:  # the log was truncated
                state.position = end.end_offset
            state.epoch = max(state.epoch, end.leader_epoch)

        self._ask_leaders(partitions, FetchState.AWAIT_VALIDATION, request, take, now_ms)

    def _ask_leaders(
        self,
        partitions: list[TopicPartition],
        waiting: FetchState,
        request: Callable[[list[TopicPartition]], Request],
        take: Callable[[PartitionState, Any], None],
        now_ms: int,
    ) -> None:
        """Send a request to each leader. ``take`` is called for each partition that still waits for it."""
        for node, led in self._by_leader(partitions, now_ms=now_ms).items():
            requested = _Requested(self._core.subscriptions, led)
            answered = partial(self._on_leader, requested, waiting, take)
            self._core.requests.send(node, request(led), answered, now_ms=now_ms)

    def _on_leader(
        self,
        requested: "_Requested",
        waiting: FetchState,
        take: Callable[[PartitionState, Any], None],
        reply: Reply,
        now_ms: int,
    ) -> None:
        requested.release()
        if isinstance(reply, Failure):
            self._retry_with_new_metadata(now_ms=now_ms)
            return
        assert isinstance(reply, ListOffsetsResponse | OffsetForLeaderEpochResponse)
        started: dict[TopicPartition, int] = {}
        entries: Sequence[ListedOffset | EpochEnd]
        entries = reply.offsets if isinstance(reply, ListOffsetsResponse) else reply.ends
        for entry in entries:
            tp = TopicPartition(entry.topic, entry.partition)
            state = requested.current(tp, waiting)
            if state is None:
                continue
            if entry.error:
                self._retry_with_new_metadata(now_ms=now_ms)
                continue
            take(state, entry)
            state.move_to(_FETCHING)
            started[tp] = state.position
        self._start(started, now_ms=now_ms)

    def _by_leader(self, partitions: list[TopicPartition], *, now_ms: int) -> dict[int, list[TopicPartition]]:
        led: dict[int, list[TopicPartition]] = {}
        for tp in partitions:
            node = self._core.metadata.leader(tp)
            if node is None:
                self._retry_with_new_metadata(now_ms=now_ms)
            else:
                led.setdefault(node, []).append(tp)
        return led

    def _retry_with_new_metadata(self, *, now_ms: int) -> None:
        self._back_off(now_ms=now_ms)
        self._core.metadata.request_update()

    def _back_off(self, *, now_ms: int) -> None:
        self._retry_ms = now_ms + self._core.config.retry_backoff_ms

    def _start(self, started: dict[TopicPartition, int], *, now_ms: int) -> None:
        if self._core.source is not None and started:
            self._core.source.started(started, now_ms=now_ms)


class _Requested:
    """The partitions of a request. A partition that is given up or moved meanwhile is no longer current."""

    def __init__(self, subscriptions: Subscriptions, partitions: Iterable[TopicPartition]) -> None:
        self._subscriptions = subscriptions
        self._states = {tp: subscriptions.partitions[tp] for tp in partitions}
        self._positions = {tp: _identity(state) for tp, state in self._states.items()}
        for state in self._states.values():
            state.busy = True

    def release(self) -> None:
        """Mark the partitions as no longer busy."""
        for state in self._states.values():
            state.busy = False

    def current(self, tp: TopicPartition, expected: FetchState) -> PartitionState | None:
        """Return the state of a partition, if it is the one of the request and as expected."""
        state = self._states.get(tp)
        if state is None or self._subscriptions.partitions.get(tp) is not state or state.pending_revocation:
            return None
        if state.fetch_state is not expected or _identity(state) != self._positions[tp]:
            return None
        return state


def _identity(state: PartitionState) -> tuple[int, int, str | None]:
    """Return what changes with the position that a partition waits for."""
    return state.position, state.epoch, state.reset_strategy
