"""Calls with a limit: what they return and raise comes through; one that hangs is left behind."""

import signal
import sys
import threading
from math import inf

import pytest

from coordinator_core.assigning.limits import Worker, within

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
