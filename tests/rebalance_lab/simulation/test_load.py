"""The fluid load against closed forms."""

import pytest

from coordinator_core.model import TopicPartition
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.host import SimulatedHost

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))


def load_of(*rates):
    load = Load()
    load.set_rates("t", rates, now_ms=0)
    return load


def position_of(load, worker, partition, **times):
    """The offset to commit, or None."""
    return load.positions(worker, [partition], **times).get(partition)


def test_a_backlog_empties_at_the_time_of_the_closed_form():
    """1,000 records behind after 10 s; at 300/s against 100/s it takes 5 s to catch up."""
    load = load_of(100.0)
    worker = load.add_worker("c", 300.0)
    load.measure(now_ms=10_000)
    load.start(worker, {P0: 0}, now_ms=10_000)
    half = load.measure(now_ms=12_500)
    assert half.lag == pytest.approx(500)
    rest = load.measure(now_ms=60_000)
    assert rest.lag == 0
    assert rest.max_lag == pytest.approx(500)
    assert half.lag_record_seconds + rest.lag_record_seconds == pytest.approx(1_000 * 5 / 2)


def test_records_above_the_committed_offset_are_handled_again_after_a_takeover():
    load = load_of(100.0)
    first, second = load.add_worker("a", 500.0), load.add_worker("b", 500.0)
    load.start(first, {P0: 0}, now_ms=0)
    load.remove_worker(first, now_ms=10_000)
    load.start(second, {P0: 400}, now_ms=10_000)
    measured = load.measure(now_ms=60_000)
    assert measured.duplicates == pytest.approx(600)
    assert measured.lag == 0
    # 600 again take 1.2 s; by then 120 wait, which the 400/s to spare clear in 0.3 s.
    assert measured.max_lag == pytest.approx(120)
    assert measured.lag_record_seconds == pytest.approx(120 * 1.2 / 2 + 120 * 0.3 / 2)


def test_a_worker_that_starts_behind_the_last_record_waits_for_none():
    load = load_of(100.0)
    worker = load.add_worker("a", 500.0)
    load.start(worker, {P0: 5_000}, now_ms=10_000)
    assert position_of(load, worker, P0, now_ms=10_000) == 1_000
    assert position_of(load, worker, P0, now_ms=11_000) == 1_100
    assert load.measure(now_ms=11_000).lag == 0


def test_a_pause_stops_work_and_keeps_the_position():
    load = load_of(100.0)
    worker = load.add_worker("c", 200.0)
    load.start(worker, {P0: 0}, now_ms=0)
    load.set_working(worker, False, now_ms=5_000)
    assert position_of(load, worker, P0, now_ms=9_000) == 500
    load.set_working(worker, True, now_ms=10_000)
    assert load.measure(now_ms=15_000).max_lag == pytest.approx(500)
    assert position_of(load, worker, P0, now_ms=15_000) == 1_500


def test_a_partition_that_appears_is_produced_to_from_then_on():
    load = load_of(100.0)
    load.set_rates("t", (50.0, 50.0), now_ms=10_000)
    assert load.end_offset(P0, now_ms=20_000) == 1_500
    assert load.end_offset(P1, now_ms=20_000) == 500
    assert load.end_offset(P2, now_ms=20_000) is None


def test_the_cost_does_not_grow_with_the_record_rate():
    """Breakpoints depend on changes only, whatever the rates."""
    pops = []
    for scale in (1.0, 1e6):
        load = load_of(100.0 * scale, 50.0 * scale)
        worker = load.add_worker("c", 400.0 * scale)
        load.start(worker, {P0: 0, P1: 0}, now_ms=30_000)
        load.measure(now_ms=24 * 3_600_000)
        pops.append(load._order)
    assert pops[0] == pops[1] <= 4


