"""Random scenarios: whatever may happen to a group, around scenarios that are given or from nothing.

Each document is drawn from its own random numbers. It draws a subset of the features and of the faults first
(swarm testing: Groce and others, 2012), since a document that has everything hides what a few things do
together. An event that the reader of scenarios refuses is left out: a crash of a member that has ended, say.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from itertools import count as count_from
from math import exp, log
from random import Random
from typing import Any, TypeAlias

from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.protocol import events as ev
from coordinator_core.reading.durations import parse_duration
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.fuzzing.liveness import (
    LEARNING_MS,
    QUIET_MS,
    learns_in_ms,
    longest_rolling_ms,
    settles_in_ms,
)
from rebalance_lab.scenarios.application import CLIENTS
from rebalance_lab.scenarios.families import family_for
from rebalance_lab.scenarios.scenario import Scenario, parse_scenario
from rebalance_lab.simulation.run import simulate

Document: TypeAlias = dict[str, Any]
Range: TypeAlias = tuple[int, int]

FEATURES = (
    "clients", "callbacks", "restores", "batches", "rates", "racks", "patterns", "static", "overrides",
    "settings", "sizes",
)  # fmt: skip
"""What members, topics and settings may have besides names and numbers of partitions."""

_SPANS = ("50ms", "1s", ["0s", "3s"], "4s", "12s")
_RACKS = ("r1", "r2", "r3")
_AWAY_MS = (200, 1_000, 5_000, 12_000, 30_000)
_LATENCIES = ([0, 0], [1, 5], [1, 300], [100, 300])
_SETTINGS: Mapping[str, Sequence[Any]] = {
    "session.timeout.ms": (6_000, 10_000, 45_000),
    "heartbeat.interval.ms": (500, 1_000, 3_000),
    "max.poll.interval.ms": (10_000, 20_000, 60_000),
    "max.poll.records": (1, 20, 500),
    "metadata.max.age.ms": (3_000, 15_000),
    "auto.commit.interval.ms": (1_000, 5_000, 50_000),
    "enable.auto.commit": (True, True, False),
    "request.timeout.ms": (8_000, 30_000),
    "group.initial.rebalance.delay.ms": (0, 3_000),
}
_LIMITS = ("session.timeout.ms", "max.poll.interval.ms")
"""Those that every group from nothing has: with Kafka's defaults it would have to be followed for an hour."""

_OWN_SETTINGS = ("heartbeat.interval.ms", "max.poll.interval.ms", "max.poll.records")
"""Those that a member may have for itself."""

_ALIKE = 0.7
"""The share of groups without a coordinator whose first members subscribe to the same topics."""

_AFTER_MS = 60_000
"""The duration of a document in the making, beyond its last event."""

STATIC_NOTICE = "group.notice.static.subscription"
"""Without it Kafka leaves topics unread when a static member comes back with others."""

_AIMED_AT = (
    ev.GenerationStarted,
    ev.AssignmentComputed,
    ev.Joined,
    ev.Assigned,
    ev.Revoked,
    ev.GroupStateChanged,
)
"""The events beside which faults are likely to do harm."""


@dataclass(slots=True)
class _Drawn:
    """A document in the making. ``names``: the members, ``topics``: the topics that there have been.

    ``given``: the number of events that stay where they are.
    """

    random: Random
    document: Document
    names: list[str]
    topics: list[str]
    is_from_nothing: bool = False
    given: int = 0

    def new_name(self, prefix: str) -> str:
        """Return a name that no member and no topic has had."""
        names = (f"{prefix}{number}" for number in count_from(1))
        return next(name for name in names if name not in self.names and name not in self.topics)


Draw: TypeAlias = Callable[[_Drawn], Document]
"""Returns an event without its time, which is given."""


def _of_member(kind: str) -> Draw:
    return lambda drawn: {kind: drawn.random.choice(drawn.names)}


