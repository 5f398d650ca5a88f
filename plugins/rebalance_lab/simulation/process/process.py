"""A consumer process: a client, the application's loop around it, and its connections."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random

import msgspec

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.facade import Client
from coordinator_core.client.member import MakeMember
from coordinator_core.client.outcome import NOTHING, ClientOutcome, Send
from coordinator_core.errors import AssignmentError, PluginError, RebalanceLabError
from coordinator_core.families.running_group import RunningGroup
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import FamilyRequest, HeartbeatResponse, Response
from coordinator_core.reading.raised import raised
from rebalance_lab.scenarios.application import NONE
from rebalance_lab.scenarios.scenario import Member
from rebalance_lab.simulation.process.application import Application
from rebalance_lab.simulation.process.batches import Batches
from rebalance_lab.simulation.process.clients import CLIENTS, Commits, Joins
from rebalance_lab.simulation.process.connections import (
    RESET,
    Connections,
    ranks,
)
from rebalance_lab.simulation.process.lateness import Lateness
from rebalance_lab.simulation.skipping.quiet import Overload
from rebalance_lab.simulation.skipping.rest import Rest
from rebalance_lab.simulation.world.clock import Alarm
from rebalance_lab.simulation.world.dice import Dice, Spread
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.simulation.world.kinds import is_success, kind_of
from rebalance_lab.simulation.world.network import Connection
from rebalance_lab.simulation.world.world import World

_CHANGES = frozenset((ev.Revoked, ev.Lost, ev.Assigned))
"""The events by which the partitions of a client change."""

POLLS_PER_INTERVAL = 3
"""The polls of the application per max.poll.interval.ms while the client requests none. A real application
polls after every batch. Here a poll that would do nothing is left out. The last poll before a pause happens
when the pause begins."""


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
        habits: Callable[[], Random],
        name: str,
        rank: int,
        late: Lateness,
    ) -> None:
        """``habits`` makes the random numbers of the application.

        ``name`` is a name that no other process has, ``rank`` the first of its `ranks` on the clock.
        """
        self.member = member
        times, facts = member.application, CLIENTS[member.application.client]
        batches = Batches.of(member, config.max_poll_records)
        if started := batches.started(member.id, config.max_poll_interval_ms):
            world.emit(started)
        last_rank = rank + ranks(world.brokers.places) - 1
        late_ms = facts.heartbeat_late_ms if member.process_rate is not None else NONE
        beats_late = Spread(*late_ms, Dice(f"{world.network.seed}:{name}:heartbeats"))
        choices = Dice(f"{world.network.seed}:{name}:choices")
        self._name, self._rank, self._world, self._clock = name, rank, world, world.clock
        self._assignors = "/".join(assignor.name for assignor in assignors)
        self._joins_after_calls = facts.beats_in_revoked and times.on_revoked[1] > 0
        self.client = Client(
            config,
            assignors,
            random,
            member=part,
            bootstrap=tuple(bootstrap),
            positions=self,
            fetching=False,
            rebalance_timeout_ms=facts.rebalance_timeout_ms(config),
            library=facts.library(joins_with_calls=not self._joins_after_calls),
            lateness=beats_late.at,
            dice=choices.at,
        )
        self._facts, self._joins = facts, facts.joins
        turns = facts.turns(config, batches.record_cv, Dice(f"{world.network.seed}:{name}:turns"))
        self.worker = world.load.add_worker(member.id, batches.records_per_second, turns)
        self._application = Application(
            self.client,
            self.worker,
            times,
            batches,
            facts,
            habits,
            clock=world.clock,
            load=world.load,
            emit=world.emit,
        )
        self.paused = self.frozen = self.closing = self.ended = self.in_batch = False
        self.paused_until_ms = self.frozen_until_ms = 0
        self._held: list[Callable[[], None]] = []
        self._unread: list[tuple[int, Response]] = []
        self._read_soon, self._late = 0, late
        self._close_when_resumed = self._cut = self._subscribed = self._has_pattern = False
        self._connections = Connections(world.network, world.brokers, member.id, name, rank)
        self._connected_ms = self._last_poll_ms = -1
        self._batches, self._max_poll_interval_ms = batches, config.max_poll_interval_ms
        self._poll_every_ms = max(1, config.max_poll_interval_ms // POLLS_PER_INTERVAL)
        self._deadline = Alarm(world.clock, self._on_deadline, last_rank - 1)
        self._next_poll = Alarm(world.clock, self._poll, last_rank)
        self._rest = Rest(
            world,
            self.client,
            self._application,
            beats_late,
            choices,
            member.id,
            self._poll_every_ms,
            commit_interval_ms=config.auto_commit_interval_ms,
            longest_batch_ms=batches.longest_ms,
            connections=self._connections,
        )
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
        if not (self.ended or self.closing or self._subscribed):
            self.subscribe(self.member.topics, self.member.pattern)

    def resume_membership(self, group: RunningGroup, *, last_response_ms: int) -> None:
        """Continue the membership in a group that runs already."""
        self.subscribe(self.member.topics, self.member.pattern)
        now_ms = self._clock.now_ms
        self._after(
            group.resume(self.client, self.member.id, last_response_ms=last_response_ms, now_ms=now_ms),
            calls=False,
        )
        self._next_poll.set(self._clock.now_ms)

    def do(self, action: Callable[[], None]) -> None:
        """Do something now, or when a freeze has ended."""
        if self.frozen:
            self._held.append(action)
        else:
            action()

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        """Subscribe, at the start or later.

        A consumer that changes from topics to a pattern, or back, unsubscribes first: it leaves the group.
        """
        now_ms = self._clock.now_ms
        if self._subscribed and self._has_pattern is not (pattern is not None):
            self._after(self.client.unsubscribe(now_ms=now_ms))
        if not self._subscribed and self._facts.commits is not Commits.HANDLED:
            self.client.begin_auto_commit(now_ms=now_ms)
        self._subscribed, self._has_pattern = True, pattern is not None
        if pattern is not None:
            self._after(self.client.subscribe_pattern(pattern, now_ms=now_ms))
        else:
            self._after(self.client.subscribe(tuple(topics), now_ms=now_ms))
        self._next_poll.set(now_ms)

    def pause(self, *, in_batch: bool = False) -> None:
        """Do not poll. The timer of polls restarts, unless it waits for the poll that ends a batch."""
        self.in_batch = in_batch
        now_ms = self._clock.now_ms
        if self._application.next_poll_ms() <= now_ms:
            self._call_poll()
        else:
            self.client.look_ahead(now_ms=now_ms)
            if not self.client.wants_poll:
                self._after(self.client.poll(now_ms=now_ms))
        self.paused = True
        self._set_halted()

    def resume(self) -> None:
        """Continue after a pause, or close if that was requested meanwhile."""
        self.paused = self.in_batch = False
        self._set_halted()
        self._next_poll.set(self._clock.now_ms)
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
        self._cut, self._connected_ms = cut, self._clock.now_ms
        self._set_halted()

    def close(self) -> None:
        """Close properly, after the pause and the batch. The process ends when the last request is sent."""
        if self.closing or self.ended:
            return
        if self.paused:
            self._close_when_resumed = True
            return
        self.closing = True
        self._application.shut_down(self._close)

    def _close(self) -> None:
        if not self.ended:
            self._after(self.client.close(now_ms=self._clock.now_ms))

    def crash(self) -> None:
        """End without a request."""
        if not self.ended:
            self._end("crashed")

    def disconnect(self, node: int) -> None:
        """Reset the connection to a broker."""
        self._connections.reset(node, self._disconnected, node)

    def partitions_deleted(self, topic: str) -> None:
        """Receive the answer to a fetch of partitions that are deleted, if the process owns any."""
        if self.frozen:
            self._held.append(lambda: self.partitions_deleted(topic))
        elif not self.ended and any(tp.topic == topic for tp in self.client.partitions):
            self._after(self.client.on_unknown_partition(now_ms=self._clock.now_ms))

    def partitions_deleted_soon(self, topic: str) -> None:
        """Receive the answer to a fetch of partitions that were deleted, after the latency of a message."""
        if not self.ended:
            delay_ms = self._connections.to(0, False).back.leave_out("Fetch")
            self._clock.after(delay_ms, lambda: self.partitions_deleted(topic))

    def when_ended(self, action: Callable[[], None]) -> None:
        """Run an action when the process has ended, or now if it has."""
        if self.ended:
            action()
        else:
            self._at_end.append(action)

    # --- the client's position source

    def positions(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> dict[TopicPartition, int]:
        """Return the offsets to commit."""
        return self._application.positions(partitions, now_ms=now_ms)

    def started(self, positions: Mapping[TopicPartition, int], *, now_ms: int) -> None:  # noqa: ARG002
        """Begin to work on partitions whose start positions are known."""
        self._application.start(positions)

    def stopped(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:  # noqa: ARG002
        """End the work on partitions that are about to be given up."""
        self._application.release(partitions)
        self._world.ownership_changed()

    # --- at rest

    @property
    def member_id(self) -> str:
        """The member id of the client, "" if it has none or has ended."""
        return "" if self.ended else self.client.generation.member_id

    @property
    def alive_ms(self) -> int:
        """The time by which the coordinator receives the next sign of life of a client that is quiet."""
        return self._rest.alive_ms(now_ms=self._clock.now_ms)

    def is_quiet(self) -> bool:
        """Return whether the process sends nothing but periodic messages, as long as nothing happens."""
        if self.ended or not self._subscribed or self.client.failure is not None:
            return True
        waits = self.frozen or self._cut or self._unread or self._read_soon or self._held
        if self._stands_still or waits or self._application.holds_heartbeats:
            return False
        return self._rest.is_quiet(
            works=bool(self.worker.flows),
            connected_ms=self._connected_ms,
            now_ms=self._clock.now_ms,
        )

    def next_cause_ms(self, until_ms: int, overload_ms: Overload) -> int:
        """Return a time before which it causes no change: no message is lost, no poll comes too late.

        ``overload_ms``: see `quiet.Overload`.
        """
        if self.ended or not self._subscribed or self.client.failure is not None:
            return until_ms
        if self._batches.mean_ms and self.worker.flows:
            until_ms = min(until_ms, overload_ms(self.worker.flows, self.worker.process_rate))
        missed_ms = self._last_poll_ms + self._max_poll_interval_ms
        if self._application.may_outlast(self._max_poll_interval_ms - self._poll_every_ms, missed_ms):
            until_ms = min(until_ms, missed_ms)
        return self._rest.next_cause_ms(until_ms, self._clock.now_ms)

    def leave_out(self, until_ms: int) -> None:
        """Leave out periodic messages before a cause, unless one of them is under way."""
        if self.ended:
            return
        last_poll_ms = self._rest.leave_out(until_ms, self._last_poll_ms, now_ms=self._clock.now_ms)
        if last_poll_ms is None:
            return
        if last_poll_ms != self._last_poll_ms:
            self._last_poll_ms = last_poll_ms
            if not self._polls_in_background:
                self._application.left_out(last_poll_ms)
        self._after(NOTHING)

    # --- its loop

    def _poll(self) -> None:
        """Poll, unless the application handles a batch at this time: then poll when it ends."""
        if self._stands_still:
            return
        now_ms = self._clock.now_ms
        next_ms = self._next_poll_ms()
        if self._rest.is_silent(now_ms) and self._leave_out_poll(next_ms, now_ms):
            return
        if next_ms > now_ms:
            self.client.look_ahead(now_ms=now_ms)
            self._next_poll.set(next_ms)
        else:
            self._call_poll()

    def _call_poll(self) -> None:
        """Read the responses that wait for a poll, and poll."""
        unread, self._unread = self._unread, []
        for request_id, response in unread:
            self._after(self.client.receive(request_id, response, now_ms=self._clock.now_ms))
        if self.ended:
            return
        in_background = self._polls_in_background
        overlooks = self._late.overlooks(self._application, self.client, self._last_poll_ms)
        now_ms = self._last_poll_ms = self._clock.now_ms
        poll = self.client.look_ahead if overlooks else self.client.poll
        self._after(poll(now_ms=now_ms), polled=not in_background)

    def _continue_poll(self) -> None:
        """Go on with a poll whose call of the listener has returned, perhaps late as it stood still: join."""
        left_ms = self._application.called_until_ms - self._clock.now_ms
        if self.frozen:
            self._held.append(self._continue_poll)
        elif left_ms > 0:
            self._clock.after(left_ms, self._continue_poll)
        elif not self._stands_still and self.client.wants_poll:
            self._after(self.client.poll(now_ms=self._clock.now_ms))

    def _leave_out_poll(self, next_ms: int, now_ms: int) -> bool:
        """Leave out the next poll, which does nothing or commits. Return whether it is left out."""
        if not self._rest.allows_poll(next_ms, now_ms):
            self._after(self.client.on_deadline(now_ms=now_ms))
            return False
        if next_ms > now_ms:
            self._next_poll.set(next_ms)
            return True
        self._last_poll_ms = now_ms
        next_ms = self._rest.polled(now_ms)
        if not self._polls_in_background:
            self._application.polled(is_at_rest=True, took_over=False)
            self._last_poll_ms, next_ms = self._rest.poll_ahead(now_ms, next_ms)
        self._deadline.set(self.client.timer_ms)
        self._next_poll.set(min(next_ms, self._last_poll_ms + self._poll_every_ms))
        if self._world.quiet is not None and self._rest.look_again():
            self._world.quiet.look(self)
        return True

    @property
    def _stands_still(self) -> bool:
        return self.paused or self.closing or self.ended

    @property
    def _polls_in_background(self) -> bool:
        """Whether the client does without the application what it does in its next poll."""
        if self._joins is Joins.IN_POLL:
            return False
        return self._joins is Joins.IN_BACKGROUND or not self.client.calls_listener

    @property
    def _ignores_rounds(self) -> bool:
        """Whether heartbeats begin no round now: a call of the listener is due before."""
        if self._joins is not Joins.UNLESS_CALLED:
            return False
        return self.client.calls_listener and not self.client.is_at_rest

    def _next_poll_ms(self) -> int:
        if self._polls_in_background:
            return max(self._clock.now_ms, self._application.called_until_ms)
        return self._application.next_poll_ms(at_rest=self.client.is_at_rest)

    def _on_deadline(self) -> None:
        if self.ended or self.frozen:
            return
        if self._application.holds_heartbeats:
            self._deadline.set(self._application.called_until_ms)
        else:
            self._after(self.client.on_deadline(now_ms=self._clock.now_ms))

    def _arrived(
        self, response: Response, request_id: int, sent_ms: int, exchange: Exchange | None = None
    ) -> None:
        """Pass a response to the client: at the end of a freeze, and when the library reads it."""
        now_ms = self._clock.now_ms
        if exchange is not None:
            exchange.answer(response, now_ms=now_ms)
        if self.frozen:
            self._held.append(lambda: self._arrived(response, request_id, sent_ms))
        elif (read_ms := self._late.read_ms(response, sent_ms, self._is_busy)) is not None:
            self._read_soon += 1
            self._clock.at(read_ms, self._waited, request_id, response, rank=self._rank)
        else:
            self._read(request_id, response)

    def _waited(self, request_id: int, response: Response) -> None:
        self._read_soon -= 1
        self._read(request_id, response)

    def _is_busy(self) -> bool:
        return self.paused or self._application.next_poll_ms() > self._clock.now_ms

    def _read(self, request_id: int, response: Response) -> None:
        """Pass a response to the client, at the end of the batch if only polls read it."""
        now_ms = self._clock.now_ms
        if self.frozen:
            self._held.append(lambda: self._read(request_id, response))
        if self.frozen or self.ended:
            return
        if self._facts.reads_in_poll and self.client.reads_in_poll and not self._stands_still:
            next_ms = self._application.next_poll_ms()
            if next_ms > now_ms:
                self._unread.append((request_id, response))
                self._next_poll.set(next_ms)
                return
        if isinstance(response, HeartbeatResponse) and response.error and self._ignores_rounds:
            response = msgspec.structs.replace(response, error=ErrorCode.NONE)
        self._after(self.client.receive(request_id, response, now_ms=now_ms))

    def _disconnected(self, node: int, connection: Connection) -> None:
        if self.frozen:
            self._held.append(lambda: self._disconnected(node, connection))
        elif connection.is_open and not self.ended:
            self._connections.forget(node)
            self._after(self.client.on_disconnected(node, now_ms=self._clock.now_ms))

    def _after(self, outcome: ClientOutcome, *, polled: bool = False, calls: bool = True) -> None:
        """Carry out the outcome of a call of the client.

        ``polled``: the call was a poll of the application. ``calls``: the client calls the listener.
        """
        called_ms = 0
        if polled or outcome.events or outcome.error is not None or not calls:
            called_ms = self._tell_application(outcome, polled=polled, calls=calls)
        for node in outcome.disconnects:
            self._connections.forget(node)
        if outcome.sends:
            self._send_after(called_ms, outcome.sends)
        if self.ended:
            return
        if called_ms and self._joins_after_calls and self.client.wants_poll:
            self._clock.after(called_ms, self._continue_poll)
        if self.closing and self.client.closed:
            self._end("closed")
            return
        if self._unread:  # the next poll is set to the end of the batch
            self._deadline.set(self.client.timer_ms)
            return
        client = self.client
        if client.timer_ms != self._deadline.due_ms:
            self._deadline.set(client.timer_ms)
        if client.wants_poll:
            late_ms = self._late.next_poll_ms(self._application, client, self._last_poll_ms)
            poll_ms = max(self._next_poll_ms(), self._last_poll_ms + 1, late_ms)
        else:
            poll_ms = min(client.poll_ms, self._last_poll_ms + self._poll_every_ms)
        if poll_ms != self._next_poll.due_ms:
            self._next_poll.set(poll_ms)
        if self._world.quiet is not None:
            self._world.quiet.look(self)

    def _tell_application(self, outcome: ClientOutcome, *, polled: bool, calls: bool) -> int:
        """Pass on what the client reports, and return how long the calls of the listener take."""
        changes = self._take(outcome.events)
        if not calls:
            self._application.resumed()
        called_ms = self._application.took(changes) if calls and changes else 0
        if polled:
            took_over = ev.Assigned in map(type, changes)
            self._application.polled(is_at_rest=self.client.is_at_rest, took_over=took_over)
        if outcome.error is not None:
            self._check(outcome.error)
        return called_ms

    def _check(self, error: Exception) -> None:
        """Raise an error of the code of a plugin."""
        if isinstance(error, (AssignmentError, PluginError)):
            raise error
        if not isinstance(error, RebalanceLabError):
            raise AssignmentError(self._assignors, [f"on_assignment raised {raised(error)}"]) from error

    def _send_after(self, called_ms: int, sends: Sequence[Send]) -> None:
        if called_ms:
            self._clock.after(called_ms, lambda: self._send_all(sends))
        else:
            self._send_all(sends)

    def _send_all(self, sends: Iterable[Send]) -> None:
        if self.frozen:
            self._held.append(lambda: self._send_all(sends))
        if self.frozen or self.ended:
            return
        world, connections, client = self._world, self._connections, self.member.id
        for send in sends:
            node, request = send.node, send.request
            kind = kind_of(type(request))
            may_change = kind.may_change and not (isinstance(request, FamilyRequest) and request.repeats)
            world.messages[kind.api] = world.messages.get(kind.api, 0) + 1
            exchange = None
            if world.exchanged is not None:
                exchange = Exchange(client, node, request, world.clock.now_ms)
                world.exchanged(exchange)
            place = node, kind.of_group
            connection = connections.open.get(place) or connections.to(*place)
            if node in world.brokers.down:
                connection.to_client(self._disconnected, (node, connection), RESET)
                continue
            sent = send.request_id, world.clock.now_ms, exchange
            reply = partial(self._reply, connection, kind.api, may_change, sent)
            arguments = request, node, client, reply, connection if self._facts.takes_turns else None
            connection.to_broker(world.brokers.arrived, arguments, kind.api, may_change)

    def _take(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        """Report events of the client. Return those by which its partitions change."""
        changes: list[ev.Event] = []
        for event in events:
            if type(event) in _CHANGES:
                changes.append(event)
                if isinstance(event, ev.Revoked | ev.Lost):
                    self._application.gave_up(event)
                self._world.ownership_changed()
            self._world.emit(event)
            if self.in_batch and isinstance(event, ev.ClientStateChanged) and event.after == "unjoined":
                self.in_batch = False  # what it still handles belongs to others, who handle it again
                self._world.emit(ev.MemberPaused(client=self.member.id))
            if isinstance(event, ev.ConsumerFailed):
                self._application.release(list(self.worker.flows))
        return changes

    def _reply(
        self,
        connection: Connection,
        kind: str,
        may_change: bool,
        sent: tuple[int, int, Exchange | None],
        response: Response,
    ) -> None:
        """Send the response of a broker to the process. Without skipping, nobody asks what is a cause."""
        is_cause = self._world.quiet is not None and (may_change or not is_success(response))
        connection.to_client(self._arrived, (response, *sent), kind, is_cause)

    def _set_halted(self) -> None:
        self._application.halt(self.paused or self._cut)

    def _end(self, how: str) -> None:
        self.ended = True
        self._application.stop()
        self._connections.close()
        self._world.load.remove_worker(self.worker, now_ms=self._clock.now_ms)
        self._world.emit(ev.MemberStopped(client=self.member.id, how=how))
        self._world.ownership_changed()
        for action in self._at_end:
            action()
