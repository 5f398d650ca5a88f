"""The cells of the table: a scenario on the clients of one library, with one strategy."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rebalance_lab.simulation.process.turns import RECORD_BYTES
from tests.real_kafka.versions import line

SCENARIOS = Path(__file__).parent / "scenarios"
ORDER = (
    "exact-join-of-eight",
    "join-of-eight",
    "long-batches",
    "join",
    "leave",
    "crash",
    "comeback",
    "freeze",
    "rolling",
    "migration",
)
CLIENTS = ("kafka-python", "aiokafka", "librdkafka", "java", "franz-go", "rebalance-lab")

RECONCILED = "uniform-848+reconcile"
STRATEGIES = ("range", "cooperative-sticky", RECONCILED, "range-848+reconcile")
MIGRATIONS, MIGRATED = ("migration",), ("librdkafka", "java", "rebalance-lab")
"""Scenarios of a group that goes to the consumer protocol, and the clients that were run in them. Kafka
refuses to let groups of librdkafka go under cooperative-sticky."""
ONLY_EAGER = ("aiokafka",)
ONLY_CLASSIC = ("kafka-python", "aiokafka")
FETCHED_BYTES = 1_000
"""A fetch returns few records, so that the clients that wait with the next one change partitions often."""
FETCHED_RECORDS = 40
"""Two batches of the backlog are in these bytes. A third one is not whole."""

JAVA_APART = ["0ms", "500ms"]
"""How long members of Java take to start. Their heartbeats under KIP-848 stay as far apart as they began:
0.5 s for all members of a group, in the median of 30."""

OF_BROKER = ("session.timeout.ms", "heartbeat.interval.ms")
"""Settings that the brokers have for the groups which they reconcile, as ``group.consumer.*``."""


class Cell(NamedTuple):
    scenario: str
    client: str
    strategy: str

    @property
    def is_reconciled(self) -> bool:
        """Whether the coordinator moves partitions one by one, as KIP-848 says."""
        return self.strategy.endswith("+reconcile")

    @property
    def document(self) -> dict[str, Any]:
        """The document of the scenario, with the settings where this protocol has them."""
        document = document_of(self.scenario)
        if self.is_reconciled:
            config = document["config"]
            moved = {f"group.consumer.{name}": config.pop(name) for name in OF_BROKER}
            document["config"] = {**config, **moved}
            for member in document["members"] if self.client == "java" else ():
                member["start_up"] = JAVA_APART
        return document

    def __str__(self) -> str:
        return f"{self.scenario} {self.client} {self.strategy}"


def cells(
    scenarios: tuple[str, ...], clients: tuple[str, ...], strategies: tuple[str, ...]
) -> Iterator[Cell]:
    """Yield the cells of scenarios, clients and strategies that go together."""
    for scenario in scenarios:
        for client in clients:
            for strategy in strategies:
                cell = Cell(scenario, client, strategy)
                if scenario in MIGRATIONS:
                    is_refused = client == "librdkafka" and strategy != "range"
                    goes = client in MIGRATED and not cell.is_reconciled and not is_refused
                elif cell.is_reconciled:
                    goes = client not in ONLY_CLASSIC
                else:
                    goes = client not in ONLY_EAGER or strategy == "range"
                if goes:
                    yield cell


def document_of(scenario: str) -> dict[str, Any]:
    """Return the document of a scenario."""
    return yaml.safe_load((SCENARIOS / f"{scenario}.yaml").read_text(encoding="utf-8"))


def simulated_by(document: Mapping[str, Any], client: str) -> dict[str, Any]:
    """Return the document with the client library of all its members, and the chosen version of Kafka."""

    def of_client(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {**entry, "client": client}

    events = [
        {**event, "join": of_client(event["join"])} if "join" in event else event
        for event in document["events"]
    ]
    config = {**document["config"], "max.partition.fetch.bytes": FETCHED_RECORDS * RECORD_BYTES}
    members = [of_client(entry) for entry in document["members"]]
    return {**document, "kafka": line(), "members": members, "events": events, "config": config}
