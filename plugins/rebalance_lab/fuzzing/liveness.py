"""How long a group may take to own everything once all faults have ended, and which settings prevent it.

The bound is generous: it adds what a group may have to wait for one after the other, such as two rounds of a
cooperative protocol, each with a member that ends a batch first, after sessions that had to expire.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from math import sqrt
from typing import Any

from coordinator_core.assigning.assignor import is_cooperative
from coordinator_core.families.family import DELAY
from coordinator_core.reading.durations import parse_duration
from coordinator_core.registry.hookspecs import DELAY_OF_SETTINGS, ProtocolSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.families import spec_for
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.scenarios.settings import own_settings, setting_in
from rebalance_lab.simulation.process.clients import CLIENTS
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.host import SimulatedHost

LEARNING_MS = 20_000
"""The least time in which members learn of new partitions, and join a round for them."""

QUIET_MS = 30_000
"""The time at the end in which no further round may begin."""

_ROUNDS = 6
"""The rounds that may follow one another once all faults have ended."""

RETRIES, BACKOFF = "rebalance.max.retries", "rebalance.backoff.ms"

_AWAY = ("leave", "crash", "restart", "rolling_restart")
_OF_TOPICS = ("add_partitions", "create_topic", "delete_topic")
"""The events that may leave a group without a process, and those that change topics."""

_HANDOVERS = 3
"""The owners that a member without a coordinator may have to wait for one after the other."""

_DEVIATIONS = 5
"""A batch takes at most so many standard deviations more than its mean."""


def settles_in_ms(scenario: Scenario, strategy: Strategy, registry: Registry) -> int:
    """Return the time after the last fault in which a group comes to rest with everything owned."""
    settings = {**scenario.config, **strategy.settings}
    longest = partial(_longest, scenario, strategy, registry)
    sessions = _sessions_ms(settings, spec_for(scenario, strategy, registry), registry)
    round_ms = longest("max.poll.interval.ms")
    delay_ms = strategy.delay_ms or 0
    if delay_ms == DELAY_OF_SETTINGS:
        delay_ms = setting_in(settings, DELAY, registry)
    initial_ms = setting_in(settings, "group.initial.rebalance.delay.ms", registry)
    learning_ms = max(LEARNING_MS, longest("metadata.max.age.ms")) + longest("request.timeout.ms")
    starting_ms = max((member.application.start_up[1] for member in _members(scenario)), default=0)
    rounds_ms = _ROUNDS * round_ms + 3 * max(sessions) + 3 * delay_ms
    return int(initial_ms + rounds_ms + learning_ms + starting_ms)


def learns_in_ms(scenario: Scenario, strategy: Strategy, registry: Registry) -> int:
    """Return the time after the last fault from which on members learn of a change in time.

    Members without a coordinator try to take over partitions for some seconds only. Until a request that was
    lost has timed out, its sender may not have given them up.
    """
    if spec_for(scenario, strategy, registry).servers is None:
        return LEARNING_MS
    return LEARNING_MS + _longest(scenario, strategy, registry, "request.timeout.ms")


def _longest(scenario: Scenario, strategy: Strategy, registry: Registry, name: str) -> int:
    """Return the largest value of a setting, of all members."""
    own = [member.overrides.config[name] for member in _members(scenario) if name in member.overrides.config]
    return int(max([setting_in({**scenario.config, **strategy.settings}, name, registry), *own]))


def _sessions_ms(settings: Mapping[str, Any], spec: ProtocolSpec, registry: Registry) -> list[int]:
    """Return the timeouts of sessions: that of all members, and those of the protocol."""
    own = own_settings(spec)
    names = ("session.timeout.ms", *(name for name in own if name.endswith("session.timeout.ms")))
    return [setting_in(settings, name, registry) for name in names]


def prevented_by(scenario: Scenario, strategy: Strategy, registry: Registry) -> str:
    """Return what may keep the group from ever being at rest with everything owned; "" if nothing does."""
    return next(_obstacles(scenario, strategy, registry), "")


def _obstacles(scenario: Scenario, strategy: Strategy, registry: Registry) -> Iterator[str]:
    members = list(_members(scenario))
    spec = spec_for(scenario, strategy, registry)
    session_ms = min(_sessions_ms({**scenario.config, **strategy.settings}, spec, registry))
    names = own_settings(spec)
    own = {name: setting_in({**scenario.config, **strategy.settings}, name, registry) for name in names}
    subscriptions = {(member.topics, member.pattern) for member in members}
    alike = len(subscriptions) < 2 and all(event.kind != "subscribe" for event in scenario.events)
    if spec.servers is not None and not alike:
        yield "members without a coordinator share out all topics, also those that only some subscribe to"
    if spec.servers is not None and _differs_by_member(strategy, registry):
        yield "members without a coordinator divide by what each has measured for itself, and need not agree"
    static = strategy.static or any(member.instance_id is not None for member in members)
    if static and spec.members_join and _topics_change_meanwhile(scenario):
        yield "a static leader that comes back takes the topics of that time for those of its assignment"
    for member in members:
        settings = {**scenario.config, **member.overrides.config}
        limit_ms = setting_in(settings, "max.poll.interval.ms", registry)
        application = member.application
        facts = CLIENTS[application.client]
        for call_ms, beats in (
            (application.on_revoked[1], facts.beats_in_revoked and not facts.waits_for_session),
            (application.on_assigned[1], facts.beats_in_assigned),
        ):
            if call_ms >= session_ms and not beats:
                silent = f"{member.id} is out of its session in callbacks"
                yield f"{silent}, which take {call_ms} ms; session.timeout.ms is {session_ms} ms"
        busy_ms = application.on_revoked[1] + application.on_assigned[1] + application.restore[1]
        handled_ms = _longest_batch_ms(member, setting_in(settings, "max.poll.records", registry))
        batch_ms = busy_ms + handled_ms
        if busy_ms >= limit_ms:
            yield f"callbacks of {member.id} take {busy_ms} ms; max.poll.interval.ms is {limit_ms} ms"
        if batch_ms >= limit_ms:
            yield f"batches of {member.id} take {batch_ms:.0f} ms; max.poll.interval.ms is {limit_ms} ms"
        if handled_ms >= session_ms and facts.reads_in_poll and _works_in_rounds(spec, strategy, registry):
            joins = f"{member.id} reads the response to its JoinGroup after a batch"
            yield f"{joins}, which takes {handled_ms:.0f} ms; session.timeout.ms is {session_ms} ms"
        if RETRIES in own and own[RETRIES] * own[BACKOFF] <= _HANDOVERS * batch_ms:
            yield f"{member.id} takes {batch_ms:.0f} ms to give up partitions; others do not try for so long"


def _topics_change_meanwhile(scenario: Scenario) -> bool:
    """Return whether topics change when members have been away, or still are.

    A leader that comes back under its instance id skips the assignment (KIP-814), as Java's client does: it
    does not know which topics that is of.
    """
    away = min(
        (event.at_ms for event in scenario.events if event.kind in _AWAY), default=scenario.duration_ms
    )
    return any(event.kind in _OF_TOPICS and event.at_ms >= away for event in scenario.events)


def _works_in_rounds(spec: ProtocolSpec, strategy: Strategy, registry: Registry) -> bool:
    """Return whether members handle records while they join: they send no heartbeats then."""
    return bool(spec.members_join) and is_cooperative(registry.assignor(strategy.name))


def _differs_by_member(strategy: Strategy, registry: Registry) -> bool:
    """Return whether what the assignor computes depends on more than the group, such as on measured rates."""
    return not registry.build(strategy, SimulatedHost(VirtualClock(), None, None)).repeats


def _longest_batch_ms(member: Member, records: int) -> float:
    if member.process_rate is None:
        return 0.0
    spread = 1 + _DEVIATIONS * member.application.record_cv / sqrt(max(records, 1))
    return spread * records * 1_000 / member.process_rate + member.application.batch_overhead[1]


def _members(scenario: Scenario) -> Iterator[Member]:
    """Yield the members of the document and those that join later."""
    yield from scenario.members
    for event in scenario.events:
        if event.kind == "join":
            yield from event.arguments.members


def longest_rolling_ms(rolling: Mapping[str, Any], members: int) -> int:
    """Return how long a rolling restart may take with so many members."""
    every_ms, down_ms = (parse_duration(rolling[key], key) for key in ("every", "down"))
    return every_ms * (members + 1) + 2 * down_ms + 3_000
