"""What one step of the coordinator gives back, and how it is gathered."""

import msgspec

from coordinator_core.coordinator.records import Record
from coordinator_core.protocol.events import Event
from coordinator_core.protocol.messages import Response


class Append(msgspec.Struct, frozen=True):
    """Records to write, all or none; the driver reports back with `Coordinator.on_appended`."""

    append_id: int
    partition: int
    records: tuple[Record, ...]


class Reply(msgspec.Struct, frozen=True):
    """The answer to the request that came in under this id; each request is answered at most once."""

    request_id: int
    response: Response


class Outcome(msgspec.Struct, frozen=True):
    """Everything one step wants done, in this order: appends, replies, events."""

    appends: tuple[Append, ...] = ()
    replies: tuple[Reply, ...] = ()
    events: tuple[Event, ...] = ()


NOTHING = Outcome()


class Effects:
    """Gathers an outcome while a step runs."""

    __slots__ = ("appends", "events", "replies")

    def __init__(self) -> None:
        self.appends: list[Append] = []
        self.replies: list[Reply] = []
        self.events: list[Event] = []

    def reply(self, request_id: int, response: Response) -> None:
        """Answer a request."""
        self.replies.append(Reply(request_id, response))

    def outcome(self) -> Outcome:
        """What has been gathered."""
        if not (self.appends or self.replies or self.events):
            return NOTHING
        return Outcome(tuple(self.appends), tuple(self.replies), tuple(self.events))
