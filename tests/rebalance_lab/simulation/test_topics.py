"""Topics that are created and deleted while a group runs."""

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.history import History
from rebalance_lab.traces.stopped import StoppedTime
from rebalance_lab.traces.timeline import Timeline
from tests.rebalance_lab.simulation import runs
from tests.rebalance_lab.simulation.runs import rounds

CREATED = {"at": "1m", "create_topic": {"c": {"partitions": 6, "rate": 60}}}
DELETED = {"at": "3m", "delete_topic": "b"}
STRATEGIES = ["range", "cooperative-sticky"]


def scenario_of(*events, **fields):
    """Two members with a pattern and one with a list, of two topics."""
    defaults = {
        "duration": "5m",
        "topics": {"a": {"partitions": 4, "rate": 40}, "b": {"partitions": 4, "rate": 40}},
        "members": [{"id": "p", "count": 2, "topics_pattern": ".*"}, {"id": "l", "topics": ["a", "b"]}],
        "config": {"metadata.max.age.ms": "30s"},
    }
    return runs.scenario_of(*events, **{**defaults, **fields})


def run(scenario, strategy="range"):
    return runs.settled(scenario, strategy)


def seen(trace, kind):
    return [(line.at_ms, line.event) for line in runs.seen(trace, kind)]


def planned(scenario, strategy="range"):
    return plan(scenario, strategy, default_registry())


def topics_of(owners):
    return {tp.topic for tp in owners}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("simulation", [run, planned])
def test_members_with_a_pattern_read_a_new_topic_when_they_refresh_their_metadata(simulation, strategy):
    trace = simulation(scenario_of(CREATED), strategy)
    owners = History(trace).last_settled.owners
    assert {owners[TopicPartition("c", n)] for n in range(6)} <= {"p-0", "p-1"}
    assert 60_000 < rounds(trace)[1] <= 94_000
    changed = seen(trace, ev.SubscriptionChanged)
    assert changed == [
        (60_000, ev.SubscriptionChanged(client=client, topics=["a", "b", "c"])) for client in ("p-0", "p-1")
    ]


def test_partitions_of_a_new_topic_stand_still_until_somebody_has_them():
    before, after = (run(scenario_of(*events)) for events in ((), (CREATED,)))
    waited_ms = rounds_of_topic(History(after), "c") - 60_000
    assert waited_ms > 0
    assert stopped_ms(after) - stopped_ms(before) >= 6 * waited_ms


def stopped_ms(trace):
    """The time that partitions stood still, of the whole run."""
    timeline = Timeline()
    stops = StoppedTime(timeline, family_of(trace.started))
    timeline.read(trace)
    stops.finish()
    return stops.stopped_ms


def rounds_of_topic(history, topic):
    return min(span.from_ms for tp, spans in history.spans.items() if tp.topic == topic for span in spans)


@pytest.mark.parametrize("simulation", [run, planned])
def test_nobody_reads_a_new_topic_that_nobody_subscribes_to(simulation):
    members = [{"id": "l", "count": 2, "topics": ["a", "b"]}]
    trace = simulation(scenario_of(CREATED, members=members))
    assert len(rounds(trace)) == 1
    assert seen(trace, ev.SubscriptionChanged) == []


@pytest.mark.parametrize("strategy", ["range+peers", "watcher"])
def test_the_pattern_of_a_member_that_shuts_down_matches_a_new_topic(strategy):
    """Its client goes on in the background, and takes the new partitions over."""
    members = [{"id": "p", "topics_pattern": ".*", "shut_down": "2m"}]
    trace = run(scenario_of({"at": "50s", "restart": "p"}, CREATED, members=members), strategy)
    assert [at_ms for at_ms, event in seen(trace, ev.Assigned) if "c" in event.added and at_ms < 150_000]
    assert seen(trace, ev.SubscriptionChanged) == [
        (60_000, ev.SubscriptionChanged(client="p", topics=["a", "b", "c"]))
    ]


def test_a_member_subscribes_to_a_new_topic_by_name():
    event = {"at": "90s", "subscribe": "l", "topics": ["c"]}
    trace = run(scenario_of(CREATED, event, members=[{"id": "l", "topics": ["a", "b"]}]))
    assert topics_of(History(trace).last_settled.owners) == {"c"}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("simulation", [run, planned])
