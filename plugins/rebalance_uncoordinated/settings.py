"""The settings of both families: times in milliseconds, with the defaults of Kafka 0.8 and of RocketMQ."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from coordinator_core.errors import InputError


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of which each has a least value: 1, or that in ``least``.

    Raises:
        InputError: if a setting is less.
    """

    least: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            value, least = getattr(self, field.name), self.least.get(field.encode_name, 1)
            if value < least:
                raise InputError(field.encode_name, f"{value}", f"{least} or more")


class WatcherSettings(_Settings, frozen=True, kw_only=True):
    """Of members with a registry. ``owner_nodes``: whether they claim partitions before they work on them."""

    least = {"zookeeper.session.timeout.ms": 3, "rebalance.max.retries": 0, "owner.nodes": 0}
    session_timeout_ms: int = msgspec.field(default=6_000, name="zookeeper.session.timeout.ms")
    backoff_ms: int = msgspec.field(default=2_000, name="rebalance.backoff.ms")
    max_retries: int = msgspec.field(default=4, name="rebalance.max.retries")
    owner_nodes: bool = msgspec.field(default=True, name="owner.nodes")

    @property
    def ping_ms(self) -> int:
        """The time between two pings: a third of the session."""
        return self.session_timeout_ms // 3

    @property
    def read_timeout_ms(self) -> int:
        """The time after which a server that does not answer has failed: two thirds of the session."""
        return self.session_timeout_ms * 2 // 3


class PeersSettings(_Settings, frozen=True, kw_only=True):
    """Of members that read lists. RocketMQ has no option for the second and the third one."""

    heartbeat_ms: int = msgspec.field(default=30_000, name="heartbeat.broker.interval")
    look_ms: int = msgspec.field(default=20_000, name="rocketmq.client.rebalance.waitInterval")
    expired_ms: int = msgspec.field(default=120_000, name="channel.expired.timeout")
