"""Some metrics of a trace, computed again from its events alone.

It shares no code with the fold that metrics use, and is as plain as it can be: whenever time passes
everything is asked anew. A difference between the two is a defect of one of them.
"""

from collections.abc import Iterator
from typing import Any

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.trace import Trace

METRICS = (
    "stopped_partition_seconds", "longest_stop_seconds", "double_owned_partition_seconds", "moved_partitions",
    "rounds", "messages",
)  # fmt: skip


class _Process:
    """A process of a consumer: what it subscribes to and owns, and what it does not work on."""

    def __init__(self, topics: list[str]) -> None:
        self.topics = topics
        self.owned: set[tuple[str, int]] = set()
        self.stopped: set[tuple[str, int]] = set()
        self.away: set[str] = set()


def reference_metrics(trace: Trace, family: ProtocolSpec) -> dict[str, float]:
    """Return the metrics of `METRICS` for a trace that is measured from its beginning."""
    topics: dict[str, int] = dict(trace.started.topics)
    processes: dict[str, _Process] = {}
    wanted: dict[str, list[str]] = {}
    last_owner: dict[tuple[str, int], str] = {}
    stopped_ms: dict[tuple[str, int], int] = {}
    found = dict.fromkeys(METRICS, 0.0)
    starts_left = _starts(trace)
    before_ms = 0
    for line in trace.events:
        event: Any = line.event
        if line.at_ms > before_ms:
            workers = _workers(processes)
            subscribed = {topic for listed in wanted.values() for topic in listed}
            every = {(topic, n) for topic in subscribed & topics.keys() for n in range(topics[topic])}
            passed_ms, before_ms = line.at_ms - before_ms, line.at_ms
            doubles = sum(workers.get(partition, 0) > 1 for partition in every)
            found["double_owned_partition_seconds"] += doubles * passed_ms / 1_000
            stopped_ms = {p: stopped_ms.get(p, 0) + passed_ms for p in every if not workers.get(p)}
            found["stopped_partition_seconds"] += len(stopped_ms) * passed_ms / 1_000
            longest = max(stopped_ms.values(), default=0) / 1_000
            found["longest_stop_seconds"] = max(found["longest_stop_seconds"], longest)
        _apply(event, topics, processes, wanted, starts_left)
        if isinstance(event, ev.Assigned) and event.client in processes:
            for partition in _partitions(event.owned):
                if partition not in processes[event.client].owned:
                    found["moved_partitions"] += last_owner.get(partition, event.client) != event.client
                    last_owner[partition] = event.client
            processes[event.client].owned = set(_partitions(event.owned))
        if isinstance(event, ev.GroupStateChanged) and event.after in family.at_rest:
            found["rounds"] += 1
    found["messages"] = sum(trace.ended.messages.values())
    return found


def _starts(trace: Trace) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in trace.events:
        if isinstance(line.event, ev.MemberStarted):
            counts[line.event.client] = counts.get(line.event.client, 0) + 1
    return counts


def _apply(
    event: Any,
    topics: dict[str, int],
    processes: dict[str, _Process],
    wanted: dict[str, list[str]],
    starts_left: dict[str, int],
) -> None:
    process = processes.get(getattr(event, "client", ""))
    if isinstance(event, ev.PartitionsAdded):
        topics[event.topic] = event.partitions
    elif isinstance(event, ev.TopicDeleted):
        del topics[event.topic]
    elif isinstance(event, ev.MemberStarted):
        processes[event.client] = _Process(event.topics)
        wanted[event.client] = event.topics
        starts_left[event.client] -= 1
    elif process is not None and isinstance(event, ev.MemberStopped | ev.ConsumerFailed):
        del processes[event.client]
        if getattr(event, "how", "") == "closed" and not starts_left[event.client]:
            del wanted[event.client]
    elif process is not None and isinstance(event, ev.SubscriptionChanged):
        process.topics = wanted[event.client] = event.topics
    elif process is not None:
        _apply_to(process, event)


def _apply_to(process: _Process, event: Any) -> None:
    if isinstance(event, ev.MemberPaused) and event.in_batch:
        process.away.discard("paused")
    elif isinstance(event, ev.MemberPaused | ev.MemberCutOff):
        process.away.add("paused" if isinstance(event, ev.MemberPaused) else "cut")
    elif isinstance(event, ev.MemberResumed | ev.MemberReconnected):
        process.away.discard("paused" if isinstance(event, ev.MemberResumed) else "cut")
    elif isinstance(event, ev.Revoked | ev.Lost):
        process.owned -= set(_partitions(event.partitions))
        process.stopped -= set(_partitions(event.partitions))
    elif isinstance(event, ev.Assigned):
        process.stopped &= set(_partitions(event.owned))
    elif isinstance(event, ev.WorkStopped):
        process.stopped |= set(_partitions(event.partitions))
    elif isinstance(event, ev.WorkStarted):
        process.stopped -= set(_partitions(event.partitions))


def _workers(processes: dict[str, _Process]) -> dict[tuple[str, int], int]:
    workers: dict[tuple[str, int], int] = {}
    for process in processes.values():
        if not process.away:
            for partition in process.owned - process.stopped:
                workers[partition] = workers.get(partition, 0) + 1
    return workers


def _partitions(listed: ev.PartitionMap) -> Iterator[tuple[str, int]]:
    for topic, numbers in listed.items():
        for number in numbers:
            yield topic, number
