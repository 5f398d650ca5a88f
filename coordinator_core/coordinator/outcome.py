"""The outcome of one step of the coordinator."""

import msgspec

from coordinator_core.coordinator.records import Records
from coordinator_core.protocol.events import Event
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
    ids of requests that will never be answered, because the same member has sent a newer request. Each
    request ends in exactly one reply or in one entry of ``superseded``.
    """

    appends: list[Append] = []
    replies: list[Reply] = []
    events: list[Event] = []
    superseded: list[int] = []

    def reply(self, request_id: int, response: Response) -> None:
        """Answer a request."""
        self.replies.append(Reply(request_id, response))

    def supersede(self, request_id: int | None) -> None:
        """Give up a request, if there is one, for a newer request of the same member."""
        if request_id is not None:
            self.superseded.append(request_id)
