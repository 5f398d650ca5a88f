"""The settings of a coordinator, under Kafka's names."""

import msgspec

from coordinator_core.coordinator.kafka_versions import VersionedSettings

MINUTE_MS = 60_000


class CoordinatorConfig(VersionedSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Broker settings of the group coordinator; times in milliseconds unless the name says otherwise."""

    initial_rebalance_delay_ms: int = msgspec.field(default=3_000, name="group.initial.rebalance.delay.ms")
    min_session_timeout_ms: int = msgspec.field(default=6_000, name="group.min.session.timeout.ms")
    max_session_timeout_ms: int = msgspec.field(default=1_800_000, name="group.max.session.timeout.ms")
    max_size: int = msgspec.field(default=2**31 - 1, name="group.max.size")
    offsets_retention_minutes: int = msgspec.field(default=10_080, name="offsets.retention.minutes")
    offsets_retention_check_ms: int = msgspec.field(
        default=10 * MINUTE_MS, name="offsets.retention.check.interval.ms"
    )
    offset_metadata_max_bytes: int = msgspec.field(default=4_096, name="offset.metadata.max.bytes")
    offsets_topic_partitions: int = msgspec.field(default=50, name="offsets.topic.num.partitions")
    offsets_topic_replication: int = msgspec.field(default=3, name="offsets.topic.replication.factor")

    new_member_join_timeout_ms: int = msgspec.field(
        default=5 * MINUTE_MS, name="group.new.member.join.timeout.ms"
    )
    """How long the first join of a member may be parked (PROTOCOL 3.11). Kafka has no setting for it."""

    notice_static_subscription: bool = msgspec.field(default=False, name="group.notice.static.subscription")
    """Start a round if a static member comes back with another subscription. Kafka does not
    (KAFKA-12759): there the new topics are not read until the next round."""
