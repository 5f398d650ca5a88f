"""The causes of stopped time: by hand, and in random runs, in which they sum to the whole."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.causes import CAUSES, PARTS, WAITS
from rebalance_lab.traces.history import History
from rebalance_lab.traces.timeline import Timeline
from tests.examples import scaled
from tests.places import SCENARIOS
from tests.rebalance_lab.traces.traces import (
    assigned,
    generation,
    history_of,
    joined,
    removed,
    revoked,
    round_at,
    started,
    state,
    stopped,
)


def causes_of(*timed, topics=None, from_ms=0, **options):
    stops = history_of(*timed, topics=topics or {"t": 2}, from_ms=from_ms, **options).stops
    assert sum(stops.causes_ms[cause] for causes in PARTS.values() for cause in causes) == stops.stopped_ms
    return {cause: ms for cause, ms in stops.causes_ms.items() if ms}


def two_rest(**options):
    """Members a and b with a partition each, at rest from the beginning."""
    return [
        (0, started("a", "t", **options)),
        (0, started("b", "t", **options)),
        *round_at(0, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
    ]


def replaced(old, new):
    return ev.MemberReplaced(group="g", instance_id="i", old_member_id=old, new_member_id=new)


@pytest.mark.parametrize("measure", [None, "0s", "40s"])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky+static", "watcher"])
def test_the_stopped_time_is_the_same_in_a_pass_of_its_own(strategy, measure):
    document = {
        "duration": "2m",
        "topics": {"t": {"partitions": 5, "rate": 50}},
        "members": [{"id": "m", "count": 3, "topics": ["t"]}],
        "events": [{"at": "30s", "crash": "m-1"}, {"at": "50s", "pause": "m-0", "for": "30s"}],
        "config": {"session.timeout.ms": "10s"},
        **({} if measure is None else {"measure": {"from": measure}}),
    }
    scenario = parse_scenario({"name": "later", **document}, where="later")
    trace = simulate(scenario, strategy, default_registry())
    at_once, later = (History(trace, default_registry(), stops=stops) for stops in (True, False))
    assert at_once.stops.stopped_ms > 0
    kept = ("causes_ms", "partition_ms", "unowned_ms", "double_owned_ms", "longest_ms", "unowned_at_end")
    for name in (*kept, "records", "stopped_records"):
        assert getattr(later.stops, name) == getattr(at_once.stops, name)
    assert (later.spans, later.settled, later.moved) == (at_once.spans, at_once.settled, at_once.moved)


def test_each_cause_is_in_one_part():
    assert sorted(cause for causes in PARTS.values() for cause in causes) == sorted(CAUSES)


@pytest.mark.parametrize("strategy", ["watcher", "rocketmq"])
def test_the_sentences_of_the_causes_hold_without_a_coordinator(strategy):
    """A sentence that speaks of a coordinator's round is of another family, or says what holds without it."""
    registry = default_registry()
    trace = simulate(load_scenario(SCENARIOS / "bounce.yaml"), strategy, registry)
    counted = {cause for cause, ms in History(trace, registry).stops.causes_ms.items() if ms}
    assert "waiting_unknown" in counted
    assert all(
        "without a coordinator" in CAUSES[cause].doc for cause in counted if "round" in CAUSES[cause].doc
    )
    assert not any("coordinator's" in CAUSES[cause].doc for cause in counted)


ENDED = {
    "crashed": [stopped("a", "crashed")],
    "failed": [ev.ConsumerFailed(client="a", error="FENCED_INSTANCE_ID")],
    "closed, and its LeaveGroup is lost": [revoked("a", {"t": [0]}), stopped("a")],
    "crashed, and its successor has another id": [stopped("a", "crashed"), started("a", "t")],
}


STANDING = {
    "paused": [ev.MemberPaused(client="a")],
    "cut off": [ev.MemberCutOff(client="a")],
    "paused in a callback": [
        ev.WorkStopped(client="a", partitions={"t": [0]}, why="callback"),
        ev.MemberPaused(client="a"),
    ],
}


@pytest.mark.parametrize("ended", ENDED)
def test_a_member_that_the_group_counts_on_has_yet_to_be_detected(ended):
    events = [(10_000, event) for event in ENDED[ended]]
    assert causes_of(two_rest(), events) == {"detection": 90_000}


@pytest.mark.parametrize("standing", STANDING)
def test_a_member_that_stands_still_is_told_from_one_that_has_ended(standing):
    events = [(10_000, event) for event in STANDING[standing]]
    assert causes_of(two_rest(), events) == {"standing": 90_000}


