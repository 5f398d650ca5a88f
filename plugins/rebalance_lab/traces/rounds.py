"""The story of a run: its rounds, with the changes of every member, and the occurrences between them.

A change belongs to the generation that it prepares or carries out: partitions that an eager member revokes
before it joins, and those that a cooperative member revokes for its assignment. A change without a round is
an occurrence: a consumer that closes, one that finds out that it was removed, and a static member that comes
back.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coordinator_core.client.subscription import partition_map
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.partition_maps import difference, intersection, union
from coordinator_core.reading.partitions import listed
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.entries import Entry, InitialGroup, MemberRound, Occurrence, Round
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.phases import Phase, seen_first
from rebalance_lab.traces.round_stops import RoundStops
from rebalance_lab.traces.timeline import Change, Timeline
from rebalance_lab.traces.trace import Trace
from rebalance_lab.traces.waits import Waits

_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID = re.compile(f"-{_ID}|{_ID}-")
_MEMBER_ID = re.compile(rf"\S+-{_ID}|{_ID}-[^\s,;:]+")

_STEPS = (ev.Joined, ev.Assigned, ev.MemberStarted, ev.MemberStopped, ev.ConsumerFailed)
"""The events of a consumer after a `Revoked` or `Lost` that show what it gave up its partitions for."""

_LATE_MS = 100
"""A change of a member that comes later than this after its reason is described with the delay."""


def entries(trace: Trace, registry: Registry | None = None) -> list[Entry]:
    """Return the rounds of a run and the occurrences, in order; an initial group comes first."""
    return _read(trace, registry).entries


def observed_rounds(
    trace: Trace, timeline: Timeline, registry: Registry | None = None
) -> Callable[[], list[Round]]:
    """Let the reader of the rounds observe a timeline, before another reader applies the trace to it.

    The function that it returns returns the rounds; call it after the last event.
    """
    reader = _Reader(family_of(trace.started, registry), trace, timeline)

    def found() -> list[Round]:
        reader.finish()
        return reader.rounds

    return found


def rounds(trace: Trace, registry: Registry | None = None) -> list[Round]:
    """Return the rounds of a run."""
    return rounds_and_rest(trace, registry)[0]


def rounds_and_rest(
    trace: Trace, registry: Registry | None = None, *, from_ms: int = 0
) -> tuple[list[Round], int]:
    """Return the rounds of a run, and the sum of the stops that none of them ended, in milliseconds.

    Of all stops, the time from ``from_ms`` on counts.
    """
    reader = _read(trace, registry, from_ms)
    found = reader.rounds
    return found, reader.counted_ms - sum(entry.stopped_ms for entry in found)


def _read(trace: Trace, registry: Registry | None, from_ms: int = 0) -> "_Reader":
    timeline = Timeline()
    reader = _Reader(family_of(trace.started, registry), trace, timeline, from_ms)
    timeline.read(trace)
    reader.finish()
    return reader


def _steps(trace: Trace) -> list[ev.Event | None]:
    """Return, for each event that gives up partitions, what its consumer does next."""
    following: dict[str, ev.Event] = {}
    steps: list[ev.Event | None] = []
    for line in reversed(trace.events):
        event = line.event
        if isinstance(event, (ev.Revoked, ev.Lost)):
            steps.append(following.get(event.client))
        if isinstance(event, _STEPS):
            following[event.client] = event
    return steps[::-1]


class _Reader:
    def __init__(self, family: ProtocolSpec, trace: Trace, timeline: Timeline, from_ms: int = 0) -> None:
        self.entries: list[Entry] = []
        joined = [line.event for line in trace.events if isinstance(line.event, ev.Joined)]
        self._names = {event.member_id: event.client for event in joined}
        self._joins = {(event.client, event.generation) for event in joined}
        self._family = family
        self._now = timeline
        self._stops = RoundStops(timeline, family, from_ms)
        self._last_owner: dict[TopicPartition, str] = {}
        self._waits = Waits(timeline, family)
        timeline.after.append(self._see)
        self._steps = iter(_steps(trace))
        self._step: ev.Event | None = None
        self._round: Round | None = None
        self._protocol = ""
        self._of_generation: dict[int, Round] = {}
        self._taken_over: dict[tuple[str, int], None] = {}
        self._round_of: dict[str, Round] = {}
        self._phase = Phase()
        self._for_next_round: list[ev.Revoked] = []
        self._initial: InitialGroup | None = None
        self._coordinator_failed = False
        self._change_of: dict[str, Occurrence] = {}
        self._return_of: dict[str, Occurrence] = {}
        self._given_up: Mapping[TopicPartition, int] = {}
        self._moved_from: list[str] = []
        self._handlers: dict[type[Any], Callable[[Any], object]] = {
            ev.GroupStateChanged: self._state_changed,
            ev.GenerationStarted: self._generation_started,
            ev.AssignmentComputed: self._assignment_computed,
            ev.MemberAdded: self._member_added,
            ev.MemberReplaced: self._member_replaced,
            ev.MemberRemoved: self._member_removed,
            ev.ClientStateChanged: lambda e: self._arrived(e.client),
            ev.Joined: lambda e: self._change_of.pop(e.client, None),
            ev.Revoked: self._revoked,
            ev.Lost: self._lost,
            ev.Assigned: self._assigned,
            ev.WorkStarted: lambda e: self._stops.count(self._round_of.get(e.client)),
            ev.ConsumerFailed: lambda e: self._occurred(f"{e.client} failed: {e.error}"),
            ev.Changed: self._changed,
            ev.MemberStopped: self._member_stopped,
            ev.MemberPaused: self._stood_still,
            ev.MemberCutOff: self._stood_still,
            ev.MemberResumed: self._goes_on,
            ev.MemberReconnected: self._goes_on,
            ev.PartitionsAdded: lambda e: self._add(e.topic, f", which has {e.partitions} partitions now"),
            ev.SubscriptionChanged: lambda e: self._add(e.client, f" to {', '.join(e.topics) or 'nothing'}"),
            ev.CoordinatorFailed: self._coordinator_stopped,
            ev.CoordinatorElected: self._coordinator_elected,
            **{k: self._notified if k.is_notice else self._told for k in family.sentences},
        }

    @property
    def counted_ms(self) -> int:
        """The sum of all stops, after the last event."""
        return self._stops.counted_ms

    @property
    def rounds(self) -> list[Round]:
        """The entries that are rounds."""
        return [entry for entry in self.entries if isinstance(entry, Round)]

    def finish(self) -> None:
        """Complete the entries, after the last event."""
        if self._under_way is not None and not self._under_way.generation:
            self._under_way.joined, self._under_way.left = list(self._phase.joined), self._phase.left
        waits = self._waits.of_rounds()
        self._stops.finish()
        for entry in self.rounds:
            until_ms = entry.began_ms + (entry.waited_ms or 0)
            entry.idle_meanwhile_ms = self._stops.shared_ms(entry.began_ms, until_ms)
            own = waits.get(entry.began_ms, {})
            if sum(own.values()) == entry.waited_ms and not entry.was_empty:
                entry.waits = own

    def _see(self, change: Change) -> None:
        event = change.event
        if isinstance(event, (ev.Revoked, ev.Lost)):
            self._step = next(self._steps)
        self._stops.see(change)
        moved = self._moved(change)
        if self._initial is not None and self._is_initial(event, self._initial):
            return
        handler = self._handlers.get(type(event))
        if handler is not None:
            self._given_up, self._moved_from = change.given_up, moved
            handler(event)

    def _moved(self, change: Change) -> list[str]:
        """Return the last owner of each partition that an event has given to another consumer."""
        moved = []
        for partition in change.taken:
            before = self._last_owner.get(partition)
            self._last_owner[partition] = client = change.event.client  # type: ignore[union-attr]
            if before not in (None, client):
                moved.append(before)
        return moved

    def _is_initial(self, event: ev.Event, group: InitialGroup) -> bool:
        """Note what an event reports of the initial group, and whether it reports nothing else."""
        if self._now.at_ms > group.at_ms or isinstance(event, ev.GroupStateChanged):
            self._initial = None
        elif isinstance(event, ev.Joined):
            group.protocol = event.protocol
            group.leader = event.client if event.leader else group.leader
        elif isinstance(event, ev.Assigned):
            group.owned[event.client] = event.owned
            return True
        return False

    def _occurred(self, text: str) -> Occurrence:
        occurrence = Occurrence(self._now.at_ms, text)
        self.entries.append(occurrence)
        return occurrence

    def _name(self, member_id: str) -> str:
        return self._names.get(member_id) or _UUID.sub("", member_id)

    # --- the group

    @property
    def _under_way(self) -> Round | None:
        entry = self._round
        return entry if entry is not None and entry.stable_ms is None and not entry.aborted else None

    def _assignment_computed(self, event: ev.AssignmentComputed) -> None:
        if self._under_way is not None:
            self._under_way.report = event.report

    def _member_added(self, event: ev.MemberAdded) -> None:
        name = self._name(event.member_id)
        self._arrived(name)
        self._phase.joined[name] = None

    def _member_replaced(self, event: ev.MemberReplaced) -> None:
        name = self._names.get(event.new_member_id, event.instance_id)
        self._arrived(name)
        self._return_of[name] = self._occurred(f"{name} is back under its instance id")

    def _member_removed(self, event: ev.MemberRemoved) -> None:
        name = self._name(event.member_id)
        self._phase.left[name], self._phase.left_ms[name] = event.reason, self._now.at_ms

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        cause = self._with_reason(self._in_names(event.cause))
        entry = self._under_way
        if event.after in self._family.round_begins:
            if entry is not None and (self._family.own_epochs or not entry.generation):
                entry.causes.append(cause)
                return
            self._abort(cause)
            rest = min(self._family.at_rest)
            self._begin(
                Round(self._now.at_ms, [cause], was_empty=event.before in self._family.vacant, rest=rest)
            )
        elif event.after in self._family.at_rest and entry is not None:
            entry.stable_ms, entry.rest = self._now.at_ms, event.after
        elif event.after in self._family.vacant:
            self._emptied(event.after, cause)

    def _in_names(self, cause: str) -> str:
        """Write a cause with the names of consumers. Of two reasons for a join, keep that of the member."""
        named = _MEMBER_ID.sub(lambda found: self._name(found[0]), cause)
        return named.replace(" changed its metadata (", " joined again (")

    def _with_reason(self, cause: str) -> str:
        """Add the reason for which members left: ``c1 left (the consumer is being closed)``."""
        reasons = [why for why in self._phase.left_at(self._now.at_ms).values() if why != "left"]
        return f"{cause} ({reasons[0]})" if reasons and cause.endswith(" left") else cause

    def _begin(self, entry: Round) -> None:
        self._round = entry
        self.entries.append(entry)
        if self._family.servers is not None:
            self._continue_generation(entry)
        waiting, self._for_next_round = self._for_next_round, []
        for event in waiting:
            self._gave_up(event, entry)

    def _continue_generation(self, entry: Round) -> None:
        """Begin a round in the present generation. It has the next one if members come or go."""
        entry.generation, entry.protocol = self._now.generation, self._protocol
        self._of_generation[entry.generation] = entry
        self._taken_over = {key: None for key in self._taken_over if key[1] != entry.generation}

    def _abort(self, why: str) -> None:
        entry = self._under_way
        if entry is None:
            return
        entry.aborted, entry.aborted_ms = why, self._now.at_ms
        if not entry.generation:
            entry.joined, entry.left = list(self._phase.joined), self._phase.left
            self._phase = Phase()

    def _emptied(self, state: str, cause: str) -> None:
        """End the round. A round that begins as the last member leaves, and has no other, is none."""
        entry = self._under_way
        if entry is not None and not entry.generation and self._is_last_leave(entry):
            self.entries.remove(entry)
            cause = entry.causes[-1]
        self._abort(f"the group is {state}")
        self._round, self._phase = None, Phase()
        self._occurred(f"the group is {state}: {cause}")

    def _is_last_leave(self, entry: Round) -> bool:
        left = self._phase.left_at(entry.began_ms)
        return bool(left) and left == self._phase.left and not (entry.members or self._phase.joined)

    def _generation_started(self, event: ev.GenerationStarted) -> None:
        entry = self._under_way
        if entry is None:
            return
        phase, self._phase = self._phase, Phase()
        members = [self._name(member_id) for member_id in event.members]
        entry.generation, entry.protocol = event.generation, event.protocol
        entry.generations.append(event.generation)
        self._protocol = event.protocol
        entry.leader = self._name(event.leader)
        entry.joined = [name for name in {**dict.fromkeys(entry.joined), **phase.joined} if name in members]
        entry.left |= phase.left
        if self._family.servers is not None and phase.left and len(entry.causes) == 1:
            entry.causes = [seen_first(entry.causes[0], phase.left)]
        entry.returned = [name for name in entry.left if name in members]
        entry.waited_ms = self._now.at_ms - entry.began_ms
        self._of_generation[event.generation] = entry
        if entry.was_empty or self._family.own_epochs:
            return
        absent = [name for name in members if self._is_absent(name, event.generation, phase, entry)]
        if 0 < len(absent) < len(members):
            entry.waited_for = dict.fromkeys(absent, "did not join")
        else:
            entry.waited_for = phase.waited_for(entry.began_ms, self._now.at_ms, members)

    def _is_absent(self, name: str, generation: int, phase: Phase, entry: Round) -> bool:
        """Return whether a member is in a generation that it has not joined."""
        return (name, generation) not in self._joins and phase.arrived_ms.get(name, 0) < entry.began_ms

    def _round_in(self, generation: int) -> Round | None:
        """Return the round of a generation, or the present one if members have epochs of their own."""
        if self._family.own_epochs and self._under_way is not None:
            return self._under_way
        return self._of_generation.get(generation)

    # --- members

    def _notified(self, event: Any) -> None:
        entry = self._under_way
        if entry is not None:
            text = self._sentence(event)
            entry.notices[text] = entry.notices.get(text, 0) + 1

    def _sentence(self, event: ev.Event) -> str:
        return self._family.sentences[type(event)](event)

    def _told(self, event: Any) -> None:
        """Note what the family tells of a member, in the round that is under way."""
        entry = self._under_way
        if entry is None:
            self._occurred(f"{event.client}: {self._sentence(event)}")
            return
        after_ms = self._now.at_ms - entry.began_ms
        note = f"{self._sentence(event)} (after {after_ms / 1_000:.3g} s)"
        entry.members.setdefault(event.client, MemberRound()).notes.append(note)

    def _arrived(self, name: str) -> None:
        self._phase.arrived_ms[name] = self._now.at_ms

    def _revoked(self, event: ev.Revoked) -> None:
        """Partitions are revoked before the consumer joins, for an assignment, or because it closes."""
        step = self._step
        if isinstance(step, ev.Joined):
            self._phase.gave_up.add(event.client)
        if isinstance(step, (ev.Joined, ev.Assigned)):
            entry = self._round_in(step.generation) or self._under_way
            if entry is None:
                self._for_next_round.append(event)
            else:
                self._gave_up(event, entry)
        elif step is None and self._under_way is not None:
            self._gave_up(event, self._under_way)
        else:
            self._closed(event)

    def _lost(self, event: ev.Lost) -> None:
        """A consumer finds out between rounds, or in one, that it is no longer the owner of partitions."""
        entry = self._under_way
        if isinstance(self._step, ev.Assigned):
            entry = self._round_in(self._step.generation) or entry
        if entry is None or isinstance(self._step, (ev.MemberStarted, ev.MemberStopped, ev.ConsumerFailed)):
            self._occurred(f"{event.client} lost {listed(event.partitions)}")
        else:
            self._gave_up(event, entry)

    def _closed(self, event: ev.Revoked) -> None:
        change = self._change_of.get(event.client)
        revoked = f"revoked {listed(event.partitions)}"
        if change is None:
            self._occurred(f"{event.client} {revoked}")
            return
        delay_ms = self._now.at_ms - change.at_ms
        closed = "closed first and " if change.text.startswith("restart ") else ""
        change.text += f", which {closed}{revoked}" + (
            f" after {delay_ms / 1_000:g} s" if delay_ms >= _LATE_MS else ""
        )

    def _gave_up(self, event: ev.Revoked | ev.Lost, entry: Round) -> None:
        member = entry.members.setdefault(event.client, MemberRound())
        new = difference(difference(member.assigned, member.revoked), member.lost)
        owned_before = difference(event.partitions, new)
        member.held = union(member.held, intersection(event.partitions, new))
        if isinstance(event, ev.Revoked):
            member.revoked = union(member.revoked, owned_before)
        else:
            member.lost = union(member.lost, owned_before)
        member.assigned = difference(member.assigned, event.partitions)
        member.kept = difference(member.kept, event.partitions)

    def _assigned(self, event: ev.Assigned) -> None:
        """Take over an assignment of a round, or that of a static member that has come back without one."""
        key = (event.client, event.generation)
        again = key in self._taken_over and not self._family.own_epochs
        entry = None if again else self._round_in(event.generation)
        self._taken_over[key] = None
        if entry is None:
            self._round_of.pop(event.client, None)
            self._taken_back(event)
            return
        member = entry.members.setdefault(event.client, MemberRound())
        member.assigned = union(member.assigned, event.added)
        member.kept = difference(event.owned, member.assigned)
        member.held = difference(member.held, event.added)
        entry.taken_over_ms, entry.taken_over_by = self._now.at_ms, event.client
        self._round_of[event.client] = entry
        entry.moved += len(self._moved_from)
        for before in self._moved_from:
            to = entry.moves.setdefault(before, {})
            to[event.client] = to.get(event.client, 0) + 1
        self._stops.count(entry)

    def _taken_back(self, event: ev.Assigned) -> None:
        back = self._return_of.pop(event.client, None)
        longest_ms = max((stop.until_ms - stop.from_ms for stop in self._stops.ended), default=0)
        stopped = f" after {longest_ms / 1_000:.3g} s without work on them" if longest_ms else ""
        text = f"{listed(event.owned) or 'nothing'} without a round{stopped}"
        if back is not None:
            back.text += f" and owns {text}"
        elif event.owned:
            self._occurred(f"{event.client} owns {text}")

    # --- changes from outside

    def _changed(self, event: ev.Changed) -> None:
        cause = f" ({event.cause})" if event.cause else ""
        self._change_of[event.target] = self._occurred(f"{event.kind} {event.target}{cause}")

    def _member_stopped(self, event: ev.MemberStopped) -> None:
        if event.how != "closed":
            self._name_owner(event.client, self._given_up)

    def _stood_still(self, event: ev.MemberPaused | ev.MemberCutOff) -> None:
        consumer = self._now.consumers.get(event.client)
        self._name_owner(event.client, consumer.owned if consumer is not None else ())

    def _goes_on(self, event: ev.MemberResumed | ev.MemberReconnected) -> None:
        if ended := self._stops.ended:
            longest_ms = max(stop.until_ms - stop.since_ms for stop in ended)
            owned = partition_map(stop.partition for stop in ended)
            self._add(event.client, f", after {longest_ms / 1_000:.3g} s without work on {listed(owned)}")

    def _coordinator_stopped(self, event: ev.CoordinatorFailed) -> None:
        self._coordinator_failed = True
        if self._family.servers is None:
            self._abort(f"broker {event.node} failed")
        if f"broker {event.node}" not in self._change_of:
            self._occurred(f"broker {event.node} failed")

    def _coordinator_elected(self, event: ev.CoordinatorElected) -> None:
        """Note the new coordinator. One that no other has preceded has the group that runs already."""
        if event.group_state and not self._coordinator_failed:
            self._initial = InitialGroup(self._now.at_ms, event.generation)
            self.entries.append(self._initial)
        else:
            self._abort(f"broker {event.node} is the coordinator now")
            self._occurred(f"broker {event.node} is the coordinator now")

    def _add(self, target: str, text: str) -> None:
        """Add to the text of a change what it did to its target at the same time."""
        change = self._change_of.get(target)
        if change is not None and change.at_ms == self._now.at_ms:
            change.text += text

    def _name_owner(self, client: str, owned: Iterable[TopicPartition]) -> None:
        if numbers := partition_map(owned):
            self._add(client, f", the owner of {listed(numbers)}")
