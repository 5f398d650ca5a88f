"""What the page is given of a trace, beside what the trace says."""

import json
from itertools import pairwise
from types import SimpleNamespace

import pytest

from coordinator_core.coordinator.classic.states import LEGAL_MOVES
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import run
from rebalance_jupyter.view_model import _first_in, machine_of, view_model
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts import stops
from rebalance_uncoordinated.events import ClaimFailed, Notified
from tests.rebalance_jupyter.samples import (
    ALONE,
    BACK,
    CUT_OFF,
    LATE_VIEW,
    NOBODY,
    SCALE_OUT,
    TOO_SHORT,
    TWO_TOPICS,
    lag_of,
    owned_at,
    ran,
    spans_of,
)
from tests.rebalance_lab.traces.traces import (
    LATE_TAKE_OVER,
    assigned,
    joined,
    lost,
    revoked,
    round_at,
    started,
    trace_of,
)


def named(model, name):
    (found,) = [member for member in model.document["members"] if member["name"] == name]
    return found


def at(series, at_ms):
    """The last value of [[at, value], ...] up to a time."""
    return [value for when, value in series if when <= at_ms][-1]


# --- spans


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_spans_are_what_members_own_by_their_callbacks(strategy):
    trace = ran(strategy=strategy)
    for at_ms in range(0, 180_000, 3_217):
        drawn = {name: set() for name in ("c1", "c2", "c3")}
        for partition, owner, from_ms, to_ms in spans_of(trace):
            if from_ms <= at_ms < to_ms:
                drawn[owner].add(("clicks", partition))
        assert drawn == {name: owned_at(trace, name, at_ms) for name in drawn}


def test_spans_are_in_order_of_partitions_and_of_their_beginning():
    for trace in (ran(), ran(CUT_OFF, "range")):
        keys = [(partition, from_ms) for partition, _, from_ms, _ in spans_of(trace)]
        assert keys == sorted(keys)


def test_whoever_was_cut_off_still_owns_while_others_do_and_the_spans_overlap_in_their_order():
    two = {"t": [0]}
    trace = trace_of(
        (0, started("old", "t")),
        (0, started("new", "t")),
        round_at(1_000, 1, {"old": two, "new": {}}),
        round_at(50_000, 2, {"new": two}),
        (60_000, revoked("new", two)),
        (70_000, lost("old", two)),
        topics={"t": 1},
    )
    assert spans_of(trace) == [[0, "old", 1_000, 70_000], [0, "new", 50_000, 60_000]]
    assert [each["flows"] for each in view_model(trace).document["rounds"]] == [[], [[0, 1, 1]]]


RESTORING = """\
name: restoring
duration: 2m
topics: {t: {partitions: 12, rate: 120}}
members:
  - {id: c, count: 3, topics: [t], process_rate: 100, restore: 8s, on_revoked: 1s}
events:
  - {at: 40s, join: {id: new, topics: [t], process_rate: 100, restore: 8s}}
  - {at: 60s, pause: c-1, for: 5s}
  - {at: 80s, crash: c-2}
"""


def test_partitions_that_are_restored_are_not_worked_on():
    trace = trace_of(
        (0, started("m", "t")),
        round_at(1_000, 1, {"m": {"t": [0, 1, 2]}}),
        (1_000, ev.WorkStopped(client="m", partitions={"t": [0, 1]}, why="restore")),
        (3_000, ev.WorkStarted(client="m", partitions={"t": [1]})),
        (4_000, ev.MemberPaused(client="m")),
        (5_000, ev.MemberResumed(client="m")),
        (6_000, ev.MemberStopped(client="m", how="closed")),
        topics={"t": 3},
    )
    idle = view_model(trace).document["idle"]
    assert idle == [[0, 3], [1_000, 2], [3_000, 1], [4_000, 3], [5_000, 1], [6_000, 0]]


def test_a_partition_that_is_handed_over_or_has_two_owners_counts_once():
    trace = trace_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        round_at(1_000, 1, {"a": {"t": [0]}, "b": {}}),
        (2_000, revoked("a", {"t": [0]})),
        (2_000, assigned("b", 1, {"t": [0]}, {"t": [0]})),
        (3_000, assigned("a", 1, {"t": [0]}, {"t": [0]})),
        topics={"t": 1},
    )
    assert view_model(trace).document["idle"] == [[0, 1], [1_000, 0]]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "rocketmq"])
