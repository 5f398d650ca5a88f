"""What of two responses is compared, and where they differ."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.beside_kafka import steps as s
from tests.beside_kafka.subscribed import share_of
from tests.real_kafka.wire import Key

Body = dict[str, Any]

LEFT_OUT = frozenset({"throttle_time", "error_message"})
"""Fields that are not compared: times, and texts that each broker words for itself."""

IN_ORDER = frozenset({"protocols"})
"""Lists whose order has a meaning. All others are compared as sets: Kafka's hash maps order them."""


def _own_groups(body: Body, group: str) -> Body:
    return {**body, "groups": [entry for entry in body["groups"] if entry["group_id"] == group]}


def _only_errors(body: Body, _: str) -> Body:
    """Administration of topics is not judged here."""
    rows = body.get("topics") or body.get("results") or body.get("responses") or []
    return {"error_code": sorted(row["error_code"] for row in rows)}


def _by_topic(body: Body, _: str) -> Body:
    """The order of topics in an assignment that the broker writes is that of a hash map over their ids."""
    try:
        share = share_of(bytes.fromhex(body["assignment"]))
    except (IndexError, UnicodeDecodeError):
        return body
    return {**body, "assignment": {topic: list(numbers) for topic, numbers in share.items()}}


_OF_API: Mapping[Key, Callable[[Body, str], Body]] = {
    Key.LIST_GROUPS: _own_groups,
    Key.SYNC_GROUP: _by_topic,
    Key.CREATE_TOPICS: _only_errors,
    Key.CREATE_PARTITIONS: _only_errors,
    Key.DELETE_TOPICS: _only_errors,
}


def compared(key: Key, body: Body, group: str) -> Body:
    """Return what is compared of a response of a script's group."""
    chosen: Body = _sorted(_OF_API.get(key, lambda body, _: body)(body, group))
    return chosen


def _sorted(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _sorted(entry, key) for key, entry in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        entries = [_sorted(entry) for entry in value]
        return entries if name in IN_ORDER else sorted(entries, key=json.dumps)
    return value


class Difference(NamedTuple):
    """A step whose responses differ: at this path they have the values ``kafka`` and ``other``."""

    number: int
    step: s.AnyStep
    path: str
    kafka: Any
    other: Any
    bodies: tuple[Body, Body]
    """Both responses as they came."""
    reason: str | None = None
    """The reason of the table of known differences, None for a fault."""

    @property
    def sign(self) -> tuple[str, str]:
        """What two runs of a script have in common if they show the same fault."""
        return type(self.step).__name__, self.path

    def __str__(self) -> str:
        values = f"Kafka {_short(self.kafka)}, other {_short(self.other)}"
        return f"{type(self.step).__name__} {self.path}: {values}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def where(kafka: Any, other: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Return the path and the values of the first difference, None if there is none. Errors come first."""
    if kafka == other:
        return None
    if isinstance(kafka, dict) and isinstance(other, dict):
        names = sorted({*kafka, *other}, key=lambda name: (name != "error_code", name))
        found = (where(kafka.get(name), other.get(name), f"{path}.{name}") for name in names)
        return next(difference for difference in found if difference is not None)
    if isinstance(kafka, list) and isinstance(other, list) and len(kafka) == len(other):
        found = (where(*pair, f"{path}[]") for pair in zip(kafka, other, strict=True))
        return next(difference for difference in found if difference is not None)
    return path, kafka, other
