"""The kinds of scenario events that act on consumer processes.

A name of a member may be a list of names. The place of an error is then that of the list's element.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import format_duration, parse_duration
from coordinator_core.reading.schemas import BOOLEAN, DURATION, TEXT, described, whole
from coordinator_core.reading.suggestions import close_to
from rebalance_lab.scenarios.fields import MOST_MEMBERS
from rebalance_lab.scenarios.overrides import ASSIGNORS, Overrides, parse_assignors
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.scenario import Member, parse_members, parse_subscription
from rebalance_lab.scenarios.stage import Stage

ROLLING_RESTART_FIELDS = {
    "every": described("The time from one batch to the next.", DURATION),
    "down": described("How long each member is away.", DURATION),
    "kill": described("Processes are killed and send no LeaveGroup.", BOOLEAN, default=False),
    "batch": described("How many members are stopped at once.", whole(1, MOST_MEMBERS), default=1),
    "surge": described(
        "How many new members of each batch start before the old ones are stopped.",
        whole(0, MOST_MEMBERS),
        default=0,
    ),
    "assignors": described("The members come back with these assignors.", ASSIGNORS),
}

Parse = Callable[[Any, Mapping[str, Any], str], Any]


@dataclass(frozen=True, slots=True)
class Join:
    """New members start, several with ``count`` or as a list. ``places`` are their entries in the event."""

    members: tuple[Member, ...]
    places: tuple[str, ...] = field(default=(), compare=False)

    @property
    def has_assignors(self) -> bool:
        """Whether members have assignors of their own."""
        return any(member.overrides.assignors for member in self.members)

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for member, place in zip(self.members, self.places or ("join",) * len(self.members), strict=True):
            entry = inside(where, place)
            for i, topic in enumerate(member.topics):
                roster.topic(topic, inside(inside(entry, "topics"), i))
            roster.check_overrides(member.overrides, entry)
            roster.started(member.id, inside(entry, "id"))

    def apply(self, stage: Stage) -> None:
        for member in self.members:
            stage.changed("join", member.id)
            stage.start(member)


@dataclass(frozen=True, slots=True)
class Leave:
    """Members close properly."""

    members: tuple[str, ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        for name, place in places(self.members, inside(where, "leave")):
            roster.stopped(name, place, f"left at {at_ms}ms")

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("leave", name)
            stage.leave(name)


@dataclass(frozen=True, slots=True)
class Crash:
    """Members end without a request."""

    members: tuple[str, ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        for name, place in places(self.members, inside(where, "crash")):
            roster.stopped(name, place, f"crashed at {at_ms}ms")

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("crash", name)
            stage.crash(name)


@dataclass(frozen=True, slots=True)
class Restart:
    """Members start again. A running member is closed first."""

    members: tuple[str, ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for name, place in places(self.members, inside(where, "restart")):
            roster.restarted(name, place)

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("restart", name)
            stage.restart(name)


@dataclass(frozen=True, slots=True)
class Pause:
    """The application of members stands still for a while. Their heartbeats continue in the background."""

    members: tuple[str, ...]
    for_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        _check_running(self.members, roster, inside(where, "pause"))

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("pause", name)
            stage.pause(name, self.for_ms)


@dataclass(frozen=True, slots=True)
class Freeze:
    """The whole process of members stands still for a while, its heartbeats too."""

    members: tuple[str, ...]
    for_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        _check_running(self.members, roster, inside(where, "freeze"))

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("freeze", name)
            stage.freeze(name, self.for_ms)


@dataclass(frozen=True, slots=True)
class Cut:
    """The network between members and all brokers is cut for a while. The processes continue."""

    members: tuple[str, ...]
    for_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        _check_running(self.members, roster, inside(where, "cut"))

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("cut", name)
            stage.cut(name, self.for_ms)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Running members change their subscription."""

    members: tuple[str, ...]
    topics: tuple[str, ...]
    pattern: str | None

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        _check_running(self.members, roster, inside(where, "subscribe"))
        for i, topic in enumerate(self.topics):
            roster.topic(topic, inside(inside(where, "topics"), i))

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("subscribe", name)
            stage.subscribe(name, self.topics, self.pattern)


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """An administrator removes members from the group. Their processes, if they run, join again."""

    members: tuple[str, ...]

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        for name, place in places(self.members, inside(where, "remove_member")):
            roster.has_joined(name, place)

    def apply(self, stage: Stage) -> None:
        for name in self.members:
            stage.changed("remove_member", name)
            stage.remove_member(name)


@dataclass(frozen=True, slots=True)
class LagView:
    """What the servers of the protocol show to a member is late by a time from now on; 0 ends that."""

    member: str
    by_ms: int

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        roster.has_joined(self.member, inside(inside(where, "lag_view"), "member"))

    def apply(self, stage: Stage) -> None:
        stage.changed("lag_view", self.member, f"by {format_duration(self.by_ms)}")
        stage.lag_view(self.member, self.by_ms)


LAG_VIEW_FIELDS = {
    "member": described("The member whose view is late.", TEXT),
    "by": described("By how much; 0s ends it.", DURATION),
}


