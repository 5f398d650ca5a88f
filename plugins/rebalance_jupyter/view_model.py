"""The model of a page: spans of ownership as bytes, everything else as one small document."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_jupyter.load import Loads
from rebalance_jupyter.series import Series, add, columns_for, packed, thinned
from rebalance_jupyter.words import sentences_over_time
from rebalance_lab.traces.entries import Round
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.ledger import Ledger
from rebalance_lab.traces.rounds import observed_rounds
from rebalance_lab.traces.timeline import Change, Timeline
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.looks import Look, looks_of, members_of
from rebalance_lab.verdicts.story import joining, reported

NOBODY = -1

_MEMBER_STATES = {
    "unjoined": "outside",
    "preparing-rebalance": "joining",
    "completing-rebalance": "waiting",
    "stable": "stable",
}

_PLACES: Mapping[str, tuple[float, float]] = {
    "vacant": (0, 0),
    "begun": (0, 0.5),
    "between": (0, 1),
    "resting": (1, 1),
    "ended": (1, 0),
}
"""The place of the first state of a kind. Of the moves of Kafka's protocols, only two cross each other."""

_MORE_PLACES: Sequence[tuple[float, float]] = ((1, 0.5), (0.5, 0.25), (0.5, 0.75))
"""The places of further states, and of those after them the last one."""


@dataclass(frozen=True, slots=True)
class ViewModel:
    """``document``: JSON values. ``spans``: int32 little-endian, four each: partition, owner, from, to.

    Times in milliseconds. A partition is numbered through the topics in their order; an owner is a number
    in ``members``.
    """

    document: Mapping[str, Any]
    spans: bytes


def view_model(trace: Trace, looks: Mapping[str, Look] | None = None) -> ViewModel:
    """Return the model of a trace. ``looks`` has the members of all traces that are shown together."""
    looks = looks or looks_of(members_of([trace]))
    timeline, family = Timeline(), family_of(trace.started)
    lanes, loads = _Lanes(timeline, family), Loads(timeline)
    rounds = observed_rounds(trace, timeline)
    history = History(trace, timeline=timeline)
    thin = partial(thinned, columns=columns_for(len(lanes.lanes)), end_ms=trace.started.duration_ms)
    members = lanes.documents(thin)
    for name, lane in members.items():
        lane.update({**looks[name]._asdict(), **loads.of(name, thin)})
    found = rounds()
    document = {
        "scenario": trace.scenario,
        "strategy": trace.strategy,
        "seed": trace.started.seed,
        "duration": trace.started.duration_ms,
        "end": {"state": trace.ended.group_state or "Empty", "generation": trace.ended.generation},
        "topics": [
            {"name": name, "partitions": count} for name, count in history.ledger.index.counts.items()
        ],
        "members": list(members.values()),
        "lag": loads.lag,
        "rates": loads.rates,
        "unowned_lag": thin(lanes.unowned_lag),
        "idle": lanes.idle,
        "states": [[0, "Empty"], *([at, state] for at, state in history.states)],
        "machine": machine_of(family),
        "added": _added(trace),
        "deleted": _deleted(trace),
        "sentences": list(lanes.sentences),
        "marks": [[mark.at_ms, mark.label] for mark in history.marks],
        "findings": list(findings(history)),
        "rounds": [_round(*pair, timeline.clients) for pair in zip_longest(found, found[1:])],
        "circle": _circle(len(members)),
        "counts": history.from_ms,
        "opens": _first_in(history.from_ms, found),
    }
    return ViewModel(document, _spans(history.ledger))


def opening_ms(documents: Sequence[Mapping[str, Any]]) -> int:
    """Return the time at which a view of documents opens: the first round after the group has started.

    Without one, that of the first round, and 0 without any.
    """
    first = [document["rounds"][0]["began"] for document in documents if document["rounds"]]
    return min([d["opens"] for d in documents if d["opens"] is not None] or first, default=0)


def _first_in(from_ms: int, listed: Sequence[Round]) -> int | None:
    """Return the time of the first round within the time that is measured, if it begins after 0."""
    return next((entry.began_ms for entry in listed if 0 < from_ms <= entry.began_ms), None)


def _added(trace: Trace) -> dict[str, list[list[int]]]:
    """Return the times at which topics got partitions, each with the number of the first new one."""
    counts, added = dict(trace.started.topics), dict[str, list[list[int]]]()
    for line in trace.events:
        if isinstance(line.event, ev.PartitionsAdded):
            topic = line.event.topic
            added.setdefault(topic, []).append([line.at_ms, counts.get(topic, 0)])
            counts[topic] = line.event.partitions
    return added


def _deleted(trace: Trace) -> dict[str, int]:
    """Return when the topics were deleted that do not exist at the end."""
    found: dict[str, int] = {}
    for line in trace.events:
        if isinstance(line.event, ev.TopicDeleted):
            found[line.event.topic] = line.at_ms
        elif isinstance(line.event, ev.PartitionsAdded):
            found.pop(line.event.topic, None)
    return found


