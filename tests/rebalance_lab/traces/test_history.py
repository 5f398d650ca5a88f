"""What a history reads out of a trace, on traces of a few events with known answers."""

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.history import Lag, Mark
from rebalance_lab.traces.ledger import Span
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
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


# --- moves


def test_a_partition_that_goes_to_another_consumer_has_moved():
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (1_000, assigned("a", 1, {"t": [0, 1]})),
        (2_000, revoked("a", {"t": [1]})),
        (3_000, assigned("b", 2, {"t": [1]})),
        topics={"t": 2},
    )
    assert history.moved == 1


def test_the_first_owner_is_no_move():
    history = history_of((0, started("a", "t")), (1_000, assigned("a", 1, {"t": [0, 1]})), topics={"t": 2})
    assert history.moved == 0


def test_what_comes_back_to_the_owner_it_had_has_not_moved():
    """Revoked by everyone before a round, or lost and given back, or owned before a restart."""
    history = history_of(
        (0, started("a", "t")),
        (1_000, assigned("a", 1, {"t": [0]})),
        (2_000, revoked("a", {"t": [0]})),
        (2_000, assigned("a", 2, {"t": [0]})),
        (3_000, lost("a", {"t": [0]})),
        (3_000, assigned("a", 3, {"t": [0]})),
        (4_000, stopped("a", "crashed")),
        (5_000, started("a", "t")),
        (6_000, assigned("a", 4, {"t": [0]})),
        topics={"t": 1},
    )
    assert history.moved == 0


def test_what_is_kept_in_a_round_has_not_moved():
    history = history_of(
        (0, started("a", "t")),
        (1_000, assigned("a", 1, {"t": [0]})),
        (2_000, assigned("a", 2, {"t": [0, 1]}, added={"t": [1]})),
        topics={"t": 2},
    )
    assert history.moved == 0


def test_a_partition_that_goes_away_and_comes_back_has_moved_twice():
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (1_000, assigned("a", 1, {"t": [0]})),
        (2_000, stopped("a", "crashed")),
        (3_000, assigned("b", 2, {"t": [0]})),
        (4_000, revoked("b", {"t": [0]})),
        (4_000, started("a", "t")),
        (5_000, assigned("a", 3, {"t": [0]})),
        topics={"t": 1},
    )
    assert history.moved == 2


# --- stopped time


def stopped_ms(*timed, topics, duration_ms=100_000):
    return history_of(*timed, topics=topics, duration_ms=duration_ms).stops.stopped_ms


def test_partitions_of_a_subscribed_topic_stand_still_until_they_are_assigned():
    """Two partitions wait 10 s, a third 15 s: 35 s."""
    timed = [
        (0, started("a", "t")),
        (10_000, assigned("a", 1, {"t": [0, 1]})),
        (15_000, assigned("a", 2, {"t": [0, 1, 2]}, added={"t": [2]})),
    ]
    assert stopped_ms(timed, topics={"t": 3}) == 35_000


def test_a_topic_that_nobody_subscribes_to_does_not_stand_still():
    timed = [(0, started("a", "t", "undescribed")), (0, assigned("a", 1, {"t": [0]}))]
    assert stopped_ms(timed, topics={"t": 1, "other": 9}) == 0


def test_a_topic_stands_still_from_the_time_that_it_is_subscribed_to():
    """The topic u is wanted from 60 s to the end at 100 s, and nobody has its two partitions: 80 s."""
    timed = [
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0]})),
        (60_000, ev.SubscriptionChanged(client="a", topics=["t", "u"])),
    ]
    assert stopped_ms(timed, topics={"t": 1, "u": 2}) == 80_000


