"""The trace of a live group: requests and responses of the broker as the events of a simulated run.

A broker knows its clients by their requests only. A member revokes the partitions that its JoinGroup no
longer lists as owned, and those that a new assignment leaves out. Until then it works on its last assignment.
A member of the consumer protocol revokes what its heartbeat no longer lists as owned.
Lag is measured when offsets are committed, and integrated by the trapezoid rule. Offsets in a transaction
count when they are received, even if the transaction is aborted.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.reconcile.member import ReconcileState
from coordinator_core.client.subscription import partition_map
from coordinator_core.coordinator.parts import Row
from coordinator_core.errors import ProtocolError
from coordinator_core.families.migration import MIGRATION
from coordinator_core.model import NO_PARTITIONS, Partitions, Subscription, TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    JOINS,
    LEAVES,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_kafka.broker.topics import Topics
from rebalance_lab.traces.trace import Trace

MOST_EVENTS = 500_000
"""The events of all groups, each of which counts as an event itself."""

MEASURE_EVERY_MS = 1_000


class _Newcomer(NamedTuple):
    """What a request to join says about the member."""

    client_id: str
    subscription: Subscription


@dataclass(slots=True)
class _Member:
    name: str
    topics: tuple[str, ...] = ()
    owned: Partitions = NO_PARTITIONS
    state: Enum = MemberState.UNJOINED
    epoch: int = JOINS
    committed: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Recorded:
    """One group since its first member joined. ``ids``: the member ids by the members' names."""

    begun_ms: int
    topics: dict[str, int]
    family: ProtocolSpec
    events: list[ev.TraceEvent] = field(default_factory=list)
    members: dict[str, _Member] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    now_ms: int = 0
    leaving: set[str] = field(default_factory=set)
    newcomer: _Newcomer | None = None
    state: str = ""
    generation: int = -1
    protocol: str = ""
    measured_ms: int = -1
    lag: float = 0.0