def test_the_partitions_of_a_deleted_topic_are_revoked_at_once(simulation, strategy):
    trace = simulation(scenario_of(DELETED), strategy)
    assert 180_000 < rounds(trace)[1] <= 183_100
    owners = History(trace).last_settled.owners
    assert topics_of(owners) == {"a"}
    assert set(owners.values()) == {"p-0", "p-1", "l"}
    owned = {client: e.owned for _, e in seen(trace, ev.Assigned) for client in [e.client]}
    assert all("b" not in topics for topics in owned.values())


@pytest.mark.parametrize("simulation", [run, planned])
def test_a_deleted_topic_counts_no_longer(simulation):
    """No lag, no rate, and no stopped time of its partitions, whoever still owns them."""
    trace = simulation(scenario_of(DELETED, members=[]))
    (rates,) = [e.rates for at_ms, e in seen(trace, ev.RatesChanged) if at_ms == 180_000]
    assert rates == [0.0] * 4
    assert seen(trace, ev.TopicDeleted) == [(180_000, ev.TopicDeleted(topic="b"))]
    if simulation is run:
        lag = {at_ms: e.lag for at_ms, e in seen(trace, ev.LagMeasured)}
        assert lag[300_000] == 300 * 40
    history = History(trace)
    assert history.topics == {"a": 4, "b": 4}


@pytest.mark.parametrize("simulation", [run, planned])
def test_a_partition_of_a_deleted_topic_does_not_stand_still(simulation):
    alone = {"members": [{"id": "l", "topics": ["b"]}], "network": {"latency": 1}}
    with_end, without = (simulation(scenario_of(*events, **alone)) for events in ((DELETED,), ()))
    assert stopped_ms(with_end) == stopped_ms(without)


def test_only_members_that_read_a_deleted_topic_notice_its_end_at_once():
    """The leader of the group does not: it learns it when its metadata are old."""
    members = [{"id": "a", "topics": ["a"]}, {"id": "b", "topics": ["b"]}]
    events = [{"at": "10s", "join": {"id": "b", "topics": ["b"]}}, DELETED]
    trace = run(scenario_of(*events, members=members[:1]))
    asked = trace.ended.messages["Metadata"]
    assert 180_000 < rounds(trace)[-1] <= 215_000
    assert asked > 100  # a consumer asks every second for a topic that does not exist


def test_rates_in_intervals_end_with_their_topic():
    topics = {
        "a": {"partitions": 1, "rate": 1},
        "b": {"partitions": 1, "rates_rows": [[1]] * 10 + [[9]] * 20, "interval": "10s"},
    }
    scenario = scenario_of({"at": "50s", "delete_topic": "b"}, topics=topics)
    for trace in (run(scenario), planned(scenario)):
        assert [at_ms for at_ms, e in seen(trace, ev.RatesChanged) if e.topic == "b"] == [0, 50_000]


def test_a_topic_may_end_while_a_member_waits_for_its_offsets():
    events = [{"at": at_ms, "delete_topic": f"t{at_ms}"} for at_ms in range(3_000, 7_000, 50)]
    topics = {"a": {"partitions": 1}} | {e["delete_topic"]: {"partitions": 1, "rate": 1} for e in events}
    trace = run(
        scenario_of(*events, topics=topics, members=[{"id": "p", "count": 2, "topics_pattern": ".*"}])
    )
    assert topics_of(History(trace).last_settled.owners) == {"a"}


def test_a_frozen_member_notices_the_end_of_a_topic_when_it_continues():
    members = [{"id": "l", "topics": ["a", "b"]}]
    events = [{"at": "170s", "freeze": "l", "for": "30s"}, DELETED]
    trace = run(scenario_of(*events, members=members, config={"metadata.max.age.ms": "10m"}))
    assert 200_000 < rounds(trace)[1] < 201_000


def test_a_consumer_that_changes_from_a_pattern_to_topics_leaves_the_group_and_joins_again():
    events = [
        {"at": "60s", "subscribe": "p-0", "topics": ["a"]},
        {"at": "2m", "subscribe": "p-0", "topics_pattern": "b"},
    ]
    trace = run(scenario_of(*events))
    reasons = [e.reason for _, e in seen(trace, ev.MemberRemoved)]
    assert reasons == ["the consumer unsubscribed"] * 2
    owners = History(trace).last_settled.owners
    assert topics_of(tp for tp, client in owners.items() if client == "p-0") == {"b"}