def test_partitions_that_were_added_stand_still_until_they_are_assigned():
    timed = [
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0]})),
        (20_000, ev.PartitionsAdded(topic="t", partitions=3)),
        (25_000, assigned("a", 2, {"t": [0, 1, 2]}, added={"t": [1, 2]})),
    ]
    history = history_of(timed, topics={"t": 1})
    assert history.stops.stopped_ms == 10_000
    assert history.topics == {"t": 3}


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (ev.MemberPaused(client="a"), ev.MemberResumed(client="a")),
        (ev.MemberCutOff(client="a"), ev.MemberReconnected(client="a")),
    ],
)
def test_what_a_paused_or_cut_off_consumer_owns_stands_still(begin, end):
    timed = [
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0, 1]})),
        (20_000, begin),
        (25_000, end),
    ]
    assert stopped_ms(timed, topics={"t": 2}) == 10_000


def test_a_pause_and_a_cut_that_overlap_stand_still_for_their_union():
    """Paused from 20 s to 30 s, cut from 25 s to 40 s: 20 s."""
    timed = [
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0]})),
        (20_000, ev.MemberPaused(client="a")),
        (25_000, ev.MemberCutOff(client="a")),
        (30_000, ev.MemberResumed(client="a")),
        (40_000, ev.MemberReconnected(client="a")),
    ]
    assert stopped_ms(timed, topics={"t": 1}) == 20_000


def test_what_is_assigned_to_a_paused_consumer_stands_still():
    timed = [
        (0, started("a", "t")),
        (0, ev.MemberPaused(client="a")),
        (0, assigned("a", 1, {"t": [0]})),
        (30_000, ev.MemberResumed(client="a")),
    ]
    assert stopped_ms(timed, topics={"t": 1}) == 30_000


@pytest.mark.parametrize(
    "gone", [stopped("a", "crashed"), stopped("a"), ev.ConsumerFailed(client="a", error="FENCED_INSTANCE_ID")]
)
def test_what_a_consumer_that_is_gone_owned_stands_still_until_it_has_another_owner(gone):
    timed = [
        (0, started("a", "t")),
        (0, started("b", "t")),
        (0, assigned("a", 1, {"t": [0]})),
        (0, assigned("b", 1, {"t": [1]})),
        (50_000, gone),
        (90_000, assigned("b", 2, {"t": [0, 1]}, added={"t": [0]})),
    ]
    assert stopped_ms(timed, topics={"t": 2}) == 40_000


def test_nothing_stands_still_when_the_last_subscriber_is_closed_for_good():
    timed = [(0, started("a", "t")), (0, assigned("a", 1, {"t": [0]})), (50_000, stopped("a"))]
    assert stopped_ms(timed, topics={"t": 1}) == 0


def test_what_is_revoked_or_lost_stands_still():
    timed = [
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0, 1]})),
        (97_000, revoked("a", {"t": [0]})),
        (99_000, lost("a", {"t": [1]})),
    ]
    assert stopped_ms(timed, topics={"t": 2}) == 3_000 + 1_000


def test_a_partition_with_two_owners_of_which_one_works_does_not_stand_still():
    """One was cut off and does not know that another has its partition; then it learns of it."""
    timed = [
        (0, started("a", "t")),
        (0, started("b", "t")),
        (0, assigned("a", 1, {"t": [0]})),
        (10_000, ev.MemberCutOff(client="a")),
        (20_000, assigned("b", 2, {"t": [0]})),
        (30_000, ev.MemberReconnected(client="a")),
        (31_000, lost("a", {"t": [0]})),
    ]
    assert stopped_ms(timed, topics={"t": 1}) == 10_000


def test_a_partition_that_its_owner_does_not_work_on_is_stopped():
    """For example while its state is restored. The next owner of such a partition works on it."""
    history = history_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (1_000, assigned("a", 1, {"t": [0, 1]})),
        (1_000, ev.WorkStopped(client="a", partitions={"t": [0, 1]}, why="restore")),
        (3_000, ev.WorkStarted(client="a", partitions={"t": [0]})),
        (4_000, revoked("a", {"t": [1]})),
        (4_000, assigned("b", 2, {"t": [1]})),
        (6_000, ev.WorkStarted(client="a", partitions={"t": [1]})),
        topics={"t": 2},
    )
    assert history.stops.stopped_ms == 2 * 1_000 + 2 * 2_000 + 1_000


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