def test_what_is_not_worked_on_is_the_stopped_time(strategy):
    trace = run(RESTORING, strategy)
    history = History(trace)
    steps = [*view_model(trace).document["idle"], [trace.started.duration_ms, 0]]
    stopped_ms = sum(
        count * max(0, until_ms - max(at_ms, history.from_ms))
        for (at_ms, count), (until_ms, _) in pairwise(steps)
    )
    figure = stops.stopped_partition_seconds(history)
    assert stopped_ms / 1_000 == pytest.approx(figure)
    assert figure > 30


def test_partitions_are_numbered_through_the_topics_in_their_order():
    trace = trace_of(
        (0, started("m", "a", "b")),
        round_at(1_000, 1, {"m": {"b": [1], "a": [2]}}),
        topics={"b": 2, "a": 3},
    )
    assert view_model(trace).document["topics"] == [
        {"name": "a", "partitions": 3},
        {"name": "b", "partitions": 2},
    ]
    assert [partition for partition, *_ in spans_of(trace)] == [2, 4]


def test_spans_are_little_endian_words_of_four_bytes():
    model = view_model(ran(ALONE))
    words = [int.from_bytes(model.spans[i : i + 4], "little", signed=True) for i in range(0, 16, 4)]
    assert len(model.spans) == 16
    assert words[:2] == [0, 0]
    assert words[3] == 20_000


def test_ownership_without_length_is_not_sent():
    trace = trace_of(
        (0, started("m", "t")),
        round_at(1_000, 1, {"m": {"t": [0]}}),
        (1_000, revoked("m", {"t": [0]})),
        topics={"t": 1},
    )
    assert view_model(trace).spans == b""


# --- members


def test_members_have_states_callbacks_generations_and_what_they_own():
    trace = ran()
    model = view_model(trace)
    assert [member["name"] for member in model.document["members"]] == ["c1", "c2", "c3"]
    for name in ("c1", "c2", "c3"):
        member = named(model, name)
        for when, count in member["owned"]:
            assert count == len(owned_at(trace, name, when))
        joins = [
            e.event.generation
            for e in trace.events
            if isinstance(e.event, ev.Joined) and e.event.client == name
        ]
        assert [generation for _, generation in member["generations"]] == joins
        calls = [
            e.at_ms
            for e in trace.events
            if isinstance(e.event, (ev.Assigned, ev.Revoked, ev.Lost)) and e.event.client == name
        ]
        assert [when for when, *_ in member["calls"]] == calls
    assert [state for _, state in named(model, "c2")["states"]][-1] == "crashed"
    assert at(named(model, "c2")["owned"], 90_000) == 0


TAKEN = {
    (line.at_ms, line.event.client)
    for line in ran().events
    if isinstance(line.event, ev.Assigned) and line.event.added
}
"""The times at which members of the sample take over partitions."""


def test_lag_is_what_was_measured():
    model = view_model(ran())
    measures = [(e.at_ms, e.event.by_client) for e in ran().events if isinstance(e.event, ev.LagMeasured)]
    started_ms = {e.event.client: e.at_ms for e in ran().events if isinstance(e.event, ev.MemberStarted)}
    assert sum(bool(lags) for _, lags in measures) > 10
    for at_ms, lags in measures:
        for name in ("c1", "c2", "c3"):
            if (at_ms, name) in TAKEN:
                assert at(lag_of(named(model, name)), at_ms) is None
            elif at_ms < started_ms[name]:
                assert [when for when, _ in lag_of(named(model, name)) if when <= at_ms] == []
            else:
                assert at(lag_of(named(model, name)), at_ms) == round(lags.get(name, 0.0), 1)


