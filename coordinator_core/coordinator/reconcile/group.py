"""A group that the coordinator reconciles, as the coordinator runs it."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import msgspec

from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.offset_commit import WITH_EPOCHS, WITH_EPOCHS_IN_TRANSACTIONS
from coordinator_core.coordinator.reconcile.settings import REFRESH, ReconcileSettings
from coordinator_core.coordinator.reconcile.state import (
    GroupState,
    Listed,
    Member,
    MemberState,
    restored_state,
)
from coordinator_core.coordinator.records import StoredGroup
from coordinator_core.coordinator.shard import DEAD, EMPTY, MEMBER_BYTES, Group, Step
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    DescribedGroup,
    OffsetCommitRequest,
    OffsetFetchRequest,
    Response,
    TxnOffsetCommitRequest,
)

FAMILY = "reconcile"


HELD_BYTES = 200
"""The approximate memory of a partition that a member holds."""


def topic_bytes(topic: str) -> int:
    """Return about how much memory a topic takes that a member lists, with the table of the log."""
    return 100 + 2 * len(topic)


class Subscriber(NamedTuple):
    """A member as an assignor sees it: its topics, the share that it had, and its names."""

    topics: tuple[str, ...]
    share: Listed
    instance_id: str | None
    rack: str | None


class Asked(NamedTuple):
    """A request that waits for a task, and its response in case of an error."""

    request_id: int
    refused: Callable[[ErrorCode], Response]


class Task(NamedTuple):
    """The work for a request or a deadline: ``run`` takes the `Changes` that it makes.

    ``again``: it is run again if its records cannot be written.
    """

    run: Callable[[Any], None]  # the module of Changes imports this one
    asked: Asked | None = None
    again: bool = False


class Computing(msgspec.Struct, frozen=True):
    """How a coordinator computes shares.

    ``assignors`` are the names of the assignors on the wire, the default one first. ``topics`` returns the
    partitions of the existing ones among some topics. ``matching`` returns the topics that match a regular
    expression as a whole; it raises ValueError if that is none. ``assign`` runs the assignor of a name on
    members in the order of Kafka's coordinator, and is given whether they subscribe alike; its shares are in
    the order of the assignor.
    ``may_describe`` returns whether a principal may describe a topic: patterns match no other topics.
    ``own_settings`` returns the settings that a group has for itself, which are right (`settings.OF_GROUP`).
    ``downgrade`` takes the `Changes` after a member was removed: it may make the group a classic one, and
    returns whether it has.
    """

    assignors: tuple[str, ...]
    topics: Callable[[Iterable[str]], dict[str, int]]
    matching: Callable[[str], tuple[str, ...]]
    assign: Callable[[str, Mapping[str, Subscriber], bool], Mapping[str, Listed]]
    may_describe: Callable[[str, str], bool] = lambda _principal, _topic: True
    own_settings: Callable[[str], Mapping[str, int]] = lambda _group: {}
    downgrade: Callable[[Any], bool] = lambda _changes: False


class State(StrEnum):
    """The states of a group."""

    EMPTY = EMPTY
    """The group has no members."""

    ASSIGNING = "Assigning"
    """The group has changed since its shares were computed. The next heartbeat computes them."""

    RECONCILING = "Reconciling"
    """Members have yet to reach their shares."""

    STABLE = "Stable"
    """Every member has reached its share."""

    DEAD = DEAD
    """The group is forgotten."""


MOVES: Mapping[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.ASSIGNING, State.RECONCILING, State.STABLE, State.DEAD}),
    State.ASSIGNING: frozenset({State.RECONCILING, State.STABLE, State.EMPTY, State.DEAD}),
    State.RECONCILING: frozenset({State.STABLE, State.ASSIGNING, State.EMPTY, State.DEAD}),
    State.STABLE: frozenset({State.ASSIGNING, State.RECONCILING, State.EMPTY, State.DEAD}),
    State.DEAD: frozenset({State.DEAD}),
}


class TimerKind(IntEnum):
    """What a deadline of a group is for. Deadlines of one moment fire in this order."""

    SESSION = 1
    REBALANCE = 2
    RETRY = 3
    JOIN = 4
    """A member that speaks the classic protocol was told to join."""
    SYNC = 5
    """Such a member has joined, and is to ask for its assignment."""
    REFRESH = 6
    """The regular expressions of the group are to be resolved again."""


def state_of(state: GroupState) -> State:
    """Return the state of a group, as administrators see it."""
    if not state.members:
        return State.EMPTY
    if state.epoch > state.target.epoch:
        return State.ASSIGNING
    return State.RECONCILING if state.behind else State.STABLE


class ReconcileGroup(Group):
    """A group: its durable state, and the work that waits while records are being written.

    ``tasks`` wait until records are written; ``failed`` are those that are run again because that failed.
    ``topic_changes`` counts the changes of the topics of the cluster. ``seen_changes`` and
    ``resolved_changes`` are the counts as of the last look at the partitions of the group's topics, and as of
    the last time that regular expressions were resolved: None at first, and when it is time to do so again.
    """

    family, moves = FAMILY, MOVES
    protocol_type: str = PROTOCOL_TYPE
    state: State
    members: Mapping[str, Member]

    def __init__(
        self, group_id: str, computing: Computing, settings: ReconcileSettings, durable: GroupState
    ) -> None:
        super().__init__(group_id)
        self.computing, self._settings = computing, settings
        self.tasks: deque[Task] = deque()
        self.failed: list[Task] = []
        self.is_writing = False
        self.topic_changes = 0
        self.seen_changes: int | None = None
        self.resolved_changes: int | None = None
        self.become(durable)

    def become(self, durable: GroupState) -> None:
        """Take over a state whose records are written."""
        self.durable, self.state, self.members = durable, state_of(durable), durable.members
        self.generation = durable.epoch

    @property
    def expects_members(self) -> bool:
        """Whether requests wait until records are written."""
        return bool(self.tasks) or self.is_writing

    @property
    def awaits_heartbeat(self) -> bool:
        """Whether topics may have changed since a heartbeat looked at them last, or an expression is new."""
        patterns, resolved = self.durable.patterns, self.durable.resolved
        is_old = self.resolved_changes != self.topic_changes or len(patterns) != len(resolved)
        return (bool(patterns) and is_old) or self.seen_changes != self.topic_changes

    def describe(self) -> DescribedGroup:
        """Return that the group is none of the classic protocol. ConsumerGroupDescribe describes it."""
        return DescribedGroup(error=ErrorCode.GROUP_ID_NOT_FOUND, group_id=self.group_id, state=DEAD)

    def subscribed_topics(self) -> dict[str, None]:
        """Return the topics that members list, and those known to match their regular expressions."""
        return self.durable.topics()

    def accept_commit(self, step: Step, request: OffsetCommitRequest) -> ErrorCode:  # noqa: ARG002 - the interface's
        """Check a commit by the epoch of its member. It is no heartbeat."""
        if request.generation_id < 0 and self.is_empty:
            return ErrorCode.NONE
        member = self.members.get(request.member_id)
        if member is not None and member.classic is None and request.version < WITH_EPOCHS:
            return ErrorCode.UNSUPPORTED_VERSION
        return self._check_commit(request)

    def accept_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Check a commit in a transaction. Before version 6, a wrong epoch is ILLEGAL_GENERATION."""
        error = self._check_commit(request)
        if request.version >= WITH_EPOCHS_IN_TRANSACTIONS:
            return error
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def _check_commit(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> ErrorCode:
        """Check the epoch that a commit names: that of its member, or one since it got the partitions."""
        epoch, current = request.generation_id, self.durable.currents.get(request.member_id)
        if current is not None and epoch < current.epoch and self.has(Rule.COMMITS_SINCE_ASSIGNMENT):
            since = current.epochs()
            places = (TopicPartition(o.topic, o.partition) for o in request.offsets)
            if all(place in since and since[place] <= epoch for place in places):
                return ErrorCode.NONE
        return self.check_epoch(request.member_id, epoch)

    def accept_fetch(self, request: OffsetFetchRequest) -> ErrorCode:
        """Check a request for offsets, which may come from outside the group."""
        if request.member_id is None and request.member_epoch < 0:
            return ErrorCode.NONE
        return self.check_epoch(request.member_id or "", request.member_epoch)

    def check_epoch(self, member_id: str, epoch: int) -> ErrorCode:
        """Check the epoch that a request for offsets names."""
        current = self.durable.currents.get(member_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current.epoch == epoch:
            return ErrorCode.NONE
        is_classic = self.members[member_id].classic is not None
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def size_bytes(self) -> int:
        """Return about how much memory the group takes, without its offsets."""
        size = super().size_bytes() + MEMBER_BYTES * len(self.members)
        for member_id, member in self.members.items():
            size += 2 * (len(member_id) + len(member.instance_id or "") + len(member.rack or ""))
            size += sum(map(topic_bytes, member.topics)) + 2 * len(member.pattern or "")
            for name, subscription in () if member.classic is None else member.classic.protocols:
                size += 2 * (len(name) + len(subscription))
        return size + HELD_BYTES * len(self.durable.holders)

    @property
    def settings(self) -> ReconcileSettings:
        """The settings of all groups, with those that the group has for itself in their place."""
        own = self.computing.own_settings(self.group_id)
        return self._settings.of_group(own) if own else self._settings

    def has(self, rule: Rule) -> bool:
        """Return whether the version of Kafka whose rules the group follows has a rule."""
        return self._settings.has(rule)

    def begin_session(self, step: Step, member_id: str) -> None:
        """Begin the session of a member anew, unless a later change of the same write has removed it.

        A member that speaks the classic protocol has told its timeout.
        """
        if member_id not in self.members:
            return
        classic = self.members[member_id].classic
        timeout_ms = self.settings.session_timeout_ms if classic is None else classic.session_timeout_ms
        step.schedule(TimerKind.SESSION, self, timeout_ms, member_id)

    def time_refresh(self, step: Step) -> None:
        """Set the time at which the regular expressions are to be resolved again, if there are any."""
        if self.durable.resolved and self._settings.has_setting(REFRESH):
            age_ms = step.now_ms - min(resolved.at_ms for resolved in self.durable.resolved.values())
            step.schedule(TimerKind.REFRESH, self, self._settings.regex_refresh_ms + 1 - age_ms)


def restored(
    computing: Computing,
    settings: ReconcileSettings,
    step: Step,
    group_id: str,
    stored: StoredGroup,
    _: int,
) -> ReconcileGroup:
    """Return the group of its records, with sessions and times to give up partitions that begin now."""
    state = restored_state(stored, step.shard.table.parts.get(group_id, {}))
    group = ReconcileGroup(group_id, computing, settings, state)
    for member_id, member in state.members.items():
        group.begin_session(step, member_id)
        if member.classic is None and state.currents[member_id].state is MemberState.UNREVOKED:
            step.schedule(TimerKind.REBALANCE, group, member.rebalance_timeout_ms, member_id)
    group.time_refresh(step)
    step.schedule_retention(group)
    return group
