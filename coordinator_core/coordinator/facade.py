"""The coordinator of one broker: messages, deadlines and finished writes go in, outcomes come out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, TypeAlias

from coordinator_core.coordinator import admin, expiry, offset_commit, offset_fetch
from coordinator_core.coordinator import find_coordinator as finding
from coordinator_core.coordinator.classic import heartbeat, join_group, leave_group, rebalance, sync_group
from coordinator_core.coordinator.classic.group import Group, restored
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.outcome import NOTHING, Effects, Outcome
from coordinator_core.coordinator.records import Record, StoredOffset
from coordinator_core.coordinator.shard import Shard, Step
from coordinator_core.coordinator.timers import Timers
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

HOMES_REMEMBERED = 100_000

Handler: TypeAlias = Callable[[Step, int, Any], None]
Refusal: TypeAlias = Callable[[Any, ErrorCode], m.Response]

_HANDLERS: dict[type, Handler] = {
    m.JoinGroupRequest: join_group.handle,
    m.SyncGroupRequest: sync_group.handle,
    m.HeartbeatRequest: heartbeat.handle,
    m.LeaveGroupRequest: leave_group.handle,
    m.OffsetCommitRequest: offset_commit.handle,
    m.OffsetFetchRequest: offset_fetch.handle,
    m.OffsetDeleteRequest: admin.delete_offsets,
}

_REFUSALS: dict[type, Refusal] = {
    m.JoinGroupRequest: lambda r, e: m.JoinGroupResponse(error=e, member_id=r.member_id),
    m.SyncGroupRequest: lambda _, e: m.SyncGroupResponse(error=e),
    m.HeartbeatRequest: lambda _, e: m.HeartbeatResponse(error=e),
    m.LeaveGroupRequest: lambda _, e: m.LeaveGroupResponse(error=e),
    m.OffsetCommitRequest: offset_commit.refused,
    m.OffsetFetchRequest: lambda _, e: m.OffsetFetchResponse(error=e),
    m.OffsetDeleteRequest: lambda _, e: m.OffsetDeleteResponse(error=e),
}

_WHILE_LOADING: dict[type, ErrorCode] = {
    m.HeartbeatRequest: ErrorCode.NONE,
    m.SyncGroupRequest: ErrorCode.REBALANCE_IN_PROGRESS,
}


class Coordinator:
    """The group coordinator of one broker, for the partitions of the offsets topic that it leads.

    Every method takes the time and gives back an `Outcome`: records to append (report each with
    `on_appended`), replies addressed by request id, and events. `next_deadline_ms` says when to call
    `on_deadline`. Equal calls give equal outcomes.
    """

    def __init__(self, node: int, config: CoordinatorConfig, random: Random) -> None:
        self.node = node
        self._config = config
        self._random = random
        self._shards: dict[int, Shard] = {}
        self._timers = Timers()
        self._leaders: Mapping[int, int] = {}
        self._live_brokers = 0
        self._append_ids = 0
        self._homes: dict[str, int] = {}

    def on_cluster_change(self, leaders: Mapping[int, int], live_brokers: int) -> Outcome:
        """Who leads which partition of the offsets topic, as FindCoordinator answers it."""
        self._leaders = dict(leaders)
        self._live_brokers = live_brokers
        return NOTHING

    def on_elected(self, partition: int) -> Outcome:
        """This broker leads a partition now; until `on_loaded` its groups are loading (PROTOCOL 1.2)."""
        self._shards[partition] = Shard(partition)
        return NOTHING

    def on_loaded(self, partition: int, records: Iterable[Record], *, now_ms: int) -> Outcome:
        """Rebuild the groups and offsets of a partition from its log; sessions start anew."""
        shard = self._shards[partition]
        for record in records:
            shard.table.apply(record)
        shard.loading = False
        step = self._step(shard, Effects(), now_ms)
        for group_id, stored in shard.table.groups.items():
            handed_out = shard.table.generations.get(group_id, 0)
            group = shard.groups[group_id] = restored(group_id, stored, handed_out)
            for member_id in group.members:
                step.restart_session(group, member_id)
            if not group.members:
                rebalance.arm_retention(step, group)
        for group_id in (*shard.table.offsets, *shard.table.generations):
            if group_id not in shard.groups:
                group = shard.groups[group_id] = Group(group_id)
                group.handed_out = group.reserved = shard.table.generations.get(group_id, 0)
                rebalance.arm_retention(step, group)
        return step.effects.outcome()

    def on_resigned(self, partition: int, *, now_ms: int) -> Outcome:
        """Another broker leads the partition: who waits hears NOT_COORDINATOR, its groups are forgotten."""
        shard = self._shards.pop(partition, None)
        if shard is None:
            return NOTHING
        step = self._step(shard, Effects(), now_ms)
        for pending in shard.writes.values():
            pending.write.abandoned(step)
        for group in shard.groups.values():
            for member in group.members.values():
                rebalance.refuse_join(step, member, ErrorCode.NOT_COORDINATOR)
                rebalance.refuse_sync(step, member, ErrorCode.NOT_COORDINATOR)
            self._timers.cancel_group(group.group_id)
        return step.effects.outcome()

    def receive(
        self, request_id: int, request: m.Request, *, client_id: str = "", client_host: str = "", now_ms: int
    ) -> Outcome:
        """Take in a request; its reply comes in this outcome or a later one.

        Raises TypeError for a request that is not a coordinator's (Metadata, ListOffsets, Fetch).
        """
        effects = Effects()
        if isinstance(request, m.FindCoordinatorRequest):
            reply = finding.answer(request, self._config, self._leaders, self._live_brokers)
            effects.reply(request_id, reply)
        elif type(request) in _HANDLERS:
            self._receive_for_group(request_id, request, effects, client_id, client_host, now_ms)
        elif isinstance(request, m.DescribeGroupsRequest):
            groups = tuple(self._describe(group_id) for group_id in request.group_ids)
            effects.reply(request_id, m.DescribeGroupsResponse(groups=groups))
        elif isinstance(request, m.ListGroupsRequest):
            effects.reply(request_id, self._list(request))
        elif isinstance(request, m.DeleteGroupsRequest):
            deleted = tuple(self._delete(g, effects, now_ms) for g in request.group_ids)
            effects.reply(request_id, m.DeleteGroupsResponse(groups=deleted))
        else:
            raise TypeError(f"{type(request).__name__} is not a coordinator's request")
        return effects.outcome()

    def on_appended(self, append_id: int, error: ErrorCode, *, now_ms: int) -> Outcome:
        """How a write went. Records are applied now, and those who waited are answered."""
        for shard in self._shards.values():
            pending = shard.writes.pop(append_id, None)
            if pending is None:
                continue
            if error is ErrorCode.NONE:
                for record in pending.records:
                    shard.table.apply(record)
            step = self._step(shard, Effects(), now_ms)
            pending.write.completed(step, error)
            return step.effects.outcome()
        return NOTHING

    def on_deadline(self, *, now_ms: int) -> Outcome:
        """Carry out every deadline that has passed."""
        effects = Effects()
        while (key := self._timers.pop_due(now_ms)) is not None:
            shard = self._shards.get(self._home(key.group_id))
            group = shard.groups.get(key.group_id) if shard is not None else None
            if shard is not None and group is not None:
                expiry.on_timer(self._step(shard, effects, now_ms), group, key)
        return effects.outcome()

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` wants to be called next, or None."""
        return self._timers.next_ms()

    def group_ids(self) -> list[str]:
        """The groups that live here, sorted."""
        return sorted(g for shard in self._shards.values() for g in shard.groups)

    def group(self, group_id: str) -> Group | None:
        """A group as it is now, to look at."""
        shard = self._shards.get(self._home(group_id))
        return None if shard is None else shard.groups.get(group_id)

    def groups(self) -> Iterator[Group]:
        """Every group that lives here, to look at."""
        return (group for shard in self._shards.values() for group in shard.groups.values())

    def offsets(self, group_id: str) -> Mapping[TopicPartition, StoredOffset]:
        """What a group has committed, to look at."""
        shard = self._shards.get(self._home(group_id))
        return {} if shard is None else shard.table.offsets.get(group_id, {})

    def _home(self, group_id: str) -> int:
        home = self._homes.get(group_id)
        if home is None:
            if len(self._homes) >= HOMES_REMEMBERED:
                self._homes.clear()  # anybody may ask for any group
            home = finding.home_partition(group_id, self._config.offsets_topic_partitions)
            self._homes[group_id] = home
        return home

    def _next_append_id(self) -> int:
        self._append_ids += 1
        return self._append_ids

    def _step(
        self, shard: Shard, effects: Effects, now_ms: int, client_id: str = "", client_host: str = ""
    ) -> Step:
        return Step(
            shard,
            self._config,
            self._timers,
            self._random,
            now_ms,
            effects,
            self._next_append_id,
            client_id,
            client_host,
        )

    def _receive_for_group(
        self,
        request_id: int,
        request: Any,
        effects: Effects,
        client_id: str,
        client_host: str,
        now_ms: int,
    ) -> None:
        kind = type(request)
        shard = self._shards.get(self._home(request.group_id))
        if shard is None or shard.loading:
            error = ErrorCode.NOT_COORDINATOR
            if shard is not None:
                error = _WHILE_LOADING.get(kind, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            if kind is m.JoinGroupRequest and not request.group_id:
                error = ErrorCode.INVALID_GROUP_ID
            effects.reply(request_id, _REFUSALS[kind](request, error))
            return
        step = self._step(shard, effects, now_ms, client_id, client_host)
        _HANDLERS[kind](step, request_id, request)

    def _unavailable(self, group_id: str) -> ErrorCode:
        shard = self._shards.get(self._home(group_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else ErrorCode.NONE

    def _describe(self, group_id: str) -> m.DescribedGroup:
        error = self._unavailable(group_id)
        if error is not ErrorCode.NONE:
            return m.DescribedGroup(error=error, group_id=group_id)
        return admin.describe(self.group(group_id), group_id)

    def _list(self, request: m.ListGroupsRequest) -> m.ListGroupsResponse:
        loading = any(shard.loading for shard in self._shards.values())
        groups = [g for g in map(self.group, self.group_ids()) if g is not None]
        wanted = {state.lower() for state in request.states}
        return m.ListGroupsResponse(
            error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE,
            groups=tuple(admin.listed(g) for g in groups if not wanted or g.state.value.lower() in wanted),
        )

    def _delete(self, group_id: str, effects: Effects, now_ms: int) -> m.DeletedGroup:
        error = self._unavailable(group_id)
        group = self.group(group_id)
        if error is ErrorCode.NONE:
            error = admin.cannot_delete(group)
        if error is ErrorCode.NONE and group is not None:
            shard = self._shards[self._home(group_id)]
            admin.delete(self._step(shard, effects, now_ms), group)
        return m.DeletedGroup(group_id, error)


__all__ = ["Coordinator", "GroupState"]
