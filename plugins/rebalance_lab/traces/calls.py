"""The members that dropped out of a group because they polled too late, mostly in a callback."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.invariants import OUTSIDE
from rebalance_lab.traces.trace import Trace

ON_REVOKED, ON_ASSIGNED = "on_revoked", "on_assigned"
POLLS, SESSION = "max.poll.interval.ms", "the session"

_JOINS = ("changed its metadata", "rejoined")
"""Parts of the causes of rounds that begin as a known member joins."""

_BY_DEADLINES = ("max.poll.interval.ms", "session", "timeout")
"""Parts of the reasons for which a member is removed that is late."""

_MOST_BATCHES = 4
"""Batches of which more than this number fit in max.poll.interval.ms are not the reason of missed polls."""


class Outlasted(NamedTuple):
    """A callback, the deadline that it outlasts, and whether the group still counted on the members then.

    It does on static members, which give up their membership without leaving the group.
    """

    callback: str
    deadline: str
    counted: bool = False


@dataclass
class Calls:
    """The members that dropped out of a group.

    ``lost`` has their names, once for each time, by the callback that they ran. ``missed`` has those that ran
    none, as a batch outlasted max.poll.interval.ms, by their applications: the mean time of a batch,
    max.poll.records and max.poll.interval.ms. ``late`` has the static members that ran a callback while a
    round ended without them, and started another one when they joined.
    """

    lost: dict[Outlasted, Counter[str]] = field(default_factory=dict)
    missed: dict[tuple[int, int, int], Counter[str]] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)


def calls_of(trace: Trace, family: ProtocolSpec) -> Calls:
    """Return the members that dropped out because they were late."""
    return _Reader(family).read(trace)


class _Reader:
    """The callbacks that run, as of the last event.

    ``_last`` has the last callback of each consumer that runs, ``_called`` those that have not returned.
    ``_holds`` are the consumers that own partitions, ``_behind`` those without which the last round ended.
    ``_id_of`` has the last id of each consumer, ``_client_of`` the consumers by the ids that the group counts
    on, and ``_gone`` the ids that their consumers have given up. ``_cut_off`` are those without connections,
    ``_paused`` those that stand still. ``_batches`` are those of their applications.
    """

    def __init__(self, family: ProtocolSpec) -> None:
        self._found = Calls()
        self._joining = family.members_join
        self._last: dict[str, str] = {}
        self._called: dict[str, str] = {}
        self._id_of: dict[str, str] = {}
        self._client_of: dict[str, str] = {}
        self._gone: set[str] = set()
        self._static: set[str] = set()
        self._holds: set[str] = set()
        self._behind: set[str] = set()
        self._cut_off: set[str] = set()
        self._paused: set[str] = set()
        self._batches: dict[str, ev.ApplicationStarted] = {}
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            ev.MemberStarted: self._member_started,
            ev.ApplicationStarted: self._application_started,
            ev.MemberResumed: self._resumed,
            ev.MemberRemoved: self._removed,
            ev.ClientStateChanged: self._state_changed,
            ev.MemberCutOff: lambda e: self._cut_off.add(e.client),
            ev.MemberReconnected: lambda e: self._cut_off.discard(e.client),
            **dict.fromkeys((ev.MemberStopped, ev.ConsumerFailed, ev.MemberPaused), self._stand_still),
            ev.Joined: self._joined,
            ev.GenerationStarted: self._generation_started,
            ev.GroupStateChanged: self._round_began,
            ev.MemberReplaced: self._member_replaced,
            ev.CoordinatorElected: self._coordinator_elected,
            ev.Revoked: self._revoked,
            ev.Lost: lambda e: self._holds.discard(e.client),
            ev.Assigned: self._assigned,
            ev.WorkStopped: self._work_stopped,
            ev.WorkStarted: lambda e: self._returned(e.client),
        }

    def read(self, trace: Trace) -> Calls:
        """Return what the trace has."""
        for line in trace.events:
            handler = self._handlers.get(type(line.event))
            if handler is not None:
                handler(line.event)
        return self._found

    def _member_started(self, event: ev.MemberStarted) -> None:
        (self._static.add if event.instance_id else self._static.discard)(event.client)
        self._holds.discard(event.client)
        self._cut_off.discard(event.client)
        self._paused.discard(event.client)
        self._batches.pop(event.client, None)
        self._end_call(event.client)

    def _application_started(self, event: ev.ApplicationStarted) -> None:
        self._batches[event.client] = event

    def _resumed(self, event: ev.MemberResumed) -> None:
        self._paused.discard(event.client)
        self._end_call(event.client)

    def _end_call(self, client: str) -> None:
        self._last[client] = ""
        self._returned(client)

    def _returned(self, client: str) -> None:
        self._called.pop(client, None)

    def _stand_still(self, event: ev.MemberStopped | ev.ConsumerFailed | ev.MemberPaused) -> None:
        self._last.pop(event.client, None)
        self._returned(event.client)
        if isinstance(event, ev.MemberPaused):
            self._paused.add(event.client)
        else:
            self._batches.pop(event.client, None)

    def _joined(self, event: ev.Joined) -> None:
        self._id_of[event.client] = event.member_id
        self._client_of[event.member_id] = event.client
        self._gone.discard(event.member_id)
        if self._joining:  # a member that joins no rounds goes on with its call
            self._returned(event.client)
        self._behind.discard(event.client)

    def _generation_started(self, event: ev.GenerationStarted) -> None:
        clients = [self._client_of.get(member_id, "") for member_id in event.members]
        self._behind = {c for c in clients if c in self._static and self._called.get(c) == ON_REVOKED}

    def _round_began(self, event: ev.GroupStateChanged) -> None:
        """Note a member without which the last round ended, if its join is the cause of this one."""
        if not any(part in event.cause for part in _JOINS):
            return
        for client in [c for c in self._behind if self._id_of[c] in event.cause]:
            self._behind.discard(client)
            self._found.late[client] += 1

    def _member_replaced(self, event: ev.MemberReplaced) -> None:
        self._client_of.pop(event.old_member_id, None)

    def _coordinator_elected(self, event: ev.CoordinatorElected) -> None:
        self._client_of = {i: c for i, c in self._client_of.items() if i in event.members}

    def _revoked(self, event: ev.Revoked) -> None:
        self._last[event.client] = ON_REVOKED
        self._returned(event.client)
        self._holds.discard(event.client)

    def _assigned(self, event: ev.Assigned) -> None:
        if event.added:
            self._last[event.client] = ON_ASSIGNED
        if event.called:
            self._returned(event.client)
            if not event.owned:
                self._last[event.client] = ON_ASSIGNED
        (self._holds.add if event.owned else self._holds.discard)(event.client)

    def _work_stopped(self, event: ev.WorkStopped) -> None:
        if event.why == "callback" and self._last.get(event.client):
            self._called[event.client] = self._last[event.client]

    def _state_changed(self, event: ev.ClientStateChanged) -> None:
        client = event.client
        counts = client in self._holds or client in self._called
        if event.after == OUTSIDE and counts and self._id_of.get(client) in self._client_of:
            self._dropped_out(client)

    def _dropped_out(self, client: str) -> None:
        """Note a member that has given up its membership, while the group counts on it, as it has not polled.

        One that closes or unsubscribes gives up its partitions before.
        """
        self._gone.add(self._id_of[client])
        if client in self._called:
            self._note(Outlasted(self._called[client], POLLS, client in self._static), client)
        else:
            self._missed_poll(client)

    def _removed(self, event: ev.MemberRemoved) -> None:
        client, is_gone = self._client_of.pop(event.member_id, ""), event.member_id in self._gone
        call = ""
        if self._id_of.get(client) == event.member_id:  # not an earlier one, of a process that has ended
            call = "" if client in self._cut_off else self._called.get(client, "")
        if call and not is_gone and any(part in event.reason for part in _BY_DEADLINES):
            self._note(Outlasted(call, SESSION if "session" in event.reason else POLLS), client)
        is_known = call or is_gone or client not in self._holds
        if not is_known and (POLLS in event.reason or (client in self._static and "session" in event.reason)):
            self._missed_poll(client)  # a static member does not leave: its session expires

    def _missed_poll(self, client: str) -> None:
        """Note a member that has not polled, if its batches may be the reason."""
        batches = self._batches.get(client)
        if batches is None or client in self._paused or client in self._cut_off:
            return
        if batches.batch_ms * _MOST_BATCHES >= batches.max_poll_interval_ms:
            key = batches.batch_ms, batches.max_poll_records, batches.max_poll_interval_ms
            self._found.missed.setdefault(key, Counter())[client] += 1

    def _note(self, outlasted: Outlasted, client: str) -> None:
        self._found.lost.setdefault(outlasted, Counter())[client] += 1
