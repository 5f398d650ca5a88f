"""The state that the parts of a client share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from coordinator_core.client.callbacks import Callbacks
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.metadata import Metadata
from coordinator_core.client.outcome import Effects, PositionSource
from coordinator_core.client.requests import RequestQueue
from coordinator_core.client.subscription import Subscriptions, partition_map
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import (
    Assigned,
    ClientStateChanged,
    ConsumerFailed,
    Joined,
    Lost,
    Revoked,
)


@dataclass(frozen=True, slots=True)
class Library:
    """What client libraries do differently, by default as our consumer does it.

    ``rejoins_at_once``: whether a member that must join again at the end of a round does so in the poll that
    takes over its assignment. Otherwise it does so in the next poll.
    ``joins_with_calls``: whether a poll that calls the listener about partitions that it gives up joins, too.
    Otherwise the next poll does, and heartbeats are sent meanwhile.
    ``calls_apart``: whether a member that the coordinator reconciles commits in one poll, is told in the next
    one what it gives up, and in the one after what it owns. Otherwise one poll does all of it, as far as no
    commit is in flight.
    ``commits_meanwhile``: whether such a member gives partitions up without waiting for the commit.
    ``first_beat_ms``: how long after a cooperative round in which it gave up nothing a member sends its first
    heartbeat; 0: after the interval, as after other rounds.
    ``beats_from_found``: whether the interval of heartbeats begins anew when the coordinator is found.
    Otherwise only the session does.
    ``echoes_user_data``: whether a leader puts the user data of a subscription into the assignment, too, and
    members have no user data before their first generation. Kafka upgrades no group with such assignments.
    """

    rejoins_at_once: bool = True
    joins_with_calls: bool = True
    calls_apart: bool = False
    first_beat_ms: int = 0
    commits_meanwhile: bool = False
    beats_from_found: bool = False
    echoes_user_data: bool = False


OURS = Library()


@dataclass(slots=True)
class Core:
    """The objects that several parts need.

    ``source``: the position source, if the client itself returns no records.
    ``generation``: the identity of the consumer in its group; the family's member writes it.
    ``rebalance_timeout_ms``: how long a round waits for the member.
    ``lateness``: returns how many ms later than after its interval the n-th heartbeat is sent; None: never.
    ``dice``: returns the n-th of the random numbers in [0, 1) of choices that are made again and again; None:
    they come from ``random``.
    ``commits_as_member``: whether commits name the generation and the member. Otherwise the coordinator
    accepts them from anybody: it does not know the members.
    ``failure``: the error that ended the consumer, or None.
    ``is_open``: whether the consumer has neither failed nor begun to close.
    """

    config: ClientConfig
    random: Random
    effects: Effects
    requests: RequestQueue
    subscriptions: Subscriptions
    metadata: Metadata
    callbacks: Callbacks
    source: PositionSource | None
    rebalance_timeout_ms: int
    library: Library
    lateness: Callable[[int], int] | None = None
    dice: Callable[[int], float] | None = None
    generation: Generation = NO_MEMBERSHIP
    commits_as_member: bool = True
    failure: str | None = None
    is_open: bool = True

    def fail(self, error: Exception) -> None:
        """End the consumer and pass the error to the application."""
        self.is_open = False
        if self.failure is None:
            self.failure = str(error)
            self.effects.events.append(ConsumerFailed(client=self.config.client_id, error=self.failure))
        self.effects.fail(error)

    def give_up(self, partitions: Sequence[TopicPartition], *, lost: bool = False) -> None:
        """Report partitions as revoked, or as lost, by an event and to the listener."""
        kind, call = (Lost, self.callbacks.lost) if lost else (Revoked, self.callbacks.revoked)
        number, listed = self.generation.number, partition_map(partitions)
        self.effects.events.append(kind(client=self.config.client_id, generation=number, partitions=listed))
        call(partitions)

    def report_state(self, before: Enum, after: Enum) -> None:
        """Report a change of the member's state; nothing if it is the same."""
        if before is not after:
            client = self.config.client_id
            self.effects.events.append(
                ClientStateChanged(client=client, before=before._value_, after=after._value_)
            )

    def report_joined(self, *, leader: bool = False) -> None:
        """Report the generation that the consumer is now a member of."""
        number, member_id, protocol = self.generation
        self.effects.events.append(
            Joined(
                client=self.config.client_id,
                member_id=member_id,
                generation=number,
                protocol=protocol or "",
                leader=leader,
            )
        )

    def report_assigned(
        self, added: Sequence[TopicPartition], owned: Sequence[TopicPartition], *, called: bool = True
    ) -> None:
        """Report the partitions that the consumer owns in its generation, and those it did not own before.

        ``called``: whether the listener is called.
        """
        self.effects.events.append(
            Assigned(
                client=self.config.client_id,
                generation=self.generation.number,
                added=partition_map(added),
                owned=partition_map(owned),
                called=called,
            )
        )
