"""What a consumer knows of the cluster: topics, their partitions, and who leads them."""

from collections.abc import Sequence
from random import Random

from coordinator_core.client.config import ClientConfig
from coordinator_core.client.requests import Answer, Failure, RequestQueue
from coordinator_core.client.subscription import SubscriptionMode, Subscriptions
from coordinator_core.model import Cluster, TopicInfo, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import MetadataRequest, MetadataResponse, TopicMetadata

INCOMPLETE_MS = 1_000
"""After so long metadata are asked for again in which a topic or a leader is missing."""


class Metadata:
    """Refreshed when asked for and when it is old; answers at any time from what it knows."""

    def __init__(
        self,
        config: ClientConfig,
        requests: RequestQueue,
        subscriptions: Subscriptions,
        random: Random,
        bootstrap: Sequence[int],
    ) -> None:
        self._config, self._requests, self._subscriptions = config, requests, subscriptions
        self._random = random
        self.topics: dict[str, TopicMetadata] = {}
        self._nodes: tuple[int, ...] = tuple(bootstrap)
        self._asked_for: tuple[str, ...] | None = ()
        self._in_flight = False
        self._wanted = True
        self._due_ms = self._not_before_ms = 0
        self._cluster: tuple[tuple[int, tuple[str, ...]], Cluster] | None = None
        self.version = 0
        """Grows with every answer."""
        self.refused: tuple[str, ...] = ()
        """Topics that this client may not read, as the last answer says."""

    def any_node(self) -> int:
        """Some broker, any of which answers."""
        return self._nodes[self._random.randrange(len(self._nodes))]

    @property
    def was_answered(self) -> bool:
        """Whether anything is known at all."""
        return self.version > 0

    @property
    def not_internal(self) -> list[str]:
        """Those that a pattern may match (exclude.internal.topics)."""
        return [name for name, topic in self.topics.items() if not topic.internal]

    def request_update(self) -> None:
        """Ask anew as soon as possible."""
        self._wanted = True

    def knows(self, topics: Sequence[str]) -> bool:
        """Whether these topics have been asked for, and nothing newer is wanted."""
        if self._wanted or not self.version:
            return False
        return self._asked_for is None or frozenset(topics) <= frozenset(self._asked_for)

    def refresh(self, *, now_ms: int) -> None:
        """Ask, if that is due and not under way."""
        if self._in_flight or now_ms < self._not_before_ms or not (self._wanted or now_ms >= self._due_ms):
            return
        topics = self._topics_to_ask_for()
        if topics == ():
            return
        self._in_flight, self._wanted = True, False
        self._requests.submit(
            self.any_node(),
            MetadataRequest(topics=topics),
            now_ms=now_ms,
            timeout_ms=self._config.request_timeout_ms,
            completion=lambda answer, at_ms: self._answered(answer, topics, at_ms),
        )

    def next_deadline_ms(self) -> int | None:
        """When it is due again; None while it is under way or nothing is of interest."""
        if self._in_flight or not self._is_of_interest():
            return None
        return self._not_before_ms if self._wanted else self._due_ms

    def leader(self, partition: TopicPartition) -> int | None:
        """The broker that leads a partition, or None."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        known = topic.partitions[partition.partition]
        return known.leader if known.leader >= 0 else None

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The epoch of a partition's leader; -1 when unknown."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return -1
        return topic.partitions[partition.partition].leader_epoch

    def cluster(self, topics: Sequence[str]) -> Cluster:
        """The topics that exist among those named, as an assignor sees them."""
        key = (self.version, tuple(topics))
        if self._cluster is None or self._cluster[0] != key:
            self._cluster = key, Cluster({t: _info(self.topics[t]) for t in topics if t in self.topics})
        return self._cluster[1]

    def snapshot(self, topics: Sequence[str]) -> tuple[tuple[str, TopicInfo], ...]:
        """What a leader's assignment is based on (C-54); see `compared`."""
        return tuple((t, self.compared(_info(self.topics[t]))) for t in topics if t in self.topics)

    def compared(self, info: TopicInfo) -> TopicInfo:
        """What of a topic is reason for a round where it changes: partitions; with client.rack, racks too."""
        if info.racks is None or not self._config.client_rack:
            return TopicInfo(info.partitions)
        return TopicInfo(info.partitions, tuple(tuple(sorted(set(racks))) for racks in info.racks))

    def _is_of_interest(self) -> bool:
        """Whether there is a topic to ask for."""
        subscriptions = self._subscriptions
        if subscriptions.mode is SubscriptionMode.AUTO_PATTERN:
            return True
        return bool(subscriptions.topics or subscriptions.group_topics or subscriptions.partitions)

    def _topics_to_ask_for(self) -> tuple[str, ...] | None:
        subscriptions = self._subscriptions
        if subscriptions.mode is SubscriptionMode.AUTO_PATTERN:
            return None
        wanted = [*subscriptions.topics, *subscriptions.group_topics]
        if subscriptions.mode is SubscriptionMode.USER_ASSIGNED:
            wanted = [tp.topic for tp in subscriptions.partitions]
        return tuple(dict.fromkeys(wanted))

    def _answered(self, answer: Answer, topics: tuple[str, ...] | None, now_ms: int) -> None:
        self._in_flight = False
        if isinstance(answer, Failure):
            self._wanted = True
            self._not_before_ms = now_ms + self._config.retry_backoff_ms
            return
        assert isinstance(answer, MetadataResponse)
        if answer.nodes:
            self._nodes = answer.nodes
        self.topics = {t.name: t for t in answer.topics if t.error is ErrorCode.NONE}
        self.refused = tuple(t.name for t in answer.topics if t.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        self._asked_for = topics
        self.version += 1
        whole = all(t.error is ErrorCode.NONE or t.name in self.refused for t in answer.topics)
        led = whole and all(p.leader >= 0 for t in self.topics.values() for p in t.partitions)
        self._due_ms = now_ms + (self._config.metadata_max_age_ms if led else INCOMPLETE_MS)
        self._subscriptions.match(self.not_internal)


def _info(topic: TopicMetadata) -> TopicInfo:
    racks = tuple(partition.racks for partition in topic.partitions)
    return TopicInfo(len(topic.partitions), racks if any(racks) else None)
