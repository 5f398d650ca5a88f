"""The settings of groups that the coordinator reconciles, under Kafka's names."""

import msgspec

from coordinator_core.errors import InputError

HEARTBEAT, SESSION = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"


class ReconcileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The times that the coordinator gives to the members, in milliseconds, and the size of a group.

    Raises:
        InputError: if a session is not longer than the interval of heartbeats.
    """

    heartbeat_interval_ms: int = msgspec.field(default=5_000, name=HEARTBEAT)
    session_timeout_ms: int = msgspec.field(default=45_000, name=SESSION)
    max_size: int = msgspec.field(default=2**31 - 1, name="group.consumer.max.size")

    def __post_init__(self) -> None:
        for name, value in (
            (HEARTBEAT, self.heartbeat_interval_ms),
            ("group.consumer.max.size", self.max_size),
        ):
            if value < 1:
                raise InputError(name, f"{value}", "1 or more")
        if self.session_timeout_ms <= self.heartbeat_interval_ms:
            expected = f"more than {HEARTBEAT} ({self.heartbeat_interval_ms})"
            raise InputError(SESSION, f"{self.session_timeout_ms}", expected)
