"""The fixtures ``kafka_broker`` and ``kafka_broker_factory``, for tests with real clients.

    def test_two_consumers_share_the_partitions(kafka_broker):
        broker = kafka_broker(topics={"orders": 4})
        first = KafkaConsumer("orders", bootstrap_servers=broker.address, group_id="g")
        ...
        assert measure(broker.trace("g"), default_registry())["moved_partitions"] == 2

    @pytest.fixture(scope="session")
    def broker(kafka_broker_factory):
        return kafka_broker_factory(topics={"orders": 4})

The fixtures need the extra ``kafka``. Loading this module does not.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
    yield from _starter()


@pytest.fixture(scope="session")
def kafka_broker_factory() -> Iterator[Callable[..., "BackgroundBroker"]]:
    """Return the same function as `kafka_broker`, for fixtures of any scope.

    Brokers stop at the end of the session, or at their ``stop()``. Each worker of pytest-xdist has its own.
    """
    yield from _starter()


def _starter() -> Iterator[Callable[..., "BackgroundBroker"]]:
    from rebalance_kafka.broker.background import BackgroundBroker

    with ExitStack() as started:

        def start(topics: dict[str, int] | None = None, **options: Any) -> BackgroundBroker:
            settings = {"group.initial.rebalance.delay.ms": 0, **options.pop("settings", {})}
            return started.enter_context(BackgroundBroker(topics, settings=settings, **options))

        yield start
