"""Calls that take too long are stopped; and a process that nobody can stop ends by itself."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from rebalance_lab.scoring import limits
from rebalance_lab.scoring.limits import Watchdog, run_within
from tests.rebalance_lab.cli.commands import ROOT

NO_TIMER = (0.0, 0.0)


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == NO_TIMER


def for_ever():
    while True:
        pass


@pytest.mark.parametrize("seconds", [0, 60])
def test_what_a_call_returns_comes_back(seconds):
    assert run_within(seconds, lambda: [1, 2]) == [1, 2]


@pytest.mark.parametrize("seconds", [0, 60])
@pytest.mark.parametrize("wrong", [LookupError("x"), TimeoutError("its own"), SystemExit(3)])
def test_what_a_call_raises_goes_through(wrong, seconds):
    def call():
        raise wrong

    with pytest.raises(type(wrong)) as caught:
        run_within(seconds, call)
    assert caught.value is wrong


def test_a_loop_that_takes_every_exception_for_its_own_is_stopped_and_cleans_up():
    cleaned = []

    def call():
        try:
            while True:
                try:
                    for_ever()
                except Exception:
                    continue
        finally:
            cleaned.append(True)

    with pytest.raises(TimeoutError, match=r"^no result within 0\.05 s$"):
        run_within(0.05, call)
    assert cleaned == [True]


def test_a_loop_that_swallows_even_the_first_alarm_is_stopped_by_the_next(monkeypatch):
    monkeypatch.setattr(limits, "_AGAIN_SECONDS", 0.05)
    swallowed = []

    def call():
        try:
            for_ever()
        except BaseException as alarm:
            swallowed.append(alarm)
        for_ever()

    with pytest.raises(TimeoutError):
        run_within(0.05, call)
    assert len(swallowed) == 1


def test_an_alarm_is_set_while_a_call_lasts_and_the_handler_of_somebody_else_put_back():
    def mine(number, frame):
        raise AssertionError("rung by nobody")

    def now():
        return signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, mine)
    try:
        (left, again), handler = run_within(60, now)
        assert 0 < left <= 60
        assert again > 0
        assert handler is not mine
        assert run_within(0, now) == now() == (NO_TIMER, mine)
        with pytest.raises(TimeoutError):
            run_within(0.05, for_ever)
        assert now() == (NO_TIMER, mine)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_in_a_thread_where_no_alarm_rings_the_call_is_left_alone():
    enough = Event()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run_within, 60, lambda: 5).result() == 5
        late = pool.submit(run_within, 0.05, enough.wait)
        with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
            late.result()
    enough.set()


def test_where_there_are_no_alarms_the_call_is_left_alone(monkeypatch):
    monkeypatch.delattr(limits.signal, "setitimer")
    enough = Event()
    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        run_within(0.05, enough.wait)
    enough.set()


# --- the watchdog


def in_a_process(program):
    """A process that has ended by itself; one that does not is an error of the test."""
    return subprocess.run(
        [sys.executable, "-c", f"from rebalance_lab.scoring.limits import *\n{program}"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"},
        check=False,
    )


STUBBORN = """
import signal
signal.signal(signal.SIGALRM, signal.SIG_IGN)
def hang():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""


def test_a_process_that_nobody_can_stop_ends_and_says_where_it_was():
    ended = in_a_process(f"{STUBBORN}\nWatchdog(0.1).restart()\nhang()")
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert "in hang" in ended.stderr


@pytest.mark.slow
def test_a_stopped_watchdog_does_nothing():
    program = "import time\ndog = Watchdog(1.0)\ndog.restart()\ndog.stop()\ntime.sleep(2.5)\nprint('alive')"
    ended = in_a_process(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "alive\n", "")


@pytest.mark.slow
def test_a_watchdog_that_is_restarted_in_time_does_nothing():
    restarts = (
        "end = time.monotonic() + 6.5\nwhile time.monotonic() < end:\n    dog.restart()\n    time.sleep(0.02)"
    )
    ended = in_a_process(f"import time\ndog = Watchdog(3.0)\n{restarts}\ndog.stop()\nprint('alive')")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "alive\n", "")


@pytest.fixture
def alarms(monkeypatch):
    """What the watchdog asks of faulthandler, at which time of a clock that the test moves on."""

    class World:
        now = 1_000.0
        asked = ()

        def dump_traceback_later(self, seconds, **how):
            self.asked += (("bite", self.now + seconds, how["exit"]),)

        def cancel_dump_traceback_later(self):
            self.asked += ("stop",)

    world = World()
    monkeypatch.setattr(limits, "faulthandler", world)
    monkeypatch.setattr(limits, "monotonic", lambda: world.now)
    return world


def test_it_bites_between_one_and_two_times_its_seconds_after_the_last_pat(alarms):
    dog = Watchdog(10)
    assert alarms.asked == ()
    for now, bites_at in ((1_000, 1_020), (1_009, 1_020), (1_010, 1_030), (1_015, 1_030), (1_100, 1_120)):
        alarms.now = now
        dog.restart()
        assert alarms.asked[-1] == ("bite", bites_at, True)
        assert 10 <= bites_at - now <= 20
    assert len(alarms.asked) == 3


def test_after_a_stop_it_can_be_used_again(alarms):
    dog = Watchdog(10)
    dog.restart()
    dog.stop()
    alarms.now += 1
    dog.restart()
    assert alarms.asked == (("bite", 1_020, True), "stop", ("bite", 1_021, True))


def test_without_seconds_it_does_nothing(alarms):
    dog = Watchdog(0)
    dog.restart()
    dog.stop()
    assert alarms.asked == ()
