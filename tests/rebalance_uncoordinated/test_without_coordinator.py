"""Worked examples of groups without a coordinator: views that differ, herds, and claims that have expired."""

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario, load_scenario_text
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.measuring import measure
from rebalance_uncoordinated.events import ClaimFailed, Notified
from tests.places import SCENARIOS

T0 = TopicPartition("t", 0)

ROUND_TRIPS_S = 0.1
"""What the messages of a rebalance take at most, over all partitions, with a latency of 1 ms."""


def text_of(name):
    return (SCENARIOS / f"{name}.yaml").read_text()


def run(scenario, strategy):
    """Return the history of a run, and its figures."""
    registry = default_registry()
    history = History(simulate(scenario, strategy, registry), registry)
    return history, measure(history, registry)


def run_file(name, strategy):
    return run(load_scenario(SCENARIOS / f"{name}.yaml"), strategy)


def run_text(text, strategy):
    return run(load_scenario_text(text, "test"), strategy)


def owned_at(history, at_ms):
    """The partitions that each consumer owns at a time."""
    owned = {}
    for partition, spans in history.spans.items():
        for span in spans:
            if span.from_ms <= at_ms < span.to_ms:
                owned.setdefault(span.client, []).append(partition)
    return {client: sorted(owned[client]) for client in sorted(owned)}


def shares_at(history, at_ms):
    """The numbers of the partitions that each consumer owns at a time."""
    return {client: [tp.partition for tp in tps] for client, tps in owned_at(history, at_ms).items()}


# --- views that differ


@pytest.mark.parametrize("strategy", ["rocketmq", "watcher+owners=off"])
def test_of_views_that_differ_some_partitions_have_two_owners_and_some_have_none(strategy):
    """c-3 joins, and c-1 sees it ten seconds late: 2 belongs to nobody, 4 and 5 to two."""
    history, figures = run_file("late-view", strategy)
    assert shares_at(history, 29_000) == {"c-0": [0, 1, 2], "c-1": [3, 4, 5], "c-2": [6, 7]}
    between = {"c-0": [0, 1], "c-1": [3, 4, 5], "c-2": [4, 5], "c-3": [6, 7]}
    assert shares_at(history, 35_000) == between  # c-3 has started
    assert shares_at(history, 59_000) == {"c-0": [0, 1], "c-1": [2, 3], "c-2": [4, 5], "c-3": [6, 7]}
    assert figures["double_owned_partition_seconds"] == pytest.approx(20, abs=ROUND_TRIPS_S)
    assert figures["unowned_partition_seconds"] == pytest.approx(10, abs=ROUND_TRIPS_S)
    assert figures["failed_claims"] == 0
    assert figures["duplicate_records"] >= 200  # 10 s of 20 records/s


@pytest.mark.parametrize("strategy", ["rocketmq", "watcher+owners=off"])
def test_of_views_that_do_not_differ_every_partition_has_one_owner_but_for_latencies(strategy):
    text = text_of("late-view").replace("by: 10s", "by: 0s")
    history, figures = run_text(text, strategy)
    assert shares_at(history, 59_000) == {"c-0": [0, 1], "c-1": [2, 3], "c-2": [4, 5], "c-3": [6, 7]}
    assert figures["double_owned_partition_seconds"] < ROUND_TRIPS_S
    assert figures["unowned_partition_seconds"] < ROUND_TRIPS_S


def test_owner_nodes_keep_views_that_differ_from_owning_a_partition_twice():
    """c-2 claims what c-1 still owns, until it has no more retries: nobody works on its share."""
    history, figures = run_file("late-view", "watcher")
    assert figures["double_owned_partition_seconds"] == 0
    assert figures["unowned_partition_seconds"] >= 10
    assert figures["failed_claims"] >= 1
    assert figures["duplicate_records"] == 0
    failed = [e.event for e in history.trace.events if isinstance(e.event, ClaimFailed)]
    assert [(e.retry, e.retries) for e in failed if e.client == "c-2"][-5:] == [
        (1, 4),
        (2, 4),
        (3, 4),
        (4, 4),
        (0, 4),
    ]
    assert "c-2" not in shares_at(history, 59_000)


