"""A peer with Kafka's Java client."""

import jpype

from tests.rebalance_kafka.peers.jvm import CONSUMER, make_consumer, of_strategy, pairs, poll, subscribe
from tests.rebalance_kafka.peers.line_protocol import Notes, Options, Partition, run_member


class JavaMember:
    """Notes what moves. What an eager member gets again after it was revoked is read from the commit on."""

    def __init__(self, options: Options, notes: Notes) -> None:
        self.notes = notes
        strategy = of_strategy(options.strategy)
        times = {
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": options.heartbeat_interval_ms,
        }
        self.consumer = make_consumer(
            {
                "bootstrap.servers": options.bootstrap,
                "group.id": options.group,
                "client.id": options.client_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.max.wait.ms": 100,
                **({} if "group.protocol" in strategy else times),
                **({} if options.instance_id is None else {"group.instance.id": options.instance_id}),
                **strategy,
            }
        )
        subscribe(self.consumer, options.topics, self._called)

    def _called(self, event: str, partitions: list[Partition]) -> None:
        if event == "assigned":
            self.notes.begins_anew(partitions)
        self.notes.event(event, partitions)

    async def poll(self, seconds: float) -> None:
        for record in poll(self.consumer, seconds):
            self.notes.record(*record)

    async def assignment(self) -> list[Partition]:
        return pairs(self.consumer.assignment())

    async def identity(self) -> tuple[str | None, int | None]:
        member = self.consumer.groupMetadata()
        return str(member.memberId()) or None, int(member.generationId())

    async def commit(self, offsets: dict[Partition, int]) -> None:
        made = jpype.JClass("java.util.HashMap")()
        for partition, offset in offsets.items():
            made.put(_partition(partition), jpype.JClass(f"{CONSUMER}.OffsetAndMetadata")(offset))
        self.consumer.commitSync(made)

    async def committed(self, partitions: list[Partition]) -> dict[Partition, int | None]:
        asked = jpype.JClass("java.util.HashSet")([_partition(p) for p in partitions])
        found = self.consumer.committed(asked)
        at = {p: found.get(_partition(p)) for p in partitions}
        return {p: None if offset is None else int(offset.offset()) for p, offset in at.items()}

    async def close(self) -> None:
        self.consumer.close()


def _partition(partition: Partition) -> object:
    return jpype.JClass("org.apache.kafka.common.TopicPartition")(*partition)


async def join(options: Options, notes: Notes) -> JavaMember:
    return JavaMember(options, notes)


if __name__ == "__main__":
    run_member(join)
