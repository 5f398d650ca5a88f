"""The members and topics at the time of an event, as far as they follow from the document."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import inside
from coordinator_core.reading.suggestions import close_to
from rebalance_lab.scenarios.overrides import Overrides, Surroundings


class NewNames:
    """The names of members that take the place of others: c-2 after c, c-3 after c-2."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def after(self, name: str, taken: Container[str]) -> str:
        """Return a name that is not taken, for the member that replaces another one."""
        first = self._first.get(name, name)
        number = 2
        while (new := f"{first}-{number}") in taken:
            number += 1
        self._first[new] = first
        return new


@dataclass
class Roster:
    """Members (running or stopped) and topics (partition counts). Each event updates them."""

    topics: dict[str, int]
    duration_ms: int
    surroundings: Surroundings | None = None
    brokers: int = 1
    running: dict[str, bool] = field(default_factory=dict)
    why_stopped: dict[str, str] = field(default_factory=dict)
    _deleted: dict[str, None] = field(default_factory=dict)
    _new_names: NewNames = field(default_factory=NewNames)
    _changes: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    _order: int = 0

    def check_overrides(self, overrides: Overrides, where: str) -> None:
        """Check the settings and assignors of a member."""
        if self.surroundings is not None:
            self.surroundings.check(overrides, where)

    def has_broker(self, broker: int | None, where: str) -> None:
        """Check the number of a broker, None if there is none to check.

        Raises:
            InputError: if there is no such broker.
        """
        if broker is not None and broker >= self.brokers:
            raise InputError(
                where, str(broker), f"a number below {self.brokers}, the brokers of the scenario"
            )

    def advance(self, at_ms: int) -> None:
        """Make the changes before a time that earlier events have begun."""
        while self._changes and self._changes[0][0] < at_ms:
            heappop(self._changes)[2]()

    def replaced(self, member: str, from_ms: int, until_ms: int, why: str) -> None:
        """Let a new member take the place of one that still runs then, which stops at ``until_ms``."""

        def begin() -> None:
            if self.running[member]:
                self.running[self._new_names.after(member, self.running)] = True
                self._later(until_ms, end)

        def end() -> None:
            if self.running[member]:
                self.stopped(member, "", why)

        self._later(from_ms, begin)

    def _later(self, at_ms: int, change: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._changes, (at_ms, self._order, change))

    def started(self, member: str, where: str) -> None:
        """Add a member.

        Raises:
            InputError: if the member is in the group already.
        """
        if self.running.get(member):
            raise InputError(where, repr(member), "a member that is not already in the group")
        self.running[member] = True

    def stopped(self, member: str, where: str, why: str) -> None:
        """Remove a member. ``why`` is kept for errors of later events.

        Raises:
            InputError: if the member never joined, or has stopped already.
        """
        self.is_running(member, where)
        self.running[member] = False
        self.why_stopped[member] = why

    def restarted(self, member: str, where: str) -> None:
        """Add a member again.

        Raises:
            InputError: if the member never joined.
        """
        self.has_joined(member, where)
        self.running[member] = True

    def has_joined(self, member: str, where: str) -> None:
        """Check that a member has joined by this time. It may have stopped since.

        Raises:
            InputError: if the member never joined.
        """
        if member not in self.running:
            raise InputError(where, f"{member!r}, which never joined", self._some_of(self.running, member))

    def is_running(self, member: str, where: str) -> None:
        """Check that a member is in the group at this time.

        Raises:
            InputError: if the member never joined, or has stopped.
        """
        self.has_joined(member, where)
        if not self.running[member]:
            found = f"{member!r}, which is not running ({self.why_stopped[member]})"
            raise InputError(where, found, self._some_of(self.running, member))

    def _some_of(self, running: Mapping[str, bool], member: str) -> str:
        present = [name for name, runs in running.items() if runs]
        if not present:
            return "a member of the group, which is empty at this time"
        shown = ", ".join(present[:8]) + (", ..." if len(present) > 8 else "")
        return f"a member of the group at this time: {shown}{close_to(member, present)}"

    def topic_created(self, name: str, partitions: int, where: str) -> None:
        """Add a topic.

        Raises:
            InputError: if a topic has, or had, that name.
        """
        if name in self.topics or name in self._deleted:
            found = f"{name!r}, which {'exists' if name in self.topics else 'was deleted'}"
            raise InputError(where, found, "a name that no topic has had before")
        self.topics[name] = partitions

    def topic_deleted(self, name: str, where: str) -> None:
        """Remove a topic.

        Raises:
            InputError: if there is no topic of that name.
        """
        self.topic(name, where)
        del self.topics[name]
        self._deleted[name] = None

    def has_topics(self, names: Iterable[str], where: str) -> None:
        """Check that the topics of a subscription exist. ``where`` is the place of the subscription.

        Raises:
            InputError: if there is no topic of one of the names.
        """
        for i, name in enumerate(names):
            self.topic(name, inside(inside(where, "topics"), i))

    def topic(self, name: str, where: str) -> int:
        """Return the partition count of a topic.

        Raises:
            InputError: if there is no topic of that name.
        """
        if name not in self.topics:
            listed = list(self.topics)
            shown = ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "")
            found = (
                f"the topic {name!r}, which was deleted"
                if name in self._deleted
                else f"the unknown topic {name!r}"
            )
            raise InputError(where, found, f"one of {shown or '(no topics)'}{close_to(name, listed)}")
        return self.topics[name]
