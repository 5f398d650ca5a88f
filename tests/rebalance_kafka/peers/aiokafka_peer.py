"""A peer with aiokafka."""

from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.rebalance_kafka.peers.line_protocol import Notes, Options, Partition, run_member

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


def pairs(partitions: Iterable[TopicPartition]) -> list[Partition]:
    return [(p.topic, p.partition) for p in partitions]


class Listener(ConsumerRebalanceListener):
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def on_partitions_revoked(self, revoked):
        self.notes.event("revoked", pairs(revoked))

    def on_partitions_assigned(self, assigned):
        self.notes.begins_anew(pairs(assigned))
        self.notes.event("assigned", pairs(assigned))


class AiokafkaMember:
    def __init__(self, options: Options, notes: Notes) -> None:
        self.notes = notes
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            group_instance_id=options.instance_id,
            client_id=options.client_id,
            partition_assignment_strategy=[ASSIGNORS[options.strategy]],
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
        )

    async def poll(self, seconds: float) -> None:
        found = await self.consumer.getmany(timeout_ms=int(seconds * 1_000))
        for records in found.values():
            for record in records:
                self.notes.record(record.topic, record.partition, record.offset, record.value)

    async def assignment(self) -> list[Partition]:
        return pairs(self.consumer.assignment())

    async def identity(self) -> tuple[str | None, int | None]:
        coordinator = self.consumer._coordinator  # it has no public way to tell
        return coordinator.member_id or None, coordinator.generation

    async def commit(self, offsets: dict[Partition, int]) -> None:
        await self.consumer.commit({TopicPartition(*p): at for p, at in offsets.items()})

    async def committed(self, partitions: list[Partition]) -> dict[Partition, int | None]:
        return {p: await self.consumer.committed(TopicPartition(*p)) for p in partitions}

    async def close(self) -> None:
        await self.consumer.stop()


async def join(options: Options, notes: Notes) -> AiokafkaMember:
    """Subscribed after the start, for a start with topics waits until the group is there."""
    member = AiokafkaMember(options, notes)
    await member.consumer.start()
    member.consumer.subscribe(options.topics, listener=Listener(notes))
    return member


if __name__ == "__main__":
    run_member(join)
