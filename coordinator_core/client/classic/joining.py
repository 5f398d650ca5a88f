"""Rounds: JoinGroup, the leader's work, SyncGroup, taking the assignment over (PROTOCOL 9.4-9.7)."""

from collections.abc import Iterable, Sequence
from enum import Enum, auto

from coordinator_core.assigning.assignor import AnyAssignor, subscription_user_data, tell_assignment
from coordinator_core.client.classic.error_actions import JOIN, SYNC, Action, action
from coordinator_core.client.classic.heartbeat import Heartbeat
from coordinator_core.client.classic.leading import all_topics, decode_members, lead
from coordinator_core.client.classic.membership import Membership
from coordinator_core.client.classic.preparation import Preparation
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.requests import Answer, Failure
from coordinator_core.client.subscription import SubscriptionMode, partition_map
from coordinator_core.errors import AssignmentError, ProtocolError, RebalanceLabError
from coordinator_core.model import (
    Cluster,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicInfo,
    TopicPartition,
    java_order,
)
from coordinator_core.protocol.consumer_protocol import decode_assignment, encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Assigned, AssignmentComputed, Joined
from coordinator_core.protocol.messages import (
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)

PROTOCOL_TYPE = "consumer"
JOIN_SLACK_MS = 5_000
"""A JoinGroup may take the rebalance timeout, and this much longer (PITFALLS C-55)."""


class Phase(Enum):
    """What the consumer waits for in a round."""

    NOTHING = auto()
    JOIN = auto()
    METADATA = auto()
    """It leads, and does not know every topic of the group yet."""
    SYNC = auto()


