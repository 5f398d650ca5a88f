"""Metrics of times, on traces written by hand with the figures worked out beside them."""

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.verdicts import metrics, stops
from tests.rebalance_lab.traces.traces import (
    assigned,
    changed,
    generation,
    joined,
    lost,
    rates,
    removed,
    revoked,
    round_at,
    state,
    stopped,
    two_members,
)

SHARED = round_at(2_500, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})


def figure(name, history):
    (metric,) = (metric for metric in metrics.metrics() if metric.name == name)
    return metric.compute(history)


def test_stopped_time_is_in_seconds():
    history = two_members(SHARED, from_ms=0)
    assert stops.stopped_partition_seconds(history) == pytest.approx(4 * 2.5)
    assert stops.longest_stop_seconds(history) == pytest.approx(2.5)


def test_the_start_counts_in_no_figure():
    history = two_members(SHARED)
    assert stops.stopped_partition_seconds(history) == 0
    assert metrics.rounds(history) == 0


def test_a_group_that_never_rests_is_measured_from_the_beginning():
    history = two_members((1_000, state("PreparingRebalance")))
    assert stops.stopped_partition_seconds(history) == pytest.approx(4 * 100)


def test_the_parts_of_the_stopped_time_have_a_metric_each():
    """From 10 s to 50 s the dead member has two partitions; then the round lasts 2 s, of which it waits 1 s
    for b; b takes over 3 s later, runs its callback for 4 s, and restores one partition for 10 s."""
    history = two_members(
        SHARED,
        (10_000, stopped("a", "crashed")),
        (50_000, removed("a")),
        (50_000, state("PreparingRebalance", generation=1)),
        (51_000, generation(2, "b")),
        (51_000, joined("b", 2)),
        (51_000, state("CompletingRebalance", generation=2)),
        (52_000, state("Stable", generation=2)),
        (55_000, assigned("b", 2, {"t": [0, 1, 2, 3]}, added={"t": [0, 1]})),
        (55_000, ev.WorkStopped(client="b", partitions={"t": [0, 1]}, why="callback")),
        (59_000, ev.WorkStarted(client="b", partitions={"t": [0, 1]})),
        (59_000, ev.WorkStopped(client="b", partitions={"t": [0]}, why="restore")),
        (69_000, ev.WorkStarted(client="b", partitions={"t": [0]})),
    )
    parts = {"detection": 80, "waiting": 2, "messages": 2, "application": 24, "away": 0}
    of_application = {"take_over": 6, "callbacks": 8, "restore": 10}
    for part, seconds in {**parts, **of_application, "unassigned": 0}.items():
        assert figure(f"stopped_{part}_partition_seconds", history) == pytest.approx(seconds)
    assert stops.stopped_partition_seconds(history) == pytest.approx(sum(parts.values()))
    assert stops.longest_stop_seconds(history) == pytest.approx(59)
    assert stops.unowned_partition_seconds(history) == pytest.approx(2 + 2 + 6)


def test_two_consumers_that_work_on_a_partition_own_it_twice():
    """a is fenced at 10 s, and learns of it at 14 s; b has had one of its partitions for 3 s then."""
    history = two_members(
        SHARED,
        (10_000, removed("a")),
        (11_000, assigned("b", 2, {"t": [0, 2, 3]}, added={"t": [0]})),
        (14_000, lost("a", {"t": [0, 1]})),
    )
    assert stops.double_owned_partition_seconds(history) == pytest.approx(3)