def test_a_member_that_has_given_up_claims_again_after_the_next_notice():
    more = "  - {at: 45s, lag_view: {member: c-1, by: 0s}}\n  - {at: 50s, leave: c-3}"
    text = text_of("late-view").replace("\nnetwork", f"\n{more}\nnetwork")
    history, figures = run_text(text, "watcher")
    assert shares_at(history, 59_000) == {"c-0": [0, 1, 2], "c-1": [3, 4, 5], "c-2": [6, 7]}
    assert figures["double_owned_partition_seconds"] == 0


# --- the registration of a member


@pytest.mark.parametrize("strategy", ["watcher", "rocketmq"])
@pytest.mark.parametrize("cut_ms", range(1_000, 1_100, 5))
def test_a_member_is_in_the_group_whichever_message_of_its_start_is_lost(strategy, cut_ms):
    history, _ = run_text(
        "{name: g, duration: 1m, network: {latency: 10ms}, topics: {t: {partitions: 4, rate: 10}},"
        " members: [{id: c, count: 2, topics: [t], process_rate: 90, start_up: 1s}],"
        f" events: [{{at: {cut_ms}ms, cut: c-1, for: 1s}}]}}",
        strategy,
    )
    assert history.last_settled is not None
    assert history.last_settled.members.keys() == {"c-0", "c-1"}
    assert sorted(map(len, shares_at(history, 59_000).values())) == [2, 2]


def test_a_member_that_waits_with_its_close_for_the_coordinator_of_its_offsets_keeps_its_session():
    """Its last offsets cannot be stored for 11 s, and it has not seen that the broker is away. Nobody takes
    its share before it has given it up."""
    history, figures = run_text(
        "{name: g, duration: 3m, brokers: 1, topics: {t: {partitions: 4, rate: 40}},"
        " members: [{id: c, count: 2, topics: [t], process_rate: 90}],"
        " events: [{at: 50s, lag_view: {member: c-1, by: 30s}}, {at: 60s, coordinator_failover: {down: 12s}},"
        " {at: 61s, leave: c-1}]}",
        "watcher",
    )
    removed = [e.event.reason for e in history.trace.events if isinstance(e.event, ev.MemberRemoved)]
    assert removed == ["left"]
    assert figures["double_owned_partition_seconds"] == 0


# --- members that subscribe to different topics


def test_a_group_of_which_nobody_owns_anything_is_measured_from_the_rest_of_its_members():
    """c-0 fails to claim the partition of c-1 and has no retries left; c-1 gives it up, as it is c-0's."""
    history, figures = run_text(
        "{name: g, seed: 2, duration: 4m, phase: 0s, topics: {t: {partitions: 1, rate: 10}},"
        " members: [{id: c, count: 2, topics: [t], process_rate: 90}], events: [{at: 2m, crash: c-1}],"
        " config: {rebalance.max.retries: 0}}",
        "watcher",
    )
    assert [settled.owners for settled in history.settled] == [{T0: "c-1"}, {}, {T0: "c-0"}]
    assert history.from_ms == history.start_up_ms == history.settled[1].from_ms < 3_000
    assert 120 < figures["stopped_partition_seconds"] < 127  # the wait for the crash, and the session
    assert (figures["moved_partitions"], figures["avoidable_moves"]) == (1, 0)


def test_without_a_coordinator_the_share_of_who_does_not_subscribe_belongs_to_nobody():
    """Four members divide four partitions of a topic, to which two of them subscribe."""
    history, figures = run_file("two-subscriptions", "rocketmq")
    at_end = [unowned.partition for unowned in history.stops.unowned_at_end]
    assert at_end == [TopicPartition("audit", 2), TopicPartition("audit", 3)]
    window_s = (history.started.duration_ms - history.from_ms) / 1_000
    assert window_s > 290
    assert figures["unowned_partition_seconds"] == pytest.approx(2 * window_s)
    (text,) = findings(history)
    assert text.startswith("2 partitions have no owner at the end, since 3.852 s (audit 2-3): each topic")
    assert "the shares of those that do not subscribe to it belong to nobody" in text
    assert figures["double_owned_partition_seconds"] == 0


