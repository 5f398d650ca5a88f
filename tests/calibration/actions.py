"""What happens to the processes of members in a scenario, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_core.reading.durations import parse_duration

INITIAL_DELAY = "group.initial.rebalance.delay.ms"


@dataclass(frozen=True)
class Action:
    """What happens to a member, in seconds after the start. ``kind`` is the event of the scenario.

    ``do`` is ``go``, ``close``, ``kill``, ``freeze`` or ``thaw``. The members that are there from the start
    have the kind ``start``. ``protocol``: the group.protocol with which a process starts, "" for that of the
    strategy.
    """

    at: float
    kind: str
    member: str
    do: str
    protocol: str = ""


def actions_of(document: Mapping[str, Any]) -> list[Action]:
    """Return what happens to processes, in order of time."""
    members = [name for entry in document["members"] for name in _names(entry)]
    running, actions = list(members), [Action(0.0, "start", name, "go") for name in members]
    for event in sorted(document.get("events", ()), key=lambda event: seconds(event["at"])):
        at = seconds(event["at"])
        actions += _actions(event, at, running)
    return sorted(actions, key=lambda action: action.at)


def _actions(event: Mapping[str, Any], at: float, running: list[str]) -> list[Action]:
    kind = next(key for key in event if key not in ("at", "for"))
    value = event[kind]
    if kind == "join":
        running += _names(value)
        return [Action(at, kind, name, "go") for name in _names(value)]
    if kind == "rolling_restart":
        every, down = seconds(value["every"]), seconds(value["down"])
        ends = "kill" if value.get("kill") else "close"
        return [
            action
            for i, name in enumerate(running)
            for action in (
                Action(at + i * every, "crash" if ends == "kill" else "leave", name, ends),
                Action(at + i * every + down, "restart", name, "go", value.get("protocol", "")),
            )
        ]
    if kind == "freeze":
        return [
            Action(at, kind, value, "freeze"),
            Action(at + seconds(event["for"]), "resume", value, "thaw"),
        ]
    return [Action(at, kind, value, {"leave": "close", "crash": "kill", "restart": "go"}[kind])]


def _names(entry: Mapping[str, Any]) -> list[str]:
    return [f"{entry['id']}-{i}" for i in range(entry["count"])] if "count" in entry else [entry["id"]]


def seconds(duration: Any) -> float:
    """Return a duration of a document in seconds."""
    return parse_duration(duration, "a duration") / 1_000


def duration_of(document: Mapping[str, Any]) -> float:
    """Return how many seconds a scenario lasts."""
    return seconds(document["duration"])


def topics_of(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the topics of a scenario with their partitions."""
    return {name: topic["partitions"] for name, topic in document["topics"].items()}


def begins_classic(document: Mapping[str, Any]) -> bool:
    """Return whether the initial members have settings of the classic protocol."""
    return "session.timeout.ms" in document["config"]


def rest_seconds(document: Mapping[str, Any]) -> float:
    """Return when the group rests: members that join during the initial delay extend it once."""
    return 2 * seconds(document["config"][INITIAL_DELAY])
