"""The kinds of scenario events that act on consumer processes.

A name of a member may be a list of names. The place of an error is then that of the list's element.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import format_duration
from coordinator_core.reading.suggestions import close_to
from rebalance_lab.scenarios.documents import TEXT, Document, Duration, Schema, Text, Time, about, read
from rebalance_lab.scenarios.fields import MOST_MEMBERS, Assignors, Members, SubscriptionFields
from rebalance_lab.scenarios.overrides import Overrides
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.scenario import Member, new_members, subscription_of
from rebalance_lab.scenarios.stage import Passage, Stage

D = TypeVar("D", bound=Document)

BrokerNumber: TypeAlias = Annotated[int, Meta(ge=0)]
"""The number of a broker, from 0."""


class Names(tuple[str, ...]):
    """The names of members: one, or a list."""

    __slots__ = ()
    schema: ClassVar[Schema] = {
        "anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True}]
    }
    what: ClassVar[str] = "a member's id"
    once: ClassVar[str] = "each member once"

    @classmethod
    def read(cls, value: Any, where: str) -> Self:
        """Return the names."""
        if not isinstance(value, list):
            return cls((doc.text(value, where, f"{cls.what}, or a list"),))
        if not value:
            raise doc.unexpected(where, value, f"{cls.what} at least")
        names = cls(doc.text(name, inside(where, i), cls.what) for i, name in enumerate(value))
        for i, name in enumerate(names):
            if name in names[:i]:
                raise InputError(inside(where, i), f"{name!r} twice", cls.once)
        return names


def read_beside(kind: type[D], extra: Mapping[str, Any], where: str) -> D:
    """Return the fields beside the key of an event.

    Raises:
        InputError: if there are others, or a value is wrong.
    """
    allowed = kind.__struct_encode_fields__
    for key in extra:
        if key not in allowed:
            expected = f"only {' and '.join(allowed)} beside it" if allowed else "no further fields"
            found = f"the unknown field {doc.describe(key)}"
            raise InputError(inside(where, key), found, expected + close_to(key, allowed))
    return read(kind, extra, where)


@dataclass(frozen=True, slots=True)
class OfNames(ABC):
    """An event that happens to what is named, one after the other. ``kind`` is its key in a document."""

    kind: ClassVar[str]
    names: tuple[str, ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        for i, name in enumerate(self.names):
            place = inside(where, self.kind)
            self.check_one(roster, name, place if len(self.names) == 1 else inside(place, i), at_ms)

    def check_one(self, roster: Roster, name: str, place: str, at_ms: int) -> None:  # noqa: ARG002
        """Check that the event can happen to one of them. A member has to run."""
        roster.is_running(name, place)

    def apply(self, stage: Stage) -> None:
        for name in self.names:
            stage.changed(self.kind, name)
            self.apply_to(stage, name)

    @abstractmethod
    def apply_to(self, stage: Stage, name: str) -> None:
        """Let the event happen to one of them."""


class Leave(OfNames):
    """Members close properly."""

    kind = "leave"

    def check_one(self, roster: Roster, name: str, place: str, at_ms: int) -> None:
        roster.stopped(name, place, f"left at {at_ms}ms")

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.leave(name)


class Crash(OfNames):
    """Members end without a request."""

    kind = "crash"

    def check_one(self, roster: Roster, name: str, place: str, at_ms: int) -> None:
        roster.stopped(name, place, f"crashed at {at_ms}ms")

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.crash(name)


class Restart(OfNames):
    """Members start again. A running member is closed first."""

    kind = "restart"

    def check_one(self, roster: Roster, name: str, place: str, at_ms: int) -> None:  # noqa: ARG002
        roster.restarted(name, place)

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.restart(name)


class RemoveMember(OfNames):
    """An administrator removes members from the group. Their processes, if they run, join again."""

    kind = "remove_member"

    def check_one(self, roster: Roster, name: str, place: str, at_ms: int) -> None:  # noqa: ARG002
        roster.has_joined(name, place)

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.remove_member(name)


class Lasting(Document, frozen=True):
    """How long an event lasts."""

    for_ms: Annotated[Time, about("How long it lasts.", missing="how long it lasts, such as 70s")] = (
        msgspec.field(name="for")
    )


@dataclass(frozen=True, slots=True)
class ForAWhile(OfNames):
    """An event that lasts for a time. ``beside`` are the fields beside its names."""

    beside: ClassVar[type[Lasting]] = Lasting
    for_ms: int


class Pausing(Lasting, frozen=True):
    """How long a pause lasts, and what the application does meanwhile."""

    in_batch: Annotated[
        bool, about("Whether it handles one long batch meanwhile.", expected="true or false")
    ] = False


@dataclass(frozen=True, slots=True)
class Pause(ForAWhile):
    """The application of members does not poll for a while. Their heartbeats continue in the background.

    It stands still, or handles one long batch (``in_batch``).
    """

    kind = "pause"
    beside = Pausing
    in_batch: bool = False

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.pause(name, self.for_ms, in_batch=self.in_batch)


class Freeze(ForAWhile):
    """The whole process of members stands still for a while, its heartbeats too."""

    kind = "freeze"

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.freeze(name, self.for_ms)


class Passing(Lasting, frozen=True):
    """How long a cut lasts, and what does not pass."""

    way: Annotated[
        Passage, about("The messages that do not pass.", expected="both, requests or responses")
    ] = "both"
    broker: Annotated[BrokerNumber | None, about("The number of the only broker that is cut off.")] = None


@dataclass(frozen=True, slots=True)
class Cut(ForAWhile):
    """The network between members and brokers is cut for a while. The processes continue."""

    kind = "cut"
    beside = Passing
    way: Passage = "both"
    broker: int | None = None

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        OfNames.check(self, roster, where, at_ms)
        roster.has_broker(self.broker, inside(where, "broker"))

    def apply_to(self, stage: Stage, name: str) -> None:
        if self.way == "both" and self.broker is None:
            stage.cut(name, self.for_ms)
        else:
            stage.block(name, self.for_ms, self.way, self.broker)


class Slow(Lasting, frozen=True):
    """The messages of a member or a broker are late for a while."""

    by_ms: Annotated[Time, about("By how much.", missing="a duration, for example 500ms")] = msgspec.field(
        name="by"
    )
    member: Annotated[Text | None, about("The member that is slow.", expected="a member's id")] = None
    broker: Annotated[BrokerNumber | None, about("The number of the broker that is slow.")] = None

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        at = inside(where, "slow")
        if (self.member is None) is (self.broker is None):
            found = "neither a member nor a broker" if self.member is None else "a member and a broker"
            raise InputError(at, found, "one of the two")
        roster.has_broker(self.broker, inside(at, "broker"))
        if self.member is not None:
            roster.has_joined(self.member, inside(at, "member"))

    def apply(self, stage: Stage) -> None:
        node = self.member if self.member is not None else self.broker
        assert node is not None
        stage.changed("slow", node if isinstance(node, str) else f"broker {node}")
        stage.slow(node, self.by_ms, self.for_ms)


@dataclass(frozen=True, slots=True)
class Subscribe(OfNames):
    """Running members change their subscription."""

    kind = "subscribe"
    topics: tuple[str, ...]
    pattern: str | None

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        OfNames.check(self, roster, where, at_ms)
        roster.has_topics(self.topics, where)

    def apply_to(self, stage: Stage, name: str) -> None:
        stage.subscribe(name, self.topics, self.pattern)


@dataclass(frozen=True, slots=True)
class Join:
    """New members start, several with ``count`` or as a list. ``places`` are their entries in the event."""

    members: tuple[Member, ...]
    places: tuple[str, ...] = field(default=(), compare=False)

    @property
    def overrides(self) -> list[Overrides]:
        """What the members have in place of the scenario's and the strategy's."""
        return [member.overrides for member in self.members]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for member, place in zip(self.members, self.places or ("join",) * len(self.members), strict=True):
            entry = inside(where, place)
            roster.has_topics(member.topics, entry)
            roster.check_overrides(member.overrides, entry)
            roster.started(member.id, inside(entry, "id"))

    def apply(self, stage: Stage) -> None:
        for member in self.members:
            stage.changed("join", member.id)
            stage.start(member)


class RollingRestart(Document, frozen=True):
    """All running members are stopped and started, ``batch`` of them every ``every_ms``.

    Each is away for ``down_ms``. ``kill``: processes end without a LeaveGroup. With a ``surge`` new members
    under new names take the place of the old ones: so many of each batch start ``down_ms`` before the batch
    is stopped, the others ``down_ms`` after that. With ``assignors`` all members come back with these, with
    ``protocol`` they speak the classic or the consumer protocol from then on.
    """

    every_ms: Annotated[
        Time,
        about(
            "The time from one batch to the next.",
            missing="the time from one restart to the next, such as 20s",
        ),
    ] = msgspec.field(name="every")
    down_ms: Annotated[
        Duration,
        about("How long each member is away.", missing="how long each member is away, such as 5s"),
    ] = msgspec.field(name="down")
    kill: Annotated[bool, about("Processes are killed and send no LeaveGroup.")] = False
    batch: Annotated[
        Members, about("How many members are stopped at once; the surge by default.", schema={"default": 1})
    ] = msgspec.field(default_factory=int)  # 0, which no document has
    surge: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_MEMBERS)],
        about("How many new members of each batch start before the old ones are stopped."),
    ] = 0
    assignors: Annotated[Assignors, about("The members come back with these assignors.")] = ()
    protocol: Annotated[
        Literal["classic", "consumer"] | None, about("The members come back with this group.protocol.")
    ] = None

    def __post_init__(self) -> None:
        if not self.batch:
            msgspec.structs.force_setattr(self, "batch", max(self.surge, 1))

    @property
    def overrides(self) -> list[Overrides]:
        """What members that come back have in place of the scenario's and the strategy's."""
        return [Overrides(assignors=self.assignors, protocol=self.protocol or "")]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        at = inside(where, "rolling_restart")
        if self.assignors and self.protocol == "consumer":
            expected = "one of both: the coordinator has the assignor of the consumer protocol"
            raise InputError(at, "assignors and the protocol consumer", expected)
        if self.surge > self.batch:
            raise InputError(inside(at, "surge"), str(self.surge), f"at most the batch, {self.batch}")
        running = [name for name, runs in roster.running.items() if runs]
        if not running:
            raise InputError(at, "no members at this time", "a group that has some")
        roster.check_overrides(Overrides(assignors=self.assignors), at)
        why = f"replaced by the rolling_restart at {format_duration(at_ms)}"
        for i, name in enumerate(running if self.surge else ()):
            begins_ms = at_ms + i // self.batch * self.every_ms
            roster.replaced(name, begins_ms, begins_ms + self.down_ms, why)

    def apply(self, stage: Stage) -> None:
        stage.rolling_restart(
            self.every_ms,
            self.down_ms,
            kill=self.kill,
            batch=self.batch,
            surge=self.surge,
            assignors=self.assignors,
            protocol=self.protocol or "",
        )


def parse_join(value: Any, extra: Mapping[str, Any], where: str) -> Join:
    """Return the new members of an event: one entry, or a list of entries."""
    read_beside(Document, extra, where)
    entries = [("join", value)]
    if isinstance(value, list):
        entries = [(inside("join", i), entry) for i, entry in enumerate(value)]
    found = [
        (member, place) for place, entry in entries for member in new_members(entry, inside(where, place))
    ]
    if not found:
        raise doc.unexpected(inside(where, "join"), value, "at least one member")
    members, listed = zip(*found, strict=True)
    return Join(members, listed)


def parse_subscribe(value: Any, extra: Mapping[str, Any], where: str) -> Subscribe:
    """Return a change of subscriptions."""
    fields = read_beside(SubscriptionFields, extra, where)
    return Subscribe(Names.read(value, inside(where, "subscribe")), *subscription_of(fields, where))