def test_what_a_dead_member_left_waits_for_the_round_once_its_session_is_over():
    timed = [(10_000, stopped("a", "crashed")), (50_000, removed("a")), (50_000, state("PreparingRebalance"))]
    assert causes_of(two_rest(), timed) == {"detection": 40_000, "waiting_heartbeat": 50_000}


def test_a_member_that_was_removed_and_stands_still_is_known():
    """It owns its partition in its own view, and the group waits for others."""
    timed = [
        (10_000, ev.MemberCutOff(client="a")),
        (50_000, removed("a")),
        (50_000, state("PreparingRebalance")),
    ]
    assert causes_of(two_rest(), timed) == {"standing": 40_000, "waiting_heartbeat": 50_000}


def test_a_static_member_that_closes_and_returns_is_away_until_it_has_joined():
    """It starts again at 15 s, joins at 17 s, has read that at 18 s, and takes its partition over at 19 s."""
    timed = [
        (10_000, revoked("a", {"t": [0]})),
        (10_000, stopped("a")),
        (15_000, started("a", "t", instance_id="i")),
        (17_000, replaced("a", "a2")),
        (18_000, joined("a", 1, "a2")),
        (19_000, assigned("a", 1, {"t": [0]})),
    ]
    assert causes_of(two_rest(instance_id="i"), timed) == {"away": 8_000, "take_over": 1_000}


def test_a_static_member_that_crashes_is_away_from_the_time_at_which_it_starts_again():
    timed = [(10_000, stopped("a", "crashed")), (15_000, started("a", "t", instance_id="i"))]
    assert causes_of(two_rest(instance_id="i"), timed) == {"detection": 5_000, "away": 85_000}


def test_a_topic_stands_still_when_all_of_its_consumers_have_crashed_until_one_is_back():
    """Both crash at 10 s, their sessions end at 55 s, a starts again at 70 s and takes all over at 75 s."""
    timed = [
        (10_000, stopped("a", "crashed")),
        (10_000, stopped("b", "crashed")),
        (55_000, removed("a")),
        (55_000, removed("b")),
        (55_000, state("Empty")),
        (70_000, started("a", "t")),
        *round_at(75_000, 2, {"a": {"t": [0, 1]}}),
    ]
    assert causes_of(two_rest(), timed) == {"detection": 90_000, "vacant": 40_000}


@pytest.mark.parametrize(
    ("ended", "vacant_ms"), [("crashed", 60_000), ("closed", 0)], ids=["crashes", "leaves for good"]
)
def test_a_topic_without_consumers_stands_still_unless_it_was_given_up(ended, vacant_ms):
    timed = [(0, started("a", "t")), (0, started("b", "u"))]
    timed += round_at(0, 1, {"a": {"t": [0]}, "b": {"u": [0]}})
    if ended == "closed":
        timed.append((40_000, revoked("a", {"t": [0]})))
    timed += [(40_000, stopped("a", ended)), (40_000, removed("a")), *round_at(40_000, 2, {"b": {"u": [0]}})]
    found = causes_of(timed, topics={"t": 1, "u": 1})
    assert found == ({"vacant": vacant_ms} if vacant_ms else {})


def test_a_topic_has_no_member_until_the_group_begins_a_round_with_its_new_subscriber():
    """a, the only subscriber of t, crashes; b subscribes to t at 45 s, and the round of 60 s knows it."""
    timed = [
        *[(0, started(name, topic)) for name, topic in (("a", "t"), ("b", "u"))],
        *round_at(0, 1, {"a": {"t": [0]}, "b": {"u": [0]}}),
        *[(40_000, event) for event in (stopped("a", "crashed"), removed("a"), state("PreparingRebalance"))],
        (45_000, ev.SubscriptionChanged(client="b", topics=["t", "u"])),
        (46_000, state("Stable")),
        (60_000, state("PreparingRebalance")),
        (61_000, state("CompletingRebalance")),
    ]
    found = causes_of(timed, topics={"t": 1, "u": 1})
    assert found == {"vacant": 20_000, "waiting_heartbeat": 1_000, "messages": 39_000}


def test_a_topic_whose_only_consumer_is_restarted_stands_still_meanwhile():
    timed = [
        (0, started("a", "t")),
        *round_at(0, 1, {"a": {"t": [0, 1]}}),
        (10_000, revoked("a", {"t": [0, 1]})),
        (10_000, stopped("a")),
        (10_000, removed("a")),
        (10_000, state("Empty")),
        (30_000, started("a", "t")),
        *round_at(30_000, 2, {"a": {"t": [0, 1]}}),
    ]
    assert causes_of(timed) == {"vacant": 40_000}


