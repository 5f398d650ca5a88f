"""A run told round by round: from traces written by hand, and the story of a scale-out as it happens."""

import pytest

from coordinator_core.documents.files import load_scenario
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from coordinator_core.simulation.run import simulate
from coordinator_core.traces.rounds import InitialGroup, MemberRound, Occurrence, Round, entries
from tests.coordinator_core.traces.traces import (
    assigned,
    changed,
    generation,
    joined,
    lost,
    revoked,
    started,
    state,
    trace_of,
)
from tests.places import SCENARIOS

SCALE_OUT = SCENARIOS / "scale-out.yaml"
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
        protocol="sticky",
        leader="a",
        stable_ms=3_000,
        members={"a": MemberRound(assigned={"t": [0, 1]})},
    )


def test_what_was_revoked_lost_assigned_and_kept_is_told_by_member():
    first, second = story(
        (1_000, preparing("a joined")),
        (1_000, state("Stable")),
        (5_000, preparing("b joined")),
        (5_000, revoked("a", {"t": [3]})),
        (5_100, revoked("a", {"t": [2], "u": [0]})),
        (5_200, lost("b", {"t": [4]})),
        (6_000, assigned("a", 2, {"t": [0, 1, 5], "u": [1]}, added={"t": [5]})),
        (6_000, assigned("b", 2, {}, added={})),
    )
    assert first.members == {}
    assert second.members == {
        "a": MemberRound(revoked={"t": [2, 3], "u": [0]}, assigned={"t": [5]}, kept={"t": [0, 1], "u": [1]}),
        "b": MemberRound(lost={"t": [4]}),
    }


def test_a_round_that_begins_anew_before_it_is_stable_is_one_round_with_both_causes():
    (only,) = story(
        (1_000, preparing("a joined")),
        (2_000, generation(1, "a")),
        (2_500, preparing("b joined")),
        (3_000, generation(2, "a", "b")),
        (4_000, state("Stable", generation=2)),
    )
    assert (only.began_ms, only.causes, only.generation, only.stable_ms) == (
        1_000,
        ["a joined", "b joined"],
        2,
        4_000,
    )


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


def test_partitions_given_up_before_the_first_round_belong_to_none():
    assert story((1_000, lost("a", {"t": [0]}))) == []


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
            "s1 is back under its instance id, without a round",
        ),
        (ev.ConsumerFailed(client="c1", error="FENCED_INSTANCE_ID"), "c1 failed: FENCED_INSTANCE_ID"),
        (
            ev.MemberRemoved(group="g", member_id="c2" + UUID, reason="session expired"),
            "the session of c2 expired",
        ),
    ],
)
def test_what_happens_from_outside_is_told_between_rounds(event, text):
    assert story((7_000, event)) == [Occurrence(7_000, text)]


@pytest.mark.parametrize(
    "event",
    [
        ev.MemberRemoved(group="g", member_id="c2", reason="left"),
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
        (0, assigned("a", 8, {"t": [0]}, added={})),
        (50_000, assigned("b", 8, {"t": [1]})),
    )
    assert [type(each) for each in later] == [InitialGroup, Round]
    assert later[0].owned == {"a": {"t": [0, 1]}, "b": {}}
    back = story(STOOD, (9_000, assigned("b", 7, {"t": [5]})))
    assert back[0].owned == {"a": {"t": [0, 1]}, "b": {}}


def test_a_coordinator_that_takes_over_from_one_that_failed_is_what_it_was():
    first, failed, after = story(STOOD, (5_000, ev.CoordinatorFailed(node=0)), (9_000, elected()))
    assert isinstance(first, InitialGroup)
    assert (failed.text, after.text) == ("broker 0 failed", "broker 0 is the coordinator now")


# --- the story of a scale-out: six partitions on two members, a third joins, then the second crashes


@pytest.fixture(scope="module")
def scale_out():
    registry, scenario = default_registry(), load_scenario(SCALE_OUT)
    return {s: entries(simulate(scenario, s, registry)) for s in ("range", "cooperative-sticky")}


def outline(of):
    return [each.generation if isinstance(each, Round) else each.text for each in of]


def held(partitions):
    return set(partitions.get("clicks", ()))


def test_cooperative_sticky_takes_two_rounds_for_a_join_and_one_for_a_crash(scale_out):
    assert outline(scale_out["cooperative-sticky"]) == [
        1,
        "join c3",
        2,
        3,
        "crash c2",
        "the session of c2 expired",
        4,
    ]


def test_range_takes_one_round_for_each(scale_out):
    assert outline(scale_out["range"]) == [1, "join c3", 2, "crash c2", "the session of c2 expired", 3]


def test_each_round_has_its_cause_its_leader_and_its_assignor(scale_out):
    for strategy, happened in scale_out.items():
        rounds = [each for each in happened if isinstance(each, Round)]
        assert {each.protocol for each in rounds} == {strategy}
        assert all(each.leader in each.members for each in rounds)
        assert all(each.stable_ms >= each.began_ms for each in rounds)
        assert "joined" in rounds[0].causes[0]
        assert "c3" in rounds[1].causes[0]
        assert "c2" in rounds[-1].causes[0]


def test_cooperative_sticky_revokes_one_of_each_and_gives_them_in_the_next_round(scale_out):
    first, second, third, fourth = [e for e in scale_out["cooperative-sticky"] if isinstance(e, Round)]
    before = {c: held(m.assigned) for c, m in first.members.items()}
    assert {c: len(p) for c, p in before.items()} == {"c1": 3, "c2": 3}
    for client in ("c1", "c2"):
        member = second.members[client]
        assert len(held(member.revoked)) == 1
        assert held(member.kept) == before[client] - held(member.revoked)
        assert third.members[client].kept == member.kept
        assert not third.members[client].revoked
    assert second.members["c3"] == MemberRound()
    given_up = held(second.members["c1"].revoked) | held(second.members["c2"].revoked)
    assert held(third.members["c3"].assigned) == given_up
    orphans = held(fourth.members["c1"].assigned) | held(fourth.members["c3"].assigned)
    assert orphans == held(second.members["c2"].kept)
    assert "c2" not in fourth.members


def test_under_range_everyone_revokes_everything_in_each_round(scale_out):
    first, second, third = [e for e in scale_out["range"] if isinstance(e, Round)]
    assert {c: m.assigned for c, m in first.members.items()} == {
        "c1": {"clicks": [0, 1, 2]},
        "c2": {"clicks": [3, 4, 5]},
    }
    assert second.members == {
        "c1": MemberRound(revoked={"clicks": [0, 1, 2]}, assigned={"clicks": [0, 1]}),
        "c2": MemberRound(revoked={"clicks": [3, 4, 5]}, assigned={"clicks": [2, 3]}),
        "c3": MemberRound(assigned={"clicks": [4, 5]}),
    }
    assert third.members == {
        "c1": MemberRound(revoked={"clicks": [0, 1]}, assigned={"clicks": [0, 1, 2]}),
        "c3": MemberRound(revoked={"clicks": [4, 5]}, assigned={"clicks": [3, 4, 5]}),
    }
