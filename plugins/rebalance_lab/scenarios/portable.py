"""Scenarios that need no other file, for a column of a DataFrame or for another machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from coordinator_core.reading.durations import parse_duration
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.files import read_document, read_text
from rebalance_lab.scenarios.rates import read_counts
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.scenarios.shipped import scenario_path


def portable_scenario(path: Path, *, registry: Registry | None = None) -> str:
    """Return the scenario of a file as one JSON text, with the rates of CSV files as rows.

    Raises:
        InputError: as `files.load_scenario`.
    """
    path = scenario_path(path)
    where = str(path)
    document = read_document(read_text(path), where)
    scenario = parse_scenario(document, where=where, base_dir=path.parent, registry=registry)
    topics = {
        name: _with_rows(topic, path.parent, scenario.duration_ms)
        for name, topic in document["topics"].items()
    }
    return msgspec.json.encode({**document, "topics": topics}).decode()


def _with_rows(topic: Mapping[str, Any], base_dir: Path, until_ms: int) -> Mapping[str, Any]:
    if "rates_csv" not in topic:
        return topic
    counts = read_counts(base_dir / topic["rates_csv"], topic["partitions"], "rates_csv")
    interval_ms = parse_duration(topic["interval"], "interval", at_least_ms=1)
    needed = -(-until_ms // interval_ms)
    rows = {"rates_rows": [list(row) for row in counts[:needed]]}
    return {**{key: value for key, value in topic.items() if key != "rates_csv"}, **rows}
