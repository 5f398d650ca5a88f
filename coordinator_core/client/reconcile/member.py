"""The member of a group that the coordinator reconciles: heartbeats, and nothing else.

Heartbeats do not depend on polls. A poll gives up and takes over partitions, as the last response says; the
next heartbeat reports it at once. One heartbeat is in flight at a time.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.beats import Beats, Heartbeats
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import LATER, Action
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.member import MemberPart, Outlook
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.client.preparation import Preparation
from coordinator_core.client.requests import NEVER, Reply
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import Cluster, RebalanceProtocol, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

API = "ConsumerGroupHeartbeat"

_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
_OUTSIDE = (*_FENCED, ErrorCode.GROUP_ID_NOT_FOUND)
"""Errors of a member that has to join again. A join has none of them."""


class ReconcileState(StrEnum):
    """The state of a member."""

    UNJOINED = "unjoined"
    """Outside the group, or fenced."""

    JOINING = "joining"
    """The first heartbeat is in flight."""

    RECONCILING = "reconciling"
    """Partitions are to be given up or taken over in the next poll."""

    ACKNOWLEDGING = "acknowledging"
    """The next heartbeat reports what the member owns."""

    STABLE = "stable"
    """The member owns what it was assigned, and has reported it."""


class _Subscription(NamedTuple):
    """What a member subscribes to: topics, or a pattern."""

    topics: tuple[str, ...]
    pattern: str | None


class ReconcileMember(MemberPart):
    """A member that goes on by itself, as the responses to its heartbeats say.

    The id of the member is made by itself, and stays the same while the process lives. The coordinator runs
    the assignor of ``assignors``, or without one that which it knows as ``server_assignor``, None for its
    default. ``interval_ms`` is the interval of heartbeats until the coordinator gives one.
    """

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        offsets: Offsets,
        assignors: Sequence[Assignor],
        *,
        server_assignor: str | None = None,
        interval_ms: int = 0,
    ) -> None:
        if len(assignors) > 1:
            raise InputError("assignors", f"{len(assignors)} of them", "one: that of the coordinator")
        super().__init__(core, coordinator, ReconcileState.UNJOINED)
        self._assignor = assignors[0].name if assignors else server_assignor
        self._preparation = Preparation(core, offsets, RebalanceProtocol.COOPERATIVE, self._unwanted)
        self._member_id = ""
        self._assigned: frozenset[TopicPartition] = frozenset()
        """What the coordinator lets the member own, as of the last response."""
        self._taken_epoch = -1
        """The epoch in which the member last reported that it owns all of it."""
        self._told = _Subscription((), None)
        self._is_full = True
        """Whether the next heartbeat has all fields: the coordinator may not know them."""
        self._must_report = False
        self._takes_over = False
        """Whether partitions were given up, and the next poll takes over others."""
        self._attempt = 0
        """The number of memberships so far. Responses to an earlier one are ignored."""
        self.beats = Beats(core, interval_ms)
        self._retry_ms = 0
        self._compared: tuple[object, object, object, object] = (None, None, None, None)
        self._differs = False

    # --- the interface of a client

    @property
    def is_at_rest(self) -> bool:
        """Whether the member owns what it was assigned and the coordinator knows it."""
        return self.state is ReconcileState.STABLE and not (self._has_news or self._must_reconcile)

    @property
    def calls_listener(self) -> bool:
        """Whether partitions are to be given up or taken over."""
        if self._core.generation.is_lost:
            return bool(self._core.subscriptions.partitions)
        return self._must_reconcile

    @property
    def may_revoke(self) -> bool:
        """Whether the member is in the group."""
        return not self._core.generation.is_lost

    @property
    def may_commit(self) -> bool:
        """Whether the member is in the group."""
        return not self._core.generation.is_lost

    def poll(self, *, now_ms: int) -> None:
        """Give up and take over partitions, or join."""
        self.beats.polled(now_ms=now_ms)
        if self._core.generation.is_lost:
            if self._core.subscriptions.partitions and not self._preparation.run(now_ms=now_ms):
                return
            node = self._coordinator.node
            if (
                node is not None
                and not self.beats.is_waiting
                and now_ms >= self._retry_ms
                and self._is_subscribed
            ):
                self._move_to(ReconcileState.JOINING)
                self._send(node, now_ms=now_ms)
        elif self._must_reconcile:
            self._reconcile(now_ms=now_ms)

    def outlook(self, *, now_ms: int) -> Outlook:
        """Return when a heartbeat or a poll is due."""
        return Outlook(self.is_at_rest, self._next_deadline_ms(now_ms), self._next_poll_ms(now_ms))

    def _next_poll_ms(self, now_ms: int) -> int:
        if self._core.generation.is_lost:
            if self._core.subscriptions.partitions:
                return self._prepared_ms(now_ms)
            cannot_join = self.beats.is_waiting or self._coordinator.node is None or not self._is_subscribed
            return NEVER if cannot_join else self._retry_ms
        return self._prepared_ms(now_ms) if self._must_reconcile else NEVER

    def _prepared_ms(self, now_ms: int) -> int:
        """Return when a poll can give up partitions: a commit may be in flight."""
        return self._preparation.retry_ms() if self._preparation.is_waiting(now_ms=now_ms) else now_ms

    def _next_deadline_ms(self, now_ms: int) -> int:
        if self._core.generation.is_lost or self._coordinator.node is None:
            return NEVER
        missed_ms = self.beats.missed_ms
        return missed_ms if self.beats.is_waiting else min(missed_ms, self._due_ms(now_ms))

    def _due_ms(self, now_ms: int) -> int:
        """Return when the next heartbeat is due: after the interval, or at once if there are news."""
        due_ms = self.beats.due_ms
        return max(min(now_ms, due_ms), self._retry_ms) if self._has_news else due_ms

    def on_deadline(self, *, now_ms: int) -> None:
        """Leave after a missed poll, or send a heartbeat."""
        node = self._coordinator.node
        if self._core.generation.is_lost or node is None:
            return
        if now_ms >= self.beats.missed_ms:
            self.leave("max.poll.interval.ms has passed without a poll", now_ms=now_ms)
        elif not self.beats.is_waiting and now_ms >= self._due_ms(now_ms):
            self._send(node, now_ms=now_ms)

    def heartbeats(self) -> Heartbeats | None:
        """Return the heartbeats of a member at rest, or None."""
        if not self.is_at_rest or self._coordinator.node is None:
            return None
        return Heartbeats(self._request(), self.beats)

    def on_coordinator(self, *, now_ms: int) -> None:
        """Send a heartbeat with all fields: this coordinator may not have answered the last one."""
        self._is_full, self.beats.due_ms = True, now_ms

    def on_commit_error(self, error: ErrorCode, sent: Generation, *, now_ms: int) -> CommitResult:
        """Return the result of a commit. One with an old epoch can be sent again with the present one."""
        if LATER.get(error) is Action.REDISCOVER:
            self._coordinator.lose(now_ms=now_ms)
        if error in _OUTSIDE and sent == self._core.generation:
            self._reset()
        later = error in (*LATER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.STALE_MEMBER_EPOCH)
        return CommitResult(error.name, retriable=later and not self._core.generation.is_lost)

    def resume(
        self,
        generation: Generation,
        owned: Iterable[TopicPartition],
        *,
        topics: Iterable[str],  # noqa: ARG002 - the coordinator knows them
        based_on: Cluster | None,  # noqa: ARG002 - the coordinator assigns
        last_response_ms: int,
    ) -> None:
        """Be a stable member without joining the group.

        Raises:
            InputError: if the member is joining or has joined, or if the epoch is invalid.
        """
        if self.state is not ReconcileState.UNJOINED or generation.is_lost:
            found = f"epoch {generation.number} in the state {self.state.value}"
            raise InputError("resume_membership", found, "an epoch above 0 for a member that has not joined")
        core, self._member_id = self._core, generation.member_id
        core.generation, self._taken_epoch = generation, generation.number
        core.subscriptions.assign_by_group(sorted(owned))
        self._assigned = frozenset(core.subscriptions.partitions)
        self._told, self._is_full = self._subscription, False
        self.beats.begin_interval(last_response_ms)
        core.report_joined()
        core.report_assigned([], list(core.subscriptions.partitions))
        self._update_state()

    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:  # noqa: ARG002
        """Leave the group and forget the membership. A static member leaves for a while."""
        node, config = self._coordinator.node, self._core.config
        sends = node is not None and self.state is not ReconcileState.UNJOINED

        if sends and node is not None:
            instance_id = config.group_instance_id
            epoch = LEAVES if instance_id is None else LEAVES_FOR_A_WHILE
            request = ConsumerGroupHeartbeatRequest(
                group_id=config.group_id,
                member_id=self._member_id,
                member_epoch=epoch,
                instance_id=instance_id,
            )
            self._core.requests.tell(node, request, left, now_ms=now_ms)
        self._reset()
        return sends

    # --- partitions

    @property
    def _is_subscribed(self) -> bool:
        topics, pattern = self._subscription
        return bool(topics) or pattern is not None

    @property
    def _subscription(self) -> _Subscription:
        subscriptions = self._core.subscriptions
        pattern = subscriptions.pattern
        return _Subscription(() if pattern is not None else subscriptions.topics, pattern)

    @property
    def _must_reconcile(self) -> bool:
        """Whether the member owns other partitions than it was assigned of its topics."""
        subscriptions, assigned = self._core.subscriptions, self._assigned
        topics, owned, pattern = subscriptions.topics, subscriptions.partitions, subscriptions.pattern
        known_assigned, known_topics, known_owned, known_pattern = self._compared
        is_known = assigned is known_assigned and topics is known_topics and owned is known_owned
        if not is_known or pattern is not known_pattern:
            self._compared = assigned, topics, owned, pattern
            self._differs = self._wanted() != owned.keys()
        return self._differs or self._takes_over or self._preparation.has_begun

    def _wanted(self) -> set[TopicPartition]:
        allowed = {
            topic: self._core.subscriptions.allows((topic,))
            for topic in dict.fromkeys(tp.topic for tp in sorted(self._assigned))
        }
        return {tp for tp in self._assigned if allowed[tp.topic]}

    def _unwanted(self) -> Iterable[TopicPartition]:
        """Return the partitions to give up."""
        return self._core.subscriptions.partitions.keys() - self._wanted()

    def _reconcile(self, *, now_ms: int) -> None:
        """Give up partitions, after a commit, then take over others, maybe in a later poll."""
        core, subscriptions = self._core, self._core.subscriptions
        gives_up = self._preparation.has_begun or bool(self._unwanted())
        if gives_up or (core.library.calls_apart and not self._takes_over):
            before = frozenset(subscriptions.partitions)
            waits = not core.library.commits_meanwhile
            if not self._preparation.run(now_ms=now_ms, waits=waits) or core.generation.is_lost:
                return
            # What was given up may be assigned again by a later response only.
            given_up = before - subscriptions.partitions.keys()
            self._assigned -= given_up
            self._takes_over = core.library.calls_apart and bool(given_up)
            if self._takes_over:
                return
        self._takes_over = False
        owned = sorted(self._wanted())
        added = [tp for tp in owned if tp not in subscriptions.partitions]
        subscriptions.assign_by_group(owned)
        self._must_report = True
        self._taken_epoch = core.generation.number
        core.report_assigned(added, owned)
        core.callbacks.assigned(added)
        self._update_state()

    # --- heartbeats

    @property
    def _has_news(self) -> bool:
        """Whether the next heartbeat tells more than that the member is alive, and can be sent now."""
        if self._is_full or self._told != self._subscription:
            return True
        return self._must_report and not self._must_reconcile

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        """Return the next heartbeat, with the fields that have changed since the last one."""
        core, config, subscription = self._core, self._core.config, self._subscription
        owned = None
        if self._is_full or (self._must_report and not self._must_reconcile):
            owned = tuple(sorted(core.subscriptions.partitions))
        tells = self._is_full or self._told != subscription
        return ConsumerGroupHeartbeatRequest(
            group_id=config.group_id,
            member_id=self._member_id,
            member_epoch=JOINS if core.generation.is_lost else core.generation.number,
            instance_id=config.group_instance_id,
            rack_id=config.client_rack if self._is_full else None,
            rebalance_timeout_ms=self._core.rebalance_timeout_ms if self._is_full else -1,
            subscribed_topic_names=subscription.topics if tells else None,
            subscribed_topic_regex=(subscription.pattern or "") if tells else None,
            server_assignor=self._assignor if self._is_full else None,
            topic_partitions=owned,
        )

    def _send(self, node: int, *, now_ms: int) -> None:
        core = self._core
        if not self._member_id:
            # The id comes first: brokers sort members by their ids, which are random in other clients, too.
            self._member_id = f"{UUID(int=core.random.getrandbits(128), version=4)}-{core.config.client_id}"
        if self._is_full:
            # An assignment that is not taken over yet comes again: the member does not own it.
            self._assigned = frozenset(core.subscriptions.partitions)
        request, attempt = self._request(), self._attempt
        if request.topic_partitions is not None:
            self._must_report = False
        self._told, self._is_full, self.beats.is_waiting = self._subscription, False, True
        self.beats.begin_interval(now_ms)

        def answered(reply: Reply, at_ms: int) -> None:
            if attempt == self._attempt:
                self.beats.is_waiting = False
                self._answered(reply, at_ms)

        core.requests.send(node, request, answered, now_ms=now_ms)

    def _answered(self, reply: Reply, now_ms: int) -> None:
        if not isinstance(reply, ConsumerGroupHeartbeatResponse) or reply.error in LATER:
            self._retry_ms = now_ms + self._core.config.retry_backoff_ms
            self.beats.back_off(now_ms=now_ms)
            self._is_full = True
            if isinstance(reply, ConsumerGroupHeartbeatResponse) and LATER[reply.error] is Action.REDISCOVER:
                self._coordinator.lose(now_ms=now_ms)
        elif reply.error in _FENCED or (reply.error in _OUTSIDE and not self._core.generation.is_lost):
            self._reset()
        elif reply.error:
            found = reply.error.name if reply.message is None else f"{reply.error.name}: {reply.message}"
            self._core.fail(ProtocolError(API, found))
        else:
            self._take_note(reply, now_ms=now_ms)

    def _take_note(self, reply: ConsumerGroupHeartbeatResponse, *, now_ms: int) -> None:
        """Take over the epoch and the assignment. The next poll carries the assignment out."""
        core, before = self._core, self._core.generation
        self.beats.interval_ms = reply.heartbeat_interval_ms
        if before.is_lost:
            self.beats.joined(now_ms=now_ms)
        core.generation = Generation(reply.member_epoch, self._member_id, self._assignor or "")
        if reply.assignment is not None:
            self._assigned = frozenset(reply.assignment)
            self._must_report = bool(reply.assignment) or not before.is_lost
        if before != core.generation:
            core.report_joined()
        if not self._must_reconcile and self._taken_epoch != reply.member_epoch:
            self._taken_epoch = reply.member_epoch
            core.report_assigned([], list(core.subscriptions.partitions), called=False)
        self._update_state()

    def _reset(self) -> None:
        """Forget the membership. The next poll loses the partitions, and joins again."""
        self._core.generation = NO_MEMBERSHIP
        self._assigned, self._taken_epoch = frozenset(), -1
        self._is_full, self._must_report, self.beats.is_waiting = True, False, False
        self._takes_over = False
        self._attempt += 1
        self._move_to(ReconcileState.UNJOINED)

    def _update_state(self) -> None:
        if self._must_reconcile:
            self._move_to(ReconcileState.RECONCILING)
        elif self._must_report:
            self._move_to(ReconcileState.ACKNOWLEDGING)
        else:
            self._move_to(ReconcileState.STABLE)
