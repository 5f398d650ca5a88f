"""Real clients write, read and commit through a network with faults. Their history breaks no rule.

    python -m tests.rebalance_kafka.faulty_network [RUNS] [SEED] [STATEMENT]

The broker is a process of ``rebalance-lab serve``. A seed gives the faults, their order and their times,
which clients meet in other places each time. When the network is whole again, every client finishes its work.
The broker's process runs the statement first.
"""

import asyncio
import logging
import sys
from collections import Counter
from itertools import product
from random import Random
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AiokafkaPlace

from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from tests.rebalance_kafka.history import History, Kind, Log, Outcome, broken_rules
from tests.rebalance_kafka.proxy import FAULT_SECONDS, Proxy, strike
from tests.rebalance_kafka.served import Served
from tests.rebalance_kafka.stand import Line

TOPIC, PARTITIONS = "orders", 2
RECORDS = 25
"""Records that each producer writes to each partition, and offsets that each group commits."""

PATIENCE_MS = 1_000
"""How long a client waits for a response. A record is sent again until it is acknowledged."""

LIMIT_SECONDS = 60.0


class Client(Protocol):
    """A producer and a consumer of a library. A call raises an error if its outcome is not known."""

    keeps_a_late_answer: bool
    """``committed`` returns the response to an earlier call that timed out, if it has come since."""

    async def produce(self, partition: int, value: bytes) -> int:
        """Write a record and return its offset."""
        ...

    async def read(self) -> list[tuple[int, int, bytes]]:
        """Return partitions, offsets and values of the next records, as soon as there are some."""
        ...

    async def commit(self, offset: int) -> None:
        """Commit an offset of partition 0."""
        ...

    async def committed(self) -> int:
        """Return the committed offset of partition 0, -1 without one."""
        ...

    async def close(self) -> None:
        """End all connections."""
        ...


class KafkaPython:
    """kafka-python, whose calls are made in threads."""

    keeps_a_late_answer = True  # 3.0.12: seen with a response that was delayed past the first call's time

    def __init__(self, address: str) -> None:
        common = {
            "bootstrap_servers": address,
            "request_timeout_ms": PATIENCE_MS,
            "reconnect_backoff_max_ms": 200,
        }
        self._producer = kafka.KafkaProducer(
            **common, enable_idempotence=True, linger_ms=0, delivery_timeout_ms=LIMIT_SECONDS * 1_000
        )
        self._consumer = kafka.KafkaConsumer(
            **{**common, "request_timeout_ms": 2 * PATIENCE_MS},
            session_timeout_ms=PATIENCE_MS,
            heartbeat_interval_ms=300,
            group_id="kafka-python",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
        )
        places = [kafka.TopicPartition(TOPIC, n) for n in range(PARTITIONS)]
        self._consumer.assign(places)
        for place in places:
            self._consumer.seek(place, 0)  # not to the committed offset
        self._place = places[0]

    async def produce(self, partition: int, value: bytes) -> int:
        def send() -> int:
            future = self._producer.send(TOPIC, value, partition=partition)
            return int(future.get(LIMIT_SECONDS).offset)

        return await asyncio.to_thread(send)

    async def read(self) -> list[tuple[int, int, bytes]]:
        found = await asyncio.to_thread(self._consumer.poll, 100)
        return [(each.partition, each.offset, each.value) for rows in found.values() for each in rows]

    async def commit(self, offset: int) -> None:
        offsets = {self._place: kafka.OffsetAndMetadata(offset, "", -1)}
        await asyncio.to_thread(self._consumer.commit, offsets, 2 * PATIENCE_MS)

    async def committed(self) -> int:
        found = await asyncio.to_thread(self._consumer.committed, self._place, False, 2 * PATIENCE_MS)
        return -1 if found is None else int(found)

    async def close(self) -> None:
        await asyncio.to_thread(self._producer.close, 5)
        await asyncio.to_thread(self._consumer.close)


