"""The coordinator of one broker: messages, deadlines and finished writes go in, outcomes come out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from coordinator_core.coordinator import admin, expiry, offset_commit, offset_fetch
from coordinator_core.coordinator import find_coordinator as finding
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.parts import CoordinatorPart, Row
from coordinator_core.coordinator.records import Partition, PendingOffsets, Record, StoredGroup, StoredOffset
from coordinator_core.coordinator.shard import Group, Shard, Step, Writes
from coordinator_core.coordinator.timers import RETENTION, Timers
from coordinator_core.errors import InputError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode

HOMES_REMEMBERED = 100_000
DEFAULT_TYPE = "classic"
"""The type of a group that no member has joined yet."""

OFFSET_ROWS: Mapping[type[Any], Row] = {
    m.OffsetCommitRequest: Row(offset_commit.handle, offset_commit.refused, needs_group_id=False),
    m.TxnOffsetCommitRequest: Row(offset_commit.handle_in_transaction, offset_commit.refused),
    m.OffsetFetchRequest: Row(
        offset_fetch.handle, lambda _, error: m.OffsetFetchResponse(error=error), needs_group_id=False
    ),
    m.OffsetDeleteRequest: Row(admin.delete_offsets, lambda _, error: m.OffsetDeleteResponse(error=error)),
}
"""The requests to one group that are the same for every family."""


class Coordinator:
    """The group coordinator of one broker, for the partitions of the offsets topic that it leads.

    ``parts`` are the protocol families that it serves, each with request types of its own (InputError if
    two families have the same). A group belongs to the family that created it, unless a part has rows between
    families that turn it into one of another.

    Every method takes the time and returns an `Outcome`: records to append (report the result of each
    append to `on_appended`), replies with the ids of their requests, and events. `next_deadline_ms` returns
    when to call `on_deadline`. Equal calls give equal outcomes.
    """

    def __init__(
        self, node: int, config: CoordinatorConfig, random: Random, parts: Sequence[CoordinatorPart]
    ) -> None:
        self.node = node
        self._config = config
        self._parts = {part.name: part for part in parts}
        self._rows: dict[type[Any], tuple[Row, CoordinatorPart | None]] = {
            kind: (row, None) for kind, row in OFFSET_ROWS.items()
        }
        for part in parts:
            taken = ", ".join(sorted(kind.__name__ for kind in part.requests.keys() & self._rows.keys()))
            if taken:
                raise InputError(f"the requests of {part.name!r}", taken, "no request of another family")
            self._rows |= {kind: (row, part) for kind, row in part.requests.items()}
        self._between = {key: row for part in parts for key, row in part.between.items()}
        self._shards: dict[int, Shard] = {}
        self._timers, self._writes = Timers(), Writes()
        self.not_before_ms = self._timers.not_before_ms
        """Returns a time before which no call of `on_deadline` is due, or None. It costs less than the exact
        time, which a call of `on_deadline` at that time makes known."""
        self._tools = config, self._timers, self._writes, random
        self._leaders: Mapping[int, int] = {}
        self._live_brokers = 0
        partitions = config.offsets_topic_partitions
        # Clients may send any group id: not all are remembered.
        self._home = lru_cache(HOMES_REMEMBERED)(
            lambda group_id: finding.home_partition(group_id, partitions)
        )

    def on_cluster_change(self, leaders: Mapping[int, int], live_brokers: int) -> Outcome:
        """Set which broker leads which partition of the offsets topic, for FindCoordinator."""
        self._leaders = dict(leaders)
        self._live_brokers = live_brokers
        return Outcome()

    def on_elected(self, partition: int) -> Outcome:
        """Become the leader of a partition; until `on_loaded` its groups are loading (PROTOCOL 1.2)."""
        self._shards[partition] = Shard(partition)
        return Outcome()

    def on_loaded(self, partition: int, records: Iterable[Record], *, now_ms: int) -> Outcome:
        """Rebuild the groups and offsets of a partition from its log.

        Raises:
            InputError: if a group is of a family that this coordinator does not serve.
        """
        shard = self._shards[partition]
        shard.table.apply_all(records)
        shard.loading = False
        step = self._step(shard, Outcome(), now_ms)
        for group_id, stored in shard.table.groups.items():
            restore = self._part_of(group_id, stored).restore
            shard.groups[group_id] = restore(step, group_id, stored, shard.table.generations.get(group_id, 0))
        for group_id in (*shard.table.offsets, *shard.table.pending, *shard.table.generations):
            if group_id not in shard.groups:
                group = shard.groups[group_id] = Group(group_id)
                step.schedule_retention(group)
        return step.effects

    def receive(
        self, request_id: int, request: m.Request, *, client_id: str = "", client_host: str = "", now_ms: int
    ) -> Outcome:
        """Handle a request. Its reply is in this outcome or in a later one.

        Raises:
            TypeError: if the request is not for a coordinator (Metadata, ListOffsets, Fetch).
        """
        effects = Outcome()
        served = self._rows.get(type(request))
        if served is None:
            self._answer(request_id, request, effects, now_ms)
            return effects
        row, owner = served
        found = self._shard_for(request, row, owner)
        if isinstance(found, ErrorCode):
            effects.reply(request_id, row.refuse(request, found))
        else:
            shard, row = found
            row.handle(self._step(shard, effects, now_ms, client_id, client_host), request_id, request)
        return effects

    def refusal(self, request: m.Request, error: ErrorCode) -> m.Response:
        """Return the response that reports an error to a request to one group."""
        return self._rows[type(request)][0].refuse(request, error)

    def on_appended(self, append_id: int, error: ErrorCode, *, now_ms: int) -> Outcome:
        """Apply the records of an append that succeeded, and answer the requests that waited for it."""
        pending = self._writes.pending.pop(append_id, None)
        effects = Outcome()
        if pending is None or self._shards.get(pending.shard.partition) is not pending.shard:
            return effects
        if not error:
            pending.shard.table.apply_all(pending.records)
        pending.write(self._step(pending.shard, effects, now_ms), error)
        return effects

    def on_deadline(self, *, now_ms: int) -> Outcome:
        """Carry out every deadline that has passed."""
        effects = Outcome()
        while (key := self._timers.pop_due(now_ms)) is not None:
            shard = self._shards[self._home(key.group_id)]
            group = shard.groups[key.group_id]
            step = self._step(shard, effects, now_ms)
            if key.kind == RETENTION:
                expiry.check_retention(step, group)
            else:
                self._parts[group.family].on_timer(step, group, key)
        return effects

    def on_topics_changed(self, *, now_ms: int) -> Outcome:
        """Let the groups react whose assignments are computed here. To be called after `on_loaded`, too."""
        effects = Outcome()
        for shard in self._shards.values():
            for group in list(shard.groups.values()):
                part = self._parts.get(group.family)
                if part is not None and part.on_topics is not None:
                    part.on_topics(self._step(shard, effects, now_ms), group)
        return effects

    def on_topics_deleted(self, topics: Mapping[str, str], *, now_ms: int) -> Outcome:
        """Delete the offsets that groups have committed for topics. ``topics`` has their ids by name."""
        effects = Outcome()
        for shard in self._shards.values():
            for group in list(shard.groups.values()):
                part = self._parts.get(group.family)
                if part is not None and part.on_deleted is not None:
                    part.on_deleted(self._step(shard, effects, now_ms), group, topics)
            for group_id in dict.fromkeys((*shard.table.offsets, *shard.table.pending)):
                admin.delete_offsets_of(self._step(shard, effects, now_ms), group_id, topics)
        return effects

    def end_transaction(self, group_id: str, producer_id: int, *, committed: bool, now_ms: int) -> Outcome:
        """Commit the offsets of a group in the transaction of a producer, or drop them.

        If the append fails, they stay in the transaction, and the call can be repeated. A call without such
        offsets changes nothing.
        """
        effects, shard = Outcome(), self._shard_of(group_id)
        if shard is not None:
            step = self._step(shard, effects, now_ms)
            offset_commit.end_transaction(step, group_id, producer_id, committed=committed)
        return effects

    def next_deadline_ms(self) -> int | None:
        """Return when to call `on_deadline` next, or None."""
        return self._timers.next_ms()

    def next_deadline_of_others_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the next deadline that is neither moved in time nor of the retention of offsets, or None.

        A member moves its deadlines by a sign of life, at a time of ``alive_ms`` at the latest.
        """
        return self._timers.next_of_others_ms(alive_ms)

    def group_ids(self) -> list[str]:
        """Return the ids of all groups of this coordinator, sorted."""
        return sorted(group.group_id for group in self.groups())

    def group(self, group_id: str) -> Group | None:
        """Return a group as it is now, to be read only."""
        shard = self._shard_of(group_id)
        return None if shard is None else shard.groups.get(group_id)

    def groups(self) -> Iterator[Group]:
        """Yield every group of this coordinator, to be read only."""
        return (group for shard in self._shards.values() for group in shard.groups.values())

    def offsets(self, group_id: str) -> Mapping[Partition, StoredOffset]:
        """Return the committed offsets of a group, to be read only."""
        shard = self._shard_of(group_id)
        return {} if shard is None else shard.table.offsets.get(group_id, {})

    def pending_offsets(self, group_id: str) -> Mapping[int, PendingOffsets]:
        """Return the offsets of a group in transactions, by producer id, to be read only."""
        shard = self._shard_of(group_id)
        return {} if shard is None else shard.table.pending.get(group_id, {})

    def _shard_of(self, group_id: str) -> Shard | None:
        return self._shards.get(self._home(group_id))

    def _part_of(self, group_id: str, stored: StoredGroup) -> CoordinatorPart:
        part = self._parts.get(stored.family)
        if part is None:
            known = ", ".join(self._parts) or "none"
            where = f"the stored group {group_id!r}"
            raise InputError(where, f"the family {stored.family!r}", f"one of: {known}")
        return part

    def _step(
        self, shard: Shard, effects: Outcome, now_ms: int, client_id: str = "", client_host: str = ""
    ) -> Step:
        return Step(shard, *self._tools, now_ms, effects, client_id, client_host)

    def _shard_for(
        self, request: Any, row: Row, owner: CoordinatorPart | None
    ) -> tuple[Shard, Row] | ErrorCode:
        """Return the shard and the row that handle a request to one group, or the error to answer."""
        group_id = request.group_id
        if row.needs_group_id and not group_id:
            return ErrorCode.INVALID_GROUP_ID
        shard = self._shards.get(self._home(group_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.loading:
            return row.while_loading
        group = shard.groups.get(group_id)
        if group is None or owner is None or group.family in (owner.name, ""):
            return shard, row
        is_free = group.is_empty and not self._writes.on_their_way(shard, group_id)
        if is_free and row.joins(request):
            return shard, row
        between = self._between.get((group.family, type(request)))
        if between is not None:
            return shard, between
        return owner.foreign_group if row.foreign_group is None else row.foreign_group

    def _type_of(self, group: Group) -> str:
        part = self._parts.get(group.family)
        return group.family or DEFAULT_TYPE if part is None else part.group_type or part.name

    def _answer(self, request_id: int, request: m.Request, effects: Outcome, now_ms: int) -> None:
        """Answer a request that is not to one group."""
        response: m.Response
        if isinstance(request, m.FindCoordinatorRequest):
            home = self._home(request.key)
            response = finding.answer(home, self._config, self._leaders, self._live_brokers)
        elif isinstance(request, m.DescribeGroupsRequest):
            groups = tuple(self._describe(group_id) for group_id in request.group_ids)
            response = m.DescribeGroupsResponse(groups=groups)
        elif isinstance(request, m.ListGroupsRequest):
            loading = any(shard.loading for shard in self._shards.values())
            rows = tuple(admin.listed(group, self._type_of(group)) for group in self.groups())
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else NONE
            response = m.ListGroupsResponse(error=error, groups=admin.wanted(rows, request))
        elif isinstance(request, m.DeleteGroupsRequest):
            deleted = tuple(self._delete(group_id, effects, now_ms) for group_id in request.group_ids)
            response = m.DeleteGroupsResponse(groups=deleted)
        else:
            raise TypeError(f"{type(request).__name__} is not a coordinator's request")
        effects.reply(request_id, response)

    def _ready(self, group_id: str) -> Shard | ErrorCode:
        """Return the shard of a group, or the reason why it has none that knows its groups."""
        shard = self._shard_of(group_id)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def _describe(self, group_id: str) -> m.DescribedGroup:
        shard = self._ready(group_id)
        if isinstance(shard, ErrorCode):
            return m.DescribedGroup(error=shard, group_id=group_id)
        return admin.describe(shard.groups.get(group_id), group_id)

    def _delete(self, group_id: str, effects: Outcome, now_ms: int) -> m.DeletedGroup:
        shard = self._ready(group_id)
        if isinstance(shard, ErrorCode):
            return m.DeletedGroup(group_id, shard)
        return m.DeletedGroup(group_id, admin.delete(self._step(shard, effects, now_ms), group_id))
