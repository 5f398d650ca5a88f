"""The transaction coordinator with a store, and a list in place of partitions and groups."""

import sqlite3

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import InputError
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.transaction_states import LAST_EPOCH, PREPARED, Producer, State, TransactionalId
from rebalance_kafka.broker.transactions import RETRY_MS, Transactions, TransactionSettings
from tests.examples import scaled

TIMEOUT_MS = 60_000
PLACE, OTHER = ("t", 0), ("t", 1)


class Ends:
    """The outcomes that partitions and groups get. ``broken``: the store accepts no marker."""

    def __init__(self):
        self.markers = []
        self.groups = []
        self.broken = False

    def end_transaction(self, places, producer_id, epoch, *, committed, now_ms):
        if self.broken:
            raise sqlite3.OperationalError("disk full")
        self.markers += [(place, (producer_id, epoch), committed) for place in places]

    def end_on_group(self, group_id, producer_id, committed, now_ms):
        if not self.broken:
            self.groups.append((group_id, producer_id, committed))
        return not self.broken


class Bench:
    """Transactions over a store that may be killed, at a time that tests move."""

    def __init__(self, **settings):
        self.store = Store()
        self.settings = TransactionSettings(**settings)
        self.now_ms = 1_000
        self.ends = Ends()
        self.start()

    def start(self, **options):
        """Begin anew with what the store has, as after a crash."""
        self.transactions = Transactions(self.store, self.ends, self.settings, **options)
        self.transactions.end_on_group = self.ends.end_on_group
        self.transactions.resume(self.now_ms)

    def init(self, name="x", named=None, timeout_ms=TIMEOUT_MS):
        return self.transactions.initialize(name, timeout_ms, named, self.now_ms)

    def add(self, producer, *places, name="x", groups=()):
        return self.transactions.add(name, producer, self.now_ms, partitions=places, groups=groups)

    def end(self, producer, *, committed=True, name="x"):
        return self.transactions.end(name, producer, self.now_ms, committed=committed)

    def wait(self, wait_ms):
        self.now_ms += wait_ms
        due_ms = self.transactions.not_before_ms()
        if due_ms is not None and due_ms <= self.now_ms:
            self.transactions.on_deadline(self.now_ms)

    def state(self, name="x"):
        return self.transactions.find(name).state

    def end_with_next_epoch(self, producer, *, committed=True, name="x"):
        return self.transactions.end_with_next_epoch(name, producer, self.now_ms, committed=committed)

    def has(self, producer, place=PLACE):
        return self.transactions.verify("x", producer, partition=place) is Wire.none

    def has_group(self, producer, group):
        return self.transactions.verify("x", producer, group=group) is Wire.none

    def set_epoch(self, epoch):
        """Let the producer of x have this epoch."""
        record = self.transactions.find("x")
        self.transactions._write(
            TransactionalId("x", record.producer._replace(epoch=epoch), TIMEOUT_MS), record, self.now_ms
        )
        return Producer(record.producer.producer_id, epoch)


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def producer(bench):
    return bench.init()


# --- InitProducerId


def test_the_first_producer_of_a_transactional_id_has_epoch_0(bench):
    first, second = bench.init("x"), bench.init("y")
    assert (first.epoch, second.epoch) == (0, 0)
    assert first.producer_id != second.producer_id


def test_the_next_producer_fences_the_one_before(bench, producer):
    newer = bench.init()
    assert newer == (producer.producer_id, 1)
    assert bench.add(producer, PLACE) is Wire.producer_fenced
    assert bench.end(producer) is Wire.producer_fenced
    assert bench.add(newer, PLACE) is Wire.none


def test_the_transaction_of_the_producer_before_is_aborted_first(bench, producer):
    bench.add(producer, PLACE, groups=("g",))
    assert bench.init() is Wire.concurrent_transactions
    fence = producer._replace(epoch=1)
    assert bench.ends.markers == [(PLACE, fence, False)]
    assert bench.ends.groups == [("g", producer.producer_id, False)]
    assert bench.end(producer) is Wire.producer_fenced
    assert bench.init() == (producer.producer_id, 2)


