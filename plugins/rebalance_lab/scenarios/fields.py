"""The fields of a scenario, with their types. Parsers know these fields and no others."""

from itertools import combinations
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from coordinator_core.reading.checks import LARGEST
from rebalance_lab.scenarios.documents import Amount, Bounds, Document, Duration, Text, Time, about

MOST_PARTITIONS = 200_000
MOST_MEMBERS = 100_000
MOST_BROKERS = 100
MOST_WAITING = 10**12
"""The most records of one partition. Positions are floats; of this many records they still have fractions."""
LAST_SEED = 2**63 - 1
"""The largest seed of a scenario."""
FIRST_GENERATION = 1
LAST_GENERATION = 2**31 - 1_000_000
"""Generations are int32. This leaves room for later generations."""

IN_INTERVALS = ("rates_csv", "rates_rows")
KINDS_OF_RATES = ("rate", "rates", *IN_INTERVALS)
ONE_KIND_OF_RATES = [{"not": {"required": list(pair)}} for pair in combinations(KINDS_OF_RATES, 2)]
ROWS_WITH_INTERVAL = {
    **{rows: {"required": ["interval"]} for rows in IN_INTERVALS},
    "interval": {"anyOf": [{"required": [rows]} for rows in IN_INTERVALS]},
}
ONE_SUBSCRIPTION = [{"required": [name]} for name in ("topics", "topics_pattern")]

Partitions: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_PARTITIONS)]
Members: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_MEMBERS)]
Waiting: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_WAITING)]
Share: TypeAlias = Annotated[float, Meta(ge=0, lt=1)]
TopicName: TypeAlias = Annotated[Text, about(expected="a topic's name")]
Topics: TypeAlias = Annotated[list[TopicName], Meta(min_length=1)]
Racks: TypeAlias = Annotated[list[Annotated[Text, about(expected="a rack")]] | None, about(of="racks")]
Row: TypeAlias = Annotated[list[Amount], about(of="records, one number per partition")]
Numbers: TypeAlias = Annotated[
    list[Any], about(of="partition numbers", schema={"items": {"type": "integer", "minimum": 0}})
]
Assignors: TypeAlias = Annotated[
    tuple[Annotated[Text, about(expected="an assignor")], ...],
    about(of="assignors, the preferred one first"),
]


class NewTopicFields(Document, frozen=True):
    """A topic that is created later."""

    partitions: Annotated[Partitions, about("The number of partitions.", missing="the number of partitions")]
    rate: Annotated[
        Amount | UnsetType, about("Records/s of the whole topic, spread evenly.", schema={"default": 0})
    ] = UNSET
    rates: Annotated[
        list[Amount] | UnsetType, about("Records/s of each partition.", of="rates, one per partition")
    ] = UNSET


class TopicFields(NewTopicFields, frozen=True):
    """A topic of the document."""

    rates_csv: Annotated[
        Text | UnsetType,
        about(
            "A CSV file with a column per partition and a row per interval, relative to the scenario.",
            expected="the path of a CSV file",
        ),
    ] = UNSET
    rates_rows: Annotated[
        Annotated[list[Row], Meta(min_length=1)] | UnsetType,
        about("The rows of such a file.", of="rows, one per interval", least="at least one row"),
    ] = UNSET
    interval: Annotated[Time | UnsetType, about("The time of a row of the rates.")] = UNSET
    backlog: Annotated[
        Waiting | list[Waiting] | UnsetType,
        about("The records that wait at time 0: of the topic, or of each partition."),
    ] = UNSET
    racks: Annotated[
        list[Racks] | UnsetType,
        about("For each partition, the racks of its replicas.", of="lists of racks"),
    ] = UNSET


SomeTopics: TypeAlias = Annotated[
    Topics | UnsetType, about("The topics of the subscription.", of="topics", least="at least one topic")
]
SomePattern: TypeAlias = Annotated[
    Text | UnsetType,
    about("A regular expression: the topics whose whole name matches.", expected="a regular expression"),
]


class SubscriptionFields(Document, frozen=True):
    """Either topics or a pattern."""

    topics: SomeTopics = UNSET
    topics_pattern: SomePattern = UNSET


