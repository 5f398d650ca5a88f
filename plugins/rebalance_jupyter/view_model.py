"""What the page draws of a trace: spans of ownership as bytes, everything else as one small document."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest
from typing import Any

import networkx as nx
import numpy as np

from coordinator_core.coordinator.classic.states import LEGAL_MOVES, GroupState
from coordinator_core.protocol import events as ev
from coordinator_core.traces.rounds import Round, told
from coordinator_core.traces.timeline import History, Span
from coordinator_core.traces.trace import Trace
from rebalance_jupyter.words import sentence

NOBODY = -1
MOST_FIGURES = 400
"""Figures of a member over time that are sent; of more, the largest of each stretch."""

_MEMBER_STATES = {
    "unjoined": "outside",
    "preparing-rebalance": "joining",
    "completing-rebalance": "waiting",
    "stable": "stable",
}

_PLACES = {  # only two of the moves cross each other
    GroupState.EMPTY: (0, 0),
    GroupState.PREPARING_REBALANCE: (0, 0.5),
    GroupState.COMPLETING_REBALANCE: (0, 1),
    GroupState.STABLE: (1, 1),
    GroupState.DEAD: (1, 0),
}


@dataclass(frozen=True, slots=True)
class ViewModel:
    """``document``: JSON values. ``spans``: int32 little-endian, four each: partition, owner, from, to.

    Times in milliseconds. A partition is numbered through the topics in their order; an owner is a number
    in ``members``.
    """

    document: Mapping[str, Any]
    spans: bytes


def view_model(trace: Trace) -> ViewModel:
    """The model of a trace's view."""
    history = History(trace)
    topics = dict(sorted(history.topics.items()))
    offsets = dict(zip(topics, accumulate(topics.values(), initial=0), strict=False))
    members = _members(trace)
    numbers = {name: i for i, name in enumerate(members)}
    rounds = [each for each in told(trace) if isinstance(each, Round)]
    document = {
        "scenario": trace.scenario,
        "strategy": trace.strategy,
        "seed": trace.started.seed,
        "duration": trace.started.duration_ms,
        "end": {"state": trace.ended.group_state or "Empty", "generation": trace.ended.generation},
        "topics": [{"name": name, "partitions": count} for name, count in topics.items()],
        "members": list(members.values()),
        "states": [[0, "Empty"], *([at, state] for at, state in history.states)],
        "machine": _machine(),
        "marks": [[mark.at_ms, mark.label] for mark in history.marks],
        "rounds": _rounds(rounds, numbers, history),
        "circle": _circle(members),
    }
    return ViewModel(document, _spans(history, offsets, numbers))


def _spans(history: History, offsets: Mapping[str, int], numbers: Mapping[str, int]) -> bytes:
    """In order of partitions, then of time."""
    rows = [
        (offsets[tp.topic] + tp.partition, numbers[span.client], span.from_ms, span.to_ms)
        for tp, spans in sorted(history.spans.items())
        for span in _in_time(spans)
        if span.to_ms > span.from_ms
    ]
    return np.array(rows, dtype="<i4").reshape(-1, 4).tobytes()


def _in_time(spans: Iterable[Span]) -> list[Span]:
    """As they began; a history has them as they ended, and owners overlap where one has not heard yet."""
    return sorted(spans, key=lambda span: (span.from_ms, span.to_ms))


class _Member:
    """One consumer's lane: its states, what it was called with, and figures over time."""

    def __init__(self, name: str) -> None:
        self.document: dict[str, Any] = {
            "name": name,
            "instance": None,
            "states": [],
            "calls": [],
            "generations": [],
            "owned": [],
            "lag": [],
        }
        self._state = ""
        self._joined_state = "outside"
        self._stopped: dict[str, None] = {}

    def to(self, at_ms: int, state: str) -> None:
        if state != self._state:
            self._state = state
            self.document["states"].append([at_ms, state])

    def protocol_state(self, at_ms: int, state: str) -> None:
        self._joined_state = state
        if not self._stopped:
            self.to(at_ms, state)

    def started(self, at_ms: int) -> None:
        """Also once more under its name: then it knows nothing of the generation it was in."""
        self._stopped.clear()
        self.protocol_state(at_ms, "outside")
        if self.document["generations"]:
            self.figure("generations", at_ms, 0)

    def stands_still(self, at_ms: int, why: str) -> None:
        self._stopped[why] = None
        self.to(at_ms, "paused")

    def goes_on(self, at_ms: int, why: str) -> None:
        self._stopped.pop(why, None)
        if not self._stopped:
            self.to(at_ms, self._joined_state)

    def ended(self, at_ms: int, how: str) -> None:
        self._stopped.clear()
        self.to(at_ms, "crashed" if how == "crashed" else "stopped")

    def figure(self, key: str, at_ms: int, value: float) -> None:
        series = self.document[key]
        if not series or series[-1][1] != value:
            series.append([at_ms, value])


