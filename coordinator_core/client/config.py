"""The settings of a consumer, under Kafka's names."""

import msgspec

from coordinator_core.errors import InputError

OFFSET_RESETS = ("earliest", "latest", "none")
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
"""The names of the isolation levels, by their numbers."""


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Consumer settings with Kafka's defaults; times in milliseconds.

    Raises:
        InputError: if a setting is out of range, or if settings contradict each other.
    """

    group_id: str = msgspec.field(name="group.id")
    client_id: str = msgspec.field(default="consumer", name="client.id")
    group_instance_id: str | None = msgspec.field(default=None, name="group.instance.id")
    client_rack: str | None = msgspec.field(default=None, name="client.rack")

    session_timeout_ms: int = msgspec.field(default=45_000, name="session.timeout.ms")
    heartbeat_interval_ms: int = msgspec.field(default=3_000, name="heartbeat.interval.ms")
    max_poll_interval_ms: int = msgspec.field(default=300_000, name="max.poll.interval.ms")

    enable_auto_commit: bool = msgspec.field(default=True, name="enable.auto.commit")
    auto_commit_interval_ms: int = msgspec.field(default=5_000, name="auto.commit.interval.ms")
    auto_offset_reset: str = msgspec.field(default="latest", name="auto.offset.reset")
    isolation: str = msgspec.field(default=ISOLATION_LEVELS[0], name="isolation.level")

    request_timeout_ms: int = msgspec.field(default=30_000, name="request.timeout.ms")
    default_api_timeout_ms: int = msgspec.field(default=60_000, name="default.api.timeout.ms")
    retry_backoff_ms: int = msgspec.field(default=100, name="retry.backoff.ms")
    metadata_max_age_ms: int = msgspec.field(default=300_000, name="metadata.max.age.ms")

    max_poll_records: int = msgspec.field(default=500, name="max.poll.records")
    fetch_max_wait_ms: int = msgspec.field(default=500, name="fetch.max.wait.ms")
    max_partition_fetch_bytes: int = msgspec.field(default=1_048_576, name="max.partition.fetch.bytes")

    def __post_init__(self) -> None:
        for where, value, least in (
            ("session.timeout.ms", self.session_timeout_ms, 1),
            ("heartbeat.interval.ms", self.heartbeat_interval_ms, 1),
            ("max.poll.interval.ms", self.max_poll_interval_ms, 1),
            ("auto.commit.interval.ms", self.auto_commit_interval_ms, 1),
            ("request.timeout.ms", self.request_timeout_ms, 1),
            ("default.api.timeout.ms", self.default_api_timeout_ms, 1),
            ("retry.backoff.ms", self.retry_backoff_ms, 1),
            ("metadata.max.age.ms", self.metadata_max_age_ms, 1),
            ("max.poll.records", self.max_poll_records, 1),
            ("max.partition.fetch.bytes", self.max_partition_fetch_bytes, 0),
        ):
            if value < least:
                raise InputError(where, f"{value}", f"{least} or more")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            found = f"{self.heartbeat_interval_ms}"
            raise InputError(
                "heartbeat.interval.ms", found, f"less than session.timeout.ms ({self.session_timeout_ms})"
            )
        for where, name, names in (
            ("auto.offset.reset", self.auto_offset_reset, OFFSET_RESETS),
            ("isolation.level", self.isolation, ISOLATION_LEVELS),
        ):
            if name not in names:
                raise InputError(where, repr(name), f"one of {', '.join(names)}")

    @property
    def isolation_level(self) -> int:
        """The number of the isolation level in requests."""
        return ISOLATION_LEVELS.index(self.isolation)