@pytest.mark.parametrize("strategy", ["watcher", "watcher+owners=off", "range", "average+server-side"])
def test_elsewhere_all_partitions_have_an_owner_whoever_subscribes(strategy):
    history, figures = run_file("two-subscriptions", strategy)
    assert history.stops.unowned_at_end == []
    assert figures["unowned_partition_seconds"] == 0


@pytest.mark.parametrize("latency", [[0, 0], [1, 5]])
@pytest.mark.parametrize("strategy", ["watcher", "watcher+owners=off", "rocketmq"])
def test_a_member_whose_pattern_matches_no_topic_rests_until_one_is_created(strategy, latency):
    document = {
        "name": "pattern",
        "duration": "60s",
        "topics": {"t": {"partitions": 4, "rate": 40}},
        "members": [{"id": "a", "topics": ["t"]}, {"id": "b", "topics_pattern": "x.*"}],
        "events": [{"at": "30s", "create_topic": {"x": {"partitions": 2, "rate": 2}}}],
        "config": {"metadata.max.age.ms": 10_000},
        "network": {"latency": latency},
    }
    history, figures = run(parse_scenario(document, where="test"), strategy)
    assert history.start_up_ms < 10_000
    assert figures["messages"] < 400
    of_topics = {client: {tp.topic for tp in tps} for client, tps in owned_at(history, 59_000).items()}
    assert of_topics == {"a": {"t"}, "b": {"x"}}


# --- herds


def deploy(members):
    return parse_scenario(
        {
            "name": "deploy",
            "duration": "4m",
            "topics": {"t": {"partitions": 12, "rate": 120}},
            "members": [{"id": "w", "count": members, "topics": ["t"]}],
            "events": [{"at": "30s", "rolling_restart": {"every": "30s", "down": "8s"}}],
        },
        where="test",
    )


@pytest.mark.parametrize("strategy", ["watcher", "watcher+owners=off"])
def test_every_change_notifies_everybody_else(strategy):
    """Five members are restarted: ten changes, and four others each time."""
    _, figures = run(deploy(5), strategy)
    assert figures["notifications"] == 10 * 4


@pytest.mark.slow  # forty members rebalance eighty times
def test_a_deployment_of_forty_members_sends_3120_notices():
    _, figures = run_file("rolling-deploy", "watcher")
    assert figures["notifications"] == 80 * 39
    assert figures["double_owned_partition_seconds"] == 0


def test_a_broker_that_goes_away_and_comes_back_notifies_every_watcher_twice():
    document = {
        "name": "herd",
        "duration": "60s",
        "topics": {"t": {"partitions": 6, "rate": 60}},
        "members": [{"id": "c", "count": 3, "topics": ["t"]}],
        "events": [{"at": "30s", "coordinator_failover": {"down": "10s"}}],
    }
    _, figures = run(parse_scenario(document, where="test"), "watcher")
    assert figures["notifications"] == 2 * 3
    assert figures["superfluous_rebalances"] == 2 * 3
    _, figures = run(parse_scenario(document, where="test"), "rocketmq")
    assert figures["moved_partitions"] == figures["unowned_partition_seconds"] == 0
    assert figures["double_owned_partition_seconds"] == 0


@pytest.mark.parametrize("strategy", ["watcher", "rocketmq"])
def test_a_member_that_leaves_does_so_once_and_sends_nothing_after_it(strategy):
    text = text_of("late-view").replace(
        "{at: 29s, lag_view: {member: c-1, by: 10s}}", "{at: 20s, leave: c-1}"
    )
    registry, sent = default_registry(), []
    trace = simulate(load_scenario_text(text, "test"), strategy, registry, exchanged=sent.append)
    left = [e.event for e in trace.events if isinstance(e.event, ev.MemberRemoved)]
    assert [event.reason for event in left] == ["left"]
    kinds = [type(exchange.request).__name__ for exchange in sent if exchange.client == "c-1"]
    last = {"watcher": ["CloseSessionRequest"], "rocketmq": ["MemberGoneRequest"] * 3}[strategy]
    assert kinds[-len(last) :] == last
    assert kinds.count(last[0]) == len(last)


