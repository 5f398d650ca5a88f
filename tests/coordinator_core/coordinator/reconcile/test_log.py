"""The records of a group that the coordinator reconciles: written first, replayed by the same code (8.2)."""

from coordinator_core.coordinator.records import PartRecord, compact
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GenerationStarted, MemberAdded


def fields(state):
    return {name: value for name, value in vars(state).items() if name != "behind"}, set(state.behind)


def busy(bench):
    """Let something of every kind happen."""
    bench.join("a", instance_id="one")
    bench.join("b", (), subscribed_topic_regex="t")
    bench.settle("a", "b")
    bench.tell("a", -2, instance_id="one")
    bench.join("a2", instance_id="one")
    bench.join("c")
    bench.tell("b", bench.current("b").epoch)


def test_another_broker_goes_on_where_the_first_one_ended(bench):
    busy(bench)
    before = fields(bench.group().durable)
    bench.fail_over()
    assert fields(bench.group().durable) == before
    assert bench.state() == "Reconciling"
    for _ in range(4):
        for member in ("a2", "b", "c"):
            current = bench.current(member)
            assert not bench.tell(member, current.epoch, current.assigned).error
    assert bench.state() == "Stable"


def test_nothing_happens_before_the_records_are_written(bench):
    bench.holding = True
    assert bench.join("a") is None
    assert (bench.state(), bench.events_of(MemberAdded)) == ("Empty", [])
    bench.release()
    assert bench.replies[1].member_epoch == 2
    assert bench.state() == "Stable"


def test_requests_that_come_meanwhile_wait_and_write_together(bench):
    bench.holding = True
    for member in "abc":
        bench.join(member)
    (first,) = bench.held
    bench.held.clear()
    bench.write(first)
    assert len(bench.held) == 1
    bench.release()
    assert {reply.error for reply in bench.replies.values()} == {ErrorCode.NONE}
    assert list(bench.group().members) == ["a", "b", "c"]
    assert [event.generation for event in bench.events_of(GenerationStarted)] == [2, 3, 4]


def test_a_write_that_fails_leaves_the_group_as_it_was(bench):
    epoch = bench.pair()
    before = fields(bench.group().durable)
    bench.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.join("c").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fields(bench.group().durable) == before
    bench.append_error = ErrorCode.NONE
    assert bench.join("c").member_epoch == epoch + 1


def test_an_expiry_that_could_not_be_written_is_carried_out_later(bench):
    bench.join("a")
    bench.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.sleep(45_000)
    assert list(bench.group().members) == ["a"]
    bench.append_error = ErrorCode.NONE
    bench.sleep(1_000)
    assert bench.state() == "Empty"


def test_sessions_begin_anew_at_another_broker(bench):
    bench.pair()
    bench.sleep(40_000)
    bench.fail_over()
    bench.sleep(44_000)
    assert list(bench.group().members) == ["a", "b"]
    bench.sleep(1_000)
    assert bench.state() == "Empty"


def test_revocations_are_timed_anew_at_another_broker(bench):
    epoch = bench.pair()
    bench.join("c", rebalance_timeout_ms=20_000)
    bench.tell("b", epoch)
    bench.fail_over()
    for _ in range(13):
        bench.sleep(5_000)
        for member in bench.group().members:
            bench.tell(member, bench.current(member).epoch)
    assert "b" not in bench.group().members


def test_a_group_that_is_forgotten_leaves_nothing_in_the_log(bench):
    bench.join("a")
    bench.tell("a", -1)
    bench.sleep(20 * 60_000)
    assert bench.group() is None
    records = [record for partition in range(50) for record in compact(bench.log.read(partition))]
    assert [record for record in records if isinstance(record, PartRecord)] == []