def test_a_record_that_was_under_way_when_its_worker_stopped_is_not_handled():
    load = load_of(0.0)
    load.set_rates("t", (100.0,), now_ms=0)
    load.set_rates("t", (0.0,), now_ms=1_000)
    worker = load.add_worker("c", 3.0)
    load.start(worker, {P0: 0}, now_ms=1_000)
    assert load.measure(now_ms=1_500).lag == pytest.approx(98.5)
    load.release(worker, [P0], now_ms=1_500)
    assert load.measure(now_ms=1_500).lag == 99
    load.start(worker, {P0: 1}, now_ms=1_500)
    assert load.measure(now_ms=9_000).duplicates == 0


def test_lag_is_that_of_the_clients_that_work_and_what_nobody_works_on_belongs_to_none():
    """Two processes of one name are one client. One that is removed is none any more."""
    load = load_of(100.0, 100.0, 100.0)
    slow = [load.add_worker("slow", 40.0) for _ in range(2)]
    for worker, partition in zip(slow, (P0, P1), strict=True):
        load.start(worker, {partition: 0}, now_ms=0)
    measured = load.measure(now_ms=10_000)
    assert (measured.by_client, measured.lag) == ({"slow": pytest.approx(1_200)}, pytest.approx(2_200))
    load.remove_worker(slow[0], now_ms=10_000)
    measured = load.measure(now_ms=20_000)
    assert (measured.by_client, measured.lag) == ({"slow": pytest.approx(1_200)}, pytest.approx(4_800))


def test_records_that_wait_at_the_start_are_lag_until_somebody_handles_them():
    """400 records at 200/s more than come in: gone after 2 s; those of the other partition stay."""
    load = Load()
    load.add_topic("t", (400, 50), now_ms=0)
    worker = load.add_worker("c", 300.0)
    load.start(worker, {P0: 0}, now_ms=0)
    load.set_rates("t", (100.0, 0.0), now_ms=0)
    assert position_of(load, worker, P0, now_ms=1_000) == 300
    measured = load.measure(now_ms=10_000)
    assert (measured.lag, measured.max_lag) == (50, 450)
    assert measured.lag_record_seconds == pytest.approx(400 * 2 / 2 + 50 * 10)
    assert load.end_offset(P0, now_ms=10_000) == 1_400


def test_records_of_a_topic_that_is_removed_are_no_lag():
    load = load_of(100.0, 200.0)
    load.set_rates("other", (10.0,), now_ms=0)
    worker = load.add_worker("c", 50.0)
    load.start(worker, {P0: 0}, now_ms=0)
    assert load.measure(now_ms=10_000).lag == pytest.approx(500 + 2_000 + 100)
    load.remove_topic("t", now_ms=10_000)
    measured = load.measure(now_ms=20_000)
    assert (measured.lag, measured.max_lag) == (pytest.approx(200), pytest.approx(2_600))
    assert measured.lag_record_seconds == pytest.approx(1_500)
    assert measured.by_client == {}
    assert load.end_offset(P0, now_ms=20_000) is None
    assert position_of(load, worker, P0, now_ms=20_000) is None
    load.start(worker, {P0: 7}, now_ms=20_000)
    load.release(worker, [P0], now_ms=20_000)
    assert load.measure(now_ms=21_000).by_client == {}


def test_an_assignor_sees_the_rates_and_the_lags_of_all_partitions():
    clock, load = VirtualClock(), load_of(100.0, 3.0)
    load.start(load.add_worker("a", 500.0), {P1: 0}, now_ms=0)
    clock.run(10_000)
    with_lags, without = (SimulatedHost(clock, load, 500.0, lags=lags) for lags in (True, False))
    assert {tp: (each.rate, each.lag) for tp, each in with_lags.loads().items()} == {
        P0: (100, pytest.approx(1_000)),
        P1: (3, pytest.approx(0)),
    }
    assert {tp: (each.rate, each.lag) for tp, each in without.loads().items()} == {P0: (100, 0), P1: (3, 0)}
