"""What is wrong with topics and members. A wrong document gets one error that names its place."""

import copy

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scenarios import scenario as scenario_module
from rebalance_lab.scenarios.scenario import parse_scenario

RIGHT = {
    "name": "deploy",
    "duration": "10m",
    "topics": {"orders": {"partitions": 12, "rate": 6_000}, "payments": {"partitions": 3}},
    "members": [{"id": "c", "count": 3, "topics": ["orders"]}, {"id": "s", "topics_pattern": ".*"}],
    "events": [{"at": "30s", "leave": "c-1"}],
}
FIELDS = (
    "name, description, duration, seed, brokers, kafka, topics, members, events, config, network, phase, "
    "measure"
)
MEMBER_FIELDS = (
    "id, count, topics, topics_pattern, process_rate, instance_id, rack, record_cv, batch_overhead, "
    "on_revoked, on_assigned, restore, start_up, shut_down, client, batch, config, assignors, owned, "
    "generation"
)
DURATION = 'a duration such as "250ms", "10s", "5m", "24h", or whole milliseconds'


def error_of(document):
    with pytest.raises(InputError) as caught:
        parse_scenario(document, where="deploy.yaml")
    return caught.value.where, caught.value.found, caught.value.expected


def changed(**fields):
    return copy.deepcopy(RIGHT) | fields


def topic(**fields):
    return changed(topics=RIGHT["topics"] | {"orders": fields})


def member(**fields):
    return changed(members=[*RIGHT["members"], {"id": "x"} | fields])


def test_the_document_that_the_others_are_made_of_is_right():
    assert parse_scenario(RIGHT, where="deploy.yaml").name == "deploy"


@pytest.mark.parametrize("field", ["name", "duration", "topics", "members"])
@pytest.mark.parametrize("how", ["left out", "without a value"])
def test_a_field_that_must_be_there_is_asked_for(field, how):
    document = changed(**{field: None})
    if how == "left out":
        del document[field]
    where, found, _ = error_of(document)
    assert (where, found) == (f"deploy.yaml: {field}", "nothing")


