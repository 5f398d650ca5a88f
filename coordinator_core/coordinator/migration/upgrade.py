"""A classic group becomes one that the coordinator reconciles, when a member of the new protocol joins."""

from collections.abc import Mapping
from functools import partial

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.group import Member as ClassicMember
from coordinator_core.coordinator.migration.classic_members import speaking_classic
from coordinator_core.coordinator.reconcile.changes import Changes
from coordinator_core.coordinator.reconcile.group import FAMILY, Computing, ReconcileGroup
from coordinator_core.coordinator.reconcile.heartbeat import (
    Request,
    handle,
    invalid,
    invalid_pattern,
    reconcile,
    refused,
)
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
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
from coordinator_core.coordinator.records import GroupRecord, StoredGroup
from coordinator_core.coordinator.shard import Step
from coordinator_core.errors import ProtocolError
from coordinator_core.java.hash_maps import hash_order
from coordinator_core.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
)
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import JoinGroupProtocol
from coordinator_core.protocol.reconcile import JOINS

_RANGE = "range"
"""Kafka's assignor that does not look at what members have."""


def upgrade(
    computing: Computing, settings: ReconcileSettings, step: Step, request_id: int, request: Request
) -> None:
    """Let a member of the consumer protocol join a classic group. The group is upgraded with its members.

    An Empty group has a write on its way; it makes room for a new one all the same.
    """
    error, message = invalid(computing, request)
    classic_group = step.find(request.group_id, ClassicGroup)
    assert classic_group is not None
    if classic_group.is_empty and request.member_epoch == JOINS:
        handle(computing, settings, step, request_id, request)
        return
    if not error and not (request.member_epoch == JOINS and _may_upgrade(settings, classic_group)):
        error = ErrorCode.GROUP_ID_NOT_FOUND
    if error:
        step.effects.reply(request_id, refused(request, error, message))
        return
    for member in classic_group.members.values():
        classic_group.refuse_parked(step, member, ErrorCode.REBALANCE_IN_PROGRESS)
    epoch = max(classic_group.generation, classic_group.handed_out)
    members = _upgraded(computing, classic_group, epoch)
    if not isinstance(members, ErrorCode) and _uniform_fails(computing, members, request):
        members = ErrorCode.UNKNOWN_SERVER_ERROR
    if isinstance(members, ErrorCode):
        step.effects.reply(request_id, refused(request, members))
        return
    group = ReconcileGroup(request.group_id, computing, settings, GroupState())
    reconcile(step, group, request_id, request, partial(_convert, classic_group, epoch, members))
    if group.is_writing:
        _put_in_place(step, group, classic_group)


def _convert(
    classic_group: ClassicGroup, epoch: int, members: Mapping[str, tuple[Member, Current]], changes: Changes
) -> None:
    """Make a group of the members, in an epoch."""
    group = changes.group
    changes.undo.append(partial(_put_back, classic_group))
    stored = StoredGroup(PROTOCOL_TYPE, None, epoch, None, (), changes.now_ms, FAMILY)
    changes.write(GroupRecord(group.group_id, stored))
    names = {topic: None for member, _ in members.values() for topic in member.topics}
    for member_id, (member, current) in members.items():
        changes.put(MEMBER, member_id, member)
        changes.put(SHARE, member_id, current.assigned)
        changes.put(CURRENT, member_id, current)
        changes.follow.append(partial(group.begin_session, member_id=member_id))
    changes.put(TARGET, "", Target(epoch, "", group.computing.topics(names)))
    changes.begin_with(str(classic_group.state), f"Upgrade group {group.group_id} from classic to consumer")


def _put_in_place(step: Step, group: ReconcileGroup, classic_group: ClassicGroup) -> None:
    """Put a group whose records are being written in the place of the classic one."""
    step.timers.cancel_group(group.group_id)
    for (kind, group_id, member_id), at_ms in classic_group.suspended.items():
        if at_ms > step.now_ms:
            step.timers.schedule(kind, group_id, member_id, at_ms)
    step.schedule_retention(group)
    step.shard.groups[group.group_id] = group