def test_a_producer_continues_with_the_next_epoch(bench, producer):
    """KIP-360."""
    newer = bench.init(named=producer)
    assert newer == (producer.producer_id, 1)
    assert bench.init(named=producer) == newer, "the response was lost, and the request is repeated"
    bench.add(newer, PLACE)
    bench.end(newer)
    assert bench.init(named=newer) == (producer.producer_id, 2)
    assert bench.init(named=producer) is Wire.producer_fenced


def test_a_transaction_is_aborted_for_any_producer_with_the_id(bench, producer):
    """Kafka compares the epoch after that."""
    newer = bench.init(named=producer)
    bench.add(newer, PLACE)
    assert bench.init(named=producer) is Wire.concurrent_transactions
    assert bench.state() is State.COMPLETE_ABORT
    assert bench.init(named=producer) is Wire.producer_fenced
    assert bench.init(named=newer) == (producer.producer_id, 2)


def test_a_fenced_producer_cannot_continue(bench, producer):
    newer = bench.init()
    assert bench.init(named=producer) is Wire.producer_fenced
    assert bench.init(named=Producer(producer.producer_id + 1, 0)) is Wire.producer_fenced
    bench.add(newer, PLACE)
    assert bench.init(named=Producer(producer.producer_id + 1, 0)) is Wire.producer_fenced
    assert bench.has(newer)


def test_an_exhausted_epoch_gives_a_new_producer_id(bench, producer):
    last = bench.set_epoch(LAST_EPOCH)
    newer = bench.init(named=last)
    assert newer.epoch == 0
    assert newer.producer_id != producer.producer_id
    assert bench.init(named=last) == newer, "the response was lost, and the request is repeated"
    assert bench.add(last, PLACE) is Wire.invalid_producer_id_mapping


def test_the_last_epoch_of_all_fences_the_last_producer(bench, producer):
    last = bench.set_epoch(LAST_EPOCH)
    bench.add(last, PLACE)
    assert bench.init() is Wire.concurrent_transactions
    assert bench.ends.markers == [(PLACE, last._replace(epoch=2**15 - 1), False)]
    record = bench.transactions.find("x")
    assert record.producer == (producer.producer_id + 1, 0), "the fence has used up the epochs of the id"
    assert bench.init() == (producer.producer_id + 1, 1)


@pytest.mark.parametrize(
    ("timeout_ms", "allowed"), [(0, False), (-1, False), (1, True), (2_000, True), (2_001, False)]
)
def test_the_time_of_transactions_is_limited(timeout_ms, allowed):
    answer = Bench(max_timeout_ms=2_000).init(timeout_ms=timeout_ms)
    assert answer is Wire.invalid_transaction_timeout or allowed
    assert isinstance(answer, Producer) is allowed


def test_the_limit_of_the_time_is_positive():
    with pytest.raises(InputError, match=r"transaction.max.timeout.ms: found 0, expected 1 or more"):
        TransactionSettings(max_timeout_ms=0)


def test_an_empty_transactional_id_is_invalid(bench, producer):
    answers = bench.init(""), bench.add(producer, PLACE, name=""), bench.end(producer, name="")
    assert answers == (Wire.invalid_request,) * 3


# --- partitions and groups


def test_a_transaction_has_the_partitions_that_were_added(bench, producer):
    assert not bench.has(producer)
    assert bench.add(producer, PLACE) is Wire.none
    assert bench.has(producer)
    assert not bench.has(producer, OTHER)
    assert not bench.has(producer._replace(epoch=1))
    assert bench.add(producer, OTHER, PLACE, groups=("g",)) is Wire.none
    assert bench.transactions.find("x").partitions == (PLACE, OTHER)
    assert bench.has_group(producer, "g")
    assert not bench.has_group(producer, "h")
    assert not bench.has_group(producer._replace(epoch=1), "g")
    assert bench.add(producer, groups=("h",)) is Wire.none
    assert bench.has_group(producer, "g")
    assert bench.has_group(producer, "h")
    bench.end(producer)
    assert not bench.has(producer)
    assert not bench.has_group(producer, "g")


