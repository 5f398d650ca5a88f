"""The close of a consumer: commit, give up partitions, leave (PROTOCOL 9.11, PITFALLS C-59)."""

from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.member import MemberPart
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.client.requests import NEVER
from coordinator_core.model import TopicPartition

CLOSE_TIMEOUT_MS = 30_000
"""Kafka's default for close()."""


class Closing:
    """Commits and leaves within 30 s."""

    def __init__(
        self, core: Core, coordinator: CoordinatorFinder, member: MemberPart, offsets: Offsets
    ) -> None:
        self._core, self._coordinator = core, coordinator
        self._member, self._offsets = member, offsets
        self.has_begun = False
        """Whether the consumer is closing or closed."""
        self.is_done = False
        """Whether the consumer is closed."""
        self._leaves = False
        self._deadline_ms = self._retry_ms = 0
        self._in_flight = False
        self._to_commit: dict[TopicPartition, int] = {}

    def begin(self, *, now_ms: int) -> None:
        """Start to close, unless the consumer is closing already."""
        if self.has_begun:
            return
        self.has_begun, self._core.is_open = True, False
        self._deadline_ms = now_ms + CLOSE_TIMEOUT_MS
        lost = self._core.subscriptions.is_group_managed and self._core.generation.is_lost
        if self._core.failure is None and self._core.config.enable_auto_commit and not lost:
            self._to_commit = self._offsets.all_consumed(now_ms=now_ms)
        self.step(now_ms=now_ms)

    def step(self, *, now_ms: int) -> None:
        """Continue as far as possible without a response."""
        if self.is_done or not self.has_begun:
            return
        if not self._leaves:
            self._commit(now_ms=now_ms)
        elif now_ms >= self._deadline_ms:
            self.is_done = True

    def next_deadline_ms(self) -> int:
        """Return the time at which `step` can continue without a response, or `NEVER`."""
        if self.is_done or not self.has_begun:
            return NEVER
        waiting = self._in_flight or self._coordinator.node is None or self._leaves
        return self._deadline_ms if waiting else min(self._deadline_ms, self._retry_ms)

    def give_up(self) -> None:
        """Give up all partitions that the group assigned, as revoked or as lost (PITFALLS C-57)."""
        subscriptions = self._core.subscriptions
        if subscriptions.is_group_managed and subscriptions.partitions:
            self._core.give_up(sorted(subscriptions.partitions), lost=not self._member.may_revoke)
            subscriptions.assign_by_group(())

    def _commit(self, *, now_ms: int) -> None:
        if self._in_flight:
            if now_ms >= self._deadline_ms:
                self._leave(now_ms=now_ms)
            return
        if not self._to_commit or now_ms >= self._deadline_ms or self._core.failure is not None:
            self._leave(now_ms=now_ms)
            return
        if self._coordinator.node is None or now_ms < self._retry_ms:
            self._coordinator.find(now_ms=now_ms)
            return
        offsets, self._in_flight = self._to_commit, True

        def done(result: CommitResult, at_ms: int) -> None:
            self._in_flight = False
            self._offsets.report(len(offsets), result)
            if result.retriable:
                self._retry_ms = at_ms + self._core.config.retry_backoff_ms
            else:
                self._to_commit = {}
                self.step(now_ms=at_ms)

        self._offsets.commit(offsets, done, now_ms=now_ms)

    def _leave(self, *, now_ms: int) -> None:
        self.give_up()
        managed = self._core.subscriptions.is_group_managed
        sent = managed and self._member.leave("the consumer is being closed", self._left, now_ms=now_ms)
        self._leaves, self.is_done = True, not sent

    def _left(self) -> None:
        self.is_done = True