def test_the_lag_of_partitions_without_an_owner_has_a_series_of_its_own():
    """c2 crashes at 90 s and its session expires at about 135 s: until then nobody has what it owned."""
    model = view_model(ran())
    measures = [(e.at_ms, e.event) for e in ran().events if isinstance(e.event, ev.LagMeasured)]
    for at_ms, measured in measures:
        unowned = measured.lag - sum(measured.by_client.values())
        if at_ms in {taken_ms for taken_ms, _ in TAKEN}:
            continue
        assert at(model.document["unowned_lag"], at_ms) == pytest.approx(unowned, abs=0.06)
    assert at(model.document["unowned_lag"], 89_000) == 0
    assert at(model.document["unowned_lag"], 130_000) > 1_000
    assert at(model.document["unowned_lag"], 175_000) == 0


def test_lags_are_unknown_from_a_change_of_owners_to_the_next_measure():
    def measured(**by_client):
        lag = 100 + sum(by_client.values())
        return ev.LagMeasured(lag=lag, max_lag=lag, lag_record_seconds=0, duplicates=0, by_client=by_client)

    model = view_model(
        trace_of(
            [(0, started(name, "t")) for name in ("a", "b")],
            round_at(1_000, 1, {"a": {"t": [0]}, "b": {}}),
            (2_000, measured(a=5.0)),
            (3_000, revoked("a", {"t": [0]})),
            round_at(3_000, 2, {"a": {}, "b": {"t": [0]}}),
            (3_000, measured()),
            (4_000, measured(b=7.0)),
            topics={"t": 1},
        )
    )
    assert lag_of(named(model, "a")) == [[2_000, 5.0], [3_000, None], [3_000, 0.0]]
    assert lag_of(named(model, "b")) == [[2_000, 0.0], [3_000, None], [4_000, 7.0]]
    assert model.document["unowned_lag"] == [[2_000, 100.0], [3_000, None], [4_000, 100.0]]


def test_who_stands_still_is_paused_until_nothing_holds_it():
    trace = trace_of(
        (0, started("m", "t")),
        round_at(1_000, 1, {"m": {"t": [0]}}),
        (2_000, ev.MemberPaused(client="m")),
        (3_000, ev.MemberCutOff(client="m")),
        (4_000, ev.MemberReconnected(client="m")),
        (7_000, ev.MemberResumed(client="m")),
        (8_000, ev.ConsumerFailed(client="m", error="boom")),
        topics={"t": 1},
    )
    member = named(view_model(trace), "m")
    assert member["states"] == [
        [0, "outside"],
        [1_000, "stable"],
        [2_000, "paused"],
        [7_000, "stable"],
        [8_000, "crashed"],
    ]
    assert member["owned"] == [[1_000, 1], [8_000, 0]]


def test_a_consumer_that_failed_owns_nothing_also_after_it_reports_partitions_as_lost():
    trace = trace_of(
        (0, started("m", "t")),
        round_at(1_000, 1, {"m": {"t": [0]}}),
        (8_000, ev.ConsumerFailed(client="m", error="FENCED_INSTANCE_ID")),
        (8_001, lost("m", {"t": [0]})),
        topics={"t": 1},
    )
    assert named(view_model(trace), "m")["owned"] == [[1_000, 1], [8_000, 0]]


def test_who_starts_again_is_in_no_generation_until_it_joins():
    trace = trace_of(
        (0, started("m", "t")),
        round_at(1_000, 1, {"m": {"t": [0]}}),
        (2_000, ev.MemberStopped(client="m", how="closed")),
        (3_000, started("m", "t")),
        (4_000, joined("m", 2)),
        (4_000, assigned("m", 2, {"t": [0]})),
        topics={"t": 1},
    )
    member = named(view_model(trace), "m")
    assert member["generations"] == [[1_000, 1], [3_000, 0], [4_000, 2]]
    assert [state for _, state in member["states"]] == ["outside", "stable", "stopped", "outside", "stable"]


# --- coordinator and rounds


def test_states_of_the_group_are_those_of_the_trace():
    trace = ran()
    changes = [[e.at_ms, e.event.after] for e in trace.events if isinstance(e.event, ev.GroupStateChanged)]
    assert view_model(trace).document["states"] == [[0, "Empty"], *changes]


