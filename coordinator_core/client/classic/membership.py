"""A consumer's part in its group: state, generation, and what errors make of them (PROTOCOL 9.4, 9.9)."""

from collections.abc import Callable, Sequence

from coordinator_core.assigning.assignor import ArrayAssignor, Assignor, supported_protocols
from coordinator_core.client.classic.error_actions import Action
from coordinator_core.client.classic.states import MEMBER_MOVES, MemberState
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.requests import Answer
from coordinator_core.client.states import check_move
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import RebalanceProtocol
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import ClientStateChanged
from coordinator_core.protocol.messages import LeaveGroupRequest, MemberIdentity


def rebalance_protocol(assignors: Sequence[Assignor | ArrayAssignor]) -> RebalanceProtocol:
    """The highest protocol that all assignors support (PROTOCOL 9.8, PITFALLS C-58).

    Raises InputError where there is none, or two assignors of one name.
    """
    names = [a.name for a in assignors]
    if not names:
        raise InputError("partition.assignment.strategy", "no assignor", "at least one")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("partition.assignment.strategy", f"{twice!r} twice", "each assignor once")
    for protocol in (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER):
        if all(protocol in supported_protocols(a) for a in assignors):
            return protocol
    said = ", ".join(f"{a.name}: {'/'.join(p.value for p in supported_protocols(a))}" for a in assignors)
    raise InputError("partition.assignment.strategy", said, "assignors with a rebalance protocol in common")


class Membership:
    """Who the consumer is in the group. Everything that changes it goes through here."""

    def __init__(self, core: Core, coordinator: CoordinatorFinder) -> None:
        self._core, self._coordinator = core, coordinator
        self.state = MemberState.UNJOINED
        self.rejoin_reason = "the first join"
        self.rejoin_requested = True
        self.must_prepare = True
        self.retry_ms = 0

    @property
    def is_static(self) -> bool:
        """Whether it has a group.instance.id."""
        return self._core.config.group_instance_id is not None

    def move_to(self, state: MemberState) -> None:
        """Change state and say so."""
        if state is self.state:
            return
        check_move(MEMBER_MOVES, self.state, state)
        before, self.state = self.state, state
        self._core.effects.events.append(
            ClientStateChanged(client=self._core.config.client_id, before=before.value, after=state.value)
        )

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll."""
        self.rejoin_requested = True
        self.rejoin_reason = reason

    def reset(self, reason: str, *, keep_member_id: bool) -> None:
        """Forget the generation, and the member id where it is unknown to the coordinator; join anew.

        What is owned is lost when the next join is prepared.
        """
        self.must_prepare = True
        kept = self._core.generation.member_id if keep_member_id else NO_MEMBERSHIP.member_id
        self._core.generation = NO_MEMBERSHIP._replace(member_id=kept)
        self.move_to(MemberState.UNJOINED)
        self.request_rejoin(reason)

    def resume(self, generation: Generation) -> None:
        """Be a member of a generation without having joined it here."""
        self._core.generation = generation
        self.rejoin_requested = False
        self.move_to(MemberState.STABLE)

    def back_off(self, *, now_ms: int) -> None:
        """No new attempt before retry.backoff.ms have passed."""
        self.retry_ms = now_ms + self._core.config.retry_backoff_ms

    def act_on(self, api: str, action: Action, error: ErrorCode, sent: Generation, *, now_ms: int) -> None:
        """Carry out what the table says about an error; what concerns an older generation is ignored."""
        what = f"{api}: {error.name}"
        if action is Action.FATAL:
            if sent == self._core.generation:
                if error is ErrorCode.FENCED_INSTANCE_ID:  # what it owns is another's by now
                    self.reset(what, keep_member_id=False)
                self._core.fail(ProtocolError(api, error.name))
        elif action is Action.REDISCOVER:
            self._coordinator.lose(now_ms=now_ms)
        elif action is Action.BACK_OFF:
            self.back_off(now_ms=now_ms)
        elif sent != self._core.generation:
            return
        elif action is Action.REJOIN:
            self.request_rejoin(what)
        else:
            self.reset(what, keep_member_id=action is Action.RESET_GENERATION)

    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:
        """Tell the coordinator, unless the member is static (PROTOCOL 6.1), and forget the membership.

        Whether a LeaveGroup is under way; ``left`` is called when it is answered, whatever the answer is:
        the member is gone or will be (C-59).
        """
        told = False
        node, member_id = self._coordinator.node, self._core.generation.member_id
        joined = self.state is not MemberState.UNJOINED
        if not self.is_static and node is not None and joined and member_id:
            identity = MemberIdentity(member_id, None, reason)
            request = LeaveGroupRequest(group_id=self._core.config.group_id, members=(identity,))

            def answered(answer: Answer, at_ms: int) -> None:  # noqa: ARG001 - the interface's
                if left is not None:
                    left()

            self._core.send(node, request, answered, now_ms=now_ms)
            told = True
        self.reset(reason, keep_member_id=False)
        return told
