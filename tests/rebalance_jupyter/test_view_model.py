"""What the page is given of a trace, beside what the trace says."""

import json
from itertools import pairwise
from random import Random
from types import SimpleNamespace

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import run
from rebalance_jupyter.view_model import _first_in, machine_of, view_model
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts import stops
from rebalance_uncoordinated.events import ClaimFailed, Notified
from tests.examples import rest_slow
from tests.rebalance_jupyter.samples import (
    ALONE,
    BACK,
    CUT_OFF,
    LATE_VIEW,
    NOBODY,
    SCALE_OUT,
    TOO_SHORT,
    TWO_TOPICS,
    at,
    lag_of,
    owned_at,
    ran,
    random_run,
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


def events_of(trace, *kinds, client=None):
    return [
        (line.at_ms, line.event)
        for line in trace.events
        if isinstance(line.event, kinds) and client in (None, getattr(line.event, "client", None))
    ]


def count(partitions):
    return sum(map(len, partitions.values()))


def model_of(*timed, clients="m", **options):
    """The document of a trace by hand."""
    begun = [(0, started(client, "t")) for client in clients]
    return view_model(trace_of(begun, *timed, **{"topics": {"t": 3}, **options})).document


# --- laws


@pytest.mark.parametrize("number", rest_slow(range(20)))
def test_spans_and_members_of_random_runs_are_what_their_callbacks_say(number):
    trace = random_run(number)
    document, spans = view_model(trace).document, spans_of(trace)
    lanes = [(topic["name"], n) for topic in document["topics"] for n in range(topic["partitions"])]
    assert [(p, since) for p, _, since, _ in spans] == sorted((p, since) for p, _, since, _ in spans)
    changes = [at_ms for at_ms, _ in events_of(trace, ev.Assigned, ev.Revoked, ev.Lost, ev.MemberStopped)]
    joins = {
        member["name"]: [
            [at_ms, getattr(event, "generation", 0)]
            for at_ms, event in events_of(trace, ev.MemberStarted, ev.Joined, client=member["name"])
        ]
        for member in document["members"]
    }
    random = Random(number)
    for at_ms in [*random.choices(changes, k=20), *random.choices(range(document["duration"]), k=20)]:
        for member in document["members"]:
            name = member["name"]
            drawn = {lanes[p] for p, owner, since, until in spans if owner == name and since <= at_ms < until}
            if at(member["states"], at_ms) != "crashed":
                assert drawn == owned_at(trace, name, at_ms)
            assert len(drawn) == (at(member["owned"], at_ms) or 0)
            assert (at(member["generations"], at_ms) or 0) == (at(joins[name], at_ms) or 0)
    for member in document["members"]:
        calls = events_of(trace, ev.Assigned, ev.Revoked, ev.Lost, client=member["name"])
        assert member["calls"] == [
            [
                at_ms,
                type(event).__name__.lower(),
                count(event.added if isinstance(event, ev.Assigned) else event.partitions),
            ]
            for at_ms, event in calls
        ]


def test_states_of_the_group_are_those_of_the_trace():
    changed = events_of(ran(), ev.GroupStateChanged)
    states = [[0, "Empty"], *([at_ms, event.after] for at_ms, event in changed)]
    assert view_model(ran()).document["states"] == states


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_counts_of_a_round_are_those_of_its_callbacks(strategy):
    trace = ran(strategy=strategy)
    rounds = view_model(trace).document["rounds"]
    ends = [each["began"] for each in rounds[1:]] + [trace.started.duration_ms + 1]
    for each, until in zip(rounds, ends, strict=True):

        def counted(kind, field, each=each, until=until):
            found = [event for at_ms, event in events_of(trace, kind) if each["began"] <= at_ms < until]
            return sum(count(getattr(event, field)) for event in found)

        counts = each["counts"]
        assert counts["assigned"] == counted(ev.Assigned, "added")
        assert counts["revoked"] == counted(ev.Revoked, "partitions")
        assert counts["lost"] == counted(ev.Lost, "partitions")
        for key, total in counts.items():
            assert sum(member[key] for member in each["members"].values()) == total


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


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "rocketmq"])
def test_what_is_not_worked_on_is_the_stopped_time(strategy):
    trace = run(RESTORING, strategy)
    history = History(trace)
    steps = [*view_model(trace).document["idle"], [trace.started.duration_ms, 0]]
    stopped_ms = sum(
        number * max(0, until_ms - max(at_ms, history.from_ms))
        for (at_ms, number), (until_ms, _) in pairwise(steps)
    )
    figure = stops.stopped_partition_seconds(history)
    assert stopped_ms / 1_000 == pytest.approx(figure)
    assert figure > 30


