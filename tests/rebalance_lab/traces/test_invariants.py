"""Each rule of the checker: a trace that breaks this rule and no other one, and what a rule must let pass."""

import pytest

from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.invariants import Invariants, Violation, check_trace
from tests.rebalance_lab.traces.traces import (
    GROUP,
    assigned,
    generation,
    joined,
    lost,
    removed,
    revoked,
    started,
    state,
    trace_of,
)

PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"
T0 = TopicPartition("t", 0)


def rebalance(number, before, owned, leader="a"):
    """A whole round without a fault."""
    return [
        state(PREPARING, before=before, cause="a joined", generation=number - 1),
        generation(number, *owned, leader=leader),
        state(COMPLETING, before=PREPARING, generation=number),
        *[joined(client, number) for client in owned],
        state(STABLE, before=COMPLETING, generation=number),
        *[assigned(client, number, {"t": listed} if listed else {}) for client, listed in owned.items()],
    ]


def group_of_two(**options):
    return [
        started("a", "t", **options),
        started("b", "t"),
        *rebalance(1, "Empty", {"a": [0, 1], "b": [2, 3]}),
    ]


def broken(*events, topics=None, at_ms=5):
    """The violations of a group of two after these events."""
    timed = [(1, event) for event in group_of_two()] + [(at_ms, event) for event in events]
    return check_trace(trace_of(*timed, topics=topics or {"t": 4}))


def watching(*events):
    watch = Invariants()
    watch.observe(0, trace_of(topics={"t": 4}).events[0].event)
    for event in events:
        watch.observe(1, event)
    return watch


BREAKING = {
    "one owner per partition": [
        *rebalance(2, STABLE, {"a": [0, 1], "b": [2, 3]})[:-1],
        assigned("b", 2, {"t": [1, 2, 3]}),
    ],
    "one state": [state(STABLE, before=COMPLETING)],
    "legal moves": [state("Empty", before=STABLE)],
    "every rebalance has a cause": [state(PREPARING, before=STABLE)],
    "one leader, who is a member": [
        state(PREPARING, before=STABLE, cause="x left"),
        generation(2, "a", "b", leader="x"),
    ],
    "assigned within the subscription": [assigned("b", 1, {"t": [2, 3], "u": [0]})],
    "what goes is revoked or lost": [assigned("b", 1, {"t": [2]}, added={})],
}
GROWING = {
    "of the group": [state(STABLE, before=STABLE, generation=0)],
    "of a round that starts again": [generation(1, "a", "b")],
    "of an older round": [generation(0)],
    "of a member": [joined("b", 0)],
}


def test_a_trace_that_keeps_all_rules_has_no_violation():
    assert broken(*rebalance(2, STABLE, {"a": [0, 1], "b": [2, 3]})) == []


@pytest.mark.parametrize("rule", BREAKING)
def test_a_trace_that_breaks_a_rule_breaks_this_one(rule):
    (violation,) = broken(*BREAKING[rule])
    assert (violation.at_ms, violation.rule) == (5, rule)


@pytest.mark.parametrize("generation", GROWING)
def test_generations_only_grow(generation):
    (violation,) = broken(*GROWING[generation])
    assert violation.rule == "generations only grow"


@pytest.fixture
def emptied():
    """Checks of a classic group without members that may go over to the consumer protocol."""
    watch = Invariants()
    watch.observe(0, ev.RunStarted("s", "range", 0, 9_000, {"t": 4}, protocol="migration"))
    for event in (*group_of_two(), state("Empty", before=STABLE, generation=1)):
        watch.observe(1, event)
    return watch


def test_generations_begin_again_when_an_empty_group_goes_over_to_the_other_protocol(emptied):
    emptied.observe(3, state("Assigning", before="Empty", cause="c joined", generation=1))
    emptied.observe(3, generation(1, "c", leader=""))
    assert emptied.violations == []
    now = emptied.now
    assert (now.generation, now.own_epochs, now.valid_from) == (1, True, 1)
    emptied.observe(4, state("Assigning", before="Assigning", cause="d joined", generation=0))
    assert [violation.rule for violation in emptied.violations] == ["generations only grow"]


def test_a_group_that_was_deleted_is_made_anew_with_generations_of_its_own(emptied):
    emptied.observe(2, state("Dead", before="Empty", generation=1))
    emptied.observe(3, state(PREPARING, before="Empty", cause="c joined", generation=0))
    emptied.observe(3, generation(1, "c", leader="c"))
    assert (emptied.violations, emptied.now.generation) == ([], 1)


def test_generations_go_on_when_an_empty_group_keeps_its_protocol(emptied):
    emptied.observe(3, state(PREPARING, before="Empty", cause="c joined", generation=0))
    assert [violation.rule for violation in emptied.violations] == ["generations only grow"]


def test_a_share_may_have_partitions_of_a_topic_that_was_deleted_meanwhile():
    other, share = ev.SubscriptionChanged(client="a", topics=["u"]), assigned("a", 1, {"t": [0, 1]})
    assert len(broken(other, share)) == 1
    assert broken(other, ev.TopicDeleted(topic="t"), share) == []


