"""The queue of requests: limits, deadlines, and one completion each."""

import pytest

from coordinator_core.client.outcome import Effects
from coordinator_core.client.requests import MOST_IN_FLIGHT, NEVER, Failure, RequestQueue
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

REQUEST = m.HeartbeatRequest(group_id="g", generation_id=1, member_id="m1")
ANSWER = m.HeartbeatResponse(error=ErrorCode.NONE)


class Desk:
    """A queue with the completions of its requests."""

    def __init__(self):
        self.effects, self.done = Effects(), []
        self.queue = RequestQueue(self.effects, 30_000)

    def submit(self, node=1, timeout_ms=100, now_ms=0):
        number = len(self.done)
        return self.queue.send(
            node,
            REQUEST,
            now_ms=now_ms,
            timeout_ms=timeout_ms,
            completion=lambda reply, at_ms: self.done.append((reply, at_ms, number)),
        )

    def answer(self, request_id, *, now_ms):
        """Complete a request. Return whether it was pending."""
        completion = self.queue.take(request_id)
        if completion is not None:
            completion(ANSWER, now_ms)
        return completion is not None

    def sent(self):
        return [send.request_id for send in self.effects.drain().sends]

    @property
    def replies(self):
        return [reply for reply, _, _ in self.done]


@pytest.fixture
def desk():
    return Desk()


def test_at_most_five_requests_to_a_node_are_in_flight(desk):
    """Given more requests than the limit of a node, then the others wait for that node and are sent in order
    as responses arrive. PROTOCOL 9.10."""
    ids = [desk.submit() for _ in range(MOST_IN_FLIGHT + 2)]
    other = desk.submit(node=2)
    assert desk.sent() == [*ids[:MOST_IN_FLIGHT], other]
    desk.answer(ids[3], now_ms=1)
    desk.answer(ids[0], now_ms=1)
    assert desk.sent() == ids[MOST_IN_FLIGHT:]


def test_a_response_completes_its_request_once_with_the_time(desk):
    """Given a response that arrives twice, then the second completes nothing. PROTOCOL 9.10."""
    request = desk.submit()
    assert desk.answer(request, now_ms=7)
    assert not desk.answer(request, now_ms=8)
    assert desk.done == [(ANSWER, 7, 0)]


def test_a_response_after_the_deadline_is_dropped(desk):
    """PROTOCOL 9.10."""
    request = desk.submit(timeout_ms=100)
    desk.queue.expire(now_ms=99)
    assert desk.done == []
    assert desk.queue.deadline_ms == 100
    desk.queue.expire(now_ms=100)
    assert not desk.answer(request, now_ms=101)
    assert desk.replies == [Failure.TIMED_OUT]
    assert desk.queue.deadline_ms == NEVER


def test_one_expired_request_fails_all_requests_to_its_node(desk):
    """Given a request past its time, then all of that node's fail with it, and no other node's.
    PROTOCOL 9.10."""
    for timeout_ms in (100, 900):
        desk.submit(timeout_ms=timeout_ms)
    desk.submit(node=2, timeout_ms=900)
    desk.queue.expire(now_ms=100)
    assert desk.replies == [Failure.TIMED_OUT] * 2
    assert desk.queue.deadline_ms == 900


def test_a_lost_connection_fails_all_requests_to_its_node(desk):
    """PROTOCOL 9.10."""
    for _ in range(MOST_IN_FLIGHT + 2):
        desk.submit()
    desk.sent()
    desk.queue.fail_node(1, Failure.DISCONNECTED, now_ms=5)
    assert desk.replies == [Failure.DISCONNECTED] * (MOST_IN_FLIGHT + 2)
    assert desk.sent() == []
    again = desk.submit()
    assert desk.sent() == [again]


def test_a_completion_can_send_to_the_same_node(desk):
    """Given completions that send another request, when their node fails, then the new requests are sent and
    do not fail. PROTOCOL 9.10."""
    renewed = []

    def again(reply, at_ms):
        renewed.append(desk.submit(now_ms=at_ms))

    for _ in range(MOST_IN_FLIGHT):
        desk.queue.send(1, REQUEST, again, now_ms=0, timeout_ms=100)
    desk.sent()
    desk.queue.expire(now_ms=100)
    assert desk.sent() == renewed
    assert len(renewed) == MOST_IN_FLIGHT
    assert desk.queue.deadline_ms == 200


def test_a_waiting_request_expires_too(desk):
    """PROTOCOL 9.10."""
    for _ in range(MOST_IN_FLIGHT):
        desk.submit(timeout_ms=900)
    waiting = desk.submit(timeout_ms=100)
    desk.queue.expire(now_ms=100)
    assert waiting not in desk.sent()
    assert len(desk.done) == MOST_IN_FLIGHT + 1
