"""The tables of legal moves, pair by pair."""

import itertools

import pytest

from coordinator_core.client.classic.states import MEMBER_MOVES, MemberState
from coordinator_core.client.states import FETCH_MOVES, FetchState, check_move
from coordinator_core.client.subscription import PartitionState

MEMBER = """
    unjoined              -> unjoined preparing-rebalance stable
    preparing-rebalance   -> preparing-rebalance completing-rebalance unjoined
    completing-rebalance  -> stable preparing-rebalance unjoined
    stable                -> preparing-rebalance unjoined
"""
FETCH = """
    initializing          -> fetching await-reset await-validation
    fetching              -> fetching await-reset await-validation
    await-reset           -> fetching await-reset await-validation
    await-validation      -> fetching await-reset await-validation
"""


def legal(text):
    """The pairs of a table as drawn above."""
    rows = [line.split(" -> ") for line in text.strip().splitlines()]
    return {(before.strip(), after) for before, afters in rows for after in afters.split()}


def moves(moves_of):
    return legal(MEMBER) if moves_of is MEMBER_MOVES else legal(FETCH)


PAIRS = [
    (table, before, after)
    for table, states in ((MEMBER_MOVES, MemberState), (FETCH_MOVES, FetchState))
    for before, after in itertools.product(states, repeat=2)
]


@pytest.mark.parametrize(("table", "before", "after"), PAIRS)
def test_a_move_is_legal_exactly_if_the_table_has_it(table, before, after):
    """Given any two states, then moving from one to the other works or is a bug of ours.
    PROTOCOL 9.2, 9.4."""
    if (before.value, after.value) in moves(table):
        check_move(table, before, after)
    else:
        with pytest.raises(AssertionError, match=f"from {before.value} to {after.value}"):
            check_move(table, before, after)


@pytest.mark.parametrize("state", FetchState)
def test_a_partition_has_a_position_when_fetching_or_validating(state):
    """PROTOCOL 9.2, C-51."""
    partition = PartitionState(fetch_state=state)
    assert partition.has_position is (state in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION))
    assert partition.is_fetchable is (state is FetchState.FETCHING)
    assert not PartitionState(fetch_state=state, paused=True).is_fetchable
    assert not PartitionState(fetch_state=state, pending_revocation=True).is_fetchable
