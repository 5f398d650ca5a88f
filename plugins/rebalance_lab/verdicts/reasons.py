"""Why a strategy stops partitions: the parts of its stopped time, what happens in them, and the largest."""

from collections.abc import Callable, Mapping

from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.causes import AWAY, CAUSES, DETECTION, PARTS, UNASSIGNED, WAITING, WAITS, happens_in

_DELAYED = "no round ran, and the group kept the partitions of members that had ended for them"
"""The cause ``unassigned`` if lost partitions wait for their owner."""


def parts_under(protocol: ProtocolSpec, *, delayed: bool) -> Mapping[str, str]:
    """Return for each part what happens in it under a protocol. ``delayed``: lost partitions wait."""
    parts = {**{part: happens_in(part) for part in (*PARTS, *CAUSES)}, **protocol.stops}
    if WAITING in protocol.stops:
        parts |= dict.fromkeys(WAITS, protocol.stops[WAITING])
    if protocol.stops and UNASSIGNED not in protocol.stops:
        parts[UNASSIGNED] = parts[DETECTION]
    if delayed:
        parts[UNASSIGNED] = _DELAYED
    return parts


def largest_of(time_in: Callable[[str], float]) -> tuple[str, float] | None:
    """Return the largest part of a stopped time and its share, or None if nothing was stopped.

    ``time_in`` returns the time of a part or a cause. In place of ``detection`` and ``away`` their causes
    count, and in place of ``waiting`` the cause of more than half of it, if there is one.
    """
    parts = {part: time_in(part) for part in PARTS}
    total = sum(parts.values())
    if not total > 0:
        return None
    for part in (DETECTION, AWAY):
        further = {cause: time_in(cause) for cause in PARTS[part] if cause != part}
        parts |= {part: parts[part] - sum(further.values()), **further}
    waits = {cause: time_in(cause) for cause in WAITS}
    cause = max(waits, key=lambda name: waits[name])
    if waits[cause] > parts[WAITING] / 2:
        del parts[WAITING]
        parts[cause] = waits[cause]
    part = max(parts, key=lambda name: parts[name])
    return part, parts[part] / total


def metric_of(part: str) -> str:
    """Return the name of the metric of a part or a cause of the stopped time."""
    return f"stopped_{part}_partition_seconds"