def _for_a_while(kind: str) -> Draw:
    return lambda drawn: _of_member(kind)(drawn) | {"for": drawn.random.choice(_AWAY_MS)}


def _roll(drawn: _Drawn) -> Document:
    random = drawn.random
    surge = random.choice([0, 0, 1, 2])
    rolling: Document = {
        "every": random.choice([1_000, 4_000]),
        "down": random.choice([500, 1_500, 8_000]),
        "kill": random.random() < 0.5,
        "batch": max(surge, random.choice([1, 1, 2, 3])),
        "surge": surge,
    }
    if random.random() < 0.3:
        rolling["protocol"] = random.choice(["consumer", "consumer", "classic"])
    return {"rolling_restart": rolling}


def _lag_view(drawn: _Drawn) -> Document:
    name = drawn.random.choice(drawn.names)
    return {"lag_view": {"member": name, "by": drawn.random.choice([0, 2_000, 10_000])}}


def _cut_partly(drawn: _Drawn) -> Document:
    """Cut one direction, or one broker, or both."""
    random, brokers = drawn.random, drawn.document.get("brokers", 1)
    event = _for_a_while("cut")(drawn) | {"way": random.choice(["both", "requests", "responses"])}
    return event | ({"broker": random.randrange(brokers)} if random.random() < 0.5 else {})


def _slow(drawn: _Drawn) -> Document:
    random = drawn.random
    slow: Document = {"by": random.choice([20, 300, 2_500]), "for": random.choice(_AWAY_MS)}
    if random.random() < 0.5:
        return {"slow": {"member": random.choice(drawn.names), **slow}}
    return {"slow": {"broker": random.randrange(drawn.document.get("brokers", 1)), **slow}}


def _log_fault(drawn: _Drawn) -> Document:
    random = drawn.random
    return {"log_fault": {"for": random.choice([500, 5_000, 20_000]), "by": random.choice([0, 200, 4_000])}}


def _join(drawn: _Drawn) -> Document:
    name = drawn.new_name("new-")
    drawn.names.append(name)
    return {"join": {"id": name, "topics": _some(drawn.random, drawn.topics)}}


def _subscribe(drawn: _Drawn) -> Document:
    return {"subscribe": drawn.random.choice(drawn.names), "topics": _some(drawn.random, drawn.topics)}


def _add_partitions(drawn: _Drawn) -> Document:
    topic = drawn.random.choice(drawn.topics)
    return {"add_partitions": {topic: _count_of(drawn.document, topic) + drawn.random.choice([1, 2, 5])}}


def _create_topic(drawn: _Drawn) -> Document:
    name = drawn.new_name("topic-")
    drawn.topics.append(name)
    return {"create_topic": {name: {"partitions": drawn.random.randint(1, 4), "rate": 10}}}


FAULTS: Mapping[str, Draw | None] = {
    "loss": None,
    "duplicate": None,
    "latency": None,
    "crash": _of_member("crash"),
    "restart": _of_member("restart"),
    "pause": _for_a_while("pause"),
    "freeze": _for_a_while("freeze"),
    "cut": _for_a_while("cut"),
    "partial_cut": _cut_partly,
    "slow": _slow,
    "rolling_restart": _roll,
    "coordinator_failover": lambda drawn: {
        "coordinator_failover": {"down": drawn.random.choice([1, 100, 3_000, 12_000])}
    },
    "failover_in_step": lambda drawn: {
        "coordinator_failover": {"down": drawn.random.choice([1, 100, 3_000]), "after": "append"}
    },
    "log_fault": _log_fault,
    "remove_member": _of_member("remove_member"),
    "lag_view": _lag_view,
}
"""The faults by name: an event, or None for a condition of the network."""

CHANGES: Mapping[str, Draw] = {
    "join": _join,
    "leave": _of_member("leave"),
    "subscribe": _subscribe,
    "add_partitions": _add_partitions,
    "create_topic": _create_topic,
    "delete_topic": lambda drawn: {"delete_topic": drawn.random.choice(drawn.topics)},
}
"""The events that are no faults, by name."""