@pytest.mark.parametrize("before", ["", "Empty", "Dead"])
def test_a_group_without_members_is_vacant(before):
    timed = [(0, started("a", "t"))] + ([(0, state(before))] if before else [])
    assert causes_of(timed) == {"vacant": 200_000}


def test_a_round_is_waiting_then_messages_then_the_poll_in_which_the_new_owner_takes_over():
    timed = [
        (10_000, state("PreparingRebalance")),
        (11_000, revoked("a", {"t": [0]})),
        (13_000, generation(2, "a", "b")),
        (13_000, joined("a", 2)),
        (13_000, joined("b", 2)),
        (13_000, state("CompletingRebalance")),
        (18_000, state("Stable")),
        (25_000, assigned("b", 2, {"t": [0, 1]}, added={"t": [0]})),
    ]
    assert causes_of(two_rest(), timed) == {
        "waiting_heartbeat": 2_000,
        "messages": 5_000,
        "take_over": 7_000,
    }


def test_a_cooperative_member_that_has_given_up_has_yet_to_rejoin_in_its_next_poll():
    timed = [(10_000, revoked("a", {"t": [0]})), (12_000, state("PreparingRebalance"))]
    assert causes_of(two_rest(), timed) == {"take_over": 2_000, "waiting_heartbeat": 88_000}


def test_what_was_assigned_to_a_member_that_has_died_since_has_yet_to_be_detected():
    """So is what it owned until its end. b takes its part over after a second, and then only a is left."""
    timed = [
        (10_000, revoked("b", {"t": [1]})),
        (10_000, generation(2, "a", "b")),
        (10_000, joined("a", 2)),
        (10_000, joined("b", 2)),
        (10_000, state("Stable")),
        (10_000, stopped("a", "crashed")),
        (11_000, assigned("b", 2, {})),
    ]
    assert causes_of(two_rest(), timed) == {"take_over": 1_000, "detection": 90_000 + 89_000}


def test_partitions_that_nobody_was_given_are_unassigned():
    assert causes_of(two_rest(), (40_000, ev.PartitionsAdded(topic="t", partitions=4))) == {
        "unassigned": 2 * 60_000
    }


def test_a_member_that_stands_still_has_not_been_given_what_was_added_since():
    """b has taken its part over, so that what nobody owns is not its."""
    timed = [(40_000, ev.PartitionsAdded(topic="t", partitions=3)), (40_000, ev.MemberPaused(client="b"))]
    assert causes_of(two_rest(), timed) == {"unassigned": 60_000, "standing": 60_000}


@pytest.mark.parametrize("why", ["callback", "restore", "round"])
def test_an_owner_that_hands_out_no_records_stops_its_partitions(why):
    cause = {"callback": "callbacks", "restore": "restore", "round": "take_over"}[why]
    timed = [
        (10_000, ev.WorkStopped(client="a", partitions={"t": [0]}, why=why)),
        (15_000, ev.WorkStarted(client="a", partitions={"t": [0]})),
    ]
    assert causes_of(two_rest(), timed) == {cause: 5_000}


def test_a_coordinator_that_takes_over_knows_who_has_taken_over_before():
    elected = ev.CoordinatorElected(
        node=1, groups=1, group_state="Stable", generation=1, members=["a", "b", "c"]
    )
    timed = [(10_000, revoked("a", {"t": [0]})), (20_000, elected), (30_000, removed("c"))]
    added = (30_000, ev.PartitionsAdded(topic="t", partitions=3))
    assert causes_of(two_rest(), timed, added) == {"take_over": 90_000, "unassigned": 70_000}


# --- the window, claims, and the longest stop


def test_only_the_window_counts():
    timed = [(10_000, revoked("a", {"t": [0]})), (70_000, assigned("a", 1, {"t": [0]}))]
    assert causes_of(two_rest(), timed, from_ms=40_000) == {"take_over": 30_000}
    stops = history_of(two_rest(), timed, topics={"t": 2}, from_ms=40_000).stops
    assert (stops.longest_ms, stops.partition_ms, stops.unowned_ms) == (30_000, 120_000, 30_000)


def test_a_window_without_time_counts_nothing():
    stops = history_of(two_rest(), (10_000, revoked("a", {"t": [0]})), topics={"t": 2}, from_ms=100_000).stops
    assert (stops.stopped_ms, stops.longest_ms, stops.partition_ms) == (0, 0, 0)


