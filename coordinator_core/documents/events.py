"""The built-in kinds of scenario events. An entry point of the plugin group ``rebalance_lab``.

Each kind is a value with its arguments. A parser makes it from the document. The optional `check` compares it
with the members and topics at that time. `apply` carries it out on a stage.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_core.documents.roster import Roster
from coordinator_core.documents.scenario import MOST_PARTITIONS, Member, parse_members, parse_subscription
from coordinator_core.documents.stage import Stage
from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import close_to
from coordinator_core.registry.hookspecs import ScenarioEventSpec, hookimpl


@dataclass(frozen=True, slots=True)
class Join:
    """New members start, several with ``count``."""

    members: tuple[Member, ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for member in self.members:
            for i, topic in enumerate(member.topics):
                roster.topic(topic, inside(inside(where, "join.topics"), i))
            roster.started(member.id, inside(where, "join.id"))

    def apply(self, stage: Stage) -> None:
        for member in self.members:
            stage.changed("join", member.id)
            stage.start(member)


@dataclass(frozen=True, slots=True)
class Leave:
    """A member closes properly."""

    member: str

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        roster.stopped(self.member, inside(where, "leave"), f"left at {at_ms}ms")

    def apply(self, stage: Stage) -> None:
        stage.changed("leave", self.member)
        stage.leave(self.member)


@dataclass(frozen=True, slots=True)
class Crash:
    """A member ends without a request."""

    member: str

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        roster.stopped(self.member, inside(where, "crash"), f"crashed at {at_ms}ms")

    def apply(self, stage: Stage) -> None:
        stage.changed("crash", self.member)
        stage.crash(self.member)


@dataclass(frozen=True, slots=True)
class Restart:
    """A member starts again. A running member is closed first."""

    member: str

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        roster.restarted(self.member, inside(where, "restart"))

    def apply(self, stage: Stage) -> None:
        stage.changed("restart", self.member)
        stage.restart(self.member)


@dataclass(frozen=True, slots=True)
class Pause:
    """The application of a member stands still for a while. Its heartbeats continue in the background."""

    member: str
    for_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        roster.is_running(self.member, inside(where, "pause"))

    def apply(self, stage: Stage) -> None:
        stage.changed("pause", self.member)
        stage.pause(self.member, self.for_ms)


@dataclass(frozen=True, slots=True)
class Freeze:
    """The whole process of a member stands still for a while, its heartbeats too."""

    member: str
    for_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        roster.is_running(self.member, inside(where, "freeze"))

    def apply(self, stage: Stage) -> None:
        stage.changed("freeze", self.member)
        stage.freeze(self.member, self.for_ms)


@dataclass(frozen=True, slots=True)
class Cut:
    """The network between a member and all brokers is cut for a while. The process continues."""

    member: str
    for_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        roster.is_running(self.member, inside(where, "cut"))

    def apply(self, stage: Stage) -> None:
        stage.changed("cut", self.member)
        stage.cut(self.member, self.for_ms)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A running member changes its subscription."""

    member: str
    topics: tuple[str, ...]
    pattern: str | None

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        roster.is_running(self.member, inside(where, "subscribe"))
        for i, topic in enumerate(self.topics):
            roster.topic(topic, inside(inside(where, "topics"), i))

    def apply(self, stage: Stage) -> None:
        stage.changed("subscribe", self.member)
        stage.subscribe(self.member, self.topics, self.pattern)


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Topics get more partitions."""

    counts: tuple[tuple[str, int], ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for topic, count in self.counts:
            at = inside(inside(where, "add_partitions"), topic)
            before = roster.topic(topic, at)
            if count <= before:
                expected = f"more than the {before} partitions it has (a topic does not shrink)"
                raise InputError(at, str(count), expected)
            roster.topics[topic] = count

    def apply(self, stage: Stage) -> None:
        for topic, count in self.counts:
            stage.changed("add_partitions", topic)
            stage.add_partitions(topic, count)


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """Every running member is closed and started, one every ``every_ms``, each away for ``down_ms``."""

    every_ms: int
    down_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        if not any(roster.running.values()):
            at = inside(where, "rolling_restart")
            raise InputError(at, "no members at this time", "a group that has some")

    def apply(self, stage: Stage) -> None:
        stage.rolling_restart(self.every_ms, self.down_ms)


@dataclass(frozen=True, slots=True)
class CoordinatorFailover:
    """The group's coordinator fails. Another broker takes over after ``down_ms``."""

    down_ms: int

    def apply(self, stage: Stage) -> None:
        stage.coordinator_failover(self.down_ms)


@dataclass(frozen=True, slots=True)
class Calm:
    """All faults end: loss, duplicates, pauses and cuts."""

    def apply(self, stage: Stage) -> None:
        stage.changed("calm", "network")
        stage.calm()


def _calm(value: Any, extra: Mapping[str, Any], where: str) -> Calm:
    _no_more(extra, where)
    if value is not True:
        raise doc.unexpected(inside(where, "calm"), value, "true")
    return Calm()


