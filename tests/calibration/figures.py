"""The figures of a run, computed from its trace in the same way for real clients and for the simulator."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.timeline import Timeline
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import measure

ACCURACY_SECONDS = 0.1
"""The accuracy of times: nine processes that join at once on two cores need this time."""


class Stop(NamedTuple):
    """A time in which nobody worked on a partition."""

    partition: TopicPartition
    from_ms: int
    to_ms: int

    @property
    def seconds(self) -> float:
        """The length."""
        return (self.to_ms - self.from_ms) / 1_000


class Figures(NamedTuple):
    """What the rebalances of a run cost, from the first change on.

    ``stopped_seconds`` is the sum over partitions. ``rest_seconds`` is the longest time from a change to the
    end of the last round that follows it.
    """

    stopped_seconds: float
    stopped_partitions: int
    longest_stop_seconds: float
    rest_seconds: float
    duplicates: float


def figures(trace: Trace, registry: Registry) -> Figures:
    """Return the figures of a run. Stops that are shorter than the accuracy do not count."""
    stops = [stop for stop in stops_of(trace) if stop.seconds >= ACCURACY_SECONDS]
    lengths = [stop.seconds for stop in stops]
    metrics = measure(trace, registry)
    return Figures(
        stopped_seconds=round(sum(lengths), 3),
        stopped_partitions=len({stop.partition for stop in stops}),
        longest_stop_seconds=max(lengths, default=0.0),
        rest_seconds=round(metrics["time_to_stable_seconds_max"], 3),
        duplicates=round(metrics["duplicate_records"], 1),
    )


def stops_of(trace: Trace) -> Iterator[Stop]:
    """Yield the stops after the first change. While a group starts, partitions move."""
    now = Timeline()
    begun = False
    since: dict[TopicPartition, int] = {}
    for at_ms, lines in groupby(trace.events, key=lambda line: line.at_ms):
        for line in lines:
            now.apply(at_ms, line.event)
            begun = begun or isinstance(line.event, ev.Changed)
        everything = [TopicPartition(t, n) for t, count in now.topics.items() for n in range(count)]
        idle = {tp for tp in everything if not _is_worked_on(now, tp)}
        if begun:
            for tp in sorted(since.keys() - idle):
                yield Stop(tp, since.pop(tp), at_ms)
            since |= dict.fromkeys(idle - since.keys(), at_ms)
    for tp, from_ms in since.items():
        yield Stop(tp, from_ms, trace.started.duration_ms)


def _is_worked_on(now: Timeline, partition: TopicPartition) -> bool:
    return any(now.consumers[client].works_on(partition) for client in now.owners.get(partition, ()))
