"""As `transformer`, with Kafka's Java client.

python -m tests.rebalance_kafka.peers.java_transformer ADDRESS NAME STOP_AFTER PROTOCOL
"""

import sys
import threading
from time import sleep
from typing import Any

from tests.rebalance_kafka.peers import transformer
from tests.rebalance_kafka.peers.jvm import (
    CONSUMER,
    SERIALIZATION,
    make_consumer,
    poll,
    properties,
    start_jvm,
)
from tests.rebalance_kafka.peers.transformer import GROUP, INPUT, OUTPUT

COMMON = "org.apache.kafka.common"
PRODUCER = "org.apache.kafka.clients.producer"


def run(address: str, name: str, stop_after: int, protocol: str) -> None:
    """Work until the process is killed, or its standard input ends as the process that started it does."""
    threading.Thread(target=transformer.exit_with_parent, daemon=True).start()
    start_jvm()
    from jpype import JArray, JByte, JClass, JException

    writes = f"{SERIALIZATION}.ByteArraySerializer"
    producer = JClass(f"{PRODUCER}.KafkaProducer")(
        properties(
            {
                "bootstrap.servers": address,
                "client.id": name,
                "transactional.id": name,
                "key.serializer": writes,
                "value.serializer": writes,
                "reconnect.backoff.max.ms": 200,
            }
        )
    )
    producer.initTransactions()
    consumer = make_consumer(
        {
            "bootstrap.servers": address,
            "client.id": name,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "max.poll.records": transformer.AT_ONCE,
            "reconnect.backoff.max.ms": 200,
            **transformer.of_protocol(protocol),
        }
    )
    consumer.subscribe(JClass("java.util.ArrayList")([INPUT]))
    number = JClass("java.lang.Integer")
    record, place = JClass(f"{PRODUCER}.ProducerRecord"), JClass(f"{COMMON}.TopicPartition")
    offset_of, offsets = JClass(f"{CONSUMER}.OffsetAndMetadata"), JClass("java.util.HashMap")
    done = 0
    while True:
        found = poll(consumer, transformer.POLL_SECONDS)
        if not found:
            continue
        producer.beginTransaction()
        positions: Any = offsets()
        try:
            for topic, partition, offset, value in found:
                made = JArray(JByte)(list(value.upper()))
                producer.send(record(OUTPUT, number(partition), None, made))
                positions.put(place(topic, partition), offset_of(offset + 1))
            producer.flush()
            if done == stop_after:
                sys.stdout.write("in a transaction\n")
                sys.stdout.flush()
                sleep(transformer.SECONDS)
            producer.sendOffsetsToTransaction(positions, consumer.groupMetadata())
            producer.commitTransaction()
        except JException:  # the coordinator has given its partitions to others, or has moved
            producer.abortTransaction()
            rewind(consumer)
        else:
            done += 1


def rewind(consumer: Any) -> None:
    """Go back to the committed offsets, since the records after them are not transformed."""
    for where, committed in consumer.committed(consumer.assignment()).items():
        consumer.seek(where, 0 if committed is None else committed.offset())


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
