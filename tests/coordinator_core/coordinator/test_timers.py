"""Deadlines: at most one per key, in order of time, then kind, group and member; against a naive model."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_core.coordinator.timers import RETENTION, TimerKey, Timers
from tests.examples import scaled

KEYS = [TimerKey(kind, group, member) for kind in (0, 1, RETENTION) for group in "gh" for member in ("", "m")]
keys = st.sampled_from(KEYS)
moments = st.integers(0, 20)
actions = st.one_of(
    st.builds(lambda key, at_ms: ("schedule", *key, at_ms), keys, moments),
    st.builds(lambda key: ("cancel", *key), keys),
    st.tuples(st.just("cancel_group"), st.sampled_from("gh")),
    st.tuples(st.just("pop_due"), moments),
)


class NaiveTimers:
    """A dict, searched every time."""

    def __init__(self):
        self.deadlines = {}

    def schedule(self, kind, group, member, at_ms):
        self.deadlines[TimerKey(kind, group, member)] = at_ms

    def cancel(self, kind, group, member):
        self.deadlines.pop(TimerKey(kind, group, member), None)

    def cancel_group(self, group):
        ended = {k: at for k, at in self.deadlines.items() if k.group_id == group}
        self.deadlines = {k: at for k, at in self.deadlines.items() if k not in ended}
        return ended

    def next_ms(self):
        return min(self.deadlines.values(), default=None)

    def pop_due(self, now_ms):
        due = [(at, key) for key, at in self.deadlines.items() if at <= now_ms]
        if not due:
            return None
        _, key = min(due)
        del self.deadlines[key]
        return key


@settings(max_examples=scaled(300))
@given(st.lists(actions, max_size=60))
@example([("schedule", *KEYS[0], at_ms) for at_ms in (3, 8, 5)] + [("pop_due", 5)])
@example([("schedule", *KEYS[0], 3), ("cancel_group", "g")])
def test_timers_do_what_a_dict_would(played):
    real, naive = Timers(), NaiveTimers()
    for name, *args in played:
        assert getattr(real, name)(*args) == getattr(naive, name)(*args)
        expected, bound = naive.next_ms(), real.not_before_ms()
        assert bound <= expected if expected is not None else True
        assert real.next_ms() == real.not_before_ms() == expected
    while (key := naive.pop_due(99)) is not None:
        assert real.pop_due(99) == key
    assert real.pop_due(99) is None


def test_moving_a_deadline_later_does_not_grow_the_heap():
    timers, key = Timers(), KEYS[0]
    for at_ms in range(1_000):
        timers.schedule(*key, at_ms)
    assert len(timers._heap) == 1


def test_a_coordinator_without_groups_waits_for_nothing(bench):
    assert bench.coordinator.next_deadline_ms() is None
    bench.enter()
    assert bench.coordinator.next_deadline_ms() == 3_000


def test_a_deadline_that_a_sign_of_life_moves_in_time_does_not_count():
    timers = Timers()
    for member, at_ms in (("m0", 6_000), ("m1", 7_000), ("", 9_000)):
        timers.schedule(0, "g", member, at_ms)
    timers.schedule(RETENTION, "g", "", 1_000)
    assert timers.next_of_others_ms({"m0": 3_000, "m1": 3_000}) == 9_000
    assert timers.next_of_others_ms({"m0": 3_000, "m1": 7_000}) == 7_000
    assert timers.next_of_others_ms({"m1": 3_000}) == 6_000
    timers.cancel(0, "g", "")
    assert timers.next_of_others_ms({"m0": 3_000, "m1": 3_000}) is None