@pytest.mark.parametrize("name", ["x", "unknown"])
def test_only_the_producer_of_an_id_uses_it(bench, producer, name):
    other = Producer(producer.producer_id + 7, 0)
    assert bench.add(other, PLACE, name=name) is Wire.invalid_producer_id_mapping
    assert bench.end(other, name=name) is Wire.invalid_producer_id_mapping
    assert bench.add(producer._replace(epoch=1), PLACE) is Wire.producer_fenced


# --- EndTxn


@pytest.mark.parametrize("committed", [True, False])
def test_a_repeated_end_changes_nothing(bench, producer, committed):
    bench.add(producer, PLACE)
    bench.end(producer, committed=committed)
    assert bench.end(producer, committed=committed) is Wire.none
    assert bench.end(producer, committed=not committed) is Wire.invalid_txn_state
    assert len(bench.ends.markers) == 1


def test_a_transaction_that_has_not_begun_cannot_end(bench, producer):
    assert [bench.end(producer, committed=committed) for committed in (True, False)] == [
        Wire.invalid_txn_state
    ] * 2


# --- the end of a transaction gives the next epoch (KIP-890)


@pytest.mark.parametrize("committed", [True, False])
def test_a_producer_gets_its_next_epoch_at_the_end(bench, producer, committed):
    bench.add(producer, PLACE)
    newer = bench.end_with_next_epoch(producer, committed=committed)
    assert newer == (producer.producer_id, 1)
    assert bench.ends.markers == [(PLACE, newer, committed)]
    assert bench.add(producer, PLACE) is Wire.producer_fenced
    assert bench.add(newer, PLACE) is Wire.none


@pytest.mark.parametrize("committed", [True, False])
def test_a_repeated_end_returns_the_same_epoch(bench, producer, committed):
    bench.add(producer, PLACE)
    newer = bench.end_with_next_epoch(producer, committed=committed)
    assert bench.end_with_next_epoch(producer, committed=committed) == newer
    assert bench.end_with_next_epoch(producer, committed=not committed) is Wire.invalid_txn_state
    assert len(bench.ends.markers) == 1
    bench.add(newer, PLACE)
    assert bench.end_with_next_epoch(producer, committed=committed) is Wire.producer_fenced


def test_a_producer_may_abort_without_a_transaction_but_not_commit(bench, producer):
    """Its transaction may have begun in a request whose response was lost."""
    assert bench.end_with_next_epoch(producer, committed=True) is Wire.invalid_txn_state
    newer = bench.end_with_next_epoch(producer, committed=False)
    assert newer == (producer.producer_id, 1)
    assert (bench.state(), bench.ends.markers) == (State.COMPLETE_ABORT, [])
    assert bench.end_with_next_epoch(newer, committed=False) == (producer.producer_id, 2)


def test_the_last_epoch_ends_with_a_new_producer_id(bench, producer):
    last = bench.set_epoch(LAST_EPOCH)
    bench.add(last, PLACE)
    newer = bench.end_with_next_epoch(last)
    assert newer == (producer.producer_id + 1, 0)
    assert bench.ends.markers == [(PLACE, last._replace(epoch=2**15 - 1), True)]
    assert bench.end_with_next_epoch(last) == newer, "the response was lost, and the request is repeated"
    assert bench.add(newer, PLACE) is Wire.none
    assert bench.end_with_next_epoch(last) is Wire.invalid_producer_id_mapping


