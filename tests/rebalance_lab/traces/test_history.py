"""What a history reads out of a trace, on traces of a few events with known answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.fuzzing.reference import reference_metrics
from rebalance_lab.traces.history import History, Lag, Mark
from rebalance_lab.traces.ledger import Span
from tests.examples import scaled
from tests.rebalance_lab.traces.traces import (
    assigned,
    changed,
    generation,
    history_of,
    joined,
    lost,
    measured,
    rates,
    revoked,
    round_at,
    started,
    state,
    stopped,
    trace_of,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


# --- owners and stops, against a fold that shares no code with this one


PARTITIONS = [("t", 0), ("t", 1), ("u", 0)]
SOME = st.sets(st.sampled_from(PARTITIONS))
TOPICS = st.sampled_from([["t"], ["u"], ["t", "u"], ["t", "u", "undescribed"]])


def listed(partitions):
    return {topic: sorted(n for name, n in partitions if name == topic) for topic, _ in sorted(partitions)}


@st.composite
def any_events(draw):
    """What may happen to two consumers that know nothing of each other, in any order; some at one time."""
    events = [(0, started(client, *draw(TOPICS))) for client in "ab"]
    owned, at_ms, count = {"a": set(), "b": set()}, 0, 2
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=5, max_size=30)):
        at_ms += draw(st.sampled_from([0, 1, 1_000, 7_000]))
        client = draw(st.sampled_from("ab"))
        held = owned.get(client)
        if kind == "start":
            owned[client] = set()
            event = started(client, *draw(TOPICS))
        elif kind == "grow":
            count += 1
            event = ev.PartitionsAdded(topic="t", partitions=count)
        elif kind == "stable":
            event = state("Stable")
        elif held is None:
            continue
        elif kind == "assign":
            owned[client] = draw(SOME)
            event = assigned(client, 1, listed(owned[client]), listed(owned[client] - held))
        elif kind in GIVING_UP:
            given_up = draw(SOME)
            owned[client] = held - given_up
            event = GIVING_UP[kind](client, listed(given_up))
        elif kind in ENDS:
            del owned[client]
            event = ENDS[kind](client)
        elif kind in WORK:
            event = WORK[kind](client, listed(held & draw(SOME)))
        else:
            event = ev.SubscriptionChanged(client=client, topics=draw(TOPICS))
        events.append((at_ms, event))
    return events


GIVING_UP = {"revoke": revoked, "lose": lost}
ENDS = {
    "close": stopped,
    "crash": lambda client: stopped(client, "crashed"),
    "fail": lambda client: ev.ConsumerFailed(client=client, error="FENCED_INSTANCE_ID"),
}
WORK = {
    "pause": lambda client, _: ev.MemberPaused(client=client),
    "long batch": lambda client, _: ev.MemberPaused(client=client, in_batch=True),
    "resume": lambda client, _: ev.MemberResumed(client=client),
    "cut": lambda client, _: ev.MemberCutOff(client=client),
    "heal": lambda client, _: ev.MemberReconnected(client=client),
    "stop work": lambda client, held: ev.WorkStopped(client=client, partitions=held, why="restore"),
    "start work": lambda client, held: ev.WorkStarted(client=client, partitions=held),
}
KINDS = [
    "start",
    "start",
    "assign",
    "assign",
    "assign",
    "grow",
    "stable",
    "subscribe",
    *GIVING_UP,
    *ENDS,
    *WORK,
]


@settings(max_examples=scaled(600))
@given(any_events())
def test_stops_and_moves_are_those_of_the_plain_fold(events):
    trace = trace_of(events, topics={"t": 2, "u": 1}, from_ms=0)
    history = History(trace)
    found = {
        "stopped_partition_seconds": history.stops.stopped_ms / 1_000,
        "longest_stop_seconds": history.stops.longest_ms / 1_000,
        "double_owned_partition_seconds": history.stops.double_owned_ms / 1_000,
        "moved_partitions": history.moved,
        "rounds": history.rounds,
        "messages": 0,
    }
    assert found == pytest.approx(reference_metrics(trace, history.family))


# --- where the group came to rest


def test_an_assignment_is_settled_when_the_group_is_stable_and_all_have_taken_theirs_over():
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (1_000, state("PreparingRebalance")),
        (2_000, generation(1, "a", "b")),
        (2_000, joined("a", 1)),
        (2_000, joined("b", 1)),
        (3_000, state("Stable")),
        (3_000, assigned("a", 1, {"t": [0]})),
        (4_000, assigned("b", 1, {"t": [1]})),
        (60_000, state("PreparingRebalance")),
        topics={"t": 2},
    )
    (settled,) = history.settled
    assert (settled.from_ms, settled.until_ms) == (4_000, 60_000)
    assert settled.owners == {T0: "a", T1: "b"}
    assert settled.members == {"a": ("t",), "b": ("t",)}
    assert history.last_settled is None


def test_the_assignment_at_the_end_of_the_run_is_the_last_settled():
    history = history_of(
        (0, started("a", "t")),
        round_at(1_000, 1, {"a": {"t": [0]}}),
        round_at(5_000, 2, {"a": {"t": [0]}}),
        topics={"t": 1},
    )
    assert [(s.from_ms, s.until_ms) for s in history.settled] == [(1_000, 5_000), (5_000, 100_000)]
    assert history.last_settled is history.settled[-1]


def test_a_group_does_not_rest_while_a_partition_that_had_an_owner_has_none():
    """The first round of a cooperative rebalance ends Stable, with what was revoked in nobody's hands."""
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        round_at(1_000, 1, {"a": {"t": [0, 1]}}),
        (5_000, state("PreparingRebalance")),
        (5_000, generation(2, "a", "b")),
        (5_000, joined("a", 2)),
        (5_000, joined("b", 2)),
        (6_000, state("Stable")),
        (6_000, revoked("a", {"t": [1]})),
        (6_000, assigned("a", 2, {"t": [0]}, added={})),
        (6_000, assigned("b", 2, {})),
        round_at(9_000, 3, {"a": {"t": [0]}, "b": {"t": [1]}}),
        topics={"t": 2},
    )
    assert [s.from_ms for s in history.settled] == [1_000, 9_000]


