"""The fixture ``kafka_broker``, for unit tests with real clients.

    def test_two_consumers_share_the_partitions(kafka_broker):
        broker = kafka_broker(topics={"orders": 4})
        first = KafkaConsumer("orders", bootstrap_servers=broker.address, group_id="g")
        ...
        assert measure(broker.trace("g"), default_registry())["moved_partitions"] == 2

The fixture needs the extra ``kafka``. Loading this module does not.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rebalance_kafka.broker.background import BackgroundBroker


@pytest.fixture
def kafka_broker() -> Iterator[Callable[..., "BackgroundBroker"]]:
    """Return a function that starts a broker, with the arguments of `EmbeddedBroker`.

    Brokers stop at the end of the test. Groups form without the initial delay of three seconds, unless
    ``settings`` has one.
    """
    from rebalance_kafka.broker.background import BackgroundBroker

    started: list[BackgroundBroker] = []

    def start(topics: dict[str, int] | None = None, **options: Any) -> BackgroundBroker:
        settings = {"group.initial.rebalance.delay.ms": 0, **options.pop("settings", {})}
        broker = BackgroundBroker(topics, settings=settings, **options)
        broker.start()
        started.append(broker)
        return broker

    yield start
    for broker in started:
        broker.stop()
