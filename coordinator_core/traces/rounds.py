"""A run told round by round, in the words of the field: revoked, lost, assigned, kept, generation."""

import re
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.protocol import events as ev
from coordinator_core.traces.trace import Trace

_UUID = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")

Listed = dict[str, list[int]]


@dataclass
class MemberRound:
    """What one round did to one member."""

    revoked: Listed = field(default_factory=dict)
    lost: Listed = field(default_factory=dict)
    assigned: Listed = field(default_factory=dict)
    kept: Listed = field(default_factory=dict)


@dataclass
class Round:
    """From PreparingRebalance to Stable. ``generation`` is 0 until the join phase has ended.

    ``stable_ms`` is None where the round never got there. Members are consumers by name; for them
    ``members`` says what happened, up to the beginning of the next round. ``report`` is what the assignor
    said of its answer.
    """

    began_ms: int
    causes: list[str]
    generation: int = 0
    protocol: str = ""
    leader: str = ""
    stable_ms: int | None = None
    members: dict[str, MemberRound] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)


@dataclass
class Standing:
    """The group as it was when the run began: Stable already, with owners. ``owned``: consumers by name."""

    at_ms: int
    generation: int
    protocol: str = ""
    leader: str = ""
    owned: dict[str, Listed] = field(default_factory=dict)


@dataclass
class Happened:
    """Something from outside, between or during rounds."""

    at_ms: int
    text: str


def told(trace: Trace) -> list[Round | Standing | Happened]:
    """Rounds and what happened from outside, in order; a group that was there before stands in front."""
    teller = _Teller()
    for line in trace.events:
        teller.see(line.at_ms, line.event)
    return teller.told


class _Teller:
    def __init__(self) -> None:
        self.told: list[Round | Standing | Happened] = []
        self._round: Round | None = None
        self._standing: Standing | None = None
        self._coordinator_failed = False

    def see(self, at_ms: int, event: ev.Event) -> None:
        if self._standing is not None and self._stood(at_ms, event, self._standing):
            return
        if isinstance(event, ev.CoordinatorElected) and event.group_state and not self._coordinator_failed:
            self._standing = Standing(at_ms, event.generation)
            self.told.append(self._standing)
        elif isinstance(event, ev.GroupStateChanged):
            self._state_changed(at_ms, event)
        elif isinstance(event, ev.GenerationStarted) and self._round is not None:
            self._round.generation = event.generation
            self._round.protocol = event.protocol
            self._round.leader = _UUID.sub("", event.leader)
        elif isinstance(event, ev.AssignmentComputed) and self._round is not None:
            self._round.report = event.report
        elif isinstance(event, (ev.Revoked, ev.Lost, ev.Assigned)):
            self._moved(event)
        else:
            self._coordinator_failed |= isinstance(event, ev.CoordinatorFailed)
            if isinstance(event, ev.CoordinatorElected) and self._round and self._round.stable_ms is None:
                self._round = None  # whoever takes over knows nothing of it
            text = _happened(event)
            if text:
                self.told.append(Happened(at_ms, text))

    def _stood(self, at_ms: int, event: ev.Event, standing: Standing) -> bool:
        """Whether an event tells of the group as it was when the run began."""
        if at_ms > standing.at_ms or isinstance(event, ev.GroupStateChanged):
            self._standing = None
        elif isinstance(event, ev.Joined):
            standing.protocol = event.protocol
            standing.leader = event.client if event.leader else standing.leader
        elif isinstance(event, ev.Assigned):
            standing.owned[event.client] = event.owned
            return True
        return False

    def _state_changed(self, at_ms: int, event: ev.GroupStateChanged) -> None:
        cause = _UUID.sub("", event.cause)
        if event.after == "PreparingRebalance":
            if self._round is not None and self._round.stable_ms is None:
                self._round.causes.append(cause)  # it begins anew before it got anywhere
                return
            self._round = Round(at_ms, [cause])
            self.told.append(self._round)
        elif event.after == "Stable" and self._round is not None:
            self._round.stable_ms = at_ms
        elif event.after in ("Empty", "Dead"):
            self.told.append(Happened(at_ms, f"the group is {event.after}: {cause}"))
            self._round = None

    def _moved(self, event: ev.Revoked | ev.Lost | ev.Assigned) -> None:
        if self._round is None:
            return
        member = self._round.members.setdefault(event.client, MemberRound())
        if isinstance(event, ev.Revoked):
            _add(member.revoked, event.partitions)
        elif isinstance(event, ev.Lost):
            _add(member.lost, event.partitions)
        else:
            _add(member.assigned, event.added)
            member.kept = _less(event.owned, event.added)


def _add(to: Listed, more: Listed) -> None:
    for topic, numbers in more.items():
        to[topic] = sorted({*to.get(topic, ()), *numbers})


def _less(owned: Listed, added: Listed) -> Listed:
    left = {t: [n for n in numbers if n not in frozenset(added.get(t, ()))] for t, numbers in owned.items()}
    return {t: numbers for t, numbers in left.items() if numbers}


def _happened(event: ev.Event) -> str:
    if isinstance(event, ev.Changed):
        return f"{event.kind} {event.target}" + (f" ({event.cause})" if event.cause else "")
    if isinstance(event, ev.CoordinatorFailed):
        return f"broker {event.node} failed"
    if isinstance(event, ev.CoordinatorElected):
        return f"broker {event.node} is the coordinator now"
    if isinstance(event, ev.MemberReplaced):
        return f"{event.instance_id} is back under its instance id, without a round"
    if isinstance(event, ev.ConsumerFailed):
        return f"{event.client} failed: {event.error}"
    if isinstance(event, ev.MemberRemoved) and "session" in event.reason:
        return f"the session of {_UUID.sub('', event.member_id)} expired"
    return ""
