"""A new target at most once in an interval (KIP-1263)."""

import pytest


@pytest.fixture
def bench(make_reconcile_bench):
    return make_reconcile_bench(interval_ms=1_000, now_ms=1)


def epochs(bench):
    """The epoch of the group, and of its target."""
    return bench.group().generation, bench.group().durable.target.epoch


def test_members_that_join_within_the_interval_wait_for_the_next_target(bench):
    """They join in the epoch of the last target, and own nothing."""
    assert bench.join("a").member_epoch == 2
    for member, epoch in (("b", 3), ("c", 4)):
        answer = bench.join(member)
        assert (answer.member_epoch, answer.assignment) == (2, ())
        assert (bench.state(), epochs(bench)) == ("Assigning", (epoch, 2))


def test_the_first_heartbeat_after_the_interval_computes_the_target_of_all_changes(bench):
    for member in "abc":
        bench.join(member)
    bench.sleep(999)
    bench.tell("b", 2)
    assert epochs(bench) == (4, 2)
    bench.sleep(1)
    assert epochs(bench) == (4, 2)
    assert bench.tell("b", 2).member_epoch == 4
    assert epochs(bench) == (4, 4)


def test_a_group_that_was_empty_does_not_wait(bench):
    bench.join("a")
    bench.tell("a", -1)
    assert bench.join("b").member_epoch == 4
    assert epochs(bench) == (4, 4)


def test_a_group_has_an_interval_of_its_own(make_reconcile_bench):
    bench = make_reconcile_bench(interval_ms=1_000, now_ms=1, own={"consumer.assignment.interval.ms": 0})
    bench.join("a")
    assert bench.join("b").member_epoch == 3


def test_the_interval_goes_on_at_another_broker(bench):
    bench.join("a")
    bench.fail_over()
    bench.join("b")
    assert epochs(bench) == (3, 2)
    bench.sleep(1_000)
    bench.tell("b", 2)
    assert epochs(bench) == (3, 3)


def test_a_version_without_the_rule_computes_every_target_at_once(make_reconcile_bench):
    bench = make_reconcile_bench(kafka="4.2", now_ms=1)
    bench.join("a")
    assert bench.join("b").member_epoch == 2
    assert epochs(bench) == (2, 2)


def test_the_share_of_a_member_with_a_new_instance_id_is_unknown_until_the_next_target(bench):
    """Kafka looks the share of a static member up by its instance id."""
    bench.join("a")
    bench.sleep(1_000)
    bench.join("b")
    assert bench.join("a", instance_id="one").assignment == ()
    bench.sleep(1_000)
    bench.join("c")
    assert bench.tell("a", bench.current("a").epoch).assignment == (("t", 0), ("t", 1))
