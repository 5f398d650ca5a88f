import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.simulation.world.clock import Alarm, VirtualClock


def run(clock):
    while clock.next_ms() is not None:
        clock.step()


def test_equal_times_happen_in_the_order_they_were_put_in():
    """C-84: ties have a defined order."""
    clock, seen = VirtualClock(), []
    for name, at_ms in (("b", 5), ("a", 5), ("first", 1), ("c", 5)):
        clock.at(at_ms, lambda n=name: seen.append((clock.now_ms, n)))
    run(clock)
    assert seen == [(1, "first"), (5, "b"), (5, "a"), (5, "c")]


def test_a_time_that_has_passed_means_now_and_never_goes_back():
    clock, seen = VirtualClock(), []
    clock.at(10, lambda: clock.at(3, lambda: seen.append(clock.now_ms)))
    run(clock)
    assert seen == [10]


@pytest.mark.parametrize(("times", "rung"), [([10, 20, 30], [30]), ([10, None], []), ([30, 10], [10])])
def test_an_alarm_rings_once_at_its_last_time_or_not_at_all(times, rung):
    clock, seen = VirtualClock(), []
    alarm = Alarm(clock, lambda: seen.append(clock.now_ms))
    for due_ms in times:
        alarm.set(due_ms)
    run(clock)
    assert seen == rung


def test_an_alarm_can_be_set_while_it_rings():
    clock, seen = VirtualClock(), []

    def ring():
        seen.append(clock.now_ms)
        if clock.now_ms < 30:
            alarm.set(clock.now_ms + 10)

    alarm = Alarm(clock, ring)
    alarm.set(10)
    run(clock)
    assert seen == [10, 20, 30]


def test_a_deadline_pushed_back_a_thousand_times_leaves_no_thousand_entries():
    clock = VirtualClock()
    alarm = Alarm(clock, lambda: None)
    for due_ms in range(1_000):
        alarm.set(due_ms + 10)
    assert len(clock._heap) == 1


def test_a_deadline_that_moves_to_and_fro_leaves_few_entries():
    clock, rung = VirtualClock(), []

    def ring():
        rung.append(clock.now_ms)
        alarm.set(clock.now_ms + 10_000)
        alarm.set(clock.now_ms + 10)

    alarm = Alarm(clock, ring)
    alarm.set(10)
    clock.run(1_000)
    assert rung == list(range(10, 1_001, 10))
    assert len(clock._heap) == 2


def test_an_action_is_called_with_its_arguments():
    clock, seen = VirtualClock(), []
    clock.at(5, seen.append, "later")
    clock.at(3, seen.append, "sooner")
    run(clock)
    assert seen == ["sooner", "later"]


def test_later_counts_from_now():
    clock, seen = VirtualClock(), []
    clock.at(10, lambda: clock.after(5, lambda: seen.append(clock.now_ms)))
    run(clock)
    assert seen == [15]


def test_the_clock_says_when_something_happens_next():
    clock = VirtualClock()
    assert clock.next_ms() is None
    clock.at(7, lambda: None)
    clock.at(3, lambda: None)
    assert clock.next_ms() == 3
    clock.step()
    assert (clock.now_ms, clock.next_ms()) == (3, 7)


@given(st.dictionaries(st.integers(0, 40), st.none() | st.integers(0, 60), max_size=12))
def test_an_alarm_rings_when_its_last_deadline_says(moves):
    """Held against a clock that looks at the deadline in every millisecond."""
    expected, due_ms = [], None
    for now_ms in range(100):
        if due_ms is not None and due_ms <= now_ms and now_ms not in moves:
            expected.append(now_ms)
            due_ms = None
        if now_ms in moves:
            due_ms = moves[now_ms]
            if due_ms is not None and due_ms <= now_ms:
                expected.append(now_ms)
                due_ms = None
    clock, seen = VirtualClock(), []
    alarm = Alarm(clock, lambda: seen.append(clock.now_ms))
    for at_ms, move in moves.items():
        clock.at(at_ms, lambda move=move: alarm.set(move))
    run(clock)
    assert seen == expected
