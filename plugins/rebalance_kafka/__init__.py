"""Real Kafka clients on an embedded broker, a consumer for any broker, and assignors in running consumers.

    async with EmbeddedBroker(topics={"orders": 12}) as broker:
        ...  # any Kafka client, with bootstrap.servers = broker.address

A name is imported from its module when it is first used. The adapters and the pytest plugin do not need kio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_kafka.adapters import as_aiokafka as as_aiokafka
    from rebalance_kafka.adapters import as_kafka_python as as_kafka_python
    from rebalance_kafka.broker.background import BackgroundBroker as BackgroundBroker
    from rebalance_kafka.broker.embedded import EmbeddedBroker as EmbeddedBroker
    from rebalance_kafka.consumer.consumer import Consumer as Consumer
    from rebalance_kafka.loads import MeasuredLoads as MeasuredLoads

_NAMES = {
    "adapters": ("as_aiokafka", "as_kafka_python"),
    "broker.background": ("BackgroundBroker",),
    "broker.embedded": ("EmbeddedBroker",),
    "consumer.consumer": ("Consumer",),
    "loads": ("MeasuredLoads",),
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
