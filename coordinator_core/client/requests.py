"""Requests to nodes: queued, sent, and completed once (PROTOCOL 9.10)."""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

import msgspec

from coordinator_core.client.outcome import Effects, Send
from coordinator_core.protocol.messages import Request, Response

NEVER = 2**63 - 1
"""A time that does not come."""

FOREVER_MS = 10 * 365 * 24 * 3_600_000
"""The timeout of a request that is answered when something changes."""

MOST_IN_FLIGHT = 5
"""Requests in flight to one node."""


class Failure(Enum):
    """The reason why a request has no response."""

    TIMED_OUT = "timed out"
    DISCONNECTED = "disconnected"


Reply: TypeAlias = Response | Failure
Completion: TypeAlias = Callable[[Reply, int], None]
"""Called once, with the response or failure and the time."""


class _Pending(msgspec.Struct):
    """A request without a response."""

    node: int
    request: Request
    deadline_ms: int
    completion: Completion
    sent: bool


class RequestQueue:
    """The pending requests of a client. Above the limit for a node they wait for their turn.

    ``timeout_ms`` is that of requests without one of their own. ``deadline_ms`` is the time at which the next
    request times out, or `NEVER`.
    """

    def __init__(self, effects: Effects, timeout_ms: int) -> None:
        self._effects, self._timeout_ms = effects, timeout_ms
        self._pending: dict[int, _Pending] = {}
        self._waiting: dict[int, deque[int]] = {}
        self._in_flight: dict[int, int] = {}
        self._last_id = 0
        self.deadline_ms = NEVER

    def send(
        self,
        node: int,
        request: Request,
        completion: Completion,
        *,
        now_ms: int,
        timeout_ms: int | None = None,
    ) -> int:
        """Send a request, now or when the limit permits, and return its id."""
        request_id = self._last_id = self._last_id + 1
        deadline_ms = now_ms + (self._timeout_ms if timeout_ms is None else timeout_ms)
        if deadline_ms < self.deadline_ms:
            self.deadline_ms = deadline_ms
        in_flight = self._in_flight.get(node, 0)
        sent = in_flight < MOST_IN_FLIGHT
        self._pending[request_id] = _Pending(node, request, deadline_ms, completion, sent)
        if sent:
            self._in_flight[node] = in_flight + 1
            self._effects.sends.append(Send(request_id, node, request))
        else:
            self._waiting.setdefault(node, deque()).append(request_id)
        return request_id

    def tell(
        self,
        node: int,
        request: Request,
        told: Callable[[], None] | None,
        *,
        now_ms: int,
        timeout_ms: int | None = None,
    ) -> None:
        """Send a request whose response does not matter. ``told`` is called after it or its failure."""
        self.send(node, request, lambda *_: told and told(), now_ms=now_ms, timeout_ms=timeout_ms)

    def take(self, request_id: int) -> Completion | None:
        """End a request, and return what to call with its response. None if it is not pending."""
        pending = self._pending.pop(request_id, None)
        if pending is None:
            return None
        if not self._pending:
            self.deadline_ms = NEVER
        elif pending.deadline_ms == self.deadline_ms:
            self.deadline_ms = min([p.deadline_ms for p in self._pending.values()])
        if pending.sent:
            self._in_flight[pending.node] -= 1
            if pending.node in self._waiting:
                self._send_next(pending.node)
        return pending.completion

    def fail_node(self, node: int, failure: Failure, *, now_ms: int) -> None:
        """Fail all requests to a node."""
        failed = [i for i, pending in self._pending.items() if pending.node == node]
        self._waiting.pop(node, None)
        for request_id in failed:
            completion = self.take(request_id)
            if completion is not None:
                completion(failure, now_ms)

    def expire(self, *, now_ms: int) -> None:
        """Fail all requests to every node that has not responded in time, and disconnect the node."""
        while self.deadline_ms <= now_ms:
            late = next(p for p in self._pending.values() if p.deadline_ms <= now_ms)
            self._effects.disconnects.append(late.node)
            self.fail_node(late.node, Failure.TIMED_OUT, now_ms=now_ms)

    def holds_only(self, *kinds: type) -> bool:
        """Return whether all pending requests are of these types, or wait for a change."""
        for pending in self._pending.values():
            if not isinstance(pending.request, kinds) and pending.deadline_ms < FOREVER_MS:
                return False
        return True

    def _send_next(self, node: int) -> None:
        waiting = self._waiting[node]
        while waiting and self._in_flight[node] < MOST_IN_FLIGHT:
            request_id = waiting.popleft()
            pending = self._pending.get(request_id)
            if pending is not None:
                pending.sent = True
                self._in_flight[node] += 1
                self._effects.sends.append(Send(request_id, node, pending.request))
        if not waiting:
            del self._waiting[node]