def _spans(ledger: Ledger) -> bytes:
    """Return the spans in order of partitions, then of time. Of one partition, several may overlap."""
    spans = ledger.spans[ledger.spans[:, 2] < ledger.spans[:, 3]]
    order = np.lexsort((spans[:, 3], spans[:, 2], spans[:, 0]))
    return spans[order].astype("<i4").tobytes()


class _Lane:
    """One consumer: its states, its callbacks, its protocol's own events, and its figures over time."""

    def __init__(self, name: str) -> None:
        self.document: dict[str, Any] = {
            "name": name,
            "instance": None,
            "states": [],
            "calls": [],
            "told": [],
            "generations": [],
            "owned": [],
            "lag": [],
        }
        self.protocol_state = "outside"
        """The state in the protocol, which the lane shows unless the consumer is paused."""
        self._state = ""

    def show(self, at_ms: int, state: str) -> None:
        """Show a state from a time on."""
        if state != self._state:
            self._state = state
            self.document["states"].append([at_ms, state])

    def figure(self, key: str, at_ms: int, value: float) -> None:
        """Add a value to a series if it differs from the last one."""
        add(self.document[key], at_ms, value)


class _Lanes:
    """The lanes of all consumers by name, in the order of their first start.

    ``unowned_lag`` is the lag of partitions without an owner, over time, and ``idle`` the number of those
    that nobody works on: they have no owner, or one that stands still, restores them or runs a callback. The
    area below it is the stopped time.
    ``sentences`` has the sentences of the events that the family describes, with their numbers.
    """

    def __init__(self, timeline: Timeline, family: ProtocolSpec) -> None:
        self.lanes: dict[str, _Lane] = {}
        self.sentences: dict[str, int] = {}
        self._family = family
        self.unowned_lag: Series = []
        self.idle: Series = [[0, 0]]
        self._now = timeline
        self._taken_ms = -1
        self._took_ms: dict[str, int] = {}
        timeline.after.append(self._see)
        timeline.measured.append(self._measured)

    def documents(self, thin: Callable[[Series], Series]) -> dict[str, dict[str, Any]]:
        """Return the documents of the lanes, with series of a length that can be sent."""
        for lane in self.lanes.values():
            lane.document["lag"] = packed(thin(lane.document["lag"]))
        return {name: lane.document for name, lane in self.lanes.items()}

    def _see(self, change: Change) -> None:
        event = change.event
        if change.begun or change.ended or change.wanted or change.unwanted:
            self._count_idle()
        if change.given_up or change.taken:
            self._forget_lag(event.client)  # type: ignore[union-attr]
        if change.taken:
            self._taken_ms = self._now.at_ms
            self._took_ms[event.client] = self._now.at_ms  # type: ignore[union-attr]
        if isinstance(event, ev.MemberStarted):
            self._started(event, self.lanes.setdefault(event.client, _Lane(event.client)))
        else:
            lane = self.lanes.get(getattr(event, "client", ""))
            if lane is not None:
                self._see_member(event, lane)

    def _measured(self, at_ms: int, event: ev.LagMeasured) -> None:
        """Add the lag of each consumer that runs or has run. Those without a lag are not in the event.

        What was taken over at that time is not yet a part of the new owner's lag.
        """
        for name, lane in self.lanes.items():
            if (name in self._now.consumers or lane.document["lag"]) and self._took_ms.get(name) != at_ms:
                lane.figure("lag", at_ms, round(event.by_client.get(name, 0.0), 1))
        if self._taken_ms != at_ms:
            add(self.unowned_lag, at_ms, round(event.unowned, 1))

    def _count_idle(self) -> None:
        """Of a time there is one number: partitions that are handed over at once are worked on."""
        if self.idle[-1][0] == self._now.at_ms:
            self.idle.pop()
        add(self.idle, self._now.at_ms, len(self._now.idle))

    def _forget_lag(self, client: str) -> None:
        """Until the next measure, the lag of other partitions than before is not known."""
        for series in (self.lanes[client].document["lag"], self.unowned_lag):
            if series:
                add(series, self._now.at_ms, None)

    def _started(self, event: ev.MemberStarted, lane: _Lane) -> None:
        """Also of a consumer that starts again: it is in no generation."""
        lane.document["instance"] = event.instance_id
        self._enter(event.client, lane, "outside")
        if lane.document["generations"]:
            lane.figure("generations", self._now.at_ms, 0)

    def _see_member(self, event: Any, lane: _Lane) -> None:
        at_ms = self._now.at_ms
        tell = self._family.sentences.get(type(event))
        if tell is not None:
            lane.document["told"].append([at_ms, self.sentences.setdefault(tell(event), len(self.sentences))])
        match event:
            case ev.ClientStateChanged():
                self._enter(event.client, lane, _MEMBER_STATES.get(event.after, event.after))
            case ev.Joined():
                lane.figure("generations", at_ms, event.generation)
            case ev.Assigned():
                if self._family.servers is None:  # otherwise the member reports that it rests
                    self._enter(event.client, lane, "stable")
                lane.document["calls"].append([at_ms, "assigned", _count(event.added)])
                self._count_owned(event.client, lane)
            case ev.Revoked() | ev.Lost():
                kind = "lost" if isinstance(event, ev.Lost) else "revoked"
                lane.document["calls"].append([at_ms, kind, _count(event.partitions)])
                self._count_owned(event.client, lane)
            case ev.MemberPaused() | ev.MemberCutOff() | ev.MemberResumed() | ev.MemberReconnected():
                self._enter(event.client, lane, lane.protocol_state)
            case ev.MemberStopped() | ev.ConsumerFailed():
                lane.show(at_ms, "stopped" if getattr(event, "how", "") == "closed" else "crashed")
                self._count_owned(event.client, lane)

    def _enter(self, client: str, lane: _Lane, state: str) -> None:
        lane.protocol_state = state
        consumer = self._now.consumers.get(client)
        works = consumer is None or consumer.works
        lane.show(self._now.at_ms, state if works else "paused")

    def _count_owned(self, client: str, lane: _Lane) -> None:
        consumer = self._now.consumers.get(client)
        lane.figure("owned", self._now.at_ms, len(consumer.owned) if consumer is not None else 0)


