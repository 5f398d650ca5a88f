"""The scenario: topics, members and events, as one document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from coordinator_core.errors import InputError
from coordinator_core.model import RebalanceProtocol, TopicPartition
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.reading.durations import format_duration, parse_duration
from coordinator_core.reading.patterns import topic_pattern
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.scenarios.application import IDEAL, LIMITED, NONE, Application, Span
from rebalance_lab.scenarios.batch_times import with_rates
from rebalance_lab.scenarios.documents import read
from rebalance_lab.scenarios.fields import (
    FIRST_GENERATION,
    KINDS_OF_RATES,
    MOST_MEMBERS,
    MOST_PARTITIONS,
    MemberFields,
    NetworkFields,
    NewMemberFields,
    NewTopicFields,
    PlainMemberFields,
    ScenarioFields,
    SubscriptionFields,
    TopicFields,
)
from rebalance_lab.scenarios.kafka_words import LISTED, NO_WORDS, Words, without_words
from rebalance_lab.scenarios.overrides import NO_OVERRIDES, Overrides, Surroundings, parse_overrides
from rebalance_lab.scenarios.ownership import Ownership, ownership_of
from rebalance_lab.scenarios.rates import Rates, read_rates
from rebalance_lab.scenarios.replicas import Racks, checked_length
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.settings import PERIODIC, parse_config

E = TypeVar("E", bound=NewMemberFields)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its partitions at the start, their rates, and the records that wait in each at time 0.

    ``backlog`` is empty if no records wait, ``racks`` if the racks of the replicas are unknown.
    """

    partitions: int
    rates: Rates
    backlog: tuple[int, ...] = ()
    racks: Racks = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A consumer process. It has either ``topics`` or a ``pattern``. A ``process_rate`` of None is unlimited.

    A member of a group that runs already is in ``generation``, with its sorted partitions in ``owned``. For a
    member that joins ``owned`` is None.
    """

    id: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    process_rate: float | None = None
    instance_id: str | None = None
    rack: str | None = None
    owned: tuple[TopicPartition, ...] | None = None
    generation: int = FIRST_GENERATION
    application: Application = IDEAL
    overrides: Overrides = NO_OVERRIDES


@dataclass(frozen=True, slots=True)
class Network:
    """Faults and delays: a uniform latency in whole milliseconds, and probabilities per message."""

    latency_ms_min: int = 1
    latency_ms_max: int = 5
    loss: float = 0.0
    duplicate: float = 0.0


@dataclass(frozen=True, slots=True)
class ScenarioEvent:
    """An event at a time: a kind that a plugin contributed, and its arguments."""

    at_ms: int
    kind: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that has been checked. Times are integer milliseconds.

    Events are in order of time. Events at equal times are in the order of the document. Costs are counted
    from ``measure_from_ms`` on, or from the first rest of the group if it is None. ``words`` are the settings
    in its config that choose a strategy. Members that join from the beginning start at a time that the seed
    draws from ``phase_ms``, the same for all.
    """

    name: str
    duration_ms: int
    topics: Mapping[str, Topic]
    members: tuple[Member, ...]
    events: tuple[ScenarioEvent, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    network: Network = Network()
    seed: int = 0
    brokers: int = 3
    description: str = ""
    measure_from_ms: int | None = None
    words: Words = NO_WORDS
    phase_ms: Span = NONE

    @property
    def running(self) -> tuple[Member, ...]:
        """The members of the group that runs already at time 0, the leader first; empty if there is none."""
        return tuple(member for member in self.members if member.owned is not None)

    @property
    def racks(self) -> dict[str, Racks]:
        """The racks of the topics whose racks are known."""
        return {name: topic.racks for name, topic in self.topics.items() if any(topic.racks)}

    @property
    def overrides(self) -> list[Overrides]:
        """What members have in place of the scenario's and the strategy's, also after events."""
        found = [member.overrides for member in self.members]
        for event in self.events:
            found += getattr(event.arguments, "overrides", ())
        return found

    @property
    def assignors_of_members(self) -> list[tuple[str, ...]]:
        """The assignors of members that have their own, from the beginning or after an event."""
        return [own.assignors for own in self.overrides if own.assignors]

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The topics, and those that events create later."""
        created = (getattr(event.arguments, "created", ()) for event in self.events)
        return tuple(dict.fromkeys((*self.topics, *chain.from_iterable(created))))

    @property
    def migrates(self) -> bool:
        """Whether members have a protocol that the document names, from the beginning or after an event."""
        return any(own.protocol for own in self.overrides)

    @property
    def joining(self) -> tuple[Member, ...]:
        """The members that join from time 0 on."""
        return tuple(member for member in self.members if member.owned is None)


def parse_scenario(
    document: Mapping[str, Any],
    *,
    where: str,
    base_dir: Path | None = None,
    registry: Registry | None = None,
) -> Scenario:
    """Return the scenario of a document, which ``where`` names. CSV paths are relative to ``base_dir``.

    Raises:
        InputError: for the first error in the document.
    """
    root = f"{where}: "
    registry = registry or default_registry()
    fields = read(ScenarioFields, document, root)
    duration_ms = int(fields.duration)
    topics = _topics(fields.topics, inside(root, "topics"), duration_ms, base_dir)
    words, given = without_words(fields.config, inside(root, "config"))
    config = parse_config(given, inside(root, "config"), registry, kafka=fields.kafka)
    roster = Roster(
        {topic: t.partitions for topic, t in topics.items()},
        duration_ms,
        surroundings=Surroundings(config, registry),
        brokers=fields.brokers,
    )
    entries = with_rates(fields.members, config, inside(root, "members"))
    members = _members(entries, inside(root, "members"), roster)
    network = fields.network or NetworkFields()
    events = _events(fields.events or [], config, inside(root, "events"), roster, registry)
    _check_words(words, events, inside(root, "config"), registry)
    return Scenario(
        name=fields.name,
        duration_ms=duration_ms,
        topics=topics,
        members=members,
        events=events,
        config=config,
        network=Network(*network.latency, network.loss, network.duplicate),
        seed=fields.seed,
        brokers=fields.brokers,
        description=fields.description or "",
        measure_from_ms=_measure_from(fields, document, root),
        words=words,
        phase_ms=fields.phase or _phase(config, events),
    )


def _phase(config: Mapping[str, Any], events: Sequence[ScenarioEvent]) -> Span:
    """Return the phases of a group against the events: all those of its heartbeats and commits.

    Nothing outside of a group waits for its heartbeats. The start takes at most half of the time before the
    first event.
    """
    longest_ms = max(config.get(name, default) for name, default in PERIODIC.items())
    first_ms = min((event.at_ms for event in events), default=2 * longest_ms)
    return 0, min(longest_ms, first_ms // 2)


def _check_words(words: Words, events: Iterable[ScenarioEvent], where: str, registry: Registry) -> None:
    """Check that the first of several assignors alone does what a group of all of them does.

    Raises:
        InputError: if it would be cooperative alone, or if members come back with others.
    """
    if len(words.assignors) < 2:
        return
    first = registry.assignor(words.assignors[0])
    changes = any(getattr(event.arguments, "assignors", ()) for event in events)
    if changes or RebalanceProtocol.COOPERATIVE in first.supported_protocols:
        found = f"{len(words.assignors)} assignors ({', '.join(words.assignors)})"
        expected = "one, which is the strategy, and the list as `assignors` of the members"
        raise InputError(inside(where, LISTED), found, expected)


def _measure_from(fields: ScenarioFields, document: Mapping[str, Any], root: str) -> int | None:
    if fields.measure is None:
        return None
    if fields.measure.from_ >= fields.duration:
        expected = f"less than the duration, {format_duration(fields.duration)}"
        raise unexpected(inside(inside(root, "measure"), "from"), document["measure"]["from"], expected)
    return int(fields.measure.from_)


def _topics(
    fields: Mapping[str, TopicFields], where: str, duration_ms: int, base_dir: Path | None
) -> dict[str, Topic]:
    topics = {}
    for name, topic in fields.items():
        at = inside(where, name)
        rates = _rates(topic, at, duration_ms, base_dir)
        racks: Racks = ()
        if topic.racks is not UNSET:
            checked_length(topic.racks, inside(at, "racks"), topic.partitions)
            racks = tuple(tuple(names or ()) for names in topic.racks)
        topics[name] = Topic(topic.partitions, rates, _backlog(topic, inside(at, "backlog")), racks)
    total = sum(t.partitions for t in topics.values())
    if total > MOST_PARTITIONS:
        raise InputError(where, f"{total:,} partitions in all", f"at most {MOST_PARTITIONS:,}")
    return topics


def new_topic(fields: NewTopicFields, where: str) -> Topic:
    """Return a topic that is created later: constant rates and no backlog."""
    return Topic(fields.partitions, _constant_rates(fields, where))


def _constant_rates(fields: NewTopicFields, where: str) -> Rates:
    """Return the rates of a topic, of which at most one kind is given."""
    given = [key for key in KINDS_OF_RATES if getattr(fields, key, UNSET) is not UNSET]
    if len(given) > 1:
        raise InputError(where, " and ".join(given), "one of rate, rates, rates_csv, rates_rows")
    if fields.rates is UNSET:
        return Rates.evenly(fields.rate or 0.0, fields.partitions)
    checked_length(fields.rates, inside(where, "rates"), fields.partitions, "rates")
    return Rates.constant(tuple(fields.rates))


def _rates(fields: TopicFields, where: str, duration_ms: int, base_dir: Path | None) -> Rates:
    constant = _constant_rates(fields, where)
    if fields.rates_csv is UNSET and fields.rates_rows is UNSET:
        if fields.interval is not UNSET:
            expected = "one only together with rates_csv or rates_rows"
            raise InputError(inside(where, "interval"), "an interval", expected)
        return constant
    if fields.interval is UNSET:
        expected = "how long a row of the rates lasts, such as 5m"
        raise InputError(inside(where, "interval"), "nothing", expected)
    if fields.rates_csv is not UNSET:
        return read_rates(
            (base_dir or Path()) / fields.rates_csv,
            partitions=fields.partitions,
            interval_ms=fields.interval,
            until_ms=duration_ms,
            where=inside(where, "rates_csv"),
        )
    rows = fields.rates_rows or []
    for i, row in enumerate(rows):
        checked_length(row, inside(inside(where, "rates_rows"), i), fields.partitions)
    return Rates.in_intervals([tuple(row) for row in rows], fields.interval, duration_ms)


def _backlog(fields: TopicFields, where: str) -> tuple[int, ...]:
    """Return the records of each partition. A single number is that of the whole topic."""
    if fields.backlog is UNSET:
        return ()
    if isinstance(fields.backlog, list):
        checked_length(fields.backlog, where, fields.partitions, "numbers of records")
        return tuple(fields.backlog)
    least, more = divmod(fields.backlog, fields.partitions)
    return tuple(least + (number < more) for number in range(fields.partitions))


def _members(entries: Iterable[Any], where: str, roster: Roster) -> tuple[Member, ...]:
    members: list[Member] = []
    places: list[str] = []
    for i, value in enumerate(entries):
        at = inside(where, i)
        entry, application = _member_entry(MemberFields, value, at)
        roster.has_topics(entry.topics or (), at)
        for member in _numbered(entry, application, ownership_of(entry, at, roster), at):
            roster.started(member.id, inside(at, "id"))
            roster.check_overrides(member.overrides, at)
            members.append(member)
            places.append(at)
            if len(members) > MOST_MEMBERS:
                raise InputError(where, f"more than {MOST_MEMBERS:,} members", "fewer")
    instances: dict[str, str] = {}
    for member in members:
        if member.instance_id is not None and member.instance_id in instances:
            found = f"instance_id {member.instance_id!r} of {instances[member.instance_id]} and {member.id}"
            raise InputError(where, found, "a different instance_id for each member")
        instances[member.instance_id or ""] = member.id
    _check_running(members, places)
    return tuple(members)


def _check_running(members: Sequence[Member], places: Sequence[str]) -> None:
    """Check that the partitions of the members fit together. ``places`` are those of their entries."""
    owner_of: dict[TopicPartition, str] = {}
    first: Member | None = None
    for member, where in zip(members, places, strict=True):
        if member.owned is None:
            continue
        first = member if first is None else first
        if member.generation != first.generation:
            found = f"{member.generation}, where {first.id} is in {first.generation}"
            expected = "one generation for all members with owned"
            raise InputError(inside(where, "generation"), found, expected)
        for partition in member.owned:
            if partition in owner_of:
                at = inside(inside(where, "owned"), partition.topic)
                found = f"partition {partition.partition}, which {owner_of[partition]} owns"
                raise InputError(at, found, "partitions that no other member owns")
            owner_of[partition] = member.id


def new_members(value: Any, where: str) -> Iterator[Member]:
    """Yield the members of an entry that join: one, or ``count`` of them, numbered from 0."""
    entry, application = _member_entry(NewMemberFields, value, where)
    return _numbered(entry, application, Ownership(), where)


def _member_entry(kind: type[E], value: Any, where: str) -> tuple[E, Application]:
    """Return the fields of a member, and those of its application, which stand among them."""
    fields = with_rates(doc.mapping(value, where, member_fields(kind)), {}, where)
    own = {key: fields[key] for key in Application.__struct_fields__ if fields.get(key) is not None}
    if fields.keys() & Application.__struct_fields__:
        fields = {key: v for key, v in fields.items() if key not in Application.__struct_fields__}
    entry = read(kind, fields, where)
    default = IDEAL if entry.process_rate is None else LIMITED
    if not own:
        return entry, default
    application = read(Application, own, where)
    if "batch_overhead" not in own:
        application = replace(application, batch_overhead=default.batch_overhead)
    return entry, application


def _numbered(
    entry: NewMemberFields, application: Application, owns: Ownership, where: str
) -> Iterator[Member]:
    topics, pattern = subscription_of(entry, where)
    overrides = parse_overrides(entry.config, entry.assignors, where)
    for suffix in [""] if entry.count is UNSET else [f"-{i}" for i in range(entry.count)]:
        yield Member(
            entry.id + suffix,
            topics,
            pattern,
            entry.process_rate,
            entry.instance_id and entry.instance_id + suffix,
            entry.rack,
            *owns,
            application,
            overrides,
        )


@cache
def member_fields(kind: type[NewMemberFields]) -> tuple[str, ...]:
    """Return the names of the fields of a member, with those of its application."""
    names = *PlainMemberFields.__struct_fields__, *Application.__struct_fields__, *kind.__struct_fields__
    return tuple(dict.fromkeys(names))


def subscription_of(
    fields: SubscriptionFields | NewMemberFields, where: str
) -> tuple[tuple[str, ...], str | None]:
    """Return the topics or the pattern of a member."""
    topics, pattern = fields.topics, fields.topics_pattern
    if (topics is UNSET) == (pattern is UNSET):
        found = "neither topics nor topics_pattern" if topics is UNSET else "both topics and topics_pattern"
        raise InputError(where.removesuffix(": "), found, "one of topics, topics_pattern")
    if pattern is not UNSET:
        try:
            topic_pattern(pattern)
        except ValueError as error:
            found = f"{pattern!r} ({error})"
            raise InputError(inside(where, "topics_pattern"), found, "a regular expression") from None
        return (), pattern
    return tuple(dict.fromkeys(topics or ())), None


def _events(
    entries: Iterable[Any], config: Mapping[str, Any], where: str, roster: Roster, registry: Registry
) -> tuple[ScenarioEvent, ...]:
    parsed = []
    for i, value in enumerate(entries):
        at = inside(where, i)
        if isinstance(value, Mapping) and "join" in value:
            value = {**value, "join": with_rates(value["join"], config, inside(at, "join"))}
        parsed.append((_event(value, at, roster, registry), i))
    parsed.sort(key=lambda pair: pair[0].at_ms)
    for event, i in parsed:
        roster.advance(event.at_ms)
        check = getattr(event.arguments, "check", None)
        if check is not None:
            check(roster, inside(where, i), event.at_ms)
    return tuple(event for event, _ in parsed)


def _event(value: Any, where: str, roster: Roster, registry: Registry) -> ScenarioEvent:
    fields = doc.mapping(value, where)
    specs = registry.scenario_events()
    at_ms = parse_duration(
        doc.required(fields, "at", where, "when the event happens, such as 30s"), inside(where, "at")
    )
    if at_ms > roster.duration_ms:
        expected = f"at most the duration, {format_duration(roster.duration_ms)}"
        raise unexpected(inside(where, "at"), fields["at"], expected)
    kinds = [key for key in fields if key in specs]
    if len(kinds) != 1:
        others = [key for key in fields if key != "at"]
        if kinds:
            raise InputError(where, " and ".join(kinds), "one kind of event")
        if not others:
            raise InputError(where, "an event without a kind", f"one of {', '.join(sorted(specs))}")
        found = f"the unknown event {doc.describe(others[0])}"
        raise InputError(inside(where, others[0]), found, one_of(others[0], sorted(specs)))
    kind = kinds[0]
    extra = _Keys({key: field for key, field in fields.items() if key not in ("at", kind)}, where)
    own = fields[kind]
    if isinstance(own, dict):
        own = _Keys(own, inside(where, kind))
    with registry.blaming("scenario_events", kind):
        return ScenarioEvent(at_ms, kind, specs[kind].parse(own, extra, where))


class _Keys(dict[str, Any]):
    """A mapping of a document that names its place when a parser of a plugin reads a key that it lacks."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        super().__init__(fields)
        self._where = where

    def __missing__(self, key: str) -> NoReturn:
        raise InputError(inside(self._where, key), "nothing", "a value")
