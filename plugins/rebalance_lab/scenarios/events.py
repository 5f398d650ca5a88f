"""The built-in kinds of scenario events. An entry point of the plugin group ``rebalance_lab``.

Each kind is a value with its arguments. A parser makes it from the document. The optional `check` compares it
with the members and topics at that time. `apply` carries it out on a stage. The kinds that act on members are
in `member_events`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.schemas import (
    DURATION,
    TEXT,
    described,
    fields_of,
    named,
    one_or_more,
    optional,
    whole,
)
from coordinator_core.registry.hookspecs import ScenarioEventSpec, hookimpl
from rebalance_lab.scenarios import member_events as of
from rebalance_lab.scenarios.fields import (
    MOST_PARTITIONS,
    NEW_TOPIC_FIELDS,
    ONE_KIND_OF_RATES,
    SUBSCRIPTION_FIELDS,
)
from rebalance_lab.scenarios.member_events import no_more
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.scenario import Topic, parse_new_topic
from rebalance_lab.scenarios.stage import Stage

NEW_TOPIC = fields_of(NEW_TOPIC_FIELDS, ("partitions",), allOf=ONE_KIND_OF_RATES)
FAILOVER_FIELDS = {"down": described("The time without a coordinator.", DURATION, default="3s")}


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
class CreateTopic:
    """New topics. Consumers whose pattern matches see them when they refresh their metadata."""

    topics: tuple[tuple[str, Topic], ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for name, topic in self.topics:
            roster.topic_created(name, topic.partitions, inside(inside(where, "create_topic"), name))

    def apply(self, stage: Stage) -> None:
        for name, topic in self.topics:
            stage.changed("create_topic", name)
            stage.create_topic(name, topic)


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Topics end, with their partitions and records."""

    topics: tuple[str, ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for name, place in of.places(self.topics, inside(where, "delete_topic")):
            roster.topic_deleted(name, place)

    def apply(self, stage: Stage) -> None:
        for name in self.topics:
            stage.changed("delete_topic", name)
            stage.delete_topic(name)


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
    no_more(extra, where)
    if value is not True:
        raise doc.unexpected(inside(where, "calm"), value, "true")
    return Calm()


def _add_partitions(value: Any, extra: Mapping[str, Any], where: str) -> AddPartitions:
    no_more(extra, where)
    at = inside(where, "add_partitions")
    counts = doc.mapping(value, at)
    if not counts:
        raise doc.unexpected(at, counts, "topics with their new numbers of partitions")
    return AddPartitions(
        tuple((t, doc.whole(n, inside(at, t), low=1, high=MOST_PARTITIONS)) for t, n in counts.items())
    )


def _create_topic(value: Any, extra: Mapping[str, Any], where: str) -> CreateTopic:
    no_more(extra, where)
    at = inside(where, "create_topic")
    topics = doc.mapping(value, at)
    if not topics:
        raise doc.unexpected(at, topics, "topics, each with partitions and rates")
    for name in topics:
        doc.text(name, at, "a topic's name")
    return CreateTopic(
        tuple((name, parse_new_topic(topic, inside(at, name))) for name, topic in topics.items())
    )


def _delete_topic(value: Any, extra: Mapping[str, Any], where: str) -> DeleteTopic:
    no_more(extra, where)
    return DeleteTopic(of.names(value, inside(where, "delete_topic"), "a topic's name", "each topic once"))


def _coordinator_failover(value: Any, extra: Mapping[str, Any], where: str) -> CoordinatorFailover:
    no_more(extra, where)
    at = inside(where, "coordinator_failover")
    fields = doc.mapping({} if value is None else value, at, FAILOVER_FIELDS)
    return CoordinatorFailover(parse_duration(fields.get("down", "3s"), inside(at, "down"), at_least_ms=1))


def _apply(stage: Stage, arguments: Any) -> None:
    arguments.apply(stage)


def _of_members(kind: str, make: Callable[[tuple[str, ...]], Any], text: str) -> ScenarioEventSpec:
    return ScenarioEventSpec(kind, of.of_members(make, kind), _apply, text, fields={kind: one_or_more(TEXT)})


def _for_a_while(kind: str, make: Callable[[tuple[str, ...], int], Any], text: str) -> ScenarioEventSpec:
    fields = {kind: one_or_more(TEXT), "for": DURATION}
    return ScenarioEventSpec(kind, of.for_a_while(make, kind), _apply, text, fields=fields, required=("for",))


@hookimpl
def scenario_events() -> Iterable[ScenarioEventSpec]:
    """Return the kinds of scenario events of this package."""
    return [
        ScenarioEventSpec(
            "join",
            of.parse_join,
            _apply,
            "A new member: join: {id: extra, topics: [orders]}.",
            fields={"join": one_or_more({"$ref": "#/$defs/new_member"})},
        ),
        _of_members("leave", of.Leave, "A member closes properly: leave: c-1."),
        _of_members("crash", of.Crash, "A member vanishes: crash: c-2."),
        _of_members("restart", of.Restart, "A member starts again: restart: c-2."),
        _for_a_while("pause", of.Pause, "A member stands still: pause: c-0, for: 70s."),
        _for_a_while("freeze", of.Freeze, "A process stands still, heartbeats too: freeze: c-0, for: 70s."),
        _for_a_while("cut", of.Cut, "A member is cut from the brokers: cut: c-0, for: 10s."),
        ScenarioEventSpec(
            "subscribe",
            of.parse_subscribe,
            _apply,
            "A new subscription: subscribe: s1, topics: [orders, payments].",
            fields={"subscribe": one_or_more(TEXT), **SUBSCRIPTION_FIELDS},
        ),
        _of_members(
            "remove_member", of.RemoveMember, "An administrator removes a member: remove_member: c-1."
        ),
        ScenarioEventSpec(
            "lag_view",
            of.parse_lag_view,
            _apply,
            "What servers show a member is late: lag_view: {member: c-2, by: 10s}.",
            protocols=("watcher", "peers"),
            fields={"lag_view": fields_of(of.LAG_VIEW_FIELDS, ("member", "by"))},
        ),
        ScenarioEventSpec(
            "add_partitions",
            _add_partitions,
            _apply,
            "Topics grow: add_partitions: {orders: 24}.",
            fields={"add_partitions": named(whole(1, MOST_PARTITIONS), least=1)},
        ),
        ScenarioEventSpec(
            "create_topic",
            _create_topic,
            _apply,
            "A new topic: create_topic: {payments: {partitions: 6, rate: 100}}.",
            fields={
                "create_topic": named(
                    fields_of(NEW_TOPIC_FIELDS, ("partitions",), allOf=ONE_KIND_OF_RATES), least=1
                )
            },
        ),
        ScenarioEventSpec(
            "delete_topic",
            _delete_topic,
            _apply,
            "A topic ends: delete_topic: payments.",
            fields={"delete_topic": one_or_more(TEXT)},
        ),
        ScenarioEventSpec(
            "rolling_restart",
            of.parse_rolling_restart,
            _apply,
            "Every member in turn: rolling_restart: {every: 20s, down: 5s}.",
            fields={"rolling_restart": fields_of(of.ROLLING_RESTART_FIELDS, ("every", "down"))},
        ),
        ScenarioEventSpec(
            "coordinator_failover",
            _coordinator_failover,
            _apply,
            "The coordinator fails, another takes over: coordinator_failover: {down: 3s}.",
            fields={"coordinator_failover": optional(fields_of(FAILOVER_FIELDS))},
        ),
        ScenarioEventSpec(
            "calm",
            _calm,
            _apply,
            "The network is well from now on: calm: true.",
            fields={"calm": {"const": True}},
        ),
    ]
