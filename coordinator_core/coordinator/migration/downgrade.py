"""A group becomes a classic one again, when no member is left that speaks the consumer protocol."""

from collections.abc import Iterable

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import FAMILY, ClassicGroup, restored
from coordinator_core.coordinator.reconcile.changes import Changes
from coordinator_core.coordinator.reconcile.state import TARGET, Classic, GroupState, Member
from coordinator_core.coordinator.records import GroupRecord, StoredGroup, StoredMember
from coordinator_core.coordinator.shard import Step
from coordinator_core.model import Partitions
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, encode_assignment
from coordinator_core.protocol.messages import JoinGroupProtocol


def downgrade(changes: Changes, *, in_a_round: bool = True) -> bool:
    """Make the group a classic one, if its members all speak the classic protocol and the policy allows it.

    The group epoch is its generation. ``in_a_round``: it begins a round, because a member has gone. It begins
    one in any case if the group has changed since its shares were computed.
    """
    state, group = changes.state, changes.group
    members = {name: member.classic for name, member in state.members.items() if member.classic is not None}
    if not members or len(members) < len(state.members):
        return False
    if not group.settings.allows_downgrade or len(members) > changes.config.max_size:
        return False
    before, cause = str(changes.shown), f"Downgrade group {group.group_id} from consumer to classic"
    stored, has_changed = _stored(state, members, changes.now_ms), state.epoch > state.target.epoch
    for member_id in members:
        changes.delete(member_id)
    changes.put(TARGET, "", None)
    changes.write(GroupRecord(group.group_id, stored))

    def follow(step: Step) -> None:
        classic = _classic_group(step, group.group_id, stored, members)
        step.moved(classic, before, classic.state, cause)
        if in_a_round or has_changed:
            rebalance.start(step, classic, cause)

    changes.follow.append(follow)
    changes.ends = True
    return True


def common_protocol(members: Iterable[Classic]) -> str:
    """Return the first assignor of the first member that all members have."""
    first, *others = ([name for name, _ in member.protocols] for member in members)
    return next(name for name in first if all(name in names for names in others))


def _stored(state: GroupState, members: dict[str, Classic], now_ms: int) -> StoredGroup:
    """Return the record of the classic group."""
    protocol = common_protocol(members.values())
    return StoredGroup(
        PROTOCOL_TYPE,
        protocol,
        state.epoch,
        next(iter(members)),
        tuple(
            _stored_member(state, name, state.members[name], classic, protocol)
            for name, classic in members.items()
        ),
        now_ms,
        FAMILY,
    )


def _stored_member(
    state: GroupState, member_id: str, member: Member, classic: Classic, protocol: str
) -> StoredMember:
    return StoredMember(
        member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        dict(classic.protocols)[protocol],
        encode_assignment(Partitions.of(sorted(state.shares.get(member_id, ())))),
    )


def _classic_group(
    step: Step, group_id: str, stored: StoredGroup, members: dict[str, Classic]
) -> ClassicGroup:
    """Put the classic group in the place of the other, with the sessions of its members."""
    step.timers.cancel_group(group_id)
    group = restored(group_id, stored, step.shard.table.generations.get(group_id, 0))
    for member_id, classic in members.items():
        protocols = tuple(JoinGroupProtocol(name, metadata) for name, metadata in classic.protocols)
        group.list_protocols(group.members[member_id], protocols)
        group.restart_session(step, member_id)
    step.shard.groups[group_id] = group
    step.schedule_retention(group)
    return group
