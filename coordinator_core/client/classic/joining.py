"""The rounds of a classic group: when to join, then JoinGroup and SyncGroup (PROTOCOL 9.4-9.6)."""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from functools import partial

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import user_data_of
from coordinator_core.client.beats import Beats
from coordinator_core.client.classic.error_actions import JOIN, SYNC
from coordinator_core.client.classic.leading import Leader
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.classic.takeover import Takeover
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.error_actions import Action, action
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.membership import Membership
from coordinator_core.client.preparation import Preparation
from coordinator_core.client.requests import NEVER, Completion, Failure, Reply
from coordinator_core.client.subscription import SubscriptionMode
from coordinator_core.errors import AssignmentError, ProtocolError, RebalanceLabError
from coordinator_core.java import java_order
from coordinator_core.model import Subscription
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    Request,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)

JOIN_SLACK_MS = 5_000
"""The timeout of a JoinGroup is the rebalance timeout and this time (PITFALLS C-55)."""


class Phase(Enum):
    """What a round waits for."""

    NOTHING = auto()
    JOIN = auto()
    METADATA = auto()
    """The leader needs the metadata of topics that only other members subscribe to."""
    SYNC = auto()


_NOTHING, _JOIN, _METADATA = Phase.NOTHING, Phase.JOIN, Phase.METADATA
_AUTO_PATTERN = SubscriptionMode.AUTO_PATTERN