class Joining:
    """Drives one round after the other; `step` is called in poll, answers come in between."""

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        membership: Membership,
        heartbeat: Heartbeat,
        preparation: Preparation,
        assignors: Sequence[AnyAssignor],
        protocol: RebalanceProtocol,
    ) -> None:
        self._core, self._coordinator, self._membership = core, coordinator, membership
        self._heartbeat, self._preparation, self._protocol = heartbeat, preparation, protocol
        self._assignors = {a.name: a for a in assignors}
        self.is_leader = False
        self._phase = Phase.NOTHING
        self._joined_topics: tuple[str, ...] = ()
        self._based_on: tuple[tuple[str, TopicInfo], ...] | None = None
        self._based_on_version = 0
        self._to_lead: dict[str, Subscription] = {}
        self._skips_assignment = False
        self._synced: tuple[Generation, bytes] | None = None

    # --- called by the facade

    def must_rejoin(self) -> bool:
        """PROTOCOL 9.4."""
        if self._membership.rejoin_requested:
            return True
        if self._joined_topics != self._core.subscriptions.topics:
            self._membership.request_rejoin("the subscription changed")
        elif self._based_on is not None and self._based_on_version != self._core.metadata.version:
            self._based_on_version = self._core.metadata.version
            if self._based_on != self._snapshot():
                self._membership.request_rejoin("partitions of a subscribed topic changed")
        return self._membership.rejoin_requested

    @property
    def is_between_rounds(self) -> bool:
        """Whether no round is under way or called for: only then does a poll auto-commit."""
        return self._phase is Phase.NOTHING and self._synced is None and not self.must_rejoin()

    def wants_poll(self, *, now_ms: int) -> bool:
        """Whether `step` would do something."""
        if self._synced is not None:
            return True
        if self._phase is not Phase.NOTHING or not self.must_rejoin():
            return False
        if self._coordinator.node is None or now_ms < self._membership.retry_ms or self._knows_no_topics():
            return False
        return not (self._membership.must_prepare and self._preparation.is_waiting(now_ms=now_ms))

    def knows(self, protocol: str | None) -> bool:
        """Whether it has the assignor of that name."""
        return protocol in self._assignors

    def next_poll_ms(self) -> int | None:
        """When `step` would do something that it would not do now."""
        if self._phase is not Phase.NOTHING or not self._membership.rejoin_requested:
            return None
        waiting = self._preparation.next_deadline_ms() if self._membership.must_prepare else None
        return self._membership.retry_ms if waiting is None else max(waiting, self._membership.retry_ms)

    def step(self, *, now_ms: int) -> None:
        """Go on as far as possible without an answer."""
        self._take_over(now_ms=now_ms)
        if not self.wants_poll(now_ms=now_ms):
            return
        if self._membership.must_prepare:
            if not self._preparation.is_done(now_ms=now_ms):
                return
            self._membership.must_prepare = False
            self.is_leader, self._based_on = False, None
        node = self._coordinator.node
        if node is not None and self._core.failure is None:
            self._send_join(node, now_ms=now_ms)

    def on_metadata(self, *, now_ms: int) -> None:
        """The metadata may be known now that the leader waits for."""
        if self._phase is Phase.METADATA and self._core.metadata.knows(self._core.subscriptions.group_topics):
            self._assign(now_ms=now_ms)

    def resume(
        self,
        generation: Generation,
        owned: Iterable[TopicPartition],
        topics: Iterable[str],
        based_on: Cluster | None,
    ) -> None:
        """Take a place in a group whose last round is over, as that round would have left it."""
        client, subscriptions = self._core.config.client_id, self._core.subscriptions
        joined_with = tuple(java_order(dict.fromkeys(topics)))
        subscriptions.match(joined_with)
        self._joined_topics = joined_with
        self._membership.resume(generation)
        if based_on is not None:
            self.is_leader = True
            subscriptions.group_topics = tuple(java_order(based_on.topics))
            compared = self._core.metadata.compared
            self._based_on = tuple((t, compared(based_on.topics[t])) for t in subscriptions.group_topics)
            self._based_on_version = self._core.metadata.version
        self._core.effects.events.append(
            Joined(
                client=client,
                member_id=generation.member_id,
                generation=generation.number,
                protocol=generation.protocol or "",
                leader=self.is_leader,
            )
        )
        listed = sorted(owned)
        assignor = self._assignors[generation.protocol or ""]
        self._core.callbacks.call(tell_assignment, assignor, Partitions.of(listed), generation.number)
        subscriptions.assign_by_group(listed)
        self._core.effects.events.append(
            Assigned(client=client, generation=generation.number, added={}, owned=partition_map(listed))
        )

    # --- JoinGroup

    def _knows_no_topics(self) -> bool:
        pattern = self._core.subscriptions.mode is SubscriptionMode.AUTO_PATTERN
        return pattern and not self._core.metadata.was_answered

    def _send_join(self, node: int, *, now_ms: int) -> None:
        config, sent = self._core.config, self._core.generation
        self._joined_topics = self._core.subscriptions.topics
        try:
            protocols = tuple(self._subscription_for(a, sent) for a in self._assignors.values())
        except AssignmentError as problem:
            self._core.fail(problem)
            return
        self._phase = Phase.JOIN
        self._membership.move_to(MemberState.PREPARING_REBALANCE)
        request = JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=sent.member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=self._membership.rejoin_reason,
        )
        self._core.send(
            node,
            request,
            lambda answer, at_ms: self._join_answered(answer, sent, at_ms),
            now_ms=now_ms,
            timeout_ms=max(config.max_poll_interval_ms + JOIN_SLACK_MS, config.request_timeout_ms),
        )

    def _subscription_for(self, assignor: AnyAssignor, sent: Generation) -> JoinGroupProtocol:
        """PROTOCOL 9.6; equal state gives equal bytes (PITFALLS C-21). Raises AssignmentError."""
        try:
            user_data = subscription_user_data(assignor, self._joined_topics)
        except Exception as wrong:
            said = f"subscription_user_data raised {type(wrong).__name__}: {wrong}"
            raise AssignmentError(assignor.name, [said]) from wrong
        subscription = Subscription(
            topics=self._joined_topics,
            owned=self._core.subscriptions.owned(),
            generation=sent.number,
            rack=self._core.config.client_rack,
            user_data=user_data,
        )
        return JoinGroupProtocol(assignor.name, encode_subscription(subscription))

    def _join_answered(self, answer: Answer, sent: Generation, now_ms: int) -> None:
        self._phase = Phase.NOTHING
        if isinstance(answer, Failure):
            self._failed(answer, now_ms=now_ms)
            return
        assert isinstance(answer, JoinGroupResponse)
        if answer.error is not ErrorCode.NONE:
            todo = action(JOIN, answer.error)
            if todo is Action.ADOPT_ID:
                waits = self._membership.state is MemberState.PREPARING_REBALANCE
                if waits and sent == self._core.generation:
                    self._core.generation = NO_MEMBERSHIP._replace(member_id=answer.member_id)
                return
            self._act_on("JoinGroup", todo, answer.error, sent, now_ms=now_ms)
            return
        if self._membership.state is not MemberState.PREPARING_REBALANCE:
            return  # it has left, or lost its membership, since it asked
        if answer.protocol_type not in (None, PROTOCOL_TYPE) or answer.protocol_name not in self._assignors:
            problem = f"the group chose {answer.protocol_type}/{answer.protocol_name}"
            self._core.fail(ProtocolError("JoinGroup", problem))
            return
        self._joined(answer, now_ms=now_ms)

    def _joined(self, answer: JoinGroupResponse, *, now_ms: int) -> None:
        membership = self._membership
        self._core.generation = Generation(answer.generation_id, answer.member_id, answer.protocol_name)
        membership.move_to(MemberState.COMPLETING_REBALANCE)
        self._heartbeat.joined(now_ms=now_ms)
        leads = answer.leader == answer.member_id
        self._core.effects.events.append(
            Joined(
                client=self._core.config.client_id,
                member_id=answer.member_id,
                generation=answer.generation_id,
                protocol=answer.protocol_name or "",
                leader=leads,
            )
        )
        if not leads:
            self._send_sync((), now_ms=now_ms)
            return
        self.is_leader = True
        try:
            self._to_lead = decode_members(answer.members)
        except ProtocolError as problem:
            self._core.fail(problem)
            return
        self._core.subscriptions.group_topics = all_topics(self._to_lead)
        self._skips_assignment = answer.skip_assignment
        if self._core.metadata.knows(self._core.subscriptions.group_topics):
            self._assign(now_ms=now_ms)
        else:
            self._phase = Phase.METADATA
            self._core.metadata.request_update()
            self._core.metadata.refresh(now_ms=now_ms)

    # --- SyncGroup

    def _assign(self, *, now_ms: int) -> None:
        """The leader's work."""
        self._phase = Phase.NOTHING
        generation, topics = self._core.generation, self._core.subscriptions.group_topics
        if generation.is_lost:
            return
        self._remember_cluster()
        if self._skips_assignment:
            self._to_lead = {}
            self._send_sync((), now_ms=now_ms)
            return
        try:
            assignor = self._assignors[generation.protocol or ""]
            led = lead(assignor, self._core.metadata.cluster(topics), self._to_lead)
        except AssignmentError as problem:
            self._core.fail(problem.of(self._described()))
            return
        except RebalanceLabError as problem:
            self._core.fail(problem)
            return
        self._core.effects.events.append(
            AssignmentComputed(
                client=self._core.config.client_id,
                generation=generation.number,
                assignor=assignor.name,
                members={m: list(s.topics) for m, s in self._to_lead.items()},
                payload_bytes=led.payload_bytes,
                report=led.report,
            )
        )
        self._to_lead = {}
        self._send_sync(led.assignments, now_ms=now_ms)

    def _described(self) -> str:
        """The group, for an error that is about it."""
        topics = self._core.metadata.cluster(self._core.subscriptions.group_topics).topics
        partitions = sum(info.partitions for info in topics.values())
        return (
            f"group {self._core.config.group_id!r} in generation {self._core.generation.number}"
            f" ({len(self._to_lead)} members, {partitions:,} partitions)"
        )

    def _remember_cluster(self) -> None:
        """Only a leader watches for changes of the cluster (PITFALLS C-54)."""
        self._based_on, self._based_on_version = self._snapshot(), self._core.metadata.version

    def _snapshot(self) -> tuple[tuple[str, TopicInfo], ...]:
        return self._core.metadata.snapshot(self._core.subscriptions.group_topics)

    def _send_sync(self, assignments: tuple[SyncGroupAssignment, ...], *, now_ms: int) -> None:
        node, sent = self._coordinator.node, self._core.generation
        if node is None:
            self._failed(Failure.DISCONNECTED, now_ms=now_ms)
            return
        self._phase = Phase.SYNC
        request = SyncGroupRequest(
            group_id=self._core.config.group_id,
            generation_id=sent.number,
            member_id=sent.member_id,
            group_instance_id=self._core.config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=sent.protocol,
            assignments=assignments,
        )
        timeout_ms = max(
            self._core.config.max_poll_interval_ms + JOIN_SLACK_MS, self._core.config.request_timeout_ms
        )
        self._core.send(
            node,
            request,
            lambda answer, at_ms: self._sync_answered(answer, sent, at_ms),
            now_ms=now_ms,
            timeout_ms=timeout_ms,
        )

    def _sync_answered(self, answer: Answer, sent: Generation, now_ms: int) -> None:
        self._phase = Phase.NOTHING
        if isinstance(answer, Failure):
            self._failed(answer, now_ms=now_ms)
            return
        assert isinstance(answer, SyncGroupResponse)
        if answer.error is not ErrorCode.NONE:
            self._membership.request_rejoin(f"SyncGroup: {answer.error.name}")
            self._act_on("SyncGroup", action(SYNC, answer.error), answer.error, sent, now_ms=now_ms)
            return
        current = self._membership
        if sent != self._core.generation or current.state is not MemberState.COMPLETING_REBALANCE:
            return  # the generation was lost meanwhile (PITFALLS C-49)
        if answer.protocol_name not in (None, sent.protocol):
            self._core.fail(ProtocolError("SyncGroup", f"an assignment of {answer.protocol_name}"))
            return
        current.move_to(MemberState.STABLE)
        current.rejoin_requested = False
        self._synced = sent, answer.assignment

    def _act_on(self, api: str, todo: Action, error: ErrorCode, sent: Generation, *, now_ms: int) -> None:
        self._membership.act_on(api, todo, error, sent, now_ms=now_ms)
        if todo in (Action.BACK_OFF, Action.REDISCOVER) and sent == self._core.generation:
            self._retry(f"{api}: {error.name}", now_ms=now_ms)

    def _failed(self, failure: Failure, *, now_ms: int) -> None:
        """No answer: the coordinator may be another by now; the round is tried again."""
        if failure is Failure.TIMED_OUT:
            self._coordinator.lose(now_ms=now_ms)
        self._retry(f"a request of the last round was {failure.value}", now_ms=now_ms)

    def _retry(self, reason: str, *, now_ms: int) -> None:
        """The generation stays, and so does what is owned (PITFALLS C-48)."""
        self._membership.request_rejoin(reason)
        self._membership.back_off(now_ms=now_ms)

    # --- taking the assignment over

    def _take_over(self, *, now_ms: int) -> None:
        """In poll, with the generation that the assignment was made in (PITFALLS C-49)."""
        if self._synced is None:
            return
        (generation, data), self._synced = self._synced, None
        self._membership.must_prepare = True
        if generation != self._core.generation:
            return  # what it owns is lost at the next join
        try:
            partitions, _ = decode_assignment(data)
        except ProtocolError as problem:
            leader = (
                f"the assignment is unreadable: is the leader's assignor {generation.protocol!r} at fault?"
            )
            self._core.fail(ProtocolError(problem.peer, f"{problem.problem}; {leader}"))
            return
        assigned = sorted(partitions)
        if not self._core.subscriptions.matches(assigned):
            self._membership.request_rejoin("the assignment does not match the subscription")
            return
        self._apply(generation, assigned)
        self._heartbeat.polled(now_ms=now_ms)

    def _apply(self, generation: Generation, assigned: list[TopicPartition]) -> None:
        """PROTOCOL 9.7; the order is that of PITFALLS C-52."""
        core, subscriptions = self._core, self._core.subscriptions
        owned = subscriptions.partitions
        given, client = frozenset(assigned), core.config.client_id
        revoked = sorted(tp for tp in owned if tp not in given)
        added = [tp for tp in assigned if tp not in owned]
        if self._protocol is RebalanceProtocol.COOPERATIVE and revoked:
            core.give_up(revoked)
            self._membership.request_rejoin(f"it gave up partitions: {len(revoked)}")
        assignor = self._assignors[generation.protocol or ""]
        core.callbacks.call(tell_assignment, assignor, Partitions.of(assigned), generation.number)
        subscriptions.assign_by_group(assigned)
        core.effects.events.append(
            Assigned(
                client=client,
                generation=generation.number,
                added=partition_map(added),
                owned=partition_map(assigned),
            )
        )
        core.callbacks.assigned(added)
