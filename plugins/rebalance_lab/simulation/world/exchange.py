"""A request of a consumer with its response, for observers of a run. A trace has no messages."""

from dataclasses import dataclass

from coordinator_core.protocol.messages import Request, Response


@dataclass(slots=True)
class Exchange:
    """A request of a consumer to a broker. ``response`` is None until a response arrives at the consumer.

    An observer receives the exchange when the request is sent. Times are virtual milliseconds.
    """

    client: str
    node: int
    request: Request
    sent_ms: int
    response: Response | None = None
    answered_ms: int | None = None

    def answer(self, response: Response, *, now_ms: int) -> None:
        """Note the response, unless it is a duplicate."""
        if self.answered_ms is None:
            self.response, self.answered_ms = response, now_ms
