"""Remedies: the changes that act on a cause of the stopped time, and what they did when they were run."""

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
from rebalance_lab.verdicts.comparison import Remedy
from rebalance_lab.verdicts.dimensions import GAINS, REQUESTS, STOPS, TWICE
from rebalance_lab.verdicts.grid import Candidate
from rebalance_lab.verdicts.rule import Order

MOST_TRIED = 4
"""The most changes that are tried for a cause."""

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
    """Return at most `MOST_TRIED` changes of an advice that act on a part or a cause of the stopped time.

    ``facts`` are those of a run of the strategy on the scenario.
    """
    kinds = _ACTS_ON.get(part, ())
    acting = [
        change
        for change in changes(scenario, strategy, facts, registry)
        if is_one_change(change.kinds) and change.kinds <= set(kinds)
    ]
    acting.sort(key=lambda change: min(map(kinds.index, change.kinds)))
    return acting[:MOST_TRIED]


_COST_LATER = {Kind.STATIC, Kind.SHORT_SESSION, Kind.LONG_SESSION}
"""The kinds of changes that decide how long a group counts on members that have ended or stand still."""


def remedy(now: Candidate, trial: Candidate, *, has_others: bool = True) -> Remedy:
    """Return what a change has done to the stopped time. One that does not work does not help.

    ``has_others``: whether the group has several members, of which one may crash, be closed or freeze.
    """
    settings = trial.label().removeprefix(f"{now.strategy} with ")
    order = STOPS.order(trial, now)
    worse = [d for d in (*GAINS, TWICE, REQUESTS) if d is not STOPS and d.is_better(now, trial)]
    return Remedy(
        settings,
        STOPS.figure(now).median,
        STOPS.figure(trial).median,
        trial.works and order is Order.BETTER,
        is_known=not trial.works or order is not Order.UNKNOWN,
        price=[(d.name, d.figure(now).median, d.figure(trial).median) for d in worse],
        costs_later=has_others and not trial.kinds.isdisjoint(_COST_LATER),
    )
