"""The load of a group in a run: what its members can handle, and what no assignment can carry."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from math import inf, isinf
from typing import NamedTuple

import msgspec

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.lag import SLACK_RECORDS, lag_at_end, least_left, max_lag

LIMIT = 0.85
"""The share of what all members can handle from which on a group has first of all a load problem."""


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
    def of_group(self) -> bool:
        """Whether the members can handle neither the load of the window nor that of its end."""
        return self._of_window and self.at_end.excess > 0 and self._last.excess > 0

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
    index, means = history.rests.index, history.rests.traffic.mean(from_ms, until_ms)
    rates = (
        (TopicPartition(topic, number), rate)
        for topic in _owned(history)
        for number, rate in enumerate(history.rates[topic][-1][1])
    )
    partitions = [
        (partition, rate)
        for partition, rate in rates
        if (number := index.number(*partition)) is not None and min(rate, means[number]) > fastest
    ]
    partitions.sort(key=lambda pair: (-pair[1], pair[0]))
    found = Overload(partitions, fastest, stretches)
    return found if partitions or found.of_group else None


def _owned(history: History) -> list[str]:
    """Return the topics that members read, as far as their rates are known."""
    owned = {partition.topic for partition in history.spans}
    return [topic for topic in history.rates if topic in owned]


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


class Load(msgspec.Struct, frozen=True):
    """The load of a run, in records/s, while most members ran.

    ``rate`` is that of all partitions, ``capacity`` what the members together can handle, 0 if one has no
    limit, ``fastest`` what the fastest one can. A batch of the fastest has ``batch_records`` and takes
    ``batch_ms``. ``hot`` are the rates of partitions that no member can handle. ``is_too_high``: the members
    can handle neither the load of the window nor that of its end. ``left`` records are not handled at the
    end; ``gone_s`` is how long they take at the rate at which they become less: 0 if none are left, None if
    they do not become less.
    """

    members: int
    partitions: int
    rate: float
    capacity: float = 0.0
    fastest: float = 0.0
    batch_records: int = 0
    batch_ms: int = 0
    hot: Mapping[str, float] = {}
    is_too_high: bool = False
    left: float = 0.0
    gone_s: float | None = 0.0

    @property
    def share(self) -> float:
        """The load as a share of what all members can handle, 0 if that is unknown."""
        return self.rate / self.capacity if self.capacity else 0.0

    @property
    def share_without_one(self) -> float:
        """The load as a share of what the members can handle without the fastest one."""
        rest = self.capacity - self.fastest
        return self.rate / rest if rest > 0 else inf

    @property
    def is_high(self) -> bool:
        """Whether the load is the first thing to change."""
        return self.share >= LIMIT or self.is_too_high


def load_of(history: History) -> Load:
    """Return the load of a run."""
    stretches = list(_stretches(history, history.from_ms))
    partitions = sum(history.topics.values())
    if not stretches:
        return Load(len(history.process_rates), partitions, 0.0)
    most = max(stretch.members for stretch in stretches)
    count = max(len(stretch.running) for stretch in stretches if stretch.members == most)
    whole = _joined([stretch for stretch in stretches if stretch.members == most])
    if isinf(most) or not whole.running:
        return Load(count, partitions, whole.load)
    fastest = max(sorted(whole.running), key=lambda client: history.process_rates[client])
    found, left = overload_of(history), lag_at_end(history)
    is_left = left > least_left(max_lag(history))
    falls = _falls(history, Overload((), 0.0, stretches).at_end.ms) if is_left else 0.0
    batches = [
        line.event
        for line in history.trace.events
        if isinstance(line.event, ev.ApplicationStarted) and line.event.client == fastest
    ]
    return Load(
        count,
        partitions,
        whole.load,
        most,
        history.process_rates[fastest],
        batches[0].max_poll_records if batches else 0,
        batches[0].batch_ms if batches else 0,
        {} if found is None else {f"{p.topic} {p.partition}": rate for p, rate in found.partitions},
        found is not None and found.of_group,
        left if is_left else 0.0,
        (left / falls if falls > 0 else None) if is_left else 0.0,
    )


def _falls(history: History, ms: int) -> float:
    """Return by how many records/s the lag falls in the second half of a time at the end.

    It is 0 if the lag of a member rises.
    """
    since_ms = history.trace.events[-1].at_ms - ms / 2
    lags = [lag for lag in history.lags if lag.at_ms >= since_ms]
    if len(lags) < 2:
        return 0.0
    (from_ms, first), *_, (until_ms, last) = lags
    if any(own > first.by_client.get(client, 0.0) + SLACK_RECORDS for client, own in last.by_client.items()):
        return 0.0
    return 1_000 * (first.lag - last.lag) / (until_ms - from_ms)
