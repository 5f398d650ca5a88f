from itertools import pairwise

import pytest

from rebalance_lab.scenarios.scenario import Network as Conditions
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.network import Network


def network_of(seed=1, **conditions):
    clock = VirtualClock()
    return clock, Network(clock, Conditions(**conditions), f"seed {seed}")


def send(clock, connection, count, every_ms=0):
    """Messages 0 .. count - 1 to the broker; returns (arrival, message) pairs as they come in."""
    arrived = []

    def one(number):
        connection.to_broker(lambda: arrived.append((clock.now_ms, number)))

    for number in range(count):
        clock.at(number * every_ms, lambda n=number: one(n))
    while clock.next_ms() is not None:
        clock.step()
    return arrived


def test_latency_lies_in_its_range_and_reaches_both_ends():
    clock, network = network_of(latency_ms_min=3, latency_ms_max=6)
    delays = [at - 100 * n for at, n in send(clock, network.connect("c"), 200, every_ms=100)]
    assert set(delays) == {3, 4, 5, 6}


@pytest.mark.parametrize("seed", range(5))
def test_a_connection_delivers_in_order(seed):
    clock, network = network_of(seed, latency_ms_min=1, latency_ms_max=500, duplicate=0.3)
    arrived = send(clock, network.connect("c"), 300, every_ms=7)
    assert [n for _, n in arrived] == sorted(n for _, n in arrived)
    assert [at for at, _ in arrived] == sorted(at for at, _ in arrived)


def in_turn(connection, parked, seen):
    """Let a broker take requests that it answers when ``parked`` is asked to."""
    return lambda name: connection.take_in_turn(
        lambda reply: (seen.append(name), parked.append(reply)), lambda response: seen.append(response)
    )


def run_all(clock):
    while clock.next_ms() is not None:
        clock.step()


def test_a_broker_takes_the_next_request_of_a_connection_when_the_one_before_is_answered():
    clock, network = network_of()
    parked, seen = [], []
    take = in_turn(network.connect("c"), parked, seen)
    for name in ("sync", "heartbeat", "leave"):
        take(name)
    other = in_turn(network.connect("d"), parked, seen)
    other("sync of d")
    assert seen == ["sync", "sync of d"]
    parked[0]("synced")
    run_all(clock)
    assert seen[2:] == ["synced", "heartbeat"]
    parked[2]("beaten")
    run_all(clock)
    assert seen[4:] == ["beaten", "leave"]


def test_requests_that_wait_are_lost_when_the_connection_is_closed():
    clock, network = network_of()
    parked, seen = [], []
    connection = network.connect("c")
    take = in_turn(connection, parked, seen)
    take("sync")
    take("leave")
    connection.close()
    parked[0]("synced")
    run_all(clock)
    assert seen == ["sync", "synced"]


def test_loss_takes_about_its_share_and_nothing_twice():
    clock, network = network_of(loss=0.25)
    arrived = [n for _, n in send(clock, network.connect("c"), 2_000)]
    assert len(arrived) == len(set(arrived))
    assert 1_400 < len(arrived) < 1_600


def test_duplication_delivers_about_its_share_twice_and_loses_nothing():
    clock, network = network_of(duplicate=0.25)
    arrived = [n for _, n in send(clock, network.connect("c"), 2_000)]
    assert set(arrived) == set(range(2_000))
    assert 2_400 < len(arrived) < 2_600


def test_equal_seeds_give_equal_deliveries():
    """C-84: same seed, same log."""
    runs = []
    for seed in (5, 5, 6):
        clock, network = network_of(seed, latency_ms_max=90, loss=0.1, duplicate=0.1)
        runs.append(send(clock, network.connect("c"), 100, every_ms=3))
    assert runs[0] == runs[1] != runs[2]


def test_a_cut_swallows_what_is_under_way_and_what_is_sent_during_it():
    clock, network = network_of(latency_ms_min=10, latency_ms_max=10)
    connection, arrived = network.connect("c"), []
    for at_ms in (0, 5, 20):
        clock.at(at_ms, lambda t=at_ms: connection.to_client(lambda: arrived.append(t)))
    clock.at(4, lambda: network.cut_off.add("c"))
    clock.at(18, lambda: network.cut_off.discard("c"))
    while clock.next_ms() is not None:
        clock.step()
    assert arrived == [20]


def test_a_closed_connection_delivers_nothing_more():
    clock, network = network_of(latency_ms_min=10, latency_ms_max=10)
    connection = network.connect("c")
    clock.at(5, connection.close)
    assert send(clock, connection, 3) == []


def test_what_a_connection_loses_in_calm_is_nothing():
    clock, network = network_of(loss=0.5, duplicate=0.5, latency_ms_min=2, latency_ms_max=9)
    network.calm()
    assert not network.has_faults
    arrived = send(clock, network.connect("c"), 300, every_ms=50)
    assert [n for _, n in arrived] == list(range(300))
    assert {at - 50 * n for at, n in arrived} == set(range(2, 10))


def test_a_message_that_is_delivered_twice_may_take_longer_the_second_time():
    clock, network = network_of(duplicate=0.9, latency_ms_min=1, latency_ms_max=50)
    arrived = send(clock, network.connect("c"), 100, every_ms=1_000)
    assert any(first[1] == second[1] and first[0] < second[0] for first, second in pairwise(arrived))


def test_the_two_directions_and_other_connections_do_not_hold_each_other_up():
    clock, network = network_of(latency_ms_min=1, latency_ms_max=100)
    one, other = network.connect("c"), network.connect("c")
    arrived = {"there": [], "back": [], "other": []}
    for n in range(100):
        one.to_broker(lambda n=n: arrived["there"].append(clock.now_ms))
    for way, carry in (("back", one.to_client), ("other", other.to_broker)):
        carry(lambda way=way: arrived[way].append(clock.now_ms))
    while clock.next_ms() is not None:
        clock.step()
    assert len(arrived["there"]) == 100
    assert max(arrived["back"] + arrived["other"]) < max(arrived["there"])
