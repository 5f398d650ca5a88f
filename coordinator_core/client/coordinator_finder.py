"""Discovery of the group's coordinator (PROTOCOL 1, 9.9)."""

from collections.abc import Callable

from coordinator_core.client.core import Core
from coordinator_core.client.requests import NEVER, Failure, Reply
from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

_RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Every other error ends the consumer."""


class CoordinatorFinder:
    """Finds the coordinator; ``node`` is its id, or None while it is unknown.

    ``deadline_ms`` is the time of the next request, `NEVER` if the coordinator is known or a request is in
    flight.
    """

    def __init__(self, core: Core, found: Callable[[int], None]) -> None:
        self._core, self._found = core, found
        self.node: int | None = None
        self._retry_ms = self.deadline_ms = 0

    def find(self, *, now_ms: int) -> None:
        """Send a request to any broker, unless the coordinator is known or a request is in flight."""
        if now_ms < self.deadline_ms:
            return
        self.deadline_ms = NEVER
        request = FindCoordinatorRequest(key=self._core.config.group_id)
        self._core.requests.send(self._core.metadata.any_node(), request, self._on_reply, now_ms=now_ms)

    def lose(self, *, now_ms: int) -> None:
        """Forget the coordinator; its pending requests fail (PROTOCOL 9.9)."""
        node, self.node = self.node, None
        if node is not None:
            self.deadline_ms = self._retry_ms
            self._core.requests.fail_node(node, Failure.DISCONNECTED, now_ms=now_ms)

    def _on_reply(self, reply: Reply, now_ms: int) -> None:
        if isinstance(reply, FindCoordinatorResponse) and not reply.error:
            self.node = reply.node
            self._found(now_ms)
            return
        self._retry_ms = self.deadline_ms = now_ms + self._core.config.retry_backoff_ms
        if isinstance(reply, FindCoordinatorResponse) and reply.error not in _RETRIABLE:
            found = f"{reply.error.name}: group {self._core.config.group_id}"
            self._core.fail(ProtocolError("FindCoordinator", found))
