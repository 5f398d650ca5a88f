"""A client outside of groups with kafka-python: produces records and describes groups."""

from kafka import KafkaAdminClient, KafkaProducer

from tests.rebalance_kafka.peers.line_protocol import Answer, run_tool

SECONDS = 60


class KafkaPythonTool:
    def __init__(self, bootstrap: str) -> None:
        self.producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def produce(self, partitions: list[tuple[str, int]], count: int, first: int = 0) -> Answer:
        """Numbered records, dealt to the partitions in turn."""
        sent = []
        for i in range(first, first + count):
            topic, partition = partitions[i % len(partitions)]
            value = str(i)
            sent.append((value, self.producer.send(topic, value.encode(), partition=partition)))
        done = [(value, future.get(timeout=SECONDS)) for value, future in sent]
        return {"records": sorted((m.topic, m.partition, m.offset, value) for value, m in done)}

    def describe(self, group: str) -> Answer:
        reported = self.admin.describe_groups([group])[group]
        if reported["error"] and reported["group_state"] != "Dead":
            raise RuntimeError(reported["error"])
        members = [
            {
                "member_id": member["member_id"],
                "instance_id": member["group_instance_id"],
                "client_id": member["client_id"],
                "assignment": _assignment(member["member_assignment"]),
            }
            for member in reported["members"]
        ]
        return {"state": reported["group_state"], "protocol": reported["protocol_data"], "members": members}

    def close(self) -> None:
        self.producer.close()
        self.admin.close()


def _assignment(reported: dict | bytes) -> list[tuple[str, int]]:
    if not reported:
        return []
    return sorted((each["topic"], p) for each in reported["assigned_partitions"] for p in each["partitions"])


if __name__ == "__main__":
    run_tool(KafkaPythonTool)