class Recorder:
    """Records the history of every consumer group. `trace` returns it.

    The traces of all groups have ``most_events``. Beyond that, the oldest group without members is forgotten.
    If there is no such group, nothing more is recorded.
    """

    def __init__(self, topics: Topics, *, most_events: int = MOST_EVENTS) -> None:
        self._topics, self._most_events = topics, most_events
        self.families: dict[type, tuple[ProtocolSpec, Row]] = {}
        """The families of requests, and how the coordinator answers them."""
        self._groups: dict[str, _Recorded] = {}
        self._size = 0
        self._some_ended = True

    @property
    def groups(self) -> list[str]:
        """The groups that have a trace."""
        return list(self._groups)

    def trace(self, group_id: str, now_ms: int) -> Trace | None:
        """Return the history of a group, None if no member has joined it."""
        group = self._groups.get(group_id)
        if group is None:
            return None
        begin = ev.RunStarted(
            scenario=group_id,
            strategy=group.protocol or "none",
            seed=0,
            duration_ms=now_ms - group.begun_ms,
            topics=group.topics,
            protocol=group.family.name,
            own_epochs=group.family.own_epochs,
        )
        end = ev.RunEnded(
            group_state=group.state,
            generation=group.generation,
            messages=dict(sorted(group.messages.items())),
        )
        whole = [
            ev.TraceEvent(0, begin),
            *group.events,
            ev.TraceEvent(now_ms - group.begun_ms, end),
        ]
        return Trace(tuple(whole))

    # --- called by the node

    def requested(self, request: m.Request, client_id: str, now_ms: int) -> None:
        """Record a request that the broker received."""
        group_id = getattr(request, "group_id", None)
        if not isinstance(group_id, str):
            return
        group = self._groups.get(group_id)
        is_beat = type(request) is m.HeartbeatRequest  # most requests are heartbeats
        family = None if is_beat else self._begun_by(request)
        if family is not None and (group is None or not (group.family is family or group.members)):
            group = self._begun(group_id, family, now_ms)
        if group is None:
            return
        api = _api(type(request))
        group.messages[api] = group.messages.get(api, 0) + 1
        group.now_ms = now_ms
        record = _REQUESTED.get(type(request))
        if record is not None:
            record(self, group, request, client_id)

    def answered(self, request: m.Request, response: m.Response, client_id: str, now_ms: int) -> None:
        """Record the response to a request."""
        group = self._groups.get(getattr(request, "group_id", ""))
        record = _ANSWERED.get(type(request))
        if group is None or record is None:
            return
        group.now_ms = now_ms
        error = getattr(response, "error", ErrorCode.NONE)
        is_refused = error not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
        if not is_refused and self._begun_by(request) not in (None, group.family):
            group.family = MIGRATION
        record(self, group, request, response, client_id)
        if isinstance(request, _FIRST) and is_refused and not (group.members or group.events):
            self._forget(getattr(request, "group_id", ""))

    def happened(self, event: ev.Event, now_ms: int) -> None:
        """Record an event of the coordinator."""
        group = self._groups.get(getattr(event, "group", ""))
        if group is None:
            return
        group.now_ms = now_ms
        self._add(group, event)
        if isinstance(event, ev.GroupStateChanged):
            group.state, group.generation = event.after, event.generation
        elif isinstance(event, ev.GenerationStarted):
            group.generation, group.protocol = event.generation, event.protocol
        elif isinstance(event, ev.MemberAdded):
            member = self._started(group, event.member_id)
            self._add(group, ev.Changed(kind="join", target=member.name))
        elif isinstance(event, ev.MemberRemoved):
            self._gone(group, event.member_id)
        elif isinstance(event, ev.MemberReplaced):
            self._replaced(group, event)

    def grown(self, topics: Mapping[str, int], now_ms: int) -> None:
        """Record new topics and topics with more partitions."""
        grown = [ev.PartitionsAdded(topic=topic, partitions=count) for topic, count in topics.items()]
        self._add_to_all(grown, now_ms)

    def deleted(self, topics: Iterable[str], now_ms: int) -> None:
        """Record topics that are deleted."""
        self._add_to_all([ev.TopicDeleted(topic=topic) for topic in topics], now_ms)

    def _add_to_all(self, events: Iterable[ev.Event], now_ms: int) -> None:
        for group_id in list(self._groups):
            group = self._groups.get(group_id)
            if group is not None:  # else it was forgotten to make room for the others
                group.now_ms = now_ms
                for event in events:
                    self._add(group, event)

    # --- members

    def _joins(self, group: _Recorded, request: m.JoinGroupRequest, client_id: str) -> None:
        group.newcomer = _newcomer(request, client_id)
        member = group.members.get(request.member_id)
        if member is None:
            return
        subscription = group.newcomer.subscription
        self._subscribe(group, member, subscription.topics)
        self._give_up(group, member, member.owned - subscription.owned)
        self._enter(group, member, MemberState.PREPARING_REBALANCE)

    def _subscribe(self, group: _Recorded, member: _Member, topics: tuple[str, ...]) -> None:
        if topics != member.topics:
            member.topics = topics
            changed = ev.SubscriptionChanged(client=member.name, topics=list(topics))
            self._add(group, changed)

    def _joined(
        self, group: _Recorded, request: m.JoinGroupRequest, response: m.JoinGroupResponse, client_id: str
    ) -> None:
        if response.error is not ErrorCode.NONE:
            return
        member = group.members.get(response.member_id)
        if member is None:  # the member joined before this broker started
            group.newcomer = _newcomer(request, client_id)
            member = self._started(group, response.member_id)
        self._enter(group, member, MemberState.COMPLETING_REBALANCE)
        joined = ev.Joined(
            client=member.name,
            member_id=response.member_id,
            generation=response.generation_id,
            protocol=response.protocol_name or "",
            leader=response.leader == response.member_id,
        )
        self._add(group, joined)

    def _started(self, group: _Recorded, member_id: str) -> _Member:
        assert group.newcomer is not None  # a member is added by its request to join
        client_id, subscription = group.newcomer
        name = subscription.instance_id or client_id or member_id
        if name in group.ids:
            name = f"{name}-{member_id[-8:]}" if f"{name}-{member_id[-8:]}" not in group.ids else member_id
        member = group.members[member_id] = _Member(name, subscription.topics)
        group.ids[name] = member_id
        started = ev.MemberStarted(
            client=name,
            instance_id=subscription.instance_id,
            topics=list(subscription.topics),
            process_rate=None,
            rack=subscription.rack,
        )
        self._add(group, started)
        return member

    def _leaves(self, group: _Recorded, request: m.LeaveGroupRequest, _: str) -> None:
        for leaving in request.members:
            for member_id in (leaving.member_id, group.ids.get(leaving.group_instance_id or "", "")):
                if member_id in group.members:
                    group.leaving.add(member_id)

    def _gone(self, group: _Recorded, member_id: str) -> None:
        member = group.members.pop(member_id, None)
        if member is None:
            return
        del group.ids[member.name]
        self._some_ended = True
        closed = member_id in group.leaving
        group.leaving.discard(member_id)
        self._add(group, ev.Changed(kind="leave" if closed else "crash", target=member.name))
        self._add(group, ev.MemberStopped(client=member.name, how="closed" if closed else "crashed"))

    def _replaced(self, group: _Recorded, event: ev.MemberReplaced) -> None:
        """Record the next process of a static member. Its partitions are assigned again."""
        member = group.members.pop(event.old_member_id, None)
        if member is not None:
            del group.ids[member.name]
            self._add(group, ev.Changed(kind="restart", target=member.name))
            self._add(group, ev.MemberStopped(client=member.name, how="crashed"))
        self._started(group, event.new_member_id)

    # --- assignments

    def _assigns(self, group: _Recorded, request: m.SyncGroupRequest, _: str) -> None:
        leader = group.members.get(request.member_id)
        if leader is None or not request.assignments:
            return
        members = {i: list(member.topics) for i, member in group.members.items()}
        computed = ev.AssignmentComputed(
            client=leader.name,
            generation=request.generation_id,
            assignor=group.protocol,
            members=members,
            payload_bytes=sum(len(row.assignment) for row in request.assignments),
        )
        self._add(group, computed)

    def _synced(
        self, group: _Recorded, request: m.SyncGroupRequest, response: m.SyncGroupResponse, _: str
    ) -> None:
        member = group.members.get(request.member_id)
        if member is None or response.error is not ErrorCode.NONE:
            return
        try:
            given = decode_assignment(response.assignment)[0]
        except ProtocolError:
            return  # the leader sent no valid assignment, and the member will report it
        self._give_up(group, member, member.owned - given)
        self._assign(group, member, request.generation_id, given)
        self._enter(group, member, MemberState.STABLE)

    def _assign(self, group: _Recorded, member: _Member, generation: int, owned: Partitions) -> None:
        assigned = ev.Assigned(
            client=member.name,
            generation=generation,
            added=partition_map(owned - member.owned),
            owned=partition_map(owned),
        )
        member.owned = owned
        self._add(group, assigned)

    def _give_up(self, group: _Recorded, member: _Member, partitions: AbstractSet[TopicPartition]) -> None:
        if partitions:
            given = ev.Revoked(
                client=member.name, generation=group.generation, partitions=partition_map(partitions)
            )
            self._add(group, given)
            member.owned = Partitions.of(member.owned - partitions)

    # --- members of the consumer protocol

    def _reports(self, group: _Recorded, request: ConsumerGroupHeartbeatRequest, client_id: str) -> None:
        """Record what a heartbeat says: a join, a leave, other topics, partitions that are revoked."""
        if request.member_epoch == JOINS:
            group.newcomer = _reporting(request, client_id)
        member = group.members.get(request.member_id)
        if member is None:
            return
        if request.member_epoch == JOINS:
            member.epoch = JOINS
        elif request.member_epoch == LEAVES:
            group.leaving.add(request.member_id)
        topics = request.subscribed_topic_names
        if topics is not None:
            self._subscribe(group, member, topics)
        if request.topic_partitions is not None:
            self._give_up(group, member, member.owned - frozenset(request.topic_partitions))

    def _reconciled(
        self,
        group: _Recorded,
        request: ConsumerGroupHeartbeatRequest,
        response: ConsumerGroupHeartbeatResponse,
        client_id: str,
    ) -> None:
        """Record the response to a heartbeat: another epoch, and partitions that the member gets."""
        member_id = response.member_id
        if member_id is None or response.member_epoch < JOINS:
            return
        member = group.members.get(member_id)
        if member is None:  # the member joined before this broker started
            group.newcomer = _reporting(request, client_id)
            member = self._started(group, member_id)
        if member.epoch == JOINS:
            joined = ev.Joined(
                client=member.name,
                member_id=member_id,
                generation=response.member_epoch,
                protocol=group.protocol,
                leader=False,
            )
            self._add(group, joined)
        owned = member.owned if response.assignment is None else Partitions.of(response.assignment)
        added = owned - member.owned
        if added or response.member_epoch != member.epoch:
            member.epoch = response.member_epoch
            self._assign(group, member, response.member_epoch, Partitions.of(member.owned | added))
        is_done = response.assignment is None
        self._enter(group, member, ReconcileState.STABLE if is_done else ReconcileState.RECONCILING)

    # --- lag

    def _committed(
        self,
        group: _Recorded,
        request: m.OffsetCommitRequest | m.TxnOffsetCommitRequest,
        response: m.OffsetCommitResponse | m.TxnOffsetCommitResponse,
        _: str,
    ) -> None:
        member = group.members.get(request.member_id)
        if member is None:
            return
        failed = {(p.topic, p.partition) for p in response.partitions if p.error is not ErrorCode.NONE}
        for row in request.offsets:
            if (row.topic, row.partition) not in failed:
                member.committed[TopicPartition(row.topic, row.partition)] = row.offset
        if group.now_ms >= group.measured_ms + MEASURE_EVERY_MS:
            self._measure(group)

    def _measure(self, group: _Recorded) -> None:
        by_client = {member.name: self._lag(member) for member in group.members.values()}
        lag = sum(by_client.values())
        now_ms = group.now_ms
        since_ms = group.measured_ms if group.measured_ms >= 0 else now_ms
        measured = ev.LagMeasured(
            lag=lag,
            max_lag=max(lag, group.lag),
            lag_record_seconds=(group.lag + lag) / 2 * (now_ms - since_ms) / 1_000,
            duplicates=0.0,
            by_client=by_client,
        )
        group.measured_ms, group.lag = now_ms, lag
        self._add(group, measured)

    def _lag(self, member: _Member) -> float:
        owned = member.committed.keys() & frozenset(member.owned)
        return float(sum(max(0, self._topics.end(*tp) - member.committed[tp]) for tp in owned))

    # --- internals

    def _begun_by(self, request: m.Request) -> ProtocolSpec | None:
        """Return the family of a consumer group that a request may begin."""
        found = self.families.get(type(request))
        if found is None or getattr(request, "protocol_type", PROTOCOL_TYPE) != PROTOCOL_TYPE:
            return None
        family, row = found
        return family if row.joins(request) else None

    def _begun(self, group_id: str, family: ProtocolSpec, now_ms: int) -> _Recorded | None:
        """Begin the trace of a group, None if there is no room. It takes the place of an earlier one."""
        if group_id in self._groups:
            self._forget(group_id)
        if not self._has_room():
            return None
        self._size += 1
        group = self._groups[group_id] = _Recorded(now_ms, dict(self._topics.partitions), family)
        return group

    def _enter(self, group: _Recorded, member: _Member, state: Enum) -> None:
        if member.state is not state:
            changed = ev.ClientStateChanged(client=member.name, before=member.state.value, after=state.value)
            member.state = state
            self._add(group, changed)

    def _add(self, group: _Recorded, event: ev.Event) -> None:
        if self._has_room(group):
            group.events.append(ev.TraceEvent(max(0, group.now_ms - group.begun_ms), event))
            self._size += 1

    def _has_room(self, wanted: _Recorded | None = None) -> bool:
        """Return whether there is room for an event, after forgetting a group without members if need be."""
        if self._size >= self._most_events and self._some_ended:
            ended = (i for i, group in self._groups.items() if not group.members and group is not wanted)
            oldest = next(ended, None)
            self._some_ended = oldest is not None
            if oldest is not None:
                self._forget(oldest)
        return self._size < self._most_events

    def _forget(self, group_id: str) -> None:
        self._size -= 1 + len(self._groups.pop(group_id).events)


