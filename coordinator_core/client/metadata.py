"""The metadata of a consumer: topics, their partitions and the leaders of those."""

from collections.abc import Sequence
from random import Random

from coordinator_core.client.config import ClientConfig
from coordinator_core.client.requests import NEVER, Failure, Reply, RequestQueue
from coordinator_core.client.subscription import SubscriptionMode, Subscriptions
from coordinator_core.model import Cluster, TopicInfo, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)

INCOMPLETE_MS = 1_000
"""The age at which metadata without a topic or a leader are requested again."""


class Metadata:
    """Requests metadata on demand and periodically, and keeps the last response."""

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
        self._requested: tuple[str, ...] | None = ()
        self._in_flight = False
        self._wanted = True
        self.due_ms = self._not_before_ms = self._received_ms = 0
        self.deadline_ms = 0
        """The time of the next request if a topic is of interest, `NEVER` while one is in flight."""
        self.age_ms = INCOMPLETE_MS
        self._cluster: tuple[tuple[int, tuple[str, ...]], Cluster] | None = None
        self.version = 0
        """The number of responses."""
        self._agreed: tuple[MetadataResponse | None, int] = (None, -1)
        """The last response that agreed with the metadata, and their version."""
        self.unauthorized: tuple[str, ...] = ()
        """The topics of the last response that this client may not read."""

    def any_node(self) -> int:
        """Return the id of a random broker."""
        return self._nodes[self._random.randrange(len(self._nodes))]

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of the brokers."""
        return self._nodes

    @property
    def is_pending(self) -> bool:
        """Whether a request is in flight or wanted."""
        return self._wanted or self._in_flight

    @property
    def external_topics(self) -> list[str]:
        """The topics that a pattern may match (exclude.internal.topics)."""
        return [name for name, topic in self.topics.items() if not topic.internal]

    def request_update(self) -> None:
        """Request metadata as soon as possible."""
        self._wanted = True
        self._set_deadline()

    def renew(self, *, now_ms: int) -> None:
        """Request metadata, unless a request is pending or the last response is younger than a backoff."""
        if not self.is_pending and now_ms - self._received_ms >= self._config.retry_backoff_ms:
            self.request_update()
            self.refresh(now_ms=now_ms)

    @property
    def is_quiet(self) -> bool:
        """Whether there are metadata, and no request is wanted before they are due."""
        return self.version > 0 and not self._wanted

    def agrees_with(self, response: MetadataResponse) -> bool:
        """Return whether the last response was equal to this one, where it has the same topics."""
        if self._agreed[0] is not response or self._agreed[1] != self.version:
            if not self._is_equal(response):
                return False
            self._agreed = response, self.version
        return True

    def _is_equal(self, response: MetadataResponse) -> bool:
        known = {topic.name: topic for topic in response.topics}
        if self._requested is None and known.keys() != self.topics.keys():
            return False
        return self._nodes == response.nodes and all(
            self.topics.get(name) == known.get(name)
            for name in (self.topics if self._requested is None else self._requested)
        )

    @property
    def repeats_request(self) -> bool:
        """Whether the next request is for the topics of the last response."""
        return self._requested == self._topics_of_interest()

    def leave_out(self, received_ms: int) -> None:
        """Continue as if a periodic request had been answered, without a change."""
        self.version += 1
        self._received_ms, self.due_ms = received_ms, received_ms + self.age_ms
        self._set_deadline()

    def knows(self, topics: Sequence[str]) -> bool:
        """Return whether the last response covers the topics and no newer one is wanted."""
        if self._wanted or not self.version:
            return False
        return self._requested is None or frozenset(topics) <= frozenset(self._requested)

    def refresh(self, *, now_ms: int) -> None:
        """Send a request, if one is due and none is in flight."""
        if now_ms < self.deadline_ms or now_ms < self._not_before_ms:
            return
        topics = self._topics_of_interest()
        if topics == ():
            return
        self._in_flight, self._wanted, self.deadline_ms = True, False, NEVER
        self._requests.send(
            self.any_node(),
            MetadataRequest(topics=topics),
            lambda reply, at_ms: self._on_reply(reply, topics, at_ms),
            now_ms=now_ms,
        )

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the id of the broker that leads a partition, or None."""
        known = self._partition(partition)
        return None if known is None or known.leader < 0 else known.leader

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the epoch of a partition's leader, or -1."""
        known = self._partition(partition)
        return -1 if known is None else known.leader_epoch

    def cluster(self, topics: Sequence[str]) -> Cluster:
        """Return those of the topics that exist, as an assignor sees them."""
        key = (self.version, tuple(topics))
        if self._cluster is None or self._cluster[0] != key:
            self._cluster = key, Cluster({t: self.topics[t].info for t in topics if t in self.topics})
        return self._cluster[1]

    def snapshot(self, topics: Sequence[str]) -> tuple[tuple[str, TopicInfo], ...]:
        """Return the state of the topics that a leader's assignment is based on (PITFALLS C-54)."""
        return tuple((t, self.compared(self.topics[t].info)) for t in topics if t in self.topics)

    def compared(self, info: TopicInfo) -> TopicInfo:
        """Return the properties of a topic whose change makes the leader join again.

        These are the partitions and, if client.rack is set, the racks.
        """
        if info.racks is None or not self._config.client_rack:
            return TopicInfo(info.partitions)
        return TopicInfo(info.partitions, tuple(tuple(sorted(set(racks))) for racks in info.racks))

    def _partition(self, partition: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return topic.partitions[partition.partition]

    def has_interest(self) -> bool:
        """Return whether there are topics to request."""
        subscriptions = self._subscriptions
        if subscriptions.topics or subscriptions.group_topics or subscriptions.partitions:
            return True
        return subscriptions.mode is SubscriptionMode.AUTO_PATTERN

    def _set_deadline(self) -> None:
        if not self._in_flight:
            self.deadline_ms = self._not_before_ms if self._wanted else self.due_ms

    def _topics_of_interest(self) -> tuple[str, ...] | None:
        """Return the topics to request, or None for all."""
        subscriptions = self._subscriptions
        if subscriptions.mode is SubscriptionMode.AUTO_PATTERN:
            return None
        wanted = [*subscriptions.topics, *subscriptions.group_topics]
        if subscriptions.mode is SubscriptionMode.USER_ASSIGNED:
            wanted = [tp.topic for tp in subscriptions.partitions]
        return tuple(dict.fromkeys(wanted))

    def _on_reply(self, reply: Reply, topics: tuple[str, ...] | None, now_ms: int) -> None:
        self._in_flight = False
        if isinstance(reply, Failure):
            self._wanted = True
            self._not_before_ms = now_ms + self._config.retry_backoff_ms
            self._set_deadline()
            return
        assert isinstance(reply, MetadataResponse)
        if reply.nodes:
            self._nodes = reply.nodes
        self.topics = {t.name: t for t in reply.topics if not t.error}
        self.unauthorized = tuple(
            t.name for t in reply.topics if t.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        self._requested = topics
        self._received_ms = now_ms
        self.version += 1
        found = all(not t.error or t.name in self.unauthorized for t in reply.topics)
        complete = found and all(topic.is_led for topic in self.topics.values())
        self.age_ms = self._config.metadata_max_age_ms if complete else INCOMPLETE_MS
        self.due_ms = now_ms + self.age_ms
        self._set_deadline()
        self._subscriptions.match(self.external_topics)
