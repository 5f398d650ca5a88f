"""The states of a member of a classic group, with the table of legal moves."""

from enum import Enum


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


_M = MemberState

MEMBER_MOVES: dict[MemberState, frozenset[MemberState]] = {
    _M.UNJOINED: frozenset({_M.UNJOINED, _M.PREPARING_REBALANCE, _M.STABLE}),
    _M.PREPARING_REBALANCE: frozenset({_M.PREPARING_REBALANCE, _M.COMPLETING_REBALANCE, _M.UNJOINED}),
    _M.COMPLETING_REBALANCE: frozenset({_M.STABLE, _M.PREPARING_REBALANCE, _M.UNJOINED}),
    _M.STABLE: frozenset({_M.PREPARING_REBALANCE, _M.UNJOINED}),
}
