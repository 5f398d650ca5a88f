"""A consumer process: a client, the application's loop around it, and its connections."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.facade import Client
from coordinator_core.client.member import MakeMember
from coordinator_core.client.outcome import ClientOutcome
from coordinator_core.documents.scenario import Member
from coordinator_core.errors import AssignmentError, PluginError, RebalanceLabError
from coordinator_core.families.family import RunningGroup
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import Request, Response
from coordinator_core.simulation.clock import Alarm, VirtualClock
from coordinator_core.simulation.load import Load
from coordinator_core.simulation.network import Connection, Network

POLLS_PER_INTERVAL = 3
"""The polls of the application per max.poll.interval.ms while the client requests none.

A real application polls all the time. Here a poll that would do nothing is left out. The last poll before a
pause happens when the pause begins.
"""


class Peers(Protocol):
    """The brokers, as a process sees them."""

    def is_alive(self, node: int) -> bool:
        """Return whether a broker accepts connections."""
        ...

    def arrived(self, request: Request, node: int, *, client: str, reply: Callable[[Response], None]) -> None:
        """Receive a request. The broker replies at once, later or never."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """The objects that all processes share."""

    clock: VirtualClock
    network: Network
    brokers: Peers
    load: Load
    emit: Callable[[ev.Event], None]
    ownership_changed: Callable[[], None]
    messages: dict[str, int]


class Process:
    """A consumer process from its start to its end. It polls unless it is paused, closing or ended.

    It is the position source of the client: work on a partition starts when its offset is known.
    """

    def __init__(
        self,
        world: World,
        member: Member,
        config: ClientConfig,
        assignors: Sequence[Assignor],
        random: Random,
        *,
        part: MakeMember,
        bootstrap: Sequence[int],
    ) -> None:
        self.member = member
        self._world, self._assignors = world, "/".join(assignor.name for assignor in assignors)
        self.client = Client(
            config,
            assignors,
            random,
            member=part,
            bootstrap=tuple(bootstrap),
            positions=self,
            fetching=False,
        )
        self.worker = world.load.add_worker(member.id, member.process_rate)
        self.paused = self.frozen = self.closing = self.ended = False
        self.paused_until_ms = self.frozen_until_ms = 0
        self._held: list[Callable[[], None]] = []
        self._close_when_resumed = False
        self._cut = self._subscribed = False
        self._connections: dict[int, Connection] = {}
        self._poll_every_ms = max(1, config.max_poll_interval_ms // POLLS_PER_INTERVAL)
        self._deadline = Alarm(world.clock, self._on_deadline)
        self._next_poll = Alarm(world.clock, self._poll)
        self._last_poll_ms = -1
        self._at_end: list[Callable[[], None]] = []

    @property
    def is_running(self) -> bool:
        """Whether the process has neither ended nor begun to close."""
        return not (self.ended or self.closing)

    @property
    def is_stuck(self) -> bool:
        """Whether the application stands still and cannot close the consumer."""
        return self.paused

    # --- calls of the simulation

    def started_up(self) -> None:
        """Subscribe as the member does, unless a scenario event has changed the subscription meanwhile."""
        if self.frozen:
            self._held.append(self.started_up)
        elif not (self.ended or self.closing or self._subscribed):
            self.subscribe(self.member.topics, self.member.pattern)

    def resume_membership(self, group: RunningGroup, *, last_response_ms: int) -> None:
        """Continue the membership in a group that runs already."""
        self.subscribe(self.member.topics, self.member.pattern)
        now_ms = self._world.clock.now_ms
        self._after(
            group.resume(self.client, self.member.id, last_response_ms=last_response_ms, now_ms=now_ms)
        )
        self._next_poll.set(self._world.clock.now_ms)

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        """Subscribe, at the start or later, but not before a freeze has ended."""
        if self.frozen:
            self._held.append(lambda: self.subscribe(topics, pattern))
            return
        self._subscribed = True
        now_ms = self._world.clock.now_ms
        if pattern is not None:
            self._after(self.client.subscribe_pattern(pattern, now_ms=now_ms))
        else:
            self._after(self.client.subscribe(tuple(topics), now_ms=now_ms))
        self._next_poll.set(now_ms)

    def pause(self) -> None:
        """Stand still, without polls and work. The heartbeats of the client continue."""
        self._poll()
        self.paused = True
        self._set_working()

    def resume(self) -> None:
        """Continue after a pause, or close if that was requested meanwhile."""
        self.paused = False
        self._set_working()
        self._next_poll.set(self._world.clock.now_ms)
        if self._close_when_resumed:
            self.close()

    def freeze(self) -> None:
        """Stand still with the heartbeats of the client, as in a garbage collection. Responses wait."""
        self.frozen = True

    def thaw(self) -> None:
        """Continue after a freeze. The client receives the responses that wait, then checks deadlines."""
        self.frozen = False
        held, self._held = self._held, []
        for action in held:
            action()
        self._on_deadline()

    def set_cut(self, cut: bool) -> None:
        """Set whether the process is cut from the brokers. Then it has no records to work on."""
        self._cut = cut
        self._set_working()

    def close(self) -> None:
        """Close properly, after the pause if there is one. The process ends when the last request is sent."""
        if self.closing or self.ended:
            return
        if self.paused:
            self._close_when_resumed = True
            return
        self.closing = True
        self._set_working()
        self._after(self.client.close(now_ms=self._world.clock.now_ms))

    def crash(self) -> None:
        """End without a request."""
        if not self.ended:
            self._end("crashed")

    def disconnect(self, node: int) -> None:
        """Reset the connection to a broker."""
        connection = self._connections.get(node)
        if connection is not None:
            connection.to_client(lambda: self._disconnected(node, connection))

    def when_ended(self, action: Callable[[], None]) -> None:
        """Run an action when the process has ended, or now if it has."""
        if self.ended:
            action()
        else:
            self._at_end.append(action)

    # --- the client's position source

    def position(self, partition: TopicPartition, *, now_ms: int) -> int | None:
        """Return the offset to commit."""
        return self._world.load.position(self.worker, partition, now_ms=now_ms)

    def started(self, positions: Mapping[TopicPartition, int], *, now_ms: int) -> None:
        """Begin to work on partitions whose start positions are known."""
        self._world.load.start(self.worker, positions, now_ms=now_ms)

    def stopped(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """End the work on partitions that are about to be given up."""
        self._world.load.release(self.worker, partitions, now_ms=now_ms)
        self._world.ownership_changed()

    # --- its loop

    def _poll(self) -> None:
        if self.paused or self.closing or self.ended:
            return
        self._last_poll_ms = self._world.clock.now_ms
        self._after(self.client.poll(now_ms=self._world.clock.now_ms))

    def _on_deadline(self) -> None:
        if not (self.ended or self.frozen):
            self._after(self.client.on_deadline(now_ms=self._world.clock.now_ms))

    def _received(self, request_id: int, response: Response) -> None:
        if self.frozen:
            self._held.append(lambda: self._received(request_id, response))
        elif not self.ended:
            self._after(self.client.receive(request_id, response, now_ms=self._world.clock.now_ms))

    def _disconnected(self, node: int, connection: Connection) -> None:
        if self.frozen:
            self._held.append(lambda: self._disconnected(node, connection))
        elif self._connections.get(node) is connection and not self.ended:
            connection.close()
            del self._connections[node]
            self._after(self.client.on_disconnected(node, now_ms=self._world.clock.now_ms))

    def _after(self, outcome: ClientOutcome) -> None:
        """Carry out the outcome of a call of the client."""
        for event in outcome.events:
            self._take(event)
        if isinstance(outcome.error, (AssignmentError, PluginError)):
            raise outcome.error
        if outcome.error is not None and not isinstance(outcome.error, RebalanceLabError):
            violation = f"on_assignment raised {type(outcome.error).__name__}: {outcome.error}"
            raise AssignmentError(self._assignors, [violation]) from outcome.error
        for send in outcome.sends:
            self._send(send.node, send.request_id, send.request)
        if self.ended:
            return
        if self.closing and self.client.closed:
            self._end("closed")
            return
        self._deadline.set(self.client.next_deadline_ms())
        if self.client.wants_poll:
            self._next_poll.set(max(self._world.clock.now_ms, self._last_poll_ms + 1))
        else:
            self._next_poll.set(self._last_poll_ms + self._poll_every_ms)

    def _take(self, event: ev.Event) -> None:
        now_ms = self._world.clock.now_ms
        if isinstance(event, (ev.Revoked, ev.Lost)):
            given_up = [TopicPartition(t, n) for t, numbers in event.partitions.items() for n in numbers]
            self._world.load.release(self.worker, given_up, now_ms=now_ms)
            self._world.ownership_changed()
        elif isinstance(event, ev.Assigned):
            self._world.ownership_changed()
        self._world.emit(event)
        if isinstance(event, ev.ConsumerFailed):
            self._world.load.release(self.worker, list(self.worker.flows), now_ms=now_ms)

    def _send(self, node: int, request_id: int, request: Request) -> None:
        world = self._world
        api = type(request).__name__.removesuffix("Request")
        world.messages[api] = world.messages.get(api, 0) + 1
        connection = self._connections.get(node)
        if connection is None:
            connection = self._connections[node] = world.network.connect(self.member.id)
        if not world.brokers.is_alive(node):
            connection.to_client(lambda: self._disconnected(node, connection))
            return

        def back(response: Response) -> None:
            connection.to_client(lambda: self._received(request_id, response))

        connection.to_broker(lambda: world.brokers.arrived(request, node, client=self.member.id, reply=back))

    def _set_working(self) -> None:
        working = not (self.paused or self.closing or self._cut)
        self._world.load.set_working(self.worker, working, now_ms=self._world.clock.now_ms)

    def _end(self, how: str) -> None:
        self.ended = True
        for connection in self._connections.values():
            connection.close()
        self._world.load.remove_worker(self.worker, now_ms=self._world.clock.now_ms)
        self._world.emit(ev.MemberStopped(client=self.member.id, how=how))
        self._world.ownership_changed()
        for action in self._at_end:
            action()
