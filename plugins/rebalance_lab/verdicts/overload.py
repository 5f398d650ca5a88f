"""Loads that no assignment can carry: of a partition for a member, and of the group for all members."""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.history import History


class Overload(NamedTuple):
    """The loads of a run that are too high, in records/s, as means over the window.

    ``partitions`` are those whose rates exceed ``fastest``, what the fastest consumer can handle, the highest
    rate first. ``load`` is the rate of all partitions, ``members`` what the consumers that run can handle.
    """

    partitions: Sequence[tuple[TopicPartition, float]]
    fastest: float
    load: float
    members: float

    @property
    def of_group(self) -> bool:
        """Whether all members together cannot handle the load."""
        return self.load > self.members


def overload_of(history: History) -> Overload | None:
    """Return the loads that are too high, or None if there are none or a consumer has no limit."""
    limits = history.process_rates
    from_ms, until_ms = history.from_ms, history.trace.events[-1].at_ms
    members = _mean_limit(history, from_ms, until_ms)
    if members is None or until_ms <= from_ms:
        return None
    owned = {partition.topic for partition in history.spans}
    rates = {
        TopicPartition(topic, number): rate
        for topic, changes in history.rates.items()
        if topic in owned
        for number, rate in enumerate(_means(changes, from_ms, until_ms))
    }
    fastest = max(limits.values())
    partitions = sorted(
        ((partition, rate) for partition, rate in rates.items() if rate > fastest),
        key=lambda pair: (-pair[1], pair[0]),
    )
    found = Overload(partitions, fastest, sum(rates.values()), members)
    return found if partitions or found.of_group else None


def _means(changes: Sequence[tuple[int, Sequence[float]]], from_ms: int, until_ms: int) -> list[float]:
    """Return the mean records/s of each partition of a topic in a time."""
    sums = [0.0] * max(len(rates) for _, rates in changes)
    ends = [*(at_ms for at_ms, _ in changes[1:]), until_ms]
    for (at_ms, rates), end_ms in zip(changes, ends, strict=True):
        passed_ms = max(0, min(end_ms, until_ms) - max(at_ms, from_ms))
        for number, rate in enumerate(rates):
            sums[number] += rate * passed_ms
    return [total / (until_ms - from_ms) for total in sums]


def _mean_limit(history: History, from_ms: int, until_ms: int) -> float | None:
    """Return the mean records/s that the running consumers can handle, or None if one has no limit."""
    running: dict[str, None] = {}
    last_ms, total = from_ms, 0.0
    for at_ms, event in ((line.at_ms, line.event) for line in history.trace.events):
        if not isinstance(event, ev.MemberStarted | ev.MemberStopped | ev.ConsumerFailed | ev.RunEnded):
            continue
        if at_ms > last_ms:
            total += sum(history.process_rates[client] for client in running) * (at_ms - last_ms)
            last_ms = at_ms
        if isinstance(event, ev.MemberStarted):
            if event.client not in history.process_rates:
                return None
            running[event.client] = None
        elif not isinstance(event, ev.RunEnded):
            running.pop(event.client, None)
    return total / (until_ms - from_ms) if until_ms > from_ms and history.process_rates else None
