"""What groups have in common whose members join rounds: members, parked joins, pending ids, initial delay.

The rules of the rounds are those of the families.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

from coordinator_core.coordinator.expiry import unattended
from coordinator_core.coordinator.records import GroupRecord, StoredGroup, StoredMember
from coordinator_core.coordinator.shard import MEMBER_BYTES, Group, Step, Write
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode


class TimerKind(IntEnum):
    """The purpose of a deadline. Deadlines of one moment fire in this order."""

    PENDING_MEMBER = 0
    SESSION = 1
    JOIN = 2
    SYNC = 3
    CAPACITY = 4


@dataclass(slots=True)
class RoundMember(ABC):
    """A member, as every family with rounds knows it. Families add what a member subscribes to."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    assignment: bytes = b""

    @classmethod
    def of(cls, stored: StoredMember) -> Self:
        """Return the member of a record, without its subscription."""
        timeouts = stored.session_timeout_ms, stored.rebalance_timeout_ms
        client = stored.client_id, stored.client_host
        return cls(stored.member_id, stored.instance_id, *client, *timeouts, stored.assignment)

    def stored(self, protocol: str | None, assignment: bytes) -> StoredMember:
        """Return the member as a part of the group's record, with its subscription for an assignor."""
        timeouts = self.session_timeout_ms, self.rebalance_timeout_ms
        content = self.subscription(protocol), assignment
        return StoredMember(self.member_id, self.instance_id, *self._client(), *timeouts, *content)

    def described(self, protocol: str | None, *, is_stable: bool) -> m.DescribedMember:
        """Return the member as administrators see it."""
        shown = self.shown(protocol, is_stable=is_stable)
        return m.DescribedMember(self.member_id, self.instance_id, *self._client(), *shown)

    def _client(self) -> tuple[str, str]:
        return self.client_id, self.client_host

    @abstractmethod
    def subscription(self, protocol: str | None) -> bytes:
        """Return the subscription for an assignor, as the log has it."""

    @abstractmethod
    def shown(self, protocol: str | None, *, is_stable: bool) -> tuple[bytes, bytes]:
        """Return the subscription and the assignment that administrators see."""

    def size_bytes(self) -> int:
        """Return about how much memory the member takes. Its subscription is in the log's table as well."""
        return MEMBER_BYTES + 2 * len(self.assignment)


AnyMember = TypeVar("AnyMember", bound=RoundMember)


