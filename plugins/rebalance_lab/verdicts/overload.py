"""Loads that no assignment can carry: of a partition for a member, and of the group for all members."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf, isinf
from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.history import History


class Stretch(NamedTuple):
    """A time of a run in which the same consumers run.

    ``load`` is the rate of all partitions, ``members`` what the consumers can handle, in records/s.
    """

    ms: int
    load: float
    members: float
    running: frozenset[str]

    @property
    def excess(self) -> float:
        """The records of the load that the members cannot handle, less than 0 if they can handle more."""
        return (self.load - self.members) * self.ms


class Overload(NamedTuple):
    """The loads of a run that are too high, in records/s.

    ``partitions`` are those whose rates exceed ``fastest``, what the fastest consumer that runs at the end
    can handle, the highest rate first. ``stretches`` are those of the window in which the load was constant.
    """

    partitions: Sequence[tuple[TopicPartition, float]]
    fastest: float
    stretches: Sequence[Stretch]

    @property
    def at_end(self) -> Stretch:
        """The time since consumers last started or ended, with its mean load."""
        return _joined(list(takewhile(lambda each: each.running == self._last.running, self.stretches[::-1])))

    @property
    def worst(self) -> Stretch:
        """The time in which most records were left: that of all overloads with the same consumers."""
        by_running: dict[frozenset[str], list[Stretch]] = {}
        for stretch in self.stretches:
            if stretch.excess > 0:
                by_running.setdefault(stretch.running, []).append(stretch)
        return max(map(_joined, by_running.values()), key=lambda stretch: stretch.excess)

    @property
    def of_group(self) -> bool:
        """Whether the members can handle neither the load of the window nor that of its end."""
        return self._of_window and self.at_end.excess > 0 and self._last.excess > 0

    @property
    def is_over(self) -> bool:
        """Whether the members could not handle the load of the window, but can handle that of its end."""
        return self._of_window and self.at_end.excess < 0

    @property
    def _of_window(self) -> bool:
        return sum(stretch.excess for stretch in self.stretches) > 0

    @property
    def _last(self) -> Stretch:
        return self.stretches[-1]


def _joined(stretches: Sequence[Stretch]) -> Stretch:
    """Return stretches with the same consumers as one, with the mean load."""
    ms = sum(stretch.ms for stretch in stretches)
    load = sum(stretch.load * stretch.ms for stretch in stretches) / ms
    return stretches[0]._replace(ms=ms, load=load)


def overload_of(history: History) -> Overload | None:
    """Return the loads that are too high, or None if there are none or a consumer has no limit.

    They are too high at the end and in the mean of the window: a load that is high for a moment is none.
    """
    from_ms, until_ms = history.from_ms, history.trace.events[-1].at_ms
    stretches = list(_stretches(history, from_ms))
    if not stretches or not stretches[-1].running or any(isinf(stretch.members) for stretch in stretches):
        return None
    fastest = max(history.process_rates[client] for client in stretches[-1].running)
    partitions = [
        (TopicPartition(topic, number), rate)
        for topic in _owned(history)
        for number, (rate, mean) in enumerate(
            zip(history.rates[topic][-1][1], _means(history.rates[topic], from_ms, until_ms), strict=False)
        )
        if min(rate, mean) > fastest
    ]
    partitions.sort(key=lambda pair: (-pair[1], pair[0]))
    found = Overload(partitions, fastest, stretches)
    return found if partitions or found.of_group or found.is_over else None


def _owned(history: History) -> list[str]:
    """Return the topics that members read, as far as their rates are known."""
    owned = {partition.topic for partition in history.spans}
    return [topic for topic in history.rates if topic in owned]


def _means(changes: Sequence[tuple[int, Sequence[float]]], from_ms: int, until_ms: int) -> list[float]:
    """Return the mean records/s of each partition of a topic in a time."""
    sums = [0.0] * max(len(rates) for _, rates in changes)
    ends = [*(at_ms for at_ms, _ in changes[1:]), until_ms]
    for (at_ms, rates), end_ms in zip(changes, ends, strict=True):
        passed_ms = max(0, min(end_ms, until_ms) - max(at_ms, from_ms))
        for number, rate in enumerate(rates):
            sums[number] += rate * passed_ms
    return [total / (until_ms - from_ms) for total in sums]


def _stretches(history: History, from_ms: int) -> Iterator[Stretch]:
    """Yield the stretches of the window in which the load is constant."""
    owned, limits = set(_owned(history)), history.process_rates
    rates: dict[str, float] = {}
    running: frozenset[str] = frozenset()
    last_ms = from_ms
    for at_ms, event in ((line.at_ms, line.event) for line in history.trace.events):
        if not isinstance(
            event, ev.MemberStarted | ev.MemberStopped | ev.ConsumerFailed | ev.RatesChanged | ev.RunEnded
        ):
            continue
        if at_ms > last_ms:
            members = sum(limits.get(client, inf) for client in sorted(running))
            yield Stretch(at_ms - last_ms, sum(rates.values()), members, running)
            last_ms = at_ms
        if isinstance(event, ev.MemberStarted):
            running |= {event.client}
        elif isinstance(event, ev.RatesChanged):
            if event.topic in owned:
                rates[event.topic] = sum(event.rates)
        elif not isinstance(event, ev.RunEnded):
            running -= {event.client}
