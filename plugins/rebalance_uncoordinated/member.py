"""What the members of both families do alike."""

from collections.abc import Sequence
from enum import Enum

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import LATER
from coordinator_core.client.generation import Generation
from coordinator_core.client.member import MemberPart
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.errors import InputError
from coordinator_core.protocol.error_codes import ErrorCode


class UncoordinatedMember(MemberPart):
    """A member with one assignor, of which the coordinator only has offsets: it commits at any time."""

    may_commit = True

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        offsets: Offsets,
        assignors: Sequence[Assignor],
        state: Enum,
    ) -> None:
        if len(assignors) != 1:
            raise InputError("assignors", f"{len(assignors)} of them", "one: members do not agree on it")
        super().__init__(core, coordinator, state)
        self._offsets, self._assignor = offsets, assignors[0]
        core.commits_as_member = False

    def on_commit_error(self, error: ErrorCode, sent: Generation, *, now_ms: int) -> CommitResult:  # noqa: ARG002
        """Look for the coordinator again after an error that says nothing about the commit."""
        if error in LATER:
            self._coordinator.lose(now_ms=now_ms)
        return CommitResult(error.name, retriable=error in LATER)

    def _knows_topics(self) -> bool:
        """Whether the consumer is open, and the topics that it subscribes to are known."""
        core = self._core
        is_managed = core.is_open and core.subscriptions.is_group_managed
        return is_managed and core.metadata.knows(core.subscriptions.topics)
