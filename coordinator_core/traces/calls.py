"""The members that a group lost while the application ran a callback of a rebalance."""

from collections import Counter
from dataclasses import dataclass, field

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.traces.trace import Trace

ON_REVOKED, ON_ASSIGNED = "on_revoked", "on_assigned"
POLLS, SESSION = "max.poll.interval.ms", "the session"

_BY_DEADLINES = ("max.poll.interval.ms", "session", "timeout")
"""Parts of the reasons for which a member is removed that is late."""


@dataclass
class Calls:
    """The members that a group lost during callbacks.

    ``lost`` has their names, once for each time, by the callback and what it outlasted. ``removals`` are the
    numbers of the events by which they were removed.
    """

    lost: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    removals: set[int] = field(default_factory=set)


def calls_of(trace: Trace, family: ProtocolSpec) -> Calls:
    """Return the members that were removed, because they were late, while the application ran a callback.

    A consumer that has given up partitions to join a round, and is about to send its request, is in the
    callback of that: one that is sent at once is answered, and its member not removed for its session.
    """
    reader = _Reader(family)
    if any(isinstance(line.event, ev.MemberRemoved) and _is_late(line.event) for line in trace.events):
        for number, line in enumerate(trace.events):
            reader.see(number, line.event)
    return reader.found


class _Reader:
    """The callbacks that run, as of the last event.

    ``_last`` has the last callback of each consumer that runs, ``_called`` those that have not returned.
    """

    def __init__(self, family: ProtocolSpec) -> None:
        self.found = Calls()
        self._joining = family.members_join
        self._last: dict[str, str] = {}
        self._called: dict[str, str] = {}
        self._client_of: dict[str, str] = {}

    def see(self, number: int, event: ev.Event) -> None:
        """Take over the next event."""
        match event:
            case ev.MemberStarted() | ev.MemberResumed() | ev.MemberReconnected():
                self._last[event.client] = ""
                self._called.pop(event.client, None)
            case ev.MemberStopped() | ev.ConsumerFailed() | ev.MemberPaused() | ev.MemberCutOff():
                self._last.pop(event.client, None)
                self._called.pop(event.client, None)
            case ev.Joined() | ev.WorkStarted():
                self._called.pop(event.client, None)
                if isinstance(event, ev.Joined):
                    self._client_of[event.member_id] = event.client
            case ev.MemberRemoved() if _is_late(event):
                self._removed(number, event)
            case _:
                self._see_call(event)

    def _see_call(self, event: ev.Event) -> None:
        match event:
            case ev.Revoked():
                self._last[event.client] = ON_REVOKED
            case ev.Assigned():
                if event.added:
                    self._last[event.client] = ON_ASSIGNED
                self._called.pop(event.client, None)
            case ev.ClientStateChanged() if event.after in self._joining:
                if self._last.get(event.client) == ON_REVOKED:
                    self._called[event.client] = ON_REVOKED
            case ev.WorkStopped() if event.why == "callback" and self._last.get(event.client):
                self._called[event.client] = self._last[event.client]

    def _removed(self, number: int, event: ev.MemberRemoved) -> None:
        client = self._client_of.pop(event.member_id, "")
        if client in self._called:
            key = self._called[client], SESSION if "session" in event.reason else POLLS
            self.found.lost.setdefault(key, Counter())[client] += 1
            self.found.removals.add(number)


def _is_late(event: ev.MemberRemoved) -> bool:
    return any(part in event.reason for part in _BY_DEADLINES)