def test_an_unknown_producer_cannot_end(bench, producer):
    bench.add(producer, PLACE)
    other = Producer(producer.producer_id + 7, 0)
    assert bench.end_with_next_epoch(other) is Wire.invalid_producer_id_mapping
    assert bench.end_with_next_epoch(producer._replace(epoch=3)) is Wire.producer_fenced
    assert bench.end_with_next_epoch(producer, name="unknown") is Wire.invalid_producer_id_mapping
    assert bench.end_with_next_epoch(producer, name="") is Wire.invalid_request
    assert bench.state() is State.ONGOING


def test_an_end_without_markers_keeps_the_next_epoch(bench, producer):
    """The broker is killed between the outcome and its markers."""
    last = bench.set_epoch(LAST_EPOCH)
    bench.add(last, PLACE)
    bench.ends.broken = True
    newer = bench.end_with_next_epoch(last)
    assert bench.state() is State.PREPARE_COMMIT
    assert bench.end_with_next_epoch(last) is Wire.concurrent_transactions
    assert bench.end_with_next_epoch(last, committed=False) is Wire.invalid_txn_state
    bench.ends.broken = False
    bench.start()
    assert bench.transactions.find("x").producer == newer == (producer.producer_id + 1, 0)


# --- time


def test_a_transaction_is_aborted_when_its_time_is_over(bench, producer):
    bench.wait(10_000)
    bench.add(producer, PLACE)
    bench.wait(TIMEOUT_MS - 1)
    bench.add(producer, OTHER)
    assert bench.ends.markers == []
    bench.wait(1)
    fence = producer._replace(epoch=1)
    assert bench.ends.markers == [(PLACE, fence, False), (OTHER, fence, False)]
    assert bench.end(producer) is Wire.producer_fenced
    assert bench.init(named=producer) == fence, "KIP-360: it may go on if no other has taken its place"
    assert bench.init() == (producer.producer_id, 2)
    assert bench.init(named=producer) is Wire.producer_fenced


# --- a store that fails, and a broker that is killed


@pytest.mark.parametrize("committed", [True, False])
def test_markers_that_cannot_be_written_are_written_later(bench, producer, committed):
    bench.add(producer, PLACE)
    bench.ends.broken = True
    assert bench.end(producer, committed=committed) is Wire.none, "the outcome is stored"
    assert bench.end(producer, committed=committed) is Wire.concurrent_transactions
    assert bench.end(producer, committed=not committed) is Wire.invalid_txn_state
    assert bench.add(producer, OTHER) is Wire.concurrent_transactions
    assert bench.init() is Wire.concurrent_transactions
    bench.wait(RETRY_MS)
    bench.ends.broken = False
    bench.wait(RETRY_MS)
    assert bench.ends.markers == [(PLACE, producer, committed)]
    assert bench.end(producer, committed=committed) is Wire.none


@pytest.mark.parametrize("committed", [True, False])
def test_an_outcome_without_markers_is_completed_at_the_start(bench, producer, committed):
    bench.add(producer, PLACE)
    bench.ends.broken = True
    bench.end(producer, committed=committed)
    bench.ends.broken = False
    bench.start()
    assert bench.ends.markers == [(PLACE, producer, committed)]
    assert bench.state() in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


def test_a_transaction_outlives_the_broker_but_not_its_time(bench, producer):
    bench.add(producer, PLACE)
    bench.start()
    assert bench.has(producer)
    assert bench.ends.markers == []
    bench.wait(TIMEOUT_MS)
    assert bench.ends.markers == [(PLACE, producer._replace(epoch=1), False)]


