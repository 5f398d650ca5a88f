"""A run in the trace format of Chrome, for the viewer of Perfetto (https://ui.perfetto.dev).

Three processes: the rounds of the group, its members, and its partitions. A slice of a member is a time in
which what it owns stays the same, one of a partition the time of one owner or of none. An arrow goes from a
member for which a round waited, when the round began, to the end of the wait.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.reading.partitions import listed
from rebalance_lab.traces.entries import Round
from rebalance_lab.traces.history import History
from rebalance_lab.traces.ledger import Span
from rebalance_lab.traces.rounds import entries
from rebalance_lab.traces.trace import Trace

ROUNDS, MEMBERS, PARTITIONS = 1, 2, 3
"""The numbers of the processes."""

STILL = "stands still"
"""The name of a time in which nobody works on a partition."""

_PROCESSES = {ROUNDS: "rounds of {}", MEMBERS: "members of {}", PARTITIONS: "partitions of {}"}


def as_perfetto(trace: Trace) -> bytes:
    """Return a run as JSON in the trace event format. Times are microseconds of virtual time."""
    history = History(trace)
    members = {client: number for number, client in enumerate(history.ledger.clients, start=1)}
    rounds = [entry for entry in entries(trace) if isinstance(entry, Round)]
    events = [
        *_names(history, members),
        *_of_rounds(rounds, members, trace.started.duration_ms),
        *_of_members(trace, members),
        *_of_partitions(history),
        *_lag(history),
    ]
    about = {"scenario": trace.scenario, "strategy": trace.strategy, "seed": trace.started.seed}
    return msgspec.json.encode({"displayTimeUnit": "ms", "otherData": about, "traceEvents": events})


def _names(history: History, members: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for process, name in _PROCESSES.items():
        yield _named("process_name", process, 0, name.format(history.started.scenario))
    yield _named("thread_name", ROUNDS, 1, "rounds")
    for client, number in members.items():
        yield _named("thread_name", MEMBERS, number, client)
    for number, partition in enumerate(_partitions(history), start=1):
        yield _named("thread_name", PARTITIONS, number, f"{partition.topic}-{partition.partition}")


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _slice(name: str, place: tuple[int, int], from_ms: int, until_ms: int, **about: Any) -> dict[str, Any]:
    process, thread = place
    times = {"ts": 1_000 * from_ms, "dur": 1_000 * (until_ms - from_ms)}
    return {"ph": "X", "name": name, "pid": process, "tid": thread, **times, "args": about}


def _of_rounds(rounds: list[Round], members: Mapping[str, int], end_ms: int) -> Iterator[dict[str, Any]]:
    for number, each in enumerate(rounds, start=1):
        ends = [each.stable_ms, each.aborted_ms]
        until_ms = next((at_ms for at_ms in ends if at_ms is not None), end_ms)
        about = {"causes": each.causes, "waited for": each.waited_for, "aborted": each.aborted}
        yield _slice(each.name, (ROUNDS, 1), each.began_ms, until_ms, **about)
        waited_ms = each.waited_ms or 0
        for name in each.waited_for if waited_ms else ():
            arrow = {"cat": "wait", "name": f"waits for {name}", "id": f"{number} {name}"}
            if name in members:
                at = {"pid": MEMBERS, "tid": members[name], "ts": 1_000 * each.began_ms}
                yield {"ph": "s", **arrow, **at}
                end = {"pid": ROUNDS, "tid": 1, "ts": 1_000 * (each.began_ms + waited_ms)}
                yield {"ph": "f", "bp": "e", **arrow, **end}


def _of_members(trace: Trace, members: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yield what each member owns from when to when."""
    since: dict[str, tuple[int, ev.PartitionMap]] = {}

    def owned_until(client: str, at_ms: int) -> Iterator[dict[str, Any]]:
        from_ms, owned = since.pop(client, (at_ms, {}))
        if at_ms > from_ms:
            count = sum(map(len, owned.values()))
            name = f"{count} partition{'s' * (count != 1)}" if owned else "owns nothing"
            yield _slice(name, (MEMBERS, members[client]), from_ms, at_ms, owned=listed(owned))

    for at_ms, event in ((line.at_ms, line.event) for line in trace.events):
        client = getattr(event, "client", "")
        before = since.get(client, (at_ms, {}))[1]
        if isinstance(event, (ev.MemberStopped, ev.ConsumerFailed)):
            yield from owned_until(client, at_ms)
        elif isinstance(event, (ev.MemberStarted, ev.Assigned, ev.Revoked, ev.Lost)):
            owned = {} if isinstance(event, ev.MemberStarted) else _owned_after(event, before)
            if owned != before or client not in since:
                yield from owned_until(client, at_ms)
                since[client] = at_ms, owned
    for client in list(since):
        yield from owned_until(client, trace.events[-1].at_ms)


def _owned_after(event: ev.Assigned | ev.Revoked | ev.Lost, before: ev.PartitionMap) -> ev.PartitionMap:
    return event.owned if isinstance(event, ev.Assigned) else _without(before, event.partitions)


def _without(owned: ev.PartitionMap, gone: ev.PartitionMap) -> ev.PartitionMap:
    rest = {topic: [n for n in numbers if n not in gone.get(topic, ())] for topic, numbers in owned.items()}
    return {topic: numbers for topic, numbers in rest.items() if numbers}


def _partitions(history: History) -> list[TopicPartition]:
    return [TopicPartition(t, n) for t, count in sorted(history.topics.items()) for n in range(count)]


def _of_partitions(history: History) -> Iterator[dict[str, Any]]:
    """Yield the owners of each partition while they work on it, and the times in which nobody does."""
    stops: dict[TopicPartition, list[tuple[int, int]]] = {}
    stopped = history.stops.intervals
    partitions = history.ledger.index.partitions(stopped[:, 0].astype(np.int32))
    for partition, (_, from_ms, until_ms) in zip(partitions, stopped.tolist(), strict=True):
        if until_ms > from_ms:
            stops.setdefault(partition, []).append((from_ms, until_ms))
    for number, partition in enumerate(_partitions(history), start=1):
        for name, from_ms, until_ms in _pieces(history.ledger.of(partition), stops.get(partition, [])):
            yield _slice(name, (PARTITIONS, number), from_ms, until_ms)


def _pieces(spans: Sequence[Span], stops: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """Yield who works on a partition from when to when. Several owners at one time are named together."""
    edges = sorted(
        {*(at for s in spans for at in (s.from_ms, s.to_ms)), *(at for stop in stops for at in stop)}
    )
    last: tuple[str, int, int] | None = None
    for from_ms, until_ms in pairwise(edges):
        owners = " and ".join(s.client for s in spans if s.from_ms <= from_ms < s.to_ms)
        name = STILL if any(begin <= from_ms < end for begin, end in stops) else owners
        if last is not None and (last[0] != name or last[2] != from_ms):
            yield last
            last = None
        if name:
            last = name, from_ms if last is None else last[1], until_ms
    if last is not None:
        yield last


def _lag(history: History) -> Iterator[dict[str, Any]]:
    for at_ms, measured in history.lags:
        values = {"records": round(measured.lag)}
        yield {"ph": "C", "name": "lag", "pid": ROUNDS, "tid": 0, "ts": 1_000 * at_ms, "args": values}
