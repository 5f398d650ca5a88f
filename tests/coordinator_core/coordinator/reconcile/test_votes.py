"""The assignor that most members name, and ties as Kafka's maps break them. They were tried on Kafka 4.4."""

import pytest

from coordinator_core.coordinator.reconcile.votes import preferred, preferred_after

U, R = "uniform", "range"


@pytest.mark.parametrize(
    ("votes", "most"), [({}, None), ({R: 1}, R), ({R: 2, U: 1}, R), ({R: 1, U: 1}, U), ({U: 1, R: 1}, U)]
)
def test_most_votes_win_and_of_two_with_as_many_uniform(votes, most):
    assert preferred(votes) == most


@pytest.mark.parametrize(
    ("votes", "before", "after", "most"),
    [
        ({}, None, None, None),
        ({}, None, R, R),
        ({U: 1}, None, R, R),
        ({R: 1}, None, U, U),
        ({U: 1, R: 1}, None, None, U),
        ({U: 1, R: 2}, R, U, U),
        ({R: 1}, R, None, None),
    ],
)
def test_a_vote_counts_as_it_is_after_the_heartbeat(votes, before, after, most):
    assert preferred_after(votes, before, after) == most


def test_a_member_whose_vote_is_the_only_one_of_its_assignor_wins_a_tie_with_every_heartbeat():
    votes = {U: 1, R: 1}
    assert preferred_after(votes, R, R) == R
    assert preferred_after(votes, U, U) == U
    assert preferred_after({U: 2, R: 2}, R, R) == U


def test_so_it_changes_the_group_with_every_heartbeat(make_reconcile_bench):
    bench = make_reconcile_bench(assignors=(U, R))
    bench.join("a", server_assignor=U)
    bench.join("b", server_assignor=R)
    for _ in range(3):
        for member, bumps in (("a", 0), ("b", 1)):
            epoch, current = bench.group().generation, bench.current(member)
            bench.tell(member, current.epoch, current.assigned)
            assert bench.group().generation - epoch == bumps
            assert (bench.described().assignor, bench.computed[-1][0]) == (U, R)
