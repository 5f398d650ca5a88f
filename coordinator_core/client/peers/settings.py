"""The settings of members without a coordinator, with the defaults of Apache RocketMQ."""

import msgspec

from coordinator_core.errors import InputError


class PeersSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in milliseconds. RocketMQ has no option for the second and the third one.

    Raises:
        InputError: if a setting is out of range.
    """

    heartbeat_ms: int = msgspec.field(default=30_000, name="heartbeat.broker.interval")
    look_ms: int = msgspec.field(default=20_000, name="rocketmq.client.rebalance.waitInterval")
    expired_ms: int = msgspec.field(default=120_000, name="channel.expired.timeout")

    def __post_init__(self) -> None:
        for where, value in (
            ("heartbeat.broker.interval", self.heartbeat_ms),
            ("rocketmq.client.rebalance.waitInterval", self.look_ms),
            ("channel.expired.timeout", self.expired_ms),
        ):
            if value < 1:
                raise InputError(where, f"{value}", "1 or more")
