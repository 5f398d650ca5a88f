"""Settings of groups that a real Kafka and `serve` get alike."""

from collections.abc import Mapping

SHORT: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": 4_000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 1_000,
    "group.consumer.assignment.interval.ms": 0,
}
"""Sessions of seconds, and targets that are computed at once."""

LONG: Mapping[str, object] = {
    **SHORT,
    "group.consumer.max.session.timeout.ms": 600_000,
    "group.consumer.session.timeout.ms": 600_000,
}
"""Sessions that outlast restarts of brokers one of which starts much later than the other one."""
