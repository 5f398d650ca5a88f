"""The states of a group that has no coordinator: what its members do together.

The group is Settled when each of its members whose process runs is at rest with the present list of members.
Otherwise it is Rebalancing: a round is a time in which the group does not rest.
"""

from collections.abc import Callable, Container

from coordinator_core.protocol import events as ev

EMPTY, REBALANCING, SETTLED = "Empty", "Rebalancing", "Settled"
GROUP_STATES = {
    EMPTY: frozenset({REBALANCING}),
    REBALANCING: frozenset({SETTLED, EMPTY}),
    SETTLED: frozenset({REBALANCING, EMPTY}),
}
"""The states of a group without a coordinator, and those that may follow each."""


class Gathering:
    """Observes the members and reports the states of the group.

    ``at_rest`` has the states of members that rest.
    """

    def __init__(self, group: str, at_rest: Container[str], emit: Callable[[ev.Event], None]) -> None:
        self._group, self._at_rest, self._emit = group, at_rest, emit
        self.state, self.generation = EMPTY, 0
        self.members: dict[str, None] = {}
        """The ids of the members, as the servers have them."""
        self._ended: set[str] = set()
        self._states: dict[str, str] = {}
        self._joined: dict[str, tuple[str, int]] = {}

    def observe(self, at_ms: int, event: ev.Event) -> None:  # noqa: ARG002 - the interface's
        """Take over an event of the run."""
        match event:
            case ev.MemberAdded():
                self.members[event.member_id] = None
                self._ended.discard(event.member_id)
                self._move_to(REBALANCING, f"{event.member_id} joined")
            case ev.MemberRemoved():
                self.members.pop(event.member_id, None)
                self._move_to(REBALANCING if self.members else EMPTY, f"{event.member_id}: {event.reason}")
            case ev.GenerationStarted():
                self.generation = event.generation
            case ev.Joined():
                self._joined[event.client] = event.member_id, event.generation
                self._ended.discard(event.member_id)
            case ev.Assigned():
                self._settle()
            case ev.ClientStateChanged():
                self._states[event.client] = event.after
                if event.after not in self._at_rest and self._is_member(event.client):
                    self._move_to(REBALANCING, f"{event.client} is {event.after}")
                self._settle()
            case ev.MemberStopped() | ev.ConsumerFailed():
                self._states.pop(event.client, None)
                self._ended.add(self._joined.pop(event.client, ("", 0))[0])
                self._settle()

    def _is_member(self, client: str) -> bool:
        return self._joined.get(client, ("", 0))[0] in self.members

    def _settle(self) -> None:
        """Report that the group rests, if each member whose process runs does."""
        if self.state != REBALANCING:
            return
        joined = {member_id: client for client, (member_id, _) in self._joined.items()}
        for member_id in self.members:
            if member_id in self._ended:
                continue
            client = joined.get(member_id)
            if client is None or self._joined[client][1] != self.generation:
                return
            if self._states.get(client) not in self._at_rest:
                return
        self._move_to(SETTLED, "every member is at rest")

    def _move_to(self, state: str, cause: str) -> None:
        if state != self.state:
            before, self.state = self.state, state
            self._emit(
                ev.GroupStateChanged(
                    group=self._group, before=before, after=state, generation=self.generation, cause=cause
                )
            )
