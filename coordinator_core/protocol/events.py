"""Events of coordinator, client and simulation. A trace adds the time of each event.

``client`` is a consumer's name in the scenario (its client id), ``member_id`` its id in the group.
Partitions are written as {topic: [numbers]}. An event is one line of a trace; ``type`` is its class.
"""

from typing import Any, ClassVar, TypeAlias

import msgspec

PartitionMap: TypeAlias = dict[str, list[int]]


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type", gc=False):
    """Common settings of all events. Events have no cycles, so that the collector leaves them alone."""


# --- emitted by the simulation: changes of the group's surroundings


class RunStarted(_Event, frozen=True, omit_defaults=True):
    """The first event of every trace.

    ``racks``: the racks of each partition's replicas, if they are known. ``protocol``: the protocol family,
    empty for the default one (see `Trace.protocol`). ``measure_from_ms``: the time from which costs are
    counted, if it is given; else it is the first rest of the group. ``own_epochs``: see `ProtocolSpec`.
    ``since_1970_ms``: the time of day of a real group's time 0, in UTC.
    """

    scenario: str
    strategy: str
    seed: int
    duration_ms: int
    topics: dict[str, int]
    racks: dict[str, tuple[tuple[str, ...], ...]] = {}
    protocol: str = ""
    measure_from_ms: int | None = None
    own_epochs: bool = False
    since_1970_ms: int | None = None


class RunEnded(_Event, frozen=True):
    """The last event of every trace. ``messages``: requests sent, by API."""

    group_state: str
    generation: int
    messages: dict[str, int]


class Changed(_Event, frozen=True):
    """An event of the scenario has happened. The time to Stable is counted from here.

    ``kind`` is the event's name in the scenario, ``target`` the member or topic that it changes. ``cause``
    is the event that this one follows from: the rolling_restart of a ``leave`` or ``restart``, the pause
    or freeze before a ``resume``, the cut before a ``heal``.
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


class ApplicationStarted(_Event, frozen=True):
    """A consumer process started that handles records in batches.

    ``batch_ms`` is the mean time of a batch of ``max.poll.records``, rounded. ``records_per_second`` are the
    records/s of such batches, the time of the poll included; None in traces that do not have it.
    """

    client: str
    batch_ms: int
    max_poll_records: int
    max_poll_interval_ms: int
    records_per_second: float | None = None


class MemberStopped(_Event, frozen=True):
    """A consumer process ended. ``how`` is 'closed' or 'crashed'."""

    client: str
    how: str


class MemberPaused(_Event, frozen=True, omit_defaults=True):
    """A consumer process has stopped to poll: it stands still, or handles one long batch (``in_batch``)."""

    client: str
    in_batch: bool = False


class MemberResumed(_Event, frozen=True):
    """A paused consumer process goes on."""

    client: str


class MemberCutOff(_Event, frozen=True):
    """The network between a consumer and all brokers is cut: it sends no requests and gets no records."""

    client: str


class MemberReconnected(_Event, frozen=True):
    """The network between a consumer and the brokers works again."""

    client: str


class SubscriptionChanged(_Event, frozen=True):
    """A consumer subscribes to other topics."""

    client: str
    topics: list[str]


class PartitionsAdded(_Event, frozen=True):
    """A topic has more partitions than before, or is new."""

    topic: str
    partitions: int


class TopicDeleted(_Event, frozen=True):
    """A topic is deleted: its partitions are gone, even while consumers own them."""

    topic: str


class RatesChanged(_Event, frozen=True):
    """The records per second that are produced to each partition of a topic from now on."""

    topic: str
    rates: list[float]


class LagMeasured(_Event, frozen=True):
    """The load since the last measurement, as exact integrals.

    ``lag`` is the number of records in all partitions that are not handled yet, ``max_lag`` its maximum
    since the last measurement, ``lag_record_seconds`` its integral over that time. ``duplicates`` is the
    number of records handled again in that time. ``by_client`` is the lag of the partitions of each
    consumer that has a lag, and ``unowned`` that of the partitions without an owner.
    """

    lag: float
    max_lag: float
    lag_record_seconds: float
    duplicates: float
    by_client: dict[str, float]

    @property
    def unowned(self) -> float:
        """The lag of partitions that nobody works on, up to rounding."""
        return max(0.0, round(self.lag - sum(self.by_client.values()), 3))


class CoordinatorFailed(_Event, frozen=True):
    """The broker that coordinates the group has failed."""

    node: int


class CoordinatorElected(_Event, frozen=True):
    """A broker has taken over the group's partition of the offsets topic and replayed its log.

    ``group_state``, ``generation`` and ``members`` are the group's according to the log; the state is "" if
    the log has no such group. If no broker has failed before, the group existed before the run began.
    """

    node: int
    groups: int
    group_state: str = ""
    generation: int = -1
    members: list[str] = []


# --- emitted by the coordinator


class GroupStateChanged(_Event, frozen=True):
    """A group has another state. ``cause`` is the reason in words; every rebalance has one (C-83)."""

    group: str
    before: str
    after: str
    generation: int
    cause: str = ""


class MemberAdded(_Event, frozen=True):
    """A group has a new member."""

    group: str
    member_id: str
    instance_id: str | None = None


class MemberRemoved(_Event, frozen=True):
    """A group has lost a member."""

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
    """The members of a generation are known. ``protocol`` is the chosen assignor.

    ``leader`` is "" if no member computes the assignments for the others.
    """

    group: str
    generation: int
    protocol: str
    leader: str
    members: list[str]


# --- emitted by the client


class ClientStateChanged(_Event, frozen=True):
    """A consumer's membership has another state."""

    client: str
    before: str
    after: str