class Aiokafka:
    """aiokafka."""

    keeps_a_late_answer = False

    def __init__(self, address: str) -> None:
        common = {"bootstrap_servers": address, "request_timeout_ms": PATIENCE_MS}
        self._producer = AIOKafkaProducer(**common, enable_idempotence=True)
        self._consumer = AIOKafkaConsumer(
            **common,
            session_timeout_ms=PATIENCE_MS,
            heartbeat_interval_ms=300,
            group_id="aiokafka",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
        )
        self._place = AiokafkaPlace(TOPIC, 0)
        self._is_started = False

    async def _start(self) -> None:
        if not self._is_started:
            self._is_started = True
            await self._producer.start()
            await self._consumer.start()
            places = [AiokafkaPlace(TOPIC, n) for n in range(PARTITIONS)]
            self._consumer.assign(places)
            for place in places:
                self._consumer.seek(place, 0)

    async def produce(self, partition: int, value: bytes) -> int:
        sent = await self._producer.send_and_wait(TOPIC, value, partition=partition)
        return int(sent.offset)

    async def read(self) -> list[tuple[int, int, bytes]]:
        found = await self._consumer.getmany(timeout_ms=100)
        return [(each.partition, each.offset, each.value) for rows in found.values() for each in rows]

    async def commit(self, offset: int) -> None:
        await asyncio.wait_for(self._consumer.commit({self._place: offset}), 2 * PATIENCE_MS / 1_000)

    async def committed(self) -> int:
        found = await asyncio.wait_for(self._consumer.committed(self._place), 2 * PATIENCE_MS / 1_000)
        return -1 if found is None else int(found)

    async def close(self) -> None:
        await self._producer.stop()
        await self._consumer.stop()