def parse_lag_view(value: Any, extra: Mapping[str, Any], where: str) -> LagView:
    """Return the event of a late view."""
    no_more(extra, where)
    at = inside(where, "lag_view")
    fields = doc.mapping(value, at, LAG_VIEW_FIELDS)
    member = doc.required(fields, "member", at, "a member's id")
    by = doc.required(fields, "by", at, "a duration, for example 10s")
    return LagView(
        doc.text(member, inside(at, "member"), "a member's id"), parse_duration(by, inside(at, "by"))
    )


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """All running members are stopped and started, ``batch`` of them every ``every_ms``.

    Each is away for ``down_ms``. ``kill``: processes end without a LeaveGroup. With a ``surge`` new members
    under new names take the place of the old ones: so many of each batch start ``down_ms`` before the batch
    is stopped, the others ``down_ms`` after that. With ``assignors`` all members come back with these.
    """

    every_ms: int
    down_ms: int
    kill: bool = False
    batch: int = 1
    surge: int = 0
    assignors: tuple[str, ...] = ()

    @property
    def has_assignors(self) -> bool:
        """Whether members come back with assignors of their own."""
        return bool(self.assignors)

    def check(self, roster: Roster, where: str, at_ms: int) -> None:
        running = [name for name, runs in roster.running.items() if runs]
        if not running:
            at = inside(where, "rolling_restart")
            raise InputError(at, "no members at this time", "a group that has some")
        roster.check_overrides(Overrides(assignors=self.assignors), inside(where, "rolling_restart"))
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
        )


def parse_join(value: Any, extra: Mapping[str, Any], where: str) -> Join:
    """Return the new members of an event: one entry, or a list of entries."""
    no_more(extra, where)
    entries = [("join", value)]
    if isinstance(value, list):
        entries = [(inside("join", i), entry) for i, entry in enumerate(value)]
    members: list[Member] = []
    places: list[str] = []
    for place, entry in entries:
        for member in parse_members(entry, inside(where, place), None):
            members.append(member)
            places.append(place)
    if not members:
        raise doc.unexpected(inside(where, "join"), value, "at least one member")
    return Join(tuple(members), tuple(places))


def of_members(make: Callable[[tuple[str, ...]], Any], kind: str) -> Parse:
    """Return the parser of an event that names members and has no other fields."""

    def parse(value: Any, extra: Mapping[str, Any], where: str) -> Any:
        no_more(extra, where)
        return make(names(value, inside(where, kind)))

    return parse


def for_a_while(make: Callable[[tuple[str, ...], int], Any], kind: str) -> Parse:
    """Return the parser of an event that names members and lasts for a time."""

    def parse(value: Any, extra: Mapping[str, Any], where: str) -> Any:
        no_more(extra, where, "for")
        listed = names(value, inside(where, kind))
        lasting = doc.required(extra, "for", where, "how long it lasts, such as 70s")
        return make(listed, parse_duration(lasting, inside(where, "for"), at_least_ms=1))

    return parse


def parse_subscribe(value: Any, extra: Mapping[str, Any], where: str) -> Subscribe:
    """Return a change of subscriptions."""
    no_more(extra, where, "topics", "topics_pattern")
    listed = names(value, inside(where, "subscribe"))
    return Subscribe(listed, *parse_subscription(extra, where, None))


def parse_rolling_restart(value: Any, extra: Mapping[str, Any], where: str) -> RollingRestart:
    """Return a rolling restart."""
    no_more(extra, where)
    at = inside(where, "rolling_restart")
    fields = doc.mapping(value, at, ROLLING_RESTART_FIELDS)
    every = doc.required(fields, "every", at, "the time from one restart to the next, such as 20s")
    down = doc.required(fields, "down", at, "how long each member is away, such as 5s")
    kill = fields.get("kill", False)
    if not isinstance(kill, bool):
        raise doc.unexpected(inside(at, "kill"), kill, "true or false")
    surge = doc.whole(fields.get("surge", 0), inside(at, "surge"), low=0, high=MOST_MEMBERS)
    batch = doc.whole(fields.get("batch", max(surge, 1)), inside(at, "batch"), low=1, high=MOST_MEMBERS)
    if surge > batch:
        raise InputError(inside(at, "surge"), str(surge), f"at most the batch, {batch}")
    return RollingRestart(
        parse_duration(every, inside(at, "every"), at_least_ms=1),
        parse_duration(down, inside(at, "down")),
        kill,
        batch,
        surge,
        parse_assignors(fields.get("assignors", []), inside(at, "assignors")),
    )


def no_more(extra: Mapping[str, Any], where: str, *allowed: str) -> None:
    """Check that there are no other fields than the key of the kind and those allowed beside it."""
    for key in extra:
        if key not in allowed:
            expected = f"only {' and '.join(allowed)} beside it" if allowed else "no further fields"
            found = f"the unknown field {doc.describe(key)}"
            raise InputError(inside(where, key), found, expected + close_to(key, allowed))


def names(
    value: Any, where: str, what: str = "a member's id", once: str = "each member once"
) -> tuple[str, ...]:
    """Return the names of members or topics: one, or those of a list."""
    if not isinstance(value, list):
        return (doc.text(value, where, f"{what}, or a list"),)
    if not value:
        raise doc.unexpected(where, value, f"{what} at least")
    listed = tuple(doc.text(name, inside(where, i), what) for i, name in enumerate(value))
    for i, name in enumerate(listed):
        if name in listed[:i]:
            raise InputError(inside(where, i), f"{name!r} twice", once)
    return listed


def places(listed: Sequence[str], where: str) -> Iterator[tuple[str, str]]:
    """Yield each name with its place. That of a single name is the place of the field."""
    for i, name in enumerate(listed):
        yield name, where if len(listed) == 1 else inside(where, i)


def _check_running(members: Sequence[str], roster: Roster, where: str) -> None:
    for name, place in places(members, where):
        roster.is_running(name, place)
