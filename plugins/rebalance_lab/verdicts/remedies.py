"""The changes that act on a cause of the stopped time."""

from collections.abc import Mapping, Sequence

from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.causes import (
    AWAY,
    BATCH,
    CALLBACK,
    DELAY,
    DETECTION,
    HEARTBEAT,
    MESSAGES,
    SESSION,
    STANDING,
    START,
    UNASSIGNED,
    UNKNOWN,
    WAITING,
)
from rebalance_lab.verdicts.changes import Change, Facts, Kind, changes, is_one_change

_MEMBERS_ENDED = (Kind.STATIC, Kind.SHORT_SESSION, Kind.LONG_SESSION, Kind.POLL_INTERVAL, Kind.COOPERATIVE)
_CLAIMS = (Kind.RETRIES, Kind.LONG_BACKOFF)
_ACTS_ON: Mapping[str, Sequence[Kind]] = {
    DETECTION: _MEMBERS_ENDED,
    STANDING: (Kind.POLL_INTERVAL, Kind.SHORT_SESSION),
    UNASSIGNED: (Kind.METADATA, Kind.STATIC, *_CLAIMS),
    WAITING: (Kind.HEARTBEAT, Kind.BACKOFF, *_CLAIMS, Kind.RECORDS, Kind.COOPERATIVE),
    HEARTBEAT: (Kind.HEARTBEAT, Kind.COOPERATIVE),
    BATCH: (Kind.RECORDS, Kind.LONG_POLL_INTERVAL, Kind.COOPERATIVE),
    SESSION: (*_MEMBERS_ENDED, Kind.LONG_POLL_INTERVAL),
    CALLBACK: (Kind.COOPERATIVE, Kind.LONG_POLL_INTERVAL, Kind.LONG_SESSION, Kind.STATIC),
    AWAY: (Kind.SHORT_SESSION,),
    DELAY: (Kind.INITIAL_DELAY,),
    START: (Kind.STATIC, Kind.COOPERATIVE),
    UNKNOWN: (Kind.HEARTBEAT, Kind.BACKOFF, Kind.RECORDS, Kind.COOPERATIVE),
    MESSAGES: (Kind.HEARTBEAT, Kind.COOPERATIVE),
    "application": (Kind.COOPERATIVE, Kind.STICKY, Kind.RECORDS),
}
"""The kinds of changes that act on a part or a cause of the stopped time, those tried first in front."""


def candidates(
    part: str, scenario: Scenario, strategy: str, facts: Facts, registry: Registry
) -> list[Change]:
    """Return the changes that act on a part or a cause of the stopped time, those tried first in front.

    ``facts`` are those of a run of the strategy on the scenario.
    """
    kinds = _ACTS_ON.get(part, ())
    acting = [
        change
        for change in changes(scenario, strategy, facts, registry)
        if is_one_change(change.kinds) and change.kinds <= set(kinds)
    ]
    acting.sort(key=lambda change: min(map(kinds.index, change.kinds)))
    return acting
