"""The lines of the members of a run, and of the states of their group."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from tests.calibration.actions import Action, actions_of, begins_classic, duration_of, rest_seconds, topics_of

STATES = "states.log"
ACTIONS = "actions.log"

Line: TypeAlias = tuple[float, str, list[Any]]
"""A line of a member: the time, the event, its values."""


@dataclass
class Observed:
    """The lines of a run. Times are seconds after the start. ``states``: those of the group."""

    duration: float
    topics: dict[str, int]
    lines: dict[str, list[Line]] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    states: list[tuple[float, str]] = field(default_factory=list)


def observed_in(folder: Path, document: Mapping[str, Any]) -> Observed:
    """Read a run."""
    planned = actions_of(document)
    began = beginning(folder, document)
    assert began is not None, "the group did not come to rest"
    done = _read(folder / ACTIONS)
    initial = [action for action in planned if action.kind == "start"]
    later = [action for action in planned if action.kind != "start"]
    actual = [replace(action, at=at - began) for action, (at, *_) in zip(later, done, strict=True)]
    duration = duration_of(document)
    observed = Observed(duration, topics_of(document), actions=[*initial, *actual])
    observed.states = [(at - began, state) for at, _, (state,) in _read(folder / STATES)]
    for number, action in enumerate(starts_of(planned)):
        mine = observed.lines.setdefault(action.member, [])
        mine += [(at - began, *rest) for at, *rest in _read(log_of(folder, action, number))]
    for member, lines in observed.lines.items():
        observed.lines[member] = [line for line in lines if line[0] <= duration]
    return observed


def beginning(folder: Path, document: Mapping[str, Any]) -> float | None:
    """Return when the clock of a run began, or None as long as the group does not rest.

    The clock is set by the time at which the last initial member has partitions, so that events find
    heartbeats and batches where they are in a simulated run. A group that is reconciled has no initial delay:
    the clock begins when the last initial member has started.
    """
    rested, started = [], []
    for number, action in enumerate(starts_of(actions_of(document))):
        if action.kind == "start":
            lines = _read(log_of(folder, action, number))
            at = next((at for at, event, _ in lines if event == "assigned"), None)
            if at is None:
                return None
            rested.append(at)
            started += [at for at, event, _ in lines if event == "started"][:1]
    return max(rested) - rest_seconds(document) if begins_classic(document) else max(started)


def starts_of(actions: list[Action]) -> list[Action]:
    """Return the actions that start a process, in order. A process is known by its number among them."""
    return [action for action in actions if action.do == "go"]


def log_of(folder: Path, start: Action, number: int) -> Path:
    """Return the file of a process."""
    return folder / f"{start.member}.{number}.log"


def _read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    read = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [(at, event, values) for at, event, *values in read]
