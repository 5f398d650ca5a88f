"""How long records wait at the busiest member of a group, over its hours in their order."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import NamedTuple

import numpy as np

from rebalance_lab.verdicts.tables import as_text
from rebalance_spark.gains import Floats

_KEY = re.compile(r"([^/=]+)=([^/]*)(?:/|$)")
_HOUR = 3_600.0
_CALENDAR = ("year", "month", "week", "day", "minute")
"""Keys with a part of a time. Where they differ, the time is not known."""

_DAY = re.compile(r"\d{4}-?\d\d-?\d\d")


class Ends(Enum):
    """When no records wait any longer."""

    TODAY = "today"
    NEXT_DAY = "next day"
    NEVER = "never"
    UNKNOWN = "unknown"


class Wait(NamedTuple):
    """How long records wait at most, in seconds, and in which of the scenarios.

    ``until``: the first scenario after it at whose end none wait, or the last one of all if there is none.
    ``ends`` says when that is: on that day, on the next one if all were like it, never, or not known from
    less than a day.
    """

    seconds: float
    at: int
    until: int
    ends: Ends


def longest_wait(ids: Sequence[str], load: Floats) -> Wait | None:
    """Return how long records wait at the busiest member of a group, from an empty backlog on.

    ``load`` float64[n] is that of the busiest member in each scenario, as a share of what it can handle.
    Each scenario stands for the time until the next one, as their keys say (``hour=7``, ``date=2026-01-31``,
    or a time in ISO 8601). It is the longest possible: that of one member which is the busiest in all.
    Of several scenarios of a time, such as draws, the one with the greatest load counts. None is returned if
    the times are not known, not equally far apart, or by more than an hour; or if no member has more than it
    can handle.
    """
    if np.isnan(load).any() or not (load > 1).any():
        return None
    times = [time_of(name) for name in ids]
    calendar = {pair for name in ids for pair in _KEY.findall(name) if pair[0] in _CALENDAR}
    if None in times or len(calendar) > len({key for key, _ in calendar}):
        return None
    at = np.array(times, dtype=np.float64)
    order = np.lexsort((load, at))
    order = order[np.append(np.diff(at[order]) > 0, True)]
    steps = np.unique(np.diff(at[order]))
    if len(steps) != 1 or steps[0] > _HOUR:
        return None
    excess = ((load[order] - 1) * steps[0]).tolist()
    waits = _backlogs(excess, 0.0)
    most, ends = int(np.argmax(waits)), Ends.TODAY
    until = next((place for place in range(most, len(waits)) if not waits[place]), None)
    if until is None and len(waits) * steps[0] == _HOUR * 24:
        after = _backlogs(excess, waits[-1])
        until = next((place for place, wait in enumerate(after) if not wait), None)
        ends = Ends.NEVER if until is None else Ends.NEXT_DAY
        if until is not None and max(after[:until], default=0.0) > waits[most]:
            waits, most = after, int(np.argmax(after[:until]))
    elif until is None:
        ends = Ends.UNKNOWN
    last = len(waits) - 1 if until is None else until
    return Wait(waits[most], int(order[most]), int(order[last]), ends)


def _backlogs(excess: Sequence[float], before: float) -> list[float]:
    """Return what waits at the end of each hour, in seconds of work. ``before`` waits at the start."""
    found = [before]
    for more in excess:
        found.append(max(0.0, found[-1] + more))
    return found[1:]


def time_of(name: str) -> float | None:
    """Return the time of a scenario in seconds by the keys in its id, or None if they do not have it."""
    found = [at for _, at in _times_in(name)]
    return sum(found) if found else None


def keys_of_time(name: str) -> str:
    """Return the keys in the id of a scenario that have its time: ``date=2026-01-31/hour=7``."""
    return "/".join(text for text, _ in _times_in(name))


def _times_in(name: str) -> list[tuple[str, float]]:
    """Return the keys of an id that have a time, and these in seconds."""
    keys = [(f"{key}={value}", _moment(key.rpartition(".")[2], value)) for key, value in _KEY.findall(name)]
    return [(text, at) for text, at in keys if at is not None]


def _moment(key: str, value: str) -> float | None:
    """Return an hour, a date or a time in seconds, or None if the value is none."""
    if key == "hour" and value.isdigit() and int(value) < 24:
        return int(value) * _HOUR
    if not _DAY.match(value):
        return None
    try:
        return (datetime.fromisoformat(value).replace(tzinfo=None) - datetime.min).total_seconds()
    except ValueError:
        return None


def as_time(seconds: float) -> str:
    """Write how long records wait: ``14 min``, ``2.5 h``."""
    return f"{seconds / 60:.0f} min" if seconds < 1.5 * _HOUR else f"{as_text(seconds / _HOUR)} h"