# --- claims that have expired


@pytest.mark.parametrize("latency_ms", [1, 20, 100])
def test_a_frozen_member_works_on_until_it_learns_that_its_session_has_expired(latency_ms):
    """Its three partitions belong to others by then. It learns so by the response to its next ping."""
    text = text_of("cut-off").replace("cut: c-1", "freeze: c-1")
    text = text.replace("[1ms, 1ms]", f"[{latency_ms}ms, {latency_ms}ms]")
    history, figures = run_text(text, "watcher")
    lost = [e for e in history.trace.events if isinstance(e.event, ev.Lost)]
    assert [(e.event.client, e.at_ms) for e in lost] == [("c-1", 45_000 + 2 * latency_ms)]
    assert figures["double_owned_partition_seconds"] == pytest.approx(3 * 2 * latency_ms / 1_000)


def test_a_freeze_within_the_session_costs_no_claim():
    text = text_of("cut-off").replace("cut: c-1, for: 15s", "freeze: c-1, for: 3s")
    history, figures = run_text(text, "watcher")
    assert not [e for e in history.trace.events if isinstance(e.event, ev.Lost)]
    assert figures["double_owned_partition_seconds"] == figures["unowned_partition_seconds"] == 0
    assert figures["rounds"] == 0


def test_a_broker_that_comes_back_is_told_of_all_members_before_its_list_counts():
    """The metadata of the members do not name the broker for minutes. c-1 starts meanwhile."""
    events = [{"at": "2m", "coordinator_failover": {"down": "3s"}}, {"at": "190s", "restart": "c-1"}]
    document = {
        "name": "back",
        "duration": "6m",
        "topics": {"t": {"partitions": 12, "rate": 120}},
        "members": [{"id": "c", "count": 5, "topics": ["t"], "process_rate": 100}],
        "events": events,
    }
    registry = default_registry()
    scenario = parse_scenario(document, where="test", registry=registry)
    _, figures = run(scenario, "rocketmq")
    assert figures["double_owned_partition_seconds"] < ROUND_TRIPS_S


@pytest.mark.parametrize("strategy", ["watcher", "watcher+owners=off"])
def test_a_member_that_was_cut_off_works_on_until_its_next_ping(strategy):
    """Connections work again at 45 s; a ping is due within two seconds of that."""
    history, figures = run_file("cut-off", strategy)
    (lost,) = (e for e in history.trace.events if isinstance(e.event, ev.Lost))
    assert lost.event.client == "c-1"
    assert 45_000 < lost.at_ms <= 47_010
    works_on_s = (lost.at_ms - 45_000) / 1_000
    assert figures["double_owned_partition_seconds"] == pytest.approx(3 * works_on_s, abs=0.01)
    assert figures["duplicate_records"] >= int(30 * works_on_s)
    assert shares_at(history, 89_000) == {"c-0": [0, 1, 2], "c-1": [3, 4, 5], "c-2": [6, 7]}


def test_a_member_that_was_cut_off_sets_its_watches_again():
    """A cut within the session is no notice; the change that follows it is."""
    text = text_of("cut-off").replace("for: 15s", "for: 5s").replace("90s", "120s")
    text = text.replace("\nnetwork", "\n  - {at: 80s, leave: c-0}\nnetwork")
    text += "config: {zookeeper.session.timeout.ms: 9000}\n"
    history, _ = run_text(text, "watcher")
    notified = [(e.at_ms, e.event.client) for e in history.trace.events if isinstance(e.event, Notified)]
    after = [client for at_ms, client in notified if at_ms >= 30_000]
    assert sorted(after) == ["c-1", "c-2"]
    assert min(at_ms for at_ms, _ in notified if at_ms >= 30_000) >= 80_000
