"""Metrics of moves and balance, on traces written by hand with the figures worked out beside them."""

from math import isnan
from types import SimpleNamespace

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.simulation.process.batches import Batches
from rebalance_lab.verdicts import balance, lag
from tests.rebalance_lab.traces.traces import (
    history_of,
    measured,
    rates,
    revoked,
    round_at,
    started,
    state,
    stopped,
    two_members,
)


def rebalanced(before, after):
    """Everyone gives up all of it, and a round later owns what they own then."""
    given_up = [(4_000, revoked(client, {"t": numbers})) for client, numbers in before.items()]
    return two_members(
        round_at(1_000, 1, {client: {"t": before.get(client, [])} for client in ("a", "b")}),
        (4_000, state("PreparingRebalance")),
        given_up,
        round_at(5_000, 2, {client: {"t": numbers} for client, numbers in after.items()}),
    )


@pytest.mark.parametrize(
    ("before", "after", "moved", "avoidable"),
    [
        # Two must move for a balance of 2 and 2, and two did.
        ({"a": [0, 1, 2, 3]}, {"a": [0, 1], "b": [2, 3]}, 2, 0),
        # In balance before and after: the swap of all four was for nothing.
        ({"a": [0, 1], "b": [2, 3]}, {"a": [2, 3], "b": [0, 1]}, 4, 4),
        # Nothing moved.
        ({"a": [0, 1], "b": [2, 3]}, {"a": [0, 1], "b": [2, 3]}, 0, 0),
        # 1 and 3 is not the best balance, but the one that was reached; one move would do for it.
        ({"a": [0, 1, 2, 3]}, {"a": [0], "b": [1, 2, 3]}, 3, 2),
        # The owner is gone, so both must move whatever happens.
        ({"a": [0, 1], "b": [2, 3]}, {"b": [0, 1, 2, 3]}, 2, 0),
    ],
)
def test_avoidable_moves_are_those_beyond_the_fewest_for_the_balance_reached(before, after, moved, avoidable):
    history = rebalanced(before, after)
    assert balance.moved_partitions(history) == moved
    assert balance.avoidable_moves(history) == avoidable


def test_imbalance_is_the_most_over_the_mean_of_partitions():
    """3 and 1 partitions: 3 over 2."""
    history = two_members(round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}))
    assert balance.imbalance(history) == pytest.approx(1.5)


def test_a_member_that_owns_nothing_counts_for_the_mean():
    history = two_members(round_at(1_000, 1, {"a": {"t": [0, 1, 2, 3]}, "b": {}}))
    assert balance.imbalance(history) == pytest.approx(2)


def test_weighted_imbalance_weighs_partitions_by_their_rates():
    """10 + 20 + 30 against 40 records/s: 60 over 50."""
    history = two_members(
        (0, rates("t", 10.0, 20.0, 30.0, 40.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}),
    )
    assert balance.weighted_imbalance(history) == pytest.approx(1.2)


@pytest.mark.parametrize(("limits", "most"), [((90, 50), 0.8), ((30, 50), 2.0), ((None, 50), 0.8)])
def test_the_utilization_is_that_of_the_member_nearest_to_its_limit(limits, most):
    history = history_of(
        *((0, started(name, "t", process_rate=limit)) for name, limit in zip("ab", limits, strict=True)),
        (0, rates("t", 10.0, 20.0, 30.0, 40.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}),
        topics={"t": 4},
    )
    assert balance.utilization(history) == pytest.approx(most)


def test_the_utilization_counts_the_time_of_polls_as_the_simulator_does():
    """A batch of one record takes 10 ms, and its poll 15 ms: 40 records/s."""
    batches = Batches(10.0, 1.0, (10, 20), 1)
    history = history_of(
        (0, started("a", "t", process_rate=100.0)),
        (0, batches.started("a", 300_000)),
        (0, rates("t", 10.0, 20.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1]}}),
        topics={"t": 2},
    )
    assert history.process_rates == {"a": 40.0}
    assert balance.utilization(history) == pytest.approx(0.75)


def test_members_without_a_limit_have_no_utilization():
    history = two_members(
        (0, rates("t", 10.0, 20.0, 30.0, 40.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}),
    )
    assert isnan(balance.utilization(history))


def test_the_lag_at_the_end_is_the_last_one():
    history = two_members((10_000, measured(5.0, max_lag=70.0)), (20_000, measured(30.0, max_lag=30.0)))
    assert lag.lag_at_end(history) == 30
    assert isnan(lag.lag_at_end(two_members()))


