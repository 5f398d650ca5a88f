"""Requests of other projects' administration clients and producers, in the test's own process."""

import pytest

from tests.rebalance_kafka.records import AT_MS

pytestmark = pytest.mark.peer

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin = pytest.importorskip("confluent_kafka.admin")

SECONDS = 60.0
QUIET = {"log_level": 0}


def confluent_admin(broker):
    return admin.AdminClient({"bootstrap.servers": broker.address, **QUIET})


def each_result(futures):
    """Wait for the results by name or partition."""
    return {key: future.result(SECONDS) for key, future in futures.items()}


def produced(broker, times, **settings):
    """Write a record for each time to partition 0 of orders, in one batch."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 500, **QUIET, **settings}
    )
    for at_ms in times:
        producer.produce("orders", b"value", partition=0, timestamp=at_ms)
    assert producer.flush(SECONDS) == 0


def test_the_topics_are_listed_to_librdkafka(kafka_broker):
    """Version 2.16 adds a tagged field to Metadata that no schema has (KIP-482)."""
    broker = kafka_broker(topics={"orders": 3})
    settings = {"bootstrap.servers": broker.address, **QUIET}
    for client in (admin.AdminClient(settings), confluent_kafka.Producer(settings)):
        topics = client.list_topics(timeout=SECONDS).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"orders": 3}


def error_of(future):
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        future.result(SECONDS)
    return caught.value.args[0]


def test_topics_are_created_configured_and_deleted_by_librdkafka(kafka_broker):
    broker = kafka_broker(topics={"orders": 1})
    client = confluent_admin(broker)
    topics = [
        admin.NewTopic("bad", 2, config={"retention.ms": "minus"}),
        admin.NewTopic("good", 2, config={"retention.ms": "1000"}),
    ]
    created = client.create_topics(topics)
    assert error_of(created["bad"]).code() == confluent_kafka.KafkaError.INVALID_CONFIG
    created["good"].result(SECONDS)
    good = admin.ConfigResource("topic", "good")
    good.add_incremental_config(
        admin.ConfigEntry("segment.ms", "5", incremental_operation=admin.AlterConfigOpType.SET)
    )
    each_result(client.incremental_alter_configs([good]))
    (configs,) = each_result(client.describe_configs([good])).values()
    own = {name: entry.value for name, entry in configs.items() if not entry.is_default}
    assert own == {"retention.ms": "1000", "segment.ms": "5"}
    each_result(client.delete_topics(["good"]))
    assert broker.topics == {"orders": 1}
    (described,) = each_result(client.describe_topics(confluent_kafka.TopicCollection(["orders"]))).values()
    assert [partition.leader.id for partition in described.partitions] == [1]


def test_a_topic_that_is_created_again_has_no_committed_offsets(kafka_broker):
    broker = kafka_broker(topics={"orders": 1, "others": 1})
    produced(broker, range(AT_MS, AT_MS + 10))
    settings = {"bootstrap.servers": broker.address, "group.id": "g", **QUIET}
    member, client = confluent_kafka.Consumer(settings), confluent_admin(broker)
    both = [confluent_kafka.TopicPartition(topic, 0, 7) for topic in ("orders", "others")]
    member.commit(offsets=both, asynchronous=False)
    each_result(client.delete_topics(["orders"]))
    broker.create_topics({"orders": 1})
    read = member.committed(both, timeout=SECONDS)
    member.close()
    assert [partition.offset for partition in read] == [confluent_kafka.OFFSET_INVALID, 7]
