"""The commits of members that the coordinator does not know."""

from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.offsets import CommitResult
from coordinator_core.protocol.error_codes import ErrorCode

_ELSEWHERE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def commit_refused(error: ErrorCode, coordinator: CoordinatorFinder, *, now_ms: int) -> CommitResult:
    """Return the result of a commit that failed.

    The coordinator is looked for again, if this one does not have the group.
    """
    if error in _ELSEWHERE:
        coordinator.lose(now_ms=now_ms)
    return CommitResult(error.name, retriable=error in _ELSEWHERE)
