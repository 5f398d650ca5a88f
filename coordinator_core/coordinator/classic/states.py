"""The states of a classic group, the table of legal moves, and the requests that they refuse (PROTOCOL 2)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from coordinator_core.coordinator.shard import DEAD, EMPTY
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import HeartbeatRequest, OffsetCommitRequest, SyncGroupRequest


class GroupState(StrEnum):
    """The states, with their responses to requests and the events that end them."""

    EMPTY = EMPTY
    """The group has no members; it may have offsets. A join starts a round after the initial delay. Sync,
    heartbeat and leave get UNKNOWN_MEMBER_ID; commits without a generation are accepted. Left by a join, or
    for Dead when the offsets have expired or the group is deleted."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """The group waits for its members to join. Joins are parked; sync and heartbeat get
    REBALANCE_IN_PROGRESS; commits of the current generation are accepted. Left when all members have
    joined, or when the rebalance timeout has passed."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The group waits for the leader's assignment. Syncs are parked; heartbeats get NONE; commits get
    REBALANCE_IN_PROGRESS. Left when the assignment is stored, when members join, leave or change, or when
    members do not sync in time."""

    STABLE = "Stable"
    """Every member has an assignment. Syncs are answered with it; heartbeats and commits get NONE. Left when
    a member joins, leaves or changes, or when the leader rejoins."""

    DEAD = DEAD
    """The group is forgotten. Every request gets COORDINATOR_NOT_AVAILABLE. Never left."""


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

REFUSED: Mapping[tuple[GroupState, type[Any]], ErrorCode] = {
    (GroupState.PREPARING_REBALANCE, SyncGroupRequest): ErrorCode.REBALANCE_IN_PROGRESS,
    (GroupState.PREPARING_REBALANCE, HeartbeatRequest): ErrorCode.REBALANCE_IN_PROGRESS,
    (GroupState.COMPLETING_REBALANCE, OffsetCommitRequest): ErrorCode.REBALANCE_IN_PROGRESS,
}
"""The error code that a state returns to a valid member; NONE without an entry."""
