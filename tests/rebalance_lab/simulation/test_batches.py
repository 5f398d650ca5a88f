"""The end of the batch under way, against batches that are drawn one by one."""

from math import inf
from random import Random
from statistics import fmean, quantiles

import pytest

from rebalance_lab.simulation.process.batches import Batches
from rebalance_lab.simulation.process.workers import Work


def exact(overhead_ms=0, records=50):
    """Batches of records that take 100 ms each."""
    return Batches(100.0, 0.0, (overhead_ms, overhead_ms), records)


def backlog(records=1e9, rate=0.0, since_ms=0.0):
    return Work(records, since_ms, rate)


def test_a_batch_of_exact_records_ends_when_its_records_are_handled():
    assert exact().end_ms(1_000, 1_000, backlog(), Random(0)) == 6_000
    assert exact().end_ms(5_999, 1_000, backlog(), Random(0)) == 6_000


@pytest.mark.parametrize("batches", [1, 3, 1_000, 10_000_000])
def test_exact_batches_keep_their_phase_however_many_there_were(batches):
    """A poll takes 5 ms, so that a batch takes 5,005 ms."""
    end_ms = exact(overhead_ms=5).end_ms(batches * 5_005 - 1, 0, backlog(), Random(0))
    assert end_ms == pytest.approx(batches * 5_005, abs=1e-3)


def test_a_batch_has_the_records_that_wait_at_the_poll():
    assert exact().end_ms(0, 0, backlog(records=12), Random(0)) == 1_200


def test_batches_get_shorter_while_the_backlog_shrinks():
    """60 records wait and 5/s arrive: batches of 50, 10 + 25, and 17 records."""
    ends = []
    for asked_ms in (0, 5_001, 8_501):
        handled = asked_ms / 100
        waiting = 60 + 5 * asked_ms / 1_000 - handled
        ends.append(exact().end_ms(asked_ms, 0, backlog(waiting, rate=5.0), Random(0)))
    assert ends == [5_000, 8_500, 10_200]


def test_a_backlog_that_began_after_the_last_poll_begins_a_batch():
    assert exact().end_ms(9_000, 0, backlog(since_ms=7_000.0), Random(0)) == 12_000


def test_without_records_the_application_waits_in_its_poll():
    assert exact().end_ms(1_234, 0, Work(0.0, 0.0, 0.0), Random(0)) == 1_234


def rests(batches, now_ms, work, runs=4_000):
    return [batches.end_ms(now_ms, 0, work, Random(seed)) - now_ms for seed in range(runs)]


def drawn_singly(batches, now_ms, random):
    """The same, each record drawn by itself."""
    at_ms = 0.0
    while at_ms < now_ms:
        at_ms += batches.overhead_ms[0]
        at_ms += sum(random.expovariate(1 / batches.record_ms) for _ in range(batches.most_records))
    return at_ms - now_ms


@pytest.mark.slow
@pytest.mark.parametrize("now_ms", [700, 12_000])
def test_random_batches_end_as_if_each_record_were_drawn(now_ms):
    """Exponential records of 10 ms, 20 of them a batch: the quartiles of the rest of the batch."""
    batches = Batches(10.0, 1.0, (5, 5), 20)
    singly = [drawn_singly(batches, now_ms, Random(f"single {seed}")) for seed in range(4_000)]
    assert quantiles(rests(batches, now_ms, backlog())) == pytest.approx(quantiles(singly), rel=0.1)


def test_the_cost_does_not_grow_with_the_number_of_batches():
    class Counting(Random):
        draws = 0

        def gammavariate(self, alpha, beta):
            self.draws += 1
            return super().gammavariate(alpha, beta)

    counts = []
    for now_ms in (1e6, 1e12):
        random = Counting(1)
        Batches(10.0, 1.0, (5, 5), 20).end_ms(now_ms, 0, backlog(1e15), random)
        counts.append(random.draws)
    assert counts[1] < 3 * counts[0] < 300


def test_a_member_that_keeps_up_has_short_batches():
    """Half of the time goes into records: a batch takes 2 x 5 ms, and half of one is left on average."""
    batches = Batches(1.0, 0.0, (5, 5), 500)
    left = rests(batches, 1_000, Work(0.0, 0.0, 500.0))
    assert max(left) <= 10
    assert fmean(left) == pytest.approx(5, rel=0.1)


def test_no_batch_has_more_than_the_largest_number_of_records():
    """Records begin to arrive at twelve times what the member handles. Its batch is one of 50 records."""
    left = rests(exact(), 1_000, Work(0.0, 0.0, 120.0))
    assert 4_000 < max(left) <= 5_000


def test_a_member_with_few_records_waits_for_them_in_its_poll():
    """One record a second that takes 100 ms: the member is busy a tenth of the time."""
    left = rests(exact(), 1_000, Work(0.0, 0.0, 1.0))
    busy = [rest for rest in left if rest]
    assert len(busy) / len(left) == pytest.approx(0.1, abs=0.02)
    assert fmean(busy) == pytest.approx(50, rel=0.1)


def test_the_overhead_of_polls_lowers_what_a_member_can_handle():
    assert exact(overhead_ms=1_000, records=10).records_per_second == 5
    assert Batches(0.0, 1.0, (0, 0), 500).records_per_second == inf
