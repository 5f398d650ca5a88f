"""The member of a group in a registry, as Kafka's consumer was before 0.9.

The registry tells every member of each change: of members, brokers or topics. Each then rebalances alone. It
stops its work, commits, gives up its partitions and its claims, reads who is there, runs the assignor, and
claims its share. A claim that another member holds fails the attempt; the member tries again after a while.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TypeVar
from uuid import UUID

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.client.beats import Beats, Heartbeats
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.member import Outlook
from coordinator_core.client.offsets import CommitResult, Offsets
from coordinator_core.client.requests import FOREVER_MS, NEVER, Completion, Reply
from coordinator_core.client.subscription import partition_map
from coordinator_core.errors import RebalanceLabError
from coordinator_core.model import Cluster, GroupSubscription, Subscription, TopicInfo, TopicPartition
from coordinator_core.protocol.messages import Request, Response
from rebalance_uncoordinated.events import ClaimFailed, Notified, Rebalanced
from rebalance_uncoordinated.member import UncoordinatedMember
from rebalance_uncoordinated.settings import WatcherSettings
from rebalance_uncoordinated.watcher import messages as m

Answer = TypeVar("Answer", bound=m.SessionAnswer)


class WatcherState(StrEnum):
    """The state of a member."""

    CONNECTING = "connecting"
    """It has no session, or is not in the registry yet."""

    REBALANCING = "rebalancing"
    """It gives up, reads or claims."""

    BACKING_OFF = "backing-off"
    """An attempt has failed. It owns nothing, and tries again after a while."""

    RESTING = "resting"
    """It owns its share."""

    WITHOUT_SHARE = "without-share"
    """All attempts have failed. It owns nothing until the next notice."""


class WatcherMember(UncoordinatedMember):
    """A member that claims its share in a registry. ``nodes`` are the numbers of its servers."""

    def __init__(
        self,
        settings: WatcherSettings,
        nodes: Sequence[int],
        core: Core,
        coordinator: CoordinatorFinder,
        offsets: Offsets,
        assignors: Sequence[Assignor],
    ) -> None:
        super().__init__(core, coordinator, offsets, assignors, WatcherState.CONNECTING)
        self._settings, self._name = settings, core.config.client_id
        self._member_id = f"{self._name}-{UUID(int=core.random.getrandbits(128), version=4)}"
        self._node = nodes[core.random.randrange(len(nodes))]
        group_id = core.config.group_id
        self._members, self._owners = m.members_path(group_id), m.owners_path(group_id)
        self._watched = (self._members, m.BROKERS, m.TOPICS)
        self._session: int | None = None
        self._connects = self._is_told = False
        self.beats = Beats(core, settings.ping_ms, drifts=False)
        self._retry_ms = NEVER
        self._retries = 0
        self._attempt = 0
        self._topics: tuple[str, ...] | None = None
        """The topics with which the member is in the registry, None if it is not known to be there."""
        self._claimed: tuple[str, ...] = ()
        self._creates = 0
        self._to_commit: dict[TopicPartition, int] = {}
        self._owned_before: tuple[TopicPartition, ...] = ()
        self._seen: dict[str, int] = {}
        self._watches: dict[str, int] = {}

    # --- the interface of a client

    @property
    def is_at_rest(self) -> bool:
        """Whether no attempt is in progress or ahead."""
        return self.state in (WatcherState.RESTING, WatcherState.WITHOUT_SHARE)

    @property
    def may_revoke(self) -> bool:
        """Whether the session lasts, as far as the member knows."""
        return self._session is not None

    def on_deadline(self, *, now_ms: int) -> None:
        """Send a ping, or try again, where that is due."""
        if self._session is not None and now_ms >= self.beats.due_ms:
            self._ping(now_ms=now_ms)
        if now_ms >= self._retry_ms:
            self._retry_ms = NEVER
            self._continue(now_ms=now_ms)

    def outlook(self, *, now_ms: int) -> Outlook:  # noqa: ARG002 - the interface's
        """Return when a ping or the next attempt is due. Polls do nothing."""
        ping_ms = NEVER if self._session is None else self.beats.due_ms
        return Outlook(self.is_at_rest, min(ping_ms, self._retry_ms), NEVER)

    def heartbeats(self) -> Heartbeats | None:
        """Return the pings of a member at rest, or None."""
        changes = self._is_told or self._retry_ms != NEVER or self._topics != self._core.subscriptions.topics
        if self._session is None or changes or not self.is_at_rest:
            return None
        return Heartbeats(
            m.PingRequest(session=self._session, parents=self._watched),
            self.beats,
            nodes=(self._node,),
            expects=self._expects,
        )

    def on_metadata(self, *, now_ms: int) -> None:
        """Connect when the topics are known, and register again when the subscription has changed."""
        subscriptions = self._core.subscriptions
        if not self._knows_topics():
            return
        if self._session is None:
            if not self._connects and self._retry_ms == NEVER:
                self._connect(now_ms=now_ms)
        elif subscriptions.topics != self._topics and self.is_at_rest:
            self._register_again(now_ms=now_ms)

    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:  # noqa: ARG002
        """End the session, and with it the claims."""
        session = self._forget_session()
        if session is None:
            return False
        timeout_ms = self._settings.read_timeout_ms
        self._core.requests.tell(
            self._node, m.CloseSessionRequest(session=session), left, now_ms=now_ms, timeout_ms=timeout_ms
        )
        return True

    # --- the session

    def _connect(self, *, now_ms: int) -> None:
        self._connects = True
        request = m.SessionRequest(timeout_ms=self._settings.session_timeout_ms)

        def answered(reply: Reply, at_ms: int) -> None:
            self._connects = False
            if not self._core.subscriptions.is_group_managed:
                return
            if not isinstance(reply, m.SessionResponse):
                self._try_again(self._core.config.retry_backoff_ms, now_ms=at_ms)
                return
            self._session = reply.session
            self.beats.begin_interval(at_ms)
            self._register(now_ms=at_ms)

        self._send(request, answered, now_ms=now_ms)

    def _register(self, *, now_ms: int) -> None:
        """Create the node of the member, then rebalance."""
        topics = self._core.subscriptions.topics
        nodes = {f"{self._members}/{self._member_id}": ",".join(topics)}

        def registered(reply: m.CreateResponse, at_ms: int) -> None:
            if reply.existing:  # the node of an earlier session
                self._fail(self._settings.backoff_ms, now_ms=at_ms)
                return
            self._topics = topics
            self._rebalance(now_ms=at_ms)

        self._ask(self._to_create(nodes), m.CreateResponse, registered, now_ms)

    def _to_create(self, nodes: Mapping[str, str]) -> m.CreateRequest:
        self._creates += 1
        return m.CreateRequest(session=self._live, nodes=nodes, number=self._creates)

    def _register_again(self, *, now_ms: int) -> None:
        """Replace the node of the member: it subscribes to other topics, or the last attempt has failed."""
        self._begin(now_ms=now_ms)
        self._topics = None
        path = f"{self._members}/{self._member_id}"
        request = m.DeleteRequest(session=self._live, nodes=(path,))
        self._ask(request, m.DeleteResponse, lambda _, at_ms: self._register(now_ms=at_ms), now_ms)

    def _ping(self, *, now_ms: int) -> None:
        self.beats.begin_interval(now_ms)
        request = m.PingRequest(session=self._live, parents=self._watched)
        session = self._session

        def answered(reply: Reply, at_ms: int) -> None:
            if session != self._session or not isinstance(reply, m.PingResponse):
                return
            if reply.expired:
                self._expired(now_ms=at_ms)
                return
            for parent in self._missed(reply):
                self._core.requests.take(self._watches.pop(parent))  # its notice was lost
                self._told(parent, now_ms=at_ms)

        self._send(request, answered, now_ms=now_ms)

    def _missed(self, reply: m.PingResponse) -> list[str]:
        """Return the nodes whose watches should have been answered."""
        return [
            parent
            for parent, version in reply.versions.items()
            if parent in self._watches and version > self._seen.get(parent, version)
        ]

    def _expects(self, node: int, response: Response) -> bool:  # noqa: ARG002 - see `Heartbeats`
        return isinstance(response, m.PingResponse) and not response.expired and not self._missed(response)

    def _expired(self, *, now_ms: int) -> None:
        """Lose everything: the registry has ended the session. Begin another one."""
        self._forget_session()
        owned = sorted(self._core.subscriptions.partitions)
        if owned:
            if self._core.source is not None:
                self._core.source.stopped(owned, now_ms=now_ms)
            self._core.give_up(owned, lost=True)
            self._core.subscriptions.assign_by_group(())
        self._connect(now_ms=now_ms)

    def _forget_session(self) -> int | None:
        session, self._session = self._session, None
        self._core.generation, self._retry_ms, self._is_told = NO_MEMBERSHIP, NEVER, False
        for request_id in self._watches.values():
            self._core.requests.take(request_id)
        self._topics, self._claimed, self._owned_before = None, (), ()
        self._watches, self._seen = {}, {}
        self._attempt += 1
        self._move_to(WatcherState.CONNECTING)
        return session

    @property
    def _live(self) -> int:
        assert self._session is not None
        return self._session

    # --- notices

    def _watch(self, parent: str, version: int, *, now_ms: int) -> None:
        """Let the registry tell of the next change after a version, unless a watch is set."""
        if parent in self._watches:
            return
        session = self._live
        request = m.WatchRequest(session=session, parent=parent, version=version)

        def answered(reply: Reply, at_ms: int) -> None:
            if session != self._session or self._watches.pop(parent, None) is None:
                return
            if not isinstance(reply, m.WatchResponse):
                self._watch(parent, self._seen[parent], now_ms=at_ms)  # the server has not answered a ping
            elif reply.expired:
                self._expired(now_ms=at_ms)
            else:
                self._told(parent, now_ms=at_ms)

        self._watches[parent] = self._core.requests.send(
            self._node, request, answered, now_ms=now_ms, timeout_ms=FOREVER_MS
        )

    def _told(self, parent: str, *, now_ms: int) -> None:
        """Rebalance after a notice; at the end of the rebalance that is in progress, if there is one.

        A consumer that closes keeps what it has until it has left.
        """
        if not self._core.is_open:
            return
        rests = self.is_at_rest
        if rests:
            self._begin(now_ms=now_ms)
        self._core.effects.events.append(Notified(client=self._name, cause=parent))
        if rests:
            self._continue(now_ms=now_ms)
        else:
            self._is_told = True

    # --- a rebalance

    def _rebalance(self, *, now_ms: int) -> None:
        self._begin(now_ms=now_ms)
        self._continue(now_ms=now_ms)

    def _begin(self, *, now_ms: int) -> None:
        """Stop the work and note the share, before it is given up."""
        self._retries = 0
        if self.is_at_rest:
            self._owned_before = tuple(sorted(self._core.subscriptions.partitions))
        self._move_to(WatcherState.REBALANCING)
        if self._core.source is not None and self._core.subscriptions.partitions:
            consumed = self._offsets.all_consumed(now_ms=now_ms)
            self._core.source.stopped(sorted(self._core.subscriptions.partitions), now_ms=now_ms)
            self._to_commit = consumed if self._core.config.enable_auto_commit else {}
        else:
            self._to_commit = {}

    def _continue(self, *, now_ms: int) -> None:
        """Begin an attempt: connect if there is no session, else commit, and give up what is owned."""
        if self._session is None:
            self._connect(now_ms=now_ms)
            return
        if self._topics is None:
            self._register_again(now_ms=now_ms)
            return
        self._attempt += 1
        self._is_told = False
        self._move_to(WatcherState.REBALANCING)
        attempt, offsets = self._attempt, self._to_commit
        self._to_commit = {}

        def committed(result: CommitResult, at_ms: int) -> None:
            if offsets:
                self._offsets.report(len(offsets), result)
            if attempt == self._attempt:
                self._release(now_ms=at_ms)

        self._offsets.commit(offsets, committed, now_ms=now_ms)

    def _release(self, *, now_ms: int) -> None:
        """Give up the partitions and the claims."""
        owned = sorted(self._core.subscriptions.partitions)
        if owned:
            self._core.give_up(owned)
            self._core.subscriptions.assign_by_group(())
        if self._claimed:
            request = m.DeleteRequest(session=self._live, nodes=self._claimed)
            self._ask(request, m.DeleteResponse, lambda _, at_ms: self._read(now_ms=at_ms), now_ms)
        else:
            self._read(now_ms=now_ms)

    def _read(self, *, now_ms: int) -> None:
        """Read who is there, which brokers and topics, and watch all of them."""
        self._claimed = ()
        request = m.ReadRequest(session=self._live, parents=self._watched)
        self._ask(request, m.ReadResponse, self._claim, now_ms)

    def _claim(self, reply: m.ReadResponse, now_ms: int) -> None:
        """Run the assignor on what was read, and claim the share."""
        for parent, version in reply.versions.items():
            self._seen[parent] = version
            self._watch(parent, version, now_ms=now_ms)
        core, version = self._core, reply.versions[self._members]
        core.generation = Generation(version, self._member_id, self._assignor.name)
        core.report_joined()
        try:
            share = self._share(reply)
        except RebalanceLabError as error:
            core.effects.fail(error)
            return
        if not (share and self._settings.owner_nodes):
            self._finish(share, WatcherState.RESTING, now_ms)
            return
        nodes = {f"{self._owners}/{tp.topic}/{tp.partition}": self._member_id for tp in share}
        self._claimed = tuple(nodes)
        request = self._to_create(nodes)
        self._ask(request, m.CreateResponse, lambda reply, at_ms: self._on_claim(share, reply, at_ms), now_ms)

    def _share(self, reply: m.ReadResponse) -> list[TopicPartition]:
        """Return the share of the member. What was read may be late, but it knows its own subscription."""
        members = reply.children[self._members]
        if self._member_id not in members:
            return []
        group = {
            name: Subscription(tuple(filter(None, members[name].split(",")))) for name in sorted(members)
        }
        group[self._member_id] = Subscription(self._core.subscriptions.topics)
        wanted = dict.fromkeys(topic for one in group.values() for topic in one.topics)
        counts = reply.children[m.TOPICS]
        cluster = Cluster(
            {topic: TopicInfo(int(counts[topic])) for topic in sorted(wanted) if topic in counts}
        )
        assignment = compute_assignment(self._assignor, cluster, GroupSubscription(group))
        return sorted(assignment.get(self._member_id, ()))

    def _on_claim(self, share: list[TopicPartition], reply: m.CreateResponse, now_ms: int) -> None:
        if not reply.existing:
            self._finish(share, WatcherState.RESTING, now_ms)
            return
        self._claimed = ()
        self._retries += 1
        again = self._retries <= self._settings.max_retries
        held = (path.removeprefix(f"{self._owners}/").rpartition("/") for path in reply.existing)
        self._core.effects.events.append(
            ClaimFailed(
                client=self._name,
                held=partition_map(TopicPartition(topic, int(number)) for topic, _, number in held),
                retry=self._retries if again else 0,
                retries=self._settings.max_retries,
            )
        )
        if again:
            self._fail(self._settings.backoff_ms, now_ms=now_ms)
        else:
            self._finish([], WatcherState.WITHOUT_SHARE, now_ms)

    def _finish(self, share: list[TopicPartition], state: WatcherState, now_ms: int) -> None:
        """Take the share, which may be nothing, and rebalance again if a notice has come meanwhile.

        Topics to which the member no longer subscribes are left out. It gives up their claims when it
        registers again.
        """
        core = self._core
        share = [tp for tp in share if tp.topic in core.subscriptions.topics]
        core.subscriptions.assign_by_group(share)
        core.report_assigned(share, share)
        number, changed = core.generation.number, tuple(share) != self._owned_before
        core.effects.events.append(Rebalanced(client=self._name, generation=number, changed=changed))
        self._move_to(state)
        if self._is_told:
            self._rebalance(now_ms=now_ms)
        elif core.subscriptions.topics != self._topics:
            self._register_again(now_ms=now_ms)

    # --- failures

    def _ask(
        self, request: Request, expected: type[Answer], then: Callable[[Answer, int], None], now_ms: int
    ) -> None:
        """Send a request of an attempt. A failure begins another attempt, an expired session another one."""
        self._send(request, partial(self._answered, self._attempt, expected, then), now_ms=now_ms)

    def _send(self, request: Request, answered: Completion, *, now_ms: int) -> None:
        """Send a request to the server. One that is not answered in time fails those that wait, too."""
        timeout_ms = self._settings.read_timeout_ms
        self._core.requests.send(self._node, request, answered, now_ms=now_ms, timeout_ms=timeout_ms)

    def _answered(
        self,
        attempt: int,
        expected: type[Answer],
        then: Callable[[Answer, int], None],
        reply: Reply,
        now_ms: int,
    ) -> None:
        if attempt != self._attempt:
            return
        if not isinstance(reply, expected):
            self._fail(self._core.config.retry_backoff_ms, now_ms=now_ms)
        elif reply.expired:
            self._expired(now_ms=now_ms)
        else:
            then(reply, now_ms)

    def _fail(self, after_ms: int, *, now_ms: int) -> None:
        self._move_to(WatcherState.BACKING_OFF)
        self._try_again(after_ms, now_ms=now_ms)

    def _try_again(self, after_ms: int, *, now_ms: int) -> None:
        self._attempt += 1
        self._retry_ms = now_ms + after_ms
