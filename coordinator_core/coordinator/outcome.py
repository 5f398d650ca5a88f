"""The outcome of one step of the coordinator, and how it is collected."""

import msgspec

from coordinator_core.coordinator.records import Record
from coordinator_core.protocol.events import Event
from coordinator_core.protocol.messages import Response


class Append(msgspec.Struct, frozen=True):
    """Records to write, all or none; the driver reports the result to `Coordinator.on_appended`."""

    append_id: int
    partition: int
    records: tuple[Record, ...]


class Reply(msgspec.Struct, frozen=True):
    """The response to the request that was received under this id."""

    request_id: int
    response: Response


class Outcome(msgspec.Struct, frozen=True):
    """The effects of one step, to be carried out in this order: appends, replies, events.

    ``superseded`` are the ids of requests that will never be answered, because the same member has sent a
    newer request. Each request ends in exactly one reply or in one entry of ``superseded``.
    """

    appends: tuple[Append, ...] = ()
    replies: tuple[Reply, ...] = ()
    events: tuple[Event, ...] = ()
    superseded: tuple[int, ...] = ()


NOTHING = Outcome()


class Effects:
    """Collects the effects of a step while it runs."""

    __slots__ = ("appends", "events", "replies", "superseded")

    def __init__(self) -> None:
        self.appends: list[Append] = []
        self.replies: list[Reply] = []
        self.events: list[Event] = []
        self.superseded: list[int] = []

    def reply(self, request_id: int, response: Response) -> None:
        """Answer a request."""
        self.replies.append(Reply(request_id, response))

    def supersede(self, request_id: int | None) -> None:
        """Give up a request, if there is one, for a newer request of the same member."""
        if request_id is not None:
            self.superseded.append(request_id)

    def outcome(self) -> Outcome:
        """Return the effects collected so far."""
        if not (self.appends or self.replies or self.events or self.superseded):
            return NOTHING
        return Outcome(tuple(self.appends), tuple(self.replies), tuple(self.events), tuple(self.superseded))
