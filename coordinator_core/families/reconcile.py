"""Groups that the coordinator reconciles member by member: Kafka's ``group.protocol=consumer`` (KIP-848).

An entry point of the plugin group ``rebalance_lab``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import compute_assignment, unassigned
from coordinator_core.client.reconcile import ReconcileMember
from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.migration import between, downgrade
from coordinator_core.coordinator.parts import CoordinatorPart
from coordinator_core.coordinator.reconcile import reconcile_part
from coordinator_core.coordinator.reconcile.group import MOVES, Computing, State, Subscriber
from coordinator_core.coordinator.reconcile.settings import HEARTBEAT, SESSION, ReconcileSettings
from coordinator_core.coordinator.reconcile.state import Listed
from coordinator_core.families.family import UNREAD, Surroundings
from coordinator_core.families.running_group import running_group
from coordinator_core.families.running_reconciled import ReconciledGroup
from coordinator_core.java.hash_maps import hash_order
from coordinator_core.model import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Handover,
    Partitions,
    Subscription,
)
from coordinator_core.reading.patterns import re2_matcher
from coordinator_core.registry.hookspecs import ProtocolSpec, hookimpl

FIRST: Mapping[str, Callable[[Mapping[str, Subscription]], str]] = {
    "uniform-848": lambda group: hash_order(group)[0],
    "range-848": lambda group: GroupSubscription(group).sorted_members()[0],
}
"""Assignor -> its first member, whose topics all get that are taken to subscribe alike."""


def _part(surroundings: Surroundings) -> CoordinatorPart:
    def matching(pattern: str) -> tuple[str, ...]:
        matches = re2_matcher(pattern)
        return tuple(name for name in surroundings.cluster().topics if matches(name))

    def assign(name: str, members: Mapping[str, Subscriber], alike: bool) -> Mapping[str, Listed]:
        known = surroundings.cluster_of(topic for member in members.values() for topic in member.topics)
        group = {
            member_id: _subscription(m.topics, Partitions.of(m.share), m.rack, m.instance_id)
            for member_id, m in members.items()
        }
        assignor = assignors[name]()
        if alike:
            group = _as_read(assignor.name, group)
        handover = Handover(alike, keeps_extras)
        assignment = _whole(assignor, known, GroupSubscription(group, handover=handover))
        return {member_id: tuple(assignment[member_id]) for member_id in members}

    settings: ReconcileSettings = surroundings.settings
    keeps_extras = settings.has(Rule.UNIFORM_SPREADS_EXTRAS)
    make_only = surroundings.make_assignor
    assignors = surroundings.assignors or {make_only().name: make_only}
    computing = Computing(
        tuple(assignors),
        surroundings.partitions_of,
        matching,
        assign,
        surroundings.may_describe,
        surroundings.own_settings,
        downgrade,
    )
    return replace(reconcile_part(computing, settings), between=between(computing, settings))


def _subscription(
    topics: tuple[str, ...], owned: Partitions, rack: str | None, instance_id: str | None
) -> Subscription:
    return Subscription(topics, owned, 1 if owned else -1, rack, instance_id)


def _as_read(name: str, group: dict[str, Subscription]) -> dict[str, Subscription]:
    """Return a group whose members are taken to subscribe alike as Kafka's assignors read it.

    If they do not, all get what the first one subscribes to.
    """
    of_one = next(iter(group.values())).topics
    if name not in FIRST or all(each.topics == of_one for each in group.values()):
        return group
    topics = group[FIRST[name](group)].topics
    return {member_id: msgspec.structs.replace(s, topics=topics) for member_id, s in group.items()}


def _whole(assignor: Assignor, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
    """Run an assignor. One that holds back what moves is run again, as if its members had given that up."""
    assignment = compute_assignment(assignor, cluster, group)
    if not unassigned(cluster, group, assignment):
        return assignment
    rejoined = {
        member_id: _subscription(s.topics, assignment[member_id], s.rack, s.instance_id)
        for member_id, s in group.items()
    }
    return compute_assignment(assignor, cluster, GroupSubscription(rejoined))


_LONGER = "make the duration of the scenario longer"


def _unowned(_: Iterable[Any]) -> Mapping[str, tuple[str, str]]:
    """Return why partitions have no owner, by causes: what differs from the classic protocol."""
    return {
        "detection": (
            "the group still counted on a member that had ended",
            f"{_LONGER}, or {SESSION} shorter",
        ),
        "standing": (
            "the group still counted on a member that stood still or was cut off",
            f"{_LONGER}, or max.poll.interval.ms (pauses) or {SESSION} (freezes, cuts) shorter",
        ),
        "waiting": ("no heartbeat had come since the group changed", _LONGER),
        "messages": ("members had yet to give up partitions, or to send the next heartbeat", _LONGER),
    }


_STOPS = {
    "detection": "the group still counted on members that had ended",
    "standing": "members stood still or were cut off, and the group still counted on them",
    "waiting": "the group had changed, and no heartbeat had come since",
    "messages": "partitions were free, and the member that was to have them had not sent its next heartbeat",
}

RECONCILE = ProtocolSpec(
    "reconcile",
    on_kafka=True,
    states={state.value: frozenset(after.value for after in moves) for state, moves in MOVES.items()},
    at_rest=frozenset({State.STABLE.value}),
    round_begins=frozenset({State.ASSIGNING.value}),
    vacant=frozenset({State.EMPTY.value, State.DEAD.value}),
    coordinator=_part,
    member=lambda settings: partial(ReconcileMember, interval_ms=settings.heartbeat_interval_ms),
    settings=ReconcileSettings,
    running_group=partial(running_group, kind=ReconciledGroup),
    own_epochs=True,
    unowned=_unowned,
    stops=_STOPS,
    modifiers=frozenset({"static"}),
    meaningless={
        "remove_member": "LeaveGroup is a request of the classic protocol",
        "cooperative": "members give up only what they lose in any case",
        "delay": "the coordinator gives the partitions of a lost member to others at once",
    },
    unread={
        **UNREAD,
        "session.timeout.ms": SESSION,
        "heartbeat.interval.ms": HEARTBEAT,
        "group.max.size": "group.consumer.max.size",
    },
    doc="The coordinator moves each member to its share by heartbeats; no barrier (KIP-848).",
)


@hookimpl
def protocols() -> Iterable[ProtocolSpec]:
    """Return the protocols of this module."""
    return [RECONCILE]
