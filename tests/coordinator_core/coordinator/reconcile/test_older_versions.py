"""Rules of Kafka 4.1 to 4.4, and what the version before each does (`kafka_versions`)."""

import pytest

from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.reconcile import ConsumerGroupDescribeRequest

FENCED = ErrorCode.FENCED_MEMBER_EPOCH


@pytest.fixture
def of(make_reconcile_bench):
    """Return benches of coordinators of a version."""
    return lambda kafka, **given: make_reconcile_bench(kafka=kafka, **given)


def beat(bench, member_id, **fields):
    """Send a heartbeat in the epoch of the member, with what it was last assigned."""
    current = bench.current(member_id)
    return bench.tell(member_id, current.epoch, current.assigned, **fields)


@pytest.mark.parametrize(("kafka", "error"), [("4.1", FENCED), ("4.2", NONE)])
def test_a_member_joins_again_without_having_left(of, kafka, error):
    bench = of(kafka)
    bench.pair()
    assert bench.join("a").error is error


@pytest.mark.parametrize(("kafka", "epoch"), [("4.1", 2), ("4.2", 1)])
def test_a_member_gives_up_partitions_twice(of, kafka, epoch):
    bench = of(kafka)
    bench.join("a")
    bench.join("b")
    beat(bench, "a")
    first = bench.current("a").epoch
    bench.join("c")
    bench.join("d")
    beat(bench, "a")
    assert (bench.current("a").epoch - first, bench.current("a").state) == (epoch - 1, "unrevoked partitions")


@pytest.mark.parametrize(("kafka", "described"), [("4.2", 2), ("4.3", 4)])
def test_partitions_that_a_member_has_yet_to_give_up_are_described(of, kafka, described):
    bench = of(kafka)
    bench.join("a")
    bench.join("b")
    beat(bench, "a")
    member = bench.ask(ConsumerGroupDescribeRequest(group_id="g")).members[0]
    assert (member.member_id, len(member.assignment)) == ("a", described)


@pytest.mark.parametrize(("kafka", "state"), [("4.1", "unreleased partitions"), ("4.2", "stable")])
def test_a_member_gets_back_what_it_has_given_up(of, kafka, state):
    """Before 4.2 only with the heartbeat after that."""
    bench = of(kafka)
    bench.join("a")
    bench.join("b")
    beat(bench, "a")
    bench.tell("b", -1)
    beat(bench, "a")
    assert bench.current("a").state == state
    beat(bench, "a")
    assert (bench.current("a").state, len(bench.current("a").assigned)) == ("stable", 4)


@pytest.mark.parametrize(("kafka", "topics"), [("4.1", {"t", "u"}), ("4.2", {"t"})])
def test_a_member_leaves_a_topic_while_it_gives_up_partitions(of, kafka, topics):
    bench = of(kafka)
    bench.join("a", ("t", "u"))
    bench.join("b", ("t", "u"))
    beat(bench, "a")
    bench.tell("a", bench.current("a").epoch, subscribed_topic_names=("t",))
    assert {tp.topic for tp in bench.current("a").assigned} == topics


@pytest.mark.parametrize(("kafka", "bumps"), [("4.1", 0), ("4.2", 1)])
def test_a_member_gives_up_an_expression_that_matches_nothing(of, kafka, bumps):
    bench = of(kafka)
    bench.join("a", subscribed_topic_regex="x")
    epoch = bench.group().generation
    beat(bench, "a", subscribed_topic_regex="")
    assert bench.group().generation - epoch == bumps


@pytest.mark.parametrize(("kafka", "epoch"), [("4.2", 1), ("4.3", 2)])
def test_a_group_begins(of, kafka, epoch):
    assert of(kafka).join("a").member_epoch == epoch


@pytest.mark.parametrize(("kafka", "bumps"), [("4.3", 0), ("4.4", 1)])
def test_a_member_names_another_assignor(of, kafka, bumps):
    bench = of(kafka)
    bench.join("a")
    epoch = bench.group().generation
    beat(bench, "a", server_assignor="other")
    assert bench.group().generation - epoch == bumps


@pytest.mark.parametrize(("kafka", "behind"), [("4.3", 1), ("4.4", 0)])
def test_the_last_member_leaves(of, kafka, behind):
    bench = of(kafka)
    bench.join("a")
    bench.tell("a", -1)
    described = bench.described()
    assert (described.state, described.group_epoch - described.assignment_epoch) == ("Empty", behind)


@pytest.mark.parametrize(("kafka", "error"), [("4.3", ErrorCode.GROUP_MAX_SIZE_REACHED), ("4.4", NONE)])
def test_a_static_member_comes_back_into_a_full_group(of, kafka, error):
    bench = of(kafka, max_size=1)
    bench.join("a", instance_id="one")
    bench.tell("a", -2, instance_id="one")
    assert bench.join("a2", instance_id="one").error is error


@pytest.mark.parametrize(("kafka", "is_resolved"), [("4.0", False), ("4.1", True)])
def test_expressions_are_resolved_again_after_a_time(of, kafka, is_resolved):
    bench = of(kafka)
    bench.hidden["guest"] = {"u"}
    bench.join("a", (), subscribed_topic_regex="u", principal="guest")
    bench.hidden.clear()
    for _ in range(21):
        bench.sleep(30_000)
        beat(bench, "a", principal="guest")
    assert bool(bench.group().durable.resolved["u"].topics) is is_resolved