def _join(value: Any, extra: Mapping[str, Any], where: str) -> Join:
    _no_more(extra, where)
    return Join(tuple(parse_members(value, inside(where, "join"), None)))


def _of_member(make: Callable[[str], Any], kind: str) -> Callable[[Any, Mapping[str, Any], str], Any]:
    def parse(value: Any, extra: Mapping[str, Any], where: str) -> Any:
        _no_more(extra, where)
        return make(doc.text(value, inside(where, kind), "a member's id"))

    return parse


def _for_a_while(make: Callable[[str, int], Any], kind: str) -> Callable[[Any, Mapping[str, Any], str], Any]:
    def parse(value: Any, extra: Mapping[str, Any], where: str) -> Any:
        _no_more(extra, where, "for")
        member = doc.text(value, inside(where, kind), "a member's id")
        lasting = doc.required(extra, "for", where, "how long it lasts, such as 70s")
        return make(member, parse_duration(lasting, inside(where, "for"), at_least_ms=1))

    return parse


def _subscribe(value: Any, extra: Mapping[str, Any], where: str) -> Subscribe:
    _no_more(extra, where, "topics", "topics_pattern")
    member = doc.text(value, inside(where, "subscribe"), "a member's id")
    return Subscribe(member, *parse_subscription(extra, where, None))


def _add_partitions(value: Any, extra: Mapping[str, Any], where: str) -> AddPartitions:
    _no_more(extra, where)
    at = inside(where, "add_partitions")
    counts = doc.mapping(value, at)
    if not counts:
        raise doc.unexpected(at, counts, "topics with their new numbers of partitions")
    return AddPartitions(
        tuple((t, doc.whole(n, inside(at, t), low=1, high=MOST_PARTITIONS)) for t, n in counts.items())
    )


def _rolling_restart(value: Any, extra: Mapping[str, Any], where: str) -> RollingRestart:
    _no_more(extra, where)
    at = inside(where, "rolling_restart")
    fields = doc.mapping(value, at, ("every", "down"))
    every = doc.required(fields, "every", at, "the time from one restart to the next, such as 20s")
    down = doc.required(fields, "down", at, "how long each member is away, such as 5s")
    return RollingRestart(
        parse_duration(every, inside(at, "every"), at_least_ms=1), parse_duration(down, inside(at, "down"))
    )


def _coordinator_failover(value: Any, extra: Mapping[str, Any], where: str) -> CoordinatorFailover:
    _no_more(extra, where)
    at = inside(where, "coordinator_failover")
    fields = doc.mapping({} if value is None else value, at, ("down",))
    return CoordinatorFailover(parse_duration(fields.get("down", "3s"), inside(at, "down"), at_least_ms=1))


def _no_more(extra: Mapping[str, Any], where: str, *allowed: str) -> None:
    """Check that there are no other fields than the key of the kind and those allowed beside it."""
    for key in extra:
        if key not in allowed:
            expected = f"only {' and '.join(allowed)} beside it" if allowed else "no further fields"
            found = f"the unknown field {doc.describe(key)}"
            raise InputError(inside(where, key), found, expected + close_to(key, allowed))


def _apply(stage: Stage, arguments: Any) -> None:
    arguments.apply(stage)


@hookimpl
def scenario_events() -> Iterable[ScenarioEventSpec]:
    """Return the kinds of scenario events of this package."""
    return [
        ScenarioEventSpec("join", _join, _apply, "A new member: join: {id: extra, topics: [orders]}."),
        ScenarioEventSpec(
            "leave", _of_member(Leave, "leave"), _apply, "A member closes properly: leave: c-1."
        ),
        ScenarioEventSpec("crash", _of_member(Crash, "crash"), _apply, "A member vanishes: crash: c-2."),
        ScenarioEventSpec(
            "restart", _of_member(Restart, "restart"), _apply, "A member starts again: restart: c-2."
        ),
        ScenarioEventSpec(
            "pause", _for_a_while(Pause, "pause"), _apply, "A member stands still: pause: c-0, for: 70s."
        ),
        ScenarioEventSpec(
            "freeze",
            _for_a_while(Freeze, "freeze"),
            _apply,
            "A process stands still, heartbeats too: freeze: c-0, for: 70s.",
        ),
        ScenarioEventSpec(
            "cut", _for_a_while(Cut, "cut"), _apply, "A member is cut from the brokers: cut: c-0, for: 10s."
        ),
        ScenarioEventSpec(
            "subscribe", _subscribe, _apply, "A new subscription: subscribe: s1, topics: [orders, payments]."
        ),
        ScenarioEventSpec(
            "add_partitions", _add_partitions, _apply, "Topics grow: add_partitions: {orders: 24}."
        ),
        ScenarioEventSpec(
            "rolling_restart",
            _rolling_restart,
            _apply,
            "Every member in turn: rolling_restart: {every: 20s, down: 5s}.",
        ),
        ScenarioEventSpec(
            "coordinator_failover",
            _coordinator_failover,
            _apply,
            "The coordinator fails, another takes over: coordinator_failover: {down: 3s}.",
        ),
        ScenarioEventSpec("calm", _calm, _apply, "The network is well from now on: calm: true."),
    ]