def _members(trace: Trace) -> dict[str, dict[str, Any]]:
    """Every consumer by name, in the order they started."""
    members: dict[str, _Member] = {}
    for line in trace.events:
        _see(line.at_ms, line.event, members)
    for member in members.values():
        member.document["lag"] = _thinned(member.document["lag"])
    return {name: member.document for name, member in members.items()}


def _thinned(series: list[list[float]]) -> list[list[float]]:
    stretch = -(-len(series) // MOST_FIGURES)
    if stretch <= 1:
        return series
    return [max(series[i : i + stretch], key=lambda each: each[1]) for i in range(0, len(series), stretch)]


def _see(at_ms: int, event: ev.Event, members: dict[str, _Member]) -> None:
    if isinstance(event, ev.MemberStarted):
        member = members.setdefault(event.client, _Member(event.client))
        member.document["instance"] = event.instance_id
        member.started(at_ms)
    elif isinstance(event, ev.LagMeasured):
        for name, lag in event.by_client.items():
            members[name].figure("lag", at_ms, round(lag, 1))
    else:
        known = members.get(getattr(event, "client", ""))
        if known is not None:
            _see_member(at_ms, event, known)


def _see_member(at_ms: int, event: ev.Event, member: _Member) -> None:
    match event:
        case ev.ClientStateChanged():
            member.protocol_state(at_ms, _MEMBER_STATES.get(event.after, event.after))
        case ev.Joined():
            member.figure("generations", at_ms, event.generation)
        case ev.Assigned():
            member.protocol_state(at_ms, "stable")
            member.document["calls"].append([at_ms, "assigned", _count(event.added)])
            member.figure("owned", at_ms, _count(event.owned))
        case ev.Revoked() | ev.Lost():
            kind = "lost" if isinstance(event, ev.Lost) else "revoked"
            gone = _count(event.partitions)
            owned = member.document["owned"]
            member.document["calls"].append([at_ms, kind, gone])
            member.figure("owned", at_ms, (owned[-1][1] if owned else gone) - gone)
        case ev.MemberPaused():
            member.stands_still(at_ms, "pause")
        case ev.MemberCutOff():
            member.stands_still(at_ms, "cut")
        case ev.MemberResumed():
            member.goes_on(at_ms, "pause")
        case ev.MemberReconnected():
            member.goes_on(at_ms, "cut")
        case ev.MemberStopped():
            member.ended(at_ms, event.how)
            member.figure("owned", at_ms, 0)
        case ev.ConsumerFailed():
            member.ended(at_ms, "crashed")
            member.figure("owned", at_ms, 0)


def _rounds(rounds: Sequence[Round], numbers: Mapping[str, int], history: History) -> list[dict[str, Any]]:
    flows: list[Counter[tuple[int, int]]] = [Counter() for _ in rounds]
    began = [each.began_ms for each in rounds]
    for spans in history.spans.values():
        for before, after in pairwise(_in_time(spans)):
            if before.client != after.client and (number := bisect_right(began, after.from_ms)):
                flows[number - 1][numbers[before.client], numbers[after.client]] += 1
    told_rounds = [_round(each, after, numbers) for each, after in zip_longest(rounds, rounds[1:])]
    return [
        {**each, "flows": [[a, b, n] for (a, b), n in sorted(flow.items())]}
        for each, flow in zip(told_rounds, flows, strict=True)
    ]


def _round(each: Round, follows: Round | None, numbers: Mapping[str, int]) -> dict[str, Any]:
    counts = {"kept": 0, "revoked": 0, "assigned": 0, "lost": 0}
    members: dict[str, dict[str, int]] = {}
    for name, member in sorted(each.members.items()):
        own = {key: _count(getattr(member, key)) for key in counts}
        members[str(numbers[name])] = own
        for key, count in own.items():
            counts[key] += count
    return {
        "began": each.began_ms,
        "stable": each.stable_ms,
        "generation": each.generation,
        "protocol": each.protocol,
        "leader": numbers.get(each.leader, NOBODY),
        "causes": list(dict.fromkeys(each.causes)),
        "counts": counts,
        "members": members,
        "sentence": sentence(each, follows),
    }


def _count(partitions: Mapping[str, Iterable[int]]) -> int:
    return sum(len(list(numbers)) for numbers in partitions.values())


def _machine() -> dict[str, Any]:
    """The group's states, where they stand (0..1), and the moves between them."""
    moves = sorted((a.value, b.value) for a, after in LEGAL_MOVES.items() for b in after if a != b)
    return {
        "states": [[state.value, *_PLACES[state]] for state in LEGAL_MOVES],
        "moves": [list(move) for move in moves],
    }


def _circle(members: Mapping[str, Any]) -> list[list[float]]:
    """Where each member stands in the flow between members (0..1)."""
    if len(members) == 1:
        return [[0.5, 0.5]]
    return [list(_place(place)) for place in nx.circular_layout(list(members)).values()]


def _place(place: Any) -> tuple[float, float]:
    return round((1 + float(place[0])) / 2, 4), round((1 + float(place[1])) / 2, 4)
