"""The stops that the rounds of a run end, and those outside of them, are those that the metrics count."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.traces.rounds import rounds, rounds_and_rest
from tests.examples import scaled
from tests.rebalance_lab.traces.test_stopped import documents
from tests.rebalance_lab.traces.traces import round_at, started, trace_of

CALLBACKS = st.sampled_from([{}, {"on_assigned": "2s", "on_revoked": "1s"}, {"restore": "3s"}])
SUBSCRIPTIONS = st.sampled_from([{}, {"topics_pattern": ".*"}])
STRATEGIES = ["range", "cooperative-sticky", "cooperative-sticky+static", "range+server-side", "watcher"]


@st.composite
def topics_that_come_and_go(draw):
    """A random scenario in which members may run callbacks, and topics may be created, deleted and wanted."""
    document = draw(documents())
    member = {"process_rate": 50, **draw(CALLBACKS)}
    subscriptions = [draw(SUBSCRIPTIONS) or {"topics": each["topics"]} for each in document["members"]]
    document["members"] = [
        {"id": each["id"], **member, **own}
        for each, own in zip(document["members"], subscriptions, strict=True)
    ]
    subscribes = {event["subscribe"] for event in document["events"] if "subscribe" in event}
    for each in document["members"]:
        if each["id"] in subscribes and "topics" not in each:
            del each["topics_pattern"]
            each["topics"] = ["a", "b"]
    if draw(st.booleans()):
        at_ms = draw(st.integers(0, 50_000))
        document["events"].append({"at": at_ms, "create_topic": {"c": {"partitions": 3, "rate": 10}}})
        if draw(st.booleans()):
            join = {"id": "j", "topics": draw(st.sampled_from([["c"], ["a", "c"]])), **member}
            document["events"].append({"at": at_ms + 1_000, "join": join})
            document["events"].append({"at": at_ms + 6_000, draw(st.sampled_from(["leave", "crash"])): "j"})
    if draw(st.booleans()) and not subscribes:
        document["events"].append({"at": draw(st.integers(0, 59_000)), "delete_topic": "b"})
    return document


@settings(max_examples=scaled(150))
@given(topics_that_come_and_go(), st.sampled_from(STRATEGIES))
def test_the_stops_of_the_rounds_and_those_outside_sum_to_the_stopped_time_in_any_run(document, strategy):
    trace = simulate(parse_scenario(document, where="random"), strategy, default_registry())
    history = History(trace)
    if history.start_up_ms is None:
        return
    of_rounds, rest_ms = rounds_and_rest(trace, from_ms=history.from_ms)
    assert sum(entry.stopped_ms for entry in of_rounds) + rest_ms == history.stops.stopped_ms


def test_the_partitions_of_a_created_topic_stand_still_until_a_round_assigns_them():
    document = {
        "name": "created",
        "duration": "5m",
        "topics": {"orders": {"partitions": 4, "rate": 40}},
        "members": [{"id": "c", "count": 2, "topics_pattern": ".*", "process_rate": 400}],
        "events": [{"at": "70s", "create_topic": {"refunds": {"partitions": 2, "rate": 60}}}],
        "config": {"metadata.max.age.ms": "1m"},
    }
    trace = simulate(parse_scenario(document, where="created"), "range", default_registry())
    _, second = rounds(trace)
    assert second.stopped == 6
    assert second.stopped_ms == History(trace).stops.stopped_ms
    assert second.longest_stop_ms > 30_000


def test_the_partitions_of_a_topic_that_nobody_subscribed_to_before_stand_still_from_the_subscription_on():
    subscribes = ev.SubscriptionChanged(client="a", topics=["t", "u"])
    (_, second) = rounds(
        trace_of(
            (0, started("a", "t")),
            *round_at(1_000, 1, {"a": {"t": [0]}}),
            (5_000, subscribes),
            *round_at(9_000, 2, {"a": {"t": [0], "u": [0, 1]}}),
            topics={"t": 1, "u": 2},
        )
    )
    assert (second.stopped, second.stopped_ms) == (2, 8_000)


def test_a_topic_that_is_given_up_stands_still_until_then_and_in_no_round():
    gives_up = ev.SubscriptionChanged(client="a", topics=["t"])
    told, rest_ms = rounds_and_rest(
        trace_of(
            (0, started("a", "t", "u")),
            *round_at(1_000, 1, {"a": {"t": [0], "u": [0]}}),
            (5_000, ev.WorkStopped(client="a", partitions={"u": [0]}, why="callback")),
            (8_000, gives_up),
            topics={"t": 1, "u": 1},
        )
    )
    assert ([entry.stopped_ms for entry in told], rest_ms) == ([0], 3_000)
