"""What a consumer at rest sends again and again, as values: a simulator may leave such messages out."""

from collections.abc import Callable

import msgspec

from coordinator_core.client.requests import NEVER
from coordinator_core.protocol.messages import (
    HeartbeatRequest,
    MetadataRequest,
    OffsetCommitRequest,
    Request,
    Response,
)

PERIODIC_REQUESTS = (HeartbeatRequest, OffsetCommitRequest, MetadataRequest)
"""The types of the requests that a consumer at rest sends, besides those of one family."""


class Looks(msgspec.Struct, frozen=True):
    """The looks of a member at rest for changes: ``count`` equal requests each, the next at ``due_ms``.

    Each request goes to one of ``nodes``, chosen by a random number: ``number`` is that of the next one, see
    `chosen`. ``left_out`` is called with the number of looks that are left out, and the time of the next one.
    """

    request: Request
    due_ms: int
    number: int
    count: int
    interval_ms: int
    nodes: tuple[int, ...]
    left_out: Callable[[int, int], None]


def chosen(unit: float, count: int) -> int:
    """Return the place that a random number in [0, 1) chooses among ``count``."""
    return int(unit * count)


class Heartbeats(msgspec.Struct, frozen=True):
    """The heartbeats of a member at rest. ``waits``: one has no response yet.

    ``request``: the next one. ``due_ms``: its time. ``number``: the number of times at which a heartbeat was
    due so far, this one included. The next is due ``interval_ms`` and the lateness of its number later;
    without ``drifts`` after the interval. ``nodes`` receive them; if there are none, the coordinator does.
    ``until_ms``: the time from which the member does something else.

    ``expects``: returns whether the response of a node to a heartbeat or a look changes nothing. None: a
    coordinator that has the member in its generation answers without an error.
    """

    request: Request
    due_ms: int
    number: int
    interval_ms: int
    waits: bool
    nodes: tuple[int, ...] = ()
    drifts: bool = True
    until_ms: int = NEVER
    expects: Callable[[int, Response], bool] | None = None
    looks: Looks | None = None


class Periodic(msgspec.Struct, frozen=True):
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
