"""A peer with our own consumer."""

from coordinator_core.model import TopicPartition
from rebalance_kafka import Consumer
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import AdminClient
from tests.rebalance_kafka.peers.line_protocol import Notes, Options, Partition, run_member


class Listener:
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def on_partitions_revoked(self, partitions):
        self.notes.event("revoked", partitions)

    def on_partitions_assigned(self, partitions):
        self.notes.begins_anew(partitions)
        self.notes.event("assigned", partitions)

    def on_partitions_lost(self, partitions):
        self.notes.event("lost", partitions)


class RebalanceLabMember:
    def __init__(self, options: Options, notes: Notes) -> None:
        self.options, self.notes = options, notes
        settings = {
            "client.id": options.client_id,
            "group.instance.id": options.instance_id,
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": options.heartbeat_interval_ms,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.max.wait.ms": 100,
        }
        self.consumer = Consumer(
            *options.topics,
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            strategy=options.strategy,
            settings=settings,
            listener=Listener(notes),
        )

    async def poll(self, seconds: float) -> None:
        for record in await self.consumer.poll(seconds):
            self.notes.record(record.topic, record.partition, record.offset, record.value or b"")

    async def assignment(self) -> list[Partition]:
        return [(topic, number) for topic, number in self.consumer.assignment]

    async def identity(self) -> tuple[str | None, int | None]:
        return self.consumer.member_id or None, self.consumer.generation

    async def commit(self, offsets: dict[Partition, int]) -> None:
        await self.consumer.commit({TopicPartition(*p): at for p, at in offsets.items()})

    async def committed(self, partitions: list[Partition]) -> dict[Partition, int | None]:
        async with AdminClient(places_of(self.options.bootstrap, "bootstrap")) as admin:
            found = await admin.committed(self.options.group)
        return {p: found.get(p) for p in partitions}

    async def close(self) -> None:
        await self.consumer.close()


async def join(options: Options, notes: Notes) -> RebalanceLabMember:
    member = RebalanceLabMember(options, notes)
    await member.consumer.start()
    return member


if __name__ == "__main__":
    run_member(join)
