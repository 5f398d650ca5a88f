"""A peer with kafka-python."""

from collections.abc import Iterable

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import MemberState, OffsetAndMetadata

from tests.rebalance_kafka.peers.line_protocol import Notes, Options, Partition, run_member

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
EAGER = ("range", "roundrobin")
JOIN_SECONDS = 1.0


def pairs(partitions: Iterable[TopicPartition] | None) -> list[Partition]:
    return [(p.topic, p.partition) for p in partitions or ()]


class Listener(ConsumerRebalanceListener):
    """Notes what moves.

    What an eager member gets again after it was revoked goes on where it was, not where the group has
    committed: kafka-python keeps its state.
    """

    def __init__(self, notes: Notes, *, eager: bool) -> None:
        self.notes = notes
        self.eager = eager
        self.kept: set[Partition] = set()

    def on_partitions_revoked(self, revoked):
        self.kept = set(pairs(revoked)) if self.eager else set()
        self.notes.event("revoked", pairs(revoked))

    def on_partitions_assigned(self, assigned):
        self.notes.begins_anew(set(pairs(assigned)) - self.kept)
        self.notes.event("assigned", pairs(assigned))

    def on_partitions_lost(self, lost):
        self.kept = set()
        self.notes.event("lost", pairs(lost))


class KafkaPythonMember:
    def __init__(self, options: Options, notes: Notes) -> None:
        self.notes = notes
        self.consumer = KafkaConsumer(
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
        self.consumer.subscribe(options.topics, listener=Listener(notes, eager=options.strategy in EAGER))
        self._learn(options.topics)

    def _learn(self, topics: list[str]) -> None:
        """Learn of the partitions before the first join.

        A leader that learns of them later joins again on its own; if a poll's time is over in the middle of
        that, kafka-python 3.0 never takes up what it is then assigned.
        """
        for topic in topics:
            self.consumer.partitions_for_topic(topic)

    async def poll(self, seconds: float) -> None:
        """Patient while it joins: what comes of a join between two polls, kafka-python 3.0 throws away."""
        joined = self.consumer.group_metadata().state is MemberState.STABLE
        found = self.consumer.poll(timeout_ms=int((seconds if joined else JOIN_SECONDS) * 1_000))
        for records in found.values():
            for record in records:
                self.notes.record(record.topic, record.partition, record.offset, record.value)

    async def assignment(self) -> list[Partition]:
        return pairs(self.consumer.assignment())

    async def identity(self) -> tuple[str | None, int | None]:
        member = self.consumer.group_metadata()
        return member.member_id or None, member.generation_id

    async def commit(self, offsets: dict[Partition, int]) -> None:
        self.consumer.commit({TopicPartition(*p): OffsetAndMetadata(at, "", -1) for p, at in offsets.items()})

    async def committed(self, partitions: list[Partition]) -> dict[Partition, int | None]:
        return {p: self.consumer.committed(TopicPartition(*p)) for p in partitions}

    async def close(self) -> None:
        self.consumer.close()


async def join(options: Options, notes: Notes) -> KafkaPythonMember:
    return KafkaPythonMember(options, notes)


if __name__ == "__main__":
    run_member(join)
