"""A live group over time: what its coordinator says every second, as lines and as a trace.

A look shows the state of the group, its members and what each owns. A round that is over before the next look
shows by its result alone: its time is that of the look. Stopped time is known to the time between two looks.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, count

from coordinator_core.client.subscription import partition_map
from coordinator_core.model import Partitions, TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_kafka.snapshot import STABLE, Described, Member
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.words import counted, listed_names

PREPARING = "PreparingRebalance"
_NUMBER = re.compile(r"-\d+$")


@dataclass(slots=True)
class Watch:
    """What was seen of one group. Times are milliseconds since 1970.

    ``began_ms``, ``now_ms``: the first and the last look; ``left_ms``: since when it was not Stable.
    ``names``: those of members by their ids.
    """

    group_id: str
    began_ms: int = 0
    now_ms: int = 0
    strategy: str = ""
    state: str = ""
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    events: list[ev.TraceEvent] = field(default_factory=list)
    left_ms: int = 0
    lag: float = 0.0
    names: dict[str, str] = field(default_factory=dict)

    def see(self, group: Described, lag: Mapping[TopicPartition, int], *, now_ms: int) -> list[str]:
        """Take note of a look. Return what has changed, a line for each round."""
        is_first = not self.began_ms
        if is_first:
            self.began_ms = self.left_ms = now_ms
        before_ms, self.now_ms = self.now_ms or now_ms, now_ms
        self.strategy = group.strategy or self.strategy
        lines = list(self._changes(group, before_ms, is_first=is_first))
        self._measure(lag, now_ms - before_ms)
        return lines

    def trace(self) -> Trace:
        """Return what was seen as a trace."""
        started = ev.RunStarted(
            scenario=self.group_id,
            strategy=self.strategy or "unknown",
            seed=0,
            duration_ms=self.now_ms - self.began_ms,
            topics=self.topics,
            measure_from_ms=0,
            since_1970_ms=self.began_ms,
        )
        ended = ev.RunEnded(group_state=self.state or "Empty", generation=self.generation, messages={})
        return Trace(
            (
                ev.TraceEvent(0, started),
                *self.events,
                ev.TraceEvent(self.now_ms - self.began_ms, ended),
            )
        )

    # --- inside

    def _emit(self, event: ev.Event) -> None:
        self.events.append(ev.TraceEvent(self.now_ms - self.began_ms, event))

    def _changes(self, group: Described, before_ms: int, *, is_first: bool) -> Iterator[str]:
        present = self._named(group.members)
        if group.state != STABLE:
            if self.state == STABLE:
                self.left_ms = self.now_ms
            if group.state != self.state:
                yield f"{group.state}: {counted(len(present), 'member')}"
                self._enter(group.state)
            return
        gone = [name for name, member in self.members.items() if _id(present.get(name)) != member.member_id]
        new = [name for name, member in present.items() if _id(self.members.get(name)) != member.member_id]
        moved = [
            name
            for name, member in present.items()
            if name not in new and set(member.owned) != set(self.members[name].owned)
        ]
        if not (gone or new or moved) and self.state == STABLE:
            return
        if self.state == STABLE and not is_first:
            self.left_ms = before_ms
            self._enter(PREPARING)
        self.generation += 1
        self._end(gone)
        self._begin(new, present)
        self._own(present, moved)
        took_s = (self.now_ms - self.left_ms) / 1_000
        after = "" if is_first else f" after {took_s:.1f} s"
        self._enter(STABLE)
        self.members = present
        yield f"{STABLE}{after}: {', '.join(_told(present, new, moved, gone))}"

    def _named(self, members: Sequence[Member]) -> dict[str, Member]:
        """Return members by names that they keep while they are there.

        In a look, members that share a client id have numbers, which shift when one of them leaves.
        """
        taken = {self.names[each.member_id] for each in members if each.member_id in self.names}
        for member in members:
            if member.member_id not in self.names:
                stem = _NUMBER.sub("", member.name)
                free = (
                    name
                    for name in chain([member.name], (f"{stem}-{n}" for n in count()))
                    if name not in taken
                )
                self.names[member.member_id] = next(free)
                taken.add(self.names[member.member_id])
        return {self.names[member.member_id]: member for member in members}

    def _enter(self, state: str) -> None:
        self._emit(
            ev.GroupStateChanged(
                group=self.group_id, before=self.state or "Empty", after=state, generation=self.generation
            )
        )
        self.state = state

    def _end(self, gone: Sequence[str]) -> None:
        for name in gone:
            member_id = self.members[name].member_id
            self._emit(ev.MemberRemoved(group=self.group_id, member_id=member_id, reason="gone"))
            self._emit(ev.MemberStopped(client=name, how="crashed"))

    def _begin(self, new: Sequence[str], present: Mapping[str, Member]) -> None:
        for name in new:
            member = present[name]
            topics = sorted(member.subscription.topics)
            self._emit(
                ev.MemberStarted(
                    client=name, instance_id=member.instance_id, topics=topics, process_rate=None
                )
            )
            self._emit(ev.MemberAdded(group=self.group_id, member_id=member.member_id))
        self._emit(
            ev.GenerationStarted(
                group=self.group_id,
                generation=self.generation,
                protocol=self.strategy,
                leader="",
                members=[member.member_id for member in present.values()],
            )
        )

    def _own(self, present: Mapping[str, Member], moved: Sequence[str]) -> None:
        for name in moved:
            lost = set(self.members[name].owned) - set(present[name].owned)
            if lost:
                partitions = partition_map(Partitions.of(sorted(lost)))
                self._emit(ev.Revoked(client=name, generation=self.generation, partitions=partitions))
        for name, member in present.items():
            self._emit(
                ev.Joined(
                    client=name,
                    member_id=member.member_id,
                    generation=self.generation,
                    protocol=self.strategy,
                    leader=False,
                )
            )
            for topic, number in member.owned:
                self.topics[topic] = max(self.topics.get(topic, 0), number + 1)
            before = self.members.get(name)
            kept = set(before.owned) if before is not None and before.member_id == member.member_id else set()
            added = partition_map(Partitions.of(sorted(set(member.owned) - kept)))
            owned = partition_map(member.owned)
            self._emit(ev.Assigned(client=name, generation=self.generation, added=added, owned=owned))

    def _measure(self, lag: Mapping[TopicPartition, int], passed_ms: int) -> None:
        if not lag:
            return
        total, before = float(sum(lag.values())), self.lag
        by_client = {
            name: float(sum(lag.get(partition, 0) for partition in member.owned))
            for name, member in self.members.items()
        }
        self._emit(
            ev.LagMeasured(
                lag=total,
                max_lag=max(total, before),
                lag_record_seconds=(total + before) / 2 * passed_ms / 1_000,
                duplicates=0.0,
                by_client={name: records for name, records in by_client.items() if records},
            )
        )
        self.lag = total


def _id(member: Member | None) -> str:
    return "" if member is None else member.member_id


def _told(
    present: Mapping[str, Member], new: Sequence[str], moved: Sequence[str], gone: Sequence[str]
) -> Iterator[str]:
    if new:
        yield f"{listed_names(new)} joined"
    left = [name for name in gone if name not in present]
    if left:
        yield f"{listed_names(left)} gone"
    if moved:
        yield f"{listed_names(moved)} {'has' if len(moved) == 1 else 'have'} other partitions"
    sizes = sorted(len(member.owned) for member in present.values())
    if sizes:
        spread = counted(sizes[-1], "partition")
        if sizes[0] != sizes[-1]:
            spread = f"{sizes[0]} to {spread}"
        yield f"{counted(len(present), 'member')} with {spread}{' each' * (len(present) > 1)}"


def stamped(line: str, now_ms: int) -> str:
    """Return a line with its time in UTC."""
    return f"{datetime.fromtimestamp(now_ms / 1_000, UTC):%H:%M:%S} {line}"
