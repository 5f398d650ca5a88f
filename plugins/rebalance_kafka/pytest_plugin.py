"""The fixture ``kafka_broker``: real clients in a unit test.

    def test_two_consumers_share_the_partitions(kafka_broker):
        broker = kafka_broker(topics={"orders": 4})
        first = KafkaConsumer("orders", bootstrap_servers=broker.address, group_id="g")
        ...
        assert measure(broker.trace("g"), default_registry())["moved_partitions"] == 2

Needs the extra ``kafka`` when it is used, not before.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rebalance_kafka.broker.background import BackgroundBroker


@pytest.fixture
def kafka_broker() -> Iterator[Callable[..., "BackgroundBroker"]]:
    """Starts brokers with `EmbeddedBroker`'s arguments; they stop when the test ends.

    Groups form without the initial delay of three seconds, unless ``settings`` say otherwise.
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
