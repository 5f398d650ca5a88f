"""How a static member that comes back gets a new id in the place of its old one (PROTOCOL 6.2, 6.3)."""

import msgspec

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup, Member, TimerKind, find
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.classic.subscriptions import topics_of
from coordinator_core.coordinator.records import GroupRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import MemberRemoved, MemberReplaced
from coordinator_core.protocol.messages import JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse

SKIP_ASSIGNMENT_SINCE = 9


def replace(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest, new_id: str) -> None:
    """Replace the id of a static member that comes back under its instance id (PROTOCOL 6.2, 6.3)."""
    assert request.group_instance_id is not None
    old_id = group.static_members[request.group_instance_id]
    member = group.members[old_id]
    rebalance.refuse_join(step, group, member, ErrorCode.FENCED_INSTANCE_ID)
    rebalance.refuse_sync(step, member, ErrorCode.FENCED_INSTANCE_ID)
    before = MemberBefore(
        old_id, member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms, group.leader
    )
    group.replace(old_id, new_id)
    step.cancel(TimerKind.SESSION, group, old_id)
    group.update(member, request)
    group.joins[new_id] = request_id
    group.restart_session(step, new_id)
    step.effects.events.append(
        MemberReplaced(
            group=group.group_id,
            instance_id=request.group_instance_id,
            old_member_id=old_id,
            new_member_id=new_id,
        )
    )
    if group.state is not GroupState.STABLE:
        rebalance.start_or_continue(step, group, f"{new_id} came back during a rebalance")
        return
    if _must_rebalance(step, group, before, member):
        rebalance.start(step, group, f"{new_id} came back with other metadata")
        return
    stored = group.stored(group.assignments(), step.now_ms)
    write = StoreReplacement(group.group_id, group.generation, new_id, before, request.version)
    step.append((GroupRecord(group.group_id, stored),), write)


def _must_rebalance(step: Step, group: ClassicGroup, before: "MemberBefore", member: Member) -> bool:
    """Compare the choice of assignor, as Kafka does (KAFKA-12759), and by configuration the topics."""
    if group.choose_protocol() != group.protocol_name:
        return True
    if not step.config.notice_static_subscription:
        return False
    return topics_of(before.protocols).keys() != topics_of(member.protocols).keys()


class MemberBefore(msgspec.Struct, frozen=True):
    """A static member before it was replaced, to be restored if the write fails (C-41)."""

    member_id: str
    protocols: tuple[JoinGroupProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    leader: str | None


class StoreReplacement(msgspec.Struct, frozen=True):
    """The new id of a static member in a Stable group, under way to the log."""

    group_id: str
    generation: int
    new_id: str
    before: MemberBefore
    version: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer with the current generation; after a failure, restore the old id.

        The result is ignored if a round has started meanwhile.
        """
        group = find(step, self.group_id)
        member = group.members.get(self.new_id) if group is not None else None
        if group is None or member is None:
            return
        if group.state is not GroupState.STABLE or group.generation != self.generation:
            return  # the member is in a round, which stores its new id and answers it
        if error:
            self._restore(step, group, member, error)
        else:
            self._answer(step, group, member)

    def _answer(self, step: Step, group: ClassicGroup, member: Member) -> None:
        request_id = group.joins.pop(member.member_id, None)
        if request_id is None:
            return
        led = self.before.leader == self.before.member_id
        skips = led and self.version >= SKIP_ASSIGNMENT_SINCE
        response = JoinGroupResponse(
            error=ErrorCode.NONE,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=self.new_id if skips else self.before.leader or "",
            skip_assignment=skips,
            member_id=self.new_id,
            members=group.described_members() if skips else (),
        )
        step.effects.reply(request_id, response)
        group.restart_session(step, member.member_id)

    def _restore(self, step: Step, group: ClassicGroup, member: Member, error: ErrorCode) -> None:
        request_id = group.joins.pop(self.new_id, None)
        if request_id is not None:
            step.effects.reply(request_id, JoinGroupResponse(error=error))
        step.cancel(TimerKind.SESSION, group, self.new_id)
        group.replace(self.new_id, self.before.member_id)
        group.set_protocols(member, self.before.protocols)
        member.session_timeout_ms = self.before.session_timeout_ms
        member.rebalance_timeout_ms = self.before.rebalance_timeout_ms
        group.restart_session(step, member.member_id)
        step.effects.events.append(
            MemberRemoved(
                group=group.group_id,
                member_id=self.new_id,
                reason=f"the replacement could not be stored ({error.name}); {member.member_id} is back",
            )
        )
