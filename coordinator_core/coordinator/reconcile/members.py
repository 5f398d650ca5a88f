"""How members come into a group, change, and go on to their shares, whichever protocol they speak."""

from typing import NamedTuple

import msgspec

from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.reconcile import subscriptions
from coordinator_core.coordinator.reconcile.changes import Changes
from coordinator_core.coordinator.reconcile.group import Subscriber, TimerKind
from coordinator_core.coordinator.reconcile.order import handed_over
from coordinator_core.coordinator.reconcile.reconciliation import Surroundings, advanced
from coordinator_core.coordinator.reconcile.state import (
    CURRENT,
    MEMBER,
    PATTERN,
    SHARE,
    TARGET,
    Current,
    GroupState,
    Listed,
    Member,
    MemberState,
    Target,
)
from coordinator_core.coordinator.reconcile.votes import preferred, preferred_after
from coordinator_core.java import java_order
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.reconcile import LEAVES_FOR_A_WHILE


def check_identity(state: GroupState, member_id: str, instance_id: str | None) -> ErrorCode:
    """Check that a member has the id, and the instance id if the request names one."""
    if instance_id is None:
        return NONE if member_id in state.members else ErrorCode.UNKNOWN_MEMBER_ID
    known = state.instances.get(instance_id)
    if known is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return NONE if known == member_id else ErrorCode.FENCED_INSTANCE_ID


def has_room(changes: Changes, member_id: str, instance_id: str | None) -> bool:
    """Return whether the group has room for a member, or has it already."""
    state, group = changes.state, changes.group
    if instance_id in state.instances and group.has(Rule.RETURNS_TO_FULL_GROUP):
        return True
    return member_id in state.members or len(state.members) < group.settings.max_size


def may_join(changes: Changes, member_id: str, instance_id: str | None) -> ErrorCode:
    """Check whether a member of the consumer protocol may join that is new, or joins again.

    A static one takes the place of its old id. If that speaks the consumer protocol, it must have left for a
    while, even if it is the same.
    """
    state = changes.state
    if not has_room(changes, member_id, instance_id):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    known = state.instances.get(instance_id or "")
    if known is None or state.members[known].classic is not None:
        return NONE
    is_released = state.currents[known].epoch == LEAVES_FOR_A_WHILE
    return NONE if is_released else ErrorCode.UNRELEASED_INSTANCE_ID


def replace(changes: Changes, old_id: str, new_id: str) -> None:
    """Put a static member in the place of its old id. It keeps its assignment, in epoch 0.

    One that keeps its id keeps its deadlines, too.
    """
    state = changes.state
    member, share, current = state.members[old_id], state.shares.get(old_id, ()), state.currents[old_id]
    if old_id != new_id:
        changes.delete(old_id)
        changes.put(MEMBER, new_id, member)
        changes.put(SHARE, new_id, share)
        changes.effects.report_replaced(changes.group.group_id, member.instance_id or "", old_id, new_id)
    changes.put(CURRENT, new_id, msgspec.structs.replace(current, epoch=0, previous_epoch=0))


class Taken(NamedTuple):
    """What has changed with what a member has told.

    ``has_subscribed``: it subscribes to something else. ``assignor`` is the one that most members name then.
    ``has_share``: what it shall own is known, until shares are computed the next time. Kafka looks that of a
    static member up by the member that had the instance id before. ``alike``: whether shares are computed as
    for members that subscribe alike. A request that changes the group, or that notices
    other topics, decides it anew; with any other request, what was known before counts.
    """

    has_subscribed: bool
    assignor: str
    has_share: bool
    alike: bool


def take_over(changes: Changes, member_id: str, member: Member) -> Taken:
    """Take over what a member has told. A new member, or other topics, raise the epoch of the group."""
    state, group = changes.state, changes.group
    before, default = state.members.get(member_id), group.computing.assignors[0]
    vote = None if before is None else before.assignor
    assignor = preferred_after(state.votes, vote, member.assignor) or default
    is_counted = group.has(Rule.ASSIGNOR_BUMPS) and member.classic is None
    changes_assignor = is_counted and assignor != (preferred(state.votes) or default)
    has_share = member.instance_id is None or member.instance_id in state.instances
    names = frozenset(() if before is None else before.topics)
    alike = state.epoch <= state.target.epoch or state.subscribed_alike()
    pattern = subscriptions.change_of_pattern(changes, before, member)
    if member != before:
        changes.put(MEMBER, member_id, member)
    if pattern.ends:
        changes.put(PATTERN, pattern.ends, None)
    if before is None:
        changes.put(CURRENT, member_id, Current())
        changes.effects.report_added(group.group_id, member_id, member.instance_id)
    has_subscribed = names != frozenset(member.topics) or pattern.is_other
    counts = pattern.counts if member.classic is None else pattern.is_other
    if names != frozenset(member.topics) or counts or changes_assignor:
        if before is None:
            cause = f"{member_id} joined"
        else:
            cause = f"{member_id} changed its {'topics' if has_subscribed else 'assignor'}"
        changes.bump(cause)
        alike = changes.state.subscribes_alike()
    elif not changes.state.epoch:
        changes.begin(f"{member_id} joined")
    elif group.seen_changes != group.topic_changes:
        changes.refresh()
        alike = changes.state.subscribes_alike()
    return Taken(has_subscribed, assignor, has_share, alike)