class Confluent:
    """confluent-kafka, which is librdkafka. Its calls are made in threads."""

    keeps_a_late_answer = False

    def __init__(self, address: str) -> None:
        common = {
            "bootstrap.servers": address,
            "socket.timeout.ms": PATIENCE_MS,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
        self._producer = confluent_kafka.Producer(
            common | {"enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": LIMIT_SECONDS * 1_000}
        )
        self._consumer = confluent_kafka.Consumer(
            common
            | {
                "group.id": "confluent",
                "session.timeout.ms": PATIENCE_MS,
                "heartbeat.interval.ms": 300,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        places = [confluent_kafka.TopicPartition(TOPIC, n, 0) for n in range(PARTITIONS)]
        self._consumer.assign(places)

    async def produce(self, partition: int, value: bytes) -> int:
        def send() -> int:
            told: list[tuple[Any, Any]] = []
            self._producer.produce(
                TOPIC, value, partition=partition, on_delivery=lambda *each: told.append(each)
            )
            self._producer.flush(LIMIT_SECONDS)
            ((error, message),) = told
            if error is not None:
                raise confluent_kafka.KafkaException(error)
            return int(message.offset())

        return await asyncio.to_thread(send)

    async def read(self) -> list[tuple[int, int, bytes]]:
        found = await asyncio.to_thread(self._consumer.consume, 100, 0.1)
        return [(each.partition(), each.offset(), each.value()) for each in found if each.error() is None]

    async def commit(self, offset: int) -> None:
        def commit() -> None:
            place = confluent_kafka.TopicPartition(TOPIC, 0, offset)
            (done,) = self._consumer.commit(offsets=[place], asynchronous=False)
            if done.error is not None:
                raise confluent_kafka.KafkaException(done.error)

        await asyncio.to_thread(commit)

    async def committed(self) -> int:
        places = [confluent_kafka.TopicPartition(TOPIC, 0)]
        (found,) = await asyncio.to_thread(self._consumer.committed, places, 2 * PATIENCE_MS / 1_000)
        if found.error is not None:
            raise confluent_kafka.KafkaException(found.error)
        return max(-1, int(found.offset))

    async def close(self) -> None:
        await asyncio.to_thread(self._consumer.close)


CLIENTS = (KafkaPython, Aiokafka, Confluent)


class Result(NamedTuple):
    """A run: the rules that are broken, the operations by kind and outcome, and the faults that happened."""

    broken: list[str]
    operations: Counter[tuple[str, str]]
    faults: Counter[str]


async def _write(name: str, client: Client, history: History, numbers: range) -> None:
    """Write records to each partition. aiokafka gives up if it does not get a topic's metadata in time."""
    for number, partition in product(numbers, range(PARTITIONS)):
        value, began = b"%s %d %d" % (name.encode(), partition, number), history.begin()
        try:
            offset, outcome = await client.produce(partition, value), Outcome.OK
        except Exception:  # each library has its own
            offset, outcome = -1, Outcome.UNKNOWN
        history.end(name, Kind.PRODUCE, partition, began, outcome, offset, value)
        await asyncio.sleep(FAULT_SECONDS / RECORDS / PARTITIONS)


async def _commit_and_read(name: str, client: Client, history: History, is_over: asyncio.Event) -> None:
    """Commit and read until the network is whole, and all acknowledged records are read, of all clients."""
    offset, is_last, read = 0, False, set[tuple[int, int]]()
    asked: int | None = None  # the begin of a read whose response may still come
    while not is_last or not read >= history.acknowledged():
        is_last = is_over.is_set()
        offset += 1
        began = history.begin()
        try:
            await client.commit(offset)
            history.end(name, Kind.COMMIT, 0, began, Outcome.OK, offset)
        except Exception:
            history.end(name, Kind.COMMIT, 0, began, Outcome.UNKNOWN, offset)
            is_last = False
        began = asked or history.begin()
        try:
            found = await client.committed()
            history.end(name, Kind.COMMITTED, 0, began, Outcome.OK, found)
            asked = None
        except Exception:
            history.end(name, Kind.COMMITTED, 0, began, Outcome.UNKNOWN)
            is_last, asked = False, began if client.keeps_a_late_answer else None
        for partition, at, value in await client.read():
            history.end(name, Kind.FETCH, partition, history.begin(), Outcome.OK, at, value)
            read.add((partition, at))


async def _log(address: str) -> Log:
    """Read all records, past the proxy."""
    line, log = await Line.to(address), {}
    for partition in range(PARTITIONS):
        log[partition] = list[tuple[int, bytes]]()
        at = 0
        while True:
            row = {"partition": partition, "fetch_offset": at, "partition_max_bytes": 10**7}
            topics = ({"topic": TOPIC, "topic_id": None, "partitions": (row,)},)
            body = await line.ask(Api.FETCH, 11, topics=topics, max_bytes=10**7)
            records, _ = records_of(body.responses[0].partitions[0].records)
            if not records:
                break
            log[partition] += [(each.offset, each.value) for each in records]
            at = records[-1].offset + 1
    await line.close()
    return log


async def _run(seed: int, before: str) -> Result:
    history, over = History(), asyncio.Event()
    async with Proxy() as proxy:
        options = ("--topic", f"{TOPIC}={PARTITIONS}", "--advertise", proxy.address)
        settings = ("--set", "group.min.session.timeout.ms=500")
        with Served(*options, *settings, before=before) as broker:
            proxy.broker = await asyncio.to_thread(broker.address)
            clients = {kind.__name__: await _started(kind, proxy.address) for kind in CLIENTS}
            striking = asyncio.create_task(strike(proxy, Random(seed)))
            reading = [
                asyncio.create_task(_commit_and_read(*each, history, over)) for each in clients.items()
            ]
            async with asyncio.timeout(LIMIT_SECONDS):
                await asyncio.gather(*(_write(*each, history, range(RECORDS)) for each in clients.items()))
                faults = await striking
                late = range(RECORDS, RECORDS + 1)
                await asyncio.gather(*(_write(*each, history, late) for each in clients.items()))
                over.set()
                await asyncio.gather(*reading)
            log = await _log(proxy.broker)
            await asyncio.gather(*(client.close() for client in clients.values()))
    counted = Counter((each.kind.value, each.outcome.value) for each in history.operations)
    return Result([*broken_rules(history.operations, log), *_cannot_write(history)], counted, faults)


def _cannot_write(history: History) -> list[str]:
    """Return the last writes that are not acknowledged: the network was whole."""
    writes = [each for each in history.operations if each.kind is Kind.PRODUCE]
    last = {(each.client, each.partition): each for each in writes}
    return [
        f"a write without faults has failed: {each}"
        for each in last.values()
        if each.outcome is not Outcome.OK
    ]


async def _started(kind: type[Any], address: str) -> Client:
    """Make a client, connect it, and let it commit for the first time."""
    client = kind(address) if kind is Aiokafka else await asyncio.to_thread(kind, address)
    if kind is Aiokafka:
        await client._start()
    return client  # type: ignore[no-any-return]


def run(seed: int, before: str = "pass") -> Result:
    """Let clients work for some seconds, and return what is wrong with their history.

    ``before``: a statement that the broker's process runs first.
    """
    levels = {name: logging.getLogger(name).level for name in ("kafka", "aiokafka")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_run(seed, before))
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def main(runs: str = "20", seed: str = "1", before: str = "pass") -> int:
    """Print a line for each run, and what is wrong. Return 1 if anything is."""
    status = 0
    for number in range(int(seed), int(seed) + int(runs)):
        result = run(number, before)
        counted = ", ".join(
            f"{kind} {end} {count}" for (kind, end), count in sorted(result.operations.items())
        )
        sys.stdout.write(f"seed {number}: {result.faults.total()} faults; {counted}\n")
        for broken in result.broken:
            sys.stdout.write(f"  {broken}\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
