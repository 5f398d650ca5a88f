"""The batches of an application: when the one under way ends.

An application that has records to handle polls when the last batch is handled. The batches that follow a poll
are drawn up to the time in question, only when a poll is wanted. The time of n records is gamma distributed
with the mean n / process_rate and the coefficient of variation record_cv / sqrt(n). Sums of such times are
gamma distributed, too, so that many batches take one draw, and the cost does not grow with their number.

- With a backlog, the phase follows from the last poll: exactly if ``record_cv`` is 0, else with the spread of
  the batches since. The backlog at an earlier time follows from the present one, at the present rates; where
  rates or partitions changed meanwhile, batches below max.poll.records have sizes of the present rates.
- A member that keeps up has short batches: in the time of one, just the records of the next arrive, so that
  its mean is overhead / (1 - utilisation). The phase is drawn, as the document does not determine it.
"""

from math import floor, inf, sqrt
from random import Random

from coordinator_core.protocol import events as ev
from rebalance_lab.scenarios.scenario import Member
from rebalance_lab.simulation.process.load import WHOLE
from rebalance_lab.simulation.process.workers import Work

CERTAIN = 6.0
"""Batches are passed in one draw as long as they end before the time in question, by this many deviations."""


class Batches:
    """The sizes and times of batches: ``record_ms`` is the mean time of a record.

    ``mean_ms`` is the mean time of a batch of ``max.poll.records``. ``records_per_second`` are the records/s
    with a backlog; inf if neither records nor polls take time. ``longest_ms`` is a time that a batch does not
    exceed, but for a probability of e**-40.
    """

    __slots__ = (
        "_deviation",
        "_mean_overhead_ms",
        "longest_ms",
        "mean_ms",
        "most_records",
        "overhead_ms",
        "record_cv",
        "record_ms",
        "records_per_second",
    )

    def __init__(
        self, record_ms: float, record_cv: float, overhead_ms: tuple[int, int], most_records: int
    ) -> None:
        self.record_ms, self.most_records = record_ms, most_records
        self.record_cv, self.overhead_ms = record_cv, overhead_ms
        self._mean_overhead_ms = sum(overhead_ms) / 2
        mean_ms = self.mean_ms = most_records * record_ms + self._mean_overhead_ms
        self.records_per_second = 1_000 * most_records / mean_ms if mean_ms else inf
        varying = most_records + record_cv * sqrt(80 * most_records) + 40 * record_cv**2
        self.longest_ms = overhead_ms[1] + record_ms * varying
        self._deviation = 0.0
        """The standard deviation of a batch of ``max.poll.records``, at most, in parts of its mean."""
        if mean_ms:
            self._deviation = record_cv * record_ms * sqrt(most_records) / mean_ms
            self._deviation += (overhead_ms[1] - overhead_ms[0]) / mean_ms

    @classmethod
    def of(cls, member: Member, most_records: int) -> "Batches":
        """Return the batches of a member of a scenario. ``most_records`` is its max.poll.records."""
        record_ms = 1_000 / member.process_rate if member.process_rate else 0.0
        times = member.application
        return cls(record_ms, times.record_cv, times.batch_overhead, most_records)

    def started(self, client: str, max_poll_interval_ms: int) -> ev.ApplicationStarted | None:
        """Return the event of a process that handles records so, None if its batches take no time."""
        if not self.mean_ms:
            return None
        return ev.ApplicationStarted(
            client=client,
            batch_ms=round(self.mean_ms),
            max_poll_records=self.most_records,
            max_poll_interval_ms=max_poll_interval_ms,
            records_per_second=self.records_per_second,
        )

    def end_ms(self, now_ms: float, begun_ms: float, work: Work, random: Random) -> float:
        """Return when the batch under way ends: at ``now_ms`` or later.

        ``begun_ms`` is the time of the last poll that is known. An application without records waits in its
        poll, so that the result is ``now_ms``.
        """
        if not (work.waiting >= 1 or work.rate):
            return now_ms
        if work.waiting >= 1:
            end_ms = self._with_backlog(now_ms, max(begun_ms, work.since_ms), work, random)
            if end_ms is not None:
                return end_ms
        return self._keeping_up(now_ms, work.rate, random)

    def drawn_ms(self, random: Random) -> float:
        """Draw the time of a batch of max.poll.records."""
        return self._drawn(self.most_records, 1, random)

    def _with_backlog(self, now_ms: float, at_ms: float, work: Work, random: Random) -> float | None:
        """Draw batches from a poll at ``at_ms`` on. Return None if the backlog was handled before now."""
        per_ms = work.rate / 1_000
        waiting = work.waiting + (self.records_per_second / 1_000 - per_ms) * (now_ms - at_ms)
        while waiting + WHOLE >= 1:
            passed = self._surely_passed(now_ms - at_ms, waiting, per_ms)
            if passed:
                took_ms = self._drawn(passed * self.most_records, passed, random)
                handled = passed * self.most_records
            else:
                handled = min(self.most_records, floor(waiting + WHOLE))
                took_ms = self._drawn(handled, 1, random)
                if at_ms + took_ms >= now_ms:
                    return at_ms + took_ms
            at_ms += took_ms
            waiting += per_ms * took_ms - handled
        return None

    def _surely_passed(self, time_ms: float, waiting: float, per_ms: float) -> int:
        """Return how many whole batches have certainly ended in a time."""
        batches = time_ms / self.mean_ms
        certain = floor(batches - CERTAIN * self._deviation * sqrt(max(batches, 1)) - 1)
        shrinks = self.most_records - per_ms * self.mean_ms
        if shrinks > 0:
            certain = min(certain, floor((waiting - self.most_records) / shrinks))
        return certain if certain > 1 else 0

    def _keeping_up(self, now_ms: float, rate: float, random: Random) -> float:
        """Draw the rest of a batch at a time that does not depend on the batch."""
        busy = rate * self.record_ms / 1_000
        overhead_ms = self._mean_overhead_ms
        cycle_ms = min(overhead_ms / (1 - busy), self.mean_ms) if busy < 1 else self.mean_ms
        records = min(rate * cycle_ms / 1_000, self.most_records)
        if records < 1:
            if random.random() >= rate / 1_000 * (self.record_ms + overhead_ms):
                return now_ms  # it waits for a record
            records = 1.0
        # A time that is longer is more likely to be met: gamma with one more record's worth of shape.
        longer = records + self.record_cv**2
        return now_ms + random.random() * self._drawn(longer if self.record_cv else records, 1, random)

    def _drawn(self, records: float, polls: int, random: Random) -> float:
        """Draw the time of polls with so many records in all."""
        low, high = self.overhead_ms
        overhead_ms = polls * (low + high) / 2 if polls > 1 or low == high else random.uniform(low, high)
        if not self.record_cv or not self.record_ms:
            return overhead_ms + records * self.record_ms
        variance = self.record_cv**2
        return overhead_ms + random.gammavariate(records / variance, variance * self.record_ms)