def test_lags_are_those_that_were_measured():
    """Of c2, which crashes at 90 s, nobody has the partitions until its session expires at about 135 s."""
    document = view_model(ran()).document
    taken = {(at_ms, event.client) for at_ms, event in events_of(ran(), ev.Assigned) if event.added}
    begun = {event.client: at_ms for at_ms, event in events_of(ran(), ev.MemberStarted)}
    for at_ms, measured in events_of(ran(), ev.LagMeasured):
        for member in document["members"]:
            name = member["name"]
            shown = at(lag_of(member), at_ms)
            if (at_ms, name) in taken or at_ms < begun[name]:
                assert shown is None
            else:
                assert shown == round(measured.by_client.get(name, 0.0), 1)
        if at_ms not in {taken_ms for taken_ms, _ in taken}:
            unowned = measured.lag - sum(measured.by_client.values())
            assert at(document["unowned_lag"], at_ms) == pytest.approx(unowned, abs=0.06)
    assert at(document["unowned_lag"], 130_000) > 1_000


# --- spans


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


def test_partitions_are_numbered_through_the_topics_in_their_order_and_spans_without_length_are_not_sent():
    trace = trace_of(
        (0, started("m", "a", "b")),
        round_at(1_000, 1, {"m": {"b": [0, 1], "a": [2]}}),
        (1_000, revoked("m", {"b": [0]})),
        topics={"b": 2, "a": 3},
    )
    topics = view_model(trace).document["topics"]
    assert topics == [{"name": "a", "partitions": 3}, {"name": "b", "partitions": 2}]
    assert [partition for partition, *_ in spans_of(trace)] == [2, 4]


def test_spans_are_little_endian_words_of_four_bytes():
    spans = view_model(ran(ALONE)).spans
    words = [int.from_bytes(spans[i : i + 4], "little", signed=True) for i in range(0, len(spans), 4)]
    assert (len(words), words[:2], words[3]) == (4, [0, 0], 20_000)


# --- members

OWNS = round_at(1_000, 1, {"m": {"t": [0, 1]}})


