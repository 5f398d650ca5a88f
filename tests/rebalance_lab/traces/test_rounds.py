"""The rounds of traces that are written by hand."""

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.traces.entries import InitialGroup, MemberRound, Occurrence, Round
from rebalance_lab.traces.rounds import entries
from tests.rebalance_lab.traces.traces import (
    LATE_TAKE_OVER,
    assigned,
    changed,
    generation,
    joined,
    lost,
    revoked,
    round_at,
    started,
    state,
    trace_of,
)

UUID = "-12345678-90ab-4def-8123-0123456789ab"


def story(*timed):
    return entries(trace_of(*timed, topics={"t": 6}))


def preparing(cause):
    return state("PreparingRebalance", cause=cause)


# --- by hand


def test_a_round_has_its_times_its_cause_its_generation_and_its_members():
    (only,) = story(
        (0, started("a", "t")),
        (1_000, preparing("a joined")),
        (2_000, generation(1, "a" + UUID, leader="a" + UUID, protocol="sticky")),
        (2_000, joined("a", 1)),
        (3_000, state("Stable")),
        (3_100, assigned("a", 1, {"t": [0, 1]})),
    )
    assert only == Round(
        began_ms=1_000,
        causes=["a joined"],
        generation=1,
        generations=[1],
        protocol="sticky",
        leader="a",
        stable_ms=3_000,
        members={"a": MemberRound(assigned={"t": [0, 1]})},
        waited_ms=1_000,
        taken_over_ms=3_100,
        taken_over_by="a",
    )


def test_what_was_revoked_lost_assigned_and_kept_is_told_by_member():
    first, second = story(
        (1_000, preparing("a joined")),
        (1_000, state("Stable")),
        (5_000, preparing("b joined")),
        (5_000, revoked("a", {"t": [3]})),
        (5_100, revoked("a", {"t": [2], "u": [0]})),
        (5_200, lost("b", {"t": [4]})),
        (5_300, generation(2, "a", "b")),
        (5_300, joined("a", 2)),
        (5_300, joined("b", 2)),
        (6_000, assigned("a", 2, {"t": [0, 1, 5], "u": [1]}, added={"t": [5]})),
        (6_000, assigned("b", 2, {}, added={})),
    )
    assert first.members == {}
    assert second.members == {
        "a": MemberRound(revoked={"t": [2, 3], "u": [0]}, assigned={"t": [5]}, kept={"t": [0, 1], "u": [1]}),
        "b": MemberRound(lost={"t": [4]}),
    }


def test_a_round_that_a_change_ends_before_it_is_stable_is_a_round_of_its_own_and_aborted():
    aborted, after = story(
        (1_000, preparing("a joined")),
        (2_000, generation(1, "a")),
        (2_500, preparing("b joined")),
        (3_000, generation(2, "a", "b")),
        (4_000, state("Stable", generation=2)),
    )
    assert (aborted.generation, aborted.stable_ms) == (1, None)
    assert (aborted.aborted, aborted.aborted_ms) == ("b joined", 2_500)
    assert (after.began_ms, after.causes, after.generation, after.stable_ms) == (
        2_500,
        ["b joined"],
        2,
        4_000,
    )
    assert (after.aborted, after.aborted_ms) == ("", None)


def test_a_round_with_several_causes_before_its_generation_is_one_round():
    (only,) = story((1_000, preparing("a joined")), (2_000, preparing("b joined")))
    assert (only.began_ms, only.causes) == (1_000, ["a joined", "b joined"])


def computed(**report):
    return ev.AssignmentComputed(
        client="a", generation=1, assignor="range", members={}, payload_bytes=1, report=report
    )


def test_a_round_says_what_its_assignor_said():
    """Each its own; one that said nothing has nothing."""
    first, second = story(
        (1_000, preparing("a joined")),
        (1_000, generation(1, "a")),
        (1_500, computed(method="flow", weights="nothing known yet")),
        (2_000, state("Stable")),
        (5_000, preparing("b joined")),
        (5_500, computed()),
        (6_000, state("Stable")),
    )
    assert first.report == {"method": "flow", "weights": "nothing known yet"}
    assert second.report == {}


def test_a_round_that_begins_anew_tells_the_last_report():
    (only,) = story(
        (1_000, preparing("a joined")),
        (1_500, computed(method="flow")),
        (1_600, preparing("b joined")),
        (2_500, computed(method="solver")),
        (3_000, state("Stable")),
    )
    assert only.report == {"method": "solver"}


