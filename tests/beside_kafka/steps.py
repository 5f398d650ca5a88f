"""The steps of a script. They name members, topics and producers by symbols, not by a broker's ids."""

from typing import Literal, TypeAlias

import msgspec

MEMBERS = "ABCD"
SHARED = {"t1": 6, "t2": 6, "t3": 3}
"""Topics of all groups, with their partitions. Nothing changes them."""

OWN = ("own1", "own2")
"""Topics that a script creates. Each group has others of these names."""

MISSING = "missing"

Which: TypeAlias = str
"""A member id: ``own``, ``empty``, ``unknown``, or the name of a member.

In a heartbeat of the consumer protocol also ``new``: the member makes another one.
"""

Owned: TypeAlias = Literal["none", "all", "old"]
"""Partitions: none, those of the last assignment, those of the one before."""

Offset: TypeAlias = tuple[str, int, int, str | None]
"""Topic, partition, offset and metadata."""

As: TypeAlias = Literal["member", "nobody"]
"""Who commits or fetches: a member with its id and epoch or generation, or nobody with -1."""


class Step(msgspec.Struct, frozen=True, tag=True, omit_defaults=True, kw_only=True):
    """One request. ``member``: on whose connection; empty: on a connection of an administrator."""

    member: str = ""


class JoinGroup(Step, frozen=True):
    id: Which = "own"
    session_ms: int = 30_000
    rebalance_ms: int = 1_500
    instance: str | None = None
    protocol_type: str = "consumer"
    protocols: tuple[str, ...] = ("range",)
    topics: tuple[str, ...] = ()
    owned: bool = False
    """Whether the subscription has the partitions of the last assignment."""


class SyncGroup(Step, frozen=True):
    id: Which = "own"
    shift: int = 0
    """What is added to the generation."""
    instance: str | None = None
    protocol_type: str | None = "consumer"
    protocol: str | None = "range"
    shares: dict[str, dict[str, tuple[int, ...]]] = {}
    """Member -> topic -> partitions."""


class Heartbeat(Step, frozen=True):
    id: Which = "own"
    shift: int = 0
    instance: str | None = None


class LeaveGroup(Step, frozen=True):
    leaving: tuple[tuple[Which, str | None], ...] = ()
    """Member ids and instances."""


class ConsumerHeartbeat(Step, frozen=True):
    id: Which = "own"
    epoch: Literal["join", "leave", "pause"] | int = 0
    """0, -1 and -2, or what is added to the last epoch."""
    instance: str | None = None
    rack: str | None = None
    rebalance_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Owned | None = None


class CommitOffsets(Step, frozen=True):
    id: Which = "own"
    by: As = "member"
    shift: int = 0
    instance: str | None = None
    offsets: tuple[Offset, ...] = ()
    retention_ms: int = -1


class FetchOffsets(Step, frozen=True):
    id: Which = "own"
    by: As = "nobody"
    shift: int = 0
    topics: dict[str, tuple[int, ...]] | None = None
    """None: all."""
    stable: bool = False


class DescribeGroup(Step, frozen=True):
    operations: bool = False


class DescribeConsumerGroup(Step, frozen=True):
    operations: bool = False


class ListGroups(Step, frozen=True):
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class DeleteGroup(Step, frozen=True):
    pass


class DeleteOffsets(Step, frozen=True):
    topics: dict[str, tuple[int, ...]] = {}


class InitProducer(Step, frozen=True):
    """A producer of the script's group begins, or begins again."""

    producer: str
    timeout_ms: int = 60_000
    again: bool = False
    """Whether it has the id and the epoch that it got."""


class AddOffsets(Step, frozen=True):
    producer: str
    shift: int = 0


class CommitInTransaction(Step, frozen=True):
    producer: str
    shift: int = 0
    """What is added to the producer's epoch."""
    id: Which = "own"
    of: str = ""
    """The member whose consumer the offsets are of, if ``by`` is a member."""
    by: As = "nobody"
    instance: str | None = None
    offsets: tuple[Offset, ...] = ()


class EndTransaction(Step, frozen=True):
    producer: str
    commits: bool = True
    shift: int = 0


class CreateTopic(Step, frozen=True):
    topic: str
    partitions: int


class GrowTopic(Step, frozen=True):
    topic: str
    partitions: int


class DeleteTopic(Step, frozen=True):
    topic: str


class Wait(Step, frozen=True):
    seconds: float


class Restart(Step, frozen=True):
    """Both brokers stop, and start with their data, once all scripts have come to this step."""


AnyStep: TypeAlias = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | ConsumerHeartbeat
    | CommitOffsets
    | FetchOffsets
    | DescribeGroup
    | DescribeConsumerGroup
    | ListGroups
    | DeleteGroup
    | DeleteOffsets
    | InitProducer
    | AddOffsets
    | CommitInTransaction
    | EndTransaction
    | CreateTopic
    | GrowTopic
    | DeleteTopic
    | Wait
    | Restart
)

READS = (FetchOffsets, DescribeGroup, DescribeConsumerGroup, ListGroups)
"""Requests that change nothing. After a difference in their responses a script goes on."""


class Script(msgspec.Struct, frozen=True):
    """Steps with what belongs to all of them.

    ``seed``: of the ids that members make. ``is_old``: whether the seed also chooses older versions of the
    APIs, in place of the newest ones that both brokers have.
    """

    steps: tuple[AnyStep, ...]
    seed: int = 0
    is_old: bool = False


class _Head(msgspec.Struct, frozen=True):
    seed: int
    is_old: bool


def written(script: Script) -> str:
    """Return a script as lines of JSON, one for each step."""
    parts = (_Head(script.seed, script.is_old), *script.steps)
    return "".join(f"{msgspec.json.encode(part).decode()}\n" for part in parts)


def read(text: str) -> Script:
    """Return the script of a text that `written` returned."""
    first, *lines = text.splitlines()
    head = msgspec.json.decode(first, type=_Head)
    steps = tuple(msgspec.json.decode(line, type=AnyStep) for line in lines)
    return Script(steps, head.seed, head.is_old)