def draw_document(
    random: Random,
    strategy: Strategy,
    registry: Registry,
    *,
    around: Document | None = None,
    faults: Collection[str] = tuple(FAULTS),
    ranges: Mapping[str, Range] | None = None,
    aimed: bool = True,
) -> Document:
    """Return a document of a scenario that the strategy can run, which ends with a time without faults.

    ``around``: a document whose topics, members, events and settings are kept. ``faults``: names of `FAULTS`
    that may happen. ``ranges``: settings with the least and the largest value to draw. ``aimed``: half of the
    documents are run once, and faults are moved to where they are likely to do harm.

    Raises:
        InputError: if the given document is none of a scenario that the strategy can run.
    """
    features = frozenset(feature for feature in FEATURES if random.random() < 0.4)
    chosen = [name for name in FAULTS if name in faults and random.random() < 0.45]
    drawn = _members_and_topics(random, around, strategy, registry, features)
    _draw_surroundings(drawn, features, chosen, ranges or {})
    scenario_of(drawn.document, strategy, registry)  # an error here is one of what was given
    kinds: dict[str, Draw] = {name: draw for name in chosen if (draw := FAULTS[name]) is not None}
    kinds |= {name: draw for name, draw in CHANGES.items() if random.random() < 0.5}
    until_ms = _last_ms(drawn.document) + random.choice([20_000, 60_000, 150_000])
    for at_ms in sorted(random.randrange(until_ms) for _ in range(random.randint(1, 9) if kinds else 0)):
        _add(drawn, kinds, at_ms, strategy, registry)
    if random.random() < 0.5 and aimed:
        _aim(drawn, strategy, registry)
    return _with_an_end(drawn, strategy, registry)


def _members_and_topics(
    random: Random,
    around: Document | None,
    strategy: Strategy,
    registry: Registry,
    features: Collection[str],
) -> _Drawn:
    """Return the members and topics: those that are given, or new ones."""
    if around is not None:
        document = {**around, "seed": random.randrange(2**32), "events": list(around.get("events") or [])}
        document["config"] = dict(around.get("config") or {})
        joined = [member for event in document["events"] for member in _listed(event.get("join", []))]
        names = [name for member in (*document["members"], *joined) for name in _names_of(member)]
        created = [topic for event in document["events"] for topic in event.get("create_topic", ())]
        given = len(document["events"])
        return _Drawn(random, document, names, [*document["topics"], *created], given=given)
    largest = 30 if "sizes" in features else 8
    topics: dict[str, Document] = {
        name: _topic(random, features, largest) for name in "abc"[: random.randint(1, 3)]
    }
    count = random.randint(1, 12 if "sizes" in features else 5)
    names = [f"m{number}" for number in range(count)]
    document = {
        "name": "fuzz",
        "seed": random.randrange(2**32),
        "brokers": random.choice([1, 3]),
        "topics": topics,
        "members": [_member(random, name, list(topics), features) for name in names],
        "events": [],
        "config": {},
    }
    protocol = registry.protocol(strategy.protocol)
    if protocol.servers is not None and random.random() < _ALIKE:
        for member in document["members"]:
            member.pop("topics_pattern", None)
            member["topics"] = list(topics)
    if "static" not in protocol.modifiers:
        for member in document["members"]:
            member.pop("instance_id", None)
    return _Drawn(random, document, names, list(topics), is_from_nothing=True)


def _topic(random: Random, features: Collection[str], largest: int) -> Document:
    count = random.randint(1, largest)
    topic: Document = {"partitions": count}
    if "rates" in features and random.random() < 0.7:
        rows = [[random.choice([0, 3, 30, 300])] * count for _ in range(random.randint(1, 4))]
        topic |= {"rates_rows": rows, "interval": "30s"}
    elif random.random() < 0.7:
        topic["rate"] = random.choice([0, 1, 10, 200])
    if "racks" in features:
        topic["racks"] = [sorted(random.sample(_RACKS, 2)) for _ in range(count)]
    return topic


