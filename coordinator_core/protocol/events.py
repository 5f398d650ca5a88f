"""What happened, as values. Coordinator, client and simulation emit them; the trace stamps them with time.

``client`` is the name a scenario gives a consumer (its client id), ``member_id`` what the coordinator
calls it. Partitions travel as {topic: [numbers]}. Each event is one line of a trace, ``type`` its class.
"""

from typing import Any, TypeAlias

import msgspec

PartitionMap: TypeAlias = dict[str, list[int]]


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Common settings of all events."""


# --- emitted by the simulation: what was done to the group from outside


class RunStarted(_Event, frozen=True, omit_defaults=True):
    """The first event of every trace.

    ``racks``: the racks of each partition's replicas, if they are known. ``protocol``: the protocol family,
    empty for the default one (see `Trace.protocol`).
    """

    scenario: str
    strategy: str
    seed: int
    duration_ms: int
    topics: dict[str, int]
    racks: dict[str, tuple[tuple[str, ...], ...]] = {}
    protocol: str = ""


class RunEnded(_Event, frozen=True):
    """The last event of every trace. ``messages``: requests sent, by API."""

    group_state: str
    generation: int
    messages: dict[str, int]


class Changed(_Event, frozen=True):
    """A change from outside: an event of the scenario took place. Starts the clock of time_to_stable.

    ``kind`` is the scenario's, ``target`` who or what it was done to. What follows from another event names
    it as ``cause``: each ``leave`` and ``restart`` of a rolling_restart, the ``resume`` after a pause, the
    ``heal`` after a cut.
    """

    kind: str
    target: str
    cause: str = ""


class MemberStarted(_Event, frozen=True):
    """A consumer process started."""

    client: str
    instance_id: str | None
    topics: list[str]
    process_rate: float | None
    rack: str | None = None


class MemberStopped(_Event, frozen=True):
    """A consumer process ended: ``how`` is 'closed' or 'crashed'."""

    client: str
    how: str


class MemberPaused(_Event, frozen=True):
    """A consumer process stands still: no poll, no work."""

    client: str


class MemberResumed(_Event, frozen=True):
    client: str


class MemberCutOff(_Event, frozen=True):
    """The network between a consumer and all brokers is cut: no requests, and no records to work on."""

    client: str


class MemberReconnected(_Event, frozen=True):
    """The cut is over."""

    client: str


class SubscriptionChanged(_Event, frozen=True):
    client: str
    topics: list[str]


class PartitionsAdded(_Event, frozen=True):
    topic: str
    partitions: int


class RatesChanged(_Event, frozen=True):
    """Records/s produced to each partition of a topic from now on."""

    topic: str
    rates: list[float]


class LagMeasured(_Event, frozen=True):
    """The load since the last measure: exact integrals, not samples.

    ``lag``: records not yet handled, now, over all partitions; ``max_lag``: the most it was since the
    last measure; ``lag_record_seconds``: its integral over that time; ``duplicates``: records handled
    again in that time. ``by_client``: lag now of what each consumer works on.
    """

    lag: float
    max_lag: float
    lag_record_seconds: float
    duplicates: float
    by_client: dict[str, float]


class CoordinatorFailed(_Event, frozen=True):
    node: int


class CoordinatorElected(_Event, frozen=True):
    """A broker has taken over the group's partition of the offsets topic and replayed its log.

    ``group_state``, ``generation`` and ``members`` are the group's as the log tells it; "" when it has none.
    Where no broker has failed, the group was there before the run began.
    """

    node: int
    groups: int
    group_state: str = ""
    generation: int = -1
    members: list[str] = []


# --- emitted by the coordinator


class GroupStateChanged(_Event, frozen=True):
    """``cause`` says in words why (every rebalance has one, PITFALLS C-83)."""

    group: str
    before: str
    after: str
    generation: int
    cause: str = ""


class MemberAdded(_Event, frozen=True):
    group: str
    member_id: str
    instance_id: str | None = None


class MemberRemoved(_Event, frozen=True):
    group: str
    member_id: str
    reason: str


class MemberReplaced(_Event, frozen=True):
    """A static member came back under a new id; the old id is fenced (KIP-345)."""

    group: str
    instance_id: str
    old_member_id: str
    new_member_id: str


class GenerationStarted(_Event, frozen=True):
    """The join phase ended: a new generation, its leader, members and chosen assignor."""

    group: str
    generation: int
    protocol: str
    leader: str
    members: list[str]


# --- emitted by the client


class ClientStateChanged(_Event, frozen=True):
    client: str
    before: str
    after: str


class Joined(_Event, frozen=True):
    """JoinGroup was answered: the consumer has a member id and a generation. Or it resumed them."""

    client: str
    member_id: str
    generation: int
    protocol: str
    leader: bool


class AssignmentComputed(_Event, frozen=True):
    """The leader ran the assignor. ``members`` maps member id -> topics it subscribes to.

    ``report`` is what the assignor says of its answer.
    """

    client: str
    generation: int
    assignor: str
    members: dict[str, list[str]]
    payload_bytes: int
    report: dict[str, Any] = {}


class Revoked(_Event, frozen=True):
    """The consumer gave up partitions in good order."""

    client: str
    generation: int
    partitions: PartitionMap


class Lost(_Event, frozen=True):
    """The consumer learned that partitions were taken from it."""

    client: str
    generation: int
    partitions: PartitionMap


class Assigned(_Event, frozen=True):
    """A SyncGroup was taken over: what was added, and all that is owned from now on.

    Nothing is added where a membership was resumed: it owned that before.
    """

    client: str
    generation: int
    added: PartitionMap
    owned: PartitionMap


class OffsetsCommitted(_Event, frozen=True):
    client: str
    partitions: int
    error: str = ""


class ConsumerFailed(_Event, frozen=True):
    """The consumer stopped for good with an error (fenced, unauthorized, group full ...)."""

    client: str
    error: str


Event: TypeAlias = (
    RunStarted
    | RunEnded
    | Changed
    | MemberStarted
    | MemberStopped
    | MemberPaused
    | MemberResumed
    | MemberCutOff
    | MemberReconnected
    | SubscriptionChanged
    | PartitionsAdded
    | RatesChanged
    | LagMeasured
    | CoordinatorFailed
    | CoordinatorElected
    | GroupStateChanged
    | MemberAdded
    | MemberRemoved
    | MemberReplaced
    | GenerationStarted
    | ClientStateChanged
    | Joined
    | AssignmentComputed
    | Revoked
    | Lost
    | Assigned
    | OffsetsCommitted
    | ConsumerFailed
)


class TraceEvent(msgspec.Struct, frozen=True):
    """An event with its time: one line of a trace. ``at_ms`` is virtual time since the run began."""

    at_ms: int
    event: Event
