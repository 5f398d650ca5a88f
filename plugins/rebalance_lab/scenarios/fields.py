"""The fields of a scenario, each with the schema of its values. Parsers know these fields and no others."""

from itertools import combinations

from coordinator_core.reading.schemas import (
    ANY_TEXT,
    DURATION,
    SPAN,
    TEXT,
    described,
    fields_of,
    listed,
    named,
    number,
    optional,
    whole,
)
from rebalance_lab.scenarios.application import APPLICATION_FIELDS
from rebalance_lab.scenarios.overrides import OVERRIDE_FIELDS

MOST_PARTITIONS = 200_000
MOST_MEMBERS = 100_000
MOST_BROKERS = 100
MOST_WAITING = 10**12
"""The most records of one partition. Positions are floats; of this many records they still have fractions."""

NEW_TOPIC_FIELDS = {
    "partitions": described("The number of partitions.", whole(1, MOST_PARTITIONS)),
    "rate": described("Records/s of the whole topic, spread evenly.", number(), default=0),
    "rates": described("Records/s of each partition.", listed(number())),
}
TOPIC_FIELDS = NEW_TOPIC_FIELDS | {
    "rates_csv": described(
        "A CSV file with a column per partition and a row per interval, relative to the scenario.", ANY_TEXT
    ),
    "rates_rows": described("The rows of such a file.", listed(listed(number()), least=1)),
    "interval": described("The time of a row of the rates.", DURATION),
    "backlog": described(
        "The records that wait at time 0: of the topic, or of each partition.",
        {"anyOf": [whole(0, MOST_WAITING), listed(whole(0, MOST_WAITING))]},
    ),
    "racks": described("For each partition, the racks of its replicas.", listed(optional(listed(TEXT)))),
}
IN_INTERVALS = ("rates_csv", "rates_rows")
ONE_KIND_OF_RATES = [
    {"not": {"required": list(pair)}} for pair in combinations(("rate", "rates", *IN_INTERVALS), 2)
]
ROWS_WITH_INTERVAL = {
    **{rows: {"required": ["interval"]} for rows in IN_INTERVALS},
    "interval": {"anyOf": [{"required": [rows]} for rows in IN_INTERVALS]},
}

SUBSCRIPTION_FIELDS = {
    "topics": described("The topics of the subscription.", listed(TEXT, least=1)),
    "topics_pattern": described("A regular expression: the topics whose whole name matches.", TEXT),
}
ONE_SUBSCRIPTION = [{"required": [name]} for name in SUBSCRIPTION_FIELDS]

MEMBER_FIELDS = {
    "id": described("The name of the member.", TEXT),
    "count": described("The number of members: with 4, c stands for c-0 to c-3.", whole(1, MOST_MEMBERS)),
    **SUBSCRIPTION_FIELDS,
    "process_rate": described(
        "Records/s that the member can handle. Without it there is no limit.",
        optional(number(positive=True)),
    ),
    "instance_id": described("The group.instance.id of a static member.", optional(TEXT)),
    "rack": described("The rack of the member.", optional(TEXT)),
    **APPLICATION_FIELDS,
    **OVERRIDE_FIELDS,
}

NETWORK_FIELDS = {
    "latency": described("The latency of messages.", SPAN, default=["1ms", "5ms"]),
    "loss": described("The share of messages that are lost.", number(below=1), default=0),
    "duplicate": described("The share of messages that arrive twice.", number(below=1), default=0),
}

MEASURE_FIELDS = {"from": described("The time from which costs are counted.", DURATION)}

SCENARIO_FIELDS = {
    "name": described("The name of the scenario, and of its group.", TEXT),
    "description": described("What the scenario is about.", optional(ANY_TEXT)),
    "duration": described("How long the scenario lasts.", DURATION),
    "seed": described("The seed of all random numbers.", whole(0, 2**63 - 1), default=0),
    "brokers": described("The number of brokers.", whole(1, MOST_BROKERS), default=3),
    "topics": described("The topics by name.", named({"$ref": "#/$defs/topic"}, least=1)),
    "members": described("The consumers of the group.", listed({"$ref": "#/$defs/member"})),
    "events": described("What happens.", optional(listed({"$ref": "#/$defs/event"}))),
    "config": described("Settings under Kafka's names.", {"$ref": "#/$defs/settings"}),
    "network": described("Latency and faults.", optional(fields_of(NETWORK_FIELDS))),
    "measure": described(
        "The part of the run that is measured; from the first rest of the group, if it is not given.",
        optional(fields_of(MEASURE_FIELDS, ("from",))),
    ),
}
REQUIRED = ("name", "duration", "topics", "members")
