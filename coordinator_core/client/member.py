"""The interface between a client and the member that a protocol family contributes."""

# ruff: noqa: ARG002, B027 - by default a member does nothing

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TypeAlias

import msgspec

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.beats import Beats, Heartbeats
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import Generation
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.client.requests import NEVER
from coordinator_core.errors import InputError
from coordinator_core.model import Cluster, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode


class Outlook(msgspec.Struct, frozen=True, gc=False):
    """The work of a member, if nothing happens. `requests.NEVER` is a time that does not come.

    ``is_at_rest``: whether no rebalance is in progress or requested.
    ``deadline_ms``: the time at which `MemberPart.on_deadline` has work, or the outlook may be another one.
    ``poll_ms``: the time from which `MemberPart.poll` makes progress: now, a time in the past, or later.
    ``reads_in_poll``: whether responses of the group wait for the application's next poll.
    """

    is_at_rest: bool
    deadline_ms: int
    poll_ms: int
    reads_in_poll: bool = False


NO_GROUP = Outlook(True, NEVER, NEVER)
"""The outlook of a consumer without a group."""


class MemberPart(ABC):
    """The part of a consumer that takes part in the group, as one protocol family does it.

    The member writes `Core.generation` and assigns partitions through `Core.subscriptions`. It is driven
    only while the consumer subscribes to topics or to a pattern. The client reads the member after each of
    its own calls, so that the answers of the member may change with a call and with time, and not otherwise.
    """

    beats: Beats
    """The timers of a member that has `heartbeats`."""

    def __init__(self, core: Core, coordinator: CoordinatorFinder, state: Enum) -> None:
        """``state``: that of a member outside the group."""
        self._core, self._coordinator, self._state = core, coordinator, state

    @property
    def state(self) -> Enum:
        """The state of the member; its value is the name that events have."""
        return self._state

    def _move_to(self, state: Enum) -> None:
        self._core.report_state(self._state, state)
        self._state = state

    @property
    def is_leader(self) -> bool:
        """Whether this member computes the assignments of the group."""
        return False

    @property
    @abstractmethod
    def is_at_rest(self) -> bool:
        """Whether no rebalance is in progress or requested. Polls auto-commit only then."""

    @property
    def calls_listener(self) -> bool:
        """Whether the next poll gives up or takes over partitions, as far as is known now."""
        return False

    @property
    @abstractmethod
    def may_revoke(self) -> bool:
        """Whether partitions given up now are revoked. Otherwise they are lost."""

    @property
    @abstractmethod
    def may_commit(self) -> bool:
        """Whether commits are sent now. Otherwise they fail without a request."""

    def poll(self, *, now_ms: int) -> None:
        """Do the member's part of a poll of the application."""

    @abstractmethod
    def outlook(self, *, now_ms: int) -> Outlook:
        """Return what the member does next. Called at the end of each call of the client."""

    def on_deadline(self, *, now_ms: int) -> None:
        """Do the work that is due between polls, for example send a heartbeat."""

    def heartbeats(self) -> Heartbeats | None:
        """Return the heartbeats of a member that is at rest, or None. A simulator may leave them out."""
        return None

    def on_coordinator(self, *, now_ms: int) -> None:
        """React to the discovery of the coordinator."""

    def on_metadata(self, *, now_ms: int) -> None:
        """React to new metadata. Called after every response."""

    def on_commit_error(self, error: ErrorCode, sent: Generation, *, now_ms: int) -> CommitResult:
        """React to the error of a commit that was sent with a generation; return its result."""
        return CommitResult(error.name)

    def resume(
        self,
        generation: Generation,
        owned: Iterable[TopicPartition],
        *,
        topics: Iterable[str],
        based_on: Cluster | None,
        last_response_ms: int,
    ) -> None:
        """Continue a membership; see `Client.resume_membership`.

        Raises:
            InputError: if the consumer has joined already, or the membership is invalid. By default always:
                the groups of the family begin with the joins of their members.
        """
        raise InputError(
            "resume_membership", "a protocol without memberships to continue", "a member that joins"
        )

    @abstractmethod
    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:
        """Leave the group and forget the generation.

        Return whether a request to leave was sent. ``left`` is called when its response is received or the
        request has failed.
        """


MakeMember: TypeAlias = Callable[[Core, CoordinatorFinder, Offsets, Sequence[Assignor]], MemberPart]
"""Makes the member of one client.

Raises:
    InputError: if the assignors cannot be used, or not together.
"""
