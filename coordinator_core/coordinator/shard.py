"""One partition of the offsets topic as its leader holds it, and the step that works on it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol
from uuid import UUID

from coordinator_core.coordinator.classic.group import Group
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.outcome import Append, Effects
from coordinator_core.coordinator.records import GroupTable, Record
from coordinator_core.coordinator.timers import TimerKey, TimerKind, Timers
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged


@dataclass(slots=True)
class Shard:
    """``table`` is what the log says; ``groups`` are the live groups, with whoever waits in them."""

    partition: int
    loading: bool = True
    table: GroupTable = field(default_factory=GroupTable)
    groups: dict[str, Group] = field(default_factory=dict)
    writes: dict[int, "PendingWrite"] = field(default_factory=dict)


class Write(Protocol):
    """What is to happen when an append has succeeded or failed."""

    def completed(self, step: "Step", error: ErrorCode) -> None:
        """The records have been applied (NONE), or nothing was written."""
        ...

    def abandoned(self, step: "Step") -> None:
        """The partition has moved to another broker before the outcome was known."""
        ...


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """An append under way."""

    records: tuple[Record, ...]
    write: Write


@dataclass(slots=True)
class Step:
    """One step of the coordinator on one shard: what it may use, and what comes out."""

    shard: Shard
    config: CoordinatorConfig
    timers: Timers
    random: Random
    now_ms: int
    effects: Effects
    next_append_id: Callable[[], int]
    client_id: str = ""
    client_host: str = ""

    def append(self, records: tuple[Record, ...], write: Write) -> None:
        """Ask for records to be written; ``write`` hears how it went."""
        append_id = self.next_append_id()
        self.shard.writes[append_id] = PendingWrite(records, write)
        self.effects.appends.append(Append(append_id, self.shard.partition, records))

    def on_their_way(self, group_id: str) -> list[Record]:
        """A group's records that are being written."""
        return [r for w in self.shard.writes.values() for r in w.records if r.group_id == group_id]

    def schedule(self, kind: TimerKind, group: Group, delay_ms: int, member_id: str = "") -> None:
        """Set a deadline from now."""
        self.timers.schedule(TimerKey(kind, group.group_id, member_id), self.now_ms + delay_ms)

    def cancel(self, kind: TimerKind, group: Group, member_id: str = "") -> None:
        """Forget a deadline."""
        self.timers.cancel(TimerKey(kind, group.group_id, member_id))

    def restart_session(self, group: Group, member_id: str) -> None:
        """A sign of life: the member's session starts anew. A new one's has not begun (PROTOCOL 3.11)."""
        member = group.members[member_id]
        if not member.is_new:
            self.schedule(TimerKind.SESSION, group, member.session_timeout_ms, member_id)

    def move(self, group: Group, state: GroupState, cause: str) -> None:
        """Change a group's state and say so."""
        before = group.state
        group.move_to(state)
        self.effects.events.append(
            GroupStateChanged(
                group=group.group_id,
                before=before.value,
                after=state.value,
                generation=group.generation,
                cause=cause,
            )
        )

    def new_member_id(self, prefix: str) -> str:
        """``{prefix}-{uuid}`` (PROTOCOL 3.4)."""
        return f"{prefix}-{UUID(int=self.random.getrandbits(128), version=4)}"