def test_what_is_computed_before_any_round_belongs_to_none():
    assert story((500, computed(method="flow"))) == []


def test_a_round_that_is_never_stable_has_no_such_time():
    (only,) = story((1_000, preparing("a joined")))
    assert (only.stable_ms, only.generation, only.protocol) == (None, 0, "")


def test_ids_of_members_are_told_as_the_names_of_consumers():
    (only,) = story((1_000, preparing(f"session of worker-7{UUID} expired")))
    assert only.causes == ["session of worker-7 expired"]


def test_a_static_member_has_the_name_of_its_consumer_and_not_its_instance_id():
    host = f"host-1{UUID}"
    first, *_ = story(
        (1_000, preparing(f"{host} joined")),
        (1_000, ev.MemberAdded(group="g", member_id=host, instance_id="host-1")),
        (2_000, generation(1, host)),
        (2_000, joined("a", 1, host)),
        (2_000, state("Stable")),
    )
    assert (first.causes, first.joined) == (["a joined"], ["a"])


def test_a_join_with_a_reason_is_told_by_its_reason_and_not_by_its_metadata():
    (only,) = story(
        (1_000, preparing("a changed its metadata (the delay of lost partitions is over)")),
        (1_000, preparing("b changed its metadata")),
    )
    assert only.causes == ["a joined again (the delay of lost partitions is over)", "b changed its metadata"]


def test_partitions_given_up_before_the_first_round_belong_to_none():
    assert story((1_000, lost("a", {"t": [0]}))) == [Occurrence(1_000, "a lost t 0")]


@pytest.mark.parametrize("after", ["Empty", "Dead"])
def test_a_group_without_members_ends_the_round(after):
    first, happened, second = story(
        (1_000, preparing("a joined")),
        (2_000, state(after, cause=f"a{UUID} left")),
        (9_000, preparing("b joined")),
    )
    assert happened == Occurrence(2_000, f"the group is {after}: a left")
    assert (first.causes, second.causes) == (["a joined"], ["b joined"])


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (changed("crash", "c2"), "crash c2"),
        (changed("leave", "c2", "rolling_restart"), "leave c2 (rolling_restart)"),
        (ev.CoordinatorFailed(node=1), "broker 1 failed"),
        (ev.CoordinatorElected(node=2, groups=1), "broker 2 is the coordinator now"),
        (
            ev.MemberReplaced(group="g", instance_id="s1", old_member_id="x", new_member_id="y"),
            "s1 is back under its instance id",
        ),
        (ev.ConsumerFailed(client="c1", error="FENCED_INSTANCE_ID"), "c1 failed: FENCED_INSTANCE_ID"),
    ],
)
def test_what_happens_from_outside_is_told_between_rounds(event, text):
    assert story((7_000, event)) == [Occurrence(7_000, text)]


@pytest.mark.parametrize(
    "event",
    [
        ev.OffsetsCommitted(client="c1", partitions=3),
        started("a", "t"),
    ],
)
def test_what_is_no_news_is_not_told(event):
    assert story((7_000, event)) == []


# --- a group that was there before


def elected(state="Stable", generation=7):
    return ev.CoordinatorElected(
        node=0, groups=1, group_state=state, generation=generation, members=["a" + UUID, "b" + UUID]
    )


def leads(client, number):
    return ev.Joined(client=client, member_id=client, generation=number, protocol="sticky", leader=True)


STOOD = [
    (0, elected()),
    (0, started("a", "t")),
    (0, leads("a", 7)),
    (0, assigned("a", 7, {"t": [0, 1]}, added={})),
    (0, joined("b", 7)),
    (0, assigned("b", 7, {}, added={})),
]


def test_a_group_that_was_there_before_stands_in_front_and_is_no_round():
    (only,) = story(STOOD)
    owned = {"a": {"t": [0, 1]}, "b": {}}
    assert only == InitialGroup(0, 7, protocol="range", leader="a", owned=owned)


def test_what_comes_later_does_not_change_how_it_stood():
    """A static member that comes back into the generation, a round at once, another coordinator."""
    later = story(
        STOOD,
        (0, preparing("c joined")),
        (0, generation(8, "a", "b")),
        (0, assigned("a", 8, {"t": [0]}, added={})),
        (50_000, assigned("b", 8, {"t": [1]})),
    )
    assert [type(each) for each in later] == [InitialGroup, Round]
    assert later[0].owned == {"a": {"t": [0, 1]}, "b": {}}
    stood, back = story(STOOD, (9_000, assigned("b", 7, {"t": [5]})))
    assert stood.owned == {"a": {"t": [0, 1]}, "b": {}}
    assert back == Occurrence(9_000, "b owns t 5 without a round")