def test_a_claim_is_that_of_a_member_of_the_group_dead_or_not():
    """a is dead from 10 s to the end, and removed at 50 s; b works on without a claim from 80 s on."""
    timed = [(10_000, stopped("a", "crashed")), (50_000, removed("a")), (80_000, removed("b"))]
    stops = history_of(two_rest(), timed, topics={"t": 2}).stops
    assert stops.unowned_ms == 50_000 + 20_000


# --- any run


TOPICS = {"a": 4, "b": 2}
MEMBERS = ("m0", "m1", "m2")
KINDS = ("leave", "crash", "crash", "restart", "pause", "freeze", "cut", "subscribe", "coordinator_failover")


@st.composite
def documents(draw):
    """A scenario of three members in which anything may happen. A member that is not running starts again."""
    running, events = dict.fromkeys(MEMBERS, True), []
    for at in sorted(draw(st.lists(st.integers(0, 590).map(lambda n: n * 100), max_size=8))):
        name, kind = draw(st.sampled_from(MEMBERS)), draw(st.sampled_from(KINDS))
        kind = kind if running[name] or kind == "coordinator_failover" else "restart"
        event = {"at": at, kind: {"down": "3s"} if kind == "coordinator_failover" else name}
        if kind in ("pause", "freeze", "cut"):
            event["for"] = draw(st.sampled_from(["1s", "7s", "15s", "30s"]))
        if kind == "subscribe":
            event["topics"] = draw(st.sampled_from([["a"], ["b"], ["a", "b"]]))
        running[name] = kind not in ("leave", "crash") and (running[name] or kind == "restart")
        events.append(event)
    if draw(st.booleans()):
        events.append({"at": draw(st.integers(0, 59_000)), "add_partitions": {"a": 6}})
    return {
        "name": "g",
        "duration": "60s",
        "seed": draw(st.integers(0, 2**32)),
        "topics": {t: {"partitions": n, "rate": 10} for t, n in TOPICS.items()},
        "members": [{"id": name, "topics": list(TOPICS), "process_rate": 50} for name in MEMBERS],
        "events": events,
        "config": {"session.timeout.ms": 6_000, "max.poll.interval.ms": 10_000, "metadata.max.age.ms": 9_000},
        "network": {"loss": draw(st.sampled_from([0.0, 0.0, 0.1]))},
    }


class Naive:
    """Every partition looked at one by one, at every event."""

    def __init__(self, trace, from_ms, round_begins):
        self.round_begins, self.in_rounds_ms = round_begins, 0
        self.now = Timeline()
        self.now.before.append(self.look)
        self.from_ms = from_ms
        self.stopped_ms = self.double_owned_ms = self.partition_ms = self.longest_ms = 0
        self.standing = Counter()
        self.now.read(trace)

    def look(self, at_ms, _event):
        passed_ms = at_ms - max(self.now.at_ms, self.from_ms)
        if passed_ms <= 0:
            return
        there = [TopicPartition(t, n) for t, count in self.now.wanted.items() for n in range(count)]
        for partition in there:
            owners = self.now.owners.get(partition, {})
            working = sum(self.now.consumers[client].works_on(partition) for client in owners)
            self.standing[partition] = 0 if working else self.standing[partition] + passed_ms
            self.longest_ms = max(self.longest_ms, self.standing[partition])
            self.stopped_ms += 0 if working else passed_ms
            self.in_rounds_ms += passed_ms if not working and self.now.state in self.round_begins else 0
            self.double_owned_ms += passed_ms if working > 1 else 0
            self.partition_ms += passed_ms
        for partition in set(self.standing) - set(there):
            del self.standing[partition]


@settings(max_examples=scaled(150))
@given(
    documents(),
    st.sampled_from(["range", "cooperative-sticky", "cooperative-sticky+static"]),
    st.sampled_from([{}, {"measure": {"from": 0}}, {"measure": {"from": 7_000}}]),
)
def test_the_parts_of_the_stopped_time_sum_to_the_whole_in_any_run(document, strategy, window):
    scenario = parse_scenario({**document, **window}, where="random")
    trace = simulate(scenario, strategy, default_registry())
    history, family = History(trace), default_registry().protocol("classic")
    naive, stops = Naive(trace, history.from_ms, family.round_begins), history.stops
    parts = [sum(stops.causes_ms[cause] for cause in causes) for causes in PARTS.values()]
    assert sum(parts) == stops.stopped_ms == naive.stopped_ms
    assert all(ms >= 0 for ms in stops.causes_ms.values())
    assert sum(stops.causes_ms[cause] for cause in WAITS) <= naive.in_rounds_ms
    assert (stops.partition_ms, stops.double_owned_ms) == (naive.partition_ms, naive.double_owned_ms)
    assert stops.longest_ms == naive.longest_ms
