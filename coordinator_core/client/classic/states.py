"""The states of a member of a classic group, with the table of legal moves."""

from enum import StrEnum


class MemberState(StrEnum):
    """The state of a member."""

    UNJOINED = "unjoined"
    """Outside the group, without heartbeats. Exits: PREPARING_REBALANCE when a JoinGroup is sent; STABLE
    when a membership is resumed."""

    PREPARING_REBALANCE = "preparing-rebalance"
    """A JoinGroup is in flight or about to be sent again. There are no heartbeats, because the coordinator
    expires no member with a pending JoinGroup. Exit: the response."""

    COMPLETING_REBALANCE = "completing-rebalance"
    """The member has joined and waits for its assignment. Heartbeats run; REBALANCE_IN_PROGRESS changes
    nothing."""

    STABLE = "stable"
    """The member has an assignment. Heartbeats run; REBALANCE_IN_PROGRESS makes the member join again."""


_M = MemberState

MEMBER_MOVES: dict[MemberState, frozenset[MemberState]] = {
    _M.UNJOINED: frozenset({_M.UNJOINED, _M.PREPARING_REBALANCE, _M.STABLE}),
    _M.PREPARING_REBALANCE: frozenset({_M.PREPARING_REBALANCE, _M.COMPLETING_REBALANCE, _M.UNJOINED}),
    _M.COMPLETING_REBALANCE: frozenset({_M.STABLE, _M.PREPARING_REBALANCE, _M.UNJOINED}),
    _M.STABLE: frozenset({_M.PREPARING_REBALANCE, _M.UNJOINED}),
}
