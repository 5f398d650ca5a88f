"""Several workers on a partition: duplicates, and the worker that goes on."""

import pytest

from coordinator_core.model import TopicPartition
from rebalance_lab.simulation.process.load import Load
from rebalance_uncoordinated.shared_load import SharedLoad

P0, P1 = (TopicPartition("t", n) for n in range(2))


@pytest.fixture
def load():
    """A shared load with a partition of 100 records/s and one of 10 records/s."""
    load = SharedLoad()
    load.set_rates("t", [100.0, 10.0], now_ms=0)
    return load


def two_workers(load):
    """Two workers; the second one starts on the first partition of the first one after 10 s."""
    first, second = load.add_worker("a", 300.0), load.add_worker("b", 300.0)
    load.start(first, {P0: 0, P1: 0}, now_ms=0)
    load.start(second, {P0: 1_000}, now_ms=10_000)
    return first, second


def test_what_is_produced_while_two_work_is_handled_twice(load):
    first, second = two_workers(load)
    load.release(first, [P0], now_ms=15_000)
    measured = load.measure(now_ms=20_000)
    assert (measured.duplicates, measured.lag) == (500, 0)
    assert load.positions(second, [P0], now_ms=20_000) == {P0: 2_000}
    assert load.positions(first, [P0, P1], now_ms=20_000) == {P1: 200}


def test_duplicates_are_counted_before_the_sharing_ends(load):
    two_workers(load)
    assert [load.measure(now_ms=s * 1_000).duplicates for s in (10, 12, 15)] == [0, 200, 300]


def test_a_worker_that_stands_still_handles_nothing_twice(load):
    """It stands still from 11 s to 14 s: of the 5 s together, 2 s count."""
    first, _ = two_workers(load)
    load.set_working(first, False, now_ms=11_000)
    load.set_working(first, True, now_ms=14_000)
    load.release(first, [P0], now_ms=15_000)
    assert load.measure(now_ms=20_000).duplicates == 200


def test_a_worker_that_stands_still_when_another_one_starts_handles_nothing_twice_until_it_continues(load):
    first, second = load.add_worker("a", 300.0), load.add_worker("b", 300.0)
    load.start(first, {P0: 0}, now_ms=0)
    load.set_working(first, False, now_ms=5_000)
    load.start(second, {P0: 500}, now_ms=10_000)
    load.set_working(first, True, now_ms=12_000)
    load.remove_worker(first, now_ms=13_000)
    assert load.measure(now_ms=20_000).duplicates == 100


def test_each_of_three_workers_but_one_handles_everything_again(load):
    _, second = two_workers(load)
    third = load.add_worker("c", 300.0)
    load.start(third, {P0: 2_000}, now_ms=20_000)
    load.remove_worker(second, now_ms=30_000)
    assert load.measure(now_ms=30_000).duplicates == 1_000 + 2 * 1_000


def test_an_earlier_worker_goes_on_alone_if_the_later_one_gives_up(load):
    first, second = two_workers(load)
    load.release(second, [P0], now_ms=15_000)
    measured = load.measure(now_ms=20_000)
    assert (measured.duplicates, measured.lag) == (500, 0)
    assert load.positions(first, [P0], now_ms=20_000) == {P0: 2_000}
    assert load.positions(second, [P0], now_ms=20_000) == {}


def test_the_last_of_the_earlier_workers_goes_on(load):
    first, second = two_workers(load)
    third = load.add_worker("c", 300.0)
    load.start(third, {P0: 2_000}, now_ms=20_000)
    load.remove_worker(third, now_ms=20_000)
    assert load.positions(second, [P0], now_ms=25_000) == {P0: 2_500}
    load.remove_worker(second, now_ms=25_000)
    assert load.positions(first, [P0], now_ms=30_000) == {P0: 3_000}


def test_a_topic_that_two_work_on_is_deleted(load):
    first, _ = two_workers(load)
    load.remove_topic("t", now_ms=12_000)
    assert load.measure(now_ms=15_000).duplicates == 200
    load.release(first, [P0], now_ms=20_000)
    assert load.measure(now_ms=20_000).duplicates == 0


def test_a_worker_that_starts_again_is_the_last_one(load):
    first, second = two_workers(load)
    load.start(first, {P0: 2_000}, now_ms=20_000)
    load.release(second, [P0], now_ms=30_000)
    load.release(first, [P0], now_ms=40_000)
    assert load.measure(now_ms=40_000).duplicates == 1_000 + 1_000


def test_workers_that_know_of_each_other_do_not_share():
    load = Load()
    load.set_rates("t", [100.0, 10.0], now_ms=0)
    first, second = two_workers(load)
    load.release(second, [P0], now_ms=15_000)
    measured = load.measure(now_ms=20_000)
    assert (measured.duplicates, measured.lag) == (0, 500)
    assert load.positions(first, [P0], now_ms=20_000) == {}
