"""Where to start in a partition: committed offset, reset, or a seek that is checked (PROTOCOL 9.2, 9.11)."""

from collections.abc import Iterable, Mapping

from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.requests import Answer, Failure
from coordinator_core.client.states import FetchState
from coordinator_core.client.subscription import PartitionState
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
)

TIMESTAMPS = {"latest": -1, "earliest": -2}


class Positions:
    """Gives every assigned partition a position; works in poll, a request a node at a time."""

    def __init__(self, core: Core, coordinator: CoordinatorFinder) -> None:
        self._core, self._coordinator = core, coordinator
        self._retry_ms = 0
        self._settled: object = None
        """The partitions when last all of them had positions; a new assignment is another mapping."""

    def _all_have_positions(self) -> bool:
        partitions = self._core.subscriptions.partitions
        if self._settled is partitions:
            return True
        if all(state.fetch_state is FetchState.FETCHING for state in partitions.values()):
            self._settled = partitions
            return True
        return False

    def wants_poll(self, *, now_ms: int) -> bool:
        """Whether `update` would ask for something."""
        if self._all_have_positions() or now_ms < self._retry_ms or self._core.failure is not None:
            return False
        for tp, state in self._core.subscriptions.partitions.items():
            if state.busy or state.pending_revocation or state.fetch_state is FetchState.FETCHING:
                continue
            if state.fetch_state is FetchState.INITIALIZING:
                if self._coordinator.node is not None:
                    return True
            elif self._core.metadata.leader(tp) is not None:
                return True
        return False

    def next_deadline_ms(self) -> int | None:
        """When to try again what failed."""
        return None if self._all_have_positions() else self._retry_ms

    def update(self, *, now_ms: int) -> None:
        """Ask for whatever position is missing."""
        if self._all_have_positions() or now_ms < self._retry_ms or self._core.failure is not None:
            return
        subscriptions = self._core.subscriptions
        fresh = subscriptions.in_state(FetchState.INITIALIZING)
        if fresh:
            self._fetch_committed(fresh, now_ms=now_ms)
        for strategy in TIMESTAMPS:
            awaiting = [
                tp
                for tp in subscriptions.in_state(FetchState.AWAIT_RESET)
                if subscriptions.partitions[tp].reset_strategy == strategy
            ]
            self._list_offsets(awaiting, strategy, now_ms=now_ms)
        self._check_epochs(subscriptions.in_state(FetchState.AWAIT_VALIDATION), now_ms=now_ms)

    def resume(self, positions: Mapping[TopicPartition, int], *, now_ms: int) -> None:
        """Go on in assigned partitions where somebody else had come to."""
        for partition, offset in positions.items():
            self.seek(partition, offset, -1)
        self._tell_started(dict(positions), now_ms=now_ms)

    # --- what the application asks for

    def seek(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        """Go on from an offset; one with an epoch is checked first where the leader has a newer one."""
        state = self._core.subscriptions.partitions[partition]
        self._settled = None
        state.position, state.epoch, state.reset_strategy = offset, epoch, None
        leader_epoch = self._core.metadata.leader_epoch(partition)
        must_check = 0 <= epoch < leader_epoch
        state.move_to(FetchState.AWAIT_VALIDATION if must_check else FetchState.FETCHING)
        state.busy = False

    def reset(self, partition: TopicPartition, strategy: str) -> None:
        """Go on from the beginning or the end, as found out at the next poll."""
        state = self._core.subscriptions.partitions[partition]
        self._settled = None
        state.move_to(FetchState.AWAIT_RESET)
        state.reset_strategy, state.busy = strategy, False

    def reset_by_policy(self, partition: TopicPartition, why: str) -> None:
        """auto.offset.reset; with "none" the application hears of it."""
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
        asked = self._mark_busy(partitions)
        self._core.send(
            node,
            OffsetFetchRequest(group_id=self._core.config.group_id, partitions=tuple(partitions)),
            lambda answer, at_ms: self._committed(answer, asked, at_ms),
            now_ms=now_ms,
        )

    def _committed(self, answer: Answer, asked: "_Asked", now_ms: int) -> None:
        asked.release()
        if isinstance(answer, Failure) or not isinstance(answer, OffsetFetchResponse):
            self._back_off(now_ms=now_ms)
            return
        if answer.error is not ErrorCode.NONE:
            if answer.error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._coordinator.lose(now_ms=now_ms)
            elif answer.error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                self._core.fail(ProtocolError("OffsetFetch", answer.error.name))
            self._back_off(now_ms=now_ms)
            return
        started: dict[TopicPartition, int] = {}
        for offset in answer.offsets:
            tp = TopicPartition(offset.topic, offset.partition)
            state = asked.current(tp, self._core.subscriptions.partitions)
            if state is None or state.fetch_state is not FetchState.INITIALIZING:
                continue
            if offset.error is not ErrorCode.NONE:
                self._back_off(now_ms=now_ms)
            elif offset.offset == NO_OFFSET:
                self.reset_by_policy(tp, "no offset is committed")
                if state.fetch_state is FetchState.INITIALIZING:
                    self._back_off(now_ms=now_ms)
            else:
                self.seek(tp, offset.offset, offset.leader_epoch)
                if state.is_fetchable:
                    started[tp] = offset.offset
        self._tell_started(started, now_ms=now_ms)
        self.update(now_ms=now_ms)

    # --- beginning and end

    def _list_offsets(self, partitions: list[TopicPartition], strategy: str, *, now_ms: int) -> None:
        for node, led in self._by_leader(partitions, now_ms=now_ms).items():
            asked = self._mark_busy(led)
            self._core.send(
                node,
                ListOffsetsRequest(partitions=tuple(led), timestamp=TIMESTAMPS[strategy]),
                lambda answer, at_ms, a=asked, s=strategy: self._listed(answer, a, s, at_ms),  # type: ignore[misc]
                now_ms=now_ms,
            )

    def _listed(self, answer: Answer, asked: "_Asked", strategy: str, now_ms: int) -> None:
        asked.release()
        if isinstance(answer, Failure):
            self._back_off(now_ms=now_ms)
            self._core.metadata.request_update()
            return
        assert isinstance(answer, ListOffsetsResponse)
        started: dict[TopicPartition, int] = {}
        for offset in answer.offsets:
            tp = TopicPartition(offset.topic, offset.partition)
            state = asked.current(tp, self._core.subscriptions.partitions)
            if state is None or state.fetch_state is not FetchState.AWAIT_RESET:
                continue
            if state.reset_strategy != strategy:
                continue
            if self._usable(offset, now_ms=now_ms):
                state.position, state.epoch, state.reset_strategy = offset.offset, offset.leader_epoch, None
                state.move_to(FetchState.FETCHING)
                started[tp] = offset.offset
        self._tell_started(started, now_ms=now_ms)

    # --- leader epochs

    def _check_epochs(self, partitions: list[TopicPartition], *, now_ms: int) -> None:
        states = self._core.subscriptions.partitions
        for node, led in self._by_leader(partitions, now_ms=now_ms).items():
            asked = self._mark_busy(led)
            checks = tuple(EpochToCheck(tp.topic, tp.partition, states[tp].epoch) for tp in led)
            self._core.send(
                node,
                OffsetForLeaderEpochRequest(partitions=checks),
                lambda answer, at_ms, a=asked: self._checked(answer, a, at_ms),  # type: ignore[misc]
                now_ms=now_ms,
            )

    def _checked(self, answer: Answer, asked: "_Asked", now_ms: int) -> None:
        asked.release()
        if isinstance(answer, Failure):
            self._back_off(now_ms=now_ms)
            self._core.metadata.request_update()
            return
        assert isinstance(answer, OffsetForLeaderEpochResponse)
        started: dict[TopicPartition, int] = {}
        for end in answer.ends:
            tp = TopicPartition(end.topic, end.partition)
            state = asked.current(tp, self._core.subscriptions.partitions)
            if state is None or state.fetch_state is not FetchState.AWAIT_VALIDATION:
                continue
            if not self._usable(end, now_ms=now_ms):
                continue
            if 0 <= end.end_offset < state.position:  # the log was cut below: go on where it ends
                state.position = end.end_offset
            state.epoch = max(state.epoch, end.leader_epoch)
            state.move_to(FetchState.FETCHING)
            started[tp] = state.position
        self._tell_started(started, now_ms=now_ms)

    # --- what they share

    def _usable(self, listed: ListedOffset | EpochEnd, *, now_ms: int) -> bool:
        if listed.error is ErrorCode.NONE:
            return True
        self._back_off(now_ms=now_ms)
        self._core.metadata.request_update()
        return False

    def _by_leader(self, partitions: list[TopicPartition], *, now_ms: int) -> dict[int, list[TopicPartition]]:
        led: dict[int, list[TopicPartition]] = {}
        for tp in partitions:
            node = self._core.metadata.leader(tp)
            if node is None:
                self._core.metadata.request_update()
                self._back_off(now_ms=now_ms)
            else:
                led.setdefault(node, []).append(tp)
        return led

    def _mark_busy(self, partitions: Iterable[TopicPartition]) -> "_Asked":
        states = self._core.subscriptions.partitions
        return _Asked({tp: states[tp] for tp in partitions})

    def _back_off(self, *, now_ms: int) -> None:
        self._retry_ms = now_ms + self._core.config.retry_backoff_ms

    def _tell_started(self, started: dict[TopicPartition, int], *, now_ms: int) -> None:
        if self._core.source is not None and started:
            self._core.source.started(started, now_ms=now_ms)


class _Asked:
    """The partitions a request is about; an answer about one given up or moved meanwhile is dropped."""

    def __init__(self, states: dict[TopicPartition, PartitionState]) -> None:
        self._states = states
        self._positions = {tp: (state.position, state.epoch) for tp, state in states.items()}
        for state in states.values():
            state.busy = True

    def release(self) -> None:
        """The answer is there, or there will be none."""
        for state in self._states.values():
            state.busy = False

    def current(
        self, partition: TopicPartition, now: dict[TopicPartition, PartitionState]
    ) -> PartitionState | None:
        """The partition's state, if it is still the one that the request was about."""
        state = self._states.get(partition)
        if state is None or now.get(partition) is not state or state.pending_revocation:
            return None
        return state if (state.position, state.epoch) == self._positions[partition] else None
