"""Discovery and loss of the coordinator."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import COORDINATOR, T0, Bench


@pytest.fixture
def seeking():
    """A consumer that is looking for its coordinator."""
    bench = Bench(enable_auto_commit=False)
    del bench.responders[m.FindCoordinatorRequest]
    bench.subscribe("t")
    bench.poll()
    return bench


def found(bench, node=COORDINATOR):
    bench.respond(m.FindCoordinatorRequest, m.FindCoordinatorResponse(error=ErrorCode.NONE, node=node))


def test_the_coordinator_is_requested_once_and_then_joined(seeking):
    """Given a consumer without a coordinator, then it sends a request to any broker, and joins at the node of
    the response. PROTOCOL 9.3."""
    seeking.poll()
    (ask,) = seeking.pending(m.FindCoordinatorRequest)
    assert (ask.request.key, ask.node) == ("g", 0)
    assert not seeking.client.wants_poll
    found(seeking, 3)
    assert seeking.client.wants_poll
    seeking.poll()
    assert seeking.sent(m.JoinGroupRequest).node == 3


PASSING = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


@pytest.mark.parametrize("error", sorted(PASSING))
def test_a_transient_error_is_retried_after_the_backoff(seeking, error):
    """Given an error that passes, then the next request follows after the backoff, without a poll.
    PROTOCOL 9.10."""
    seeking.refuse(m.FindCoordinatorRequest, error)
    seeking.sleep(99, polling=True)
    assert seeking.pending(m.FindCoordinatorRequest) == []
    seeking.sleep(1)
    assert len(seeking.pending(m.FindCoordinatorRequest)) == 1


@pytest.mark.parametrize("error", sorted(set(ErrorCode) - PASSING - {ErrorCode.NONE}))
def test_any_other_error_ends_the_consumer(seeking, error):
    """C-46."""
    seeking.refuse(m.FindCoordinatorRequest, error)
    assert seeking.client.failure == f"FindCoordinator: {error.name}: group g"
    assert not seeking.client.wants_poll


def test_a_request_without_a_response_is_retried(seeking):
    """PROTOCOL 9.10."""
    seeking.disconnect(0)
    seeking.sleep(100)
    assert len(seeking.pending(m.FindCoordinatorRequest)) == 1
    seeking.sleep(30_100)
    assert len(seeking.requests(m.FindCoordinatorRequest)) == 3


def test_the_loss_of_the_coordinator_fails_its_requests(bench):
    """Given a commit in flight, when the connection to the coordinator is closed, then the commit has failed,
    and the coordinator is looked up again at once. PROTOCOL 9.9, 9.10."""
    results = []
    bench.stable(T0)
    del bench.responders[m.FindCoordinatorRequest]
    bench.call("commit", {T0: 5}, callback=results.append)
    bench.disconnect()
    bench.poll()
    assert results == ["disconnected"]
    assert bench.state is MemberState.STABLE
    found(bench, 3)
    bench.sleep(3_000)
    assert bench.sent(m.HeartbeatRequest).node == 3


def test_a_round_continues_at_the_new_coordinator(bench):
    """Given a join in flight, when the coordinator disconnects, then the consumer joins at the next one.
    PROTOCOL 9.9."""
    bench.subscribe("t")
    bench.polls()
    bench.responders[m.FindCoordinatorRequest] = lambda _: m.FindCoordinatorResponse(
        error=ErrorCode.NONE, node=3
    )
    bench.disconnect()
    bench.sleep(100, polling=True)
    assert bench.sent(m.JoinGroupRequest).node == 3


def test_a_request_that_times_out_makes_the_coordinator_unknown():
    """Given a request to the coordinator that is no part of a round, when it has no response in time, then
    the coordinator is looked up again, as its connection is closed. PROTOCOL 9.9, 9.10."""
    bench = Bench(request_timeout_ms=2_000, enable_auto_commit=False)
    del bench.responders[m.OffsetFetchRequest]
    bench.stable(T0)
    bench.polls()
    assert bench.pending(m.OffsetFetchRequest)
    bench.sleep(1_999)
    assert len(bench.requests(m.FindCoordinatorRequest)) == 1
    bench.sleep(1)
    assert [node for outcome in bench.outcomes for node in outcome.disconnects] == [COORDINATOR]
    assert len(bench.requests(m.FindCoordinatorRequest)) == 2
