"""The coordinator's part of a protocol family: one record, with a row for every type of request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from coordinator_core.coordinator.records import StoredGroup
from coordinator_core.coordinator.shard import Group, Step
from coordinator_core.coordinator.timers import TimerKey
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import Response

Handler: TypeAlias = Callable[[Step, int, Any], None]
"""Takes the step, the request id and the request; responds now or in a later step."""

Refusal: TypeAlias = Callable[[Any, ErrorCode], Response]
"""Returns the response that reports an error to a request."""


@dataclass(frozen=True, slots=True)
class Row:
    """How one type of request to one group is answered. The request has a ``group_id``.

    ``needs_group_id``: an empty group id returns INVALID_GROUP_ID. ``joins`` returns whether a request may
    make the group that it names, also in place of an Empty group of another family. ``foreign_group`` is the
    error for a request to a group of another family, None for that of the family.
    """

    handle: Handler
    refuse: Refusal
    while_loading: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    needs_group_id: bool = True
    joins: Callable[[Any], bool] = lambda _: False
    foreign_group: ErrorCode | None = None


@dataclass(frozen=True, slots=True)
class CoordinatorPart:
    """The functions of one protocol family, for `Coordinator`.

    ``requests`` has a row for every type of request of the family. ``restore`` rebuilds a group from its
    stored form and sets its timers; its last argument is the highest generation that may have been handed
    out. ``on_timer`` carries out a timer of a group of the family. ``on_topics`` lets a group react to
    changed topics, in a family whose coordinator computes the assignments, and ``on_deleted`` to deleted
    ones, before that: its last argument has their ids by name. ``foreign_group`` is the error for
    a request to a group of another family. ``group_type`` is the type of the groups as administrators see
    it, if it is not the name. ``between`` are the rows of requests of one family to groups of another, by the
    family of the group and the type of the request.
    """

    name: str
    requests: Mapping[type[Any], Row]
    restore: Callable[[Step, str, StoredGroup, int], Group]
    on_timer: Callable[[Step, Any, TimerKey], None]
    on_topics: Callable[[Step, Any], None] | None = None
    on_deleted: Callable[[Step, Any, Mapping[str, str]], None] | None = None
    foreign_group: ErrorCode = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    group_type: str = ""
    between: Mapping[tuple[str, type[Any]], Row] = field(default_factory=dict)
