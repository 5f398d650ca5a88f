"""The fold of a trace: the group after each event, and the changes that observers receive."""

import pytest

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.timeline import Timeline
from rebalance_lab.traces.trace import Trace, TraceEvent
from tests.rebalance_lab.traces.traces import (
    assigned,
    generation,
    joined,
    lost,
    revoked,
    started,
    state,
    stopped,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def after(*timed):
    """A timeline to which events are applied, and the changes that an observer received."""
    timeline, changes = Timeline(), []
    timeline.after.append(changes.append)
    for at_ms, event in timed:
        timeline.apply(at_ms, event)
    return timeline, changes


def test_a_partition_is_given_up_with_its_span():
    timeline, changes = after(
        (0, started("a", "t")),
        (1_000, assigned("a", 1, {"t": [0, 1]})),
        (5_000, revoked("a", {"t": [1]})),
        (9_000, stopped("a", "crashed")),
    )
    assert [(change.taken, change.given_up) for change in changes] == [
        ([], {}),
        ([T0, T1], {}),
        ([], {T1: 1}),
        ([], {T0: 0}),
    ]
    assert timeline.spans == [(T0, 0, 1_000, 9_000), (T1, 0, 1_000, 5_000)]
    assert timeline.consumers == {}
    assert timeline.owners == {T0: {}, T1: {}}


def test_work_that_stopped_on_a_partition_goes_on_when_the_partition_comes_back():
    timeline, _ = after(
        (0, started("a", "t")),
        (0, assigned("a", 1, {"t": [0, 1]})),
        (5, ev.WorkStopped(client="a", partitions={"t": [0, 1]}, why="callback")),
        (7, revoked("a", {"t": [0]})),
        (9, assigned("a", 2, {"t": [0, 1]})),
    )
    assert timeline.working == {T0: 1}
    assert timeline.consumers["a"].stopped == {T1: "callback"}


def test_of_an_assignment_only_what_changes_is_taken_or_given_up():
    timeline, changes = after(
        (0, started("a", "t")),
        *[(at_ms, assigned("a", 1, {"t": owned})) for at_ms, owned in ((0, [0]), (7, [0, 1]), (9, [1]))],
        (10, revoked("a", {"t": [0]})),
    )
    assert [(change.taken, change.given_up) for change in changes[2:]] == [
        ([T1], {}),
        ([], {T0: 0}),
        ([], {}),
    ]
    assert timeline.spans == [(T0, 0, 0, 9), (T1, 0, 7, None)]


def test_a_partition_of_several_owners_is_contested_until_one_is_left():
    timeline, _ = after(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (1, assigned("a", 1, {"t": [0]})),
        (2, assigned("b", 2, {"t": [0]})),
    )
    assert list(timeline.contested) == [T0]
    assert list(timeline.owners[T0]) == ["a", "b"]
    timeline.apply(3, lost("a", {"t": [0]}))
    assert not timeline.contested


def test_work_on_a_partition_begins_with_its_first_working_owner_and_ends_with_its_last():
    timeline, changes = after(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (1, assigned("a", 1, {"t": [0, 1]})),
        (2, assigned("b", 2, {"t": [0]})),
        (3, ev.MemberPaused(client="a")),
        (4, ev.WorkStopped(client="b", partitions={"t": [0]}, why="callback")),
        (5, ev.MemberResumed(client="a")),
        (6, ev.WorkStarted(client="b", partitions={"t": [0]})),
        (7, lost("a", {"t": [0]})),
        (8, stopped("b", "crashed")),
    )
    assert [(change.begun, change.ended) for change in changes[2:]] == [
        ([T0, T1], []),
        ([], []),
        ([], [T1]),
        ([], [T0]),
        ([T0, T1], []),
        ([], []),
        ([], []),
        ([], [T0]),
    ]
    assert timeline.working == {T1: 1}


def test_a_partition_of_a_wanted_topic_stops_until_an_owner_works_on_it_or_nobody_wants_it():
    first = ev.RunStarted(scenario="s", strategy="range", seed=0, duration_ms=9, topics={"t": 2})
    timeline, changes = after(
        (0, first),
        (1, started("a", "t")),
        (2, assigned("a", 1, {"t": [0]})),
        (4, ev.MemberPaused(client="a")),
        (7, ev.TopicDeleted(topic="t")),
    )
    assert [change.stops for change in changes] == [
        [],
        [],
        [(T0, 1, 2, False)],
        [],
        [(T0, 4, 7, True), (T1, 1, 7, False)],
    ]
    assert (changes[1].wanted, changes[-1].unwanted, timeline.idle) == ([T0, T1], [T0, T1], {})
    timeline.apply(8, ev.PartitionsAdded(topic="t", partitions=1))
    assert timeline.idle == {T0: (8, False)}


def test_epochs_of_members_end_when_their_group_goes_back_to_the_classic_protocol():
    run = ev.RunStarted("s", "range", 0, 9_000, {"t": 2}, protocol="migration")
    timeline, _ = after(
        (0, run),
        (0, started("a", "t")),
        (0, ev.MemberAdded(group="g", member_id="a")),
        (0, state("Assigning", generation=3)),
        (0, joined("a", 4)),
    )
    timeline.apply(1, state("Stable", generation=5))
    assert timeline.is_valid("a")  # in an epoch of its own
    timeline.apply(2, state("PreparingRebalance", generation=6))
    assert not timeline.is_valid("a")


def test_a_consumer_is_valid_in_the_present_generation_of_the_group():
    timeline, _ = after((0, started("a", "t")), (0, generation(1, "a")))
    assert not timeline.is_valid("a")
    timeline.apply(1, joined("a", 1))
    assert timeline.is_valid("a")
    timeline.apply(2, generation(2, "a"))
    assert not timeline.is_valid("a")


@pytest.mark.parametrize(
    ("event", "members"),
    [
        (ev.MemberAdded(group="g", member_id="c"), ["a", "b", "c"]),
        (ev.MemberRemoved(group="g", member_id="a", reason="left"), ["b"]),
        (ev.MemberReplaced(group="g", instance_id="i", old_member_id="a", new_member_id="z"), ["b", "z"]),
        (generation(2, "x"), ["x"]),
        (ev.CoordinatorElected(node=1, groups=1, group_state="Stable", generation=1, members=["b"]), ["b"]),
    ],
)
def test_members_are_those_of_the_coordinator(event, members):
    timeline, _ = after((0, generation(1, "a", "b")), (1, event))
    assert list(timeline.members) == members


def test_a_new_coordinator_has_the_state_of_its_log():
    timeline, _ = after((0, state("Stable", generation=7)), (1, ev.CoordinatorElected(node=1, groups=0)))
    assert (timeline.state, timeline.generation, timeline.members) == ("", -1, {})


def test_subscribed_topics_are_described_and_of_running_consumers():
    timeline, _ = after(
        (0, ev.PartitionsAdded(topic="t", partitions=2)),
        (0, ev.PartitionsAdded(topic="unwanted", partitions=9)),
        (0, started("a", "t", "unknown")),
    )
    assert timeline.subscribed == {"t": 2}
    timeline.apply(1, ev.PartitionsAdded(topic="t", partitions=4))
    assert timeline.subscribed == {"t": 4}
    timeline.apply(2, ev.SubscriptionChanged(client="a", topics=["unwanted"]))
    assert timeline.subscribed == {"unwanted": 9}
    timeline.apply(3, stopped("a"))
    assert timeline.subscribed == {}


def test_topics_are_wanted_until_nobody_comes_back_to_them():
    events = [
        (0, ev.RunStarted(scenario="x", strategy="s", seed=0, duration_ms=9, topics={"t": 2, "u": 1})),
        (0, started("a", "t")),
        (1, stopped("a")),
        (2, started("a", "t")),
        (3, stopped("a", "crashed")),
        (4, started("b", "u")),
        (5, ev.SubscriptionChanged(client="b", topics=[])),
        (6, started("a", "u")),
        (7, stopped("a")),
        (9, ev.RunEnded(group_state="Empty", generation=0, messages={})),
    ]
    timeline, seen = Timeline(), []
    timeline.after.append(lambda change: seen.append(dict(timeline.wanted)))
    timeline.read(Trace(tuple(TraceEvent(at_ms, event) for at_ms, event in events)))
    both = {"t": 2, "u": 1}
    assert seen == [{}, *[{"t": 2}] * 4, both, {"t": 2}, {"u": 1}, {}, {}]


def test_an_observer_before_an_event_sees_the_group_as_it_was():
    timeline, seen = Timeline(), []
    timeline.before.append(lambda at_ms, event: seen.append((at_ms, timeline.at_ms, timeline.state)))
    timeline.apply(5, state("Stable"))
    timeline.apply(9, state("Dead"))
    assert seen == [(5, 0, ""), (9, 5, "Stable")]
    assert (timeline.at_ms, timeline.state) == (9, "Dead")


def test_a_deleted_topic_is_subscribed_no_longer_while_its_partitions_are_owned():
    timeline, _ = after(
        (0, ev.RunStarted(scenario="x", strategy="s", seed=0, duration_ms=9, topics={"t": 2, "u": 1})),
        (0, started("a", "t", "u")),
        (1, assigned("a", 1, {"t": [0, 1]})),
        (2, ev.PartitionsAdded(topic="v", partitions=3)),
        (3, ev.TopicDeleted(topic="t")),
    )
    assert timeline.subscribed == {"u": 1}
    assert timeline.topics == {"u": 1, "v": 3}
    assert timeline.deleted == {"t": 2}
    assert list(timeline.consumers["a"].owned) == [T0, T1]
