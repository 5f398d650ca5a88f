"""Loads that no assignment can carry: of a partition for a member, and of the group for all members.

They are found in a run, and told in sentences.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf, isinf
from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.lag import SLACK_RECORDS
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import agreeing, listed_names

_MOST_NAMED = 3


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
    return found if partitions or found.of_group or found.is_over else None


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


# --- sentences


def overload(history: History) -> tuple[str, ...]:
    """Return sentences about partitions and groups whose load is more than their members can handle."""
    return tuple(_told(history))


def overload_of_all(runs: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the sentences about load that hold in all runs, which have names and sentences of their own.

    If the runs have different figures, those of the first one are told, and its name.
    """
    if not runs:
        return ()
    name, first = runs[0]
    common = [t for t in first if all(_remedy(t) in map(_remedy, own) for _, own in runs)]
    differ = any(t not in own for t in common for _, own in runs)
    return (*common, f"The figures are those of {name}.") if differ else tuple(common)


def _remedy(text: str) -> str:
    return text.rpartition(". ")[2]


def _told(history: History) -> Iterator[str]:
    found = overload_of(history)
    if found is None:
        return
    if found.partitions:
        fastest, *rates = _apart(found.fastest, [rate for _, rate in found.partitions])
        named = [
            f"{p.topic} {p.partition} ({rate})" for (p, _), rate in zip(found.partitions, rates, strict=True)
        ]
        verb = agreeing("gets", len(named))
        yield (
            f"{listed_names(named, _MOST_NAMED)} {verb} more records/s than the {fastest} that"
            " a member can handle in full batches. No assignor removes this backlog, only more partitions or"
            " faster processing."
        )
    if found.of_group:
        members, load = _apart(found.at_end.members, [found.at_end.load])
        is_all = found.at_end.running == history.process_rates.keys()
        which = "all members" if is_all else "the members that run at the end"
        yield (
            f"The load of {load} records/s is more than the {members} that {which} together can handle in"
            " full batches. No assignor removes this backlog, only more members or faster processing."
        )
    elif found.is_over and not found.partitions:
        worst, falls = found.worst, _falls(history, found.at_end.ms)
        away = sorted(found.at_end.running - worst.running)
        if not away or falls <= 0:
            return
        were = f"{listed_names(away, _MOST_NAMED)} {agreeing('was', len(away))}"
        members, load = _apart(worst.members, [worst.load])
        yield (
            f"While {were} away, the load of {load} records/s was more than the {members} that the members"
            " that ran together could handle in full batches. At the end of the run the lag falls by"
            f" {as_text(falls)} records/s. This backlog is worked off without a change."
        )


def _apart(limit: float, values: Sequence[float]) -> list[str]:
    """Return a limit and values above it as texts, with so many digits that none looks like the limit."""
    texts = [as_text(value) for value in (limit, *values)]
    digits = 0
    while texts[0] in texts[1:]:
        digits += 1
        texts = [f"{value:,.{digits}f}" for value in (limit, *values)]
    return texts


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
