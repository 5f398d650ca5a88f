"""The member of a group without a coordinator: it reads who is there, and takes its own share.

It sends heartbeats to all brokers, and looks for the members of the group at its start, at regular times and
when a broker tells it of a change. For every topic it asks one broker, chosen at random. The assignor divides
each topic between all members of the group, whatever they subscribe to.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.client.beats import Beats, Heartbeats, Looks, chosen
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.member import Outlook
from coordinator_core.client.offsets import Offsets
from coordinator_core.client.requests import FOREVER_MS, NEVER, Reply
from coordinator_core.errors import RebalanceLabError
from coordinator_core.model import GroupSubscription, Subscription, TopicInfo, TopicPartition
from coordinator_core.protocol.messages import Response, TopicMetadata
from rebalance_uncoordinated.events import Notified, Rebalanced
from rebalance_uncoordinated.member import UncoordinatedMember
from rebalance_uncoordinated.peers import messages as m
from rebalance_uncoordinated.settings import PeersSettings


class PeerState(StrEnum):
    """The state of a member."""

    STARTING = "starting"
    """It has not read who is there."""

    LOOKING = "looking"
    """It reads who is there, because it has started or was told of a change."""

    RESTING = "resting"
    """It has taken its share. Looks at regular times do not change the state."""


class _Share(NamedTuple):
    """A share of a topic, and what it follows from: the listed members, and the description of the topic."""

    listed: tuple[str, ...]
    described: TopicMetadata | None
    partitions: list[TopicPartition]


class PeersMember(UncoordinatedMember):
    """A member that takes its share by itself. ``settings``: the times."""

    may_revoke = True

    def __init__(
        self,
        settings: PeersSettings,
        core: Core,
        coordinator: CoordinatorFinder,
        offsets: Offsets,
        assignors: Sequence[Assignor],
    ) -> None:
        super().__init__(core, coordinator, offsets, assignors, PeerState.STARTING)
        self._settings, self._member_id = settings, core.config.client_id
        self._has_begun = self._looks_again = False
        self._topics: tuple[str, ...] = ()
        self.beats, self._look_ms = Beats(core, settings.heartbeat_ms, drifts=False), 0
        self._lists: dict[str, m.MemberListResponse] = {}
        self._waiting_for = self._asked = 0
        self._seen: frozenset[str] = frozenset()
        self._described: Mapping[str, TopicInfo] = {}
        """The topics, as they were at the last look."""
        self._shares: dict[str, _Share] = {}
        """The last share of each topic."""
        self._agrees = False
        """Whether the share follows from the members that it has seen, the topics, and nothing else."""
        self._brokers: dict[int, None] = {}
        """All brokers that the metadata have ever named. One that is not there now may come back."""
        self._greeted: dict[int, None] = {}
        self._asked_from: dict[int, int] = {}
        """The brokers that list this member, with the time from which they are asked."""
        self._notices: dict[int, tuple[int, int]] = {}
        """The notice that waits at each broker: the id of the request, and the revision in it."""

    # --- the interface of a client

    @property
    def is_at_rest(self) -> bool:
        """Whether the member has its share."""
        return self.state is PeerState.RESTING

    def on_deadline(self, *, now_ms: int) -> None:
        """Send heartbeats, or look, where that is due."""
        if not self._has_begun:
            return
        if now_ms >= self.beats.due_ms:
            self._send_heartbeats(now_ms=now_ms)
        if now_ms >= self._look_ms:
            self._look(now_ms=now_ms)

    def outlook(self, *, now_ms: int) -> Outlook:  # noqa: ARG002 - the interface's
        """Return when a heartbeat or a look is due. Polls do nothing."""
        deadline_ms = min(self.beats.due_ms, self._look_ms) if self._has_begun else NEVER
        return Outlook(self.is_at_rest, deadline_ms, NEVER)

    def heartbeats(self) -> Heartbeats | None:
        """Return the heartbeats and looks of a member that has its share from lists that agree, or None."""
        group_id, nodes = self._core.config.group_id, tuple(self._asked_from)
        if not (self.is_at_rest and self._agrees and nodes) or self._greeted or self._waiting_for:
            return None
        if any(
            node not in self._notices or from_ms > self._look_ms for node, from_ms in self._asked_from.items()
        ):
            return None
        if any(node not in self._asked_from for node in self._brokers):
            return None
        topics, metadata = self._core.subscriptions.topics, self._core.metadata
        if topics != self._topics or self._described != metadata.cluster(topics).topics:
            return None
        return Heartbeats(
            m.MemberHeartbeatRequest(group_id=group_id, member_id=self._member_id),
            self.beats,
            nodes=nodes,
            expects=self._expects,
            looks=Looks(
                m.MemberListRequest(group_id=group_id),
                self._look_ms,
                self._asked,
                len(self._subjects),
                self._settings.look_ms,
                nodes,
                self._continue_looks,
            ),
        )

    def on_metadata(self, *, now_ms: int) -> None:
        """Begin when the topics are known, greet new brokers, and look when the topics have changed."""
        subscriptions = self._core.subscriptions
        if not self._knows_topics():
            return
        if not self._has_begun:
            self._has_begun = True
            self.beats.begin_interval(now_ms)
            self._look_ms = now_ms + self._settings.look_ms
        self._brokers.update(dict.fromkeys(self._core.metadata.nodes))
        self._greet(self._core.metadata.nodes, now_ms=now_ms)
        if subscriptions.topics != self._topics and not self._greeted:
            self._look(now_ms=now_ms)

    def leave(self, reason: str, left: Callable[[], None] | None = None, *, now_ms: int) -> bool:  # noqa: ARG002
        """Tell all brokers, and forget the share."""
        nodes = list(self._asked_from)
        self._core.generation, self._has_begun, self._topics = NO_MEMBERSHIP, False, ()
        self._asked_from, self._notices = {}, {}
        self._move_to(PeerState.STARTING)
        answers = 0

        def answered(reply: Reply, at_ms: int) -> None:  # noqa: ARG001 - the interface's
            nonlocal answers
            answers += 1
            if answers == len(nodes) and left is not None:
                left()

        request = m.MemberGoneRequest(group_id=self._core.config.group_id, member_id=self._member_id)
        for node in nodes:
            self._core.requests.send(node, request, answered, now_ms=now_ms)
        return bool(nodes)

    # --- heartbeats and notices

    def _greet(self, nodes: Iterable[int], *, now_ms: int) -> None:
        """Send the first heartbeat to brokers that do not list this member."""
        for node in nodes:
            if node not in self._asked_from and node not in self._greeted:
                self._greeted[node] = None
                self._send_heartbeat(node, now_ms=now_ms)

    def _send_heartbeats(self, *, now_ms: int) -> None:
        self.beats.begin_interval(now_ms)
        for node in list(self._asked_from):
            self._send_heartbeat(node, now_ms=now_ms)
        self._greet(self._brokers, now_ms=now_ms)

    def _send_heartbeat(self, node: int, *, now_ms: int) -> None:
        request = m.MemberHeartbeatRequest(group_id=self._core.config.group_id, member_id=self._member_id)
        self._core.requests.send(
            node, request, lambda reply, at_ms: self._on_heartbeat(node, reply, at_ms), now_ms=now_ms
        )

    def _on_heartbeat(self, node: int, reply: Reply, now_ms: int) -> None:
        greeted = node in self._greeted
        self._greeted.pop(node, None)
        if not self._has_begun:
            return
        if not isinstance(reply, m.MemberHeartbeatResponse):
            self._asked_from.pop(node, None)
        elif greeted:
            # A broker that has come back does not list the others yet. They send heartbeats meanwhile.
            came_back = self.state is not PeerState.STARTING
            self._asked_from[node] = now_ms + (self._settings.heartbeat_ms if came_back else 0)
        if isinstance(reply, m.MemberHeartbeatResponse) and (reply.is_new or node not in self._notices):
            self._await_notice(node, reply.revision, now_ms=now_ms)
        if self.state is PeerState.STARTING and not self._greeted:
            self._look(now_ms=now_ms)

    def _await_notice(self, node: int, revision: int, *, now_ms: int) -> None:
        """Let a broker tell of the next change of its list, in place of a notice that it owes."""
        before = self._notices.pop(node, None)
        if before is not None:
            self._core.requests.take(before[0])
        request = m.MemberNoticeRequest(group_id=self._core.config.group_id, revision=revision)
        request_id = self._core.requests.send(
            node,
            request,
            lambda reply, at_ms: self._on_notice(node, reply, at_ms),
            now_ms=now_ms,
            timeout_ms=FOREVER_MS,
        )
        self._notices[node] = request_id, revision

    def _on_notice(self, node: int, reply: Reply, now_ms: int) -> None:
        self._notices.pop(node, None)
        if not self._has_begun:
            return
        if not isinstance(reply, m.MemberNoticeResponse):
            self._asked_from.pop(node, None)
            return
        if self.state is PeerState.RESTING:
            self._move_to(PeerState.LOOKING)
        self._core.effects.events.append(Notified(client=self._member_id, cause="members"))
        self._await_notice(node, reply.revision, now_ms=now_ms)
        self._look(now_ms=now_ms)

    # --- a look

    def _look(self, *, now_ms: int) -> None:
        """Ask for the members, one broker for each topic."""
        self._look_ms = now_ms + self._settings.look_ms
        if self._waiting_for:
            self._looks_again = True
            return
        nodes = [node for node, from_ms in self._asked_from.items() if from_ms <= now_ms]
        nodes = nodes or list(self._asked_from)
        if not nodes:
            return
        self._topics = self._core.subscriptions.topics
        self._lists, self._waiting_for = {}, len(self._subjects)
        for topic in self._subjects:
            dice = self._core.dice
            unit = self._core.random.random() if dice is None else dice(self._asked)
            self._asked += 1
            self._ask(nodes[chosen(unit, len(nodes))], topic, now_ms=now_ms)

    @property
    def _subjects(self) -> tuple[str, ...]:
        """The topics for which it asks. Without topics it asks once, so that it knows who is there."""
        return self._topics or ("",)

    def _continue_looks(self, count: int, due_ms: int) -> None:
        """Continue as if looks had been answered. The next is due at ``due_ms``."""
        self._asked += count * len(self._subjects)
        self._look_ms = due_ms

    def _expects(self, node: int, response: Response) -> bool:
        """Return whether a response of a broker changes nothing at a member at rest."""
        if isinstance(response, m.MemberHeartbeatResponse):
            return not response.is_new
        return (
            isinstance(response, m.MemberListResponse)
            and response.version == self._core.generation.number
            and response.revision <= self._notices[node][1]
            and self._seen == frozenset(response.members)
        )

    def _ask(self, node: int, topic: str, *, now_ms: int) -> None:
        request = m.MemberListRequest(group_id=self._core.config.group_id)
        self._core.requests.send(
            node, request, lambda reply, at_ms: self._on_list(node, topic, reply, at_ms), now_ms=now_ms
        )

    def _on_list(self, node: int, topic: str, reply: Reply, now_ms: int) -> None:
        """Note a list. A newer one than that of the notice that the broker owes: the notice was lost."""
        self._waiting_for -= 1
        if isinstance(reply, m.MemberListResponse):
            self._lists[topic] = reply
            if node in self._notices and self._notices[node][1] < reply.revision and self._has_begun:
                self._await_notice(node, reply.revision, now_ms=now_ms)
        if self._waiting_for:
            return
        if self._has_begun:
            self._take_share(now_ms=now_ms)
        if self._looks_again and self._has_begun:
            self._looks_again = False
            self._look(now_ms=now_ms)

    def _take_share(self, *, now_ms: int) -> None:
        """Give up what belongs to others, and take up what is new."""
        core, before = self._core, self._core.generation
        owned = core.subscriptions.partitions
        try:
            subscribed = frozenset(core.subscriptions.topics)  # maybe to others than when it looked
            share = [tp for topic in self._topics if topic in subscribed for tp in self._share_of(topic)]
        except RebalanceLabError as error:
            core.effects.fail(error)
            return
        lists = {frozenset(reply.members) for reply in self._lists.values()}
        self._agrees = len(lists) == 1 and len(self._lists) == len(self._subjects) and self._assignor.repeats
        self._seen = next(iter(lists), frozenset())
        self._described = core.metadata.cluster(self._topics).topics
        version = min((reply.version for reply in self._lists.values()), default=before.number)
        kept = frozenset(share)
        dropped = sorted(tp for tp in owned if tp not in kept)
        added = [tp for tp in share if tp not in owned]
        if dropped:
            self._give_up(dropped, now_ms=now_ms)
        if version != before.number:
            core.generation = Generation(version, self._member_id, self._assignor.name)
            core.report_joined()
        if dropped or added or version != before.number:
            core.subscriptions.assign_by_group(sorted(share))
            core.report_assigned(added, share)
        if self.state is not PeerState.RESTING:
            changed = bool(dropped or added)
            core.effects.events.append(
                Rebalanced(client=self._member_id, generation=version, changed=changed)
            )
            self._move_to(PeerState.RESTING)

    def _share_of(self, topic: str) -> list[TopicPartition]:
        """Return this member's share of a topic; what it owns, if no broker has answered."""
        reply = self._lists.get(topic)
        if reply is None:
            return [tp for tp in self._core.subscriptions.partitions if tp.topic == topic]
        if self._member_id not in reply.members:
            return []
        metadata, known = self._core.metadata, self._shares.get(topic)
        described = metadata.topics.get(topic)
        is_same = known is not None and known.listed == reply.members and known.described == described
        if known is None or not (is_same and self._assignor.repeats):
            group = GroupSubscription({member: Subscription((topic,)) for member in sorted(reply.members)})
            assignment = compute_assignment(self._assignor, metadata.cluster((topic,)), group)
            share = list(assignment.get(self._member_id, ()))
            known = self._shares[topic] = _Share(reply.members, described, share)
        return known.partitions

    def _give_up(self, dropped: Sequence[TopicPartition], *, now_ms: int) -> None:
        """Commit and drop partitions, without waiting for the response."""
        core = self._core
        consumed = self._offsets.all_consumed(now_ms=now_ms) if core.config.enable_auto_commit else {}
        if core.source is not None:
            core.source.stopped(dropped, now_ms=now_ms)
        to_commit = {tp: consumed[tp] for tp in dropped if tp in consumed}
        if to_commit:
            self._offsets.commit(
                to_commit,
                lambda result, _: self._offsets.report(len(to_commit), result),
                now_ms=now_ms,
            )
        core.give_up(dropped)
