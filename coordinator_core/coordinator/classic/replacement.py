"""How a static member that comes back gets a new id in the place of its old one (PROTOCOL 6.2, 6.3)."""

from dataclasses import replace as copied
from functools import partial
from typing import NamedTuple

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup, Member
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.classic.subscriptions import topics_of
from coordinator_core.coordinator.round_group import TimerKind
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import JoinGroupRequest, JoinGroupResponse

SKIP_ASSIGNMENT_SINCE = 9


class Before(NamedTuple):
    """A static member and the leader before the replacement, to be restored if the write fails (C-41)."""

    member: Member
    leader: str | None


def replace(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest) -> None:
    """Replace the id of a static member that comes back under its instance id (PROTOCOL 6.2, 6.3)."""
    instance_id = request.group_instance_id
    assert instance_id is not None
    old_id, new_id = group.static_members[instance_id], step.new_member_id(instance_id)
    member = group.members[old_id]
    group.refuse_parked(step, member, ErrorCode.FENCED_INSTANCE_ID)
    before = Before(copied(member), group.leader)
    group.replace(old_id, new_id)
    step.cancel(TimerKind.SESSION, group, old_id)
    group.restart_session(step, new_id)  # with the timeout before, as in Kafka
    group.update(member, request)
    group.joins[new_id] = request_id
    step.effects.report_replaced(group.group_id, instance_id, old_id, new_id)
    if group.state is not GroupState.STABLE:
        rebalance.start_or_continue(step, group, f"{new_id} came back during a rebalance")
    elif _must_rebalance(step, group, before.member, member):
        rebalance.start(step, group, f"{new_id} came back with other metadata")
    else:
        skips = before.leader == old_id and request.version >= SKIP_ASSIGNMENT_SINCE
        assignments = {m.member_id: m.assignment for m in group.members.values()}
        write = partial(_stored, group.group_id, group.generation, new_id, before, skips)
        group.store(step, assignments, write)


def _must_rebalance(step: Step, group: ClassicGroup, before: Member, member: Member) -> bool:
    """Compare the choice of assignor, as Kafka does (KAFKA-12759), and by configuration the topics."""
    if group.choose_protocol() != group.protocol_name:
        return True
    if not step.config.notice_static_subscription:
        return False
    return topics_of(before.protocols).keys() != topics_of(member.protocols).keys()


def _stored(
    group_id: str, generation: int, new_id: str, before: Before, skips: bool, step: Step, error: ErrorCode
) -> None:
    """Answer with the current generation; after a failure, restore the old id.

    The result is ignored if a round has started meanwhile: it stores the new id, and answers the member.
    """
    group = step.find(group_id, ClassicGroup)
    member = None if group is None else group.members.get(new_id)
    if group is None or member is None:
        return
    if group.state is not GroupState.STABLE or group.generation != generation:
        return
    if error:
        _restore(step, group, member, before.member, error)
        return
    request_id = group.joins.pop(new_id, None)
    if request_id is None:
        return
    response = JoinGroupResponse(
        error=NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=new_id if skips else before.leader or "",
        skip_assignment=skips,
        member_id=new_id,
        members=group.members_for_leader() if skips else (),
    )
    step.effects.reply(request_id, response)
    if not step.timers.is_set(TimerKind.SESSION, group_id, new_id):
        group.restart_session(step, new_id)  # the write has taken longer than the session


def _restore(step: Step, group: ClassicGroup, member: Member, before: Member, error: ErrorCode) -> None:
    new_id, old_id = member.member_id, before.member_id
    request_id = group.joins.pop(new_id, None)
    if request_id is not None:
        step.effects.reply(request_id, JoinGroupResponse(error=error))
    step.cancel(TimerKind.SESSION, group, new_id)
    group.replace(new_id, old_id)
    group.update(member, before)
    group.restart_session(step, old_id)
    reason = f"the replacement could not be stored ({error.name}); {old_id} is back"
    step.effects.report_removed(group.group_id, new_id, reason)
