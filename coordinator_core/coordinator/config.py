"""The settings of a coordinator, under Kafka's names."""

import msgspec

MINUTE_MS = 60_000


class CoordinatorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    """How long a member that never completed a join may wait in one (PROTOCOL 3.11); fixed in Kafka."""

    notice_static_subscription: bool = msgspec.field(default=False, name="group.notice.static.subscription")
    """Start a round when a static member comes back with another subscription. Kafka does not
    (KAFKA-12759), and so the new topics go unread until the next round."""

    expiry_cuts_initial_delay: bool = msgspec.field(default=False, name="group.expiry.cuts.initial.delay")
    """Complete the join phase as soon as a member's expiry leaves nobody to wait for, even while the
    initial delay runs, as Kafka's expiry path does but its leave path does not (PITFALLS C-12)."""
