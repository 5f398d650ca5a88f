"""How members come into a group, change, and go on to their shares, whichever protocol they speak."""

from collections.abc import Collection

import msgspec

from coordinator_core.coordinator.reconcile.changes import Changes
from coordinator_core.coordinator.reconcile.group import Computing, Subscriber, TimerKind
from coordinator_core.coordinator.reconcile.order import handed_over
from coordinator_core.coordinator.reconcile.reconciliation import advanced
from coordinator_core.coordinator.reconcile.state import (
    CURRENT,
    MEMBER,
    SHARE,
    TARGET,
    Current,
    GroupState,
    Listed,
    Member,
    MemberState,
    Target,
)
from coordinator_core.java import java_order
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.reconcile import LEAVES_FOR_A_WHILE


def check_identity(state: GroupState, member_id: str, instance_id: str | None, *, classic: bool) -> ErrorCode:
    """Check that a request is of a member, by the protocol that the member speaks.

    FENCED_INSTANCE_ID: another member has the instance id.
    """
    if instance_id is not None:
        known = state.instances.get(instance_id)
        if known is not None and known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    member = state.members.get(member_id)
    if member is None or (member.classic is not None) is not classic:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return NONE


def admit(changes: Changes, member_id: str, instance_id: str | None, *, classic: bool) -> ErrorCode:
    """Let a member in that is new, or that joins again. A static one may take the place of its old id.

    Under the consumer protocol its old id must have left for a while; a process that speaks the classic
    protocol, and a member that spoke it, does not say so.
    """
    state = changes.state
    known = None if instance_id is None else state.instances.get(instance_id)
    if known is not None and known != member_id:
        current, member = state.currents[known], state.members[known]
        is_released = current.epoch == LEAVES_FOR_A_WHILE or classic or member.classic is not None
        if not is_released:
            return ErrorCode.UNRELEASED_INSTANCE_ID
        share = state.shares.get(known, ())
        changes.delete(known)
        changes.put(MEMBER, member_id, member)
        changes.put(SHARE, member_id, share)
        changes.put(CURRENT, member_id, _back(current))
        changes.effects.report_replaced(changes.group.group_id, instance_id or "", known, member_id)
    elif member_id in state.members:
        current = state.currents[member_id]
        is_halfway = current.epoch == LEAVES_FOR_A_WHILE or current.state is MemberState.UNREVOKED
        if is_halfway and not classic:
            changes.put(CURRENT, member_id, _back(current))
    elif len(state.members) >= changes.group.settings.max_size:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    return NONE


def _back(current: Current) -> Current:
    """Return what a member may own that owns nothing, when it begins with epoch 0."""
    return Current(assigned=current.assigned)


def take_over(changes: Changes, member_id: str, member: Member) -> None:
    """Take over what a member has told. A new member, or other topics, raise the epoch of the group."""
    before = changes.state.members.get(member_id)
    if member == before:
        return
    changes.put(MEMBER, member_id, member)
    if before is None:
        changes.put(CURRENT, member_id, Current())
        changes.effects.report_added(changes.group.group_id, member_id, member.instance_id)
        changes.bump(f"{member_id} joined")
    elif _wanted(member) != _wanted(before):
        changes.bump(f"{member_id} changed its topics")


def _wanted(member: Member) -> tuple[object, ...]:
    """Return what the topics of a member depend on. Its user counts for a pattern only."""
    return member.topics, member.pattern, member.principal if member.pattern else ""


def advance(changes: Changes, member_id: str, owned: Listed | None) -> Current:
    """Compute the shares if the group has changed, and take the member's next step to its own.

    ``owned`` is what the member reports to own. Under the classic protocol the report is of the moment: what
    the member does not own any more needs no confirmation.
    """
    if changes.state.epoch > changes.state.target.epoch:
        _compute(changes, member_id)
    state, before = changes.state, changes.state.currents[member_id]
    share = state.shares.get(member_id, ())
    current = advanced(member_id, before, share, state.target.epoch, owned, state.holders)
    is_classic = state.members[member_id].classic is not None
    if is_classic and current is not before and current.state is MemberState.UNREVOKED:
        current = advanced(member_id, current, share, state.target.epoch, owned, state.holders)
    if current is not before and current != before:
        changes.put(CURRENT, member_id, current)
        changes.show("all members have reached their shares")
        if not is_classic:
            _time_revocation(changes, member_id, before, current)
    return current


def _time_revocation(changes: Changes, member_id: str, before: Current, current: Current) -> None:
    """Begin or end the time in which a member has to give up partitions."""
    group = changes.group
    if current.state is MemberState.UNREVOKED:
        timeout_ms = changes.state.members[member_id].rebalance_timeout_ms
        changes.follow.append(lambda step: step.schedule(TimerKind.REBALANCE, group, timeout_ms, member_id))
    elif before.state is MemberState.UNREVOKED:
        changes.follow.append(lambda step: step.cancel(TimerKind.REBALANCE, group, member_id))


def subscribed(computing: Computing, member: Member) -> tuple[str, ...]:
    """Return the topics of a member: those that it lists, and those that match its pattern.

    Only topics that its user may describe match.
    """
    matching = computing.matching(member.pattern) if member.pattern else ()
    visible = (topic for topic in matching if computing.may_describe(member.principal, topic))
    return tuple(dict.fromkeys((*member.topics, *visible)))


def _compute(changes: Changes, asking: str) -> None:
    """Compute the shares of all members for the epoch of the group, at a request of the member ``asking``."""
    computing, state = changes.group.computing, changes.state
    before = changes.group.durable.members.get(asking)
    recorded = {names: tuple(java_order(names)) for names in {m.topics for m in state.members.values()}}
    members: dict[str, Subscriber] = {}
    for member_id in handed_over(state.members, state.most_members, asking if before is None else None):
        member = state.members[member_id]
        if member_id != asking or member is before:  # its names come from its record, which has them sorted
            member = msgspec.structs.replace(member, topics=recorded[member.topics])
        share = state.shares.get(member_id, ())
        members[member_id] = Subscriber(subscribed(computing, member), share, member.instance_id, member.rack)
    topics = computing.topics(dict.fromkeys(topic for each in members.values() for topic in each.topics))
    # The assignor that most members name; of several, and if none does, the coordinator's first.
    votes = [member.assignor for member in state.members.values()]
    assignor = max(computing.assignors, key=votes.count)
    shares = computing.assign(assignor, members, _alike(state.members.values()))
    for member_id in state.members:
        share, before_share = shares.get(member_id, ()), state.shares.get(member_id)
        if before_share is None or frozenset(share) != frozenset(before_share):
            changes.put(SHARE, member_id, share)
    changes.put(TARGET, "", Target(state.epoch, assignor, topics))
    changes.effects.report_generation(changes.group.group_id, state.epoch, assignor, state.members)
    changes.show("the shares are computed")


def _alike(members: Collection[Member]) -> bool:
    """Return whether members subscribe alike: all to the same names, or all by the same expression alone."""
    patterns = {member.pattern or "" for member in members}
    names = {frozenset(member.topics) for member in members}
    return len(patterns) == len(names) == 1 and (patterns == {""} or names == {frozenset()})