def _may_upgrade(settings: ReconcileSettings, group: ClassicGroup) -> bool:
    """Return whether the policy allows it, and the group is one of consumers and not too large."""
    is_large = len(group.members) > settings.max_size
    return settings.allows_upgrade and group.protocol_type == PROTOCOL_TYPE and not is_large


def _upgraded(
    computing: Computing, group: ClassicGroup, epoch: int
) -> Mapping[str, tuple[Member, Current]] | ErrorCode:
    """Return the members, and what they may own, as the new group has them; or why it must stay classic.

    What Kafka does not foresee is UNKNOWN_SERVER_ERROR: no round was completed yet, a member has dropped the
    assignor of the last one, or two members have a partition.
    """
    protocol = group.protocol_name
    if protocol is None or any(
        protocol not in map(_name, member.protocols) for member in group.members.values()
    ):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    try:
        told = {name: decode_subscription(m.subscription(protocol)) for name, m in group.members.items()}
        shares = {name: _assigned(computing, member) for name, member in group.members.items()}
    except ProtocolError:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if len({tp for share in shares.values() for tp in share}) < sum(map(len, shares.values())):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    members = {}
    for member_id in hash_order(group.members):
        member = group.members[member_id]
        client, timeouts_ms = (
            (member.client_id, member.client_host),
            (member.session_timeout_ms, member.rebalance_timeout_ms),
        )
        members[member_id] = (
            speaking_classic(client, member.instance_id, timeouts_ms, member.protocols, told[member_id]),
            Current(epoch, epoch, MemberState.STABLE, shares[member_id]),
        )
    return members


def _uniform_fails(
    computing: Computing, members: Mapping[str, tuple[Member, Current]], request: Request
) -> bool:
    """Return whether Kafka's uniform fails: members have partitions that their topics lack.

    It is run if a member is new to the group, or has other topics, after its regular expression was checked.
    """
    if (request.server_assignor or computing.assignors[0]) == _RANGE:
        return False
    if invalid_pattern(computing, request.subscribed_topic_regex)[0]:
        return False
    topics = {member_id: member.topics for member_id, (member, _) in members.items()}
    instance_id = request.instance_id
    for member_id, (member, _) in members.items():
        if member_id == request.member_id or (instance_id is not None and member.instance_id == instance_id):
            told = tuple(request.subscribed_topic_names or ())
            if set(told) == set(member.topics):
                return False
            topics[member_id] = told
    counts = computing.topics({topic: None for listed in topics.values() for topic in listed})
    return any(
        tp.partition >= counts[tp.topic]
        for member_id, (_, current) in members.items()
        for tp in current.assigned
        if tp.topic in topics[member_id] and tp.topic in counts
    )


def _name(protocol: JoinGroupProtocol) -> str:
    return protocol.name


def _assigned(computing: Computing, member: ClassicMember) -> Listed:
    """Return the assignment of a member, without topics that do not exist.

    Raises:
        ProtocolError: if it cannot be read, or has data of a custom assignor, which would be lost.
    """
    if not member.assignment:
        return ()
    partitions, user_data = decode_assignment(member.assignment)
    if user_data:
        raise ProtocolError("assignment", "user data of a custom assignor")
    existing = computing.topics(dict.fromkeys(tp.topic for tp in partitions))
    return tuple(sorted(tp for tp in partitions if tp.topic in existing))


def _put_back(classic_group: ClassicGroup, step: Step, group: ReconcileGroup) -> None:
    """Go on with the classic group, because the records of the upgrade could not be written."""
    step.timers.cancel_group(group.group_id)
    step.shard.groups[group.group_id] = classic_group
    step.schedule_retention(classic_group)
    rebalance.go_on(step, classic_group, "the upgrade of the group could not be written")
