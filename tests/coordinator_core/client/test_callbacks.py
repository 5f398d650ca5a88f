"""Calls to the application's code, whose exceptions do not stop the consumer."""

import pytest

from coordinator_core.client.callbacks import Callbacks
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.outcome import Effects
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, T2


def test_a_consumer_without_a_listener_calls_none():
    effects = Effects()
    callbacks = Callbacks(None, effects)
    callbacks.revoked([T0])
    callbacks.assigned([T0])
    callbacks.lost([T0])
    assert effects.error is None


def test_the_first_exception_of_a_call_goes_to_the_application():
    """Given three calls of which two raise, then all are made, and the first exception is kept. C-52."""
    effects, called = Effects(), []
    callbacks = Callbacks(None, effects)

    def raising(number):
        called.append(number)
        raise ValueError(number)

    callbacks.call(raising, 1)
    callbacks.call(called.append, 2)
    callbacks.call(raising, 3)
    assert called == [1, 2, 3]
    assert effects.drain().error.args == (1,)
    assert effects.drain().error is None


def test_an_exception_of_on_partitions_revoked_does_not_stop_the_join(bench):
    """Given a listener that raises when partitions are revoked, then the poll reports it, the partitions are
    given up nevertheless, and the listener is not called again in this rebalance. PROTOCOL 9.5, C-50."""
    bench.stable(T0)
    bench.listener.raises["revoked"] = error = ValueError("no")
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    assert (bench.errors, bench.owned) == ([error], [])
    assert bench.state is MemberState.PREPARING_REBALANCE
    bench.refuse(m.JoinGroupRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.sleep(100, polling=True)
    bench.respond_to_join(generation=2)
    bench.respond_to_sync(T1)
    assert [name for name, _ in bench.calls] == ["assigned", "revoked", "assigned"]


@pytest.mark.parametrize("name", ["revoked", "assigned"])
def test_an_exception_of_the_listener_does_not_stop_a_cooperative_round(calm, name):
    """Given a listener that raises, when an assignment is taken over, then every later step is taken, and the
    exception is reported once. PROTOCOL 9.7, C-52."""
    calm.stable(T0, T1)
    calm.listener.raises[name] = error = ValueError("no")
    calm.round(T1, T2)
    assert calm.errors == [error]
    assert calm.owned == [T1, T2]
    assert calm.calls[1:] == [("revoked", [T0]), ("assigned", [T2])]
    assert "gave up" in calm.join().reason


def test_an_exception_of_on_assignment_stops_nothing(calm):
    """C-52."""

    def on_assignment(partitions, generation):
        raise ValueError("no")

    calm.assignors[0].on_assignment = on_assignment
    calm.stable(T0)
    assert (calm.owned, calm.calls) == ([T0], [("assigned", [T0])])
    assert [str(error) for error in calm.errors] == ["no"]


def test_an_exception_of_subscription_user_data_ends_the_consumer(bench):
    """Given an assignor whose user data cannot be had, then poll raises nothing: the consumer has failed, and
    the error names the assignor. PROTOCOL 9.6."""

    def subscription_user_data(topics):
        raise ValueError("no user data")

    bench.assignors[0].subscription_user_data = subscription_user_data
    bench.subscribe("t")
    bench.polls()
    assert "dealing" in bench.client.failure
    assert "no user data" in str(bench.errors[0])


def test_an_exception_of_a_commit_callback_does_not_stop_the_next(bench):
    """PROTOCOL 9.3."""
    results = []

    def raising(error):
        raise ValueError("no")

    bench.stable(T0)
    for callback in (raising, results.append):
        bench.call("commit", {T0: 5}, callback=callback)
        bench.accept(m.OffsetCommitRequest)
    bench.poll()
    assert results == [""]
    assert [str(error) for error in bench.errors] == ["no"]