@pytest.mark.parametrize(
    ("timed", "expected"),
    [
        pytest.param(
            [
                (2_000, ev.MemberPaused(client="m")),
                (3_000, ev.MemberCutOff(client="m")),
                (4_000, ev.MemberReconnected(client="m")),
                (7_000, ev.MemberResumed(client="m")),
            ],
            {"states": [[0, "outside"], [1_000, "stable"], [2_000, "paused"], [7_000, "stable"]]},
            id="it is paused until nothing holds it",
        ),
        pytest.param(
            [
                (8_000, ev.ConsumerFailed(client="m", error="FENCED_INSTANCE_ID")),
                (8_001, lost("m", {"t": [0, 1]})),
            ],
            {
                "states": [[0, "outside"], [1_000, "stable"], [8_000, "crashed"]],
                "owned": [[1_000, 2], [8_000, 0]],
            },
            id="one that failed owns nothing, also after it reports partitions as lost",
        ),
        pytest.param(
            [
                (2_000, ev.MemberStopped(client="m", how="closed")),
                (3_000, started("m", "t")),
                (4_000, joined("m", 2)),
                (4_000, assigned("m", 2, {"t": [0]})),
            ],
            {
                "states": [
                    *([0, "outside"], [1_000, "stable"], [2_000, "stopped"]),
                    *([3_000, "outside"], [4_000, "stable"]),
                ],
                "generations": [[1_000, 1], [3_000, 0], [4_000, 2]],
            },
            id="one that starts again is in no generation until it joins",
        ),
        pytest.param(
            [(2_000, revoked("m", {"t": [1]})), (3_000, lost("m", {"t": [0]}))],
            {"calls": [[1_000, "assigned", 2], [2_000, "revoked", 1], [3_000, "lost", 1]]},
            id="what it loses is not what it revokes",
        ),
    ],
)
def test_a_member_has_its_states_generations_and_callbacks(timed, expected):
    (member,) = model_of(OWNS, timed)["members"]
    assert {name: member[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("clients", "timed", "idle"),
    [
        pytest.param(
            "m",
            [
                *round_at(1_000, 1, {"m": {"t": [0, 1, 2]}}),
                (1_000, ev.WorkStopped(client="m", partitions={"t": [0, 1]}, why="restore")),
                (3_000, ev.WorkStarted(client="m", partitions={"t": [1]})),
                (4_000, ev.MemberPaused(client="m")),
                (5_000, ev.MemberResumed(client="m")),
                (6_000, ev.MemberStopped(client="m", how="closed")),
            ],
            [[0, 3], [1_000, 2], [3_000, 1], [4_000, 3], [5_000, 1], [6_000, 0]],
            id="partitions that are restored or whose owner is paused are not worked on",
        ),
        pytest.param(
            "m",
            [(5_000, ev.MemberStopped(client="m", how="closed"))],
            [[0, 3], [5_000, 0]],
            id="those of topics that nobody wants any more do not count",
        ),
        pytest.param(
            "ab",
            [
                *round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {}}),
                (2_000, revoked("a", {"t": [0]})),
                (2_000, assigned("b", 1, {"t": [0]}, {"t": [0]})),
                (3_000, assigned("a", 1, {"t": [0, 1, 2]}, {"t": [0]})),
            ],
            [[0, 3], [1_000, 0]],
            id="one that is handed over or has two owners counts once",
        ),
    ],
)
def test_what_nobody_works_on_is_counted(clients, timed, idle):
    assert model_of(timed, clients=clients)["idle"] == idle


def test_lags_are_unknown_from_a_change_of_owners_to_the_next_measure():
    def measured(**by_client):
        lag = 100 + sum(by_client.values())
        return ev.LagMeasured(lag=lag, max_lag=lag, lag_record_seconds=0, duplicates=0, by_client=by_client)

    document = model_of(
        round_at(1_000, 1, {"a": {"t": [0]}, "b": {}}),
        (2_000, measured(a=5.0)),
        (3_000, revoked("a", {"t": [0]})),
        round_at(3_000, 2, {"a": {}, "b": {"t": [0]}}),
        (3_000, measured()),
        (4_000, measured(b=7.0)),
        clients="ab",
    )
    assert list(map(lag_of, document["members"])) == [
        [[2_000, 5.0], [3_000, None], [3_000, 0.0]],
        [[2_000, 0.0], [3_000, None], [4_000, 7.0]],
    ]
    assert document["unowned_lag"] == [[2_000, 100.0], [3_000, None], [4_000, 100.0]]


# --- rounds


def test_flows_are_the_changes_of_owner_in_the_round_they_come_from():
    """Also if a member takes over after the next round has begun."""
    flows = [each["flows"] for each in view_model(ran()).document["rounds"]]
    assert flows == [[], [], [[0, 2, 1], [1, 2, 1]], [[1, 0, 1], [1, 2, 1]]]
    late = view_model(trace_of(LATE_TAKE_OVER, topics={"t": 2})).document["rounds"]
    assert [each["flows"] for each in late] == [[], [[0, 1, 1]], []]


