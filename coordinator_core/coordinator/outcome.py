"""The outcome of one step of the coordinator."""

from collections.abc import Iterable

import msgspec

from coordinator_core.coordinator.records import Records
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import Response


class Append(msgspec.Struct, frozen=True):
    """Records to write, all or none; the driver reports the result to `Coordinator.on_appended`."""

    append_id: int
    partition: int
    records: Records


class Reply(msgspec.Struct, frozen=True):
    """The response to the request that was received under this id."""

    request_id: int
    response: Response


class Outcome(msgspec.Struct):
    """The effects of one step, to be carried out in this order: appends, replies, events.

    A step adds its effects to the outcome; who receives the outcome only reads it. ``superseded`` are the
    ids of requests that will never be answered, because the same member has sent a newer request, or was
    removed. Each request ends in exactly one reply or in one entry of ``superseded``.
    """

    appends: list[Append] = []
    replies: list[Reply] = []
    events: list[ev.Event] = []
    superseded: list[int] = []

    def reply(self, request_id: int, response: Response) -> None:
        """Answer a request."""
        self.replies.append(Reply(request_id, response))

    def supersede(self, request_id: int | None) -> None:
        """Give up a request, if there is one."""
        if request_id is not None:
            self.superseded.append(request_id)

    def report_move(self, group: str, before: str, after: str, generation: int, cause: str) -> None:
        """Report that the state of a group has changed."""
        moved = ev.GroupStateChanged(
            group=group, before=str(before), after=str(after), generation=generation, cause=cause
        )
        self.events.append(moved)

    def report_added(self, group: str, member_id: str, instance_id: str | None = None) -> None:
        """Report that a group has a new member."""
        self.events.append(ev.MemberAdded(group=group, member_id=member_id, instance_id=instance_id))

    def report_removed(self, group: str, member_id: str, reason: str) -> None:
        """Report that a group has lost a member."""
        self.events.append(ev.MemberRemoved(group=group, member_id=member_id, reason=reason))

    def report_replaced(self, group: str, instance_id: str, old_id: str, new_id: str) -> None:
        """Report that a static member came back under a new id."""
        replaced = ev.MemberReplaced(
            group=group, instance_id=instance_id, old_member_id=old_id, new_member_id=new_id
        )
        self.events.append(replaced)

    def report_generation(
        self, group: str, generation: int, protocol: str, members: Iterable[str], leader: str = ""
    ) -> None:
        """Report that the members of a generation are known."""
        started = ev.GenerationStarted(
            group=group, generation=generation, protocol=protocol, leader=leader, members=list(members)
        )
        self.events.append(started)
