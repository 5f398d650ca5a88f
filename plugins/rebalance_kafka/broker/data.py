"""The topics and records of a broker, as requests read and change them."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from rebalance_kafka.addresses import Place
from rebalance_kafka.broker.group_configs import GroupConfigs
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import OFFSETS_TOPIC, Appended, Topics
from rebalance_kafka.broker.transactions import Transactions, TransactionSettings
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.messages import Values

NODE, CLUSTER_ID = 1, "rebalance-lab"
LEADER_EPOCH, NO_EPOCH = 0, -1

_NO_CONFIGS: Mapping[str, str] = {}


class Data:
    """The state of a broker without that of its coordinator.

    ``partitions``: the number of partitions of a topic that a Metadata request creates. 0: an error.
    ``broker_configs``: the configurations that the broker is described with. ``transactions``: the settings
    of transactions, whose requests `transaction_requests` handles. ``groups``: the settings of groups of the
    consumer protocol, with the limits of those that a group has for itself. ``offsets_partitions``: the
    number of partitions of `OFFSETS_TOPIC`.
    """

    def __init__(
        self,
        topics: Topics,
        store: Store,
        *,
        node: int,
        cluster_id: str,
        partitions: int,
        broker_configs: Mapping[str, str] = _NO_CONFIGS,
        transactions: TransactionSettings = TransactionSettings(),  # noqa: B008 (it is frozen)
        groups: ReconcileSettings = ReconcileSettings(),  # noqa: B008 (it is frozen)
        offsets_partitions: int = 50,
    ) -> None:
        self.broker_configs = broker_configs
        self.topics, self.store = topics, store
        self.group_configs = GroupConfigs(store, groups)
        self.node, self.cluster_id, self.partitions = node, cluster_id, partitions
        self.address = Place("", 0)
        self.transactions = Transactions(store, topics, transactions)
        self._offsets_partitions = offsets_partitions

    def home(self, group_id: str) -> int:
        """Return the partition of `OFFSETS_TOPIC` that has a group."""
        return home_partition(group_id, self._offsets_partitions)

    def can_be_committed(self, topic: str, partition: int) -> bool:
        """Return whether there is a partition for which offsets can be committed."""
        is_home = topic == OFFSETS_TOPIC and 0 <= partition < self._offsets_partitions
        return is_home or self.topics.has(topic, partition)

    def name_and_id(self, topic: Any) -> tuple[str | None, UUID | None]:
        """Return name and id of a topic of a request, which has one of them. The name may be unknown."""
        if hasattr(topic, "name"):
            return topic.name, None
        return self.topics.named(topic.topic_id), topic.topic_id

    def unwritten(self, write: Callable[[], object]) -> Appended | None:
        """Call a function that writes to the store. Return the error of a response, None if it could."""
        try:
            write()
        except sqlite3.Error as error:
            return Appended(Wire.kafka_storage_error, message=self.store.failed(error))
        return None

    def refusal(self, topic: str, partition: int, leader_epoch: int = NO_EPOCH) -> Wire | None:
        """Return why an operation on a partition is refused, None if it is not.

        ``leader_epoch``: the epoch in which the client expects the partition. There is one, `LEADER_EPOCH`.
        """
        if not self.topics.has(topic, partition):
            return Wire.unknown_topic_or_partition
        return Wire.unknown_leader_epoch if leader_epoch > LEADER_EPOCH else None


def for_each_partition(request: Request, answer: Callable[[str, Any], Values], name: str = "name") -> Values:
    """Return the body of a response with a row for each partition that a request lists by topic."""
    topics = tuple(
        {
            name: getattr(topic, name),
            "partitions": tuple([answer(getattr(topic, name), row) for row in topic.partitions]),
        }
        for topic in request.body.topics
    )
    return {"topics": topics}
