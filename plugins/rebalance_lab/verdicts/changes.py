"""The changes to a strategy and its settings that are worth a trial on a scenario, from the trace of a run.

A change is tried if the run has what it acts on: a longer session for members that come back, smaller batches
for batches that rounds may wait for. A cooperative assignor is always tried.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from coordinator_core.assigning.assignor import is_cooperative
from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.reading.durations import format_duration
from coordinator_core.reading.settings import configured
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, ProtocolSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.families import family_for, reads
from rebalance_lab.scenarios.member_events import Crash, Freeze, Join, Leave
from rebalance_lab.scenarios.scenario import Member, Scenario, ScenarioEvent
from rebalance_lab.scenarios.settings import parse_config
from rebalance_lab.simulation.process.clients import CLIENTS
from rebalance_lab.traces.causes import AWAY, DETECTION, UNASSIGNED
from rebalance_lab.traces.causes import DELAY as WAITING_DELAY
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.balance import avoidable_moves, utilization, weighted_optimality_gap
from rebalance_lab.verdicts.lag import lag_at_end, least_left, max_lag
from rebalance_lab.verdicts.load import overload_of
from rebalance_lab.verdicts.needs import (
    NICE_SECONDS,
    POLLS,
    RECORDS,
    ROOM,
    SESSION,
    long_ms,
    needs,
    poll_intervals,
)

HEARTBEAT = "heartbeat.interval.ms"

UNEVEN = 0.05
"""An assignor that knows weights is tried if the busiest member has so much more load than is necessary."""

MOST_PAIRS = 1_000
"""The most pairs of a partition and a member with which the optimal assignor is tried."""

CONSUMER = "kip-848"

LONG_BATCH_MS = 100
"""Smaller batches are tried if a batch takes this long."""

FREEZE_MS = 8_000
"""The time for which a member stands still in a trial of what a short session costs."""


class Kind(Enum):
    """What a change changes. The value is the name in messages."""

    MEMBERS = "more members"
    CONSUMER = "the consumer protocol (KIP-848)"

    STATIC = "static members"
    COOPERATIVE = "a cooperative assignor"
    STICKY = "a sticky assignor"
    EVEN = "an assignor that mixes topics"
    WEIGHTS = "an assignor that knows weights"
    SHORT_SESSION = "a shorter session"
    LONG_SESSION = "a longer session"
    HEARTBEAT = "more frequent heartbeats"
    RECORDS = "smaller batches"
    POLL_INTERVAL = "a shorter time between polls"
    LONG_POLL_INTERVAL = "a longer time between polls"
    METADATA = "more frequent reads of the metadata"
    BACKOFF = "a shorter time between attempts"
    LONG_BACKOFF = "a longer time between attempts"
    RETRIES = "more attempts"
    INITIAL_DELAY = "no delay of the first round"
    DELAY = "a delay"


SHORTER: Mapping[Kind, Mapping[str, int]] = {
    Kind.SHORT_SESSION: {
        SESSION: 6_000,
        "group.consumer.session.timeout.ms": 6_000,
    },
    Kind.HEARTBEAT: {
        HEARTBEAT: 1_000,
        "group.consumer.heartbeat.interval.ms": 1_000,
    },
    Kind.METADATA: {"metadata.max.age.ms": 30_000},
    Kind.BACKOFF: {},
    Kind.INITIAL_DELAY: {"group.initial.rebalance.delay.ms": 0},
}
"""The durations in milliseconds that are tried in place of longer ones, by kinds of changes.