@pytest.mark.parametrize("gone", [stopped("a", "crashed"), lost("a", {"t": [0]}), revoked("a", {"t": [0]})])
def test_a_group_rests_no_longer_when_something_is_given_up(gone):
    history = history_of(
        (0, started("a", "t")), round_at(1_000, 1, {"a": {"t": [0]}}), (7_000, gone), topics={"t": 1}
    )
    assert [(s.from_ms, s.until_ms) for s in history.settled] == [(1_000, 7_000)]
    assert history.last_settled is None


def test_a_group_in_which_nobody_owns_anything_does_not_rest():
    history = history_of((0, started("a", "t")), round_at(1_000, 1, {"a": {}}), topics={"t": 1})
    assert history.settled == []


def fenced_zombie():
    """a is cut off, and a2 comes in its place under the same instance id, without a round."""
    return [
        (0, started("a", "t")),
        (0, started("b", "t")),
        *round_at(1_000, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (2_000, ev.MemberCutOff(client="a")),
        (3_000, started("a2", "t")),
        (4_000, ev.MemberReplaced(group="g", instance_id="i", old_member_id="a", new_member_id="a2")),
        (4_000, joined("a2", 1)),
        (5_000, assigned("a2", 1, {"t": [0]})),
    ]


@pytest.mark.parametrize(
    "gone",
    [
        lost("a", {"t": [0]}),
        stopped("a", "crashed"),
        ev.ConsumerFailed(client="a", error="FENCED_INSTANCE_ID"),
    ],
)
def test_a_group_rests_on_when_a_fenced_member_gives_up_what_another_owns(gone):
    history = history_of(fenced_zombie(), (60_000, gone), topics={"t": 2})
    assert history.last_settled is not None
    assert history.last_settled.from_ms == 5_000
    assert history.last_settled.owners == {T0: "a2", T1: "b"}
    assert set(history.last_settled.members) == {"a2", "b"}


def test_a_fenced_member_is_no_member_of_the_settled_group():
    history = history_of(
        fenced_zombie(),
        (9_000, state("PreparingRebalance")),
        (9_000, generation(2, "a2", "b")),
        (9_000, joined("a", 2)),
        (9_000, joined("a2", 2)),
        (9_000, joined("b", 2)),
        (9_000, state("Stable")),
        (9_000, assigned("a2", 2, {"t": [0]}, added={})),
        (9_000, assigned("b", 2, {"t": [1]}, added={})),
        topics={"t": 2},
    )
    assert history.last_settled.owners == {T0: "a2", T1: "b"}
    assert set(history.last_settled.members) == {"a2", "b"}


# --- the window


def test_the_window_begins_when_all_consumers_have_taken_their_parts_over():
    """The round at 1 s is without b, and its moves do not count."""
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        round_at(1_000, 1, {"a": {"t": [0, 1]}}),
        (5_000, revoked("a", {"t": [1]})),
        round_at(6_000, 2, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (50_000, revoked("b", {"t": [1]})),
        round_at(60_000, 3, {"a": {"t": [0, 1]}, "b": {}}),
        topics={"t": 2},
    )
    assert (history.start_up_ms, history.from_ms, history.rounds, history.moved) == (6_000, 6_000, 1, 1)
    assert history.owners_before == {T0: "a", T1: "b"}
    assert history.stops.stopped_ms == 10_000


def test_the_window_begins_when_the_last_consumer_that_was_not_in_the_group_has_ended():
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        round_at(1_000, 1, {"a": {"t": [0, 1]}}),
        (8_000, stopped("b", "crashed")),
        topics={"t": 2},
    )
    assert history.from_ms == history.start_up_ms == 8_000