def test_the_machine_has_every_state_and_legal_move_and_no_two_in_one_place():
    machine = view_model(ran()).document["machine"]
    assert {name for name, *_ in machine["states"]} == {state.value for state in LEGAL_MOVES}
    assert len({tuple(place) for _, *place in machine["states"]}) == len(LEGAL_MOVES)
    moves = {(a.value, b.value) for a, after in LEGAL_MOVES.items() for b in after if a != b}
    assert {tuple(move) for move in machine["moves"]} == moves


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_counts_of_a_round_are_those_of_its_callbacks(strategy):
    trace = ran(strategy=strategy)
    rounds = view_model(trace).document["rounds"]
    ends = [each["began"] for each in rounds[1:]] + [trace.started.duration_ms + 1]
    for each, until in zip(rounds, ends, strict=True):
        inside = [e.event for e in trace.events if each["began"] <= e.at_ms < until]
        for kind, key in ((ev.Revoked, "revoked"), (ev.Lost, "lost")):
            listed = [numbers for e in inside if isinstance(e, kind) for numbers in e.partitions.values()]
            assert each["counts"][key] == sum(map(len, listed))
        added = [numbers for e in inside if isinstance(e, ev.Assigned) for numbers in e.added.values()]
        assert each["counts"]["assigned"] == sum(map(len, added))
        for key, count in each["counts"].items():
            assert sum(member[key] for member in each["members"].values()) == count


def test_flows_are_the_changes_of_owner_in_the_round_they_come_from():
    rounds = view_model(ran()).document["rounds"]
    assert [each["flows"] for each in rounds] == [[], [], [[0, 2, 1], [1, 2, 1]], [[1, 0, 1], [1, 2, 1]]]


def test_a_flow_belongs_to_the_round_that_assigned_even_if_the_member_takes_over_after_the_next_began():
    assert [
        each["flows"] for each in view_model(trace_of(LATE_TAKE_OVER, topics={"t": 2})).document["rounds"]
    ] == [
        [],
        [[0, 1, 1]],
        [],
    ]


def test_rounds_have_a_leader_a_protocol_causes_and_a_sentence():
    first, second, *_ = view_model(ran()).document["rounds"]
    assert (first["leader"], first["protocol"]) == (0, "cooperative-sticky")
    assert second["causes"] == ["c3 joined"]
    assert second["sentence"].startswith("generation 2: c1 and c2 each give up 1 partition")


# --- other protocols


@pytest.mark.parametrize("name", ["classic", "server-side", "reconcile", "watcher", "peers"])
def test_every_state_of_a_protocol_has_a_kind_and_a_place_of_its_own(name):
    family = default_registry().protocol(name)
    strategy = {"classic": "range"}.get(name, f"range+{name}")
    machine = view_model(ran(ALONE, strategy)).document["machine"]
    assert set(machine["kinds"]) == set(family.states) == {state for state, *_ in machine["states"]}
    assert len({tuple(place) for _, *place in machine["states"]}) == len(family.states)
    assert {state for state, kind in machine["kinds"].items() if kind == "resting"} == family.at_rest
    assert {state for state, kind in machine["kinds"].items() if kind == "begun"} == family.round_begins
    assert machine["kinds"]["Empty"] == "vacant"
    assert machine["kinds"].get("Dead", "ended") == "ended"
    assert machine["coordinated"] == (name in ("classic", "server-side", "reconcile"))


def test_states_of_one_kind_have_places_of_their_own_too():
    states = {f"s{n}": set() for n in range(7)}
    family = ProtocolSpec("p", states, at_rest=frozenset({"s6"}), round_begins=frozenset({"s1", "s2"}))
    places = {state: tuple(place) for state, *place in machine_of(family)["states"]}
    assert len(set(places.values())) == 7
    assert places["s1"] == (0, 0.5)


@pytest.mark.parametrize(
    ("strategy", "seen"),
    [
        ("watcher", {"outside", "rebalancing", "backing-off", "resting", "without-share"}),
        ("rocketmq", {"outside", "looking", "resting"}),
        ("range+server-side", {"outside", "joining", "stable"}),
        ("sticky+reconcile", {"outside", "joining", "reconciling", "acknowledging", "stable"}),
    ],
)
def test_members_have_the_states_of_their_protocol(strategy, seen):
    scenario = SCALE_OUT.replace("- {at: 90s, crash: c2}", "") if "+" in strategy else LATE_VIEW
    members = view_model(ran(scenario, strategy)).document["members"]
    assert {state for member in members for _, state in member["states"]} == seen