@pytest.mark.parametrize(
    ("timed", "lost_share"),
    [
        # 30 of 100 records/s for 10 of 100 seconds
        ([(0, rates("t", 10.0, 20.0, 30.0, 40.0))], 0.03),
        # the rates of the time in which the partitions stand still: 30 for 5 s, 60 for 5 s, of 15,200 records
        (
            [(0, rates("t", 10.0, 20.0, 30.0, 40.0)), (45_000, rates("t", 20.0, 40.0, 60.0, 76.0))],
            450 / 15_280,
        ),
        # without records, two of four partitions for 10 of 100 seconds
        ([], 0.05),
        ([(0, rates("t", 0.0, 0.0, 0.0, 0.0))], 0.05),
    ],
)
def test_the_capacity_lost_is_the_share_of_records_of_stopped_partitions(timed, lost_share):
    history = two_members(
        [pair for pair in timed if not pair[0]],
        round_at(0, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
        (40_000, revoked("a", {"t": [0, 1]})),
        [pair for pair in timed if pair[0]],
        (50_000, assigned("a", 1, {"t": [0, 1]})),
    )
    assert stops.capacity_lost(history) == pytest.approx(lost_share)


def states(*pairs):
    return [(at_ms, state(after)) for at_ms, after in pairs]


BEGUN = states((0, "PreparingRebalance"), (1_000, "Stable"))


@pytest.mark.parametrize(
    ("timed", "times"),
    [
        # One change, one round, from 10 s to 13 s.
        ([(10_000, changed()), *states((10_100, "PreparingRebalance"), (13_000, "Stable"))], [3_000]),
        # Two rounds follow (a cooperative rebalance): up to the last Stable.
        (
            [
                (10_000, changed()),
                *states((10_100, "PreparingRebalance"), (13_000, "Stable")),
                *states((13_100, "PreparingRebalance"), (17_000, "Stable")),
            ],
            [7_000],
        ),
        # No round follows (a static member is back in time): nothing to wait for.
        ([(10_000, changed("restart"))], [0]),
        # A change that comes during a round takes over the wait: 15 - 10 and 15 - 12.
        (
            [
                (10_000, changed()),
                *states((10_100, "PreparingRebalance")),
                (12_000, changed("leave")),
                *states((15_000, "Stable")),
            ],
            [5_000, 3_000],
        ),
        # Two changes with a round each.
        (
            [
                (10_000, changed()),
                *states((10_100, "PreparingRebalance"), (13_000, "Stable")),
                (20_000, changed()),
                *states((20_100, "PreparingRebalance"), (21_000, "Stable")),
            ],
            [3_000, 1_000],
        ),
        # Two changes at the same time wait for the same round.
        (
            [
                (10_000, changed("join")),
                (10_000, changed("leave")),
                *states((10_100, "PreparingRebalance"), (13_000, "Stable")),
            ],
            [3_000, 3_000],
        ),
        # The group becomes Stable in the very moment of the change: nothing to wait for.
        (
            [*states((8_000, "PreparingRebalance"), (10_000, "Stable")), (10_000, changed())],
            [0],
        ),
        # The group becomes Stable in the very moment of the next change: both wait for the next rest.
        (
            [
                (10_000, changed()),
                *states((10_100, "PreparingRebalance"), (20_000, "Stable")),
                (20_000, changed()),
                *states((20_100, "PreparingRebalance"), (25_000, "Stable")),
            ],
            [15_000, 5_000],
        ),
        # Never Stable again: up to the end of the run at 100 s.
        ([(10_000, changed()), *states((10_100, "PreparingRebalance"))], [90_000]),
    ],
)
def test_time_to_stable_is_from_a_change_to_the_last_stable_before_the_next(timed, times):
    history = two_members(BEGUN, timed)
    assert stops.time_to_stable_seconds(history) == pytest.approx(sum(times) / len(times) / 1_000)
    assert stops.time_to_stable_seconds_max(history) == pytest.approx(max(times) / 1_000)


def test_changes_before_the_window_take_no_time():
    timed = [(at_ms, changed()) for at_ms in (10_000, 20_000)]
    timed += states((10_100, "PreparingRebalance"), (13_000, "Stable"))
    timed += states((20_100, "PreparingRebalance"), (21_000, "Stable"))
    history = two_members(BEGUN, sorted(timed, key=lambda each: each[0]), from_ms=15_000)
    assert stops.time_to_stable_seconds(history) == 1.0
