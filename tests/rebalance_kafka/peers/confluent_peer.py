"""A peer with confluent-kafka, which is librdkafka."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from tests.rebalance_kafka.peers.line_protocol import Notes, Options, Partition, run_member

AT_ONCE = 500
SECONDS = 60.0
METADATA_HEAD = b"CGMDv2:"
"""How librdkafka begins the bytes of a consumer's group metadata; the generation follows."""


def pairs(partitions: Iterable[TopicPartition]) -> list[Partition]:
    return [(p.topic, p.partition) for p in partitions]


class ConfluentMember:
    def __init__(self, options: Options, notes: Notes) -> None:
        self.notes = notes
        settings: dict[str, Any] = {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "client.id": options.client_id,
            "partition.assignment.strategy": options.strategy,
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": options.heartbeat_interval_ms,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "error_cb": self._failed,
        }
        if options.instance_id:
            settings["group.instance.id"] = options.instance_id
        self.consumer = Consumer(settings)
        self.consumer.subscribe(
            options.topics,
            on_assign=self._assigned,
            on_revoke=self._noted("revoked"),
            on_lost=self._noted("lost"),
        )

    def _failed(self, error) -> None:
        self.notes.error(KafkaException(error))

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.notes.begins_anew(pairs(partitions))
        self.notes.event("assigned", pairs(partitions))

    def _noted(self, event: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        return lambda _consumer, partitions: self.notes.event(event, pairs(partitions))

    async def poll(self, seconds: float) -> None:
        for message in self.consumer.consume(AT_ONCE, seconds):
            if message.error():
                self._failed(message.error())
            else:
                self.notes.record(message.topic(), message.partition(), message.offset(), message.value())

    async def assignment(self) -> list[Partition]:
        return pairs(self.consumer.assignment())

    async def identity(self) -> tuple[str | None, int | None]:
        metadata = self.consumer.consumer_group_metadata()
        head = len(METADATA_HEAD)
        if not metadata.startswith(METADATA_HEAD):
            return self.consumer.memberid(), None
        return self.consumer.memberid() or None, int.from_bytes(
            metadata[head : head + 4], sys.byteorder, signed=True
        )

    async def commit(self, offsets: dict[Partition, int]) -> None:
        wanted = [TopicPartition(*p, offset=at) for p, at in offsets.items()]
        for partition in self.consumer.commit(offsets=wanted, asynchronous=False):
            if partition.error:
                raise KafkaException(partition.error)

    async def committed(self, partitions: list[Partition]) -> dict[Partition, int | None]:
        found = self.consumer.committed([TopicPartition(*p) for p in partitions], timeout=SECONDS)
        for partition in found:
            if partition.error:
                raise KafkaException(partition.error)
        return {(p.topic, p.partition): None if p.offset == OFFSET_INVALID else p.offset for p in found}

    async def close(self) -> None:
        self.consumer.close()


async def join(options: Options, notes: Notes) -> ConfluentMember:
    return ConfluentMember(options, notes)


if __name__ == "__main__":
    run_member(join)
