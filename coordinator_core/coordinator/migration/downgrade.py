"""A group becomes a classic one again, when no member is left that speaks the consumer protocol."""

from itertools import product

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.group import Member as ClassicMember
from coordinator_core.coordinator.reconcile.changes import Changes
from coordinator_core.coordinator.reconcile.group import TimerKind
from coordinator_core.coordinator.reconcile.state import CURRENT, MEMBER, SHARE, TARGET, Member
from coordinator_core.coordinator.records import GroupRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.model import Partitions
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, encode_assignment
from coordinator_core.protocol.messages import JoinGroupProtocol

_OUTLIVE = (TimerKind.JOIN, TimerKind.SYNC)
"""The deadlines that go on if the group is upgraded again before they pass, as in Kafka."""


def downgrade(changes: Changes) -> bool:
    """Make the group a classic one after members were removed, if all others speak the classic protocol.

    Return whether it has. A round begins.
    """
    members = changes.state.members
    if not members or any(member.classic is None for member in members.values()):
        return False
    if not may_become_classic(changes, len(members)):
        return False
    become_classic(changes, changes.state.epoch, in_a_round=True)
    return True


def may_become_classic(changes: Changes, size: int) -> bool:
    """Return whether the policy allows it, and the group is not too large for a classic one."""
    return changes.group.settings.allows_downgrade and size <= changes.config.max_size


def become_classic(changes: Changes, generation: int, *, in_a_round: bool, joining: str = "") -> None:
    """Make the group a classic one of this generation. Its assignments are the shares.

    ``in_a_round``: it begins a round at once. ``joining`` is the member whose join is the reason: it is last,
    and leads no group that has others.
    """
    state, group_id = changes.state, changes.group.group_id
    named = dict.fromkeys(tp.topic for share in state.shares.values() for tp in share)
    existing = changes.group.computing.topics(named)
    before, cause = str(changes.shown), f"Downgrade group {group_id} from consumer to classic"
    classic = ClassicGroup(group_id)
    classic.generation, classic.protocol_type = generation, PROTOCOL_TYPE
    for member_id in sorted(state.members, key=joining.__eq__):
        classic.add(_classic_member(member_id, state.members[member_id]))
    classic.protocol_name = classic.choose_protocol()
    classic.keep_subscriptions()
    classic.state = classic.previous_state = ClassicGroup.stable
    for member_id, each in classic.members.items():
        share = (tp for tp in sorted(state.shares.get(member_id, ())) if tp.topic in existing)
        version = int.from_bytes(each.subscription(classic.protocol_name)[:2], "big")
        each.assignment = encode_assignment(Partitions.of(share), version=version)
    stored = classic.stored({name: each.assignment for name, each in classic.members.items()}, changes.now_ms)
    for kind, member_id in product((CURRENT, SHARE, MEMBER), classic.members):
        changes.put(kind, member_id, None)
    changes.put(TARGET, "", None)
    changes.write(GroupRecord(group_id, stored))

    def follow(step: Step) -> None:
        ended = step.timers.cancel_group(group_id)
        classic.suspended = {key: at_ms for key, at_ms in ended.items() if key.kind in _OUTLIVE}
        for member_id in classic.members:
            classic.restart_session(step, member_id)
        step.shard.groups[group_id] = classic
        step.schedule_retention(classic)
        step.moved(classic, before, classic.state, cause)
        if in_a_round:
            rebalance.start(step, classic, cause)

    changes.follow.append(follow)
    changes.ends = True


def _classic_member(member_id: str, member: Member) -> ClassicMember:
    """Return a member as a classic group has it, without its assignment."""
    assert member.classic is not None
    return ClassicMember(
        member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        protocols=tuple(JoinGroupProtocol(name, metadata) for name, metadata in member.classic.protocols),
        is_new=False,
    )
