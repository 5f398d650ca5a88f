"""What a consumer at rest sends again and again, as values: a simulator may leave such messages out."""

from dataclasses import dataclass

from coordinator_core.protocol.messages import (
    HeartbeatRequest,
    MetadataRequest,
    OffsetCommitRequest,
    Request,
)

PERIODIC_REQUESTS = (HeartbeatRequest, OffsetCommitRequest, MetadataRequest)
"""The types of the requests that a consumer at rest sends."""


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The heartbeats of a member at rest. ``waits``: one has no response yet.

    ``request``: the next one. ``due_ms``: its time. ``number``: the number of times at which a heartbeat was
    due so far, this one included. The next is due ``interval_ms`` and the lateness of its number later.
    """

    request: Request
    due_ms: int
    number: int
    interval_ms: int
    waits: bool


@dataclass(frozen=True, slots=True)
class Periodic:
    """The periodic work of a consumer at rest.

    ``node`` is the coordinator. ``commit_due_ms`` is the time of the next auto-commit, None without
    auto-commit; the next one follows an interval after the poll that commits. ``commits``: whether there are
    partitions, so that requests are sent. Metadata are due at ``metadata_due_ms``, and again
    ``metadata_age_ms`` after each response.
    """

    node: int
    heartbeats: Heartbeats
    commit_due_ms: int | None
    commit_interval_ms: int
    commits: bool
    metadata_due_ms: int
    metadata_age_ms: int
