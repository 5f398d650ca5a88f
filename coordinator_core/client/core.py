"""What the parts of a client share."""

from dataclasses import dataclass
from random import Random

from coordinator_core.client.callbacks import Callbacks
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.metadata import Metadata
from coordinator_core.client.outcome import Effects
from coordinator_core.client.requests import Completion, RequestQueue
from coordinator_core.client.subscription import Subscriptions
from coordinator_core.protocol.events import ConsumerFailed
from coordinator_core.protocol.messages import Request


@dataclass(slots=True)
class Core:
    """One object each of what every part needs; ``failure`` is why the consumer ended for good."""

    config: ClientConfig
    random: Random
    effects: Effects
    requests: RequestQueue
    subscriptions: Subscriptions
    metadata: Metadata
    callbacks: Callbacks
    failure: str | None = None

    def send(
        self,
        node: int,
        request: Request,
        completion: Completion,
        *,
        now_ms: int,
        timeout_ms: int | None = None,
    ) -> int:
        """Queue a request; request.timeout.ms unless said otherwise."""
        timeout_ms = self.config.request_timeout_ms if timeout_ms is None else timeout_ms
        return self.requests.submit(
            node, request, now_ms=now_ms, timeout_ms=timeout_ms, completion=completion
        )

    def fail(self, error: Exception) -> None:
        """The consumer ends for good; the application hears why."""
        if self.failure is None:
            self.failure = str(error)
            self.effects.events.append(ConsumerFailed(client=self.config.client_id, error=self.failure))
        self.effects.fail(error)