def test_rounds_have_a_leader_a_protocol_causes_and_the_report_of_a_delay():
    first, second, *_ = view_model(ran()).document["rounds"]
    assert (first["leader"], first["protocol"], second["causes"]) == (0, "cooperative-sticky", ["c3 joined"])
    rounds = view_model(ran(BACK, "cooperative-sticky+delay=60s")).document["rounds"]
    assert rounds[0]["report"] == ""
    assert rounds[1]["report"].startswith("delay 60 s, 60 s left for t 1")


def test_a_view_opens_at_the_first_round_within_the_time_that_is_measured():
    listed = [SimpleNamespace(began_ms=began_ms) for began_ms in (5, 9)]
    assert [_first_in(from_ms, listed) for from_ms in (0, 5, 6, 10)] == [None, 5, 9, None]


# --- protocols


@pytest.mark.parametrize("name", ["classic", "server-side", "reconcile", "watcher", "peers"])
def test_every_state_of_a_protocol_has_a_kind_a_place_of_its_own_and_its_moves(name):
    family = default_registry().protocol(name)
    machine = machine_of(family)
    kinds = machine["kinds"]
    assert set(kinds) == set(family.states) == {state for state, *_ in machine["states"]}
    assert len({tuple(place) for _, *place in machine["states"]}) == len(family.states)
    assert {state for state, kind in kinds.items() if kind == "resting"} == family.at_rest
    assert {state for state, kind in kinds.items() if kind == "begun"} == family.round_begins
    assert (kinds["Empty"], kinds.get("Dead", "ended")) == ("vacant", "ended")
    assert machine["coordinated"] == (name in ("classic", "server-side", "reconcile"))
    moves = {(a, b) for a, after in family.states.items() for b in after if a != b}
    assert {tuple(move) for move in machine["moves"]} == moves


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
    for member in document["members"]:
        told = [[at_ms, document["sentences"][n]] for at_ms, n in member["told"]]
        own = events_of(trace, Notified, ClaimFailed, client=member["name"])
        assert told == [[at_ms, sentences[type(event)](event)] for at_ms, event in own]
    assert len(document["members"][2]["told"]) > 5
    assert len(set(document["sentences"])) == len(document["sentences"])
    assert view_model(ran()).document["sentences"] == []


def test_topics_have_the_times_at_which_partitions_were_added_and_that_of_their_end():
    assert view_model(ran(TWO_TOPICS, "rocketmq")).document["added"] == {"u": [[30_000, 0]]}
    document = model_of(
        (1_000, ev.TopicDeleted(topic="gone")),
        (2_000, ev.TopicDeleted(topic="u")),
        (3_000, ev.PartitionsAdded(topic="u", partitions=1)),
        (4_000, ev.PartitionsAdded(topic="t", partitions=5)),
        (5_000, ev.PartitionsAdded(topic="t", partitions=7)),
        topics={"t": 3, "gone": 1, "u": 2},
    )
    assert document["added"]["t"] == [[4_000, 3], [5_000, 5]]
    assert document["deleted"] == {"gone": 1_000}


# --- edges


@pytest.mark.parametrize(
    ("scenario", "stable", "circle", "end"),
    [
        (NOBODY, [], [], "Empty"),
        (ALONE, [9_626], [[0.5, 0.5]], "Stable"),
        (TOO_SHORT, [None], [[1.0, 0.5], [0.0, 0.5]], "PreparingRebalance"),
        (CUT_OFF, None, None, "Stable"),
    ],
    ids=["nobody", "alone", "too short", "cut off"],
)
def test_small_and_odd_runs_have_documents_of_plain_json(scenario, stable, circle, end):
    document = view_model(ran(scenario)).document
    assert json.loads(json.dumps(document)) == document
    assert document["end"]["state"] == end
    if stable is not None:
        assert [each["stable"] for each in document["rounds"]] == stable
        assert document["circle"] == circle
