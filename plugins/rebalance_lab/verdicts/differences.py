"""The partitions that have different owners in several runs at a time, and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.events import PartitionMap
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.entries import Round
from rebalance_lab.traces.history import History
from rebalance_lab.traces.ledger import Span
from rebalance_lab.traces.rounds import rounds
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.tables import Cell, html_table

MOST_ROWS = 20
"""The most partitions that are shown; the others are counted."""

NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Difference:
    """A partition, and under each strategy its owner (`NOBODY` for none) and the reason."""

    partition: TopicPartition
    owners: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """The partitions whose owners differ at ``at_ms``, of ``partitions`` in all; in order."""

    strategies: tuple[str, ...]
    at_ms: int
    partitions: int
    rows: tuple[Difference, ...]

    @property
    def title(self) -> str:
        """The time and the number of partitions: ``at 31.2 s: 2 of 6 partitions have different owners``."""
        at, count = _seconds(self.at_ms), len(self.rows)
        if not count:
            return f"at {at}: no partition has different owners"
        have = "has" if count == 1 else "have"
        return f"at {at}: {count:,} of {self.partitions:,} partitions {have} different owners"

    def as_html(self, most: int = MOST_ROWS) -> str:
        """Return a table with up to ``most`` rows, and the number of the others."""
        if not self.rows:
            return f"<p>{self.title}</p>"
        names = self.strategies
        head = ["partition", *names, *(f"why under {name}" for name in names)]
        rows = [
            [Cell(text, left=True) for text in (_named(row), *row.owners, *row.reasons)]
            for row in self.rows[:most]
        ]
        table = html_table(head, rows, self.title)
        return table + (f"<p>{self._rest(most)}</p>" if self._rest(most) else "")

    def __str__(self) -> str:
        """Return a line for each partition and each of its owners."""
        lines = [self.title]
        for row in self.rows[:MOST_ROWS]:
            columns = zip(self.strategies, row.owners, row.reasons, strict=True)
            lines += [f"{_named(row)} under {name}: {owner}, {reason}" for name, owner, reason in columns]
        return "\n".join([*lines, *filter(None, [self._rest(MOST_ROWS)])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.as_html()

    def _rest(self, most: int) -> str:
        return f"and {len(self.rows) - most:,} more" if len(self.rows) > most else ""


def differences(traces: Sequence[Trace], at_ms: int, registry: Registry | None = None) -> Differences:
    """Return the partitions whose owners differ between traces at a time of the runs."""
    return differences_of([Owners(trace, registry) for trace in traces], at_ms)


class Owners:
    """The owners of a run over time. A trace is read once for many times."""

    def __init__(self, trace: Trace, registry: Registry | None = None) -> None:
        history = History(trace, registry)
        self.strategy, self._end_ms = trace.strategy, trace.started.duration_ms
        self.partitions = [TopicPartition(t, n) for t, count in history.topics.items() for n in range(count)]
        self._spans = {tp: sorted(spans, key=_times) for tp, spans in history.spans.items()}
        self._rounds = rounds(trace, registry)
        self._marks = {mark.at_ms: mark.label for mark in history.marks}

    def at(self, partition: TopicPartition, at_ms: int) -> tuple[str, ...]:
        """Return the owners of a partition at a time; without a coordinator there may be several."""
        return tuple(sorted({span.client for span in self._current(partition, at_ms)}))

    def reason(self, partition: TopicPartition, at_ms: int) -> str:
        """Return why a partition has its owner at a time, or has none."""
        past = [span for span in self._spans.get(partition, ()) if span.from_ms <= at_ms]
        current = self._current(partition, at_ms)
        if not past:
            return "not assigned yet"
        if not current:
            last = max(past, key=lambda span: span.to_ms)
            return self._given_up(partition, last)
        return "; ".join(self._taken_over(partition, past, span) for span in current)

    def _current(self, partition: TopicPartition, at_ms: int) -> list[Span]:
        last_ms = min(at_ms, self._end_ms - 1)
        return [s for s in self._spans.get(partition, ()) if s.from_ms <= last_ms < s.to_ms]

    def _taken_over(self, partition: TopicPartition, past: Sequence[Span], current: Span) -> str:
        """Describe how the owner got the partition from its last other owner."""
        first, before = current, None
        for span in reversed(past[: past.index(current)]):
            if span.client != current.client:
                before = span
                break
            first = span
        if before is None:
            return f"kept since it was first assigned, at {_seconds(first.from_ms)}"
        taken = self._round(first.client, partition, ("assigned", "held"), first.from_ms)
        given = self._round(before.client, partition, ("revoked", "lost"), first.from_ms, before.from_ms)
        text = f"moved from {before.client} at {_seconds(first.from_ms)}"
        if taken is None:
            return text
        if given is None or given is taken:
            return f"{text} in {taken.name} ({_cause(taken)})"
        return f"{text} in {taken.name}, given up in {given.name} ({_cause(given)})"

    def _given_up(self, partition: TopicPartition, last: Span) -> str:
        text = f"{last.client} had it until {_seconds(last.to_ms)}"
        given = self._round(last.client, partition, ("revoked", "lost"), last.to_ms, last.from_ms)
        if given is not None:
            return f"{text}, given up in {given.name} ({_cause(given)})"
        ended = self._marks.get(last.to_ms)
        return f"{text} ({ended})" if ended else text

    def _round(
        self, client: str, partition: TopicPartition, changes: Iterable[str], until_ms: int, since_ms: int = 0
    ) -> Round | None:
        """Return the last round that began until a time in which a member had a change of the partition."""
        for entry in reversed(self._rounds):
            member = entry.members.get(client)
            if entry.began_ms <= until_ms and (entry.stable_ms or until_ms) >= since_ms and member:
                maps: list[PartitionMap] = [getattr(member, change) for change in changes]
                if any(partition.partition in each.get(partition.topic, ()) for each in maps):
                    return entry
        return None


def differences_of(runs: Sequence[Owners], at_ms: int) -> Differences:
    """Return the partitions whose owners differ between runs that were read before."""
    partitions = sorted({tp for run in runs for tp in run.partitions})
    rows = []
    for tp in partitions:
        owners = [run.at(tp, at_ms) for run in runs]
        if len(set(owners)) > 1:
            names = tuple(" and ".join(each) or NOBODY for each in owners)
            rows.append(Difference(tp, names, tuple(run.reason(tp, at_ms) for run in runs)))
    return Differences(tuple(run.strategy for run in runs), at_ms, len(partitions), tuple(rows))


def _named(row: Difference) -> str:
    """Write the partition of a row: ``orders-3``."""
    return f"{row.partition.topic}-{row.partition.partition}"


def _seconds(at_ms: int) -> str:
    """Write a time of a run: ``31.2 s``."""
    return f"{at_ms / 1_000:g} s"


def _cause(entry: Round) -> str:
    return entry.causes[0] if entry.causes else "no cause is known"


def _times(span: Span) -> tuple[int, int]:
    return span.from_ms, span.to_ms
