"""Committing offsets: on request, in the background, before a rejoin and on close (PROTOCOL 9.11)."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import Generation
from coordinator_core.client.requests import Answer, Failure
from coordinator_core.errors import ProtocolError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import OffsetsCommitted
from coordinator_core.protocol.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit

CommitCallback = Callable[[str], None]
"""Called with "" when the offsets are committed, else with what went wrong."""

MOST_WITHDRAWN = 1_000
"""Commits that nobody waits for and that may still be under way: far more than there are."""


class CommitResult:
    """How a commit went: ``error`` "" for well; ``retriable``: the same commit may be sent again."""

    __slots__ = ("error", "retriable")

    def __init__(self, error: str, retriable: bool) -> None:
        self.error, self.retriable = error, retriable


MemberError: TypeAlias = Callable[[ErrorCode, Generation, int], CommitResult]
"""Called with the error of a commit, the generation it was sent with, and the time."""


class _Waiting(NamedTuple):
    """A commit that is to be sent again at a time."""

    due_ms: int
    callback: CommitCallback | None
    send: Callable[[int], None]


class Offsets:
    """What is committed, when. Positions come from whoever works on the partitions."""

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        member_error: MemberError,
    ) -> None:
        self._core, self._coordinator, self._member_error = core, coordinator, member_error
        self._auto_due_ms: int | None = None
        self._auto_in_flight = False
        self._finished: list[tuple[CommitCallback, str]] = []
        self._again: list[_Waiting] = []
        self._withdrawn: deque[CommitCallback] = deque(maxlen=MOST_WITHDRAWN)
        self._commits = 0
        self._latest: dict[TopicPartition, int] = {}
        """Of each partition, the number of the last commit that had it."""

    def consumed(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> dict[TopicPartition, int]:
        """The offsets that may be committed now; partitions without a position are left out."""
        found: dict[TopicPartition, int] = {}
        for tp in partitions:
            state = self._core.subscriptions.partitions.get(tp)
            if state is None or not state.has_position:
                continue
            if self._core.source is None:
                found[tp] = state.position
                continue
            position = self._core.source.position(tp, now_ms=now_ms)
            if position is not None:
                found[tp] = position
        return found

    def all_consumed(self, *, now_ms: int) -> dict[TopicPartition, int]:
        """The same, over everything that is owned."""
        return self.consumed(self._core.subscriptions.partitions, now_ms=now_ms)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        done: Callable[[CommitResult, int], None],
        *,
        now_ms: int,
        metadata: str = "",
    ) -> None:
        """Send a commit to the coordinator; ``done`` hears how it went, later or at once."""
        node = self._coordinator.node
        self._commits += 1
        self._latest.update(dict.fromkeys(offsets, self._commits))
        if not offsets:
            done(CommitResult("", retriable=False), now_ms)
            return
        if node is None:
            done(CommitResult("the coordinator is unknown", retriable=True), now_ms)
            return
        sent = self._core.generation
        if sent.is_lost and self._core.subscriptions.is_group_managed:
            done(CommitResult("the consumer is no member of its group", retriable=False), now_ms)
            return
        partitions = self._core.subscriptions.partitions
        request = OffsetCommitRequest(
            group_id=self._core.config.group_id,
            generation_id=sent.number,
            member_id=sent.member_id,
            group_instance_id=self._core.config.group_instance_id if sent.member_id else None,
            offsets=tuple(
                OffsetToCommit(
                    tp.topic,
                    tp.partition,
                    offset,
                    partitions[tp].epoch if tp in partitions else -1,
                    metadata,
                )
                for tp, offset in sorted(offsets.items())
            ),
        )
        self._core.send(
            node,
            request,
            lambda answer, at_ms: done(self._result(answer, sent, at_ms), at_ms),
            now_ms=now_ms,
        )

    def commit_for_user(
        self,
        offsets: Mapping[TopicPartition, int],
        callback: CommitCallback | None,
        *,
        now_ms: int,
        metadata: str,
        retry_until_ms: int | None = None,
    ) -> None:
        """A commit the application asked for; its callback runs in a later poll (PROTOCOL 9.3).

        Until ``retry_until_ms`` it is sent again where that may help: in its own generation, and without
        what another commit has had since, so that no offset goes back.
        """
        begun = self._core.generation
        number = self._commits + 1

        def done(result: CommitResult, at_ms: int) -> None:
            due_ms = at_ms + self._core.config.retry_backoff_ms
            withdrawn = any(each is callback for each in self._withdrawn)
            if result.retriable and not withdrawn and retry_until_ms is not None and due_ms < retry_until_ms:
                self._again.append(_Waiting(due_ms, callback, send_again))
                return
            self.say(len(offsets), result)
            if callback is not None and not withdrawn:
                self._finished.append((callback, result.error))

        def send_again(at_ms: int) -> None:
            nonlocal number
            left = {tp: offset for tp, offset in offsets.items() if self._latest.get(tp) == number}
            if begun != self._core.generation:
                done(CommitResult(ErrorCode.REBALANCE_IN_PROGRESS.name, retriable=False), at_ms)
                return
            number = self._commits + 1
            self.commit(left, done, now_ms=at_ms, metadata=metadata)

        self.commit(offsets, done, now_ms=now_ms, metadata=metadata)

    def send_again(self, *, now_ms: int) -> None:
        """Send the commits anew whose time has come."""
        if not self._again:
            return
        waiting, self._again = self._again, []
        for each in waiting:
            if each.due_ms > now_ms:
                self._again.append(each)
            else:
                each.send(now_ms)

    def withdraw(self, callback: CommitCallback) -> None:
        """Do not send a commit again, nor tell of it; one under way goes its way."""
        self._again = [each for each in self._again if each.callback is not callback]
        self._withdrawn.append(callback)

    def next_retry_ms(self) -> int | None:
        """When `send_again` has something to do."""
        return min(each.due_ms for each in self._again) if self._again else None

    def run_callbacks(self) -> None:
        """Tell the application of the commits that are done."""
        finished, self._finished = self._finished, []
        for callback, error in finished:
            self._core.callbacks.call(callback, error)

    def auto_commit(self, *, now_ms: int) -> None:
        """Commit what was consumed, if auto-commit is on and due; called in poll."""
        if not self.auto_commit_is_due(now_ms=now_ms):
            return
        self._auto_due_ms = now_ms + self._core.config.auto_commit_interval_ms
        offsets = self.all_consumed(now_ms=now_ms)
        if not offsets:
            return
        self._auto_in_flight = True

        def done(result: CommitResult, at_ms: int) -> None:
            self._auto_in_flight = False
            if result.error:
                self.say(len(offsets), result)
            if result.retriable:
                self._auto_due_ms = at_ms + self._core.config.retry_backoff_ms

        self.commit(offsets, done, now_ms=now_ms)

    def auto_commit_is_due(self, *, now_ms: int) -> bool:
        """Whether a poll would commit now."""
        if not self._core.config.enable_auto_commit or self._auto_in_flight:
            return False
        if self._auto_due_ms is None:
            self._auto_due_ms = now_ms + self._core.config.auto_commit_interval_ms
        return now_ms >= self._auto_due_ms and self._coordinator.node is not None

    def next_deadline_ms(self) -> int | None:
        """When the next auto-commit is due."""
        idle = (
            self._auto_in_flight or self._coordinator.node is None or not self._core.subscriptions.partitions
        )
        return None if idle else self._auto_due_ms

    @property
    def has_callbacks(self) -> bool:
        """Whether a poll would tell the application something."""
        return bool(self._finished)

    def say(self, partitions: int, result: CommitResult) -> None:
        """Put a commit that was not routine into the events."""
        self._core.effects.events.append(
            OffsetsCommitted(client=self._core.config.client_id, partitions=partitions, error=result.error)
        )

    def _result(self, answer: Answer, sent: Generation, now_ms: int) -> CommitResult:
        """PITFALLS C-35, C-36."""
        if isinstance(answer, Failure):
            if answer is Failure.TIMED_OUT:
                self._coordinator.lose(now_ms=now_ms)
            return CommitResult(answer.value, retriable=True)
        assert isinstance(answer, OffsetCommitResponse)
        error = next((p.error for p in answer.partitions if p.error is not ErrorCode.NONE), ErrorCode.NONE)
        if error is ErrorCode.NONE:
            return CommitResult("", retriable=False)
        if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return CommitResult(error.name, retriable=False)
        if error is ErrorCode.OFFSET_METADATA_TOO_LARGE:
            self._core.effects.fail(ProtocolError("OffsetCommit", error.name))
            return CommitResult(error.name, retriable=False)
        return self._member_error(error, sent, now_ms)
