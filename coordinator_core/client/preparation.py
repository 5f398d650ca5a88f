"""The work before a join: commit, then give up partitions (PROTOCOL 9.5)."""

from collections.abc import Callable, Iterable

from coordinator_core.client.core import Core
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.model import RebalanceProtocol, TopicPartition


class Preparation:
    """Runs once in a rebalance, over as many polls as the commit takes (PITFALLS C-50, C-51)."""

    def __init__(
        self,
        core: Core,
        offsets: Offsets,
        protocol: RebalanceProtocol,
        unwanted: Callable[[], Iterable[TopicPartition]] | None = None,
    ) -> None:
        """``unwanted`` returns the partitions to revoke, in place of those that the protocol names."""
        self._core, self._offsets, self._protocol, self._unwanted = core, offsets, protocol, unwanted
        self._begun = self._in_flight = False
        self._deadline_ms = self._retry_ms = 0
        self._to_commit: dict[TopicPartition, int] = {}
        self._leaving: frozenset[TopicPartition] = frozenset()

    @property
    def has_begun(self) -> bool:
        """Whether partitions have been stopped that are not given up yet."""
        return self._begun

    @property
    def gives_up(self) -> bool:
        """Whether `run` gives up partitions, as far as is known now."""
        if self._core.generation.is_lost:
            return bool(self._core.subscriptions.partitions)
        return bool(self._to_give_up())

    def is_waiting(self, *, now_ms: int) -> bool:
        """Return whether `run` would make no progress now."""
        if not self._begun or now_ms >= self._deadline_ms:
            return False
        return self._in_flight or now_ms < self._retry_ms

    def retry_ms(self) -> int:
        """Return the time at which `run` can make progress, 0 before it has begun."""
        if not self._begun:
            return 0
        return self._deadline_ms if self._in_flight else min(self._deadline_ms, self._retry_ms)

    def run(self, *, now_ms: int, waits: bool = True) -> bool:
        """Begin or continue. Return whether all partitions that must be given up are given up.

        ``waits``: they are given up when the commit is answered. Otherwise they are when it is sent.
        """
        if begins := not self._begun:
            self._begin(now_ms=now_ms)
        if self.is_waiting(now_ms=now_ms):
            return False
        if self._to_commit and now_ms < self._deadline_ms and not self._core.generation.is_lost:
            if not begins:  # partitions that are kept have moved on, and the application may seek
                self._to_commit |= self._offsets.all_consumed(now_ms=now_ms)
            self._commit(now_ms=now_ms)
            if waits and self.is_waiting(now_ms=now_ms):
                return False
        self._begun = self._in_flight = False
        self._to_commit = {}
        self._give_up()
        return True

    def _begin(self, *, now_ms: int) -> None:
        """Stop the partitions that will be given up and note the offsets to commit.

        A consumer without a generation commits nothing.
        """
        self._begun, self._in_flight, self._retry_ms = True, False, now_ms
        self._to_commit, self._leaving = {}, frozenset()
        self._deadline_ms = now_ms + self._core.rebalance_timeout_ms
        if self._core.generation.is_lost:
            return
        if self._core.config.enable_auto_commit:
            self._to_commit = self._offsets.all_consumed(now_ms=now_ms)
        leaving = self._to_give_up()
        self._leaving = frozenset(leaving)
        for tp in leaving:
            self._core.subscriptions.partitions[tp].pending_revocation = True
        if self._core.source is not None and leaving:
            self._core.source.stopped(leaving, now_ms=now_ms)

    def _commit(self, *, now_ms: int) -> None:
        offsets, self._in_flight = self._to_commit, True

        def done(result: CommitResult, at_ms: int) -> None:
            self._offsets.report(len(offsets), result)
            if self._to_commit is not offsets:
                return  # the preparation that sent this commit is over
            self._in_flight = False
            if result.retriable:
                self._retry_ms = at_ms + self._core.config.retry_backoff_ms
            else:
                self._to_commit = {}

        self._offsets.commit(offsets, done, now_ms=now_ms)

    def _to_give_up(self) -> list[TopicPartition]:
        """Return the partitions to revoke, with those stopped earlier that are subscribed to again."""
        subscriptions = self._core.subscriptions
        if self._unwanted is not None:
            return sorted(
                {*self._unwanted(), *(tp for tp in self._leaving if tp in subscriptions.partitions)}
            )
        if self._protocol is RebalanceProtocol.EAGER:
            return sorted(subscriptions.partitions)
        topics = frozenset(subscriptions.topics)
        return sorted(tp for tp in subscriptions.partitions if tp.topic not in topics or tp in self._leaving)

    def _give_up(self) -> None:
        """Lose everything without a generation, else revoke (PROTOCOL 9.5)."""
        subscriptions = self._core.subscriptions
        lost = self._core.generation.is_lost
        leaving = sorted(subscriptions.partitions) if lost else self._to_give_up()
        if leaving:
            self._core.give_up(leaving, lost=lost)
        removed = frozenset(leaving)
        subscriptions.assign_by_group(tp for tp in list(subscriptions.partitions) if tp not in removed)
