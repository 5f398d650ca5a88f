"""The consumer as one object: calls, answers and deadlines go in, outcomes come out."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from random import Random

from coordinator_core.assigning.assignor import AnyAssignor
from coordinator_core.client.callbacks import Callbacks
from coordinator_core.client.closing import Closing
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.fetcher import Fetcher
from coordinator_core.client.generation import Generation
from coordinator_core.client.member import MakeMember
from coordinator_core.client.metadata import Metadata
from coordinator_core.client.offsets import CommitCallback, CommitResult, Offsets
from coordinator_core.client.outcome import NOTHING, ClientOutcome, Effects, Listener, PositionSource
from coordinator_core.client.positions import Positions
from coordinator_core.client.requests import Failure, RequestQueue
from coordinator_core.client.subscription import PartitionState, Subscriptions
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import Cluster, Partitions, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import Response


class Client:
    """A consumer without sockets, threads or a clock.

    Every call takes the time and gives back a `ClientOutcome`: requests to send (hand each answer to
    `receive`), events, records, and an error for the application. `next_deadline_ms` says when to call
    `on_deadline`, and `wants_poll` that a `poll` would get further: joins, revocations, listener calls and
    auto-commits happen in `poll` only, as in Kafka's consumer; heartbeats do not wait for it.

    ``member``: makes the part that takes part in the group, of one protocol family.
    ``positions``: who works on the partitions, where that is not the application through `poll`;
    ``fetching``: whether to fetch records at all.
    """

    def __init__(
        self,
        config: ClientConfig,
        assignors: Sequence[AnyAssignor],
        random: Random,
        *,
        member: MakeMember,
        bootstrap: Sequence[int] = (0,),
        listener: Listener | None = None,
        positions: PositionSource | None = None,
        fetching: bool = True,
    ) -> None:
        effects = self._effects = Effects()
        requests = self._requests = RequestQueue(effects)
        subscriptions = self._subscriptions = Subscriptions()
        metadata = self._metadata = Metadata(config, requests, subscriptions, random, bootstrap)
        callbacks = Callbacks(listener, effects)
        core = self._core = Core(
            config, random, effects, requests, subscriptions, metadata, callbacks, positions
        )
        coordinator = self._coordinator = CoordinatorFinder(core, self._found_coordinator)
        offsets = self._offsets = Offsets(core, coordinator, self._commit_refused)
        self._member = member(core, coordinator, offsets, assignors)
        self._positions = Positions(core, coordinator)
        self._fetcher = Fetcher(core, self._positions) if fetching else None
        self._closing = Closing(core, coordinator, self._member, offsets)
        self._wants_poll = False
        self._looked_ms = -1

    # --- views

    @property
    def state(self) -> Enum:
        """The state of its member, in the words of the protocol family."""
        return self._member.state

    @property
    def generation(self) -> Generation:
        """Generation, member id and assignor."""
        return self._core.generation

    @property
    def owned(self) -> Partitions:
        """What the group has assigned to it."""
        return self._subscriptions.owned()

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """The assigned partitions with their fetch states, to look at."""
        return self._subscriptions.partitions

    @property
    def is_leader(self) -> bool:
        """Whether it computes the group's assignments."""
        return self._member.is_leader

    @property
    def failure(self) -> str | None:
        """Why the consumer has ended for good, or None."""
        return self._core.failure

    @property
    def closed(self) -> bool:
        """Whether `close` has run to its end."""
        return self._closing.is_done

    @property
    def wants_poll(self) -> bool:
        """Whether a poll now would get further."""
        return self._wants_poll

    # --- what the application asks for

    def subscribe(self, topics: Iterable[str], *, now_ms: int) -> ClientOutcome:
        """Subscribe to topics, in place of those before; none is as good as `unsubscribe`."""
        listed = tuple(topics)
        if not listed:
            return self.unsubscribe(now_ms=now_ms)
        self._subscriptions.subscribe(listed)
        self._metadata.request_update()
        return self._finish(now_ms)

    def subscribe_pattern(self, pattern: str, *, now_ms: int) -> ClientOutcome:
        """Subscribe to every topic whose whole name matches a regular expression."""
        self._subscriptions.subscribe_pattern(pattern)
        self._subscriptions.match(self._metadata.not_internal)
        self._metadata.request_update()
        return self._finish(now_ms)

    def resume_membership(
        self,
        generation: Generation,
        positions: Mapping[TopicPartition, int],
        *,
        topics: Iterable[str],
        based_on: Cluster | None = None,
        heard_ms: int,
        now_ms: int,
    ) -> ClientOutcome:
        """Go on as the member of a group whose last round is over, without joining.

        ``positions``: what it owns, and the offset to go on from in each; ``topics``: those it joined with
        (where it is subscribed to others it joins anew at the next poll); ``based_on``: for the leader
        alone, the topics of the group as they were when it assigned them; ``heard_ms``: when it last
        heard of the coordinator, from which its heartbeats count. Its assignor is told, its listener is
        not: nothing is new. Raises InputError for a consumer that is in no group's hands or joins already,
        and for a generation that is none or of an assignor that it has not.
        """
        if not self._subscriptions.is_group_managed:
            raise InputError("resume_membership", "a consumer without a subscription", "subscribe first")
        self._member.resume(generation, positions, topics=topics, based_on=based_on, heard_ms=heard_ms)
        self._positions.resume(positions, now_ms=now_ms)
        return self._finish(now_ms)

    def assign(self, partitions: Iterable[tuple[str, int]], *, now_ms: int) -> ClientOutcome:
        """Take partitions without a group's help."""
        self._subscriptions.assign_by_user(partitions)
        self._metadata.request_update()
        return self._finish(now_ms)

    def unsubscribe(self, *, now_ms: int) -> ClientOutcome:
        """Leave the group, give everything up, subscribe to nothing."""
        if self._subscriptions.is_group_managed:
            self._closing.give_up()
            self._member.leave("the consumer unsubscribed", now_ms=now_ms)
        self._subscriptions.unsubscribe()
        return self._finish(now_ms)

    def seek(self, topic: str, partition: int, offset: int, *, epoch: int = -1, now_ms: int) -> ClientOutcome:
        """Go on from an offset. Raises InputError for a partition that is not assigned."""
        tp = self._assigned("seek", topic, partition)
        if offset < 0:
            raise InputError("seek", str(offset), "an offset of 0 or more")
        self._positions.seek(tp, offset, epoch)
        return self._finish(now_ms)

    def seek_to(self, topic: str, partition: int, where: str, *, now_ms: int) -> ClientOutcome:
        """Go on from the "earliest" or the "latest" offset."""
        if where not in ("earliest", "latest"):
            raise InputError("seek_to", repr(where), "earliest or latest")
        self._positions.reset(self._assigned("seek_to", topic, partition), where)
        return self._finish(now_ms)

    def pause(self, topic: str, partition: int, *, now_ms: int) -> ClientOutcome:
        """Hand out nothing of a partition until `resume`."""
        self._subscriptions.partitions[self._assigned("pause", topic, partition)].paused = True
        return self._finish(now_ms)

    def resume(self, topic: str, partition: int, *, now_ms: int) -> ClientOutcome:
        """Go on with a paused partition."""
        self._subscriptions.partitions[self._assigned("resume", topic, partition)].paused = False
        return self._finish(now_ms)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        *,
        metadata: str = "",
        callback: CommitCallback | None = None,
        retry_until_ms: int | None = None,
        now_ms: int,
    ) -> ClientOutcome:
        """Commit these offsets, or what was consumed; ``callback`` hears in a later poll how it went.

        Until ``retry_until_ms`` a commit that failed is sent again where that may help: while the
        coordinator is unknown, not there, or loads its log; without what was committed again meanwhile, and
        only in the same generation.
        """
        if offsets is None:
            offsets = self._offsets.all_consumed(now_ms=now_ms)
        self._coordinator.find(now_ms=now_ms)
        self._offsets.commit_for_user(
            offsets, callback, now_ms=now_ms, metadata=metadata, retry_until_ms=retry_until_ms
        )
        return self._finish(now_ms)

    def withdraw_commit(self, callback: CommitCallback) -> None:
        """Whoever asked for a commit waits for it no longer: it is not sent again."""
        self._offsets.withdraw(callback)

    def finish_commits(self, *, now_ms: int) -> ClientOutcome:
        """Call back for the commits that were answered, as the next `poll` would; nothing else happens."""
        self._offsets.run_callbacks()
        return self._finish(now_ms)

    def poll(self, *, now_ms: int) -> ClientOutcome:
        """The application's turn (PROTOCOL 9.3, in its order)."""
        if self._core.failure is not None or self._closing.has_begun:
            return NOTHING
        self._offsets.run_callbacks()
        self._metadata.refresh(now_ms=now_ms)
        if self._subscriptions.mode.uses_coordinator:
            self._coordinator.find(now_ms=now_ms)
        if self._subscriptions.is_group_managed:
            self._member.poll(now_ms=now_ms)
        if self._may_auto_commit:
            self._offsets.auto_commit(now_ms=now_ms)
        self._positions.update(now_ms=now_ms)
        self._say_refused()
        if self._fetcher is not None:
            if self._effects.error is None:  # who raises hands out nothing
                self._effects.records += self._fetcher.collect()
            self._fetcher.send(now_ms=now_ms)
        return self._finish(now_ms)

    def close(self, *, now_ms: int) -> ClientOutcome:
        """Commit, give everything up, leave; goes on over answers and deadlines until `closed`."""
        self._closing.begin(now_ms=now_ms)
        return self._finish(now_ms)

    # --- what the world does

    def receive(self, request_id: int, response: Response, *, now_ms: int) -> ClientOutcome:
        """An answer has come in; one that nobody waits for is dropped."""
        if self._requests.received(request_id, response, now_ms=now_ms):
            self._member.on_metadata(now_ms=now_ms)
            return self._finish(now_ms)
        return NOTHING

    def on_disconnected(self, node: int, *, now_ms: int) -> ClientOutcome:
        """The connection to a broker is gone, and with it what was asked of it."""
        if node == self._coordinator.node:
            self._coordinator.lose(now_ms=now_ms)
        self._requests.fail_node(node, Failure.DISCONNECTED, now_ms=now_ms)
        self._metadata.request_update()
        return self._finish(now_ms)

    def on_deadline(self, *, now_ms: int) -> ClientOutcome:
        """Do what is due; between polls too."""
        self._requests.expire(now_ms=now_ms)
        if self._core.failure is None and not self.closed:
            self._metadata.refresh(now_ms=now_ms)
            if self._subscriptions.mode.uses_coordinator:
                self._coordinator.find(now_ms=now_ms)
            self._offsets.send_again(now_ms=now_ms)
            if not self._closing.has_begun:
                self._member.on_deadline(now_ms=now_ms)
        self._closing.go_on(now_ms=now_ms)
        return self._finish(now_ms)

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` wants to be called next, or None."""
        deadlines = [self._requests.next_deadline_ms(), self._closing.next_deadline_ms()]
        if self._core.failure is None and not self.closed:
            deadlines += [self._metadata.next_deadline_ms(), self._offsets.next_retry_ms()]
            if self._subscriptions.mode.uses_coordinator:
                deadlines.append(self._coordinator.next_deadline_ms())
            if not self._closing.has_begun:
                deadlines.append(self._member.next_deadline_ms())
                if not self._wants_poll:
                    deadlines.append(self._poll_deadline_ms())
        return min([d for d in deadlines if d is not None], default=None)

    # --- inside

    def _assigned(self, call: str, topic: str, partition: int) -> TopicPartition:
        tp = TopicPartition(topic, partition)
        if tp not in self._subscriptions.partitions:
            raise InputError(call, f"{topic}-{partition}", "a partition that is assigned to this consumer")
        return tp

    def _say_refused(self) -> None:
        """Of topics that it may not read the application hears once an answer."""
        topics, self._metadata.refused = self._metadata.refused, ()
        if topics:
            said = f"{ErrorCode.TOPIC_AUTHORIZATION_FAILED.name}: {', '.join(topics)}"
            self._effects.fail(ProtocolError("Metadata", said))

    @property
    def _may_auto_commit(self) -> bool:
        return not self._subscriptions.is_group_managed or self._member.is_at_rest

    def _found_coordinator(self, now_ms: int) -> None:
        self._member.on_coordinator(now_ms=now_ms)
        self._closing.go_on(now_ms=now_ms)

    def _commit_refused(self, error: ErrorCode, sent: Generation, now_ms: int) -> CommitResult:
        return self._member.on_commit_error(error, sent, now_ms=now_ms)

    def _poll_deadline_ms(self) -> int | None:
        """When a poll would get further that would not now: what was due when last looked at is not it."""
        deadlines = [self._positions.next_deadline_ms()]
        if self._fetcher is not None:
            deadlines.append(self._fetcher.next_deadline_ms())
        if self._may_auto_commit:
            deadlines.append(self._offsets.next_deadline_ms())
        if self._subscriptions.is_group_managed and self._coordinator.node is not None:
            deadlines.append(self._member.next_poll_ms())
        looked_ms = self._looked_ms
        return min([d for d in deadlines if d is not None and d > looked_ms], default=None)

    def _finish(self, now_ms: int) -> ClientOutcome:
        self._looked_ms = now_ms
        self._wants_poll = (
            self._core.failure is None and not self._closing.has_begun and self._would_get_further(now_ms)
        )
        return self._effects.drain()

    def _would_get_further(self, now_ms: int) -> bool:
        if self._subscriptions.is_group_managed and self._member.wants_poll(now_ms=now_ms):
            return True
        if self._offsets.has_callbacks or self._positions.wants_poll(now_ms=now_ms):
            return True
        if self._fetcher is not None and (self._fetcher.has_records or self._fetcher.is_due(now_ms=now_ms)):
            return True
        if not self._subscriptions.partitions or not self._may_auto_commit:
            return False
        return self._offsets.auto_commit_is_due(now_ms=now_ms)
