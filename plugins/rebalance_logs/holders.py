"""One client in the trace of a group: whether it runs, what it owns, and the events that change that."""

from dataclasses import dataclass, field

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.events import PartitionMap
from coordinator_core.protocol.partition_maps import difference, intersection


@dataclass(slots=True)
class Holder:
    """A client. Each method adds its events to ``events``, with times in milliseconds since 1970.

    ``topics``: those that it subscribes to. ``generation``: that of the round it joined last, or -1.
    """

    client: str
    instance_id: str = ""
    topics: list[str] = field(default_factory=list)
    owned: PartitionMap = field(default_factory=dict)
    generation: int = -1
    runs: bool = False
    events: list[tuple[int, ev.Event]] = field(default_factory=list)

    def add(self, at_ms: int, event: ev.Event) -> None:
        """Add an event that changes nothing here."""
        self.events.append((at_ms, event))

    def start(self, at_ms: int) -> None:
        """Start the client, unless it runs."""
        if not self.runs:
            self.runs = True
            instance = self.instance_id or None
            self.add(
                at_ms,
                ev.MemberStarted(
                    client=self.client, instance_id=instance, topics=self.topics, process_rate=None
                ),
            )

    def stop(self, at_ms: int, how: str) -> None:
        """End the client, if it runs."""
        if self.runs:
            self.runs, self.owned = False, {}
            self.add(at_ms, ev.MemberStopped(client=self.client, how=how))

    def join(self, at_ms: int, member_id: str, generation: int | None, protocol: str) -> None:
        """Join a generation; None is the one that it was in."""
        self.generation = self.generation if generation is None else generation
        self.add(
            at_ms,
            ev.Joined(
                client=self.client,
                member_id=member_id,
                generation=self.generation,
                protocol=protocol,
                leader=False,
            ),
        )

    def own(self, at_ms: int, owned: PartitionMap) -> None:
        """Own these partitions, and give up all others."""
        self.give_up(at_ms, difference(self.owned, owned))
        added = difference(owned, self.owned)
        self.owned = owned
        self.add(
            at_ms,
            ev.Assigned(client=self.client, generation=self.generation, added=added, owned=owned),
        )

    def give_up(self, at_ms: int, gone: PartitionMap, *, lost: bool = False) -> None:
        """Give up partitions, as far as it owns them."""
        held = intersection(gone, self.owned)
        self.owned = difference(self.owned, gone)
        if held:
            event = ev.Lost if lost else ev.Revoked
            self.add(at_ms, event(client=self.client, generation=self.generation, partitions=held))
