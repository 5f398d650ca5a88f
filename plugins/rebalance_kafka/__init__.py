"""The wire: real Kafka clients on an embedded broker, our client on a real one, and what ships between them.

async with EmbeddedBroker(topics={"orders": 12}) as broker:
    ...  # any Kafka client, with bootstrap.servers = broker.address
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_kafka.adapters import as_aiokafka, as_kafka_python
    from rebalance_kafka.broker.background import BackgroundBroker
    from rebalance_kafka.broker.embedded import EmbeddedBroker
    from rebalance_kafka.consumer.consumer import Consumer

__all__ = ["BackgroundBroker", "Consumer", "EmbeddedBroker", "as_aiokafka", "as_kafka_python"]

_HOMES = {
    "BackgroundBroker": "rebalance_kafka.broker.background",
    "Consumer": "rebalance_kafka.consumer.consumer",
    "EmbeddedBroker": "rebalance_kafka.broker.embedded",
    "as_aiokafka": "rebalance_kafka.adapters",
    "as_kafka_python": "rebalance_kafka.adapters",
}


def __getattr__(name: str) -> Any:
    """Imported when asked for: the adapters and the pytest plugin do not need kio."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
