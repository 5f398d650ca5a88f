"""Calls with a limit: what they return and raise comes through; one that hangs is left behind."""

import os
import signal
import sys
import threading
import time
from functools import partial
from math import inf

import pytest

from coordinator_core.assigning.limits import CAN_COPY, Worker, each_within, exits_raise, within

NEVER = 0.02
"""Seconds; the calls that are too late here wait until they are let go."""


@pytest.fixture
def stuck():
    """A call that hangs until the test is over."""
    let_go = threading.Event()
    yield let_go.wait
    let_go.set()


@pytest.mark.parametrize("value", [3, None, [], ValueError("returned, not raised")])
def test_what_the_call_returns_is_returned(value):
    assert within(60, lambda: value) is value


class Unusual(BaseException):
    """Not an Exception, as KeyboardInterrupt and SystemExit are not."""


@pytest.mark.parametrize("raised", [ValueError("no"), TimeoutError("its own"), SystemExit(3), Unusual()])
def test_what_the_call_raises_is_raised(raised):
    def call():
        raise raised

    with pytest.raises(type(raised)) as caught:
        within(60, call)
    assert caught.value is raised


def test_a_call_that_is_too_late_is_a_timeout_that_says_the_limit(stuck):
    with pytest.raises(TimeoutError, match=r"^no answer within 0\.02 s$"):
        within(NEVER, stuck)


def test_a_call_that_hangs_does_not_keep_the_process_from_ending(stuck):
    before = set(threading.enumerate())
    with pytest.raises(TimeoutError):
        within(NEVER, stuck)
    (left_behind,) = set(threading.enumerate()) - before
    assert left_behind.daemon


@pytest.mark.parametrize("seconds", [1e300, inf])
def test_no_limit_is_too_long(seconds):
    """Threads of the platform wait no longer than some centuries."""
    assert within(seconds, lambda: "answer") == "answer"


def test_calls_are_made_one_after_another_in_a_thread():
    threads = []

    def call():
        threads.append(threading.current_thread())
        return len(threads)

    assert list(each_within(60, [call] * 5)) == [(1,), (2,), (3,), (4,), (5,)]
    (thread,) = set(threads)
    assert thread is not threading.current_thread()


def test_a_call_that_raises_or_is_too_late_does_not_stop_the_calls_after_it(stuck):
    error = ValueError("no")

    def fail():
        raise error

    outcomes = list(each_within(NEVER, [lambda: 1, stuck, fail, stuck, lambda: 5]))
    assert [outcomes[0], outcomes[2], outcomes[4]] == [(1,), error, (5,)]
    late = [outcomes[1], outcomes[3]]
    assert [str(outcome) for outcome in late] == ["no answer within 0.02 s"] * 2
    assert all(isinstance(outcome, TimeoutError) for outcome in late)


def test_the_limit_is_that_of_each_call():
    """Together the calls take longer."""
    calls = [partial(time.sleep, 0.3)] * 4
    assert list(each_within(1, calls)) == [(None,)] * 4


def test_a_thread_whose_call_was_too_late_makes_no_other_call():
    made = []
    let_go = threading.Event()
    calls = [let_go.wait, lambda: made.append(threading.current_thread())]
    before = set(threading.enumerate())
    late, _ = each_within(NEVER, calls)
    (left_behind,) = set(threading.enumerate()) - before
    let_go.set()
    left_behind.join(60)
    assert isinstance(late, TimeoutError)
    assert len(made) == 1
    assert made[0] is not left_behind


# --- in a process


def echo(connection):
    while True:
        message = connection.recv()
        if message == "end":
            sys.exit(3)
        connection.send(message)


@pytest.fixture
def worker():
    """A process that answers."""
    made = Worker(echo)
    made.connection.send("ready")
    assert made.connection.poll(60)
    assert made.connection.recv() == "ready"
    yield made
    made.kill()


def test_a_worker_that_ends_has_a_status(worker):
    assert worker.exit_status(0) is None
    worker.connection.send("end")
    assert worker.exit_status() == 3
    with pytest.raises(EOFError):
        worker.connection.recv()


def test_a_worker_that_is_killed_has_ended(worker):
    worker.kill()
    assert worker.exit_status() == -signal.SIGKILL


# --- in a copy of this process

copies = pytest.mark.skipif(not CAN_COPY, reason="the platform cannot copy a process")


@pytest.fixture
def copied():
    """Start copies that are ended with the test."""
    workers = []

    def start(target, *arguments):
        workers.append(Worker.copied(target, *arguments))
        return workers[-1]

    yield start
    for each in workers:
        each.kill()


@copies
def test_a_copy_has_what_cannot_be_pickled(copied):
    worker = copied(lambda connection, call: connection.send(call()), lambda: "of a closure")
    assert worker.connection.recv() == "of a closure"
    assert worker.exit_status(60) == 0


@copies
def test_a_copy_can_be_started_by_any_thread(copied):
    received = []

    def ask():
        received.append(copied(lambda connection: connection.send("here")).connection.recv())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(60)
    assert received == ["here"]


@copies
def test_a_copy_ignores_ctrl_c_and_is_killed(copied):
    def wait(connection):
        connection.send(signal.getsignal(signal.SIGINT))
        threading.Event().wait()

    worker = copied(wait)
    assert worker.connection.recv() is signal.SIG_IGN
    worker.kill()
    assert worker.how_it_ended().startswith("its process ended with signal 9 ")


@copies
def test_a_copy_that_ends_without_an_answer_is_described(copied):
    worker = copied(lambda connection: sys.exit(3))
    with pytest.raises(EOFError):
        worker.connection.recv()
    assert worker.how_it_ended().startswith("its process ended with status 3 ")


# --- exits without a word


def test_an_exit_raises_in_this_process_and_ends_a_copy(copied):
    exits = os._exit
    with exits_raise():
        with pytest.raises(SystemExit, match="3"):
            os._exit(3)
        if CAN_COPY:
            assert copied(lambda connection: os._exit(4)).exit_status(60) == 4
    assert os._exit is exits