def _member(random: Random, name: str, topics: Sequence[str], features: Collection[str]) -> Document:
    member: Document = {"id": name, "topics": _some(random, topics)}

    def has(feature: str) -> bool:
        return feature in features and random.random() < 0.5

    if has("patterns"):
        del member["topics"]
        member["topics_pattern"] = random.choice([".*", topics[0], "[ab]"])
    if has("clients"):
        member["client"] = random.choice(CLIENTS)
    if has("batches"):
        member |= {"process_rate": random.choice([20, 100, 1_000]), "record_cv": random.choice([0, 1])}
    if has("callbacks"):
        member |= {random.choice(["on_revoked", "on_assigned"]): random.choice(_SPANS)}
    if has("restores"):
        member |= {random.choice(["restore", "start_up", "shut_down"]): random.choice(_SPANS)}
    if has("racks"):
        member["rack"] = random.choice(_RACKS)
    if has("static"):
        member["instance_id"] = f"static-{name}"
    if has("overrides"):
        setting = random.choice(_OWN_SETTINGS)
        member["config"] = {setting: random.choice(_SETTINGS[setting])}
    return member


def _draw_surroundings(
    drawn: _Drawn, features: Collection[str], faults: Collection[str], ranges: Mapping[str, Range]
) -> None:
    """Draw settings and the network. What is given stays, but for settings with a range."""
    random, document = drawn.random, drawn.document
    config = document["config"]
    for name, values in _SETTINGS.items():
        wanted = "settings" in features and random.random() < 0.5
        if name not in config and (wanted or (name in _LIMITS and drawn.is_from_nothing)):
            config[name] = random.choice(values)
    config |= {name: _between(random, *ends) for name, ends in ranges.items()}
    config.setdefault(STATIC_NOTICE, True)
    network = dict(document.get("network") or {})
    if "latency" in faults:
        network["latency"] = random.choice(_LATENCIES)
    if "loss" in faults:
        network["loss"] = random.choice([0.01, 0.05, 0.2])
    if "duplicate" in faults:
        network["duplicate"] = random.choice([0.01, 0.05, 0.3])
    if network:
        document["network"] = network
    document.setdefault("measure", {"from": 0})


def _add(
    drawn: _Drawn, kinds: Mapping[str, Draw], at_ms: int, strategy: Strategy, registry: Registry
) -> None:
    """Add an event of one of the kinds at a time, unless it is refused."""
    names, topics = list(drawn.names), list(drawn.topics)
    event = {"at": at_ms, **kinds[drawn.random.choice(list(kinds))](drawn)}
    document = {**drawn.document, "events": [*drawn.document["events"], event]}
    try:
        scenario_of(document, strategy, registry)
    except InputError:
        drawn.names, drawn.topics = names, topics
    else:
        drawn.document = document


def _aim(drawn: _Drawn, strategy: Strategy, registry: Registry) -> None:
    """Move faults that were drawn to times shortly after something happened in a run of the document.

    In most moments of a run nothing is under way that a fault could break.
    """
    scenario = scenario_of(drawn.document, strategy, registry)
    try:
        trace = simulate(scenario, strategy, registry)
    except RebalanceLabError:
        return  # the run that is examined will raise it, too
    times = [line.at_ms for line in trace.events if isinstance(line.event, _AIMED_AT)]
    if not times:
        return
    for number, event in enumerate(drawn.document["events"]):
        is_fault = number >= drawn.given and not CHANGES.keys() & event.keys()
        if is_fault and drawn.random.random() < 0.7:
            at_ms = drawn.random.choice(times) + drawn.random.randrange(-3, 12)
            events = list(drawn.document["events"])
            events[number] = {**event, "at": max(0, at_ms)}
            document = {**drawn.document, "events": events}
            try:
                scenario_of(document, strategy, registry)
            except InputError:
                continue
            drawn.document = document