def test_events_of_a_family_have_their_sentences():
    trace = ran(LATE_VIEW, "watcher")
    document, sentences = view_model(trace).document, default_registry().protocol("watcher").sentences
    told = {
        m["name"]: [[at_ms, document["sentences"][n]] for at_ms, n in m["told"]] for m in document["members"]
    }
    expected = {name: [] for name in told}
    for line in trace.events:
        if isinstance(line.event, (Notified, ClaimFailed)):
            expected[line.event.client].append([line.at_ms, sentences[type(line.event)](line.event)])
    assert told == expected
    assert len(expected["c3"]) > 5
    assert len(set(document["sentences"])) == len(document["sentences"])


def test_a_protocol_without_events_of_its_own_tells_nothing():
    document = view_model(ran()).document
    assert document["sentences"] == []
    assert [member["told"] for member in document["members"]] == [[], [], []]


def test_a_round_has_the_report_of_a_delay():
    reports = [r["report"] for r in view_model(ran(BACK, "cooperative-sticky+delay=60s")).document["rounds"]]
    assert reports[0] == ""
    assert reports[1].startswith("delay 60 s, 60 s left for t 1")


def test_new_partitions_have_the_time_from_which_they_exist():
    assert view_model(ran(TWO_TOPICS, "rocketmq")).document["added"] == {"u": [[30_000, 0]]}
    trace = trace_of(
        (0, started("m", "t")),
        (2_000, ev.PartitionsAdded(topic="t", partitions=3)),
        (4_000, ev.PartitionsAdded(topic="t", partitions=5)),
        topics={"t": 1},
    )
    assert view_model(trace).document["added"] == {"t": [[2_000, 1], [4_000, 3]]}


def test_topics_that_do_not_exist_at_the_end_have_the_time_of_their_end():
    trace = trace_of(
        (1_000, ev.TopicDeleted(topic="t")),
        (2_000, ev.TopicDeleted(topic="u")),
        (3_000, ev.PartitionsAdded(topic="u", partitions=1)),
        topics={"t": 1, "u": 2},
    )
    assert view_model(trace).document["deleted"] == {"t": 1_000}


def test_members_of_a_circle_have_places_within_it():
    circle = view_model(ran()).document["circle"]
    assert len(circle) == 3
    assert all(0 <= part <= 1 for place in circle for part in place)


# --- edges


def test_nobody():
    model = view_model(ran(NOBODY))
    assert (model.document["members"], model.document["rounds"], model.document["circle"]) == ([], [], [])
    assert model.document["end"]["state"] == "Empty"
    assert model.spans == b""


def test_one_member_stands_in_the_middle():
    assert view_model(ran(ALONE)).document["circle"] == [[0.5, 0.5]]


def test_a_group_that_never_became_stable():
    document = view_model(ran(TOO_SHORT)).document
    assert [each["stable"] for each in document["rounds"]] == [None]
    assert document["end"]["state"] == "PreparingRebalance"


@pytest.mark.parametrize("scenario", [NOBODY, ALONE, TOO_SHORT, CUT_OFF])
def test_the_document_is_plain_json(scenario):
    document = view_model(ran(scenario)).document
    assert json.loads(json.dumps(document)) == document


def test_what_a_member_loses_is_not_what_it_revokes():
    trace = trace_of(
        (0, started("a", "t")),
        (1_000, joined("a", 1)),
        (1_000, assigned("a", 1, {"t": [0, 1]})),
        (2_000, revoked("a", {"t": [1]})),
        (3_000, lost("a", {"t": [0]})),
        topics={"t": 2},
    )
    calls = named(view_model(trace), "a")["calls"]
    assert calls == [[1_000, "assigned", 2], [2_000, "revoked", 1], [3_000, "lost", 1]]


def test_a_view_opens_at_the_first_round_within_the_time_that_is_measured():
    listed = [SimpleNamespace(began_ms=began_ms) for began_ms in (5, 9)]
    assert [_first_in(from_ms, listed) for from_ms in (0, 5, 6, 10)] == [None, 5, 9, None]
