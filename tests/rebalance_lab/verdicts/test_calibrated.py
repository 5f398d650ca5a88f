"""What predictions are worth: what real runs that are near a scenario say."""

import json
from collections import Counter

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.verdicts import calibrated
from rebalance_lab.verdicts.calibrated import (
    COOPERATIVE,
    EAGER,
    MIGRATION,
    RECONCILED,
    Cell,
    cells,
    kinds_of,
    way_of,
    worth,
)
from tests.approved import approved
from tests.places import ROOT

CELLS = (
    Cell("java", EAGER, "leave", 1_000, 5, 4),
    Cell("java", EAGER, "join", 1_000, 5, 5),
    Cell("java", COOPERATIVE, "leave", 1_000, 3, 1),
    Cell("java", RECONCILED, "leave", 5_000, 3, 3),
    Cell("librdkafka", EAGER, "leave", 1_000, 5, 5),
)
LEAVES = ({"at": "30s", "leave": "c-0"},)


def sentence(*strategies, events=LEAVES, **member):
    document = {
        "name": "s",
        "duration": "2m",
        "topics": {"t": {"partitions": 3}},
        "members": [{"id": "c", "count": 2, "topics": ["t"], "batch": "1s", **member}],
        "events": list(events),
    }
    registry = default_registry()
    found = [registry.strategy(name) for name in strategies]
    return str(worth(parse_scenario(document, where="s"), found, registry))


JOINS = {"at": "20s", "join": {"id": "late", "topics": ["t"]}}
WORTH = {
    "ways of rebalancing": (["range", "sticky", "cooperative-sticky"], {}),
    "several events": (["range"], {"events": [JOINS, *LEAVES]}),
    "ways that no real run had": (["range", "range+static", "range+watcher"], {}),
    "none but these": (["range+static", "range+watcher"], {}),
    "no batches": (["range"], {"batch": None}),
    "batches nearly of the length": (["range"], {"batch": "400ms"}),
    "short batches": (["range"], {"batch": "300ms"}),
    "another event": (["range"], {"events": [{"at": "1m", "pause": "c-0", "for": "5s"}]}),
    "another client": (["range"], {"client": "aiokafka"}),
}


def test_what_real_runs_say_is_as_approved(monkeypatch):
    """With these cells in place of those of the calibration."""
    monkeypatch.setattr(calibrated, "cells", lambda: CELLS)
    approved("calibrated", {title: sentence(*names, **more) for title, (names, more) in WORTH.items()})


@pytest.mark.parametrize(
    ("strategy", "way"),
    [
        ("range", EAGER),
        ("cooperative-sticky", COOPERATIVE),
        ("range+cooperative", COOPERATIVE),
        ("uniform-848+reconcile", RECONCILED),
        ("range+static", ""),
        ("cooperative-sticky+delay=10s", ""),
        ("range+peers", ""),
    ],
)
def test_a_strategy_rebalances_in_a_way(strategy, way):
    registry = default_registry()
    assert way_of(registry.strategy(strategy), registry) == way


def test_the_cells_are_those_of_the_calibration():
    folder = ROOT / "tests" / "calibration"
    files = ("serve.json", "kafka.json")
    measured = (cell for name in files for cell in json.loads((folder / name).read_text())["cells"])
    last = {(cell["scenario"], cell["client"], cell["strategy"]): len(cell["runs"]) for cell in measured}
    runs = Counter()
    for (_, client, _), number in last.items():
        runs[client] += number
    kept = Counter()
    for cell in cells():
        assert 0 <= cell.met <= cell.runs
        kept[cell.client] += cell.runs
    assert kept == runs


def test_a_restart_with_another_protocol_is_an_event_of_its_own():
    document = {
        "name": "m",
        "duration": "2m",
        "topics": {"t": {"partitions": 6, "rate": 1}},
        "members": [{"id": "c", "count": 3, "topics": ["t"], "process_rate": 500, "client": "librdkafka"}],
        "events": [{"at": "20s", "rolling_restart": {"every": "10s", "down": "2s", "protocol": "consumer"}}],
    }
    registry = default_registry()
    scenario = parse_scenario(document, where="m", registry=registry)
    assert kinds_of(scenario) == [MIGRATION]
    assert worth(scenario, [registry.strategy("range")], registry).kind == "worth"