def test_an_error_of_the_store_changes_nothing(bench, producer, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("disk full")

    bench.add(producer, PLACE)
    with monkeypatch.context() as broken:
        broken.setattr(bench.store, "save_transactional_id", full)
        assert bench.add(producer, OTHER) is Wire.not_coordinator
        assert bench.end(producer) is Wire.not_coordinator
        bench.wait(TIMEOUT_MS)
    assert bench.has(producer)
    assert not bench.has(producer, OTHER)
    bench.wait(RETRY_MS)
    assert bench.state() is State.COMPLETE_ABORT


def test_too_many_records_are_refused_and_transactions_end_nevertheless(bench):
    bench.start(most_bytes=60)
    producer = bench.init()
    bench.add(producer, PLACE)
    bench.transactions._most_bytes = bench.transactions._bytes
    for _ in range(9):
        assert bench.add(producer, PLACE) is Wire.none
        assert bench.init("y") is Wire.policy_violation
        assert bench.add(producer, OTHER) is Wire.policy_violation
        assert bench.end(producer) is Wire.none


# --- any order of requests


class AnyOrder(RuleBasedStateMachine):
    """Two producers of one transactional id, a store that fails, and a broker that is killed.

    ``outcomes`` are the markers that follow from the responses and from the time.
    """

    @initialize()
    def begin(self):
        self.bench = Bench()
        self.ids = {"a": None, "b": None}
        self.outcomes = []

    @property
    def record(self):
        return self.bench.transactions.find("x")

    def decided(self, before, producer, *, committed):
        self.outcomes += [(place, producer, committed) for place in before.partitions]

    def fences_if_ongoing(self, before):
        """A transaction that was ongoing, and that its producer has not ended, is aborted."""
        if before is not None and before.state is State.ONGOING and self.record.state is not State.ONGOING:
            fence = before.producer._replace(epoch=before.producer.epoch + 1)
            self.decided(before, fence, committed=False)

    @rule(who=st.sampled_from("ab"), continues=st.booleans())
    def init(self, who, continues):
        before = self.record
        answer = self.bench.init(named=self.ids[who] if continues else None)
        self.fences_if_ongoing(before)
        if isinstance(answer, Producer):
            assert before is None or answer >= before.producer
            assert answer == self.record.producer
            self.ids[who] = answer

    @rule(who=st.sampled_from("ab"), place=st.sampled_from([PLACE, OTHER]))
    @precondition(lambda self: any(self.ids.values()))
    def add(self, who, place):
        producer = self.ids[who]
        if producer is not None and self.bench.add(producer, place, groups=("g",)) is Wire.none:
            assert producer == self.record.producer
            assert self.bench.has(producer, place)

    @rule(who=st.sampled_from("ab"), committed=st.booleans())
    @precondition(lambda self: any(self.ids.values()))
    def end(self, who, committed):
        producer, before = self.ids[who], self.record
        if producer is not None and self.bench.end(producer, committed=committed) is Wire.none:
            assert producer == before.producer
            if before.state is State.ONGOING:
                self.decided(before, producer, committed=committed)

    @rule(broken=st.booleans())
    def fail(self, broken):
        self.bench.ends.broken = broken

    @rule(wait_ms=st.sampled_from([1, RETRY_MS, TIMEOUT_MS]))
    def wait(self, wait_ms):
        before = self.record
        self.bench.wait(wait_ms)
        self.fences_if_ongoing(before)

    @rule()
    def kill(self):
        before = self.record
        self.bench.ends.broken = True
        self.bench.start()
        self.bench.ends.broken = False
        assert self.record == before

    @invariant()
    def every_outcome_is_written_once(self):
        """Those of a transaction that is prepared may be missing."""
        record, written = self.record, self.bench.ends.markers
        assert written == self.outcomes[: len(written)]
        if record is None or record.state not in PREPARED:
            assert written == self.outcomes

    @invariant()
    def only_an_ongoing_transaction_contains_partitions(self):
        for record in self.bench.transactions:
            open_places = [p for p in (PLACE, OTHER) if self.bench.has(record.producer, p)]
            assert bool(open_places) == (record.state is State.ONGOING)

    def teardown(self):
        if hasattr(self, "bench"):
            self.bench.ends.broken = False
            self.wait(TIMEOUT_MS + RETRY_MS)
            assert self.bench.ends.markers == self.outcomes


AnyOrder.TestCase.settings = settings(max_examples=scaled(200), stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase
