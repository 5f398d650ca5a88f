"""A client outside of groups with confluent-kafka: produces records and describes groups."""

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.rebalance_kafka.peers.line_protocol import Answer, run_tool

SECONDS = 60.0
NO_GROUP: Answer = {"state": "DEAD", "protocol": "", "members": []}


class ConfluentTool:
    def __init__(self, bootstrap: str) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def produce(self, partitions: list[tuple[str, int]], count: int, first: int = 0) -> Answer:
        """Numbered records, dealt to the partitions in turn."""
        done, failed = [], []

        def delivered(error, message) -> None:
            if error:
                failed.append(error)
            else:
                value = message.value().decode()
                done.append((message.topic(), message.partition(), message.offset(), value))

        for i in range(first, first + count):
            topic, partition = partitions[i % len(partitions)]
            self.producer.produce(topic, str(i).encode(), partition=partition, on_delivery=delivered)
        self.producer.flush(SECONDS)
        if failed:
            raise KafkaException(failed[0])
        if len(done) != count:
            raise TimeoutError(f"{len(done)} of {count} records are there")
        return {"records": sorted(done)}

    def describe(self, group: str) -> Answer:
        try:
            reported = self.admin.describe_consumer_groups([group], request_timeout=SECONDS)[group].result()
        except KafkaException as wrong:
            if wrong.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise
            return NO_GROUP
        members = [
            {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "assignment": sorted((p.topic, p.partition) for p in member.assignment.topic_partitions),
            }
            for member in reported.members
        ]
        return {"state": reported.state.name, "protocol": reported.partition_assignor, "members": members}

    def close(self) -> None:
        self.producer.flush(SECONDS)


if __name__ == "__main__":
    run_tool(ConfluentTool)