def advance(changes: Changes, member_id: str, owned: Listed | None, taken: Taken) -> Current:
    """Compute the shares if the group has changed, and take the member's next step to its own.

    ``owned`` is what the member reports to own, and ``taken`` what has changed by its request.
    """
    group = changes.group
    if _is_due(changes):
        _compute(changes, taken, member_id)
        taken = taken._replace(has_share=True)
    state, before = changes.state, changes.state.currents[member_id]
    is_left_at_once = group.has(Rule.REVOKES_UNSUBSCRIBED)
    has_subscribed = is_left_at_once and taken.has_subscribed
    if member_id not in state.behind and not has_subscribed:
        return before
    member, holders, own = state.members[member_id], state.holders, frozenset(before.revoking)
    existing = group.computing.topics(state.topics_of(member))
    keeps_epoch = group.has(Rule.KEEPS_EPOCH_AFTER_REVOCATION)
    around = Surroundings(
        share=state.shares.get(member_id, ()) if taken.has_share else (),
        epoch=state.target.epoch,
        owned=None if owned is None else frozenset(owned),
        subscribes=existing.__contains__ if is_left_at_once else lambda _topic: True,
        is_free=lambda tp: tp not in holders or (keeps_epoch and tp in own),
        begins_epoch=not keeps_epoch,
    )
    current = advanced(before, around, has_subscribed=has_subscribed)
    if current != before:
        changes.put(CURRENT, member_id, current)
        changes.show("all members have reached their shares")
        if member.classic is None:
            _time_revocation(changes, member_id, current)
    return current


def _time_revocation(changes: Changes, member_id: str, current: Current) -> None:
    """Begin or end the time in which a member has to give up partitions."""
    group = changes.group
    if current.state is MemberState.UNREVOKED:
        timeout_ms = changes.state.members[member_id].rebalance_timeout_ms
        changes.follow.append(lambda step: step.schedule(TimerKind.REBALANCE, group, timeout_ms, member_id))
    else:
        changes.follow.append(lambda step: step.cancel(TimerKind.REBALANCE, group, member_id))


def _is_due(changes: Changes) -> bool:
    """Return whether shares are to be computed: the group has changed, and the last ones are old enough."""
    state, group = changes.state, changes.group
    if state.epoch <= state.target.epoch:
        return False
    computed_at_ms, interval_ms = state.target.computed_at_ms, group.settings.assignment_interval_ms
    if not (computed_at_ms and interval_ms and group.has(Rule.BATCHED_ASSIGNMENTS)):
        return True
    return changes.now_ms >= computed_at_ms + interval_ms


def _compute(changes: Changes, taken: Taken, asking: str) -> None:
    """Compute the shares of all members for the epoch of the group, at a request of the member ``asking``."""
    state, assignor = changes.state, taken.assignor
    before = changes.group.durable.members.get(asking)
    recorded = {names: tuple(java_order(names)) for names in {m.topics for m in state.members.values()}}
    members: dict[str, Subscriber] = {}
    for member_id in handed_over(state.members, state.most_members, asking if before is None else None):
        member = state.members[member_id]
        if member_id != asking or member is before:  # its names come from its record, which has them sorted
            member = msgspec.structs.replace(member, topics=recorded[member.topics])
        share = state.shares.get(member_id, ())
        members[member_id] = Subscriber(state.topics_of(member), share, member.instance_id, member.rack)
    shares = changes.group.computing.assign(assignor, members, taken.alike)
    for member_id in state.members:
        share, share_before = shares.get(member_id, ()), state.shares.get(member_id)
        if share_before is None or frozenset(share) != frozenset(share_before):
            changes.put(SHARE, member_id, share)
    changes.put(TARGET, "", Target(state.epoch, assignor, state.target.topics, changes.now_ms))
    changes.effects.report_generation(changes.group.group_id, state.epoch, assignor, state.members)
    changes.show("the shares are computed")