def _with_an_end(drawn: _Drawn, strategy: Strategy, registry: Registry) -> Document:
    """Return the document with an end of all faults, and the time in which the group has to settle."""
    document = drawn.document
    calm_ms = max(_last_ms(document) + 1, _rolls_until_ms(document, len(drawn.names)))
    events = [*document["events"], {"at": calm_ms, "calm": True}]
    late = dict.fromkeys(event["lag_view"]["member"] for event in events if "lag_view" in event)
    events += [{"at": calm_ms, "lag_view": {"member": name, "by": 0}} for name in late]
    left = _topics_left(events, list(document["topics"]))
    learnt_ms = calm_ms + learns_in_ms(scenario_of(document, strategy, registry), strategy, registry)
    first = document["members"][0]
    own = [topic for topic in first.get("topics", ()) if topic in left]
    if registry.protocol(strategy.protocol).servers is not None and (own or "topics_pattern" in first):
        # a notice that was lost does not come again: members without a coordinator learn it with the next one
        subscription = {"topics": own} if own else {"topics_pattern": first["topics_pattern"]}
        joins = {"id": drawn.new_name("last-"), **subscription}
        events.append({"at": learnt_ms, "join": joins})
    if left and (strategy.static or any("instance_id" in member for member in document["members"])):
        # a leader that comes back and skips the assignment takes the cluster as it finds it (KIP-814)
        count = _count_of(document, left[0]) + 1
        events.append({"at": learnt_ms, "add_partitions": {left[0]: count}})
    document = {**document, "events": events}
    settles_ms = settles_in_ms(scenario_of(document, strategy, registry), strategy, registry)
    return {**document, "duration": learnt_ms + LEARNING_MS + settles_ms + QUIET_MS}


def scenario_of(document: Document, strategy: Strategy, registry: Registry) -> Scenario:
    """Return the scenario of a document, whatever its duration, if the strategy can run it."""
    whole = {**document, "duration": _last_ms(document) + _AFTER_MS}
    scenario = parse_scenario(whole, where=str(document.get("name", "")), registry=registry)
    family_for(scenario, strategy, registry)
    return scenario


def _names_of(member: Mapping[str, Any]) -> Iterator[str]:
    count = member.get("count")
    yield from [member["id"]] if count is None else [f"{member['id']}-{number}" for number in range(count)]


def _some(random: Random, topics: Sequence[str]) -> list[str]:
    return random.sample(list(topics), random.randint(1, len(topics)))


def _between(random: Random, low: int, high: int) -> int:
    """Return a number of a range. Small ones are as likely as large ones."""
    return low if low == high else round(exp(random.uniform(log(low + 1), log(high + 1))) - 1)


def _count_of(document: Document, topic: str) -> int:
    """Return the partitions that a topic has after the events of a document."""
    count = document["topics"].get(topic, {"partitions": 0})["partitions"]
    for event in document["events"]:
        if topic in event.get("create_topic", ()):
            count = event["create_topic"][topic]["partitions"]
        count = max(count, event.get("add_partitions", {}).get(topic, 0))
    return int(count)


def _topics_left(events: Sequence[Document], topics: Sequence[str]) -> list[str]:
    """Return the topics that no event deletes."""
    names = [_listed(event["delete_topic"]) for event in events if "delete_topic" in event]
    deleted = frozenset(chain.from_iterable(names))
    return [topic for topic in topics if topic not in deleted]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _last_ms(document: Document) -> int:
    return max((parse_duration(event["at"], "at") for event in document.get("events") or ()), default=0)


def _rolls_until_ms(document: Document, members: int) -> int:
    return max(
        (
            parse_duration(event["at"], "at") + longest_rolling_ms(event["rolling_restart"], members)
            for event in document["events"]
            if "rolling_restart" in event
        ),
        default=0,
    )