def test_rates_count_while_the_assignment_is_in_force_each_for_its_time():
    """In force from 20 s to 100 s. Partition 0 has 8 records/s for 20 s of it and 0 for 60 s: 2 on average;
    partition 1 has 4, then 8: 7. The mean is 4.5, the most 7. What was before 20 s does not count."""
    history = two_members(
        (0, rates("t", 1_000.0, 0.0)),
        (10_000, rates("t", 8.0, 4.0)),
        round_at(20_000, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (40_000, rates("t", 0.0, 8.0)),
        topics={"t": 2},
    )
    assert balance.weighted_imbalance(history) == pytest.approx(7 / 4.5)


def test_partitions_that_were_added_have_no_rate_before():
    """Partition 1 has 6 records/s for the second half of the time: 3, against 5 of partition 0."""
    history = two_members(
        (0, rates("t", 5.0)),
        round_at(0, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (50_000, rates("t", 5.0, 6.0)),
        topics={"t": 2},
    )
    assert balance.weighted_imbalance(history) == pytest.approx(5 / 4)


def test_the_optimality_gap_is_the_sum_of_squares_over_the_least_less_one():
    """9 + 1 over 4 + 4, less one."""
    history = two_members(round_at(1_000, 1, {"a": {"t": [0, 1, 2]}, "b": {"t": [3]}}))
    assert balance.optimality_gap(history) == pytest.approx(0.25)


def test_the_gap_is_none_where_subscriptions_do_not_allow_more():
    """Only a subscribes to u, so 3 and 1 is the best there is."""
    history = history_of(
        (0, started("a", "t", "u")),
        (0, started("b", "t")),
        round_at(1_000, 1, {"a": {"u": [0, 1, 2]}, "b": {"t": [0]}}),
        topics={"t": 1, "u": 3},
    )
    assert balance.optimality_gap(history) == 0
    assert balance.imbalance(history) == pytest.approx(1.5)


def weighed(owned, *per_partition):
    topics = {"t": len(per_partition)}
    return two_members((0, rates("t", *per_partition)), round_at(1_000, 1, owned), topics=topics)


@pytest.mark.parametrize(
    ("owned", "per_partition", "gap"),
    [
        # 9 records/s of a against an average of 6
        ({"a": {"t": [0, 1]}, "b": {"t": [2]}}, (6.0, 3.0, 3.0), 0.5),
        # no better way: the heaviest alone has as much
        ({"a": {"t": [0]}, "b": {"t": [1, 2]}}, (6.0, 3.0, 3.0), 0.0),
        # three alike on two members: somebody has two, so 8 against 8
        ({"a": {"t": [0, 1]}, "b": {"t": [2]}}, (4.0, 4.0, 4.0), 0.0),
        # 0.2 + 0.1 against 0.3 is rounding, and no gap
        ({"a": {"t": [0]}, "b": {"t": [1, 2]}}, (0.3, 0.2, 0.1), 0.0),
        # all on one of two members
        ({"a": {"t": [0, 1]}, "b": {}}, (5.0, 5.0), 1.0),
    ],
)
def test_the_weighted_gap_is_the_heaviest_member_over_the_bound_less_one(owned, per_partition, gap):
    found = balance.weighted_optimality_gap(weighed(owned, *per_partition))
    assert found == pytest.approx(gap)
    assert (found == 0) == (gap == 0)


def test_there_is_no_weighted_gap_where_subscriptions_do_not_allow_more():
    """Only a subscribes to u: 20 records/s are its in any case."""
    history = history_of(
        (0, started("a", "t", "u")),
        (0, started("b", "t")),
        (0, rates("t", 1.0)),
        (0, rates("u", 10.0, 10.0)),
        round_at(1_000, 1, {"a": {"u": [0, 1]}, "b": {"t": [0]}}),
        topics={"t": 1, "u": 2},
    )
    assert balance.weighted_optimality_gap(history) == 0


def test_the_weighted_gap_goes_by_the_rates_while_the_assignment_is_in_force():
    """Partition 0 has 0 and then 12 records/s, 6 on average, and partition 1 six throughout."""
    history = two_members(
        (0, rates("t", 0.0, 6.0)),
        round_at(0, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (50_000, rates("t", 12.0, 6.0)),
        topics={"t": 2},
    )
    assert balance.weighted_optimality_gap(history) == 0


def test_balance_is_that_of_the_assignment_at_the_end():
    history = rebalanced({"a": [0, 1, 2, 3]}, {"a": [0, 1], "b": [2, 3]})
    assert balance.imbalance(history) == 1
    assert balance.optimality_gap(history) == 0


BALANCE = [balance.imbalance, balance.weighted_imbalance, balance.optimality_gap]


BALANCE += [balance.weighted_optimality_gap]


@pytest.mark.parametrize("metric", BALANCE)
@pytest.mark.parametrize(
    "unsettled",
    [
        [(60_000, state("PreparingRebalance"))],
        [(60_000, stopped("a", "crashed"))],
        [(60_000, ev.ConsumerFailed(client="a", error="FENCED_INSTANCE_ID"))],
    ],
)
def test_a_run_that_does_not_end_at_rest_has_no_balance(metric, unsettled):
    history = two_members(
        (0, rates("t", 1.0, 1.0, 1.0, 1.0)),
        round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
        unsettled,
    )
    assert isnan(metric(history))


@pytest.mark.parametrize("timed", [[], [(0, rates("t", 0.0, 0.0, 0.0, 0.0))]])
def test_without_records_there_is_no_weighted_imbalance(timed):
    """Nobody said anything of rates, or they are zero."""
    history = two_members(timed, round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}))
    assert isnan(balance.weighted_imbalance(history))
    assert isnan(balance.weighted_optimality_gap(history))


def test_a_partition_whose_replicas_have_no_racks_is_in_no_other_rack():
    owned = {("t", number): "a" for number in range(4)}
    rests = SimpleNamespace(
        last=SimpleNamespace(members=SimpleNamespace(clients=[0]), owner=None),
        replicas={"t": [("x", "y"), (), ("y",)]},
        racks={"a": "x"},
        clients=["a"],
        names=lambda _: owned,
    )
    assert balance.cross_rack_partitions(SimpleNamespace(rests=rests)) == 1