class PlainMemberFields(Document, frozen=True, kw_only=True):
    """A consumer process, or several, as far as it needs no other rooms of the lab."""

    id: Annotated[Text, about("The name of the member.", missing="the member's id")]
    count: Annotated[
        Members | UnsetType, about("The number of members: with 4, c stands for c-0 to c-3.")
    ] = UNSET
    topics: SomeTopics = UNSET
    topics_pattern: SomePattern = UNSET
    process_rate: Annotated[
        Annotated[float, Meta(gt=0, lt=LARGEST)] | None,
        about("Records/s that the member can handle. Without it there is no limit."),
    ] = None
    instance_id: Annotated[Text | None, about("The group.instance.id of a static member.")] = None
    rack: Annotated[Text | None, about("The rack of the member.")] = None


class NewMemberFields(PlainMemberFields, frozen=True):
    """A member that joins. The fields of its application stand among these."""

    batch: Annotated[
        Bounds | None,
        about("The time of a batch of max.poll.records records, in place of process_rate and record_cv."),
    ] = None
    config: Annotated[
        Any,
        about(
            "Settings of this consumer in place of the scenario's.",
            schema={"$ref": "#/$defs/consumer_settings"},
        ),
    ] = None
    assignors: Annotated[Assignors, about("The assignors of this consumer, the preferred one first.")] = ()


class MemberFields(NewMemberFields, frozen=True):
    """A member of the document, which may run already."""

    owned: Annotated[
        dict[str, Numbers] | UnsetType,
        about(
            "The partitions that the member owns at time 0, such as {orders: [0, 3]}.",
            expected="a mapping of topics, each with a list of partition numbers",
        ),
    ] = UNSET
    generation: Annotated[
        Annotated[int, Meta(ge=FIRST_GENERATION, le=LAST_GENERATION)] | UnsetType,
        about("Its generation.", schema={"default": FIRST_GENERATION}),
    ] = UNSET


class Latency(Bounds):
    """A latency, or the shortest and the longest."""

    __slots__ = ()
    two = "one duration, or two: the shortest and the longest"
    order = ("{} before {}", "the shorter duration first")


class NetworkFields(Document, frozen=True):
    """Latency and faults."""

    latency: Annotated[Latency, about("The latency of messages.", schema={"default": ["1ms", "5ms"]})] = (
        Latency((1, 5))
    )
    loss: Annotated[Share, about("The share of messages that are lost.")] = 0.0
    duplicate: Annotated[Share, about("The share of messages that arrive twice.")] = 0.0


class MeasureFields(Document, frozen=True):
    """The part of the run that is measured."""

    from_: Annotated[
        Duration, about("The time from which costs are counted.", missing="a duration such as 0s")
    ] = field(name="from")


class ScenarioFields(Document, frozen=True, kw_only=True):
    """A scenario. Members and events are read one by one."""

    name: Annotated[Text, about("The name of the scenario, and of its group.", missing="the scenario's name")]
    description: Annotated[str | None, about("What the scenario is about.")] = None
    duration: Annotated[Time, about("How long the scenario lasts.", missing='a duration such as "10m"')]
    seed: Annotated[Annotated[int, Meta(ge=0, le=LAST_SEED)], about("The seed of all random numbers.")] = 0
    brokers: Annotated[Annotated[int, Meta(ge=1, le=MOST_BROKERS)], about("The number of brokers.")] = 3
    kafka: Annotated[
        Literal["4.0", "4.1", "4.2", "4.3", "4.4"],
        about(
            "The version of Kafka whose brokers they are.",
            expected='one of "4.0", "4.1", "4.2", "4.3", "4.4", in quotes',
        ),
    ] = "4.4"
    topics: Annotated[
        Annotated[dict[Text, TopicFields], Meta(min_length=1)],
        about(
            "The topics by name.",
            key="a topic's name",
            least="at least one topic",
            missing="a mapping of topic names, each with partitions and rates",
        ),
    ]
    members: Annotated[
        list[Any],
        about(
            "The consumers of the group.",
            of="members",
            missing="a list of members",
            schema={"items": {"$ref": "#/$defs/MemberFields"}},
        ),
    ]
    events: Annotated[
        list[Any] | None,
        about("What happens.", of="events", schema={"items": {"$ref": "#/$defs/event"}}),
    ] = None
    config: Annotated[Any, about("Settings under Kafka's names.", schema={"$ref": "#/$defs/settings"})] = None
    network: Annotated[NetworkFields | None, about("Latency and faults.")] = None
    phase: Annotated[
        Bounds | None,
        about(
            "How much later than at time 0 all members start, drawn from the seed; by default up to an"
            " interval of heartbeats or commits."
        ),
    ] = None
    measure: Annotated[
        MeasureFields | None,
        about("The part of the run that is measured; from the first rest of the group, if it is not given."),
    ] = None
