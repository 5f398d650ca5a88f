"""A broker with our consumers, and records from kafka-python's requests, on one event loop."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.outcome import ConsumedRecord
from coordinator_core.model import TopicPartition
from rebalance_kafka import Consumer, EmbeddedBroker
from rebalance_kafka.wire.apis import VERSIONS, Api
from tests.rebalance_kafka.frames import read_by_them, their_class, their_frame
from tests.rebalance_kafka.records import batch

SECONDS = 120.0
POLL_SECONDS = 0.02
BY_NAME = 12
"""The last version of Produce, and of Fetch, in which topics have names."""
BROKER = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}
MEMBER = {
    "heartbeat.interval.ms": 50,
    "session.timeout.ms": 10_000,
    "retry.backoff.ms": 20,
    "fetch.max.wait.ms": 50,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine with a time limit. Fail if the event loop reports an error."""
    unseen: list[dict[str, Any]] = []

    async def in_time() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        async with asyncio.timeout(SECONDS):
            await work
        gc.collect()

    asyncio.run(in_time())
    assert unseen == [], [str(each) for each in unseen]


def broker(topics: Mapping[str, int] | None = None, **options: Any) -> EmbeddedBroker:
    """Return a broker without an initial rebalance delay."""
    settings = BROKER | options.pop("settings", {})
    return EmbeddedBroker({"t": 4} if topics is None else topics, settings=settings, **options)


def member(of: EmbeddedBroker | str, *topics: str, **options: Any) -> Consumer:
    """Return a consumer of group ``g``, on topic ``t`` by default. A topic None subscribes to nothing."""
    settings = MEMBER | options.pop("settings", {})
    address = of if isinstance(of, str) else of.address
    options = {"bootstrap_servers": address, "group_id": "g", "seed": 1} | options
    return Consumer(*(topics or ("t",)), settings=settings, **options)


class Told:
    """A listener that records its calls, and raises in those that ``raising`` names."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.raising: tuple[str, ...] = ()

    def _hear(self, what: str, partitions: tuple[TopicPartition, ...]) -> None:
        if partitions:
            self.calls.append((what, [tp.partition for tp in partitions]))
        if what in self.raising:
            raise ValueError(f"the listener does not like what is {what}")

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._hear("revoked", partitions)

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._hear("assigned", partitions)

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._hear("lost", partitions)


async def ask(address: str, api: Api, version: int | None = None, **values: Any) -> Any:
    """Send a request of kafka-python and return the response as kafka-python reads it."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        version = VERSIONS[api][1] if version is None else version
        return await exchange(reader, writer, api, version, their_frame(api, version, **values))
    finally:
        writer.close()
        await writer.wait_closed()


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, api: Api, version: int, frame: bytes
) -> Any:
    """Send a frame on a connection and return the response."""
    writer.write(len(frame).to_bytes(4, "big") + frame)
    size = await reader.readexactly(4)
    answer = await reader.readexactly(int.from_bytes(size, "big"))
    return read_by_them(api, version, "Response", size + answer)


async def produce(address: str, partition: int, *values: bytes, topic: str = "t") -> None:
    """Write records, each in a separate batch."""
    cls = their_class(Api.PRODUCE, "Request").TopicProduceData
    data = cls.PartitionProduceData(index=partition, records=b"".join(batch(each) for each in values))
    named = [cls(name=topic, partition_data=[data])]
    answer = await ask(address, Api.PRODUCE, BY_NAME, acks=-1, timeout_ms=1_000, topic_data=named)
    (part,) = answer.responses[0].partition_responses
    assert part.error_code == 0


Read = dict[Consumer, list[ConsumedRecord]]


async def polled(*consumers: Consumer, until: Callable[[Read], object]) -> Read:
    """Poll all consumers until a condition of the records holds."""
    read: Read = {each: [] for each in consumers}
    while not until(read):
        answers = await asyncio.gather(*(each.poll(POLL_SECONDS) for each in consumers))
        for each, records in zip(consumers, answers, strict=True):
            read[each] += records
    return read


def is_settled(*consumers: Consumer, partitions: int = 4) -> bool:
    """Return whether the consumers are in one generation and share all partitions, each with some."""
    if not all(each.assignment for each in consumers):
        return False
    owned = [tp for each in consumers for tp in each.assignment]
    generations = {each.generation for each in consumers}
    stable = all(each.state is MemberState.STABLE for each in consumers)
    return stable and len(generations) == 1 and len(owned) == len(set(owned)) == partitions


async def settled(*consumers: Consumer, partitions: int = 4) -> Read:
    """Poll all consumers until they share all partitions."""
    return await polled(*consumers, until=lambda _: is_settled(*consumers, partitions=partitions))


async def values(consumer: Consumer, count: int) -> list[bytes | None]:
    """Return the values of the next records, sorted."""
    read = await polled(consumer, until=lambda read: len(read[consumer]) >= count)
    return sorted(each.value for each in read[consumer])