def test_committed_offsets_never_go_back():
    watch = watching(*group_of_two())
    for offset in (5, 5, 7):
        watch.committed(T0, offset)
    assert watch.violations == []
    watch.committed(T0, 6)
    assert watch.violations == [Violation(1, "committed offsets never go back", "t-0 went back from 7 to 6")]


def test_offsets_are_those_that_the_log_has():
    watch = watching(*group_of_two())
    for offset in (7, 6):
        watch.logged(0, [OffsetRecord(GROUP, "t", 0, StoredOffset(offset, -1, "", 0))])
    watch.logged(0, [OffsetRecord(GROUP, "t", 0, None)])
    assert [violation.rule for violation in watch.violations] == ["committed offsets never go back"]


def test_a_violation_names_its_time_its_rule_and_what_was_found():
    (violation,) = broken(*BREAKING["one state"])
    assert str(violation) == "at 5ms, one state: left CompletingRebalance, but was Stable"


@pytest.mark.parametrize("give_up", [revoked, lost])
def test_what_is_revoked_or_lost_may_go_to_another_member(give_up):
    assert broken(give_up("a", {"t": [1]}), assigned("b", 1, {"t": [1, 2, 3]})) == []


def test_a_member_that_was_removed_owns_nothing():
    assert broken(removed("a"), assigned("b", 1, {"t": [1, 2, 3]})) == []


def test_a_member_of_an_older_generation_owns_nothing():
    events = rebalance(2, STABLE, {"b": [0, 1, 2, 3]}, leader="b")
    assert broken(*events) == []


def test_a_member_that_has_left_its_group_by_itself_owns_nothing():
    watch = Invariants()
    first = ev.RunStarted(
        scenario="x",
        strategy="s",
        seed=0,
        duration_ms=9,
        topics={"t": 4},
        protocol="reconcile",
        own_epochs=True,
    )
    watch.observe(0, first)
    for event in (
        *(started(name, "t") for name in ("a", "b")),
        *(ev.MemberAdded(group=GROUP, member_id=name) for name in ("a", "b")),
        *(joined(name, 1) for name in ("a", "b")),
        assigned("a", 1, {"t": [0]}),
    ):
        watch.observe(1, event)
    assert watch.owners(T0) == ["a"]
    watch.observe(2, ev.ClientStateChanged(client="a", before="stable", after="unjoined"))
    assert watch.owners(T0) == []


def missed_a_round(instance_id):
    """A member that was away in generation 2 joins generation 3, in which another one was given its part."""
    return watching(
        *group_of_two(instance_id=instance_id),
        *rebalance(2, STABLE, {"b": [2, 3]}, leader="b"),
        state(PREPARING, before=STABLE, cause="b rejoined", generation=2),
        generation(3, "a", "b", leader="b"),
        joined("a", 3),
        joined("b", 3),
        assigned("b", 3, {"t": [1, 2, 3]}),
    )


def test_a_static_member_that_missed_a_round_may_overlap_with_others_until_it_takes_over():
    watch = missed_a_round("one")
    assert (watch.violations, list(watch.overlaps)) == ([], ["a"])
    watch.committed(TopicPartition("t", 1), 7)
    watch.committed(TopicPartition("t", 1), 6)
    assert watch.violations == []
    watch.observe(2, revoked("a", {"t": [1]}, 3))
    watch.observe(2, assigned("a", 3, {"t": [0]}, added={}))
    watch.observe(3, assigned("b", 3, {"t": [0, 1, 2, 3]}))
    assert [violation.rule for violation in watch.violations] == ["one owner per partition"]


def test_a_dynamic_member_that_missed_a_round_may_not_overlap():
    watch = missed_a_round(None)
    assert {violation.rule for violation in watch.violations} == {"one owner per partition"}
    assert watch.overlaps == {}


def test_a_static_member_that_missed_no_round_may_not_overlap():
    watch = watching(
        *group_of_two(instance_id="one"),
        *rebalance(2, STABLE, {"a": [0, 1], "b": [2, 3]})[:-2],
        assigned("b", 2, {"t": [1, 2, 3]}),
    )
    assert [violation.rule for violation in watch.violations] == ["one owner per partition"]


def test_a_group_is_settled_if_it_rests_and_each_partition_has_one_owner():
    assert watching(*group_of_two()).settled() == []


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (state(PREPARING, before=STABLE, cause="x"), "the group is PreparingRebalance"),
        (removed("b"), "b is not in the group"),
        (revoked("a", {"t": [1]}), "t-1 has 0 owners ()"),
        (assigned("b", 1, {"t": [1, 2, 3]}), "t-1 has 2 owners (a, b)"),
    ],
)
def test_a_group_that_is_not_settled_says_why(event, problem):
    assert problem in watching(*group_of_two(), event).settled()


def test_no_consumers_leave_nothing_to_settle():
    assert watching().settled() == []
