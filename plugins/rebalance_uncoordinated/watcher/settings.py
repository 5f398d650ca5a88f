"""The settings of members that claim their partitions in a registry, with the defaults of Kafka 0.8."""

import msgspec

from coordinator_core.errors import InputError


class WatcherSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in milliseconds. ``owner_nodes``: whether members claim partitions before they work on them.

    Raises:
        InputError: if a setting is out of range.
    """

    session_timeout_ms: int = msgspec.field(default=6_000, name="zookeeper.session.timeout.ms")
    backoff_ms: int = msgspec.field(default=2_000, name="rebalance.backoff.ms")
    max_retries: int = msgspec.field(default=4, name="rebalance.max.retries")
    owner_nodes: bool = msgspec.field(default=True, name="owner.nodes")

    def __post_init__(self) -> None:
        for where, value, least in (
            ("zookeeper.session.timeout.ms", self.session_timeout_ms, 3),
            ("rebalance.backoff.ms", self.backoff_ms, 1),
            ("rebalance.max.retries", self.max_retries, 0),
        ):
            if value < least:
                raise InputError(where, f"{value}", f"{least} or more")

    @property
    def ping_ms(self) -> int:
        """The time between two pings: a third of the session."""
        return self.session_timeout_ms // 3

    @property
    def read_timeout_ms(self) -> int:
        """The time after which a server that does not answer has failed: two thirds of the session."""
        return self.session_timeout_ms * 2 // 3
