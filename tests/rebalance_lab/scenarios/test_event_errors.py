"""What is wrong with events, settings and the network, by place, what was found and what was expected."""

import copy
import pickle
import re

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario

RIGHT = {
    "name": "deploy",
    "duration": "10m",
    "topics": {"orders": {"partitions": 12, "rate": 6_000}, "payments": {"partitions": 3}},
    "members": [{"id": "c", "count": 3, "topics": ["orders"]}, {"id": "s", "topics_pattern": ".*"}],
    "events": [{"at": "30s", "leave": "c-1"}],
}
KINDS = ", ".join(sorted(default_registry().scenario_events()))
DURATION = 'a duration such as "250ms", "10s", "5m", "24h", or whole milliseconds'


def error_of(document):
    with pytest.raises(InputError) as caught:
        parse_scenario(document, where="deploy.yaml")
    return caught.value.where, caught.value.found, caught.value.expected


def changed(**fields):
    return copy.deepcopy(RIGHT) | fields


def event(*events):
    return changed(events=[{"at": "1s"} | each for each in events])


WRONG = {
    # Events.
    "events as a mapping": (changed(events={"at": 1}), "events", "a mapping of 1 keys", "a list of events"),
    "an event as text": (changed(events=["leave"]), "events[0]", "'leave'", "a mapping"),
    "an event without a time": (
        changed(events=[{"leave": "c-1"}]),
        "events[0].at",
        "nothing",
        "when the event happens, such as 30s",
    ),
    "a join with what it owns": (
        event({"join": {"id": "x", "topics": ["orders"], "owned": {}}}),
        "events[0].join.owned",
        "the unknown field 'owned'",
        "one of id, count, topics, topics_pattern, process_rate, instance_id, rack, record_cv,"
        " batch_overhead, on_revoked, on_assigned, restore, start_up, shut_down, client, batch, config,"
        " assignors",
    ),
    "an event at no time": (event({"at": "noon", "leave": "c-1"}), "events[0].at", "'noon'", DURATION),
    "an event before the beginning": (
        event({"at": -1, "leave": "c-1"}),
        "events[0].at",
        "-1",
        "a duration of at least 0ms",
    ),
    "an event after the end": (
        event({"at": "11m", "leave": "c-1"}),
        "events[0].at",
        "'11m'",
        "at most the duration, 10m",
    ),
    "an event a millisecond after the end": (
        event({"at": 600_001, "leave": "c-1"}),
        "events[0].at",
        "600001",
        "at most the duration, 10m",
    ),
    "an event without a kind": (event({}), "events[0]", "an event without a kind", f"one of {KINDS}"),
    "an unknown kind of event": (
        event({"leaves": "c-1"}),
        "events[0].leaves",
        "the unknown event 'leaves'",
        f"one of {len(KINDS.split())} names (did you mean 'leave'?)",
    ),
    "two kinds in one event": (
        event({"leave": "c-1", "crash": "c-1"}),
        "events[0]",
        "leave and crash",
        "one kind of event",
    ),
    "an event with a field too many": (
        event({"leave": "c-1", "for": "5s"}),
        "events[0].for",
        "the unknown field 'for'",
        "no further fields",
    ),
    "a leave of a member that never joined": (
        event({"crash": "c-0"}, {"crash": "c-1"}, {"crash": "c-2"}, {"leave": "c-9"}),
        "events[3].leave",
        "'c-9', which never joined",
        "a member of the group at this time: s",
    ),
    "a leave before the join": (
        event({"at": "5s", "join": {"id": "x", "topics": ["orders"]}}, {"leave": "x"}),
        "events[1].leave",
        "'x', which never joined",
        "a member of the group at this time: c-0, c-1, c-2, s",
    ),
    "a leave twice": (
        event({"leave": "c-1"}, {"at": "2s", "leave": "c-1"}),
        "events[1].leave",
        "'c-1', which is not running (left at 1000ms)",
        "a member of the group at this time: c-0, c-2, s (did you mean 'c-2'?)",
    ),
    "a leave after a crash": (
        event({"at": "2s", "leave": "c-1"}, {"at": "1s", "crash": "c-1"}),
        "events[0].leave",
        "'c-1', which is not running (crashed at 1000ms)",
        "a member of the group at this time: c-0, c-2, s (did you mean 'c-2'?)",
    ),
    "a leave of a number": (
        event({"leave": 1}),
        "events[0].leave",
        "1",
        "a member's id, or a list",
    ),
    "a leave of an empty list": (
        event({"leave": []}),
        "events[0].leave",
        "an empty list",
        "a member's id at least",
    ),
    "a number in a list of members": (event({"crash": ["s", 1]}), "events[0].crash[1]", "1", "a member's id"),
    "a member twice in a list": (
        event({"restart": ["c-1", "s", "c-1"]}),
        "events[0].restart[2]",
        "'c-1' twice",
        "each member once",
    ),
    "a member of a list that never joined": (
        event({"leave": ["c-1", "c-9"]}),
        "events[0].leave[1]",
        "'c-9', which never joined",
        "a member of the group at this time: c-0, c-2, s (did you mean 'c-2'?)",
    ),
    "a join of nobody": (event({"join": []}), "events[0].join", "an empty list", "at least one member"),
    "a member in a list of joins that is there": (
        event({"join": [{"id": "x", "topics": ["orders"]}, {"id": "s", "topics": ["orders"]}]}),
        "events[0].join[1].id",
        "'s'",
        "a member that is not already in the group",
    ),
    "a restart of one that never joined": (
        event({"restart": "x"}),
        "events[0].restart",
        "'x', which never joined",
        "a member of the group at this time: c-0, c-1, c-2, s",
    ),
    "a join of one that is there": (
        event({"join": {"id": "s", "topics": ["orders"]}}),
        "events[0].join.id",
        "'s'",
        "a member that is not already in the group",
    ),
    "a join without a subscription": (
        event({"join": {"id": "x"}}),
        "events[0].join",
        "neither topics nor topics_pattern",
        "one of topics, topics_pattern",
    ),
    "a join with an unknown topic": (
        event({"join": {"id": "x", "topics": ["t"]}}),
        "events[0].join.topics[0]",
        "the unknown topic 't'",
        "one of orders, payments",
    ),
    "a pause without an end": (
        event({"pause": "c-1"}),
        "events[0].for",
        "nothing",
        "how long it lasts, such as 70s",
    ),
    "a pause of nothing": (
        event({"pause": "c-1", "for": "0s"}),
        "events[0].for",
        "'0s'",
        "a duration of at least 1ms",
    ),
    "a pause of one that is gone": (
        event({"leave": "c-1"}, {"pause": "c-1", "for": "1s"}),
        "events[1].pause",
        "'c-1', which is not running (left at 1000ms)",
        "a member of the group at this time: c-0, c-2, s (did you mean 'c-2'?)",
    ),
    "a subscription to nothing": (
        event({"subscribe": "s"}),
        "events[0]",
        "neither topics nor topics_pattern",
        "one of topics, topics_pattern",
    ),
    "a subscription to an unknown topic": (
        event({"subscribe": "s", "topics": ["order"]}),
        "events[0].topics[0]",
        "the unknown topic 'order'",
        "one of orders, payments (did you mean 'orders'?)",
    ),
    "add_partitions that shrinks": (
        event({"add_partitions": {"payments": 2}}),
        "events[0].add_partitions.payments",
        "2",
        "more than the 3 partitions it has (a topic does not shrink)",
    ),
    "add_partitions that shrinks what grew": (
        event({"add_partitions": {"payments": 9}}, {"add_partitions": {"payments": 6}}),
        "events[1].add_partitions.payments",
        "6",
        "more than the 9 partitions it has (a topic does not shrink)",
    ),
    "add_partitions to an unknown topic": (
        event({"add_partitions": {"order": 24}}),
        "events[0].add_partitions.order",
        "the unknown topic 'order'",
        "one of orders, payments (did you mean 'orders'?)",
    ),
    "add_partitions to nothing": (
        event({"add_partitions": {}}),
        "events[0].add_partitions",
        "an empty mapping",
        "topics with their new numbers of partitions",
    ),
    "add_partitions of half a partition": (
        event({"add_partitions": {"orders": 24.5}}),
        "events[0].add_partitions.orders",
        "24.5",
        "a whole number from 1 to 200,000",
    ),
    "a topic that exists": (
        event({"create_topic": {"orders": {"partitions": 1}}}),
        "events[0].create_topic.orders",
        "'orders', which exists",
        "a name that no topic has had before",
    ),
    "a topic that is created again": (
        event({"delete_topic": "orders"}, {"create_topic": {"orders": {"partitions": 1}}}),
        "events[1].create_topic.orders",
        "'orders', which was deleted",
        "a name that no topic has had before",
    ),
    "a new topic without partitions": (
        event({"create_topic": {"refunds": {"rate": 1}}}),
        "events[0].create_topic.refunds.partitions",
        "nothing",
        "the number of partitions",
    ),
    "a new topic with a backlog": (
        event({"create_topic": {"refunds": {"partitions": 1, "backlog": 9}}}),
        "events[0].create_topic.refunds.backlog",
        "the unknown field 'backlog'",
        "one of partitions, rate, rates",
    ),
    "no new topic": (
        event({"create_topic": {}}),
        "events[0].create_topic",
        "an empty mapping",
        "topics, each with partitions and rates",
    ),
    "the end of an unknown topic": (
        event({"delete_topic": ["orders", "order"]}),
        "events[0].delete_topic[1]",
        "the unknown topic 'order'",
        "one of payments",
    ),
    "the end of a topic twice": (
        event({"delete_topic": ["orders", "orders"]}),
        "events[0].delete_topic[1]",
        "'orders' twice",
        "each topic once",
    ),
    "a subscription to a deleted topic": (
        event({"delete_topic": ["orders", "payments"]}, {"subscribe": "s", "topics": ["orders"]}),
        "events[1].topics[0]",
        "the topic 'orders', which was deleted",
        "one of (no topics)",
    ),
    "a rolling restart without a pace": (
        event({"rolling_restart": {"down": "5s"}}),
        "events[0].rolling_restart.every",
        "nothing",
        "the time from one restart to the next, such as 20s",
    ),
    "a rolling restart that kills a number": (
        event({"rolling_restart": {"every": 1, "down": 1, "kill": 9}}),
        "events[0].rolling_restart.kill",
        "9",
        "true or false",
    ),
    "a rolling restart of no one at once": (
        event({"rolling_restart": {"every": 1, "down": 1, "batch": 0}}),
        "events[0].rolling_restart.batch",
        "0",
        "a whole number from 1 to 100,000",
    ),
    "a surge of more than a batch": (
        event({"rolling_restart": {"every": 1, "down": 1, "batch": 2, "surge": 3}}),
        "events[0].rolling_restart.surge",
        "3",
        "at most the batch, 2",
    ),
    "a leave of a member that a surge has replaced": (
        event(
            {"rolling_restart": {"every": "10s", "down": "5s", "surge": 1}},
            {"at": "20s", "leave": "c-1"},
        ),
        "events[1].leave",
        "'c-1', which is not running (replaced by the rolling_restart at 1s)",
        "a member of the group at this time: c-2, s, c-0-2, c-1-2 (did you mean 'c-1-2'?)",
    ),
    "a rolling restart of nobody": (
        changed(members=[], events=[{"at": 1, "rolling_restart": {"every": 1, "down": 1}}]),
        "events[0].rolling_restart",
        "no members at this time",
        "a group that has some",
    ),
    "a failover with an unknown field": (
        event({"coordinator_failover": {"dwon": "3s"}}),
        "events[0].coordinator_failover.dwon",
        "the unknown field 'dwon'",
        "one of down, after (did you mean 'down'?)",
    ),
    "a failover as a duration": (
        event({"coordinator_failover": "3s"}),
        "events[0].coordinator_failover",
        "'3s'",
        "a mapping with down, after",
    ),
    # Settings and the network.
    "settings as a list": (changed(config=["a"]), "config", "a list of 1", "a mapping"),
    "a bad latency": (changed(network={"latency": "fast"}), "network.latency", "'fast'", DURATION),
    "a latency of three": (
        changed(network={"latency": [1, 2, 3]}),
        "network.latency",
        "a list of 3",
        "one duration, or two: the shortest and the longest",
    ),
    "a latency the wrong way round": (
        changed(network={"latency": ["5ms", "1ms"]}),
        "network.latency",
        "5ms before 1ms",
        "the shorter duration first",
    ),
    "half a bad latency": (
        changed(network={"latency": [1, -1]}),
        "network.latency[1]",
        "-1",
        "a duration of at least 0ms",
    ),
    "a loss of everything": (
        changed(network={"loss": 1.0}),
        "network.loss",
        "1.0",
        "a number not negative and below 1",
    ),
    "a loss below nothing": (
        changed(network={"loss": -0.1}),
        "network.loss",
        "-0.1",
        "a number not negative and below 1",
    ),
    "a duplication of everything": (
        changed(network={"duplicate": 1}),
        "network.duplicate",
        "1",
        "a number not negative and below 1",
    ),
    "a network with an unknown field": (
        changed(network={"delay": 1}),
        "network.delay",
        "the unknown field 'delay'",
        "one of latency, loss, duplicate",
    ),
}


