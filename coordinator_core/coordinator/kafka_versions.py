"""The versions of Kafka whose coordinator this one can be, and the rules in which they differ.

Found by comparing the group coordinators of 4.0.0, 4.1.0, 4.2.0, 4.3.0 and 4.4.0.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.reading.settings import settings_of

VERSIONS = ("4.0", "4.1", "4.2", "4.3", "4.4")
"""In the order in which they were released."""


class Rule(StrEnum):
    """A rule of the coordinator that not every version has."""

    UNIFORM_SPREADS_EXTRAS = "uniform spreads the partitions beyond the quota"
    """The assignor ``uniform`` takes a partition beyond its quota from a member if more members than are to
    have one could keep theirs."""

    REJOINS_AT_ANY_EPOCH = "a member of any epoch may join again"
    """A member in an epoch above 0 may send epoch 0. Before, it was fenced."""

    KEEPS_EPOCH_AFTER_REVOCATION = "a member that has given up partitions stays in its epoch"
    """If a newer target asks it for more of them. Before, its epoch grew by 1 with each confirmation."""

    REVOKES_UNSUBSCRIBED = "partitions of topics that a member has left are revoked at once"
    """Before, they stayed until the next target was computed, which could give the member others of them."""

    DROPPED_PATTERN_BUMPS = "a member that gives up its regular expression changes the group"
    """Before, the group epoch grew only if its topics had other partitions than those before."""

    BEGINS_WITH_EPOCH_2 = "the first epoch of a group of the consumer protocol is 2"

    BATCHED_ASSIGNMENTS = "assignments are computed once in an interval"
    """KIP-1263: ``group.consumer.assignment.interval.ms``."""

    COMMITS_SINCE_ASSIGNMENT = "a commit is valid from the epoch in which the member got the partition"
    """KIP-1251. Before, only in the epoch of the member."""

    DESCRIBES_REVOKING = "a described member has the partitions that it has yet to give up"
    """Before, ConsumerGroupDescribe left them out."""

    TARGET_CALLS_CLASSIC_MEMBERS = "a member of the classic protocol is told to join by a new target"
    """In a group of the consumer protocol. Before, by a change of the group, which had no target yet."""

    ASSIGNOR_BUMPS = "another assignor changes the group"
    """The group epoch grows if another assignor has most votes. Before, it was used for the next target."""

    EMPTY_IS_ASSIGNED = "a group that becomes empty has no target to compute"
    """Its assignment epoch becomes the group epoch. Before, it stayed behind."""

    DISABLED_KEEPS_CLASSIC_OUT = (
        "no migration keeps members of the classic protocol out of the other's groups"
    )
    """Before, the policy only kept groups from changing their kind."""

    RETURNS_TO_FULL_GROUP = "a static member comes back into a full group"


SINCE: Mapping[Rule, str] = {
    Rule.UNIFORM_SPREADS_EXTRAS: "4.1",
    Rule.REJOINS_AT_ANY_EPOCH: "4.2",
    Rule.KEEPS_EPOCH_AFTER_REVOCATION: "4.2",
    Rule.REVOKES_UNSUBSCRIBED: "4.2",
    Rule.DROPPED_PATTERN_BUMPS: "4.2",
    Rule.BEGINS_WITH_EPOCH_2: "4.3",
    Rule.BATCHED_ASSIGNMENTS: "4.3",
    Rule.COMMITS_SINCE_ASSIGNMENT: "4.3",
    Rule.DESCRIBES_REVOKING: "4.3",
    Rule.TARGET_CALLS_CLASSIC_MEMBERS: "4.3",
    Rule.ASSIGNOR_BUMPS: "4.4",
    Rule.EMPTY_IS_ASSIGNED: "4.4",
    Rule.DISABLED_KEEPS_CLASSIC_OUT: "4.4",
    Rule.RETURNS_TO_FULL_GROUP: "4.4",
}
"""The version that each rule came with."""

SETTINGS_SINCE: Mapping[str, str] = {
    "group.consumer.regex.refresh.interval.ms": "4.1",
    "group.consumer.assignment.interval.ms": "4.3",
    "group.consumer.min.assignment.interval.ms": "4.3",
    "group.consumer.max.assignment.interval.ms": "4.3",
    "consumer.assignment.interval.ms": "4.3",
}
"""The version that settings came with which 4.0 does not have."""


class VersionedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings under Kafka's names. ``kafka`` is the version whose rules and settings they are.

    Raises:
        InputError: if the version is unknown, or does not have a setting that differs from its default.
    """

    kafka: str = VERSIONS[-1]

    def __post_init__(self) -> None:
        if self.kafka not in VERSIONS:
            raise InputError("kafka", repr(self.kafka), f"one of {', '.join(VERSIONS)}")
        for field in settings_of(type(self)).values():
            value = getattr(self, field.name)
            if value != field.default:
                self.check_setting(field.encode_name, value)

    def has(self, rule: Rule) -> bool:
        """Return whether the version has a rule."""
        return _is_since(self.kafka, SINCE[rule])

    def has_setting(self, name: str) -> bool:
        """Return whether the version has the setting of a dotted name."""
        return _is_since(self.kafka, SETTINGS_SINCE.get(name, VERSIONS[0]))

    def check_setting(self, name: str, value: object) -> None:
        """Raise InputError if the version does not have the setting of a dotted name."""
        if not self.has_setting(name):
            since = SETTINGS_SINCE[name]
            raise InputError(
                name, f"{value}", f"no such setting: Kafka {since} is the first that has it, not {self.kafka}"
            )


def _is_since(version: str, since: str) -> bool:
    return VERSIONS.index(version) >= VERSIONS.index(since)
