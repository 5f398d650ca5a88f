"""What is found out about rounds: what began them, and for whom they waited."""

from dataclasses import dataclass, field
from enum import StrEnum

from rebalance_logs.facts import Source


class Cause(StrEnum):
    """Why a group rebalanced or stood still: the names of the contract. Plugins cannot add to them."""

    MEMBER_JOINED = "member-joined"
    MEMBER_LEFT = "member-left"
    SESSION_EXPIRED = "session-expired"
    STOOD_STILL = "member-stood-still"
    POLL_INTERVAL = "poll-interval-exceeded"
    SLOW_BATCH = "slow-batch"
    ROLLING_RESTART = "rolling-restart"
    AUTOSCALING = "autoscaling"
    SUBSCRIPTION = "subscription-changed"
    METADATA = "metadata-changed"
    LEADER = "leader-rejoined"
    NEVER_SYNCED = "never-synced"
    NO_HEARTBEAT = "no-heartbeat-after-join"
    INSTANCE_SHARED = "instance-id-shared"
    FAILOVER = "coordinator-failover"
    UNREACHABLE = "broker-unreachable"
    MANY_FAILED = "many-failed-at-once"
    INITIAL_DELAY = "initial-delay"
    ASSIGNOR = "assignor"


class Confidence(StrEnum):
    """How sure a cause is. High: a line says so. Medium: nothing else fits the lines. Low: a guess."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


RANK = {Confidence.LOW: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}


@dataclass(slots=True)
class Trigger:
    """One thing that happened to a group.

    ``members``: those to which it happened; ``evidence``: the lines, the best first. ``at_ms``: when a line
    shows it. ``is_follow_up``: the round is the next step of the one before. ``returns``: it is the return
    of members that are named in the trigger of an earlier round. ``restarted``: its process is another one.
    """

    cause: Cause
    at_ms: int
    members: list[str] = field(default_factory=list)
    evidence: list[Source] = field(default_factory=list)
    confidence: Confidence = Confidence.HIGH
    is_follow_up: bool = False
    returns: bool = False
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class LoggedWait:
    """A member that a round waited for, and why: batch, heartbeat, session, callback, start or unknown.

    A round that waited for one member has a wait for each thing that it was busy with.
    """

    member: str
    from_ms: int
    until_ms: int
    why: str

    @property
    def seconds(self) -> float:
        """How long the round waited."""
        return (self.until_ms - self.from_ms) / 1_000
