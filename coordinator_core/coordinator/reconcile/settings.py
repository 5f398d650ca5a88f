"""The settings of groups that the coordinator reconciles, under Kafka's names."""

from collections.abc import Mapping

import msgspec

from coordinator_core.coordinator.kafka_versions import Rule, VersionedSettings
from coordinator_core.errors import InputError

MIGRATION_POLICY = "group.consumer.migration.policy"
HEARTBEAT, SESSION = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
ASSIGNMENT = "group.consumer.assignment.interval.ms"
REFRESH, LEAST_REFRESH_MS = "group.consumer.regex.refresh.interval.ms", 10_000

OF_GROUP = {
    "consumer.heartbeat.interval.ms": HEARTBEAT,
    "consumer.session.timeout.ms": SESSION,
    "consumer.assignment.interval.ms": ASSIGNMENT,
}
"""The settings that a single group may have, and those of all groups in whose place they are."""

_LIMITS = {
    "consumer.heartbeat.interval.ms": ("min_heartbeat_interval_ms", "max_heartbeat_interval_ms"),
    "consumer.session.timeout.ms": ("min_session_timeout_ms", "max_session_timeout_ms"),
    "consumer.assignment.interval.ms": ("min_assignment_interval_ms", "max_assignment_interval_ms"),
}


UPGRADES, DOWNGRADES = ("bidirectional", "upgrade"), ("bidirectional", "downgrade")
DISABLED = "disabled"
POLICIES = ("bidirectional", "upgrade", "downgrade", DISABLED)
"""Whether groups with members change between the classic and the consumer protocol (PROTOCOL 11.9)."""


class ReconcileSettings(VersionedSettings, frozen=True, kw_only=True):
    """The times of the coordinator and of the members, in milliseconds, and the size of a group.

    ``assignment_interval_ms`` is the least time between two targets of a group (KIP-1263), and
    ``regex_refresh_ms`` the time after which regular expressions are resolved again.
    ``min_*`` and ``max_*`` are the limits of settings of a single group (`of_group`).

    Raises:
        InputError: if a session is not longer than the interval of heartbeats, or the policy of migration is
            unknown.
    """

    heartbeat_interval_ms: int = msgspec.field(default=5_000, name=HEARTBEAT)
    session_timeout_ms: int = msgspec.field(default=45_000, name=SESSION)
    max_size: int = msgspec.field(default=2**31 - 1, name="group.consumer.max.size")
    min_heartbeat_interval_ms: int = msgspec.field(
        default=5_000, name="group.consumer.min.heartbeat.interval.ms"
    )
    max_heartbeat_interval_ms: int = msgspec.field(
        default=15_000, name="group.consumer.max.heartbeat.interval.ms"
    )
    min_session_timeout_ms: int = msgspec.field(default=45_000, name="group.consumer.min.session.timeout.ms")
    max_session_timeout_ms: int = msgspec.field(default=60_000, name="group.consumer.max.session.timeout.ms")
    assignment_interval_ms: int = msgspec.field(default=1_000, name=ASSIGNMENT)
    min_assignment_interval_ms: int = msgspec.field(
        default=0, name="group.consumer.min.assignment.interval.ms"
    )
    max_assignment_interval_ms: int = msgspec.field(
        default=15_000, name="group.consumer.max.assignment.interval.ms"
    )
    regex_refresh_ms: int = msgspec.field(default=600_000, name=REFRESH)
    migration_policy: str = msgspec.field(default=POLICIES[0], name=MIGRATION_POLICY)

    def __post_init__(self) -> None:
        VersionedSettings.__post_init__(self)
        for name, value in (
            (HEARTBEAT, self.heartbeat_interval_ms),
            ("group.consumer.max.size", self.max_size),
        ):
            if value < 1:
                raise InputError(name, f"{value}", "1 or more")
        if self.regex_refresh_ms < LEAST_REFRESH_MS:
            raise InputError(REFRESH, f"{self.regex_refresh_ms}", f"{LEAST_REFRESH_MS} or more")
        if self.migration_policy.lower() not in POLICIES:
            raise InputError(MIGRATION_POLICY, repr(self.migration_policy), f"one of {', '.join(POLICIES)}")
        if self.session_timeout_ms <= self.heartbeat_interval_ms:
            expected = f"more than {HEARTBEAT} ({self.heartbeat_interval_ms})"
            raise InputError(SESSION, f"{self.session_timeout_ms}", expected)

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group with members becomes one of the consumer protocol."""
        return self.migration_policy.lower() in UPGRADES

    @property
    def allows_downgrade(self) -> bool:
        """Whether a group of the consumer protocol becomes a classic one when only such members are left."""
        return self.migration_policy.lower() in DOWNGRADES

    @property
    def admits_classic(self) -> bool:
        """Whether members of the classic protocol may join a group with members of the consumer protocol."""
        return self.migration_policy.lower() != DISABLED or not self.has(Rule.DISABLED_KEEPS_CLASSIC_OUT)

    def of_group(self, own: Mapping[str, int]) -> "ReconcileSettings":
        """Return the settings of a group that has some of `OF_GROUP` for itself.

        Raises:
            InputError: if the version does not have one, one is not within its limits, or the session is not
                longer than the interval.
        """
        changed = {}
        for name, value in own.items():
            self.check_setting(name, value)
            low, high = (getattr(self, limit) for limit in _LIMITS[name])
            if not low <= value <= high:
                raise InputError(name, f"{value}", f"{low} to {high}")
            changed[OF_GROUP[name]] = value
        return msgspec.convert({**msgspec.to_builtins(self), **changed}, ReconcileSettings)