@pytest.mark.parametrize(("document", "path", "found", "expected"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named_with_its_place(document, path, found, expected):
    where = f"deploy.yaml: {path}" if path else "deploy.yaml"
    assert error_of(document) == (where, found, expected)


CONFIG = {
    "an unknown setting": (
        {"session.timeout": 1},
        "session.timeout",
        "the unknown setting 'session.timeout'",
    ),
    "an identity": (
        {"group.instance.id": "a"},
        "group.instance.id",
        "the unknown setting 'group.instance.id'",
    ),
    "a bad duration": ({"session.timeout.ms": "long"}, "session.timeout.ms", "'long'"),
    "a negative duration": ({"session.timeout.ms": -1}, "session.timeout.ms", "-1"),
    "text for a yes or no": ({"enable.auto.commit": "yes"}, "enable.auto.commit", "'yes'"),
    "a number for a yes or no": ({"enable.auto.commit": 1}, "enable.auto.commit", "1"),
    "a size as text": ({"group.max.size": "many"}, "group.max.size", "'many'"),
    "a policy there is not": ({"auto.offset.reset": "lateest"}, "auto.offset.reset", "'lateest'"),
    "a heartbeat as long as the session": (
        {"session.timeout.ms": "6s", "heartbeat.interval.ms": "6s"},
        "heartbeat.interval.ms",
        "6000",
    ),
}


@pytest.mark.parametrize(("config", "path", "found"), CONFIG.values(), ids=CONFIG.keys())
def test_a_setting_that_is_wrong_is_named(config, path, found):
    assert error_of(changed(config=config))[:2] == (f"deploy.yaml: config.{path}", found)


def test_an_unknown_setting_gets_advice():
    expected = error_of(changed(config={"session.timeout": 1}))[2]
    assert re.fullmatch(r"one of \d+ names \(did you mean 'session.timeout.ms'\?\)", expected)


def test_an_error_reads_as_one_line_and_survives_pickling():
    with pytest.raises(InputError) as caught:
        parse_scenario(event({"leave": "nobody"}), where="deploy.yaml")
    expected = (
        "deploy.yaml: events[0].leave: found 'nobody', which never joined, expected a member of the group "
        "at this time: c-0, c-1, c-2, s"
    )
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value))) == expected
