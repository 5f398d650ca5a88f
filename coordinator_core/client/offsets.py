"""Commits of offsets: on request, periodic, before a rejoin and on close (PROTOCOL 9.11)."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.requests import NEVER, Failure, Reply
from coordinator_core.errors import ProtocolError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import OffsetsCommitted
from coordinator_core.protocol.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit

CommitCallback: TypeAlias = Callable[[str], None]
"""Called with "" after the commit, or with the error."""

MOST_WITHDRAWN = 1_000
"""Withdrawn commits that are remembered; far fewer are in flight at any time."""


class CommitResult(NamedTuple):
    """The result of a commit: ``error`` is "" for success; a ``retriable`` commit may be sent again."""

    error: str = ""
    retriable: bool = False


MemberError: TypeAlias = Callable[[ErrorCode, Generation, int], CommitResult]
"""Called with the error of a commit, the generation that the commit named, and the time."""


class _Retry(NamedTuple):
    """A commit of the application that is sent again."""

    due_ms: int
    callback: CommitCallback | None
    send: Callable[[int], None]


class Offsets:
    """Commits the positions of the application, or those of the position source."""

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        may_commit: Callable[[], bool],
        member_error: MemberError,
    ) -> None:
        self._core, self._coordinator = core, coordinator
        self._may_commit, self._member_error = may_commit, member_error
        self.auto_commits = core.config.enable_auto_commit
        """Whether polls commit the consumed offsets at intervals."""
        self.due_ms: int | None = None
        """The time of the next auto-commit, None before the interval has begun and without auto-commit."""
        self._is_committing = False
        self.finished: list[tuple[CommitCallback, str]] = []
        """The callbacks that `run_callbacks` runs, with their arguments."""
        self._retries: list[_Retry] = []
        self.retry_ms = NEVER
        """The time at which `retry` has work, or `NEVER`."""
        self._withdrawn: deque[CommitCallback] = deque(maxlen=MOST_WITHDRAWN)
        self._commits = 0
        self._latest: dict[TopicPartition, int] = {}
        """The number of the last commit that contained the partition."""

    def all_consumed(self, *, now_ms: int) -> dict[TopicPartition, int]:
        """Return the offsets that may be committed now, for the partitions that have a position."""
        source, subscriptions = self._core.source, self._core.subscriptions
        listed = subscriptions.positioned()
        if source is None:
            return {tp: subscriptions.partitions[tp].position for tp in listed}
        return source.positions(listed, now_ms=now_ms) if listed else {}

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        done: Callable[[CommitResult, int], None],
        *,
        now_ms: int,
        metadata: str = "",
    ) -> None:
        """Send a commit to the coordinator. ``done`` is called with the result, at once or later."""
        node, sent = self._coordinator.node, self._core.generation
        self._commits += 1
        self._latest.update(dict.fromkeys(offsets, self._commits))
        if not offsets:
            done(CommitResult(), now_ms)
        elif node is None:
            done(CommitResult("the coordinator is unknown", retriable=True), now_ms)
        elif sent.is_lost and self._core.subscriptions.is_group_managed:
            done(CommitResult("the consumer is no member of its group"), now_ms)
        elif self._core.subscriptions.is_group_managed and not self._may_commit():
            done(CommitResult(ErrorCode.REBALANCE_IN_PROGRESS.name), now_ms)
        else:
            self._core.requests.send(
                node,
                self._request(offsets, sent, metadata),
                lambda reply, at_ms: done(self._result(reply, sent, at_ms), at_ms),
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
        """Commit at the request of the application; its callback runs in a later poll (PROTOCOL 9.3).

        A retriable failure is retried until ``retry_until_ms``, in the same generation only, and without
        partitions that a later commit contained, so that no offset goes back.
        """
        begun = self._core.generation
        number = self._commits + 1

        def done(result: CommitResult, at_ms: int) -> None:
            due_ms = at_ms + self._core.config.retry_backoff_ms
            withdrawn = any(entry is callback for entry in self._withdrawn)
            if result.retriable and not withdrawn and retry_until_ms is not None and due_ms < retry_until_ms:
                self._keep([*self._retries, _Retry(due_ms, callback, retry)])
                return
            self.report(len(offsets), result)
            if callback is not None and not withdrawn:
                self.finished.append((callback, result.error))

        def retry(at_ms: int) -> None:
            nonlocal number
            left = {tp: offset for tp, offset in offsets.items() if self._latest.get(tp) == number}
            if begun != self._core.generation:
                done(CommitResult(ErrorCode.REBALANCE_IN_PROGRESS.name), at_ms)
                return
            number = self._commits + 1
            self.commit(left, done, now_ms=at_ms, metadata=metadata)

        self.commit(offsets, done, now_ms=now_ms, metadata=metadata)

    def retry(self, *, now_ms: int) -> None:
        """Send the commits again whose backoff is over."""
        due = [entry for entry in self._retries if entry.due_ms <= now_ms]
        self._keep([entry for entry in self._retries if entry.due_ms > now_ms])
        for entry in due:
            entry.send(now_ms)

    def withdraw(self, callback: CommitCallback) -> None:
        """Neither retry the commit of a callback nor call it. A commit in flight may still succeed."""
        self._keep([entry for entry in self._retries if entry.callback is not callback])
        self._withdrawn.append(callback)

    def run_callbacks(self) -> None:
        """Run the callbacks of completed commits."""
        finished, self.finished = self.finished, []
        for callback, error in finished:
            self._core.callbacks.call(callback, error)

    def auto_commit(self, *, now_ms: int) -> None:
        """Commit the consumed offsets, if an auto-commit is due."""
        if not self.auto_commits or self.next_poll_ms(now_ms=now_ms) > now_ms:
            return
        self.due_ms = now_ms + self._core.config.auto_commit_interval_ms
        offsets = self.all_consumed(now_ms=now_ms)
        if not offsets:
            return
        self._is_committing = True

        def done(result: CommitResult, at_ms: int) -> None:
            self._is_committing = False
            if result.error:
                self.report(len(offsets), result)
            if result.retriable:
                self.due_ms = at_ms + self._core.config.retry_backoff_ms

        self.commit(offsets, done, now_ms=now_ms)

    def begin_auto_commit(self, *, now_ms: int) -> None:
        """Begin the interval of auto-commit, if polls commit."""
        if self.auto_commits:
            self.due_ms = now_ms + self._core.config.auto_commit_interval_ms

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to do besides periodic auto-commits, whose time is known."""
        known = self.due_ms is not None or not self.auto_commits
        return known and not (self.finished or self._retries)

    def leave_out(self, due_ms: int | None) -> None:
        """Continue as if auto-commits had been answered. The next is due at ``due_ms``, if not None."""
        if due_ms is not None:
            self.due_ms = due_ms

    def auto_commit_request(self, *, now_ms: int) -> OffsetCommitRequest:
        """Return the request of an auto-commit."""
        return self._request(self.all_consumed(now_ms=now_ms), self._core.generation, "")

    def next_poll_ms(self, *, now_ms: int) -> int:
        """Return the time from which a poll auto-commits, or `NEVER`. The first call starts the interval."""
        if self.due_ms is None:
            self.begin_auto_commit(now_ms=now_ms)
        if self.due_ms is None or self._is_committing or self._coordinator.node is None:
            return NEVER
        return self.due_ms

    def report(self, partitions: int, result: CommitResult) -> None:
        """Report the result of a commit of some partitions."""
        self._core.effects.events.append(
            OffsetsCommitted(client=self._core.config.client_id, partitions=partitions, error=result.error)
        )

    def _keep(self, retries: list[_Retry]) -> None:
        self._retries = retries
        self.retry_ms = min((entry.due_ms for entry in retries), default=NEVER)

    def _request(
        self, offsets: Mapping[TopicPartition, int], sent: Generation, metadata: str
    ) -> OffsetCommitRequest:
        config, partitions = self._core.config, self._core.subscriptions.partitions
        if not self._core.commits_as_member:
            sent = NO_MEMBERSHIP
        return OffsetCommitRequest(
            group_id=config.group_id,
            generation_id=sent.number,
            member_id=sent.member_id,
            group_instance_id=config.group_instance_id if sent.member_id else None,
            offsets=tuple(
                [
                    OffsetToCommit(*tp, offset, partitions[tp].epoch if tp in partitions else -1, metadata)
                    for tp, offset in sorted(offsets.items())
                ]
            ),
        )

    def _result(self, reply: Reply, sent: Generation, now_ms: int) -> CommitResult:
        if isinstance(reply, Failure):
            return CommitResult(reply.value, retriable=True)
        assert isinstance(reply, OffsetCommitResponse)
        error = next((p.error for p in reply.partitions if p.error), ErrorCode.NONE)
        if not error:
            return CommitResult()
        if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return CommitResult(error.name)
        if error is ErrorCode.OFFSET_METADATA_TOO_LARGE:
            self._core.effects.fail(ProtocolError("OffsetCommit", error.name))
            return CommitResult(error.name)
        return self._member_error(error, sent, now_ms)