WRONG = {
    "not a mapping": ([1], "", "a list of 1", f"a mapping with {FIELDS}"),
    "an unknown field": (
        changed(evnts=[]),
        "evnts",
        "the unknown field 'evnts'",
        "one of 13 names (did you mean 'events'?)",
    ),
    "a window without a beginning": (changed(measure={}), "measure.from", "nothing", "a duration such as 0s"),
    "a window that begins at the end": (
        changed(measure={"from": "10m"}),
        "measure.from",
        "'10m'",
        "less than the duration, 10m",
    ),
    "a key that is not text": (changed() | {1: 2}, "", "1", "text as the key"),
    "a name that is a number": (changed(name=5), "name", "5", "text"),
    "a name that is blank": (changed(name=" "), "name", "' '", "text"),
    "a description that is a list": (changed(description=["a"]), "description", "a list of 1", "text"),
    "a duration that is none": (changed(duration="soon"), "duration", "'soon'", DURATION),
    "a duration of nothing": (changed(duration=0), "duration", "0", "a duration of at least 1ms"),
    "a duration below nothing": (changed(duration=-5), "duration", "-5", "a duration of at least 1ms"),
    "a duration too long": (
        changed(duration="10001d"),
        "duration",
        "'10001d'",
        "a duration of at most 10000d",
    ),
    "a negative seed": (changed(seed=-1), "seed", "-1", "a whole number from 0 to 9,223,372,036,854,775,807"),
    "no brokers": (changed(brokers=0), "brokers", "0", "a whole number from 1 to 100"),
    "a broker and a half": (changed(brokers=1.5), "brokers", "1.5", "a whole number from 1 to 100"),
    # Topics.
    "no topics": (changed(topics={}), "topics", "an empty mapping", "at least one topic"),
    "topics as a list": (changed(topics=["orders"]), "topics", "a list of 1", "a mapping"),
    "a topic without a value": (
        changed(topics={"t": None}),
        "topics.t",
        "nothing",
        "a mapping with partitions, rate, rates, rates_csv, rates_rows, interval, backlog, racks",
    ),
    "a topic with an unknown field": (
        topic(partitions=12, partition=12),
        "topics.orders.partition",
        "the unknown field 'partition'",
        "one of partitions, rate, rates, rates_csv, rates_rows, interval, backlog, racks"
        " (did you mean 'partitions'?)",
    ),
    "a topic without partitions": (
        topic(rate=5),
        "topics.orders.partitions",
        "nothing",
        "the number of partitions",
    ),
    "negative partitions": (
        topic(partitions=-3),
        "topics.orders.partitions",
        "-3",
        "a whole number from 1 to 200,000",
    ),
    "zero partitions": (
        topic(partitions=0),
        "topics.orders.partitions",
        "0",
        "a whole number from 1 to 200,000",
    ),
    "partitions as text": (
        topic(partitions="12"),
        "topics.orders.partitions",
        "'12'",
        "a whole number from 1 to 200,000",
    ),
    "too many partitions in all": (
        changed(topics={"a": {"partitions": 150_000}, "b": {"partitions": 50_001}}),
        "topics",
        "200,001 partitions in all",
        "at most 200,000",
    ),
    "a negative rate": (topic(partitions=1, rate=-1), "topics.orders.rate", "-1", "a number not negative"),
    "a rate without a value": (
        topic(partitions=1, rate=None),
        "topics.orders.rate",
        "nothing",
        "a number not negative",
    ),
    "a rate that is not a number": (
        topic(partitions=1, rate=float("nan")),
        "topics.orders.rate",
        "nan",
        "a number not negative",
    ),
    "rate and rates": (
        topic(partitions=1, rate=5, rates=[5]),
        "topics.orders",
        "rate and rates",
        "one of rate, rates, rates_csv, rates_rows",
    ),
    "rates and rates_csv": (
        topic(partitions=1, rates=[5], rates_csv="a.csv", interval="5m"),
        "topics.orders",
        "rates and rates_csv",
        "one of rate, rates, rates_csv, rates_rows",
    ),
    "too few rates": (
        topic(partitions=3, rates=[1, 2]),
        "topics.orders.rates",
        "a list of 2",
        "a list of 3 rates, one per partition",
    ),
    "too many rates": (
        topic(partitions=1, rates=[1, 2]),
        "topics.orders.rates",
        "a list of 2",
        "a list of 1 rates, one per partition",
    ),
    "rates as a number": (
        topic(partitions=1, rates=5),
        "topics.orders.rates",
        "5",
        "a list of rates, one per partition",
    ),
    "a negative rate among others": (
        topic(partitions=3, rates=[1, -2, 3]),
        "topics.orders.rates[1]",
        "-2",
        "a number not negative",
    ),
    "rates_csv and rates_rows": (
        topic(partitions=1, rates_csv="a.csv", rates_rows=[[1]], interval="5m"),
        "topics.orders",
        "rates_csv and rates_rows",
        "one of rate, rates, rates_csv, rates_rows",
    ),
    "an interval without a file or rows": (
        topic(partitions=1, rate=5, interval="5m"),
        "topics.orders.interval",
        "an interval",
        "one only together with rates_csv or rates_rows",
    ),
    "an interval alone": (
        topic(partitions=1, interval="5m"),
        "topics.orders.interval",
        "an interval",
        "one only together with rates_csv or rates_rows",
    ),
    "a file without an interval": (
        topic(partitions=1, rates_csv="a.csv"),
        "topics.orders.interval",
        "nothing",
        "how long a row of the rates lasts, such as 5m",
    ),
    "rows without an interval": (
        topic(partitions=1, rates_rows=[[1]]),
        "topics.orders.interval",
        "nothing",
        "how long a row of the rates lasts, such as 5m",
    ),
    "rows without a value": (
        topic(partitions=1, rates_rows=None, interval="5m"),
        "topics.orders.rates_rows",
        "nothing",
        "a list of rows, one per interval",
    ),
    "no rows": (
        topic(partitions=1, rates_rows=[], interval="5m"),
        "topics.orders.rates_rows",
        "an empty list",
        "at least one row",
    ),
    "a row that is a number": (
        topic(partitions=1, rates_rows=[[1], 2], interval="5m"),
        "topics.orders.rates_rows[1]",
        "2",
        "a list of records, one number per partition",
    ),
    "a row with a number too many": (
        topic(partitions=2, rates_rows=[[1, 2], [3, 4, 5]], interval="5m"),
        "topics.orders.rates_rows[1]",
        "a list of 3",
        "a list of 2, one per partition",
    ),
    "a negative number in a row": (
        topic(partitions=2, rates_rows=[[1, 2], [3, -4]], interval="5m"),
        "topics.orders.rates_rows[1][1]",
        "-4",
        "a number not negative",
    ),
    "text in a row": (
        topic(partitions=2, rates_rows=[["time", 2], [3, 4]], interval="5m"),
        "topics.orders.rates_rows[0][0]",
        "'time'",
        "a number not negative",
    ),
    "rows with an interval of nothing": (
        topic(partitions=1, rates_rows=[[1]], interval=0),
        "topics.orders.interval",
        "0",
        "a duration of at least 1ms",
    ),
    "an interval of nothing": (
        topic(partitions=1, rates_csv="a.csv", interval=0),
        "topics.orders.interval",
        "0",
        "a duration of at least 1ms",
    ),
    "a file that is not there": (
        topic(partitions=1, rates_csv="no/such.csv", interval=1),
        "topics.orders.rates_csv: no/such.csv",
        "a file that cannot be read (No such file or directory)",
        "a CSV file, named relative to the scenario",
    ),
    "a negative backlog": (
        topic(partitions=1, backlog=-1),
        "topics.orders.backlog",
        "-1",
        "a whole number from 0 to 1,000,000,000,000",
    ),
    "half a record": (
        topic(partitions=1, backlog=0.5),
        "topics.orders.backlog",
        "0.5",
        "a whole number from 0 to 1,000,000,000,000",
    ),
    "a backlog of too few partitions": (
        topic(partitions=3, backlog=[1, 2]),
        "topics.orders.backlog",
        "a list of 2",
        "a list of 3 numbers of records, one per partition",
    ),
    "text in a backlog": (
        topic(partitions=2, backlog=[1, "2"]),
        "topics.orders.backlog[1]",
        "'2'",
        "a whole number from 0 to 1,000,000,000,000",
    ),
    # Members.
    "members as a mapping": (changed(members={}), "members", "an empty mapping", "a list of members"),
    "a member as text": (
        changed(members=["c"]),
        "members[0]",
        "'c'",
        f"a mapping with {MEMBER_FIELDS}",
    ),
    "a member with an unknown field": (
        member(topic=["orders"]),
        "members[2].topic",
        "the unknown field 'topic'",
        f"one of {len(MEMBER_FIELDS.split())} names (did you mean 'topics'?)",
    ),
    "a member without an id": (
        changed(members=[{"topics": ["orders"]}]),
        "members[0].id",
        "nothing",
        "the member's id",
    ),
    "a member whose id is a number": (member(id=7), "members[2].id", "7", "text"),
    "a member without a subscription": (
        member(),
        "members[2]",
        "neither topics nor topics_pattern",
        "one of topics, topics_pattern",
    ),
    "topics and a pattern": (
        member(topics=["orders"], topics_pattern=".*"),
        "members[2]",
        "both topics and topics_pattern",
        "one of topics, topics_pattern",
    ),
    "a member of zero topics": (
        member(topics=[]),
        "members[2].topics",
        "an empty list",
        "at least one topic",
    ),
    "topics of a member as text": (
        member(topics="orders"),
        "members[2].topics",
        "'orders'",
        "a list of topics",
    ),
    "an unknown topic": (
        member(topics=["orders", "paiments"]),
        "members[2].topics[1]",
        "the unknown topic 'paiments'",
        "one of orders, payments (did you mean 'payments'?)",
    ),
    "a topic that is no text": (
        member(topics=[[]]),
        "members[2].topics[0]",
        "an empty list",
        "a topic's name",
    ),
    "a bad regular expression": (
        member(topics_pattern="orders.("),
        "members[2].topics_pattern",
        "'orders.(' (missing ), unterminated subpattern at position 7)",
        "a regular expression",
    ),
    "a pattern that could take for ever": (
        member(topics_pattern="(a+)+$"),
        "members[2].topics_pattern",
        "'(a+)+$' (a repetition or alternatives within a repetition: it could take for ever on a long name)",
        "a regular expression",
    ),
    "a pattern that is a number": (
        member(topics_pattern=5),
        "members[2].topics_pattern",
        "5",
        "a regular expression",
    ),
    "a count of nothing": (
        member(topics=["orders"], count=0),
        "members[2].count",
        "0",
        "a whole number from 1 to 100,000",
    ),
    "a count without a value": (
        member(topics=["orders"], count=None),
        "members[2].count",
        "nothing",
        "a whole number from 1 to 100,000",
    ),
    "a process rate of nothing": (
        member(topics=["orders"], process_rate=0),
        "members[2].process_rate",
        "0",
        "a number above zero",
    ),
    "an instance id that is a number": (
        member(topics=["orders"], instance_id=1),
        "members[2].instance_id",
        "1",
        "text",
    ),
    "a rack that is blank": (member(topics=["orders"], rack=""), "members[2].rack", "''", "text"),
    "duplicate member ids": (
        member(id="s", topics=["orders"]),
        "members[2].id",
        "'s'",
        "a member that is not already in the group",
    ),
    "a member id that a count makes": (
        member(id="c-1", topics=["orders"]),
        "members[2].id",
        "'c-1'",
        "a member that is not already in the group",
    ),
    "duplicate instance ids": (
        changed(members=[{"id": m, "topics": ["orders"], "instance_id": "i"} for m in "ab"]),
        "members",
        "instance_id 'i' of a and b",
        "a different instance_id for each member",
    ),
}


@pytest.mark.parametrize(("document", "path", "found", "expected"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named_with_its_place(document, path, found, expected):
    where = f"deploy.yaml: {path}" if path else "deploy.yaml"
    assert error_of(document) == (where, found, expected)


def test_a_group_has_only_so_many_members(monkeypatch):
    monkeypatch.setattr(scenario_module, "MOST_MEMBERS", 3)
    assert error_of(changed()) == ("deploy.yaml: members", "more than 3 members", "fewer")


def test_of_two_things_that_are_wrong_the_first_is_told():
    assert error_of(changed(name=5, duration="soon"))[0] == "deploy.yaml: name"
