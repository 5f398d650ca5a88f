"""Consumers of kafka-python and of aiokafka in this process, which poll until they are closed."""

import asyncio
import warnings

import pytest

from coordinator_core.model import TopicPartition
from rebalance_kafka import as_aiokafka, as_kafka_python

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.structs import MemberState
aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

__all__ = ["OfAiokafka", "OfKafkaPython", "RangePartitionAssignor"]

OPTIONS = {
    "group_id": "g",
    "heartbeat_interval_ms": 100,
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "fetch_max_wait_ms": 50,
}


class Polling:
    """A consumer with an adapted assignor. ``loads`` observes it, if there is one.

    ``adapting``: arguments of the adapter. ``others``: assignors of the library that it knows, too.
    """

    adapt = None

    def __init__(self, address, topics, assignor, *others, loads=None, name="c", **adapting):
        self.loads, self._over, self._owned = loads, False, frozenset()
        if loads is not None:
            adapting["host"] = lambda: loads
        assignors = [type(self).adapt(assignor, **adapting), *others]
        options = {"client_id": name, "partition_assignment_strategy": assignors, **OPTIONS}
        self._task = asyncio.create_task(self._work(topics, {"bootstrap_servers": address, **options}))

    def _polled(self, consumer):
        if self.loads is not None:
            self.loads.observe(consumer)
        self._owned = frozenset(TopicPartition(tp.topic, tp.partition) for tp in consumer.assignment())

    def owned(self):
        return self._owned

    async def close(self):
        self._over = True
        await self._task


class OfKafkaPython(Polling):
    adapt = staticmethod(as_kafka_python)

    async def _work(self, topics, options):
        await asyncio.to_thread(self._in_a_thread, topics, options)

    def _in_a_thread(self, topics, options):
        consumer = kafka.KafkaConsumer(*topics, **options)
        for topic in topics:  # a leader that learns of partitions later joins again
            consumer.partitions_for_topic(topic)
        while not self._over:
            stable = consumer.group_metadata().state is MemberState.STABLE
            consumer.poll(100 if stable else 1_000)  # what comes of a join between two polls is thrown away
            self._polled(consumer)
        consumer.close()


class OfAiokafka(Polling):
    adapt = staticmethod(as_aiokafka)

    async def _work(self, topics, options):
        consumer = aiokafka.AIOKafkaConsumer(*topics, **options)
        await consumer.start()
        while not self._over:
            await consumer.getmany(timeout_ms=50)
            self._polled(consumer)
        await consumer.stop()