class RoundGroup(Group, ABC, Generic[AnyMember]):
    """A group of a family with rounds. ``members`` are in the order in which they joined.

    ``pending`` are the ids of members that must join again with the id that they received. ``joins`` are the
    ids of the parked joins by member id. ``has_grown``: a member was added in this part of the initial delay,
    and ``delay_left_ms`` is the time by which the delay may still be prolonged.
    """

    empty: ClassVar[str]
    preparing: ClassVar[str]
    stable: ClassVar[str]
    """The states of the family: without members, waiting for joins, with an assignment for every member."""

    join_response: ClassVar[Callable[..., m.Response]]
    """The class of the responses to joins. It takes an ``error`` and a ``member_id``."""

    members: dict[str, AnyMember]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.previous_state = self.state
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members = {}
        self.pending: dict[str, None] = {}
        self.joins: dict[str, int] = {}
        self.has_grown = False
        self.delay_left_ms = 0

    # --- the rules of the families

    @abstractmethod
    def check(self, request: Any) -> ErrorCode:
        """Check whether a member may send a request now."""

    @abstractmethod
    def restart_session(self, step: Step, member_id: str) -> None:
        """Restart the session of a member, if it is counted."""

    # --- for every coordinator's requests

    @property
    def expects_members(self) -> bool:
        """Whether ids are pending."""
        return bool(self.pending)

    def forget_expected(self) -> None:
        """Forget the pending ids."""
        self.pending.clear()

    def describe(self) -> m.DescribedGroup:
        """Return the group as administrators see it. The assignor is shown if it is Stable."""
        is_stable, protocol = self.state == self.stable, self.protocol_name
        members = [each.described(protocol, is_stable=is_stable) for each in self.members.values()]
        return m.DescribedGroup(
            error=NONE,
            group_id=self.group_id,
            state=str(self.state),
            protocol_type=self.protocol_type or "",
            protocol_name=(protocol or "") if is_stable else "",
            members=tuple(members),
        )

    def accept_commit(self, step: Step, request: m.OffsetCommitRequest) -> ErrorCode:
        """Check a commit (C-33 to C-36). A commit restarts the session of its member."""
        simple = request.generation_id < 0 and self.is_empty
        error = NONE if simple else self.check(request)
        if not error and request.member_id in self.members:
            self.restart_session(step, request.member_id)
        return error

    def accept_in_transaction(self, request: m.TxnOffsetCommitRequest) -> ErrorCode:
        """Check a commit in a transaction. It is accepted while members wait for an assignment, too."""
        return self.check(request)

    def size_bytes(self) -> int:
        """Return about how much memory the group takes, without its offsets."""
        size = super().size_bytes() + MEMBER_BYTES * len(self.pending)
        return size + sum(member.size_bytes() for member in self.members.values())

    # --- the table of members

    def move_to(self, state: str) -> None:
        """Change state.

        Raises:
            AssertionError: if the move is illegal.
        """
        self.check_move(self.state, state)
        self.previous_state, self.state = self.state, state

    def add(self, member: AnyMember) -> None:
        """Add a member. Its id is pending no longer."""
        self.members[member.member_id] = member
        self.has_grown = True
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member."""
        del self.members[member_id]

    def rebalance_timeout_ms(self) -> int:
        """Return the largest rebalance timeout of the members (PROTOCOL 3.6)."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def all_have_joined(self) -> bool:
        """Return whether every member has joined and no id is pending (PROTOCOL 3.6)."""
        return not self.pending and len(self.joins) == len(self.members)

    def is_in_initial_delay(self) -> bool:
        """Return whether the group collects members for its first round since it was Empty."""
        return self.state == self.preparing and self.previous_state == self.empty

    def has_room(self, member_id: str, max_size: int) -> bool:
        """Return whether the group has room (PROTOCOL 3.1, C-08).

        While the group waits for joins, the members with a parked join count; in other states all members do.
        """
        counted: Mapping[str, object] = self.joins if self.state == self.preparing else self.members
        return member_id in counted or len(counted) < max_size or self.is_empty

    # --- the log

    def stored(self, assignments: Mapping[str, bytes], now_ms: int) -> StoredGroup:
        """Return the group as the value of a record. Assignments that are missing are stored as empty."""
        return StoredGroup(
            protocol_type=self.protocol_type or "",
            protocol_name=self.protocol_name,
            generation=self.generation,
            leader=self.leader,
            members=tuple(
                member.stored(self.protocol_name, assignments.get(member_id, b""))
                for member_id, member in self.members.items()
            ),
            changed_at_ms=now_ms,
            family=self.family,
        )

    def take_over(self, stored: StoredGroup) -> None:
        """Continue the group of a record, whose members are added: Stable, or Empty without a member."""
        self.protocol_type, self.protocol_name = stored.protocol_type or None, stored.protocol_name
        self.generation, self.leader = stored.generation, stored.leader
        self.emptied_at_ms = stored.changed_at_ms if stored.protocol_type else 0
        if self.members:
            self.state = self.previous_state = self.stable

    def store(self, step: Step, assignments: Mapping[str, bytes], write: Write) -> None:
        """Write the group with the assignments to the log."""
        stored = self.stored(assignments, step.now_ms)
        step.append((GroupRecord(self.group_id, stored),), write)

    # --- rounds

    def move(self, step: Step, state: str, cause: str) -> None:
        """Change state, and report it."""
        before = self.state
        self.move_to(state)
        step.moved(self, before, state, cause)

    def refuse_parked(self, step: Step, member: AnyMember, error: ErrorCode) -> None:
        """Answer the parked requests of a member with an error."""
        request_id = self.joins.pop(member.member_id, None)
        if request_id is not None:
            step.effects.reply(request_id, self.join_response(error=error, member_id=member.member_id))

    def drop(self, step: Step, member: AnyMember, reason: str) -> None:
        """Remove a member; its parked join gets UNKNOWN_MEMBER_ID, without a member id (C-37)."""
        request_id = self.joins.pop(member.member_id, None)
        if request_id is not None:
            step.effects.reply(request_id, self.join_response(error=ErrorCode.UNKNOWN_MEMBER_ID))
        self.remove(member.member_id)
        step.cancel(TimerKind.SESSION, self, member.member_id)
        step.effects.report_removed(self.group_id, member.member_id, reason)

    def hand_out_id(self, step: Step, request_id: int, session_timeout_ms: int) -> None:
        """Give a new member its id. It must join again with it within the session timeout (PROTOCOL 3.4)."""
        member_id = step.new_member_id(step.client_id)
        self.pending[member_id] = None
        step.schedule(TimerKind.PENDING_MEMBER, self, session_timeout_ms, member_id)
        response = self.join_response(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        step.effects.reply(request_id, response)

    def take_back_id(self, step: Step, member_id: str) -> bool:
        """Forget an id that was handed out. Return whether it was pending."""
        if member_id not in self.pending:
            return False
        del self.pending[member_id]
        step.cancel(TimerKind.PENDING_MEMBER, self, member_id)
        return True

    def turn_away(self, step: Step, request_id: int, member_id: str) -> None:
        """Refuse a join to a full group; a known id becomes unknown (C-08)."""
        self.take_back_id(step, member_id)
        if member_id in self.members:
            self.drop(step, self.members[member_id], "the group is full")
        step.effects.reply(request_id, self.join_response(error=ErrorCode.GROUP_MAX_SIZE_REACHED))

    def begin_join_phase(self, step: Step, cause: str) -> None:
        """Begin to wait for joins: in an Empty group for the initial delay (KIP-134, C-10)."""
        self.move(step, self.preparing, cause)
        timeout_ms = self.rebalance_timeout_ms()
        if self.is_in_initial_delay():
            delay_ms = step.config.initial_rebalance_delay_ms
            self.has_grown, self.delay_left_ms = False, max(timeout_ms - delay_ms, 0)
            timeout_ms = delay_ms
        step.schedule(TimerKind.JOIN, self, timeout_ms)

    def prolong_initial_delay(self, step: Step) -> bool:
        """Wait on if members have come during the initial delay. Return whether the group does."""
        if not (self.is_in_initial_delay() and self.has_grown and self.delay_left_ms):
            return False
        delay_ms = min(step.config.initial_rebalance_delay_ms, self.delay_left_ms)
        self.has_grown, self.delay_left_ms = False, self.delay_left_ms - delay_ms
        step.schedule(TimerKind.JOIN, self, delay_ms)
        return True

    def become_empty(self, step: Step) -> None:
        """Become Empty: the last member has left. The generation has grown all the same (PROTOCOL 3.7)."""
        self.emptied_at_ms = step.now_ms
        self.move(step, self.empty, "no member is left")
        step.schedule_retention(self)
        self.store(step, {}, unattended)


def has_valid_session(step: Step, session_timeout_ms: int) -> bool:
    """Return whether the session timeout of a join is within the limits of the coordinator."""
    return step.config.min_session_timeout_ms <= session_timeout_ms <= step.config.max_session_timeout_ms
