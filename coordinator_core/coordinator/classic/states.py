"""The states of a group, and the one table of legal moves (PROTOCOL 2)."""

from enum import Enum


class GroupState(Enum):
    """Each state says what it answers, and how it is left."""

    EMPTY = "Empty"
    """No members; may have offsets. Joins start a round after the initial delay; sync, heartbeat and
    leave get UNKNOWN_MEMBER_ID; simple commits are taken. Left by a join, or for Dead when the offsets
    have expired or the group is deleted."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """Waits for members to (re)join. Joins park; sync and heartbeat get REBALANCE_IN_PROGRESS; commits of
    the current generation are taken. Left when all have joined or the rebalance timeout has passed."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waits for the leader's assignment. Syncs park; heartbeats are NONE; commits get
    REBALANCE_IN_PROGRESS. Left when the assignment is stored, when members change, or when they do not
    sync in time."""

    STABLE = "Stable"
    """Everybody has an assignment. Syncs are answered with it; heartbeats and commits are NONE. Left when
    a member comes, goes or changes, or the leader rejoins."""

    DEAD = "Dead"
    """Forgotten. Everything gets COORDINATOR_NOT_AVAILABLE. Never left."""


LEGAL_MOVES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset({GroupState.DEAD}),
}


def check_move(before: GroupState, after: GroupState) -> None:
    """Raises AssertionError for a move that is not in the table: a bug of ours, never an answer."""
    if after not in LEGAL_MOVES[before]:
        raise AssertionError(f"illegal move of a group from {before.value} to {after.value}")
