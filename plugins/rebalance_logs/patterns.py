"""Single events put together as what people do: deployments, scaling, one failure of many."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rebalance_logs.findings import RANK, Cause, Confidence, Trigger
from rebalance_logs.groups import GroupLog

MASS_FAILURE, MASS_FAILURE_MS = 3, 3_000
"""So many members whose sessions expire within an interval of heartbeats have one cause."""

RESTART_GAP_MS = 600_000
"""Restarts one after another follow within this time."""

REPLACED_WITHIN_MS = 120_000
"""A new process joins within this time before or after the end of the one whose place it takes."""

RESTART_WAVE_MS = 5_000
"""Restarts that are closer are of one wave."""

_EVENTS = frozenset((Cause.MEMBER_JOINED, Cause.MEMBER_LEFT))


def recognise(group: GroupLog, outside_rounds: list[Trigger]) -> None:
    """Put single events together as what people do: deployments, scaling, one failure of many."""
    every = [trigger for this in group.rounds for trigger in this.triggers] + outside_rounds
    _shared_instances(group)
    _restarts(group, every)
    _many_at_once([t for t in every if t.cause is Cause.SESSION_EXPIRED])
    _replacements(group)
    _scaling(group)


def _runs(triggers: Iterable[Trigger], within_ms: int) -> list[list[Trigger]]:
    """Return triggers in the order of time, divided where more than a time lies between two."""
    runs: list[list[Trigger]] = []
    for trigger in sorted(triggers, key=lambda t: t.at_ms):
        if runs and trigger.at_ms - runs[-1][-1].at_ms <= within_ms:
            runs[-1].append(trigger)
        else:
            runs.append([trigger])
    return runs


def _many_at_once(expired: Sequence[Trigger]) -> None:
    for run in _runs(expired, MASS_FAILURE_MS):
        if len({name for trigger in run for name in trigger.members}) >= MASS_FAILURE:
            for trigger in run:
                trigger.cause = Cause.MANY_FAILED


def _shared_instances(group: GroupLog) -> None:
    """Tell the joining and leaving of members with one instance id as what it is."""
    for this in group.rounds:
        shared = {name for t in this.triggers if t.cause is Cause.INSTANCE_SHARED for name in t.members}
        for trigger in this.triggers:
            if not shared.isdisjoint(trigger.members):
                trigger.cause = Cause.INSTANCE_SHARED


def _restarts(group: GroupLog, every: Sequence[Trigger]) -> None:
    """Recognise members that were restarted one after another."""
    for run in _runs((t for t in every if t.restarted and len(t.members) == 1), RESTART_GAP_MS):
        names = {name for trigger in run for name in trigger.members}
        ends = [t.at_ms for t in run if t.cause is not Cause.MEMBER_JOINED] or [t.at_ms for t in run]
        waves = 1 + sum(after - before > RESTART_WAVE_MS for before, after in pairwise(ends))
        if min(len(names), waves) >= 2 and 2 * len(names) >= len(group.members):
            for trigger in run:
                trigger.cause = Cause.ROLLING_RESTART


def _replacements(group: GroupLog) -> None:
    """Recognise deployments in which each new process has a new name: joined and left by turns, in pairs."""
    joined = [
        trigger
        for this in group.rounds
        for trigger in this.triggers
        if _is_of_one(trigger, Cause.MEMBER_JOINED) and not this.was_empty
    ]
    left = [
        t for r in group.rounds for t in r.triggers if t.cause in (Cause.MEMBER_LEFT, Cause.SESSION_EXPIRED)
    ]
    came = {name for t in joined for name in t.members}
    left = [t for t in left if not t.restarted and len(t.members) == 1 and came.isdisjoint(t.members)]
    pairs: list[tuple[Trigger, Trigger]] = []
    free = list(left)
    for new in joined:
        near = [t for t in free if abs(t.at_ms - new.at_ms) <= REPLACED_WITHIN_MS]
        if near:
            old = min(near, key=lambda t: abs(t.at_ms - new.at_ms))
            free.remove(old)
            pairs.append((old, new))
    sizes = [len(r.members) for r in group.rounds if r.members]
    size = max(sizes, default=0)
    close = len(_runs((old for old, _ in pairs), RESTART_GAP_MS)) == 1
    if len(pairs) >= 2 and 2 * len(pairs) >= size - 1 and close:
        for old, new in pairs:
            old.cause = new.cause = Cause.ROLLING_RESTART
            for trigger in (old, new):
                trigger.confidence = min(trigger.confidence, Confidence.MEDIUM, key=RANK.__getitem__)


def _is_of_one(trigger: Trigger, cause: Cause) -> bool:
    return trigger.cause is cause and len(trigger.members) == 1 and not trigger.restarted


def _scaling(group: GroupLog) -> None:
    """Recognise members that come and go for good, one way or the other, again and again."""
    found: dict[Cause, list[Trigger]] = {cause: [] for cause in _EVENTS}
    for this in group.rounds:
        for trigger in this.triggers:
            if trigger.cause in _EVENTS and not this.was_empty and not trigger.restarted:
                found[trigger.cause].append(trigger)
    joined, left = found[Cause.MEMBER_JOINED], found[Cause.MEMBER_LEFT]
    names = [{name for t in ts for name in t.members} for ts in (joined, left)]
    if (len(names[0]) >= 2 and len(names[1]) >= 2) or max(map(len, names)) >= 4:
        for trigger in (*joined, *left):
            trigger.cause = Cause.AUTOSCALING
            trigger.confidence = min(trigger.confidence, Confidence.MEDIUM, key=RANK.__getitem__)
