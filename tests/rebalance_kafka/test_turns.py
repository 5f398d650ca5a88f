"""The order in which connections handle requests."""

import asyncio

from rebalance_kafka.broker.turns import Turns


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
