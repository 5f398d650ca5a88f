"""The consumer as one object: calls, responses and deadlines go in, outcomes come out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from random import Random
from typing import Any

from coordinator_core.assigning.loading import assignor_from
from coordinator_core.client.callbacks import Callbacks
from coordinator_core.client.closing import Closing
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import OURS, Core, Library
from coordinator_core.client.fetcher import Fetcher
from coordinator_core.client.generation import Generation
from coordinator_core.client.member import NO_GROUP, MakeMember, Outlook
from coordinator_core.client.metadata import Metadata
from coordinator_core.client.offsets import CommitCallback, CommitResult, Offsets
from coordinator_core.client.outcome import NOTHING, ClientOutcome, Effects, Listener, PositionSource
from coordinator_core.client.periodic import Periodic
from coordinator_core.client.positions import Positions
from coordinator_core.client.requests import NEVER, Failure, RequestQueue
from coordinator_core.client.subscription import PartitionState, Subscriptions
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import Cluster, Partitions, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import Response


class Client:
    """A consumer without sockets, threads or a clock.

    Every call takes the time and returns a `ClientOutcome`: requests to send (pass each response to
    `receive`), events, records, and an error for the application. `next_deadline_ms` is the time at which
    to call `on_deadline`; `wants_poll` is true if a `poll` would make progress. Joins, revocations, listener
    calls and auto-commits happen in `poll` only, as in Kafka's consumer. Heartbeats do not depend on it.

    ``member``: makes the part that takes part in the group, of one protocol family.
    ``positions``: consumes the partitions, if the application does not do so through `poll`.
    ``fetching``: whether to fetch records.
    ``rebalance_timeout_ms``: max.poll.interval.ms if it is None.
    ``library``: what this client does as other libraries do it.
    ``lateness``, ``dice``: as those of `Core`.
    """

    def __init__(
        self,
        config: ClientConfig,
        assignors: Sequence[Any],
        random: Random,
        *,
        member: MakeMember,
        bootstrap: Sequence[int] = (0,),
        listener: Listener | None = None,
        positions: PositionSource | None = None,
        fetching: bool = True,
        rebalance_timeout_ms: int | None = None,
        library: Library = OURS,
        lateness: Callable[[int], int] | None = None,
        dice: Callable[[int], float] | None = None,
    ) -> None:
        effects = self._effects = Effects()
        requests = self._requests = RequestQueue(effects, config.request_timeout_ms)
        subscriptions = self._subscriptions = Subscriptions()
        metadata = self._metadata = Metadata(config, requests, subscriptions, random, bootstrap)
        callbacks = Callbacks(listener, effects)
        core = self._core = Core(
            config,
            random,
            effects,
            requests,
            subscriptions,
            metadata,
            callbacks,
            positions,
            config.max_poll_interval_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
            library,
            lateness,
            dice,
        )
        coordinator = self._coordinator = CoordinatorFinder(core, self._on_coordinator)
        offsets = self._offsets = Offsets(
            core, coordinator, lambda: self._member.may_commit, self._on_commit_error
        )
        self._member = member(core, coordinator, offsets, [assignor_from(a) for a in assignors])
        self._positions = Positions(core, coordinator)
        self._fetcher = Fetcher(core, self._positions) if fetching else None
        self._closing = Closing(core, coordinator, self._member, offsets)
        self.wants_poll = False
        """Whether a `poll` would have made progress when the last call ended."""
        self.is_at_rest = True
        """Whether the consumer is in no round, and has no reason to begin one."""
        self.reads_in_poll = False
        """Whether responses of the group wait for the application's next poll.

        Kafka's consumer reads responses in its polls, and between them in the thread that sends its
        heartbeats. That thread stops while the member joins. The client itself processes a response
        whenever `receive` is called; the driver may hold a response back while this attribute is true.
        """
        self.timer_ms = self.poll_ms = NEVER
        """The time at which `on_deadline` has work, and that from which `poll` is sure to make progress."""
        self.periodic = Periodic(core, coordinator, self._member, offsets, self._positions)
        """What the consumer sends again and again while nothing changes."""

    # --- views

    @property
    def state(self) -> Enum:
        """The state of the member, as its protocol family names it."""
        return self._member.state

    @property
    def generation(self) -> Generation:
        """Generation, member id and assignor."""
        return self._core.generation

    @property
    def owned(self) -> Partitions:
        """The partitions that the group has assigned."""
        return self._subscriptions.owned()

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """All assigned partitions with the states of their positions. Do not change them."""
        return self._subscriptions.partitions

    @property
    def is_leader(self) -> bool:
        """Whether this consumer computes the assignments of the group."""
        return self._member.is_leader

    @property
    def failure(self) -> str | None:
        """The error that ended the consumer, or None."""
        return self._core.failure

    @property
    def closed(self) -> bool:
        """Whether `close` is complete."""
        return self._closing.is_done

    @property
    def calls_listener(self) -> bool:
        """Whether the next poll gives up or takes over partitions, as far as is known now."""
        return self._subscriptions.is_group_managed and self._member.calls_listener

    # --- calls of the application

    def begin_auto_commit(self, *, now_ms: int) -> None:
        """Begin the interval of auto-commit now, and not at the first assignment, as some libraries do."""
        self._offsets.begin_auto_commit(now_ms=now_ms)
        self.look_ahead(now_ms=now_ms)

    def subscribe(self, topics: Iterable[str], *, now_ms: int) -> ClientOutcome:
        """Replace the subscribed topics. An empty list unsubscribes.

        Raises:
            InputError: if a name is not a topic's, or if the consumer has another kind of subscription.
        """
        listed = tuple(topics)
        if not listed:
            return self.unsubscribe(now_ms=now_ms)
        self._subscriptions.subscribe(listed)
        self._metadata.request_update()
        return self.look_ahead(now_ms=now_ms)

    def subscribe_pattern(self, pattern: str, *, now_ms: int) -> ClientOutcome:
        """Subscribe to every topic whose whole name matches a regular expression.

        Raises:
            InputError: if the pattern is invalid, or if the consumer has another kind of subscription.
        """
        self._subscriptions.subscribe_pattern(pattern)
        self._subscriptions.match(self._metadata.external_topics)
        self._metadata.request_update()
        return self.look_ahead(now_ms=now_ms)

    def resume_membership(
        self,
        generation: Generation,
        positions: Mapping[TopicPartition, int],
        *,
        topics: Iterable[str],
        based_on: Cluster | None = None,
        last_response_ms: int,
        now_ms: int,
    ) -> ClientOutcome:
        """Continue as a member of a group without joining it.

        The assignor is called, the listener is not.

        ``positions``: the owned partitions, with the offsets to continue at.
        ``topics``: the topics that the member joined with. A consumer that subscribes to others joins again
        in the next poll.
        ``based_on``: the topics of the group when it was assigned, if the member is its leader.
        ``last_response_ms``: the time of the coordinator's last response; the next heartbeat follows one
        interval later.

        Raises:
            InputError: if the consumer does not subscribe to topics, if it is joining or has joined, if the
                generation is invalid, or if its assignor is not configured.
        """
        if not self._subscriptions.is_group_managed:
            raise InputError("resume_membership", "a consumer without a subscription", "subscribe first")
        self._member.resume(
            generation, positions, topics=topics, based_on=based_on, last_response_ms=last_response_ms
        )
        self._positions.resume(positions, now_ms=now_ms)
        return self.look_ahead(now_ms=now_ms)

    def assign(self, partitions: Iterable[tuple[str, int]], *, now_ms: int) -> ClientOutcome:
        """Replace the assigned partitions, without a group.

        Raises:
            InputError: if a partition is invalid, or if the consumer has another kind of subscription.
        """
        self._subscriptions.assign_by_user(partitions)
        self._metadata.request_update()
        return self.look_ahead(now_ms=now_ms)

    def unsubscribe(self, *, now_ms: int) -> ClientOutcome:
        """Leave the group, give up all partitions and remove the subscription."""
        if self._subscriptions.is_group_managed:
            self._closing.give_up()
            self._member.leave("the consumer unsubscribed", now_ms=now_ms)
        self._subscriptions.unsubscribe()
        return self.look_ahead(now_ms=now_ms)

    def seek(self, topic: str, partition: int, offset: int, *, epoch: int = -1, now_ms: int) -> ClientOutcome:
        """Continue at an offset.

        Raises:
            InputError: if the partition is not assigned, or if the offset is negative.
        """
        tp = self._assigned("seek", topic, partition)
        if offset < 0:
            raise InputError("seek", str(offset), "an offset of 0 or more")
        self._positions.seek(tp, offset, epoch)
        return self.look_ahead(now_ms=now_ms)

    def seek_to(self, topic: str, partition: int, where: str, *, now_ms: int) -> ClientOutcome:
        """Continue at the "earliest" or the "latest" offset.

        Raises:
            InputError: if the partition is not assigned, or if ``where`` is another word.
        """
        if where not in ("earliest", "latest"):
            raise InputError("seek_to", repr(where), "earliest or latest")
        self._positions.reset(self._assigned("seek_to", topic, partition), where)
        return self.look_ahead(now_ms=now_ms)

    def pause(self, topic: str, partition: int, *, now_ms: int) -> ClientOutcome:
        """Return no records of a partition until `resume`.

        Raises:
            InputError: if the partition is not assigned.
        """
        self._subscriptions.partitions[self._assigned("pause", topic, partition)].paused = True
        return self.look_ahead(now_ms=now_ms)

    def resume(self, topic: str, partition: int, *, now_ms: int) -> ClientOutcome:
        """Continue with a paused partition.

        Raises:
            InputError: if the partition is not assigned.
        """
        self._subscriptions.partitions[self._assigned("resume", topic, partition)].paused = False
        return self.look_ahead(now_ms=now_ms)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        *,
        metadata: str = "",
        callback: CommitCallback | None = None,
        retry_until_ms: int | None = None,
        now_ms: int,
    ) -> ClientOutcome:
        """Commit offsets, by default those of all consumed records.

        A later poll calls ``callback`` with the result. Until ``retry_until_ms`` a commit is retried while
        the coordinator is unknown, unavailable or loading, in the same generation only, and without
        partitions that a later commit contained.
        """
        if offsets is None:
            offsets = self._offsets.all_consumed(now_ms=now_ms)
        self._coordinator.find(now_ms=now_ms)
        self._offsets.commit_for_user(
            offsets, callback, now_ms=now_ms, metadata=metadata, retry_until_ms=retry_until_ms
        )
        return self.look_ahead(now_ms=now_ms)

    def withdraw_commit(self, callback: CommitCallback) -> None:
        """Neither retry the commit of a callback nor call it."""
        self._offsets.withdraw(callback)

    def finish_commits(self, *, now_ms: int) -> ClientOutcome:
        """Run the callbacks of completed commits, as the next `poll` would, and do nothing else."""
        self._offsets.run_callbacks()
        return self.look_ahead(now_ms=now_ms)

    def poll(self, *, now_ms: int) -> ClientOutcome:
        """Make progress in the order of PROTOCOL 9.3 and return records."""
        if not self._core.is_open:
            return NOTHING
        if self._offsets.finished:
            self._offsets.run_callbacks()
        self._find_brokers(now_ms)
        managed = self._subscriptions.is_group_managed
        if managed:
            self._member.poll(now_ms=now_ms)
        if not managed or self._member.is_at_rest:
            self._offsets.auto_commit(now_ms=now_ms)
        if self._positions.settled is not self._subscriptions.partitions:
            self._positions.update(now_ms=now_ms)
        if self._metadata.unauthorized:
            self._report_unauthorized_topics()
        if self._fetcher is not None:
            if self._effects.error is None:  # a call that raises cannot return records
                self._effects.records += self._fetcher.collect()
            self._fetcher.send(now_ms=now_ms)
        return self.look_ahead(now_ms=now_ms)

    def close(self, *, now_ms: int) -> ClientOutcome:
        """Start to commit, give up all partitions and leave. `closed` turns true when that is complete."""
        self._closing.begin(now_ms=now_ms)
        return self.look_ahead(now_ms=now_ms)

    # --- calls of the driver

    def receive(self, request_id: int, response: Response, *, now_ms: int) -> ClientOutcome:
        """Process a response. A response to no pending request is dropped."""
        completion = self._requests.take(request_id)
        if completion is None:
            return NOTHING
        completion(response, now_ms)
        self._member.on_metadata(now_ms=now_ms)
        return self.look_ahead(now_ms=now_ms)

    def on_disconnected(self, node: int, *, now_ms: int) -> ClientOutcome:
        """Fail all requests to a broker whose connection was closed."""
        if node == self._coordinator.node:
            self._coordinator.lose(now_ms=now_ms)
        self._requests.fail_node(node, Failure.DISCONNECTED, now_ms=now_ms)
        self._metadata.request_update()
        return self.look_ahead(now_ms=now_ms)

    def on_unknown_partition(self, *, now_ms: int) -> ClientOutcome:
        """Request metadata, as after a fetch of a partition that a broker does not have."""
        self._metadata.request_update()
        return self.look_ahead(now_ms=now_ms)

    def on_deadline(self, *, now_ms: int) -> ClientOutcome:
        """Do the work that is due, whether the application polls or not."""
        if self._requests.deadline_ms <= now_ms:
            self._requests.expire(now_ms=now_ms)
            if self._coordinator.node in self._effects.disconnects:
                self._coordinator.lose(now_ms=now_ms)
        if self._core.failure is None and not self._closing.is_done:
            if self._metadata.deadline_ms <= now_ms or self._coordinator.deadline_ms <= now_ms:
                self._find_brokers(now_ms)
            if self._offsets.retry_ms <= now_ms:
                self._offsets.retry(now_ms=now_ms)
        if self._core.is_open or self._stays_while_closing:
            self._member.on_deadline(now_ms=now_ms)
        if self._closing.has_begun:
            self._closing.step(now_ms=now_ms)
        return self.look_ahead(now_ms=now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return the time at which to call `on_deadline`, or None. Then polls may make progress, too."""
        due_ms = self.timer_ms if self.wants_poll else min(self.timer_ms, self.poll_ms)
        return None if due_ms == NEVER else due_ms

    def look_ahead(self, *, now_ms: int) -> ClientOutcome:
        """Note whether and when polls make progress, and when `on_deadline` has work.

        Every call ends so, and returns its outcome. A driver that does not poll at `poll_ms` calls this
        method then, whose outcome is empty.
        """
        core, subscriptions, offsets = self._core, self._subscriptions, self._offsets
        outlook = self._member.outlook(now_ms=now_ms) if subscriptions.is_group_managed else NO_GROUP
        timer_ms, poll_ms = self._requests.deadline_ms, NEVER
        if outlook.deadline_ms < timer_ms and (core.is_open or self._stays_while_closing):
            timer_ms = outlook.deadline_ms
        if core.failure is None and not self._closing.is_done:
            if offsets.retry_ms < timer_ms:
                timer_ms = offsets.retry_ms
            if self._coordinator.deadline_ms < timer_ms and subscriptions.uses_coordinator:
                timer_ms = self._coordinator.deadline_ms
            if self._metadata.deadline_ms < timer_ms and self._metadata.has_interest():
                timer_ms = self._metadata.deadline_ms
        if core.is_open:
            poll_ms = outlook.poll_ms
            settled = self._positions.settled is subscriptions.partitions and self._fetcher is None
            if poll_ms > now_ms and (not settled or offsets.auto_commits or offsets.finished):
                poll_ms, retry_ms = self._look_at_polls(outlook, now_ms)
                timer_ms = min(timer_ms, retry_ms)
        elif self._closing.has_begun:
            timer_ms = min(timer_ms, self._closing.next_deadline_ms())
        self.is_at_rest, self.reads_in_poll = outlook.is_at_rest, outlook.reads_in_poll
        self.wants_poll = poll_ms <= now_ms
        self.timer_ms, self.poll_ms = timer_ms, poll_ms
        effects = self._effects
        has_any = effects.sends or effects.events or effects.records or effects.error or effects.disconnects
        return effects.drain() if has_any else NOTHING

    # --- inside

    def _assigned(self, call: str, topic: str, partition: int) -> TopicPartition:
        tp = TopicPartition(topic, partition)
        if tp not in self._subscriptions.partitions:
            raise InputError(call, f"{topic}-{partition}", "a partition that is assigned to this consumer")
        return tp

    def _find_brokers(self, now_ms: int) -> None:
        """Request metadata and the coordinator, if that is due."""
        if self._metadata.deadline_ms <= now_ms:
            self._metadata.refresh(now_ms=now_ms)
        if self._coordinator.deadline_ms <= now_ms and self._subscriptions.uses_coordinator:
            self._coordinator.find(now_ms=now_ms)

    def _report_unauthorized_topics(self) -> None:
        """Pass the error to the application once per metadata response."""
        topics, self._metadata.unauthorized = self._metadata.unauthorized, ()
        found = f"{ErrorCode.TOPIC_AUTHORIZATION_FAILED.name}: {', '.join(topics)}"
        self._effects.fail(ProtocolError("Metadata", found))

    def _on_coordinator(self, now_ms: int) -> None:
        self._member.on_coordinator(now_ms=now_ms)
        self._closing.step(now_ms=now_ms)

    def _on_commit_error(self, error: ErrorCode, sent: Generation, now_ms: int) -> CommitResult:
        return self._member.on_commit_error(error, sent, now_ms=now_ms)

    @property
    def _stays_while_closing(self) -> bool:
        """Whether the member goes on until it has left: its last commit may wait for a coordinator."""
        return self._closing.has_begun and not self.closed and not self._core.commits_as_member

    def _look_at_polls(self, outlook: Outlook, now_ms: int) -> tuple[int, int]:
        """Return when a poll makes progress, and when it may: with commits, positions and records.

        Times at which it may are later than now: a poll would not make progress now.
        """
        offsets, fetcher, times = self._offsets, self._fetcher, [NEVER]
        if offsets.finished:
            return now_ms, NEVER
        if not self._positions.all_known():
            if self._positions.wants_poll(now_ms=now_ms):
                return now_ms, NEVER
            times.append(self._positions.retry_ms())
        if fetcher is not None:
            if fetcher.has_records or fetcher.is_due(now_ms=now_ms):
                return now_ms, NEVER
            times.append(fetcher.retry_ms())
        poll_ms = outlook.poll_ms
        if outlook.is_at_rest and offsets.auto_commits and self._subscriptions.partitions:
            poll_ms = min(poll_ms, offsets.next_poll_ms(now_ms=now_ms))
        return poll_ms, min(time_ms for time_ms in times if time_ms > now_ms)
