"""Scenarios that are wrong in one way each, by what is wrong."""

import copy
from typing import Any

import yaml

from tests.places import DATA

RIGHT: dict[str, Any] = {
    "name": "deploy",
    "duration": "10m",
    "topics": {"orders": {"partitions": 12, "rate": 6_000}, "payments": {"partitions": 3}},
    "members": [{"id": "c", "count": 3, "topics": ["orders"]}, {"id": "s", "topics_pattern": ".*"}],
    "events": [{"at": "30s", "leave": "c-1"}],
}


def changed(fields: Any) -> Any:
    """The right scenario with other fields, or a document that is none."""
    return copy.deepcopy(RIGHT) | fields if isinstance(fields, dict) else fields


def wrong_scenarios() -> dict[str, Any]:
    rows = yaml.safe_load((DATA / "wrong_scenarios.yaml").read_text(encoding="utf-8"))
    return {what: changed(fields) for what, fields in rows.items()}
