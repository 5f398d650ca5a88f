"""The order in which connections handle requests."""

import asyncio

import pytest

from rebalance_kafka.broker.turns import FIRST_SECONDS, ROUND_SECONDS, TURN_SECONDS, Turns


class Clock:
    """An event loop whose time passes while requests are handled only."""

    def __init__(self):
        self.now, self.rounds = 0.0, []

    def time(self):
        return self.now

    def call_soon(self, callback):
        self.rounds.append(callback)

    def one_round(self):
        (callback,), self.rounds = self.rounds, []
        callback()


class Busy:
    """A connection with requests for so many turns."""

    def __init__(self, name, clock, order, requests):
        self.name, self.clock, self.order, self.left = name, clock, order, requests
        self.seconds = FIRST_SECONDS

    def take_turn(self, until):
        assert until == pytest.approx(self.clock.now + self.seconds)
        self.clock.now, self.seconds = until, TURN_SECONDS
        self.order.append(self.name)
        self.left -= 1
        return self.left > 0


@pytest.fixture
def clock():
    return Clock()


def test_a_connection_that_has_just_received_comes_before_those_that_had_a_turn(clock):
    order, served = [], Turns(clock)
    for number in range(100):
        served.add(Busy(number, clock, order, 1_000))
    while 99 not in order:
        clock.one_round()
    served.add(Busy("new", clock, order, 1))
    before = clock.now
    order.clear()
    clock.one_round()
    assert order[0] == "new"
    assert clock.now - before <= ROUND_SECONDS + TURN_SECONDS


def test_a_connection_waits_for_the_first_turns_of_a_crowd_only(clock):
    order, served = [], Turns(clock)
    crowd = 100
    for number in range(crowd):
        served.add(Busy(number, clock, order, 1_000))
    served.add(Busy("last", clock, order, 1))
    while "last" not in order:
        clock.one_round()
    assert clock.now <= 2 * crowd * FIRST_SECONDS


def test_busy_connections_take_turns(clock):
    order, served = [], Turns(clock)
    for name in "abc":
        served.add(Busy(name, clock, order, 4))
    while clock.rounds:
        clock.one_round()
    assert order == list("abc" * 4)


def test_busy_connections_have_a_turn_in_each_round_with_many_new_ones(clock):
    order, served = [], Turns(clock)
    served.add(Busy("busy", clock, order, 1_000))
    clock.one_round()
    order.clear()
    for number in range(1_000):
        served.add(Busy(number, clock, order, 1))
    clock.one_round()
    assert order[-1] == "busy"
    assert order.count("busy") == 1


def test_a_connection_that_fails_does_not_stop_the_others():
    async def work():
        order, served = [], Turns(asyncio.get_running_loop())

        class Failing:
            def take_turn(self, until):
                raise ValueError("mine")

        class Fine:
            def take_turn(self, until):
                order.append("fine")
                return False

        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: order.append(context["exception"])
        )
        served.add(Failing())
        served.add(Fine())
        await asyncio.sleep(0.01)
        return order

    first, second = asyncio.run(work())
    assert str(first) == "mine"
    assert second == "fine"