def _round(entry: Round, follows: Round | None, numbers: Mapping[str, int]) -> dict[str, Any]:
    counts = {"kept": 0, "revoked": 0, "assigned": 0, "lost": 0}
    members: dict[str, dict[str, int]] = {}
    for name, member in sorted(entry.members.items()):
        own = {key: _count(getattr(member, key)) for key in counts}
        members[str(numbers[name])] = own
        for key, count in own.items():
            counts[key] += count
    sentences = sentences_over_time(entry, follows)
    waits = bool(entry.waited_for and entry.waited_ms)
    return {
        "began": entry.began_ms,
        "formed": None if entry.waited_ms is None else entry.began_ms + entry.waited_ms,
        "stable": entry.stable_ms,
        "waited_for": [numbers[name] for name in entry.waited_for if name in numbers] if waits else [],
        "waited": f"waited {joining(entry)}" if waits else "",
        "generation": entry.generation,
        "protocol": entry.protocol,
        "leader": numbers.get(entry.leader, NOBODY),
        "causes": list(dict.fromkeys(entry.causes)),
        "report": reported(entry.report),
        "counts": counts,
        "members": members,
        "flows": sorted(
            [numbers[before], numbers[after], count]
            for before, to in entry.moves.items()
            for after, count in to.items()
        ),
        "sentence": sentences[-1][1],
        "sentences": [list(told) for told in sentences],
    }


def _count(partitions: Mapping[str, Sequence[int]]) -> int:
    return sum(map(len, partitions.values()))


def machine_of(family: ProtocolSpec) -> dict[str, Any]:
    """Return the group's states with their places (0..1), their kinds, and the moves between them."""
    moves = sorted((a, b) for a, after in family.states.items() for b in after if a != b)
    kinds = {state: _kind(state, family) for state in family.states}
    return {
        "states": [[state, *place] for state, place in _places(kinds).items()],
        "kinds": kinds,
        "moves": [list(move) for move in moves],
        "coordinated": family.servers is None,
    }


def _kind(state: str, family: ProtocolSpec) -> str:
    """Return what a state is to its protocol; "ended" if no other state follows one without members."""
    if state in family.at_rest:
        return "resting"
    if state in family.round_begins:
        return "begun"
    if state in family.vacant:
        return "vacant" if set(family.states[state]) - {state} else "ended"
    return "between"


def _places(kinds: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Return a place for each state. The first of a kind has the kind's own, others get the places left."""
    of_kind = _PLACES if "between" in kinds.values() else {**_PLACES, "begun": _PLACES["between"]}
    firsts = {kind: state for state, kind in reversed([*kinds.items()])}
    own = {state: of_kind[kind] for kind, state in firsts.items()}
    free = [place for place in (*_PLACES.values(), *_MORE_PLACES) if place not in own.values()]
    rest = [state for state in kinds if state not in own]
    own.update(zip(rest, [*free, *[_MORE_PLACES[-1]] * len(rest)], strict=False))
    return {state: own[state] for state in kinds}


def _circle(count: int) -> list[list[float]]:
    """Return the place (0..1) of each member in the drawing of moves between members."""
    if count == 1:
        return [[0.5, 0.5]]
    angles = 2 * np.pi * np.arange(count) / max(1, count)
    places = (1 + np.stack([np.cos(angles), np.sin(angles)], axis=1)) / 2
    return [[round(x, 4), round(y, 4)] for x, y in places.tolist()]