class Joining:
    """Runs one round after another. `step` runs in polls; responses arrive between them."""

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        membership: Membership[MemberState],
        beats: Beats,
        preparation: Preparation,
        leader: Leader,
        takeover: Takeover,
        assignors: Mapping[str, Assignor],
    ) -> None:
        self._core, self._coordinator, self._membership = core, coordinator, membership
        self._beats, self._preparation = beats, preparation
        self._leader, self._takeover, self._assignors = leader, takeover, assignors
        self.phase = Phase.NOTHING
        self._has_renewed = False
        """Whether the metadata for a pattern were requested for this round."""

    def must_rejoin(self) -> bool:
        """Return whether the consumer has to join again (PROTOCOL 9.4)."""
        membership, leader = self._membership, self._leader
        if not membership.must_rejoin() and leader.is_elected and leader.cluster_has_changed():
            membership.request_rejoin("partitions of a subscribed topic changed")
        return membership.rejoin_requested

    @property
    def calls_listener(self) -> bool:
        """Whether the next `step` takes over an assignment or gives up partitions."""
        prepares = self._membership.must_prepare and not self._must_renew
        return self._takeover.is_due or (prepares and self._preparation.gives_up)

    def wants_poll(self, *, now_ms: int) -> bool:
        """Return whether `step` would make progress now."""
        return self._takeover.is_due or self._can_join(now_ms=now_ms)

    def retry_ms(self) -> int:
        """Return the time at which `step` can make progress, or `NEVER`."""
        membership = self._membership
        if self.phase is not _NOTHING or not membership.rejoin_requested or self._coordinator.node is None:
            return NEVER
        prepared_ms = self._preparation.retry_ms() if membership.must_prepare else 0
        return max(prepared_ms, membership.retry_ms)

    def step(self, *, now_ms: int) -> None:
        """Take over an assignment, prepare, join: as far as possible without a response."""
        if self._takeover.is_due:
            self._takeover.run(now_ms=now_ms)
            if not (self._core.library.rejoins_at_once and self._core.library.joins_with_calls):
                return
        if not self._can_join(now_ms=now_ms):
            return
        if self._must_renew:
            self._has_renewed = True
            self._core.metadata.renew(now_ms=now_ms)
            if self._core.metadata.is_pending:
                return
        if self._membership.must_prepare:
            calls = self._preparation.gives_up
            if not self._preparation.run(now_ms=now_ms):
                return
            self._membership.must_prepare = False
            self._leader.resign()
            if calls and not self._core.library.joins_with_calls:
                return
        node = self._coordinator.node
        if node is not None and self._core.failure is None:
            self._send_join(node, now_ms=now_ms)

    def on_metadata(self, *, now_ms: int) -> None:
        """Lead, if the metadata that the leader waits for are known now."""
        if self.phase is _METADATA and self._leader.knows_all_topics:
            self._lead(now_ms=now_ms)

    def resume(self, topics: Iterable[str]) -> None:
        """Take topics as those of the last join."""
        self._membership.joined_topics = tuple(java_order(dict.fromkeys(topics)))
        self._core.subscriptions.match(self._membership.joined_topics)

    def _can_join(self, *, now_ms: int) -> bool:
        if self.phase is not _NOTHING or not self.must_rejoin():
            return False
        if self._coordinator.node is None or now_ms < self._membership.retry_ms:
            return False
        if self._has_renewed and self._has_pattern and self._core.metadata.is_pending:
            return False
        return not (self._membership.must_prepare and self._preparation.is_waiting(now_ms=now_ms))

    @property
    def _has_pattern(self) -> bool:
        return self._core.subscriptions.mode is _AUTO_PATTERN

    @property
    def _must_renew(self) -> bool:
        """Whether the consumer looks for topics that its pattern matches before it joins (C-54)."""
        return not self._has_renewed and self._has_pattern

    # --- JoinGroup

    def _send_join(self, node: int, *, now_ms: int) -> None:
        config, sent = self._core.config, self._core.generation
        self._membership.rejoin_at_ms = NEVER
        self._membership.joined_topics = self._core.subscriptions.topics
        try:
            protocols = tuple(self._subscription_for(a, sent) for a in self._assignors.values())
        except AssignmentError as error:
            self._core.fail(error)
            return
        self._membership.move_to(MemberState.PREPARING_REBALANCE)
        request = JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=self._core.rebalance_timeout_ms,
            member_id=sent.member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=self._membership.rejoin_reason,
        )
        self._send(Phase.JOIN, node, request, partial(self._on_join, sent), now_ms=now_ms)

    def _send(
        self, phase: Phase, node: int, request: Request, completion: Completion, *, now_ms: int
    ) -> None:
        config, self.phase = self._core.config, phase
        timeout_ms = config.request_timeout_ms
        if phase is _JOIN:
            timeout_ms = max(self._core.rebalance_timeout_ms + JOIN_SLACK_MS, timeout_ms)
        self._core.requests.send(node, request, completion, now_ms=now_ms, timeout_ms=timeout_ms)

    def _subscription_for(self, assignor: Assignor, sent: Generation) -> JoinGroupProtocol:
        """Return the encoded subscription for an assignor. Equal state gives equal bytes (PITFALLS C-21).

        Raises:
            AssignmentError: if the assignor raises, or returns no bytes.
        """
        topics = self._membership.joined_topics
        is_silent = self._core.library.echoes_user_data and sent.is_lost
        subscription = Subscription(
            topics=topics,
            owned=self._core.subscriptions.owned(),
            generation=sent.number,
            rack=self._core.config.client_rack,
            user_data=None if is_silent else user_data_of(assignor, topics),
        )
        return JoinGroupProtocol(assignor.name, encode_subscription(subscription))

    def _on_join(self, sent: Generation, reply: Reply, now_ms: int) -> None:
        self.phase = Phase.NOTHING
        if isinstance(reply, Failure):
            self._fail_round(reply, now_ms=now_ms)
            return
        assert isinstance(reply, JoinGroupResponse)
        is_waiting = self._membership.state is MemberState.PREPARING_REBALANCE
        if reply.error:
            todo = action(JOIN, reply.error)
            if todo is not Action.ADOPT_ID:
                self._act_on("JoinGroup", todo, reply.error, sent, now_ms=now_ms)
            elif is_waiting and sent == self._core.generation:
                self._core.generation = NO_MEMBERSHIP._replace(member_id=reply.member_id)
        elif is_waiting:  # it may have left, or lost its membership, since the request
            self._joined(reply, now_ms=now_ms)

    def _joined(self, response: JoinGroupResponse, *, now_ms: int) -> None:
        chosen = response.protocol_name
        if response.protocol_type not in (None, PROTOCOL_TYPE) or chosen not in self._assignors:
            self._core.fail(ProtocolError("JoinGroup", f"the group chose {response.protocol_type}/{chosen}"))
            return
        leads = response.leader == response.member_id
        self._core.generation = Generation(response.generation_id, response.member_id, chosen)
        self._membership.move_to(MemberState.COMPLETING_REBALANCE)
        self._beats.joined(now_ms=now_ms)
        self._core.report_joined(leader=leads)
        if not leads:
            self._leader.resign()  # it may have led a round that failed
            self._send_sync((), now_ms=now_ms)
            return
        self._leader.elect(response)
        if self._leader.knows_all_topics:
            self._lead(now_ms=now_ms)
        else:
            self.phase = Phase.METADATA
            self._core.metadata.request_update()
            self._core.metadata.refresh(now_ms=now_ms)

    # --- SyncGroup

    def _lead(self, *, now_ms: int) -> None:
        self.phase = Phase.NOTHING
        if self._core.generation.is_lost:
            return
        try:
            assignments = self._leader.assign()
        except RebalanceLabError as error:
            self._core.fail(error)
            return
        self._send_sync(assignments, now_ms=now_ms)

    def _send_sync(self, assignments: tuple[SyncGroupAssignment, ...], *, now_ms: int) -> None:
        node, sent = self._coordinator.node, self._core.generation
        if node is None:
            self._fail_round(Failure.DISCONNECTED, now_ms=now_ms)
            return
        request = SyncGroupRequest(
            group_id=self._core.config.group_id,
            generation_id=sent.number,
            member_id=sent.member_id,
            group_instance_id=self._core.config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=sent.protocol,
            assignments=assignments,
        )
        self._send(Phase.SYNC, node, request, partial(self._on_sync, sent), now_ms=now_ms)

    def _on_sync(self, sent: Generation, reply: Reply, now_ms: int) -> None:
        self.phase = Phase.NOTHING
        if isinstance(reply, Failure):
            self._fail_round(reply, now_ms=now_ms)
            return
        assert isinstance(reply, SyncGroupResponse)
        if reply.error:
            self._membership.request_rejoin(f"SyncGroup: {reply.error.name}")
            self._act_on("SyncGroup", action(SYNC, reply.error), reply.error, sent, now_ms=now_ms)
            return
        if sent != self._core.generation or self._membership.state is not MemberState.COMPLETING_REBALANCE:
            return  # the generation was lost in the meantime (PITFALLS C-49)
        if reply.protocol_name not in (None, sent.protocol):
            self._core.fail(ProtocolError("SyncGroup", f"an assignment of {reply.protocol_name}"))
            return
        self._membership.move_to(MemberState.STABLE)
        self._membership.rejoin_requested = self._has_renewed = False
        self._takeover.schedule(sent, reply.assignment)

    # --- retries

    def _act_on(self, api: str, todo: Action, error: ErrorCode, sent: Generation, *, now_ms: int) -> None:
        if todo is Action.FATAL:  # whatever has become of the generation
            self._membership.end(api, error)
            return
        self._membership.act_on(api, todo, error, sent, now_ms=now_ms)
        if todo in (Action.BACK_OFF, Action.REDISCOVER) and sent == self._core.generation:
            self._retry(f"{api}: {error.name}", now_ms=now_ms)

    def _fail_round(self, failure: Failure, *, now_ms: int) -> None:
        """Try the round again after a request without a response."""
        self._retry(f"a request of the last round was {failure.value}", now_ms=now_ms)

    def _retry(self, reason: str, *, now_ms: int) -> None:
        """Join again after the backoff, with the same generation and partitions (PITFALLS C-48)."""
        self._membership.request_rejoin(reason)
        self._membership.back_off(now_ms=now_ms)