@cache
def _api(kind: type) -> str:
    return kind.__name__.removesuffix("Request")


def _newcomer(request: m.JoinGroupRequest, client_id: str) -> _Newcomer:
    """Return a member with the subscription for its first choice of assignor."""
    try:
        metadata = request.protocols[0].metadata
        subscription = decode_subscription(metadata, instance_id=request.group_instance_id)
    except (IndexError, ProtocolError):
        subscription = Subscription((), instance_id=request.group_instance_id)
    return _Newcomer(client_id, subscription)


def _reporting(request: ConsumerGroupHeartbeatRequest, client_id: str) -> _Newcomer:
    topics = request.subscribed_topic_names or ()
    return _Newcomer(client_id, Subscription(topics, rack=request.rack_id, instance_id=request.instance_id))


_FIRST = (m.JoinGroupRequest, ConsumerGroupHeartbeatRequest)
"""Requests that begin a trace. If they are refused, there is none."""

_REQUESTED: Mapping[type, Callable[[Recorder, _Recorded, Any, str], None]] = {
    m.JoinGroupRequest: Recorder._joins,
    m.SyncGroupRequest: Recorder._assigns,
    m.LeaveGroupRequest: Recorder._leaves,
    ConsumerGroupHeartbeatRequest: Recorder._reports,
}
_ANSWERED: Mapping[type, Callable[[Recorder, _Recorded, Any, Any, str], None]] = {
    m.JoinGroupRequest: Recorder._joined,
    m.SyncGroupRequest: Recorder._synced,
    m.OffsetCommitRequest: Recorder._committed,
    m.TxnOffsetCommitRequest: Recorder._committed,
    ConsumerGroupHeartbeatRequest: Recorder._reconciled,
}