def test_the_window_begins_at_the_given_time():
    """The start-up is what it is. Events at that time are in the window."""
    history = history_of(
        (0, started("a", "t")),
        round_at(1_000, 1, {"a": {"t": [0, 1]}}),
        round_at(30_000, 2, {"a": {"t": [0, 1]}}),
        topics={"t": 2},
        from_ms=30_000,
    )
    assert (history.start_up_ms, history.from_ms, history.rounds) == (1_000, 30_000, 1)


def test_the_window_of_a_group_that_never_rests_is_the_whole_run():
    history = history_of((0, started("a", "t")), (40_000, state("Stable")), topics={"t": 2})
    assert (history.start_up_ms, history.from_ms, history.rounds) == (None, 0, 1)
    assert history.stops.stopped_ms == 200_000


@pytest.mark.parametrize(
    ("lags", "kept"),
    [
        ([(0, 5), (500, 90), (2_000, 40), (3_000, 5), (4_000, 3)], [4_000]),
        ([(0, 5), (500, 90), (2_000, 40), (3_000, 50), (4_000, 3)], [3_000, 4_000]),
    ],
)
def test_the_backlog_of_the_start_does_not_count_until_it_is_handled_or_grows(lags, kept):
    """The group first rests at 1 s. The lag at time 0 is 5 records."""
    first, second, *later = [(at_ms, measured(lag)) for at_ms, lag in lags]
    rests = round_at(1_000, 1, {"a": {"t": [0]}})
    history = history_of((0, started("a", "t")), first, second, rests, later, topics={"t": 1})
    assert [lag.at_ms for lag in history.lags] == kept


# --- the rest of it


def test_times_of_stable_and_of_changes_are_kept_with_marks_for_the_picture():
    history = history_of(
        (0, started("a", "t")),
        round_at(1_000, 1, {"a": {"t": [0]}}, stable_ms=4_000),
        (30_000, changed("crash", "a")),
        round_at(40_000, 2, {"a": {"t": [0]}}),
        topics={"t": 1},
    )
    assert history.stable_ms == [4_000, 40_000]
    assert history.change_ms == [30_000]
    assert history.marks == [Mark(30_000, "crash a")]


def test_spans_say_who_had_a_partition_from_when_to_when():
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (1_000, assigned("a", 1, {"t": [0, 1]})),
        (8_000, revoked("a", {"t": [1]})),
        (9_000, assigned("b", 2, {"t": [1]})),
        (50_000, stopped("a")),
        topics={"t": 2},
    )
    assert history.spans == {
        T0: [Span("a", 1_000, 50_000)],
        T1: [Span("a", 1_000, 8_000), Span("b", 9_000, 100_000)],
    }


def test_rates_and_measures_of_the_load_are_kept_with_their_times():
    lag = measured(5.0)
    history = history_of((0, rates("t", 1.0)), (10_000, rates("t", 2.0)), (20_000, lag), topics={"t": 1})
    assert history.rates == {"t": [(0, (1.0,)), (10_000, (2.0,))]}
    assert history.lags == [Lag(20_000, lag)]


def test_a_consumer_that_starts_anew_has_given_up_what_it_had():
    history = history_of(
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0]})),
        (60_000, started("a", "t")),
        topics={"t": 1},
    )
    assert history.stops.stopped_ms == 40_000
    assert history.spans == {T0: [Span("a", 0, 60_000)]}


def test_what_a_consumer_that_failed_loses_afterwards_is_no_news():
    """It ends for good with an error, and then closes: it reports as lost what was counted as given up."""
    history = history_of(
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0]})),
        (60_000, ev.ConsumerFailed(client="a", error="FENCED_INSTANCE_ID")),
        (60_001, lost("a", {"t": [0]})),
        (60_002, stopped("a")),
        topics={"t": 1},
    )
    assert history.spans == {T0: [Span("a", 0, 60_000)]}
