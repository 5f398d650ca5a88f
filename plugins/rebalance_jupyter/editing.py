"""Changes of a scenario's document by the controls of the bench."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import inf
from typing import Any, NamedTuple

import yaml

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import format_duration, parse_duration
from rebalance_lab.scenarios.files import read_document

OF_MEMBERS = (
    *("leave", "crash", "restart", "pause", "freeze", "cut"),
    *("slow", "subscribe", "remove_member", "lag_view"),
)
"""Kinds of events that name a member."""
_OWN = ("count", "id", "instance_id", "owned")
"""The fields that a copy of a member does not take over."""
_MOST_VERSIONS = 200
_LONGEST = 80
"""The most characters of an event in a list."""


class ListedEvent(NamedTuple):
    """An event of a document: its number in the list, its time, and the rest of it as text."""

    number: int
    at: str
    text: str


class Versions:
    """The texts that a document has had, and the present one among them."""

    def __init__(self, text: str) -> None:
        self._texts, self._at = [text], 0

    def add(self, text: str) -> None:
        """Make a text the present one. Those that were undone are dropped."""
        if text != self._texts[self._at]:
            self._texts = [*self._texts[: self._at + 1], text][-_MOST_VERSIONS:]
            self._at = len(self._texts) - 1

    def step(self, by: int) -> str:
        """Return the text before (-1) or after (1) the present one, which it replaces."""
        self._at = min(max(self._at + by, 0), len(self._texts) - 1)
        return self._texts[self._at]

    @property
    def can_undo(self) -> bool:
        """Whether there is a text before the present one."""
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        """Whether there is a text after the present one."""
        return self._at < len(self._texts) - 1


def document_in(text: str) -> dict[str, Any] | None:
    """Return the mapping in a text, which need not be a valid scenario; None if there is none."""
    try:
        document = read_document(text, "scenario")
    except InputError:
        return None
    return dict(document) if isinstance(document, Mapping) else None


def as_text(document: Mapping[str, Any]) -> str:
    """Write a document as YAML."""
    return yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=100)


def first_topic(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the first topic; an empty one if the document has none."""
    topics = document.get("topics")
    first = next(iter(topics.values()), None) if isinstance(topics, Mapping) else None
    return first if isinstance(first, dict) else {}


def first_member(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the first member; an empty one if the document has none."""
    members = document.get("members")
    first = next(iter(members), None) if isinstance(members, list) else None
    return first if isinstance(first, dict) else {}


def events_in(document: Mapping[str, Any]) -> list[ListedEvent]:
    """Return the events of a document by their times. Those without a time are the last ones."""
    events = _events(document)
    order = sorted(range(len(events)), key=lambda index: _time(events[index]))
    return [_listed(index, events[index]) for index in order]


def with_event(document: Mapping[str, Any], at_ms: int, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with another event, and all events sorted by their times."""
    events = [*_events(document), {"at": format_duration(at_ms), **event}]
    return {**document, "events": sorted(events, key=_time)}


def without_event(document: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the document without an event."""
    events = _events(document)
    left = [*events[:index], *events[index + 1 :]]
    rest = {key: value for key, value in document.items() if key != "events"}
    return {**rest, "events": left} if left else rest


def new_event(document: Mapping[str, Any], kind: str, target: str, members: Sequence[str]) -> dict[str, Any]:
    """Return an event of a kind for a member or a topic. A member that joins is like the first one.

    Raises:
        InputError: if the kind needs a member, and none is named.
    """
    topic, described = next(iter(document["topics"].items()))
    if kind in OF_MEMBERS and not target:
        raise InputError(kind, "no member", f"the name of one, such as {next(iter(members), 'c-0')}")
    if kind == "join":
        like = first_member(document) or {"topics": list(document["topics"])}
        like = {key: value for key, value in like.items() if key not in _OWN}
        copied = deepcopy(like)  # YAML writes a reference for an object that occurs twice
        return {"join": {"id": target or _new_name(document), **copied}}
    if kind == "subscribe":
        return {"subscribe": target, "topics": list(document["topics"])}
    if kind in ("pause", "freeze", "cut"):
        return {kind: target, "for": "30s"}
    made: dict[str, Any] = {
        "slow": {"member": target, "by": "500ms", "for": "30s"},
        "lag_view": {"member": target, "by": "10s"},
        "add_partitions": {topic: 2 * described["partitions"]},
        "create_topic": {target or _new_name(document): {"partitions": 6}},
        "delete_topic": target or topic,
        "rolling_restart": {"every": "10s", "down": "3s"},
        "coordinator_failover": {"down": "3s"},
        "log_fault": {"for": "10s"},
        "calm": True,
    }
    return {kind: made.get(kind, target)}


def _new_name(document: Mapping[str, Any]) -> str:
    return f"new-{len(_events(document))}"


def _events(document: Mapping[str, Any]) -> list[Any]:
    events = document.get("events")
    return events if isinstance(events, list) else []


def _time(event: Any) -> float:
    try:
        return parse_duration(event.get("at"), "at") if isinstance(event, Mapping) else inf
    except InputError:
        return inf


def _listed(index: int, event: Any) -> ListedEvent:
    at, rest = "", event
    if isinstance(event, Mapping):
        at, rest = str(event.get("at", "")), {key: value for key, value in event.items() if key != "at"}
    text = yaml.safe_dump(rest, default_flow_style=True, sort_keys=False, width=10_000)
    text = text.removesuffix("...\n").strip().removeprefix("{").removesuffix("}")
    return ListedEvent(index, at, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
