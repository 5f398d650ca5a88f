"""Facts: what single lines of logs say about a group, whoever wrote them and however they are worded."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.protocol.events import PartitionMap


class Kind(StrEnum):
    """What a line says. Those of coordinators first, then those of clients."""

    ROUND_BEGAN = "round began"
    GENERATION = "generation"
    ASSIGNED_BY_LEADER = "assigned by leader"
    EMPTY = "empty"
    FAILED = "failed"
    LEFT_BEHIND = "left behind"
    LEFT = "left"
    JOINS_NEW = "joins new"
    JOINS_KNOWN = "joins known"
    PENDING_EXPIRED = "pending expired"
    REPLACED = "replaced"
    STATIC_WITHOUT_ROUND = "static without round"
    FENCED = "fenced"
    FORGOTTEN = "forgotten"
    NOBODY_REJOINED = "nobody rejoined"
    LOADED = "loaded"
    UNLOADED = "unloaded"
    EPOCH = "epoch"
    TARGET = "target"
    MEMBER_STATE = "member state"
    AWAY = "away"
    TOO_SLOW = "too slow"
    TOPICS_CHANGED = "topics changed"
    RESUBSCRIBED = "resubscribed"

    STARTED = "started"
    SUBSCRIBED = "subscribed"
    FOUND_COORDINATOR = "found coordinator"
    LOST_COORDINATOR = "lost coordinator"
    JOINING = "joining"
    ASKED_TO_REJOIN = "asked to rejoin"
    JOINED = "joined"
    ASSIGNS = "assigns"
    COMPUTED = "computed"
    SYNCED = "synced"
    OWNS = "owns"
    ADDED = "added"
    REVOKED = "revoked"
    LOST = "lost"
    LEARNED = "learned"
    UNKNOWN_MEMBER = "unknown member"
    POLL_EXCEEDED = "poll exceeded"
    LEAVES = "leaves"
    CLIENT_FENCED = "client fenced"
    CLOSED = "closed"
    SETTINGS = "settings"


class Source(NamedTuple):
    """A line: the number of its file among those that were read, and its number in the file, from 1."""

    file: int
    line: int


@dataclass(frozen=True, slots=True)
class Fact:
    """What one line says. A field that it does not tell is empty.

    - ``at_ms``: milliseconds since 1970, of the clock that the line shows.
    - ``client``, ``member_id``, ``instance_id``: the member that the line speaks of.
    - ``text``: the reason, the error or the state that it gives. ``cause``: the client's reason in it.
    - ``partitions``: those that it lists. ``assignments``: those of member ids, as a leader lists them.
    - ``others``: member ids that it lists. ``settings``: those of the client, by name.
    - ``library``: that of the client that wrote it; empty for a coordinator.
    - ``is_look``: it is what ``watch`` saw of the group, without a log of the coordinator.
    """

    at_ms: int
    kind: Kind
    source: Source
    group: str = ""
    client: str = ""
    member_id: str = ""
    instance_id: str = ""
    generation: int | None = None
    text: str = ""
    cause: str = ""
    partitions: PartitionMap = field(default_factory=dict)
    assignments: dict[str, PartitionMap] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    protocol: str = ""
    library: str = ""
    is_look: bool = False

    def shifted(self, by_ms: int) -> "Fact":
        """Return the fact with its time moved."""
        return replace(self, at_ms=self.at_ms + by_ms)
