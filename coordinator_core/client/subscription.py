"""The subscription of a consumer, its partitions and their positions (PROTOCOL 9.1, 9.2)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from coordinator_core.client.states import FETCH_MOVES, FetchState, check_move
from coordinator_core.errors import InputError
from coordinator_core.java import java_order
from coordinator_core.model import NO_PARTITIONS, Partitions, TopicPartition
from coordinator_core.protocol.events import PartitionMap


class SubscriptionMode(Enum):
    """The kind of a subscription. Only `unsubscribe` permits another kind."""

    NONE = "nothing"
    AUTO_TOPICS = "topics"
    AUTO_PATTERN = "a pattern"
    USER_ASSIGNED = "assigned partitions"


_FETCHING = FetchState.FETCHING
_WITH_POSITION = (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)


@dataclass(slots=True)
class PartitionState:
    """An assigned partition. Unknown offsets are -1.

    ``position``: the offset of the next record to return.
    ``epoch``: the leader epoch of the position.
    ``pending_revocation``: whether the partition is about to be given up; no more records are returned.
    ``busy``: whether a request for the position is in flight.
    """

    fetch_state: FetchState = FetchState.INITIALIZING
    position: int = -1
    epoch: int = -1
    high_watermark: int = -1
    log_start: int = -1
    last_stable: int = -1
    paused: bool = False
    pending_revocation: bool = False
    reset_strategy: str | None = None
    busy: bool = False

    def move_to(self, state: FetchState) -> None:
        """Change the state.

        Raises:
            AssertionError: if the move is illegal.
        """
        check_move(FETCH_MOVES, self.fetch_state, state)
        self.fetch_state = state

    @property
    def has_position(self) -> bool:
        """Whether the position is known, validated or not."""
        return self.fetch_state in _WITH_POSITION

    @property
    def is_fetchable(self) -> bool:
        """Whether records may be fetched and returned."""
        return self.fetch_state is _FETCHING and not self.paused and not self.pending_revocation


class Subscriptions:
    """Mode, topics and partitions. The partitions are in the order in which they are fetched."""

    def __init__(self) -> None:
        self.mode = SubscriptionMode.NONE
        self.uses_coordinator = False
        """Whether the consumer joins a group or commits offsets to one."""
        self.is_group_managed = False
        """Whether a coordinator assigns the partitions."""
        self.topics: tuple[str, ...] = ()
        self.group_topics: tuple[str, ...] = ()
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self._pattern: re.Pattern[str] | None = None

    def subscribe(self, topics: Iterable[str]) -> None:
        """Replace the subscribed topics.

        Raises:
            InputError: if a name is not a topic's, or if the consumer has another kind of subscription.
        """
        listed = list(topics)
        for topic in listed:
            if not isinstance(topic, str) or not topic.strip():
                raise InputError("subscribe", repr(topic), "names of topics")
        self._enter(SubscriptionMode.AUTO_TOPICS)
        self.topics = tuple(java_order(dict.fromkeys(listed)))

    def subscribe_pattern(self, pattern: str) -> None:
        """Subscribe to every topic whose whole name matches.

        Raises:
            InputError: if the pattern is invalid, or if the consumer has another kind of subscription.
        """
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise InputError("subscribe", f"{pattern!r} ({error})", "a regular expression") from None
        self._enter(SubscriptionMode.AUTO_PATTERN)
        self._pattern = compiled

    @property
    def pattern(self) -> str | None:
        """The regular expression of a subscription by pattern, or None."""
        return None if self._pattern is None else self._pattern.pattern

    def match(self, known: Iterable[str]) -> None:
        """Subscribe to the known topics that match the pattern, if the subscription is one."""
        pattern = self._pattern
        if pattern is not None:
            self.topics = tuple(java_order(t for t in known if pattern.fullmatch(t)))

    def assign_by_user(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Replace the partitions that the application assigned.

        Raises:
            InputError: if a partition is invalid, or if the consumer has another kind of subscription.
        """
        listed = [TopicPartition(*pair) for pair in partitions]
        for tp in listed:
            if not isinstance(tp.topic, str) or not tp.topic.strip():
                raise InputError("assign", repr(tp.topic), "names of topics")
            if not isinstance(tp.partition, int) or tp.partition < 0:
                raise InputError("assign", f"{tp.topic}-{tp.partition}", "partition numbers of 0 or more")
        self._enter(SubscriptionMode.USER_ASSIGNED)
        self._keep(listed)

    def assign_by_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the partitions that the group assigned. Those that stay keep their positions."""
        assert self.is_group_managed
        self._keep(partitions)

    def unsubscribe(self) -> None:
        """Remove the subscription and all partitions."""
        self.mode, self._pattern = SubscriptionMode.NONE, None
        self.uses_coordinator = self.is_group_managed = False
        self.topics = self.group_topics = ()
        self.partitions = {}

    def _enter(self, mode: SubscriptionMode) -> None:
        if self.mode not in (SubscriptionMode.NONE, mode):
            expected = "unsubscribe first: topics, a pattern and assigned partitions exclude one another"
            raise InputError("subscribe", f"a consumer with {self.mode.value}", expected)
        self.mode, self.uses_coordinator = mode, True
        self.is_group_managed = mode is not SubscriptionMode.USER_ASSIGNED

    def _keep(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = {tp: self.partitions.get(tp) or PartitionState() for tp in partitions}

    def owned(self) -> Partitions:
        """Return the partitions that the group assigned, sorted."""
        if not self.is_group_managed or not self.partitions:
            return NO_PARTITIONS
        return Partitions.of(sorted(self.partitions))

    def allows(self, topics: Iterable[str]) -> bool:
        """Return whether topics are subscribed to, or match the pattern, known or not (PITFALLS C-53)."""
        if self._pattern is None:
            return frozenset(topics) <= frozenset(self.topics)
        return all(self._pattern.fullmatch(topic) for topic in topics)

    def positioned(self) -> list[TopicPartition]:
        """Return the partitions that have a position."""
        return [tp for tp, s in self.partitions.items() if s.fetch_state in _WITH_POSITION]

    def waiting(self) -> dict[FetchState, list[TopicPartition]]:
        """Return the partitions that need a request for their position, by state.

        Those that are busy or about to be given up need none.
        """
        listed: dict[FetchState, list[TopicPartition]] = {}
        for tp, s in self.partitions.items():
            if s.fetch_state is not _FETCHING and not s.busy and not s.pending_revocation:
                listed.setdefault(s.fetch_state, []).append(tp)
        return listed

    def move_to_end(self, partition: TopicPartition) -> None:
        """Fetch a partition after all others (PROTOCOL 9.12)."""
        state = self.partitions.pop(partition, None)
        if state is not None:
            self.partitions[partition] = state


def partition_map(partitions: Iterable[TopicPartition]) -> PartitionMap:
    """Return partitions as events carry them: topics and numbers sorted."""
    listed: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        listed.setdefault(topic, []).append(number)
    return listed
