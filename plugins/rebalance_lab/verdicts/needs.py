"""The settings that a run needs: deadlines that its batches and callbacks keep, or smaller batches.

They are those that findings name, with values from the run.
"""

from collections.abc import Iterator
from math import ceil

from coordinator_core.client.config import ClientConfig
from coordinator_core.protocol import events as ev
from coordinator_core.reading.settings import configured
from rebalance_lab.scenarios.member_events import Join
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.trace import Trace

SESSION, POLLS, RECORDS = "session.timeout.ms", "max.poll.interval.ms", "max.poll.records"

ROOM = 1.2
"""A deadline is at least so many times as long as what has to keep it."""

NICE_SECONDS = (10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300)
"""The durations that are proposed; longer ones are whole minutes."""

_MEAN_BATCHES = 2
"""Batches take so many times as long as the mean at most, as far as deadlines are concerned."""

_MOST_BATCHES = 4
"""Members that the group lost were late because of batches, if no more of them fit in the deadline."""


def long_ms(least_ms: float) -> int:
    """Return the shortest duration that is proposed and is not shorter than ``least_ms``."""
    minutes_ms = 60_000 * ceil(least_ms / 60_000)
    return next((1_000 * seconds for seconds in NICE_SECONDS if 1_000 * seconds >= least_ms), minutes_ms)


def needs(scenario: Scenario, trace: Trace, *, has_session: bool) -> dict[str, int]:
    """Return the settings with which members of a run may be too late, and values with which they are not.

    ``has_session``: whether session.timeout.ms is the session of members.
    """
    config = configured(ClientConfig, scenario.config, group_id="needs")
    found: dict[str, int] = {}
    batches_ms, interval_ms = _batches_ms(trace), config.max_poll_interval_ms
    revoked_ms, assigned_ms = _calls_ms(scenario)
    busy_ms = batches_ms + revoked_ms + assigned_ms
    may_be_late = _MOST_BATCHES / _MEAN_BATCHES * batches_ms >= interval_ms and _was_late(trace)
    if busy_ms >= interval_ms or may_be_late:
        found[POLLS] = long_ms(ROOM * max(busy_ms, interval_ms))
        fewer = config.max_poll_records * interval_ms // max(1, batches_ms)
        if 0 < fewer < config.max_poll_records:
            found[RECORDS] = fewer
    silent_ms = config.heartbeat_interval_ms + max(revoked_ms, assigned_ms)
    if has_session and silent_ms >= config.session_timeout_ms:
        found[SESSION] = long_ms(ROOM * silent_ms)
    return found


def poll_intervals(scenario: Scenario, trace: Trace) -> list[int]:
    """Return shorter values of max.poll.interval.ms with which paused members are removed earlier.

    They are half of the longest pause, or of the present value if that is shorter, and the least that
    batches and callbacks allow.
    """
    config = configured(ClientConfig, scenario.config, group_id="needs")
    most_ms = min(config.max_poll_interval_ms, max(_pauses_ms(trace), default=0))
    least_ms = long_ms(ROOM * (_batches_ms(trace) + sum(_calls_ms(scenario))))
    values = sorted({max(least_ms, long_ms(most_ms / 2)), least_ms}, reverse=True)
    return [value for value in values if value < most_ms]


def _pauses_ms(trace: Trace) -> Iterator[int]:
    """Yield for how long members were paused. Their heartbeats went on."""
    paused: dict[str, int] = {}
    for at_ms, event in ((line.at_ms, line.event) for line in trace.events):
        if isinstance(event, ev.Changed) and event.kind == "pause":
            paused.setdefault(event.target, at_ms)
        elif isinstance(event, ev.MemberResumed | ev.MemberStopped) and event.client in paused:
            yield at_ms - paused.pop(event.client)
    for since_ms in paused.values():
        yield trace.events[-1].at_ms - since_ms


def _batches_ms(trace: Trace) -> int:
    """Return the longest time of a batch, as far as deadlines are concerned."""
    batches = (line.event.batch_ms for line in trace.events if isinstance(line.event, ev.ApplicationStarted))
    return _MEAN_BATCHES * max(batches, default=0)


def _calls_ms(scenario: Scenario) -> tuple[int, int]:
    """Return the longest times of a call of on_revoked and of on_assigned."""
    joins = (event.arguments for event in scenario.events if isinstance(event.arguments, Join))
    members = [*scenario.members, *(member for join in joins for member in join.members)]
    applications = [member.application for member in members]
    return (
        max((each.on_revoked[1] for each in applications), default=0),
        max((each.on_assigned[1] for each in applications), default=0),
    )


def _was_late(trace: Trace) -> bool:
    removed = (line.event for line in trace.events if isinstance(line.event, ev.MemberRemoved))
    return any(POLLS in event.reason or "session" in event.reason for event in removed)