class Joined(_Event, frozen=True):
    """The consumer has a member id and a generation: its JoinGroup was answered, or it resumed them."""

    client: str
    member_id: str
    generation: int
    protocol: str
    leader: bool


class AssignmentComputed(_Event, frozen=True):
    """The leader has run the assignor.

    ``members`` are the subscribed topics by member id; ``report`` is the assignor's report. Its entry
    ``unreadable`` has the reason by member id for each member whose subscription cannot be decoded. They are
    assigned nothing.
    """

    client: str
    generation: int
    assignor: str
    members: dict[str, list[str]]
    payload_bytes: int
    report: dict[str, Any] = {}


class Revoked(_Event, frozen=True):
    """The consumer has given up partitions while it was their owner."""

    client: str
    generation: int
    partitions: PartitionMap


class Lost(_Event, frozen=True):
    """The consumer has found out that it is no longer the owner of partitions."""

    client: str
    generation: int
    partitions: PartitionMap


class Assigned(_Event, frozen=True, omit_defaults=True):
    """The consumer has an assignment: the partitions added, and all that it owns from now on.

    Nothing is added if the consumer resumed a membership, as it owned the partitions before. ``called``:
    whether the application's listener is called.
    """

    client: str
    generation: int
    added: PartitionMap
    owned: PartitionMap
    called: bool = True


class WorkStopped(_Event, frozen=True):
    """The consumer handles no records of partitions that it owns.

    ``why``: ``callback`` while the application's callback runs, ``restore`` while the state of a partition
    is restored, ``round`` while a client hands out no records during a round or for a moment after it. The
    event of a callback has no partitions if the consumer owns none.
    """

    client: str
    partitions: PartitionMap
    why: str


class WorkStarted(_Event, frozen=True):
    """The consumer handles records of partitions again, after a `WorkStopped`; of none if it owns none."""

    client: str
    partitions: PartitionMap


class OffsetsCommitted(_Event, frozen=True):
    """A commit was answered. ``partitions`` is the number of partitions in it."""

    client: str
    partitions: int
    error: str = ""


class ConsumerFailed(_Event, frozen=True):
    """The consumer has failed for good (fenced, unauthorized, group full ...)."""

    client: str
    error: str


class FamilyEvent(_Event, frozen=True):
    """The base of events that only some protocol families have (`registry.hookspecs.ProtocolSpec.events`).

    ``is_notice``: the story counts equal events of a round, and does not tell them member by member.
    """

    is_notice: ClassVar[bool] = False

    @property
    def counts(self) -> bool:
        """Whether the counts of such events have this one (`traces.history.History.counted`)."""
        return True


Event: TypeAlias = (
    RunStarted
    | RunEnded
    | Changed
    | MemberStarted
    | ApplicationStarted
    | MemberStopped
    | MemberPaused
    | MemberResumed
    | MemberCutOff
    | MemberReconnected
    | SubscriptionChanged
    | PartitionsAdded
    | TopicDeleted
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
    | WorkStopped
    | WorkStarted
    | OffsetsCommitted
    | ConsumerFailed
    | FamilyEvent
)


class TraceEvent(msgspec.Struct, frozen=True, gc=False):
    """An event with its time: one line of a trace. ``at_ms`` is virtual time since the run began."""

    at_ms: int
    event: Event