A protocol with such settings of its own has its own sessions and heartbeats. `ProtocolSpec.shorter` has more.
"""

NEEDED: Mapping[Kind, str] = {
    Kind.LONG_POLL_INTERVAL: POLLS,
    Kind.RECORDS: RECORDS,
    Kind.LONG_SESSION: SESSION,
}
"""The settings that are tried with the values that a run needs, by kinds of changes."""

_ACTS_AGAINST: Mapping[Kind, Sequence[str]] = {
    Kind.METADATA: (UNASSIGNED,),
    Kind.INITIAL_DELAY: (WAITING_DELAY,),
}
"""The causes of stopped time without which a shorter duration is not tried."""


_NEED_ONE_ANOTHER = (
    frozenset({Kind.STATIC, Kind.LONG_SESSION}),
    frozenset({Kind.STATIC, Kind.SHORT_SESSION}),
    frozenset({Kind.COOPERATIVE, Kind.DELAY}),
    frozenset({Kind.LONG_POLL_INTERVAL, Kind.LONG_SESSION}),
)


def _shorter(family: ProtocolSpec) -> dict[Kind, dict[str, int]]:
    """Return `SHORTER` with the settings of a protocol."""
    return {kind: {**values, **family.shorter.get(kind.name, {})} for kind, values in SHORTER.items()}


def is_one_change(kinds: frozenset[Kind]) -> bool:
    """Return whether it is one change: of one kind, or of two that need one another."""
    return len(kinds) == 1 or kinds in _NEED_ONE_ANOTHER


def labelled(strategy: str, settings: Mapping[str, str], more: int = 0) -> str:
    """Return the label of a strategy with settings: ``range+static with session.timeout.ms=90s``.

    ``more`` members are added to the group.
    """
    texts = [f"{name}={text}" for name, text in settings.items()]
    texts += [f"{more} more member{'s' * (more > 1)}"] if more else []
    return f"{strategy} with {', '.join(texts)}" if texts else strategy


@dataclass(frozen=True)
class Change:
    """A strategy with settings in place of those of the scenario. Without ``kinds`` it is the present one.

    ``more`` members are added, each like the first one.
    """

    strategy: str
    kinds: frozenset[Kind] = frozenset()
    settings: Mapping[str, int] = field(default_factory=dict)
    more: int = 0

    @property
    def texts(self) -> dict[str, str]:
        """The settings as texts."""
        return {
            name: format_duration(value) if name.endswith(".ms") else str(value)
            for name, value in self.settings.items()
        }

    @property
    def label(self) -> str:
        """The strategy and the settings."""
        return labelled(self.strategy, self.texts, self.more)

    def of(self, scenario: Scenario, registry: Registry) -> Scenario:
        """Return a scenario with the settings, also of members that have others of their own.

        Raises:
            InputError: if a setting is out of its range, or contradicts another one.
        """
        events = [
            replace(event, arguments=replace(event.arguments, members=self._members(event.arguments.members)))
            if isinstance(event.arguments, Join)
            else event
            for event in scenario.events
        ]
        return replace(
            scenario,
            config=parse_config({**scenario.config, **self.settings}, "", registry),
            members=(*self._members(scenario.members), *self._added(scenario)),
            events=type(scenario.events)(events),
        )

    def _added(self, scenario: Scenario) -> list[Member]:
        members = self._members(scenario.members[:1])
        return [replace(each, id=f"more-{n + 1}") for n in range(self.more) for each in members]

    def _members(self, members: Sequence[Member]) -> tuple[Member, ...]:
        """Return members of which none has another value of one of the settings."""
        return tuple(
            replace(member, overrides=replace(own, config={**own.config, **changed}))
            if (changed := {n: v for n, v in self.settings.items() if n in (own := member.overrides).config})
            else member
            for member in members
        )


class Absence(NamedTuple):
    """A member that ended, and started again after ``ms``."""

    client: str
    ms: int


@dataclass(frozen=True)
class Facts:
    """The facts of a run on which the choice of changes depends.

    - ``settings``: the durations of `SHORTER` that the strategy reads; ``poll_records``: the
      greatest max.poll.records of the members.
    - ``session``, ``session_ms``: the setting that is the session timeout of members, and its value.
    - ``absences``: the members that ended and came back, the longest absence first.
    - ``expired``: the number of members that the group removed because their sessions expired.
    - ``silent``: whether the heartbeats of a member ceased though it had not left: it crashed or failed,
      froze or was cut off, or was closed as a static member.
    - ``poll_intervals``: shorter values of max.poll.interval.ms, with which paused members leave earlier.
    - ``batch_ms``: the longest mean time of a batch.
    - ``comes_back``: whether a member that had ended, or that the group had removed, came back.
    - ``needs``: the settings with which members may be too late, with values with which they are not.
    - ``own_needs``: those of the protocol, as it says (`ProtocolSpec.needs`).
    """

    history: History
    session: str
    session_ms: int
    settings: Mapping[str, int]
    poll_records: int
    absences: Sequence[Absence]
    expired: int
    silent: bool
    poll_intervals: Sequence[int]
    batch_ms: int
    comes_back: bool
    needs: Mapping[str, int]
    own_needs: Sequence[tuple[str, str, int]]

    @property
    def longest(self) -> Absence | None:
        """The longest absence."""
        return self.absences[0] if self.absences else None


def facts_of(scenario: Scenario, history: History) -> Facts:
    """Return the facts of a run of a scenario."""
    config = configured(ClientConfig, scenario.config, group_id="facts")
    family, shorter = history.family, _shorter(history.family)
    names = {name for values in shorter.values() for name in values}
    settings = None if family.settings is None else configured(family.settings, scenario.config)
    of_protocol = {} if settings is None else _durations(settings, names)
    of_consumers = _durations(config, names)
    of_coordinator = _durations(configured(CoordinatorConfig, scenario.config), names)
    if of_protocol:
        del of_consumers[SESSION], of_consumers[HEARTBEAT]
    ended: dict[str, int] = {}
    absences: list[Absence] = []
    ids: dict[str, str] = {}
    expired = batch_ms = 0
    rejoins = False
    causes_ms = history.stops.causes_ms
    silent = bool(causes_ms[DETECTION] or causes_ms[AWAY])
    for at_ms, event in ((line.at_ms, line.event) for line in history.trace.events):
        if isinstance(event, ev.MemberStopped):
            ended[event.client] = at_ms
            silent |= event.how == "crashed"
        elif isinstance(event, ev.MemberCutOff | ev.ConsumerFailed):
            silent = True
        elif isinstance(event, ev.Changed):
            silent |= event.kind == "freeze"
        elif isinstance(event, ev.MemberStarted) and event.client in ended:
            absences.append(Absence(event.client, at_ms - ended.pop(event.client)))
        elif isinstance(event, ev.MemberRemoved):
            expired += "session" in event.reason
        elif isinstance(event, ev.Joined):
            rejoins |= ids.setdefault(event.client, event.member_id) != event.member_id
        elif isinstance(event, ev.ApplicationStarted):
            batch_ms = max(batch_ms, event.batch_ms)
    absences.sort(key=lambda absence: -absence.ms)
    durations = {**of_consumers, **of_coordinator, **of_protocol}
    session = next(name for name in shorter[Kind.SHORT_SESSION] if name in durations)
    return Facts(
        history,
        session,
        durations[session],
        durations,
        max([_poll_records(member, config) for member in scenario.members], default=config.max_poll_records),
        absences,
        expired,
        silent or bool(expired),
        poll_intervals(scenario, history.trace),
        batch_ms,
        rejoins or bool(absences),
        needs(scenario, history.trace, has_session=SESSION in of_consumers),
        [] if family.needs is None else list(family.needs(settings, history.trace.events)),
    )


def _poll_records(member: Member, config: ClientConfig) -> int:
    return int(member.overrides.config.get(RECORDS, config.max_poll_records))


def _durations(config: msgspec.Struct, names: Collection[str]) -> dict[str, int]:
    """Return those settings of a configuration that are among the names."""
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(config)}
    return {name: getattr(config, fields[name]) for name in fields.keys() & set(names)}


def long_enough_ms(absences: Sequence[Absence]) -> int | None:
    """Return the shortest proposed duration in which the members come back, or None without any.

    Absences that are too long for the longest one do not count.
    """
    longest_ms = 1_000 * NICE_SECONDS[-1]
    needed = [ROOM * absence.ms for absence in absences if ROOM * absence.ms <= longest_ms]
    return long_ms(max(needed)) if needed else None


def changes(scenario: Scenario, strategy: str, facts: Facts, registry: Registry) -> list[Change]:
    """Return the changes that are worth a trial, those of one kind first. They are all different."""
    now = registry.strategy(strategy)
    found: dict[tuple[Any, ...], Change] = {}
    for change in _changes(scenario, now, facts, registry):
        key = change.strategy, change.more, *sorted(change.settings.items())
        if key not in found and _works(change, scenario, registry):
            found[key] = change
    return list(found.values())


def delay_ms(change: Change, scenario: Scenario, registry: Registry) -> int:
    """Return how long lost partitions wait for their owner under the strategy of a change."""
    strategy = registry.strategy(change.strategy)
    return family_for(scenario, strategy, registry).timed(strategy).delay_ms or 0


def _works(change: Change, scenario: Scenario, registry: Registry) -> bool:
    """Return whether the strategy exists, goes with the scenario, and reads the settings."""
    try:
        strategy = registry.strategy(change.strategy)
        family_for(change.of(scenario, registry), strategy, registry)
    except InputError:
        return False
    return all(reads(strategy, name, registry) for name in change.settings)


def _changes(scenario: Scenario, now: Strategy, facts: Facts, registry: Registry) -> Iterator[Change]:
    gains = (
        now.protocol == DEFAULT_PROTOCOL
        and not is_cooperative(registry.assignor(now.name))
        and any(CLIENTS[member.application.client].gains_from_cooperation for member in scenario.members)
    )
    cooperative = _with_assignor("cooperative-sticky", now)
    if now.protocol == DEFAULT_PROTOCOL:
        yield Change(CONSUMER, frozenset({Kind.CONSUMER}))
    yield Change(now.name, frozenset({Kind.MEMBERS}), more=1)
    static = list(_static(now, facts))
    yield from static
    if gains:
        yield Change(cooperative, frozenset({Kind.COOPERATIVE}))
    yield from _assignors(now, facts)
    yield from _settings(now, facts)
    long_ms = long_enough_ms(facts.absences)
    if long_ms is not None and now.delay_ms is None:
        kinds = {Kind.COOPERATIVE, Kind.DELAY} if gains else {Kind.DELAY}
        text = f"{cooperative if gains else now.name}+delay={format_duration(long_ms)}"
        yield Change(text, frozenset(kinds))
    for change in static if gains else ():
        text = f"{cooperative.removesuffix('+static')}+static"
        yield replace(change, strategy=text, kinds=change.kinds | {Kind.COOPERATIVE})


def _static(now: Strategy, facts: Facts) -> Iterator[Change]:
    name = now.name if now.static else f"{now.name}+static"
    kinds = frozenset() if now.static else frozenset({Kind.STATIC})
    if kinds and facts.comes_back:
        yield Change(name, kinds)
    long_ms = long_enough_ms(facts.absences)
    if long_ms is None or long_ms == facts.session_ms:
        return
    if long_ms > facts.session_ms:
        yield Change(name, kinds | {Kind.LONG_SESSION}, {facts.session: long_ms})
    else:
        yield Change(name, kinds | {Kind.SHORT_SESSION}, {facts.session: long_ms})
    if long_ms < facts.session_ms and facts.silent:
        yield Change(now.name, frozenset({Kind.SHORT_SESSION}), {facts.session: long_ms})


def _assignors(now: Strategy, facts: Facts) -> Iterator[Change]:
    if avoidable_moves(facts.history) and "sticky" not in now.assignor:
        yield Change(_with_assignor("sticky", now), frozenset({Kind.STICKY}))
    members = len(facts.history.last_settled.members) if facts.history.last_settled is not None else 0
    is_small = sum(facts.history.topics.values()) * members <= MOST_PAIRS
    weighted = ["optimal"] if is_small else ["lag-aware"]
    if is_avoidable := _is_overload_avoidable(facts.history):
        weighted = list(dict.fromkeys([*weighted, "lag-aware"]))
        if now.assignor != "roundrobin":  # which Kafka's own clients have, unlike the others
            yield Change(_with_assignor("roundrobin", now), frozenset({Kind.EVEN}))
    if is_avoidable or weighted_optimality_gap(facts.history) > UNEVEN:
        for assignor in weighted:
            if now.assignor != assignor:
                yield Change(_with_assignor(assignor, now), frozenset({Kind.WEIGHTS}))


def _is_overload_avoidable(history: History) -> bool:
    """Return whether other owners may take away an overload of a member, or a lag that does not come down.

    They may if the members together can handle the load. Members may differ in what they can handle.
    """
    found = overload_of(history)
    if found is not None and found.of_group:
        return False
    return utilization(history) > 1 or lag_at_end(history) > least_left(max_lag(history))


def _shorter_durations(now: Strategy, facts: Facts) -> Iterator[Change]:
    causes_ms = facts.history.stops.causes_ms
    for kind, values in _shorter(facts.history.family).items():
        if kind in _ACTS_AGAINST and not any(causes_ms[cause] for cause in _ACTS_AGAINST[kind]):
            continue
        if kind is Kind.SHORT_SESSION and not facts.silent:
            continue
        for name, value in values.items():
            if facts.settings.get(name, value) > value:
                yield Change(now.name, frozenset({kind}), {name: value})


def _settings(now: Strategy, facts: Facts) -> Iterator[Change]:
    yield from _shorter_durations(now, facts)
    for value in facts.poll_intervals:
        yield Change(now.name, frozenset({Kind.POLL_INTERVAL}), {POLLS: value})
    for kind, name in NEEDED.items():
        if name in facts.needs:
            for value in _values(name, facts.needs[name]):
                yield Change(now.name, frozenset({kind}), {name: value})
    for text, name, value in facts.own_needs:
        yield Change(now.name, frozenset({Kind[text]}), {name: value})
    if facts.needs.keys() >= {POLLS, SESSION}:
        both = {name: facts.needs[name] for name in (POLLS, SESSION)}
        yield Change(now.name, frozenset({Kind.LONG_POLL_INTERVAL, Kind.LONG_SESSION}), both)
    if RECORDS not in facts.needs and facts.batch_ms >= LONG_BATCH_MS and facts.poll_records > 1:
        fewer = max(1, facts.poll_records // 10)
        yield Change(now.name, frozenset({Kind.RECORDS}), {RECORDS: fewer})


def _values(name: str, value: int) -> list[int]:
    """Return what is tried of a setting: batches vary, so that of a largest size less may be needed, too."""
    return (
        sorted({value, max(1, value // 2), max(1, value // 4)}, reverse=True) if name == RECORDS else [value]
    )


def _with_assignor(assignor: str, now: Strategy) -> str:
    """Return the text of a strategy with another assignor, under the same protocol."""
    protocol = "" if now.protocol == DEFAULT_PROTOCOL else f"+{now.protocol}"
    return f"{assignor}{protocol}{'+static' * now.static}"


# --- trials of what a change costs


class Trouble(Enum):
    """What happens to one member in a trial. The value is the beginning of a sentence."""

    CRASHES = "a member crashes for good"
    CLOSES = "a member is closed for good"
    FREEZES = f"a member freezes for {FREEZE_MS // 1_000} s"


def troubles(scenario: Scenario, facts: Facts, longest_ms: int) -> dict[Trouble, Scenario]:
    """Return a scenario for each trouble: the group of a scenario at rest, and one member that has it.

    It lasts until a session or a delay of ``longest_ms`` has passed. There are none if fewer than two members
    are in the group from the beginning.
    """
    if len(scenario.members) < 2:
        return {}
    target = (_busiest(scenario, facts.history),)
    at_ms = max(30_000, 2 * (facts.history.start_up_ms or 0))
    events = {
        Trouble.CRASHES: ("crash", Crash(target)),
        Trouble.CLOSES: ("leave", Leave(target)),
        Trouble.FREEZES: ("freeze", Freeze(target, FREEZE_MS)),
    }
    duration_ms = at_ms + longest_ms + 60_000
    return {
        trouble: replace(
            scenario,
            duration_ms=duration_ms,
            events=(ScenarioEvent(at_ms, kind, arguments),),
            measure_from_ms=at_ms,
        )
        for trouble, (kind, arguments) in events.items()
    }


def _busiest(scenario: Scenario, history: History) -> str:
    """Return the first of the members that have most partitions when the group first rests."""
    owned = Counter(history.settled[0].owners.values()) if history.settled else Counter()
    return max((member.id for member in scenario.members), key=lambda name: owned[name])
