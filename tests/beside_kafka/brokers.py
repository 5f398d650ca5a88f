"""The two brokers that are compared: a real Kafka, and ``rebalance-lab serve`` with the same topics."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from uuid import UUID

from coordinator_core.coordinator.kafka_versions import VersionedSettings
from rebalance_kafka.broker.schema import checksum_of, connect
from rebalance_kafka.broker.store import FILE, Store
from tests.beside_kafka.steps import SHARED
from tests.real_kafka.broker import Kafka
from tests.real_kafka.versions import line
from tests.real_kafka.wire import Key, answers, ask
from tests.rebalance_kafka.served import Served

TRIES = 200
LOOK = 0.1


class Broker(Protocol):
    """A broker that can be stopped and started again with its data."""

    address: str

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Serve:
    """``rebalance-lab serve`` of Kafka's version as a process, with a folder and the shared topics.

    ``topic_ids``: the ids that Kafka gave to these topics, which assignments depend on.
    """

    def __init__(self, folder: Path, settings: Mapping[str, object], topic_ids: Mapping[str, str]) -> None:
        self._folder, self.address = folder, "127.0.0.1:0"
        version = VersionedSettings(kafka=line())
        known = {name: value for name, value in settings.items() if version.has_setting(name)}
        named = {"kafka": version.kafka, **known}
        self._options = [text for name, value in named.items() for text in ("--set", f"{name}={value}")]
        self._process: Served | None = None
        _write_topics(folder, topic_ids)

    def start(self) -> None:
        self._process = Served("--data-dir", self._folder, *self._options, listen=self.address)
        self.address = self._process.address()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.terminate()
                process.ended()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _write_topics(folder: Path, topic_ids: Mapping[str, str]) -> None:
    """Create the shared topics in a broker's folder, with these ids."""
    store = Store(folder)
    store.save_topics(SHARED)
    store.close()
    with closing(connect(str(folder / FILE))) as sql:
        for topic, number in topic_ids.items():
            sql.execute("update topics set uuid = ? where name = ?", (UUID(number).bytes, topic))
        sql.execute(f"update topics set checksum = {checksum_of('topics')}")


@contextmanager
def started(
    folder: Path,
    settings: Mapping[str, object],
    *,
    twice: bool,
    kafka: str | None = None,
    other: str | None = None,
) -> Iterator[tuple[str, str, tuple[Broker, ...]]]:
    """Start the brokers that have no address yet.

    Give both addresses, and both brokers if both were started.
    """
    with ExitStack() as stack:
        brokers: list[Broker] = []
        if kafka is None:
            first = stack.enter_context(Kafka(folder / "kafka", settings))
            brokers.append(first)
            kafka = first.address
            if other is None and twice:  # with the same topics, and their ids
                asyncio.run(with_topics(kafka))
                first.stop()
                brokers.append(stack.enter_context(Kafka(folder / "again", settings, copy_of=first)))
                first.start()
                other = brokers[1].address
        if other is None:
            topic_ids = asyncio.run(with_topics(kafka))
            serve = stack.enter_context(Serve(folder / "serve", settings, topic_ids))
            brokers.append(serve)
            other = serve.address
        yield kafka, other, tuple(brokers) if len(brokers) == 2 else ()


async def with_topics(address: str) -> dict[str, str]:
    """Create the shared topics where they do not exist, and return their ids once all can be used."""
    while not await answers(address):
        await asyncio.sleep(LOOK)
    topics = [
        {"name": name, "num_partitions": size, "replication_factor": 1, "assignments": [], "configs": []}
        for name, size in SHARED.items()
    ]
    await ask(address, Key.CREATE_TOPICS, 7, {"topics": topics, "timeout": 30_000, "validate_only": False})
    named = {"topics": [{"name": name, "topic_id": None} for name in SHARED]}
    asked = {**named, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
    for _ in range(TRIES):
        found = (await ask(address, Key.METADATA, 12, asked))["topics"]
        sizes = {topic["name"]: len(topic["partitions"]) for topic in found}
        if sizes == SHARED:
            return {topic["name"]: topic["topic_id"] for topic in found}
        await asyncio.sleep(LOOK)
    raise TimeoutError(f"{address} has no topics {', '.join(SHARED)}")


async def versions_of(address: str) -> dict[int, tuple[int, int]]:
    """Return the lowest and the highest version of each API of a broker."""
    listed = (await ask(address, Key.API_VERSIONS, 0, {}))["api_keys"]
    return {row["api_key"]: (row["min_version"], row["max_version"]) for row in listed}
