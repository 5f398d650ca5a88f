"""The scenario: topics, members and events, as one document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.reading.durations import format_duration, parse_duration
from coordinator_core.reading.patterns import topic_pattern
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.scenarios.application import IDEAL, Application, parse_application
from rebalance_lab.scenarios.fields import (
    IN_INTERVALS,
    MEASURE_FIELDS,
    MEMBER_FIELDS,
    MOST_MEMBERS,
    MOST_PARTITIONS,
    MOST_WAITING,
    NETWORK_FIELDS,
    NEW_TOPIC_FIELDS,
    SCENARIO_FIELDS,
    TOPIC_FIELDS,
)
from rebalance_lab.scenarios.overrides import (
    NO_OVERRIDES,
    Overrides,
    Surroundings,
    parse_overrides,
)
from rebalance_lab.scenarios.ownership import (
    FIRST_GENERATION,
    OWNERSHIP_FIELDS,
    Ownership,
    check_running,
    parse_ownership,
)
from rebalance_lab.scenarios.rates import Rates, read_rates
from rebalance_lab.scenarios.replicas import Racks, parse_racks
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.settings import parse_config

LAST_SEED = 2**63 - 1
"""The largest seed of a scenario."""


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
    from ``measure_from_ms`` on, or from the first rest of the group if it is None.
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

    @property
    def running(self) -> tuple[Member, ...]:
        """The members of the group that runs already at time 0, the leader first; empty if there is none."""
        return tuple(member for member in self.members if member.owned is not None)

    @property
    def racks(self) -> dict[str, Racks]:
        """The racks of the topics whose racks are known."""
        return {name: topic.racks for name, topic in self.topics.items() if any(topic.racks)}

    @property
    def has_assignors(self) -> bool:
        """Whether members have assignors of their own, from the beginning or after an event."""
        own = any(member.overrides.assignors for member in self.members)
        return own or any(getattr(event.arguments, "has_assignors", False) for event in self.events)

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
    fields = doc.mapping(document, root, SCENARIO_FIELDS)
    name = doc.text(doc.required(fields, "name", root, "the scenario's name"), inside(root, "name"))
    expected = 'a duration such as "10m"'
    duration = doc.required(fields, "duration", root, expected)
    duration_ms = parse_duration(duration, inside(root, "duration"), at_least_ms=1)
    topics = _topics(fields, root, duration_ms, base_dir)
    config = parse_config(fields.get("config"), inside(root, "config"), registry)
    roster = Roster(
        {topic: t.partitions for topic, t in topics.items()},
        duration_ms,
        surroundings=Surroundings(config, registry),
    )
    members = _members(fields, root, roster)
    return Scenario(
        name=name,
        duration_ms=duration_ms,
        topics=topics,
        members=members,
        events=_events(fields, root, roster, registry),
        config=config,
        network=_network(fields.get("network"), inside(root, "network")),
        seed=doc.whole(fields.get("seed", 0), inside(root, "seed"), low=0, high=LAST_SEED),
        brokers=doc.whole(fields.get("brokers", 3), inside(root, "brokers"), low=1, high=100),
        description=_description(fields.get("description"), inside(root, "description")),
        measure_from_ms=_measure_from(fields.get("measure"), inside(root, "measure"), duration_ms),
    )


def _measure_from(value: Any, where: str, duration_ms: int) -> int | None:
    if value is None:
        return None
    fields = doc.mapping(value, where, MEASURE_FIELDS)
    at = inside(where, "from")
    from_ms = parse_duration(doc.required(fields, "from", where, "a duration such as 0s"), at)
    if from_ms >= duration_ms:
        raise unexpected(at, fields["from"], f"less than the duration, {format_duration(duration_ms)}")
    return from_ms


def _description(value: Any, where: str) -> str:
    if value is not None and not isinstance(value, str):
        raise unexpected(where, value, "text")
    return value or ""


def _topics(
    fields: Mapping[str, Any], root: str, duration_ms: int, base_dir: Path | None
) -> dict[str, Topic]:
    where = inside(root, "topics")
    expected = "a mapping of topic names, each with partitions and rates"
    topics = doc.mapping(doc.required(fields, "topics", root, expected), where)
    if not topics:
        raise unexpected(where, topics, "at least one topic")
    parsed = {}
    for name, value in topics.items():
        doc.text(name, where, "a topic's name")
        parsed[name] = _topic(value, inside(where, name), duration_ms, base_dir)
    total = sum(t.partitions for t in parsed.values())
    if total > MOST_PARTITIONS:
        raise InputError(where, f"{total:,} partitions in all", f"at most {MOST_PARTITIONS:,}")
    return parsed


def _topic(value: Any, where: str, duration_ms: int, base_dir: Path | None) -> Topic:
    fields = doc.mapping(value, where, TOPIC_FIELDS)
    partitions = _partitions(fields, where)
    rates = _rates(fields, where, partitions, duration_ms, base_dir)
    backlog = _backlog(fields, inside(where, "backlog"), partitions)
    if "racks" not in fields:
        return Topic(partitions, rates, backlog)
    return Topic(partitions, rates, backlog, parse_racks(fields["racks"], inside(where, "racks"), partitions))


def parse_new_topic(value: Any, where: str) -> Topic:
    """Return a topic that is created later: constant rates and no backlog."""
    fields = doc.mapping(value, where, NEW_TOPIC_FIELDS)
    partitions = _partitions(fields, where)
    return Topic(partitions, _rates(fields, where, partitions, 0, None))


def _partitions(fields: Mapping[str, Any], where: str) -> int:
    count = doc.required(fields, "partitions", where, "the number of partitions")
    return doc.whole(count, inside(where, "partitions"), low=1, high=MOST_PARTITIONS)


def _rates(
    fields: Mapping[str, Any], where: str, partitions: int, duration_ms: int, base_dir: Path | None
) -> Rates:
    given = [key for key in ("rate", "rates", *IN_INTERVALS) if key in fields]
    if len(given) > 1:
        raise InputError(where, " and ".join(given), "one of rate, rates, rates_csv, rates_rows")
    if "interval" in fields and not set(given) & set(IN_INTERVALS):
        expected = "one only together with rates_csv or rates_rows"
        raise InputError(inside(where, "interval"), "an interval", expected)
    if given == ["rates"]:
        return _listed_rates(fields["rates"], inside(where, "rates"), partitions)
    if given == ["rates_csv"]:
        return _csv_rates(fields, where, partitions, duration_ms, base_dir)
    if given == ["rates_rows"]:
        return _rates_in_rows(fields, where, partitions, duration_ms)
    return Rates.evenly(doc.number(fields.get("rate", 0), inside(where, "rate")), partitions)


def _backlog(fields: Mapping[str, Any], where: str, partitions: int) -> tuple[int, ...]:
    """Return the records of each partition. A single number is that of the whole topic."""
    if "backlog" not in fields:
        return ()
    value = fields["backlog"]
    if isinstance(value, list):
        if len(value) != partitions:
            raise unexpected(where, value, f"a list of {partitions} numbers of records, one per partition")
        return tuple(doc.whole(n, inside(where, i), low=0, high=MOST_WAITING) for i, n in enumerate(value))
    least, more = divmod(doc.whole(value, where, low=0, high=MOST_WAITING), partitions)
    return tuple(least + (number < more) for number in range(partitions))


def _listed_rates(value: Any, where: str, partitions: int) -> Rates:
    rates = doc.sequence(value, where, "rates, one per partition")
    if len(rates) != partitions:
        raise unexpected(where, rates, f"a list of {partitions} rates, one per partition")
    return Rates.constant(tuple(doc.number(rate, inside(where, i)) for i, rate in enumerate(rates)))


def _csv_rates(
    fields: Mapping[str, Any], where: str, partitions: int, duration_ms: int, base_dir: Path | None
) -> Rates:
    at = inside(where, "rates_csv")
    path = (base_dir or Path()) / doc.text(fields["rates_csv"], at, "the path of a CSV file")
    interval_ms = _interval(fields, where)
    return read_rates(path, partitions=partitions, interval_ms=interval_ms, until_ms=duration_ms, where=at)


def _rates_in_rows(fields: Mapping[str, Any], where: str, partitions: int, duration_ms: int) -> Rates:
    """Return the rates of rows in the document, which are like those of a CSV file."""
    at = inside(where, "rates_rows")
    rows = doc.sequence(fields["rates_rows"], at, "rows, one per interval")
    if not rows:
        raise unexpected(at, rows, "at least one row")
    counts = []
    for i, row in enumerate(rows):
        listed = doc.sequence(row, inside(at, i), "records, one number per partition")
        if len(listed) != partitions:
            raise unexpected(inside(at, i), listed, f"a list of {partitions}, one per partition")
        counts.append(tuple(doc.number(n, inside(inside(at, i), j)) for j, n in enumerate(listed)))
    return Rates.in_intervals(counts, _interval(fields, where), duration_ms)


def _interval(fields: Mapping[str, Any], where: str) -> int:
    interval = doc.required(fields, "interval", where, "how long a row of the rates lasts, such as 5m")
    return parse_duration(interval, inside(where, "interval"), at_least_ms=1)


def _members(fields: Mapping[str, Any], root: str, roster: Roster) -> tuple[Member, ...]:
    where = inside(root, "members")
    listed = doc.sequence(doc.required(fields, "members", root, "a list of members"), where, "members")
    members: list[Member] = []
    places: list[str] = []
    for i, value in enumerate(listed):
        at = inside(where, i)
        for member in parse_members(value, at, roster):
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
    check_running(zip(members, places, strict=True))
    return tuple(members)


def parse_members(value: Any, where: str, roster: Roster | None) -> Iterator[Member]:
    """Yield the members of an entry: one, or ``count`` of them, numbered from 0.

    With a roster they are members of the document: their topics must exist, and they may own partitions.
    """
    known = MEMBER_FIELDS if roster is None else MEMBER_FIELDS | OWNERSHIP_FIELDS
    fields = doc.mapping(value, where, known)
    name = doc.text(doc.required(fields, "id", where, "the member's id"), inside(where, "id"))
    instance = fields.get("instance_id")
    if instance is not None:
        doc.text(instance, inside(where, "instance_id"))
    rack = fields.get("rack")
    if rack is not None:
        doc.text(rack, inside(where, "rack"))
    rate = fields.get("process_rate")
    if rate is not None:
        rate = doc.number(rate, inside(where, "process_rate"), positive=True)
    topics, pattern = parse_subscription(fields, where, roster)
    application = parse_application(fields, where, limited=rate is not None)
    overrides = parse_overrides(fields, where)
    count = None
    if "count" in fields:
        count = doc.whole(fields["count"], inside(where, "count"), low=1, high=MOST_MEMBERS)
    owns = Ownership() if roster is None else parse_ownership(fields, where, roster, topics, pattern)
    if count is None:
        yield Member(name, topics, pattern, rate, instance, rack, *owns, application, overrides)
        return
    for i in range(count):
        numbered = None if instance is None else f"{instance}-{i}"
        yield Member(f"{name}-{i}", topics, pattern, rate, numbered, rack, *owns, application, overrides)


def parse_subscription(
    fields: Mapping[str, Any], where: str, roster: Roster | None
) -> tuple[tuple[str, ...], str | None]:
    """Return the topics or the pattern of a member. With a roster the topics must exist."""
    if ("topics" in fields) == ("topics_pattern" in fields):
        found = (
            "both topics and topics_pattern" if "topics" in fields else "neither topics nor topics_pattern"
        )
        raise InputError(where.removesuffix(": "), found, "one of topics, topics_pattern")
    if "topics_pattern" in fields:
        at = inside(where, "topics_pattern")
        pattern = doc.text(fields["topics_pattern"], at, "a regular expression")
        try:
            topic_pattern(pattern)
        except ValueError as error:
            raise InputError(at, f"{pattern!r} ({error})", "a regular expression") from None
        return (), pattern
    at = inside(where, "topics")
    listed = doc.sequence(fields["topics"], at, "topics")
    if not listed:
        raise unexpected(at, listed, "at least one topic")
    for i, topic in enumerate(listed):
        doc.text(topic, inside(at, i), "a topic's name")
        if roster is not None:
            roster.topic(topic, inside(at, i))
    return tuple(dict.fromkeys(listed)), None


def _events(
    fields: Mapping[str, Any], root: str, roster: Roster, registry: Registry
) -> tuple[ScenarioEvent, ...]:
    where = inside(root, "events")
    listed = doc.sequence([] if fields.get("events") is None else fields["events"], where, "events")
    parsed = [(_event(value, inside(where, i), roster, registry), i) for i, value in enumerate(listed)]
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


def _network(value: Any, where: str) -> Network:
    if value is None:
        return Network()
    fields = doc.mapping(value, where, NETWORK_FIELDS)
    low, high = _latency(fields.get("latency", [1, 5]), inside(where, "latency"))
    loss = doc.number(fields.get("loss", 0.0), inside(where, "loss"), below=1.0)
    duplicate = doc.number(fields.get("duplicate", 0.0), inside(where, "duplicate"), below=1.0)
    return Network(low, high, loss, duplicate)


def _latency(value: Any, where: str) -> tuple[int, int]:
    """Return the shortest and the longest latency."""
    if not isinstance(value, list):
        only = parse_duration(value, where)
        return only, only
    if len(value) != 2:
        raise unexpected(where, value, "one duration, or two: the shortest and the longest")
    low, high = (parse_duration(v, inside(where, i)) for i, v in enumerate(value))
    if low > high:
        found = f"{format_duration(low)} before {format_duration(high)}"
        raise InputError(where, found, "the shorter duration first")
    return low, high
