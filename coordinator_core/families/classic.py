"""The classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

An entry point of the plugin group ``rebalance_lab``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from coordinator_core.assigning.delaying import DEFAULT_DELAY_MS
from coordinator_core.client.classic import ClassicMember
from coordinator_core.client.classic.states import MemberState
from coordinator_core.coordinator.classic import PART
from coordinator_core.coordinator.classic.states import LEGAL_MOVES, GroupState
from coordinator_core.families.family import remove_members
from coordinator_core.families.running_group import running_group
from coordinator_core.protocol.events import AssignmentComputed
from coordinator_core.registry.hookspecs import ProtocolSpec, hookimpl


class ClassicSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The time in milliseconds for which lost partitions wait under ``+delay``, as in Kafka Connect."""

    max_delay_ms: int = msgspec.field(default=DEFAULT_DELAY_MS, name="scheduled.rebalance.max.delay.ms")


def _unowned(events: Iterable[Any]) -> Mapping[str, tuple[str, str]]:
    """Return why partitions are assigned to nobody, if a delay lasted at the last round."""
    last: Mapping[str, Any] = {}
    for event in events:
        if isinstance(event, AssignmentComputed):
            last = event.report
    if "delay_left_ms" not in last:
        return {}
    left = f"{last['delay_left_ms'] / 1_000:g} s"
    return {
        "unassigned": (
            f"the group rested, and for {left} after the last round it waits for lost members",
            "make the duration of the scenario longer, or the delay shorter",
        )
    }


CLASSIC = ProtocolSpec(
    "classic",
    on_kafka=True,
    states={
        state.value: frozenset(following.value for following in moves) for state, moves in LEGAL_MOVES.items()
    },
    at_rest=frozenset({GroupState.STABLE.value}),
    round_begins=frozenset({GroupState.PREPARING_REBALANCE.value}),
    vacant=frozenset({GroupState.EMPTY.value, GroupState.DEAD.value}),
    members_join=frozenset({MemberState.PREPARING_REBALANCE.value}),
    initial_delay=True,
    coordinator=lambda surroundings: PART,  # noqa: ARG005 - the members run the assignors
    member=lambda settings: ClassicMember,  # noqa: ARG005 - the assignors have the delay
    settings=ClassicSettings,
    running_group=running_group,
    remove_members=remove_members,
    planned=True,
    unowned=_unowned,
    modifiers=frozenset({"static", "cooperative", "delay"}),
    meaningless={},
    aliases={"eager": "range+classic", "incremental": "cooperative-sticky+classic"},
    doc="The group protocol of Kafka 0.9 and later: JoinGroup, SyncGroup and Heartbeat. Deprecated from"
    " Kafka 5.0 on, and not in the Java consumer of 6.0 (KIP-1274).",
)


@hookimpl
def protocols() -> Iterable[ProtocolSpec]:
    """Return the protocols of this package."""
    return [CLASSIC]
