"""A process that reads records, writes them in upper case and commits both in transactions (librdkafka).

    python -m tests.rebalance_kafka.peers.transformer ADDRESS NAME STOP_AFTER PROTOCOL

NAME is its transactional id, and PROTOCOL the group.protocol. In the transaction after STOP_AFTER others, it
prints a line when its records are written, and waits to be killed in the middle of a transaction.
"""

import os
import sys
import threading
from time import sleep
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer

GROUP, INPUT, OUTPUT = "transformers", "input", "output"
AT_ONCE = 7
POLL_SECONDS = 0.05
SECONDS = 60.0


def transform(message: Message) -> bytes:
    value: Any = message.value()
    return bytes(value).upper()


def exit_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def of_protocol(protocol: str) -> dict[str, Any]:
    """Return the settings of a consumer that depend on the protocol of its group."""
    if protocol == "consumer":
        return {"group.protocol": protocol}
    return {"session.timeout.ms": 2_000, "heartbeat.interval.ms": 100}


def run(address: str, name: str, stop_after: int, protocol: str) -> None:
    """Work until the process is killed, or its standard input ends as the process that started it does."""
    threading.Thread(target=exit_with_parent, daemon=True).start()
    common = {
        "bootstrap.servers": address,
        "client.id": name,
        "log_level": 0,
        "reconnect.backoff.max.ms": 200,
        # librdkafka 2.16 sends offsets to the broker object from before a rebootstrap, and waits without end
        "metadata.recovery.strategy": "none",
    }
    producer = Producer({**common, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(SECONDS)
    consumer = Consumer(
        {
            **common,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20,
            **of_protocol(protocol),
        }
    )
    consumer.subscribe([INPUT])
    done = 0
    while True:
        messages = [each for each in consumer.consume(AT_ONCE, POLL_SECONDS) if not each.error()]
        if not messages:
            continue
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(OUTPUT, transform(message), partition=message.partition())
            producer.flush(SECONDS)
            if done == stop_after:
                sys.stdout.write("in a transaction\n")
                sys.stdout.flush()
                sleep(SECONDS)
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SECONDS)
            producer.commit_transaction(SECONDS)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(SECONDS)
            rewind(consumer)
        else:
            done += 1


def rewind(consumer: Consumer) -> None:
    """Go back to the committed offsets, since the records after them are not transformed."""
    for place in consumer.committed(consumer.assignment(), SECONDS):
        place.offset = max(place.offset, 0)
        consumer.seek(place)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
