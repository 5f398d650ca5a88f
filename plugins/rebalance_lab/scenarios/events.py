"""The built-in kinds of scenario events. An entry point of the plugin group ``rebalance_lab``.

Each kind is a value with its arguments, which is read from the document. The optional `check` compares it
with the members and topics at that time. `apply` carries it out on a stage. The kinds that act on members are
in `member_events`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.registry.hookspecs import ScenarioEventSpec, hookimpl
from rebalance_lab.scenarios import member_events as of
from rebalance_lab.scenarios.documents import Document, Duration, Schema, Text, Time, about, read, schemas_of
from rebalance_lab.scenarios.fields import NewTopicFields, Partitions, SubscriptionFields
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.scenario import Topic, new_topic
from rebalance_lab.scenarios.stage import Stage

Counts: TypeAlias = Annotated[
    Annotated[dict[Text, Partitions], Meta(min_length=1)],
    about(least="topics with their new numbers of partitions"),
]
NewTopics: TypeAlias = Annotated[
    Annotated[dict[Text, NewTopicFields], Meta(min_length=1)],
    about(key="a topic's name", least="topics, each with partitions and rates"),
]

_JOINS = {"$ref": "#/$defs/NewMemberFields"}
Joining: TypeAlias = Annotated[
    Any, about(schema={"anyOf": [_JOINS, {"type": "array", "items": _JOINS, "minItems": 1}]})
]
Calming: TypeAlias = Annotated[Any, about(schema={"const": True})]


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

    @property
    def created(self) -> tuple[str, ...]:
        """The names of the topics."""
        return tuple(name for name, _ in self.topics)

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for name, topic in self.topics:
            roster.topic_created(name, topic.partitions, inside(inside(where, "create_topic"), name))

    def apply(self, stage: Stage) -> None:
        for name, topic in self.topics:
            stage.changed("create_topic", name)
            stage.create_topic(name, topic)


class TopicNames(of.Names):
    """The names of topics: one, or a list."""

    __slots__ = ()
    what = "a topic's name"
    once = "each topic once"


class DeleteTopic(of.OfNames):
    """Topics end, with their partitions and records."""

    kind = "delete_topic"

    def check_one(self, roster: Roster, name: str, place: str, at_ms: int) -> None:  # noqa: ARG002
        roster.topic_deleted(name, place)

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.delete_topic(name)


class CoordinatorFailover(Document, frozen=True):
    """The group's coordinator fails. Another broker takes over after ``down_ms``.

    ``after``: when it fails, at once or in the middle of its next step.
    """

    down_ms: Annotated[Time, about("The time without a coordinator.", schema={"default": "3s"})] = (
        msgspec.field(name="down", default_factory=lambda: Time(3_000))
    )

    after: Annotated[
        Literal["append"] | None,
        about("It fails when its next records are in the log, before it answers.", expected="append"),
    ] = None

    def apply(self, stage: Stage) -> None:
        stage.coordinator_failover(self.down_ms, after_append=self.after is not None)


class LogFault(of.Lasting, frozen=True):
    """Appends to the log of the group are late by ``by_ms`` for a while, or fail if that is 0."""

    by_ms: Annotated[Duration, about("By how much appends are late; by default they fail.")] = msgspec.field(
        name="by", default_factory=lambda: Duration(0)
    )

    def apply(self, stage: Stage) -> None:
        stage.changed("log_fault", "late" if self.by_ms else "fails")
        stage.log_fault(self.by_ms, self.for_ms)


@dataclass(frozen=True, slots=True)
class Calm:
    """All faults of the network and of the log end, pauses and freezes."""

    def apply(self, stage: Stage) -> None:
        stage.changed("calm", "network")
        stage.calm()


def _create_topic(value: Any, extra: Mapping[str, Any], where: str) -> CreateTopic:
    of.read_beside(Document, extra, where)
    at = inside(where, "create_topic")
    topics: dict[str, NewTopicFields] = read(NewTopics, value, at)
    return CreateTopic(tuple((name, new_topic(topic, inside(at, name))) for name, topic in topics.items()))


def _calm(value: Any, extra: Mapping[str, Any], where: str) -> Calm:
    of.read_beside(Document, extra, where)
    if value is not True:
        raise unexpected(inside(where, "calm"), value, "true")
    return Calm()


def _apply(stage: Stage, arguments: Any) -> None:
    arguments.apply(stage)


def _schema_of(kind: Any) -> Schema:
    """Return the schema of a type, or of one that may be null, in one piece but for documents inside it."""
    (found,), definitions = schemas_of(kind)
    if "anyOf" in found:
        return {**found, "anyOf": [_in_place(one, definitions) for one in found["anyOf"]]}
    return _in_place(found, definitions)


def _in_place(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    return definitions.get(schema.get("$ref", "").removeprefix("#/$defs/"), schema)


Parse: TypeAlias = Callable[[Any, Mapping[str, Any], str], Any]


def event_kind(
    name: str,
    text: str,
    value: Any,
    make: Callable[..., Any] | None = None,
    *,
    beside: type[Document] = Document,
    parse: Parse | None = None,
    protocols: tuple[str, ...] = (),
    elsewhere: str = "",
) -> ScenarioEventSpec:
    """Return a kind of event from the type of its ``value``, and that of the fields ``beside`` it.

    ``make`` makes the event of them, unless the value itself is the event or ``parse`` reads it. The event
    has ``apply(stage)``. ``protocols`` and ``elsewhere`` are those of the record.
    """

    def parsed(given: Any, extra: Mapping[str, Any], where: str) -> Any:
        fields = msgspec.structs.astuple(of.read_beside(beside, extra, where))
        found = read(value, given, inside(where, name))
        return found if make is None else make(found, *fields)

    others = _schema_of(beside)
    return ScenarioEventSpec(
        name,
        parse or parsed,
        _apply,
        text,
        fields={name: _schema_of(value), **others["properties"]},
        required=others["required"],
        protocols=protocols,
        elsewhere=elsewhere,
    )


def _of_names(kind: type[of.OfNames], text: str, names: type[of.Names] = of.Names) -> ScenarioEventSpec:
    beside = kind.beside if issubclass(kind, of.ForAWhile) else Document
    return event_kind(kind.kind, text, names, kind, beside=beside)


@hookimpl
def scenario_events() -> Iterable[ScenarioEventSpec]:
    """Return the kinds of scenario events of this package."""
    return [
        event_kind(
            "join", "A new member: join: {id: extra, topics: [orders]}.", Joining, parse=of.parse_join
        ),
        _of_names(of.Leave, "A member closes properly: leave: c-1."),
        _of_names(of.Crash, "A member vanishes: crash: c-2."),
        _of_names(of.Restart, "A member starts again: restart: c-2."),
        _of_names(of.Pause, "A member stands still: pause: c-0, for: 70s."),
        _of_names(of.Freeze, "A process stands still, heartbeats too: freeze: c-0, for: 70s."),
        _of_names(of.Cut, "A member is cut from brokers: cut: c-0, for: 10s, way: both, broker: 0."),
        event_kind("slow", "A member or broker is slow: slow: {broker: 0, by: 300ms, for: 30s}.", of.Slow),
        event_kind(
            "subscribe",
            "A new subscription: subscribe: s1, topics: [orders, payments].",
            of.Names,
            beside=SubscriptionFields,
            parse=of.parse_subscribe,
        ),
        _of_names(of.RemoveMember, "An administrator removes a member: remove_member: c-1."),
        event_kind(
            "add_partitions",
            "Topics grow: add_partitions: {orders: 24}.",
            Counts,
            lambda counts: AddPartitions(tuple(counts.items())),
        ),
        event_kind(
            "create_topic",
            "A new topic: create_topic: {payments: {partitions: 6, rate: 100}}.",
            NewTopics,
            parse=_create_topic,
        ),
        _of_names(DeleteTopic, "A topic ends: delete_topic: payments.", TopicNames),
        event_kind(
            "rolling_restart",
            "Every member in turn: rolling_restart: {every: 20s, down: 5s}.",
            of.RollingRestart,
        ),
        event_kind(
            "coordinator_failover",
            "The coordinator fails, another takes over: coordinator_failover: {down: 3s}.",
            CoordinatorFailover | None,
            lambda failover: failover or CoordinatorFailover(),
        ),
        event_kind(
            "log_fault", "The log of the group fails, or is late: log_fault: {by: 2s, for: 20s}.", LogFault
        ),
        event_kind("calm", "The network is well from now on: calm: true.", Calming, parse=_calm),
    ]
