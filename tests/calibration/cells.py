"""The cells of the table: a scenario on the clients of one library, with one strategy."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

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
)
MODELS = {
    "kafka-python": "kafka-python",
    "aiokafka": "aiokafka",
    "librdkafka": "librdkafka",
    "rebalance-lab": "rebalance-lab",
}
"""Each client, and the ``client`` that stands for it in a scenario."""

STRATEGIES = ("range", "cooperative-sticky")
ONLY_EAGER = ("aiokafka",)


class Cell(NamedTuple):
    scenario: str
    client: str
    strategy: str

    def __str__(self) -> str:
        return f"{self.scenario} {self.client} {self.strategy}"


def cells(
    scenarios: tuple[str, ...], clients: tuple[str, ...], strategies: tuple[str, ...]
) -> Iterator[Cell]:
    """Yield the cells of scenarios, clients and strategies that go together."""
    for scenario in scenarios:
        for client in clients:
            for strategy in strategies:
                if client not in ONLY_EAGER or strategy == "range":
                    yield Cell(scenario, client, strategy)


def document_of(scenario: str) -> dict[str, Any]:
    """Return the document of a scenario."""
    return yaml.safe_load((SCENARIOS / f"{scenario}.yaml").read_text(encoding="utf-8"))


def simulated_by(document: Mapping[str, Any], client: str) -> dict[str, Any]:
    """Return the document with the client library of all its members."""
    model = MODELS[client]

    def of_client(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {**entry, "client": model}

    events = [
        {**event, "join": of_client(event["join"])} if "join" in event else event
        for event in document["events"]
    ]
    return {**document, "members": [of_client(entry) for entry in document["members"]], "events": events}