def test_a_coordinator_that_takes_over_from_one_that_failed_is_what_it_was():
    first, failed, after = story(STOOD, (5_000, ev.CoordinatorFailed(node=0)), (9_000, elected()))
    assert isinstance(first, InitialGroup)
    assert (failed.text, after.text) == ("broker 0 failed", "broker 0 is the coordinator now")


def test_what_a_member_takes_over_after_the_next_round_began_belongs_to_its_own_round():
    """A member takes its assignment over in its next poll, which comes when it has handled its batch."""
    _, second, third = (entry for entry in story(LATE_TAKE_OVER) if isinstance(entry, Round))
    assert second.members["b"] == MemberRound(assigned={"t": [1]})
    assert (second.taken_over_ms, second.taken_over_by) == (6_900, "b")
    assert (second.moved, second.moves) == (1, {"a": {"b": 1}})
    assert (second.stopped, second.stopped_ms, second.longest_stop_ms) == (1, 1_700, 1_700)
    assert (third.members, third.moved) == ({}, 0)


def test_a_partition_that_stands_still_after_it_is_taken_over_is_counted_once():
    """A new owner restores the state of the partition before it works on it."""
    entry = story(
        *[(0, started(name, "t")) for name in ("a", "b")],
        *round_at(1_000, 1, {"a": {"t": [0]}, "b": {}}),
        (5_000, preparing("b rejoined")),
        (5_000, revoked("a", {"t": [0]})),
        (7_000, generation(2, "a", "b")),
        *[(7_000, joined(name, 2)) for name in ("a", "b")],
        (7_000, state("Stable", generation=2)),
        (7_000, assigned("b", 2, {"t": [0]})),
        (7_000, ev.WorkStopped(client="b", partitions={"t": [0]}, why="restore")),
        (12_000, ev.WorkStarted(client="b", partitions={"t": [0]})),
    )[-1]
    assert (entry.stopped, entry.stopped_ms, entry.longest_stop_ms) == (1, 7_000, 7_000)


def test_a_round_of_several_generations_names_the_first_and_the_last():
    assert [Round(0, []).name, Round(0, [], 7, [7]).name] == ["a round", "generation 7"]
    assert Round(0, [], 6, [3, 4, 5, 6]).name == "generations 3-6"


def test_a_stop_that_ends_while_a_round_waits_is_among_those_meanwhile():
    entry = story(
        (0, started("a", "t")),
        *round_at(1_000, 1, {"a": {"t": [0, 1, 2, 3, 4, 5]}}),
        (4_000, ev.WorkStopped(client="a", partitions={"t": [0]}, why="callback")),
        (5_000, preparing("b joined")),
        (6_000, ev.WorkStarted(client="a", partitions={"t": [0]})),
        (8_000, generation(2, "a", "b")),
    )[-1]
    assert (entry.waited_ms, entry.idle_meanwhile_ms) == (3_000, 1_000)


@pytest.mark.parametrize(
    ("revokes", "waited_for"),
    [
        ("", {}),
        ("a", {"a": "the only one to give up partitions"}),
        ("ab", {"b": "the last of 2 to give up partitions"}),
    ],
)
def test_a_round_that_goes_on_after_the_last_arrival_waits_for_a_member_that_gave_up_partitions(
    revokes, waited_for
):
    """It may run a callback before it sends its request to join."""
    given_up = [(6_000 + 100 * n, revoked(name, {"t": [n]})) for n, name in enumerate(revokes)]
    entry = story(
        *[(0, started(name, "t")) for name in "ab"],
        *round_at(1_000, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
        (5_000, preparing("c joined")),
        *given_up,
        *[(at_ms, arriving(event.client)) for at_ms, event in given_up or [(6_000, joined("a", 1))]],
        (6_500, arriving("c")),
        (20_000, generation(2, "a", "b", "c")),
        *[(20_000, joined(name, 2)) for name in "abc"],
    )[-1]
    assert entry.waited_for == waited_for


def arriving(client):
    return ev.ClientStateChanged(client=client, before="stable", after="preparing-rebalance")
