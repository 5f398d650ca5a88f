"""The states of a consumer's membership and of its partitions, with the tables of legal moves."""

from enum import Enum
from typing import TypeVar


class MemberState(Enum):
    """Where a consumer stands in its group."""

    UNJOINED = "unjoined"
    """No part in any round; no heartbeats. Left when a JoinGroup is sent, or straight to STABLE when a
    membership is resumed that another process, or an earlier time, had joined for."""

    PREPARING_REBALANCE = "preparing-rebalance"
    """A JoinGroup is under way or about to be sent again; no heartbeats, the coordinator does not expire
    who waits. Left when it is answered."""

    COMPLETING_REBALANCE = "completing-rebalance"
    """Joined: waits for its assignment. Heartbeats run, and REBALANCE_IN_PROGRESS is no news to it."""

    STABLE = "stable"
    """Has an assignment. Heartbeats run, and REBALANCE_IN_PROGRESS makes it join again."""


class FetchState(Enum):
    """Whether a partition has a position to fetch from, and how it will get one."""

    INITIALIZING = "initializing"
    """No position yet: the committed offset is asked for."""

    FETCHING = "fetching"
    """Has a position."""

    AWAIT_RESET = "await-reset"
    """Will start at the beginning or the end: the offset is asked for."""

    AWAIT_VALIDATION = "await-validation"
    """Has a position of a leader epoch that must be held against the log."""


_M, _F = MemberState, FetchState

MEMBER_MOVES: dict[MemberState, frozenset[MemberState]] = {
    _M.UNJOINED: frozenset({_M.UNJOINED, _M.PREPARING_REBALANCE, _M.STABLE}),
    _M.PREPARING_REBALANCE: frozenset({_M.PREPARING_REBALANCE, _M.COMPLETING_REBALANCE, _M.UNJOINED}),
    _M.COMPLETING_REBALANCE: frozenset({_M.STABLE, _M.PREPARING_REBALANCE, _M.UNJOINED}),
    _M.STABLE: frozenset({_M.PREPARING_REBALANCE, _M.UNJOINED}),
}

FETCH_MOVES: dict[FetchState, frozenset[FetchState]] = {
    _F.INITIALIZING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.FETCHING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_RESET: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_VALIDATION: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
}

_State = TypeVar("_State", MemberState, FetchState)


def check_move(moves: dict[_State, frozenset[_State]], before: _State, after: _State) -> None:
    """Raises AssertionError for a move that is not in the table: a bug of ours."""
    if after not in moves[before]:
        raise AssertionError(f"illegal move from {before.value} to {after.value}")
