"""The fluid load against integration in small steps, and what holds of it whatever happens."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.model import TopicPartition
from rebalance_lab.simulation.process import workers as workers_module
from rebalance_lab.simulation.process.load import Load
from tests.examples import scaled
from tests.rebalance_lab.simulation.test_load import position_of

RATES = [0.0, 30.0, 400.0, 1_000.0, 2_500.0]


def partitions_of(count):
    return [TopicPartition("t", number) for number in range(count)]


def load_of(rates):
    load = Load()
    load.set_rates("t", rates, now_ms=0)
    return load


class SmallSteps:
    """The same load in small steps: what the exact one is judged by."""

    def __init__(self, rates, process, step_ms):
        self.rates, self.process, self.step_ms = list(rates), dict(process), step_ms
        self.produced = [0.0] * len(rates)
        self.position = [0.0] * len(rates)
        self.high = [0.0] * len(rates)
        self.owner = [None] * len(rates)
        self.working = dict.fromkeys(process, True)
        self.lag_seconds = self.duplicates = self.lag_max = 0.0

    def lag(self):
        return sum(self.produced) - sum(self.high)

    def start(self, worker, p, offset):
        self.owner[p], self.position[p] = worker, float(offset)
        self.high[p] = max(self.high[p], self.position[p])

    def run(self, duration_ms):
        seconds = self.step_ms / 1_000
        for _ in range(round(duration_ms / self.step_ms)):
            for p, rate in enumerate(self.rates):
                self.produced[p] += rate * seconds
            for worker, process in self.process.items():
                if self.working[worker]:
                    self.work(worker, process * seconds)
            lag = self.lag()
            self.lag_max = max(self.lag_max, lag)
            self.lag_seconds += lag * seconds

    def work(self, worker, budget):
        """Even shares of what is left among those that have something, until nothing is left to share."""
        mine = [p for p, owner in enumerate(self.owner) if owner == worker]
        mine.sort(key=lambda p: self.produced[p] - self.position[p])
        for i, p in enumerate(mine):
            take = min(self.produced[p] - self.position[p], budget / (len(mine) - i))
            budget -= take
            again = min(max(self.high[p] - self.position[p], 0.0), take)
            self.duplicates += again
            self.position[p] += take
            self.high[p] = max(self.high[p], self.position[p])


def carry_out(actions, rates, process, step_ms):
    """The same changes to both; the exact one is measured after each."""
    partitions = partitions_of(len(rates))
    exact, steps = load_of(rates), SmallSteps(rates, process, step_ms)
    workers = {name: exact.add_worker(name, rate) for name, rate in process.items()}
    now_ms, measures = 0, []
    for kind, name, p, amount, new_rates, duration_ms in actions:
        if kind == "take":
            offset = max(0, int(steps.high[p]) - amount)
            exact.start(workers[name], {partitions[p]: offset}, now_ms=now_ms)
            steps.start(name, p, offset)
        elif kind == "skip":
            offset = exact.end_offset(partitions[p], now_ms=now_ms)
            exact.start(workers[name], {partitions[p]: offset}, now_ms=now_ms)
            steps.start(name, p, min(offset, steps.produced[p]))
        elif kind == "drop":
            exact.release(workers[name], partitions, now_ms=now_ms)
            steps.owner = [None if owner == name else owner for owner in steps.owner]
        elif kind == "rates":
            steps.rates = list(new_rates)
            exact.set_rates("t", new_rates, now_ms=now_ms)
        else:
            steps.working[name] = not steps.working[name]
            exact.set_working(workers[name], steps.working[name], now_ms=now_ms)
        now_ms += duration_ms
        steps.run(duration_ms)
        measures.append(exact.measure(now_ms=now_ms))
        of_nobody = sum(steps.produced[p] - steps.high[p] for p, owner in enumerate(steps.owner) if not owner)
        of_clients = sum(measures[-1].by_client.values())
        assert of_clients + of_nobody == pytest.approx(measures[-1].lag, abs=10 + 2 * len(actions))
    return measures, steps


def check_agreement(measures, steps, tolerance):
    assert measures[-1].lag == pytest.approx(steps.lag(), abs=tolerance)
    assert sum(m.duplicates for m in measures) == pytest.approx(steps.duplicates, abs=tolerance)
    assert max(m.max_lag for m in measures) == pytest.approx(steps.lag_max, abs=tolerance)
    integral = sum(m.lag_record_seconds for m in measures)
    assert integral == pytest.approx(steps.lag_seconds, rel=0.01, abs=tolerance / 4)


three_rates = st.lists(st.sampled_from(RATES), min_size=3, max_size=3)
action = st.tuples(
    st.sampled_from(["take", "take", "take", "skip", "drop", "rates", "pause"]),
    st.sampled_from("ab"),
    st.integers(0, 2),
    st.integers(0, 400),
    three_rates,
    st.integers(1, 300),
)


@settings(max_examples=scaled(60))
@given(
    st.lists(action, min_size=2, max_size=8),
    three_rates,
    st.sampled_from([200.0, 2_000.0, inf]),
    st.sampled_from([500.0, 5_000.0]),
)
def test_whatever_changes_the_load_agrees_with_integration_in_small_steps(actions, rates, a, b):
    measures, steps = carry_out(actions, rates, {"a": a, "b": b}, step_ms=0.5)
    check_agreement(measures, steps, tolerance=10 + 2 * len(actions))


def level_of(rates, capacity):
    """The even share that those get who do not keep up: found by halving, not by sorting."""
    low, high = 0.0, max(rates)
    for _ in range(200):
        level = (low + high) / 2
        if sum(min(rate, level) for rate in rates) < capacity:
            low = level
        else:
            high = level
    return high


@given(st.lists(st.floats(0, 10_000), min_size=1, max_size=8), st.floats(1, 30_000))
def test_what_a_worker_can_do_is_shared_out_max_min_fair(rates, capacity):
    load, partitions = load_of(rates), partitions_of(len(rates))
    worker = load.add_worker("c", capacity)
    load.start(worker, dict.fromkeys(partitions, 0), now_ms=0)
    level = level_of(rates, capacity)
    handled = [position_of(load, worker, partition, now_ms=100_000) for partition in partitions]
    assert handled == pytest.approx([100 * min(rate, level) for rate in rates], abs=1.01)
    lag = load.measure(now_ms=100_000).lag
    assert lag == pytest.approx(100 * max(0.0, sum(rates) - capacity), rel=1e-9, abs=1e-3)


@given(
    st.lists(
        st.tuples(st.sampled_from(["rates", "pause", "other", "look"]), three_rates, st.integers(1, 3_000)),
        max_size=12,
    ),
    st.sampled_from([40.0, 700.0, 3_000.0, inf]),
)
def test_nothing_is_handled_twice_while_one_worker_keeps_a_partition(changes, capacity):
    load, (kept, *others) = load_of([1_000.0, 30.0, 400.0]), partitions_of(3)
    worker = load.add_worker("c", capacity)
    load.start(worker, {kept: 0}, now_ms=0)
    now_ms = before = 0
    for kind, rates, duration_ms in changes:
        now_ms += duration_ms
        if kind == "rates":
            load.set_rates("t", rates, now_ms=now_ms)
        elif kind == "pause":
            load.set_working(worker, not worker.working, now_ms=now_ms)
        elif kind == "other":
            held = [p for p in others if position_of(load, worker, p, now_ms=now_ms) is not None]
            if held:
                load.release(worker, held, now_ms=now_ms)
            else:
                ends = {p: load.end_offset(p, now_ms=now_ms) for p in others}
                load.start(worker, ends, now_ms=now_ms)
        position = position_of(load, worker, kept, now_ms=now_ms)
        assert before <= position <= load.end_offset(kept, now_ms=now_ms)
        before = position
    assert load.measure(now_ms=now_ms).duplicates == 0


@given(st.lists(st.integers(1, 4_000), min_size=1, max_size=10), st.sampled_from([33.3, 1_234.5, inf]))
def test_a_handover_at_the_committed_offset_repeats_nothing_and_loses_nothing(waits, capacity):
    load, (partition,) = load_of([777.7]), partitions_of(1)
    workers = [load.add_worker(name, capacity) for name in "ab"]
    load.start(workers[0], {partition: 0}, now_ms=0)
    now_ms = 0
    for n, wait_ms in enumerate(waits):
        now_ms += wait_ms
        offset = position_of(load, workers[n % 2], partition, now_ms=now_ms)
        load.release(workers[n % 2], [partition], now_ms=now_ms)
        load.start(workers[(n + 1) % 2], {partition: offset}, now_ms=now_ms)
    measured = load.measure(now_ms=now_ms)
    assert measured.duplicates == 0
    position = position_of(load, workers[len(waits) % 2], partition, now_ms=now_ms)
    assert position + measured.lag == pytest.approx(777.7 * now_ms / 1_000, abs=1.001)


def change(load, workers, kind, name, p, amount, rates, now_ms):
    if kind in ("take", "skip"):
        load.start(workers[name], {partitions_of(3)[p]: amount}, now_ms=now_ms)
    elif kind == "drop":
        load.release(workers[name], partitions_of(3), now_ms=now_ms)
    elif kind == "rates":
        load.set_rates("t", rates, now_ms=now_ms)
    else:
        load.set_working(workers[name], not workers[name].working, now_ms=now_ms)


def run(actions, rates, capacities, look, looks):
    """Carry out changes, and look at the load at some times between them."""
    load, now_ms, left = load_of(rates), 0, list(looks)
    workers = {name: load.add_worker(name, capacity) for name, capacity in zip("ab", capacities, strict=True)}
    for kind, name, p, amount, new_rates, duration_ms in actions:
        change(load, workers, kind, name, p, amount, new_rates, now_ms)
        now_ms += duration_ms
        while left and left[0] <= now_ms:
            look_ms = left.pop(0)
            if look_ms > now_ms - duration_ms:
                look(load, workers, look_ms)
    return load, workers, now_ms


def state(load, workers, now_ms):
    """Return the exact positions, ends, lags and work."""
    positions = [position_of(load, w, p, now_ms=now_ms) for w in workers for p in partitions_of(3)]
    return (
        positions,
        load.seen(load.partitions(), now_ms=now_ms),
        [load.work(w, now_ms=now_ms) for w in workers],
    )


changes = st.lists(action, min_size=1, max_size=8)
capacities = st.sampled_from([(900.0, 3_000.0), (77.7, inf), (1_234.5, 333.3)])
look_times = st.lists(st.integers(0, 2_400), min_size=1, max_size=12).map(sorted)


@settings(max_examples=scaled(100))
@given(changes, three_rates, capacities, look_times)
def test_questions_change_nothing(actions, rates, capacities, looks):
    """The load after one step is that after many, to the last bit."""

    def ask(load, workers, now_ms):
        state(load, workers.values(), now_ms)
        for worker in workers.values():
            for partition in partitions_of(3):
                position_of(load, worker, partition, now_ms=now_ms, ahead_ms=70)

    ends = [run(actions, rates, capacities, ask, times) for times in ([], looks)]
    assert len({repr(load.measure(now_ms=now_ms)) for load, _, now_ms in ends}) == 1
    assert len({repr(state(load, workers.values(), now_ms)) for load, workers, now_ms in ends}) == 1


@settings(max_examples=scaled(60))
@given(changes, three_rates, capacities, look_times)
def test_measuring_more_often_changes_no_position_and_no_total(actions, rates, capacities, looks):
    def outcome(looks):
        measures = []
        load, workers, now_ms = run(
            actions,
            rates,
            capacities,
            lambda load, _, at_ms: measures.append(load.measure(now_ms=at_ms)),
            looks,
        )
        measures.append(load.measure(now_ms=now_ms))
        totals = (
            max(m.max_lag for m in measures),
            sum(m.duplicates for m in measures),
            sum(m.lag_record_seconds for m in measures),
        )
        exact = measures[-1].lag, measures[-1].by_client, state(load, workers.values(), now_ms)
        return repr(exact), totals

    (exact, totals), (exact_without, totals_without) = outcome(looks), outcome([])
    assert exact == exact_without
    assert totals == pytest.approx(totals_without, rel=1e-6, abs=1e-2)


takeovers = st.lists(
    st.tuples(st.floats(0, 500), st.integers(0, 900), st.integers(0, 400)), min_size=3, max_size=9
)


@settings(max_examples=scaled(200))
@given(takeovers, st.floats(1.05, 3))
def test_a_takeover_of_many_partitions_agrees_with_small_steps_as_lists_and_as_arrays(takeovers, headroom):
    """Each has a rate, a backlog and records that are handled again, which end at times of their own."""
    rates, waiting, again = zip(*takeovers, strict=True)
    capacity = headroom * sum(rates) + 100
    steps = SmallSteps(rates, {"b": capacity}, 1)
    partitions = partitions_of(len(rates))

    def measures(many):
        load = Load()
        load.add_topic("t", [400] * len(rates), now_ms=0)
        first, second = load.add_worker("a", inf), load.add_worker("b", capacity)
        load.start(first, dict.fromkeys(partitions, 0), now_ms=0)
        load.release(first, partitions, now_ms=0)
        load.set_rates("t", [float(records) for records in waiting], now_ms=0)
        load.set_rates("t", rates, now_ms=1_000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers_module, "MANY", many)
            load.start(second, {p: 400 - n for p, n in zip(partitions, again, strict=True)}, now_ms=1_000)
        return [
            (load.measure(now_ms=at_ms), load.work(second, now_ms=at_ms))
            for at_ms in range(1_000, 4_001, 250)
        ]

    steps.produced = [400.0 + records for records in waiting]
    steps.high = [400.0] * len(rates)
    steps.position = [400.0 - n for n in again]
    steps.owner = ["b"] * len(rates)
    assert repr(measures(0)) == repr(measures(100))
    _, *later = measures(100)
    duplicates = 0.0
    for measured, work in later:
        steps.run(250)
        duplicates += measured.duplicates
        assert measured.lag == pytest.approx(steps.lag(), abs=5)
        assert duplicates == pytest.approx(steps.duplicates, abs=5)
        assert work.waiting == pytest.approx(sum(steps.produced) - sum(steps.position), abs=5)
