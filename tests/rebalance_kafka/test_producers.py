"""Transactions on partitions: open and ended ones, and what readers of committed records get (KIP-98)."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.producers import REMEMBERED
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import Begin, Topics
from rebalance_kafka.wire.batches import marker, records_of
from tests.rebalance_kafka.records import AT_MS, BEGINS, batch, numbered

PLENTY = 1_000_000
PRODUCER = 5
END = AT_MS + 1


class Log:
    """Topics ``t`` and ``u`` with transactions that contain every partition but ``t-1``."""

    def __init__(self, folder=None):
        self.store = Store(folder)
        self.topics = Topics(self.store, most_bytes=PLENTY)
        self.asked = []
        if not self.topics.partitions:
            self.topics.create({"t": 2, "u": 1})

    def write(self, *values, producer=PRODUCER, epoch=0, sequence=0, topic="t", partition=0):
        """Write a batch of a transaction."""
        data = batch(*values, producer=(producer, epoch, sequence), transactional=True)
        return self.append(data, topic, partition)

    def append(self, data, topic="t", partition=0):
        (appended,) = self.topics.append([(topic, partition, data)], begin=Begin(self.refusal))
        return appended

    def refusal(self, producer_id, epoch, place):
        self.asked.append((producer_id, epoch, place))
        return Wire.invalid_txn_state if place[1] == 1 else Wire.none

    def end(self, *places, producer=PRODUCER, epoch=0, committed=True):
        self.topics.end_transaction(places or [("t", 0)], producer, epoch, committed=committed, now_ms=END)

    def bounds(self, topic="t", partition=0):
        """Return the last stable offset and the end."""
        return self.topics.last_stable(topic, partition), self.topics.end(topic, partition)

    def read(self, offset=0):
        """Return the values that a reader of committed records gets, and the aborted transactions."""
        data, aborted = self.topics.read_committed("t", 0, offset, PLENTY, at_least_one=True)
        return [record.value for record in records_of(data, aborted)[0]], aborted


@pytest.fixture
def log():
    return Log()


# --- the last stable offset


def test_markers_are_written_to_all_partitions_of_a_transaction_that_exist(log):
    log.write(b"a")
    log.end(("t", 0), ("u", 0), ("u", 1), ("gone", 0))
    assert (log.bounds(), log.bounds("u")) == ((2, 2), (1, 1))
    assert log.topics._bytes == log.store.size()


def test_only_the_aborted_transactions_of_a_range_are_listed(log):
    for n in range(3):
        log.write(b"%d" % n, sequence=n)
        log.end(committed=False)
    assert [log.read(offset)[1] for offset in (0, 1, 2, 5, 6)] == [
        [(PRODUCER, 0), (PRODUCER, 2), (PRODUCER, 4)],
        [(PRODUCER, 0), (PRODUCER, 2), (PRODUCER, 4)],
        [(PRODUCER, 2), (PRODUCER, 4)],
        [(PRODUCER, 4)],
        [],
    ]
    data, aborted = log.topics.read_committed("t", 0, 0, 1, at_least_one=True)
    assert (len(records_of(data)[0]), aborted) == (1, [(PRODUCER, 0)])


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["write", "plain", "commit", "abort"])), max_size=25
)


@given(STEPS, st.integers(0, 30))
def test_a_reader_gets_the_records_of_committed_transactions_in_order(steps, offset):
    log, model, sequences = Log(), [], [0, 0, 0]
    for producer, step in steps:
        at = len(model)
        if step == "write":
            log.write(b"%d" % at, producer=producer, sequence=sequences[producer])
            sequences[producer] += 1
            model.append(producer)
        elif step == "plain":
            log.append(batch(b"%d" % at))
            model.append(None)
        else:
            log.end(producer=producer, committed=step == "commit")
            kept = "committed" if step == "commit" else "aborted"
            model = [kept if each == producer and type(each) is int else each for each in model]
            model.append("marker")
    stable = next((at for at, each in enumerate(model) if type(each) is int), len(model))
    assert log.bounds() == (stable, len(model))
    expected = [b"%d" % at for at in range(offset, stable) if model[at] in (None, "committed")]
    assert log.read(min(offset, len(model)))[0] == expected


# --- what is refused, and leaves the log as it is


def refused(log, data, partition=0):
    before = log.bounds("t", partition)
    result = log.append(data, "t", partition)
    assert log.bounds("t", partition) == before
    return result


def of_transaction(*, producer=(PRODUCER, 0, 0)):
    return batch(b"x", producer=producer, transactional=True)


def test_a_batch_of_a_transaction_that_does_not_contain_the_partition_is_refused(log):
    assert refused(log, of_transaction(), partition=1).error is Wire.invalid_txn_state
    assert log.append(batch(b"x", producer=(PRODUCER, 0, 0)), "t", 1).error is Wire.none


def test_the_coordinator_is_given_the_producer_and_the_partition(log):
    log.write(b"a", epoch=3, partition=1)
    assert log.asked == [(PRODUCER, 3, ("t", 1))]


def test_a_marker_makes_its_producer_known(log):
    """Also where it has no records: an older epoch is refused, and a later one begins with sequence 0."""
    log.end(epoch=3)
    late = refused(log, batch(b"x", producer=(PRODUCER, 2, 0)))
    jump = refused(log, of_transaction(producer=(PRODUCER, 3, 1)))
    assert (late.error, jump.error) == (Wire.invalid_producer_epoch, Wire.out_of_order_sequence_number)
    assert log.write(b"a", epoch=3).error is Wire.none


def test_the_coordinator_is_not_asked_while_the_transaction_is_open(log):
    log.write(b"a")
    log.write(b"b", sequence=1)
    assert log.asked == [(PRODUCER, 0, ("t", 0))]


def test_a_new_producer_may_have_to_begin_with_sequence_0(log):
    """KIP-890: its epoch is as new as its transaction."""
    begin = Begin(lambda *_: Wire.none, from_zero=True)
    late, first = (
        log.topics.append([("t", 0, of_transaction(producer=(PRODUCER, 0, n)))], begin=begin)[0]
        for n in (1, 0)
    )
    assert (late.error, first.error) == (Wire.out_of_order_sequence_number, Wire.none)


def test_a_batch_of_a_transaction_needs_a_request_with_a_transactional_id(log):
    (appended,) = log.topics.append([("t", 0, of_transaction())])
    assert (appended.error, log.bounds()) == (Wire.transactional_id_authorization_failed, (0, 0))


def test_in_a_transaction_a_producer_writes_batches_of_the_transaction_only(log):
    log.write(b"a")
    assert refused(log, batch(b"x", producer=(PRODUCER, 0, 1))).error is Wire.invalid_txn_state


@pytest.mark.parametrize(
    "data",
    [
        marker(PRODUCER, 0, committed=True, at_ms=END),
        of_transaction(producer=(-1, -1, -1)),
        of_transaction(producer=(PRODUCER, -1, 0)),
        of_transaction(producer=(PRODUCER, 0, -1)),
        of_transaction() + of_transaction(producer=(PRODUCER, 0, 1)),
        numbered(1) + of_transaction(),
    ],
    ids=["marker", "no producer", "no epoch", "no sequence", "two batches", "a second batch"],
)
def test_a_malformed_batch_is_an_invalid_record(log, data):
    assert refused(log, data).error is Wire.invalid_record


def test_a_fenced_producer_is_refused_and_its_successor_begins_with_sequence_0(log):
    log.write(b"a")
    log.end(epoch=1, committed=False)
    assert refused(log, of_transaction(producer=(PRODUCER, 0, 1))).error is Wire.invalid_producer_epoch
    refusal = refused(log, of_transaction(producer=(PRODUCER, 1, 1)))
    assert refusal.error is Wire.out_of_order_sequence_number
    assert log.write(b"b", epoch=1).error is Wire.none


def test_a_repeated_batch_is_recognised_after_its_transaction(log):
    log.write(b"a")
    log.end()
    assert (log.write(b"a").base_offset, log.bounds()) == (0, (2, 2))


def test_a_partition_that_comes_twice_in_a_request_begins_one_transaction(log):
    writes = [of_transaction(), of_transaction(producer=(PRODUCER, 0, 1))]
    log.topics.append([("t", 0, data) for data in writes], begin=BEGINS)
    log.end(committed=False)
    assert (log.bounds(), log.read()) == ((3, 3), ([], [(PRODUCER, 0)]))


def test_markers_that_cannot_be_written_change_nothing(log):
    log.write(b"a")
    log.store._sql.execute("pragma query_only = on")
    with pytest.raises(sqlite3.Error):
        log.end()
    assert log.bounds() == (0, 1)
    log.store._sql.execute("pragma query_only = off")
    log.end()
    assert log.read() == ([b"a"], [])


# --- the store


def test_transactions_are_found_in_the_store(tmp_path):
    log = Log(tmp_path)
    log.write(b"a")
    log.end(committed=False)
    log.write(b"b", sequence=1)
    log.end()
    log.write(b"open", producer=6)
    log.write(b"c", sequence=2)
    log.store.close()
    again = Log(tmp_path)
    with closing(again.store):
        assert (again.bounds(), again.read()) == ((4, 6), ([b"b"], [(PRODUCER, 0)]))
        assert again.write(b"c", sequence=2).base_offset == 5
        assert (
            refused(again, of_transaction(producer=(PRODUCER, 0, 4))).error
            is Wire.out_of_order_sequence_number
        )
        again.end(producer=6, committed=False)
        again.end()
        assert again.read() == ([b"b", b"c"], [(PRODUCER, 0), (6, 4)])


def test_ranges_of_aborted_transactions_are_those_before_a_restart(tmp_path):
    log = Log(tmp_path)
    log.write(b"a", producer=6)
    log.write(b"b", producer=7)
    log.end(producer=7, committed=False)
    log.end(producer=6, committed=False)
    before = [log.read(offset)[1] for offset in range(4)]
    assert before == [[(7, 1), (6, 0)]] * 3 + [[(6, 0)]]
    log.store.close()
    again = Log(tmp_path)
    with closing(again.store):
        assert [again.read(offset)[1] for offset in range(4)] == before


def test_batches_are_recognised_after_a_restart_however_many_markers_are_between_them(tmp_path):
    log = Log(tmp_path)
    for n in range(REMEMBERED):
        log.write(b"%d" % n, sequence=n)
        log.end()
    log.store.close()
    again = Log(tmp_path)
    with closing(again.store):
        offsets = [again.write(b"%d" % n, sequence=n).base_offset for n in range(REMEMBERED)]
    assert offsets == [2 * n for n in range(REMEMBERED)]


def test_a_fenced_producer_is_known_from_the_store(tmp_path):
    log = Log(tmp_path)
    log.write(b"a")
    log.end(epoch=1, committed=False)
    log.store.close()
    again = Log(tmp_path)
    with closing(again.store):
        assert again.write(b"b", sequence=1).error is Wire.invalid_producer_epoch


def test_deleted_records_move_the_last_stable_offset_and_forget_aborted_transactions(log):
    log.write(b"a")
    log.end(committed=False)
    log.write(b"b", b"c", sequence=1)
    log.topics.delete_records({("t", 0): 3})
    assert (log.bounds(), log.topics._producers._aborted[("t", 0)]) == ((3, 4), [])
    assert [each.first for each in log.store.transactions()] == [2]
    log.end()
    assert log.read(3) == ([b"b", b"c"], [])


def test_a_topic_that_is_created_again_has_no_transactions(log):
    log.write(b"a", topic="u")
    log.end(("u", 0), committed=False)
    log.write(b"b", sequence=1, topic="u")
    log.topics.delete(["u"])
    log.topics.create({"u": 1})
    assert (log.bounds("u"), list(log.store.transactions())) == ((0, 0), [])
    log.write(b"c", topic="u")
    log.end(("u", 0))
    assert log.topics.read_committed("u", 0, 0, PLENTY, at_least_one=True)[1] == []


def test_a_marker_wakes_the_waits_of_its_partition(log):
    log.write(b"a")
    woken = []
    log.topics.wait([("t", 0)], lambda: woken.append(log.read()[0]))
    log.end()
    assert woken == [[b"a"]]


def test_the_sequence_after_the_last_number_is_0(log):
    for sequence, following in ((2**31 - 2, 0), (0, 2)):
        assert log.write(b"a", b"b", sequence=sequence).error == Wire.none
        assert log.write(b"c", sequence=following + 1).error == Wire.out_of_order_sequence_number


def test_a_batch_is_known_again_until_five_others_were_written(log):
    """KIP-98: a producer has at most five batches under way."""
    for sequence in range(5):
        log.write(b"x", sequence=sequence)
    again = log.write(b"x", sequence=0)
    assert (again.error, again.base_offset) == (Wire.none, 0)
    log.write(b"x", sequence=5)
    assert log.write(b"x", sequence=0).error == Wire.out_of_order_sequence_number


def test_aborted_transactions_beyond_what_is_read_are_not_listed(log):
    log.append(batch(b"before"))
    log.write(b"a")
    log.end(committed=False)
    data, aborted = log.topics.read_committed("t", 0, 0, 1, at_least_one=True)
    assert [record.value for record in records_of(data, aborted)[0]] == [b"before"]
    assert aborted == []
    assert [each.producer_id for each in log.read()[1]] == [PRODUCER]
