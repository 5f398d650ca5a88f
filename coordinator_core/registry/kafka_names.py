"""Kafka's own names of assignors, and the strategies that they name here: the one table of them.

A consumer has assignors of its own (``partition.assignment.strategy``, classes) or names one of the brokers'
(``group.remote.assignor``, by name; brokers list names or classes in ``group.consumer.assignors``).
"""

from collections.abc import Mapping

_OF_CLIENTS = "org.apache.kafka.clients.consumer."
_OF_BROKERS = "org.apache.kafka.coordinator.group.assignor."

_CLIENT_CLASSES = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_BROKER_CLASSES = {"UniformAssignor": "uniform-848", "RangeAssignor": "range-848"}

REMOTE: Mapping[str, str] = {"uniform": "uniform-848", "range": "range-848"}
"""The brokers' assignors by the names that members use, Kafka's default first."""

CLASSIC: Mapping[str, str] = {
    **{name: name for name in _CLIENT_CLASSES.values()},
    **_CLIENT_CLASSES,
    **{_OF_CLIENTS + kind: name for kind, name in _CLIENT_CLASSES.items()},
}
"""What ``partition.assignment.strategy`` may list, and what it is called here."""

CONSUMER: Mapping[str, str] = {
    **REMOTE,
    **{_OF_BROKERS + kind: name for kind, name in _BROKER_CLASSES.items()},
}
"""The brokers' assignors by names and classes, and what they are called here."""

OF_PROTOCOL = "+reconcile"
"""What follows an assignor in a strategy whose ``group.protocol`` is ``consumer``."""

_DEFAULT = next(iter(REMOTE.values())) + OF_PROTOCOL
SHORT: Mapping[str, str] = dict.fromkeys(("consumer", "kip-848", "uniform"), _DEFAULT)
"""Short names of the consumer protocol with its default assignor."""

MEANT: Mapping[str, str] = {
    **dict.fromkeys(("848", "kip848", "kip_848", "next-gen", "nextgen", "new"), "kip-848"),
    **dict.fromkeys(("coop", "cooperative", "incremental-cooperative"), "cooperative-sticky"),
    "round-robin": "roundrobin",
    "round_robin": "roundrobin",
}
"""What people write in lower case, and the strategy that they mean."""

STRATEGIES: Mapping[str, str] = {
    **{_OF_BROKERS + kind: name + OF_PROTOCOL for kind, name in _BROKER_CLASSES.items()},
    "UniformAssignor": _DEFAULT,
    **{name: text for name, text in CLASSIC.items() if name != text},
    **SHORT,
}
"""The strategies by Kafka's names. A class of both sides without its package is the consumers'."""


def strategy_of(protocol: str, assignors: tuple[str, ...]) -> str:
    """Return the strategy of a ``group.protocol`` ("" for Kafka's default) and assignors as called here.

    Without assignors it has Kafka's default one: of ``RangeAssignor, CooperativeStickyAssignor`` a group
    uses the first.
    """
    if protocol == "consumer":
        return assignors[0] + OF_PROTOCOL if assignors else _DEFAULT
    return assignors[0] if assignors else "range"
